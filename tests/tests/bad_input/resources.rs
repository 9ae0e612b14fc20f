//! Too little memory, too little room for spills: what can be done is done, what cannot fails alone.

use super::{db_with, goes_on};

/// Rows that take several times the memory of the tests below.
const ROWS: usize = 1_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sort_that_does_not_fit_spills() {
    let db = db_with(&[("nectarine.memory_limit", "20MB")]).await;
    let sorted = format!(
        "SELECT n, s FROM (SELECT value AS n, md5(CAST(value AS TEXT)) AS s FROM generate_series(1, {ROWS})) ORDER BY s, n"
    );
    let batches = db.batches(&sorted).await;
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), ROWS);
    let mut last = String::new();
    for batch in &batches {
        let text = nectarine_tests::db::rows_text(&[batch.project(&[1]).expect("two columns")]);
        for line in text.lines() {
            assert!(last.as_str() <= line, "{last} before {line}");
            line.clone_into(&mut last);
        }
    }
    // Many groups, distinct values and windows over all rows.
    assert_eq!(
        db.ok(&format!("SELECT count(*), sum(c) FROM (SELECT value % 300000 AS k, count(*) AS c FROM generate_series(1, {ROWS}) GROUP BY k)"))
            .await,
        format!("300000|{ROWS}")
    );
    goes_on(&db).await;
    spills_are_gone(&db).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_larger_than_memory_is_written_and_read() {
    let db = db_with(&[("nectarine.memory_limit", "20MB"), ("nectarine.extent_bytes_max", "4MB")]).await;
    db.ok(&format!(
        "CREATE TABLE big AS SELECT value AS n, md5(CAST(value AS TEXT)) AS s FROM generate_series(1, {ROWS})"
    ))
    .await;
    db.ok("INSERT INTO big SELECT n + 1000000, s FROM big").await;
    assert_eq!(db.ok("SELECT count(*), sum(n), count(DISTINCT length(s)) FROM big").await, "2000000|2000001000000|1");
    db.ok("COPY big TO '{dir}/big.csv'").await;
    // Row groups of a Parquet file are put together in memory: larger ones than there is memory are refused.
    let copied = db.run("COPY big TO '{dir}/big.parquet'").await;
    assert_eq!(db.ok("SELECT count(*), sum(n) FROM '{dir}/big.csv'").await, "2000000|2000001000000");
    match copied {
        Ok(_) => assert_eq!(db.ok("SELECT count(*), sum(n) FROM '{dir}/big.parquet'").await, "2000000|2000001000000"),
        Err(error) => assert!(error.starts_with("Resources:"), "{error}"),
    }
    goes_on(&db).await;
}

/// What cannot be spilled fails with a clear error, and only that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_does_not_fit_fails_alone() {
    let db = db_with(&[("nectarine.memory_limit", "20MB")]).await;
    let large = [
        format!("SELECT length(string_agg(md5(CAST(value AS TEXT)), '')) FROM generate_series(1, {ROWS})"),
        format!("SELECT cardinality(array_agg(md5(CAST(value AS TEXT)))) FROM generate_series(1, {ROWS})"),
        format!(
            "SELECT count(*) FROM (SELECT md5(CAST(value AS TEXT)) AS s FROM generate_series(1, {ROWS})) AS a \
             JOIN (SELECT md5(CAST(value AS TEXT)) AS s FROM generate_series(1, {ROWS})) AS b USING (s)"
        ),
    ];
    for sql in large {
        let other = db.client();
        let beside = tokio::spawn(async move {
            for _ in 0..20 {
                assert_eq!(other.ok("SELECT sum(a) FROM kept").await, "42");
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
        match db.run(&sql).await {
            Err(error) => {
                assert!(error.starts_with("Resources:") && error.contains("memory"), "{sql}: {error}");
                assert!(error.contains("hint: "), "{error}");
                // What the hint says can be done.
                assert!(!error.contains("SET nectarine.memory_limit"), "it is read when the home is opened: {error}");
            }
            // A join that spills after all is fine.
            Ok(rows) => assert_eq!(rows, ROWS.to_string(), "{sql}"),
        }
        beside.await.expect("statements beside it go on");
        goes_on(&db).await;
    }
    // Its memory is free again.
    a_small_sort(&db).await;
}

async fn a_small_sort(db: &nectarine_tests::db::Db) {
    let sort = "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY s) AS r FROM (SELECT md5(CAST(value AS TEXT)) AS s FROM generate_series(1, 100000)))";
    assert_eq!(db.ok(sort).await, "100000");
}

/// Threads that spill rows to each other at the same time must not come to wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_that_spill_to_each_other_come_to_an_end() {
    let db = db_with(&[
        ("nectarine.memory_limit", "5MB"),
        ("nectarine.reuse", "off"),
        ("datafusion.execution.target_partitions", "2"),
        ("datafusion.execution.batch_size", "256"),
    ])
    .await;
    for attempt in 0..3 {
        let count = db.run(
            "SELECT sum(n), count(*) FROM (SELECT g, count(DISTINCT id) AS n \
             FROM (SELECT value % 2000 AS g, md5(CAST(value AS TEXT)) AS id FROM generate_series(1, 100000)) GROUP BY g)",
        );
        let count = tokio::time::timeout(std::time::Duration::from_secs(180), count).await;
        match count.unwrap_or_else(|_| panic!("attempt {attempt} does not end")) {
            Ok(rows) => assert_eq!(rows, "100000|2000"),
            Err(error) => assert!(error.starts_with("Resources:"), "{error}"),
        }
    }
    let error = db.err("SET datafusion.execution.max_spill_file_size_bytes = 134217728").await;
    assert!(error.contains("is always 1"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spills_have_a_bound() {
    let db = db_with(&[("nectarine.memory_limit", "20MB"), ("nectarine.spill_limit", "2MB")]).await;
    let error = db
        .err(&format!(
            "SELECT * FROM (SELECT md5(CAST(value AS TEXT)) AS s FROM generate_series(1, {ROWS})) ORDER BY s"
        ))
        .await;
    assert!(error.starts_with("Resources:") && error.contains("spill_limit"), "{error}");
    goes_on(&db).await;
    spills_are_gone(&db).await;
}

/// Spills go with the statement that made them: as soon as the last of its threads has let go of them, which may be after its last row.
async fn spills_are_gone(db: &nectarine_tests::db::Db) {
    let began = std::time::Instant::now();
    loop {
        let left = files(&db.home().join("tmp"));
        if left.iter().all(|path| path.ends_with("lock")) {
            return;
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{left:?} were left behind");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// A client that goes away in the middle of its rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_is_dropped_frees_what_it_held() {
    use futures::StreamExt;
    let db = db_with(&[("nectarine.memory_limit", "30MB")]).await;
    for _ in 0..5 {
        let sql =
            format!("SELECT * FROM (SELECT md5(CAST(value AS TEXT)) AS s FROM generate_series(1, {ROWS})) ORDER BY s");
        let answer = db.session().execute(&sql).await.expect("it is planned");
        let mut rows = answer.into_stream();
        assert!(rows.next().await.expect("a first batch").expect("rows").num_rows() > 0);
        drop(rows);
    }
    a_small_sort(&db).await;
    goes_on(&db).await;
    // An INSERT that is dropped leaves nothing.
    let insert = format!("INSERT INTO kept SELECT value FROM generate_series(1, {})", 1000 * ROWS);
    let outcome = tokio::time::timeout(std::time::Duration::from_millis(300), db.run(&insert)).await;
    assert!(outcome.is_err(), "so many rows take longer");
    goes_on(&db).await;
    let create = format!("CREATE TABLE made AS SELECT value FROM generate_series(1, {})", 1000 * ROWS);
    let outcome = tokio::time::timeout(std::time::Duration::from_millis(300), db.run(&create)).await;
    assert!(outcome.is_err(), "so many rows take longer");
    assert!(db.err("SELECT * FROM made").await.contains("does not exist"));
    let states = db.ok("SELECT state, count(*) FROM system.queries WHERE state = 'cancelled' GROUP BY state").await;
    assert_eq!(states, "cancelled|7");
    spills_are_gone(&db).await;
}

/// All files below a folder; what goes while it is looked at is not there.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
