//! Schemas: names that hold tables.

use sqlx::sqlite::SqliteConnection;

use super::fault::Fault;
use super::lane::Lane;
use super::tables;
use crate::store::no_such_schema;
use crate::{CatalogError, TableDef, TableId, named};

pub(super) async fn list(lane: &mut Lane) -> Result<Vec<String>, Fault> {
    let mut names: Vec<String> = sqlx::query_scalar("SELECT name FROM schemas").fetch_all(lane.read()?).await?;
    // Here and elsewhere sorted by us: a database's collation need not be ours.
    names.sort();
    Ok(names)
}

pub(super) async fn create(lane: &mut Lane, name: &str) -> Result<(), Fault> {
    let mut change = lane.change().await?;
    let insert = sqlx::query("INSERT INTO schemas (name) VALUES ($1) ON CONFLICT (name) DO NOTHING").bind(name);
    if insert.execute(&mut *change).await?.rows_affected() == 0 {
        return Err(CatalogError::AlreadyExists { what: "schema", name: name.to_owned() }.into());
    }
    Ok(change.commit().await?)
}

pub(super) async fn drop(lane: &mut Lane, name: &str, cascade: bool) -> Result<Vec<TableDef>, Fault> {
    let mut change = lane.change().await?;
    require(&mut change, name).await?;
    let tables = tables::all(&mut change).await?;
    let inside: Vec<TableId> = tables.iter().filter(|table| table.name.schema == name).map(|table| table.id).collect();
    if !inside.is_empty() && !cascade {
        return Err(CatalogError::SchemaNotEmpty { name: name.to_owned(), n_tables: inside.len() }.into());
    }
    let all = named::dropped_with(&tables, &inside, cascade)?;
    let dropped = tables::delete_all(&mut change, tables, &all).await?;
    sqlx::query("DELETE FROM schemas WHERE name = $1").bind(name).execute(&mut *change).await?;
    change.commit().await?;
    Ok(dropped)
}

/// Fails unless the schema exists.
pub(super) async fn require(connection: &mut SqliteConnection, name: &str) -> Result<(), Fault> {
    let found = sqlx::query("SELECT 1 FROM schemas WHERE name = $1").bind(name).fetch_optional(connection).await?;
    found.map(std::mem::drop).ok_or_else(|| no_such_schema(name).into())
}
