//! The catalog of one statement, as DataFusion walks through it: the list of catalogs, the one catalog, its schemas.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::TableType;
use nectarine_catalog::{TableKind, TableName};

use super::StatementCatalog;
use crate::access::Rights;
use crate::system;

impl StatementCatalog {
    /// All schemas that there are for who runs the statement, sorted.
    pub(crate) fn schema_names(&self) -> Vec<String> {
        let tables = || self.view.tables.values().cloned();
        let stored = self.view.schemas.iter().filter(|schema| self.rights.sees_schema(schema, tables()));
        let own = self.session_tables.keys().map(|table| &table.schema);
        let mut names: Vec<String> = stored.chain(own).cloned().collect();
        names.extend([system::SCHEMA.to_string(), INFORMATION_SCHEMA.to_string()]);
        names.sort();
        names.dedup();
        names
    }
}

/// The list of the one catalog, as somebody sees it.
#[derive(Debug)]
pub(super) struct Catalogs {
    pub(super) catalog: Arc<StatementCatalog>,
    pub(super) rights: Rights,
}

impl CatalogProviderList for Catalogs {
    fn register_catalog(&self, _name: String, _catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![self.catalog.catalog_name.clone()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let (catalog, rights) = (Arc::clone(&self.catalog), self.rights.clone());
        (name == self.catalog.catalog_name).then(|| Arc::new(Catalog { catalog, rights }) as _)
    }
}

/// The one catalog.
#[derive(Debug)]
struct Catalog {
    catalog: Arc<StatementCatalog>,
    rights: Rights,
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let view = &self.catalog.view;
        let tables = || view.tables.values().cloned();
        let is_seen = |schema: &&String| self.rights.sees_schema(schema, tables());
        let mut names: Vec<String> = view.schemas.iter().filter(is_seen).cloned().collect();
        names.push(system::SCHEMA.to_string());
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == system::SCHEMA {
            // A derived table reads what it was made of, and nothing that the engine knows of itself.
            if self.catalog.frozen_for.is_some() {
                return None;
            }
            return Some(Arc::new(system::SystemSchema::new(Arc::clone(&self.catalog), self.rights.clone())));
        }
        let catalog = &self.catalog;
        let is_known = catalog.view.has_schema(name) || catalog.session_tables.keys().any(|table| table.schema == name);
        let (catalog, rights) = (Arc::clone(catalog), self.rights.clone());
        is_known.then(|| Arc::new(UserSchema { catalog, rights, name: name.to_string() }) as _)
    }
}

/// One of the user's schemas.
#[derive(Debug)]
struct UserSchema {
    catalog: Arc<StatementCatalog>,
    rights: Rights,
    name: String,
}

#[async_trait]
impl SchemaProvider for UserSchema {
    fn table_names(&self) -> Vec<String> {
        let stored = self.catalog.view.tables.values().filter(|table| self.rights.sees(table));
        let stored = stored.map(|table| &table.name);
        let names = stored.chain(self.catalog.session_tables.keys()).filter(|table| table.schema == self.name);
        let mut names: Vec<String> = names.map(|table| table.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.catalog.provider(&self.name, name, &self.rights).await
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        let table = TableName::new(&self.name, name);
        if let Some(table) = self.catalog.session_tables.get(&table) {
            return Ok(Some(table.table_type()));
        }
        Ok(self.catalog.view.tables.get(&table).map(|table| match table.kind {
            TableKind::View { .. } | TableKind::MaterializedView(_) => TableType::View,
            TableKind::Managed { .. } | TableKind::External(_) | TableKind::Derived(_) => TableType::Base,
        }))
    }

    fn table_exist(&self, name: &str) -> bool {
        let table = TableName::new(&self.name, name);
        self.catalog.session_tables.contains_key(&table) || self.catalog.view.tables.contains_key(&table)
    }
}
