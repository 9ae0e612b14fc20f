//! Thousands of extents in one scan: each is read once, whatever planning makes of them.

use nectarine_tests::db::Db;
use nectarine_tests::files::numbers;

/// More than files that carry statistics of their own.
const N_FILES: i64 = 2_100;

#[tokio::test]
async fn each_is_read_once() {
    let db = Db::new().await;
    let first = db.path("p/k=0/x.parquet");
    numbers(&first, 0..10);
    for part in 1..N_FILES {
        std::fs::hard_link(&first, db.path(&format!("p/k={part}/x.parquet"))).expect("a link");
    }
    db.ok("CREATE EXTERNAL TABLE p STORED AS PARQUET PARTITIONED BY (k) LOCATION '{dir}/p/'").await;
    db.ok("SET nectarine.reuse = 'off'").await;
    let expected = format!("{}|{}|{N_FILES}|{}", N_FILES * 10, N_FILES * 45, N_FILES * (N_FILES - 1) / 2 * 10);
    for partitions in [1, 2, 7] {
        for least_bytes in [1, 1_000_000_000] {
            db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
            db.ok(&format!("SET datafusion.optimizer.repartition_file_min_size = {least_bytes}")).await;
            // `n + 0`, so that nothing is told from statistics.
            let sql = "SELECT count(n + 0), sum(n), count(DISTINCT k), sum(CAST(k AS BIGINT)) FROM p";
            assert_eq!(db.ok(sql).await, expected, "{partitions} partitions, {least_bytes} bytes");
        }
        let some = format!(
            "SELECT sum(CAST(k AS BIGINT)), count(*) FROM p WHERE CAST(k AS BIGINT) >= {} AND n % 10 = 3",
            N_FILES - 2
        );
        assert_eq!(db.ok(&some).await, format!("{}|2", 2 * N_FILES - 3));
    }
    let plan = db.ok("EXPLAIN SELECT sum(n) FROM p").await;
    assert!(plan.contains("k=0/x.parquet") && !plan.contains(" extents"), "{plan}");
}
