//! [`Relation`]: tables and views as drivers list them, with their columns.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::logical_expr::TableType;
use nectarine_catalog::{TableKind, TableName};

use crate::session::Session;
use crate::{Result, system};

/// A table or view.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub(crate) schema_name: String,
    pub(crate) name: String,
    pub(crate) kind: RelationKind,
    pub(crate) columns: SchemaRef,
}

/// What it is, in the words of JDBC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RelationKind {
    Table,
    View,
    SystemTable,
}

impl RelationKind {
    pub(crate) const ALL: [Self; 3] = [Self::Table, Self::View, Self::SystemTable];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Table => "TABLE",
            Self::View => "VIEW",
            Self::SystemTable => "SYSTEM TABLE",
        }
    }
}

impl Session {
    /// The one catalog, as it is called.
    pub(crate) fn catalog_name(&self) -> String {
        self.inner.state.read().config_options().catalog.default_catalog.clone()
    }

    /// The schema of names without one.
    pub(crate) fn schema_name(&self) -> String {
        self.inner.state.read().config_options().catalog.default_schema.clone()
    }

    /// All schemas, sorted.
    pub(crate) async fn schema_names(&self) -> Result<Vec<String>> {
        let view = self.inner.shared.catalog.view().await?;
        let rights = self.rights().await?;
        let is_seen = |schema: &&String| rights.sees_schema(schema, view.tables.values().cloned());
        let mut names: Vec<String> = view.schemas.iter().filter(is_seen).cloned().collect();
        names.push(system::SCHEMA.to_string());
        names.push("information_schema".to_string());
        names.sort();
        Ok(names)
    }

    /// Whether there is a table or view of that name.
    pub(crate) async fn has_relation(&self, name: &TableName) -> Result<bool> {
        Ok(self.inner.shared.catalog.view().await?.tables.contains_key(name))
    }

    /// Settings that this session changed, with their values.
    pub(crate) fn changed_settings(&self) -> Vec<(String, String)> {
        let changed = self.inner.changed.lock().clone();
        let entries = self.inner.state.read().config_options().entries();
        let value = |name: &String| entries.iter().find(|entry| entry.key == *name)?.value.clone();
        changed.iter().filter_map(|name| Some((name.clone(), value(name)?))).collect()
    }

    /// All tables and views, sorted by schema and name.
    pub(crate) async fn relations(&self) -> Result<Vec<Relation>> {
        let view = self.inner.shared.catalog.view().await?;
        let rights = self.rights().await?;
        let mut relations: Vec<Relation> = view
            .tables
            .values()
            .filter(|table| rights.sees(table))
            .map(|table| Relation {
                schema_name: table.name.schema.clone(),
                name: table.name.name.clone(),
                kind: match table.kind {
                    TableKind::View { .. } | TableKind::MaterializedView(_) => RelationKind::View,
                    TableKind::Managed { .. } | TableKind::External(_) | TableKind::Derived(_) => RelationKind::Table,
                },
                columns: Arc::clone(&table.schema),
            })
            .collect();
        for (name, table) in self.inner.tables.read().iter() {
            relations.push(Relation {
                schema_name: name.schema.clone(),
                name: name.name.clone(),
                kind: if table.table_type() == TableType::View { RelationKind::View } else { RelationKind::Table },
                columns: table.schema(),
            });
        }
        let system = system::columns().filter(|(name, _)| system::is_for(name, &rights));
        relations.extend(system.map(|(name, columns)| Relation {
            schema_name: system::SCHEMA.to_string(),
            name: name.to_string(),
            kind: RelationKind::SystemTable,
            columns,
        }));
        relations.sort_by(|one, other| (&one.schema_name, &one.name).cmp(&(&other.schema_name, &other.name)));
        Ok(relations)
    }
}
