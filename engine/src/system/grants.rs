//! `system.grants`: who may do what with which table or schema, owners included. Administrators see all rights, others their own, those of
//! roles that they are in, and all on what they own.

use std::sync::Arc;

use arrow::array::StringArray;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_catalog::{Grant, Securable, TableDef};

use super::{table_of, text};
use crate::access::Rights;
use crate::statement::StatementCatalog;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("grantee"),
        text("privilege"),
        text("object_kind"),
        text("object_schema"),
        text("object_name"),
        text("owner"),
    ])
}

struct Line<'a> {
    grantee: &'a str,
    privilege: &'static str,
    kind: &'static str,
    schema: &'a str,
    name: Option<&'a str>,
    owner: Option<&'a str>,
}

pub(super) fn rows(catalog: &StatementCatalog, rights: &Rights) -> Result<RecordBatch> {
    let access = rights.access();
    let tables = &catalog.view.tables;
    let find = |on: &Securable| match on {
        Securable::Table(id) => tables.values().find(|table| table.id == *id),
        Securable::Schema(_) => None,
    };
    let mut lines = vec![];
    for table in tables.values() {
        if let Some(owner) = &table.owner {
            lines.push((line_of(owner, "OWNER", table), rights.check_owns(table).is_ok()));
        }
    }
    for (schema, owner) in &access.schema_owners {
        let line = Line { grantee: owner, privilege: "OWNER", kind: "schema", schema, name: None, owner: Some(owner) };
        lines.push((line, rights.check_owns_schema(schema).is_ok()));
    }
    for Grant { grantee, privilege, on } in &access.grants {
        match (on, find(on)) {
            (Securable::Table(_), Some(table)) => {
                lines.push((line_of(grantee, privilege.word(), table), rights.check_owns(table).is_ok()));
            }
            (Securable::Schema(schema), _) => {
                let owner = access.schema_owners.get(schema).map(String::as_str);
                let line = Line { grantee, privilege: privilege.word(), kind: "schema", schema, name: None, owner };
                lines.push((line, rights.check_owns_schema(schema).is_ok()));
            }
            // Dropped since.
            (Securable::Table(_), None) => {}
        }
    }
    let own = rights.user().map(|user| access.roles_of(user)).unwrap_or_default();
    lines.retain(|(line, is_owner)| rights.is_admin() || *is_owner || own.contains(line.grantee));
    let mut lines: Vec<Line<'_>> = lines.into_iter().map(|(line, _)| line).collect();
    lines.sort_by_key(|line| (line.schema, line.name, line.grantee, line.privilege));
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(lines.iter().map(|line| line.grantee))),
            Arc::new(StringArray::from_iter_values(lines.iter().map(|line| line.privilege))),
            Arc::new(StringArray::from_iter_values(lines.iter().map(|line| line.kind))),
            Arc::new(StringArray::from_iter_values(lines.iter().map(|line| line.schema))),
            Arc::new(lines.iter().map(|line| line.name).collect::<StringArray>()),
            Arc::new(lines.iter().map(|line| line.owner).collect::<StringArray>()),
        ],
    )?)
}

fn line_of<'a>(grantee: &'a str, privilege: &'static str, table: &'a TableDef) -> Line<'a> {
    let (schema, name) = (&table.name.schema, Some(table.name.name.as_str()));
    Line { grantee, privilege, kind: table.kind.word(), schema, name, owner: table.owner.as_deref() }
}
