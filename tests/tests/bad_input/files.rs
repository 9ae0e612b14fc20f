//! Files that are not there, or not what their name says.

use std::path::Path;
use std::time::Duration;

use nectarine_tests::files::{numbers, numbers_bytes};

use super::{db, goes_on};

#[tokio::test]
async fn missing_file() {
    let db = db().await;
    db.file("near.csv", "a\n1\n");
    db.script(
        r#"
        SELECT * FROM '{dir}/nope.parquet';
        !! Data: no files match "{dir}/nope.parquet": no such file or folder
        SELECT * FROM '{dir}/near.parquet';
        !! did you mean "{dir}/near.csv"?
        SELECT * FROM '{dir}/nope/*.csv';
        !! Data: no files match "{dir}/nope/*.csv"
        SELECT * FROM '{dir}/no/such/x.csv';
        !! there is no folder "{dir}/no/such"
        CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '{dir}/nope.parquet';
        !! no files match "{dir}/nope.parquet"
        CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{dir}/nope/';
        !! no files match "{dir}/nope/"
        COPY kept FROM '{dir}/nope.csv';
        !! no files match "{dir}/nope.csv"
        COPY kept FROM '{dir}/nope.parquet';
        !! no files match "{dir}/nope.parquet"
        SELECT * FROM x;
        !! table "x" does not exist
        SELECT * FROM '';
        !! Sql:
        SELECT * FROM 'ftp://host/x.csv';
        !! unknown scheme "ftp"
        "#,
    )
    .await;
    goes_on(&db).await;
}

/// As other engines read files, and as one writes a name in a hurry.
#[tokio::test]
async fn files_that_are_named_otherwise() {
    let db = db().await;
    db.file("x.csv", "a\n1\n");
    db.script(
        r#"
        SELECT * FROM x.csv;
        !! Sql: table "x.csv" does not exist
        !! FROM 'x.csv'
        SELECT * FROM Data.Parquet AS d JOIN kept ON true;
        !! FROM 'Data.Parquet'
        SELECT * FROM logs.ndjson.gz;
        !! FROM 'logs.ndjson.gz'
        SELECT * FROM read_csv('{dir}/x.csv');
        !! Sql: function "read_csv" does not exist
        !! FROM '{dir}/x.csv'
        SELECT count(*) FROM read_parquet('d/*.parquet') AS p;
        !! FROM 'd/*.parquet'
        SELECT * FROM read_json('x.json');
        !! FROM 'x.json'
        SELECT * FROM read_csv_auto('x.csv');
        !! FROM 'x.csv'
        SELECT * FROM parquet_scan('x.parquet');
        !! FROM 'x.parquet'
        CREATE TABLE c (LIKE kept);
        !! LIKE in CREATE TABLE is not supported
        !! CREATE TABLE c AS SELECT * FROM a WHERE false
        CREATE TABLE c (LIKE kept INCLUDING ALL);
        !! CREATE TABLE c AS SELECT * FROM a WHERE false
        CREATE TABLE c LIKE kept;
        !! CREATE TABLE c AS SELECT * FROM a WHERE false
        CREATE TABLE c AS SELECT * FROM kept WHERE false;
        SELECT count(*) FROM c;
        -> 0
        "#,
    )
    .await;
    goes_on(&db).await;
}

#[tokio::test]
async fn empty_folder() {
    let db = db().await;
    std::fs::create_dir(db.folder().join("empty")).expect("a folder");
    db.file("others/readme.md", "x");
    db.file("others/.hidden.parquet", "x");
    db.script(
        r#"
        SELECT * FROM '{dir}/empty/';
        !! no files match "{dir}/empty/": the folder is empty
        SELECT * FROM '{dir}/others/';
        !! no files match "{dir}/others/": no file in the folder has an ending that tells its format
        SELECT * FROM '{dir}/empty/*.parquet';
        !! no files match "{dir}/empty/*.parquet"
        CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '{dir}/empty/';
        !! no files match "{dir}/empty/": the folder is empty
        CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '{dir}/others/';
        !! no files match "{dir}/others/"
        !! none ends in .parquet
        SELECT * FROM x;
        !! table "x" does not exist
        "#,
    )
    .await;
    goes_on(&db).await;
}

/// Columns that are given need no file; the first one appears like any other.
#[tokio::test]
async fn a_folder_that_will_be_filled_later() {
    let db = db().await;
    db.ok("CREATE EXTERNAL TABLE later (n BIGINT) STORED AS PARQUET LOCATION '{dir}/later/'").await;
    match db.run("SELECT count(*) FROM later").await {
        Ok(rows) => assert_eq!(rows, "0"),
        Err(error) => assert!(error.contains("no files match \"{dir}/later/\""), "{error}"),
    }
    numbers(&db.path("later/1.parquet"), 0..10);
    assert_eq!(db.ok("SELECT count(*), max(n) FROM later").await, "10|9");
    goes_on(&db).await;
}

#[tokio::test]
async fn empty_file() {
    let db = db().await;
    for name in ["e.csv", "e.json", "e.parquet", "e.arrow", "e.avro"] {
        db.file(name, "");
        let error = db.err(&format!("SELECT * FROM '{{dir}}/{name}'")).await;
        assert!(error.contains(&format!("{{dir}}/{name}")) && error.contains("empty"), "{error}");
        let error = db.err(&format!("COPY kept FROM '{{dir}}/{name}'")).await;
        assert!(error.contains(&format!("{{dir}}/{name}")) && error.contains("empty"), "{error}");
    }
    goes_on(&db).await;
}

/// Whoever writes a file first creates it: an empty one beside others has no rows yet.
#[tokio::test]
async fn an_empty_file_beside_others_has_no_rows() {
    let db = db().await;
    db.file("c/1.csv", "a,b\n1,x\n");
    db.file("c/2.csv", "");
    db.file("j/1.json", "{\"a\":1}\n");
    db.file("j/2.json", "");
    numbers(&db.path("p/1.parquet"), 0..10);
    db.file("p/2.parquet", "");
    db.script(
        r#"
        CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{dir}/c/';
        CREATE EXTERNAL TABLE j STORED AS JSON LOCATION '{dir}/j/';
        CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{dir}/p/';
        SELECT * FROM c;
        -> 1|x
        SELECT * FROM j;
        -> 1
        SELECT count(*) FROM p;
        -> 10
        "#,
    )
    .await;
    db.file("c/2.csv", "a,b\n2,y\n");
    numbers(&db.path("p/2.parquet"), 10..20);
    db.script(
        r#"
        SELECT * FROM c ORDER BY a;
        -> 1|x
        -> 2|y
        SELECT count(*) FROM p;
        -> 20
        "#,
    )
    .await;
    goes_on(&db).await;
}

#[tokio::test]
async fn a_csv_file_with_nothing_but_its_header() {
    let db = db().await;
    db.file("h.csv", "a,b\n");
    assert_eq!(db.ok("SELECT count(*) FROM '{dir}/h.csv'").await, "0");
    db.file("nl.csv", "\n\n\n");
    // Lines without anything: no columns, or no rows; never a panic.
    if let Err(error) = db.run("SELECT * FROM '{dir}/nl.csv'").await {
        assert!(error.contains("{dir}/nl.csv"), "{error}");
    }
    goes_on(&db).await;
}

#[tokio::test]
async fn truncated_parquet() {
    let db = db().await;
    let whole = numbers_bytes(0..20_000);
    for length in [1, 4, 7, 8, 12, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        db.file("cut.parquet", &whole[..length]);
        for sql in [
            "SELECT * FROM '{dir}/cut.parquet'",
            "SELECT count(*) FROM '{dir}/cut.parquet'",
            "CREATE EXTERNAL TABLE cut STORED AS PARQUET LOCATION '{dir}/cut.parquet'",
            "COPY kept FROM '{dir}/cut.parquet'",
        ] {
            let error = db.err(sql).await;
            assert!(
                error.starts_with("Data:") && error.contains("{dir}/cut.parquet"),
                "{length} bytes, {sql}: {error}"
            );
        }
    }
    goes_on(&db).await;
}

/// The same where the table was there before the file was cut.
#[tokio::test]
async fn a_parquet_file_that_is_cut_later() {
    let db = db().await;
    let whole = numbers_bytes(0..20_000);
    db.file("d/1.parquet", &whole);
    db.file("d/2.parquet", &whole);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/d/'").await;
    assert_eq!(db.ok("SELECT count(*), sum(n) FROM t").await, "40000|399980000");
    for length in [whole.len() - 1, whole.len() / 2, 5] {
        db.file("d/2.parquet", &whole[..length]);
        for sql in [
            "SELECT sum(n) FROM t",
            "SELECT count(*) FROM t",
            "INSERT INTO kept SELECT n FROM t",
            "SELECT n FROM t LIMIT 1",
        ] {
            let error = db.err(sql).await;
            assert!(
                error.starts_with("Data:") && error.contains("{dir}/d/2.parquet"),
                "{length} bytes, {sql}: {error}"
            );
        }
        // A table that cannot be read says so and hides no other.
        assert_eq!(db.ok("SELECT count(*) FROM system.tables WHERE table_name IN ('kept', 't')").await, "2");
        let told = db.ok("SELECT error FROM system.tables WHERE table_name = 't'").await;
        assert!(told.contains("{dir}/d/2.parquet"), "{told}");
    }
    db.file("d/2.parquet", &whole);
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "40000");
    goes_on(&db).await;
}

/// A Parquet file that is nothing at all is cut too.
#[tokio::test]
async fn a_parquet_file_that_is_emptied() {
    let db = db().await;
    numbers(&db.path("one.parquet"), 0..10);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/one.parquet'").await;
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "10");
    db.file("one.parquet", "");
    let error = db.err("SELECT count(*) FROM t").await;
    assert!(error.contains("{dir}/one.parquet") && error.contains("empty"), "{error}");
    goes_on(&db).await;
}

/// The footer is fine, the rows are not.
#[tokio::test]
async fn parquet_with_broken_pages() {
    let db = db().await;
    let whole = numbers_bytes(0..20_000);
    let mut broken = whole.clone();
    broken[4..64].fill(0xff);
    db.file("d/1.parquet", &whole);
    db.file("d/2.parquet", &broken);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/d/'").await;
    for sql in [
        "SELECT sum(n) FROM t",
        "SELECT * FROM t ORDER BY n",
        "CREATE TABLE copy AS SELECT * FROM t",
        "INSERT INTO kept SELECT n FROM t",
    ] {
        let error = db.err(sql).await;
        assert!(error.contains("{dir}/d/2.parquet"), "{sql}: {error}");
    }
    assert!(db.err("SELECT * FROM copy").await.contains("does not exist"));
    goes_on(&db).await;
}

/// Random damage anywhere in the file: an error or an answer, never a panic or a hang.
#[tokio::test]
async fn damaged_files_never_panic() {
    use rand::{Rng, SeedableRng, rngs::StdRng};
    let db = db().await;
    let mut random = StdRng::seed_from_u64(7);
    let parquet = numbers_bytes(0..300);
    let mut arrow = Vec::new();
    {
        let batches = db.batches("SELECT a, a::TEXT AS b, [a, 2] AS c FROM kept").await;
        let mut writer =
            arrow::ipc::writer::FileWriter::try_new(&mut arrow, &batches[0].schema()).expect("a valid schema");
        batches.iter().for_each(|batch| writer.write(batch).expect("it fits"));
        writer.finish().expect("it fits");
    }
    for round in 0..120 {
        let (name, whole) = if round % 2 == 0 { ("x.parquet", &parquet) } else { ("x.arrow", &arrow) };
        let mut bytes = whole.clone();
        for _ in 0..random.random_range(1..6) {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
        db.file(name, &bytes);
        let outcome = db.run(&format!("SELECT * FROM '{{dir}}/{name}'")).await;
        if let Err(error) = outcome {
            assert!(!error.starts_with("Internal"), "round {round}: {error}");
            assert!(error.contains(name), "round {round}: {error}");
        }
    }
    goes_on(&db).await;
}

#[tokio::test]
async fn a_file_that_is_something_else() {
    let db = db().await;
    db.file("text.parquet", "a,b\n1,2\n3,4\n".repeat(100));
    db.file("zeros.parquet", vec![0; 10_000]);
    db.file("text.arrow", "a,b\n1,2\n".repeat(100));
    db.file("text.avro", "a,b\n1,2\n".repeat(100));
    db.file("text.json", "a,b\n1,2\n".repeat(100));
    db.file("text.csv.gz", "a,b\n1,2\n".repeat(100));
    db.file("text.csv.zst", "a,b\n1,2\n".repeat(100));
    let parquet = numbers_bytes(0..1000);
    db.file("binary.csv", &parquet);
    db.file("binary.json", &parquet);
    for name in [
        "text.parquet",
        "zeros.parquet",
        "text.arrow",
        "text.avro",
        "text.json",
        "text.csv.gz",
        "text.csv.zst",
        "binary.csv",
        "binary.json",
    ] {
        for sql in [format!("SELECT * FROM '{{dir}}/{name}'"), format!("COPY kept FROM '{{dir}}/{name}'")] {
            let error = db.err(&sql).await;
            assert!(error.contains(&format!("{{dir}}/{name}")), "{sql}: {error}");
        }
    }
    for (format, name) in
        [("PARQUET", "text.parquet"), ("ARROW", "text.arrow"), ("JSON", "text.json"), ("CSV", "binary.csv")]
    {
        // The columns are given, so that only reading finds out.
        db.ok(&format!(
            "CREATE OR REPLACE EXTERNAL TABLE x (a BIGINT, b BIGINT) STORED AS {format} LOCATION '{{dir}}/{name}'"
        ))
        .await;
        let error = db.err("SELECT * FROM x").await;
        assert!(error.contains(&format!("{{dir}}/{name}")), "{name}: {error}");
    }
    goes_on(&db).await;
}

#[tokio::test]
async fn a_format_that_is_not_told() {
    let db = db().await;
    db.file("data.xyz", "a\n1\n");
    db.script(
        r#"
        SELECT * FROM '{dir}/data.xyz';
        !! {dir}/data.xyz
        !! CREATE EXTERNAL TABLE
        CREATE EXTERNAL TABLE x STORED AS XLS LOCATION '{dir}/data.xyz';
        !! unknown format "XLS"
        CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{dir}/data.xyz';
        SELECT * FROM x;
        -> 1
        "#,
    )
    .await;
    goes_on(&db).await;
}

/// Things in a folder that are no plain files.
#[cfg(unix)]
#[tokio::test]
async fn odd_things_in_a_folder() {
    let db = db().await;
    db.file("d/1.csv", "a\n1\n");
    let folder = db.folder().join("d");
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.join(name)).expect("a link");
    link(".", "loop");
    link("..", "up.csv");
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe.csv")).status().expect("mkfifo runs");
    assert!(made.success());
    std::fs::create_dir(folder.join("folder.csv")).expect("a folder");
    let statement = "SELECT count(*) FROM '{dir}/d/1.csv'";
    assert_eq!(db.ok(statement).await, "1");
    // A pipe that nobody writes to must not be waited for.
    let create = db.run("CREATE EXTERNAL TABLE d STORED AS CSV LOCATION '{dir}/d/'");
    let created = tokio::time::timeout(Duration::from_secs(60), create).await.expect("it does not hang");
    if created.is_ok() {
        let read = tokio::time::timeout(Duration::from_secs(60), db.run("SELECT count(*) FROM d"))
            .await
            .expect("it does not hang");
        if let Err(error) = read {
            assert!(error.contains("{dir}"), "{error}");
        }
    }
    // A link to nowhere is named.
    std::fs::remove_file(folder.join("pipe.csv")).expect("it was there");
    std::fs::remove_file(folder.join("up.csv")).expect("it was there");
    link("/nowhere/at/all.csv", "gone.csv");
    match db.run("SELECT count(*) FROM '{dir}/d/*.csv'").await {
        Ok(rows) => assert_eq!(rows, "1"),
        Err(error) => assert!(error.contains("{dir}/d/gone.csv"), "{error}"),
    }
    goes_on(&db).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_whose_name_is_not_text() {
    use std::os::unix::ffi::OsStrExt;
    let db = db().await;
    db.file("d/1.csv", "a\n1\n");
    let name = Path::new(std::ffi::OsStr::from_bytes(b"\xff\xfe.csv"));
    std::fs::write(db.folder().join("d").join(name), "a\n2\n").expect("a file");
    match db.run("SELECT count(*) FROM '{dir}/d/*.csv'").await {
        Ok(rows) => assert_eq!(rows, "2"),
        Err(error) => assert!(error.contains("{dir}/d/") && error.contains("UTF-8"), "{error}"),
    }
    goes_on(&db).await;
}

#[tokio::test]
async fn files_that_vanish_between_statements() {
    let db = db().await;
    for part in 0..3 {
        numbers(&db.path(&format!("d/{part}.parquet")), part * 10..part * 10 + 10);
    }
    db.file("one.csv", "a\n1\n");
    db.script(
        r#"
        CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION '{dir}/d/';
        CREATE EXTERNAL TABLE one STORED AS CSV LOCATION '{dir}/one.csv';
        SELECT count(*) FROM d;
        -> 30
        SELECT * FROM one;
        -> 1
        "#,
    )
    .await;
    std::fs::remove_file(db.folder().join("d/1.parquet")).expect("it was there");
    assert_eq!(db.ok("SELECT count(*), sum(n) FROM d").await, "20|290");
    std::fs::remove_dir_all(db.folder().join("d")).expect("it was there");
    std::fs::remove_file(db.folder().join("one.csv")).expect("it was there");
    db.script(
        r#"
        SELECT count(*) FROM d;
        !! no files match "{dir}/d/"
        SELECT * FROM one;
        !! no files match "{dir}/one.csv"
        SELECT * FROM one JOIN kept ON true;
        !! no files match "{dir}/one.csv"
        DESCRIBE d;
        -> n|Int64|YES
        SELECT table_name FROM system.tables WHERE error IS NOT NULL ORDER BY table_name;
        -> d
        -> one
        "#,
    )
    .await;
    // And they come back.
    db.file("one.csv", "a\n2\n");
    assert_eq!(db.ok("SELECT * FROM one").await, "2");
    db.ok("DROP TABLE d").await;
    goes_on(&db).await;
}

/// Someone tidied up in the home.
#[tokio::test]
async fn an_extent_of_a_managed_table_that_is_gone() {
    let db = db().await;
    db.ok("CREATE TABLE lost AS SELECT value AS a, md5(CAST(value AS TEXT)) AS b FROM generate_series(1, 50000)").await;
    db.ok("INSERT INTO lost VALUES (2, 'x')").await;
    let location = db.ok("SELECT location FROM system.extents WHERE table_name = 'lost' AND position = 0").await;
    let path = location.trim_start_matches("file://").replace("{dir}", &db.folder().display().to_string());
    let bytes = std::fs::read(&path).expect("an extent");
    std::fs::remove_file(&path).expect("an extent");
    for sql in ["SELECT * FROM lost", "SELECT sum(a), max(b) FROM lost"] {
        let error = db.err(sql).await;
        assert!(error.contains(path.rsplit('/').next().expect("a name")), "{error}");
        assert!(error.contains("{dir}/home/tables/"), "{error}");
    }
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("an extent");
    let error = db.err("SELECT * FROM lost").await;
    assert!(error.contains("{dir}/home/tables/"), "{error}");
    let mut broken = bytes.clone();
    broken[4..24].fill(0xff);
    std::fs::write(&path, &broken).expect("an extent");
    let error = db.err("SELECT * FROM lost").await;
    assert!(error.contains("{dir}/home/tables/"), "{error}");
    goes_on(&db).await;
    std::fs::write(&path, &bytes).expect("an extent");
    assert_eq!(db.ok("SELECT sum(a) FROM lost").await, "1250025002");
    db.ok("DROP TABLE lost").await;
}
