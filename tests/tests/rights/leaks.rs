//! What a user could learn or take beside the rows that he may read.

use nectarine_tests::db::Db;

use super::home;

/// Where the server keeps its files is nobody's business.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_the_server_have_no_names() {
    let db = home().await;
    let bob = db.user("bob");
    db.file("ext.csv", "a\n1\n2\n");
    let folder = db.path("ext.csv").parent().expect("a folder").display().to_string();
    let script = "CREATE EXTERNAL TABLE ext STORED AS CSV LOCATION '{dir}/ext.csv' OPTIONS ('format.has_header' 'true');\n\
                  CREATE VIEW large AS SELECT a FROM ext WHERE a > 1;\n\
                  GRANT SELECT ON t, ext, large TO bob;";
    db.script(script).await;
    let home = db.home().display().to_string();
    let told = |text: &str| {
        let bare = |path: &str| path.trim_start_matches('/').to_owned();
        text.contains("{dir}") || text.contains(&bare(&home)) || text.contains(&bare(&folder))
    };
    assert!(told(&db.ok("EXPLAIN SELECT * FROM ext").await), "the test needs a plan that tells");
    for sql in [
        "SELECT * FROM system.tables",
        "SHOW CREATE TABLE ext",
        "SHOW CREATE TABLE t",
        "EXPLAIN SELECT * FROM ext",
        "EXPLAIN SELECT * FROM t",
        "EXPLAIN VERBOSE SELECT * FROM ext",
        "EXPLAIN VERBOSE SELECT * FROM large",
        "EXPLAIN ANALYZE SELECT * FROM ext",
        "EXPLAIN ANALYZE VERBOSE SELECT a, count(*) FROM t GROUP BY a",
        "EXPLAIN FORMAT TREE SELECT * FROM large",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM information_schema.views",
        "SELECT * FROM information_schema.columns",
        "DESCRIBE ext",
        "SHOW TABLES",
    ] {
        let text = bob.ok(sql).await;
        assert!(!text.is_empty() && !told(&text), "{sql}: {text}");
    }
    assert_eq!(bob.ok("SELECT count(location), count(*) FROM system.tables").await, "0|3");
    // Nor do texts of what was made from files, settings, and the plan of an INSERT.
    db.file("rows/1.csv", "a\n1\n");
    db.script(
        r#"
        CREATE VIEW placed AS SELECT a, 'x/y' AS b FROM '{dir}/ext.csv';
        CREATE MATERIALIZED VIEW kept AS SELECT sum(a) AS s FROM '{dir}/ext.csv';
        CREATE DERIVED TABLE frozen AS SELECT a FROM public."{dir}/ext.csv";
        CREATE TABLE copied AS SELECT a FROM '{dir}/ext.csv';
        CREATE EXTERNAL TABLE written STORED AS CSV LOCATION '{dir}/rows/' OPTIONS ('format.has_header' 'true');
        GRANT SELECT ON placed, kept, frozen, copied TO bob;
        GRANT INSERT ON written TO bob;
        "#,
    )
    .await;
    for sql in [
        "SHOW CREATE VIEW placed",
        "SHOW CREATE VIEW kept",
        "SHOW CREATE TABLE frozen",
        "SHOW CREATE TABLE copied",
        "SELECT table_name, definition FROM information_schema.views",
        "SELECT * FROM information_schema.df_settings",
        "SHOW ALL",
        "SELECT * FROM system.settings",
        "EXPLAIN INSERT INTO written VALUES (2)",
        "EXPLAIN ANALYZE INSERT INTO written VALUES (3)",
    ] {
        let text = bob.ok(sql).await;
        assert!(!text.is_empty() && !told(&text), "{sql}: {text}");
    }
    let shown = "nectarine|public|placed|CREATE VIEW placed AS SELECT a, 'x/y' AS b FROM '..'";
    assert_eq!(bob.ok("SHOW CREATE VIEW placed").await, shown);
    let count = "SELECT count(*) FROM information_schema.df_settings WHERE name = 'datafusion.runtime.temp_directory'";
    assert_eq!((bob.ok(count).await, db.ok(count).await), ("0".to_owned(), "1".to_owned()));
    assert_eq!(db.ok("SELECT count(location) > 0 FROM system.tables").await, "true");
}

/// What is wrong with a file is told without its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_name_no_files() {
    let db = home().await;
    let bob = db.user("bob");
    let file = db.file("ext.csv", "a,b\n1,x\n");
    let folder = db.path("ext.csv").parent().expect("a folder").display().to_string();
    db.script(
        r#"
        CREATE EXTERNAL TABLE ext STORED AS CSV LOCATION '{dir}/ext.csv' OPTIONS ('format.has_header' 'true');
        CREATE VIEW placed AS SELECT a, b FROM '{dir}/ext.csv';
        CREATE DERIVED TABLE frozen AS SELECT a FROM ext WITH NO DATA;
        GRANT SELECT ON ext, placed, frozen TO bob;
        "#,
    )
    .await;
    let queries = ["SELECT * FROM ext", "SELECT * FROM placed", "SELECT * FROM frozen"];
    let look = async |what: &str| {
        for sql in queries {
            let (his, ours) = (bob.err(sql).await, db.err(sql).await);
            assert!(ours.contains("{dir}"), "{what}: the test needs an error that tells: {sql}: {ours}");
            assert!(!his.contains("{dir}") && !his.contains(folder.trim_start_matches('/')), "{what}: {sql}: {his}");
        }
    };
    std::fs::write(&file, "a,b\n1,\"x\n2,y\n").expect("a file");
    nectarine_tests::files::rest().await;
    look("a quote that is never closed").await;
    std::fs::remove_file(&file).expect("it was there");
    look("gone").await;
    assert_eq!(bob.ok("SELECT count(*) FROM system.queries WHERE error LIKE '%ext.csv%'").await, "0");
}

/// The least and the greatest value of a column are those of rows that a view leaves out, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_tell_no_figures_of_hidden_rows() {
    let db = home().await;
    let bob = db.user("bob");
    db.script("CREATE VIEW low AS SELECT a FROM secret WHERE a < 10;\nGRANT SELECT ON low TO bob;").await;
    let queries = [
        "EXPLAIN SELECT * FROM low",
        "EXPLAIN VERBOSE SELECT * FROM low",
        "EXPLAIN ANALYZE SELECT * FROM low",
        "EXPLAIN ANALYZE VERBOSE SELECT * FROM low",
        "EXPLAIN FORMAT TREE SELECT * FROM low",
    ];
    for set in ["SET datafusion.explain.show_statistics = true", "RESET datafusion.explain.show_statistics"] {
        bob.ok(set).await;
        for sql in queries {
            let told = bob.ok(sql).await;
            assert!(
                !told.contains("(42)") && !told.contains("Max=") && !told.contains(", statistics=["),
                "{set}: {sql}: {told}"
            );
        }
    }
    assert!(db.ok("EXPLAIN VERBOSE SELECT * FROM low").await.contains("Max="), "the test needs figures to tell");
}

/// Whoever has the home may call himself what he likes: his statements are not those of a user of that name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_of_the_home_are_nobodys() {
    let db = Db::with(&[("user_name", "bob")]).await;
    db.ok("CREATE USER bob PASSWORD 'long enough'").await;
    db.ok("SELECT 'something secret'").await;
    let bob = db.user("bob");
    assert_eq!(bob.ok("SELECT count(*) FROM system.queries WHERE sql LIKE 'SELECT ''some%'").await, "0");
    assert_eq!(db.ok("SELECT count(*) FROM system.queries WHERE sql LIKE 'SELECT ''some%'").await, "1");
    assert_eq!(bob.ok("SELECT count(*) > 0 FROM system.queries WHERE user_name = 'bob'").await, "true");
}

/// Settings are one's own as long as they take nothing from others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_others() {
    let db = Db::with(&[("query_memory", "64MB"), ("statement_timeout", "100")]).await;
    db.ok("CREATE USER bob PASSWORD 'long enough'").await;
    let bob = db.user("bob");
    for sql in [
        "SET datafusion.execution.batch_size = 1000000000000",
        "SET datafusion.execution.target_partitions = 100000",
        "SET datafusion.sql_parser.recursion_limit = 1000000",
        "SET datafusion.execution.parquet.bloom_filter_ndv = 1000000000000",
        "SET datafusion.runtime.memory_limit = '100G'",
        "SET nectarine.verify_extents = false",
        "SET nectarine.extent_bytes_max = '1kB'",
        "SET nectarine.cache.threshold = 1",
        "SET nectarine.query_log_keep = 0",
        "SET nectarine.query_memory = '1GB'",
        "SET nectarine.query_memory = '100%'",
        "SET nectarine.statement_timeout = 0",
        "SET nectarine.statement_timeout = 101",
    ] {
        assert!(bob.err(sql).await.contains("permission denied"), "{sql}");
    }
    for sql in [
        "SET datafusion.execution.batch_size = 100",
        "SET datafusion.execution.time_zone = 'Europe/Berlin'",
        "SET datafusion.catalog.default_schema = 'public'",
        "SET datafusion.optimizer.prefer_hash_join = false",
        "SET datafusion.explain.format = 'tree'",
        "SET datafusion.sql_parser.dialect = 'PostgreSQL'",
        "SET nectarine.reuse = 'off'",
        "SET nectarine.query_memory = '32MB'",
        "SET nectarine.statement_timeout = 10",
        "RESET nectarine.statement_timeout",
        "RESET nectarine.query_memory",
    ] {
        bob.ok(sql).await;
    }
    assert!(bob.err("SET nectarine.quer_memory = '1MB'").await.contains("unknown setting"));
    db.ok("SET nectarine.query_memory = '100%'").await;
}

/// A statement that needs more than its part fails alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_one_statement() {
    let db = Db::with(&[("memory_limit", "512MB"), ("datafusion.execution.target_partitions", "2")]).await;
    // The side of a join that is kept cannot spill.
    let hungry =
        "SELECT count(*) FROM generate_series(1, 2000000) AS s (a) JOIN generate_series(1, 2000000) AS r (b) ON a = b";
    assert_eq!(db.ok(hungry).await, "2000000");
    db.ok("SET nectarine.query_memory = '12MB'").await;
    let error = db.err(hungry).await;
    assert!(error.contains("more memory than nectarine.query_memory gives it"), "{error}");
    assert!(error.contains("Resources"), "{error}");
    assert_eq!(db.client().ok(hungry).await, "2000000", "others have theirs");
    // What can spill does.
    let sorted = "SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY a DESC) AS n FROM generate_series(1, 3000000) AS s (a))";
    assert_eq!(db.ok(sorted).await, "3000000");
    db.ok("CREATE TABLE kept AS SELECT a FROM generate_series(1, 100000) AS s (a)").await;
    assert!(db.err("SET nectarine.query_memory = '0'").await.contains("more than nothing"));
}

/// A view that is replaced stays whose it was, and reads with his rights.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_view_is_whose_it_was() {
    let db = home().await;
    let (bob, eve) = (db.user("bob"), db.user("eve"));
    db.script("GRANT SELECT ON t TO bob;\nGRANT CREATE ON SCHEMA public TO bob;").await;
    bob.ok("CREATE VIEW v AS SELECT a FROM t").await;
    bob.ok("GRANT SELECT ON v TO eve").await;
    assert_eq!(eve.ok("SELECT count(*) FROM v").await, "2");
    // An administrator's statement must not give bob's readers what bob may not read.
    db.ok("CREATE OR REPLACE VIEW v AS SELECT a FROM secret").await;
    assert!(eve.err("SELECT * FROM v").await.contains("permission denied for table \"secret\""));
    assert_eq!(bob.ok("SELECT owner FROM system.tables WHERE table_name = 'v'").await, "bob");
    bob.ok("CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM t").await;
    assert_eq!(eve.ok("SELECT max(a) FROM v").await, "3");
    assert!(eve.err("CREATE OR REPLACE VIEW v AS SELECT 1").await.contains("permission denied"));
}
