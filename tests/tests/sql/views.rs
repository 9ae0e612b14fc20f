//! Views: text, planned afresh at each use.

use nectarine_tests::db::Db;

/// A view that replaces itself by what reads it would be lost.
#[tokio::test]
async fn views_do_not_stand_on_themselves() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a;
        CREATE VIEW v AS SELECT a FROM t;
        CREATE VIEW w AS SELECT a FROM v;
        CREATE OR REPLACE VIEW v AS SELECT * FROM v;
        !! "v" would stand on itself
        CREATE OR REPLACE VIEW v AS SELECT * FROM w;
        !! "v" would stand on itself
        SELECT * FROM w;
        -> 1
        CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM t;
        SELECT * FROM w;
        -> 2
        "#,
    )
    .await;
}

#[tokio::test]
async fn views_see_what_is_there_now() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a;
        CREATE VIEW v AS SELECT a, a * 10 AS b FROM t;
        -> CREATE VIEW
        SELECT * FROM v;
        -> 1|10
        INSERT INTO t VALUES (2);
        SELECT sum(b) FROM v;
        -> 30
        CREATE VIEW star AS SELECT * FROM t;
        CREATE OR REPLACE TABLE t AS SELECT 5 AS a, 'new' AS c;
        SELECT * FROM v;
        -> 5|50
        SELECT * FROM star;
        -> 5|new
        DROP TABLE t;
        SELECT * FROM v;
        !! does not exist
        CREATE TABLE t AS SELECT 'text' AS a;
        SELECT * FROM v;
        !! view
        CREATE OR REPLACE TABLE t AS SELECT 7 AS a;
        SELECT * FROM v;
        -> 7|70
        CREATE VIEW v AS SELECT 1;
        !! view "v" already exists
        CREATE VIEW IF NOT EXISTS v AS SELECT 1;
        -> CREATE VIEW
        -> notice: "v" already exists, skipping
        CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM t;
        SELECT * FROM v;
        -> 8
        CREATE OR REPLACE TABLE v AS SELECT 1 AS a;
        !! "v" is a view
        CREATE OR REPLACE VIEW t AS SELECT 1 AS a;
        !! "t" is a table
        CREATE VIEW bad AS SELECT nope FROM t;
        !! column "nope" does not exist
        CREATE VIEW bad AS SELECT * FROM nope;
        !! table "nope" does not exist
        INSERT INTO v VALUES (1);
        !! Unsupported: cannot insert into view "v"
        EXPLAIN ANALYZE INSERT INTO v VALUES (1);
        !! Unsupported: cannot insert into view "v"
        EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1 AS a;
        !! Unsupported: EXPLAIN ANALYZE runs queries, INSERT and COPY .. TO
        INSERT INTO system.tables SELECT * FROM system.tables;
        !! Unsupported: cannot insert into system table "system.tables"
        COPY v FROM '{dir}/x.csv';
        !! view
        "#,
    )
    .await;
    let db = db.reopen().await;
    db.script(
        r#"
        SELECT * FROM v;
        -> 8
        SELECT * FROM star;
        -> 7
        INSERT INTO t VALUES (1);
        SELECT sum(a) FROM v;
        -> 10
        "#,
    )
    .await;
}

#[tokio::test]
async fn views_over_views() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT 1 AS a").await;
    db.ok("CREATE VIEW v0 AS SELECT a FROM t").await;
    for n in 1..20 {
        db.ok(&format!("CREATE VIEW v{n} AS SELECT a + 1 AS a FROM v{}", n - 1)).await;
    }
    assert_eq!(db.ok("SELECT * FROM v19").await, "20");
    db.script(
        r#"
        CREATE VIEW wide AS SELECT x.a AS a, y.a AS b FROM v1 AS x JOIN v2 AS y ON true;
        SELECT * FROM wide;
        -> 2|3
        DROP VIEW v5;
        SELECT * FROM v19;
        !! "v5"
        SELECT * FROM v4;
        -> 5
        "#,
    )
    .await;
}

/// Nothing can be made that stands on itself, but it can be renamed into.
#[tokio::test]
async fn a_view_that_stands_on_itself() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE a AS SELECT 1 AS x;
        CREATE VIEW v AS SELECT x FROM a;
        DROP TABLE a;
        ALTER VIEW v RENAME TO a;
        SELECT * FROM a;
        !! Sql:
        !! stands on itself
        SELECT 1;
        -> 1
        CREATE OR REPLACE VIEW a AS SELECT 2 AS x;
        CREATE VIEW b AS SELECT x FROM a;
        CREATE OR REPLACE VIEW a AS SELECT x FROM b;
        !! "a" would stand on itself
        SELECT * FROM b;
        -> 2
        "#,
    )
    .await;
    db.ok("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'").await;
    db.ok("SELECT count(*) FROM system.tables").await;
    db.ok("SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'system'").await;
    db.ok("DROP VIEW b").await;
    db.ok("DROP VIEW a").await;
}

/// A view that cannot be planned any more does not hide the rest.
#[tokio::test]
async fn a_broken_view_hides_nothing() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a;
        CREATE TABLE other AS SELECT 1 AS b;
        CREATE VIEW v AS SELECT a FROM t;
        DROP TABLE t;
        SHOW TABLES;
        SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1;
        -> other
        -> v
        SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'other';
        -> other|b
        SELECT table_name FROM information_schema.views WHERE table_schema = 'public';
        -> v
        SELECT table_name, table_type FROM system.tables ORDER BY 1;
        -> other|managed
        -> v|view
        "#,
    )
    .await;
}

#[tokio::test]
async fn views_keep_their_text() {
    let db = Db::new().await;
    db.file("x.csv", "a\n1\n2\n");
    db.script(
        r#"
        CREATE SCHEMA s;
        CREATE TABLE s.t AS SELECT 1 AS a;
        CREATE TABLE t AS SELECT 100 AS a;
        SET datafusion.catalog.default_schema = 's';
        CREATE VIEW in_s AS SELECT a FROM t;
        RESET datafusion.catalog.default_schema;
        SELECT * FROM s.in_s;
        -> 1
        CREATE VIEW renamed (p, q) AS SELECT a, a + 1 FROM t;
        SELECT q, p FROM renamed;
        -> 101|100
        CREATE VIEW "over files" AS SELECT sum(a) AS s FROM '{dir}/x.csv';
        SELECT * FROM "over files";
        -> 3
        CREATE VIEW semicolon AS SELECT ';' AS x -- a comment; with one
        ;
        SELECT * FROM semicolon;
        -> ;
        CREATE VIEW cte AS WITH x AS (SELECT 1 AS a UNION ALL SELECT 2) SELECT sum(a) AS s FROM x;
        SELECT * FROM cte;
        -> 3
        CREATE VIEW limited AS SELECT value FROM generate_series(1, 100) ORDER BY value DESC LIMIT 3;
        SELECT * FROM limited;
        -> 100
        -> 99
        -> 98
        CREATE VIEW later AS SELECT now() AS t;
        CREATE TEMPORARY VIEW tv AS SELECT 1;
        !! Unsupported:
        CREATE MATERIALIZED VIEW mv AS SELECT 1 AS one;
        SELECT * FROM mv;
        -> 1
        "#,
    )
    .await;
    let first = db.ok("SELECT t FROM later").await;
    let db = db.reopen().await;
    assert_ne!(db.ok("SELECT t FROM later").await, first);
    db.script(
        r#"
        SELECT * FROM s.in_s;
        -> 1
        SELECT q, p FROM renamed;
        -> 101|100
        SELECT * FROM "over files";
        -> 3
        SELECT * FROM semicolon;
        -> ;
        SHOW CREATE TABLE cte;
        -> nectarine|public|cte|CREATE VIEW cte AS WITH x AS (SELECT 1 AS a UNION ALL SELECT 2) SELECT sum(a) AS s FROM x
        "#,
    )
    .await;
    db.file("x.csv", "a\n10\n");
    assert_eq!(db.ok("SELECT * FROM \"over files\"").await, "10");
}
