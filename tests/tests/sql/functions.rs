//! Functions written in SQL, and prepared statements.

use nectarine_tests::db::Db;

#[tokio::test]
async fn functions_are_inlined() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE FUNCTION twice(x INT) RETURNS INT RETURN x * 2;
        -> CREATE FUNCTION
        CREATE TABLE t AS SELECT CAST(value AS INT) AS a FROM generate_series(1, 5);
        SELECT twice(a) FROM t ORDER BY a;
        -> 2
        -> 4
        -> 6
        -> 8
        -> 10
        SELECT sum(twice(a)) FROM t WHERE twice(a) > 4;
        -> 24
        CREATE FUNCTION add(x BIGINT, y BIGINT) RETURNS BIGINT RETURN x + y;
        CREATE FUNCTION by_number(BIGINT, BIGINT) RETURNS BIGINT RETURN $1 - $2;
        SELECT add(twice(3), 1), by_number(5, 3), add(NULL, 1);
        -> 7|2|NULL
        CREATE FUNCTION four_times(x INT) RETURNS INT RETURN twice(twice(x));
        SELECT four_times(3);
        -> 12
        CREATE FUNCTION greet(name TEXT) RETURNS TEXT RETURN 'hello ' || upper(name);
        SELECT greet('you');
        -> hello YOU
        CREATE FUNCTION nothing() RETURNS INT RETURN 7;
        SELECT nothing();
        -> 7
        CREATE FUNCTION twice(x INT) RETURNS INT RETURN x * 3;
        !! function "twice" already exists
        CREATE OR REPLACE FUNCTION greet(name TEXT) RETURNS TEXT RETURN 'bye ' || name;
        SELECT greet('you');
        -> bye you
        SELECT twice('x');
        !! 'x'
        SELECT twice(1, 2);
        !! Sql:
        SELECT twicee(1);
        !! function "twicee" does not exist
        CREATE FUNCTION bad(x INT) RETURNS INT RETURN y + 1;
        !! "y"
        CREATE FUNCTION bad(x INT) RETURNS INT RETURN nope(x);
        !! function "nope" does not exist
        CREATE FUNCTION bad(x INT) RETURNS INT RETURN (SELECT max(a) FROM t);
        !! subqueries
        CREATE FUNCTION bad(x INT) RETURNS INT LANGUAGE python AS 'x';
        !! python
        CREATE FUNCTION bad(x INT) RETURNS INT RETURN bad(x);
        !! function "bad" does not exist
        SELECT name FROM system.functions ORDER BY name;
        -> add
        -> by_number
        -> four_times
        -> greet
        -> nothing
        -> twice
        "#,
    )
    .await;
    // The plan holds the body, not the call.
    let plan = db.ok("EXPLAIN SELECT twice(a) FROM t WHERE twice(a) = 4").await;
    let physical = plan.split_once("physical_plan").expect("a physical plan").1;
    // Only the name of the column still tells of the call.
    let body = physical.replace("as twice(t.a)", "");
    assert!(!body.contains("twice") && body.contains("* 2"), "{plan}");
    let db = db.reopen().await;
    db.script(
        r#"
        SELECT sum(twice(a)), four_times(1), greet('you') FROM t GROUP BY 2, 3;
        -> 30|4|bye you
        DROP FUNCTION nope;
        !! function "nope" does not exist
        DROP FUNCTION IF EXISTS nope;
        -> DROP FUNCTION
        -> notice: function "nope" does not exist, skipping
        DROP FUNCTION abs;
        !! built in
        DROP FUNCTION twice;
        -> DROP FUNCTION
        SELECT twice(1);
        !! function "twice" does not exist
        SELECT greet('x');
        -> bye x
        "#,
    )
    .await;
    // What stood on it says so, or kept its body; it never crashes.
    match db.run("SELECT four_times(3)").await {
        Ok(rows) => assert_eq!(rows, "12"),
        Err(error) => {
            assert!(error.starts_with("Sql:") && (error.contains("four_times") || error.contains("twice")), "{error}")
        }
    }
}

/// An argument that is not the same each time is evaluated once, however often the body names it.
#[tokio::test]
async fn an_argument_is_evaluated_once() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE FUNCTION minus_itself(x DOUBLE) RETURNS DOUBLE RETURN x - x;
        SELECT count(*) FROM generate_series(1, 1000) WHERE minus_itself(random()) <> 0;
        -> 0
        CREATE FUNCTION dice() RETURNS DOUBLE RETURN random();
        SELECT count(DISTINCT dice()) > 500 FROM generate_series(1, 1000);
        -> true
        CREATE FUNCTION small(x SMALLINT) RETURNS SMALLINT RETURN x + 1;
        SELECT arrow_typeof(small(CAST(1 AS SMALLINT)));
        -> Int16
        "#,
    )
    .await;
}

#[tokio::test]
async fn functions_in_views_defaults_and_prepared_statements() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE FUNCTION inc(x BIGINT) RETURNS BIGINT RETURN x + 1;
        CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 3);
        CREATE VIEW v AS SELECT inc(a) AS b FROM t;
        SELECT sum(b) FROM v;
        -> 9
        PREPARE p AS SELECT inc(a) FROM t WHERE a = $1;
        EXECUTE p(2);
        -> 3
        CREATE OR REPLACE FUNCTION inc(x BIGINT) RETURNS BIGINT RETURN x + 100;
        SELECT sum(b) FROM v;
        -> 306
        EXECUTE p(2);
        -> 102
        CREATE TABLE d (a BIGINT DEFAULT inc(1), b BIGINT);
        INSERT INTO d (b) VALUES (1);
        SELECT a FROM d;
        -> 101
        "#,
    )
    .await;
    let db = db.reopen().await;
    db.script("SELECT sum(b) FROM v;\n-> 306\nINSERT INTO d (b) VALUES (1);\nSELECT sum(a) FROM d;\n-> 202").await;
}

#[tokio::test]
async fn prepared_statements_see_new_rows() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a;
        PREPARE total AS SELECT count(*), sum(a) FROM t;
        -> PREPARE
        EXECUTE total;
        -> 1|1
        INSERT INTO t VALUES (10);
        EXECUTE total;
        -> 2|11
        PREPARE total AS SELECT 1;
        !! prepared statement "total" already exists
        PREPARE above (INT) AS SELECT a FROM t WHERE a > $1 ORDER BY a;
        EXECUTE above(5);
        -> 10
        EXECUTE above(0);
        -> 1
        -> 10
        EXECUTE above;
        !! expects 1 parameter
        EXECUTE above(1, 2);
        !! expects 1 parameter
        EXECUTE above('text');
        !! text
        PREPARE nop AS SELECT 42 AS a;
        EXECUTE nop;
        -> 42
        EXECUTE nop(1);
        !! prepared statement "nop" expects 0 parameters, 1 were given
        PREPARE two (INT, INT) AS SELECT $1 + 1 AS a;
        !! Prepare specifies 2 data types but query has 1 parameters
        PREPARE newest AS SELECT DISTINCT ON (a) a, a + 1 AS b FROM t WHERE a = 1;
        EXECUTE newest;
        -> 1|2
        PREPARE add (INT) AS INSERT INTO t VALUES ($1);
        EXECUTE add(100);
        -> INSERT 1
        EXECUTE add(1000);
        -> INSERT 1
        EXECUTE total;
        -> 4|1111
        DROP TABLE t;
        EXECUTE total;
        !! does not exist
        CREATE TABLE t AS SELECT 7 AS a;
        EXECUTE total;
        -> 1|7
        DEALLOCATE total;
        -> DEALLOCATE
        EXECUTE total;
        !! prepared statement "total" does not exist
        DEALLOCATE nope;
        !! prepared statement "nope" does not exist
        PREPARE bad AS SELECT * FROM nope;
        !! table "nope" does not exist
        DEALLOCATE ALL;
        EXECUTE above(1);
        !! prepared statement "above" does not exist
        "#,
    )
    .await;
    // They belong to the session.
    db.ok("PREPARE mine AS SELECT 1").await;
    assert!(db.client().err("EXECUTE mine").await.contains("\"mine\" does not exist"));
}

/// As the statement that it runs.
#[tokio::test]
async fn what_is_prepared_is_explained() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 10)").await;
    db.ok("PREPARE above (INT) AS SELECT a FROM t WHERE a > $1").await;
    let plan = db.ok("EXPLAIN EXECUTE above(7)").await;
    assert!(plan.contains("t.a > Int64(7)") && plan.contains("logical_plan") && plan.contains("FilterExec"), "{plan}");
    let ran = db.ok("EXPLAIN ANALYZE EXECUTE above(7)").await;
    assert!(ran.contains("output_rows=3"), "{ran}");
    let tree = db.ok("EXPLAIN FORMAT tree EXECUTE above(7)").await;
    assert!(tree.contains('│'), "{tree}");
    assert!(db.ok("EXPLAIN REUSE EXECUTE above(8)").await.contains("never seen"));
    db.ok("EXECUTE above(8)").await;
    let reuse = db.ok("EXPLAIN REUSE EXECUTE above(8)").await;
    assert!(reuse.contains("hit"), "{reuse}");
    assert_eq!(reuse, db.ok("EXPLAIN REUSE SELECT a FROM t WHERE a > 8").await);
    assert!(db.err("EXPLAIN EXECUTE above").await.contains("expects 1 parameter"));
    assert!(db.err("EXPLAIN EXECUTE nope(1)").await.contains("\"nope\" does not exist"));
    // It writes only if it runs.
    db.ok("PREPARE add (INT) AS INSERT INTO t VALUES ($1)").await;
    db.ok("EXPLAIN EXECUTE add(11)").await;
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "10");
    db.ok("EXPLAIN ANALYZE EXECUTE add(11)").await;
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "11");
    // The statement is still there.
    assert_eq!(db.ok("EXECUTE above(10)").await, "11");
}

/// A function that lacks what it calls says so by name, wherever it is called from.
#[tokio::test]
async fn what_a_function_lacks_is_told_by_name() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE FUNCTION g(x INT) RETURNS INT RETURN x + 1;
        CREATE FUNCTION f(x INT) RETURNS INT RETURN g(x) * 2;
        CREATE FUNCTION e(x INT) RETURNS INT RETURN f(x) + 100;
        CREATE VIEW v AS SELECT f(1) AS a;
        CREATE OR REPLACE FUNCTION g(x INT) RETURNS INT RETURN x + 2;
        SELECT g(1), f(1), e(1), a FROM v;
        -> 3|6|106|6
        CREATE OR REPLACE FUNCTION g(x INT) RETURNS INT RETURN e(x);
        !! function "g" would call itself
        CREATE OR REPLACE FUNCTION g(x INT) RETURNS INT RETURN g(x);
        !! function "g" would call itself
        SELECT e(1);
        -> 106
        DROP FUNCTION g;
        SELECT f(1);
        !! function "g", which "f" calls, does not exist
        SELECT f(a) FROM (VALUES (1), (2)) AS t (a);
        !! function "g", which "f" calls, does not exist
        SELECT e(1);
        !! function "g", which "f" calls, does not exist
        SELECT * FROM v;
        !! view "public.v"
        !! function "g", which "f" calls, does not exist
        SELECT g(1);
        !! function "g" does not exist
        SELECT 1;
        -> 1
        CREATE FUNCTION g(x INT, y INT) RETURNS INT RETURN x + y;
        SELECT f(1);
        !! function "f" does not work any more
        !! g
        CREATE OR REPLACE FUNCTION f(x INT) RETURNS INT RETURN g(x, x) * 2;
        SELECT f(1), e(1);
        -> 4|104
        "#,
    )
    .await;
    let db = db.reopen().await;
    assert_eq!(db.ok("SELECT f(1), e(1), a FROM v").await, "4|104|4");
}

/// Said in words, not as the planner's own notes.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_over_many_rows() {
    let db = Db::new().await;
    for body in ["sum(x)", "row_number() OVER (ORDER BY x)", "x + max(x)"] {
        let error = db.err(&format!("CREATE FUNCTION f(x BIGINT) RETURNS BIGINT RETURN {body}")).await;
        assert!(error.contains("aggregates and window functions in the body are not offered"), "{body}: {error}");
    }
}
