//! NULL, '' and texts that look like either, through CSV files and back.

use nectarine_tests::db::Db;

/// Texts that could be taken for something else.
const TEXTS: [&str; 14] = ["", " ", "\\N", "NULL", "\"", "\"\"", ",", ";", "\t", "a\nb", "a\r\nb", "it''s", "''", "é☃"];

async fn table(db: &Db) {
    db.ok("CREATE TABLE t (n BIGINT, s TEXT, u TEXT)").await;
    for (n, text) in TEXTS.iter().enumerate() {
        db.ok(&format!("INSERT INTO t VALUES ({n}, '{text}', NULL), ({n} + 100, NULL, '{text}')")).await;
    }
    db.ok("INSERT INTO t VALUES (NULL, NULL, NULL), (1000, 'x', 'y')").await;
}

const ALL: &str = "SELECT n, s IS NULL, replace(replace(s, chr(10), '<lf>'), chr(13), '<cr>'), u IS NULL, \
                   replace(replace(u, chr(10), '<lf>'), chr(13), '<cr>') FROM";

/// With a text for NULL nothing is lost.
#[tokio::test]
async fn texts_come_back_as_they_were() {
    let db = Db::new().await;
    table(&db).await;
    let expected = db.ok(&format!("{ALL} t ORDER BY n")).await;
    for (round, options) in [
        "NULL '<null>'",
        "NULL '<null>', DELIMITER ';'",
        "NULL '<null>', HEADER false",
        "NULL '<null>', QUOTE ''''",
        "NULL '<null>', ESCAPE '\\'",
        "NULL '<null>', DELIMITER E'\\t'",
    ]
    .into_iter()
    .enumerate()
    {
        let sql = format!("COPY t TO '{{dir}}/{round}.csv' WITH (FORMAT csv, {options})");
        assert_eq!(db.ok(&sql).await, "COPY 30", "{options}");
        db.ok("CREATE OR REPLACE TABLE back (n BIGINT, s TEXT, u TEXT)").await;
        let newlines = "'format.newlines_in_values' true";
        let sql = format!("COPY back FROM '{{dir}}/{round}.csv' WITH (FORMAT csv, {options}, {newlines})");
        assert_eq!(db.ok(&sql).await, "COPY 30", "{options}");
        assert_eq!(db.ok(&format!("{ALL} back ORDER BY n")).await, expected, "{options}");
    }
}

/// Every type that CSV has a form for.
#[tokio::test]
async fn values_of_every_type_come_back() {
    let db = Db::new().await;
    let columns = [
        ("a", "BOOLEAN", "true"),
        ("b", "TINYINT", "-128"),
        ("c", "SMALLINT", "-32768"),
        ("d", "INT", "2147483647"),
        ("e", "BIGINT", "-9223372036854775808"),
        ("f", "INT UNSIGNED", "4294967295"),
        ("g", "BIGINT UNSIGNED", "18446744073709551615"),
        ("h", "REAL", "1.5e-30"),
        ("i", "DOUBLE", "0.1"),
        ("j", "DECIMAL(10, 3)", "'-1234567.891'"),
        ("k", "DECIMAL(38, 0)", "'99999999999999999999999999999999999999'"),
        ("l", "DATE", "'0001-01-01'"),
        ("m", "TIME", "'23:59:59.999999'"),
        ("o", "TIMESTAMP", "'1969-12-31T23:59:59.999999'"),
        ("p", "TIMESTAMP WITH TIME ZONE", "'2024-02-29T12:00:00Z'"),
        ("q", "TEXT", "'a,\"b\"'"),
    ];
    let types: Vec<String> = columns.iter().map(|(name, kind, _)| format!("{name} {kind}")).collect();
    let values: Vec<&str> = columns.iter().map(|(_, _, value)| *value).collect();
    let nulls = vec!["NULL"; columns.len()].join(", ");
    db.ok(&format!("CREATE TABLE t ({})", types.join(", "))).await;
    db.ok(&format!("INSERT INTO t VALUES ({}), ({nulls})", values.join(", "))).await;
    let expected = db.ok("SELECT * FROM t ORDER BY a").await;
    for (name, options) in [("x.csv", ""), ("y.csv.gz", ""), ("z.csv", "(NULL 'nothing', DELIMITER '|')")] {
        db.ok(&format!("COPY t TO '{{dir}}/{name}' {options}")).await;
        db.ok(&format!("CREATE OR REPLACE TABLE back ({})", types.join(", "))).await;
        assert_eq!(db.ok(&format!("COPY back FROM '{{dir}}/{name}' {options}")).await, "COPY 2", "{name}");
        assert_eq!(db.ok("SELECT * FROM back ORDER BY a").await, expected, "{name}");
    }
    // What has no form is told, and nothing is left.
    let error = db.err("COPY (SELECT [1, 2] AS list) TO '{dir}/list.csv'").await;
    assert!(error.contains("column \"list\"") && error.contains("CSV"), "{error}");
    assert!(!db.path("list.csv").exists());
}

/// As psql writes them, and all that a CAST knows.
#[tokio::test]
async fn booleans_of_other_programs() {
    let db = Db::new().await;
    db.file("b.csv", "n,b\n1,t\n2,f\n3,\n4,TRUE\n5,False\n6,yes\n7,0\n");
    db.script(
        r#"
        CREATE EXTERNAL TABLE e (n INT, b BOOLEAN) STORED AS CSV LOCATION '{dir}/b.csv';
        SELECT n, b FROM e ORDER BY n;
        -> 1|true
        -> 2|false
        -> 3|NULL
        -> 4|true
        -> 5|false
        -> 6|true
        -> 7|false
        SELECT count(*) FROM e WHERE b;
        -> 3
        CREATE TABLE t (n INT, b BOOLEAN);
        COPY t FROM '{dir}/b.csv';
        -> COPY 7
        SELECT count(*) FILTER (WHERE b), count(b) FROM t;
        -> 3|6
        "#,
    )
    .await;
    db.file("b.csv", "n,b\n1,maybe\n");
    let error = db.err("SELECT b FROM e").await;
    assert!(error.contains("{dir}/b.csv") && error.contains("'maybe'") && error.contains("column \"b\""), "{error}");
    assert_eq!(db.ok("SELECT n FROM e").await, "1");
}
