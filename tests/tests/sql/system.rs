//! What the engine knows of itself, as tables.

use nectarine_tests::db::Db;
use nectarine_tests::files::numbers;

/// Columns are public, like a function's signature.
#[tokio::test]
async fn columns() {
    let db = Db::new().await;
    let columns = |table: &'static str| {
        let db = db.clone();
        async move {
            let described = db.ok(&format!("DESCRIBE system.{table}")).await;
            described
                .lines()
                .map(|line| line.rsplit_once('|').expect("name and type").0.to_owned())
                .collect::<Vec<_>>()
                .join(", ")
        }
    };
    let time = "Timestamp(µs, \"UTC\")";
    assert_eq!(
        columns("extents").await,
        format!(
            "table_schema|Utf8, table_name|Utf8, position|Int64, location|Utf8, byte_start|Int64, byte_end|Int64, bytes|Int64, \
             rows|Int64, fingerprint|Utf8, first_seen_at|{time}"
        )
    );
    assert_eq!(
        columns("queries").await,
        format!(
            "query_id|Utf8, started_at|{time}, user_name|Utf8, sql|Utf8, state|Utf8, error|Utf8, elapsed_ms|Float64, cpu_ms|Float64, \
             rows_returned|Int64, bytes_scanned|Int64, planning_ms|Float64, reuse|Utf8, entries_used|Int64, saved_ms|Float64, \
             extents_total|Int64, extents_reused|Int64"
        )
    );
    assert_eq!(
        columns("tables").await,
        format!(
            "table_schema|Utf8, table_name|Utf8, table_type|Utf8, format|Utf8, location|Utf8, extents|Int64, bytes|Int64, rows|Int64, \
             created_at|{time}, error|Utf8, owner|Utf8"
        )
    );
    assert_eq!(
        columns("lookups").await,
        format!(
            "query_id|Utf8, prefix|Utf8, outcome|Utf8, reason|Utf8, detail|Utf8, node|Utf8, program|Utf8, asked_at|{time}"
        )
    );
    assert_eq!(
        columns("programs").await,
        format!(
            "program|Utf8, sql|Utf8, engine_version|Utf8, first_run_at|{time}, last_run_at|{time}, runs|Int64, inputs|Utf8, \
             views|Utf8, functions|Utf8, settings|Utf8, default_schema|Utf8, bytes_stored|Int64, source|Utf8"
        )
    );
    assert_eq!(
        columns("provenance").await,
        "derived|Utf8, input|Utf8, input_kind|Utf8, role|Utf8, byte_start|Int64, byte_end|Int64, extent|Utf8"
    );
    assert_eq!(columns("pins").await, format!("what|Utf8, kind|Utf8, fingerprint|Utf8, pinned_at|{time}, bytes|Int64"));
    let entries = columns("cache_entries").await;
    assert!(entries.ends_with(", extents|Int64, sql|Utf8, pinned|Boolean"), "{entries}");
    assert_eq!(columns("settings").await, "name|Utf8, value|Utf8, default|Utf8, source|Utf8, description|Utf8");
    assert_eq!(columns("functions").await, format!("name|Utf8, definition|Utf8, created_at|{time}"));
}

#[tokio::test]
async fn tables_and_extents() {
    let db = Db::new().await;
    numbers(&db.path("d/1.parquet"), 0..10);
    numbers(&db.path("d/2.parquet"), 10..30);
    db.script(
        r#"
        CREATE TABLE t (a BIGINT);
        INSERT INTO t VALUES (1), (2);
        INSERT INTO t VALUES (3);
        CREATE VIEW v AS SELECT 1;
        CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{dir}/d/';
        SELECT table_schema, table_name, table_type, format, extents, rows, error FROM system.tables ORDER BY table_name;
        -> public|e|external|PARQUET|2|30|NULL
        -> public|t|managed|PARQUET|2|3|NULL
        -> public|v|view|NULL|NULL|NULL|NULL
        SELECT location FROM system.tables WHERE table_name = 'e';
        -> {dir}/d/
        SELECT table_name, position, rows, byte_start, byte_end = bytes, length(fingerprint) FROM system.extents ORDER BY 1, 2;
        -> e|0|10|0|true|64
        -> e|1|20|0|true|64
        -> t|0|2|0|true|64
        -> t|1|1|0|true|64
        SELECT location FROM system.extents WHERE table_name = 'e' ORDER BY position;
        -> file://{dir}/d/1.parquet
        -> file://{dir}/d/2.parquet
        SELECT count(DISTINCT fingerprint) FROM system.extents;
        -> 4
        SELECT bool_and(first_seen_at BETWEEN now() - INTERVAL '5 minutes' AND now() + INTERVAL '1 second') FROM system.extents;
        -> true
        SELECT bool_and(created_at BETWEEN now() - INTERVAL '5 minutes' AND now() + INTERVAL '1 second') FROM system.tables;
        -> true
        INSERT INTO system.tables SELECT * FROM system.tables;
        !! system
        "#,
    )
    .await;
    let kept = db.ok("SELECT table_name, position, fingerprint, first_seen_at FROM system.extents ORDER BY 1, 2").await;
    let db = db.reopen().await;
    assert_eq!(
        db.ok("SELECT table_name, position, fingerprint, first_seen_at FROM system.extents ORDER BY 1, 2").await,
        kept
    );
}

#[tokio::test]
async fn queries_leave_a_record() {
    let db = Db::new().await;
    numbers(&db.path("n.parquet"), 0..100_000);
    db.ok("SELECT n FROM '{dir}/n.parquet' WHERE n % 10 = 0").await;
    db.err("SELECT nope FROM '{dir}/n.parquet'").await;
    db.err("SELECT 1 / 0").await;
    db.err("this is no SQL").await;
    db.ok("CREATE TABLE t AS SELECT 1 AS a").await;
    db.ok("INSERT INTO t VALUES (1), (2)").await;
    // Dropped before its end.
    drop(db.session().execute("SELECT * FROM generate_series(1, 1000000)").await.expect("it is planned"));
    let log = |db: Db| async move {
        db.ok(
            "SELECT split_part(sql, ' ', 1) || ' ' || split_part(sql, ' ', 2) AS s, state, error, rows_returned FROM system.queries \
             WHERE sql NOT LIKE '%system.queries%' ORDER BY started_at",
        )
        .await
    };
    let expected = "SELECT n|finished|NULL|10000\n\
         SELECT nope|failed|column \"nope\" does not exist|NULL\n\
         SELECT 1|failed|division by zero|NULL";
    let found = log(db.clone()).await;
    assert!(found.starts_with(expected), "{found}");
    assert!(found.contains("\nthis is|failed|"), "{found}");
    assert!(found.contains("\nCREATE TABLE|finished|NULL|"), "{found}");
    assert!(found.contains("\nINSERT INTO|finished|NULL|"), "{found}");
    assert!(found.ends_with("SELECT *|cancelled|NULL|NULL"), "{found}");
    let measured = "SELECT elapsed_ms > 0, planning_ms > 0, cpu_ms >= 0, bytes_scanned > 0, user_name <> '', length(query_id) > 10 FROM system.queries \
                    WHERE rows_returned = 10000";
    assert_eq!(db.ok(measured).await, "true|true|true|true|true|true");
    assert_eq!(db.ok("SELECT state FROM system.queries WHERE sql LIKE '%itself%'").await, "running");
    let db = db.reopen().await;
    assert_eq!(log(db.clone()).await, found);
    assert_eq!(db.ok("SELECT count(*) FROM system.queries WHERE state = 'running'").await, "1");
}

/// Not even where they are written otherwise than they should be.
#[tokio::test]
async fn secrets_are_not_recorded() {
    let db = Db::new().await;
    db.ok("CREATE TABLE q AS SELECT 1 AS a").await;
    db.file("x.csv", "a\n1\n");
    for sql in [
        "CREATE EXTERNAL TABLE e1 STORED AS CSV LOCATION '{dir}/x.csv' OPTIONS (aws.secret_access_key hushhush)",
        "CREATE EXTERNAL TABLE e2 STORED AS CSV LOCATION '{dir}/x.csv' OPTIONS (aws.secret_access_key \"hushhush\")",
        "CREATE EXTERNAL TABLE e3 STORED AS CSV LOCATION '{dir}/x.csv' OPTIONS ('aws.secret_access_key' E'hush\\'hush')",
        "CREATE EXTERNAL TABLE e4 STORED AS CSV LOCATION '{dir}/x.csv' OPTIONS ('aws.secret_access_key' 471147114711)",
        "COPY q TO '{dir}/y.csv' OPTIONS (aws.secret_access_key hushhush, format.has_header true)",
        "EXPLAIN COPY (SELECT a FROM q) TO '{dir}/z.csv' OPTIONS (aws.secret_access_key hushhush)",
        "COPY q FROM '{dir}/x.csv' WITH (aws.secret_access_key 'hushhush')",
        "COPY q FROM '{dir}/x.csv' (aws.secret_access_key hushhush)",
        "COPY q TO '{dir}/y.csv' OPTIONS (aws.secret_access_key hushhush more)",
        "COPY q TO '{dir}/y.csv' OPTIONS (aws.secret_access_key 'hushhushhushhushhushhushhushhushhushhushhushhush' 'x')",
        "CREATE USER bob PASSWORD hush-hush",
        "CREATE USER bob PASSWORD hush hush ADMIN",
        "ALTER USER bob SET PASSWORD TO hushhush",
        "CREATE USER bob IDENTIFIED BY hush",
    ] {
        // Some are no SQL.
        let _ = db.run(sql).await;
    }
    let all = db.ok("SELECT sql, error FROM system.queries").await;
    assert!(all.contains("secret_access_key") && all.contains("bob"), "{all}");
    assert!(!all.contains("hush") && !all.contains("4711"), "{all}");
    for table in ["e1", "e2", "e3", "e4"] {
        if let Ok(shown) = db.run(&format!("SHOW CREATE TABLE {table}")).await {
            assert!(shown.contains("***") && !shown.contains("hush") && !shown.contains("4711"), "{shown}");
        }
    }
}

#[tokio::test]
async fn the_query_log_is_bounded() {
    let db = Db::with(&[("nectarine.query_log_keep", "20")]).await;
    for n in 0..100 {
        db.ok(&format!("SELECT {n}")).await;
    }
    let found = db.ok("SELECT count(*) FROM system.queries").await;
    assert!((15..=21).contains(&found.parse::<i32>().expect("a number")), "{found}");
    assert_eq!(db.ok("SELECT count(*) FROM system.queries WHERE sql IN ('SELECT 99', 'SELECT 98')").await, "2");
    let db = db.reopen().await;
    let found = db.ok("SELECT count(*) FROM system.queries").await;
    assert!((15..=21).contains(&found.parse::<i32>().expect("a number")), "{found}");
}

/// Bytes that were read are counted whatever the format: for text, those of the file, not of what was unpacked from it.
#[tokio::test]
async fn bytes_scanned_of_every_format() {
    use nectarine_tests::files::gz;
    let db = Db::new().await;
    let csv: String = std::iter::once("n,s\n".to_owned()).chain((0..5000).map(|n| format!("{n},text {n}\n"))).collect();
    let json: String = (0..5000).map(|n| format!("{{\"n\":{n},\"s\":\"text {n}\"}}\n")).collect();
    let array = format!("[{}]", json.trim_end().replace('\n', ","));
    let packed = gz(csv.as_bytes());
    db.file("b.csv", &csv);
    db.file("b.csv.gz", &packed);
    db.file("b.json", &json);
    db.file("array.json", &array);
    for format in ["arrow", "parquet"] {
        db.ok(&format!("COPY (SELECT n, s FROM '{{dir}}/b.csv') TO '{{dir}}/b.{format}'")).await;
    }
    db.ok("CREATE EXTERNAL TABLE arr (n BIGINT, s TEXT) STORED AS JSON LOCATION '{dir}/array.json' OPTIONS ('format.newline_delimited' 'false')").await;
    let size = |name: &str| std::fs::metadata(db.folder().join(name)).expect("it is there").len();
    for (from, at_least, at_most) in [
        ("'{dir}/b.csv'", size("b.csv"), size("b.csv")),
        ("'{dir}/b.csv.gz'", size("b.csv.gz"), size("b.csv.gz")),
        ("'{dir}/b.json'", size("b.json"), size("b.json")),
        ("arr", size("array.json"), size("array.json")),
        ("'{dir}/b.arrow'", size("b.arrow") / 2, size("b.arrow") * 2),
        ("'{dir}/b.parquet'", 1, size("b.parquet")),
    ] {
        assert_eq!(
            db.ok(&format!("SELECT count(*), sum(n), max(s) FROM {from}")).await,
            "5000|12497500|text 999",
            "{from}"
        );
        let name = from.rsplit('/').next().expect("a name").trim_end_matches('\'');
        let asked = format!(
            "SELECT bytes_scanned FROM system.queries WHERE sql LIKE 'SELECT count(*), sum(n), max(s) FROM %{name}%'"
        );
        let bytes: u64 = db.ok(&asked).await.parse().expect("a number");
        assert!((at_least..=at_most).contains(&bytes), "{from}: {bytes} of {at_least}");
    }
}
