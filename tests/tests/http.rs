//! Files of web hosts: with ranges and without, replaced where nothing tells it, and gone.
//!
//! As nginx and Apache do, the host here tells times in whole seconds and makes etags of time and size: whoever writes twice
//! within a second leaves no trace. Each such pair of writes has a look in between, and no second one: that might find, on a slow
//! machine, that the page has rested.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int64Array};
use chrono::{DateTime, TimeDelta, Utc};
use nectarine_tests::db::Db;
use nectarine_tests::files::{gz, numbers_bytes, parquet_bytes};
use nectarine_tests::web_host::{Page, WebHost};

/// A page that rested for an hour.
fn rested(bytes: impl Into<Vec<u8>>, etag: &str) -> Page {
    let modified = Utc::now() - TimeDelta::hours(1);
    Page { bytes: bytes.into(), etag: Some(etag.to_owned()), modified: Some(modified) }
}

/// As nginx tells of it.
fn by_nginx(bytes: impl Into<Vec<u8>>, modified: DateTime<Utc>) -> Page {
    let bytes = bytes.into();
    let etag = format!("\"{:x}-{:x}\"", modified.timestamp(), bytes.len());
    Page { bytes, etag: Some(etag), modified: Some(modified) }
}

fn csv(n: i64) -> String {
    format!("n\n{n}\n")
}

fn sum_of(first: i64) -> String {
    (first..first + 10).sum::<i64>().to_string()
}

async fn create(db: &Db, name: &str, format: &str, url: &str) {
    db.ok(&format!("CREATE EXTERNAL TABLE {name} STORED AS {format} LOCATION '{url}'")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_a_web_host() {
    for ranges in [true, false] {
        let (host, db) = (WebHost::start(ranges), Db::new().await);
        host.put("/d/x.csv", rested("a,b\n1,one\n2,two\n", "\"c\""));
        host.put("/d/x.csv.gz", rested(gz(b"a,b\n3,three\n"), "\"g\""));
        host.put("/d/two%20words.csv", rested("a\n7\n", "\"w\""));
        host.put("/d/x.parquet", rested(numbers_bytes(0..30_000), "\"p\""));
        host.put("/d/array.json", rested("[{\"a\": 1}, {\"a\": 2}]", "\"j\""));
        for (name, format, path) in [
            ("c", "CSV", "/d/x.csv"),
            ("packed", "CSV", "/d/x.csv.gz"),
            ("words", "CSV", "/d/two words.csv"),
            ("p", "PARQUET", "/d/x.parquet"),
            ("j", "JSON", "/d/array.json"),
        ] {
            create(&db, name, format, &host.url(path)).await;
        }
        db.script(
            r#"
            SELECT a, b FROM c ORDER BY a;
            -> 1|one
            -> 2|two
            SELECT a, b FROM packed;
            -> 3|three
            SELECT a FROM words;
            -> 7
            SELECT count(*), sum(n) FROM p;
            -> 30000|449985000
            SELECT count(*), sum(n) FROM p WHERE n >= 10000;
            -> 20000|399990000
            SELECT n FROM p WHERE n IN (3, 29999) ORDER BY n;
            -> 3
            -> 29999
            SELECT sum(a) FROM j;
            -> 3
            "#,
        )
        .await;
        assert_eq!(db.ok(&format!("SELECT b FROM '{}' WHERE a = 2", host.url("/d/x.csv"))).await, "two");
        assert_eq!(db.ok(&format!("SELECT max(n) FROM '{}'", host.url("/d/x.parquet"))).await, "29999");
        let extents = "SELECT location, rows, fingerprint FROM system.extents WHERE table_name = 'p'";
        let before = db.ok(extents).await;
        assert!(before.starts_with(&format!("{}|30000|", host.url("/d/x.parquet"))), "{before}");
        // What rested is not read again to be known again.
        let n_whole = host.n_asked("GET /d/x.csv whole");
        let db = db.reopen().await;
        assert_eq!(db.ok(extents).await, before);
        assert_eq!(db.ok("SELECT count(*) FROM c").await, "2");
        assert!(host.n_asked("GET /d/x.csv whole") <= n_whole + 1);
        // Of each file without ranges, no statement fetched every piece on its own.
        let n_whole = host.n_asked("GET /d/x.parquet whole");
        assert_eq!(db.ok("SELECT sum(n + 1), min(n), count(DISTINCT n % 100) FROM p").await, "450015000|0|100");
        let n_whole = host.n_asked("GET /d/x.parquet whole") - n_whole;
        assert!(if ranges { n_whole == 0 } else { (1..=2).contains(&n_whole) }, "ranges {ranges}: {n_whole}");
    }
}

/// Size, time and etag stay: only the bytes tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_young_page_that_is_replaced_without_a_trace() {
    for ranges in [true, false] {
        let (host, db) = (WebHost::start(ranges), Db::new().await);
        let now = Utc::now();
        host.put("/x.csv", by_nginx(csv(1000), now));
        host.put("/x.parquet", by_nginx(numbers_bytes(0..10), now));
        create(&db, "c", "CSV", &host.url("/x.csv")).await;
        create(&db, "p", "PARQUET", &host.url("/x.parquet")).await;
        let by_name = format!("SELECT sum(n) FROM '{}'", host.url("/x.parquet"));
        for round in 1..4_i64 {
            // A time of its own for each pair of writes.
            let modified = now + TimeDelta::seconds(round);
            for second in [0, 1] {
                let first = 2000 * round + 1000 * second;
                let page = by_nginx(csv(1000 + first), modified);
                assert_eq!(page.bytes.len(), 7, "always as many bytes");
                host.put("/x.csv", page);
                host.put("/x.parquet", by_nginx(numbers_bytes(first..first + 10), modified));
                let what = format!("ranges {ranges}, round {round}, write {second}");
                assert_eq!(db.ok("SELECT n FROM c").await, (1000 + first).to_string(), "{what}");
                assert_eq!(db.ok("SELECT sum(n) FROM p").await, sum_of(first), "{what}");
                assert_eq!(db.ok(&by_name).await, sum_of(first), "{what}");
            }
            let first = 2000 * round + 1000;
            assert_eq!(db.ok(&format!("SELECT count(*) FROM p WHERE n >= {first}")).await, "10");
        }
    }
}

/// Neither a time nor an etag, or a weak one, which some hosts keep while bytes change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_tells_nothing() {
    for etag in [None, Some("W/\"same\"".to_owned())] {
        let (host, mut db) = (WebHost::start(false), Db::new().await);
        let page = |n: i64| Page { bytes: csv(n).into(), etag: etag.clone(), modified: None };
        host.put("/x.csv", page(1000));
        create(&db, "c", "CSV", &host.url("/x.csv")).await;
        for n in 1001..1006 {
            host.put("/x.csv", page(n));
            assert_eq!(db.ok("SELECT n FROM c").await, n.to_string(), "{etag:?}");
            if n == 1003 {
                db = db.reopen().await;
            }
        }
        // The same bytes are the same extent.
        let fingerprint = "SELECT fingerprint FROM system.extents WHERE table_name = 'c'";
        let before = db.ok(fingerprint).await;
        host.put("/x.csv", page(1005));
        assert_eq!(db.ok(fingerprint).await, before);
    }
}

/// What rested is known by what the host tells: each part of that counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rested_page_that_is_replaced() {
    let (host, mut db) = (WebHost::start(true), Db::new().await);
    let page = rested(csv(1000), "\"one\"");
    host.put("/x.csv", page.clone());
    create(&db, "c", "CSV", &host.url("/x.csv")).await;
    assert_eq!(db.ok("SELECT n FROM c").await, "1000");
    // Another etag at the same time, as hosts make it of content.
    let page = Page { bytes: csv(2000).into(), etag: Some("\"two\"".to_owned()), ..page };
    host.put("/x.csv", page.clone());
    assert_eq!(db.ok("SELECT n FROM c").await, "2000");
    db = db.reopen().await;
    // The same etag at another time, as some make it of nothing but the size.
    let page = Page { bytes: csv(3000).into(), modified: Some(Utc::now() - TimeDelta::minutes(30)), ..page };
    host.put("/x.csv", page.clone());
    assert_eq!(db.ok("SELECT n FROM c").await, "3000");
    // Another size.
    host.put("/x.csv", Page { bytes: csv(40_000).into(), ..page });
    assert_eq!(db.ok("SELECT n FROM c").await, "40000");
}

/// Columns are those of now, and of this host, though path, size and time are those of another file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_of_another_file() {
    let named = |name: &str| {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10));
        parquet_bytes(vec![(name, values)])
    };
    let (one, two, db) = (WebHost::start(true), WebHost::start(true), Db::new().await);
    let modified = Utc::now();
    let sum = |column: &str, host: &WebHost| format!("SELECT sum({column}) FROM '{}'", host.url("/x.parquet"));
    for (name, other) in [("a", "b"), ("c", "d")] {
        one.put("/x.parquet", by_nginx(named(name), modified));
        assert_eq!(db.ok(&sum(name, &one)).await, "45");
        one.put("/x.parquet", by_nginx(named(other), modified));
        assert_eq!(db.ok(&sum(other, &one)).await, "45");
        assert!(db.err(&sum(name, &one)).await.contains("does not exist"));
    }
    let page = rested(named("e"), "\"same\"");
    one.put("/x.parquet", page.clone());
    two.put("/x.parquet", Page { bytes: named("f"), ..page });
    assert_eq!(db.ok(&sum("e", &one)).await, "45");
    assert_eq!(db.ok(&sum("f", &two)).await, "45");
    assert_eq!(db.ok(&sum("e", &one)).await, "45");
}

/// Replaced while a statement reads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_changes_mid_query() {
    for ranges in [true, false] {
        let host = Arc::new(WebHost::start(ranges));
        let db = Db::with(&[("datafusion.execution.target_partitions", "1")]).await;
        let modified = Utc::now();
        host.put("/x.parquet", by_nginx(numbers_bytes(0..50_000), modified));
        create(&db, "p", "PARQUET", &host.url("/x.parquet")).await;
        let (other, shared) = (by_nginx(numbers_bytes(200_000..250_000), modified), Arc::clone(&host));
        db.on_rows(move || shared.put("/x.parquet", other));
        let error = db.err("SELECT sum(tests_hook(n)) FROM p").await;
        assert!(error.starts_with("Data:") && error.contains(&host.url("/x.parquet")), "{error}");
        let sum: i64 = (200_000..250_000).sum();
        assert_eq!(db.ok("SELECT sum(n) FROM p").await, sum.to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_named() {
    let (host, db) = (WebHost::start(true), Db::new().await);
    let url = host.url("/none.csv");
    db.ok("CREATE TABLE c (n BIGINT)").await;
    for sql in [
        format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{url}'"),
        format!("SELECT * FROM '{url}'"),
        format!("COPY c FROM '{url}'"),
    ] {
        let error = db.err(&sql).await;
        assert!(error.contains(&url), "{sql}: {error}");
    }
    host.put("/x.csv", rested(csv(1), "\"e\""));
    create(&db, "gone", "CSV", &host.url("/x.csv")).await;
    assert_eq!(db.ok("SELECT n FROM gone").await, "1");
    host.remove("/x.csv");
    let error = db.err("SELECT n FROM gone").await;
    assert!(error.contains(&host.url("/x.csv")) && error.contains("does not have it"), "{error}");

    let signed = host.url("/x.csv?X-Amz-Signature=5ec7e7");
    let error = db.err(&format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{signed}'")).await;
    assert!(error.contains("query string") && error.contains("hint: write s3://"), "{error}");
    assert!(!error.contains("5ec7e7"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_gone_is_an_error_soon() {
    let (host, db) = (WebHost::start(true), Db::new().await);
    host.put("/x.csv", rested(csv(1), "\"e\""));
    let url = host.url("/x.csv");
    create(&db, "t", "CSV", &url).await;
    assert_eq!(db.ok("SELECT n FROM t").await, "1");
    drop(host);
    for sql in ["SELECT n FROM t".to_owned(), format!("SELECT * FROM '{url}'")] {
        let begun = Instant::now();
        let error = db.err(&sql).await;
        assert!(error.starts_with("Io:") && error.contains(&url) && error.contains("refused"), "{sql}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(35), "{sql}: it took {:?}", begun.elapsed());
    }
}
