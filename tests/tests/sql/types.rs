//! Values of every type come back from a managed table as they went in.

use std::fmt::Write;

use arrow::compute::concat_batches;
use nectarine_tests::db::{Db, rows_text};

const VALUES: &[&str] = &[
    "true",
    "arrow_cast(-128, 'Int8')",
    "arrow_cast(-32768, 'Int16')",
    "arrow_cast(1, 'Int32')",
    "9223372036854775807",
    "arrow_cast(255, 'UInt8')",
    "arrow_cast(65535, 'UInt16')",
    "arrow_cast(4294967295, 'UInt32')",
    "arrow_cast('18446744073709551615', 'UInt64')",
    "arrow_cast(0.5, 'Float16')",
    "arrow_cast('NaN', 'Float32')",
    "arrow_cast('-Infinity', 'Float64')",
    "-0.0::DOUBLE",
    "1e-310::DOUBLE",
    "arrow_cast('12345.67', 'Decimal32(7, 2)')",
    "arrow_cast('12345.67', 'Decimal64(12, 2)')",
    "arrow_cast('-99999999999999999999999999999999.999999', 'Decimal128(38, 6)')",
    "arrow_cast('123456789012345678901234567890123456789012345678901234567890.0123456789', 'Decimal256(76, 10)')",
    "arrow_cast(500, 'Decimal128(10, -2)')",
    "'text ☃ with \"quotes\"'",
    "arrow_cast('plain', 'Utf8')",
    "arrow_cast('large', 'LargeUtf8')",
    "arrow_cast('view of a text that is longer than twelve bytes', 'Utf8View')",
    "''",
    "X'00ff10'",
    "arrow_cast(X'00ff10', 'LargeBinary')",
    "arrow_cast(X'00ff10', 'BinaryView')",
    "arrow_cast(X'00ff10', 'FixedSizeBinary(3)')",
    "DATE '0001-01-01'",
    "arrow_cast(DATE '2024-02-29', 'Date64')",
    "arrow_cast(arrow_cast(3600, 'Int32'), 'Time32(Second)')",
    "arrow_cast(arrow_cast(3600001, 'Int32'), 'Time32(Millisecond)')",
    "arrow_cast(3600000001, 'Time64(Microsecond)')",
    "arrow_cast(3600000000001, 'Time64(Nanosecond)')",
    "arrow_cast('2024-02-29T12:00:00', 'Timestamp(Second, None)')",
    "arrow_cast('2024-02-29T12:00:00.123', 'Timestamp(Millisecond, None)')",
    "arrow_cast('2024-02-29T12:00:00.123456789', 'Timestamp(Nanosecond, None)')",
    "arrow_cast('2024-02-29T12:00:00Z', 'Timestamp(Microsecond, Some(\"Europe/Brussels\"))')",
    "arrow_cast('2024-02-29T12:00:00Z', 'Timestamp(Nanosecond, Some(\"+05:30\"))')",
    "arrow_cast('1677-09-22T00:00:00Z', 'Timestamp(Second, Some(\"UTC\"))')",
    "arrow_cast(5, 'Duration(Second)')",
    "arrow_cast(5, 'Duration(Nanosecond)')",
    "INTERVAL '1 year 2 months 3 days 4 hours 5.000000006 seconds'",
    "arrow_cast('14 months', 'Interval(YearMonth)')",
    "arrow_cast('3 days 4 hours', 'Interval(DayTime)')",
    "[1, NULL, 3]",
    "[[1, 2], NULL, []]",
    "['a', NULL]",
    "arrow_cast([1, 2], 'LargeList(Int64)')",
    "arrow_cast([1, 2, 3], 'FixedSizeList(3, Int64)')",
    "arrow_cast([1, 2], 'ListView(Int64)')",
    "[INTERVAL '1 day']",
    "[NULL]",
    "{'a': 1, 'b': 'x', 'c': NULL}",
    "{'a': {'b': [{'c': 1}, {'c': 2}]}}",
    "named_struct('when', INTERVAL '1 day', 'n', 1)",
    "MAP {'a': 1, 'b': NULL}",
    "MAP {1: ['x'], 2: []}",
    "arrow_cast('coded', 'Dictionary(Int32, Utf8)')",
    "arrow_cast('coded', 'Dictionary(UInt8, LargeUtf8)')",
    "arrow_cast(7, 'Dictionary(Int16, Int64)')",
    "arrow_cast('1.5', 'Dictionary(Int8, Decimal128(10, 2))')",
    "[arrow_cast('coded', 'Dictionary(Int32, Utf8)')]",
    "arrow_cast(7, 'RunEndEncoded(\"run_ends\": non-null Int32, \"values\": Int64)')",
    "NULL",
    "{'nothing': NULL}",
];

#[tokio::test]
async fn every_type_comes_back() {
    let mut db = Db::new().await;
    let mut wrong = String::new();
    let mut expected = vec![];
    for (at, value) in VALUES.iter().enumerate() {
        let rows = format!(
            "SELECT v FROM (SELECT 1 AS k, {value} AS v UNION ALL SELECT 2, NULL UNION ALL SELECT 3, {value}) ORDER BY k"
        );
        // A value that DataFusion itself does not know is none of ours.
        let Ok(answer) = db.session().execute(&rows).await else {
            let _ = writeln!(wrong, "{value} is no value here: {:?}", db.run(&rows).await);
            continue;
        };
        let schema = answer.schema();
        let batches = match answer.collect().await {
            Ok(batches) => batches,
            Err(error) => {
                let _ = writeln!(wrong, "{value} is no value here: {error}");
                continue;
            }
        };
        if let Err(error) = db.run(&format!("CREATE TABLE t{at} AS {rows}")).await {
            let _ = writeln!(wrong, "{value}: not stored: {error}");
            continue;
        }
        expected.push((at, *value, concat_batches(&schema, &batches).expect("one schema")));
    }
    for round in ["at once", "after reopening", "after being copied"] {
        for (at, value, before) in &expected {
            let read = format!("SELECT v FROM t{at}");
            let answer = match db.session().execute(&read).await {
                Ok(answer) => answer,
                Err(error) => {
                    let _ = writeln!(wrong, "{round}: {value}: not read: {error:?}");
                    continue;
                }
            };
            let schema = answer.schema();
            let batches = match answer.collect().await {
                Ok(batches) => batches,
                Err(error) => {
                    let _ = writeln!(wrong, "{round}: {value}: not read: {error:?}");
                    continue;
                }
            };
            let after = concat_batches(&schema, &batches).expect("one schema");
            let (was, is) = (before.schema().field(0).data_type().clone(), schema.field(0).data_type().clone());
            if was != is {
                let _ = writeln!(wrong, "{round}: {value}: {was} became {is}");
            } else if before.column(0) != after.column(0)
                && rows_text(std::slice::from_ref(before)) != rows_text(std::slice::from_ref(&after))
            {
                let _ = writeln!(
                    wrong,
                    "{round}: {value}: {} became {}",
                    rows_text(std::slice::from_ref(before)),
                    rows_text(&[after])
                );
            }
            if let Err(error) = db.run(&format!("SELECT count(*), count(v) FROM t{at} WHERE v IS NOT NULL")).await {
                let _ = writeln!(wrong, "{round}: {value}: not counted: {error}");
            }
        }
        match round {
            "at once" => db = db.reopen().await,
            _ => {
                for (at, value, _) in &expected {
                    for sql in [
                        format!("CREATE OR REPLACE TABLE t{at} AS SELECT * FROM t{at}"),
                        format!("INSERT INTO t{at} SELECT * FROM t{at} WHERE false"),
                    ] {
                        if let Err(error) = db.run(&sql).await {
                            let _ = writeln!(wrong, "{round}: {value}: not copied: {error}");
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// All in one table, and appended.
#[tokio::test]
async fn many_types_in_one_table() {
    let db = Db::new().await;
    let columns: Vec<String> = VALUES.iter().enumerate().map(|(at, value)| format!("{value} AS c{at}")).collect();
    db.ok(&format!("CREATE TABLE wide AS SELECT {}", columns.join(", "))).await;
    db.ok("INSERT INTO wide SELECT * FROM wide").await;
    db.ok(&format!("INSERT INTO wide SELECT {}", columns.join(", "))).await;
    let rows = db.ok("SELECT * FROM wide").await;
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| *line == lines[0]), "{rows}");
    assert_eq!(db.clone().reopen().await.ok("SELECT * FROM wide").await, rows);
}

/// Statistics must not cut rows away: values at the edges are found by filters.
#[tokio::test]
async fn edges_are_found() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE f (x DOUBLE);
        INSERT INTO f VALUES (1.0), (CAST('NaN' AS DOUBLE)), (NULL), (-0.0);
        INSERT INTO f VALUES (CAST('Infinity' AS DOUBLE)), (5.0);
        SELECT count(*) FROM f WHERE x > 100 AND NOT isnan(x);
        -> 1
        SELECT count(*) FROM f WHERE x = 0;
        -> 1
        SELECT count(*) FROM f WHERE isnan(x);
        -> 1
        SELECT max(x), min(x), count(x), count(*) FROM f;
        -> NaN|-0.0|5|6
        CREATE TABLE s (x TEXT);
        INSERT INTO s VALUES (repeat('é', 5000)), ('');
        INSERT INTO s VALUES (repeat('z', 5000) || 'a'), (NULL);
        SELECT count(*) FROM s WHERE x = repeat('z', 5000) || 'a';
        -> 1
        SELECT count(*) FROM s WHERE x > repeat('é', 4999);
        -> 1
        SELECT length(min(x)), length(max(x)) FROM s;
        -> 0|5000
        SELECT count(*) FROM s WHERE x = '';
        -> 1
        CREATE TABLE u (x BIGINT UNSIGNED);
        INSERT INTO u VALUES (arrow_cast('18446744073709551615', 'UInt64')), (0);
        SELECT count(*) FROM u WHERE x > 9223372036854775807;
        -> 1
        SELECT max(x), min(x) FROM u;
        -> 18446744073709551615|0
        CREATE TABLE d AS SELECT arrow_cast('99999999999999999999999999999999999999', 'Decimal256(50, 3)') AS x;
        SELECT count(*) FROM d WHERE x > 5;
        -> 1
        CREATE TABLE b AS SELECT false AS x;
        INSERT INTO b VALUES (true);
        SELECT count(*) FROM b WHERE x;
        -> 1
        SELECT min(x), max(x) FROM b;
        -> false|true
        CREATE TABLE n AS SELECT CAST(NULL AS INT) AS x FROM generate_series(1, 10);
        SELECT count(*) FROM n WHERE x IS NULL;
        -> 10
        SELECT max(x) FROM n;
        -> NULL
        "#,
    )
    .await;
}

/// What docs/sql.md says of types that PostgreSQL has otherwise.
#[tokio::test]
async fn types_that_differ_from_postgresql() {
    let db = Db::new().await;
    db.script(
        r#"
        SELECT TIMESTAMP '2024-01-01 10:00:00', TIMESTAMP '2024-01-01';
        -> 2024-01-01T10:00:00|2024-01-01T00:00:00
        SELECT CAST('1500-01-01 00:00:00' AS TIMESTAMP(6)), DATE '1500-01-01';
        -> 1500-01-01T00:00:00|1500-01-01
        SELECT arrow_typeof(CAST(1 AS NUMERIC)) AS a, arrow_typeof(CAST(1 AS NUMERIC(5))) AS b;
        -> Decimal128(38, 10)|Decimal128(5, 0)
        SELECT encode('\x41'::BYTEA, 'hex'), encode(decode('41', 'hex'), 'hex');
        -> 5c783431|41
        "#,
    )
    .await;
    for sql in [
        "SELECT TIMESTAMP '2024-01-01 10:00'",
        "SELECT TIMESTAMP '1500-01-01 00:00:00'",
        "SELECT TIMESTAMP '2300-01-01 00:00:00'",
        "CREATE TABLE u (a UUID)",
        "CREATE TABLE u (a JSON)",
        "CREATE TABLE u (a JSONB)",
        "CREATE TABLE u (a SERIAL)",
    ] {
        db.err(sql).await;
    }
}
