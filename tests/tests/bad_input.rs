//! Bad input: each is a clear error that names the file and what was attempted; nothing is lost, nothing panics, and the
//! session goes on.

mod disk;
mod files;
mod mid_query;
mod numbers;
mod odd_files;
mod permission;
#[cfg(unix)]
mod places;
mod quotes;
mod resources;
mod schemas;
mod text;

use nectarine_tests::db::Db;

/// A home that has something to lose.
async fn db() -> Db {
    db_with(&[]).await
}

async fn db_with(settings: &[(&str, &str)]) -> Db {
    let db = Db::with(settings).await;
    db.ok("CREATE TABLE kept AS SELECT * FROM (VALUES (1), (2), (39)) AS t (a)").await;
    db
}

/// What was there before is still there, and the session still works.
async fn goes_on(db: &Db) {
    assert_eq!(db.ok("SELECT count(*), sum(a) FROM kept").await, "3|42");
    db.ok("CREATE OR REPLACE TABLE fresh AS SELECT a FROM kept").await;
    db.ok("INSERT INTO fresh VALUES (100)").await;
    assert_eq!(db.ok("SELECT sum(a) FROM fresh").await, "142");
}
