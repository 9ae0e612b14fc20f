//! The adversary: files that change and hide it. Answers always reflect the bytes that are there now.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use nectarine_tests::db::Db;
use nectarine_tests::files::{appear, modified, numbers_bytes, overwrite_unnoticed, rest, set_modified};

const FORMATS: [&str; 3] = ["parquet", "csv", "json"];

/// Files of one size whatever the numbers are.
fn content(format: &str, from: i64) -> Vec<u8> {
    match format {
        "parquet" => numbers_bytes(from..from + 10),
        "csv" => format!("n\n{}", (from..from + 10).map(|n| format!("{n:09}\n")).collect::<String>()).into_bytes(),
        _ => (from..from + 10).map(|n| format!("{{\"n\":\"{n:09}\"}}\n")).collect::<String>().into_bytes(),
    }
}

fn sum(from: i64) -> String {
    (from..from + 10).sum::<i64>().to_string()
}

/// One table per format over one file each, in every way to name it.
async fn db(options: &str) -> Db {
    let db = Db::new().await;
    for format in FORMATS {
        db.file(&format!("{format}/x.{format}"), content(format, 0));
        db.ok(&format!(
            "CREATE EXTERNAL TABLE {format} STORED AS {format} LOCATION '{{dir}}/{format}/x.{format}' {options}"
        ))
        .await;
        db.ok(&format!(
            "CREATE EXTERNAL TABLE {format}_folder STORED AS {format} LOCATION '{{dir}}/{format}/' {options}"
        ))
        .await;
    }
    reads(&db, 0, "first").await;
    db
}

/// All answers are those of the current bytes.
async fn reads(db: &Db, from: i64, what: &str) {
    for format in FORMATS {
        for table in [format.to_owned(), format!("{format}_folder"), format!("'{}/{format}/x.{format}'", "{dir}")] {
            let rows = db.ok(&format!("SELECT sum(CAST(n AS BIGINT)), count(*) FROM {table}")).await;
            assert_eq!(rows, format!("{}|10", sum(from)), "{what}: {table}");
            let rows = db
                .ok(&format!("SELECT count(*) FROM {table} WHERE CAST(n AS BIGINT) BETWEEN {from} AND {}", from + 9))
                .await;
            assert_eq!(rows, "10", "{what}: {table}: pruned by statistics of other bytes");
            let rows = db.ok(&format!("SELECT max(n), min(n) FROM {table}")).await;
            assert!(rows.contains(&(from + 9).to_string()), "{what}: {table}: {rows}");
        }
    }
}

fn path(db: &Db, format: &str) -> std::path::PathBuf {
    db.folder().join(format!("{format}/x.{format}"))
}

/// What someone does to a file, given its path and its new content.
type Trick = fn(&Path, &[u8]);

/// Every trick, one after the other, with and without a rest in between.
async fn adversary(db: &Db, rested: bool) {
    let mut from = 0;
    let tricks: [(&str, Trick); 8] = [
        ("overwritten in place, same size, time put back", overwrite_unnoticed),
        ("written anew, same size, time put back", |path, bytes| {
            let time = modified(path);
            std::fs::write(path, bytes).expect("it can be written");
            set_modified(path, time);
        }),
        ("cut and grown again", |path, bytes| {
            let time = modified(path);
            let mut file = File::options().write(true).open(path).expect("it is there");
            file.set_len(0).expect("it can be cut");
            file.seek(SeekFrom::Start(0)).expect("it can be sought");
            file.write_all(bytes).expect("it can be written");
            drop(file);
            set_modified(path, time);
        }),
        ("another file renamed over it", |path, bytes| {
            let time = modified(path);
            let beside = path.with_extension("other");
            std::fs::write(&beside, bytes).expect("it can be written");
            set_modified(&beside, time);
            std::fs::rename(&beside, path).expect("it can be renamed");
        }),
        ("swapped for a hard link to another", |path, bytes| {
            let time = modified(path);
            let beside = path.with_extension("linked");
            let _ = std::fs::remove_file(&beside);
            std::fs::write(&beside, bytes).expect("it can be written");
            set_modified(&beside, time);
            std::fs::remove_file(path).expect("it was there");
            std::fs::hard_link(&beside, path).expect("it can be linked");
        }),
        ("written through its other hard link", |path, bytes| {
            let beside = path.with_extension("linked");
            let _ = std::fs::remove_file(&beside);
            std::fs::hard_link(path, &beside).expect("it can be linked");
            overwrite_unnoticed(&beside, bytes);
        }),
        ("swapped for a symbolic link to another", |path, bytes| {
            let time = modified(path);
            let target = path.with_extension("target");
            let _ = std::fs::remove_file(&target);
            std::fs::write(&target, bytes).expect("it can be written");
            set_modified(&target, time);
            std::fs::remove_file(path).expect("it was there");
            std::os::unix::fs::symlink(&target, path).expect("it can be linked");
        }),
        ("removed and made again", |path, bytes| {
            let time = modified(path);
            std::fs::remove_file(path).expect("it was there");
            std::fs::write(path, bytes).expect("it can be written");
            set_modified(path, time);
        }),
    ];
    for (what, trick) in tricks {
        if rested {
            rest().await;
            reads(db, from, what).await;
        }
        from += 1000;
        for format in FORMATS {
            trick(&path(db, format), &content(format, from));
        }
        reads(db, from, what).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn fresh_files() {
    adversary(&db("").await, false).await;
}

#[cfg(unix)]
#[tokio::test]
async fn rested_files() {
    adversary(&db("").await, true).await;
}

#[cfg(unix)]
#[tokio::test]
async fn files_by_content() {
    adversary(&db("OPTIONS ('fingerprint' 'content')").await, false).await;
}

/// Clocks differ: a file may come from the future, or from before everything.
#[tokio::test]
async fn files_of_another_time() {
    let db = db("").await;
    let day = std::time::Duration::from_secs(24 * 3600);
    let times = [std::time::SystemTime::now() + day, std::time::UNIX_EPOCH, std::time::UNIX_EPOCH - day];
    let mut from = 0;
    for time in times {
        for format in FORMATS {
            set_modified(&path(&db, format), time);
        }
        reads(&db, from, "touched").await;
        from += 1000;
        for format in FORMATS {
            overwrite_unnoticed(&path(&db, format), &content(format, from));
        }
        reads(&db, from, "overwritten").await;
    }
}

/// What one process learnt must not mislead the next.
#[tokio::test]
async fn files_that_change_while_the_home_is_closed() {
    let mut db = db("").await;
    for from in [1000, 2000] {
        rest().await;
        reads(&db, from - 1000, "before").await;
        let folder = db.shared_folder();
        db.shutdown().await;
        drop(db);
        for format in FORMATS {
            overwrite_unnoticed(&folder.path().join(format!("{format}/x.{format}")), &content(format, from));
        }
        db = Db::open(folder, &[]).await.expect("the home opens again");
        reads(&db, from, "after").await;
    }
}

/// Changes that come as fast as they can: every answer is one of the contents, whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_never_rests() {
    let db = db("").await;
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (stop, folder) = (std::sync::Arc::clone(&stop), db.folder().to_owned());
        move || {
            for from in (0..).map(|round: i64| round % 50 * 1000) {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                for format in FORMATS {
                    appear(&folder.join(format!("{format}/x.{format}")), &content(format, from));
                }
            }
        }
    });
    let (mut answers, mut refusals) = (0, 0);
    for round in 0..150 {
        let format = FORMATS[round % 3];
        match db.run(&format!("SELECT sum(CAST(n AS BIGINT)) - 45, count(*) FROM {format}")).await {
            Ok(rows) => {
                let (rest, count) = rows.split_once('|').expect("two columns");
                let rest: i64 = rest.parse().expect("a number");
                assert_eq!(count, "10", "{format}: {rows}");
                assert!(rest % 10_000 == 0 && (0..=490_000).contains(&rest), "{format}: a mixture: {rows}");
                answers += 1;
            }
            Err(error) => {
                assert!(error.starts_with("Data:") && error.contains(&format!("x.{format}")), "{error}");
                refusals += 1;
            }
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().expect("the writer ends");
    println!("{answers} answers, {refusals} refusals");
    let last = db.ok("SELECT sum(CAST(n AS BIGINT)) FROM csv").await;
    assert_eq!(db.ok("SELECT sum(CAST(n AS BIGINT)) FROM '{dir}/csv/x.csv'").await, last);
}
