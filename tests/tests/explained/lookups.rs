//! `system.lookups` itself: whose rows it holds, and for how long.

use super::{QUERY, asked, run, table, table_with};

/// The same text again is answered without planning; its one look-up is told all the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_fast_path_leaves_one_row() {
    let db = table().await;
    db.ok(QUERY).await;
    assert_eq!(run(&db, QUERY).await, "hit|NULL|NULL|the whole answer");
    db.script(
        "SELECT count(*), count(l.program) FROM system.lookups l JOIN system.cache_entries e
           ON l.prefix = e.fingerprint AND l.program = e.program WHERE l.outcome = 'hit';
         -> 1|1
         SELECT count(*) FROM system.lookups l JOIN system.queries q ON l.query_id = q.query_id
           WHERE l.asked_at BETWEEN q.started_at AND now();
         -> 3",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_prefix_is_told_once() {
    let db = table().await;
    let totals = "SELECT n % 10 AS k, sum(n) AS s FROM t GROUP BY k";
    let sql = format!("SELECT x.k FROM ({totals}) x JOIN (SELECT max(s) AS m FROM ({totals})) y ON x.s = y.m");
    db.ok(&sql).await;
    let twice = db
        .ok("SELECT query_id, prefix, count(*) FROM system.lookups GROUP BY query_id, prefix HAVING count(*) > 1")
        .await;
    assert_eq!(twice, "");
}

/// Statements that write ask too; EXPLAIN only looks.
#[tokio::test(flavor = "multi_thread")]
async fn statements_that_write_ask_too() {
    let db = table().await;
    db.ok("SELECT n % 10 AS k, sum(n) AS s FROM t GROUP BY k").await;
    db.ok("CREATE TABLE w (k BIGINT, s BIGINT)").await;
    for sql in [
        "INSERT INTO w SELECT n % 10 AS k, sum(n) AS s FROM t GROUP BY k".to_owned(),
        format!("COPY (SELECT n % 10 AS k, sum(n) AS s FROM t GROUP BY k) TO '{}'", db.path("w.parquet").display()),
    ] {
        assert_eq!(run(&db, &sql).await, "hit|NULL|NULL|AggregateExec", "{sql}");
    }
    let sql = "EXPLAIN REUSE SELECT max(n) FROM t";
    assert_eq!(run(&db, sql).await, "");
    db.ok("SET nectarine.reuse = 'off'").await;
    assert_eq!(run(&db, "SELECT min(n) FROM t").await, "");
}

/// A statement that failed or was cancelled tells what it asked for.
#[tokio::test(flavor = "multi_thread")]
async fn failed_and_cancelled_statements() {
    let db = table().await;
    let sql = "SELECT n % 10 AS k, 1 / (sum(n) % 1) FROM t GROUP BY k";
    db.err(sql).await;
    assert!(asked(&db, sql).await.contains("miss|never seen|NULL|AggregateExec"));
    let sql = "SELECT n FROM t WHERE n % 3 = 1";
    drop(db.session().execute(sql).await.expect("an answer"));
    assert!(asked(&db, sql).await.contains("miss|never seen|NULL|FilterExec"));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_processes_are_seen_and_nothing_is_forgotten_at_the_end() {
    let db = table().await;
    let other = db.second().await;
    db.ok(QUERY).await;
    other.ok("SELECT max(n) FROM t").await;
    let mine = "SELECT count(DISTINCT query_id) FROM system.lookups";
    // The other one writes in the background; what it was asked itself is there at once.
    assert_eq!(other.ok(mine).await.parse::<u64>().ok().map(|n| n >= 1), Some(true));
    for seen_by in [&db, &other] {
        for _ in 0..200 {
            if seen_by.ok(mine).await == "2" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(seen_by.ok(mine).await, "2");
    }
    other.shutdown().await;
    drop(other);
    let db = db.reopen().await;
    assert_eq!(db.ok(mine).await, "2");
    assert_eq!(asked(&db, QUERY).await, "miss|never seen|NULL|SortExec\nmiss|never seen|NULL|AggregateExec");
}

/// The rows of a statement go with it.
#[tokio::test(flavor = "multi_thread")]
async fn rows_go_with_their_statement() {
    let db = table_with(&[("nectarine.query_log_keep", "5")]).await;
    for number in 0..20 {
        db.ok(&format!("SELECT max(n) FROM t WHERE n % 50 > {number}")).await;
    }
    db.script(
        "SELECT count(DISTINCT query_id) BETWEEN 1 AND 5 FROM system.lookups;
         -> true
         SELECT count(*) FROM system.lookups WHERE query_id NOT IN (SELECT query_id FROM system.queries);
         -> 0",
    )
    .await;
}

/// However large a plan is, a statement leaves a bounded number of rows of bounded length.
#[tokio::test(flavor = "multi_thread")]
async fn rows_are_bounded() {
    let db = table().await;
    let branches: Vec<String> =
        (0..100).map(|number| format!("SELECT count(*) AS c FROM t WHERE n % 1000 = {number}")).collect();
    let sql = format!("SELECT sum(c) FROM ({})", branches.join(" UNION ALL "));
    assert_eq!(run(&db, &sql).await.lines().count(), 64);
    let wide: Vec<String> = (0..300).map(|number| format!("sum(n + {number})")).collect();
    db.ok(&format!("SELECT {} FROM t", wide.join(", "))).await;
    assert_eq!(db.ok("SELECT max(length(node)) <= 160 FROM system.lookups").await, "true");
}
