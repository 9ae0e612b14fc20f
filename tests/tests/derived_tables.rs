//! Derived tables: a program on the extents of one moment. Its rows may go at any time, and come back the same.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use nectarine_engine::{Receipt, Reused};
use nectarine_tests::db::{Db, rows_text};
use nectarine_tests::files;
use nectarine_tests::program::Program;

const ROWS: i64 = 50_000;

/// One file: numbers, a float that does not add up the same in any order, a text.
fn facts(path: &Path, part: i64) {
    let ids = part * ROWS..(part + 1) * ROWS;
    let floats = ids.clone().map(|id| 1.0 / (id as f64 + 1.0) * if id % 3 == 0 { 1e12 } else { 1.0 });
    let texts = ids.clone().map(|id| format!("t{}", id % 7));
    files::parquet(
        path,
        vec![
            ("id", Arc::new(Int64Array::from_iter_values(ids.clone())) as ArrayRef),
            ("k", Arc::new(Int64Array::from_iter_values(ids.map(|id| id * 7919 % 13)))),
            ("x", Arc::new(Float64Array::from_iter_values(floats))),
            ("s", Arc::new(StringArray::from_iter_values(texts))),
        ],
    );
}

async fn table(n_files: i64) -> Db {
    let db = Db::new().await;
    for part in 0..n_files {
        add(&db, part);
    }
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    db
}

fn add(db: &Db, part: i64) {
    facts(&db.path(&format!("t/{part:03}.parquet")), part);
}

async fn off(db: &Db, sql: &str) -> Vec<String> {
    let other = db.client();
    other.ok("SET nectarine.reuse = 'off'").await;
    other.ask(sql).await.0
}

fn wipe(db: &Db) {
    std::fs::remove_dir_all(db.home().join("derived")).expect("it is only a cache");
}

fn reused(receipt: &Receipt) -> (usize, usize) {
    receipt.extents.map_or((0, 0), |extents| (extents.reused, extents.total))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_stays() {
    let db = table(2).await;
    let query = "SELECT k, count(*) AS c, sum(x) AS s, avg(x) AS a, min(id) AS i FROM t GROUP BY k";
    db.ok(&format!("CREATE DERIVED TABLE d AS {query}")).await;
    let (rows, receipt) = db.ask("SELECT * FROM d").await;
    assert_eq!(receipt.reused, Reused::Exact, "made when it was created");
    assert_eq!(rows.len(), 13);
    add(&db, 2);
    let (same, receipt) = db.ask("SELECT * FROM d").await;
    assert_eq!((&same, receipt.reused), (&rows, Reused::Exact));
    assert_eq!(off(&db, "SELECT * FROM d").await, rows, "computed anew, to the last bit");
    let (_, receipt) = db.ask("SELECT sum(c) FROM d WHERE k > 3").await;
    assert_eq!((receipt.reused, reused(&receipt)), (Reused::Partial, (2, 2)), "inside of a query");
    assert_eq!(db.ask("SELECT sum(c) FROM d WHERE k > 3").await.1.reused, Reused::Exact, "and that is kept as well");
    // With today's rows beside it.
    let both = "SELECT d.k, d.c, n.c FROM d JOIN (SELECT k, count(*) AS c FROM t GROUP BY k) AS n ON n.k = d.k";
    assert_eq!(db.ask(both).await.0, off(&db, both).await);
    add(&db, 3);
    assert_eq!(db.ask(both).await.0, off(&db, both).await);
    let db = db.reopen().await;
    assert_eq!(db.ask("SELECT * FROM d").await.0, rows);
    let second = db.second().await;
    wipe(&db);
    assert_eq!(second.ask("SELECT * FROM d").await.0, rows, "in another process, after all results were deleted");
    assert_eq!(db.ask("SELECT * FROM d").await.0, rows);
    let rows_only = db.client();
    rows_only.ok("SET nectarine.reuse = 'check'").await;
    rows_only.ask("SELECT * FROM d").await;
}

/// Settings, the clock, views and functions are those of its moment.
#[tokio::test(flavor = "multi_thread")]
async fn its_moment_is_all_that_it_means() {
    let db = table(1).await;
    db.script(
        r#"
        SET datafusion.execution.time_zone = '+05:00';
        CREATE FUNCTION f(x BIGINT) RETURNS BIGINT RETURN x + 1;
        CREATE FUNCTION g(x BIGINT) RETURNS BIGINT RETURN f(x) * 10;
        CREATE VIEW v AS SELECT id, g(id) AS y FROM t WHERE id < 3;
        CREATE DERIVED TABLE d AS SELECT id, y, now() AS t, date_part('hour', '2026-01-01T00:00:00Z'::timestamptz) AS h FROM v;
        "#,
    )
    .await;
    let first = db.ask("SELECT * FROM d").await.0;
    assert_eq!(first.len(), 3);
    db.script(
        r#"
        SET datafusion.execution.time_zone = '-03:00';
        CREATE OR REPLACE FUNCTION f(x BIGINT) RETURNS BIGINT RETURN x + 1000;
        CREATE OR REPLACE VIEW v AS SELECT 1 AS id, 2 AS y;
        "#,
    )
    .await;
    assert_eq!(db.ask("SELECT * FROM d").await.0, first);
    wipe(&db);
    let db = db.reopen().await;
    db.ok("DROP VIEW v").await;
    db.ok("DROP FUNCTION g").await;
    db.ok("ALTER TABLE t RENAME TO renamed").await;
    assert_eq!(db.ask("SELECT * FROM d").await.0, first, "computed anew with what it meant then");
    assert_eq!(off(&db, "SELECT * FROM d").await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn remade_from_others_that_are_remade() {
    let db = table(2).await;
    db.script(
        r#"
        CREATE TABLE m AS SELECT id, k FROM t WHERE id % 5 = 0;
        CREATE DERIVED TABLE d1 AS SELECT k, id, x FROM t WHERE id % 3 = 1;
        CREATE VIEW over1 AS SELECT k, sum(x) AS s, count(*) AS c FROM d1 GROUP BY k;
        CREATE DERIVED TABLE d2 AS SELECT o.k, o.s, o.c, n.c AS m FROM over1 AS o JOIN (SELECT k, count(*) AS c FROM m GROUP BY k) AS n ON n.k = o.k;
        CREATE MATERIALIZED VIEW mv AS SELECT k, c + m AS both FROM d2;
        CREATE DERIVED TABLE d3 AS SELECT k, both FROM mv WHERE both > 0 ORDER BY both DESC, k;
        CREATE DERIVED TABLE sorted AS SELECT id, s FROM t ORDER BY s, id DESC;
        CREATE DERIVED TABLE top AS SELECT s, k FROM t ORDER BY s LIMIT 7;
        "#,
    )
    .await;
    // Derived tables add exactly by themselves; a plain view adds as the session says.
    let exactly = "SET nectarine.float_sums = 'exact'";
    db.ok(exactly).await;
    let all = ["d1", "over1", "d2", "mv", "d3", "top", "sorted"];
    let mut before = vec![];
    for name in all {
        before.push(rows_text(&db.batches(&format!("SELECT * FROM {name}")).await));
    }
    add(&db, 2);
    db.ok("INSERT INTO m SELECT id, k FROM t").await;
    wipe(&db);
    let db = db.reopen().await;
    db.ok(exactly).await;
    for (name, before) in all.into_iter().zip(before).rev() {
        let after = rows_text(&db.batches(&format!("SELECT * FROM {name}")).await);
        let lines = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            // What has an order comes back in it.
            if !["sorted", "d3"].contains(&name) {
                lines.sort();
            }
            lines
        };
        assert_eq!(lines(&after), lines(&before), "{name}");
    }
}

#[tokio::test]
async fn luck_is_refused() {
    let db = Db::new().await;
    db.file("x.csv", "a\n1\n2\n");
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a, 0.5::double AS x, 'b' AS s;
        CREATE DERIVED TABLE d AS SELECT a, random() AS r FROM t;
        !! Unsupported: a derived table must have the same rows whenever they are computed
        !! random() gives another value each time
        !! CREATE TABLE .. AS
        CREATE DERIVED TABLE d AS SELECT uuid() FROM t;
        !! uuid() gives another value each time
        CREATE DERIVED TABLE d AS SELECT a FROM t LIMIT 1;
        !! LIMIT
        CREATE DERIVED TABLE d AS SELECT array_agg(a) FROM t;
        !! an aggregate depends on the order of rows
        CREATE DERIVED TABLE d AS SELECT first_value(a) FROM t;
        !! an aggregate depends on the order of rows
        CREATE DERIVED TABLE d AS SELECT row_number() OVER () AS r FROM t;
        !! window functions
        CREATE DERIVED TABLE d AS SELECT stddev(x) FROM t;
        !! floats
        CREATE DERIVED TABLE d AS SELECT * FROM system.tables;
        !! cannot be made from "system.tables"
        CREATE DERIVED TABLE d AS SELECT nope FROM t;
        !! column "nope" does not exist
        CREATE DERIVED TABLE d AS SELECT a, a FROM t;
        !! a
        SELECT * FROM d;
        !! does not exist
        CREATE DERIVED TABLE d AS SELECT sum(x) AS x, avg(x) AS y FROM t;
        -> CREATE DERIVED TABLE
        SELECT * FROM d;
        -> 0.5|0.5
        CREATE DERIVED TABLE top AS SELECT s, a FROM t ORDER BY s LIMIT 1;
        SELECT * FROM top;
        -> b|1
        CREATE DERIVED TABLE files AS SELECT sum(a) AS a FROM '{dir}/x.csv';
        SELECT * FROM files;
        -> 3
        "#,
    )
    .await;
}

#[tokio::test]
async fn statements() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a;
        CREATE DERIVED TABLE d (x) AS SELECT a + 1 FROM t;
        -> CREATE DERIVED TABLE
        SELECT x FROM d;
        -> 2
        CREATE DERIVED TABLE d AS SELECT 1;
        !! derived table "d" already exists
        CREATE DERIVED TABLE IF NOT EXISTS d AS SELECT 1;
        -> CREATE DERIVED TABLE
        -> notice: "d" already exists, skipping
        CREATE OR REPLACE TABLE d AS SELECT 1 AS x;
        !! "d" is a derived table
        INSERT INTO d VALUES (1);
        !! Unsupported: cannot insert into derived table "d"
        COPY d FROM '{dir}/x.csv';
        !! cannot copy into derived table "d"
        INSERT INTO t VALUES (10);
        SELECT x FROM d;
        -> 2
        CREATE OR REPLACE DERIVED TABLE d AS SELECT a + 1 AS x FROM t WITH NO DATA;
        SELECT x FROM d ORDER BY x;
        -> 2
        -> 11
        CREATE DERIVED TABLE e AS SELECT x * 2 AS x FROM d;
        SELECT * FROM e ORDER BY x;
        -> 4
        -> 22
        CREATE TABLE copied AS SELECT * FROM e;
        SELECT sum(x) FROM copied;
        -> 26
        SELECT * FROM system.dependencies ORDER BY name, depends_on;
        -> public.d|derived table|public.t|table
        -> public.e|derived table|public.d|derived table
        DROP TABLE t;
        !! cannot drop table "t": derived table "d", derived table "e" depend on it
        !! SET PINNED
        CREATE OR REPLACE TABLE t AS SELECT 5 AS a;
        !! cannot replace table "t": derived table "d" depends on it
        !! SET PINNED
        CREATE OR REPLACE DERIVED TABLE d AS SELECT 1 AS x FROM t;
        !! cannot replace derived table "d": derived table "e" depends on it
        CREATE OR REPLACE DERIVED TABLE d AS SELECT x FROM e;
        !! cannot replace derived table "d": derived table "e" depends on it
        CREATE OR REPLACE DERIVED TABLE e AS SELECT x FROM e;
        !! "e" would stand on itself
        ALTER TABLE t RENAME TO u;
        ALTER DERIVED TABLE d RENAME TO dd;
        -> ALTER DERIVED TABLE
        SELECT * FROM e ORDER BY x;
        -> 4
        -> 22
        SHOW CREATE DERIVED TABLE dd;
        -> nectarine|public|dd|CREATE DERIVED TABLE dd AS SELECT a + 1 AS x FROM t
        DESCRIBE e;
        -> x|Int64|YES
        SELECT table_name, table_type, extents, error FROM system.tables ORDER BY 1;
        -> copied|managed|1|NULL
        -> dd|derived|2|NULL
        -> e|derived|0|NULL
        -> u|managed|2|NULL
        SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1;
        -> copied|BASE TABLE
        -> dd|BASE TABLE
        -> e|BASE TABLE
        -> u|BASE TABLE
        DROP VIEW dd;
        !! "dd" is a derived table
        DROP DERIVED TABLE u;
        !! "u" is a table
        DROP DERIVED TABLE dd CASCADE;
        -> DROP DERIVED TABLE
        -> notice: derived table "e" is dropped as well
        DROP TABLE u;
        -> DROP TABLE
        "#,
    )
    .await;
}

/// Rows that are kept need no files; rows that are not kept need all of them, and say which are gone.
#[tokio::test(flavor = "multi_thread")]
async fn extents_that_are_gone() {
    let db = table(3).await;
    db.ok("CREATE DERIVED TABLE d AS SELECT k, count(*) AS c FROM t GROUP BY k").await;
    db.ok("CREATE DERIVED TABLE pinned AS SELECT k, sum(id) AS s FROM t GROUP BY k").await;
    db.ok("CREATE DERIVED TABLE one AS SELECT count(*) AS c FROM t WHERE id >= 100000").await;
    let (rows, copy) = (db.ask("SELECT * FROM d").await.0, db.ask("SELECT * FROM pinned").await.0);
    std::fs::remove_file(db.path("t/001.parquet")).expect("a file can go");
    assert_eq!(db.ask("SELECT * FROM d").await.0, rows, "the rows are kept");
    assert_eq!(db.ask("SELECT sum(c) FROM d").await.0, ["150000"]);
    let shown = db.ok("SHOW CREATE TABLE d").await;
    assert!(shown.contains("notice: 1 files that \"d\" was made from are gone or changed"), "{shown}");
    assert!(db.ok("SELECT error FROM system.tables WHERE table_name = 'd'").await.contains("1 of its files"));
    // A copy can be made as long as the rows are there.
    db.ok("ALTER DERIVED TABLE pinned SET PINNED").await;
    assert_eq!(
        db.ok("ALTER DERIVED TABLE pinned SET PINNED").await,
        "ALTER DERIVED TABLE\nnotice: \"pinned\" is pinned already"
    );
    wipe(&db);
    let db = db.reopen().await;
    let error = db.err("SELECT * FROM d").await;
    assert!(error.starts_with("Data: the rows of derived table \"d\" are not kept any more"), "{error}");
    assert!(error.contains("001.parquet") && !error.contains("000.parquet"), "{error}");
    assert!(db.err("SELECT sum(c) + 1 FROM d").await.contains("001.parquet"));
    assert!(db.err("CREATE TABLE x AS SELECT * FROM d").await.contains("001.parquet"));
    assert_eq!(db.ask("SELECT * FROM pinned").await.0, copy);
    assert_eq!(db.ask("SELECT c FROM one").await.0, ["50000"], "what is pruned need not be there");
    // Another file in its place is another extent.
    facts(&db.path("t/001.parquet"), 7);
    assert!(db.err("SELECT * FROM d").await.contains("001.parquet"));
    db.ok("DROP DERIVED TABLE d").await;
    db.ok("DROP DERIVED TABLE one").await;
    db.ok("DROP TABLE t").await;
    assert_eq!(db.ask("SELECT * FROM pinned").await.0, copy, "it depends on nothing");
    assert_eq!(db.ask("SELECT k, s FROM pinned WHERE k = 1").await.0.len(), 1);
    let db = db.reopen().await;
    assert_eq!(db.ask("SELECT * FROM pinned").await.0, copy);
    db.ok("DROP DERIVED TABLE pinned").await;
}

/// What happens to a table while its rows are copied stays.
#[tokio::test(flavor = "multi_thread")]
async fn pinned_while_it_changes() {
    let db = table(4).await;
    db.ok("CREATE USER alice PASSWORD 'a-long-password'").await;
    let rows = db.ok("SELECT count(*), sum(k) FROM t").await;
    let two = db.second().await;
    #[expect(clippy::async_yields_async, reason = "it goes on while the table changes")]
    let pinning = async |name: &'static str| {
        let query = format!("SELECT id, k, md5(s) AS s, '{name}' AS n FROM t");
        db.ok(&format!("CREATE DERIVED TABLE {name} AS {query} WITH NO DATA")).await;
        let one = db.client();
        let pinning = tokio::spawn(async move { one.run(&format!("ALTER DERIVED TABLE {name} SET PINNED")).await });
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        pinning
    };
    let is_pinned = async |name: &str| {
        assert_eq!(db.ok(&format!("SELECT count(*), sum(k) FROM {name}")).await, rows);
        db.ok(&format!("ALTER DERIVED TABLE {name} SET PINNED")).await.contains("is pinned already")
    };
    let owner = "SELECT owner FROM system.tables WHERE table_name = 'd'";
    let pinned = pinning("d").await;
    two.ok("ALTER DERIVED TABLE d OWNER TO alice").await;
    pinned.await.expect("a task ends well").expect("whose it is does not matter");
    assert_eq!(two.ok(owner).await, "alice");
    assert!(is_pinned("d").await);
    // Or it is not seen any more, if the statement comes too late.
    let pinned = pinning("e").await;
    two.ok("ALTER DERIVED TABLE e RENAME TO f").await;
    two.ok("CREATE TABLE e AS SELECT 'precious' AS p").await;
    match pinned.await.expect("a task ends well") {
        Ok(_) => assert!(is_pinned("f").await),
        Err(error) => assert!(error.contains("does not exist") || error.contains("is a table"), "{error}"),
    }
    assert_eq!(db.ok("SELECT p FROM e").await, "precious");
    let pinned = pinning("g").await;
    two.ok("DROP DERIVED TABLE g").await;
    two.ok("CREATE DERIVED TABLE g AS SELECT k FROM t WHERE id < 3").await;
    if let Err(error) = pinned.await.expect("a task ends well") {
        assert!(error.starts_with("Sql: table \"g\" does not exist"), "{error}");
    }
    assert_eq!(db.ok("SELECT count(*) FROM g").await, "3");
}

/// A log that grows keeps the bytes that it had.
#[tokio::test(flavor = "multi_thread")]
async fn logs_grow() {
    let db = Db::new().await;
    let lines = |from: i64, to: i64| (from..to).map(|n| format!("{n},{}\n", n % 5)).collect::<String>();
    let log = db.file("log.csv", format!("n,k\n{}5000,1", lines(0, 5000)));
    db.ok("CREATE EXTERNAL TABLE log STORED AS CSV LOCATION '{dir}/log.csv' OPTIONS (has_header 'true')").await;
    db.ok("CREATE DERIVED TABLE d AS SELECT k, count(*) AS c, sum(n) AS s FROM log GROUP BY k").await;
    let rows = db.ask("SELECT * FROM d").await.0;
    let mut text = std::fs::read_to_string(&log).expect("a log");
    text.push('\n');
    text.push_str(&lines(6000, 9000));
    std::fs::write(&log, &text).expect("a longer log");
    assert_ne!(db.ask("SELECT k, count(*) AS c, sum(n) AS s FROM log GROUP BY k").await.0, rows);
    assert_eq!(db.ask("SELECT * FROM d").await.0, rows);
    wipe(&db);
    let db = db.reopen().await;
    assert_eq!(db.ask("SELECT * FROM d").await.0, rows, "the old part of the log is still there");
    std::fs::write(&log, text.replace("17,2", "17,3")).expect("another log");
    wipe(&db);
    let db = db.reopen().await;
    assert!(db.err("SELECT * FROM d").await.contains("log.csv"), "a byte of it is another");
}

/// Killed at any moment there is the table, or there is not.
#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_is_made() {
    let db = table(2).await;
    let home = db.home();
    db.shutdown().await;
    let program = Program::on(&home);
    for wait in [5_u64, 40, 120, 300] {
        let started = program.start(
            "DROP DERIVED TABLE IF EXISTS d; CREATE DERIVED TABLE d AS SELECT k, s, count(*) AS c FROM t GROUP BY k, s; ALTER DERIVED TABLE d SET PINNED",
        );
        std::thread::sleep(std::time::Duration::from_millis(wait));
        started.kill();
        let found = program.run("SELECT count(*) FROM system.tables WHERE table_name = 'd'").rows();
        if found.trim() == "1" {
            assert_eq!(program.run("SELECT sum(c) FROM d").rows().trim(), "100000");
        }
    }
    assert_eq!(program.run("DROP DERIVED TABLE IF EXISTS d").status.code(), Some(0));
    program.run("CREATE DERIVED TABLE d AS SELECT k FROM t WHERE id < 3").rows();
    let described = program.run("\\d d").rows();
    assert!(described.contains("CREATE DERIVED TABLE d AS") && described.contains("Extents: 2"), "{described}");
    assert!(described.contains("Depends on: table public.t"), "{described}");
    drop(db);
}

/// All rows of a file: kept, and read when the file is gone.
#[tokio::test(flavor = "multi_thread")]
async fn mere_copies_outlive_their_files() {
    let db = table(2).await;
    db.ok("CREATE DERIVED TABLE d AS SELECT * FROM t").await;
    db.ok("CREATE DERIVED TABLE e AS SELECT k, id FROM t").await;
    let sum = db.ok("SELECT sum(id) FROM d").await;
    std::fs::remove_file(db.path("t/000.parquet")).expect("it was there");
    let db = db.reopen().await;
    assert_eq!(db.ok("SELECT sum(id) FROM d").await, sum);
    assert_eq!(db.ok("SELECT sum(id) FROM e").await, sum);
    assert_eq!(db.ask("SELECT * FROM d").await.0.len() as i64, 2 * ROWS);
    assert_eq!(db.ok("SELECT count(*) FROM d").await, (2 * ROWS).to_string());
    db.ok("CREATE TABLE copied AS SELECT * FROM d").await;
    assert_eq!(db.ok("SELECT sum(id) FROM copied").await, sum);
    db.ok("ALTER DERIVED TABLE d SET PINNED").await;
    wipe(&db);
    let told = db.reopen().await.ok("SELECT sum(id) FROM d").await;
    assert_eq!(told.lines().next(), Some(sum.as_str()), "{told}");
}

/// What is computed over other files says nothing about rows that are kept.
#[tokio::test(flavor = "multi_thread")]
async fn verifying_over_changed_files_drops_nothing() {
    let db = table(1).await;
    db.ok("CREATE DERIVED TABLE d AS SELECT k, count(*) AS c, sum(id) AS s FROM t GROUP BY k").await;
    let sum = db.ok("SELECT sum(s) FROM d").await;
    facts(&db.path("t/000.parquet"), 5);
    for sql in ["VERIFY d", "VERIFY SELECT sum(s) FROM d", "VERIFY ALL"] {
        let told = db.ok(sql).await;
        assert!(!told.contains("different") && told.contains("not verified"), "{sql}: {told}");
        assert_eq!(db.ok("SELECT sum(s) FROM d").await, sum, "{sql}");
    }
}
