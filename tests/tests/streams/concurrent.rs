//! One statement sees one snapshot, whatever others do meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nectarine_tests::db::Db;
use nectarine_tests::files::{appear, numbers_bytes};

/// Few enough for the system to list in one piece: beyond, a listing itself is no snapshot.
const FILES_MAX: i64 = 300;
/// How often readers ask.
const ROUNDS: usize = 8;

/// Adds files one after the other, 10 numbers each, without a gap, until it is told to stop; says how many there are.
fn writer(db: &Db, stop: &Arc<AtomicBool>) -> std::thread::JoinHandle<i64> {
    let (folder, stop) = (db.folder().join("d"), Arc::clone(stop));
    std::thread::spawn(move || {
        for part in 1..FILES_MAX {
            if stop.load(Ordering::Relaxed) {
                return part;
            }
            appear(&folder.join(format!("{part:04}.parquet")), &numbers_bytes(part * 10..part * 10 + 10));
            std::thread::sleep(std::time::Duration::from_millis(40));
        }
        FILES_MAX
    })
}

async fn db() -> Db {
    let db = Db::new().await;
    let first = db.path("d/0000.parquet");
    appear(&first, &numbers_bytes(0..10));
    db.ok("CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION '{dir}/d/'").await;
    db.ok("CREATE VIEW v AS SELECT n FROM d").await;
    db
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_scans_of_one_statement_agree() {
    let db = db().await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = writer(&db, &stop);
    let mut seen = vec![];
    for _ in 0..ROUNDS {
        let rows = db.ok("SELECT (SELECT count(*) FROM d) AS a, (SELECT count(*) FROM v) AS b, (SELECT max(n) + 1 FROM d) AS c, (SELECT count(*) FROM d AS x JOIN d AS y ON x.n = y.n) AS d").await;
        let counts: Vec<&str> = rows.split('|').collect();
        assert!(counts.iter().all(|count| *count == counts[0]), "{rows}");
        seen.push(counts[0].to_owned());
        let rows = db.ok("SELECT side, count(*), sum(n) FROM (SELECT 1 AS side, n FROM d UNION ALL SELECT 2, n FROM d UNION ALL SELECT 3, n FROM v) GROUP BY side ORDER BY side").await;
        let sides: Vec<&str> = rows.lines().map(|line| line.split_once('|').expect("a side").1).collect();
        assert!(sides.len() == 3 && sides.iter().all(|side| *side == sides[0]), "{rows}");
        let rows = db.ok("SELECT count(*) FROM d WHERE n NOT IN (SELECT n FROM d)").await;
        assert_eq!(rows, "0");
        let rows = db
            .ok("WITH c AS (SELECT count(*) AS a FROM d) SELECT c.a - x.a FROM c, (SELECT count(*) AS a FROM d) AS x")
            .await;
        assert_eq!(rows, "0");
        let rows = db.ok("SELECT count(*) FROM '{dir}/d/' AS a FULL JOIN '{dir}/d/' AS b ON a.n = b.n WHERE a.n IS NULL OR b.n IS NULL").await;
        assert_eq!(rows, "0");
    }
    stop.store(true, Ordering::Relaxed);
    let files = writer.join().expect("the writer ends");
    seen.dedup();
    assert!(seen.len() > 1, "the writer and the reader were not at work together: {seen:?}");
    assert_eq!(db.ok("SELECT count(*) FROM d").await, (files * 10).to_string());
}

/// Never stale: what was there when the statement began is in its answer, and no file is seen before one that came earlier.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_one_prefix() {
    let db = db().await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = writer(&db, &stop);
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let db = db.client();
            tokio::spawn(async move {
                let mut last = 0;
                for _ in 0..3 * ROUNDS {
                    let before = std::fs::read_dir(db.folder().join("d")).expect("a folder").flatten();
                    let before = before
                        .filter(|entry| entry.path().extension().is_some_and(|ending| ending == "parquet"))
                        .count() as i64;
                    let rows = db.ok("SELECT count(*), sum(n), max(n) FROM d").await;
                    let count: i64 = rows.split('|').next().and_then(|count| count.parse().ok()).expect("a number");
                    assert_eq!(rows, format!("{count}|{}|{}", count * (count - 1) / 2, count - 1), "a prefix");
                    assert!(count >= before * 10, "stale: {count} rows, {before} files were there before");
                    assert!(count >= last, "{count} rows after {last}");
                    last = count;
                }
            })
        })
        .collect();
    for reader in readers {
        reader.await.expect("a reader ends well");
    }
    stop.store(true, Ordering::Relaxed);
    let files = writer.join().expect("the writer ends");
    assert_eq!(db.ok("SELECT count(*) FROM d").await, (files * 10).to_string());
}

/// The same for managed tables, which one INSERT after the other extends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scans_of_a_managed_table_agree() {
    let db = Db::new().await;
    db.ok("CREATE TABLE m AS SELECT 0 AS n").await;
    let appender = {
        let db = db.client();
        tokio::spawn(async move {
            for n in 1..60 {
                db.ok(&format!("INSERT INTO m VALUES ({n})")).await;
            }
        })
    };
    while !appender.is_finished() {
        let rows = db.ok("SELECT (SELECT count(*) FROM m) AS a, (SELECT max(n) + 1 FROM m) AS b, (SELECT count(*) FROM m AS x JOIN m AS y USING (n)) AS c").await;
        let counts: Vec<&str> = rows.split('|').collect();
        assert!(counts.iter().all(|count| *count == counts[0]), "{rows}");
        let rows = db.ok("SELECT count(*) FROM m WHERE n NOT IN (SELECT n FROM m)").await;
        assert_eq!(rows, "0");
    }
    appender.await.expect("the appender ends well");
    assert_eq!(db.ok("SELECT count(*), sum(n) FROM m").await, "60|1770");
}
