//! EXPLAIN REUSE: the tree of prefixes, each with its fingerprint and what was found.
//!
//! ```text
//!   prefix       the nodes of the plan
//!   fingerprint  FP_PD, where it has one
//!   reuse        a hit, or why not: for changed inputs, which
//!   will_be_kept whether running it leaves an entry
//!   <- ..        below a segment hit: which extents come from which entry, and which are computed
//!   nearest      for what nobody computed: the entry that is most like it, and what differs
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use nectarine_planner::canonical::Prefix;
use nectarine_planner::node::{short, size, time};
use nectarine_planner::reuse::{Findings, PrefixReport, Verdict};

use super::Reuse;
use super::changed::inputs_changed;
use super::nearest::Neighbours;
use crate::Result;

/// One row for each node of the plan.
pub(crate) async fn explain(reuse: &Reuse, findings: Option<&Findings>) -> Result<RecordBatch> {
    let lines = findings.map(|findings| findings.report.as_slice()).unwrap_or_default();
    let all_unseen: Vec<&Prefix> = lines.iter().filter_map(unseen).collect();
    let neighbours = Neighbours::of(&reuse.cache, &all_unseen).await;
    let (mut plan, mut entries, mut kept) = (vec![], vec![], vec![]);
    let (mut verdicts, mut nearest, mut told) = (vec![], vec![], HashSet::new());
    for line in lines {
        plan.push(format!("{}{}", "  ".repeat(line.depth), line.line()));
        entries.push(line.key.as_ref().map(short));
        kept.push(Some(line.kept));
        verdicts.push(verdict(reuse, line).await);
        // A node that only renames has the key of the one below it.
        let prefix = unseen(line).filter(|prefix| told.insert(prefix.key));
        nearest.push(prefix.and_then(|prefix| neighbours.nearest(prefix)));
        for segment in &line.segments {
            plan.push(format!("{}  <- {}", "  ".repeat(line.depth), segment.extents));
            entries.push(None);
            kept.push(None);
            verdicts.push(segment.source.clone());
            nearest.push(None);
        }
    }
    let schema = explain_schema();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(plan)),
        Arc::new(entries.into_iter().collect::<StringArray>()),
        Arc::new(verdicts.into_iter().map(Some).collect::<StringArray>()),
        Arc::new(BooleanArray::from(kept)),
        Arc::new(nearest.into_iter().collect::<StringArray>()),
    ];
    Ok(RecordBatch::try_new(schema, columns).map_err(datafusion::error::DataFusionError::from)?)
}

/// The prefix, if there is no entry of its program.
fn unseen(line: &PrefixReport) -> Option<&Prefix> {
    match line.verdict {
        Verdict::NeverSeen | Verdict::NotKept => line.prefix.as_deref(),
        _ => None,
    }
}

async fn verdict(reuse: &Reuse, line: &PrefixReport) -> String {
    match (&line.verdict, &line.prefix) {
        (Verdict::Hit(found), _) => {
            format!("hit: {} rows, {}, computed in {}", found.rows, size(found.bytes), time(found.cost_us))
        }
        (Verdict::NotWorthIt(found), _) => {
            let (bytes, cost) = (size(found.bytes), time(found.cost_us));
            format!("not worth it: {bytes} to read, computed in {cost}")
        }
        (changed @ Verdict::InputsChanged { .. }, Some(prefix)) => {
            inputs_changed(&reuse.cache, prefix).await.unwrap_or_else(|| changed.to_string())
        }
        (other, _) => other.to_string(),
    }
}

/// Columns of `EXPLAIN REUSE`.
pub(crate) fn explain_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("prefix", DataType::Utf8, false),
        Field::new("fingerprint", DataType::Utf8, true),
        Field::new("reuse", DataType::Utf8, false),
        Field::new("will_be_kept", DataType::Boolean, true),
        Field::new("nearest", DataType::Utf8, true),
    ]))
}
