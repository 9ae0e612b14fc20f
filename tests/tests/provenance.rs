//! Programs that ran, and where results come from.

mod programs;
mod trees;

use std::collections::BTreeSet;

use nectarine_tests::db::Db;
use nectarine_tests::files;

const QUERY: &str = "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY k ORDER BY k";

/// A table of one file.
async fn table() -> Db {
    let db = Db::new().await;
    files::numbers(&db.path("t/a.parquet"), 0..200_000);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    db
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

/// Which files is a result from, and which results came from a file?
#[tokio::test(flavor = "multi_thread")]
async fn results_and_files() {
    let db = table().await;
    files::numbers(&db.path("u/x.parquet"), 0..100_000);
    db.ok("CREATE EXTERNAL TABLE u STORED AS PARQUET LOCATION '{dir}/u/'").await;
    db.ok(QUERY).await;
    db.ok("SELECT n % 3 AS k, sum(n) FROM u GROUP BY k").await;
    let of_file = |name: &str| {
        let sql = format!("SELECT DISTINCT derived FROM system.provenance WHERE input = 'file://{{dir}}/{name}'");
        let db = db.clone();
        async move { lines(&db.ok(&sql).await) }
    };
    let (of_t, of_u) = (of_file("t/a.parquet").await, of_file("u/x.parquet").await);
    assert!(of_t.len() >= 2, "the answer and the states below it");
    assert!(!of_u.is_empty() && of_t.is_disjoint(&of_u));
    let all = lines(&db.ok("SELECT fingerprint FROM system.cache_entries").await);
    assert_eq!(&of_t | &of_u, all, "nothing else is there");
    let one = of_t.first().expect("an entry");
    let of_entry = format!("SELECT input, input_kind, role, byte_start FROM system.provenance WHERE derived = '{one}'");
    assert_eq!(
        lines(&db.ok(&format!("{of_entry} AND input_kind IN ('extent', 'table')")).await),
        lines("file://{dir}/t/a.parquet|extent|scanned|NULL\npublic.t|table|scanned|NULL")
    );
    let folder = "SELECT DISTINCT derived FROM system.provenance WHERE input LIKE 'file://{dir}/t/%'";
    assert_eq!(lines(&db.ok(folder).await), of_t);
    let by_table = "SELECT DISTINCT derived FROM system.provenance WHERE input = 'public.u' AND input_kind = 'table'";
    assert_eq!(lines(&db.ok(by_table).await), of_u);

    // The file, the table and what is known of its files go; the results know where they came from.
    std::fs::remove_file(db.path("t/a.parquet")).expect("a file can be removed");
    db.ok("DROP TABLE t").await;
    let db = db.reopen().await;
    let again = "SELECT DISTINCT derived FROM system.provenance WHERE input = 'file://{dir}/t/a.parquet'";
    assert_eq!(lines(&db.ok(again).await), of_t);
}

/// What came by way of other results is told from what was read.
#[tokio::test(flavor = "multi_thread")]
async fn results_of_results() {
    let db = table().await;
    db.ok(QUERY).await;
    let old = lines(&db.ok("SELECT fingerprint FROM system.cache_entries").await);
    files::numbers(&db.path("t/b.parquet"), 0..50_000);
    let (_, receipt) = db.ask(QUERY).await;
    assert_eq!(receipt.entries.len(), 1, "the states of the old file");
    let used = receipt.entries[0].to_string();
    assert!(old.contains(&used));
    let made = db
        .ok(&format!("SELECT DISTINCT derived FROM system.provenance WHERE input = '{used}' AND role = 'reused'"))
        .await;
    assert!(!made.is_empty(), "what was made from it knows");
    for derived in made.lines() {
        assert!(!old.contains(derived));
        let extents = format!(
            "SELECT input, role FROM system.provenance WHERE derived = '{derived}' AND input_kind = 'extent' ORDER BY input"
        );
        assert_eq!(
            db.ok(&extents).await,
            "file://{dir}/t/a.parquet|reused\nfile://{dir}/t/b.parquet|scanned",
            "all files it is about, each with how it came"
        );
    }
}

/// A growing log is byte ranges.
#[tokio::test(flavor = "multi_thread")]
async fn ranges_of_a_log() {
    let db = Db::new().await;
    let line = |n: u32| format!("{n},{}\n", "x".repeat(60));
    let text: String = std::iter::once("n,x\n".to_owned()).chain((0..30_000).map(line)).collect();
    let log = db.file("log/a.csv", &text);
    db.ok("CREATE EXTERNAL TABLE log STORED AS CSV LOCATION '{dir}/log/' OPTIONS (has_header 'true')").await;
    files::rest().await;
    let sql = "SELECT n % 7 AS k, count(*) FROM log GROUP BY k";
    db.ok(sql).await;
    files::append(&log, (30_000..40_000).map(line).collect::<String>());
    files::rest().await;
    db.ok(sql).await;
    let ranges = db
        .ok("SELECT DISTINCT byte_start, byte_end FROM system.provenance WHERE input = 'file://{dir}/log/a.csv' ORDER BY 1")
        .await;
    assert!(ranges.contains(&format!("0|{}", text.len())), "{ranges}");
    assert!(ranges.contains(&format!("{}|", text.len())), "{ranges}");
}

#[tokio::test(flavor = "multi_thread")]
async fn views_and_functions_are_inputs() {
    let db = table().await;
    db.ok("CREATE FUNCTION tenth(x BIGINT) RETURNS BIGINT RETURN x % 10").await;
    db.ok("CREATE VIEW v AS SELECT tenth(n) AS k, n FROM t").await;
    db.ok("SELECT k, sum(n) FROM v GROUP BY k").await;
    assert_eq!(
        lines(&db.ok("SELECT DISTINCT input, input_kind, role FROM system.provenance WHERE input_kind NOT IN ('extent', 'table', 'entry')").await),
        lines("public.v|view|view\ntenth|function|function")
    );
}
