//! `nectarine cache warm`: queries run for what they leave in the cache.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use nectarine_engine::{Reused, Warmed, split_statements};

use crate::args::WarmArgs;
use crate::exec::Shell;
use crate::failure::{Failure, Result};
use crate::print;

/// Characters of a query that are shown.
const SQL_CHARS_MAX: usize = 60;

/// Runs the queries, then tells of each. One that fails ends it, unless the user wants to go on.
pub(super) fn warm(shell: &mut Shell, args: &WarmArgs) -> Result<()> {
    let mut texts = args.command.clone();
    for path in &args.file {
        texts.push(read(path)?);
    }
    let mut told = vec![];
    let mut failed = None;
    'all: for text in &texts {
        for range in split_statements(text) {
            let sql = &text[range];
            let runtime = shell.runtime.clone();
            let session = shell.client.local()?.0.clone();
            let interrupt = &mut shell.interrupt;
            let outcome = runtime.block_on(async {
                tokio::select! {
                    outcome = session.warm(sql) => outcome.map_err(|error| Failure::Statement { error, sql: sql.to_owned() }),
                    () = interrupt.pressed() => Err(Failure::Cancelled),
                }
            });
            match outcome {
                Ok(Some(warmed)) => told.push((sql.to_owned(), warmed)),
                Ok(None) => {}
                Err(failure) => {
                    failed = Some(failure);
                    if !shell.keep_going {
                        break 'all;
                    }
                }
            }
        }
    }
    if let Some(batch) = table(&told) {
        let mut sink = print::sink(&shell.view, batch.schema(), None);
        sink.batch(&batch, &mut shell.output)?;
        sink.finish(&mut shell.output)?;
        shell.output.flush()?;
    }
    failed.map_or(Ok(()), Err)
}

/// A script; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<String> {
    let name = path.display();
    let outcome = match path.as_os_str() == "-" {
        true => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        }
        false => std::fs::read_to_string(path),
    };
    outcome.map_err(|error| Failure::io(format!("cannot read '{name}'"), &error))
}

fn table(told: &[(String, Warmed)]) -> Option<RecordBatch> {
    let texts = |of: &dyn Fn(&(String, Warmed)) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(told.iter().map(of)))
    };
    let numbers = |of: &dyn Fn(&Warmed) -> u64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(told.iter().map(|(_, warmed)| of(warmed) as i64)))
    };
    let milliseconds: ArrayRef =
        Arc::new(Float64Array::from_iter_values(told.iter().map(|(_, warmed)| rounded(warmed.elapsed.as_secs_f64()))));
    let columns = [
        ("query", texts(&|(sql, _)| cut(sql))),
        ("there", texts(&|(_, warmed)| there(warmed))),
        ("made", numbers(&|warmed| warmed.made as u64)),
        ("bytes", numbers(&|warmed| warmed.bytes)),
        ("rows", numbers(&|warmed| warmed.rows)),
        ("elapsed_ms", milliseconds),
    ];
    RecordBatch::try_from_iter(columns).ok()
}

/// What was there already.
fn there(warmed: &Warmed) -> String {
    match (warmed.receipt.reused, warmed.receipt.entries.len()) {
        (Reused::None, _) => "nothing".to_owned(),
        (Reused::Exact, _) => "all".to_owned(),
        (Reused::Partial, 1) => "1 result".to_owned(),
        (Reused::Partial, n) => format!("{n} results"),
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 10_000.0).round() / 10.0
}

fn cut(sql: &str) -> String {
    let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match sql.char_indices().nth(SQL_CHARS_MAX) {
        Some((end, _)) => format!("{}..", &sql[..end]),
        None => sql,
    }
}
