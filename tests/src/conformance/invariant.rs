//! The queries of the scripts in several states of the cache: one home for all scripts, whose cache is never reset.
//!
//! What a script expects does not matter here: a query must answer with reuse what it answers without.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use datafusion_sqllogictest::{DFColumnType, DFSqlLogicTestError, TestContext, setup_scratch_dir};
use nectarine_engine::{AnswerKind, ErrorKind};
use sqllogictest::{AsyncDB, DBOutput, Record, Runner};

use super::run::{prepare, records};
use super::{Corpus, Exceptions, ours::Nectarine};
use crate::db::rows_text;
use crate::invariance::{Random, Rows, order_of, verify_all};

const PARTITIONS: &str = "datafusion.execution.target_partitions";
const BATCH: &str = "datafusion.execution.batch_size";

/// Runs that decide whether a query has a right answer: partitions and batch sizes.
const REFERENCES: [(&str, &str); 5] = [("1", "8192"), ("7", "3"), ("4", "8192"), ("2", "1"), ("3", "100")];

/// Entries that are computed anew after each script.
const VERIFIED_MAX: usize = 100;

/// What came of it.
#[derive(Debug, Default)]
pub struct Invariance {
    /// How often what happened.
    pub counts: BTreeMap<String, usize>,
    /// Script, query and what differs.
    pub differences: Vec<String>,
}

type Shared = Arc<Mutex<Invariance>>;

/// Runs the scripts that `wanted` names, one after the other. Changes the working directory.
#[expect(clippy::print_stdout, reason = "it takes long; whoever runs it wants to see where it is")]
pub async fn run_invariant(
    exceptions: &Exceptions,
    seed: u64,
    wanted: impl Fn(&str) -> bool,
) -> std::io::Result<Invariance> {
    let corpus = Corpus::copy()?;
    let folder = tempfile::tempdir()?;
    let home = folder.path().join("home");
    std::env::set_current_dir(corpus.folder())?;
    let shared = Shared::default();
    for script in corpus.scripts() {
        let name = script.to_string_lossy().replace('\\', "/");
        if !wanted(&name) || exceptions.file(&name).is_some() || setup_scratch_dir(&script).is_err() {
            continue;
        }
        let (home, report) = (home.clone(), Arc::clone(&shared));
        let task = tokio::spawn(async move { run_script(&script, home, seed, report).await });
        if let Err(error) = task.await {
            let mut report = shared.lock().unwrap_or_else(PoisonError::into_inner);
            report.differences.push(format!("{name}: the script's task died: {error}"));
        }
        let report = shared.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{name}: {:?}, {} differences", report.counts, report.differences.len());
    }
    std::env::set_current_dir(std::env::temp_dir())?;
    let report = std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(report)
}

async fn run_script(script: &Path, home: PathBuf, seed: u64, report: Shared) {
    let Some(context) = TestContext::try_new_for_test_file(script).await else { return };
    let context = Arc::new(context);
    let mut runner = Runner::new(|| {
        let (context, home, report) = (Arc::clone(&context), home.clone(), Arc::clone(&report));
        async move {
            let ours = Nectarine::open(script, context.session_ctx(), Some(&home)).await;
            let ours = ours.map_err(|error| DFSqlLogicTestError::Other(error.to_string()))?;
            let script = script.to_string_lossy().into_owned();
            Ok(Invariant { ours, script, report, random: Random::new(seed) })
        }
    });
    prepare(&mut runner);
    for record in records(script) {
        // Plans and messages are not of interest.
        if matches!(record, Record::Halt { .. }) {
            break;
        }
        let _ = runner.run_async(record).await;
    }
    drop(runner);
    if let Ok(ours) = Nectarine::open(script, context.session_ctx(), Some(&home)).await {
        // While its tables are there.
        let verified = verify_all(&ours.session, VERIFIED_MAX).await;
        {
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            for (what, outcome) in [("entries that are the same", "same"), ("entries not verified", "not verified")] {
                *report.counts.entry(what.to_owned()).or_default() += verified.counted(outcome);
            }
            report.differences.extend(verified.different.iter().map(|wrong| format!("{}: {wrong}", script.display())));
        }
        drop_everything(&ours).await;
        ours.engine.shutdown().await;
    }
}

/// Takes what a script made out of the home; what was computed over it stays.
async fn drop_everything(ours: &Nectarine) {
    // Names that others stand on go in a later round.
    for _ in 0..4 {
        let sql = "SELECT 'DROP ' || CASE WHEN table_type = 'VIEW' THEN 'VIEW' ELSE 'TABLE' END || ' IF EXISTS \"' || \
                   table_schema || '\".\"' || table_name || '\"' FROM information_schema.tables \
                   WHERE table_schema NOT IN ('information_schema', 'system')";
        let Ok(answer) = ours.session.execute(sql).await else { return };
        let Ok(batches) = answer.collect().await else { return };
        let drops = rows_text(&batches);
        if drops.is_empty() {
            return;
        }
        for drop in drops.lines() {
            let _ = ours.session.execute(drop).await;
        }
    }
}

/// A database that answers every query several times.
struct Invariant {
    ours: Nectarine,
    script: String,
    report: Shared,
    random: Random,
}

type Outcome = Result<Rows, (ErrorKind, String)>;

impl Invariant {
    #[expect(clippy::print_stdout, reason = "whoever runs the tests wants to see it at once")]
    async fn query(&mut self, sql: &str) {
        let reference = self.run_as("off", sql).await;
        self.count("queries");
        if reference.is_err() {
            self.count("queries that fail");
        }
        let mut determined = None;
        for (state, mode) in
            [("cold", "on"), ("hit", "on"), ("check", "check"), ("evicted", "on"), ("other partitions", "on")]
        {
            if state == "evicted" {
                if !self.random.chance(10) {
                    continue;
                }
                self.evict().await;
            }
            let before = match state {
                "other partitions" => self.change("7", "3").await,
                _ => vec![],
            };
            let outcome = self.run_as(mode, sql).await;
            self.restore(before).await;
            self.count("runs");
            let Err(complaint) = same(&reference, &outcome, sql) else { continue };
            let is_broken = matches!(&outcome, Err((ErrorKind::Internal, _))) && reference.is_ok();
            if !is_broken {
                let is_determined = match determined {
                    Some(determined) => determined,
                    None => self.is_determined(sql, &reference).await,
                };
                determined = Some(is_determined);
                if !is_determined {
                    continue;
                }
            }
            let shown = |outcome: &Outcome| match outcome {
                Ok(rows) => rows.text(),
                Err((kind, text)) => format!("{kind:?}: {text}\n"),
            };
            let text = format!(
                "DIFFERENCE {} {state}: {complaint}\n{sql}\n  expected: {}  found: {}",
                self.script,
                shown(&reference),
                shown(&outcome)
            );
            println!("{text}");
            self.report.lock().unwrap_or_else(PoisonError::into_inner).differences.push(text);
            break;
        }
        if determined == Some(false) {
            self.count("queries without a right answer");
        }
        let _ = self.ours.session.execute("SET nectarine.reuse = 'on'").await;
    }

    async fn run_as(&mut self, mode: &str, sql: &str) -> Outcome {
        let session = &self.ours.session;
        let failure = |error: nectarine_engine::EngineError| (error.kind(), format!("{error}"));
        session.execute(&format!("SET nectarine.reuse = '{mode}'")).await.map_err(failure)?;
        let answer = session.execute(sql).await.map_err(failure)?;
        let receipt = answer.receipt();
        let schema = answer.schema();
        let batches = answer.collect().await.map_err(failure)?;
        if mode == "on" {
            self.count(&format!("runs reusing: {}", receipt().reused.word()));
        }
        Rows::new(schema, &batches).map_err(|text| (ErrorKind::Internal, text))
    }

    async fn is_determined(&mut self, sql: &str, reference: &Outcome) -> bool {
        for (partitions, batch) in REFERENCES {
            let before = self.change(partitions, batch).await;
            let outcome = self.run_as("off", sql).await;
            self.restore(before).await;
            if same(reference, &outcome, sql).is_err() {
                return false;
            }
        }
        true
    }

    /// Changes partitions and batches; says what they were.
    async fn change(&self, partitions: &str, batch: &str) -> Vec<(&'static str, String)> {
        let mut before = vec![];
        for (name, value) in [(PARTITIONS, partitions), (BATCH, batch)] {
            let sql = format!("SELECT value FROM information_schema.df_settings WHERE name = '{name}'");
            if let Ok(answer) = self.ours.session.execute(&sql).await
                && let Ok(batches) = answer.collect().await
            {
                before.push((name, rows_text(&batches)));
            }
            let _ = self.ours.session.execute(&format!("SET {name} = {value}")).await;
        }
        before
    }

    async fn restore(&self, before: Vec<(&'static str, String)>) {
        for (name, value) in before {
            let _ = self.ours.session.execute(&format!("SET {name} = {value}")).await;
        }
    }

    async fn evict(&mut self) {
        let sql = "SELECT fingerprint FROM system.cache_entries ORDER BY created_at DESC LIMIT 10";
        let Ok(answer) = self.ours.session.execute(sql).await else { return };
        let Ok(batches) = answer.collect().await else { return };
        let cache = self.ours.engine.cache();
        let mut keys = vec![];
        for name in rows_text(&batches).lines() {
            if self.random.chance(40) {
                keys.extend(cache.find(name).await.ok());
            }
        }
        cache.remove(&keys).await;
    }

    fn count(&self, what: &str) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        *report.counts.entry(what.to_owned()).or_default() += 1;
    }
}

fn same(expected: &Outcome, found: &Outcome, sql: &str) -> Result<(), String> {
    match (expected, found) {
        (Ok(expected), Ok(found)) => {
            if let Some(shape) = found.shape_differs(expected) {
                return Err(shape);
            }
            if !found.same_rows(expected) {
                return Err("other rows".to_owned());
            }
            // An order that the words suggest may mean something else: only what the reference keeps too.
            let order = order_of(sql, found.schema());
            match expected.out_of_order(&order) {
                None => found.out_of_order(&order).map_or(Ok(()), Err),
                Some(_) => Ok(()),
            }
        }
        (Err(_), Err(_)) => Ok(()),
        (Ok(_), Err(_)) => Err("it fails".to_owned()),
        (Err(_), Ok(_)) => Err("it should fail".to_owned()),
    }
}

fn is_query(sql: &str) -> bool {
    let code: Vec<&str> = sql.lines().map(str::trim).filter(|line| !line.starts_with("--")).collect();
    let code = code.join("\n").trim_start().to_ascii_lowercase();
    ["select", "with", "values", "(", "table ", "from ", "execute"].iter().any(|word| code.starts_with(word))
}

#[async_trait]
impl AsyncDB for Invariant {
    type Error = DFSqlLogicTestError;
    type ColumnType = DFColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DFColumnType>, DFSqlLogicTestError> {
        if is_query(sql) {
            self.query(sql).await;
            return Ok(DBOutput::StatementComplete(0));
        }
        let other = |error: nectarine_engine::EngineError| DFSqlLogicTestError::Other(format!("{error}"));
        let answer = self.ours.session.execute(sql).await.map_err(other)?;
        if !matches!(answer.kind(), AnswerKind::Command { .. }) {
            answer.collect().await.map_err(other)?;
        }
        Ok(DBOutput::StatementComplete(0))
    }

    fn engine_name(&self) -> &str {
        "Nectarine"
    }

    async fn sleep(duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    async fn shutdown(&mut self) {}
}
