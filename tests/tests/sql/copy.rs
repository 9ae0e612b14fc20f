//! COPY into and out of files of all formats.

use nectarine_tests::db::Db;
use nectarine_tests::files::{gz, numbers, zst};
use nectarine_tests::program::Program;

/// A COPY that fails leaves what was there; one that reads what it writes reads the old rows.
#[tokio::test(flavor = "multi_thread")]
async fn files_appear_whole_or_not_at_all() {
    let db = Db::new().await;
    for name in ["t.csv", "t.parquet", "t.json", "t.arrow"] {
        db.ok(&format!("COPY (SELECT value AS a FROM generate_series(1, 20000)) TO '{{dir}}/{name}'")).await;
        let before = std::fs::read(db.path(name)).expect("a file");
        for failing in ["SELECT 1 / 0 AS a", "SELECT 1 / (value - 19000) AS a FROM generate_series(1, 20000)"] {
            let error = db.err(&format!("COPY ({failing}) TO '{{dir}}/{name}'")).await;
            assert!(error.contains("division by zero"), "{name}: {error}");
            assert!(std::fs::read(db.path(name)).expect("a file") == before, "{name}: {failing}");
            db.err(&format!("COPY ({failing}) TO '{{dir}}/new-{name}'")).await;
            assert!(!db.path(&format!("new-{name}")).exists(), "{name}: {failing}");
        }
        let onto_itself = format!("COPY (SELECT a FROM '{{dir}}/{name}' WHERE a > 15000) TO '{{dir}}/{name}'");
        assert_eq!(db.ok(&onto_itself).await, "COPY 5000", "{name}");
        assert_eq!(db.ok(&format!("SELECT count(*), min(a) FROM '{{dir}}/{name}'")).await, "5000|15001", "{name}");
    }
    // In a folder as well: all of its files, or none.
    db.err("COPY (SELECT value % 3 AS k, 1 / (value - 19000) AS a FROM generate_series(1, 20000)) TO '{dir}/parts/' STORED AS CSV PARTITIONED BY (k)").await;
    let left = std::fs::read_dir(db.folder()).expect("a folder").flatten();
    let left: Vec<_> =
        left.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().contains('#')).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(db.run("SELECT count(*) FROM '{dir}/parts/**/*.csv'").await.unwrap_or_default(), "");
}

#[tokio::test]
async fn every_format_comes_back() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT value AS n, 'text "' || value || '", ;' AS s, value / 2.0 AS f, value % 2 = 0 AS b, DATE '2024-01-01' AS d,
          CASE WHEN value % 3 = 0 THEN NULL ELSE value END AS x FROM generate_series(1, 1000);
        "#,
    )
    .await;
    let expected = db.ok("SELECT * FROM t ORDER BY n").await;
    let mut files = vec![];
    for (name, more) in [
        ("t.parquet", ""),
        ("t.csv", ""),
        ("t.json", ""),
        ("t.ndjson", "STORED AS JSON"),
        ("t.arrow", ""),
        ("t.csv.gz", "STORED AS CSV OPTIONS ('format.compression' 'gzip')"),
        ("t.json.zst", "STORED AS JSON OPTIONS ('format.compression' 'zstd')"),
        ("zstd.parquet", "OPTIONS ('format.compression' 'zstd(3)')"),
        ("semicolon.csv", "OPTIONS ('format.delimiter' ';')"),
    ] {
        let answer = db.ok(&format!("COPY t TO '{{dir}}/{name}' {more}")).await;
        assert_eq!(answer, "COPY 1000", "{name}");
        files.push(name);
    }
    for name in files {
        let options = if name == "semicolon.csv" { "OPTIONS ('format.delimiter' ';')" } else { "" };
        db.ok("CREATE TABLE back (n BIGINT, s TEXT, f DOUBLE, b BOOLEAN, d DATE, x BIGINT)").await;
        assert_eq!(db.ok(&format!("COPY back FROM '{{dir}}/{name}' {options}")).await, "COPY 1000", "{name}");
        assert_eq!(db.ok("SELECT * FROM back ORDER BY n").await, expected, "{name}");
        db.ok("DROP TABLE back").await;
        if options.is_empty() {
            assert_eq!(
                db.ok(&format!("SELECT n, s, f, b, CAST(d AS DATE), x FROM '{{dir}}/{name}' ORDER BY n")).await,
                expected,
                "{name}"
            );
        }
    }
    // A query, and a folder.
    db.script(
        r#"
        COPY (SELECT n, s FROM t WHERE n <= 10) TO '{dir}/few.csv';
        -> COPY 10
        COPY (SELECT n, n % 3 AS k FROM t) TO '{dir}/parts/' STORED AS PARQUET PARTITIONED BY (k);
        -> COPY 1000
        SELECT count(*), sum(n) FROM '{dir}/parts/';
        -> 1000|500500
        CREATE EXTERNAL TABLE parts (n BIGINT, k BIGINT) STORED AS PARQUET PARTITIONED BY (k) LOCATION '{dir}/parts/';
        SELECT k, count(*) FROM parts GROUP BY k ORDER BY k;
        -> 0|333
        -> 1|334
        -> 2|333
        "#,
    )
    .await;
}

#[tokio::test]
async fn csv_goes_by_position_and_others_by_name() {
    let db = Db::new().await;
    db.file("swapped.csv", "y,x\n1,one\n");
    db.file("swapped.json", "{\"b\":\"two\",\"a\":2}\n");
    db.file("more.json", "{\"b\":\"three\",\"a\":3,\"c\":4}\n");
    db.file("less.json", "{\"b\":\"four\"}\n");
    db.file("wide.csv", "p,q,r\n1,2,3\n");
    db.file("headerless.csv", "5,five\n6,six\n");
    db.file("typed.csv", "a,b\n2147483648,big\n");
    db.file("nulls.csv", "a,b\n7,\\N\n8,\n");
    db.file("tabs.tsv", "a\tb\n9\tnine\n");
    db.file("many/1.csv", "a,b\n10,x\n");
    db.file("many/2.csv", "a,b\n11,x\n");
    db.file("packed.csv.gz", gz(b"a,b\n12,x\n"));
    db.file("packed.csv.zst", zst(b"a,b\n13,x\n"));
    numbers(&db.path("n.parquet"), 0..5);
    db.script(
        r#"
        CREATE TABLE t (a INT, b TEXT DEFAULT 'default');
        COPY t FROM '{dir}/swapped.csv';
        -> COPY 1
        COPY t FROM '{dir}/swapped.json';
        -> COPY 1
        COPY t FROM '{dir}/more.json';
        !! has a column "c"
        COPY t FROM '{dir}/less.json';
        -> COPY 1
        COPY t FROM '{dir}/wide.csv';
        !! has 3 columns
        COPY t FROM '{dir}/headerless.csv' (HEADER false);
        -> COPY 2
        COPY t FROM '{dir}/typed.csv';
        !! {dir}/typed.csv
        COPY t FROM '{dir}/nulls.csv' WITH (FORMAT csv, HEADER, NULL '\N');
        -> COPY 2
        COPY t FROM '{dir}/tabs.tsv';
        -> COPY 1
        COPY t FROM '{dir}/many/';
        -> COPY 2
        COPY t FROM '{dir}/packed.csv.gz';
        -> COPY 1
        COPY t FROM '{dir}/packed.csv.zst';
        -> COPY 1
        SELECT * FROM t ORDER BY a, b;
        -> 1|one
        -> 2|two
        -> 5|five
        -> 6|six
        -> 7|NULL
        -> 8|
        -> 9|nine
        -> 10|x
        -> 11|x
        -> 12|x
        -> 13|x
        -> NULL|four
        CREATE TABLE u (a BIGINT DEFAULT 42, n BIGINT, b TEXT DEFAULT 'd');
        COPY u (n) FROM '{dir}/n.parquet';
        -> COPY 5
        SELECT count(*), min(a), max(n), min(b) FROM u;
        -> 5|42|4|d
        COPY u (b, a) FROM '{dir}/swapped.csv';
        !! {dir}/swapped.csv
        COPY u (a, b) FROM '{dir}/headerless.csv' CSV;
        -> COPY 1
        COPY u (nope) FROM '{dir}/n.parquet';
        !! column "nope"
        COPY nope FROM '{dir}/n.parquet';
        !! nope" does not exist
        "#,
    )
    .await;
    let db = db.reopen().await;
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "12");
    // The same file again is the same rows again.
    db.ok("COPY t FROM '{dir}/many/*.csv'").await;
    assert_eq!(db.ok("SELECT count(*) FROM t WHERE a IN (10, 11)").await, "4");
}

#[tokio::test]
async fn copy_to_overwrites_one_file_and_adds_to_a_folder() {
    let db = Db::new().await;
    db.script(
        r#"
        COPY (SELECT 1 AS a) TO '{dir}/x.csv';
        COPY (SELECT 2 AS a) TO '{dir}/x.csv';
        SELECT * FROM '{dir}/x.csv';
        -> 2
        COPY (SELECT 1 AS a) TO '{dir}/f/' STORED AS CSV;
        COPY (SELECT 2 AS a) TO '{dir}/f/' STORED AS CSV;
        SELECT sum(a) FROM '{dir}/f/';
        -> 3
        CREATE TABLE t AS SELECT 1 AS a;
        COPY t TO '{dir}/t.parquet';
        -> COPY 1
        INSERT INTO t SELECT a + 1 FROM '{dir}/t.parquet';
        COPY (SELECT * FROM '{dir}/t.parquet' UNION ALL SELECT 10) TO '{dir}/t2.parquet';
        -> COPY 2
        SELECT sum(a) FROM '{dir}/t2.parquet';
        -> 11
        COPY (SELECT 1 AS a WHERE false) TO '{dir}/none.parquet';
        -> COPY 0
        SELECT count(*) FROM '{dir}/none.parquet';
        -> 0
        COPY (SELECT 1 AS a WHERE false) TO '{dir}/none.csv';
        -> COPY 0
        COPY (SELECT 1 AS a) TO '{dir}/no/such/folder/x.csv';
        -> COPY 1
        "#,
    )
    .await;
}

/// A NULL is not nothing, and not 1970.
#[tokio::test(flavor = "multi_thread")]
async fn partitions_of_nulls() {
    let db = Db::new().await;
    for (values, column_type, expected) in [
        ("(1, 10), (2, NULL)", "INT", "1|10\n2|NULL"),
        ("(1, true), (2, NULL)", "BOOLEAN", "1|true\n2|NULL"),
        ("(1, DATE '2024-02-29'), (2, NULL)", "DATE", "1|2024-02-29\n2|NULL"),
        ("(1, 'a b/c'), (2, NULL), (3, '')", "TEXT", "1|a b/c\n2|NULL\n3|"),
        ("(1, 1.5::double), (2, NULL)", "DOUBLE", "1|1.5\n2|NULL"),
    ] {
        db.ok(&format!(
            "COPY (SELECT id, p FROM (VALUES {values}) AS v(id, p)) TO '{{dir}}/{column_type}/' STORED AS PARQUET PARTITIONED BY (p)"
        ))
        .await;
        db.ok(&format!(
            "CREATE EXTERNAL TABLE t_{column_type} (id BIGINT, p {column_type}) STORED AS PARQUET PARTITIONED BY (p) LOCATION '{{dir}}/{column_type}/'"
        ))
        .await;
        assert_eq!(db.ok(&format!("SELECT id, p FROM t_{column_type} ORDER BY id")).await, expected, "{values}");
    }
    let error = db
        .err("COPY (SELECT 1 AS id, '__HIVE_DEFAULT_PARTITION__' AS p) TO '{dir}/word/' STORED AS PARQUET PARTITIONED BY (p)")
        .await;
    assert!(error.contains("stands for NULL"), "{error}");
    db.ok("SET datafusion.execution.keep_partition_by_columns = true").await;
    let error = db
        .err("COPY (SELECT 1 AS id, CAST(NULL AS INT) AS p) TO '{dir}/kept/' STORED AS PARQUET PARTITIONED BY (p)")
        .await;
    assert!(error.contains("\"p\" has NULLs"), "{error}");
}

/// As in PostgreSQL, no rows are no error.
#[test]
fn standard_input_with_nothing_on_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::on(&folder.path().join("home"));
    let made = "CREATE TABLE t (a INT NOT NULL, b TEXT DEFAULT 'x')";
    assert_eq!(program.run(&format!("{made}; COPY t FROM STDIN; SELECT count(*) FROM t")).rows(), "0");
    let empty = "COPY t (a) FROM STDIN;\n\\.\nCOPY t FROM STDIN (HEADER);\n\\.\n";
    let script = format!("{empty}COPY t FROM STDIN;\n1,y\n\\.\nSELECT * FROM t;\n");
    assert_eq!(program.run_stdin(script).rows(), "1,y");
    let error = program.run("COPY t (nope) FROM STDIN").error();
    assert!(error.contains("column \"nope\""), "{error}");
}
