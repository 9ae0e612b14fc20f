//! Programs that ran, for ever: their canonical forms and how they came to be, packed, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::{BATCH, among, among_values, is_common};
use crate::Fingerprint;
use crate::cache::packing::{pack, unpack};
use crate::cache::{NamedText, ProgramRecord, ProgramRun, ProgramSource, StoredProgram};

/// How an encoding lies in its row.
const PACKED: i64 = 1;

/// The form on disk of a source. Fields may be added if they have a default; none may change.
#[derive(Serialize, Deserialize)]
struct Stored {
    schema: String,
    engine: String,
    #[serde(default)]
    settings: Vec<(String, String)>,
    /// Texts, by their ids.
    inputs: Vec<i64>,
    views: Vec<i64>,
    functions: Vec<i64>,
    /// Last, because the dictionary ends like this.
    sql: String,
}

pub(in super::super) async fn save_program_runs(lane: &mut Lane, runs: &[ProgramRun]) -> Result<(), Fault> {
    if runs.is_empty() {
        // A closed store is told all the same.
        lane.read()?;
        return Ok(());
    }
    let mut note = lane.note().await?;
    save(&mut note, runs).await?;
    Ok(note.commit().await?)
}

pub(in super::super) async fn program_source(
    lane: &mut Lane,
    source: &Fingerprint,
) -> Result<Option<StoredProgram>, Fault> {
    let select = sqlx::query(SELECT_SOURCE).bind(source.as_bytes().to_vec());
    let row = select.fetch_optional(lane.read()?).await?;
    match row {
        Some(row) => Ok(complete(lane.read()?, &[row]).await?.pop()),
        None => Ok(None),
    }
}

pub(in super::super) async fn program_sources(
    lane: &mut Lane,
    after: Option<&Fingerprint>,
    limit: usize,
) -> Result<Vec<StoredProgram>, Fault> {
    let mut after = after.map_or_else(Vec::new, |after| after.as_bytes().to_vec());
    let mut page = vec![];
    while page.len() < limit {
        let select = sqlx::query(SELECT_PAGE).bind(after).bind((limit - page.len()).min(BATCH) as i64);
        let rows = select.fetch_all(lane.read()?).await?;
        let Some(last) = rows.last() else { break };
        after = last.try_get(0)?;
        page.extend(complete(lane.read()?, &rows).await?);
    }
    Ok(page)
}

const SELECT_SOURCE: &str = "SELECT s.source, s.program, s.content, s.first_run_at, s.last_run_at, s.runs,
    COALESCE(OCTET_LENGTH(p.encoding) + OCTET_LENGTH(p.description), 0)
    FROM program_sources AS s LEFT JOIN cache_programs AS p ON p.program = s.program WHERE s.source = $1";
const SELECT_PAGE: &str = "SELECT s.source, s.program, s.content, s.first_run_at, s.last_run_at, s.runs,
    COALESCE(OCTET_LENGTH(p.encoding) + OCTET_LENGTH(p.description), 0)
    FROM program_sources AS s LEFT JOIN cache_programs AS p ON p.program = s.program
    WHERE s.source > $1 ORDER BY s.source LIMIT $2";

/// Two fingerprints in the row, two in its indexes, three times and a count, and what rows cost in general.
const ROW_BYTES: u64 = 4 * 32 + 4 * 8 + 24;

/// Rows of sources with their texts; damaged ones are left out.
async fn complete(connection: &mut SqliteConnection, rows: &[SqliteRow]) -> Result<Vec<StoredProgram>, Fault> {
    let read = |row: &SqliteRow| {
        let content: &[u8] = row.try_get(2).ok()?;
        let stored: Stored = serde_json::from_slice(&unpack(content)?).ok()?;
        let beside: i64 = row.try_get(6).ok()?;
        let program = StoredProgram {
            source: Fingerprint::from_slice(row.try_get(0).ok()?)?,
            program: Fingerprint::from_slice(row.try_get(1).ok()?)?,
            how: ProgramSource::default(),
            first_run_at: row.try_get(3).ok()?,
            last_run_at: row.try_get(4).ok()?,
            runs: row.try_get::<i64, _>(5).ok()?.cast_unsigned(),
            bytes_stored: content.len() as u64 + beside.cast_unsigned() + ROW_BYTES,
        };
        Some((stored, program))
    };
    let found: Vec<(Stored, StoredProgram)> = rows.iter().filter_map(read).collect();
    let ids = found.iter().flat_map(|(stored, _)| stored.inputs.iter().chain(&stored.views).chain(&stored.functions));
    let texts = texts(connection, ids.copied().collect()).await?;
    let named = |ids: &[i64]| ids.iter().filter_map(|id| texts.get(id).cloned()).collect();
    let whole = |(stored, program): (Stored, StoredProgram)| {
        let how = ProgramSource {
            inputs: named(&stored.inputs),
            views: named(&stored.views),
            functions: named(&stored.functions),
            sql: stored.sql,
            default_schema: stored.schema,
            engine_version: stored.engine,
            settings: stored.settings,
        };
        StoredProgram { how, ..program }
    };
    Ok(found.into_iter().map(whole).collect())
}

async fn texts(connection: &mut SqliteConnection, ids: BTreeSet<i64>) -> Result<BTreeMap<i64, NamedText>, Fault> {
    let ids: Vec<i64> = ids.into_iter().collect();
    let mut texts = BTreeMap::new();
    for batch in ids.chunks(BATCH) {
        let mut select = among_values("SELECT id, content FROM program_texts WHERE id", batch.iter().copied());
        for row in select.build().persistent(is_common(batch.len())).fetch_all(&mut *connection).await? {
            let text = row.try_get(1).ok().and_then(unpack).and_then(|text| serde_json::from_slice(&text).ok());
            texts.extend(row.try_get(0).ok().zip(text));
        }
    }
    Ok(texts)
}

/// Writes runs down within a transaction; the id of each source that is known then.
pub(super) async fn save(connection: &mut SqliteConnection, runs: &[ProgramRun]) -> Result<Vec<Option<i64>>, Fault> {
    let mut ids = vec![];
    for run in runs {
        let update = sqlx::query_scalar(
            "UPDATE program_sources SET runs = runs + $2,
                first_run_at = CASE WHEN $3 < first_run_at THEN $3 ELSE first_run_at END,
                last_run_at = CASE WHEN $4 > last_run_at THEN $4 ELSE last_run_at END
             WHERE source = $1 RETURNING id",
        );
        let update = update.bind(run.source.as_bytes().to_vec()).bind(run.runs.cast_signed());
        let known = update.bind(run.first_run_at).bind(run.last_run_at).fetch_optional(&mut *connection).await?;
        ids.push(match (known, &run.what) {
            (Some(id), _) => Some(id),
            (None, Some(what)) => Some(insert(connection, run, what).await?),
            (None, None) => None,
        });
    }
    Ok(ids)
}

async fn insert(
    connection: &mut SqliteConnection,
    run: &ProgramRun,
    what: &Arc<(ProgramRecord, ProgramSource)>,
) -> Result<i64, Fault> {
    let (program, how) = what.as_ref();
    save_programs(connection, &BTreeMap::from([(program.program, program)])).await?;
    let stored = Stored {
        schema: how.default_schema.clone(),
        engine: how.engine_version.clone(),
        settings: how.settings.clone(),
        inputs: text_ids(connection, &how.inputs).await?,
        views: text_ids(connection, &how.views).await?,
        functions: text_ids(connection, &how.functions).await?,
        sql: how.sql.clone(),
    };
    let id: i64 =
        sqlx::query_scalar("SELECT COALESCE(MAX(id) + 1, 1) FROM program_sources").fetch_one(&mut *connection).await?;
    let insert = sqlx::query(
        "INSERT INTO program_sources (id, source, program, content, first_run_at, last_run_at, runs)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    );
    insert
        .bind(id)
        .bind(run.source.as_bytes().to_vec())
        .bind(run.program.as_bytes().to_vec())
        .bind(packed_json(&stored)?)
        .bind(run.first_run_at)
        .bind(run.last_run_at)
        .bind(run.runs.cast_signed())
        .execute(connection)
        .await?;
    Ok(id)
}

/// The ids of texts, which are written down if they are new.
async fn text_ids(connection: &mut SqliteConnection, texts: &[NamedText]) -> Result<Vec<i64>, Fault> {
    let mut ids = vec![];
    for text in texts {
        let digest = text.digest().as_bytes().to_vec();
        let select = sqlx::query_scalar("SELECT id FROM program_texts WHERE digest = $1").bind(&digest);
        let known: Option<i64> = select.fetch_optional(&mut *connection).await?;
        ids.push(match known {
            Some(id) => id,
            None => {
                let next = sqlx::query_scalar("SELECT COALESCE(MAX(id) + 1, 1) FROM program_texts");
                let id: i64 = next.fetch_one(&mut *connection).await?;
                let insert = sqlx::query("INSERT INTO program_texts (id, digest, content) VALUES ($1, $2, $3)");
                insert.bind(id).bind(&digest).bind(packed_json(text)?).execute(&mut *connection).await?;
                id
            }
        });
    }
    Ok(ids)
}

/// Writes down canonical forms that are new, or other than what is there under their name.
pub(super) async fn save_programs(
    connection: &mut SqliteConnection,
    programs: &BTreeMap<Fingerprint, &ProgramRecord>,
) -> Result<(), Fault> {
    let mut select = among("SELECT program, encoding, packing FROM cache_programs WHERE program", programs.keys());
    let rows = select.build().persistent(is_common(programs.len())).fetch_all(&mut *connection).await?;
    let known: BTreeMap<Fingerprint, Vec<u8>> = rows
        .iter()
        .filter_map(|row| Some((Fingerprint::from_slice(row.try_get(0).ok()?)?, encoding(row, 1, 2)?)))
        .collect();
    for (name, program) in programs {
        if known.get(name).is_some_and(|encoding| encoding[..] == program.encoding[..]) {
            continue;
        }
        let upsert = sqlx::query(
            "INSERT INTO cache_programs (program, encoding, description, packing) VALUES ($1, $2, $3, $4)
             ON CONFLICT (program) DO UPDATE SET encoding = excluded.encoding, description = excluded.description,
             packing = excluded.packing",
        );
        let packed = pack(&program.encoding).map_err(sqlx::Error::Io)?;
        let upsert = upsert.bind(name.as_bytes().to_vec()).bind(packed).bind(&program.description).bind(PACKED);
        upsert.execute(&mut *connection).await?;
    }
    Ok(())
}

/// The encoding in a row, given its column and that of its packing; `None` if it cannot be read.
pub(super) fn encoding(row: &SqliteRow, column: usize, packing: usize) -> Option<Vec<u8>> {
    let encoding: &[u8] = row.try_get(column).ok()?;
    match row.try_get::<i64, _>(packing).ok()? {
        0 => Some(encoding.to_vec()),
        PACKED => unpack(encoding),
        _ => None,
    }
}

fn packed_json<T: Serialize>(value: &T) -> Result<Vec<u8>, Fault> {
    let json = serde_json::to_vec(value).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    Ok(pack(&json).map_err(sqlx::Error::Io)?)
}
