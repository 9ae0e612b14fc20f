//! Each reason why something that was asked for is not read, before and after the statement.

use nectarine_tests::files;
use sqlx::{Connection, SqliteConnection};

use super::{QUERY, asked, explain, line, parts, run, table, table_with};

#[tokio::test(flavor = "multi_thread")]
async fn hit() {
    let db = table().await;
    db.ok(QUERY).await;
    let again = QUERY.to_lowercase();
    assert!(line(&db, &again, "SortExec").await.contains("|hit: 10 rows, "));
    assert_eq!(run(&db, &again).await, "hit|NULL|NULL|SortExec");
    let above = format!("{QUERY} DESC");
    assert!(line(&db, &above, "ProjectionExec").await.contains("|hit: 10 rows, "));
    assert_eq!(run(&db, &above).await, "miss|never seen|NULL|SortExec\nhit|NULL|NULL|AggregateExec");
}

#[tokio::test(flavor = "multi_thread")]
async fn never_seen() {
    let db = table().await;
    let told = explain(&db, QUERY).await;
    assert!(told.lines().next().is_some_and(|line| line.ends_with("|never seen|true|NULL")), "{told}");
    assert_eq!(run(&db, QUERY).await, "miss|never seen|NULL|SortExec\nmiss|never seen|NULL|AggregateExec");
}

/// Of what nobody computed, what is most like it is named, with what differs.
#[tokio::test(flavor = "multi_thread")]
async fn nearest() {
    let db = table().await;
    let base = "SELECT n % 10 AS k, sum(n) AS s FROM t WHERE n > 7 GROUP BY k ORDER BY k";
    db.ok(base).await;
    for (sql, node, expected) in [
        (base.replace("n > 7", "n > 5"), "SortExec", "differs in: filter n > 5 instead of n > 7"),
        (base.replace("n > 7", "n > 5"), "ProjectionExec", "differs in: filter n > 5 instead of n > 7"),
        (base.replace("sum(n)", "max(n)"), "SortExec", "differs in: aggregate max(n) instead of sum(n)"),
        (base.replace("n % 10", "n % 9"), "SortExec", "differs in: group by n % 9 instead of n % 10"),
        (
            base.replace("ORDER BY k", "ORDER BY k DESC"),
            "SortExec",
            "differs in: order by n % 10 DESC instead of n % 10",
        ),
        (base.replace("WHERE n > 7", ""), "SortExec", "differs in: filter n > 7, which only the entry has"),
    ] {
        let told = line(&db, &sql, node).await;
        assert!(told.contains(expected), "{told}");
        assert!(told.contains("\"SELECT n % 10 AS k, sum(n) AS s FROM t WHERE n > 7 GROUP BY k"), "{told}");
    }
    // On more extents than the entry.
    files::numbers(&db.path("t/b.parquet"), 0..10);
    let told = line(&db, &base.replace("n > 7", "n > 5"), "SortExec").await;
    assert!(told.contains("filter n > 5 instead of n > 7; and it is of other extents"), "{told}");
    // Settings that may change rows are part of a program.
    std::fs::remove_file(db.path("t/b.parquet")).expect("a file can be removed");
    db.ok("SET datafusion.execution.time_zone = '+02:00'").await;
    let told = line(&db, base, "SortExec").await;
    assert!(told.contains("|never seen|") && told.contains("differs in: the settings or the version"), "{told}");
    db.ok("RESET datafusion.execution.time_zone").await;
    // Other data is not near, nor is another question.
    files::numbers(&db.path("u/a.parquet"), 7..9);
    db.ok("CREATE EXTERNAL TABLE u STORED AS PARQUET LOCATION '{dir}/u/'").await;
    assert!(!explain(&db, &base.replace("FROM t", "FROM u")).await.contains("differs in"));
    assert!(
        !explain(&db, "SELECT count(DISTINCT n) FILTER (WHERE n < 3), sum(n % 7) FROM t HAVING max(n) > 1")
            .await
            .contains("differs in")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn not_kept() {
    let db = table().await;
    db.ok("SELECT sum(n) FROM t WHERE n % 7 = 1").await;
    let sql = "SELECT max(n) FROM t WHERE n % 7 = 1";
    assert!(line(&db, sql, "FilterExec").await.contains("|not kept: asked for before"));
    assert!(run(&db, sql).await.contains("miss|not kept|NULL|FilterExec"));
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_changed() {
    let db = table().await;
    files::numbers(&db.path("u/a.parquet"), 0..100_000);
    db.ok("CREATE EXTERNAL TABLE u STORED AS PARQUET LOCATION '{dir}/u/'").await;
    let join = "SELECT count(*), sum(t.n) FROM t JOIN u ON t.n = u.n";
    db.ok(join).await;
    files::numbers(&db.path("t/2026-03-15.parquet"), 0..10);
    let told = explain(&db, join).await;
    let expected = "inputs changed: \"t\" has 1 extent that the entry has not (t/2026-03-15.parquet), lacks 0|";
    assert!(told.contains(expected), "{told}");
    // Both, and one of them lost what it had.
    for number in 0..5 {
        files::numbers(&db.path(&format!("u/{number}.parquet")), 0..number);
    }
    std::fs::remove_file(db.path("u/a.parquet")).expect("a file can be removed");
    let told = explain(&db, join).await;
    let expected =
        "\"u\" has 5 extents that the entry has not (u/0.parquet, u/1.parquet, u/2.parquet, and 2 more), lacks 1";
    assert!(told.contains(expected), "{told}");
    assert!(told.contains("(t/2026-03-15.parquet), lacks 0; \"u\" has"), "{told}");
    let lookups = run(&db, join).await;
    assert!(lookups.contains("miss|inputs changed|1 entry on other extents|AggregateExec"), "{lookups}");
    // The nearest of several entries is the one that is spoken of.
    files::numbers(&db.path("u/9.parquet"), 0..1);
    let told = explain(&db, join).await;
    assert!(
        told.contains("inputs changed: \"u\" has 1 extent that the entry has not (u/9.parquet), lacks 0"),
        "{told}"
    );
}

/// The tail of a growing file is an extent of its own.
#[tokio::test(flavor = "multi_thread")]
async fn inputs_grown() {
    let db = table().await;
    let rows: String = (0..60_000).map(|n| format!("{n}\n")).collect();
    db.file("log/a.csv", format!("n\n{rows}"));
    db.ok("CREATE EXTERNAL TABLE log (n BIGINT) STORED AS CSV LOCATION '{dir}/log/' OPTIONS (has_header 'true')").await;
    let sql = "SELECT n % 5, sum(n) FROM log GROUP BY 1";
    db.ok(sql).await;
    files::append(&db.path("log/a.csv"), b"1\n2\n");
    let told = explain(&db, sql).await;
    assert!(told.contains("inputs changed: \"log\" has 1 extent that the entry has not (log/a.csv bytes "), "{told}");
    assert!(told.contains(", lacks 0|"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn evicted() {
    let db = table().await;
    db.ok(QUERY).await;
    assert!(db.cache().clear().await > 0);
    assert!(line(&db, QUERY, "SortExec").await.contains("|evicted|"));
    assert_eq!(run(&db, QUERY).await, "miss|evicted|NULL|SortExec\nmiss|evicted|NULL|AggregateExec");
}

/// EXPLAIN REUSE looks, and leaves everything as it is; the statement drops what it can not read.
#[tokio::test(flavor = "multi_thread")]
async fn damaged() {
    let db = table_with(&[("nectarine.cache.memory", "1B")]).await;
    db.ok(QUERY).await;
    for part in parts(&db) {
        let mut bytes = std::fs::read(&part).expect("a file can be read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&part, bytes).expect("a file can be written");
    }
    for _ in 0..2 {
        let told = explain(&db, QUERY).await;
        for node in ["SortExec", "ProjectionExec", "AggregateExec: mode=Final"] {
            let line = told.lines().find(|line| line.trim_start().starts_with(node));
            assert!(line.is_some_and(|line| line.contains("|damaged: the entry was damaged or missing|")), "{told}");
        }
    }
    assert_eq!(db.ok("SELECT count(*) FROM system.cache_entries").await, "3");
    db.ok(QUERY).await;
    assert_eq!(asked(&db, QUERY).await, "miss|damaged|NULL|SortExec\nmiss|damaged|NULL|AggregateExec");
}

/// An entry that takes longer to read than it took to compute; say, because it came from a much faster machine.
#[tokio::test(flavor = "multi_thread")]
async fn not_worth_it() {
    let db = table().await;
    db.ok(QUERY).await;
    db.shutdown().await;
    let metadata = db.home().join("metadata.db");
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", metadata.display())).await.expect("a file");
    // What computing took is the fourth number of the packed record; one microsecond.
    let sql = "UPDATE cache_entries
               SET summary = CAST(substr(summary, 1, 90) || x'0100000000000000' || substr(summary, 99) AS BLOB)";
    assert_eq!(sqlx::query(sql).execute(&mut connection).await.expect("an update").rows_affected(), 3);
    connection.close().await.expect("closed");
    let db = db.reopen().await;
    let told = line(&db, QUERY, "SortExec").await;
    assert!(told.contains("|not worth it: ") && told.contains(" to read, computed in 1 us|"), "{told}");
    let lookups = run(&db, QUERY).await;
    assert!(lookups.starts_with("miss|not worth it|") && lookups.contains(" bytes to read|SortExec"), "{lookups}");
}

/// Two computations of the same floats must not meet.
#[tokio::test(flavor = "multi_thread")]
async fn inconsistent() {
    let db = table().await;
    let totals = "SELECT n % 10 AS k, sum(n / 3.0::double) AS s FROM t GROUP BY k";
    let largest = format!("SELECT max(s) AS m FROM ({totals})");
    db.ok(&largest).await;
    // Only the larger of the two entries is left.
    let key = db.ok("SELECT fingerprint FROM system.cache_entries WHERE rows = 10").await;
    let key = db.cache().find(&key).await.expect("the groups");
    db.cache().remove(&[key]).await;
    let sql = format!("SELECT x.k FROM ({totals}) x JOIN ({largest}) y ON x.s = y.m");
    let told = explain(&db, &sql).await;
    assert!(told.contains("|inconsistent: it would mix two computations of the same floats|"), "{told}");
    let lookups = run(&db, &sql).await;
    assert!(lookups.contains("miss|inconsistent|NULL|AggregateExec"), "{lookups}");
}

#[tokio::test(flavor = "multi_thread")]
async fn not_wanted() {
    let db = table().await;
    db.ok(QUERY).await;
    for mode in ["refresh", "check"] {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        assert!(line(&db, QUERY, "SortExec").await.contains("|not wanted: nectarine.reuse says to compute anew|"));
        assert_eq!(run(&db, QUERY).await, "miss|not wanted|NULL|SortExec\nmiss|not wanted|NULL|AggregateExec");
    }
}
