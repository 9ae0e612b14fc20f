//! EXPLAIN STAGES: the stages that a query would run as on the executors that are there, or why it stays in this process.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use futures::future::BoxFuture;
use nectarine_executor::{StageShape, Stays, stage_shapes};

use super::travelling;
use crate::Result;
use crate::statement::StatementCatalog;

/// A row for each line of each stage.
pub(crate) fn explain_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("stage", DataType::Int64, true),
        Field::new("reads_stages", DataType::Utf8, true),
        Field::new("tasks", DataType::Int64, true),
        Field::new("plan", DataType::Utf8, true),
    ]))
}

/// What a query would run as; `n_hits` cached results would be part of it. Boxed, as all that statements may come to.
pub(crate) fn explain_stages<'a>(
    logical: &'a LogicalPlan,
    n_hits: usize,
    state: &'a SessionState,
    catalog: &'a Arc<StatementCatalog>,
) -> BoxFuture<'a, Result<RecordBatch>> {
    Box::pin(explained(logical, n_hits, state, catalog))
}

async fn explained(
    logical: &LogicalPlan,
    n_hits: usize,
    state: &SessionState,
    catalog: &Arc<StatementCatalog>,
) -> Result<RecordBatch> {
    let stages = match n_hits {
        0 => stages(logical, state, catalog).await?,
        _ => Err(Stays("it reads cached results".to_owned())),
    };
    let (mut ids, mut reads, mut tasks, mut lines) = (vec![], vec![], vec![], vec![]);
    match stages {
        Ok(stages) => {
            for stage in stages {
                for (position, line) in stage.plan.lines().enumerate() {
                    let is_first = position == 0;
                    ids.push(is_first.then_some(stage.id as i64));
                    reads.push(is_first.then(|| crate::system::list(&stage.reads)));
                    tasks.push(is_first.then_some(stage.partitions as i64));
                    lines.push(line.to_owned());
                }
            }
        }
        Err(Stays(reason)) => {
            ids.push(None);
            reads.push(None);
            tasks.push(None);
            lines.push(format!("stays in this process: {reason}"));
        }
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(ids)),
        Arc::new(StringArray::from(reads)),
        Arc::new(Int64Array::from(tasks)),
        Arc::new(StringArray::from(lines)),
    ];
    Ok(RecordBatch::try_new(explain_schema(), columns).map_err(DataFusionError::from)?)
}

async fn stages(
    logical: &LogicalPlan,
    state: &SessionState,
    catalog: &Arc<StatementCatalog>,
) -> Result<Result<Vec<StageShape>, Stays>> {
    let local = Box::pin(state.create_physical_plan(logical)).await?;
    let (cluster, plan) = match travelling(logical, &local, 0, state, catalog).await {
        Ok(found) => found,
        Err(stays) => return Ok(Err(stays)),
    };
    Ok(stage_shapes(&plan, state.config_options(), cluster.cores().await).map_err(Stays))
}
