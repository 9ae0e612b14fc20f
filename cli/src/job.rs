//! `nectarine job`: what the statements about jobs do, for scripts.
//!
//! Waiting survives the server: as long as it can be reached again within a minute, it goes on.

use std::time::{Duration, Instant};

use arrow::array::{Array, AsArray, RecordBatch};
use nectarine_engine::ErrorKind;

use crate::args::{JobTask, SubmitArgs};
use crate::cache::read_script;
use crate::exec::{Flow, Shell};
use crate::failure::{Failure, Result};
use crate::print::{Expanded, View};

/// How often it is looked how far a job is: at first, and after a while.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long a server may be away.
const PATIENCE: Duration = Duration::from_secs(60);

/// Does what was asked for.
pub(crate) fn run(shell: &mut Shell, task: &JobTask) -> anyhow::Result<Flow> {
    Ok(match carry_out(shell, task) {
        Ok(()) => Flow::Done,
        Err(failure) => shell.fail(&failure, None),
    })
}

fn carry_out(shell: &mut Shell, task: &JobTask) -> Result<()> {
    let view = shell.view.clone();
    match task {
        JobTask::Submit(args) => {
            let sql = submit(args)?;
            shell.print_answer(&sql, &view, None).map(drop)
        }
        JobTask::Ls => {
            let sql = "SELECT job_id, name, owner, state, statements_done || '/' || statements AS done, submitted_at, ended_at, \
                       rows, error FROM system.jobs ORDER BY submitted_at, job_id";
            shell.print_answer(sql, &view, None).map(drop)
        }
        JobTask::Show { id } => {
            let expanded = View { expanded: Expanded::On, ..view };
            shell.print_answer(&format!("SHOW JOB {}", quoted(id)), &expanded, None).map(drop)
        }
        JobTask::Wait { id, timeout } => wait(shell, id, timeout.map(|seconds| Duration::from_secs(seconds.into()))),
        JobTask::Cancel { id } => shell.print_answer(&format!("CANCEL JOB {}", quoted(id)), &view, None).map(drop),
        JobTask::Result { id } => {
            shell.print_answer(&format!("SHOW RESULT OF JOB {}", quoted(id)), &view, None).map(drop)
        }
        JobTask::Drop { id } => shell.print_answer(&format!("DROP JOB {}", quoted(id)), &view, None).map(drop),
    }
}

/// The statement that submits scripts.
fn submit(args: &SubmitArgs) -> Result<String> {
    let mut texts = args.command.clone();
    for path in &args.file {
        texts.push(read_script(path)?);
    }
    let body = texts.iter().map(|text| text.trim_end().trim_end_matches(';')).collect::<Vec<_>>().join("\n;\n");
    let clause = |word: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!(" {word} {}", quoted(value))).unwrap_or_default()
    };
    let quote = dollars(&body);
    let clauses = format!("{}{}", clause("NAME", &args.name), clause("TIMEOUT", &args.timeout));
    Ok(format!("SUBMIT JOB{clauses} AS {quote}\n{body}\n{quote}"))
}

/// A quote that the text does not hold.
fn dollars(body: &str) -> String {
    let mut quotes = (0_u32..).map(|n| if n == 0 { "$job$".to_owned() } else { format!("$job{n}$") });
    quotes.find(|quote| !body.contains(quote.as_str())).unwrap_or_default()
}

/// Returns when a job has ended; one that did not finish is a failure.
fn wait(shell: &mut Shell, id: &str, timeout: Option<Duration>) -> Result<()> {
    let sql = format!("SHOW JOB {}", quoted(id));
    let (started, mut heard, mut pause) = (Instant::now(), Instant::now(), PAUSE_MIN);
    loop {
        match shell.fetch(&sql) {
            Ok(batches) => {
                heard = Instant::now();
                match text(&batches, "state").as_deref() {
                    Some("finished") => return Ok(()),
                    Some(state @ ("failed" | "cancelled")) => {
                        let why = text(&batches, "error").unwrap_or_default();
                        return Err(Failure::new(format!("job {id} is {state}: {why}")));
                    }
                    _ => {}
                }
            }
            // The server may come back.
            Err(Failure::Statement { error, .. }) if error.kind() == ErrorKind::Io && heard.elapsed() < PATIENCE => {}
            Err(failure) => return Err(failure),
        }
        if timeout.is_some_and(|timeout| started.elapsed() >= timeout) {
            return Err(Failure::new(format!("job {id} has not ended yet"))
                .with_hint("it goes on: `nectarine job show` tells how far it is"));
        }
        let (runtime, interrupt) = (shell.runtime.clone(), &mut shell.interrupt);
        let pressed = runtime.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(pause) => false,
                () = interrupt.pressed() => true,
            }
        });
        if pressed {
            return Err(Failure::Cancelled);
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// A text of the first row.
fn text(batches: &[RecordBatch], column: &str) -> Option<String> {
    let batch = batches.iter().find(|batch| batch.num_rows() > 0)?;
    let values = batch.column_by_name(column)?.as_string_opt::<i32>()?;
    values.is_valid(0).then(|| values.value(0).to_owned())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_quoted_whatever_they_hold() {
        let args = SubmitArgs {
            command: vec!["SELECT 1;".to_owned(), "SELECT '$job$' -- end".to_owned()],
            file: vec![],
            name: Some("it's".to_owned()),
            timeout: None,
        };
        let expected = "SUBMIT JOB NAME 'it''s' AS $job1$\nSELECT 1\n;\nSELECT '$job$' -- end\n$job1$";
        assert_eq!(submit(&args).unwrap(), expected);
    }
}
