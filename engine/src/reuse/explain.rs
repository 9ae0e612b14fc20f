//! EXPLAIN REUSE: the tree of prefixes, each with its fingerprint and what was found.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use nectarine_planner::node::short;
use nectarine_planner::reuse::{Findings, Verdict};

use crate::Result;

/// One row for each node of the plan.
pub(crate) fn explain(findings: Option<&Findings>) -> Result<RecordBatch> {
    let lines = findings.map(|findings| findings.report.as_slice()).unwrap_or_default();
    let plan = lines.iter().map(|line| format!("{}{}", "  ".repeat(line.depth), line.node));
    let entries = lines.iter().map(|line| line.key.as_ref().map(short));
    let verdicts = lines.iter().map(|line| match &line.verdict {
        Verdict::Hit(found) => format!(
            "hit: {} rows, {}, computed in {}",
            found.rows,
            nectarine_planner::node::size(found.bytes),
            nectarine_planner::node::time(found.cost_us)
        ),
        other => other.to_string(),
    });
    let kept: BooleanArray = lines.iter().map(|line| Some(line.kept)).collect();
    let schema = Arc::new(Schema::new(vec![
        Field::new("prefix", DataType::Utf8, false),
        Field::new("fingerprint", DataType::Utf8, true),
        Field::new("reuse", DataType::Utf8, false),
        Field::new("will_be_kept", DataType::Boolean, false),
    ]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(plan.map(Some).collect::<StringArray>()),
        Arc::new(entries.collect::<StringArray>()),
        Arc::new(verdicts.map(Some).collect::<StringArray>()),
        Arc::new(kept),
    ];
    Ok(RecordBatch::try_new(schema, columns).map_err(datafusion::error::DataFusionError::from)?)
}
