//! Rows that are there several times, and groups that are there without rows.

use nectarine_tests::db::Db;

async fn tables() -> Db {
    let db = Db::new().await;
    db.ok("CREATE TABLE x AS SELECT * FROM (VALUES (1), (2), (NULL)) v (i)").await;
    db.ok("CREATE TABLE n AS SELECT * FROM (VALUES (1, true), (NULL, true), (3, false)) v (k, b)").await;
    db.ok("CREATE TABLE l AS SELECT * FROM (VALUES (1, 'a'), (1, 'a'), (2, 'b'), (NULL, NULL), (NULL, NULL), (NULL, 'c')) v (i, s)")
        .await;
    db.ok("CREATE TABLE r AS SELECT * FROM (VALUES (1, 'a'), (2, 'x'), (NULL, NULL), (3, 'd'), (3, 'd')) v (i, s)")
        .await;
    db
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_there_several_times() {
    let db = tables().await;
    for mode in ["off", "on", "on"] {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        for (sql, rows) in [
            ("SELECT * FROM l EXCEPT ALL SELECT * FROM r ORDER BY 1, 2", "1|a\n2|b\nNULL|c\nNULL|NULL"),
            ("SELECT * FROM l INTERSECT ALL SELECT * FROM r ORDER BY 1, 2", "1|a\nNULL|NULL"),
            ("SELECT * FROM r INTERSECT ALL SELECT * FROM r ORDER BY 1, 2", "1|a\n2|x\n3|d\n3|d\nNULL|NULL"),
            ("SELECT * FROM l EXCEPT SELECT * FROM r ORDER BY 1, 2", "2|b\nNULL|c"),
            ("SELECT * FROM l INTERSECT SELECT * FROM r ORDER BY 1, 2", "1|a\nNULL|NULL"),
            ("SELECT i FROM l EXCEPT ALL SELECT i FROM r EXCEPT ALL SELECT 1 ORDER BY 1", "NULL\nNULL"),
            ("SELECT count(*) FROM (SELECT i FROM l EXCEPT ALL SELECT i::bigint + 0 FROM r) q", "3"),
            (
                "WITH c AS (SELECT i FROM l EXCEPT ALL (VALUES (1))) SELECT * FROM c p JOIN c q ON p.i = q.i ORDER BY 1",
                "1|1\n2|2",
            ),
            ("SELECT k FROM n WHERE k IN (SELECT i FROM l INTERSECT ALL SELECT i FROM r)", "1"),
        ] {
            assert_eq!(db.ok(sql).await, rows, "{mode}: {sql}");
        }
    }
}

/// What is never NULL is not taken for what may be.
#[tokio::test]
async fn groups_over_truth() {
    let db = tables().await;
    for (sql, rows) in [
        ("SELECT k, count(c) FROM (SELECT k, b IS TRUE AS c FROM n) s GROUP BY k ORDER BY k", "1|1\n3|1\nNULL|1"),
        (
            "SELECT sum(CASE WHEN c THEN 1 ELSE 0 END), count(d) FROM (SELECT b IS NOT TRUE AS c, b IS FALSE AS d FROM n) s",
            "1|3",
        ),
        ("SELECT count(c), count(*) FROM (SELECT b IS NOT FALSE AS c, b IS UNKNOWN FROM n ORDER BY k) s", "3|3"),
        ("SELECT b IS TRUE FROM n ORDER BY k", "true\nfalse\ntrue"),
        (
            "WITH t AS (SELECT b IS TRUE AS c FROM n UNION ALL SELECT false) SELECT c, count(*) FROM t GROUP BY c ORDER BY c",
            "false|2\ntrue|2",
        ),
    ] {
        assert_eq!(db.ok(sql).await, rows, "{sql}");
    }
    let names = db.batches("SELECT b IS TRUE FROM n").await;
    assert_eq!(names[0].schema().field(0).name(), "n.b IS TRUE");
}

/// One side of a union learns only when its subquery has become a join that it may hold NULL.
#[tokio::test]
async fn unions_with_subqueries() {
    let db = tables().await;
    for (sql, rows) in [
        (
            "SELECT i % 2, sum(b) FROM (SELECT i, 1 AS b FROM x UNION ALL SELECT i, (SELECT count(*) FROM n WHERE n.k = p.i) FROM x p) q \
             GROUP BY 1 ORDER BY 1",
            "0|1\n1|2\nNULL|1",
        ),
        ("SELECT 5 AS b UNION ALL SELECT (SELECT count(*) FROM n WHERE n.k = p.i) FROM x p ORDER BY 1", "0\n0\n1\n5"),
    ] {
        assert_eq!(db.ok(sql).await, rows, "{sql}");
    }
}

/// Conditions that use no column hold for all rows or for none, also where there is a row of no rows.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_without_columns() {
    let db = tables().await;
    for mode in ["off", "on", "on"] {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        for (sql, rows) in [
            ("SELECT count(*) FROM x HAVING (SELECT count(*) FROM n) > 100", ""),
            ("SELECT count(*) FROM x HAVING (SELECT count(*) FROM n) > 1", "3"),
            ("SELECT * FROM (SELECT count(*) AS c, false AS flag FROM x) q WHERE flag", ""),
            ("SELECT * FROM (SELECT count(*) AS c, true AS flag FROM x) q WHERE flag", "3|true"),
            ("SELECT a.m, b.i FROM (SELECT max(i) AS m FROM x) a CROSS JOIN x b WHERE 6 < (SELECT min(k) FROM n)", ""),
            ("SELECT count(c), count(*) FROM x LEFT JOIN (SELECT count(*) AS c FROM n) q ON false", "0|3"),
            ("SELECT i, count(*) FROM x GROUP BY ROLLUP (i) HAVING (SELECT count(*) FROM n) > 100", ""),
            ("SELECT i, count(*) FROM x GROUP BY CUBE (i) HAVING (SELECT min(k) FROM n) > 6", ""),
            ("SELECT i, count(*) FROM x GROUP BY GROUPING SETS ((i), ()) HAVING random() > 2", ""),
            ("SELECT i, count(*) FROM x GROUP BY i HAVING (SELECT count(*) FROM n) > 100", ""),
            ("SELECT sum(c) FROM (SELECT count(*) AS c FROM x) q WHERE random() > 2", "NULL"),
            ("SELECT i, count(*) FROM x GROUP BY ROLLUP (i) HAVING i = 1", "1|1"),
        ] {
            assert_eq!(db.ok(sql).await, rows, "{mode}: {sql}");
        }
    }
    // Conditions on the rows themselves go down all the same.
    let plan = db.ok("EXPLAIN SELECT * FROM (SELECT k, count(*) FROM n GROUP BY k) q WHERE k = 1").await;
    assert!(plan.find("Aggregate").expect("it groups") < plan.find("Filter: n.k").unwrap_or(usize::MAX), "{plan}");
}
