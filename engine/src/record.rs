//! [`Record`]: one statement's line in the query log, from start to end.
//!
//! Dropped before it was ended, it says `cancelled`: that is what dropping an answer means.

use std::sync::Arc;
use std::time::Instant;

use datafusion::physical_plan::ExecutionPlan;
use nectarine_catalog::QueryId;
use nectarine_catalog::store::{LookupRecord, QueryRecord};
use parking_lot::Mutex;

use crate::managed::now_micros;
use crate::metrics::PlanMetrics;
use crate::query_log::QueryLog;
use crate::redact::{redact, redact_message};
use crate::trace::{Part, Told, Trace};
use crate::{EngineError, Receipt};

/// Where the log finds statements that ended: servers show them.
const STATEMENTS: &str = "nectarine_engine::statements";

/// A statement that is being recorded. Clones are the same record.
#[derive(Clone)]
pub(crate) struct Record {
    shared: Arc<Shared>,
}

struct Shared {
    log: QueryLog,
    started: Instant,
    trace: Option<Trace>,
    /// The text, if there are secrets in it: a message may quote them.
    secrets_of: Option<String>,
    state: Mutex<State>,
}

struct State {
    record: QueryRecord,
    plan: Option<Arc<dyn ExecutionPlan>>,
    ended: bool,
    /// The part of the trace that goes on.
    planning: Option<Part>,
    running: Option<Part>,
}

impl Record {
    pub(crate) fn start(log: &QueryLog, query_id: QueryId, sql: &str, user_name: &str, login: Option<&str>) -> Self {
        let shown = redact(sql.trim());
        let secrets_of = (shown != sql.trim()).then(|| sql.to_string());
        let record = QueryRecord {
            query_id,
            started_at: now_micros(),
            user_name: user_name.to_string(),
            sql: shown,
            state: "running".to_string(),
            error: None,
            elapsed_ms: None,
            cpu_ms: None,
            rows_returned: None,
            bytes_scanned: None,
            planning_ms: None,
            reuse: None,
            entries_used: None,
            saved_ms: None,
            extents_total: None,
            extents_reused: None,
            process: None,
            login: login.map(str::to_string),
            lookups: vec![],
        };
        log.write(record.clone());
        let trace = log.trace(query_id);
        let planning = trace.as_ref().map(|trace| trace.part_from_start("plan"));
        let state = Mutex::new(State { record, plan: None, ended: false, planning, running: None });
        Self { shared: Arc::new(Shared { log: log.clone(), started: Instant::now(), trace, secrets_of, state }) }
    }

    /// A part of the statement for its trace, until what is returned is dropped.
    pub(crate) fn part(&self, name: &'static str) -> Option<Part> {
        let state = self.shared.state.lock();
        match &state.planning {
            Some(planning) => Some(planning.part(name)),
            None => self.shared.trace.as_ref().map(|trace| trace.part(name)),
        }
    }

    /// The answer was found without planning, and is about to be given.
    pub(crate) fn found(&self) {
        self.shared.runs(&mut self.shared.state.lock());
    }

    pub(crate) fn query_id(&self) -> QueryId {
        self.shared.state.lock().record.query_id
    }

    /// The plan is ready; its metrics count from now on.
    pub(crate) fn planned(&self, plan: &Arc<dyn ExecutionPlan>) {
        let mut state = self.shared.state.lock();
        state.record.planning_ms = Some(milliseconds(self.shared.started));
        state.plan = Some(Arc::clone(plan));
        self.shared.runs(&mut state);
    }

    /// What the statement asked the view cache for; written down when it has ended.
    pub(crate) fn looked_up(&self, lookups: Vec<LookupRecord>) {
        self.shared.state.lock().record.lookups = lookups;
    }

    /// What the answer used.
    pub(crate) fn reused(&self, receipt: &Receipt) {
        let record = &mut self.shared.state.lock().record;
        record.reuse = Some(receipt.reused.word().to_string());
        record.entries_used = Some(receipt.entries.len() as i64);
        record.saved_ms = Some(receipt.saved.as_secs_f64() * 1000.0);
        record.extents_total = receipt.extents.map(|extents| extents.total as i64);
        record.extents_reused = receipt.extents.map(|extents| extents.reused as i64);
    }

    pub(crate) fn finished(&self, rows: u64) {
        self.shared.end("finished", None, Some(rows));
    }

    pub(crate) fn failed(&self, error: &EngineError) {
        let message = match &self.shared.secrets_of {
            Some(sql) => redact_message(sql, error.to_string()),
            None => error.to_string(),
        };
        self.shared.end("failed", Some(message), None);
    }
}

impl Shared {
    /// Planning has ended.
    fn runs(&self, state: &mut State) {
        if state.planning.take().is_some() {
            state.running = self.trace.as_ref().map(|trace| trace.part("run"));
        }
    }

    fn end(&self, outcome: &str, error: Option<String>, rows: Option<u64>) {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.ended, true) {
            return;
        }
        (state.planning, state.running) = (None, None);
        let metrics = state.plan.take().map(|plan| PlanMetrics::of(plan.as_ref()));
        let record = &mut state.record;
        record.state = outcome.to_string();
        record.error = error;
        record.elapsed_ms = Some(milliseconds(self.started));
        record.rows_returned = rows.map(|rows| rows as i64);
        if let Some(metrics) = metrics {
            record.cpu_ms = Some(metrics.compute.as_secs_f64() * 1000.0);
            record.bytes_scanned = Some(metrics.bytes_scanned as i64);
        }
        tracing::debug!(
            target: STATEMENTS,
            query_id = %record.query_id,
            user = record.user_name,
            state = record.state,
            elapsed_ms = record.elapsed_ms,
            reuse = record.reuse,
            error = record.error,
            "statement"
        );
        if let Some(trace) = &self.trace {
            trace.end(&Told {
                user: &record.user_name,
                sql: &record.sql,
                state: &record.state,
                error: record.error.as_deref(),
                reuse: record.reuse.as_deref(),
                rows: record.rows_returned,
            });
        }
        self.log.write(record.clone());
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end("cancelled", None, None);
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
