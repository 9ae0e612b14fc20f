//! [`BrokenView`]: a view whose query cannot be planned any more, because what it stands on is gone.
//!
//! Keeps its columns as they were, so that listings go on; reading it gives the reason.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

/// A view that cannot be read.
#[derive(Debug)]
pub(crate) struct BrokenView {
    schema: SchemaRef,
    definition: Option<String>,
    reason: Arc<DataFusionError>,
}

impl BrokenView {
    pub(crate) fn new(schema: SchemaRef, definition: Option<String>, reason: DataFusionError) -> Self {
        Self { schema, definition, reason: Arc::new(reason) }
    }

    /// Why it cannot be read.
    pub(crate) fn reason(&self) -> DataFusionError {
        DataFusionError::Shared(Arc::clone(&self.reason))
    }
}

#[async_trait]
impl TableProvider for BrokenView {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.definition.as_deref()
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Err(self.reason())
    }
}
