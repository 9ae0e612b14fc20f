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
