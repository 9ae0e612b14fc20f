//! Groups that a limit cuts short: reuse makes them no slower, and what is kept of them is whole.

use nectarine_engine::{Receipt, Reused};
use nectarine_tests::db::{Db, rows_text};

/// As many groups by `s` as rows; a hundred by `k`. Where `id` could be NULL, the largest would come first and nothing be cut.
async fn table() -> Db {
    let db = Db::new().await;
    db.ok("CREATE TABLE t (id BIGINT NOT NULL, k BIGINT, s VARCHAR) AS \
           SELECT value AS id, value % 100 AS k, cast(value AS varchar) AS s FROM generate_series(1, 200000)")
        .await;
    db
}

async fn ask(db: &Db, sql: &str) -> (String, Receipt) {
    let answer = db.session().execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let receipt = answer.receipt();
    let batches = answer.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    db.cache().settled().await;
    (rows_text(&batches), receipt())
}

/// The same without reuse.
async fn computed(db: &Db, sql: &str) -> String {
    db.ok("SET nectarine.reuse = 'off'").await;
    let rows = ask(db, sql).await.0;
    db.ok("SET nectarine.reuse = 'on'").await;
    rows
}

/// All entries are what their programs say, so many groups and states among them. Which rows a LIMIT leaves is luck.
async fn verify(db: &Db, at_least: usize) {
    let told = db.ok("VERIFY ALL").await;
    let outcomes: Vec<&str> = told.lines().filter_map(|line| line.split('|').nth(1)).collect();
    assert!(outcomes.iter().all(|outcome| ["same", "not verified"].contains(outcome)), "{told}");
    assert!(outcomes.iter().filter(|outcome| **outcome == "same").count() >= at_least, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_groups() {
    let db = table().await;
    for n in [10, 11, 12] {
        let sql = format!("SELECT DISTINCT s FROM t LIMIT {n}");
        let (rows, receipt) = ask(&db, &sql).await;
        assert_eq!((receipt.reused, receipt.kept), (Reused::None, 1), "only the answer: {sql}");
        assert_eq!(rows.lines().count(), n);
        assert!(rows.lines().all(|s| s.parse::<u32>().is_ok_and(|s| (1..=200_000).contains(&s))), "{rows}");
        let (again, receipt) = ask(&db, &sql).await;
        assert_eq!((again, receipt.reused), (rows, Reused::Exact));
    }
    assert_eq!(db.ok("SELECT count(*) FROM system.cache_entries").await, "3");
    // All groups are asked for; ten of them are still found faster without.
    let (_, receipt) = ask(&db, "SELECT count(*), max(s) FROM (SELECT DISTINCT s FROM t)").await;
    assert!(receipt.kept > 1, "{receipt:?}");
    assert_eq!(ask(&db, "SELECT DISTINCT s FROM t LIMIT 13").await.1.reused, Reused::None);
    let (rows, receipt) = ask(&db, "SELECT DISTINCT s FROM t LIMIT 190000").await;
    assert_eq!((receipt.reused, rows.lines().count()), (Reused::Partial, 190_000));

    // Few groups are read, once they are there.
    assert_eq!(ask(&db, "SELECT DISTINCT k FROM t LIMIT 90").await.1.kept, 1);
    assert!(ask(&db, "SELECT sum(k) FROM (SELECT DISTINCT k FROM t)").await.1.kept > 1);
    let (rows, receipt) = ask(&db, "SELECT DISTINCT k FROM t LIMIT 91").await;
    assert_eq!((receipt.reused, rows.lines().count()), (Reused::Partial, 91));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_best_groups() {
    let db = table().await;
    let best =
        |key: &str, n: usize| format!("SELECT {key}, max(id) AS m FROM t GROUP BY {key} ORDER BY m DESC LIMIT {n}");
    for n in [5, 6, 7] {
        let sql = best("s", n);
        let (rows, receipt) = ask(&db, &sql).await;
        assert_eq!((receipt.reused, receipt.kept), (Reused::None, 1), "only the answer: {sql}");
        assert_eq!(rows, computed(&db, &sql).await);
        let (again, receipt) = ask(&db, &sql).await;
        assert_eq!((again, receipt.reused), (rows, Reused::Exact));
    }
    for (key, reused) in [("s", Reused::None), ("k", Reused::Partial)] {
        ask(&db, &format!("SELECT {key}, max(id) FROM t GROUP BY {key}")).await;
        let sql = best(key, 8);
        let told = db.ok(&format!("EXPLAIN REUSE {sql}")).await;
        assert_eq!(told.contains("cut short"), reused == Reused::None, "{told}");
        let (rows, receipt) = ask(&db, &sql).await;
        assert_eq!(receipt.reused, reused, "{sql}");
        assert_eq!(rows, computed(&db, &sql).await);
    }
    // Other rows are other groups, and nothing of the old ones is in the way.
    db.ok("INSERT INTO t SELECT value AS id, value % 100 AS k, cast(value AS varchar) AS s FROM generate_series(300001, 300010)").await;
    for sql in [best("s", 5), best("k", 8), "SELECT k, max(id) FROM t GROUP BY k ORDER BY k".to_string()] {
        assert_eq!(ask(&db, &sql).await.0, computed(&db, &sql).await, "{sql}");
    }
    verify(&db, 4).await;
}

/// Who asks again after an append keeps all groups, and reads them from then on, unless they are as many as rows.
#[tokio::test(flavor = "multi_thread")]
async fn the_best_groups_of_what_grows() {
    let db = table().await;
    for (key, reused) in
        [("k", [Reused::None, Reused::None, Reused::Partial, Reused::Partial]), ("s", [Reused::None; 4])]
    {
        let sql = format!("SELECT {key}, max(id) AS m FROM t GROUP BY {key} ORDER BY m DESC LIMIT 5");
        for (n, expected) in reused.into_iter().enumerate() {
            let (rows, receipt) = ask(&db, &sql).await;
            assert_eq!(receipt.reused, expected, "{n}: {sql}");
            assert_eq!(receipt.kept > 1, n == 1 || (expected == Reused::Partial), "{n}: {sql}: {receipt:?}");
            assert_eq!(rows, computed(&db, &sql).await);
            db.ok("INSERT INTO t SELECT m + value AS id, (m + value) % 100 AS k, cast(m + value AS varchar) AS s \
                   FROM (SELECT max(id) AS m FROM t) CROSS JOIN generate_series(1, 10)")
                .await;
        }
    }
    verify(&db, 2).await;
}

/// Groups with several aggregates are computed to the end, and kept at first sight.
#[tokio::test(flavor = "multi_thread")]
async fn groups_that_are_not_cut() {
    let db = table().await;
    for columns in ["max(id) AS m, count(*)", "sum(id) AS m", "max(id) AS m, min(id)"] {
        for (n, reused) in [(5, Reused::None), (6, Reused::Partial)] {
            let sql = format!("SELECT s, {columns} FROM t GROUP BY s ORDER BY m DESC LIMIT {n}");
            let (rows, receipt) = ask(&db, &sql).await;
            assert_eq!(receipt.reused, reused, "{sql}");
            assert_eq!(rows, computed(&db, &sql).await);
        }
    }
}

/// What has a name is kept, however few rows are asked for.
#[tokio::test(flavor = "multi_thread")]
async fn views_are_kept_whole() {
    let db = table().await;
    db.ok("CREATE MATERIALIZED VIEW v AS SELECT DISTINCT s FROM t").await;
    ask(&db, "SELECT * FROM v LIMIT 10").await;
    let (rows, receipt) = ask(&db, "SELECT count(*) FROM v").await;
    assert_eq!((rows.as_str(), receipt.reused), ("200000", Reused::Partial));
}

/// Who has enough stops asking, also above a join: the rows that are left unread may hold what has no value.
#[tokio::test(flavor = "multi_thread")]
async fn any_groups_of_a_join_that_grows() {
    let db = Db::new().await;
    db.ok("SET datafusion.execution.target_partitions = 1").await;
    db.ok("COPY (SELECT value AS k FROM generate_series(0, 6)) TO '{dir}/u/1.parquet'").await;
    let part = |b: &str| format!("SELECT value AS id, value % 7 AS k, {b} AS b FROM generate_series(1, 60000)");
    db.ok(&format!("COPY ({}) TO '{{dir}}/t/1.parquet'", part("6 + value % 500"))).await;
    for table in ["u", "t"] {
        db.ok(&format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{{dir}}/{table}/'")).await;
    }
    let sql = "SELECT count(*) FROM (SELECT DISTINCT t.id, 1000 / (t.b - 5) AS q FROM t JOIN u ON t.k = u.k LIMIT 3)";
    assert_eq!(db.ok(sql).await, "3");
    db.ok(&format!("COPY ({}) TO '{{dir}}/t/2.parquet'", part("value % 500"))).await;
    assert_eq!(computed(&db, sql).await, "3");
    let told = db.ok(&format!("EXPLAIN REUSE {sql}")).await;
    assert!(told.contains("cut short"), "{told}");
    for _ in 0..2 {
        assert_eq!(db.ok(sql).await, "3");
    }
}
