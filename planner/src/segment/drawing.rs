//! [`draw`]: a segment hit for people: which extents come from which entry, which are computed.
//!
//! ```text
//!   extents 1-364 of clicks           entry 8d2f31..: 12 rows, 1.1 KB, computed in 12.8 s
//!   extent 365 of clicks (part-365.parquet)   computed
//! ```
//!
//! Positions are those of today's snapshot, counted from 1. Scans of which a part has all extents are not told.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use nectarine_catalog::{Extent, Fingerprint};

use super::choice::SegmentPlan;
use super::term::Lists;
use crate::node::{ExtentScanExec, short, size, time};

/// Runs of positions that are told one by one; more are counted.
const RUNS_MAX: usize = 4;

/// One part of a segment hit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentLine {
    /// The extents.
    pub extents: String,
    /// The entry, or that they are computed.
    pub source: String,
}

/// One line for each entry that is read, and one for each plan that is computed beside them.
pub(crate) fn draw(below: &Arc<dyn ExecutionPlan>, today: &Lists, plan: &SegmentPlan) -> Result<Vec<SegmentLine>> {
    let mut tables = vec![];
    below.apply(|node| {
        if let Some(scan) = node.downcast_ref::<ExtentScanExec>() {
            tables.push(scan.table().name.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let scans: Vec<Scan<'_>> = today.iter().zip(&tables).map(|(today, table)| Scan::new(table, today)).collect();
    let mut lines = vec![];
    for segment in &plan.reads {
        let lists = segment.inputs.iter().map(|list| list.to_vec());
        let (rows, bytes, cost) = (segment.found.rows, size(segment.found.bytes), time(segment.found.cost_us));
        lines.push(SegmentLine {
            extents: told(&scans, lists),
            source: format!("entry {}: {rows} rows, {bytes}, computed in {cost}", short(&segment.key)),
        });
    }
    for term in &plan.terms {
        let lists = term.lists.iter().map(|list| list.iter().map(|extent| extent.fingerprint).collect());
        lines.push(SegmentLine { extents: told(&scans, lists), source: "computed".to_string() });
    }
    Ok(lines)
}

/// The extents of one scan today.
struct Scan<'a> {
    table: &'a str,
    today: &'a [Arc<Extent>],
    positions: HashMap<Fingerprint, usize>,
}

impl<'a> Scan<'a> {
    fn new(table: &'a str, today: &'a [Arc<Extent>]) -> Self {
        let positions = today.iter().enumerate().map(|(position, extent)| (extent.fingerprint, position)).collect();
        Self { table, today, positions }
    }

    /// Some of the extents, by their positions.
    fn told(&self, list: &[Fingerprint]) -> String {
        let mut positions: Vec<usize> = list.iter().filter_map(|extent| self.positions.get(extent).copied()).collect();
        positions.sort_unstable();
        let runs = runs(&positions);
        match (positions.as_slice(), runs.len()) {
            ([], _) => format!("no extents of {}", self.table),
            ([position], _) => {
                let location = &self.today[*position].location;
                let file = location.rsplit('/').next().unwrap_or(location);
                format!("extent {} of {} ({file})", position + 1, self.table)
            }
            (_, ..=RUNS_MAX) => format!("extents {} of {}", runs.join(", "), self.table),
            _ => format!("{} extents of {}, {} and on", positions.len(), self.table, runs[0]),
        }
    }
}

/// Neighbours together.
fn runs(positions: &[usize]) -> Vec<String> {
    positions
        .chunk_by(|one, next| one + 1 == *next)
        .map(|run| match run {
            [one] => format!("{}", one + 1),
            _ => format!("{}-{}", run[0] + 1, run[run.len() - 1] + 1),
        })
        .collect()
}

fn told(scans: &[Scan<'_>], lists: impl Iterator<Item = Vec<Fingerprint>>) -> String {
    let partial = scans.iter().zip(lists).filter(|(scan, list)| scan.today.len() != list.len());
    let told: Vec<String> = partial.map(|(scan, list)| scan.told(&list)).collect();
    match told.is_empty() {
        true => "all extents".to_string(),
        false => told.join(" x "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_told_together() {
        assert_eq!(runs(&[]), Vec::<String>::new());
        assert_eq!(runs(&[0]), ["1"]);
        assert_eq!(runs(&[0, 1, 2, 4, 6, 7]), ["1-3", "5", "7-8"]);
    }
}
