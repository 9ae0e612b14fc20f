//! NULLs that files have, lack, or do not tell of.

use nectarine_tests::db::Db;

/// Writes `rows` (VALUES of a BIGINT and a text) into a Parquet file.
async fn write(db: &Db, name: &str, rows: &str) {
    db.path(name);
    let query = format!("SELECT * FROM (VALUES {rows}) AS v (a, s)");
    db.ok(&format!("COPY ({query}) TO '{{dir}}/{name}' STORED AS PARQUET")).await;
}

#[tokio::test]
async fn a_null_that_arrives_is_seen() {
    for reuse in ["on", "off"] {
        let db = Db::with(&[("nectarine.reuse", reuse)]).await;
        write(&db, "t/0.parquet", "(1, 'x'), (2, 'y')").await;
        db.script(
            r#"
            CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/';
            CREATE VIEW v AS SELECT count(*) AS n FROM t WHERE a IS NULL;
            PREPARE p AS SELECT count(*) FROM t WHERE a IS NULL;
            "#,
        )
        .await;
        let queries = [
            "SELECT count(*) FROM t WHERE a IS NULL",
            "SELECT n FROM v",
            "EXECUTE p",
            "SELECT count(*) - count(a) FROM t",
            "SELECT count(*) FROM '{dir}/t/*.parquet' WHERE a IS NULL",
            "SELECT 1 - count(*) FROM (VALUES (7)) AS x (a) WHERE x.a NOT IN (SELECT a FROM t)",
        ];
        for query in queries {
            assert_eq!(db.ok(query).await, "0", "{query}");
        }
        write(&db, "t/1.parquet", "(NULL, 'z'), (3, NULL)").await;
        for query in queries {
            assert_eq!(db.ok(query).await, "1", "{query}");
        }
        // And gone with its file.
        std::fs::remove_file(db.path("t/1.parquet")).expect("it was there");
        for query in queries {
            assert_eq!(db.ok(query).await, "0", "{query}");
        }
    }
}

#[tokio::test]
async fn tables_declare_what_they_declared() {
    let db = Db::new().await;
    write(&db, "t/0.parquet", "(1, 'x')").await;
    db.script(
        r#"
        CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/';
        SELECT a FROM t WHERE a IS NOT NULL;
        -> 1
        SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = 't' ORDER BY 1;
        -> a|YES
        -> s|YES
        DESCRIBE t;
        -> a|Int64|YES
        -> s|Utf8View|YES
        CREATE TABLE m AS SELECT a, s FROM t;
        INSERT INTO m VALUES (NULL, NULL);
        -> INSERT 1
        PREPARE i (BIGINT) AS INSERT INTO m VALUES ($1, 'p');
        CREATE TABLE k (a BIGINT);
        INSERT INTO k VALUES (1);
        SELECT count(*) FROM k WHERE a IS NULL;
        -> 0
        INSERT INTO k SELECT NULL;
        -> INSERT 1
        INSERT INTO k SELECT a FROM m;
        -> INSERT 2
        SELECT count(*) FROM k WHERE a IS NULL;
        -> 2
        EXECUTE i(NULL);
        -> INSERT 1
        SELECT count(*) FROM m WHERE a IS NULL;
        -> 2
        "#,
    )
    .await;
}

#[tokio::test]
async fn files_that_lack_a_column_or_declare_otherwise() {
    let db = Db::new().await;
    write(&db, "t/0.parquet", "(1, 'x'), (2, 'y')").await;
    db.script(
        r#"
        CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/';
        COPY (SELECT 3 AS a WHERE false) TO '{dir}/t/1.parquet' STORED AS PARQUET;
        SELECT count(*), count(s), max(s) FROM t;
        -> 2|2|y
        SELECT a, s FROM t WHERE s IS NOT NULL ORDER BY a;
        -> 1|x
        -> 2|y
        COPY (SELECT CAST(3 AS INT) AS a, 'z' AS s) TO '{dir}/t/2.parquet' STORED AS PARQUET;
        SELECT a, s FROM t WHERE a NOT IN (SELECT a FROM t WHERE a < 3) ORDER BY a;
        -> 3|z
        COPY (SELECT 4 AS a) TO '{dir}/t/3.parquet' STORED AS PARQUET;
        SELECT a, s FROM t WHERE s IS NULL;
        -> 4|NULL
        "#,
    )
    .await;
}

/// `NOT IN` is planned as a plain anti join only while no file has a NULL, and answers as SQL says in either case.
#[tokio::test]
async fn not_in_minds_nulls_where_there_may_be_any() {
    // What there is, as the outer and as the inner side; rows of the outer side that are not in the inner.
    const A: &str = "(1, 'x'), (2, 'y'), (3, 'z')";
    const B: &str = "(2, 'y'), (7, 'q')";
    let queries = [
        "SELECT a FROM t WHERE a NOT IN (SELECT a FROM u) ORDER BY 1",
        "SELECT k FROM (SELECT a AS k, s FROM t WHERE s <> '-') AS i WHERE k NOT IN (SELECT a FROM u WHERE a > 0) ORDER BY 1",
        "SELECT t.a FROM t JOIN t AS o ON t.a = o.a WHERE o.a NOT IN (SELECT u.a FROM u JOIN u AS w ON u.a = w.a) ORDER BY 1",
        "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a WHERE t.a NOT IN (SELECT w.a FROM u AS v LEFT JOIN u AS w ON v.a = w.a - 5) ORDER BY 1",
    ];
    // The last one's inner side is padded with NULLs whatever its files hold.
    let without_null = ["1\n3", "1\n3", "1\n3", ""];
    for reuse in ["off", "on"] {
        let db = Db::with(&[("nectarine.reuse", reuse)]).await;
        write(&db, "t/0.parquet", A).await;
        write(&db, "u/0.parquet", B).await;
        db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
        db.ok("CREATE EXTERNAL TABLE u STORED AS PARQUET LOCATION '{dir}/u/'").await;
        db.ok("SET datafusion.explain.physical_plan_only = true").await;
        let minds = async |query: &str| db.ok(&format!("EXPLAIN {query}")).await.contains("null_aware");
        for (query, rows) in queries.iter().zip(without_null) {
            assert_eq!(minds(query).await, rows.is_empty(), "{query}");
            assert_eq!(db.ok(query).await, rows, "{query}");
        }
        // NULL is neither in nor not in.
        write(&db, "t/1.parquet", "(NULL, 'n'), (9, NULL)").await;
        for query in &queries[..1] {
            assert!(minds(query).await, "{query}");
            assert_eq!(db.ok(query).await, "1\n3\n9", "{query}");
        }
        // Nothing is known not to be in a set that holds NULL.
        write(&db, "u/1.parquet", "(NULL, 'n'), (8, 'm')").await;
        assert!(minds(queries[0]).await);
        assert_eq!(db.ok(queries[0]).await, "");
        assert_eq!(
            db.ok("SELECT a FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL) ORDER BY 1").await,
            "1\n3\n9"
        );
        // A set without rows holds not even NULL.
        assert_eq!(db.ok("SELECT count(*) FROM t WHERE a NOT IN (SELECT a FROM u WHERE a > 100)").await, "5");
        std::fs::remove_file(db.path("u/1.parquet")).expect("it was there");
        std::fs::remove_file(db.path("t/1.parquet")).expect("it was there");
        assert!(!minds(queries[0]).await);
        assert_eq!(db.ok(queries[0]).await, "1\n3");
    }
}
