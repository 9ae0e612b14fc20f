//! [`read`]: the jobs that a home ran, from what its system tables hold.
//!
//! ```text
//!   system.queries         when, how long, what was saved, how many extents were new
//!   system.lookups         which prefixes each asked for
//!   system.cache_entries   what prefixes take and leave, of those that are kept
//!   system.evictions       the same of those that went
//! ```
//!
//! The tables hold the newest statements and evictions only, so that is what is replayed.

mod rebuild;

use std::path::Path;

use anyhow::{Context, Result};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use nectarine_engine::{Engine, Session};

use self::rebuild::{RecordedEntry, RecordedLookup, RecordedQuery, Records, rebuild};
use super::workload::Workload;

const QUERIES: &str = "SELECT query_id, CAST(started_at AS BIGINT), CAST(elapsed_ms * 1000 AS BIGINT), \
     CAST(coalesce(saved_ms, 0) * 1000 AS BIGINT), coalesce(extents_total, 0), coalesce(extents_reused, 0) \
     FROM system.queries WHERE state = 'finished' AND elapsed_ms IS NOT NULL";

const LOOKUPS: &str = "SELECT query_id, prefix, program, node, CAST(outcome = 'hit' AS BIGINT), \
     CAST(coalesce(detail LIKE '%over some extents%', false) AS BIGINT) FROM system.lookups \
     WHERE prefix IS NOT NULL AND program IS NOT NULL";

const ENTRIES: &str = "SELECT fingerprint, bytes, CAST(cost_ms * 1000 AS BIGINT), extents FROM system.cache_entries \
     UNION ALL SELECT fingerprint, bytes, CAST(cost_ms * 1000 AS BIGINT), 0 FROM system.evictions";

/// Opens the home, asks, and closes it. Nothing in it is changed but its log of statements.
pub(crate) async fn read(home: &Path) -> Result<Workload> {
    anyhow::ensure!(home.is_dir(), "there is no home at \"{}\"", home.display());
    let engine = Engine::builder().home(home).open().await?;
    let records = ask_all(&engine.session()).await;
    engine.shutdown().await;
    let workload = rebuild(home.display().to_string(), records?);
    anyhow::ensure!(!workload.jobs.is_empty(), "no statement in \"{}\" asked the cache for anything", home.display());
    Ok(workload)
}

async fn ask_all(session: &Session) -> Result<Records> {
    // This must leave no trace among what is kept.
    ask(session, "SET nectarine.reuse = 'off'", |_| ()).await?;
    let queries = ask(session, QUERIES, |row| RecordedQuery {
        id: row.text(0),
        started_us: row.number(1),
        elapsed_us: row.amount(2),
        saved_us: row.amount(3),
        extents: row.amount(4),
        extents_reused: row.amount(5),
    });
    let queries = queries.await?;
    let lookups = ask(session, LOOKUPS, |row| RecordedLookup {
        query: row.text(0),
        prefix: row.text(1),
        program: row.text(2),
        node: row.text(3),
        is_hit: row.number(4) != 0,
        is_segment: row.number(5) != 0,
    });
    let lookups = lookups.await?;
    let entries = ask(session, ENTRIES, |row| RecordedEntry {
        prefix: row.text(0),
        bytes: row.amount(1),
        cost_us: row.amount(2),
        extents: row.amount(3),
    });
    Ok(Records { queries, lookups, entries: entries.await? })
}

/// Runs a statement, and makes something of each row.
async fn ask<T>(session: &Session, sql: &str, of_row: impl Fn(&Row<'_>) -> T) -> Result<Vec<T>> {
    let answer = session.execute(sql).await.with_context(|| sql.to_string())?;
    let mut made = vec![];
    for batch in answer.collect().await.with_context(|| sql.to_string())? {
        made.extend((0..batch.num_rows()).map(|row| of_row(&Row { batch: &batch, row })));
    }
    Ok(made)
}

struct Row<'a> {
    batch: &'a RecordBatch,
    row: usize,
}

impl Row<'_> {
    fn text(&self, column: usize) -> String {
        let text = cast(self.batch.column(column), &DataType::Utf8).ok();
        let valid = text.filter(|text| text.is_valid(self.row));
        valid.map(|text| text.as_string::<i32>().value(self.row).to_string()).unwrap_or_default()
    }

    fn number(&self, column: usize) -> i64 {
        let numbers = self.batch.column(column).as_primitive_opt::<Int64Type>();
        numbers.filter(|numbers| numbers.is_valid(self.row)).map_or(0, |numbers| numbers.value(self.row))
    }

    /// Never below 0.
    fn amount(&self, column: usize) -> u64 {
        self.number(column).try_into().unwrap_or(0)
    }
}
