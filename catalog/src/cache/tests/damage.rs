//! Damaged records: left out, never in the way.

use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tempfile::TempDir;

use super::{add, entry, key, on};
use crate::CatalogError;

async fn damage(path: &Path, sql: &str) {
    let mut connection: SqliteConnection =
        SqliteConnectOptions::new().filename(path).foreign_keys(false).connect().await.expect("a connection");
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.expect(sql);
    connection.close().await.expect("closed");
}

async fn home() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metadata.db");
    add(&on(&path).await, 0..3).await;
    (folder, path)
}

fn hex(number: u64) -> String {
    format!("X'{}'", key(number))
}

#[tokio::test]
async fn a_damaged_summary_is_no_entry() {
    for value in ["X''", "X'01'", "'text'", "7", "zeroblob(138)"] {
        let (_folder, path) = home().await;
        let running = on(&path).await;
        damage(&path, &format!("UPDATE cache_entries SET summary = {value} WHERE entry_key = {}", hex(1))).await;
        let cache = on(&path).await;
        assert_eq!(cache.totals().entries, 2, "{value}");
        assert_eq!(cache.lookup(&key(1)), None);
        let error = cache.entry(&key(1)).await.expect_err("damaged");
        assert!(matches!(error, CatalogError::Damaged { .. }), "{error:?}");
        assert_eq!(cache.page(None, 10).await.expect("a page").len(), 2);

        // Counting does not stumble, and the next one who computes it makes it good.
        running.used(&key(1), 1);
        running.flush().await.expect("written");
        assert!(cache.add(entry(1).0, entry(1).1).await.expect("an answer"));
        assert_eq!(cache.entry(&key(1)).await.expect("an answer"), Some(entry(1).0));
        running.refresh().await.expect("refreshed");
        assert_eq!(running.lookup(&key(1)), cache.lookup(&key(1)));
    }
}

#[tokio::test]
async fn an_entry_comes_whole_or_not_at_all() {
    for sql in [
        "DELETE FROM cache_parts WHERE position = 1 AND entry_id = $id",
        "DELETE FROM cache_entry_inputs WHERE position = 0 AND entry_id = $id",
        "DELETE FROM cache_inputs WHERE input IN (SELECT input FROM cache_entry_inputs WHERE entry_id = $id)",
        "UPDATE cache_inputs SET extents = zeroblob(64) WHERE input IN (SELECT input FROM cache_entry_inputs WHERE entry_id = $id)",
        "UPDATE cache_parts SET checksum = X'00' WHERE entry_id = $id",
        "UPDATE cache_parts SET location = X'00' WHERE entry_id = $id",
        "UPDATE cache_entry_inputs SET input = 'text' WHERE entry_id = $id",
    ] {
        let (_folder, path) = home().await;
        damage(&path, &sql.replace("$id", &format!("(SELECT id FROM cache_entries WHERE entry_key = {})", hex(1))))
            .await;
        let cache = on(&path).await;
        let error = cache.entry(&key(1)).await.expect_err(sql);
        assert!(matches!(error, CatalogError::Damaged { .. }), "{error:?}");
        // Whoever finds out drops it, and can add it again.
        cache.remove(&[key(1)]).await.expect("removed");
        assert_eq!(cache.entry(&key(1)).await.expect("an answer"), None);
        assert!(cache.add(entry(1).0, entry(1).1).await.expect("an answer"));
        assert_eq!(cache.entry(&key(1)).await.expect("an answer"), Some(entry(1).0), "{sql}");
    }
}

#[tokio::test]
async fn damaged_notes_do_not_matter() {
    for sql in [
        "INSERT INTO cache_dropped (entry_key, version) VALUES ('x', 1), (X'00', 'y')",
        "INSERT INTO cache_lookups (program, lookups, last_lookup_at) VALUES (X'00', 1, 1), ('p', 'x', 'y')",
        "INSERT INTO cache_entries (id, entry_key, version, summary) VALUES (70, X'00', 1, X'00'), (80, 'text', 'x', 'y')",
        "UPDATE cache_programs SET description = X'ff'",
        "UPDATE cache_entries SET description = X'ff'",
    ] {
        let (_folder, path) = home().await;
        damage(&path, sql).await;
        let cache = on(&path).await;
        assert_eq!(cache.totals().entries, 3, "{sql}");
        cache.entry(&key(1)).await.expect("an answer").expect("an entry");
        assert_eq!(cache.page(None, 10).await.expect("a page").len(), 3, "{sql}");
        cache.remove(&[key(1)]).await.expect("removed");
        assert_eq!(cache.totals().entries, 2, "{sql}");
    }
}

#[tokio::test]
async fn a_home_with_damaged_pages_opens_with_what_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metadata.db");
    let cache = on(&path).await;
    cache.add_all(super::entries(0..2000)).await.expect("added");
    cache.inner.store.close().await;
    // The leaves of the entries' table, by what is on them.
    let mut bytes = std::fs::read(&path).expect("bytes");
    let summary = &entry(1000).0.summary();
    let needle: Vec<u8> = [summary.key.as_bytes().as_slice(), summary.program.as_bytes()].concat();
    let at = bytes.windows(needle.len()).position(|window| window == needle).expect("its summary");
    let page = at / 4096 * 4096;
    bytes[page..page + 4096].fill(0xa5);
    std::fs::write(&path, &bytes).expect("written");
    let cache = on(&path).await;
    let n_entries = cache.totals().entries;
    assert!((500..2000).contains(&n_entries), "{n_entries}");
    assert!(cache.lookup(&key(1)).is_some());
}
