//! The catalog of one statement, as DataFusion walks through it: the list of catalogs, the one catalog, its schemas.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::TableType;
use nectarine_catalog::{TableKind, TableName};

use super::StatementCatalog;
use crate::system;

/// The list of the one catalog.
#[derive(Debug)]
pub(super) struct Catalogs(pub(super) Arc<StatementCatalog>);

impl CatalogProviderList for Catalogs {
    fn register_catalog(&self, _name: String, _catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![self.0.catalog_name.clone()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == self.0.catalog_name).then(|| Arc::new(Catalog(Arc::clone(&self.0))) as _)
    }
}

/// The one catalog.
#[derive(Debug)]
struct Catalog(Arc<StatementCatalog>);

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let mut names = self.0.view.schemas.clone();
        names.push(system::SCHEMA.to_string());
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == system::SCHEMA {
            return Some(Arc::new(system::SystemSchema::new(Arc::clone(&self.0))));
        }
        let is_known = self.0.view.has_schema(name) || self.0.session_tables.keys().any(|table| table.schema == name);
        is_known.then(|| Arc::new(UserSchema { catalog: Arc::clone(&self.0), name: name.to_string() }) as _)
    }
}

/// One of the user's schemas.
#[derive(Debug)]
struct UserSchema {
    catalog: Arc<StatementCatalog>,
    name: String,
}

#[async_trait]
impl SchemaProvider for UserSchema {
    fn table_names(&self) -> Vec<String> {
        let stored = self.catalog.view.tables.keys();
        let names = stored.chain(self.catalog.session_tables.keys()).filter(|table| table.schema == self.name);
        let mut names: Vec<String> = names.map(|table| table.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.catalog.provider(&self.name, name).await
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
