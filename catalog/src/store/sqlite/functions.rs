//! Functions written in SQL.

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::fault::Fault;
use super::lane::Lane;
use super::tables;
use crate::{CatalogError, Function, TableDef, named};

pub(super) async fn list(lane: &mut Lane) -> Result<Vec<Function>, Fault> {
    let select = sqlx::query("SELECT name, definition, created_at FROM functions");
    let mut functions = select.try_map(read).fetch_all(lane.read()?).await?;
    functions.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(functions)
}

pub(super) async fn create(lane: &mut Lane, function: &Function, replace: bool) -> Result<(), Fault> {
    let sql = if replace {
        "INSERT INTO functions (name, definition, created_at) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO UPDATE SET definition = excluded.definition, created_at = excluded.created_at"
    } else {
        "INSERT INTO functions (name, definition, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING"
    };
    let mut change = lane.change().await?;
    let insert = sqlx::query(sql).bind(&function.name).bind(&function.definition).bind(function.created_at);
    if insert.execute(&mut *change).await?.rows_affected() == 0 {
        return Err(CatalogError::AlreadyExists { what: "function", name: function.name.clone() }.into());
    }
    Ok(change.commit().await?)
}

pub(super) async fn drop(
    lane: &mut Lane,
    name: &str,
    through: &[String],
    cascade: bool,
) -> Result<Vec<TableDef>, Fault> {
    let mut change = lane.change().await?;
    let delete = sqlx::query("DELETE FROM functions WHERE name = $1").bind(name);
    if delete.execute(&mut *change).await?.rows_affected() == 0 {
        return Err(CatalogError::NotFound { what: "function", name: name.to_owned() }.into());
    }
    let tables = tables::all(&mut change).await?;
    let callers = named::callers(&tables, name, through);
    if !cascade && !callers.is_empty() {
        return Err(named::refused_function(name, &tables, &callers).into());
    }
    let all = named::with_dependants(&tables, &callers);
    let dropped = tables::delete_all(&mut change, tables, &all).await?;
    change.commit().await?;
    Ok(dropped)
}

fn read(row: SqliteRow) -> Result<Function, sqlx::Error> {
    Ok(Function { name: row.try_get(0)?, definition: row.try_get(1)?, created_at: row.try_get(2)? })
}
