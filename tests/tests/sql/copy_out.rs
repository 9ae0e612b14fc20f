//! COPY .. TO: what names and options ask for is what is written, and it can be read again by the same name.

use std::path::Path;
use std::time::{Duration, SystemTime};

use nectarine_tests::db::Db;

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn text(db: &Db, name: &str) -> String {
    std::fs::read_to_string(db.path(name)).expect("a file")
}

/// Bytes that files of a compression begin with.
fn begins_with(db: &Db, name: &str, magic: &[u8]) {
    let bytes = std::fs::read(db.path(name)).expect("a file");
    assert!(bytes.starts_with(magic), "{name} begins with {:?}", &bytes[..magic.len().min(bytes.len())]);
}

#[tokio::test]
async fn a_name_that_says_compressed_is_compressed() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT value AS a, 'x' || value AS s FROM generate_series(1, 5000)").await;
    let magics: [(&str, &[u8]); 4] =
        [("gz", b"\x1f\x8b"), ("zst", b"\x28\xb5\x2f\xfd"), ("bz2", b"BZh"), ("xz", b"\xfd7zXZ")];
    for (ending, magic) in magics {
        for (name, stored) in
            [("x.csv", ""), ("y.csv", "STORED AS CSV"), ("x.json", ""), ("x.ndjson", ""), ("x.tsv", "")]
        {
            let name = format!("{name}.{ending}");
            assert_eq!(db.ok(&format!("COPY t TO '{{dir}}/{name}' {stored}")).await, "COPY 5000", "{name}");
            begins_with(&db, &name, magic);
            let read = db.ok(&format!("SELECT count(*), sum(a), max(s) FROM '{{dir}}/{name}'")).await;
            assert_eq!(read, "5000|12502500|x999", "{name}");
        }
    }
    db.script(
        r#"
        COPY t TO '{dir}/z.csv.gz' OPTIONS (compression 'gzip');
        -> COPY 5000
        COPY t TO '{dir}/bad.csv.gz' OPTIONS (compression 'zstd');
        !! its name says gzip, its compression is zstd
        COPY t TO '{dir}/bad.csv.gz' (FORMAT csv, COMPRESSION none);
        !! its name says gzip
        COPY t TO '{dir}/bad.parquet.gz';
        !! cannot write PARQUET to "{dir}/bad.parquet.gz", whose name says gzip
        COPY t TO '{dir}/bad.gz' STORED AS PARQUET;
        !! whose name says gzip
        COPY t TO '{dir}/bad.gz';
        !! cannot tell the format
        COPY t TO '{dir}/folder/' STORED AS CSV OPTIONS (compression 'gzip');
        -> COPY 5000
        SELECT count(*) FROM '{dir}/folder/';
        -> 5000
        "#,
    )
    .await;
    assert!(!names(db.folder()).iter().any(|name| name.starts_with("bad")), "{:?}", names(db.folder()));
}

#[tokio::test]
async fn options_in_the_words_of_postgresql() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a;b'), (2, NULL), (3, '')) AS t (a, s);
        COPY (SELECT * FROM t ORDER BY a) TO '{dir}/a.csv' WITH (FORMAT csv, HEADER false, DELIMITER ';', NULL 'none');
        -> COPY 3
        COPY (SELECT * FROM t ORDER BY a) TO '{dir}/b.txt' (FORMAT csv, HEADER, QUOTE '''', FORCE_QUOTE *);
        -> COPY 3
        COPY (SELECT * FROM t ORDER BY a) TO '{dir}/c' CSV HEADER DELIMITER AS '|';
        -> COPY 3
        COPY t (s) TO '{dir}/d.csv' (HEADER off, NULL '\N');
        -> COPY 3
        COPY (SELECT * FROM t ORDER BY a) TO '{dir}/e.csv' OPTIONS ('format.delimiter' '|', has_header false);
        -> COPY 3
        COPY (SELECT 'a"b\c' AS s, 1 AS n) TO '{dir}/f.csv' (HEADER off, ESCAPE '\');
        -> COPY 1
        COPY t (nope) TO '{dir}/x.csv';
        !! nope
        COPY t TO '{dir}/x' (FORMAT text);
        !! unknown format "TEXT"
        !! PARQUET, CSV, JSON and ARROW
        COPY t TO '{dir}/x.csv' (NULL ',');
        !! the text for NULL cannot hold ','
        COPY t TO '{dir}/x.csv' (DELIMITER 'ab');
        !! format.delimiter
        COPY t TO '{dir}/x.csv' (NO_SUCH 'ab');
        !! no_such
        COPY t TO STDOUT;
        !! this client has no STDOUT for COPY
        COPY t FROM STDIN;
        !! this client has no STDIN for COPY
        COPY t FROM '{dir}/a.csv' (FORMAT text);
        !! unknown format "TEXT"
        "#,
    )
    .await;
    assert_eq!(text(&db, "a.csv"), "1;\"a;b\"\n2;none\n3;\"\"\n");
    assert_eq!(text(&db, "b.txt"), "'a','s'\n'1','a;b'\n'2',\n'3',''\n");
    // PostgreSQL knows no folders: one file, whatever its name.
    assert_eq!(text(&db, "c"), "a|s\n1|a;b\n2|\n3|\"\"\n");
    let mut lines: Vec<String> = text(&db, "d.csv").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["\"\"", "\\N", "a;b"]);
    assert_eq!(text(&db, "e.csv"), "1|a;b\n2|\n3|\"\"\n");
    assert_eq!(text(&db, "f.csv"), "\"a\\\"b\\\\c\",1\n");
    assert!(!db.path("x.csv").exists() && !db.path("x").exists());
}

/// What is replaced keeps its rights and its links; unfinished files never show.
#[cfg(unix)]
#[tokio::test]
async fn files_are_replaced_in_place() {
    use std::os::unix::fs::PermissionsExt;
    let db = Db::new().await;
    std::fs::create_dir(db.folder().join("d")).expect("a folder");
    let secret = db.file("d/secret.csv", "a\n1\n");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).expect("its mode can be set");
    std::os::unix::fs::symlink(&secret, db.folder().join("link.csv")).expect("a link");
    assert_eq!(db.ok("COPY (SELECT 2 AS a) TO '{dir}/link.csv'").await, "COPY 1");
    assert!(db.path("link.csv").symlink_metadata().expect("there").is_symlink());
    assert_eq!(text(&db, "d/secret.csv"), "a\n2\n");
    assert_eq!(std::fs::metadata(&secret).expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(names(&db.folder().join("d")), ["secret.csv"]);
    // Folders of files as well, and partitions.
    db.ok("COPY (SELECT value AS a, value % 2 AS k FROM generate_series(1, 10)) TO '{dir}/p/' STORED AS CSV PARTITIONED BY (k)")
        .await;
    assert_eq!(names(&db.folder().join("p")), ["k=0", "k=1"]);
    assert_eq!(db.ok("SELECT count(*) FROM '{dir}/p/'").await, "10");
    // Explaining with ANALYZE runs it, in the same way.
    db.ok("EXPLAIN ANALYZE COPY (SELECT 3 AS a) TO '{dir}/d/x.csv'").await;
    assert_eq!(text(&db, "d/x.csv"), "a\n3\n");
    assert_eq!(names(&db.folder().join("d")), ["secret.csv", "x.csv"]);
    db.ok("EXPLAIN COPY (SELECT 3 AS a) TO '{dir}/d/y.csv.gz'").await;
    assert_eq!(names(&db.folder().join("d")), ["secret.csv", "x.csv"]);
}

/// What a killed COPY leaves is hidden from globs and folder tables, and goes when somebody else copies into the folder.
#[tokio::test]
async fn what_a_killed_copy_left_is_swept() {
    let db = Db::new().await;
    db.file("d/1.csv", "a\n1\n");
    let hidden = |id: &str, minutes: u64| {
        let folder = db.folder().join(format!("d/.nectarine-{id}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("x.csv"), "a\n99\n").expect("a file");
        std::fs::write(folder.join("y.csv#1"), "a\n99\n").expect("a file");
        std::fs::write(folder.join("lock"), "").expect("a file");
        let opened = std::fs::File::open(&folder).expect("a folder");
        opened.set_modified(SystemTime::now() - Duration::from_secs(60 * minutes)).expect("its time can be set");
        folder
    };
    let dead = hidden("0198a7d2000070008000000000000001", 60);
    let fresh = hidden("0198a7d2000070008000000000000002", 0);
    for place in ["d/", "d/*.csv", "d/**/*.csv", "**/*.csv", "d/*", "*/*.csv"] {
        assert_eq!(db.ok(&format!("SELECT sum(a) FROM '{{dir}}/{place}'")).await, "1", "{place}");
    }
    db.ok("COPY (SELECT 2 AS a) TO '{dir}/d/2.csv'").await;
    assert!(!dead.exists(), "what a dead process left is gone");
    assert!(fresh.exists(), "what may be about to be locked is not");
    assert_eq!(db.ok("SELECT sum(a) FROM '{dir}/d/'").await, "3");
}

/// Compressions of Parquet need no level, wherever they are named.
#[tokio::test]
async fn parquet_compressions_without_a_level() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT value AS a, 'x' || (value % 3) AS s FROM generate_series(1, 5000)").await;
    for word in ["zstd", "ZSTD", "gzip", "brotli", "'zstd(9)'", "snappy", "lz4", "lz4_raw", "none", "uncompressed"] {
        assert_eq!(db.ok(&format!("COPY t TO '{{dir}}/x.parquet' (COMPRESSION {word})")).await, "COPY 5000", "{word}");
        let stored = format!("COPY t TO '{{dir}}/y/' STORED AS PARQUET OPTIONS (compression {word})");
        assert_eq!(db.ok(&stored).await, "COPY 5000", "{word}");
        assert_eq!(db.ok("SELECT count(*), sum(a) FROM '{dir}/x.parquet'").await, "5000|12502500", "{word}");
    }
    db.script(
        r#"
        COPY t TO '{dir}/z.parquet' OPTIONS ('format.compression' 'snappy', 'format.compression::s' 'zstd');
        -> COPY 5000
        COPY t TO '{dir}/bad.parquet' (COMPRESSION lzma);
        !! Sql: unknown compression "lzma" for Parquet
        COPY t TO '{dir}/bad.parquet' (COMPRESSION 'zstd(');
        !! Sql: unknown compression
        SET datafusion.execution.parquet.compression = 'zstd(';
        !! unknown compression
        SET datafusion.execution.parquet.compression = 'gzip';
        SHOW datafusion.execution.parquet.compression;
        -> datafusion.execution.parquet.compression|gzip(6)
        COPY t TO '{dir}/w.parquet';
        -> COPY 5000
        RESET datafusion.execution.parquet.compression;
        "#,
    )
    .await;
    assert!(!db.path("bad.parquet").exists());
    let of_files = Db::with(&[("datafusion.execution.parquet.compression", "zstd")]).await;
    of_files.ok("COPY (SELECT 1 AS a) TO '{dir}/x.parquet'").await;
    assert_eq!(of_files.ok("SELECT a FROM '{dir}/x.parquet'").await, "1");
}
