//! Files of one table that do not agree with each other, or with themselves.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use nectarine_tests::files::parquet;

use super::{db, goes_on};

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn floats(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

#[tokio::test]
async fn csv_with_ragged_rows() {
    let db = db().await;
    db.file("short.csv", "a,b,c\n1,2,3\n4,5\n");
    db.file("long.csv", "a,b\n1,2\n3,4,5\n");
    let far: String = (0..5000).map(|n| if n == 4321 { format!("{n}\n") } else { format!("{n},x\n") }).collect();
    db.file("far.csv", format!("a,b\n{far}"));
    for name in ["short.csv", "long.csv", "far.csv"] {
        for sql in [
            format!("SELECT * FROM '{{dir}}/{name}'"),
            format!("SELECT count(*) FROM '{{dir}}/{name}'"),
            format!("CREATE TABLE x AS SELECT * FROM '{{dir}}/{name}'"),
        ] {
            let error = db.err(&sql).await;
            assert!(error.starts_with("Data:") && error.contains(&format!("{{dir}}/{name}")), "{sql}: {error}");
            // Rows have fields, whoever tells it.
            assert!(error.contains("a row has ") && !error.contains(" records"), "{sql}: {error}");
        }
        db.ok(&format!(
            "CREATE OR REPLACE EXTERNAL TABLE r (a BIGINT, b TEXT) STORED AS CSV LOCATION '{{dir}}/{name}'"
        ))
        .await;
        let error = db.err("SELECT * FROM r").await;
        assert!(error.starts_with("Data:") && error.contains(&format!("{{dir}}/{name}")), "{name}: {error}");
    }
    db.script(
        r#"
        SELECT * FROM x;
        !! table "x" does not exist
        CREATE TABLE target (a BIGINT, b TEXT);
        COPY target FROM '{dir}/far.csv';
        !! {dir}/far.csv
        SELECT count(*) FROM target;
        -> 0
        CREATE EXTERNAL TABLE lenient (a BIGINT, b BIGINT, c BIGINT) STORED AS CSV LOCATION '{dir}/short.csv' OPTIONS ('format.truncated_rows' 'true');
        SELECT * FROM lenient ORDER BY a;
        -> 1|2|3
        -> 4|5|NULL
        "#,
    )
    .await;
    goes_on(&db).await;
}

/// What does not parse as the column's type is named with its file.
#[tokio::test]
async fn values_that_do_not_parse() {
    let db = db().await;
    db.file("v.csv", "a,b\n1,2024-01-01\nx,2024-01-02\n");
    db.file("v.json", "{\"a\": 1}\n{\"a\": \"x\"}\n");
    db.file("broken.json", "{\"a\": 1}\n{\"a\": \n");
    db.script(
        r#"
        CREATE EXTERNAL TABLE v (a BIGINT, b DATE) STORED AS CSV LOCATION '{dir}/v.csv';
        SELECT * FROM v;
        !! Data:
        !! {dir}/v.csv
        SELECT b FROM v ORDER BY b;
        -> 2024-01-01
        -> 2024-01-02
        INSERT INTO kept SELECT a FROM v;
        !! {dir}/v.csv
        COPY kept FROM '{dir}/v.csv';
        !! {dir}/v.csv
        CREATE EXTERNAL TABLE j (a BIGINT) STORED AS JSON LOCATION '{dir}/v.json';
        SELECT * FROM j;
        !! Data:
        !! {dir}/v.json
        SELECT * FROM '{dir}/broken.json';
        !! {dir}/broken.json
        "#,
    )
    .await;
    goes_on(&db).await;
}

#[tokio::test]
async fn parquet_files_with_other_columns_are_read_by_name() {
    let db = db().await;
    parquet(&db.path("d/1.parquet"), vec![("a", ints(&[1])), ("b", texts(&["x"]))]);
    parquet(&db.path("d/2.parquet"), vec![("c", floats(&[0.5])), ("a", ints(&[2]))]);
    db.script(
        r#"
        CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION '{dir}/d/';
        SELECT a, b, c FROM d ORDER BY a;
        -> 1|x|NULL
        -> 2|NULL|0.5
        SELECT * FROM '{dir}/d/*.parquet' ORDER BY a;
        -> 1|x|NULL
        -> 2|NULL|0.5
        "#,
    )
    .await;
    // Files that come later: in another order, with more, with less, with narrower numbers.
    parquet(
        &db.path("d/3.parquet"),
        vec![("new", ints(&[9])), ("c", floats(&[1.5])), ("b", texts(&["z"])), ("a", ints(&[3]))],
    );
    parquet(&db.path("d/4.parquet"), vec![("a", Arc::new(Int32Array::from(vec![4])) as ArrayRef)]);
    parquet(&db.path("d/5.parquet"), vec![("other", ints(&[5]))]);
    db.script(
        r#"
        SELECT a, b, c FROM d ORDER BY a;
        -> 1|x|NULL
        -> 2|NULL|0.5
        -> 3|z|1.5
        -> 4|NULL|NULL
        -> NULL|NULL|NULL
        SELECT count(*), count(a), count(b), sum(a) FROM d;
        -> 5|4|2|10
        SELECT a FROM d WHERE b IS NULL ORDER BY a;
        -> 2
        -> 4
        -> NULL
        SELECT a FROM d WHERE a > 2 ORDER BY a;
        -> 3
        -> 4
        SELECT new FROM d;
        !! column "new" does not exist
        "#,
    )
    .await;
    goes_on(&db).await;
}

#[tokio::test]
async fn parquet_files_with_types_that_do_not_fit() {
    let db = db().await;
    parquet(&db.path("d/1.parquet"), vec![("a", ints(&[1])), ("b", texts(&["x"]))]);
    parquet(&db.path("d/2.parquet"), vec![("a", texts(&["two"])), ("b", texts(&["y"]))]);
    // Neither a table nor a query: the column is named, and where it is.
    for sql in ["CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION '{dir}/d/'", "SELECT * FROM '{dir}/d/*.parquet'"] {
        let error = db.err(sql).await;
        assert!(error.contains("{dir}/d/") && error.contains("\"a\""), "{sql}: {error}");
    }
    // The same when the file comes later.
    let second = db.folder().join("d/2.parquet");
    std::fs::remove_file(&second).expect("it was there");
    db.ok("CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION '{dir}/d/'").await;
    assert_eq!(db.ok("SELECT * FROM d").await, "1|x");
    parquet(&second, vec![("a", texts(&["two"])), ("b", texts(&["y"]))]);
    for sql in ["SELECT * FROM d", "SELECT sum(a) FROM d", "INSERT INTO kept SELECT a FROM d"] {
        let error = db.err(sql).await;
        assert!(error.starts_with("Data:") && error.contains("{dir}/d/2.parquet"), "{sql}: {error}");
    }
    // A number that is too large for the table's column.
    parquet(&db.path("n/1.parquet"), vec![("a", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]);
    db.ok("CREATE EXTERNAL TABLE n STORED AS PARQUET LOCATION '{dir}/n/'").await;
    parquet(&db.path("n/2.parquet"), vec![("a", ints(&[1 << 40]))]);
    let error = db.err("SELECT * FROM n").await;
    assert!(error.contains("{dir}/n/2.parquet"), "{error}");
    let error = db.err("SELECT count(*) FROM n WHERE a > 5").await;
    assert!(error.contains("{dir}/n/2.parquet"), "{error}");
    goes_on(&db).await;
}

/// A column that may not be NULL where the table was made, and is not there at all later.
#[tokio::test]
async fn a_file_without_a_column_that_must_not_be_null() {
    let db = db().await;
    let schema =
        Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Int64, false)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![ints(&[1]), ints(&[2])]).expect("it fits");
    let file = std::fs::File::create(db.path("d/1.parquet")).expect("a file");
    let mut writer = ::parquet::arrow::ArrowWriter::try_new(file, schema, None).expect("a valid schema");
    writer.write(&batch).expect("it fits");
    writer.close().expect("it fits");
    db.ok("CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION '{dir}/d/'").await;
    parquet(&db.path("d/2.parquet"), vec![("a", ints(&[2]))]);
    match db.run("SELECT a, b FROM d ORDER BY a").await {
        Ok(rows) => assert_eq!(rows, "1|2\n2|NULL"),
        Err(error) => assert!(error.contains("{dir}/d/2.parquet"), "{error}"),
    }
    match db.run("SELECT count(*) FROM d WHERE b IS NULL").await {
        Ok(rows) => assert_eq!(rows, "1"),
        Err(error) => assert!(error.contains("{dir}/d/2.parquet"), "{error}"),
    }
    goes_on(&db).await;
}

/// Values of CSV files go by position: another header would put them into the wrong columns.
#[tokio::test]
async fn csv_with_another_header() {
    let db = db().await;
    db.file("d/1.csv", "a,b\n1,2\n");
    db.ok("CREATE EXTERNAL TABLE d STORED AS CSV LOCATION '{dir}/d/'").await;
    assert_eq!(db.ok("SELECT * FROM d").await, "1|2");
    db.file("d/2.csv", "a,b\n3,4\n");
    assert_eq!(db.ok("SELECT * FROM d ORDER BY a").await, "1|2\n3|4");
    for (content, header) in [
        ("b,a\n4,3\n", "(b, a)"),
        ("a,c\n3,4\n", "(a, c)"),
        ("a,b,c\n3,4,5\n", "(a, b, c)"),
        ("a\n3\n", "(a)"),
        ("3,4\n5,6\n", "(3, 4)"),
    ] {
        db.file("d/2.csv", content);
        for sql in ["SELECT * FROM d", "SELECT a FROM d", "SELECT count(*) FROM d", "INSERT INTO kept SELECT a FROM d"]
        {
            match db.run(sql).await {
                Err(error) => {
                    assert!(error.starts_with("Data:") && error.contains("{dir}/d/2.csv"), "{header} {sql}: {error}");
                    assert!(error.contains(header) && error.contains("(a, b)"), "{header} {sql}: {error}");
                    assert_eq!(error.matches("2.csv").count(), 1, "{header} {sql}: {error}");
                }
                Ok(rows) => panic!("{header} {sql}: {rows}"),
            }
        }
    }
    db.file("d/2.csv", "a,b\n3,4\n");
    assert_eq!(db.ok("SELECT * FROM d ORDER BY a").await, "1|2\n3|4");
    // Quoted names, a byte order mark and other line ends are the same header.
    db.file("d/2.csv", "\u{feff}\"a\",\"b\"\r\n3,4\r\n");
    assert_eq!(db.ok("SELECT * FROM d ORDER BY a").await, "1|2\n3|4");
    // The same for packed files, which are never cut into ranges.
    db.file("d/2.csv", "a,b\n3,4\n");
    db.file("d/3.csv.gz", nectarine_tests::files::gz(b"b,a\n6,5\n"));
    let error = db.err("SELECT * FROM d").await;
    assert!(error.contains("{dir}/d/3.csv.gz") && error.contains("(b, a)"), "{error}");
    goes_on(&db).await;
}

/// Given columns may have names of their own, but not those of other columns of the file.
#[tokio::test]
async fn csv_with_given_columns_and_another_header() {
    let db = db().await;
    db.file("d/1.csv", "a,b\n1,2\n");
    let make =
        |columns: &str| format!("CREATE OR REPLACE EXTERNAL TABLE d ({columns}) STORED AS CSV LOCATION '{{dir}}/d/'");
    for columns in ["b INT, a INT", "x INT, a INT", "b INT, x INT", "\"B\" INT, x INT"] {
        let error = match db.run(&make(columns)).await {
            Ok(_) => db.err("SELECT * FROM d").await,
            Err(error) => error,
        };
        assert!(error.contains("{dir}/d/1.csv") && error.contains("its header is (a, b)"), "{columns}: {error}");
    }
    for columns in ["a INT, b INT", "A INT, \"B\" INT", "x INT, y INT", "a INT, y INT"] {
        db.ok(&make(columns)).await;
        assert_eq!(db.ok("SELECT * FROM d").await, "1|2", "{columns}");
    }
    // Giving names is how a file is read that has one twice.
    db.file("twice/1.csv", "a,A,b\n1,2,3\n");
    let twice = |columns: &str| make(columns).replace("{dir}/d/", "{dir}/twice/");
    for columns in ["a INT, b1 INT, b INT", "x INT, a INT, y INT", "\"A\" INT, a INT, b INT"] {
        db.ok(&twice(columns)).await;
        assert_eq!(db.ok("SELECT * FROM d").await, "1|2|3", "{columns}");
    }
    for columns in ["a INT, b INT, c INT", "x INT, y INT, a INT"] {
        let error = match db.run(&twice(columns)).await {
            Ok(_) => db.err("SELECT * FROM d").await,
            Err(error) => error,
        };
        assert!(error.contains("its header is (a, A, b)"), "{columns}: {error}");
    }
    db.file("same/1.csv", "a,a\n1,2\n");
    db.ok(&make("a INT, b INT").replace("{dir}/d/", "{dir}/same/")).await;
    assert_eq!(db.ok("SELECT b, a FROM d").await, "2|1");
    // COPY goes by position.
    db.ok("CREATE TABLE turned (b INT, a INT)").await;
    db.ok("COPY turned FROM '{dir}/d/1.csv'").await;
    assert_eq!(db.ok("SELECT b, a FROM turned").await, "1|2");
    goes_on(&db).await;
}

/// The same where the files are there from the beginning.
#[tokio::test]
async fn csv_files_with_different_headers_make_no_table() {
    let db = db().await;
    db.file("d/1.csv", "a,b\n1,2\n");
    db.file("d/2.csv", "b,a\n4,3\n");
    for sql in ["SELECT * FROM '{dir}/d/*.csv'", "CREATE TABLE x AS SELECT * FROM '{dir}/d/*.csv'"] {
        let error = db.err(sql).await;
        assert!(error.contains("{dir}/d/") && error.contains("header"), "{sql}: {error}");
    }
    goes_on(&db).await;
}

#[tokio::test]
async fn json_files_with_other_keys_are_read_by_name() {
    let db = db().await;
    db.file("d/1.json", "{\"a\":1,\"b\":\"x\"}\n");
    db.ok("CREATE EXTERNAL TABLE d STORED AS JSON LOCATION '{dir}/d/'").await;
    db.file("d/2.json", "{\"b\":\"y\",\"a\":2,\"c\":true}\n{}\n{\"a\":null}\n");
    assert_eq!(db.ok("SELECT a, b FROM d ORDER BY a, b").await, "1|x\n2|y\nNULL|NULL\nNULL|NULL");
    db.file("d/3.json", "{\"a\":\"text\"}\n");
    let error = db.err("SELECT a FROM d").await;
    assert!(error.contains("{dir}/d/3.json"), "{error}");
    goes_on(&db).await;
}

/// Columns that differ in their case only, or have no name, or occur twice.
#[tokio::test]
async fn odd_column_names_in_files() {
    let db = db().await;
    db.file("twice.csv", "a,a\n1,2\n");
    db.file("blank.csv", ",b\n1,2\n");
    db.file("case.csv", "A,a\n1,2\n");
    db.file("quoted.csv", "\"we \"\"are\"\" here\",\"x,y\"\n1,2\n");
    for name in ["twice.csv", "blank.csv"] {
        if let Err(error) = db.run(&format!("SELECT * FROM '{{dir}}/{name}'")).await {
            assert!(!error.starts_with("Internal"), "{error}");
        }
        if let Err(error) =
            db.run(&format!("CREATE EXTERNAL TABLE \"{name}\" STORED AS CSV LOCATION '{{dir}}/{name}'")).await
        {
            assert!(!error.starts_with("Internal"), "{error}");
        }
    }
    assert_eq!(db.ok("SELECT \"A\", a FROM '{dir}/case.csv'").await, "1|2");
    assert_eq!(db.ok("SELECT \"we \"\"are\"\" here\" + \"x,y\" FROM '{dir}/quoted.csv'").await, "3");
    goes_on(&db).await;
}

/// A cast from what a file has to what the table has must not lose anything without a word.
#[tokio::test]
async fn parquet_files_that_would_be_cut() {
    let db = db().await;
    db.ok("COPY (SELECT 1 AS a) TO '{dir}/drift/1.parquet'").await;
    db.ok("CREATE EXTERNAL TABLE drift STORED AS PARQUET LOCATION '{dir}/drift/'").await;
    for drifted in ["CAST(2.9 AS DOUBLE)", "CAST(2.9 AS REAL)", "CAST(2.9 AS DECIMAL(5, 1))"] {
        db.ok(&format!("COPY (SELECT {drifted} AS a) TO '{{dir}}/drift/2.parquet'")).await;
        let error = db.err("SELECT sum(a) FROM drift").await;
        assert!(error.contains("2.parquet") && error.contains("its column \"a\" is"), "{drifted}: {error}");
    }
    db.ok("COPY (SELECT CAST(2 AS INT) AS a) TO '{dir}/drift/2.parquet'").await;
    assert_eq!(db.ok("SELECT sum(a) FROM drift").await, "3");
}
