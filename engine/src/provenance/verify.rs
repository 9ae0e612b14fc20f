//! VERIFY: entries against what is computed anew, each by itself. One that differs goes, with all that were made from it.
//!
//! ```text
//!   a query      its plan over today's extents: all prefixes that have entries, and all entries over some of the extents
//!   an entry     the statement that made it, over the extents that the entry has
//!   all          the same for each, or for a share of them
//! ```

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use nectarine_catalog::{DataScope, EntryProvenance, Fingerprint, StoredProgram};
use nectarine_planner::sql::{Percent, Subject};

use super::again::{again, gone, is_query};
use super::{answer, find_entry};
use crate::command::StatementRun;
use crate::engine::Shared;
use crate::eviction::Why;
use crate::reuse::{StatementReuse, Verified};
use crate::{Answer, EngineError, ErrorKind, Notice, Result};

/// One entry that was looked at.
struct Line {
    outcome: Verified,
    took: Duration,
}

/// What is known so far, by entry.
type Lines = BTreeMap<Fingerprint, Line>;

pub(crate) async fn verify(run: &StatementRun<'_>, subject: Subject) -> Result<Answer> {
    let shared = &run.session.inner.shared;
    shared.reuse.settled().await;
    shared.reuse.refresh().await;
    let mut lines = Lines::new();
    match subject {
        Subject::Statement(statement) => {
            let plan = Box::pin(run.state.statement_to_plan(*statement)).await?;
            if !is_query(&plan) {
                return Err(EngineError::new(ErrorKind::Sql, "VERIFY takes a query, ENTRY '..' or ALL"));
            }
            run.catalog.look_ahead(&plan).await;
            let verified = StatementReuse::new(&shared.reuse, run.state, run.catalog)?.verify(&plan, None).await?;
            lines.extend(verified.into_iter().map(|(key, outcome, took)| (key, Line { outcome, took })));
        }
        Subject::Entry(beginning) => {
            let key = find_entry(shared, &beginning).await?;
            entries(shared, &[key], &mut lines).await?;
        }
        Subject::All(share) => {
            let keys = sample(shared, share);
            entries(shared, &keys, &mut lines).await?;
        }
    }
    let evicted = evict(shared, &lines).await?;
    let n_wrong = lines.values().filter(|line| line.outcome.is_wrong()).count();
    let mut notices = vec![];
    if n_wrong > 0 {
        notices.push(Notice {
            message: format!("{n_wrong} results were wrong or damaged and are evicted"),
            hint: Some("please report results that differ: that should never happen".to_string()),
        });
    }
    answer(run, batch(&lines, &evicted)?, notices)
}

/// Some of all entries, at random.
fn sample(shared: &Shared, Percent(share): Percent) -> Vec<Fingerprint> {
    let mut keys: Vec<Fingerprint> = shared.reuse.cache.entries().into_iter().map(|entry| entry.key).collect();
    // Fingerprints are as good as random, and the query's own makes it another choice each time.
    let salt = nectarine_catalog::QueryId::new().to_string();
    let drawn = |key: &Fingerprint| {
        let mut bytes = key.as_bytes().to_vec();
        bytes.extend_from_slice(salt.as_bytes());
        *Fingerprint::of_bytes(&bytes).as_bytes()
    };
    keys.sort_by_cached_key(drawn);
    let n = (keys.len() as f64 * share / 100.0).ceil() as usize;
    keys.truncate(n);
    keys
}

/// Looks at entries, those of one statement over the same extents together.
async fn entries(shared: &Arc<Shared>, keys: &[Fingerprint], lines: &mut Lines) -> Result<()> {
    let mut programs: HashMap<Fingerprint, Option<Arc<StoredProgram>>> = HashMap::new();
    for key in keys {
        if lines.contains_key(key) {
            continue;
        }
        let started = Instant::now();
        let Some(made_of) = shared.reuse.cache.provenance(&[*key]).await?.pop() else { continue };
        let program = match made_of.source {
            Some(source) => match programs.get(&source) {
                Some(known) => known.clone(),
                None => {
                    let program = shared.reuse.cache.program_source(&source).await?.map(Arc::new);
                    programs.insert(source, program.clone());
                    program
                }
            },
            None => None,
        };
        let unknown = |reason: String| Line { outcome: Verified::Unknown(reason), took: started.elapsed() };
        let Some(program) = program else {
            lines.insert(*key, unknown("the statement that made it is not known".to_string()));
            continue;
        };
        match of_entry(shared, &program, &made_of, keys).await {
            Ok(verified) => {
                lines.extend(verified.into_iter().map(|(key, outcome, took)| (key, Line { outcome, took })));
                if !lines.contains_key(key) {
                    let reason = "its statement is planned otherwise now: settings, tables or the version have changed";
                    lines.insert(*key, unknown(reason.to_string()));
                }
            }
            Err(reason) => _ = lines.insert(*key, unknown(reason)),
        }
    }
    Ok(())
}

/// What the statement of an entry says about it, and about others of `keys` that it has to do with.
async fn of_entry(
    shared: &Arc<Shared>,
    program: &StoredProgram,
    made_of: &EntryProvenance,
    keys: &[Fingerprint],
) -> std::result::Result<Vec<(Fingerprint, Verified, Duration)>, String> {
    let told = |error: EngineError| error.message().to_string();
    let planned = again(shared, &program.how, made_of).await.map_err(told)?;
    let reuse = StatementReuse::new(&shared.reuse, planned.planning.state(), &planned.catalog).map_err(told)?;
    let outcome = reuse.verify(&planned.plan, Some(keys)).await;
    // Only now is known what its tables have.
    match (gone(&planned, made_of), outcome) {
        (Some(gone), _) => Err(gone),
        (None, outcome) => outcome.map_err(told),
    }
}

/// Drops what is wrong, and what was made from it; by the entry that is the reason.
async fn evict(shared: &Arc<Shared>, lines: &Lines) -> Result<BTreeMap<Fingerprint, Fingerprint>> {
    let mut evicted = BTreeMap::new();
    for (key, line) in lines.iter().filter(|(_, line)| line.outcome.is_wrong()) {
        // What lies damaged was right when others were made from it.
        if matches!(line.outcome, Verified::Differs(_)) {
            let scope = DataScope { entries: vec![*key], ..DataScope::default() };
            for made in shared.reuse.cache.dependants(&scope).await? {
                evicted.entry(made).or_insert(*key);
            }
        }
        evicted.insert(*key, *key);
    }
    let keys: Vec<Fingerprint> = evicted.keys().copied().collect();
    if !keys.is_empty() {
        shared.reuse.drop_entries(&keys, Some(Why::Wrong)).await;
        shared.reuse.fast_path.clear();
    }
    Ok(evicted)
}

/// One row for each entry.
fn batch(lines: &Lines, evicted: &BTreeMap<Fingerprint, Fingerprint>) -> Result<RecordBatch> {
    let schema = verify_schema();
    let (mut keys, mut outcomes, mut details, mut times) = (vec![], vec![], vec![], vec![]);
    for (key, line) in lines {
        let (word, detail) = match &line.outcome {
            Verified::Same => ("same", None),
            Verified::Differs(what) => ("different", Some(what.clone())),
            Verified::Damaged(what) => ("damaged", Some(what.clone())),
            Verified::Unknown(reason) => ("not verified", Some(reason.clone())),
        };
        keys.push(key.to_string());
        outcomes.push(word);
        details.push(detail);
        times.push(Some(line.took.as_secs_f64() * 1000.0));
    }
    for (key, reason) in evicted.iter().filter(|(key, _)| !lines.contains_key(key)) {
        keys.push(key.to_string());
        outcomes.push("evicted");
        details.push(Some(format!("it was made from {reason}")));
        times.push(None);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(keys)),
        Arc::new(StringArray::from(outcomes)),
        Arc::new(details.into_iter().collect::<StringArray>()),
        Arc::new(Float64Array::from(times)),
    ];
    Ok(RecordBatch::try_new(schema, columns).map_err(DataFusionError::from)?)
}

/// Columns of `VERIFY`.
pub(crate) fn verify_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("entry", DataType::Utf8, false),
        Field::new("outcome", DataType::Utf8, false),
        Field::new("detail", DataType::Utf8, true),
        Field::new("elapsed_ms", DataType::Float64, true),
    ]))
}
