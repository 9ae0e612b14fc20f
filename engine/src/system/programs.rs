//! `system.programs`: every program that ever ran, over each set of tables it ran on; of all processes on this home.

use std::sync::Arc;

use arrow::array::{Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_catalog::{NamedText, StoredProgram};

use super::{number, table_of, text, time};
use crate::statement::{StatementCatalog, wrap};

/// Programs that are read at a time.
const PAGE: usize = 1000;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("program"),
        text("sql"),
        text("engine_version"),
        time("first_run_at"),
        time("last_run_at"),
        number("runs"),
        text("inputs"),
        text("views"),
        text("functions"),
        text("settings"),
        text("default_schema"),
        number("bytes_stored"),
        text("source"),
    ])
}

pub(super) async fn rows(catalog: &StatementCatalog) -> Result<RecordBatch> {
    let reuse = &catalog.shared.reuse;
    // What this process has counted so far is part of it.
    reuse.settled().await;
    reuse.programs.write(&reuse.cache).await;
    let mut programs: Vec<StoredProgram> = vec![];
    loop {
        let after = programs.last().map(|program| program.source);
        let page = reuse.cache.program_sources(after.as_ref(), PAGE).await.map_err(wrap)?;
        if page.is_empty() {
            break;
        }
        programs.extend(page);
    }
    programs.sort_by_key(|program| (program.first_run_at, program.source));
    let texts =
        |of: &dyn Fn(&StoredProgram) -> String| Arc::new(StringArray::from_iter_values(programs.iter().map(of)));
    let numbers = |of: fn(&StoredProgram) -> u64| {
        Arc::new(Int64Array::from_iter_values(programs.iter().map(|program| of(program) as i64)))
    };
    let times = |of: fn(&StoredProgram) -> i64| {
        Arc::new(TimestampMicrosecondArray::from_iter_values(programs.iter().map(of)).with_timezone("UTC"))
    };
    let settings = |program: &StoredProgram| {
        let all: Vec<String> = program.how.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        all.join(", ")
    };
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            texts(&|program| program.program.to_string()),
            texts(&|program| program.how.sql.clone()),
            texts(&|program| program.how.engine_version.clone()),
            times(|program| program.first_run_at),
            times(|program| program.last_run_at),
            numbers(|program| program.runs),
            texts(&|program| named(&program.how.inputs)),
            texts(&|program| named(&program.how.views)),
            texts(&|program| named(&program.how.functions)),
            texts(&settings),
            texts(&|program| program.how.default_schema.clone()),
            numbers(|program| program.bytes_stored),
            texts(&|program| program.source.to_string()),
        ],
    )?)
}

/// Names and what they stood for, a line each.
fn named(texts: &[NamedText]) -> String {
    let lines: Vec<String> = texts.iter().map(|text| format!("{}: {}", text.name, text.text)).collect();
    lines.join("\n")
}
