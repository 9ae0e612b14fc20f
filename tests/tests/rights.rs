//! Users see and do what they were given, whatever is in the cache (promise 7).

mod leaks;
mod owners;
mod reach;

use nectarine_engine::Reused;
use nectarine_tests::db::Db;

/// A home with tables and two users.
async fn home() -> Db {
    let db = Db::new().await;
    db.script(
        r#"
        CREATE USER bob PASSWORD 'bob''s password';
        -> CREATE USER
        CREATE USER eve PASSWORD 'eve''s password';
        CREATE TABLE t AS SELECT * FROM (VALUES (1, 'one'), (2, 'two')) AS v (a, b);
        CREATE TABLE secret AS SELECT * FROM (VALUES (42, 'launch code')) AS v (a, b);
        CREATE SCHEMA zoo;
        CREATE TABLE zoo.ape AS SELECT 7 AS a;
        "#,
    )
    .await;
    db
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_granted_is_denied() {
    let db = home().await;
    let bob = db.user("bob");
    bob.script(
        r#"
        SELECT 1 + 1;
        -> 2
        SELECT * FROM t;
        !! Denied: permission denied for table "t"
        !! hint: GRANT SELECT ON public.t TO bob allows it
        SELECT count(*) FROM t;
        !! permission denied
        SELECT (SELECT max(a) FROM secret);
        !! permission denied for table "secret"
        SELECT 1 WHERE 42 IN (SELECT a FROM secret);
        !! permission denied
        WITH s AS (SELECT * FROM secret) SELECT count(*) FROM s;
        !! permission denied
        EXPLAIN SELECT * FROM secret;
        !! permission denied
        EXPLAIN ANALYZE SELECT * FROM secret;
        !! permission denied
        DESCRIBE secret;
        !! permission denied
        INSERT INTO t VALUES (3, 'three');
        !! permission denied
        INSERT INTO t SELECT * FROM secret;
        !! permission denied
        CREATE TABLE mine AS SELECT * FROM secret;
        !! permission denied
        CREATE VIEW mine AS SELECT 1;
        !! permission denied for schema "public"
        DROP TABLE t;
        !! permission denied
        ALTER TABLE t RENAME TO u;
        !! permission denied
        SHOW CREATE TABLE secret;
        !! permission denied
        PREPARE p AS SELECT * FROM secret;
        !! permission denied
        "#,
    )
    .await;
    db.ok("GRANT SELECT ON t TO bob").await;
    bob.script(
        r#"
        SELECT a, b FROM t ORDER BY a;
        -> 1|one
        -> 2|two
        INSERT INTO t VALUES (3, 'three');
        !! permission denied
        SELECT t.a FROM t JOIN secret ON t.a = secret.a;
        !! permission denied for table "secret"
        "#,
    )
    .await;
    db.ok("GRANT INSERT ON t TO eve").await;
    db.user("eve")
        .script(
            r#"
            INSERT INTO t VALUES (3, 'three');
            -> INSERT 1
            SELECT * FROM t;
            !! permission denied
            INSERT INTO t SELECT a + 1, b FROM t;
            !! permission denied
            EXPLAIN ANALYZE INSERT INTO t SELECT a, b FROM t;
            !! permission denied
            "#,
        )
        .await;
    assert_eq!(bob.ok("SELECT count(*) FROM t").await, "3");
}

/// Whatever others computed, and whatever one could read before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_reads_through_the_cache() {
    let db = home().await;
    let (bob, eve) = (db.user("bob"), db.user("eve"));
    db.ok("GRANT SELECT ON secret TO bob").await;
    let queries = [
        "SELECT * FROM secret",
        "SELECT b, sum(a) AS total FROM secret GROUP BY b",
        "SELECT count(*) FROM (SELECT DISTINCT b FROM secret) AS d",
    ];
    for sql in queries {
        let first = bob.ask(sql).await;
        let again = bob.ask(sql).await;
        assert_eq!(first.0, again.0, "{sql}");
        assert_eq!(again.1.reused, Reused::Exact, "{sql}: the test needs an answer in the cache");
        for _ in 0..2 {
            assert!(eve.err(sql).await.contains("permission denied"), "{sql}");
        }
        // The same result for another text.
        assert!(eve.err(&format!("{sql} -- again")).await.contains("permission denied"), "{sql}");
    }
    db.ok("GRANT SELECT ON secret TO eve").await;
    // The rows of a table as they are, are read from the table.
    for sql in &queries[1..] {
        let (_, receipt) = eve.ask(sql).await;
        assert_eq!(receipt.reused, Reused::Exact, "{sql}: what bob computed serves eve once she may read it");
    }
    db.ok("REVOKE SELECT ON secret FROM bob, eve").await;
    for sql in queries {
        for user in [&bob, &eve] {
            assert!(user.err(sql).await.contains("permission denied"), "{sql}");
        }
    }
    // Another table of the same name has other rights.
    db.ok("GRANT SELECT ON secret TO bob").await;
    bob.ok("SELECT * FROM secret").await;
    db.ok("DROP TABLE secret").await;
    db.ok("CREATE TABLE secret AS SELECT * FROM (VALUES (42, 'launch code')) AS v (a, b)").await;
    assert!(bob.err("SELECT * FROM secret").await.contains("permission denied"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_read_with_the_rights_of_who_made_them() {
    let db = home().await;
    let (bob, eve) = (db.user("bob"), db.user("eve"));
    db.script(
        r#"
        CREATE VIEW names AS SELECT b FROM secret;
        CREATE MATERIALIZED VIEW totals AS SELECT b, sum(a) AS total FROM secret GROUP BY b;
        GRANT SELECT ON names, totals TO bob;
        GRANT CREATE ON SCHEMA public TO bob, eve;
        "#,
    )
    .await;
    for _ in 0..2 {
        bob.script(
            r#"
            SELECT * FROM names;
            -> launch code
            SELECT total FROM totals;
            -> 42
            SELECT * FROM secret;
            !! permission denied for table "secret"
            "#,
        )
        .await;
        eve.script(
            r#"
            SELECT * FROM names;
            !! permission denied for view "names"
            SELECT * FROM totals;
            !! permission denied for materialized view "totals"
            "#,
        )
        .await;
    }
    // A view of bob's gives others what bob may read, and no more.
    bob.script(
        r#"
        CREATE VIEW relay AS SELECT * FROM names;
        CREATE VIEW reach AS SELECT * FROM secret;
        !! permission denied for table "secret"
        CREATE DERIVED TABLE reach AS SELECT * FROM secret WITH NO DATA;
        !! permission denied for table "secret"
        CREATE MATERIALIZED VIEW reach AS SELECT * FROM secret WITH NO DATA;
        !! permission denied for table "secret"
        CREATE TABLE reach AS SELECT * FROM secret;
        !! permission denied for table "secret"
        CREATE DERIVED TABLE copy AS SELECT * FROM names;
        "#,
    )
    .await;
    db.ok("GRANT SELECT ON relay, copy TO eve").await;
    assert_eq!(eve.ok("SELECT * FROM relay").await, "launch code");
    assert_eq!(eve.ok("SELECT * FROM copy").await, "launch code");
    db.ok("REVOKE SELECT ON names FROM bob").await;
    for (user, sql) in [(&eve, "SELECT * FROM relay"), (&bob, "SELECT * FROM relay"), (&db, "SELECT * FROM relay")] {
        assert!(user.err(sql).await.contains("permission denied for view \"names\""), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_schemas_and_owners() {
    let db = home().await;
    let (bob, eve) = (db.user("bob"), db.user("eve"));
    db.script(
        r#"
        CREATE ROLE keepers;
        GRANT ALL ON SCHEMA zoo TO keepers;
        GRANT keepers TO bob;
        "#,
    )
    .await;
    bob.script(
        r#"
        SELECT a FROM zoo.ape;
        -> 7
        CREATE TABLE zoo.bear (a INT);
        INSERT INTO zoo.bear VALUES (1), (2);
        -> INSERT 2
        DROP TABLE zoo.ape;
        !! permission denied
        CREATE OR REPLACE TABLE zoo.ape AS SELECT 8 AS a;
        !! permission denied
        ALTER TABLE zoo.bear RENAME TO public.bear;
        !! permission denied for schema "public"
        CREATE SCHEMA more;
        !! permission denied to make schemas
        "#,
    )
    .await;
    assert!(eve.err("SELECT * FROM zoo.bear").await.contains("permission denied"));
    db.script(
        r#"
        DROP USER bob;
        !! cannot drop "bob": it owns 1 object
        !! table zoo.bear
        REVOKE keepers FROM bob;
        "#,
    )
    .await;
    bob.script(
        r#"
        SELECT a FROM zoo.ape;
        !! permission denied
        SELECT count(*) FROM zoo.bear;
        -> 2
        DROP TABLE zoo.bear;
        -> DROP TABLE
        "#,
    )
    .await;
    db.ok("DROP USER bob").await;
    assert!(bob.err("SELECT 1").await.contains("user \"bob\" does not exist"));
    db.ok("CREATE USER admin2 PASSWORD 'long enough' ADMIN").await;
    let admin = db.user("admin2");
    admin.script("SELECT a FROM secret;\n-> 42\nGRANT SELECT ON secret TO eve;\nDROP TABLE secret;").await;
}

/// What is there to be seen, and what only administrators do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_users_see_and_may_not_do() {
    let db = home().await;
    let bob = db.user("bob");
    db.ok("GRANT SELECT ON t TO bob").await;
    db.ok("SELECT 'of the owner'").await;
    let file = db.file("data.csv", "a\n1\n");
    bob.script(
        r#"
        SELECT table_name FROM information_schema.tables WHERE table_schema = 'public';
        -> t
        SELECT table_name FROM system.tables;
        -> t
        SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = 'public';
        -> t
        SELECT count(*) FROM system.queries WHERE sql LIKE '%of the owner%';
        -> 1
        SELECT user_name FROM system.queries WHERE sql LIKE 'SELECT table_name FROM system%';
        -> bob
        SELECT * FROM system.cache_entries;
        !! permission denied to read system.cache_entries
        SELECT * FROM system.programs;
        !! permission denied
        SELECT * FROM system.extents;
        !! permission denied
        SELECT * FROM '{dir}/data.csv';
        !! permission denied to read files by their location
        CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{dir}/data.csv';
        !! permission denied
        COPY t FROM '{dir}/data.csv';
        !! permission denied
        COPY t TO '{dir}/out.csv';
        !! permission denied to write files of the server
        EXPLAIN ANALYZE COPY t TO '{dir}/out.csv';
        !! permission denied to write files of the server
        CREATE FUNCTION f(x INT) RETURNS INT RETURN x;
        !! permission denied
        EXPLAIN REUSE SELECT * FROM t;
        !! permission denied
        PURGE DERIVED FROM t;
        !! permission denied
        PIN SELECT * FROM t;
        !! permission denied
        VERIFY ALL;
        !! permission denied
        CREATE USER x PASSWORD 'long enough';
        !! permission denied to make users
        GRANT SELECT ON secret TO bob;
        !! permission denied for table "secret"
        GRANT SELECT ON SCHEMA public TO bob;
        !! permission denied to change rights on all tables of a schema
        ALTER USER bob ADMIN;
        !! permission denied
        ALTER USER eve PASSWORD 'long enough';
        !! permission denied
        ALTER USER bob PASSWORD 'another long one';
        -> ALTER USER
        SET nectarine.user_name = 'eve';
        !! does not change
        RESET nectarine.user_name;
        !! does not change
        SET datafusion.runtime.memory_limit = '100G';
        !! permission denied
        SET datafusion.execution.batch_size = 100;
        -> SET
        "#,
    )
    .await;
    assert!(!db.path("out.csv").exists() && file.exists());
    // Names are not told by the way of hints either.
    assert!(!bob.err("SELECT * FROM secre").await.contains("secret"));
    assert!(db.err("SELECT * FROM secre").await.contains("secret"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_are_told_nowhere() {
    let db = home().await;
    db.script(
        r#"
        CREATE USER x PASSWORD 'short';
        !! a password has at least 8 characters
        CREATE USER "a:b" PASSWORD 'long enough';
        !! no name for a user
        CREATE USER bob PASSWORD 'long enough';
        !! user or role "bob" already exists
        CREATE USER IF NOT EXISTS bob PASSWORD 'long enough';
        -> CREATE USER
        -> notice: "bob" already exists, skipping
        GRANT SELECT ON nowhere TO bob;
        !! table "nowhere" does not exist
        GRANT SELECT ON t TO nobody;
        !! user or role "nobody" does not exist
        GRANT CREATE ON t TO bob;
        !! there is no right "CREATE" here
        GRANT DELETE ON t TO bob;
        !! there is no right "DELETE" here
        DROP ROLE IF EXISTS nobody;
        -> DROP USER
        -> notice: "nobody" does not exist, skipping
        SELECT count(*) FROM system.queries WHERE sql LIKE '%long enough%' OR sql LIKE '%bob''s%';
        -> 1
        SELECT sql FROM system.queries WHERE sql LIKE 'CREATE USER eve%';
        -> CREATE USER eve PASSWORD '***';
        "#,
    )
    .await;
    db.engine().shutdown().await;
    let stored = std::fs::read(db.home().join("metadata.db")).expect("the metadata");
    let holds = |text: &str| stored.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(!holds("bob's password") && holds("$argon2id$"));
}
