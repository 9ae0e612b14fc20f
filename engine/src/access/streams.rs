//! [`StreamsFor`]: a statement's tables as somebody may use them. The last guard before rows are read or written.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session as DataFusionSession;
use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use nectarine_catalog::{Extent, Privilege, TableDef};
use nectarine_planner::Streams;

use super::Rights;
use crate::statement::{StatementCatalog, wrap};

pub(crate) struct StreamsFor {
    pub(crate) catalog: Arc<StatementCatalog>,
    pub(crate) rights: Rights,
}

impl fmt::Debug for StreamsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamsFor").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

#[async_trait]
impl Streams for StreamsFor {
    fn check_read(&self, table: &TableDef) -> Result<()> {
        self.rights.check(Privilege::Select, table).map_err(wrap)
    }

    async fn extents(&self, table: &TableDef) -> Result<Arc<[Arc<Extent>]>> {
        self.check_read(table)?;
        self.catalog.extents(table).await
    }

    fn scans(&self, table: &TableDef, extents: &Arc<[Arc<Extent>]>) {
        self.catalog.scans(table, extents);
    }

    async fn insert(
        &self,
        state: &dyn DataFusionSession,
        table: &Arc<TableDef>,
        input: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rights.check(Privilege::Insert, table).map_err(wrap)?;
        self.catalog.insert(state, table, input).await
    }
}
