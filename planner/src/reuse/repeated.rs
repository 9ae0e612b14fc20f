//! [`repeated`]: groups that one statement needs several times, and so computes once.
//!
//! Stays quiet  in a recursive term, which runs many times on other rows; for groups that are read from an entry; for those that use
//!              a scalar subquery of the plan around them, which has no value where they run by themselves.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use nectarine_catalog::Fingerprint;

use super::candidate::candidate;
use super::context::Repeated;
use super::cut::Cuts;
use crate::canonical::{Exactness, Prefix, PrefixKind, PrefixNode};

/// Groups that occur more than once in what is computed, the largest ones only.
///
/// Where a limit cuts all of them short, computing each is cheaper than computing all groups once.
pub(super) fn repeated(root: &PrefixNode, chosen: &HashSet<Fingerprint>, cuts: &Cuts) -> Vec<Repeated> {
    let mut n_occurrences: HashMap<Fingerprint, usize> = HashMap::new();
    count_groups(root, chosen, &mut n_occurrences);
    let mut needed = HashSet::new();
    root.for_each(&mut |node| {
        let is_needed = |prefix: &&Prefix| cuts.of(&node.plan).is_none() || prefix.exactness != Exactness::Exact;
        needed.extend(is_group(node).filter(is_needed).map(|prefix| prefix.key));
    });
    n_occurrences.retain(|key, _| needed.contains(key));
    let mut found = vec![];
    largest_repeated(root, chosen, &n_occurrences, &mut found);
    found
}

fn is_group(node: &PrefixNode) -> Option<&Prefix> {
    candidate(node, false).filter(|prefix| prefix.kind == PrefixKind::Aggregate && node.plan.is::<AggregateExec>())
}

fn count_groups(node: &PrefixNode, chosen: &HashSet<Fingerprint>, n_occurrences: &mut HashMap<Fingerprint, usize>) {
    if node.prefix.as_ref().is_ok_and(|prefix| chosen.contains(&prefix.key)) {
        return;
    }
    if let Some(prefix) = is_group(node) {
        *n_occurrences.entry(prefix.key).or_default() += 1;
    }
    node.children.iter().for_each(|child| count_groups(child, chosen, n_occurrences));
}

fn largest_repeated(
    node: &PrefixNode,
    chosen: &HashSet<Fingerprint>,
    n_occurrences: &HashMap<Fingerprint, usize>,
    found: &mut Vec<Repeated>,
) {
    // A recursive term is no place for anything that runs once.
    let is_chosen = node.prefix.as_ref().is_ok_and(|prefix| chosen.contains(&prefix.key));
    if is_chosen || node.plan.name() == "RecursiveQueryExec" {
        return;
    }
    if let Some(prefix) = is_group(node)
        && n_occurrences.get(&prefix.key).is_some_and(|n| *n > 1)
        && stands_alone(&node.plan)
    {
        if found.iter().all(|other| other.prefix.key != prefix.key) {
            found.push(Repeated { prefix: prefix.clone(), plan: Arc::clone(&node.plan) });
        }
        return;
    }
    node.children.iter().for_each(|child| largest_repeated(child, chosen, n_occurrences, found));
}

/// Whether no expression of the plan uses a scalar subquery.
fn stands_alone(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut uses = false;
    let seen = plan.apply_expressions(&mut |expr| {
        expr.apply(|part| {
            uses |= part.is::<ScalarSubqueryExpr>();
            Ok(if uses { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    });
    seen.is_ok() && !uses && plan.children().into_iter().all(stands_alone)
}
