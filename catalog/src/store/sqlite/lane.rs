//! [`Lane`]: a connection that stays open, and the two kinds of transaction that write through it.
//!
//! `change` and `note` return an open transaction; dropping it without `commit`, as an early `?` does, rolls it back,
//! also when the caller's future is cancelled.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Sqlite, Transaction};

use super::fault::Fault;
use crate::store::Versions;

/// Rows the driver's thread may be ahead of us. Its default of 50 makes the two threads wake each other all the time; many
/// more would be megabytes, which the C library's allocator keeps.
const ROWS_AHEAD: usize = 512;

/// How every connection to `path` is made; nothing here writes to the file.
pub(super) fn options(path: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
    // The driver takes milliseconds in 31 bits and panics above.
    let busy_timeout = busy_timeout.min(Duration::from_millis(i32::MAX as u64));
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(busy_timeout)
        .foreign_keys(true)
        // Deleted records are overwritten where that costs no more writing.
        .pragma("secure_delete", "FAST")
        .row_buffer_size(ROWS_AHEAD)
        .thread_name(|number| format!("nectarine-metadata-{number}"))
        .disable_statement_logging()
}

/// How much of a commit must be on disk before it counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    /// Survives the machine.
    Full,
    /// Survives the process; SQLite's log may reach the disk later, never in part.
    Normal,
}

/// A connection until it is closed.
pub(super) struct Lane {
    connection: Option<SqliteConnection>,
    /// What the connection was last told; `None` when that is not certain.
    sync: Option<Sync>,
}

impl Lane {
    pub(super) fn new(connection: SqliteConnection) -> Self {
        Self { connection: Some(connection), sync: None }
    }

    pub(super) async fn open(options: &SqliteConnectOptions) -> Result<Self, Fault> {
        Ok(Self::new(options.connect().await?))
    }

    /// The connection, for reading; every statement sees one snapshot.
    pub(super) fn read(&mut self) -> Result<&mut SqliteConnection, Fault> {
        self.connection.as_mut().ok_or(Fault::Closed)
    }

    pub(super) async fn versions(&mut self) -> Result<Versions, Fault> {
        let versions = sqlx::query_as(
            "SELECT catalog_state.version, cache_state.version, cache_state.purges FROM catalog_state, cache_state",
        );
        let (catalog, cache, purges): (i64, i64, i64) = versions.fetch_one(self.read()?).await?;
        Ok(Versions { catalog, cache, purges })
    }

    /// Starts a change of the catalog: durable, and the catalog's version grows with it.
    ///
    /// The version is raised first. SQLite lets one writer in anyway; on PostgreSQL that row's lock will do the same.
    pub(super) async fn change(&mut self) -> Result<Transaction<'_, Sqlite>, Fault> {
        let mut transaction = self.begin(Sync::Full).await?;
        sqlx::query("UPDATE catalog_state SET version = version + 1").execute(&mut *transaction).await?;
        Ok(transaction)
    }

    /// Starts a durable transaction about what no statement plans with; the catalog's version stays.
    pub(super) async fn durable(&mut self) -> Result<Transaction<'_, Sqlite>, Fault> {
        self.begin(Sync::Full).await
    }

    /// Starts a transaction about what may be learnt again; the catalog's version stays.
    pub(super) async fn note(&mut self) -> Result<Transaction<'_, Sqlite>, Fault> {
        self.begin(Sync::Normal).await
    }

    /// From now on everything that is deleted through this connection is overwritten.
    pub(super) async fn overwrite_deleted(&mut self) -> Result<(), Fault> {
        sqlx::query("PRAGMA secure_delete = ON").execute(self.read()?).await?;
        Ok(())
    }

    /// Empties the log, which has pages as they were before. If somebody reads them now it is left as it is: whoever writes
    /// next begins it anew.
    pub(super) async fn wipe(&mut self) -> Result<(), Fault> {
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(self.read()?).await?;
        Ok(())
    }

    async fn begin(&mut self, sync: Sync) -> Result<Transaction<'_, Sqlite>, Fault> {
        let connection = self.connection.as_mut().ok_or(Fault::Closed)?;
        if self.sync != Some(sync) {
            // Unknown first: a caller that gives up while waiting must not leave a wrong belief behind.
            self.sync = None;
            let pragma = match sync {
                Sync::Full => "PRAGMA synchronous = FULL",
                Sync::Normal => "PRAGMA synchronous = NORMAL",
            };
            sqlx::query(pragma).execute(&mut *connection).await?;
            self.sync = Some(sync);
        }
        Ok(connection.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// Closes the connection; what was committed is on disk afterwards. Closing twice is fine.
    pub(super) async fn close(&mut self) -> Result<(), sqlx::Error> {
        let Some(mut connection) = self.connection.take() else { return Ok(()) };
        if self.sync == Some(Sync::Normal) {
            // Others may have the file open, then closing alone would leave our last notes unsynced.
            sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut connection).await?;
        }
        connection.close().await
    }
}
