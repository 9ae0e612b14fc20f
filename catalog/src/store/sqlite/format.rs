//! Which format version a file has: refusing what is not ours to touch, creating and raising the rest.
//!
//! The version is SQLite's `user_version`, the mark that a file is ours its `application_id`. Both live in the file's
//! header, so they can be read before anything is created, and change in one transaction with the tables.
//!
//! Refused files stay as they were, byte for byte: the first look changes nothing, and the journal mode is not touched
//! before it. Another process may create or raise the file between the look and the transaction that would; therefore
//! that transaction looks again.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::fault::{Fault, is_busy};
use crate::CatalogError;

/// `MIGRATIONS[n]` raises version n to n + 1. Released ones never change.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_first.sql"),
    include_str!("../migrations/0002_cache.sql"),
    include_str!("../migrations/0003_reuse.sql"),
    include_str!("../migrations/0004_process.sql"),
    include_str!("../migrations/0005_lookups.sql"),
    include_str!("../migrations/0006_extents_reused.sql"),
    include_str!("../migrations/0007_relatives.sql"),
    include_str!("../migrations/0008_space.sql"),
    include_str!("../migrations/0009_provenance.sql"),
    include_str!("../migrations/0010_named.sql"),
    include_str!("../migrations/0011_pins.sql"),
    include_str!("../migrations/0012_access.sql"),
    include_str!("../migrations/0013_owners.sql"),
    include_str!("../migrations/0014_purges.sql"),
    include_str!("../migrations/0015_reports.sql"),
    include_str!("../migrations/0016_jobs.sql"),
];

/// The newest version this build knows.
pub(super) const NEWEST: i64 = MIGRATIONS.len() as i64;

/// `Nect` in ASCII.
pub(super) const APPLICATION_ID: i64 = 0x4e65_6374;

/// How long to sleep before asking again for what SQLite does not wait for itself.
const PAUSE: Duration = Duration::from_millis(5);

/// Opens the file for writing, with the newest version's tables in it.
pub(super) async fn open(
    options: &SqliteConnectOptions,
    path: &Path,
    patience: Duration,
) -> Result<SqliteConnection, Fault> {
    if size(path) == 1 {
        // SQLite takes a single byte for an empty file and would write over it.
        return Err(Fault::damaged(format!("\"{}\"", path.display()), "file is not a database"));
    }
    // A process that was killed leaves a log beside the file, and the last writer to close would fold it in. Without a
    // log it is the other way round: a reader would leave an empty one behind, which a writer tidies up.
    if size(path) > 0 && size(&beside(path, "-wal")) > 0 {
        let (reader, _) = look(options.clone().read_only(true), path).await?;
        reader.close().await?;
    }
    let (mut connection, version) = look(options.clone().create_if_missing(true), path).await?;
    use_write_ahead_log(&mut connection, patience).await?;
    if version < NEWEST {
        raise(&mut connection, path).await?;
    }
    Ok(connection)
}

/// Connects and asks for the version. A refused file is closed at once, so that nothing is left of the look.
async fn look(options: SqliteConnectOptions, path: &Path) -> Result<(SqliteConnection, i64), Fault> {
    let mut connection = options.connect().await?;
    match version(&mut connection, path).await {
        Ok(version) => Ok((connection, version)),
        Err(fault) => {
            // What closing has to say is a consequence.
            let _ = connection.close().await;
            Err(fault)
        }
    }
}

/// The file's version, 0 if it is empty; fails if it is too new or another program's.
async fn version(connection: &mut SqliteConnection, path: &Path) -> Result<i64, Fault> {
    // One transaction, or another process could turn an empty file into a home between two of the questions.
    let mut snapshot = connection.begin().await?;
    let version = judge(&mut snapshot, path).await?;
    snapshot.rollback().await?;
    Ok(version)
}

async fn judge(connection: &mut SqliteConnection, path: &Path) -> Result<i64, Fault> {
    let application: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *connection).await?;
    let version: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *connection).await?;
    let n_objects: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_schema").fetch_one(connection).await?;
    let empty = application == 0 && version == 0 && n_objects == 0;
    if !empty && (application != APPLICATION_ID || version < 1) {
        let detail = "it is an SQLite database, but not one that nectarine made";
        return Err(Fault::damaged(format!("\"{}\"", path.display()), detail));
    }
    if version > NEWEST {
        let location = path.display().to_string();
        return Err(CatalogError::NewerFormat { location, found: version, supported: NEWEST }.into());
    }
    Ok(version)
}

/// Switches to the write-ahead log, where readers and a writer do not wait for each other. The file remembers it.
async fn use_write_ahead_log(connection: &mut SqliteConnection, patience: Duration) -> Result<(), Fault> {
    let deadline = Instant::now() + patience;
    loop {
        let mode = sqlx::query_scalar::<_, String>("PRAGMA journal_mode = WAL").fetch_one(&mut *connection).await;
        match mode {
            Ok(mode) => {
                if mode != "wal" {
                    // Some network file systems cannot share memory. Correct all the same, only with more waiting.
                    tracing::warn!(mode, "the metadata store cannot use a write-ahead log here");
                }
                return Ok(());
            }
            // Two processes that create a home meet here: SQLite's busy timeout does not cover this switch.
            Err(error) if is_busy(&error) && Instant::now() < deadline => tokio::time::sleep(PAUSE).await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Runs the migrations that the file has not seen, all or none.
async fn raise(connection: &mut SqliteConnection, path: &Path) -> Result<(), Fault> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let version = judge(&mut transaction, path).await?;
    // `judge` answers 0..=NEWEST; whoever came first has left nothing to do.
    for migration in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or_default()) {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await?;
    }
    let marks = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {NEWEST}");
    sqlx::raw_sql(AssertSqlSafe(marks)).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// 0 also for a file that is not there. Opening and closing the file ourselves to learn more would drop this process's
/// locks on it, which SQLite relies on when the same file is open a second time.
fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
