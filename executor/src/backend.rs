//! [`Backend`]: where a plan runs. [`either`]: on one, and if that gives up, on another.
//!
//! Keeps true   rows come from one of them: one that gives up has given out none.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{StreamExt, TryStreamExt, stream};

use crate::cluster::{GaveUp, Stays};

/// Computes the rows of plans.
#[async_trait]
pub trait Backend: Send + Sync {
    /// For people.
    fn name(&self) -> &'static str;

    /// Fails with the reason unless it runs such a plan.
    fn takes(&self, plan: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<(), Stays>;

    /// The rows of a plan. [`GaveUp`] means that another backend may do better.
    async fn run(&self, plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream>;
}

/// This process.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalBackend;

#[async_trait]
impl Backend for LocalBackend {
    fn name(&self) -> &'static str {
        "local"
    }

    fn takes(&self, _plan: &Arc<dyn ExecutionPlan>, _context: &TaskContext) -> Result<(), Stays> {
        Ok(())
    }

    async fn run(&self, plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        execute_stream(plan, context)
    }
}

/// A plan as it was made for a backend.
pub struct Placed {
    /// Where.
    pub backend: Arc<dyn Backend>,
    /// What.
    pub plan: Arc<dyn ExecutionPlan>,
}

/// The rows of the first; of the second, if the first gives up, which `gave_up` is told. Both plans have the same columns and mean the same
/// rows. Nothing runs before the first row is asked for.
pub fn either(
    first: Placed,
    second: Placed,
    context: Arc<TaskContext>,
    gave_up: impl FnOnce(&GaveUp) + Send + 'static,
) -> SendableRecordBatchStream {
    let schema = second.plan.schema();
    let rows = async move {
        match first.backend.run(first.plan, Arc::clone(&context)).await {
            Ok(rows) => Ok(rows),
            Err(DataFusionError::External(error)) if error.is::<GaveUp>() => {
                if let Some(why) = error.downcast_ref() {
                    gave_up(why);
                }
                second.backend.run(second.plan, context).await
            }
            Err(error) => Err(error),
        }
    };
    let rows = stream::once(rows).try_flatten().boxed();
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}
