//! Materialized views: a program kept by name. Reading is always fresh, and costs what was added since.

use nectarine_engine::{Receipt, Reused};
use nectarine_tests::db::Db;
use nectarine_tests::files;
use nectarine_tests::program::Program;

const ROWS: i64 = 100_000;

async fn table(n_files: i64) -> Db {
    let db = Db::new().await;
    for part in 0..n_files {
        add(&db, part);
    }
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    db
}

fn add(db: &Db, part: i64) {
    files::numbers(&db.path(&format!("t/{part:03}.parquet")), part * ROWS..(part + 1) * ROWS);
}

/// The same answer as without reuse; returns what was reused.
async fn check(db: &Db, sql: &str) -> Receipt {
    let (rows, receipt) = db.ask(sql).await;
    let other = db.client();
    other.ok("SET nectarine.reuse = 'off'").await;
    assert_eq!(rows, other.ask(sql).await.0, "{sql}");
    other.ok("SET nectarine.reuse = 'check'").await;
    other.ask(sql).await;
    receipt
}

fn reused(receipt: &Receipt) -> (usize, usize) {
    receipt.extents.map_or((0, 0), |extents| (extents.reused, extents.total))
}

const DAILY: &str = "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY n % 10";

#[tokio::test(flavor = "multi_thread")]
async fn reading_costs_what_was_added() {
    let db = table(3).await;
    db.ok(&format!("CREATE MATERIALIZED VIEW v AS {DAILY}")).await;
    assert_eq!(check(&db, "SELECT * FROM v").await.reused, Reused::Exact, "made when it was created");
    let receipt = check(&db, "SELECT k, s FROM v WHERE k < 3 ORDER BY k").await;
    assert_eq!(receipt.reused, Reused::Partial, "inside of a larger query");
    assert_eq!(reused(&receipt), (3, 3));
    add(&db, 3);
    let receipt = check(&db, "SELECT sum(c) FROM v WHERE k <> 1").await;
    assert_eq!(reused(&receipt), (3, 4), "only the new file is read");
    let receipt = check(&db, "SELECT max(s) FROM v").await;
    assert_eq!(reused(&receipt), (4, 4), "what has a name was kept, inside of another query");
    assert_eq!(check(&db, "SELECT * FROM v").await.reused, Reused::Exact);
    add(&db, 4);
    db.ok("REFRESH MATERIALIZED VIEW v").await;
    assert_eq!(check(&db, "SELECT * FROM v").await.reused, Reused::Exact, "REFRESH warms it");
    let receipt = check(&db, "SELECT a.k, a.c + b.c FROM v AS a JOIN v AS b ON a.k = b.k").await;
    assert_eq!(reused(&receipt), (5, 5));
}

/// A choice of columns above groups, filters and joins are no candidates by themselves; with a name they are.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_it_does_is_kept() {
    let db = table(2).await;
    for (name, query) in [
        ("ratios", "SELECT n % 7 AS k, sum(n) / count(*) AS r, count(*) AS c FROM t GROUP BY n % 7"),
        ("filtered", "SELECT n, n * 2 AS twice FROM t WHERE n % 1000 = 7"),
        ("joined", "SELECT a.n, b.n AS m FROM t AS a JOIN t AS b ON a.n = b.n + 1 WHERE a.n % 100 = 0"),
        ("top", "SELECT n % 100 AS k, sum(n) AS s FROM t GROUP BY n % 100 ORDER BY s DESC LIMIT 5"),
        ("scalar", "SELECT n FROM t WHERE n > (SELECT max(n) - 5 FROM t)"),
    ] {
        db.ok(&format!("CREATE MATERIALIZED VIEW {name} AS {query}")).await;
        assert_eq!(check(&db, &format!("SELECT * FROM {name}")).await.reused, Reused::Exact, "{name}");
        let receipt = check(&db, &format!("SELECT count(*) FROM {name}")).await;
        assert_ne!(receipt.reused, Reused::None, "{name}");
        assert_eq!(reused(&receipt), (2, 2), "{name}");
    }
    add(&db, 2);
    for name in ["ratios", "filtered", "joined", "top", "scalar"] {
        check(&db, &format!("SELECT count(*) FROM {name}")).await;
        assert_ne!(check(&db, &format!("SELECT * FROM {name}")).await.reused, Reused::None, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explained() {
    let db = table(2).await;
    db.ok(&format!("CREATE MATERIALIZED VIEW v AS {DAILY}")).await;
    let plan = db.ok("EXPLAIN SELECT k FROM v WHERE c > 3").await;
    assert!(plan.contains("CacheReadExec"), "{plan}");
    let plan = db.ok("EXPLAIN REUSE SELECT k FROM v WHERE c > 3").await;
    assert!(plan.contains("hit:"), "{plan}");
    add(&db, 2);
    let plan = db.ok("EXPLAIN REUSE SELECT k FROM v WHERE c > 3").await;
    assert!(plan.contains("segment hit") && plan.contains("extents 1-2 of"), "{plan}");
    db.ok("SET nectarine.reuse = 'off'").await;
    let plan = db.ok("EXPLAIN SELECT k FROM v WHERE c > 3").await;
    assert!(plan.contains("AggregateExec") && plan.contains("DataSourceExec") && !plan.contains("NamedExec"), "{plan}");
}

#[tokio::test]
async fn statements() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a;
        CREATE MATERIALIZED VIEW v AS SELECT a, a * 10 AS b FROM t;
        -> CREATE MATERIALIZED VIEW
        SELECT * FROM v;
        -> 1|10
        INSERT INTO t VALUES (2);
        SELECT sum(b) FROM v;
        -> 30
        CREATE MATERIALIZED VIEW v AS SELECT 1;
        !! materialized view "v" already exists
        CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1;
        -> CREATE MATERIALIZED VIEW
        -> notice: "v" already exists, skipping
        CREATE OR REPLACE VIEW v AS SELECT 1 AS a;
        !! "v" is a materialized view
        CREATE OR REPLACE MATERIALIZED VIEW t AS SELECT 1 AS a;
        !! "t" is a table
        CREATE OR REPLACE MATERIALIZED VIEW v (x) AS SELECT a + 1, a FROM t WITH NO DATA;
        -> CREATE MATERIALIZED VIEW
        SELECT x, a FROM v ORDER BY x;
        -> 2|1
        -> 3|2
        CREATE MATERIALIZED VIEW g AS SELECT a, count(*) AS c FROM t GROUP BY a WITH NO DATA;
        -> CREATE MATERIALIZED VIEW
        CREATE DERIVED TABLE h AS SELECT a, count(*) AS c FROM t GROUP BY a WITH DATA;
        -> CREATE DERIVED TABLE
        SELECT sum(c) FROM g;
        -> 2
        DROP DERIVED TABLE h;
        DROP MATERIALIZED VIEW g;
        REFRESH MATERIALIZED VIEW v;
        -> REFRESH MATERIALIZED VIEW
        REFRESH MATERIALIZED VIEW t;
        !! "t" is a table, not a materialized view
        REFRESH MATERIALIZED VIEW nope;
        !! "nope" does not exist
        INSERT INTO v VALUES (1, 2);
        !! Unsupported: cannot insert into materialized view "v"
        COPY v FROM '{dir}/x.csv';
        !! cannot copy into materialized view "v"
        CREATE MATERIALIZED VIEW bad AS SELECT nope FROM t;
        !! column "nope" does not exist
        CREATE MATERIALIZED VIEW bad AS SELECT 1 / (a - 1) AS x FROM t;
        !! zero
        SELECT * FROM bad;
        !! does not exist
        CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT * FROM v;
        !! "v" would stand on itself
        CREATE MATERIALIZED VIEW lucky AS SELECT a, random() < 2 AS r FROM t;
        -> CREATE MATERIALIZED VIEW
        -> notice: the result of "lucky" is computed at each use: random() gives another value each time
        SELECT count(*) FROM lucky WHERE r;
        -> 2
        DROP MATERIALIZED VIEW lucky;
        -> DROP MATERIALIZED VIEW
        SELECT table_name, table_type FROM system.tables ORDER BY 1;
        -> t|managed
        -> v|materialized view
        SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1;
        -> t|BASE TABLE
        -> v|VIEW
        SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'v' ORDER BY ordinal_position;
        -> x|Int64
        -> a|Int64
        DESCRIBE v;
        -> x|Int64|YES
        -> a|Int64|YES
        SHOW CREATE MATERIALIZED VIEW v;
        -> nectarine|public|v|CREATE OR REPLACE MATERIALIZED VIEW v (x) AS SELECT a + 1, a FROM t WITH NO DATA
        DROP VIEW v;
        !! "v" is a materialized view
        !! use DROP MATERIALIZED VIEW
        DROP TABLE v;
        !! "v" is a materialized view
        DROP MATERIALIZED VIEW t;
        !! "t" is a table
        ALTER MATERIALIZED VIEW v RENAME TO w;
        -> ALTER MATERIALIZED VIEW
        SHOW CREATE TABLE w;
        -> nectarine|public|w|CREATE MATERIALIZED VIEW w (x) AS SELECT a + 1, a FROM t
        ALTER VIEW w RENAME TO v;
        !! "w" is a materialized view
        SELECT count(*) FROM w;
        -> 2
        DROP MATERIALIZED VIEW IF EXISTS nope, w;
        -> DROP MATERIALIZED VIEW
        -> notice: "nope" does not exist, skipping
        SELECT * FROM w;
        !! does not exist
        "#,
    )
    .await;
}

#[tokio::test]
async fn dependencies() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a;
        CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN x * 2;
        CREATE FUNCTION quadruple(x BIGINT) RETURNS BIGINT RETURN twice(twice(x));
        CREATE VIEW plain AS SELECT quadruple(a) AS a FROM t;
        CREATE MATERIALIZED VIEW v AS SELECT a + 1 AS a FROM plain;
        CREATE MATERIALIZED VIEW above AS SELECT a + 1 AS a FROM v;
        SELECT * FROM above;
        -> 6
        SELECT * FROM system.dependencies ORDER BY name, depends_on;
        -> public.above|materialized view|public.v|materialized view
        -> public.plain|view|public.t|table
        -> public.plain|view|quadruple|function
        -> public.v|materialized view|public.plain|view
        -> quadruple|function|twice|function
        DROP TABLE t;
        !! cannot drop table "t": materialized view "above", materialized view "v" depend on it
        !! CASCADE
        DROP TABLE t RESTRICT;
        !! cannot drop table "t"
        DROP VIEW plain;
        !! cannot drop view "plain"
        DROP MATERIALIZED VIEW v;
        !! cannot drop materialized view "v": materialized view "above" depends on it
        DROP FUNCTION twice;
        !! cannot drop function "twice": materialized view "v" depends on it
        ALTER TABLE t RENAME TO u;
        !! cannot rename table "t": materialized view "v" depends on it
        ALTER MATERIALIZED VIEW v RENAME TO w;
        !! cannot rename materialized view "v": materialized view "above" depends on it
        CREATE OR REPLACE TABLE t AS SELECT 2 AS a;
        SELECT * FROM above;
        -> 10
        CREATE OR REPLACE VIEW plain AS SELECT a FROM above;
        SELECT * FROM v;
        !! stands on itself
        CREATE OR REPLACE VIEW plain AS SELECT a FROM t;
        SELECT * FROM above;
        -> 4
        DROP TABLE t CASCADE;
        -> DROP TABLE
        -> notice: materialized view "above" is dropped as well
        -> notice: view "plain" is dropped as well
        -> notice: materialized view "v" is dropped as well
        SELECT count(*) FROM system.tables;
        -> 0
        DROP FUNCTION twice;
        CREATE SCHEMA s;
        CREATE TABLE s.t AS SELECT 1 AS a;
        CREATE VIEW plain AS SELECT a FROM s.t;
        CREATE MATERIALIZED VIEW v AS SELECT a FROM plain;
        CREATE MATERIALIZED VIEW free AS SELECT 1 AS a;
        DROP SCHEMA s;
        !! not empty
        DROP SCHEMA s CASCADE;
        -> DROP SCHEMA
        -> notice: view "plain" is dropped as well
        -> notice: materialized view "v" is dropped as well
        SELECT table_name FROM system.tables;
        -> free
        CREATE TABLE t AS SELECT 1 AS a;
        CREATE TABLE u AS SELECT 1 AS a;
        CREATE MATERIALIZED VIEW v AS SELECT a FROM u;
        DROP TABLE t, u;
        !! cannot drop table "u"
        SELECT * FROM t;
        -> 1
        DROP MATERIALIZED VIEW v;
        DROP TABLE t, u;
        SELECT * FROM t;
        !! does not exist
        "#,
    )
    .await;
}

/// A plain view below may be another one by now: what is asked is what it says today.
#[tokio::test]
async fn dependencies_through_views_that_were_replaced() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t1 AS SELECT 1 AS a;
        CREATE TABLE t2 AS SELECT 2 AS a;
        CREATE FUNCTION f(x BIGINT) RETURNS BIGINT RETURN x + 10;
        CREATE FUNCTION g(x BIGINT) RETURNS BIGINT RETURN x + 20;
        CREATE FUNCTION h(x BIGINT) RETURNS BIGINT RETURN x + 30;
        CREATE VIEW v AS SELECT f(a) AS a FROM t1;
        CREATE VIEW above AS SELECT a FROM v;
        CREATE MATERIALIZED VIEW mv AS SELECT a FROM above;
        SELECT * FROM mv;
        -> 11
        CREATE OR REPLACE VIEW v AS SELECT g(a) AS a FROM t2;
        SELECT * FROM mv;
        -> 22
        DROP TABLE t2;
        !! cannot drop table "t2": materialized view "mv" depends on it
        ALTER TABLE t2 RENAME TO t3;
        !! cannot rename table "t2": materialized view "mv" depends on it
        DROP VIEW v;
        !! cannot drop view "v": materialized view "mv" depends on it
        DROP FUNCTION g;
        !! cannot drop function "g": materialized view "mv" depends on it
        DROP FUNCTION f;
        -> DROP FUNCTION
        ALTER TABLE t1 RENAME TO t0;
        -> ALTER TABLE
        DROP TABLE t0 CASCADE;
        -> DROP TABLE
        CREATE OR REPLACE FUNCTION g(x BIGINT) RETURNS BIGINT RETURN h(x);
        SELECT * FROM mv;
        -> 32
        DROP FUNCTION h;
        !! cannot drop function "h": materialized view "mv" depends on it
        CREATE SCHEMA s;
        CREATE TABLE s.t AS SELECT 3 AS a;
        CREATE OR REPLACE VIEW v AS SELECT a FROM s.t;
        DROP FUNCTION g;
        DROP FUNCTION h;
        DROP TABLE t2;
        DROP TABLE s.t;
        !! cannot drop table "t": materialized view "mv" depends on it
        DROP SCHEMA s CASCADE;
        -> DROP SCHEMA
        -> notice: view "above" is dropped as well
        -> notice: materialized view "mv" is dropped as well
        -> notice: view "v" is dropped as well
        "#,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_and_in_two_processes() {
    let db = table(2).await;
    db.ok(&format!("CREATE MATERIALIZED VIEW v AS {DAILY}")).await;
    let expected = db.ask("SELECT * FROM v").await.0;
    let db = db.reopen().await;
    let (rows, receipt) = db.ask("SELECT * FROM v").await;
    assert_eq!((rows, receipt.reused), (expected.clone(), Reused::Exact));
    let second = db.second().await;
    assert_eq!(second.ask("SELECT * FROM v").await.0, expected);
    add(&db, 2);
    let (grown, receipt) = second.ask("SELECT * FROM v").await;
    assert_eq!(reused(&receipt), (2, 3));
    let (rows, receipt) = db.ask("SELECT * FROM v").await;
    assert_eq!((rows, receipt.reused), (grown, Reused::Exact), "what the other process left behind");
    second.ok("DROP TABLE t CASCADE").await;
    assert!(db.err("SELECT * FROM v").await.contains("does not exist"));
}

/// Wiped while it is in use, and killed at any moment: it is only a name and a text.
#[tokio::test(flavor = "multi_thread")]
async fn wiped() {
    let db = table(2).await;
    db.ok(&format!("CREATE MATERIALIZED VIEW v AS {DAILY}")).await;
    let expected = db.ask("SELECT * FROM v").await.0;
    let db = db.reopen().await;
    std::fs::remove_dir_all(db.home().join("derived")).expect("it is only a cache");
    assert_eq!(db.ask("SELECT * FROM v").await.0, expected);
    assert_eq!(db.ask("SELECT * FROM v").await.1.reused, Reused::Exact, "it was kept again");
}

#[test]
fn as_the_shell_shows_them() {
    let home = tempfile::tempdir().expect("a folder");
    let program = Program::on(home.path());
    program
        .run("CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW p AS SELECT a FROM t; CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
        .rows();
    let listed = program.run("\\dm").rows();
    assert!(listed.contains("m,materialized view") && !listed.contains("p,view"), "{listed}");
    let listed = program.run("\\dv").rows();
    assert!(listed.contains("m,materialized view") && listed.contains("p,view"), "{listed}");
    let described = program.run("\\d m").rows();
    assert!(described.contains("CREATE MATERIALIZED VIEW m"), "{described}");
    assert!(described.contains("Depends on: table public.t"), "{described}");
    let described = program.run("\\d t").rows();
    assert!(described.contains("Needed by: materialized view public.m, view public.p"), "{described}");
}
