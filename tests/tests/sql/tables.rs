//! Tables: made, filled, replaced, renamed, dropped.

use nectarine_tests::db::Db;

#[tokio::test]
async fn create_insert_and_read() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t (a INT, b TEXT, c DOUBLE);
        -> CREATE TABLE
        SELECT * FROM t;
        ->
        INSERT INTO t VALUES (1, 'x', 0.5), (2, NULL, 1.5);
        -> INSERT 2
        INSERT INTO t SELECT a + 10, b, c FROM t;
        -> INSERT 2
        SELECT * FROM t ORDER BY a;
        -> 1|x|0.5
        -> 2|NULL|1.5
        -> 11|x|0.5
        -> 12|NULL|1.5
        INSERT INTO t SELECT * FROM t WHERE false;
        -> INSERT 0
        CREATE TABLE t (z INT);
        !! table "t" already exists
        CREATE TABLE IF NOT EXISTS t (z INT);
        -> CREATE TABLE
        -> notice: "t" already exists, skipping
        SELECT count(*) FROM t;
        -> 4
        CREATE OR REPLACE TABLE t AS SELECT a, a * 2 AS twice FROM t WHERE a < 10;
        -> CREATE TABLE
        SELECT * FROM t ORDER BY a;
        -> 1|2
        -> 2|4
        CREATE OR REPLACE TABLE t (only INT);
        SELECT count(*) FROM t;
        -> 0
        CREATE TABLE u AS VALUES (1, 'one'), (2, 'two');
        SELECT * FROM u ORDER BY 1;
        -> 1|one
        -> 2|two
        CREATE TABLE typed (a BIGINT, b TEXT) AS VALUES (1, 'one');
        SELECT arrow_typeof(a), b FROM typed;
        -> Int64|one
        SELECT column1 + 1 AS a INTO v FROM u;
        SELECT sum(a) FROM v;
        -> 5
        CREATE TABLE none AS SELECT 1 AS a WHERE false;
        SELECT count(*) FROM none;
        -> 0
        "#,
    )
    .await;
    let db = db.reopen().await;
    db.script(
        r#"
        SELECT count(*) FROM t;
        -> 0
        SELECT * FROM u ORDER BY 1;
        -> 1|one
        -> 2|two
        SELECT count(*) FROM none;
        -> 0
        INSERT INTO t VALUES (5);
        SELECT * FROM t;
        -> 5
        "#,
    )
    .await;
}

#[tokio::test]
async fn defaults_and_chosen_columns() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE d (a INT, b TEXT DEFAULT 'none', c INT DEFAULT 1 + 2, t TIMESTAMP DEFAULT now(), e INT);
        INSERT INTO d (a) VALUES (1);
        INSERT INTO d (c, a) VALUES (30, 2);
        INSERT INTO d (b, a) SELECT 'sel', 3;
        INSERT INTO d VALUES (4, 'four', 4, '2024-01-01', 4);
        INSERT INTO d (b, a) VALUES ('none', 5);
        INSERT INTO d (a, b) VALUES (5, DEFAULT);
        !! Sql:
        SELECT a, b, c, t IS NOT NULL, e FROM d ORDER BY a;
        -> 1|none|3|true|NULL
        -> 2|none|30|true|NULL
        -> 3|sel|3|true|NULL
        -> 4|four|4|true|4
        -> 5|none|3|true|NULL
        INSERT INTO d (nope) VALUES (1);
        !! "nope"
        INSERT INTO d (a, a) VALUES (1, 2);
        !! Sql:
        INSERT INTO d (a, b) VALUES (1);
        !! Sql:
        INSERT INTO d (a) VALUES (1, 2);
        !! Sql:
        INSERT INTO d (a) VALUES ('text');
        !! text
        INSERT INTO nope VALUES (1);
        !! table "nope" does not exist
        SELECT count(*) FROM d;
        -> 5
        "#,
    )
    .await;
    let db = db.reopen().await;
    db.script(
        r#"
        INSERT INTO d (a) VALUES (6);
        SELECT b, c FROM d WHERE a = 6;
        -> none|3
        "#,
    )
    .await;
}

#[tokio::test]
async fn columns_that_must_not_be_null() {
    let db = Db::new().await;
    std::fs::create_dir(db.folder().join("e")).expect("a folder");
    db.script(
        r#"
        CREATE TABLE n (a INT NOT NULL, b INT);
        INSERT INTO n VALUES (1, NULL);
        INSERT INTO n VALUES (NULL, 1);
        !! NULL in column "a" of "public.n", which is NOT NULL
        INSERT INTO n (b, a) VALUES (1, 7), (2, NULL);
        !! NULL in column "a" of "public.n", which is NOT NULL
        INSERT INTO n (b) VALUES (1);
        !! NULL in column "a" of "public.n", which is NOT NULL
        INSERT INTO n SELECT CASE WHEN value > 5 THEN NULL ELSE value END, 1 FROM generate_series(1, 10);
        !! NULL in column "a" of "public.n", which is NOT NULL
        EXPLAIN ANALYZE INSERT INTO n VALUES (NULL, 1);
        !! NULL in column "a" of "public.n", which is NOT NULL
        PREPARE p AS INSERT INTO n (b, a) VALUES (1, NULL);
        EXECUTE p;
        !! NULL in column "a" of "public.n", which is NOT NULL
        PREPARE q AS EXPLAIN ANALYZE INSERT INTO n VALUES ($1, 1);
        EXECUTE q(NULL);
        !! NULL in column "a" of "public.n", which is NOT NULL
        CREATE TABLE made (a INT NOT NULL) AS VALUES (1), (NULL);
        !! NULL in column "a" of "public.made", which is NOT NULL
        CREATE EXTERNAL TABLE e (b INT, a INT NOT NULL) STORED AS PARQUET LOCATION '{dir}/e/';
        INSERT INTO e VALUES (1, 2);
        INSERT INTO e VALUES (NULL, 2), (1, NULL);
        !! NULL in column "a" of "public.e", which is NOT NULL
        EXPLAIN ANALYZE INSERT INTO e VALUES (1, NULL);
        !! NULL in column "a" of "public.e", which is NOT NULL
        SELECT * FROM e;
        -> 1|2
        SELECT * FROM n;
        -> 1|NULL
        DESCRIBE n;
        -> a|Int32|NO
        -> b|Int32|YES
        "#,
    )
    .await;
    let db = db.reopen().await;
    db.script("INSERT INTO n VALUES (NULL, 1);\n!! NULL in column \"a\"\nSELECT count(*) FROM n;\n-> 1").await;
}

/// That the rows of a query have no NULL says nothing of those that come later; what the statement declares does.
#[tokio::test]
async fn tables_made_of_queries_take_nulls() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE source (k INT NOT NULL, s TEXT NOT NULL);
        INSERT INTO source VALUES (1, 'x');
        CREATE TABLE a AS SELECT 1 AS a;
        CREATE TABLE b AS SELECT k, s, count(*) AS n FROM source GROUP BY k, s;
        CREATE TABLE c AS VALUES (1, 'x');
        SELECT k AS x INTO d FROM source;
        CREATE TABLE e (a INT, b BIGINT NOT NULL) AS SELECT k, k + 1 FROM source;
        CREATE TABLE f (a INT, b INT NOT NULL) AS SELECT 1, 2;
        INSERT INTO a VALUES (NULL);
        -> INSERT 1
        INSERT INTO b VALUES (NULL, NULL, NULL);
        -> INSERT 1
        INSERT INTO c VALUES (NULL, NULL);
        -> INSERT 1
        INSERT INTO d SELECT NULL;
        -> INSERT 1
        INSERT INTO e VALUES (NULL, 1);
        -> INSERT 1
        INSERT INTO e VALUES (1, NULL);
        !! NULL in column "b" of "public.e", which is NOT NULL
        CREATE TABLE g (a INT NOT NULL) AS SELECT a FROM a;
        !! NULL in column "a" of "public.g", which is NOT NULL
        CREATE OR REPLACE TABLE a AS SELECT a FROM a WHERE a IS NOT NULL;
        CREATE TABLE g (a INT NOT NULL) AS SELECT a FROM a;
        PREPARE p AS CREATE TABLE h (a INT NOT NULL, b INT) AS SELECT 1, $1;
        EXECUTE p(2);
        -> CREATE TABLE
        SHOW CREATE TABLE h;
        -> nectarine|public|h|CREATE TABLE h (a INT NOT NULL, b INT) AS SELECT 1, 2
        SELECT * FROM h;
        -> 1|2
        PREPARE q AS CREATE TABLE i (a INT NOT NULL, b INT) AS SELECT -$1, $2 * 2;
        EXECUTE q(-5, 1 + 1);
        SHOW CREATE TABLE i;
        -> nectarine|public|i|CREATE TABLE i (a INT NOT NULL, b INT) AS SELECT -(-5), (1 + 1) * 2
        PREPARE r (INT) AS CREATE TABLE j AS SELECT -$1 AS a;
        EXECUTE r(-5);
        SHOW CREATE TABLE j;
        -> nectarine|public|j|CREATE TABLE j AS SELECT -CAST(-5 AS INT) AS a
        SELECT i.a, i.b, j.a AS c FROM i, j;
        -> 5|4|5
        SELECT table_name, column_name FROM information_schema.columns WHERE is_nullable = 'NO' AND table_schema = 'public' ORDER BY 1, 2;
        -> e|b
        -> f|b
        -> g|a
        -> h|a
        -> i|a
        -> source|k
        -> source|s
        "#,
    )
    .await;
    let db = db.reopen().await;
    db.script(
        r#"
        SELECT count(*), count(a) FROM a;
        -> 1|1
        INSERT INTO a VALUES (NULL), (2);
        SELECT a FROM a ORDER BY a;
        -> 1
        -> 2
        -> NULL
        SELECT k, n FROM b ORDER BY k;
        -> 1|1
        -> NULL|NULL
        SELECT count(*) FROM source WHERE k NOT IN (SELECT a FROM a);
        -> 0
        "#,
    )
    .await;
}

/// A statement that fails half-way leaves nothing.
#[tokio::test]
async fn all_or_nothing() {
    let db = Db::with(&[("nectarine.extent_bytes_max", "10KB")]).await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a;
        INSERT INTO t SELECT 1 / (value - 90000) FROM generate_series(1, 100000);
        !! division by zero
        SELECT count(*) FROM t;
        -> 1
        CREATE TABLE u AS SELECT 1 / (value - 90000) AS a FROM generate_series(1, 100000);
        !! division by zero
        SELECT * FROM u;
        !! table "u" does not exist
        CREATE OR REPLACE TABLE t AS SELECT 1 / (value - 90000) AS a FROM generate_series(1, 100000);
        !! division by zero
        SELECT * FROM t;
        -> 1
        CREATE TABLE u AS SELECT value FROM generate_series(1, 100000);
        SELECT count(*), sum(value) FROM u;
        -> 100000|5000050000
        SELECT extents > 3, rows FROM system.tables WHERE table_name = 'u';
        -> true|100000
        "#,
    )
    .await;
    // What was written for statements that failed is gone.
    let files = |name: &str| {
        let mut found = vec![];
        let mut folders = vec![db.home().join(name)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                let is_folder = entry.path().is_dir();
                if is_folder { folders.push(entry.path()) } else { found.push(entry.file_name()) }
            }
        }
        found
    };
    assert_eq!(files("tmp"), ["lock"]);
    let extents: usize = db.ok("SELECT count(*) FROM system.extents").await.parse().expect("a number");
    assert_eq!(files("tables").len(), extents);
}

#[tokio::test]
async fn rename_and_move() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE SCHEMA s;
        CREATE TABLE a AS SELECT 1 AS x;
        CREATE TABLE taken AS SELECT 2 AS x;
        CREATE VIEW over_a AS SELECT x FROM a;
        ALTER TABLE a RENAME TO b;
        -> ALTER TABLE
        SELECT * FROM a;
        !! table "a" does not exist
        SELECT * FROM b;
        -> 1
        SELECT * FROM over_a;
        !! does not exist
        ALTER TABLE b RENAME TO taken;
        !! taken" already exists
        ALTER TABLE b RENAME TO "With Capitals";
        INSERT INTO "With Capitals" VALUES (5);
        SELECT sum(x) FROM "With Capitals";
        -> 6
        ALTER TABLE "With Capitals" RENAME TO a;
        SELECT sum(x) FROM over_a;
        -> 6
        ALTER TABLE a SET SCHEMA s;
        SELECT sum(x) FROM s.a;
        -> 6
        SELECT * FROM a;
        !! table "a" does not exist
        ALTER TABLE s.a RENAME TO c;
        SELECT sum(x) FROM s.c;
        -> 6
        ALTER TABLE s.c RENAME TO public.c;
        SELECT sum(x) FROM c;
        -> 6
        ALTER TABLE c SET SCHEMA nope;
        !! schema "nope" does not exist
        ALTER TABLE nope RENAME TO x;
        !! table
        !! does not exist
        ALTER TABLE IF EXISTS nope RENAME TO x;
        -> ALTER TABLE
        -> notice: "nope" does not exist, skipping
        ALTER TABLE c RENAME TO system.c;
        !! system
        ALTER VIEW over_a RENAME TO view2;
        SELECT * FROM view2;
        !! does not exist
        ALTER VIEW c RENAME TO d;
        !! "c" is a table
        ALTER TABLE c ADD COLUMN y INT;
        !! Unsupported:
        ALTER TABLE c DROP COLUMN x;
        !! Unsupported:
        ALTER TABLE c RENAME COLUMN x TO y;
        !! Unsupported:
        "#,
    )
    .await;
    let db = db.reopen().await;
    db.script("SELECT sum(x) FROM c;\n-> 6\nINSERT INTO c VALUES (1);\nSELECT sum(x) FROM c;\n-> 7").await;
}

#[tokio::test]
async fn drop_variants() {
    let db = Db::new().await;
    db.file("x.csv", "a\n1\n");
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a;
        CREATE VIEW v AS SELECT * FROM t;
        CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{dir}/x.csv';
        DROP VIEW t;
        !! "t" is a table
        DROP TABLE v;
        !! "v" is a view
        DROP TABLE nope;
        !! table
        !! does not exist
        DROP TABLE IF EXISTS nope;
        -> DROP TABLE
        -> notice: "nope" does not exist, skipping
        DROP VIEW IF EXISTS nope;
        -> DROP VIEW
        -> notice: "nope" does not exist, skipping
        DROP TABLE system.tables;
        !! system
        DROP TABLE t;
        -> DROP TABLE
        SELECT * FROM v;
        !! does not exist
        DROP VIEW v;
        -> DROP VIEW
        DROP TABLE e;
        SELECT * FROM e;
        !! table "e" does not exist
        SELECT * FROM '{dir}/x.csv';
        -> 1
        CREATE TABLE t AS SELECT 2 AS a;
        SELECT * FROM t;
        -> 2
        SELECT count(*) FROM system.tables;
        -> 1
        "#,
    )
    .await;
    // Several at once: all or none.
    db.ok("CREATE TABLE u AS SELECT 1 AS a").await;
    match db.run("DROP TABLE t, u").await {
        Ok(_) => assert_eq!(db.ok("SELECT count(*) FROM system.tables").await, "0"),
        Err(_) => assert_eq!(db.ok("SELECT count(*) FROM system.tables").await, "2"),
    }
    let db = db.reopen().await;
    db.script("SELECT * FROM v;\n!! does not exist").await;
}

#[tokio::test]
async fn tables_are_append_only() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a;
        UPDATE t SET a = 2;
        !! Unsupported: cannot update "t": tables are append-only
        !! CREATE OR REPLACE TABLE t AS SELECT
        DELETE FROM t WHERE a = 1;
        !! Unsupported: cannot delete from "t": tables are append-only
        !! CREATE OR REPLACE TABLE t AS SELECT
        TRUNCATE TABLE t;
        !! Unsupported: cannot truncate "t": tables are append-only
        !! CREATE OR REPLACE TABLE
        MERGE INTO t USING t AS u ON t.a = u.a WHEN MATCHED THEN DELETE;
        !! Unsupported: cannot merge into "t": tables are append-only
        INSERT OVERWRITE t SELECT 5;
        !! tables are append-only
        REPLACE INTO t VALUES (1);
        !! tables are append-only
        EXPLAIN DELETE FROM t;
        !! tables are append-only
        PREPARE p AS DELETE FROM t;
        !! tables are append-only
        SELECT * FROM t TABLESAMPLE (10);
        !! Unsupported:
        !! TABLESAMPLE
        SELECT * FROM t TABLESAMPLE BERNOULLI (10) REPEATABLE (1);
        !! TABLESAMPLE
        SELECT * FROM t FOR UPDATE;
        !! Unsupported:
        SELECT * FROM t FOR SYSTEM_TIME AS OF '2024-01-01';
        !! SYSTEM_TIME
        INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING;
        !! not supported
        INSERT INTO t VALUES (1) RETURNING a;
        !! not supported
        CREATE INDEX i ON t (a);
        !! Unsupported:
        CREATE TEMPORARY TABLE x (a INT);
        !! Unsupported:
        CREATE DATABASE other;
        !! Unsupported:
        BEGIN;
        !! Unsupported:
        COMMIT;
        !! Unsupported:
        SELECT * FROM t;
        -> 1
        "#,
    )
    .await;
}

/// The way out that the errors above recommend.
#[tokio::test]
async fn rows_are_changed_by_writing_the_table_anew() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT value AS a, 'x' AS b FROM generate_series(1, 10);
        CREATE OR REPLACE TABLE t AS SELECT a, CASE WHEN a = 3 THEN 'three' ELSE b END AS b FROM t WHERE NOT (a > 5);
        SELECT * FROM t ORDER BY a;
        -> 1|x
        -> 2|x
        -> 3|three
        -> 4|x
        -> 5|x
        CREATE OR REPLACE TABLE t AS SELECT * FROM t LIMIT 0;
        SELECT count(*) FROM t;
        -> 0
        INSERT INTO t VALUES (1, 'again');
        SELECT * FROM t;
        -> 1|again
        "#,
    )
    .await;
}

/// What the error of a DELETE recommends keeps every row for which the condition is not true, NULL or not.
#[tokio::test]
async fn the_advice_of_a_delete_keeps_nulls() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t (a INT DEFAULT 7, b TEXT NOT NULL);
        INSERT INTO t VALUES (1, 'x'), (2, 'y'), (6, 'x'), (NULL, 'x'), (NULL, 'y');
        "#,
    )
    .await;
    let advice = |error: String| {
        let from = error.find("CREATE OR REPLACE TABLE").unwrap_or_else(|| panic!("no advice: {error}"));
        error[from..].split(';').next().expect("a statement").to_owned()
    };
    let advised = advice(db.err("DELETE FROM t WHERE a > 5 OR (a < 2 AND b = 'x')").await);
    db.ok(&advised).await;
    db.script(
        r#"
        SELECT a, b FROM t ORDER BY a, b;
        -> 2|y
        -> NULL|x
        -> NULL|y
        SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = 't' ORDER BY 1;
        -> a|YES
        -> b|YES
        CREATE OR REPLACE TABLE t (a INT DEFAULT 7, b TEXT NOT NULL) AS SELECT * FROM t WHERE (a = 2) IS NOT TRUE;
        INSERT INTO t (b) VALUES ('new');
        SELECT a, b FROM t ORDER BY a, b;
        -> 7|new
        -> NULL|x
        -> NULL|y
        CREATE OR REPLACE TABLE t AS SELECT * REPLACE (CASE WHEN b = 'new' THEN 8 ELSE a END AS a) FROM t;
        SELECT a, b FROM t ORDER BY a, b;
        -> 8|new
        -> NULL|x
        -> NULL|y
        CREATE OR REPLACE TABLE t AS SELECT * FROM t LIMIT 0;
        SELECT count(*) FROM t;
        -> 0
        "#,
    )
    .await;
}

/// Rows that others commit while a table is written anew from its own are not lost.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_come_while_a_table_is_written_anew() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 10)").await;
    let other = db.client();
    let runtime = tokio::runtime::Handle::current();
    // Between the rows that are read and the commit.
    db.on_rows(move || {
        let insert = std::thread::spawn(move || runtime.block_on(other.ok("INSERT INTO t VALUES (11)")));
        insert.join().expect("it is inserted");
    });
    let error = db.err("CREATE OR REPLACE TABLE t AS SELECT tests_hook(a) AS a FROM t WHERE a > 5").await;
    assert!(error.contains("table \"t\" was changed while it was being replaced"), "{error}");
    assert!(error.contains("run the statement again"), "{error}");
    assert_eq!(db.ok("SELECT count(*), max(a) FROM t").await, "11|11");
    db.ok("CREATE OR REPLACE TABLE t AS SELECT a FROM t WHERE a > 5").await;
    assert_eq!(db.ok("SELECT count(*), max(a) FROM t").await, "6|11");
    // What does not read the old rows takes their place whatever they are.
    db.ok("CREATE OR REPLACE TABLE t AS SELECT 1 AS a").await;
    assert_eq!(db.ok("SELECT * FROM t").await, "1");
}

/// Declared keys are not checked, so nothing is concluded from them.
#[tokio::test]
async fn keys() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE k (a INT, b TEXT, PRIMARY KEY (a), UNIQUE (b));
        -> CREATE TABLE
        -> notice: PRIMARY KEY and UNIQUE are written down, not checked
        INSERT INTO k VALUES (1, 'x'), (2, 'y');
        SELECT a, b FROM k GROUP BY a, b ORDER BY a;
        -> 1|x
        -> 2|y
        CREATE TABLE twice (a INT PRIMARY KEY, b INT UNIQUE);
        INSERT INTO twice VALUES (1, 1), (1, 2), (1, 1);
        SELECT DISTINCT a FROM twice;
        -> 1
        SELECT DISTINCT b FROM twice ORDER BY b;
        -> 1
        -> 2
        SELECT count(*) FROM (SELECT a FROM twice GROUP BY a);
        -> 1
        "#,
    )
    .await;
    let db = db.reopen().await;
    db.script("SELECT b FROM k GROUP BY a, b ORDER BY a;\n-> x\n-> y").await;
}

#[tokio::test]
async fn several_statements_need_several_calls() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE t AS SELECT 1 AS a; DROP TABLE t;
        !! Sql:
        SELECT * FROM t;
        !! does not exist
        "#,
    )
    .await;
    assert_eq!(db.ok("").await, "");
    assert_eq!(db.ok("  -- nothing\n ;").await, "");
}

/// Rows inside of the query of an INSERT have types of their own.
#[tokio::test]
async fn values_inside_of_an_insert() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE n (a INT, b INT);
        INSERT INTO n SELECT x * 10, y FROM (VALUES (1.7, 2)) q (x, y);
        INSERT INTO n WITH q (x, y) AS (VALUES (1.7, 2), (1.2, 3)) SELECT x * 10, y FROM q WHERE x > 1.5;
        INSERT INTO n SELECT round(x), y FROM (VALUES (2.7, 9)) q (x, y);
        INSERT INTO n SELECT length(x), y FROM (VALUES ('abc', 4), ('de', NULL)) q (x, y);
        INSERT INTO n SELECT x, 1 FROM (VALUES (1), (2)) q (x);
        INSERT INTO n SELECT a, 77 FROM n WHERE a IN (VALUES (17));
        INSERT INTO n SELECT coalesce(x, 5), y FROM (VALUES (NULL, 2)) q (x, y);
        INSERT INTO n (b) VALUES (8);
        SELECT a, b FROM n ORDER BY a, b;
        -> 1|1
        -> 2|1
        -> 2|NULL
        -> 3|4
        -> 3|9
        -> 5|2
        -> 17|2
        -> 17|2
        -> 17|77
        -> 17|77
        -> NULL|8
        CREATE TABLE c (a INT) AS SELECT x * 10 FROM (VALUES (1.7)) q (x);
        SELECT a FROM c;
        -> 17
        "#,
    )
    .await;
}

/// Subqueries among VALUES, and VALUES in brackets.
#[tokio::test]
async fn values_of_queries_and_in_brackets() {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE TABLE n (a INT, b TEXT);
        INSERT INTO n (VALUES (1, 's'), (2, 't'));
        INSERT INTO n VALUES (coalesce((SELECT max(a) FROM n), 0) + 1, 'u');
        INSERT INTO n (b, a) VALUES ('v', (SELECT count(*) FROM n));
        INSERT INTO n VALUES (9, (SELECT min(b) FROM n));
        SELECT a, b FROM n ORDER BY a, b;
        -> 1|s
        -> 2|t
        -> 3|u
        -> 3|v
        -> 9|s
        VALUES (1, (SELECT count(*) FROM n));
        -> 1|5
        SELECT x FROM (VALUES ((SELECT 7))) v (x) WHERE x > (SELECT 1);
        -> 7
        INSERT INTO n VALUES (1, 's'), ((SELECT 2), 't');
        !! subqueries among VALUES
        CREATE TABLE d (a DECIMAL(10, 2), b INT);
        INSERT INTO d VALUES (1.005, (SELECT 4));
        !! subqueries among VALUES
        SELECT count(*) FROM d;
        -> 0
        "#,
    )
    .await;
}

/// `FROM t` is `SELECT * FROM t`, wherever a query can stand.
#[tokio::test]
async fn from_without_a_select() {
    let db = Db::new().await;
    db.file("x.csv", "a,b\n1,x\n2,y\n");
    db.script(
        r#"
        CREATE TABLE t AS SELECT value AS a, value * 10 AS b FROM generate_series(1, 3);
        FROM t ORDER BY a LIMIT 2;
        -> 1|10
        -> 2|20
        FROM t SELECT b WHERE a = 3;
        -> 30
        FROM t AS x JOIN (SELECT 2 AS a, 'two' AS n) AS y USING (a);
        -> 2|20|two
        FROM '{dir}/x.csv' ORDER BY a;
        -> 1|x
        -> 2|y
        FROM (FROM t) WHERE a = 3;
        !! syntax error
        !! write SELECT * before that FROM
        SELECT sum(b) FROM (FROM t) AS q WHERE a IN (FROM (VALUES (1), (3)) AS v) AND EXISTS (FROM t);
        -> 40
        WITH w AS (FROM t) FROM w UNION ALL FROM t ORDER BY a, b LIMIT 3;
        -> 1|10
        -> 1|10
        -> 2|20
        CREATE TABLE z AS FROM t;
        INSERT INTO z FROM t;
        SELECT count(*), sum(b) FROM z;
        -> 6|120
        CREATE VIEW v AS FROM t;
        CREATE MATERIALIZED VIEW m AS FROM t;
        CREATE DERIVED TABLE d AS FROM t;
        INSERT INTO t VALUES (4, 40);
        SELECT sum(b) FROM v;
        -> 100
        SELECT sum(b) FROM m;
        -> 100
        SELECT sum(b) FROM d;
        -> 60
        COPY (FROM t) TO '{dir}/y.parquet';
        -> COPY 4
        SELECT sum(b) FROM '{dir}/y.parquet';
        -> 100
        PREPARE p AS FROM t ORDER BY a DESC LIMIT 1;
        EXECUTE p;
        -> 4|40
        "#,
    )
    .await;
    let db = db.reopen().await;
    db.script("SELECT a, b FROM v WHERE a = 4;\n-> 4|40\nFROM v ORDER BY a LIMIT 1;\n-> 1|10").await;
}
