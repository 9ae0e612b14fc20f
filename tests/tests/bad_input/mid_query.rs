//! Files that change while a statement reads them: an error, never a mixture of old and new.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use nectarine_tests::db::Db;
use nectarine_tests::files::{appear, append, numbers, numbers_bytes, overwrite_unnoticed, rest};

use super::{db_with, goes_on};

const ROWS: i64 = 100_000;

/// One reader, so that what is read later is read after the first rows.
async fn db() -> Db {
    let db = db_with(&[("datafusion.execution.target_partitions", "1")]).await;
    numbers(&db.path("p/1.parquet"), 0..ROWS);
    numbers(&db.path("p/2.parquet"), ROWS..2 * ROWS);
    db.file("c/1.csv", csv(0..ROWS));
    db.file("c/2.csv", csv(ROWS..2 * ROWS));
    db.file("j/1.json", (0..ROWS).map(|n| format!("{{\"n\":{n:09}}}\n").replace(":0", ":1")).collect::<String>());
    db.script(
        r#"
        CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{dir}/p/';
        CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{dir}/c/';
        CREATE EXTERNAL TABLE j STORED AS JSON LOCATION '{dir}/j/';
        CREATE TABLE target (n BIGINT);
        INSERT INTO target VALUES (7);
        "#,
    )
    .await;
    db
}

/// Lines of one width, so that other numbers make a file of the same size.
fn csv(range: std::ops::Range<i64>) -> String {
    range.fold("n\n".to_owned(), |mut text, n| {
        use std::fmt::Write;
        let _ = writeln!(text, "{n:012}");
        text
    })
}

fn path(db: &Db, name: &str) -> PathBuf {
    db.folder().join(name)
}

async fn fails_and_names(db: &Db, sql: &str, file: &str) {
    let error = db.err(sql).await;
    assert!(error.contains(&format!("{{dir}}/{file}")), "{sql}: {error}");
    assert!(error.starts_with("Data:") || error.starts_with("Io:"), "{sql}: {error}");
}

#[tokio::test]
async fn a_file_that_vanishes() {
    for rested in [false, true] {
        let db = db().await;
        if rested {
            db.ok("SELECT (SELECT count(*) FROM p) AS p, (SELECT count(*) FROM c) AS c, (SELECT count(*) FROM j) AS j")
                .await;
            rest().await;
        }
        for (table, file) in [("p", "p/2.parquet"), ("c", "c/2.csv"), ("j", "j/1.json")] {
            let gone = path(&db, file);
            db.on_rows(move || std::fs::remove_file(gone).expect("it was there"));
            fails_and_names(&db, &format!("SELECT count(tests_hook(n)) FROM {table}"), file).await;
        }
        goes_on(&db).await;
    }
}

#[tokio::test]
async fn a_file_that_is_overwritten_unnoticed() {
    for rested in [false, true] {
        let db = db().await;
        if rested {
            db.ok("SELECT (SELECT count(*) FROM p) AS p, (SELECT count(*) FROM c) AS c").await;
            rest().await;
            // What was known by its content only is known by its identity now.
            db.ok("SELECT (SELECT count(*) FROM p) AS p, (SELECT count(*) FROM c) AS c").await;
        }
        let (parquet, text) = (path(&db, "p/1.parquet"), path(&db, "c/1.csv"));
        db.on_rows(move || overwrite_unnoticed(&parquet, &numbers_bytes(500_000..500_000 + ROWS)));
        fails_and_names(&db, "SELECT sum(tests_hook(n)) FROM p", "p/1.parquet").await;
        db.on_rows(move || overwrite_unnoticed(&text, csv(500_000..500_000 + ROWS).as_bytes()));
        fails_and_names(&db, "SELECT sum(tests_hook(n)) FROM c", "c/1.csv").await;
        // The next statement reads what is there now.
        let sum: i64 = (500_000..500_000 + ROWS).chain(ROWS..2 * ROWS).sum();
        assert_eq!(db.ok("SELECT sum(n) FROM p").await, sum.to_string());
        assert_eq!(db.ok("SELECT sum(n) FROM c").await, sum.to_string());
        goes_on(&db).await;
    }
}

#[tokio::test]
async fn a_file_that_is_replaced() {
    let db = db().await;
    let file = path(&db, "p/2.parquet");
    db.on_rows(move || appear(&file, &numbers_bytes(0..ROWS)));
    fails_and_names(&db, "SELECT sum(tests_hook(n)) FROM p", "p/2.parquet").await;
    let file = path(&db, "c/2.csv");
    db.on_rows(move || appear(&file, csv(0..ROWS).as_bytes()));
    fails_and_names(&db, "SELECT sum(tests_hook(n)) FROM c", "c/2.csv").await;
    goes_on(&db).await;
}

#[test]
fn a_file_that_is_cut() {
    // A reader that waits for the rest of the file never yields: only another thread can tell that it hangs.
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let db = db().await;
            for (table, file) in [("p", "p/1.parquet"), ("c", "c/1.csv"), ("j", "j/1.json")] {
                let cut = path(&db, file);
                let size = std::fs::metadata(&cut).expect("it is there").len();
                db.on_rows(move || {
                    let file = File::options().write(true).open(cut).expect("it is there");
                    file.set_len(size / 2).expect("it can be cut");
                });
                fails_and_names(&db, &format!("SELECT count(tests_hook(n)) FROM {table}"), file).await;
            }
            goes_on(&db).await;
        });
        let _ = done.send(());
    });
    match is_done.recv_timeout(std::time::Duration::from_secs(60)) {
        Ok(()) => {}
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("reading a file that was cut does not end"),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => panic!("see above"),
    }
}

/// A log that grows is no trouble: the statement reads what was there when it began.
#[tokio::test]
async fn a_file_that_grows() {
    let db = db().await;
    for (table, file, line) in [("c", "c/2.csv", "5\n"), ("j", "j/1.json", "{\"n\":5}\n")] {
        let before = db.ok(&format!("SELECT count(*), sum(n) FROM {table}")).await;
        let grown = path(&db, file);
        db.on_rows(move || append(&grown, line.repeat(50_000)));
        assert_eq!(db.ok(&format!("SELECT count(tests_hook(n)), sum(n) FROM {table}")).await, before);
        let count: i64 = before.split('|').next().and_then(|count| count.parse().ok()).expect("a number");
        assert_eq!(db.ok(&format!("SELECT count(*) FROM {table}")).await, (count + 50_000).to_string());
    }
    goes_on(&db).await;
}

/// New files beside those that are read belong to the next statement.
#[tokio::test]
async fn a_file_that_appears() {
    let db = db().await;
    let file = path(&db, "p/3.parquet");
    db.on_rows(move || numbers(&file, 0..10));
    assert_eq!(db.ok("SELECT count(tests_hook(n)) FROM p").await, (2 * ROWS).to_string());
    assert_eq!(db.ok("SELECT count(*) FROM p").await, (2 * ROWS + 10).to_string());
    goes_on(&db).await;
}

/// Rows that came from a mixture must not stay anywhere.
#[tokio::test]
async fn nothing_is_written_from_a_file_that_changed() {
    let db = db().await;
    let overwrite = |db: &Db, from: i64| {
        let file = path(db, "p/1.parquet");
        db.on_rows(move || overwrite_unnoticed(&file, &numbers_bytes(from..from + ROWS)));
    };
    overwrite(&db, 1_000_000);
    fails_and_names(&db, "INSERT INTO target SELECT tests_hook(n) FROM p", "p/1.parquet").await;
    assert_eq!(db.ok("SELECT * FROM target").await, "7");

    overwrite(&db, 2_000_000);
    fails_and_names(&db, "CREATE TABLE made AS SELECT tests_hook(n) AS n FROM p", "p/1.parquet").await;
    assert!(db.err("SELECT * FROM made").await.contains("does not exist"));

    overwrite(&db, 3_000_000);
    fails_and_names(&db, "CREATE OR REPLACE TABLE target AS SELECT tests_hook(n) AS n FROM p", "p/1.parquet").await;
    assert_eq!(db.ok("SELECT * FROM target").await, "7");

    overwrite(&db, 4_000_000);
    fails_and_names(&db, "COPY (SELECT tests_hook(n) AS n FROM p) TO '{dir}/out.parquet'", "p/1.parquet").await;

    // No one else reads files that should not have been written.
    db.ok("CREATE EXTERNAL TABLE e (n BIGINT) STORED AS CSV LOCATION '{dir}/e/'").await;
    overwrite(&db, 5_000_000);
    fails_and_names(&db, "INSERT INTO e SELECT tests_hook(n) FROM p", "p/1.parquet").await;
    assert_eq!(std::fs::read_dir(path(&db, "e")).expect("a folder").count(), 0);

    // COPY FROM has no place for a hook; a file that is rewritten all the time does it.
    let text = path(&db, "c/1.csv");
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = std::thread::spawn({
        let stop = std::sync::Arc::clone(&stop);
        move || {
            for from in (1..).map(|round| round * 1_000_000) {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                let mut file = File::options().write(true).open(&text).expect("it is there");
                file.write_all(csv(from..from + ROWS).as_bytes()).expect("it can be written");
            }
        }
    });
    for _ in 0..5 {
        if let Err(error) = db.run("COPY target FROM '{dir}/c/1.csv'").await {
            assert!(error.contains("{dir}/c/1.csv"), "{error}");
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().expect("the writer ends");
    // Whatever was copied is one file as it was at one time: its numbers follow each other without a gap.
    let runs = db
        .ok("SELECT count(*), count(DISTINCT n / 1000000), min(c), max(c) FROM (SELECT n, count(*) OVER (PARTITION BY n / 1000000) AS c FROM target WHERE n <> 7)")
        .await;
    let runs: Vec<&str> = runs.split('|').collect();
    if runs[0] != "0" {
        assert_eq!((runs[2], runs[3]), ("100000", "100000"), "{runs:?}");
    }
    goes_on(&db).await;
}

/// A managed table that is dropped or replaced while it is read stays readable to whoever reads it.
#[tokio::test]
async fn a_managed_table_that_is_replaced_or_dropped() {
    let db = db().await;
    db.ok("CREATE TABLE m AS SELECT * FROM generate_series(1, 100000) AS t (n)").await;
    for change in ["CREATE OR REPLACE TABLE m AS SELECT 1 AS n", "DROP TABLE m"] {
        let before = db.ok("SELECT count(*), sum(n) FROM m").await;
        let other = db.client();
        let (done, is_done) = std::sync::mpsc::channel();
        let handle = tokio::runtime::Handle::current();
        db.on_rows(move || {
            // The hook is on a thread of the runtime, which must not block on itself.
            std::thread::spawn(move || drop(done.send(handle.block_on(async move { other.run(change).await }))));
        });
        let reading = db.run("SELECT count(tests_hook(n)), sum(n) FROM m").await;
        let changed =
            tokio::task::spawn_blocking(move || is_done.recv()).await.expect("it runs").expect("it was changed");
        changed.unwrap_or_else(|error| panic!("{change}: {error}"));
        assert_eq!(reading.unwrap_or_else(|error| panic!("{change}: {error}")), before);
    }
    goes_on(&db).await;
}
