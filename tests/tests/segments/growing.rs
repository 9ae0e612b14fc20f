//! What only grows is kept below what does not; and a small table's filter does not hide a large one that grows.

use nectarine_engine::Reused;
use nectarine_tests::db::Db;

use super::{check, facts, names, tables};

/// The rows of a semi join may go when its other side grows; those of the join below it stay.
#[tokio::test(flavor = "multi_thread")]
async fn the_largest_prefix_that_only_grows() {
    let db = tables(4).await;
    let sql = "SELECT sum(f.v), count(*) FROM f JOIN n ON f.k = n.k WHERE n.name = 'name 1' AND f.g = 17 \
               AND f.v < (SELECT 0.9 * avg(i.v) FROM f AS i WHERE i.k = n.k)";
    check(&db, sql).await;
    for part in 4..8 {
        facts(&db.path(&format!("f/{part:03}.parquet")), part);
        if part > 5 {
            let explained = db.ok(&format!("EXPLAIN REUSE {sql}")).await;
            let is_read = |line: &str| line.contains("segment hit") && line.contains("union");
            assert!(explained.lines().any(is_read), "the join is read:\n{explained}");
        }
        check(&db, sql).await;
    }
}

/// Statistics decide the filter of the small table, all of which is inside of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_filter_on_a_small_table_is_no_window() {
    let db = tables(6).await;
    let sql = "SELECT count(*), sum(f.v) FROM f JOIN n ON f.k = n.k WHERE n.k >= 0 AND f.g % 2 = 0";
    check(&db, sql).await;
    for part in 6..8 {
        facts(&db.path(&format!("f/{part:03}.parquet")), part);
        let receipt = check(&db, sql).await;
        assert_eq!(receipt.reused, Reused::Partial, "{}", db.ok(&format!("EXPLAIN REUSE {sql}")).await);
    }
}

/// Four days of `f` arrive; from the third on, what was computed before is read.
async fn only_the_first_two_days_are_dear(db: &Db, sql: &str) {
    for part in 6..10 {
        facts(&db.path(&format!("f/{part:03}.parquet")), part);
        let receipt = check(db, sql).await;
        assert!(
            part < 8 || receipt.reused == Reused::Partial,
            "{part}: {}",
            db.ok(&format!("EXPLAIN REUSE {sql}")).await
        );
    }
}

/// Once the small table stands still again, the next day costs only itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_table_that_grew_once() {
    let db = tables(6).await;
    let sql = "SELECT name, count(*), sum(v) FROM f JOIN n ON f.k = n.k GROUP BY name ORDER BY name";
    check(&db, sql).await;
    names(&db.path("n/1.parquet"), 8..9);
    only_the_first_two_days_are_dear(&db, sql).await;
}

/// Many files became one: what was true of the many says nothing of today.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_table_that_was_put_together() {
    let db = tables(6).await;
    for key in 1..6 {
        names(&db.path(&format!("m/{key}.parquet")), key..key + 1);
    }
    db.ok("CREATE EXTERNAL TABLE m STORED AS PARQUET LOCATION '{dir}/m/'").await;
    let sql = "SELECT g % 7 AS g, count(*), sum(v) FROM f WHERE k IN (SELECT k FROM m) GROUP BY 1 ORDER BY 1";
    check(&db, sql).await;
    for key in 1..6 {
        std::fs::remove_file(db.path(&format!("m/{key}.parquet"))).expect("it is there");
    }
    names(&db.path("m/all.parquet"), 1..6);
    only_the_first_two_days_are_dear(&db, sql).await;
}

/// A limit with an order lets scans leave out most rows, which whoever keeps all of them could not.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_kept_below_a_limit() {
    let db = tables(4).await;
    let sql = "SELECT s FROM f WHERE v >= 900 ORDER BY id LIMIT 5";
    check(&db, sql).await;
    for part in 4..7 {
        facts(&db.path(&format!("f/{part:03}.parquet")), part);
        let explained = db.ok(&format!("EXPLAIN REUSE {sql}")).await;
        let filter = explained.lines().find(|line| line.contains("FilterExec")).expect("a filter");
        assert!(filter.contains("|false|"), "{explained}");
        check(&db, sql).await;
    }
}

/// What is made anew takes the place of all that there was, also of states that are of no use any more.
#[tokio::test(flavor = "multi_thread")]
async fn refreshing_replaces_states() {
    let db = tables(4).await;
    let sql = |least: i64| format!("SELECT k, count(*), sum(v) FROM f GROUP BY k HAVING sum(v) > {least}");
    db.ok(&sql(5)).await;
    facts(&db.path("f/004.parquet"), 4);
    db.ok("SET nectarine.reuse = 'refresh'").await;
    db.ok(&sql(6)).await;
    let made = "SELECT count(*), max(created_at) FROM system.cache_entries WHERE kind = 'states' AND extents = 5";
    let before = db.ok(made).await;
    assert!(before.starts_with("1|"), "{before}");
    db.ok(&sql(5)).await;
    let after = db.ok(made).await;
    assert!(after.starts_with("1|") && after != before, "{before} {after}");
}

/// Of two filters that statistics decide, the one that moves on is the window.
#[tokio::test(flavor = "multi_thread")]
async fn the_window_that_moves() {
    let db = tables(8).await;
    for part in 0..2 {
        facts(&db.path(&format!("large/{part:03}.parquet")), part * 30);
    }
    db.ok("CREATE EXTERNAL TABLE large STORED AS PARQUET LOCATION '{dir}/large/'").await;
    for from in [1_000, 2_000, 3_000] {
        let sql = format!(
            "SELECT k, count(*), sum(v) FROM f WHERE f.id >= {from} AND g IN (SELECT g FROM large WHERE large.v >= 0) GROUP BY k"
        );
        let receipt = check(&db, &sql).await;
        assert!(from == 1_000 || receipt.reused == Reused::Partial, "{}", db.ok(&format!("EXPLAIN REUSE {sql}")).await);
    }
}
