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

/// What told rows apart below a join, or before lists were taken apart, does not above.
#[tokio::test]
async fn keys_that_hold_no_longer() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT value % 3 AS a FROM generate_series(1, 9)").await;
    db.ok("CREATE TABLE u AS SELECT value % 3 AS a, value % 5 AS b FROM generate_series(1, 30)").await;
    let grouped = "SELECT l.p, m.b, count(*) AS n FROM (SELECT a AS p, max(a) AS top FROM t GROUP BY a) l
        JOIN u m ON l.p = m.a GROUP BY l.p, m.b";
    let distinct = "SELECT DISTINCT l.p, m.b, 6 AS n FROM (SELECT DISTINCT a AS p FROM t) l JOIN u m ON l.p = m.a";
    let taken_apart = "SELECT DISTINCT p, b, 6 AS n FROM
        (SELECT p, unnest(bs) AS b FROM (SELECT a AS p, array_agg(b) AS bs FROM u GROUP BY a))";
    for (number, d) in [grouped, distinct, taken_apart].into_iter().enumerate() {
        db.ok(&format!("CREATE OR REPLACE VIEW d{number} AS {d}")).await;
        let n = if number == 0 { 10 } else { 30 };
        for from in [format!("d{number}"), format!("({d}) d")] {
            for (ask, expected) in [
                ("SELECT count(*) FROM (SELECT DISTINCT p, b FROM {})", "15".to_owned()),
                ("SELECT count(*) FROM (SELECT p, b FROM {} GROUP BY p, b)", "15".to_owned()),
                ("SELECT p, b FROM {} ORDER BY p DESC, b DESC LIMIT 3", "2|4\n2|3\n2|2".to_owned()),
                ("SELECT p, b FROM {} ORDER BY p, b LIMIT 6", "0|0\n0|1\n0|2\n0|3\n0|4\n1|0".to_owned()),
                ("SELECT p, count(*), sum(n) FROM {} GROUP BY p ORDER BY p", format!("0|5|{n}\n1|5|{n}\n2|5|{n}")),
                (
                    "SELECT DISTINCT r FROM (SELECT count(*) OVER (ORDER BY p) AS r FROM {}) ORDER BY r",
                    "5\n10\n15".to_owned(),
                ),
                ("SELECT count(*) FROM t WHERE a IN (SELECT p FROM {} WHERE b = 4)", "9".to_owned()),
            ] {
                let sql = ask.replace("{}", &from);
                for mode in MODES {
                    db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
                    assert_eq!(db.ok(&sql).await, expected, "{mode}: {sql}");
                }
                let cte = format!("WITH d AS ({d}) {}", ask.replace("{}", "d"));
                assert_eq!(db.ok(&cte).await, expected, "{cte}");
            }
        }
    }
}

/// What is computed is not the column of a subquery that is called as it is written.
#[tokio::test]
async fn keys_by_their_names() {
    let db = Db::new().await;
    db.ok("CREATE TABLE k (a BIGINT, s BIGINT)").await;
    db.ok("INSERT INTO k VALUES (1, 5), (2, 7), (3, 9)").await;
    let made = "(SELECT k.a + 1, max(s) AS s2 FROM k GROUP BY k.a + 1)";
    let named = r#"(SELECT a AS "x + y", max(s) * 0 AS x, min(s) * 0 AS y FROM k GROUP BY a)"#;
    for mode in MODES {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        let sql = format!("SELECT k.a + 1 AS z, s2 FROM {made} CROSS JOIN k ORDER BY z, s2 DESC LIMIT 2");
        assert_eq!(db.ok(&sql).await, "2|9\n2|7", "{mode}: {sql}");
        let sql = format!("SELECT DISTINCT x + y AS z FROM {named}");
        assert_eq!(db.ok(&sql).await, "0", "{mode}: {sql}");
    }
}

/// What tells groups apart does not where another column takes its place: `c, g` is not sorted by `c` alone.
#[tokio::test(flavor = "multi_thread")]
async fn orders_above_windows_over_groups() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t (a BIGINT, x BIGINT)").await;
    db.ok("INSERT INTO t VALUES (3, 1), (1, 1), (0, 4), (5, NULL), (4, 4), (2, 5), (2, 1)").await;
    let counted = "(SELECT a AS g, count(x) AS c FROM t GROUP BY a) q";
    let computed = "(SELECT a AS g, coalesce(count(x), 0) AS c FROM t GROUP BY a) q";
    let again = "(SELECT c, g FROM (SELECT a AS g, count(x) AS c FROM t GROUP BY a) GROUP BY c, g) q";
    let windows = [
        "count(*) OVER (ORDER BY c)",
        "sum(c) OVER (ORDER BY c ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "rank() OVER (ORDER BY c)",
        "row_number() OVER (ORDER BY c)",
        "lag(c) OVER (ORDER BY c DESC)",
        "count(*) OVER (PARTITION BY c)",
    ];
    for partitions in [1, 4] {
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        for mode in MODES {
            db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
            let told = format!("{mode}, {partitions} partitions");
            let asked = [counted, computed, again].map(|from| windows.map(|window| (from, window)));
            for (from, window) in asked.into_iter().flatten() {
                let windowed = format!("SELECT c, g, {window} AS z FROM {from}");
                for (order, expected) in [
                    ("c, g", ["0|5", "1|0", "1|1", "1|3", "1|4", "2|2"]),
                    ("c, g DESC", ["0|5", "1|4", "1|3", "1|1", "1|0", "2|2"]),
                    ("c DESC, g", ["2|2", "1|0", "1|1", "1|3", "1|4", "0|5"]),
                ] {
                    let sql = format!("SELECT c, g FROM ({windowed}) WHERE z IS DISTINCT FROM -1 ORDER BY {order}");
                    assert_eq!(db.ok(&sql).await, expected.join("\n"), "{told}: {sql}");
                    let sql = format!("{sql} LIMIT 3");
                    assert_eq!(db.ok(&sql).await, expected[..3].join("\n"), "{told}: {sql}");
                }
            }
            let sql = format!("SELECT c, g, count(*) OVER (ORDER BY c) AS n FROM {counted} ORDER BY c, g");
            assert_eq!(db.ok(&sql).await, "0|5|1\n1|0|5\n1|1|5\n1|3|5\n1|4|5\n2|2|6", "{told}: {sql}");
            let ranked = format!("SELECT c, g, rank() OVER (ORDER BY c DESC) AS n FROM {counted}");
            let sql = format!("{ranked} ORDER BY c DESC, g LIMIT 4");
            assert_eq!(db.ok(&sql).await, "2|2|1\n1|0|2\n1|1|2\n1|3|2", "{told}: {sql}");
        }
    }
}

/// An order that goes further than that of a limit below it.
#[tokio::test(flavor = "multi_thread")]
async fn orders_above_limits() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t (a BIGINT, x BIGINT)").await;
    db.ok("INSERT INTO t VALUES (3, 1), (1, 1), (0, 4), (5, NULL), (4, 4), (2, 5), (2, 1)").await;
    let counted = "(SELECT a AS g, count(x) AS c FROM t GROUP BY a) q";
    let rows = "(SELECT a AS g, a % 3 AS c FROM t WHERE a < 5 UNION ALL SELECT x, x % 3 FROM t WHERE a = 4) q";
    for partitions in [1, 2, 4, 7] {
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        for mode in MODES {
            db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
            let told = format!("{mode}, {partitions} partitions");
            let limited = |from: &str, by: &str| format!("(SELECT c, g FROM {from} ORDER BY {by} LIMIT 10)");
            let sql = format!("SELECT c, g FROM {} ORDER BY c, g", limited(counted, "c"));
            assert_eq!(db.ok(&sql).await, "0|5\n1|0\n1|1\n1|3\n1|4\n2|2", "{told}: {sql}");
            let sql = format!("SELECT c, g FROM {} ORDER BY c DESC, g DESC", limited(counted, "c DESC"));
            assert_eq!(db.ok(&sql).await, "2|2\n1|4\n1|3\n1|1\n1|0\n0|5", "{told}: {sql}");
            let sql = format!("SELECT c, g FROM {} ORDER BY c, g LIMIT 4", limited(rows, "c"));
            assert_eq!(db.ok(&sql).await, "0|0\n0|3\n1|1\n1|4", "{told}: {sql}");
        }
    }
}

/// A filter that shows a part of its columns, in another order, and something computed above it: by the places of what it shows,
/// what it reads are other columns.
#[tokio::test(flavor = "multi_thread")]
async fn filters_that_show_a_part() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t (k INT, id INT, x INT)").await;
    db.ok("INSERT INTO t VALUES (1, 1, 1), (NULL, 2, 2), (5, 3, 3), (7, 4, 4)").await;
    for mode in MODES {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        for (columns, expected) in [
            // The same names at the same places: the wrong `k`, and nothing was said.
            ("b.k, a.id + a.x", "1|4\n7|NULL"),
            // Others: an error.
            ("b.k, a.x, a.id IS NULL AND b.x > a.x", "1|2|false\n7|NULL|NULL"),
        ] {
            let sql =
                format!("SELECT {columns} FROM t a RIGHT JOIN t b ON a.id = b.id + 1 WHERE a.k IS NULL ORDER BY 1");
            assert_eq!(db.ok(&sql).await, expected, "{mode}: {sql}");
        }
    }
}

/// Whole days hold more time than the times that they are made of: DataFusion takes that for more rows than there are, and gives up.
#[tokio::test(flavor = "multi_thread")]
async fn filters_that_can_not_be_estimated() {
    let db = Db::new().await;
    db.ok("CREATE TABLE z AS SELECT value AS id, TIMESTAMP '2023-11-20T10:00:00' + CAST(concat(value * 4, ' hours') AS INTERVAL) AS ts, \
           CAST(value AS DOUBLE) - 5 AS f, value % 3 AS g FROM generate_series(0, 29) UNION ALL SELECT 99, NULL, NULL, 1")
        .await;
    let days = "f * 3 < CAST(4 AS DOUBLE) AND CAST(ts AS DATE) > DATE '2022-01-15'";
    for mode in MODES {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        let sql = format!(
            "SELECT s.g, z.id FROM (SELECT g, sum(id) FROM z WHERE {days} GROUP BY 1) s LEFT JOIN z ON z.id = 1 WHERE z.id < 100 ORDER BY 1"
        );
        assert_eq!(db.ok(&sql).await, "0|1\n1|1\n2|1", "{mode}");
        let sql =
            format!("SELECT count(*) FROM z JOIN (SELECT DISTINCT g FROM z WHERE {days}) s ON z.g = s.g WHERE {days}");
        assert_eq!(db.ok(&sql).await, "7", "{mode}");
    }
    // Files are left out all the same.
    db.ok("SET nectarine.reuse = 'off'").await;
    let plan = db.ok(&format!("EXPLAIN SELECT g, sum(id) FROM z WHERE {days} GROUP BY 1")).await;
    assert!(plan.contains("PlainRowsExec") && plan.contains("pruning_predicate"), "{plan}");
}

/// What is one value in each half of a union tells the halves apart: limits must not compare their rows without it.
#[tokio::test(flavor = "multi_thread")]
async fn constants_in_halves_of_unions() {
    let db = Db::new().await;
    db.ok("CREATE TABLE a (s BIGINT, x BIGINT)").await;
    db.ok("CREATE TABLE b (s BIGINT, x BIGINT)").await;
    // The least are read last, when it has long been told what those of `b` come to.
    for file in (0..12).rev() {
        let values = format!("generate_series({}, {})", 100_001 + 1000 * file, 101_000 + 1000 * file);
        db.ok(&format!("INSERT INTO a SELECT value, value % 2 FROM {values}")).await;
    }
    db.ok("INSERT INTO b SELECT value, value % 2 FROM generate_series(1, 100)").await;
    let union = "SELECT 0 AS k, s FROM a UNION ALL SELECT 1, s FROM b";
    let asked = [
        (format!("{union} ORDER BY k, s LIMIT 2"), "0|100001\n0|100002"),
        (format!("{union} ORDER BY k DESC, s DESC LIMIT 2"), "1|100\n1|99"),
        (format!("{union} ORDER BY k, s LIMIT 2 OFFSET 11999"), "0|112000\n1|1"),
        (format!("SELECT count(*), min(s), max(s) FROM ({union} ORDER BY k, s LIMIT 50) q"), "50|100001|100050"),
        (format!("SELECT k + 1 AS m, s FROM ({union}) q ORDER BY m, s LIMIT 2"), "1|100001\n1|100002"),
        (
            format!("SELECT k, s FROM ({union}) q JOIN (VALUES (0), (1)) v (j) ON k = j ORDER BY k, s LIMIT 2"),
            "0|100001\n0|100002",
        ),
        (
            format!("SELECT k, s FROM ({union}) q WHERE k IN (SELECT x FROM b) ORDER BY k, s LIMIT 2"),
            "0|100001\n0|100002",
        ),
        (
            format!("SELECT k, s, count(*) FROM ({union}) q GROUP BY k, s ORDER BY k, s LIMIT 2"),
            "0|100001|1\n0|100002|1",
        ),
        (
            format!("SELECT k, s, row_number() OVER (ORDER BY k, s) AS n FROM ({union}) q ORDER BY n LIMIT 2"),
            "0|100001|1\n0|100002|2",
        ),
        (
            format!(
                "SELECT k, s, row_number() OVER (PARTITION BY k ORDER BY s) AS n FROM ({union}) q ORDER BY n, k LIMIT 3"
            ),
            "0|100001|1\n1|1|1\n0|100002|2",
        ),
    ];
    let others = [
        ("SELECT 'a' AS k, s FROM a UNION ALL SELECT 'b', s FROM b ORDER BY k, s LIMIT 2", "a|100001\na|100002"),
        (
            "SELECT NULL AS k, s FROM a UNION ALL SELECT 1, s FROM b ORDER BY k NULLS FIRST, s LIMIT 2",
            "NULL|100001\nNULL|100002",
        ),
        ("SELECT 0 AS k, 0 AS j, s FROM a UNION ALL SELECT 0, 1, s FROM b ORDER BY k, j, s LIMIT 1", "0|0|100001"),
        (
            "SELECT 2 AS k, s FROM b UNION ALL (SELECT 0, s FROM a UNION ALL SELECT 1, s FROM b) ORDER BY k, s LIMIT 1",
            "0|100001",
        ),
        (
            "SELECT x AS k, s FROM a WHERE x = 0 UNION ALL SELECT x, s FROM b WHERE x = 1 ORDER BY k, s LIMIT 2",
            "0|100002\n0|100004",
        ),
        (
            "SELECT -count(*) OVER () AS k, s FROM a UNION ALL SELECT -count(*) OVER (), s FROM b ORDER BY k, s LIMIT 2",
            "-12000|100001\n-12000|100002",
        ),
        ("SELECT 'a' AS k, max(s) AS m FROM a UNION ALL SELECT 'b', max(s) FROM b ORDER BY k, m LIMIT 1", "a|112000"),
        ("SELECT 0 AS k, s FROM a UNION SELECT 1, s FROM b ORDER BY k, s LIMIT 1", "0|100001"),
    ];
    for partitions in [1, 2, 4] {
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        for mode in MODES {
            db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
            let asked = asked.iter().map(|(sql, expected)| (sql.as_str(), *expected));
            for (sql, expected) in asked.chain(others) {
                assert_eq!(db.ok(sql).await, expected, "{mode}, {partitions} partitions: {sql}");
            }
        }
    }
    db.ok("SET nectarine.reuse = 'off'").await;
    let plan = db.ok(&format!("EXPLAIN {union} ORDER BY k, s LIMIT 2")).await;
    assert!(plan.contains("TopK(fetch=2), expr=[k@0"), "{plan}");
    // Who wants all rows, or has one value in both halves, sorts by what differs.
    let plan = db.ok(&format!("EXPLAIN {union} ORDER BY k, s")).await;
    assert!(!plan.contains("PlainRowsExec"), "{plan}");
    let plan = db.ok("EXPLAIN SELECT 0 AS k, s FROM a UNION ALL SELECT 0 AS k, s FROM b ORDER BY k, s LIMIT 2").await;
    assert!(!plan.contains("PlainRowsExec") && plan.contains("TopK(fetch=2), expr=[s@"), "{plan}");
}

/// Rows that could change none of the bounds that are told may change another one.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_another_aggregate_needs() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t (i BIGINT, ts TIMESTAMP, n BIGINT, z BIGINT, f BIGINT)").await;
    // Whole files are left out, by their bounds.
    for file in 0..24 {
        let (day, greater, less) = (file + 1, 100 - 10 * file, 95 - 10 * file);
        let n = |i: i64| if file % 3 == 0 { "NULL".to_owned() } else { i.to_string() };
        let z = if file == 23 { "7" } else { "NULL" };
        let row =
            |i: i64, hour: u32| format!("({i}, TIMESTAMP '2024-01-{day:02}T{hour}:00:00', {}, {z}, {file})", n(i));
        db.ok(&format!("INSERT INTO t VALUES {}, {}", row(greater, 11), row(less, 12))).await;
    }
    let asked = [
        // What is no plain column.
        ("SELECT min(i + i), max(i) FROM t", "-270|100"),
        ("SELECT max(i), min(abs(i)) FROM t", "100|0"),
        ("SELECT min(ts), max(ts::date) FROM t", "2024-01-01T11:00:00|2024-01-24"),
        ("SELECT min(DISTINCT i + i), max(DISTINCT i) FROM t", "-270|100"),
        (
            "SELECT lo, hi, most FROM (SELECT min(i + i) AS lo, max(i) AS hi FROM t) q, (SELECT max(i) AS most FROM t WHERE f >= 1) r",
            "-270|100|90",
        ),
        // What has been NULL so far.
        ("SELECT max(i), max(z) FROM t WHERE f >= 0", "100|7"),
        ("SELECT max(i), max(z) FILTER (WHERE f > 20) FROM t WHERE f >= 0", "100|7"),
        ("SELECT max(i), min(ts) FILTER (WHERE f = 23) FROM t WHERE f >= 0", "100|2024-01-24T11:00:00"),
        ("SELECT min(n), max(n) FROM t WHERE f >= 0", "-135|90"),
        ("SELECT min(i), max(i) FROM t WHERE f >= 0", "-135|100"),
        // One by itself.
        ("SELECT min(i) FROM t WHERE f >= 0", "-135"),
        ("SELECT max(n) FROM t WHERE f >= 0", "90"),
        ("SELECT max(z) FROM t WHERE f >= 0", "7"),
        ("SELECT min(i) FILTER (WHERE f = 12) FROM t WHERE f >= 0", "-25"),
    ];
    for partitions in [2, 3, 4] {
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        for mode in MODES {
            db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
            for (sql, expected) in asked {
                assert_eq!(db.ok(sql).await, expected, "{mode}, {partitions} partitions: {sql}");
            }
        }
    }
    // One by itself leaves out files all the same.
    db.ok("SET nectarine.reuse = 'off'").await;
    let plan = db.ok("EXPLAIN SELECT max(i) FROM t WHERE f >= 0").await;
    assert!(plan.contains("DynamicFilter"), "{plan}");
    let plan = db.ok("EXPLAIN SELECT min(i), max(i) FROM t WHERE f >= 0").await;
    assert!(!plan.contains("DynamicFilter"), "{plan}");
}
