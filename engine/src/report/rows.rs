//! Reports and runs as rows: what statements about them answer, and what `system.report_runs` shows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::common::DataFusionError;
use nectarine_catalog::{Report, ReportOutput, ReportRun};

use super::Schedule;
use crate::Result;

pub(crate) fn batch(schema: SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(schema, columns).map_err(DataFusionError::from)?)
}

pub(super) fn show_create_schema() -> SchemaRef {
    Arc::new(Schema::new(["report", "definition"].map(|name| Field::new(name, DataType::Utf8, false)).to_vec()))
}

pub(super) fn explain_schema() -> SchemaRef {
    let names = ["report", "change", "definition"];
    Arc::new(Schema::new(names.map(|name| Field::new(name, DataType::Utf8, false)).to_vec()))
}

fn time_field(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true)
}

pub(super) fn shown_schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    Arc::new(Schema::new(vec![
        text("report"),
        text("schedule"),
        text("time_zone"),
        text("output"),
        text("state"),
        time_field("next_run"),
        text("owner"),
    ]))
}

pub(super) fn shown(reports: &[&Report], now: i64) -> Result<RecordBatch> {
    let texts = |of: &dyn Fn(&Report) -> Option<String>| -> ArrayRef {
        Arc::new(reports.iter().map(|report| of(report)).collect::<StringArray>())
    };
    let next = reports.iter().map(|report| next_run(report, now)).collect::<TimestampMicrosecondArray>();
    batch(
        shown_schema(),
        vec![
            texts(&|report| Some(report.name.clone())),
            texts(&|report| Some(report.spec.schedule.clone())),
            texts(&|report| Some(report.spec.time_zone.clone())),
            texts(&|report| Some(output_text(report))),
            texts(&|report| Some(if report.paused { "paused" } else { "active" }.to_string())),
            Arc::new(next.with_timezone("UTC")),
            texts(&|report| report.owner.clone()),
        ],
    )
}

/// The next time of a report; none of one that is paused.
pub(crate) fn next_run(report: &Report, now: i64) -> Option<i64> {
    let schedule = Schedule::parse(&report.spec.schedule, &report.spec.time_zone).ok()?;
    schedule.next_after(report.scheduled_to.max(now)).filter(|_| !report.paused)
}

/// Where a report's rows go, in a word.
pub(crate) fn output_text(report: &Report) -> String {
    match &report.spec.output {
        ReportOutput::File(pattern) => pattern.clone(),
        ReportOutput::Table(table) => format!("TABLE {table}"),
    }
}

/// Columns of runs, here and in `system.report_runs`.
pub(crate) fn runs_schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let number = |name: &str| Field::new(name, DataType::Int64, true);
    let decimal = |name: &str| Field::new(name, DataType::Float64, true);
    Arc::new(Schema::new(vec![
        text("report"),
        time_field("scheduled_for"),
        time_field("started_at"),
        text("state"),
        number("rows"),
        text("output"),
        decimal("elapsed_ms"),
        text("reused"),
        decimal("saved_ms"),
        text("error"),
        number("attempt"),
        number("failures"),
        time_field("not_before"),
    ]))
}

/// Runs as rows, each with the name of its report.
pub(crate) fn runs_batch(runs: &[(String, ReportRun)]) -> Result<RecordBatch> {
    let texts = |of: &dyn Fn(&ReportRun) -> Option<String>| -> ArrayRef {
        Arc::new(runs.iter().map(|(_, run)| of(run)).collect::<StringArray>())
    };
    let numbers = |of: &dyn Fn(&ReportRun) -> Option<i64>| -> ArrayRef {
        Arc::new(runs.iter().map(|(_, run)| of(run)).collect::<Int64Array>())
    };
    let decimals = |of: &dyn Fn(&ReportRun) -> Option<f64>| -> ArrayRef {
        Arc::new(runs.iter().map(|(_, run)| of(run)).collect::<Float64Array>())
    };
    let times = |of: &dyn Fn(&ReportRun) -> Option<i64>| -> ArrayRef {
        Arc::new(runs.iter().map(|(_, run)| of(run)).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(runs.iter().map(|(name, _)| name))),
        times(&|run| Some(run.scheduled_for)),
        times(&|run| run.started_at),
        texts(&|run| Some(run.state.word().to_string())),
        numbers(&|run| run.rows),
        texts(&|run| run.output.clone()),
        decimals(&|run| run.elapsed_ms),
        texts(&|run| run.reused.clone()),
        decimals(&|run| run.saved_ms),
        texts(&|run| run.error.clone()),
        numbers(&|run| Some(run.attempt)),
        numbers(&|run| Some(run.failures)),
        times(&|run| Some(run.not_before)),
    ];
    batch(runs_schema(), columns)
}
