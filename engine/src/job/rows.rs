//! Jobs as rows: what statements about them answer, and what `system.jobs` shows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use nectarine_catalog::Job;

use crate::Result;
use crate::redact::{redact, redact_message};

/// How much of a job's statements is shown.
const TEXT_BYTES_MAX: usize = 10_000;

pub(super) fn id_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("job_id", DataType::Utf8, false)]))
}

/// Columns of jobs, here and in `system.jobs`.
pub(crate) fn schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let number = |name: &str| Field::new(name, DataType::Int64, true);
    let time = |name: &str| Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true);
    Arc::new(Schema::new(vec![
        text("job_id"),
        text("name"),
        text("owner"),
        text("state"),
        number("statements"),
        number("statements_done"),
        text("statement"),
        time("submitted_at"),
        time("started_at"),
        time("ended_at"),
        time("deadline"),
        number("attempt"),
        number("rows"),
        number("result_bytes"),
        text("reused"),
        Field::new("saved_ms", DataType::Float64, true),
        text("error"),
        text("sql"),
    ]))
}

/// Jobs as rows.
pub(crate) fn batch(jobs: &[Job]) -> Result<RecordBatch> {
    let texts =
        |of: &dyn Fn(&Job) -> Option<String>| -> ArrayRef { Arc::new(jobs.iter().map(of).collect::<StringArray>()) };
    let numbers =
        |of: &dyn Fn(&Job) -> Option<i64>| -> ArrayRef { Arc::new(jobs.iter().map(of).collect::<Int64Array>()) };
    let times = |of: &dyn Fn(&Job) -> Option<i64>| -> ArrayRef {
        Arc::new(jobs.iter().map(of).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
    };
    let saved = jobs.iter().map(|job| Some(job.result.as_ref()?.saved_us as f64 / 1000.0)).collect::<Float64Array>();
    let columns: Vec<ArrayRef> = vec![
        texts(&|job| Some(job.id.to_string())),
        texts(&|job| job.spec.name.clone()),
        texts(&|job| job.owner.clone()),
        texts(&|job| Some(job.state.word().to_string())),
        numbers(&|job| i64::try_from(job.spec.statements.len()).ok()),
        numbers(&|job| Some(job.n_done)),
        texts(&|job| {
            let statement = job.spec.statements.get(usize::try_from(job.n_done).ok()?)?;
            Some(cut(redact(statement)))
        }),
        times(&|job| Some(job.submitted_at)),
        times(&|job| job.started_at),
        times(&|job| job.ended_at),
        times(&deadline),
        numbers(&|job| Some(job.attempt)),
        numbers(&|job| i64::try_from(job.result.as_ref()?.rows).ok()),
        numbers(&|job| i64::try_from(job.result.as_ref()?.bytes).ok()),
        texts(&|job| Some(job.result.as_ref()?.reused.clone())),
        Arc::new(saved),
        texts(&|job| {
            let error = job.error.clone()?;
            Some(job.spec.statements.iter().fold(error, |error, statement| redact_message(statement, error)))
        }),
        texts(&|job| {
            let shown: Vec<String> = job.spec.statements.iter().map(|statement| redact(statement)).collect();
            Some(cut(shown.join(";\n")))
        }),
    ];
    crate::report::batch(schema(), columns)
}

/// When a job must have ended, if it was begun and has such a time.
pub(super) fn deadline(job: &Job) -> Option<i64> {
    let timeout = i64::try_from(job.spec.timeout_s).ok().filter(|seconds| *seconds > 0)?;
    Some(job.started_at?.saturating_add(timeout.saturating_mul(1_000_000)))
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push_str(" ..");
    }
    text
}
