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
    ] {
        match rows {
            "" => assert!(db.err(sql).await.contains("does not exist"), "{sql}"),
            rows => assert_eq!(db.ok(sql).await, rows, "{sql}"),
        }
    }
}
