//! A line of text that stands for gigabytes.

use nectarine_tests::db::Db;

#[tokio::test]
async fn values_are_weighed_before_they_are_made() {
    let db = Db::new().await;
    for sql in [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT length(repeat('x', 2000000000)) FROM (VALUES (1), (2)) t (a)",
        "SELECT length(lpad('x', 2000000000))",
        "SELECT length(rpad('x', 2000000000, 'ab'))",
        "SELECT array_length(array_repeat('x', 2000000000))",
        "SELECT array_length(array_resize([1], 2000000000, 7))",
        "SELECT array_length(range(10000000000))",
        "SELECT array_length(generate_series(1, 10000000000))",
        "SELECT array_length(generate_series(TIMESTAMP '2000-01-01', TIMESTAMP '2020-01-01', INTERVAL '1 microsecond'))",
        "SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 1000000)))",
        "SELECT sum(length(repeat('x', a))) FROM (VALUES (1), (2000000000)) t (a)",
        "SELECT 1 WHERE repeat('x', 2000000000) <> ''",
    ] {
        let error = db.err(sql).await;
        assert!(error.contains("would make a value of") && error.contains("bytes"), "{sql}: {error}");
    }
    db.script(
        r#"
        SELECT length(repeat('ab', 10000000)), length(lpad('x', 20000000)), array_length(range(1000000));
        -> 20000000|20000000|1000000
        SELECT array_length(generate_series(DATE '2020-01-01', DATE '2020-12-31', INTERVAL '1 month')), repeat(NULL, 2000000000);
        -> 12|NULL
        SELECT list_repeat('a', 2), replace('aba', 'b', 'cc'), concat('a', 1, NULL, 'b'), range(3);
        -> [a, a]|acca|a1b|[0, 1, 2]
        "#,
    )
    .await;
    db.ok("SET nectarine.query_memory = '64MB'").await;
    let error = db.err("SELECT length(repeat('x', 20000000))").await;
    assert!(error.contains("would make a value of 20000000 bytes, and 16"), "{error}");
}

/// They are still known for what they are.
#[tokio::test]
async fn results_with_them_are_kept() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 1000)").await;
    let sql = "SELECT max(repeat('x', a % 7)), count(lpad('y', 5)) FROM t";
    let first = db.ok(sql).await;
    assert_eq!(db.ok(&format!("/* again */ {sql}")).await, first);
    let state = db.ok("SELECT reuse FROM system.queries WHERE sql LIKE '/* again%' AND sql NOT LIKE '%system%'").await;
    assert!(state.contains("exact"), "{state}");
}
