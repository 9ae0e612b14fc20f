//! Ways around: through what is kept by name, by settings, and by names that files have.

use super::home;

/// A derived table is read with no more questions asked: they are all asked when it is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_derived_table_holds_what_its_maker_could_read() {
    let db = home().await;
    let bob = db.user("bob");
    db.file("salaries.csv", "name,salary\nceo,1000000\n");
    db.script(
        r#"
        GRANT CREATE ON SCHEMA public TO bob;
        CREATE TABLE "{dir}/salaries.csv" AS SELECT 1 AS a;
        GRANT SELECT ON "{dir}/salaries.csv" TO bob;
        GRANT SELECT, INSERT ON secret TO bob;
        SELECT 'of the owner';
        "#,
    )
    .await;
    bob.script(
        r#"
        CREATE VIEW v AS SELECT * FROM "{dir}/salaries.csv";
        CREATE VIEW above AS SELECT * FROM v;
        CREATE MATERIALIZED VIEW s AS SELECT * FROM secret WITH NO DATA;
        CREATE MATERIALIZED VIEW q AS SELECT sql FROM system.queries WITH NO DATA;
        "#,
    )
    .await;
    // The name stands for the file now, which bob may not read; and he may write to the other table, but not read it.
    db.script("DROP TABLE \"{dir}/salaries.csv\";\nREVOKE SELECT ON secret FROM bob;").await;
    for (name, because) in [
        ("v", "permission denied to read files by their location"),
        ("above", "permission denied to read files by their location"),
        ("s", "permission denied for table \"secret\""),
    ] {
        for sql in [
            format!("SELECT * FROM {name}"),
            format!("CREATE DERIVED TABLE d AS SELECT * FROM {name}"),
            format!("CREATE DERIVED TABLE d AS SELECT * FROM {name} WITH NO DATA"),
            format!("CREATE DERIVED TABLE d AS SELECT count(*) AS n FROM {name} WHERE false"),
            format!("CREATE TABLE d AS SELECT * FROM {name}"),
        ] {
            let error = bob.err(&sql).await;
            assert!(error.contains(because), "{sql}: {error}");
        }
    }
    // What only is kept looks as well.
    assert!(bob.err("CREATE VIEW w AS SELECT * FROM s").await.contains("permission denied for table \"secret\""));
    assert!(bob.err("PREPARE p AS SELECT * FROM s").await.contains("permission denied for table \"secret\""));
    // An administrator reads it with bob's rights, and keeps no more of it.
    assert!(
        db.err("CREATE DERIVED TABLE d AS SELECT * FROM s").await.contains("permission denied for table \"secret\"")
    );
    for sql in ["CREATE DERIVED TABLE d AS SELECT * FROM q", "CREATE DERIVED TABLE d AS SELECT * FROM q WITH NO DATA"] {
        assert!(bob.err(sql).await.contains("whose rows are not kept in extents"), "{sql}");
    }
    assert_eq!(bob.ok("SELECT count(*) FROM q WHERE sql LIKE '%of the owner%' AND sql NOT LIKE '%count%'").await, "0");
}

/// Who reads a view does not choose what its text means.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_means_the_same_whatever_its_reader_sets() {
    let db = home().await;
    let bob = db.user("bob");
    db.script(
        r#"
        CREATE TABLE plans AS SELECT * FROM (VALUES (42, 'launch', 'yes', 0.3), (1, 'open', 'no', 0.30000000000000004), (NULL, 'none', 'no', 2.0)) v (a, b, hidden, f);
        CREATE VIEW shown AS SELECT a, b FROM plans WHERE "hidden" <> 'yes' AND a > 0;
        CREATE MATERIALIZED VIEW kept AS SELECT a, b FROM plans WHERE "hidden" <> 'yes' AND a > 0;
        CREATE VIEW lowest AS SELECT b FROM plans ORDER BY a LIMIT 1;
        CREATE VIEW sums AS SELECT b FROM plans WHERE F = 0.1 + 0.2;
        CREATE FUNCTION third(x DOUBLE) RETURNS DOUBLE RETURN x / 3.0;
        CREATE VIEW thirds AS SELECT third(0.1) AS t;
        GRANT SELECT ON shown, kept, lowest, sums, thirds TO bob;
        GRANT CREATE ON SCHEMA public TO bob;
        "#,
    )
    .await;
    let queries = [
        "SELECT * FROM shown",
        "SELECT * FROM kept",
        "SELECT * FROM lowest",
        "SELECT * FROM sums",
        "SELECT * FROM thirds",
    ];
    let mut expected = vec![];
    for sql in queries {
        expected.push(db.ok(sql).await);
    }
    assert_eq!(expected[..4], ["1|open", "1|open", "open", "open"]);
    let dialects =
        ["mysql", "bigquery", "hive", "spark", "clickhouse", "sqlite", "databricks", "mssql", "snowflake", "duckdb"];
    let mut sets: Vec<String> =
        dialects.iter().map(|dialect| format!("SET datafusion.sql_parser.dialect = '{dialect}'")).collect();
    sets.extend(
        [
            "SET datafusion.sql_parser.default_null_ordering = 'nulls_first'",
            "SET datafusion.sql_parser.parse_float_as_decimal = true",
            "SET datafusion.sql_parser.enable_ident_normalization = false",
            "SET datafusion.sql_parser.map_string_types_to_utf8view = false",
        ]
        .map(str::to_owned),
    );
    for set in sets {
        let user = db.user("bob");
        if user.run(&set).await.is_err() {
            // Not every build has every dialect.
            continue;
        }
        for (sql, expected) in queries.iter().zip(&expected) {
            for _ in 0..2 {
                assert_eq!(user.ok(sql).await, *expected, "{set}: {sql}");
            }
        }
        user.ok("CREATE DERIVED TABLE d AS SELECT a, b FROM kept").await;
        assert_eq!(user.ok("SELECT * FROM d").await, "1|open", "{set}");
        user.ok("DROP DERIVED TABLE d").await;
    }
    // What is kept is what was looked at when it was made.
    bob.ok("SET datafusion.sql_parser.dialect = 'mysql'").await;
    for sql in [
        r#"CREATE VIEW mine AS SELECT a FROM shown WHERE b <> "yes""#,
        r#"CREATE MATERIALIZED VIEW mine AS SELECT a FROM shown WHERE b <> "yes""#,
        r#"CREATE DERIVED TABLE mine AS SELECT a FROM shown WHERE b <> "yes""#,
    ] {
        let error = bob.err(sql).await;
        assert!(error.contains("what is kept is read with the settings of the engine"), "{sql}: {error}");
        assert!(error.contains("hint: RESET datafusion.sql_parser.dialect"), "{sql}: {error}");
    }
    bob.ok("SET datafusion.sql_parser.parse_float_as_decimal = true").await;
    bob.ok("CREATE VIEW mine AS SELECT 0.1 + 0.2 AS x FROM shown WHERE b <> 'yes'").await;
    assert_eq!(bob.ok("SELECT x FROM mine").await, "0.30000000000000004");
    // What stands on what does not depend on it either.
    db.client().script("SET datafusion.sql_parser.dialect = 'mysql';\nDROP TABLE plans CASCADE;").await;
    assert_eq!(db.ok("SELECT count(*) FROM system.tables WHERE table_name IN ('shown', 'kept', 'mine')").await, "0");
}

/// Nobody puts a table where others read a file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_name_nothing_as_files_are_named() {
    let db = home().await;
    let bob = db.user("bob");
    db.file("x.csv", "a\n1\n");
    db.script("GRANT CREATE ON SCHEMA public TO bob;\nGRANT SELECT ON t TO bob;").await;
    bob.ok("CREATE TABLE mine AS SELECT 666 AS a").await;
    for sql in [
        "CREATE TABLE \"{dir}/x.csv\" AS SELECT 666 AS a",
        "CREATE TABLE \"{dir}/x.csv\" (a INT)",
        "CREATE OR REPLACE TABLE \"{dir}/x.csv\" AS SELECT 666 AS a",
        "CREATE TABLE IF NOT EXISTS \"x.csv\" AS SELECT 666 AS a",
        "CREATE VIEW \"s3://bucket/x\" AS SELECT 666 AS a",
        "CREATE MATERIALIZED VIEW \"*.parquet\" AS SELECT 666 AS a",
        "CREATE DERIVED TABLE \"~/x\" AS SELECT a FROM mine",
        "ALTER TABLE mine RENAME TO \"{dir}/x.csv\"",
    ] {
        let error = bob.err(sql).await;
        assert!(error.contains("permission denied to name tables and views as files are named"), "{sql}: {error}");
        assert!(error.contains("hint: choose a name without slashes and stars"), "{sql}: {error}");
    }
    assert_eq!(db.ok("SELECT * FROM '{dir}/x.csv'").await, "1");
    // Whoever has the home may: it is he who reads files.
    db.script("CREATE TABLE \"{dir}/x.csv\" AS SELECT 7 AS a;\nSELECT * FROM '{dir}/x.csv';\n-> 7").await;
    db.ok("ALTER TABLE \"{dir}/x.csv\" OWNER TO bob").await;
    assert!(
        bob.err("CREATE OR REPLACE TABLE \"{dir}/x.csv\" AS SELECT 8 AS a").await.contains("permission denied to name")
    );
    bob.ok("ALTER TABLE \"{dir}/x.csv\" RENAME TO plain").await;
}
