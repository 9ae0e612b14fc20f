//! Statements that differ in one thing and must not share a key.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::prelude::SessionConfig;
use nectarine_catalog::FileFormatKind;

use crate::canonical::fixture::{Fixture, Source, extent, schema};

/// Each inner list: all different from each other, by one attribute of the first.
pub(crate) const DIFFERENT: &[&[&str]] = &[
    // Literals and their types.
    &[
        "SELECT a FROM t WHERE a = 1",
        "SELECT a FROM t WHERE a = 2",
        "SELECT a FROM t WHERE a = -1",
        "SELECT a FROM t WHERE a = NULL::bigint",
        "SELECT a FROM t WHERE a <> 1",
        "SELECT a FROM t WHERE a < 1",
        "SELECT a FROM t WHERE a <= 1",
        "SELECT a FROM t WHERE a > 1",
        "SELECT a FROM t WHERE a >= 1",
        "SELECT a FROM t WHERE b = 1",
        "SELECT a FROM t WHERE c = 1",
        "SELECT a FROM t WHERE a IS DISTINCT FROM 1",
        "SELECT a FROM t WHERE a IS NOT DISTINCT FROM 1",
        "SELECT a FROM t WHERE NOT (a = 1 OR b = 1)",
        "SELECT a FROM t WHERE a = 1 AND b = 1",
        "SELECT a FROM t WHERE a = 1 OR b = 1",
        "SELECT a FROM t WHERE a IS NULL",
        "SELECT a FROM t WHERE a IS NOT NULL",
        "SELECT a FROM t WHERE f = 1",
        "SELECT a FROM t WHERE f = 1.5",
        "SELECT b FROM t WHERE a = 1",
        "SELECT a, b FROM t WHERE a = 1",
        "SELECT a FROM u WHERE a = 1",
        "SELECT a FROM t",
    ],
    &[
        "SELECT 1, a FROM t",
        "SELECT 1::int, a FROM t",
        "SELECT 1::smallint, a FROM t",
        "SELECT 1::double, a FROM t",
        "SELECT 1::real, a FROM t",
        "SELECT 1::decimal(10,2), a FROM t",
        "SELECT 1::decimal(12,2), a FROM t",
        "SELECT 1.00::decimal(10,1), a FROM t",
        "SELECT '1', a FROM t",
        "SELECT true, a FROM t",
        "SELECT NULL, a FROM t",
        "SELECT NULL::bigint, a FROM t",
        "SELECT DATE '2024-01-01', a FROM t",
        "SELECT DATE '2024-01-02', a FROM t",
        "SELECT TIMESTAMP '2024-01-01', a FROM t",
        "SELECT TIMESTAMP '2024-01-01 00:00:00.000001', a FROM t",
        "SELECT INTERVAL '1 day', a FROM t",
        "SELECT INTERVAL '24 hours', a FROM t",
        "SELECT INTERVAL '1 month', a FROM t",
        "SELECT X'01', a FROM t",
        "SELECT X'0102', a FROM t",
        "SELECT 0.0::double, a FROM t",
        "SELECT -0.0::double, a FROM t",
        "SELECT 'NaN'::double, a FROM t",
        "SELECT [1, 2], a FROM t",
        "SELECT [2, 1], a FROM t",
        "SELECT [1, NULL], a FROM t",
        "SELECT struct(1, 2), a FROM t",
        "SELECT struct(1, 3), a FROM t",
    ],
    // Arithmetic and casts.
    &[
        "SELECT a + b FROM t",
        "SELECT a - b FROM t",
        "SELECT b - a FROM t",
        "SELECT a * b FROM t",
        "SELECT a / b FROM t",
        "SELECT a % b FROM t",
        "SELECT a & b FROM t",
        "SELECT a | b FROM t",
        "SELECT a << b FROM t",
        "SELECT -a FROM t",
        "SELECT a + c FROM t",
        "SELECT a + 1 FROM t",
        "SELECT CAST(a AS INT) FROM t",
        "SELECT TRY_CAST(a AS INT) FROM t",
        "SELECT CAST(a AS SMALLINT) FROM t",
        "SELECT CAST(a AS DOUBLE) FROM t",
        "SELECT CAST(a AS DECIMAL(20, 2)) FROM t",
        "SELECT CAST(a AS DECIMAL(20, 3)) FROM t",
        "SELECT CAST(a AS VARCHAR) FROM t",
        "SELECT CAST(ts AS DATE) FROM t",
        "SELECT CAST(ts AS VARCHAR) FROM t",
        "SELECT ts FROM t",
    ],
    // Strings and functions.
    &[
        "SELECT s FROM t WHERE s LIKE 'a%'",
        "SELECT s FROM t WHERE s NOT LIKE 'a%'",
        "SELECT s FROM t WHERE s ILIKE 'a%'",
        "SELECT s FROM t WHERE s NOT ILIKE 'a%'",
        "SELECT s FROM t WHERE s LIKE 'b%'",
        "SELECT s FROM t WHERE r LIKE 'a%'",
        "SELECT s FROM t WHERE s ~ 'a'",
        "SELECT s FROM t WHERE s ~* 'a'",
        "SELECT s FROM t WHERE s = 'a%'",
        "SELECT s FROM t WHERE s IN ('a', 'b', 'c', 'd')",
        "SELECT s FROM t WHERE s NOT IN ('a', 'b', 'c', 'd')",
        "SELECT s FROM t WHERE s IN ('a', 'b', 'c', 'e')",
        "SELECT upper(s) FROM t",
        "SELECT lower(s) FROM t",
        "SELECT upper(r) FROM t",
        "SELECT substr(s, 1) FROM t",
        "SELECT substr(s, 2) FROM t",
        "SELECT substr(s, 1, 2) FROM t",
        "SELECT s || r FROM t",
        "SELECT r || s FROM t",
        "SELECT concat(s, r) FROM t",
        "SELECT coalesce(s, r) FROM t",
        "SELECT date_trunc('day', ts) FROM t",
        "SELECT date_trunc('hour', ts) FROM t",
        "SELECT date_part('day', ts) FROM t",
        "SELECT round(f) FROM t",
        "SELECT round(f, 1) FROM t",
        "SELECT CASE WHEN a = 1 THEN 2 END FROM t",
        "SELECT CASE WHEN a = 1 THEN 2 ELSE 3 END FROM t",
        "SELECT CASE WHEN a = 1 THEN 3 ELSE 2 END FROM t",
        "SELECT CASE WHEN a = 2 THEN 2 ELSE 3 END FROM t",
        "SELECT CASE WHEN a = 1 THEN 2 WHEN b = 1 THEN 4 ELSE 3 END FROM t",
    ],
    // Groups.
    &[
        "SELECT a, sum(b) FROM t GROUP BY a",
        "SELECT a, sum(c) FROM t GROUP BY a",
        "SELECT a, sum(d) FROM t GROUP BY a",
        "SELECT a, sum(f) FROM t GROUP BY a",
        "SELECT a, avg(b) FROM t GROUP BY a",
        "SELECT a, min(b) FROM t GROUP BY a",
        "SELECT a, max(b) FROM t GROUP BY a",
        "SELECT a, count(b) FROM t GROUP BY a",
        "SELECT a, count(*) FROM t GROUP BY a",
        "SELECT a, count(DISTINCT b), sum(c) FROM t GROUP BY a",
        "SELECT a, count(b), sum(c) FROM t GROUP BY a",
        "SELECT a, sum(DISTINCT b) FROM t GROUP BY a",
        "SELECT a, sum(b) FILTER (WHERE c > 1) FROM t GROUP BY a",
        "SELECT a, sum(b) FILTER (WHERE c > 2) FROM t GROUP BY a",
        "SELECT a, sum(b + 1) FROM t GROUP BY a",
        "SELECT b, sum(b) FROM t GROUP BY b",
        "SELECT a, b, sum(b) FROM t GROUP BY a, b",
        "SELECT sum(b), a FROM t GROUP BY a",
        "SELECT sum(b) FROM t",
        "SELECT a, sum(b) FROM t GROUP BY ROLLUP (a)",
        "SELECT a, sum(b) FROM t GROUP BY a HAVING sum(b) > 1",
        "SELECT a, sum(b) FROM t GROUP BY a HAVING sum(b) > 2",
        "SELECT a, sum(b) FROM t WHERE b > 1 GROUP BY a",
        "SELECT a, sum(b), sum(c) FROM t GROUP BY a",
        "SELECT a, sum(c), sum(b) FROM t GROUP BY a",
        "SELECT a, array_agg(b ORDER BY c) FROM t GROUP BY a",
        "SELECT a, array_agg(b ORDER BY c DESC) FROM t GROUP BY a",
        "SELECT a, array_agg(b ORDER BY c NULLS FIRST) FROM t GROUP BY a",
        "SELECT a, array_agg(b) FROM t GROUP BY a",
        "SELECT a, first_value(b ORDER BY c) FROM t GROUP BY a",
        "SELECT a, first_value(b ORDER BY c) IGNORE NULLS FROM t GROUP BY a",
        "SELECT a, last_value(b ORDER BY c) FROM t GROUP BY a",
        "SELECT a, approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM t GROUP BY a",
        "SELECT a, approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY f) FROM t GROUP BY a",
        "SELECT a, stddev(f) FROM t GROUP BY a",
        "SELECT a, var_pop(f) FROM t GROUP BY a",
        "SELECT a, string_agg(s, ',' ORDER BY s) FROM t GROUP BY a",
        "SELECT a, string_agg(s, ';' ORDER BY s) FROM t GROUP BY a",
    ],
    &[
        "SELECT a, b, sum(c) FROM t GROUP BY ROLLUP (a, b)",
        "SELECT a, b, sum(c) FROM t GROUP BY CUBE (a, b)",
        "SELECT a, b, sum(c) FROM t GROUP BY GROUPING SETS ((a), (b))",
        "SELECT a, b, sum(c) FROM t GROUP BY GROUPING SETS ((a), (b), ())",
        "SELECT a, b, sum(c) FROM t GROUP BY GROUPING SETS ((a, b), (b))",
        "SELECT a, b, sum(c) FROM t GROUP BY a, b",
        "SELECT DISTINCT a, b FROM t",
        "SELECT DISTINCT b, a FROM t",
        "SELECT a, b FROM t",
    ],
    // Order and limit.
    &[
        "SELECT a, b FROM t ORDER BY a",
        "SELECT a, b FROM t ORDER BY a DESC",
        "SELECT a, b FROM t ORDER BY a NULLS FIRST",
        "SELECT a, b FROM t ORDER BY a DESC NULLS LAST",
        "SELECT a, b FROM t ORDER BY b",
        "SELECT a, b FROM t ORDER BY a, b",
        "SELECT a, b FROM t ORDER BY b, a",
        "SELECT a, b FROM t ORDER BY a LIMIT 5",
        "SELECT a, b FROM t ORDER BY a LIMIT 6",
        "SELECT a, b FROM t ORDER BY a LIMIT 5 OFFSET 1",
        "SELECT a, b FROM t ORDER BY a LIMIT 5 OFFSET 2",
        "SELECT a, b FROM t ORDER BY a OFFSET 1",
        "SELECT a, b FROM t LIMIT 5",
        "SELECT a, b FROM t LIMIT 5 OFFSET 1",
        "SELECT a, b FROM t OFFSET 1",
        "SELECT a, b FROM t WHERE a > 1 LIMIT 5",
    ],
    // Joins.
    &[
        "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a",
        "SELECT t.a, u.b FROM t LEFT JOIN u ON t.a = u.a",
        "SELECT t.a, u.b FROM t RIGHT JOIN u ON t.a = u.a",
        "SELECT t.a, u.b FROM t FULL JOIN u ON t.a = u.a",
        "SELECT t.a, u.b FROM t CROSS JOIN u",
        "SELECT t.a, u.b FROM t JOIN u ON t.a = u.b",
        "SELECT t.a, u.b FROM t JOIN u ON t.b = u.a",
        "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a AND t.b = u.b",
        "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a AND t.b < u.b",
        "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a AND t.b <= u.b",
        "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a AND t.c < u.b",
        "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a AND u.b < t.b",
        "SELECT t.a, u.b FROM t JOIN u ON t.a < u.a",
        "SELECT t.a, u.b FROM t JOIN u ON t.a IS NOT DISTINCT FROM u.a",
        "SELECT t.a, v.b FROM t JOIN v ON t.a = v.a",
        "SELECT t.b, u.b FROM t JOIN u ON t.a = u.a",
        "SELECT u.b, t.a FROM t JOIN u ON t.a = u.a",
        "SELECT t.a, u.b FROM u JOIN t ON t.a = u.a",
        "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a WHERE t.b > 1",
        "SELECT t.a, u.b FROM t LEFT JOIN u ON t.a = u.a AND u.b > 1",
        "SELECT t.a, u.b FROM t LEFT JOIN u ON t.a = u.a AND t.b > 1",
    ],
    &[
        "SELECT a FROM t WHERE a IN (SELECT a FROM u)",
        "SELECT a FROM t WHERE a NOT IN (SELECT a FROM u)",
        "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
        "SELECT a FROM t WHERE a IN (SELECT b FROM u)",
        "SELECT a FROM t WHERE a IN (SELECT a FROM u WHERE b > 1)",
        "SELECT a FROM t WHERE a IN (SELECT a FROM u) OR b = 1",
        "SELECT a FROM t WHERE b > (SELECT avg(b) FROM u)",
        "SELECT a FROM t WHERE b > (SELECT max(b) FROM u)",
        "SELECT a FROM t WHERE b > (SELECT avg(c) FROM u)",
        "SELECT a FROM t WHERE b > (SELECT avg(b) FROM t)",
        "SELECT a FROM t WHERE b > (SELECT avg(b) FROM u WHERE a > 1)",
        "SELECT a FROM t WHERE b < (SELECT avg(b) FROM u)",
        "SELECT a FROM t WHERE b > (SELECT avg(b) FROM u) AND c > (SELECT max(b) FROM u)",
        "SELECT a FROM t WHERE b > (SELECT max(b) FROM u) AND c > (SELECT avg(b) FROM u)",
    ],
    // Sets.
    &[
        "SELECT a FROM t UNION ALL SELECT a FROM u",
        "SELECT a FROM t UNION SELECT a FROM u",
        "SELECT a FROM t INTERSECT SELECT a FROM u",
        "SELECT a FROM t EXCEPT SELECT a FROM u",
        "SELECT a FROM u EXCEPT SELECT a FROM t",
        "SELECT a FROM t UNION ALL SELECT b FROM u",
        "SELECT a FROM t UNION ALL SELECT a FROM t",
        "SELECT a FROM t UNION ALL SELECT a FROM u UNION ALL SELECT a FROM u",
    ],
    // Windows.
    &[
        "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, sum(b) OVER (PARTITION BY a) FROM t",
        "SELECT a, sum(b) OVER (ORDER BY c) FROM t",
        "SELECT a, sum(b) OVER (PARTITION BY c ORDER BY c) FROM t",
        "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY c DESC) FROM t",
        "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY c NULLS FIRST) FROM t",
        "SELECT a, max(b) OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, sum(c) OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY c ROWS 1 PRECEDING) FROM t",
        "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY c ROWS 2 PRECEDING) FROM t",
        "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY c RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY c ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
        "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY c GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT a, rank() OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, dense_rank() OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, row_number() OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, ntile(2) OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, ntile(3) OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, lag(b) OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, lag(b, 2) OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, lag(b, 1, 7) OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, lag(b) IGNORE NULLS OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, lead(b) OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, first_value(b) OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, nth_value(b, 2) OVER (PARTITION BY a ORDER BY c) FROM t",
        "SELECT a, nth_value(b, 3) OVER (PARTITION BY a ORDER BY c) FROM t",
    ],
    // Lists to rows.
    &[
        "SELECT a, unnest(items) FROM t",
        "SELECT b, unnest(items) FROM t",
        "SELECT unnest(items) FROM t",
        "SELECT a, items FROM t",
    ],
];

#[tokio::test]
async fn one_attribute_changes_the_key() {
    let fixture = Fixture::new();
    let mut n_mutations = 0;
    let mut seen = HashMap::new();
    for group in DIFFERENT {
        n_mutations += group.len() - 1;
        for sql in *group {
            if let Some(other) = seen.insert(fixture.key(sql).await, *sql) {
                assert_eq!(other, *sql, "the same key for\n  {other}\n  {sql}");
            }
        }
    }
    assert!(n_mutations >= 200, "only {n_mutations} mutations");
}

const QUERY: &str = "SELECT a, sum(b) FROM t WHERE s = 'x' GROUP BY a";

/// Settings that change values or how files are read.
#[tokio::test]
async fn settings_that_change_rows_change_the_key() {
    let base = Fixture::new().key(QUERY).await;
    for (key, value) in [
        ("datafusion.execution.time_zone", "Europe/Berlin"),
        ("datafusion.execution.enable_ansi_mode", "true"),
        ("datafusion.execution.parquet.binary_as_string", "true"),
        ("datafusion.execution.parquet.coerce_int96", "ms"),
        ("datafusion.execution.parquet.schema_force_view_types", "false"),
        ("datafusion.execution.parquet.skip_metadata", "false"),
        ("datafusion.catalog.has_header", "false"),
        ("datafusion.catalog.newlines_in_values", "true"),
    ] {
        let config = SessionConfig::new().with_target_partitions(2).set_str(key, value);
        assert_ne!(base, Fixture::with_config(config).key(QUERY).await, "{key}");
    }
}

/// Everything about how bytes become rows, and which bytes.
#[tokio::test]
async fn readers_and_extents_change_the_key() {
    let keys_of = async |source: Source| {
        let fixture = Fixture::new();
        fixture.context.deregister_table("t").unwrap();
        fixture.table("t", source);
        let prefix = fixture.root(QUERY).await.unwrap();
        (prefix.program, prefix.key)
    };
    let (program, key) = keys_of(Source::parquet(&["t0", "t1"])).await;

    // Other extents: the same program on other data.
    let more: [&[&str]; 5] = [&["t0"], &["t1", "t0"], &["t0", "t1", "t2"], &["t0", "t2"], &[]];
    for names in more {
        let (other_program, other_key) = keys_of(Source::parquet(names)).await;
        assert_eq!(program, other_program, "{names:?}");
        assert_ne!(key, other_key, "{names:?}");
    }

    // Other readers: another program.
    let options = |key: &str, value: &str| BTreeMap::from([(key.to_string(), value.to_string())]);
    let csv = |options| Source { format: FileFormatKind::Csv, options, ..Source::parquet(&["t0", "t1"]) };
    let mut renamed = schema().fields().to_vec();
    renamed[1] = Arc::new(Field::new("b", DataType::Int32, true));
    let retyped = Source { schema: Arc::new(Schema::new(renamed)), ..Source::parquet(&["t0", "t1"]) };
    let others = [
        Source { format: FileFormatKind::Arrow, ..Source::parquet(&["t0", "t1"]) },
        Source { format: FileFormatKind::Json, ..Source::parquet(&["t0", "t1"]) },
        csv(BTreeMap::new()),
        csv(options("format.delimiter", ";")),
        csv(options("format.delimiter", "|")),
        csv(options("format.quote", "'")),
        csv(options("format.has_header", "false")),
        csv(options("format.null_regex", "^-$")),
        csv(options("format.comment", "#")),
        csv(options("aws.endpoint", "http://127.0.0.1:1")),
        csv(options("aws.endpoint", "http://127.0.0.1:2")),
        retyped,
    ];
    let mut seen = HashMap::from([(program, "parquet".to_string())]);
    for source in others {
        let name = format!("{:?} {:?}", source.format, source.options);
        let (other, _) = keys_of(source).await;
        if let Some(same) = seen.insert(other, name.clone()) {
            panic!("the same program for {same} and {name}");
        }
    }
}

/// Columns of CSV go by position: one more in front changes what every name stands for.
#[tokio::test]
async fn columns_by_position_count_all() {
    let key_of = async |fields: Vec<Field>| {
        let fixture = Fixture::new();
        let source = Source {
            format: FileFormatKind::Csv,
            options: BTreeMap::new(),
            schema: Arc::new(Schema::new(fields)),
            extents: vec![extent("w")],
        };
        fixture.table("w", source);
        fixture.key("SELECT sum(y) FROM w").await
    };
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    let two = key_of(vec![field("x"), field("y")]).await;
    let three = key_of(vec![field("x"), field("z"), field("y")]).await;
    assert_ne!(two, three);
}

/// Columns of Parquet go by name: more of them change nothing for those who do not read them.
#[tokio::test]
async fn columns_by_name_count_alone() {
    let key_of = async |fields: Vec<Field>| {
        let fixture = Fixture::new();
        let source = Source { schema: Arc::new(Schema::new(fields)), ..Source::parquet(&["w"]) };
        fixture.table("w", source);
        fixture.key("SELECT sum(y) FROM w").await
    };
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    assert_eq!(key_of(vec![field("x"), field("y")]).await, key_of(vec![field("x"), field("y"), field("z")]).await);
    assert_ne!(key_of(vec![field("y")]).await, key_of(vec![Field::new("y", DataType::Int32, true)]).await);
}
