//! Object stores, against a real S3 server: moto's, which `NECTARINE_TEST_MOTO` names. Without it these tests are left out
//! and say so; `tests/run` installs it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use nectarine_tests::db::Db;
use nectarine_tests::files::{gz, numbers_bytes, zst};
use nectarine_tests::program::Ran;
use nectarine_tests::s3_server::{Server, put};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt};

/// The program with this server in its environment.
fn run(server: &Server, db: &Db, sql: &str) -> Ran {
    server.run(&db.home(), &[], &["-c", sql])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_over_a_bucket() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("data");
    let db = Db::new().await;
    put(&bucket, "p/1.parquet", numbers_bytes(0..10)).await;
    put(&bucket, "c/1.csv", "a,b\n1,one\n").await;
    put(&bucket, "c/2.csv.gz", gz(b"a,b\n2,two\n")).await;
    put(&bucket, "j/1.json", "{\"a\":1}\n").await;
    put(&bucket, "j/2.ndjson.gz", gz(b"{\"a\":2}\n")).await;
    put(&bucket, "j/3.json.zst", zst(b"{\"a\":3}\n")).await;
    let options = server.options();
    for (name, format, location) in [
        ("p", "PARQUET", "p/"),
        ("c", "CSV", "c/"),
        ("j", "JSON", "j/"),
        ("one", "PARQUET", "p/1.parquet"),
        ("glob", "PARQUET", "p/*.parquet"),
    ] {
        db.ok(&format!(
            "CREATE EXTERNAL TABLE {name} STORED AS {format} LOCATION 's3://data/{location}' OPTIONS ({options})"
        ))
        .await;
    }
    db.script(
        r#"
        SELECT count(*), sum(n) FROM p;
        -> 10|45
        SELECT a, b FROM c ORDER BY a;
        -> 1|one
        -> 2|two
        SELECT sum(a) FROM j;
        -> 6
        SELECT sum(n) FROM one;
        -> 45
        SELECT location, rows FROM system.extents WHERE table_name = 'p';
        -> s3://data/p/1.parquet|10
        "#,
    )
    .await;
    // New objects are in the next statement.
    put(&bucket, "p/2.parquet", numbers_bytes(10..20)).await;
    put(&bucket, "c/3.csv", "a,b\n3,three\n").await;
    assert_eq!(db.ok("SELECT count(*), sum(n) FROM p").await, "20|190");
    assert_eq!(db.ok("SELECT count(*), sum(n) FROM glob").await, "20|190");
    assert_eq!(db.ok("SELECT count(*), sum(a) FROM c").await, "3|6");
    assert_eq!(db.ok("SELECT count(*) FROM p WHERE n BETWEEN 12 AND 14").await, "3");
    // The home knows them when it is opened again.
    let extents =
        "SELECT position, location, rows, fingerprint, first_seen_at FROM system.extents ORDER BY table_name, position";
    let before = db.ok(extents).await;
    let db = db.reopen().await;
    assert_eq!(db.ok(extents).await, before);
    assert_eq!(db.ok("SELECT count(*), sum(n) FROM p").await, "20|190");
    // Joined with what is here.
    db.ok("CREATE TABLE here AS SELECT value AS n FROM generate_series(5, 15)").await;
    assert_eq!(db.ok("SELECT count(*), sum(n) FROM p JOIN here USING (n)").await, "11|110");
    assert_eq!(
        db.ok("SELECT (SELECT count(*) FROM p) AS one, (SELECT count(*) FROM p AS x JOIN p AS y USING (n)) AS two")
            .await,
        "20|20"
    );
    bucket.delete(&ObjectPath::from("p/1.parquet")).await.expect("it was there");
    assert_eq!(db.ok("SELECT count(*), min(n) FROM p").await, "10|10");
    let error = db.err("SELECT * FROM one").await;
    assert!(error.contains("s3://data/p/1.parquet"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_overwritten() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("data");
    let db = Db::new().await;
    put(&bucket, "x.parquet", numbers_bytes(0..10)).await;
    put(&bucket, "x.csv", "n\n1000\n").await;
    let options = server.options();
    db.ok(&format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION 's3://data/x.parquet' OPTIONS ({options})"))
        .await;
    db.ok(&format!("CREATE EXTERNAL TABLE c STORED AS CSV LOCATION 's3://data/x.csv' OPTIONS ({options})")).await;
    let extents = "SELECT fingerprint FROM system.extents ORDER BY table_name";
    let mut seen = vec![];
    for round in 0..5_i64 {
        // Always as many bytes.
        put(&bucket, "x.parquet", numbers_bytes(round * 1000..round * 1000 + 10)).await;
        put(&bucket, "x.csv", format!("n\n{}\n", 1000 + round)).await;
        let sum: i64 = (round * 1000..round * 1000 + 10).sum();
        assert_eq!(db.ok("SELECT sum(n) FROM p").await, sum.to_string());
        assert_eq!(db.ok(&format!("SELECT count(*) FROM p WHERE n >= {}", round * 1000)).await, "10");
        assert_eq!(db.ok("SELECT n FROM c").await, (1000 + round).to_string());
        let fingerprints = db.ok(extents).await;
        assert_eq!(db.ok(extents).await, fingerprints, "what rests stays");
        seen.extend(fingerprints.lines().map(str::to_owned));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 10, "each content has a fingerprint of its own");
    // The same bytes again are the same object to S3, and may be to us.
    put(&bucket, "x.csv", "n\n1004\n").await;
    assert_eq!(db.ok("SELECT n FROM c").await, "1004");
}

/// Overwritten while it is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_changes_mid_query() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = Arc::new(server.bucket("data"));
    let db = Db::with(&[("datafusion.execution.target_partitions", "1")]).await;
    put(&bucket, "d/1.parquet", numbers_bytes(0..50_000)).await;
    put(&bucket, "d/2.parquet", numbers_bytes(50_000..100_000)).await;
    db.ok(&format!("CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION 's3://data/d/' OPTIONS ({})", server.options()))
        .await;
    db.ok("CREATE TABLE t (n BIGINT)").await;
    for sql in ["SELECT sum(tests_hook(n)) FROM d", "INSERT INTO t SELECT tests_hook(n) FROM d"] {
        let (bucket, handle) = (Arc::clone(&bucket), tokio::runtime::Handle::current());
        db.on_rows(move || {
            let other = numbers_bytes(200_000..250_000);
            let writing = async move { bucket.put(&ObjectPath::from("d/2.parquet"), other.into()).await };
            std::thread::spawn(move || handle.block_on(writing).expect("an object can be put"))
                .join()
                .expect("it was put");
        });
        let error = db.err(sql).await;
        assert!(error.starts_with("Data:") && error.contains("s3://data/d/2.parquet"), "{sql}: {error}");
        put(&server.bucket("data"), "d/2.parquet", numbers_bytes(50_000..100_000)).await;
    }
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "0");
    assert_eq!(db.ok("SELECT count(*), sum(n) FROM d").await, "100000|4999950000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn globs_partitions_and_odd_keys() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("data");
    let db = Db::new().await;
    for (key, n) in [
        ("h/year=2023/month=01/x.parquet", 1),
        ("h/year=2023/month=02/x.parquet", 2),
        ("h/year=2024/month=01/x.parquet", 4),
        ("h/year=2024/month=01/_tmp.parquet", 8),
    ] {
        put(&bucket, key, numbers_bytes(n..n + 1)).await;
    }
    for (key, n) in
        [("o/two words.parquet", 1), ("o/a+b&c=d.parquet", 2), ("o/ünï ☃.parquet", 4), ("o/it's#1.parquet", 8)]
    {
        put(&bucket, key, numbers_bytes(n..n + 1)).await;
    }
    let options = server.options();
    let create = |name: &str, columns: &str, more: &str, location: &str| {
        format!(
            "CREATE EXTERNAL TABLE {name} {columns} STORED AS PARQUET {more} LOCATION 's3://data/{location}' OPTIONS ({options})"
        )
    };
    db.ok(&create("h", "", "PARTITIONED BY (year, month)", "h/")).await;
    db.ok(&create("typed", "(n BIGINT, year INT, month INT)", "PARTITIONED BY (year, month)", "h/")).await;
    db.ok(&create("g", "", "", "h/year=*/month=01/*.parquet")).await;
    db.ok(&create("deep", "", "", "h/**/x.parquet")).await;
    db.ok(&create("braces", "", "", "h/{year=2023,year=2024}/month=02/")).await;
    db.ok(&create("odd", "", "", "o/")).await;
    db.script(
        r#"
        SELECT year, month, n FROM h ORDER BY n;
        -> 2023|01|1
        -> 2023|02|2
        -> 2024|01|4
        SELECT sum(n) FROM h WHERE year = '2023';
        -> 3
        SELECT sum(n) FROM typed WHERE year > 2023 AND month = 1;
        -> 4
        SELECT sum(n) FROM g;
        -> 5
        SELECT sum(n) FROM deep;
        -> 7
        SELECT sum(n) FROM braces;
        -> 2
        SELECT sum(n), count(*) FROM odd;
        -> 15|4
        "#,
    )
    .await;
    db.ok(&create("one", "", "", "o/two words.parquet")).await;
    assert_eq!(db.ok("SELECT n FROM one").await, "1");
    put(&bucket, "h/year=2025/month=12/x.parquet", numbers_bytes(100..101)).await;
    assert_eq!(db.ok("SELECT year, month FROM typed WHERE n = 100").await, "2025|12");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writing_to_a_bucket() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("data");
    let db = Db::new().await;
    let options = server.options();
    for format in ["PARQUET", "CSV", "JSON"] {
        db.ok(&format!("CREATE EXTERNAL TABLE e (a BIGINT, b TEXT) STORED AS {format} LOCATION 's3://data/e/{format}/' OPTIONS ({options})")).await;
        assert_eq!(db.ok("INSERT INTO e VALUES (1, 'one'), (2, 'two')").await, "INSERT 2", "{format}");
        assert_eq!(db.ok("SELECT a, b FROM e ORDER BY a").await, "1|one\n2|two", "{format}");
        assert_eq!(db.ok("INSERT INTO e SELECT a + 10, b FROM e").await, "INSERT 2", "{format}");
        assert_eq!(db.ok("SELECT count(*), sum(a) FROM e").await, "4|26", "{format}");
        db.ok("DROP TABLE e").await;
    }
    // Options of a statement, without a table.
    db.ok("CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 1000)").await;
    assert_eq!(db.ok(&format!("COPY t TO 's3://data/out/t.parquet' OPTIONS ({options})")).await, "COPY 1000");
    let size = bucket.head(&ObjectPath::from("out/t.parquet")).await.expect("it was written").size;
    assert!(size > 100);
    db.ok("CREATE TABLE back (n BIGINT)").await;
    assert_eq!(db.ok(&format!("COPY back FROM 's3://data/out/t.parquet' OPTIONS ({options})")).await, "COPY 1000");
    assert_eq!(db.ok("SELECT sum(n) FROM back").await, "500500");
}

/// Uploads of several parts that fail are given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn insert_into_a_bucket_is_all_or_nothing() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("data");
    let db = Db::new().await;
    db.ok("SET datafusion.execution.objectstore_writer_buffer_size = 5242880").await;
    for (name, partitions, n_files) in [("plain", "", 1), ("parted", "PARTITIONED BY (p)", 2)] {
        db.ok(&format!(
            "CREATE EXTERNAL TABLE {name} (a BIGINT, b TEXT, p BIGINT) STORED AS CSV {partitions} LOCATION 's3://data/{name}/' OPTIONS ({})",
            server.options()
        ))
        .await;
        let insert = |a: &str| {
            format!(
                "INSERT INTO {name} SELECT {a}, md5(CAST(value AS TEXT)), nullif(value % 2, 0) FROM generate_series(1, 400000)"
            )
        };
        assert_eq!(db.ok(&insert("value")).await, "INSERT 400000");
        let error = db.err(&insert("1 / (value - 399999)")).await;
        assert!(error.contains("division by zero"), "{error}");
        assert_eq!(db.ok(&format!("SELECT count(*), count(p) FROM {name}")).await, "400000|200000");
        let prefix = ObjectPath::from(name);
        assert_eq!(bucket.list(Some(&prefix)).collect::<Vec<_>>().await.len(), n_files, "{name}");
    }
}

/// With the usual environment variables nothing need be said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_from_the_environment() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("data");
    put(&bucket, "c/1.csv", "a\n1\n").await;
    let db = Db::new().await;
    assert_eq!(run(&server, &db, "SELECT a FROM 's3://data/c/1.csv'").rows(), "1");
    assert_eq!(run(&server, &db, "SELECT a FROM 's3://data/c/*.csv'").rows(), "1");
    run(&server, &db, "CREATE EXTERNAL TABLE c STORED AS CSV LOCATION 's3://data/c/'; INSERT INTO c VALUES (2)").rows();
    assert_eq!(run(&server, &db, "SELECT sum(a) FROM c").rows(), "3");
    assert_eq!(run(&server, &db, "COPY (SELECT 5 AS a) TO 's3://data/c/3.csv'; SELECT sum(a) FROM c").rows(), "8");
    assert_eq!(
        run(
            &server,
            &db,
            "CREATE TABLE t AS SELECT * FROM c; COPY t FROM 's3://data/c/'; SELECT count(*), sum(a) FROM t"
        )
        .rows(),
        "6,16"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_named() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("data");
    put(&bucket, "d/readme.md", "x").await;
    let db = Db::new().await;
    db.ok("CREATE TABLE kept AS SELECT 42 AS a").await;
    let options = server.options();
    for (location, words) in [
        ("s3://nobucket/x.parquet", "s3://nobucket/x.parquet"),
        ("s3://nobucket/d/", "s3://nobucket/d/"),
        ("s3://data/nope.parquet", "s3://data/nope.parquet"),
        ("s3://data/nope/", "s3://data/nope/"),
        ("s3://data/nope/*.parquet", "s3://data/nope/*.parquet"),
        ("s3://data/d/", "s3://data/d/"),
    ] {
        let begun = Instant::now();
        let error = db
            .err(&format!("CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '{location}' OPTIONS ({options})"))
            .await;
        assert!(error.contains(words) && !error.contains('<'), "{location}: {error}");
        assert!(error.lines().next().is_some_and(|line| line.len() < 300), "{location}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{location} took {:?}", begun.elapsed());
    }
    let error =
        db.err("CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION 's3://data/d/' OPTIONS ('aws.reigon' 'x')").await;
    assert!(error.contains("reigon"), "{error}");
    // A file that is none.
    put(&bucket, "bad.parquet", "this is text").await;
    let error = db
        .err(&format!("CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION 's3://data/bad.parquet' OPTIONS ({options})"))
        .await;
    assert!(error.starts_with("Data:") && error.contains("s3://data/bad.parquet"), "{error}");
    assert_eq!(db.ok("SELECT a FROM kept").await, "42");
    // A server that is gone.
    put(&bucket, "c.csv", "a\n1\n").await;
    db.ok(&format!(
        "CREATE EXTERNAL TABLE c STORED AS CSV LOCATION 's3://data/c.csv' OPTIONS ({options}, 'aws.max_retries' '1')"
    ))
    .await;
    drop(server);
    let begun = Instant::now();
    let error = db.err("SELECT * FROM c").await;
    assert!(error.starts_with("Io:") && error.contains("s3://data/c.csv"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(90), "it took {:?}", begun.elapsed());
    assert_eq!(db.ok("SELECT a FROM kept").await, "42");
}

/// Keys that the server does not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_credentials_are_told() {
    // From the first request on the server asks who is there.
    let Some(server) = Server::start(&[("INITIAL_NO_AUTH_ACTION_COUNT", "0")]) else { return };
    let db = Db::new().await;
    for sql in [
        format!(
            "CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION 's3://data/x.parquet' OPTIONS ({})",
            server.options()
        ),
        format!("CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION 's3://data/d/' OPTIONS ({})", server.options()),
    ] {
        let error = db.err(&sql).await;
        assert!(
            error.contains("s3://data/") && (error.contains("allowed") || error.contains("credentials")),
            "{error}"
        );
        assert!(!error.lines().next().is_some_and(|line| line.contains('<')), "{error}");
        assert!(!error.contains("'test'"), "a secret is told: {error}");
    }
    assert_eq!(db.ok("SELECT 1").await, "1");
}

/// What a table needs to be read is kept; what must not be told is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_not_told() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("data");
    put(&bucket, "c.csv", "a\n1\n").await;
    let db = Db::new().await;
    let options = server.options().replace("'aws.secret_access_key' 'test'", "'aws.secret_access_key' 'hushhush'");
    db.ok(&format!("CREATE EXTERNAL TABLE c STORED AS CSV LOCATION 's3://data/c.csv' OPTIONS ({options})")).await;
    assert_eq!(db.ok("SELECT a FROM c").await, "1");
    for sql in [
        "SHOW CREATE TABLE c",
        "SELECT * FROM system.tables",
        "SELECT * FROM system.extents",
        "SELECT sql FROM system.queries",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM information_schema.views",
        "EXPLAIN VERBOSE SELECT a FROM c",
    ] {
        let rows = db.ok(sql).await;
        assert!(!rows.contains("hushhush"), "{sql}: {rows}");
    }
    let db = db.reopen().await;
    assert_eq!(db.ok("SELECT a FROM c").await, "1");
}

/// Text in a bucket loses nothing without a word, and what is read of it is counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_in_a_bucket() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("text");
    let db = Db::with(&[
        ("datafusion.execution.target_partitions", "7"),
        ("datafusion.optimizer.repartition_file_min_size", "1000"),
    ])
    .await;
    let options = server.options();
    let unclosed = "a,b\n1,one\n2,\"two\n3,three\n";
    let lines: String = (0..5000).map(|n| format!("\"{n}\nin\nquotes\"\n")).collect();
    let json: String = (0..1500).map(|n| format!("{{\"n\":{n}}}\n")).chain(["{\"n\":2.9}\n".to_owned()]).collect();
    put(&bucket, "q/1.csv", unclosed).await;
    put(&bucket, "z/1.csv.zst", zst(unclosed.as_bytes())).await;
    put(&bucket, "both/1.csv.zst", [zst(b"a,b\n1,x\n"), zst(b"2,y\n")].concat()).await;
    put(&bucket, "lines/1.csv", format!("s\n{lines}")).await;
    put(&bucket, "j/1.json", json.clone()).await;
    for (name, format) in [("q", "CSV"), ("z", "CSV"), ("both", "CSV"), ("lines", "CSV"), ("j", "JSON")] {
        db.ok(&format!(
            "CREATE EXTERNAL TABLE {name} STORED AS {format} LOCATION 's3://text/{name}/' OPTIONS ({options})"
        ))
        .await;
    }
    for name in ["q", "z"] {
        let error = db.err(&format!("SELECT count(*) FROM {name}")).await;
        assert!(error.contains(&format!("s3://text/{name}/1.csv")), "{error}");
        assert!(error.contains("the quote in line 3 (byte 12) is never closed"), "{error}");
    }
    assert_eq!(db.ok("SELECT sum(a), count(*) FROM both").await, "3|2");
    assert_eq!(db.ok("SELECT count(*), count(DISTINCT s) FROM lines").await, "5000|5000");
    let error = db.err("SELECT sum(n) FROM j").await;
    assert!(
        error.contains("s3://text/j/1.json") && error.contains("'2.9'") && error.contains("column \"n\""),
        "{error}"
    );
    let scanned = "SELECT bytes_scanned FROM system.queries WHERE sql LIKE 'SELECT count(*), count(DISTINCT s)%'";
    assert_eq!(db.ok(scanned).await, (lines.len() + 2).to_string());
}
