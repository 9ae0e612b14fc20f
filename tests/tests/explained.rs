//! Every decision about reuse can be explained: before the statement by EXPLAIN REUSE, after it by `system.lookups`.
//!
//! Each reason for a miss is provoked here.

mod lookups;
mod reasons;
mod segments;
mod uncacheable;

use std::path::PathBuf;

use nectarine_tests::db::Db;
use nectarine_tests::files;

/// Groups, with an order above them.
const QUERY: &str = "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY k ORDER BY k";

/// A table of numbers in one file.
async fn table() -> Db {
    table_with(&[]).await
}

async fn table_with(settings: &[(&str, &str)]) -> Db {
    let db = Db::with(settings).await;
    files::numbers(&db.path("t/a.parquet"), 0..200_000);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    db
}

/// What EXPLAIN REUSE says of a query.
async fn explain(db: &Db, sql: &str) -> String {
    db.ok(&format!("EXPLAIN REUSE {sql}")).await
}

/// The line of EXPLAIN REUSE about the first node of a name.
async fn line(db: &Db, sql: &str, node: &str) -> String {
    let told = explain(db, sql).await;
    let found = told.lines().find(|line| line.trim_start().starts_with(node));
    found.unwrap_or_else(|| panic!("no {node} in {told}")).to_owned()
}

/// What the last run of a statement asked for: outcome, reason, detail and the name of the node.
async fn asked(db: &Db, sql: &str) -> String {
    let sql = sql.replace('\'', "''");
    db.ok(&format!(
        "SELECT outcome, reason, detail, split_part(node, ':', 1) FROM system.lookups WHERE query_id =
           (SELECT query_id FROM system.queries WHERE sql = '{sql}' ORDER BY started_at DESC LIMIT 1)"
    ))
    .await
}

/// Runs a statement and says what it asked for.
async fn run(db: &Db, sql: &str) -> String {
    db.ok(sql).await;
    asked(db, sql).await
}

/// The files of all entries.
fn parts(db: &Db) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut folders = vec![db.home().join("derived")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found
}
