//! Text files that someone appends to: a list of byte ranges; old ranges keep their fingerprints.

use nectarine_tests::db::Db;
use nectarine_tests::files::{append, rest};

/// Ranges and fingerprints of a table's extents.
async fn extents(db: &Db, table: &str) -> Vec<(i64, i64, String)> {
    let rows = db.ok(&format!("SELECT byte_start, byte_end, fingerprint FROM system.extents WHERE table_name = '{table}' ORDER BY position")).await;
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).expect("a number");
    rows.lines()
        .map(|line| {
            let mut values = line.split('|');
            (number(values.next()), number(values.next()), values.next().expect("a fingerprint").to_owned())
        })
        .collect()
}

fn lines(format: &str, range: std::ops::Range<i64>) -> String {
    range
        .map(
            |n| if format == "csv" { format!("{n},text {n}\n") } else { format!("{{\"n\":{n},\"s\":\"text {n}\"}}\n") },
        )
        .collect()
}

async fn db(format: &str) -> Db {
    let db = Db::new().await;
    let header = if format == "csv" { "n,s\n" } else { "" };
    db.file(&format!("log.{format}"), format!("{header}{}", lines(format, 0..100)));
    db.ok(&format!("CREATE EXTERNAL TABLE log STORED AS {format} LOCATION '{{dir}}/log.{format}'")).await;
    db
}

async fn holds(db: &Db, rows: i64) {
    assert_eq!(
        db.ok("SELECT count(*), count(DISTINCT n), sum(n), max(n) FROM log").await,
        format!("{rows}|{rows}|{}|{}", rows * (rows - 1) / 2, rows - 1)
    );
}

#[tokio::test]
async fn old_ranges_keep_their_fingerprints() {
    for format in ["csv", "json"] {
        for rested in [false, true] {
            let mut db = db(format).await;
            let path = db.folder().join(format!("log.{format}"));
            holds(&db, 100).await;
            let mut known = extents(&db, "log").await;
            for round in 1..6 {
                if rested && round < 4 {
                    rest().await;
                    holds(&db, round * 100).await;
                    assert_eq!(extents(&db, "log").await, known, "{format}: resting changes nothing");
                }
                if round == 4 {
                    db = db.reopen().await;
                }
                append(&path, lines(format, round * 100..round * 100 + 100));
                holds(&db, round * 100 + 100).await;
                let now = extents(&db, "log").await;
                assert_eq!(now[..known.len()], known[..], "{format}: old ranges are the same");
                assert_eq!(now.len(), known.len() + 1, "{format}: the tail is new");
                let size = std::fs::metadata(&path).expect("it is there").len() as i64;
                assert_eq!(now.last().expect("the tail").1, size);
                assert!(
                    now.windows(2).all(|pair| pair[0].1 == pair[1].0),
                    "{format}: ranges follow each other: {now:?}"
                );
                known = now;
            }
        }
    }
}

#[tokio::test]
async fn a_rewritten_file_is_all_new() {
    for format in ["csv", "json"] {
        let db = db(format).await;
        let path = db.folder().join(format!("log.{format}"));
        append(&path, lines(format, 100..200));
        holds(&db, 200).await;
        append(&path, lines(format, 200..300));
        holds(&db, 300).await;
        let before = extents(&db, "log").await;
        // One letter in the first range, then more lines.
        let text = std::fs::read_to_string(&path).expect("it is there").replacen("text 5\"", "text X\"", 1).replacen(
            ",text 5\n",
            ",text X\n",
            1,
        );
        std::fs::write(&path, text + &lines(format, 300..400)).expect("it can be written");
        holds(&db, 400).await;
        assert_eq!(db.ok("SELECT s FROM log WHERE n = 5").await, "text X");
        let after = extents(&db, "log").await;
        assert!(
            after.iter().all(|(_, _, fingerprint)| before.iter().all(|(_, _, old)| old != fingerprint)),
            "{format}: {before:?} {after:?}"
        );
        // Cut and grown again.
        let header = if format == "csv" { "n,s\n" } else { "" };
        std::fs::write(&path, format!("{header}{}", lines(format, 0..50))).expect("it can be written");
        holds(&db, 50).await;
        append(&path, lines(format, 50..60));
        holds(&db, 60).await;
    }
}

/// A last line without its end is a record when it can be one, and goes on when it grows.
#[tokio::test]
async fn a_line_that_is_being_written() {
    let db = db("csv").await;
    let path = db.folder().join("log.csv");
    append(&path, "100,te");
    let rows = db.ok("SELECT count(*) FROM log").await;
    assert!(rows == "100" || rows == "101", "{rows}");
    append(&path, "xt 100\n");
    holds(&db, 101).await;
    assert_eq!(db.ok("SELECT s FROM log WHERE n = 100").await, "text 100");
    // Half of a record has too few values: not a row yet, and no error.
    append(&path, "10");
    assert_eq!(db.ok("SELECT count(*), max(n) FROM log").await, "101|100");
    append(&path, "1,text 101");
    holds(&db, 102).await;
    append(&path, "\n");
    holds(&db, 102).await;
    // An open quote likewise.
    append(&path, "102,\"text\n");
    let rows = db.run("SELECT count(*) FROM log").await;
    append(&path, " over lines\"\n");
    if let Ok(rows) = rows {
        assert_eq!(rows, "102");
    }

    let db = self::db("json").await;
    let path = db.folder().join("log.json");
    append(&path, "{\"n\":100,\"s\":");
    assert_eq!(db.ok("SELECT count(*), max(n) FROM log").await, "100|99");
    append(&path, "\"text 100\"}");
    holds(&db, 101).await;
    append(&path, "\n{\"n\":101,\"s\":null}\n");
    holds(&db, 102).await;
}

/// A writer and readers side by side: every answer is a prefix.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_a_prefix() {
    for format in ["csv", "json"] {
        let db = db(format).await;
        let path = db.folder().join(format!("log.{format}"));
        let writer = std::thread::spawn(move || {
            for round in 1..=60 {
                append(&path, lines(format, round * 100..round * 100 + 100));
                std::thread::sleep(std::time::Duration::from_millis(15));
            }
        });
        let mut last = 0;
        while !writer.is_finished() {
            let rows = db.ok("SELECT count(*), count(DISTINCT n), sum(n), max(n) FROM log").await;
            let count: i64 = rows.split('|').next().and_then(|count| count.parse().ok()).expect("a number");
            assert_eq!(rows, format!("{count}|{count}|{}|{}", count * (count - 1) / 2, count - 1), "{format}");
            assert!(count >= last, "{format}: {count} after {last}");
            last = count;
        }
        writer.join().expect("the writer ends");
        holds(&db, 6100).await;
    }
}

/// The header is read once, wherever ranges begin.
#[tokio::test]
async fn the_header_is_no_row() {
    let db = Db::new().await;
    let path = db.file("log.csv", "n,s\n");
    db.ok("CREATE EXTERNAL TABLE log (n BIGINT, s TEXT) STORED AS CSV LOCATION '{dir}/log.csv'").await;
    assert_eq!(db.ok("SELECT count(*) FROM log").await, "0");
    for n in 0..30 {
        append(&path, format!("{n},x\n"));
        holds(&db, n + 1).await;
    }
    let found = extents(&db, "log").await;
    assert!(found.len() > 5, "{found:?}");
    assert_eq!(db.ok("SELECT n FROM log WHERE n = 17").await, "17");
    // A folder of logs, one of which grows while another one starts.
    db.file("logs/1.csv", "n,s\n0,x\n");
    db.ok("CREATE OR REPLACE EXTERNAL TABLE log (n BIGINT, s TEXT) STORED AS CSV LOCATION '{dir}/logs/'").await;
    holds(&db, 1).await;
    append(&db.folder().join("logs/1.csv"), "1,x\n");
    db.file("logs/2.csv", "n,s\n2,x\n");
    holds(&db, 3).await;
}
