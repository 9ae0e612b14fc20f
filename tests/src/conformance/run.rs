//! Runs scripts against the reference and against ours, and says where they differ.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion_sqllogictest::{
    DFColumnType, DataFusion, TestContext, df_value_validator, setup_scratch_dir, value_normalizer,
};
use futures::StreamExt;
use sqllogictest::{
    AsyncDB, ExpectedError, MakeConnection, Normalizer, QueryExpect, Record, Runner, StatementExpect,
    strict_column_validator,
};

use super::{Corpus, Exceptions, ours::Nectarine};
use crate::watchdog::watch;

/// What came of one script.
#[derive(Debug, Default)]
pub struct Report {
    /// Relative to `test_files`.
    pub script: String,
    /// Records that both passed.
    pub passed: usize,
    /// Records that the reference cannot pass here.
    pub unavailable: usize,
    /// Records that are listed as exceptions.
    pub excepted: usize,
    /// Listed exceptions that pass after all, and so must be unlisted.
    pub stale: Vec<u32>,
    /// Line, statement and what went wrong.
    pub failed: Vec<(u32, String, String)>,
}

/// Runs the scripts that `wanted` names. Changes the working directory: scripts name files relative to it.
pub async fn run(exceptions: Arc<Exceptions>, wanted: impl Fn(&str) -> bool) -> std::io::Result<Vec<Report>> {
    watch();
    let corpus = Corpus::copy()?;
    let name = |script: &PathBuf| script.to_string_lossy().replace('\\', "/");
    let scripts: Vec<PathBuf> = corpus
        .scripts()
        .into_iter()
        .filter(|script| wanted(&name(script)) && exceptions.file(&name(script)).is_none())
        .collect();

    // The reference first, in a copy of its own: both write to the same places.
    std::env::set_current_dir(corpus.folder())?;
    let reference: Vec<(PathBuf, Vec<bool>)> =
        futures::stream::iter(scripts)
            .map(|script| async move {
                tokio::spawn(async move { (script.clone(), run_reference(&script).await) }).await.ok()
            })
            .buffered(threads())
            .filter_map(|outcome| async { outcome })
            .collect()
            .await;
    let corpus = Corpus::copy()?;
    std::env::set_current_dir(corpus.folder())?;
    let reports = futures::stream::iter(reference)
        .map(|(script, reference)| {
            let exceptions = Arc::clone(&exceptions);
            async move {
                let task = tokio::spawn(async move { run_ours(&script, &reference, &exceptions).await });
                task.await.unwrap_or_else(|error| Report {
                    failed: vec![(0, String::new(), format!("the script's task died: {error}"))],
                    ..Report::default()
                })
            }
        })
        .buffered(threads())
        .collect()
        .await;
    // The corpus goes with this function; nobody may stand in it.
    std::env::set_current_dir(std::env::temp_dir())?;
    Ok(reports)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

pub(super) fn records(script: &Path) -> Vec<Record<DFColumnType>> {
    sqllogictest::parse_file(Path::new("test_files").join(script)).unwrap_or_default()
}

fn line_of(record: &Record<DFColumnType>) -> u32 {
    match record {
        Record::Statement { loc, .. } | Record::Query { loc, .. } | Record::System { loc, .. } => loc.line(),
        _ => 0,
    }
}

fn is_checked(record: &Record<DFColumnType>) -> bool {
    matches!(record, Record::Statement { .. } | Record::Query { .. } | Record::System { .. })
}

pub(super) fn prepare<D, M>(runner: &mut Runner<D, M>)
where
    D: AsyncDB<ColumnType = DFColumnType>,
    M: MakeConnection<Conn = D>,
{
    // Scripts hold a few records for one engine only; we answer like DataFusion.
    runner.add_label("Datafusion");
    runner.with_column_validator(strict_column_validator);
    runner.with_normalizer(value_normalizer);
    runner.with_validator(df_value_validator);
}

/// For each record, whether stock DataFusion passes it here.
async fn run_reference(script: &Path) -> Vec<bool> {
    let records = records(script);
    if setup_scratch_dir(script).is_err() {
        return vec![false; records.len()];
    }
    let Some(context) = TestContext::try_new_for_test_file(script).await else { return vec![false; records.len()] };
    let mut runner = Runner::new(|| async {
        Ok(DataFusion::new(context.session_ctx().clone(), script.to_path_buf(), indicatif::ProgressBar::hidden()))
    });
    prepare(&mut runner);
    let mut passed = Vec::with_capacity(records.len());
    for record in records {
        passed.push(runner.run_async(record).await.is_ok());
    }
    passed
}

async fn run_ours(script: &Path, reference: &[bool], exceptions: &Exceptions) -> Report {
    let name = script.to_string_lossy().replace('\\', "/");
    let mut report = Report { script: name.clone(), ..Report::default() };
    if setup_scratch_dir(script).is_err() {
        report.failed.push((0, String::new(), "no scratch folder".to_string()));
        return report;
    }
    let Some(context) = TestContext::try_new_for_test_file(script).await else { return report };
    let context = Arc::new(context);
    let mut runner = Runner::new(|| {
        let context = Arc::clone(&context);
        async move {
            Nectarine::open(script, context.session_ctx(), None)
                .await
                .map_err(|error| datafusion_sqllogictest::DFSqlLogicTestError::Other(error.to_string()))
        }
    });
    prepare(&mut runner);
    for (record, reference_passed) in records(script).into_iter().zip(reference) {
        let line = line_of(&record);
        let is_checked = is_checked(&record);
        let record = ours(record);
        let sql = match &record {
            Record::Statement { sql, .. } | Record::Query { sql, .. } => sql.clone(),
            _ => String::new(),
        };
        runner.with_validator(if is_ordered(&sql) { df_value_validator } else { in_any_order });
        let outcome = runner.run_async(record).await;
        if !is_checked {
            continue;
        }
        match (outcome, reference_passed, exceptions.record(&name, line)) {
            (_, false, _) => report.unavailable += 1,
            // Such a record depends on which rows come first.
            (Ok(_), true, Some(reason)) if reason.starts_with("either way:") => report.passed += 1,
            (Ok(_), true, Some(_)) => report.stale.push(line),
            (Err(_), true, Some(_)) => report.excepted += 1,
            (Ok(_), true, None) => report.passed += 1,
            (Err(error), true, None) => report.failed.push((line, sql, error.to_string())),
        }
    }
    report
}

/// What a record means for us: errors may be worded differently, and plans are our own.
fn ours(record: Record<DFColumnType>) -> Record<DFColumnType> {
    match record {
        Record::Statement { loc, conditions, connection, sql, expected: StatementExpect::Error(_), retry } => {
            let expected = StatementExpect::Error(ExpectedError::Empty);
            Record::Statement { loc, conditions, connection, sql, expected, retry }
        }
        Record::Query { loc, conditions, connection, sql, expected, retry } => match expected {
            QueryExpect::Error(_) => {
                let expected = QueryExpect::Error(ExpectedError::Empty);
                Record::Query { loc, conditions, connection, sql, expected, retry }
            }
            QueryExpect::Results { .. } if is_explain(&sql) => {
                Record::Statement { loc, conditions, connection, sql, expected: StatementExpect::Ok, retry }
            }
            expected => Record::Query { loc, conditions, connection, sql, expected, retry },
        },
        record => record,
    }
}

/// Whether the order of rows means something. Rows of several extents come in any order, those of DataFusion's own
/// in-memory tables do not.
fn is_ordered(sql: &str) -> bool {
    sql.to_ascii_lowercase().contains("order by")
}

fn in_any_order(normalizer: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    if df_value_validator(normalizer, actual, expected) {
        return true;
    }
    let mut actual: Vec<String> = actual.iter().map(|row| row.join(" ").trim_end().to_string()).collect();
    let mut expected: Vec<String> = expected.iter().map(normalizer).collect();
    actual.sort();
    expected.sort();
    actual == expected
}

fn is_explain(sql: &str) -> bool {
    let text = sql.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect::<Vec<_>>().join("\n");
    code.trim_start().get(..7).is_some_and(|word| word.eq_ignore_ascii_case("explain"))
}
