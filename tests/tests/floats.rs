//! Sums of floats: the same bits however many threads added them, in whatever order, and whatever was computed before.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float32Array, Float64Array, Int64Array, TimestampMicrosecondArray};
use nectarine_engine::Reused;
use nectarine_tests::db::Db;
use nectarine_tests::files;

const ROWS: i64 = 6_000;
const DAY_US: i64 = 86_400_000_000;
/// 2026-01-01.
const START_US: i64 = 1_767_225_600_000_000;

/// One day: floats of all sizes that nearly cancel out, prices, and some that are no numbers in a group of their own.
fn day(path: &Path, day: i64) {
    let rows = 0..ROWS;
    let noise = |row: i64| ((row * 7919 + day * 104_729) % 10_007) as f64;
    let price = move |row: i64| noise(row) / 100.0 * 0.93;
    let wild = move |row: i64| {
        let sign = if row % 2 == 0 { 1.0 } else { -1.0 };
        sign * noise(row / 2) * 10_f64.powi((row / 2 * 31 % 40) as i32 - 20) + price(row) * 1e-9
    };
    let special = |row: i64| match row % 17 {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => -0.0,
        _ => 0.1,
    };
    let times = rows.clone().map(|row| START_US + day * DAY_US + row * (DAY_US / ROWS));
    files::parquet(
        path,
        vec![
            ("ts", Arc::new(TimestampMicrosecondArray::from_iter_values(times)) as ArrayRef),
            ("k", Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| row * 31 % 7)))),
            ("g", Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| row * 7919 % 5003)))),
            ("p", Arc::new(Float64Array::from_iter(rows.clone().map(|row| (row % 11 > 0).then(|| price(row)))))),
            ("w", Arc::new(Float64Array::from_iter_values(rows.clone().map(wild)))),
            ("s", Arc::new(Float64Array::from_iter_values(rows.clone().map(special)))),
            ("n", Arc::new(Float32Array::from_iter_values(rows.clone().map(|row| price(row) as f32)))),
        ],
    );
}

async fn days(n: i64) -> Db {
    let db = Db::new().await;
    for number in 0..n {
        day(&db.path(&format!("f/{number:03}.parquet")), number);
    }
    let keys = Arc::new(Int64Array::from_iter_values(0..7));
    let weights = Arc::new(Float64Array::from_iter_values((0..7).map(|key| 1.1_f64.powi(key))));
    files::parquet(&db.path("u/0.parquet"), vec![("k", keys as ArrayRef), ("weight", weights)]);
    db.ok("CREATE EXTERNAL TABLE f STORED AS PARQUET LOCATION '{dir}/f/'").await;
    db.ok("CREATE EXTERNAL TABLE u STORED AS PARQUET LOCATION '{dir}/u/'").await;
    db
}

const STATEMENTS: [&str; 11] = [
    "SELECT sum(p), avg(p), sum(w), avg(w), sum(n), avg(k) FROM f",
    "SELECT k, sum(p), avg(p), sum(w), avg(w), count(*) FROM f GROUP BY k",
    "SELECT g, sum(p * 1.1), sum(w) FILTER (WHERE k > 2) FROM f GROUP BY g",
    "SELECT k, g % 3, sum(w), avg(p) FROM f GROUP BY ROLLUP (k, g % 3)",
    "SELECT sum(a), avg(b), max(c) FROM (SELECT g, sum(w) AS a, avg(p) AS b, count(*) AS c FROM f GROUP BY g)",
    "SELECT f.k, sum(f.p * u.weight), avg(f.w) FROM f JOIN u ON f.k = u.k GROUP BY f.k",
    "SELECT k, sum(p) FROM f WHERE ts >= TIMESTAMP '2026-01-02 00:00:00' AND ts < TIMESTAMP '2026-01-05 00:00:00' GROUP BY k",
    "SELECT count(*) FROM (SELECT k, sum(w) AS s FROM f GROUP BY k) WHERE s >= (SELECT max(s) FROM (SELECT k, sum(w) AS s FROM f GROUP BY k))",
    "SELECT k, sum(s) FILTER (WHERE s < 1), sum(s) FROM f GROUP BY k",
    "SELECT k, sum(p), sum(DISTINCT k), count(DISTINCT g) FROM f GROUP BY k",
    "SELECT k, sum(a), sum(b) FROM (SELECT k, p AS a, sum(w) OVER (PARTITION BY k ORDER BY ts, g ROWS BETWEEN 5 PRECEDING AND CURRENT ROW) AS b FROM f WHERE g < 200) GROUP BY k",
];

async fn client(db: &Db, settings: &[(&str, &str)]) -> Db {
    let client = db.client();
    client.ok("SET nectarine.float_sums = 'exact'").await;
    for (name, value) in settings {
        client.ok(&format!("SET {name} = '{value}'")).await;
    }
    client
}

/// The answer, so many times on each number of partitions, without and with reuse, and in batches of other sizes.
async fn holds(db: &Db, sql: &str, n_times: usize) {
    let reference = client(db, &[("nectarine.reuse", "off")]).await.ask(sql).await.0;
    assert!(!reference.is_empty());
    for partitions in ["1", "2", "7"] {
        let partitions = ("datafusion.execution.target_partitions", partitions);
        let computing = client(db, &[("nectarine.reuse", "off"), partitions]).await;
        for _ in 0..n_times {
            assert_eq!(computing.ask(sql).await.0, reference, "{partitions:?}: {sql}");
        }
        let reusing = client(db, &[partitions]).await;
        for _ in 0..2 {
            assert_eq!(reusing.ask(sql).await.0, reference, "reused, {partitions:?}: {sql}");
        }
    }
    for other in [
        ("datafusion.execution.batch_size", "97"),
        ("datafusion.execution.skip_partial_aggregation_probe_rows_threshold", "10"),
        ("datafusion.optimizer.prefer_hash_join", "false"),
        ("nectarine.reuse", "refresh"),
        ("nectarine.reuse", "check"),
    ] {
        assert_eq!(client(db, &[other]).await.ask(sql).await.0, reference, "{other:?}: {sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bits_each_time() {
    let db = days(4).await;
    db.ok("SET nectarine.float_sums = 'exact'").await;
    for sql in STATEMENTS {
        holds(&db, sql, 8).await;
    }
    // More days: old sums and new ones together.
    let mut n_partial = 0;
    for number in 4..6 {
        day(&db.path(&format!("f/{number:03}.parquet")), number);
        for sql in STATEMENTS {
            n_partial += usize::from(db.ask(sql).await.1.reused == Reused::Partial);
            holds(&db, sql, 1).await;
        }
    }
    assert!(n_partial >= 8, "{n_partial}");
    // Fewer, and other windows.
    std::fs::remove_file(db.path("f/001.parquet")).expect("it was there");
    for sql in STATEMENTS {
        holds(&db, sql, 1).await;
        holds(&db, &sql.replace("2026-01-02", "2026-01-03").replace("2026-01-05", "2026-01-06"), 1).await;
    }
}

/// Without it they are not the same, or the test above would show nothing. And neither setting answers for the other.
#[tokio::test(flavor = "multi_thread")]
async fn added_as_they_come() {
    let db = days(4).await;
    db.ok("SET nectarine.float_sums = 'exact'").await;
    let sql = STATEMENTS[1];
    let exact = db.ask(sql).await.0;
    let mut answers = BTreeSet::new();
    for reuse in ["off", "on"] {
        for partitions in ["1", "2", "7"] {
            let partitions = ("datafusion.execution.target_partitions", partitions);
            let fast = client(&db, &[("nectarine.float_sums", "fast"), ("nectarine.reuse", reuse), partitions]).await;
            answers.insert(fast.ask(sql).await.0);
        }
    }
    assert!(!answers.contains(&exact) && answers.len() > 1, "{answers:?}");
    assert_eq!(db.ask(sql).await.0, exact);
    let error = db.err("SET nectarine.float_sums = 'slow'").await;
    assert!(error.contains("exact, fast") || error.contains("float_sums"), "{error}");
}
