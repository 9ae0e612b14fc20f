//! Numbers beside DECIMAL columns: what is written is what is compared and stored.

use nectarine_tests::db::Db;
use nectarine_tests::files::{append, gz};

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

/// As files write numbers, and what a column of two digits behind the point takes of them.
const WRITTEN: [(&str, &str); 14] = [
    ("1.995", "2.00"),
    ("1.994", "1.99"),
    ("-1.995", "-2.00"),
    ("0.0051", "0.01"),
    ("0.005", "0.01"),
    ("-0.005", "-0.01"),
    ("0.0049999999999999999999", "0.00"),
    ("1e-3", "0.00"),
    ("5e-3", "0.01"),
    ("-1.23456e2", "-123.46"),
    ("1E3", "1000.00"),
    ("12", "12.00"),
    ("1234567890123456.785", "1234567890123456.79"),
    ("999999999999999999.994", "999999999999999999.99"),
];

/// A number of any kind of file, in a table over it and in one that it is copied into, is what a CAST makes of it.
#[tokio::test]
async fn files_are_rounded_as_casts_are() {
    let db = Db::new().await;
    let lines = |line: fn(usize, &str) -> String| -> Vec<String> {
        WRITTEN.iter().enumerate().map(|(n, (written, _))| line(n, written)).collect()
    };
    let csv = format!("n,d\n{}\n", lines(|n, written| format!("{n},{written}")).join("\n"));
    let json = lines(|n, written| format!("{{\"n\": {n},\n \"d\": {written}}}"));
    let flat = lines(|n, written| format!("{{\"n\":{n},\"d\":{written}}}"));
    db.file("d.csv", &csv);
    db.file("d.csv.gz", gz(csv.as_bytes()));
    db.file("d.ndjson", format!("{}\n", flat.join("\n")));
    db.file("d.json", format!("[\n{}\n]\n", json.join(",\n")));
    let expected = WRITTEN.map(|(_, rounded)| rounded).join("\n");
    for (name, format) in [("d.csv", "CSV"), ("d.csv.gz", "CSV"), ("d.ndjson", "JSON"), ("d.json", "JSON")] {
        db.ok(&format!(
            "CREATE OR REPLACE EXTERNAL TABLE e (n INT, d DECIMAL(20, 2)) STORED AS {format} LOCATION '{{dir}}/{name}'"
        ))
        .await;
        assert_eq!(db.ok("SELECT d FROM e ORDER BY n").await, expected, "{name}");
        db.ok("CREATE OR REPLACE TABLE t (n INT, d DECIMAL(20, 2))").await;
        assert_eq!(db.ok(&format!("COPY t FROM '{{dir}}/{name}'")).await, "COPY 14", "{name}");
        assert_eq!(db.ok("SELECT d FROM t ORDER BY n").await, expected, "{name}");
        assert_eq!(db.ok("SELECT n FROM e WHERE d = 2").await, "0", "{name}");
    }
    // Where CAST knows the text. Those with exponents it does not.
    for (written, rounded) in WRITTEN.iter().filter(|(written, _)| !written.contains(['e', 'E'])) {
        assert_eq!(db.ok(&format!("SELECT CAST('{written}' AS DECIMAL(20, 2))")).await, *rounded);
    }
}

/// All widths, and numbers inside of others.
#[tokio::test]
async fn files_have_decimals_of_all_widths() {
    let db = Db::new().await;
    let columns = "a DECIMAL(3, 1), b DECIMAL(12, 4), c DECIMAL(38, 20), d DECIMAL(76, 2), e DECIMAL(5, 0)";
    let wide = "12345678901234567890123456789012345678901234567890123456789012345678901234";
    db.file("w.csv", format!("a,b,c,d,e\n99.94,-12345678.00005,0.000000000000000000005,{wide}.005,0.5\n,,,,\n"));
    db.file(
        "w.json",
        format!("{{\"a\":99.94,\"b\":-12345678.00005,\"c\":\"5e-21\",\"d\":{wide}.005,\"e\":0.5}}\n{{}}\n"),
    );
    let expected = format!("99.9|-12345678.0001|0.00000000000000000001|{wide}.01|1\nNULL|NULL|NULL|NULL|NULL");
    for (name, format) in [("w.csv", "CSV"), ("w.json", "JSON")] {
        db.ok(&format!("CREATE OR REPLACE EXTERNAL TABLE w ({columns}) STORED AS {format} LOCATION '{{dir}}/{name}'"))
            .await;
        assert_eq!(db.ok("SELECT * FROM w").await, expected, "{name}");
        db.ok(&format!("CREATE OR REPLACE TABLE t ({columns})")).await;
        db.ok(&format!("COPY t FROM '{{dir}}/{name}'")).await;
        assert_eq!(db.ok("SELECT * FROM t").await, expected, "{name}");
    }
    db.file("l.json", "{\"l\":[1.005,null,-1.005],\"s\":{\"x\":0.05,\"y\":1}}\n");
    let columns = "l DECIMAL(10, 2)[], s STRUCT<x DECIMAL(10, 1), y BIGINT>";
    db.ok(&format!("CREATE EXTERNAL TABLE l ({columns}) STORED AS JSON LOCATION '{{dir}}/l.json'")).await;
    assert_eq!(db.ok("SELECT * FROM l").await, "[1.01, NULL, -1.01]|{x: 0.1, y: 1}");
    db.ok("CREATE TABLE listed (l DECIMAL(10, 2)[])").await;
    db.file("only.json", "{\"l\":[1.005,null,-1.005]}\n");
    db.ok("COPY listed FROM '{dir}/only.json'").await;
    assert_eq!(db.ok("SELECT * FROM listed").await, "[1.01, NULL, -1.01]");
}

/// What has no place in front of the point, or is no number, is an error with the file, the column and the value; who does
/// not ask for the column is not told.
#[tokio::test]
async fn numbers_that_no_decimal_takes() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t (n INT, d DECIMAL(4, 2))").await;
    for (written, told) in [
        ("100", "out of range"),
        ("99.995", "out of range"),
        ("-99.995", "out of range"),
        ("1e400", "out of range"),
        ("1e99999999999999999999", "out of range"),
        ("x", "not a number"),
        ("1.2.3", "not a number"),
        (".", "not a number"),
    ] {
        db.file("v.csv", format!("n,d\n1,{written}\n"));
        db.file("v.json", format!("{{\"n\":1,\"d\":\"{written}\"}}\n"));
        for (name, format) in [("v.csv", "CSV"), ("v.json", "JSON")] {
            let columns = "n INT, d DECIMAL(4, 2)";
            let made = format!("EXTERNAL TABLE v ({columns}) STORED AS {format} LOCATION '{{dir}}/{name}'");
            db.ok(&format!("CREATE OR REPLACE {made}")).await;
            for sql in ["SELECT d FROM v".to_owned(), format!("COPY t FROM '{{dir}}/{name}'")] {
                let error = db.err(&sql).await;
                assert!(error.starts_with("Data:") && error.contains(&format!("{{dir}}/{name}")), "{sql}: {error}");
                assert!(error.contains(told) && error.contains(&format!("'{written}'")), "{sql}: {error}");
                assert!(error.contains("column \"d\""), "{sql}: {error}");
            }
            assert_eq!(db.ok("SELECT n, (SELECT count(*) FROM v) FROM v").await, "1|1", "{written} in {name}");
        }
    }
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "0");
}

/// Many threads, ranges of a file, and what is appended to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_decimals_that_grows() {
    let db = Db::with(&[
        ("datafusion.execution.target_partitions", "5"),
        ("datafusion.optimizer.repartition_file_min_size", "1000"),
    ])
    .await;
    let rows = |from: usize, to: usize| -> String { (from..to).map(|n| format!("{n},{n}.005,x\n")).collect() };
    let path = db.file("g.csv", format!("n,d,s\n{}", rows(0, 5000)));
    db.ok("CREATE EXTERNAL TABLE g (n BIGINT, d DECIMAL(20, 2), s TEXT) STORED AS CSV LOCATION '{dir}/g.csv'").await;
    let all = "SELECT count(*), sum(d), min(d), max(d) FROM g";
    assert_eq!(db.ok(all).await, "5000|12497550.00|0.01|4999.01");
    append(&path, rows(5000, 6000));
    assert_eq!(db.ok(all).await, "6000|17997060.00|0.01|5999.01");
    assert_eq!(db.ok("SELECT count(*) FROM g WHERE d - n = 0.01 AND s = 'x'").await, "6000");
    assert_eq!(db.ok("SELECT d, n FROM g ORDER BY d DESC LIMIT 1").await, "5999.01|5999");
}
