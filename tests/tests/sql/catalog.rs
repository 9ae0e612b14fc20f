//! Schemas, information_schema, SHOW and DESCRIBE.

use nectarine_tests::db::Db;

#[tokio::test]
async fn schemas() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE SCHEMA s;
        -> CREATE SCHEMA
        CREATE SCHEMA s;
        !! schema "s" already exists
        CREATE SCHEMA IF NOT EXISTS s;
        -> CREATE SCHEMA
        -> notice: schema "s" already exists, skipping
        CREATE SCHEMA "Two Words";
        CREATE SCHEMA nectarine.qualified;
        CREATE TABLE s.t AS SELECT 1 AS a;
        CREATE TABLE "Two Words".t AS SELECT 2 AS a;
        CREATE TABLE qualified.t AS SELECT 3 AS a;
        SELECT x.a, y.a, z.a FROM s.t AS x, "Two Words".t AS y, nectarine.qualified.t AS z;
        -> 1|2|3
        CREATE TABLE nope.t (a INT);
        !! schema "nope" does not exist
        CREATE TABLE other.s.t (a INT);
        !! database "other" does not exist
        SELECT * FROM nope.t;
        !! does not exist
        SELECT * FROM t;
        !! table "t" does not exist
        CREATE SCHEMA system;
        !! system
        CREATE SCHEMA information_schema;
        !! information_schema
        CREATE TABLE system.t (a INT);
        !! system
        DROP SCHEMA s;
        !! schema "s" is not empty: it holds 1 table
        DROP SCHEMA s CASCADE;
        -> DROP SCHEMA
        SELECT * FROM s.t;
        !! does not exist
        DROP SCHEMA s;
        !! schema "s" does not exist
        DROP SCHEMA IF EXISTS s;
        -> DROP SCHEMA
        -> notice: schema "s" does not exist, skipping
        DROP SCHEMA public;
        !! public
        SET datafusion.catalog.default_schema = 'qualified';
        SELECT * FROM t;
        -> 3
        CREATE TABLE made_here AS SELECT 4 AS a;
        RESET datafusion.catalog.default_schema;
        SELECT * FROM qualified.made_here;
        -> 4
        SELECT schema_name FROM information_schema.schemata ORDER BY 1;
        -> Two Words
        -> public
        -> qualified
        -> system
        "#,
    )
    .await;
    let db = db.reopen().await;
    db.script(
        r#"
        SELECT * FROM "Two Words".t;
        -> 2
        SELECT * FROM qualified.t;
        -> 3
        SELECT * FROM s.t;
        !! does not exist
        "#,
    )
    .await;
}

#[tokio::test]
async fn information_schema_show_and_describe() {
    let mut db = Db::new().await;
    db.file("x.csv", "a\n1\n");
    db.script(
        r#"
        CREATE TABLE t (a INT NOT NULL, b TEXT, c DECIMAL(10, 2), d TIMESTAMP);
        CREATE VIEW v AS SELECT a FROM t;
        CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{dir}/x.csv';
        "#,
    )
    .await;
    for _ in 0..2 {
        db.script(
            r#"
            SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name;
            -> nectarine|public|e|BASE TABLE
            -> nectarine|public|t|BASE TABLE
            -> nectarine|public|v|VIEW
            SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position;
            -> a|Int32|NO
            -> b|Utf8View|YES
            -> c|Decimal128(10, 2)|YES
            -> d|Timestamp(ns)|YES
            DESCRIBE t;
            -> a|Int32|NO
            -> b|Utf8View|YES
            -> c|Decimal128(10, 2)|YES
            -> d|Timestamp(ns)|YES
            SHOW COLUMNS FROM e;
            -> nectarine|public|e|a|Int64|YES
            SHOW CREATE TABLE t;
            -> nectarine|public|t|CREATE TABLE t (a INT NOT NULL, b TEXT, c DECIMAL(10, 2), d TIMESTAMP)
            SHOW CREATE TABLE v;
            -> nectarine|public|v|CREATE VIEW v AS SELECT a FROM t
            SHOW CREATE TABLE e;
            -> nectarine|public|e|CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{dir}/x.csv'
            SHOW CREATE TABLE nope;
            !! does not exist
            DESCRIBE nope;
            !! does not exist
            SELECT definition FROM information_schema.views WHERE table_name = 'v';
            -> CREATE VIEW v AS SELECT a FROM t
            SHOW datafusion.execution.batch_size;
            -> datafusion.execution.batch_size|8192
            "#,
        )
        .await;
        let tables = db.ok("SHOW TABLES").await;
        for line in ["nectarine|public|t|BASE TABLE", "nectarine|public|v|VIEW", "nectarine|system|queries|VIEW"] {
            assert!(tables.lines().any(|found| found == line), "{tables}");
        }
        assert!(db.ok("SHOW FUNCTIONS LIKE 'abs'").await.contains("abs"));
        assert!(db.ok("SHOW ALL").await.contains("nectarine.memory_limit"));
        db = db.reopen().await;
    }
}

/// SHOW CREATE gives a statement that makes the same again, also after renames.
#[tokio::test]
async fn show_create_can_be_run_again() {
    let db = Db::new().await;
    db.file("x.csv", "a;b\n1;2\n");
    db.script(
        r#"
        CREATE TABLE t (a INT DEFAULT 5, b TEXT NOT NULL);
        CREATE TABLE q AS SELECT 1 AS a, 'x' AS b;
        CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{dir}/x.csv' OPTIONS ('format.delimiter' ';');
        CREATE VIEW v (p) AS SELECT a FROM t;
        "#,
    )
    .await;
    for name in ["t", "e", "v"] {
        let described = db.ok(&format!("DESCRIBE {name}")).await;
        let definition = db.ok(&format!("SHOW CREATE TABLE {name}")).await;
        let definition = definition.splitn(4, '|').nth(3).expect("a definition").to_owned();
        let kind = if name == "v" { "VIEW" } else { "TABLE" };
        db.ok(&format!("DROP {kind} {name}")).await;
        db.ok(&definition).await;
        assert_eq!(db.ok(&format!("DESCRIBE {name}")).await, described, "{definition}");
    }
    // The name is the one of now.
    db.ok("ALTER TABLE t RENAME TO renamed").await;
    let definition = db.ok("SHOW CREATE TABLE renamed").await;
    assert!(definition.contains("renamed") && !definition.contains("TABLE t "), "{definition}");
}

/// `USE schema` and what other engines call it: where names without a schema are looked for.
#[tokio::test]
async fn use_schema() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE SCHEMA sales;
        CREATE SCHEMA "Two Words";
        CREATE TABLE t AS SELECT 'public' AS place;
        CREATE TABLE sales.t AS SELECT 'sales' AS place;
        CREATE TABLE "Two Words".t AS SELECT 'two words' AS place;
        USE sales;
        -> USE
        SELECT place FROM t;
        -> sales
        SHOW search_path;
        -> datafusion.catalog.default_schema|sales
        CREATE TABLE made_here AS SELECT 1 AS a;
        USE nectarine;
        -> USE
        SELECT place FROM t;
        -> sales
        USE "Two Words";
        SELECT place FROM t;
        -> two words
        USE nectarine.public;
        SELECT place FROM t;
        -> public
        SELECT a FROM sales.made_here;
        -> 1
        USE Sales;
        SELECT place FROM t;
        -> sales
        USE sale;
        !! Sql: schema "sale" does not exist
        !! did you mean "sales"?
        USE nope;
        !! SHOW SCHEMAS
        USE "two words";
        !! did you mean "Two Words"?
        USE other.sales;
        !! database "other" does not exist
        USE a.b.c;
        !! is not the name of a schema
        SELECT place FROM t;
        -> sales
        RESET search_path;
        -> RESET
        SELECT place FROM t;
        -> public
        SET search_path = sales;
        SELECT place FROM t;
        -> sales
        SET search_path TO DEFAULT;
        SELECT place FROM t;
        -> public
        SET schema = 'Two Words';
        SELECT place FROM t;
        -> two words
        SET SESSION search_path TO public;
        SELECT place FROM t;
        -> public
        SET schema = 'nope';
        !! schema "nope" does not exist
        SET search_path = sales, public;
        !! Unsupported: search_path of several schemas is not supported
        !! USE names the one schema
        USE system;
        SELECT count(*) > 0 FROM queries;
        -> true
        USE public;
        "#,
    )
    .await;
    // Others begin where they did.
    db.ok("USE sales").await;
    assert_eq!(db.client().ok("SELECT place FROM t").await, "public");
    assert_eq!(db.ok("SELECT place FROM t").await, "sales");
    let source = "SELECT source FROM system.settings WHERE name = 'datafusion.catalog.default_schema'";
    assert_eq!(db.ok(source).await, "session");
}

/// Schemas that somebody cannot see are not there for him.
#[tokio::test]
async fn use_schema_of_others() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE USER bob PASSWORD 'long enough';
        CREATE SCHEMA ours;
        CREATE SCHEMA hidden;
        CREATE TABLE ours.t AS SELECT 1 AS a;
        CREATE TABLE hidden.t AS SELECT 2 AS a;
        GRANT SELECT ON ours.t TO bob;
        "#,
    )
    .await;
    db.user("bob")
        .script(
            r#"
            USE ours;
            SELECT a FROM t;
            -> 1
            USE hidden;
            !! schema "hidden" does not exist
            SHOW TABLES FROM hidden;
            !! schema "hidden" does not exist
            SHOW SCHEMAS;
            -> nectarine|ours
            -> nectarine|system
            SHOW TABLES FROM ours;
            -> nectarine|ours|t|BASE TABLE
            USE public;
            -> USE
            "#,
        )
        .await;
}

#[tokio::test]
async fn show_schemas_tables_and_views() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE SCHEMA sales;
        CREATE TABLE orders AS SELECT 1 AS a;
        CREATE TABLE items AS SELECT 1 AS a;
        CREATE VIEW ordered AS SELECT * FROM orders;
        CREATE VIEW sales.weekly AS SELECT * FROM orders;
        CREATE MATERIALIZED VIEW sales.daily AS SELECT * FROM orders;
        SHOW TABLES LIKE 'order%';
        -> nectarine|public|ordered|VIEW
        -> nectarine|public|orders|BASE TABLE
        SHOW TABLES ILIKE 'ORDERS';
        -> nectarine|public|orders|BASE TABLE
        SHOW TABLES FROM public;
        -> nectarine|public|items|BASE TABLE
        -> nectarine|public|ordered|VIEW
        -> nectarine|public|orders|BASE TABLE
        SHOW TABLES IN nectarine.sales LIKE 'w%';
        -> nectarine|sales|weekly|VIEW
        SHOW TABLES FROM nectarine LIKE 'it%';
        -> nectarine|public|items|BASE TABLE
        SHOW TABLES WHERE table_type = 'VIEW' AND table_schema = 'sales';
        -> nectarine|sales|daily|VIEW
        -> nectarine|sales|weekly|VIEW
        SHOW TABLES LIKE 'o''x%';
        SHOW TABLES FROM sale;
        !! Sql: schema "sale" does not exist
        !! did you mean "sales"?
        SHOW TABLES FROM other.sales;
        !! database "other" does not exist
        SHOW TERSE TABLES;
        !! Unsupported: SHOW TABLES takes no such clause
        !! SELECT * FROM information_schema.tables
        SHOW VIEWS;
        -> nectarine|public|ordered|VIEW
        -> nectarine|sales|daily|VIEW
        -> nectarine|sales|weekly|VIEW
        SHOW VIEWS FROM sales LIKE '%ly';
        -> nectarine|sales|daily|VIEW
        -> nectarine|sales|weekly|VIEW
        SHOW MATERIALIZED VIEWS;
        -> nectarine|sales|daily|materialized view
        SHOW SCHEMAS LIKE 's%';
        -> nectarine|sales
        -> nectarine|system
        SHOW DATABASES;
        -> nectarine
        SHOW DATABASES LIKE 'x%';
        SHOW DATABASES FROM nectarine;
        !! SHOW DATABASES takes no such clause
        "#,
    )
    .await;
    assert!(db.ok("SHOW VIEWS FROM system").await.contains("nectarine|system|queries|VIEW"));
    assert!(db.ok("EXPLAIN SHOW TABLES LIKE 'o%'").await.contains("table_name"));
}
