//! What a plan reads, looked at before anything is planned further: also where no scan would look, because the plan is only kept, or has
//! run already.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result as DataFusionResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{LogicalPlan, TableScan};
use nectarine_planner::StreamTable;

use super::Rights;
use crate::Result;
use crate::broken_view::BrokenView;
use crate::named::NamedTable;
use crate::statement::wrap;

/// Fails if a plan reads what may not be read, or writes files. Scans look again when they are planned; plans that are only kept have
/// none. Tables of a view look at the rights of who made it.
pub(crate) fn check_plan(rights: &Rights, plan: &LogicalPlan) -> Result<()> {
    if rights.is_admin() {
        return Ok(());
    }
    plan.apply_with_subqueries(|node| {
        if matches!(node, LogicalPlan::Copy(_)) {
            rights.check_admin("write files of the server").map_err(wrap)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    each_table(plan, &mut |_, provider| match provider.downcast_ref::<StreamTable>() {
        Some(stream) => stream.check_read(),
        None => Ok(()),
    })?;
    Ok(())
}

/// The same for a plan whose rows are there already: fails also for whoever may do everything if they could not be asked for again.
pub(crate) fn check_again(rights: &Rights, plan: &LogicalPlan) -> Result<()> {
    check_plan(rights, plan)?;
    each_table(plan, &mut |_, provider| match provider.downcast_ref::<BrokenView>() {
        Some(broken) => Err(broken.reason()),
        None => Ok(()),
    })?;
    Ok(())
}

/// Is shown each table of a plan, and says whether it may be read.
type Look<'a> = dyn FnMut(&TableScan, &Arc<dyn TableProvider>) -> DataFusionResult<()> + 'a;

/// Shows each table that a plan reads, and those below the names that it reads.
pub(crate) fn each_table(plan: &LogicalPlan, look: &mut Look<'_>) -> DataFusionResult<()> {
    below(plan, look, &mut HashSet::new())
}

/// `seen` has the named tables whose queries were looked at: a name that is read twice, by others that are, would be looked at over and
/// over again.
fn below(plan: &LogicalPlan, look: &mut Look<'_>, seen: &mut HashSet<usize>) -> DataFusionResult<()> {
    plan.apply_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
        if let Some(inner) = scan.source.get_logical_plan() {
            below(&inner, look, seen)?;
            return Ok(TreeNodeRecursion::Continue);
        }
        let Ok(provider) = source_as_provider(&scan.source) else { return Ok(TreeNodeRecursion::Continue) };
        look(scan, &provider)?;
        if let Some(named) = provider.downcast_ref::<NamedTable>()
            && seen.insert(Arc::as_ptr(&provider).cast::<()>().addr())
        {
            below(named.query(), look, seen)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}
