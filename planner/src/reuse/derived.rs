//! Programs that are kept by name, inside of a plan: materialized views and derived tables.
//!
//! ```text
//!   before                                 after
//!   FilterExec: day > ..                   FilterExec: day > ..
//!     NamedExec: view=daily                  AddEntryExec                what has a name is kept
//!       AggregateExec: Final                   AggregateExec: Final
//!   DerivedTableExec: table=first_week     CacheReadExec                 or its program, kept as well
//! ```
//!
//! A materialized view is part of the plan that reads it, and its program a prefix like others. A derived table is a constant to
//! that plan: its program was made with other settings, so it is looked for with a salt of its own, by itself.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use nectarine_catalog::{Fingerprint, TableName};

use super::rule::{Origin, rewrite};
use super::{Findings, NamedPrefix, ReuseContext};
use crate::canonical::{Exactness, PrefixKind, PrefixNode, Salt};
use crate::node::{DerivedTableExec, ExtentScanExec, NamedExec};

/// A plan without marks, that computes everything.
pub(super) fn plain(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        if let Some(named) = node.downcast_ref::<NamedExec>() {
            return Ok(Transformed::yes(Arc::clone(named.input())));
        }
        let Some(derived) = node.downcast_ref::<DerivedTableExec>() else { return Ok(Transformed::no(node)) };
        let program = plain(Arc::clone(derived.program()))?;
        with_config(program, derived.config()).map(Transformed::yes)
    })
    .data()
}

/// Nodes that were marked, by their addresses. One may have several names: a view of all rows of another.
pub(super) type Names = Vec<(usize, TableName)>;

/// The plan without the marks of names, and what was marked.
pub(super) fn without_names(plan: Arc<dyn ExecutionPlan>) -> Result<(Arc<dyn ExecutionPlan>, Names)> {
    let mut names = vec![];
    // From below: what was marked stays the node that it is.
    let plan = plan.transform_up(|node| match node.downcast_ref::<NamedExec>() {
        Some(named) => {
            names.push((address(named.input()), named.view().clone()));
            Ok(Transformed::yes(Arc::clone(named.input())))
        }
        None => Ok(Transformed::no(node)),
    });
    Ok((plan.data()?, names))
}

/// What tells one node of a plan from another.
pub(super) fn address(plan: &Arc<dyn ExecutionPlan>) -> usize {
    Arc::as_ptr(plan).cast::<()>() as usize
}

/// Marks the prefixes that have a name, and says which they are; and what is called how.
pub(super) fn mark_named(root: &mut PrefixNode, names: &Names) -> (HashSet<Fingerprint>, Vec<NamedPrefix>) {
    let (mut marked, mut named) = (HashSet::new(), vec![]);
    if !names.is_empty() {
        visit(root, names, &mut marked, &mut named);
    }
    (marked, named)
}

fn visit(node: &mut PrefixNode, names: &Names, marked: &mut HashSet<Fingerprint>, named: &mut Vec<NamedPrefix>) {
    let own = address(&node.plan);
    for (_, name) in names.iter().filter(|(address, _)| *address == own) {
        if let Ok(prefix) = &node.prefix {
            named.push(NamedPrefix { name: name.clone(), program: prefix.program, key: prefix.key });
        }
        mark(node, marked);
    }
    node.children.iter_mut().for_each(|child| visit(child, names, marked, named));
}

/// Nothing with an order is read in the middle of a plan: what is kept of a sorted view there is what it sorts.
fn mark(node: &mut PrefixNode, marked: &mut HashSet<Fingerprint>) {
    let Ok(prefix) = &node.prefix else { return };
    let is_sorted = prefix.ordered || matches!(prefix.kind, PrefixKind::Sort | PrefixKind::Limit);
    match (is_sorted, node.children.as_mut_slice()) {
        (true, [child]) => mark(child, marked),
        (true, _) => {}
        (false, _) => {
            marked.insert(prefix.key);
            node.named = true;
        }
    }
}

/// The program of a derived table that is not only another derived table, with its settings.
pub(super) fn innermost(derived: &DerivedTableExec) -> (Arc<dyn ExecutionPlan>, &Arc<ConfigOptions>) {
    match derived.program().downcast_ref::<DerivedTableExec>() {
        Some(below) => innermost(below),
        None => (Arc::clone(derived.program()), derived.config()),
    }
}

/// Files are read with the settings that the program was made with.
pub(super) fn with_config(plan: Arc<dyn ExecutionPlan>, config: &Arc<ConfigOptions>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| match node.downcast_ref::<ExtentScanExec>().filter(|scan| scan.config().is_none()) {
        Some(scan) => Ok(Transformed::yes(Arc::new(scan.with_config(Arc::clone(config))) as Arc<dyn ExecutionPlan>)),
        None => Ok(Transformed::no(node)),
    })
    .data()
}

/// Puts what was found or is computed of derived tables in their place.
pub(super) fn lower_derived(
    plan: Arc<dyn ExecutionPlan>,
    context: &ReuseContext,
    findings: &mut Findings,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let Some(derived) = node.downcast_ref::<DerivedTableExec>() else { return Ok(Transformed::no(node)) };
        let (program, config) = innermost(derived);
        let (program, inner) = rewrite(program, config, &Salt::new(config), context, Origin::Derived(Some(findings)))?;
        let program = with_config(program, config)?;
        merge(findings, inner, &node);
        lower_derived(program, context, findings).map(Transformed::yes)
    })
    .data()
}

/// What was found inside of a derived table is told below it.
fn merge(findings: &mut Findings, inner: Findings, leaf: &Arc<dyn ExecutionPlan>) {
    findings.kept = inner.kept;
    findings.hits.extend(inner.hits);
    findings.sees_more |= inner.sees_more;
    let place = findings.report.iter().position(|line| Arc::ptr_eq(&line.plan, leaf));
    let (at, depth) = place.map_or((findings.report.len(), 0), |at| (at + 1, findings.report[at].depth + 1));
    let mut lines = inner.report;
    lines.iter_mut().for_each(|line| line.depth += depth);
    findings.report.splice(at..at, lines);
}

/// What keeps a program from giving the same rows each time, in words; `None` if nothing does.
pub fn luck(root: &PrefixNode) -> Option<String> {
    match &root.prefix {
        Err(reason) => Some(root.children.iter().find_map(luck).unwrap_or_else(|| reason.to_string())),
        Ok(prefix) if prefix.exactness == Exactness::Exact => None,
        Ok(prefix) => Some(root.children.iter().find_map(luck).unwrap_or_else(|| {
            let what = match prefix.kind {
                PrefixKind::Limit => "which rows a LIMIT leaves is a matter of luck".to_string(),
                PrefixKind::Sort => {
                    "which of several equal rows an ORDER BY with a LIMIT leaves is a matter of luck".to_string()
                }
                PrefixKind::Window => "window functions depend on the order of equal rows".to_string(),
                _ if prefix.exactness == Exactness::Floats => {
                    "floats that are added up in another order differ".to_string()
                }
                _ => "an aggregate depends on the order of rows".to_string(),
            };
            format!("{what} ({})", shown(&root.plan))
        })),
    }
}

fn shown(plan: &Arc<dyn ExecutionPlan>) -> String {
    datafusion::physical_plan::displayable(plan.as_ref()).one_line().to_string().trim().to_string()
}
