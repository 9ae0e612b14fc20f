//! [`OpenerMorselizer`]: an opener of files for those who ask for morsels. One file is one morsel.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileOpener;
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::stream::BoxStream;

/// Morsels of an opener.
pub(crate) struct OpenerMorselizer {
    opener: Arc<dyn FileOpener>,
}

impl OpenerMorselizer {
    pub(crate) fn new(opener: Arc<dyn FileOpener>) -> Self {
        Self { opener }
    }
}

impl fmt::Debug for OpenerMorselizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenerMorselizer").finish_non_exhaustive()
    }
}

impl Morselizer for OpenerMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        Ok(Box::new(Unopened { opener: Arc::clone(&self.opener), file }))
    }
}

struct Unopened {
    opener: Arc<dyn FileOpener>,
    file: PartitionedFile,
}

impl fmt::Debug for Unopened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unopened").field("file", &self.file.object_meta.location).finish_non_exhaustive()
    }
}

impl MorselPlanner for Unopened {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { opener, file } = *self;
        let mut plan = MorselPlan::new();
        plan.set_pending_planner(async move {
            let rows = opener.open(file)?.await?;
            Ok(Box::new(Opened { rows }) as Box<dyn MorselPlanner>)
        });
        Ok(Some(plan))
    }
}

struct Opened {
    rows: BoxStream<'static, Result<RecordBatch>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").finish_non_exhaustive()
    }
}

impl MorselPlanner for Opened {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(Some(MorselPlan::new().with_morsels(vec![self])))
    }
}

impl Morsel for Opened {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        self.rows
    }
}
