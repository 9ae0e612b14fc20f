//! Numbers beside DECIMAL columns: what is written is what is compared and stored.

use nectarine_tests::db::Db;

const VALUES: [&str; 10] = [
    "0.07",
    "0.29",
    "1.15",
    "123.45",
    "45678.91",
    "12345678.91",
    "1234567890.12",
    "99999999999.99",
    "9999999999999.99",
    "-12345678.91",
];

#[tokio::test]
async fn every_value_is_found_by_its_number() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t (a DECIMAL(15, 2), wide DECIMAL(38, 10), f DOUBLE)").await;
    for value in VALUES {
        // As numbers, which DataFusion takes for floats, and as texts, which are what they are.
        db.ok(&format!("INSERT INTO t VALUES ({value}, {value}, {value})")).await;
        let stored = db.ok(&format!("SELECT count(*) FROM t WHERE a = '{value}' AND wide = '{value}'")).await;
        assert_eq!(stored, "1", "{value} is stored");
    }
    for value in VALUES {
        for condition in [
            format!("a = {value}"),
            format!("{value} = a"),
            format!("wide = {value}"),
            format!("a IN ({value}, 0.5)"),
            format!("a BETWEEN {value} AND {value}"),
            format!("a >= {value} AND a <= {value}"),
            format!("NOT (a <> {value})"),
            format!("a IS NOT DISTINCT FROM {value}"),
            format!("a = CAST({value} AS DECIMAL(15, 2))"),
            format!("CASE a WHEN {value} THEN true ELSE false END"),
            format!("a = f AND f = {value}"),
        ] {
            assert_eq!(db.ok(&format!("SELECT a FROM t WHERE {condition}")).await, value, "{condition}");
        }
        let between = db.ok(&format!("SELECT count(*) FROM t WHERE a > {value} AND a < {value}")).await;
        assert_eq!(between, "0", "{value}");
    }
    assert_eq!(db.ok("SELECT count(*) FROM t x JOIN t y ON x.a = y.f").await, VALUES.len().to_string());
    // Also where it is kept: in views, functions and what was computed before.
    db.script(
        r#"
        CREATE VIEW v AS SELECT a FROM t WHERE a = 12345678.91;
        CREATE FUNCTION is_it(x DECIMAL(15, 2)) RETURNS BOOLEAN RETURN x = 12345678.91;
        SELECT * FROM v;
        -> 12345678.91
        SELECT * FROM v;
        -> 12345678.91
        SELECT a FROM t WHERE is_it(a);
        -> 12345678.91
        INSERT INTO t (f) VALUES (1e20);
        SELECT count(*) FROM t WHERE f > a;
        -> 0
        SELECT count(*) FROM t WHERE wide < 1e20;
        -> 10
        "#,
    )
    .await;
}

#[tokio::test]
async fn numbers_are_stored_with_all_their_digits() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t (n INT, a DECIMAL(38, 10), r DECIMAL(10, 2));
        INSERT INTO t VALUES (1, 12345678901234567890.1234567891, 1.005), (2, -0.0000000001, -1.005), (3, 99999999999999.9999, 2.675);
        INSERT INTO t (r, n) VALUES (12345678.905, 4);
        SELECT a, r FROM t ORDER BY n;
        -> 12345678901234567890.1234567891|1.01
        -> -0.0000000001|-1.01
        -> 99999999999999.9999000000|2.68
        -> NULL|12345678.91
        SELECT 1.005::DECIMAL(10, 2) AS a, CAST(-2.675 AS DECIMAL(10, 2)) AS b, CAST(12345678.91 AS DECIMAL(38, 20)) AS c;
        -> 1.01|-2.68|12345678.91000000000000000000
        SELECT 12345.678::DECIMAL(5, 2);
        !! too large
        "#,
    )
    .await;
}

/// However it gets into the table, a number is the one that was written.
#[tokio::test]
async fn one_value_however_it_is_inserted() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE d (n INT, x DECIMAL(20, 4));
        INSERT INTO d VALUES (1, 1234567890123456.7891);
        PREPARE p AS INSERT INTO d VALUES (2, 1234567890123456.7891);
        EXECUTE p;
        -> INSERT 1
        EXPLAIN ANALYZE INSERT INTO d VALUES (3, 1234567890123456.7891);
        PREPARE q AS INSERT INTO d (x, n) VALUES ($1, $2);
        EXECUTE q(1234567890123456.7891, 4);
        -> INSERT 1
        EXECUTE q(-1234567890123456.7891, -4);
        PREPARE r AS EXPLAIN ANALYZE INSERT INTO d (x, n) VALUES (1234567890123456.7891, 5);
        EXECUTE r;
        EXPLAIN ANALYZE VERBOSE INSERT INTO d (VALUES (6, 1234567890123456.7891));
        PREPARE s (INT, DECIMAL(20, 4)) AS INSERT INTO d (VALUES ($1, $2));
        EXECUTE s(7, 1234567890123456.7891);
        CREATE TABLE made (n INT, x DECIMAL(20, 4)) AS VALUES (8, 1234567890123456.7891);
        INSERT INTO d SELECT * FROM made;
        PREPARE t AS CREATE TABLE more (n INT, x DECIMAL(20, 4)) AS VALUES (9, 1234567890123456.7891);
        EXECUTE t;
        INSERT INTO d SELECT * FROM more;
        EXPLAIN INSERT INTO d VALUES (10, 0.5);
        INSERT INTO d VALUES (10, (1234567890123456.7891)), (11, -(-1234567890123456.7891)), (-12, -(1234567890123456.7891));
        INSERT INTO d (x, n) (VALUES (1234567890123456.7891, 13), (00000000000000000000000001234567890123456.7891, 14));
        PREPARE x AS INSERT INTO d (x, n) (VALUES ($1, $2));
        EXECUTE x(-(-1234567890123456.7891), 16);
        SELECT x, array_agg(n ORDER BY n) AS ways FROM d GROUP BY x ORDER BY x;
        -> -1234567890123456.7891|[-12, -4]
        -> 1234567890123456.7891|[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 16]
        PREPARE u AS SELECT n FROM d WHERE x = $1 AND n < 2;
        EXECUTE u(1234567890123456.7891);
        -> 1
        CREATE TABLE w (x DECIMAL(38, 10), i DECIMAL(38, 0), f DOUBLE);
        INSERT INTO w VALUES (1234567890123456789012345678.0123456789, 12345678901234567890123456789012345678, 0.1);
        PREPARE v AS INSERT INTO w VALUES ($1, $2, $3);
        EXECUTE v(1234567890123456789012345678.0123456789, 12345678901234567890123456789012345678, 0.1);
        SELECT x, i, f, count(*) FROM w GROUP BY x, i, f;
        -> 1234567890123456789012345678.0123456789|12345678901234567890123456789012345678|0.1|2
        "#,
    )
    .await;
}

/// What is prepared is planned as it is when it is written by itself.
#[tokio::test]
async fn prepared_numbers_are_those_of_any_statement() {
    let db = Db::new().await;
    db.script(
        r#"
        PREPARE p AS SELECT 1.005::DECIMAL(10, 2) AS a, CAST(-2.675 AS DECIMAL(10, 2)) AS b;
        EXECUTE p;
        -> 1.01|-2.68
        CREATE TABLE t (a DECIMAL(15, 2));
        INSERT INTO t VALUES (12345678.91);
        PREPARE q AS SELECT count(*) FROM t WHERE a = 12345678.91 AND a < $1;
        EXECUTE q(12345678.92);
        -> 1
        EXECUTE q(12345678.91);
        -> 0
        CREATE OR REPLACE TABLE t (a DOUBLE);
        PREPARE r AS INSERT INTO t VALUES (0.1);
        EXECUTE r;
        CREATE OR REPLACE TABLE t (a DECIMAL(20, 4));
        EXECUTE r;
        SELECT a FROM t;
        -> 0.1000
        INSERT INTO t VALUES (1.5);
        PREPARE s AS SELECT count(*) FROM t WHERE a = $1;
        EXECUTE s(1.5);
        -> 1
        EXECUTE s(1.50001);
        -> 0
        CREATE TABLE i AS SELECT 2 AS n;
        PREPARE u AS SELECT count(*) FROM i WHERE n < $1;
        EXECUTE u(2.5);
        -> 1
        EXECUTE u(2);
        -> 0
        "#,
    )
    .await;
}

/// PostgreSQL's way is one setting away, and is not mistaken for the other.
#[tokio::test]
async fn numbers_can_be_decimals() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT CAST(1 AS DECIMAL(10, 2)) AS a, CAST(0.1 AS DOUBLE) AS f;
        SELECT 0.1 + 0.2 AS x FROM t;
        -> 0.30000000000000004
        SELECT arrow_typeof(a * 0.07) AS x FROM t;
        -> Float64
        SET datafusion.sql_parser.parse_float_as_decimal = true;
        SELECT 0.1 + 0.2 AS x FROM t;
        -> 0.3
        SELECT arrow_typeof(a * 0.07) AS x FROM t;
        -> Decimal128(13, 4)
        SELECT 12345678901234567890.5 AS x FROM t;
        -> 12345678901234567890.5
        SELECT count(*) FROM t WHERE f = 0.1;
        -> 1
        RESET datafusion.sql_parser.parse_float_as_decimal;
        SELECT 0.1 + 0.2 AS x FROM t;
        -> 0.30000000000000004
        "#,
    )
    .await;
}
