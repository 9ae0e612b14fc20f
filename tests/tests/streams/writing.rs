//! INSERT into external tables: new files beside those of others.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nectarine_tests::db::Db;
use nectarine_tests::files::numbers;

#[tokio::test]
async fn insert_adds_files() {
    let db = Db::new().await;
    for (format, more) in [
        ("PARQUET", ""),
        ("CSV", ""),
        ("JSON", ""),
        ("ARROW", ""),
        ("CSV", "OPTIONS ('format.compression' 'gzip')"),
        ("JSON", "OPTIONS ('format.compression' 'zstd')"),
        ("CSV", "OPTIONS ('format.has_header' 'false', 'format.delimiter' ';')"),
    ] {
        db.script(
            &r#"
            CREATE EXTERNAL TABLE e (a BIGINT, b TEXT) STORED AS FORMAT LOCATION '{dir}/FORMAT/' MORE;
            INSERT INTO e VALUES (1, 'one'), (2, 'two, "2"; and more');
            -> INSERT 2
            SELECT * FROM e ORDER BY a;
            -> 1|one
            -> 2|two, "2"; and more
            INSERT INTO e (b, a) SELECT b, a + 10 FROM e;
            -> INSERT 2
            INSERT INTO e (a) VALUES (100);
            -> INSERT 1
            SELECT count(*), sum(a), count(b) FROM e;
            -> 5|126|4
            SELECT extents > 1 FROM system.tables WHERE table_name = 'e';
            -> true
            INSERT INTO e SELECT * FROM e WHERE false;
            SELECT count(*) FROM e;
            -> 5
            INSERT INTO e VALUES ('x', 'y');
            !! x
            SELECT count(*) FROM e;
            -> 5
            DROP TABLE e;
            "#
            .replace("FORMAT", format)
            .replace("MORE", more),
        )
        .await;
        let folder = db.folder().join(format);
        assert!(folder.is_dir(), "dropping an external table leaves its files");
        std::fs::remove_dir_all(folder).expect("it was there");
    }
}

#[tokio::test]
async fn insert_into_partitions() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE EXTERNAL TABLE e (a BIGINT, p TEXT, q BIGINT) STORED AS PARQUET PARTITIONED BY (p, q) LOCATION '{dir}/e/';
        INSERT INTO e VALUES (1, 'x', 1), (2, 'x', 2), (3, 'y', 1);
        -> INSERT 3
        SELECT p, q, a FROM e ORDER BY a;
        -> x|1|1
        -> x|2|2
        -> y|1|3
        INSERT INTO e SELECT a + 10, 'z', 3 FROM e;
        SELECT p, count(*) FROM e GROUP BY p ORDER BY p;
        -> x|2
        -> y|1
        -> z|3
        INSERT INTO e VALUES (5, 'odd/name =%?', 1);
        SELECT a FROM e WHERE p = 'odd/name =%?';
        -> 5
        "#,
    )
    .await;
    assert!(db.folder().join("e/p=x/q=1").is_dir());
    assert!(db.folder().join("e/p=y/q=1").is_dir());
    match db.run("INSERT INTO e VALUES (6, NULL, 1)").await {
        Ok(_) => assert_eq!(db.ok("SELECT a FROM e WHERE p IS NULL").await, "6"),
        Err(error) => assert!(!error.starts_with("Internal"), "{error}"),
    }
}

#[tokio::test]
async fn a_file_or_a_glob_takes_no_rows() {
    let db = Db::new().await;
    numbers(&db.path("d/1.parquet"), 0..3);
    db.script(
        r#"
        CREATE EXTERNAL TABLE file STORED AS PARQUET LOCATION '{dir}/d/1.parquet';
        CREATE EXTERNAL TABLE glob STORED AS PARQUET LOCATION '{dir}/d/*.parquet';
        INSERT INTO file VALUES (1);
        !! cannot insert into external table
        !! {dir}/d/1.parquet
        INSERT INTO glob VALUES (1);
        !! cannot insert into external table
        !! {dir}/d/*.parquet
        COPY glob FROM '{dir}/d/1.parquet';
        !! cannot insert into external table
        CREATE EXTERNAL TABLE folder STORED AS PARQUET LOCATION '{dir}/d';
        INSERT INTO folder VALUES (10);
        SELECT sum(n) FROM folder;
        -> 13
        SELECT sum(n) FROM glob;
        -> 13
        COPY folder FROM '{dir}/d/1.parquet';
        -> COPY 3
        SELECT sum(n) FROM folder;
        -> 16
        "#,
    )
    .await;
}

/// An INSERT that fails half-way leaves no rows, and no files either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn insert_into_files_is_all_or_nothing() {
    let db = Db::new().await;
    for buffer in ["10485760", "4096"] {
        // The small one makes uploads of several parts.
        db.ok(&format!("SET datafusion.execution.objectstore_writer_buffer_size = {buffer}")).await;
        for format in ["PARQUET", "CSV", "JSON", "ARROW"] {
            for partitions in ["", "PARTITIONED BY (p)"] {
                let folder = format!("{format}{}{buffer}", partitions.len());
                db.ok(&format!(
                    "CREATE OR REPLACE EXTERNAL TABLE e (a BIGINT, p BIGINT) STORED AS {format} {partitions} LOCATION '{{dir}}/{folder}/'"
                ))
                .await;
                assert_eq!(
                    db.ok("INSERT INTO e SELECT value, value % 3 FROM generate_series(1, 30000)").await,
                    "INSERT 30000"
                );
                assert_eq!(db.ok("SELECT count(*), sum(a), sum(p) FROM e").await, "30000|450015000|30000");
                let before = files(&db.path(&folder));
                assert_eq!(before.len(), if partitions.is_empty() { 1 } else { 3 }, "{before:?}");
                let error =
                    db.err("INSERT INTO e SELECT 1 / (value - 90000), value % 3 FROM generate_series(1, 100000)").await;
                assert!(error.contains("division by zero"), "{error}");
                let long = db.run("INSERT INTO e SELECT value, value % 3 FROM generate_series(1, 1000000000)");
                let cancelled = tokio::time::timeout(Duration::from_millis(200), long).await;
                assert!(cancelled.is_err(), "so many rows take longer");
                db.ok("INSERT INTO e SELECT * FROM e WHERE false").await;
                assert_eq!(db.ok("SELECT count(*) FROM e").await, "30000", "{folder}");
                for _ in 0..1200 {
                    if files(&db.path(&folder)) == before {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                assert_eq!(files(&db.path(&folder)), before, "nothing is left, hidden or not");
            }
        }
    }
}

/// All files below a folder, and empty folders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let below = if entry.path().is_dir() { files(&entry.path()) } else { vec![] };
        found.extend(if below.is_empty() { vec![entry.path()] } else { below });
    }
    found.sort();
    found
}

#[tokio::test]
async fn null_is_a_partition() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE EXTERNAL TABLE e (a BIGINT, t TEXT, n BIGINT, d DATE, b BOOLEAN) STORED AS CSV PARTITIONED BY (t, n, d, b)
          LOCATION '{dir}/e/';
        INSERT INTO e VALUES (1, NULL, NULL, NULL, NULL), (2, '', 0, '2024-02-29', false), (3, 'x', NULL, NULL, true);
        -> INSERT 3
        SELECT a, t, n, d, b FROM e ORDER BY a;
        -> 1|NULL|NULL|NULL|NULL
        -> 2||0|2024-02-29|false
        -> 3|x|NULL|NULL|true
        SELECT a FROM e WHERE n IS NULL ORDER BY a;
        -> 1
        -> 3
        INSERT INTO e VALUES (4, '__HIVE_DEFAULT_PARTITION__', 1, NULL, NULL);
        !! stands for NULL
        SELECT count(*) FROM e;
        -> 3
        CREATE EXTERNAL TABLE only (p BIGINT) STORED AS CSV PARTITIONED BY (p) LOCATION '{dir}/only/';
        INSERT INTO only VALUES (1);
        !! all its columns are partitions
        "#,
    )
    .await;
}

#[tokio::test]
async fn new_files_have_the_ending_that_the_table_lists() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE EXTERNAL TABLE e (a BIGINT) STORED AS CSV LOCATION '{dir}/e/' OPTIONS ('file_extension' '.dat');
        INSERT INTO e VALUES (1);
        SELECT a FROM e;
        -> 1
        CREATE EXTERNAL TABLE deep (a BIGINT) STORED AS JSON LOCATION '{dir}/not/there/yet/';
        INSERT INTO deep VALUES (1);
        SELECT a FROM deep;
        -> 1
        "#,
    )
    .await;
}

#[tokio::test]
async fn text_that_stands_for_null() {
    let db = Db::new().await;
    db.file("n/1.csv", "a,t,d\n1,\\N,2024-01-01\n\\N,,\\N\n3,x\\N,2024-01-03\n");
    db.script(
        r#"
        CREATE EXTERNAL TABLE n (a BIGINT, t TEXT, d DATE) STORED AS CSV LOCATION '{dir}/n/'
          OPTIONS ('format.null_regex' '^\\N$', 'format.null_value' '\N');
        SELECT a, t, d FROM n ORDER BY a;
        -> 1|NULL|2024-01-01
        -> 3|x\N|2024-01-03
        -> NULL||NULL
        SELECT d FROM n WHERE a = 3;
        -> 2024-01-03
        SELECT count(*) FROM n;
        -> 3
        INSERT INTO n VALUES (NULL, '', NULL), (5, NULL, '2024-01-05');
        SELECT a, t, d FROM n ORDER BY a NULLS LAST;
        -> 1|NULL|2024-01-01
        -> 3|x\N|2024-01-03
        -> 5|NULL|2024-01-05
        -> NULL||NULL
        -> NULL||NULL
        CREATE EXTERNAL TABLE i STORED AS CSV LOCATION '{dir}/n/' OPTIONS ('format.null_regex' '^\\N$');
        SELECT sum(a) FROM i;
        -> 9
        INSERT INTO i VALUES (1, 'x', NULL);
        !! format.null_value
        CREATE EXTERNAL TABLE s (a BIGINT NOT NULL, t TEXT, d DATE) STORED AS CSV LOCATION '{dir}/n/'
          OPTIONS ('format.null_regex' '^\\N$');
        SELECT a FROM s;
        !! "a", which is NOT NULL
        CREATE EXTERNAL TABLE b (a BIGINT, t TEXT, d DATE) STORED AS CSV LOCATION '{dir}/n/' OPTIONS ('format.null_regex' '(');
        SELECT a FROM b;
        !! is no regular expression
        CREATE TABLE c (a BIGINT, t TEXT, d DATE);
        COPY c FROM '{dir}/n/1.csv' (FORMAT csv, HEADER, NULL '\N');
        -> COPY 3
        SELECT a, t, d FROM c ORDER BY a;
        -> 1|NULL|2024-01-01
        -> 3|x\N|2024-01-03
        -> NULL||NULL
        COPY c FROM '{dir}/n/1.csv' (FORMAT csv, HEADER, NULL 'x');
        !! \N
        "#,
    )
    .await;
}

/// What a killed process left goes when someone else inserts: not at once, and never while its process lives.
#[cfg(unix)]
#[tokio::test]
async fn what_a_killed_insert_left_is_swept() {
    let db = Db::new().await;
    db.ok("CREATE EXTERNAL TABLE e (a BIGINT) STORED AS CSV LOCATION '{dir}/e/'").await;
    let hidden = |id: &str, lock: bool, hours: u64| {
        let folder = db.folder().join(format!("e/.nectarine-{id}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("x.csv"), "a\n1\n").expect("a file");
        let lock = lock.then(|| std::fs::File::create(folder.join("lock")).expect("a file"));
        let age = Duration::from_secs(3600 * hours);
        let opened = std::fs::File::open(&folder).expect("a folder");
        opened.set_modified(std::time::SystemTime::now() - age).expect("its time can be set");
        (folder, lock)
    };
    let (dead, _) = hidden("0198a7d2000070008000000000000001", true, 1);
    let (fresh, _) = hidden("0198a7d2000070008000000000000002", true, 0);
    let (alive, lock) = hidden("0198a7d2000070008000000000000003", true, 100);
    lock.as_ref().expect("a lock").lock().expect("nobody has it");
    let (unlocked, _) = hidden("0198a7d2000070008000000000000004", false, 23);
    let (old, _) = hidden("0198a7d2000070008000000000000005", false, 25);
    let (theirs, _) = hidden("notes", true, 100);
    assert_eq!(db.ok("INSERT INTO e VALUES (5)").await, "INSERT 1");
    let there = [&dead, &fresh, &alive, &unlocked, &old, &theirs].map(|folder| folder.exists());
    assert_eq!(there, [false, true, true, true, false, true]);
    assert_eq!(db.ok("SELECT sum(a) FROM e").await, "5");
    drop(lock);
    db.ok("INSERT INTO e VALUES (6)").await;
    assert!(!alive.exists());
}
