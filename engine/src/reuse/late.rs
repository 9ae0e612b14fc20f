//! Marks that read entries become operators.
//!
//! After all rules, because only then is known which entries a plan reads; before the plan runs, because an entry that is
//! missing or damaged must be found while the statement can still be planned without it.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use nectarine_catalog::{CacheEntry, Fingerprint};
use nectarine_executor::{CacheReadOperator, EntryFault};
use nectarine_planner::node::CacheReadExec;

use super::Reuse;
use crate::Result;

/// Why a plan can not run as it is.
pub(super) struct Unusable {
    /// The entry that is missing, damaged or out of reach.
    pub(super) key: Fingerprint,
    /// Whether it is gone for good, and not only its store unwell.
    pub(super) is_lost: bool,
    /// Whether there is no such entry any more: somebody evicted it since the plan was made, which is no fault.
    pub(super) is_evicted: bool,
    /// For the log.
    pub(super) reason: String,
}

impl Unusable {
    fn evicted(key: Fingerprint) -> Self {
        Self { key, is_lost: true, is_evicted: true, reason: "it was evicted".to_string() }
    }
}

/// The plan with its entries loaded, or the entry that is not there.
pub(super) async fn lower_reads(
    plan: Arc<dyn ExecutionPlan>,
    reuse: &Reuse,
    runtime: &RuntimeEnv,
    n_partitions: usize,
) -> Result<Result<Arc<dyn ExecutionPlan>, Unusable>> {
    let mut marks: HashMap<Fingerprint, Option<Arc<CacheEntry>>> = HashMap::new();
    plan.apply(|node| {
        if let Some(mark) = node.downcast_ref::<CacheReadExec>() {
            marks.insert(mark.key(), None);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if marks.is_empty() {
        return Ok(Ok(plan));
    }
    // Until all is loaded: afterwards the statement has its own.
    let _lease = reuse.readers.lease(marks.keys().copied());
    for (key, entry) in &mut marks {
        match reuse.cache.entry(key).await {
            Ok(Some(found)) => *entry = Some(Arc::new(found)),
            Ok(None) => return Ok(Err(Unusable::evicted(*key))),
            Err(error) => {
                let reason = error.to_string();
                return Ok(Err(Unusable { key: *key, is_lost: true, is_evicted: false, reason }));
            }
        }
    }
    let mut operators = vec![];
    let plan = plan
        .transform_up(|node| {
            let Some(mark) = node.downcast_ref::<CacheReadExec>() else { return Ok(Transformed::no(node)) };
            let Some(Some(entry)) = marks.get(&mark.key()) else { return Ok(Transformed::no(node)) };
            let operator =
                CacheReadOperator::new(Arc::clone(entry), reuse.store.clone(), mark.schema(), None, n_partitions);
            operators.push(operator.clone());
            Ok(Transformed::yes(as_wide_as(node.output_partitioning().partition_count(), operator)))
        })
        .data()?;
    for operator in operators {
        if let Err(fault) = operator.prepare(runtime).await {
            let (key, is_lost, reason) = (fault.key, fault.error.is_lost(), reason_of(&fault));
            // Files go after the record: it may be that another process evicted it.
            let is_evicted = is_lost && matches!(reuse.cache.entry(&key).await, Ok(None));
            return Ok(Err(match is_evicted {
                true => Unusable::evicted(key),
                false => Unusable { key, is_lost, is_evicted, reason },
            }));
        }
    }
    Ok(Ok(plan))
}

/// The operator with as many partitions as its mark had. What stands above was planned for those: an aggregate of all rows, which
/// asks for one partition, would give an answer for each of several.
fn as_wide_as(n_planned: usize, operator: CacheReadOperator) -> Arc<dyn ExecutionPlan> {
    let n_partitions = operator.properties().partitioning.partition_count();
    let operator: Arc<dyn ExecutionPlan> = Arc::new(operator);
    match n_partitions > n_planned {
        // They are read side by side all the same.
        true => Arc::new(CoalescePartitionsExec::new(operator)),
        false => operator,
    }
}

/// What is wrong with the entry, and why.
fn reason_of(fault: &EntryFault) -> String {
    let mut reason = fault.error.to_string();
    let mut cause = std::error::Error::source(&fault.error);
    while let Some(error) = cause {
        reason.push_str(&format!(": {error}"));
        cause = error.source();
    }
    reason
}
