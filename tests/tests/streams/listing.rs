//! Which files belong to a table, and what their paths tell.

use nectarine_tests::db::Db;
use nectarine_tests::files::{append, gz, numbers, zst};
use nectarine_tests::program::{Program, finish};

#[tokio::test]
async fn new_files_are_seen_in_the_next_statement() {
    let db = Db::new().await;
    numbers(&db.path("p/00.parquet"), 0..10);
    db.file("c/00.csv", "n\n0\n");
    db.file("j/00.json", "{\"n\":0}\n");
    db.script(
        r#"
        CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{dir}/p/';
        CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{dir}/c/';
        CREATE EXTERNAL TABLE j STORED AS JSON LOCATION '{dir}/j/';
        CREATE EXTERNAL TABLE g STORED AS PARQUET LOCATION '{dir}/p/*.parquet';
        CREATE VIEW v AS SELECT count(*) AS c FROM p;
        PREPARE prepared AS SELECT count(*) FROM p;
        "#,
    )
    .await;
    for part in 1..10_i64 {
        numbers(&db.path(&format!("p/{part:02}.parquet")), part * 10..part * 10 + 10);
        db.file(&format!("c/{part:02}.csv"), format!("n\n{part}\n"));
        db.file(&format!("j/{part:02}.json"), format!("{{\"n\":{part}}}\n"));
        let (rows, files) = ((part + 1) * 10, part + 1);
        let sum = rows * (rows - 1) / 2;
        let expected = format!("{rows}|{sum}|{}", rows - 1);
        assert_eq!(db.ok("SELECT count(*), sum(n), max(n) FROM p").await, expected);
        assert_eq!(db.ok("SELECT count(*), sum(n), max(n) FROM g").await, expected);
        assert_eq!(db.ok("SELECT count(*), sum(n), max(n) FROM '{dir}/p/'").await, expected);
        assert_eq!(db.ok("SELECT c FROM v").await, rows.to_string());
        assert_eq!(db.ok("EXECUTE prepared").await, rows.to_string());
        assert_eq!(db.ok("SELECT count(*), max(n) FROM c").await, format!("{files}|{part}"));
        assert_eq!(db.ok("SELECT count(*), max(n) FROM j").await, format!("{files}|{part}"));
        assert_eq!(
            db.ok("SELECT extents, rows FROM system.tables WHERE table_name = 'p'").await,
            format!("{files}|{rows}")
        );
    }
    let db = db.reopen().await;
    assert_eq!(db.ok("SELECT count(*), sum(n) FROM p").await, "100|4950");
    std::fs::remove_file(db.folder().join("p/03.parquet")).expect("it was there");
    assert_eq!(db.ok("SELECT count(*), sum(n) FROM p").await, "90|4605");
}

#[tokio::test]
async fn formats_and_compressions() {
    let db = Db::new().await;
    let csv = b"a,b\n1,one\n2,two\n";
    let json = b"{\"a\":1,\"b\":\"one\"}\n{\"a\":2,\"b\":\"two\"}\n";
    db.file("c/1.csv", csv);
    db.file("c/2.csv.gz", gz(csv));
    db.file("c/3.csv.zst", zst(csv));
    db.file("j/1.json", json);
    db.file("j/2.json.gz", gz(json));
    db.file("j/3.jsonl", json);
    db.file("j/4.ndjson.zst", zst(json));
    db.file("t/1.tsv", "a\tb\n1\tone\n2\ttwo\n");
    // Loggers append to packed files too: several members, one after the other.
    let mut members = gz(b"a,b\n1,one\n");
    members.extend(gz(b"2,two\n"));
    db.file("members.csv.gz", &members);
    let mut frames = zst(b"a,b\n1,one\n");
    frames.extend(zst(b"2,two\n"));
    db.file("frames.csv.zst", &frames);
    for name in [
        "c/1.csv",
        "c/2.csv.gz",
        "c/3.csv.zst",
        "j/1.json",
        "j/2.json.gz",
        "j/3.jsonl",
        "j/4.ndjson.zst",
        "t/1.tsv",
        "members.csv.gz",
        "frames.csv.zst",
    ] {
        assert_eq!(db.ok(&format!("SELECT a, b FROM '{{dir}}/{name}' ORDER BY a")).await, "1|one\n2|two", "{name}");
    }
    db.script(
        r#"
        CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{dir}/c/';
        SELECT a, b, count(*) FROM c GROUP BY a, b ORDER BY a;
        -> 1|one|3
        -> 2|two|3
        CREATE EXTERNAL TABLE j STORED AS JSON LOCATION '{dir}/j/';
        SELECT a, b, count(*) FROM j GROUP BY a, b ORDER BY a;
        -> 1|one|4
        -> 2|two|4
        CREATE EXTERNAL TABLE named (a BIGINT, b TEXT) STORED AS CSV LOCATION '{dir}/c/2.csv.gz' OPTIONS ('format.compression' 'gzip');
        SELECT sum(a) FROM named;
        -> 3
        SELECT count(*), sum(a) FROM '{dir}/c/*.csv*';
        -> 6|9
        SELECT count(*) FROM '{dir}/c/*.gz';
        -> 2
        COPY (SELECT value AS n FROM generate_series(1, 10)) TO '{dir}/a/1.arrow';
        CREATE EXTERNAL TABLE a STORED AS ARROW LOCATION '{dir}/a/';
        SELECT sum(n) FROM a;
        -> 55
        COPY (SELECT 11 AS n) TO '{dir}/a/2.arrow';
        SELECT sum(n) FROM a;
        -> 66
        "#,
    )
    .await;
    append(&db.folder().join("c/2.csv.gz"), gz(b"3,three\n"));
    assert_eq!(db.ok("SELECT count(*), sum(a) FROM c").await, "7|12");
}

/// A multi-line value, CRLF, quotes, comments, other delimiters.
#[tokio::test]
async fn csv_dialects() {
    let db = Db::new().await;
    db.file("quotes.csv", "a,b\n1,\"x, \"\"y\"\"\"\n2,plain\n");
    db.file("crlf.csv", "a,b\r\n1,x\r\n2,y\r\n");
    db.file("lines.csv", "a,b\n1,\"two\nlines\"\n2,\"and, \"\"more\"\"\n\n\"\n3,z\n");
    db.file("bar.csv", "1|x\n2|y\n");
    db.file("comment.csv", "a,b\n# no row\n1,x\n");
    db.file("bom.csv", "\u{feff}a,b\n1,x\n");
    db.file("noend.csv", "a,b\n1,x\n2,y");
    db.script(
        r#"
        SELECT b FROM '{dir}/quotes.csv' ORDER BY a;
        -> x, "y"
        -> plain
        SELECT a, b FROM '{dir}/crlf.csv' ORDER BY a;
        -> 1|x
        -> 2|y
        SELECT a, b FROM '{dir}/bom.csv';
        -> 1|x
        SELECT a, b FROM '{dir}/noend.csv' ORDER BY a;
        -> 1|x
        -> 2|y
        CREATE EXTERNAL TABLE lines STORED AS CSV LOCATION '{dir}/lines.csv' OPTIONS ('format.newlines_in_values' 'true');
        SELECT a, length(b) FROM lines ORDER BY a;
        -> 1|9
        -> 2|13
        -> 3|1
        CREATE EXTERNAL TABLE bar (a BIGINT, b TEXT) STORED AS CSV LOCATION '{dir}/bar.csv' OPTIONS ('format.delimiter' '|', 'format.has_header' 'false');
        SELECT a, b FROM bar ORDER BY a;
        -> 1|x
        -> 2|y
        CREATE EXTERNAL TABLE comment STORED AS CSV LOCATION '{dir}/comment.csv' OPTIONS ('format.comment' '#');
        SELECT a, b FROM comment;
        -> 1|x
        CREATE EXTERNAL TABLE headerless STORED AS CSV LOCATION '{dir}/bar.csv' OPTIONS ('format.delimiter' '|', 'format.has_header' 'false');
        SELECT column_1, column_2 FROM headerless ORDER BY 1;
        -> 1|x
        -> 2|y
        "#,
    )
    .await;
}

/// Many records in one file, read by several threads: each exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_text_file_is_split_at_records() {
    use std::fmt::Write;
    let db = Db::with(&[
        ("datafusion.execution.target_partitions", "7"),
        ("datafusion.optimizer.repartition_file_min_size", "1000"),
    ])
    .await;
    let (mut csv, mut json) = ("n,s\n".to_owned(), String::new());
    for n in 0..20_000 {
        let _ = writeln!(csv, "{n},\"{}\"", "x,\"\"".repeat(n % 7 + 1));
        let _ = writeln!(json, "{{\"n\":{n},\"s\":\"{}\"}}", "\\n}".repeat(n % 7 + 1));
    }
    db.file("l.csv", &csv);
    db.file("l.json", &json);
    for name in ["l.csv", "l.json"] {
        let rows = db.ok(&format!("SELECT count(*), count(DISTINCT n), sum(n), max(n) FROM '{{dir}}/{name}'")).await;
        assert_eq!(rows, "20000|20000|199990000|19999", "{name}");
        let shape = db.ok(&format!("SELECT count(DISTINCT length(s)) FROM '{{dir}}/{name}'")).await;
        assert_eq!(shape, "7", "{name}");
    }
    let plan = db.ok("EXPLAIN SELECT min(n + 1) FROM '{dir}/l.csv'").await;
    assert!(plan.contains("7 groups"), "{plan}");
}

#[tokio::test]
async fn hive_partitions() {
    let db = Db::new().await;
    for (year, month, from) in [(2023, "01", 0), (2023, "12", 10), (2024, "01", 20)] {
        numbers(&db.path(&format!("h/year={year}/month={month}/x.parquet")), from..from + 10);
    }
    db.script(
        r#"
        CREATE EXTERNAL TABLE h STORED AS PARQUET PARTITIONED BY (year, month) LOCATION '{dir}/h/';
        SELECT year, month, count(*), min(n) FROM h GROUP BY year, month ORDER BY year, month;
        -> 2023|01|10|0
        -> 2023|12|10|10
        -> 2024|01|10|20
        SELECT count(*) FROM h WHERE year = '2024';
        -> 10
        SELECT sum(n) FROM h WHERE month = '01' AND n > 5;
        -> 275
        CREATE EXTERNAL TABLE typed (n BIGINT, year INT, month INT) STORED AS PARQUET PARTITIONED BY (year, month) LOCATION '{dir}/h/';
        SELECT year + 1, month, count(*) FROM typed WHERE year < 2024 GROUP BY year, month ORDER BY month;
        -> 2024|1|10
        -> 2024|12|10
        SELECT count(*) FROM '{dir}/h/' WHERE year = '2023';
        -> 20
        SELECT DISTINCT year FROM '{dir}/h/' ORDER BY 1;
        -> 2023
        -> 2024
        SELECT year FROM h WHERE n = 25;
        -> 2024
        SELECT count(DISTINCT month) FROM h;
        -> 2
        "#,
    )
    .await;
    // A filter on the partition does not even look at the others.
    let plan = db.ok("EXPLAIN SELECT n FROM h WHERE year = '2024' AND month = '01'").await;
    assert!(plan.contains("year=2024") && !plan.contains("year=2023"), "{plan}");
    // New partitions appear; special values too.
    numbers(&db.path("h/year=__HIVE_DEFAULT_PARTITION__/month=01/x.parquet"), 100..101);
    numbers(&db.path("h/year=2025/month=a%2Fb c/x.parquet"), 200..201);
    db.script(
        r#"
        SELECT year, month, n FROM h WHERE n >= 100 ORDER BY n;
        -> NULL|01|100
        -> 2025|a/b c|200
        SELECT count(*) FROM h WHERE year IS NULL;
        -> 1
        SELECT count(*) FROM h WHERE year IS NOT NULL;
        -> 31
        SELECT count(*) FROM h WHERE month = 'a/b c';
        -> 1
        SELECT count(*) FROM typed;
        !! a/b c
        "#,
    )
    .await;
    std::fs::remove_dir_all(db.folder().join("h/year=2025")).expect("it was there");
    // A file outside of the scheme is named.
    numbers(&db.path("h/stray.parquet"), 0..1);
    let error = db.err("SELECT count(*) FROM h").await;
    assert!(error.contains("{dir}/h") && error.contains("year="), "{error}");
    // CSV and JSON in partitions.
    db.file("c/day=1/x.csv", "a\n1\n");
    db.file("c/day=2/x.csv", "a\n2\n");
    db.script(
        r#"
        CREATE EXTERNAL TABLE c STORED AS CSV PARTITIONED BY (day) LOCATION '{dir}/c/';
        SELECT day, a FROM c ORDER BY a;
        -> 1|1
        -> 2|2
        SELECT day FROM c ORDER BY day;
        -> 1
        -> 2
        "#,
    )
    .await;
}

#[tokio::test]
async fn globs() {
    let db = Db::new().await;
    for (name, n) in [
        ("g/a1.parquet", 1),
        ("g/a2.parquet", 2),
        ("g/b1.parquet", 4),
        ("g/sub/a1.parquet", 8),
        ("g/sub/deep/c.parquet", 16),
        ("g/_x.parquet", 32),
        ("g/.y.parquet", 64),
    ] {
        numbers(&db.path(name), n..n + 1);
    }
    for (glob, sum) in [
        ("g/*.parquet", 7),
        ("g/a*.parquet", 3),
        ("g/a?.parquet", 3),
        ("g/[ab]1.parquet", 5),
        ("g/{a1,b1}.parquet", 5),
        ("g/*/a1.parquet", 8),
        ("g/**/*.parquet", 31),
        ("g/**", 31),
        ("g/", 31),
        ("g", 31),
        ("g/sub", 24),
        ("g/a1.parquet", 1),
        ("g/./../g/a1.parquet", 1),
        ("{g,h}/a1.parquet", 1),
    ] {
        let outcome = db.run(&format!("SELECT sum(n) FROM '{{dir}}/{glob}'")).await;
        assert_eq!(outcome, Ok(sum.to_string()), "{glob}");
    }
    db.script(
        r#"
        CREATE EXTERNAL TABLE g STORED AS PARQUET LOCATION '{dir}/g/a*.parquet';
        SELECT sum(n) FROM g;
        -> 3
        INSERT INTO g VALUES (5);
        !! no folder
        SELECT sum(x.n) FROM '{dir}/g/a1.parquet' AS x JOIN '{dir}/g/*.parquet' AS y ON x.n = y.n;
        -> 1
        CREATE TABLE t AS SELECT * FROM '{dir}/g/*.parquet';
        SELECT sum(n) FROM t;
        -> 7
        SELECT * FROM '{dir}/g/z*.parquet';
        !! no files match "{dir}/g/z*.parquet"
        "#,
    )
    .await;
    numbers(&db.path("g/a3.parquet"), 100..101);
    assert_eq!(db.ok("SELECT sum(n) FROM g").await, "103");
}

/// Relative paths start where the program was started, and mean the same from then on.
#[test]
fn relative_paths() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = folder.path().join("home");
    std::fs::create_dir_all(folder.path().join("here/data")).expect("a folder");
    std::fs::write(folder.path().join("here/data/x.csv"), "a\n1\n").expect("a file");
    let run = |from: &str, sql: &str| {
        let mut command = Program::on(&home).command();
        command.current_dir(folder.path().join(from)).args(["-c", sql]);
        finish(command, b"")
    };
    assert_eq!(run("here", "SELECT a FROM 'data/x.csv'").rows(), "1");
    assert_eq!(run("here", "SELECT a FROM './data/*.csv'").rows(), "1");
    assert_eq!(run("here/data", "SELECT a FROM 'x.csv'").rows(), "1");
    assert_eq!(run("here/data", "SELECT a FROM '../data/x.csv'").rows(), "1");
    run("here", "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'data/'").rows();
    assert_eq!(run(".", "SELECT a FROM t").rows(), "1");
    assert_eq!(run("here", "COPY (SELECT 5 AS a) TO 'data/y.csv'; SELECT sum(a) FROM t").rows(), "6");
    assert!(folder.path().join("here/data/y.csv").is_file());
}

/// Planning over known extents opens no file: what was learnt of them is kept in the home.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_is_known_is_not_read_again() {
    let db = Db::new().await;
    for part in 0..20_i64 {
        numbers(&db.path(&format!("p/{part:02}.parquet")), part * 100..part * 100 + 100);
    }
    db.ok("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{dir}/p/'").await;
    nectarine_tests::files::rest().await;
    assert_eq!(db.ok("SELECT count(*) FROM p").await, "2000");
    // Rows and bounds come from what is kept; the count needs no file, and a filter only one.
    let scanned = |db: Db, sql: &'static str| async move {
        let plan = db.ok(&format!("EXPLAIN {sql}")).await;
        (0..20).filter(|part| plan.contains(&format!("{part:02}.parquet"))).count()
    };
    let db = db.reopen().await;
    assert_eq!(scanned(db.clone(), "SELECT count(*) FROM p").await, 0);
    assert_eq!(scanned(db.clone(), "SELECT max(n) FROM p").await, 0);
    assert_eq!(scanned(db.clone(), "SELECT * FROM p WHERE n BETWEEN 510 AND 520").await, 1);
    assert_eq!(db.ok("SELECT count(*), min(n) FROM p WHERE n BETWEEN 510 AND 520").await, "11|510");
    assert_eq!(db.ok("SELECT count(*), max(n), min(n) FROM p").await, "2000|1999|0");
}
