//! `PIN`, `UNPIN`: a result stays, or may be evicted again.
//!
//! ```text
//!   PIN query                      its result over today's extents; computed now, unless it is there
//!   PIN ENTRY 'fingerprint'        one result that is there
//!   PIN MATERIALIZED VIEW name     the newest result of its program, also when its tables grow
//! ```
//!
//! Keeps true   what is pinned comes to no more than the low-water mark of the budget, so that there is room beside it.
//! Says         what was pinned, and how large it is.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::{DESCRIPTION_BYTES_MAX, Fingerprint, Pin, PinOutcome, PinSubject};
use nectarine_planner::canonical::PrefixKind;
use nectarine_planner::node::{short, size};
use nectarine_planner::reuse::ReuseMode;
use nectarine_planner::sql::PinTarget;
use sqlparser::ast;

use crate::command::StatementRun;
use crate::ddl::{materialized_view, rows_of};
use crate::engine::options;
use crate::managed::now_micros;
use crate::redact::redact;
use crate::reuse::{CacheAdmin, Root, StatementReuse, one_line};
use crate::settings::reuse_mode;
use crate::{Answer, AnswerKind, EngineError, ErrorKind, Notice, Result};

/// How often a result is computed that somebody evicts before it is pinned, or that found no room.
const TRIES_MAX: usize = 3;
/// What to do with other things that have a name.
const NO_VIEW: &str = "PIN takes a query as well; ALTER DERIVED TABLE .. SET PINNED copies the rows of a derived table";

pub(crate) async fn pin(run: &StatementRun<'_>, target: PinTarget) -> Result<Answer> {
    match target {
        PinTarget::Query { statement, text } => {
            let plan = query(run, *statement, "PIN").await?;
            let run = StatementRun { text: &text, must_keep: true, ..*run };
            pin_rows(&run, plan, shown(&text), |root| PinSubject::Query(root.source)).await
        }
        PinTarget::View(name) => {
            let table = materialized_view(run, &name, NO_VIEW)?;
            let plan = rows_of(run, table).await?;
            // Whoever asks where the result comes from is told a query that can be run again.
            let name = &table.name;
            let quoted = |part: &str| part.replace('"', "\"\"");
            let text = format!("SELECT * FROM \"{}\".\"{}\"", quoted(&name.schema), quoted(&name.name));
            let run = StatementRun { text: &text, must_keep: true, ..*run };
            pin_rows(&run, plan, name.to_string(), |_| PinSubject::View(table.id)).await
        }
        PinTarget::Entry(beginning) => {
            let reuse = &run.session.inner.shared.reuse;
            let key = CacheAdmin::new(reuse.clone()).find(&beginning).await?;
            let gone = || not_kept(&short(&key), "it was dropped at this moment");
            let entry = reuse.cache.entry(&key).await?.ok_or_else(gone)?;
            let subject = PinSubject::Entry(key);
            match add(run, subject, &entry.description, entry.program, key).await? {
                Some(bytes) => answer(run, "pinned", &[told(subject, &entry.description, key, bytes)], vec![]),
                None => Err(gone()),
            }
        }
    }
}

/// Computes what is to be pinned, unless it is there, and pins it.
async fn pin_rows(
    run: &StatementRun<'_>,
    plan: LogicalPlan,
    what: String,
    subject_of: impl Fn(&Root) -> PinSubject,
) -> Result<Answer> {
    let reuse = &run.session.inner.shared.reuse;
    let mode = &options(run.state.config_options()).reuse;
    if !matches!(reuse_mode(mode)?, ReuseMode::On | ReuseMode::Refresh) {
        return Err(EngineError::new(ErrorKind::Sql, format!("cannot pin \"{what}\""))
            .with_detail(format!("with nectarine.reuse = '{mode}' nothing is kept"))
            .with_hint("SET nectarine.reuse = 'on'"));
    }
    let mut notices;
    for n_tries in 1..=TRIES_MAX {
        let warmed = run.warm(plan.clone()).await?;
        notices = warmed.notices;
        let Some(root) = warmed.root else {
            let reason = warmed.uncacheable.unwrap_or_else(|| "it reads no table".to_string());
            return Err(not_kept(&what, &reason));
        };
        if root.kind == PrefixKind::Scan {
            return Err(not_kept(&what, "it is what its table holds, and nothing is computed"));
        }
        // A store on another machine may take a moment.
        reuse.background.finish().await;
        let subject = subject_of(&root);
        if let Some(bytes) = add(run, subject, &what, root.program, root.key).await? {
            return answer(run, "pinned", &[told(subject, &what, root.key, bytes)], notices);
        }
        if n_tries < TRIES_MAX {
            reuse.caretaker.evictor.make_room(true).await?;
        }
    }
    if let Some(trouble) = reuse.trouble.now() {
        return Err(not_kept(&what, &format!("the derived store can not be written: {trouble}")));
    }
    let (_, levels) = reuse.caretaker.ledger.usage();
    let limit = &options(run.state.config_options()).cache_entry_limit;
    let most = size(levels.entry_bytes_max());
    let detail = format!("its result found no room: one may take {most} of the budget, and no more than {limit}");
    Err(not_kept(&what, &detail)
        .with_hint("raise nectarine.cache.budget and nectarine.cache.entry_limit, or UNPIN others"))
}

/// Writes a pin down; its size, or `None` if the entry is not there.
async fn add(
    run: &StatementRun<'_>,
    subject: PinSubject,
    what: &str,
    program: Fingerprint,
    key: Fingerprint,
) -> Result<Option<u64>> {
    let reuse = &run.session.inner.shared.reuse;
    let (_, levels) = reuse.caretaker.ledger.usage();
    let pin = Pin { subject, what: what.to_string(), program, key, bytes: 0, pinned_at: now_micros() };
    match reuse.pins.store.pin(&pin, levels.low).await? {
        PinOutcome::Pinned { bytes } => Ok(Some(bytes)),
        PinOutcome::NoEntry => Ok(None),
        PinOutcome::TooMuch { bytes } => {
            let (all, low, budget) = (size(bytes), size(levels.low), size(levels.budget));
            let detail = format!("all that is pinned would take {all}; of a budget of {budget}, {low} may be pinned");
            Err(EngineError::new(ErrorKind::Resources, format!("cannot pin \"{what}\""))
                .with_detail(detail)
                .with_hint("UNPIN others (system.pins lists them), or raise nectarine.cache.budget"))
        }
    }
}

pub(crate) async fn unpin(run: &StatementRun<'_>, target: PinTarget) -> Result<Answer> {
    let reuse = &run.session.inner.shared.reuse;
    let (subjects, what) = match target {
        PinTarget::View(name) => {
            let table = materialized_view(run, &name, NO_VIEW)?;
            (vec![PinSubject::View(table.id)], table.name.to_string())
        }
        PinTarget::Query { statement, text } => {
            let plan = query(run, *statement, "UNPIN").await?;
            let what = shown(&text);
            let root = StatementReuse::new(reuse, run.state, run.catalog)?.root(&plan).await?;
            // Whatever its tables have now: it is the query that was pinned.
            (root.map(|root| PinSubject::Query(root.source)).into_iter().collect(), what)
        }
        PinTarget::Entry(beginning) => return unpin_entry(run, &beginning).await,
    };
    take(run, &subjects, &what).await
}

/// An entry is named by its fingerprint, also one that is not there at the moment.
async fn unpin_entry(run: &StatementRun<'_>, beginning: &str) -> Result<Answer> {
    let beginning = beginning.trim().to_ascii_lowercase();
    let pins = run.session.inner.shared.reuse.pins.all().await?;
    let mut found: Vec<&Pin> = pins.iter().filter(|pin| pin.key.to_string().starts_with(&beginning)).collect();
    if found.iter().any(|pin| pin.key != found[0].key) {
        let message = format!("several pinned results start with \"{beginning}\"");
        return Err(EngineError::new(ErrorKind::Sql, message).with_hint("give more of the fingerprint"));
    }
    // That of a view is the view's: it would be there again with its next result.
    if let Some(view) = found.iter().find_map(|pin| match pin.subject {
        PinSubject::View(id) => run.catalog.view.tables.values().find(|table| table.id == id),
        PinSubject::Entry(_) | PinSubject::Query(_) => None,
    }) {
        let message = format!("\"{beginning}\" is pinned as the result of \"{}\"", view.name);
        return Err(
            EngineError::new(ErrorKind::Sql, message).with_hint(format!("UNPIN MATERIALIZED VIEW {}", view.name))
        );
    }
    found.retain(|pin| !matches!(pin.subject, PinSubject::View(_)));
    let subjects: Vec<PinSubject> = found.iter().map(|pin| pin.subject).collect();
    take(run, &subjects, &beginning).await
}

async fn take(run: &StatementRun<'_>, subjects: &[PinSubject], what: &str) -> Result<Answer> {
    let mut gone = vec![];
    for subject in subjects {
        if let Some(pin) = run.session.inner.shared.reuse.pins.store.unpin(subject).await? {
            let what = if matches!(subject, PinSubject::View(_)) { what } else { &pin.what };
            gone.push(told(*subject, what, pin.key, pin.bytes));
        }
    }
    match gone.is_empty() {
        false => answer(run, "unpinned", &gone, vec![]),
        true => Err(EngineError::new(ErrorKind::Sql, format!("\"{what}\" is not pinned"))
            .with_hint("system.pins lists what is; UNPIN ENTRY '<fingerprint>' takes one of them")),
    }
}

/// The plan of a query; nothing else has a result.
async fn query(run: &StatementRun<'_>, statement: DFStatement, verb: &str) -> Result<LogicalPlan> {
    let is_query = match &statement {
        DFStatement::Statement(inner) => matches!(inner.as_ref(), ast::Statement::Query(_)),
        _ => false,
    };
    match is_query {
        true => Ok(Box::pin(run.state.statement_to_plan(statement)).await?),
        false => {
            let message = format!("{verb} takes a query, ENTRY '..' or MATERIALIZED VIEW");
            Err(EngineError::new(ErrorKind::Sql, message))
        }
    }
}

fn not_kept(what: &str, reason: &str) -> EngineError {
    EngineError::new(ErrorKind::Unsupported, format!("cannot pin \"{what}\"")).with_detail(reason)
}

/// A query as it is told: one line, without secrets, cut.
fn shown(text: &str) -> String {
    let mut line = one_line(&redact(text.trim()));
    line.truncate(line.floor_char_boundary(DESCRIPTION_BYTES_MAX));
    line
}

/// One row of the answer.
struct Told {
    kind: &'static str,
    what: String,
    key: Fingerprint,
    bytes: u64,
}

fn told(subject: PinSubject, what: &str, key: Fingerprint, bytes: u64) -> Told {
    Told { kind: subject.kind(), what: what.to_string(), key, bytes }
}

fn answer(run: &StatementRun<'_>, outcome: &str, rows: &[Told], notices: Vec<Notice>) -> Result<Answer> {
    let schema = schema();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|_| outcome))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.kind))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.what))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.key.to_string()))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.bytes.cast_signed()))),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(DataFusionError::from)?;
    run.record.finished(batch.num_rows() as u64);
    let stream = MemoryStream::try_new(vec![batch], schema, None)?;
    Ok(Answer::new(run.record.query_id(), AnswerKind::Rows, notices, Box::pin(stream)))
}

/// Columns of `PIN` and `UNPIN`.
pub(crate) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("outcome", DataType::Utf8, false),
        Field::new("kind", DataType::Utf8, false),
        Field::new("what", DataType::Utf8, false),
        Field::new("fingerprint", DataType::Utf8, false),
        Field::new("bytes", DataType::Int64, false),
    ]))
}
