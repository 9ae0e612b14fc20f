//! The program store: every program that ran, once, for ever, small.

use nectarine_tests::db::Db;
use nectarine_tests::files;

use super::{QUERY, table};

#[tokio::test(flavor = "multi_thread")]
async fn every_program_is_kept_once() {
    let db = table().await;
    for sql in [QUERY, QUERY, &QUERY.to_lowercase(), "SELECT n FROM t WHERE n = 17", "SELECT n FROM t WHERE n = 17"] {
        db.ok(sql).await;
    }
    // Neither reads a table, and what can not be recognised has no program.
    db.ok("SELECT 1").await;
    db.ok("SELECT random() FROM t LIMIT 1").await;
    db.err("SELECT n / (n - n) FROM t").await;
    let programs = "SELECT sql, runs, functions, default_schema FROM system.programs ORDER BY first_run_at";
    let expected = format!("{QUERY}|3||public\nSELECT n FROM t WHERE n = 17|2||public");
    assert_eq!(db.ok(programs).await, expected);
    let inputs = db.ok("SELECT inputs FROM system.programs LIMIT 1").await;
    for part in ["public.t: {", "{dir}/t/", "parquet", "[\"n\",\"Int64\"]"] {
        assert!(inputs.contains(part), "{part} in {inputs}");
    }
    let version = db.ok("SELECT DISTINCT engine_version FROM system.programs").await;
    assert!(version.starts_with(env!("CARGO_PKG_VERSION")), "{version}");
    // Results go, tables go, the process goes; programs stay, and runs are counted on.
    db.cache().clear().await;
    let db = db.reopen().await;
    assert_eq!(db.ok(programs).await, expected);
    db.ok(QUERY).await;
    let two = db.second().await;
    two.ok(QUERY).await;
    two.ok(QUERY).await;
    // What a process counted is written when it looks, or closes.
    two.ok(programs).await;
    assert_eq!(db.ok(programs).await, expected.replace("|3|", "|6|"));
    db.ok("DROP TABLE t").await;
    assert_eq!(db.ok("SELECT count(*) FROM system.programs").await, "2");
}

/// The same program over another table says so in SQL of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_over_other_tables_has_its_own_source() {
    let db = table().await;
    files::numbers(&db.path("u/a.parquet"), 0..10);
    db.ok("CREATE EXTERNAL TABLE u STORED AS PARQUET LOCATION '{dir}/u/'").await;
    db.ok("SELECT sum(n) FROM t").await;
    db.ok("SELECT sum(n) FROM u").await;
    let found = db.ok("SELECT count(*), count(DISTINCT program) FROM system.programs").await;
    assert_eq!(found, "2|1");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_and_settings_are_kept() {
    let db = table().await;
    db.ok("CREATE FUNCTION one(x BIGINT) RETURNS BIGINT RETURN x + 1").await;
    db.ok("CREATE FUNCTION two(x BIGINT) RETURNS BIGINT RETURN one(x) + 1").await;
    db.ok("CREATE FUNCTION three(x BIGINT) RETURNS BIGINT RETURN x + 3").await;
    db.ok("CREATE VIEW v AS SELECT two(n) AS m FROM t").await;
    db.ok("SET datafusion.execution.time_zone = '+02:00'").await;
    db.ok("SELECT sum(m) FROM v").await;
    let functions = db.ok("SELECT functions FROM system.programs").await;
    assert!(functions.contains("RETURN x + 1") && functions.contains("RETURN one(x) + 1"), "{functions}");
    assert!(!functions.contains("x + 3"), "{functions}");
    assert_eq!(db.ok("SELECT views FROM system.programs").await, "public.v: SELECT two(n) AS m FROM t");
    let settings = db.ok("SELECT settings FROM system.programs").await;
    assert!(settings.contains("datafusion.execution.time_zone = +02:00"), "{settings}");
}

/// TPC-H takes no more than 2 KB a program, all in all.
#[tokio::test(flavor = "multi_thread")]
async fn programs_are_small() {
    let db = Db::new().await;
    for (table, columns) in TPCH {
        let values: Vec<String> = columns
            .split(' ')
            .map(|column| {
                let value = match column.rsplit_once('_').map_or(column, |(_, last)| last) {
                    last if last.ends_with("date") => "DATE '1995-06-17'",
                    last if last.ends_with("key") || last == "linenumber" || last == "size" => "CAST(1 AS BIGINT)",
                    "availqty" | "shippriority" => "CAST(1 AS INT)",
                    "quantity" | "extendedprice" | "discount" | "tax" | "acctbal" | "totalprice" | "retailprice"
                    | "supplycost" => "CAST(1 AS DECIMAL(15, 2))",
                    _ => "'text'",
                };
                format!("{value} AS {column}")
            })
            .collect();
        db.ok(&format!("CREATE TABLE {table} AS SELECT {}", values.join(", "))).await;
    }
    let before = stored_bytes(&db).await;
    for number in 1..=22 {
        let path = format!("{}/../benchmarks/queries/q{number:02}.sql", env!("CARGO_MANIFEST_DIR"));
        // Depends on the scale of the data.
        let sql = std::fs::read_to_string(path).expect("a query").replace(":fraction", "0.0001");
        db.ok(sql.trim().trim_end_matches(';')).await;
    }
    assert_eq!(db.ok("SELECT count(*), sum(runs) FROM system.programs").await, "22|22");
    let told: f64 = db.ok("SELECT avg(bytes_stored) FROM system.programs").await.parse().expect("a number");
    assert!(told <= 2048.0, "{told} bytes a program by its own account");
    // With all that programs share: texts, encodings of prefixes.
    let per_program = (stored_bytes(&db).await - before) / 22;
    assert!(per_program <= 2048, "{per_program} bytes a program (and {told} by its own account)");
}

/// Bytes of everything that the program store holds.
async fn stored_bytes(db: &Db) -> i64 {
    use sqlx::{Connection, SqliteConnection};
    let metadata = db.home().join("metadata.db");
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", metadata.display())).await.expect("a file");
    let sum = "SELECT (SELECT coalesce(sum(length(content) + 32 + 16), 0) FROM program_texts)
               + (SELECT coalesce(sum(length(content) + 3 * 32 + 40), 0) FROM program_sources)
               + (SELECT coalesce(sum(length(p.encoding) + length(p.description) + 32 + 16), 0) FROM cache_programs AS p
                  WHERE EXISTS (SELECT 1 FROM program_sources AS s WHERE s.program = p.program))";
    let bytes: i64 = sqlx::query_scalar(sum).fetch_one(&mut connection).await.expect("a number");
    connection.close().await.expect("it closes");
    bytes
}

const TPCH: [(&str, &str); 8] = [
    ("region", "r_regionkey r_name r_comment"),
    ("nation", "n_nationkey n_name n_regionkey n_comment"),
    ("part", "p_partkey p_name p_mfgr p_brand p_type p_size p_container p_retailprice p_comment"),
    ("supplier", "s_suppkey s_name s_address s_nationkey s_phone s_acctbal s_comment"),
    ("partsupp", "ps_partkey ps_suppkey ps_availqty ps_supplycost ps_comment"),
    ("customer", "c_custkey c_name c_address c_nationkey c_phone c_acctbal c_mktsegment c_comment"),
    (
        "orders",
        "o_orderkey o_custkey o_orderstatus o_totalprice o_orderdate o_orderpriority o_clerk o_shippriority o_comment",
    ),
    (
        "lineitem",
        "l_orderkey l_partkey l_suppkey l_linenumber l_quantity l_extendedprice l_discount l_tax l_returnflag \
         l_linestatus l_shipdate l_commitdate l_receiptdate l_shipinstruct l_shipmode l_comment",
    ),
];
