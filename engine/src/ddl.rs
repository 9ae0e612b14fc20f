//! Statements that change what exists.

mod absolute;
mod derived;
mod drop;
mod function;
mod rename;
mod schema;
mod table;
mod view;

pub(crate) use derived::{create_derived, pin_derived};
pub(crate) use drop::{check_kind, drop};
pub(crate) use function::{create_function, drop_function};
pub(crate) use rename::{rename, set_schema};
pub(crate) use schema::{create_schema, drop_schema};
pub(crate) use table::{create_external_table, create_table, defaults_of};
pub(crate) use view::{create_view, materialized_view, refresh, rows_of};

use datafusion::common::TableReference;
use datafusion::config::ConfigOptions;
use sqlparser::ast::{Ident, ObjectName};

use crate::{EngineError, ErrorKind, Result, system};

/// A name as DataFusion resolves it: unquoted words in lower case.
pub(crate) fn reference(name: &ObjectName, config: &ConfigOptions) -> Result<TableReference> {
    let mut parts = vec![];
    for part in &name.0 {
        let Some(ident) = part.as_ident() else {
            return Err(EngineError::new(ErrorKind::Sql, format!("\"{name}\" is not a name")));
        };
        parts.push(normal(ident, config));
    }
    match parts.as_slice() {
        [table] => Ok(TableReference::bare(table.clone())),
        [schema, table] => Ok(TableReference::partial(schema.clone(), table.clone())),
        [catalog, schema, table] => Ok(TableReference::full(catalog.clone(), schema.clone(), table.clone())),
        _ => Err(EngineError::new(ErrorKind::Sql, format!("\"{name}\" has too many parts for a name"))),
    }
}

/// An identifier as it is compared.
pub(crate) fn normal(ident: &Ident, config: &ConfigOptions) -> String {
    match ident.quote_style.is_some() || !config.sql_parser.enable_ident_normalization {
        true => ident.value.clone(),
        false => ident.value.to_ascii_lowercase(),
    }
}

/// Refuses names in schemas that are not the user's.
pub(crate) fn check_schema(schema: &str) -> Result<()> {
    match schema == system::SCHEMA || schema == "information_schema" {
        true => Err(EngineError::new(ErrorKind::Sql, format!("schema \"{schema}\" is not for users to change"))),
        false => Ok(()),
    }
}
