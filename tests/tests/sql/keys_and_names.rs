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
