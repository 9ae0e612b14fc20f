//! The rows of a run: its statements in order, in a session that acts for the report's owner.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::catalog::MemTable;
use datafusion::execution::context::SessionState;
use futures::StreamExt;
use nectarine_catalog::Report;
use nectarine_planner::sql::{self, ParseOptions};

use super::parameters::Parameters;
use crate::access::Who;
use crate::command::is_query;
use crate::engine::Shared;
use crate::session::Session;
use crate::shielded::Shielded;
use crate::{EngineError, ErrorKind, Receipt, Result, Reused};

/// What the rows of one output may take in memory.
const ROWS_BYTES_MAX: usize = 1 << 30;

/// The result of one query.
pub(super) struct Section {
    /// Its text, with parameters filled in.
    pub(super) sql: String,
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<RecordBatch>,
    pub(super) receipt: Receipt,
}

impl Section {
    pub(super) fn n_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// All results of a run.
pub(super) struct Computed {
    pub(super) sections: Vec<Section>,
    /// Parameters that were used, with their values.
    pub(super) parameters: Vec<(&'static str, String)>,
}

impl Computed {
    /// Rows of all sections.
    pub(super) fn n_rows(&self) -> usize {
        self.sections.iter().map(Section::n_rows).sum()
    }

    /// How much of it was there already.
    pub(super) fn reused(&self) -> Reused {
        let all = |reused: Reused| self.sections.iter().all(|section| section.receipt.reused == reused);
        if all(Reused::Exact) {
            Reused::Exact
        } else if all(Reused::None) {
            Reused::None
        } else {
            Reused::Partial
        }
    }

    /// What that saved.
    pub(super) fn saved_ms(&self) -> f64 {
        self.sections.iter().map(|section| section.receipt.saved.as_secs_f64() * 1000.0).sum()
    }
}

/// Runs the statements of a report for a time, and looks whether its output is as expected.
pub(super) async fn compute(shared: &Arc<Shared>, report: &Report, parameters: &Parameters) -> Result<Computed> {
    let session = session(shared, report);
    let options = ParseOptions::from(session.inner.state.read().config_options().as_ref());
    let mut sections = vec![];
    let mut told: Vec<(&'static str, String)> = vec![];
    for text in &report.spec.statements {
        for value in parameters.told(text) {
            if !told.contains(&value) {
                told.push(value);
            }
        }
        let sql = parameters.fill(text);
        let is_query = sql::parse(&sql, &options)?.is_some_and(|statement| is_query(&statement));
        let answer = session.execute(&sql).await?;
        let (schema, receipt) = (answer.schema(), answer.receipt());
        let mut rows = answer.into_stream();
        let (mut batches, mut n_bytes) = (vec![], 0_usize);
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            n_bytes = n_bytes.saturating_add(batch.get_array_memory_size());
            if n_bytes > ROWS_BYTES_MAX {
                return Err(EngineError::new(ErrorKind::Resources, "the output of the report is too large")
                    .with_detail(format!("its rows take more than {} MB of memory", ROWS_BYTES_MAX >> 20))
                    .with_hint("aggregate more, or write large results with COPY .. TO"));
            }
            if batch.num_rows() > 0 {
                batches.push(batch);
            }
        }
        drop(rows);
        if is_query {
            sections.push(Section { sql, schema, batches, receipt: receipt() });
        }
    }
    let Some(last) = sections.last() else {
        return Err(EngineError::new(ErrorKind::Sql, "the report has no query"));
    };
    for condition in &report.spec.expect {
        check(&session, condition, last).await?;
    }
    Ok(Computed { sections, parameters: told })
}

/// A session as the owner of a report would have it.
fn session(shared: &Arc<Shared>, report: &Report) -> Session {
    let who = report.owner.as_ref().map_or(Who::Owner, |owner| Who::User(Arc::from(owner.as_str())));
    let session = Session::new(Arc::clone(shared), who);
    let mut state = SessionState::clone(&session.inner.state.read());
    state.config_mut().options_mut().catalog.default_schema.clone_from(&report.spec.default_schema);
    *session.inner.state.write() = Shielded(state);
    session
}

/// Fails unless a condition holds of the output: of its `row_count`, or of what it asks of a table `output`.
async fn check(session: &Session, condition: &str, section: &Section) -> Result<()> {
    let table = MemTable::try_new(Arc::clone(&section.schema), vec![section.batches.clone()])?;
    let checker = session.fork();
    checker.register_table("output", Arc::new(table));
    let sql = format!("SELECT ({condition}) AS holds FROM (SELECT count(*) AS row_count FROM output) AS output_rows");
    let batches = checker.execute(&sql).await?.collect().await?;
    let holds = batches.iter().find(|batch| batch.num_rows() > 0).and_then(|batch| {
        let values = batch.column(0).as_any().downcast_ref::<BooleanArray>()?;
        Some(values.is_valid(0) && values.value(0))
    });
    match holds {
        Some(true) => Ok(()),
        Some(false) => Err(EngineError::new(ErrorKind::Data, format!("the output is not as expected: {condition}"))
            .with_detail(format!("it has {} rows", section.n_rows()))),
        None => Err(EngineError::new(ErrorKind::Sql, format!("\"{condition}\" is neither true nor false"))
            .with_hint("EXPECT row_count > 0, or EXPECT (SELECT min(x) FROM output) > 0")),
    }
}
