//! Statements that nobody waits for end soon, and what waits for others is not in their way.

use std::time::Duration;

use nectarine_tests::db::Db;

/// Long after a statement that is looked at should have ended.
const SOON: Duration = Duration::from_secs(60);

/// Each would run for hours: rows that come without end, pairs that are looked at without any that fits.
const ENDLESS: [&str; 6] = [
    "SELECT sum(a.value + b.value) FROM generate_series(1, 10000000) a CROSS JOIN generate_series(1, 10000000) b",
    "SELECT count(*) FROM big a JOIN big b ON a.k < b.k",
    "SELECT count(*) FROM big a JOIN big b ON a.k < b.k AND b.k < 0 - a.k",
    "SELECT count(*) FROM big a WHERE EXISTS (SELECT 1 FROM big b WHERE b.k + a.k < 0)",
    "SELECT count(*) FROM big a JOIN big b ON a.g = b.g AND a.k + b.k < 0",
    "SELECT count(*) FROM (SELECT unnest(range(0, 100000)) FROM big)",
];

async fn big() -> Db {
    let db = Db::new().await;
    db.ok("CREATE TABLE big AS SELECT value AS k, value % 3 AS g FROM generate_series(1, 1000000)").await;
    db.ok("SET nectarine.reuse = 'off'").await;
    db
}

/// More of them than there are threads: if one went on, the next ones would never begin.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_goes_away_leaves_nothing_running() {
    let db = big().await;
    for _ in 0..3 {
        for sql in ENDLESS {
            let asked = db.session().execute(sql).await.expect("it begins");
            let waited = tokio::time::timeout(Duration::from_millis(300), asked.collect()).await;
            assert!(waited.is_err(), "{sql}");
            let next = tokio::time::timeout(SOON, db.ok("SELECT count(*) FROM big WHERE k < 10")).await;
            assert_eq!(next.as_deref(), Ok("9"), "threads are not free again after {sql}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_go_on_while_all_threads_compute() {
    let db = big().await;
    db.ok("SET nectarine.statement_timeout = 1").await;
    for sql in ENDLESS {
        let sql = format!("CREATE TABLE never AS {sql}");
        let told = tokio::time::timeout(SOON, db.err(&sql)).await.expect("it ends");
        assert!(told.contains("took longer than 1 second"), "{sql}: {told}");
    }
}

/// A few lines that stand for millions of steps.
#[tokio::test(flavor = "multi_thread")]
async fn plans_that_would_not_fit_into_memory() {
    let db = Db::new().await;
    let mut ctes = vec!["c0 AS (SELECT 1 AS a)".to_string()];
    db.ok("CREATE VIEW v0 AS SELECT 1 AS a").await;
    for n in 1..=24 {
        let below = n - 1;
        ctes.push(format!("c{n} AS (SELECT x.a FROM c{below} x, c{below} y)"));
        db.ok(&format!("CREATE VIEW v{n} AS SELECT x.a FROM v{below} x, v{below} y")).await;
    }
    let told = db.err("SELECT * FROM v24").await;
    assert!(told.contains("too complex: more than 20000 steps"), "{told}");
    let told = db.err(&format!("WITH {} SELECT * FROM c24", ctes.join(", "))).await;
    assert!(told.contains("too complex: more than 10000 tables"), "{told}");
    assert_eq!(db.ok("SELECT count(*) FROM v8").await, "1");
    db.ok("CREATE FUNCTION f(x BIGINT) RETURNS BIGINT RETURN x + x").await;
    let call = (0..25).fold("value".to_string(), |call, _| format!("f({call})"));
    assert_eq!(db.ok(&format!("SELECT {call} FROM generate_series(1, 2)")).await, "33554432\n67108864");
}
