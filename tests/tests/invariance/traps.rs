//! One case for each trap of a cache over DataFusion that is known. Each names the guard without which it fails.

mod changing;
mod data;
mod limits;
mod meaning;
mod names;
mod state;
mod views;
mod writes;

use nectarine_engine::Reused;
use nectarine_tests::db::{Db, rows_text};
use nectarine_tests::invariance::verify_all;

/// Entries that are computed anew in the end of each trap.
const VERIFIED_MAX: usize = 100;

/// Runs a query with and without the cache, several times, and by check mode; returns its rows, sorted.
async fn holds(db: &Db, sql: &str) -> String {
    db.ok("SET nectarine.reuse = 'off'").await;
    let expected = sorted(&db.ok(sql).await);
    for mode in ["on", "on", "check", "on", "read_only"] {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        let found = db.ok(sql).await;
        assert!(!found.contains("notice: a cached result"), "an entry that nobody damaged is: {sql}");
        assert_eq!(sorted(&found), expected, "{mode}: {sql}");
    }
    db.ok("SET nectarine.reuse = 'on'").await;
    expected
}

/// Runs queries one after the other, twice, over one cache, so that each meets what the others left.
async fn all_hold(db: &Db, queries: &[&str]) {
    for _ in 0..2 {
        for sql in queries {
            holds(db, sql).await;
        }
    }
}

/// The end of a trap: the answers were right; all entries that they left hold what is computed anew.
async fn entries_hold(db: &Db) {
    let verified = verify_all(db.session(), VERIFIED_MAX).await;
    assert!(verified.different.is_empty() && verified.counted("damaged") == 0, "{verified}");
}

/// How much of an answer was there already.
async fn reused(db: &Db, sql: &str) -> (Reused, String) {
    let sql = sql.replace("{dir}", &db.folder().display().to_string());
    let answer = db.session().execute(&sql).await.unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
    let receipt = answer.receipt();
    let text = rows_text(&answer.collect().await.unwrap_or_else(|error| panic!("{sql}\n{error:?}")));
    (receipt().reused, text)
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("notice: ")).collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// A table of 1000 rows in four extents, and a small one to join it with.
async fn tables() -> Db {
    let db = Db::new().await;
    db.ok("CREATE TABLE t (a BIGINT, k INT, g TEXT, f DOUBLE, ts TIMESTAMP)").await;
    for part in 0..4 {
        db.ok(&format!(
            "INSERT INTO t SELECT value, CAST(value % 10 AS INT), concat('g', value % 7), value / 10.0, \
             to_timestamp(1700000000 + value * 3600) FROM generate_series({}, {})",
            part * 250,
            part * 250 + 249
        ))
        .await;
    }
    db.ok("CREATE TABLE d (k INT, tag TEXT)").await;
    db.ok("INSERT INTO d VALUES (1, 'one'), (2, 'two'), (3, 'three'), (NULL, 'none')").await;
    db
}
