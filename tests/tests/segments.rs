//! Appended data costs only the delta: entries over some extents are read, the others computed, and both combined.
//!
//! Every answer is compared with the same statement with reuse off, and every entry with what is computed anew.

mod at_random;
mod growing;
mod guards;
mod keys;

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use nectarine_engine::{Receipt, Reused};
use nectarine_tests::db::Db;
use nectarine_tests::files;

const ROWS: i64 = 40_000;

/// One file of facts: `id`, two keys, a value, a text.
fn facts(path: &Path, part: i64) {
    let ids = part * ROWS..(part + 1) * ROWS;
    let column = |value: fn(i64) -> i64| Arc::new(Int64Array::from_iter_values(ids.clone().map(value))) as ArrayRef;
    let texts = ids.clone().map(|id| if id % 11 == 0 { None } else { Some(format!("t{}", id % 7)) });
    files::parquet(
        path,
        vec![
            ("id", column(|id| id)),
            ("k", column(|id| id * 7919 % 13)),
            ("g", column(|id| id * 31 % 997)),
            ("v", column(|id| id * 104_729 % 1_000)),
            ("s", Arc::new(texts.collect::<StringArray>())),
        ],
    );
}

/// One file of a small table: `k` and a name.
fn names(path: &Path, keys: std::ops::Range<i64>) {
    let names: Vec<String> = keys.clone().map(|key| format!("name {}", key % 5)).collect();
    files::parquet(
        path,
        vec![
            ("k", Arc::new(Int64Array::from_iter_values(keys.clone()))),
            ("w", Arc::new(Float64Array::from_iter_values(keys.map(|key| key as f64 / 3.0)))),
            ("name", Arc::new(StringArray::from_iter_values(names))),
        ],
    );
}

async fn tables(n_facts: i64) -> Db {
    let db = Db::new().await;
    for part in 0..n_facts {
        facts(&db.path(&format!("f/{part:03}.parquet")), part);
    }
    names(&db.path("n/0.parquet"), 0..8);
    db.ok("CREATE EXTERNAL TABLE f STORED AS PARQUET LOCATION '{dir}/f/'").await;
    db.ok("CREATE EXTERNAL TABLE n STORED AS PARQUET LOCATION '{dir}/n/'").await;
    db
}

async fn computed(db: &Db, sql: &str) -> Vec<String> {
    let other = db.client();
    other.ok("SET nectarine.reuse = 'off'").await;
    other.ask(sql).await.0
}

/// The same answer as without reuse; returns what was reused.
async fn check(db: &Db, sql: &str) -> Receipt {
    let (rows, receipt) = db.ask(sql).await;
    assert_eq!(rows, computed(db, sql).await, "{sql}");
    // An entry can be wrong while the answer is right.
    let other = db.client();
    other.ok("SET nectarine.reuse = 'check'").await;
    other.ask(sql).await;
    receipt
}

/// Statements that are incremental when `f` grows.
const OVER_FACTS: &[&str] = &[
    "SELECT k, count(*), sum(v), min(v), max(id) FROM f GROUP BY k",
    "SELECT count(*), sum(v), avg(v), count(s), min(s) FROM f",
    "SELECT g, avg(v), stddev(v) > 0, count(DISTINCT s) FROM f GROUP BY g",
    "SELECT k, sum(v) FILTER (WHERE g > 500), bool_or(v > 998), bit_xor(v) FROM f WHERE v % 2 = 0 GROUP BY k",
    "SELECT DISTINCT k, s FROM f",
    "SELECT k, g % 3, count(*) FROM f GROUP BY ROLLUP (k, g % 3)",
    "SELECT name, count(*), sum(v) FROM f JOIN n ON f.k = n.k GROUP BY name",
    "SELECT name, count(*), sum(v) FROM f LEFT JOIN n ON f.k = n.k GROUP BY name",
    "SELECT count(*), sum(v) FROM f WHERE k IN (SELECT k FROM n)",
    "SELECT count(*), sum(v) FROM f WHERE k NOT IN (SELECT k FROM n)",
    "SELECT count(*), sum(v) FROM f WHERE NOT EXISTS (SELECT 1 FROM n WHERE n.k = f.k AND n.w > 0.5)",
    "SELECT k, count(*) FROM (SELECT k FROM f WHERE v < 10 UNION ALL SELECT k FROM n) AS u GROUP BY k",
    "SELECT k, sum(c) FROM (SELECT k, g, count(*) AS c FROM f GROUP BY k, g) AS x WHERE c > 2 GROUP BY k",
    "SELECT id, v FROM f WHERE v = 999 AND g < 50",
    "SELECT f.id, n.name FROM f JOIN n ON f.k = n.k WHERE v = 777 AND g = 5",
    "SELECT id, v FROM f WHERE g < 100 ORDER BY v DESC, id LIMIT 20",
    "SELECT id, v FROM f WHERE g = 7 AND v > 900 ORDER BY id",
    "SELECT k, sum(v) AS total FROM f GROUP BY k HAVING sum(v) > 1000 ORDER BY total DESC LIMIT 3",
];

#[tokio::test(flavor = "multi_thread")]
async fn appended_facts_cost_only_themselves() {
    let db = tables(6).await;
    for sql in OVER_FACTS {
        check(&db, sql).await;
    }
    for part in 6..9 {
        facts(&db.path(&format!("f/{part:03}.parquet")), part);
        for sql in OVER_FACTS {
            let receipt = check(&db, sql).await;
            assert_eq!(receipt.reused, Reused::Partial, "{sql}: {}", db.ok(&format!("EXPLAIN REUSE {sql}")).await);
            assert_eq!(check(&db, sql).await.reused, Reused::Exact, "{sql}");
        }
    }
}

/// Old entries serve in the next process, whose memory knows nothing of their extents.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_process_goes_on() {
    let db = tables(4).await;
    let sql = OVER_FACTS[0];
    check(&db, sql).await;
    facts(&db.path("f/004.parquet"), 4);
    let db = db.reopen().await;
    assert_eq!(check(&db, sql).await.reused, Reused::Partial);
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_and_removed_files() {
    let db = tables(4).await;
    let sql = OVER_FACTS[0];
    check(&db, sql).await;
    // D + D1, then D + D2.
    facts(&db.path("f/004.parquet"), 4);
    assert_eq!(check(&db, sql).await.reused, Reused::Partial);
    std::fs::remove_file(db.path("f/004.parquet")).expect("it was there");
    facts(&db.path("f/005.parquet"), 5);
    assert_eq!(check(&db, sql).await.reused, Reused::Partial);
    // All of them: D, D1 and D2 are there.
    facts(&db.path("f/004.parquet"), 4);
    check(&db, sql).await;
    // The head goes: what covered it does not hold any more; what was computed of others does.
    std::fs::remove_file(db.path("f/000.parquet")).expect("it was there");
    check(&db, sql).await;
    std::fs::remove_file(db.path("f/002.parquet")).expect("it was there");
    check(&db, sql).await;
}

/// Both inputs of joins grow, also a table joined with itself, and sides that decide about the other's rows.
#[tokio::test(flavor = "multi_thread")]
async fn several_inputs_grow() {
    let statements = [
        "SELECT name, count(*), sum(v) FROM f JOIN n ON f.k = n.k GROUP BY name",
        "SELECT count(*), sum(v) FROM f WHERE k IN (SELECT k FROM n)",
        "SELECT count(*), sum(v) FROM f WHERE k NOT IN (SELECT k FROM n)",
        "SELECT name, count(v) FROM n LEFT JOIN f ON f.k = n.k AND v < 20 GROUP BY name",
        "SELECT name, count(*) FROM f FULL JOIN n ON f.k = n.k GROUP BY name",
        "SELECT a.k, count(*) FROM f a JOIN f b ON a.id = b.id + 1 WHERE a.v < 5 GROUP BY a.k",
        "SELECT k, count(*) FROM (SELECT k FROM f WHERE v < 10 UNION ALL SELECT k FROM n) AS u GROUP BY k",
        "SELECT x.k, y.name, count(*) FROM f x JOIN n y ON x.k = y.k JOIN n z ON z.k = y.k + 1 GROUP BY x.k, y.name",
        "SELECT k, v FROM f WHERE v < 3 AND g > (SELECT count(*) FROM n) LIMIT 7",
    ];
    let db = tables(3).await;
    for step in 0..4 {
        for sql in &statements[..8] {
            check(&db, sql).await;
        }
        let (rows, _) = db.ask(statements[8]).await;
        assert_eq!(rows.len(), 7);
        match step {
            0 => names(&db.path("n/1.parquet"), 8..11),
            1 => facts(&db.path("f/003.parquet"), 3),
            _ => {
                facts(&db.path("f/004.parquet"), 4);
                names(&db.path("n/2.parquet"), 5..12);
            }
        }
    }
}

/// Entries that are found damaged are computed again.
#[tokio::test(flavor = "multi_thread")]
async fn a_segment_that_is_gone_is_computed() {
    let db = tables(4).await;
    let sql = OVER_FACTS[0];
    check(&db, sql).await;
    let db = db.reopen().await;
    std::fs::remove_dir_all(db.home().join("derived")).expect("it was there");
    facts(&db.path("f/004.parquet"), 4);
    check(&db, sql).await;
    facts(&db.path("f/005.parquet"), 5);
    assert_eq!(check(&db, sql).await.reused, Reused::Partial);
}
