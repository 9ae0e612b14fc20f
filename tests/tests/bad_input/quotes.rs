//! Quotes of CSV files that are never closed, and line ends inside of those that are.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use nectarine_tests::db::Db;
use nectarine_tests::files::{append, gz, rest, set_modified, zst};

use super::{db, goes_on};

/// A field that begins and never ends would take all rows behind it with it.
const UNCLOSED: &str = "a,b\n1,one\n2,\"two\n3,three\n4,four\n";

#[tokio::test]
async fn an_unclosed_quote_is_an_error_that_says_where() {
    let db = db().await;
    db.file("q.csv", UNCLOSED);
    db.file("q.csv.gz", gz(UNCLOSED.as_bytes()));
    db.file("q.csv.zst", zst(UNCLOSED.as_bytes()));
    db.ok("CREATE TABLE target (a BIGINT, b TEXT)").await;
    for name in ["q.csv", "q.csv.gz", "q.csv.zst"] {
        for sql in [
            format!("SELECT * FROM '{{dir}}/{name}'"),
            format!("SELECT count(*) FROM '{{dir}}/{name}'"),
            format!("CREATE TABLE x AS SELECT * FROM '{{dir}}/{name}'"),
            format!("COPY target FROM '{{dir}}/{name}'"),
        ] {
            let error = db.err(&sql).await;
            assert!(error.starts_with("Data:") && error.contains(&format!("{{dir}}/{name}")), "{sql}: {error}");
            assert!(error.contains("the quote in line 3 (byte 12) is never closed"), "{sql}: {error}");
        }
        db.ok(&format!(
            "CREATE OR REPLACE EXTERNAL TABLE q (a BIGINT, b TEXT) STORED AS CSV LOCATION '{{dir}}/{name}'"
        ))
        .await;
        let error = db.err("SELECT count(*) FROM q").await;
        assert!(error.contains("the quote in line 3"), "{name}: {error}");
    }
    // Quotes inside of fields, and doubled ones, open nothing.
    db.file("fine.csv", "a,b\n1,5\" disk\n2,\"say \"\"x\"\"\"\n3,\"two\nlines\"\n4,\"no end\"");
    assert_eq!(db.ok("SELECT count(*), max(length(b)) FROM '{dir}/fine.csv'").await, "4|9");
    db.file("fine.csv.gz", gz(b"a,b\n1,5\" disk\n2,\"say \"\"x\"\"\"\n3,\"two\nlines\"\n4,\"no end\""));
    assert_eq!(db.ok("SELECT count(*), max(length(b)) FROM '{dir}/fine.csv.gz'").await, "4|9");
    goes_on(&db).await;
}

/// The same for a log that grew: the rows that were there are no excuse for those that are lost.
#[tokio::test]
async fn an_unclosed_quote_in_a_log() {
    let db = db().await;
    let path = db.file("log.csv", "a,b\n1,one\n");
    db.ok("CREATE EXTERNAL TABLE log STORED AS CSV LOCATION '{dir}/log.csv'").await;
    assert_eq!(db.ok("SELECT count(*) FROM log").await, "1");
    append(&path, "2,\"two\n3,three\n");
    let error = db.err("SELECT count(*) FROM log").await;
    assert!(error.contains("{dir}/log.csv") && error.contains("the quote in line 3 (byte 12)"), "{error}");
    append(&path, "still two\"\n4,four\n");
    assert_eq!(db.ok("SELECT count(*), sum(a) FROM log").await, "3|7");
}

/// A quoted text of several lines that is just being written is no fault: the rows before it are there, and it comes later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quoted_field_that_is_being_written() {
    let db = db().await;
    let path = db.file("log.csv", "a,b\n0,zero\n");
    db.ok("CREATE EXTERNAL TABLE log STORED AS CSV LOCATION '{dir}/log.csv'").await;
    let writer = std::thread::spawn(move || {
        for n in 1..=40 {
            append(&path, format!("{n},\"trace of {n}\n  line\n"));
            std::thread::sleep(Duration::from_millis(60));
            append(&path, "  another line\"\n");
        }
    });
    let mut last = 0;
    while !writer.is_finished() {
        let rows = db.ok("SELECT count(*), count(DISTINCT a), max(a) FROM log").await;
        let count: i64 = rows.split('|').next().and_then(|count| count.parse().ok()).expect("a number");
        assert_eq!(rows, format!("{count}|{count}|{}", count - 1));
        assert!(count >= last, "{count} after {last}");
        last = count;
    }
    writer.join().expect("the writer ends");
    assert_eq!(db.ok("SELECT count(*) FROM log").await, "41");
}

/// A quote that is open in the last line swallows nothing: the record is unfinished, and long after the last write wrong.
#[tokio::test]
async fn a_quote_in_the_last_line() {
    let db = db().await;
    let path = db.file("last.csv", "a,b\n1,one\n2,\"tw");
    assert_eq!(db.ok("SELECT a, b FROM '{dir}/last.csv'").await, "1|one");
    set_modified(&path, SystemTime::now() - Duration::from_secs(3600));
    let error = db.err("SELECT a, b FROM '{dir}/last.csv'").await;
    assert!(error.contains("{dir}/last.csv") && error.contains("the quote in line 3 (byte 12)"), "{error}");
}

/// Many threads, and line ends in quotes: each record is read once, whatever is cut where.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn line_ends_in_quotes_of_a_large_file() {
    let db = Db::with(&[
        ("datafusion.execution.target_partitions", "7"),
        ("datafusion.optimizer.repartition_file_min_size", "1000"),
    ])
    .await;
    // One column: a line that is taken for a record has as many fields as one.
    let mut csv = "s\n".to_owned();
    for n in 0..20_000 {
        let _ = writeln!(csv, "\"{n}\nin\nquotes\"");
    }
    db.file("l.csv", &csv);
    db.file("l.csv.gz", gz(csv.as_bytes()));
    for name in ["l.csv", "l.csv.gz"] {
        let rows = db.ok(&format!("SELECT count(*), count(DISTINCT s), min(length(s)) FROM '{{dir}}/{name}'")).await;
        assert_eq!(rows, "20000|20000|11", "{name}");
    }
    // A new process knows it, too.
    db.ok("CREATE EXTERNAL TABLE l STORED AS CSV LOCATION '{dir}/l.csv'").await;
    assert_eq!(db.ok("SELECT count(*) FROM l").await, "20000");
    rest().await;
    assert_eq!(db.ok("SELECT count(s) FROM l").await, "20000");
    let db = db.reopen().await;
    assert_eq!(db.ok("SELECT count(*), count(DISTINCT s) FROM l").await, "20000|20000");
}
