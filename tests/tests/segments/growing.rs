//! What only grows is kept below what does not; and a small table's filter does not hide a large one that grows.

use nectarine_engine::Reused;

use super::{check, facts, tables};

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
