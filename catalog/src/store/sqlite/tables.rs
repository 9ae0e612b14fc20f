//! Tables and views: a row each, the schema as Arrow IPC, the rest of the definition as JSON.

use std::collections::BTreeSet;

use arrow::datatypes::SchemaRef;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::fault::Fault;
use super::lane::Lane;
use super::{access, extents, purges, schemas};
use crate::access::keeps_rights;
pub(super) use crate::named::{decode_schema, encode_schema};
use crate::store::{no_such_table, table_exists};
use crate::{
    CatalogError, DerivedTable, Extent, FileFormatKind, Replace, Securable, TableDef, TableId, TableKind, TableName,
    named,
};

/// A query for the columns that [`read`] expects, in its order.
macro_rules! select {
    ($condition:literal) => {
        sqlx::query(concat!(
            "SELECT id, schema_name, table_name, arrow_schema, kind, column_defaults, primary_keys, unique_keys,
                    definition, created_at, owner
             FROM tables ",
            $condition
        ))
    };
}

pub(super) async fn list(lane: &mut Lane) -> Result<Vec<TableDef>, Fault> {
    sorted(select!("").fetch_all(lane.read()?).await?)
}

/// All tables, inside of a change.
pub(super) async fn all(connection: &mut SqliteConnection) -> Result<Vec<TableDef>, Fault> {
    sorted(select!("").fetch_all(connection).await?)
}

/// Deletes those of `tables` that are named, and returns them.
pub(super) async fn delete_all(
    connection: &mut SqliteConnection,
    tables: Vec<TableDef>,
    ids: &BTreeSet<TableId>,
) -> Result<Vec<TableDef>, Fault> {
    let dropped: Vec<TableDef> = tables.into_iter().filter(|table| ids.contains(&table.id)).collect();
    for table in &dropped {
        purges::remember_derived(connection, table).await?;
        delete(connection, table.id).await?;
    }
    Ok(dropped)
}

pub(super) async fn create(
    lane: &mut Lane,
    table: &TableDef,
    extents: &[Extent],
    replace: Replace,
) -> Result<Option<TableDef>, Fault> {
    let mut change = lane.change().await?;
    let replaced = create_in(&mut change, table, extents, replace).await?;
    change.commit().await?;
    Ok(replaced)
}

/// The same inside of a change.
pub(super) async fn create_in(
    change: &mut SqliteConnection,
    table: &TableDef,
    extents: &[Extent],
    replace: Replace,
) -> Result<Option<TableDef>, Fault> {
    schemas::require(&mut *change, &table.name.schema).await?;
    let replaced = find(&mut *change, &table.name).await?;
    replace.check(table, replaced.as_ref())?;
    if let Some((id, n_extents)) = replace.read()
        && extents::count(&mut *change, id).await? != n_extents
    {
        return Err(CatalogError::Overtaken { name: table.name.clone() }.into());
    }
    if replaced.is_some() || matches!(table.kind, TableKind::MaterializedView(_) | TableKind::Derived(_)) {
        let tables = all(&mut *change).await?;
        if let Some(old) = &replaced {
            named::may_replace(&tables, old, table.id)?;
        }
        named::stands(&tables, table)?;
    }
    let mut kept = vec![];
    if let Some(old) = &replaced {
        // They would go with the old one.
        if keeps_rights(old, table) {
            kept = access::grants_on(&mut *change, old.id).await?;
            kept.iter_mut().for_each(|grant| grant.on = Securable::Table(table.id));
        }
        // One that took another form is not gone.
        if old.id != table.id {
            purges::remember_derived(&mut *change, old).await?;
        }
        delete(&mut *change, old.id).await?;
    }
    insert(&mut *change, table).await?;
    access::write_grants(&mut *change, kept.iter()).await?;
    extents::insert(&mut *change, table.id, 0, extents).await?;
    Ok(replaced)
}

/// Gives a derived table files of its own; false if it has some already.
pub(super) async fn pin(
    lane: &mut Lane,
    id: TableId,
    format: FileFormatKind,
    schema: &SchemaRef,
    extents: &[Extent],
) -> Result<bool, Fault> {
    let mut change = lane.change().await?;
    let found = select!("WHERE id = $1").bind(id.to_string()).fetch_optional(&mut *change).await?;
    let found = found.as_ref().map(read).transpose()?.map(|table| table.kind);
    let Some(TableKind::Derived(derived)) = found else { return Err(no_such_table(id).into()) };
    if derived.pinned.is_some() {
        change.rollback().await?;
        return Ok(false);
    }
    let kind = TableKind::Derived(Box::new(DerivedTable { pinned: Some(format), ..*derived }));
    sqlx::query("UPDATE tables SET kind = $1, arrow_schema = $2 WHERE id = $3")
        .bind(to_json(&kind)?)
        .bind(encode_schema(schema))
        .bind(id.to_string())
        .execute(&mut *change)
        .await?;
    sqlx::query("DELETE FROM extents WHERE table_id = $1").bind(id.to_string()).execute(&mut *change).await?;
    extents::insert(&mut change, id, 0, extents).await?;
    change.commit().await?;
    Ok(true)
}

pub(super) async fn drop(lane: &mut Lane, ids: &[TableId], cascade: bool) -> Result<Vec<TableDef>, Fault> {
    let mut change = lane.change().await?;
    for id in ids {
        require(&mut change, *id).await?;
    }
    let tables = all(&mut change).await?;
    let ids = named::dropped_with(&tables, ids, cascade)?;
    let dropped = delete_all(&mut change, tables, &ids).await?;
    change.commit().await?;
    Ok(dropped)
}

pub(super) async fn rename(lane: &mut Lane, id: TableId, name: &TableName) -> Result<(), Fault> {
    let mut change = lane.change().await?;
    require(&mut change, id).await?;
    schemas::require(&mut change, &name.schema).await?;
    if find(&mut change, name).await?.is_some_and(|other| other.id != id) {
        return Err(table_exists(name).into());
    }
    let tables = all(&mut change).await?;
    if let Some(table) = tables.iter().find(|table| table.id == id && table.name != *name) {
        named::may_rename(&tables, table)?;
    }
    sqlx::query("UPDATE tables SET schema_name = $1, table_name = $2 WHERE id = $3")
        .bind(&name.schema)
        .bind(&name.name)
        .bind(id.to_string())
        .execute(&mut *change)
        .await?;
    // Results know it by its name as well, also when it is gone.
    sqlx::query("UPDATE cache_entry_inputs SET table_name = $1 WHERE table_id = $2")
        .bind(name.to_string())
        .bind(id.to_string())
        .execute(&mut *change)
        .await?;
    Ok(change.commit().await?)
}

/// Fails unless the table exists.
pub(super) async fn require(connection: &mut SqliteConnection, id: TableId) -> Result<(), Fault> {
    let select = sqlx::query("SELECT 1 FROM tables WHERE id = $1").bind(id.to_string());
    select.fetch_optional(connection).await?.map(std::mem::drop).ok_or_else(|| no_such_table(id).into())
}

async fn find(connection: &mut SqliteConnection, name: &TableName) -> Result<Option<TableDef>, Fault> {
    let select = select!("WHERE schema_name = $1 AND table_name = $2").bind(&name.schema).bind(&name.name);
    select.fetch_optional(connection).await?.as_ref().map(read).transpose()
}

/// The extents go with it by cascade.
async fn delete(connection: &mut SqliteConnection, id: TableId) -> Result<(), Fault> {
    sqlx::query("DELETE FROM tables WHERE id = $1").bind(id.to_string()).execute(connection).await?;
    Ok(())
}

async fn insert(connection: &mut SqliteConnection, table: &TableDef) -> Result<(), Fault> {
    sqlx::query(
        "INSERT INTO tables (id, schema_name, table_name, arrow_schema, kind, column_defaults, primary_keys, unique_keys,
                             definition, created_at, owner)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(table.id.to_string())
    .bind(&table.name.schema)
    .bind(&table.name.name)
    .bind(encode_schema(&table.schema))
    .bind(to_json(&table.kind)?)
    .bind(to_json(&table.defaults)?)
    .bind(to_json(&table.primary_keys)?)
    .bind(to_json(&table.unique_keys)?)
    .bind(&table.definition)
    .bind(table.created_at)
    .bind(&table.owner)
    .execute(connection)
    .await?;
    Ok(())
}

fn sorted(rows: Vec<SqliteRow>) -> Result<Vec<TableDef>, Fault> {
    let mut tables = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    tables.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tables)
}

fn read(row: &SqliteRow) -> Result<TableDef, Fault> {
    let id: &str = row.try_get(0)?;
    let name = TableName::new(row.try_get::<String, _>(1)?, row.try_get::<String, _>(2)?);
    let what = || format!("table \"{name}\"");
    Ok(TableDef {
        id: TableId::parse(id).ok_or_else(|| Fault::damaged(what(), "its id is not an identifier"))?,
        schema: decode_schema(row.try_get(3)?).map_err(|detail| Fault::damaged(what(), detail))?,
        kind: from_json(row.try_get(4)?).map_err(|error| Fault::damaged(what(), error))?,
        defaults: from_json(row.try_get(5)?).map_err(|error| Fault::damaged(what(), error))?,
        primary_keys: from_json(row.try_get(6)?).map_err(|error| Fault::damaged(what(), error))?,
        unique_keys: from_json(row.try_get(7)?).map_err(|error| Fault::damaged(what(), error))?,
        definition: row.try_get(8)?,
        created_at: row.try_get(9)?,
        owner: row.try_get(10)?,
        name,
    })
}

fn to_json(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()).into())
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text)
}
