//! Segment hits are drawn before, and counted after.

use nectarine_tests::db::Db;

async fn add(db: &Db, part: usize) {
    db.path("f/x");
    let rows = format!("SELECT value AS id, value % 7 AS k FROM generate_series({part}00000, {part}99999)");
    db.ok(&format!("COPY ({rows}) TO '{{dir}}/f/{part}.parquet' STORED AS PARQUET")).await;
}

/// The last statement of that text in the log.
async fn counted(db: &Db, sql: &str) -> String {
    let text = sql.replace('\'', "''");
    let log = "SELECT reuse, extents_reused, extents_total FROM system.queries";
    db.ok(&format!("{log} WHERE sql = '{text}' ORDER BY started_at DESC LIMIT 1")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn extents_come_from_entries_or_are_computed() {
    let db = Db::new().await;
    for part in 1..=3 {
        add(&db, part).await;
    }
    db.ok("CREATE EXTERNAL TABLE f STORED AS PARQUET LOCATION '{dir}/f/'").await;
    let sql = "SELECT k, sum(id), count(*) FROM f GROUP BY k ORDER BY k";
    let explain = format!("EXPLAIN REUSE {sql}");
    db.ok(sql).await;
    assert_eq!(counted(&db, sql).await, "none|0|3");
    assert!(!db.ok(&explain).await.contains("<-"));

    add(&db, 5).await;
    let told = db.ok(&explain).await;
    let drawn: Vec<&str> = told.lines().filter(|line| line.trim_start().starts_with("<-")).collect();
    let [read, computed] = drawn.as_slice() else { panic!("{told}") };
    assert!(read.trim_start().starts_with("<- extents 1-3 of f|NULL|entry ") && read.contains("computed in"), "{told}");
    assert!(computed.trim_start().starts_with("<- extent 4 of f (5.parquet)|NULL|computed|"), "{told}");
    db.ok(sql).await;
    assert_eq!(counted(&db, sql).await, "partial|3|4");

    // One in the middle, and a second entry: the extents of the first are no neighbours any more.
    add(&db, 4).await;
    let told = db.ok(&explain).await;
    assert!(told.contains("<- extent 4 of f (4.parquet)|NULL|computed|"), "{told}");
    assert!(told.contains("of f|NULL|entry "), "{told}");
    db.ok(sql).await;
    assert_eq!(counted(&db, sql).await, "partial|4|5");

    // The same text again is answered without planning.
    for _ in 0..2 {
        db.ok(sql).await;
        assert_eq!(counted(&db, sql).await, "exact|5|5");
    }
    db.ok("SET nectarine.reuse = off").await;
    db.ok(sql).await;
    assert_eq!(counted(&db, sql).await, "none|NULL|NULL");
}
