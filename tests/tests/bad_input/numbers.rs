//! Numbers of JSON files that are not those of their columns: told, never cut.

use nectarine_tests::files::gz;

use super::{db, goes_on};

/// Columns are told by the first thousand records: a float behind them finds an integer column.
#[tokio::test]
async fn a_float_in_an_integer_column() {
    let db = db().await;
    let mut json: String = (0..1500).map(|n| format!("{{\"n\":{n},\"s\":\"1.5\"}}\n")).collect();
    json.push_str("{\"n\":2.9,\"s\":\"x\"}\n");
    db.file("f.json", &json);
    db.file("f.json.gz", gz(json.as_bytes()));
    for name in ["f.json", "f.json.gz"] {
        for sql in [
            format!("SELECT sum(n) FROM '{{dir}}/{name}'"),
            format!("SELECT * FROM '{{dir}}/{name}'"),
            format!("CREATE TABLE x AS SELECT n FROM '{{dir}}/{name}'"),
        ] {
            let error = db.err(&sql).await;
            assert!(error.starts_with("Data:") && error.contains(&format!("{{dir}}/{name}")), "{sql}: {error}");
            assert!(error.contains("'2.9'") && error.contains("column \"n\""), "{sql}: {error}");
        }
        // Who does not ask for the column is not told of it.
        assert_eq!(db.ok(&format!("SELECT count(s) FROM '{{dir}}/{name}'")).await, "1501");
    }
    db.ok("CREATE EXTERNAL TABLE f (n DOUBLE, s TEXT) STORED AS JSON LOCATION '{dir}/f.json'").await;
    assert_eq!(db.ok("SELECT max(n), sum(n) FROM f WHERE n < 3").await, "2.9|5.9");
    goes_on(&db).await;
}

#[tokio::test]
async fn numbers_and_the_types_that_they_are_given() {
    let db = db().await;
    for (data_type, json, expected) in [
        ("INT", "2", Ok("2")),
        ("INT", "-2.0", Ok("-2")),
        ("INT", "1e3", Ok("1000")),
        ("INT", "\"7\"", Ok("7")),
        ("INT", "null", Ok("NULL")),
        ("INT", "2.9", Err("not a whole number")),
        ("INT", "-0.5", Err("not a whole number")),
        ("INT", "true", Err("'true'")),
        ("INT", "\"x\"", Err("'x'")),
        ("INT", "3000000000", Err("out of range")),
        ("TINYINT", "128", Err("out of range")),
        ("TINYINT", "-128", Ok("-128")),
        ("BIGINT", "9223372036854775807", Ok("9223372036854775807")),
        ("BIGINT", "-9223372036854775808", Ok("-9223372036854775808")),
        ("BIGINT", "9223372036854775808", Err("out of range")),
        ("BIGINT", "9007199254740993.0", Ok("9007199254740993")),
        ("BIGINT", "1e400", Err("out of range")),
        ("BIGINT UNSIGNED", "18446744073709551615", Ok("18446744073709551615")),
        ("BIGINT UNSIGNED", "-1", Err("out of range")),
        ("DOUBLE", "2.9", Ok("2.9")),
        ("DECIMAL(10, 2)", "2.25", Ok("2.25")),
        ("TEXT", "2.90", Ok("2.90")),
        ("TEXT", "true", Ok("true")),
        ("TEXT", "\"2.9\"", Ok("2.9")),
        ("INT[]", "[1, 2.0, null]", Ok("[1, 2, NULL]")),
        ("INT[]", "[1, 2.5]", Err("'2.5'")),
        ("STRUCT<x INT, y TEXT>", "{\"x\":1.5}", Err("'1.5'")),
    ] {
        db.file("v.json", format!("{{\"v\":{json},\"w\":1}}\n"));
        db.ok(&format!("CREATE OR REPLACE EXTERNAL TABLE v (v {data_type}) STORED AS JSON LOCATION '{{dir}}/v.json'"))
            .await;
        match (db.run("SELECT v FROM v").await, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{json} as {data_type}"),
            (Err(error), Err(told)) => {
                assert!(error.contains(told) && error.contains("{dir}/v.json"), "{json} as {data_type}: {error}");
                assert!(error.contains("column \"v\""), "{json} as {data_type}: {error}");
            }
            (found, expected) => panic!("{json} as {data_type}: {found:?}, not {expected:?}"),
        }
    }
    goes_on(&db).await;
}

/// One array of records, which has no lines.
#[tokio::test]
async fn a_float_in_an_array() {
    let db = db().await;
    db.file("a.json", "[{\"n\":1},\n {\"n\":2}]");
    let make = "CREATE OR REPLACE EXTERNAL TABLE a (n INT) STORED AS JSON LOCATION '{dir}/a.json' OPTIONS ('format.newline_delimited' 'false')";
    db.ok(make).await;
    assert_eq!(db.ok("SELECT sum(n) FROM a").await, "3");
    for (text, told) in [
        ("[{\"n\":1},{\"n\":2.9}]", "'2.9'"),
        ("[{\"n\":1},{\"n\":2}", "{dir}/a.json"),
        ("[{\"n\":1}][{\"n\":2}]", "{dir}/a.json"),
    ] {
        db.file("a.json", text);
        let error = db.err("SELECT sum(n) FROM a").await;
        assert!(error.contains(told) && error.contains("{dir}/a.json"), "{text}: {error}");
    }
    goes_on(&db).await;
}

/// Files of one table whose numbers are written in two ways are numbers.
#[tokio::test]
async fn integers_in_one_file_and_floats_in_another() {
    let db = db().await;
    db.file("j/1.json", "{\"n\":1}\n");
    db.file("j/2.json", "{\"n\":2.5}\n");
    db.file("c/1.csv", "n\n1\n");
    db.file("c/2.csv", "n\n2.5\n");
    for folder in ["j", "c"] {
        assert_eq!(db.ok(&format!("SELECT sum(n) FROM '{{dir}}/{folder}/'")).await, "3.5", "{folder}");
    }
}
