//! Wrong answers that DataFusion's own rules would give, with reuse or without: what they believe of rows is not true.

use nectarine_tests::db::Db;

const MODES: [&str; 6] = ["off", "on", "on", "check", "refresh", "read_only"];

/// A constant of a side that an outer join pads is no constant above the join.
#[tokio::test(flavor = "multi_thread")]
async fn constants_below_outer_joins() {
    let db = Db::new().await;
    db.ok("CREATE TABLE a AS SELECT value AS id, value % 4 AS k FROM generate_series(1, 40000)").await;
    db.ok("CREATE TABLE b (k BIGINT)").await;
    db.ok("INSERT INTO b VALUES (1), (2)").await;
    let joined = "FROM a LEFT JOIN (SELECT k, 1 AS c FROM b) x ON a.k = x.k";
    let filtered = "FROM a LEFT JOIN (SELECT k FROM b WHERE k = 2) x ON a.k = x.k";
    let swapped = "FROM (SELECT k, 1 AS c FROM b) x RIGHT JOIN a ON a.k = x.k";
    let full = "FROM a FULL JOIN (SELECT k, 1 AS c FROM b) x ON a.k = x.k";
    let equal =
        "FROM a LEFT JOIN (SELECT k, y FROM (SELECT k, k * 1 AS y FROM b) WHERE coalesce(k, 0) = y) x ON a.k = x.k";
    let uneven = "FROM a LEFT JOIN (SELECT k, 1 AS c FROM b) x ON a.k < x.k";
    // The first run of each statement is by a sort-merge join: what it leaves behind serves the others.
    for (partitions, hash) in [(1, false), (2, false), (7, false), (1, true), (2, true), (7, true)] {
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        db.ok(&format!("SET datafusion.optimizer.prefer_hash_join = {hash}")).await;
        for mode in MODES {
            db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
            let told = format!("{mode}, {partitions} partitions, prefer_hash_join {hash}");
            for from in [joined, swapped, full] {
                let sql = format!("SELECT c, id {from} ORDER BY c DESC NULLS FIRST, id LIMIT 2");
                assert_eq!(db.ok(&sql).await, "NULL|3\nNULL|4", "{told}: {sql}");
                let sql = format!("SELECT c, count(*) {from} GROUP BY c ORDER BY c");
                assert_eq!(db.ok(&sql).await, "1|20000\nNULL|20000", "{told}: {sql}");
                let sql = format!("SELECT count(*) FROM (SELECT DISTINCT c {from})");
                assert_eq!(db.ok(&sql).await, "2", "{told}: {sql}");
                let sql = format!("SELECT DISTINCT n FROM (SELECT count(*) OVER (PARTITION BY c) AS n {from})");
                assert_eq!(db.ok(&sql).await, "20000", "{told}: {sql}");
            }
            let sql = format!("SELECT x.k, a.id {filtered} ORDER BY 1 DESC NULLS FIRST, 2 LIMIT 2");
            assert_eq!(db.ok(&sql).await, "NULL|1\nNULL|3", "{told}: {sql}");
            let sql = format!("SELECT x.k IS NULL, count(*) {filtered} GROUP BY 1 ORDER BY 1");
            assert_eq!(db.ok(&sql).await, "false|10000\ntrue|30000", "{told}: {sql}");
            let sql = format!("SELECT c, count(*) {uneven} GROUP BY c ORDER BY c");
            assert_eq!(db.ok(&sql).await, "1|30000\nNULL|20000", "{told}: {sql}");
            // An equality of more than columns does not hold for rows of NULLs either.
            let sql =
                format!("SELECT y, coalesce(x.k, 0) AS z, count(*) {equal} GROUP BY 1, 2 ORDER BY 2, 1 NULLS FIRST");
            assert_eq!(db.ok(&sql).await, "NULL|0|20000\n1|1|10000\n2|2|10000", "{told}: {sql}");
        }
    }
}

/// So it is with keys that some of the grouping sets leave out.
#[tokio::test(flavor = "multi_thread")]
async fn constants_in_grouping_sets() {
    let db = Db::new().await;
    db.ok("CREATE TABLE a AS SELECT value AS id, value % 4 AS k FROM generate_series(1, 4000)").await;
    db.ok("INSERT INTO a SELECT value AS id, value % 4 AS k FROM generate_series(1, 4000)").await;
    for (partitions, batch) in [(1, 8192), (2, 8192), (2, 100), (7, 2)] {
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        db.ok(&format!("SET datafusion.execution.batch_size = {batch}")).await;
        for mode in MODES {
            db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
            let told = format!("{mode}, {partitions} partitions, batches of {batch}");
            let sql = "SELECT k, id, count(*) FROM a WHERE k = 1 GROUP BY GROUPING SETS ((k), (id), ()) HAVING id IS NULL ORDER BY k";
            assert_eq!(db.ok(sql).await, "1|NULL|2000\nNULL|NULL|2000", "{told}");
            let sql = "SELECT k, id % 3 AS t, count(*) FROM a WHERE k = 1 GROUP BY CUBE (k, id % 3) ORDER BY 1, 2, 3";
            let expected = "1|0|666\n1|1|668\n1|2|666\n1|NULL|2000\nNULL|0|666\nNULL|1|668\nNULL|2|666\nNULL|NULL|2000";
            assert_eq!(db.ok(sql).await, expected, "{told}");
            let sql = "SELECT g, k, count(*) FROM (SELECT k, 7 AS g FROM a) GROUP BY GROUPING SETS ((g), (k), ()) ORDER BY 1, 2";
            let expected = "7|NULL|8000\nNULL|0|2000\nNULL|1|2000\nNULL|2|2000\nNULL|3|2000\nNULL|NULL|8000";
            assert_eq!(db.ok(sql).await, expected, "{told}");
            let sql = "SELECT k, 1 + 1 AS g, count(*) FROM a GROUP BY ROLLUP (k, 1 + 1) ORDER BY g DESC NULLS LAST, k LIMIT 3";
            assert_eq!(db.ok(sql).await, "0|2|2000\n1|2|2000\n2|2|2000", "{told}");
        }
    }
}

/// NaN is larger than every number, and bounds in Parquet files leave it out.
#[tokio::test(flavor = "multi_thread")]
async fn rows_with_nan_are_not_pruned() {
    let db = Db::new().await;
    db.ok("CREATE TABLE managed (f DOUBLE, g REAL, x INT)").await;
    db.ok("INSERT INTO managed VALUES (1.0, 1.0, 1), ('NaN', 'NaN', 2)").await;
    db.ok("INSERT INTO managed VALUES (5.0, 5.0, 3)").await;
    db.ok("COPY (SELECT * FROM managed WHERE x < 3) TO '{dir}/e/0.parquet' STORED AS PARQUET").await;
    db.ok("COPY (SELECT * FROM managed WHERE x = 3) TO '{dir}/e/1.parquet' STORED AS PARQUET").await;
    db.ok("CREATE EXTERNAL TABLE outside STORED AS PARQUET LOCATION '{dir}/e/'").await;
    for pushdown in [false, true] {
        db.ok(&format!("SET datafusion.execution.parquet.pushdown_filters = {pushdown}")).await;
        for mode in MODES {
            db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
            for table in ["managed", "outside"] {
                for column in ["f", "g"] {
                    let asked = [
                        (format!("SELECT x FROM {table} WHERE {column} > 100"), "2"),
                        (format!("SELECT x FROM {table} WHERE {column} = 'NaN'::DOUBLE"), "2"),
                        (format!("SELECT count(*) FROM {table} WHERE {column} >= 3"), "2"),
                        (format!("SELECT x FROM {table} ORDER BY {column} DESC LIMIT 1"), "2"),
                        (format!("SELECT x FROM {table} WHERE {column} IN (SELECT max({column}) FROM {table})"), "2"),
                        (format!("SELECT max({column}) FROM {table}"), "NaN"),
                        (format!("SELECT x FROM {table} WHERE {column} < 2"), "1"),
                    ];
                    for (sql, expected) in asked {
                        assert_eq!(db.ok(&sql).await, expected, "{mode}, pushdown {pushdown}: {sql}");
                    }
                }
            }
        }
    }
}

/// '10' is below '9': bounds of a column are not those of its values as text, numbers or times of day.
#[tokio::test(flavor = "multi_thread")]
async fn bounds_of_casts() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT * FROM (VALUES ('10', 9, TIMESTAMP '2024-01-01T23:00:00'), ('9', 10, TIMESTAMP '2024-01-02T01:00:00'), \
           ('95', 5, TIMESTAMP '2024-01-03T12:00:00'), ('100', 100, TIMESTAMP '2024-01-04T02:00:00')) AS v(s, n, ts)")
        .await;
    db.ok("COPY t TO '{dir}/t.parquet'").await;
    db.ok("COPY (SELECT n, s FROM t) TO '{dir}/p/' STORED AS PARQUET PARTITIONED BY (s)").await;
    for mode in MODES {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        for from in ["t", "'{dir}/t.parquet'"] {
            for (sql, expected) in [
                ("SELECT max(x), min(x) FROM (SELECT s::int AS x FROM t)", "100|9"),
                ("SELECT max(x), min(x) FROM (SELECT CAST(s AS DOUBLE)::int AS x FROM t)", "100|9"),
                ("SELECT max(x), min(x) FROM (SELECT n::text AS x FROM t)", "9|10"),
                ("SELECT max(x), min(x) FROM (SELECT ts::time AS x FROM t)", "23:00:00|01:00:00"),
                ("SELECT max(x), min(x) FROM (SELECT n::double AS x FROM t)", "100.0|5.0"),
                ("SELECT max(s), min(s), max(n) FROM t", "95|10|100"),
                ("SELECT count(*) FROM t WHERE s::int BETWEEN 9 AND 10", "2"),
                ("SELECT x FROM (SELECT s::int AS x FROM t) WHERE x >= 95 ORDER BY x DESC", "100\n95"),
                ("SELECT count(*) FROM (SELECT s FROM t LIMIT 10) WHERE s::int >= 9 AND s::int <= 10", "2"),
            ] {
                let sql = sql.replace("FROM t", &format!("FROM {from}"));
                assert_eq!(db.ok(&sql).await, expected, "{mode}: {sql}");
            }
        }
        assert_eq!(db.ok("SELECT count(*) FROM '{dir}/p/' WHERE s BETWEEN 9 AND 10").await, "2", "{mode}");
    }
}

/// What is known of an aggregate's files is not the answer of another one above it.
#[tokio::test]
async fn aggregates_of_aggregates() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (3)) v (a);
        CREATE TABLE nothing (a INT);
        SELECT count(c) FILTER (WHERE c > 5) FROM (SELECT count(*) AS c FROM t) q;
        -> 0
        SELECT max(c) FILTER (WHERE c > 5) FROM (SELECT count(*) AS c FROM t) q;
        -> NULL
        SELECT max(c) FILTER (WHERE c > 2) FROM (SELECT count(*) AS c FROM t) q;
        -> 3
        SELECT sum(c) FILTER (WHERE c > 5) + 1 AS x, min(c) AS y FROM (SELECT max(a) AS c FROM t) q;
        -> NULL|3
        SELECT count(*) FILTER (WHERE c > 5) FROM (SELECT count(*) AS c FROM nothing HAVING count(*) > 3) q;
        -> 0
        SELECT count(*) FROM (SELECT count(*) AS c FROM t) q;
        -> 1
        SELECT max(c) FROM (SELECT max(c) FILTER (WHERE c > 9) AS c FROM (SELECT count(*) c FROM t) q) r;
        -> NULL
        SELECT count(*), min(a), max(a) FROM t;
        -> 3|1|3
        "#,
    )
    .await;
}

const FEW_ROWS: &str = "
    CREATE TABLE t0 (a INT, b TEXT);
    CREATE TABLE t1 AS SELECT * FROM (VALUES (7, 'x')) v (a, b);
    CREATE TABLE t3 AS SELECT * FROM (VALUES (1, 'x'), (2, 'y'), (NULL, 'x')) v (a, b);
    CREATE TABLE n3 AS SELECT * FROM (VALUES (NULL, 'x'), (NULL, 'y'), (5, 'x')) v (a, b);
";

/// Joins give rows of a constant twice or not at all, and over nothing its sum is NULL.
#[tokio::test]
async fn sums_of_constants() {
    let db = Db::new().await;
    db.script(FEW_ROWS).await;
    db.script(
        r#"
        SELECT sum(x) FROM (SELECT a, 5 AS x FROM t3) q JOIN t1 ON q.a = t1.a;
        -> NULL
        SELECT sum(x), sum(y) FROM (SELECT b, 5 AS x FROM t3) q JOIN (SELECT b, 1 AS y FROM n3) r ON q.b = r.b;
        -> 25|5
        SELECT sum(x) FROM (SELECT b, 5 AS x FROM t3) q LEFT JOIN n3 r ON q.b = r.b;
        -> 25
        SELECT sum(y) FROM t3 JOIN (SELECT a, 1 AS y FROM t3) r ON t3.a = r.a WHERE t3.b = 'x';
        -> 1
        SELECT sum(x) FROM t1 LEFT JOIN (SELECT a, 5 AS x FROM t3) q ON q.a = t1.a;
        -> NULL
        SELECT sum(x) FROM (SELECT 5 AS x FROM t0) q;
        -> NULL
        SELECT sum(n) FROM (SELECT 1 AS n FROM t0 GROUP BY a) q;
        -> NULL
        SELECT 1 FROM (SELECT 5 AS x FROM t0) q HAVING sum(x) IS NOT NULL;
        "#,
    )
    .await;
}

/// A filter leaves one value, or none.
#[tokio::test]
async fn numbers_of_distinct_values() {
    let db = Db::new().await;
    db.script(FEW_ROWS).await;
    db.script(
        r#"
        SELECT count(DISTINCT a), count(DISTINCT b) FROM t3 WHERE a = 2 AND b = 'x';
        -> 0|0
        SELECT count(DISTINCT a), count(DISTINCT b) FROM n3 WHERE a = 4 AND b = 'x';
        -> 0|0
        SELECT count(DISTINCT x), count(DISTINCT y) FROM (SELECT 5 AS x, 6 AS y FROM t3 WHERE b = 'nosuch') q;
        -> 0|0
        SELECT count(DISTINCT x), count(DISTINCT y) FROM (SELECT NULL::int AS x, 5 AS y FROM t3) q;
        -> 0|1
        SELECT count(DISTINCT x), count(DISTINCT y) FROM (SELECT 5 AS x, 6 AS y FROM t0) q;
        -> 0|0
        "#,
    )
    .await;
}
