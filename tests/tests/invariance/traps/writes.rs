//! Statements that write read through the cache too.

use super::{entries_hold, holds, tables};

/// Guard: a statement reads one snapshot; what it adds is another extent.
#[tokio::test]
async fn a_table_is_fed_from_itself() {
    let db = tables().await;
    let sql = "SELECT count(*), sum(a) FROM t";
    let mut expected = 1000;
    for _ in 0..3 {
        assert!(holds(&db, sql).await.starts_with(&format!("{expected}|")));
        let added = db.ok("INSERT INTO t SELECT * FROM t WHERE a < 100").await;
        let n: i64 = added.trim_start_matches("INSERT ").parse().expect("a number");
        expected += n;
        assert!(holds(&db, sql).await.starts_with(&format!("{expected}|")));
    }
    // From groups that are cached.
    let groups = "SELECT k, sum(a) AS s FROM t GROUP BY k";
    holds(&db, groups).await;
    db.ok(&format!("CREATE TABLE copied AS {groups}")).await;
    let of_copy = holds(&db, "SELECT * FROM copied").await;
    assert_eq!(of_copy, holds(&db, groups).await);
    db.ok(&format!("INSERT INTO copied {groups}")).await;
    assert_eq!(holds(&db, "SELECT count(*) FROM copied").await, "20");
    entries_hold(&db).await;
}

/// Guard: a hit has all rows, in order, for whoever writes them down.
#[tokio::test]
async fn a_cached_result_is_copied_to_a_file() {
    let db = tables().await;
    let sql = "SELECT k, sum(a) AS s FROM t GROUP BY k ORDER BY k";
    let expected = holds(&db, sql).await;
    for n in 0..2 {
        db.ok(&format!("COPY ({sql}) TO '{{dir}}/out{n}.csv' STORED AS CSV OPTIONS ('format.has_header' 'false')"))
            .await;
        let text = std::fs::read_to_string(db.path(&format!("out{n}.csv"))).expect("it was written");
        assert_eq!(text.trim().replace(',', "|"), expected);
    }
    db.ok("COPY (SELECT k, max(a) AS s FROM t GROUP BY k) TO '{dir}/out.parquet' STORED AS PARQUET").await;
    db.ok("CREATE EXTERNAL TABLE out (k INT, s BIGINT) STORED AS PARQUET LOCATION '{dir}/out.parquet'").await;
    assert_eq!(holds(&db, "SELECT * FROM out").await, holds(&db, "SELECT k, max(a) AS s FROM t GROUP BY k").await);
    entries_hold(&db).await;
}
