//! VERIFY: entries against what is computed anew.

use nectarine_engine::Reused;
use nectarine_tests::db::Db;
use nectarine_tests::files;
use sqlx::{Connection, SqliteConnection};

const QUERY: &str = "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY k ORDER BY k";

async fn table() -> Db {
    let db = Db::new().await;
    files::numbers(&db.path("t/a.parquet"), 0..200_000);
    files::numbers(&db.path("t/b.parquet"), 0..100_000);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    db
}

/// Outcomes, each with how often.
fn outcomes(text: &str) -> Vec<(String, usize)> {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for line in text.lines().filter(|line| !line.starts_with("notice")) {
        *counts.entry(line.split('|').nth(1).expect("an outcome").to_owned()).or_default() += 1;
    }
    counts.into_iter().collect()
}

fn all_same(text: &str, at_least: usize) {
    let found = outcomes(text);
    assert!(matches!(found.as_slice(), [(word, n)] if word == "same" && *n >= at_least), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_right_stays() {
    let db = table().await;
    db.ok(QUERY).await;
    db.ok("SELECT n FROM t WHERE n % 1000 = 0 UNION ALL SELECT count(*) FROM t").await;
    db.ok("SELECT count(*), avg(n) FROM '{dir}/t/a.parquet' WHERE n % 7 = 3").await;
    let before = db.ok("SELECT fingerprint FROM system.cache_entries ORDER BY fingerprint").await;
    all_same(&db.ok(&format!("VERIFY {QUERY}")).await, 2);
    all_same(&db.ok("VERIFY ALL").await, before.lines().count());
    for entry in before.lines() {
        all_same(&db.ok(&format!("VERIFY ENTRY '{}'", &entry[..16])).await, 1);
    }
    // Also over what the table had before it grew, and put together from it.
    files::numbers(&db.path("t/c.parquet"), 0..50_000);
    assert_eq!(db.ask(QUERY).await.1.reused, Reused::Partial);
    let n_entries = db.ok("SELECT count(*) FROM system.cache_entries").await.parse().expect("a number");
    all_same(&db.ok("VERIFY ALL").await, n_entries);
    let some = db.ok("VERIFY ALL SAMPLE 25 PERCENT").await;
    assert_eq!(some.lines().count(), (n_entries as f64 * 0.25).ceil() as usize, "{some}");
    all_same(&some, 1);
    let after = db.ok("SELECT count(*) FROM system.cache_entries").await;
    assert_eq!(after, n_entries.to_string());
}

/// An entry that is not what it says goes, and what was made from it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_goes() {
    for subject in ["QUERY", "ALL"] {
        let db = Db::new().await;
        files::numbers(&db.path("t/a.parquet"), 0..200_000);
        db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
        db.ok(QUERY).await;
        files::numbers(&db.path("t/b.parquet"), 1..200_001);
        db.ok(QUERY).await;
        let n_before: usize = db.ok("SELECT count(*) FROM system.cache_entries").await.parse().expect("a number");
        db.shutdown().await;
        // States of one file are said to be those of the other.
        let metadata = db.home().join("metadata.db");
        let mut connection =
            SqliteConnection::connect(&format!("sqlite://{}", metadata.display())).await.expect("a file");
        let lie =
            "UPDATE cache_entry_inputs SET input = (SELECT max(input) FROM cache_inputs WHERE length(extents) = 32)
                   WHERE input IN (SELECT input FROM cache_inputs WHERE length(extents) = 32)";
        sqlx::query(lie).execute(&mut connection).await.expect("an update");
        connection.close().await.expect("it closes");
        let db = db.reopen().await;
        let sql = if subject == "QUERY" { format!("VERIFY {QUERY}") } else { "VERIFY ALL".to_owned() };
        let told = db.ok(&sql).await;
        assert!(told.contains("|different|"), "{subject}: {told}");
        assert!(told.contains("notice: "), "{subject}: {told}");
        let n_after: usize = db.ok("SELECT count(*) FROM system.cache_entries").await.parse().expect("a number");
        assert!(n_after < n_before, "{subject}: {n_after} of {n_before}");
        let again = db.ok(&sql).await;
        assert!(!again.contains("|different|"), "{subject}: {again}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_verified_says_why() {
    let db = table().await;
    let lucky = "SELECT n, row_number() OVER (ORDER BY n) AS r FROM t";
    db.ok(lucky).await;
    let told = db.ok(&format!("VERIFY {lucky}")).await;
    assert!(told.contains("|not verified|its rows depend on the order of what was read"), "{told}");
    db.cache().clear().await;
    db.ok(QUERY).await;
    let entry = db.ok("SELECT max(fingerprint) FROM system.cache_entries").await;
    std::fs::remove_file(db.path("t/b.parquet")).expect("a file can be removed");
    let told = db.ok(&format!("VERIFY ENTRY '{entry}'")).await;
    assert!(told.contains("|not verified|") && told.contains("t/b.parquet"), "{told}");
    db.ok("DROP TABLE t").await;
    let told = db.ok("VERIFY ALL").await;
    assert!(told.lines().all(|line| line.contains("|not verified|") && line.contains("does not exist")), "{told}");
    assert_eq!(db.ok("SELECT max(fingerprint) FROM system.cache_entries").await, entry, "nothing went");
    db.script(
        "
        VERIFY ENTRY 'zz';
        !! no cached result starts with \"zz\"
        VERIFY ALL SAMPLE 0 PERCENT;
        !! expected a number above 0 and up to 100
        VERIFY ALL SAMPLE 1;
        !! expected PERCENT
        VERIFY CREATE TABLE x AS SELECT 1;
        !! VERIFY takes a query
        VERIFY nothing;
        !! does not exist
        ",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_go() {
    let db = table().await;
    db.ok(QUERY).await;
    let mut folders = vec![db.home().join("derived")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => std::fs::write(entry.path(), b"x").expect("a file can be written"),
            }
        }
    }
    let told = db.ok("VERIFY ALL").await;
    assert!(matches!(outcomes(&told).as_slice(), [(word, _)] if word == "damaged"), "{told}");
    assert_eq!(db.ok("SELECT count(*) FROM system.cache_entries").await, "0");
}

/// What was made for a name is verified as well.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_a_name() {
    let db = table().await;
    db.ok("CREATE MATERIALIZED VIEW v AS SELECT n % 7 AS k, count(*) AS c FROM t GROUP BY k WITH DATA").await;
    db.ok("CREATE DERIVED TABLE d AS SELECT n % 5 AS k, sum(n) AS s FROM t GROUP BY k").await;
    let told = db.ok("VERIFY ALL").await;
    all_same(&told, 2);
    let error = db.err("EXPLAIN PROVENANCE ALL SAMPLE 3 PERCENT").await;
    assert!(error.contains("expected the end of the statement"), "{error}");
}
