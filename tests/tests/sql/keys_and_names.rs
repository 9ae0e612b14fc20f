//! Keys that come twice and names that two things have: what DataFusion stumbles over.

use nectarine_tests::db::Db;

async fn table() -> Db {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS VALUES (1, 10, 'a'), (1, 20, 'b'), (2, 5, 'c'), (10, 1, NULL)").await;
    db.ok("CREATE TABLE u AS SELECT column1 AS k, column2 AS v, column3 AS s FROM t").await;
    db
}

#[tokio::test]
async fn distinct_on_with_a_key_twice() {
    let db = table().await;
    for order in ["k, v, k", "k, v, k DESC", "k, k, v", "u.k, v, k, v", "1, v, k"] {
        let sql = format!("SELECT DISTINCT ON (k) k, v FROM u ORDER BY {order}");
        assert_eq!(db.ok(&sql).await, "1|10\n2|5\n10|1", "{sql}");
    }
    assert_eq!(db.ok("SELECT DISTINCT ON (k) k, v FROM u ORDER BY k, v DESC, v").await, "1|20\n2|5\n10|1");
    assert_eq!(db.ok("SELECT DISTINCT ON (k, k) k, v FROM u ORDER BY k, k, v").await, "1|10\n2|5\n10|1");
    let inside = "SELECT count(*) FROM (SELECT DISTINCT ON (k) k, v FROM u ORDER BY k, v, k) q";
    assert_eq!(db.ok(inside).await, "3");
}

#[tokio::test]
async fn filters_that_let_everything_through() {
    let db = table().await;
    db.script(
        r#"
        SELECT k, count(v) FILTER (WHERE true) FROM u GROUP BY k HAVING count(v) FILTER (WHERE true) > 1;
        -> 1|2
        SELECT count(s) FILTER (WHERE true), count(*) FILTER (WHERE s = 'a') FROM u HAVING count(s) FILTER (WHERE true) > 1;
        -> 3|1
        CREATE VIEW w AS SELECT k FROM u GROUP BY k HAVING count(v) FILTER (WHERE true) > 1 ORDER BY count(v) FILTER (WHERE true);
        SELECT * FROM w;
        -> 1
        "#,
    )
    .await;
}

#[tokio::test]
async fn sorted_by_what_is_cast() {
    let db = table().await;
    db.script(
        r#"
        SELECT CAST(k AS TEXT) FROM u ORDER BY k, v;
        -> 1
        -> 1
        -> 2
        -> 10
        SELECT k::TEXT, v FROM u ORDER BY k DESC LIMIT 1;
        -> 10|1
        SELECT CAST(u.k AS TEXT) FROM u ORDER BY u.k DESC LIMIT 1;
        -> 10
        CREATE VIEW twice AS SELECT k, k::TEXT FROM u ORDER BY k;
        SELECT * FROM twice LIMIT 1;
        -> 1|1
        CREATE DERIVED TABLE kept AS SELECT k, k::TEXT FROM u;
        SELECT count(*) FROM kept;
        -> 4
        SELECT CAST(started_at AS TEXT) IS NULL FROM system.queries ORDER BY started_at LIMIT 1;
        -> false
        "#,
    )
    .await;
    let times = db.ok("SELECT CAST(started_at AS TEXT) FROM system.queries ORDER BY started_at").await;
    assert!(times.lines().count() > 3 && times.lines().is_sorted(), "{times}");
}

/// Columns of two tables of one name would be taken for each other's.
#[tokio::test]
async fn tables_that_go_by_one_name() {
    let db = Db::new().await;
    db.ok("CREATE SCHEMA zz").await;
    db.ok("CREATE TABLE q AS SELECT 1 AS a, 'pub' AS w").await;
    db.ok("CREATE TABLE zz.q AS SELECT 2 AS a, 'zz' AS w").await;
    for sql in [
        "SELECT * FROM q, zz.q",
        "SELECT * FROM zz.q, q",
        "SELECT count(*) FROM q JOIN zz.q ON q.a = zz.q.a",
        "SELECT count(*) FROM zz.q LEFT JOIN Q ON zz.q.a = q.a WHERE q.a IS NULL",
        "WITH q AS (SELECT 5 AS a) SELECT * FROM q, zz.q",
        "SELECT * FROM zz.q, (SELECT 1 AS a) AS q",
        "SELECT * FROM (zz.q CROSS JOIN (VALUES (1)) v (x)) JOIN q ON true",
        "SELECT 1 WHERE EXISTS (SELECT * FROM nectarine.public.q, zz.q)",
        "CREATE TABLE other AS SELECT q.a AS x, zz.q.a AS y FROM q, zz.q",
        "CREATE VIEW other AS SELECT q.a AS x, zz.q.a AS y FROM q, zz.q",
        // Subqueries without an alias let names through.
        "SELECT * FROM q, (SELECT * FROM zz.q)",
        "SELECT q.w FROM (SELECT * FROM zz.q), q",
        "SELECT * FROM (SELECT * FROM q), (SELECT * FROM zz.q)",
        "SELECT count(*) FROM q JOIN (SELECT * FROM zz.q) ON q.a = zz.q.a",
        "SELECT * FROM zz.q, (SELECT DISTINCT a FROM (SELECT * FROM q WHERE a > 0) ORDER BY a LIMIT 1)",
        "SELECT * FROM zz.q, (SELECT a FROM q EXCEPT SELECT 7)",
        "SELECT * FROM zz.q, (SELECT a, count(*) FROM q GROUP BY a)",
        "SELECT * FROM zz.q, (SELECT q.* FROM q)",
        "CREATE VIEW other AS SELECT q.w FROM q, (SELECT a FROM zz.q)",
        "FROM q |> JOIN zz.q ON q.a = zz.q.a",
    ] {
        let error = db.err(sql).await;
        assert!(error.contains("the name \"q\" for two tables") && error.contains("alias"), "{sql}: {error}");
    }
    for (sql, rows) in [
        ("SELECT * FROM public.q, zz.q", "1|pub|2|zz"),
        ("SELECT public.q.a, zz.q.a FROM zz.q, public.q", "1|2"),
        ("SELECT q.a, z.a FROM q, zz.q AS z", "1|2"),
        ("SELECT x.a, q.a FROM q AS x, zz.q", "1|2"),
        ("SELECT q.a FROM q WHERE EXISTS (SELECT 1 FROM zz.q AS z WHERE z.a > q.a)", "1"),
        ("SELECT (SELECT q.a FROM zz.q) FROM q", "2"),
        ("SELECT a FROM q UNION ALL SELECT a FROM zz.q ORDER BY 1", "1\n2"),
        ("SELECT * FROM q, zz.\"Q\" AS \"Q\" WHERE false", ""),
        ("SELECT * FROM q, (SELECT * FROM zz.q) AS z", "1|pub|2|zz"),
        ("SELECT q.w, a + x FROM q, (SELECT a AS x FROM zz.q)", "pub|3"),
        ("SELECT * FROM q, (SELECT a + 1, count(*) FROM zz.q GROUP BY 1)", "1|pub|3|1"),
        ("SELECT q.a, x FROM q, (SELECT a AS x FROM zz.q UNION ALL SELECT 3) ORDER BY x", "1|2\n1|3"),
        ("SELECT public.q.w, zz.q.w FROM public.q, (SELECT * FROM zz.q)", "pub|zz"),
    ] {
        match rows {
            "" => assert!(db.err(sql).await.contains("does not exist"), "{sql}"),
            rows => assert_eq!(db.ok(sql).await, rows, "{sql}"),
        }
    }
}

/// The same name twice may be refused, or be understood, but not be taken for another.
#[tokio::test]
async fn one_table_twice() {
    let db = Db::new().await;
    db.ok("CREATE TABLE q AS SELECT 1 AS a, 'one' AS w UNION ALL SELECT 2, 'two'").await;
    for sql in [
        "SELECT * FROM q, (SELECT * FROM q)",
        "SELECT q.w FROM q, (SELECT * FROM q WHERE a = 2)",
        "SELECT * FROM (SELECT * FROM q), (SELECT * FROM q)",
        "SELECT count(*) FROM q JOIN (SELECT a FROM q) ON q.a = q.a",
        "SELECT * FROM q, (WITH q AS (SELECT 9 AS a) SELECT * FROM q)",
        "SELECT * FROM q LEFT SEMI JOIN (SELECT a FROM q WHERE a = 2) ON q.a = q.a",
    ] {
        db.err(sql).await;
    }
    assert_eq!(
        db.ok("SELECT q.a, w FROM (SELECT a FROM q), (SELECT w FROM q) ORDER BY 1, 2 LIMIT 2").await,
        "1|one\n1|two"
    );
    assert_eq!(db.ok("SELECT q.a, z.a FROM q JOIN (SELECT * FROM q) AS z ON q.a < z.a").await, "1|2");
}

/// What follows the second operand of `IS DISTINCT FROM` is not a part of it.
#[tokio::test]
async fn distinct_from_and_what_follows() {
    let db = Db::new().await;
    db.script(
        r#"
        SELECT false IS NOT DISTINCT FROM true AND false, NOT 1 IS DISTINCT FROM 1 OR true;
        -> false|true
        SELECT NULL::INT IS NOT DISTINCT FROM NULL AND true AND 1 IS DISTINCT FROM 2 OR false;
        -> true
        SELECT true IS DISTINCT FROM 1 = 2, true IS DISTINCT FROM (true AND false), 1 IS DISTINCT FROM NULL IS NULL;
        -> true|true|false
        CREATE TABLE d (k INT, a INT, b BOOLEAN);
        INSERT INTO d VALUES (1, 1, true), (2, NULL, true), (3, NULL, false), (4, 2, NULL);
        SELECT k FROM d WHERE a IS NOT DISTINCT FROM NULL AND b;
        -> 2
        SELECT k FROM d WHERE NOT a IS NOT DISTINCT FROM NULL AND b OR k = 4 ORDER BY k;
        -> 1
        -> 4
        SELECT l.k FROM d AS l JOIN d AS r ON l.a IS NOT DISTINCT FROM r.a AND l.b IS DISTINCT FROM r.b ORDER BY l.k;
        -> 2
        -> 3
        CREATE VIEW w AS SELECT k FROM d WHERE a IS NOT DISTINCT FROM NULL AND b;
        SELECT * FROM w;
        -> 2
        CREATE FUNCTION apart(x BOOLEAN, y BOOLEAN, z BOOLEAN) RETURNS BOOLEAN RETURN x IS NOT DISTINCT FROM y AND z;
        SELECT apart(false, true, false), apart(true, true, false);
        -> false|false
        PREPARE p (BOOLEAN) AS SELECT false IS NOT DISTINCT FROM $1 AND false;
        EXECUTE p(true);
        -> false
        "#,
    )
    .await;
    let db = db.reopen().await;
    assert_eq!(db.ok("SELECT * FROM w").await, "2");
    assert_eq!(db.ok("SELECT apart(false, true, false)").await, "false");
}
