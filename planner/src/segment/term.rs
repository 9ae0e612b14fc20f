//! [`term`]: a plan over other extents.
//!
//! ```text
//!   JoinExec                       JoinExec
//!     Scan a [a0 a1 a2]    -->       Scan a [a2]           the scan that the term is about
//!     UnionExec                      UnionExec
//!       Scan b [b0]                    Scan b [b0]
//!       Scan c [c0]                    Scan c [c0]
//! ```
//!
//! With a focus, the other branches of every UNION ALL on the way to it are empty: what a branch adds is added once.
//! All nodes are new; see `fresh`.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::union::UnionExec;
use nectarine_catalog::Extent;

use super::fresh::fresh;
use crate::node::ExtentScanExec;

/// Extents for each scan of a plan, from the left.
pub(crate) type Lists = Vec<Arc<[Arc<Extent>]>>;

/// `plan` over `lists`; `None` if it holds a node that cannot be made anew, or other scans than `lists` has.
pub(crate) fn term(
    plan: &Arc<dyn ExecutionPlan>,
    lists: &Lists,
    focus: Option<usize>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut next = 0;
    let made = visit(plan, lists, focus, &mut next)?;
    Ok(made.filter(|_| next == lists.len()))
}

fn visit(
    plan: &Arc<dyn ExecutionPlan>,
    lists: &Lists,
    focus: Option<usize>,
    next: &mut usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<ExtentScanExec>() {
        let list = lists.get(*next);
        *next += 1;
        let Some(list) = list else { return Ok(None) };
        return Ok(Some(Arc::new(scan.with_extents(Arc::clone(list)))));
    }
    let first = *next;
    let mut children = vec![];
    let mut holds_focus = vec![];
    for child in plan.children() {
        let before = *next;
        let Some(copy) = visit(child, lists, focus, next)? else { return Ok(None) };
        holds_focus.push(focus.is_some_and(|focus| (before..*next).contains(&focus)));
        children.push(copy);
    }
    let is_on_the_way = focus.is_some_and(|focus| (first..*next).contains(&focus));
    if plan.is::<UnionExec>() && is_on_the_way {
        for (child, holds) in children.iter_mut().zip(holds_focus) {
            if !holds {
                *child = Arc::new(EmptyExec::new(child.schema()));
            }
        }
    }
    fresh(plan, children)
}
