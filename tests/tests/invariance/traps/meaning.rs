//! Two statements that differ in what they mean must not share a key.

use super::{all_hold, entries_hold, holds, reused, tables};
use nectarine_engine::Reused;
use nectarine_tests::db::Db;

/// Trap 1. Guard: `ExprContext::scalar_subquery` puts the subquery's key in the place of its number.
#[tokio::test]
async fn scalar_subqueries_that_differ_only_inside() {
    let db = tables().await;
    all_hold(
        &db,
        &[
            "SELECT count(*) FROM t WHERE a > (SELECT min(a) FROM t)",
            "SELECT count(*) FROM t WHERE a > (SELECT max(a) FROM t)",
            "SELECT count(*) FROM t WHERE a > (SELECT max(a) FROM t WHERE k = 3)",
            "SELECT count(*) FROM t WHERE a > (SELECT max(a) FROM t WHERE k = 4)",
            "SELECT count(*) FROM t WHERE a > (SELECT min(k) FROM d) AND a < (SELECT max(k) FROM d)",
            "SELECT count(*) FROM t WHERE a > (SELECT max(k) FROM d) AND a < (SELECT min(k) FROM d)",
            "SELECT (SELECT min(k) FROM d), (SELECT max(k) FROM d), sum(a) FROM t",
            "SELECT (SELECT max(k) FROM d), (SELECT min(k) FROM d), sum(a) FROM t",
            "SELECT k, sum(a) FROM t WHERE a < (SELECT max(a) FROM t WHERE a < (SELECT max(k) FROM d)) GROUP BY k",
            "SELECT k, sum(a) FROM t WHERE a < (SELECT max(a) FROM t WHERE a < (SELECT min(k) FROM d)) GROUP BY k",
        ],
    )
    .await;
    // What a subquery reads is part of the key too.
    let sql = "SELECT count(*) FROM t WHERE a < (SELECT max(k) FROM d)";
    assert_eq!(holds(&db, sql).await, "3");
    db.ok("INSERT INTO d VALUES (100, 'hundred')").await;
    assert_eq!(holds(&db, sql).await, "100");
    entries_hold(&db).await;
}

/// Trap 2. Guards: `check_no_filter`, the ends of texts in `window_function`, frames and keys in `window`.
#[tokio::test]
async fn windows_that_differ_in_one_attribute() {
    let db = tables().await;
    let of = |over: &str| format!("SELECT a, {over} FROM t");
    let queries: Vec<String> = [
        "sum(a) FILTER (WHERE k > 1) OVER (ORDER BY a)",
        "sum(a) FILTER (WHERE k > 2) OVER (ORDER BY a)",
        "sum(a) OVER (ORDER BY a)",
        "sum(a) OVER (ORDER BY a DESC)",
        "sum(a) OVER (PARTITION BY k ORDER BY a)",
        "sum(a) OVER (PARTITION BY g ORDER BY a)",
        "sum(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "sum(a) OVER (ORDER BY a ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
        "sum(a) OVER (ORDER BY a RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
        "lag(a, 1) OVER (ORDER BY a)",
        "lag(a, 2) OVER (ORDER BY a)",
        "lag(a, 1, 77) OVER (ORDER BY a)",
        "lead(a, 1) OVER (ORDER BY a)",
        "first_value(nullif(a, 0)) IGNORE NULLS OVER (ORDER BY a)",
        "first_value(nullif(a, 0)) RESPECT NULLS OVER (ORDER BY a)",
        "nth_value(a, 2) OVER (ORDER BY a)",
        "nth_value(a, 3) OVER (ORDER BY a)",
        "ntile(3) OVER (ORDER BY a)",
        "ntile(4) OVER (ORDER BY a)",
    ]
    .map(of)
    .to_vec();
    all_hold(&db, &queries.iter().map(String::as_str).collect::<Vec<_>>()).await;
    entries_hold(&db).await;
}

/// Trap 2. Guards: flags, filters, orders and arguments in `ExprContext::aggregate` and `aggregation`.
#[tokio::test]
async fn aggregates_that_differ_in_one_attribute() {
    let db = tables().await;
    let of = |aggregate: &str| format!("SELECT g, {aggregate} FROM t GROUP BY g");
    let queries: Vec<String> = [
        "count(k)",
        "count(DISTINCT k)",
        "count(k) FILTER (WHERE a > 500)",
        "count(k) FILTER (WHERE a > 501)",
        "sum(k)",
        "sum(DISTINCT k)",
        "sum(CAST(k AS DOUBLE))",
        "sum(CAST(k AS DECIMAL(10,2)))",
        "percentile_cont(0.25) WITHIN GROUP (ORDER BY f)",
        "percentile_cont(0.75) WITHIN GROUP (ORDER BY f)",
        "percentile_cont(0.25) WITHIN GROUP (ORDER BY f DESC)",
        "string_agg(CAST(a AS TEXT), ',' ORDER BY a)",
        "string_agg(CAST(a AS TEXT), ';' ORDER BY a)",
        "string_agg(CAST(a AS TEXT), ',' ORDER BY a DESC)",
        "first_value(a ORDER BY a)",
        "first_value(a ORDER BY a DESC)",
        "last_value(a ORDER BY a)",
        "nth_value(a, 2 ORDER BY a)",
        "nth_value(a, 3 ORDER BY a)",
        "array_agg(DISTINCT k ORDER BY k)",
        "array_agg(k ORDER BY k, a)",
        "bool_and(k > 1)",
        "bool_or(k > 1)",
    ]
    .map(of)
    .to_vec();
    all_hold(&db, &queries.iter().map(String::as_str).collect::<Vec<_>>()).await;
    all_hold(
        &db,
        &[
            "SELECT g, k, count(*) FROM t GROUP BY ROLLUP (g, k)",
            "SELECT g, k, count(*) FROM t GROUP BY CUBE (g, k)",
            "SELECT g, k, count(*) FROM t GROUP BY GROUPING SETS ((g), (k))",
            "SELECT g, k, count(*) FROM t GROUP BY GROUPING SETS ((g, k), (k))",
            "SELECT g, k, grouping(g), count(*) FROM t GROUP BY ROLLUP (g, k)",
            "SELECT g, k, grouping(k), count(*) FROM t GROUP BY ROLLUP (g, k)",
            "SELECT g, k, count(*) FROM t GROUP BY g, k",
            "SELECT k, g, count(*) FROM t GROUP BY k, g",
        ],
    )
    .await;
    entries_hold(&db).await;
}

/// Trap 2. Guards: tags, options and types in `ExprContext::encode`.
#[tokio::test]
async fn expressions_that_differ_in_one_attribute() {
    let db = tables().await;
    let of = |expr: &str| format!("SELECT {expr}, count(*) FROM t GROUP BY 1");
    let queries: Vec<String> = [
        "a + 1",
        "a - 1",
        "1 - a",
        "a > 3",
        "a >= 3",
        "3 > a",
        "k / 3",
        "k / CAST(3 AS BIGINT)",
        "k / 3.0",
        "CAST(k AS TEXT)",
        "CAST(k AS DOUBLE)",
        "CAST(f AS INT)",
        "CAST(f AS BIGINT)",
        "TRY_CAST(g AS INT)",
        "TRY_CAST(substr(g, 2) AS INT)",
        "CAST(substr(g, 2) AS INT)",
        "g LIKE 'G%'",
        "g ILIKE 'G%'",
        "g NOT LIKE 'g1%'",
        "g ~ 'G1'",
        "g ~* 'G1'",
        "k IN (1, 2)",
        "k NOT IN (1, 2)",
        "k IN (1, 2, NULL)",
        "CASE WHEN k > 3 THEN 1 WHEN k > 5 THEN 2 END",
        "CASE WHEN k > 5 THEN 2 WHEN k > 3 THEN 1 END",
        "CASE k WHEN 3 THEN 1 ELSE 0 END",
        "0.0 * k",
        "-0.0 * k",
        "date_trunc('day', ts)",
        "date_trunc('hour', ts)",
        "date_part('day', ts)",
        "date_part('hour', ts)",
        "round(f, 0)",
        "round(f, 1)",
        "arrow_typeof(k)",
        "arrow_cast(k, 'Int8')",
        "arrow_cast(k, 'Int16')",
    ]
    .map(of)
    .to_vec();
    all_hold(&db, &queries.iter().map(String::as_str).collect::<Vec<_>>()).await;
    entries_hold(&db).await;
}

/// Guards: join type, null equality, sides and null-awareness in `ExprContext::equi_join`.
#[tokio::test]
async fn joins_that_differ_in_one_attribute() {
    let db = tables().await;
    db.ok("CREATE TABLE x (k INT, v INT)").await;
    db.ok("INSERT INTO x VALUES (1, 10), (1, 11), (2, 20), (5, 50), (NULL, 0)").await;
    all_hold(
        &db,
        &[
            "SELECT * FROM d JOIN x ON d.k = x.k",
            "SELECT * FROM d JOIN x ON d.k IS NOT DISTINCT FROM x.k",
            "SELECT * FROM d LEFT JOIN x ON d.k = x.k",
            "SELECT * FROM d RIGHT JOIN x ON d.k = x.k",
            "SELECT * FROM d FULL JOIN x ON d.k = x.k",
            "SELECT * FROM d LEFT SEMI JOIN x ON d.k = x.k",
            "SELECT * FROM d LEFT ANTI JOIN x ON d.k = x.k",
            "SELECT * FROM d JOIN x ON d.k = x.k AND x.v > 10",
            "SELECT * FROM d LEFT JOIN x ON d.k = x.k AND x.v > 10",
            "SELECT * FROM d LEFT JOIN x ON d.k = x.k WHERE x.v > 10",
            "SELECT * FROM d JOIN x ON d.k < x.k",
            "SELECT * FROM d JOIN x ON d.k > x.k",
            "SELECT * FROM d CROSS JOIN x",
            "SELECT * FROM d WHERE k IN (SELECT k FROM x)",
            "SELECT * FROM d WHERE k NOT IN (SELECT k FROM x)",
            "SELECT * FROM d WHERE k NOT IN (SELECT k FROM x WHERE k IS NOT NULL)",
            "SELECT * FROM d WHERE NOT EXISTS (SELECT 1 FROM x WHERE x.k = d.k)",
            "SELECT k FROM d INTERSECT SELECT k FROM x",
            "SELECT k FROM d EXCEPT SELECT k FROM x",
            "SELECT k FROM x EXCEPT SELECT k FROM d",
            "SELECT k FROM x INTERSECT ALL SELECT k FROM d",
            "SELECT k FROM x EXCEPT ALL SELECT k FROM d",
            "SELECT k FROM x UNION ALL SELECT k FROM d",
            "SELECT k FROM x UNION SELECT k FROM d",
            "SELECT d1.tag, d2.tag FROM d d1 JOIN d d2 ON d1.k = d2.k + 1",
            "SELECT d1.tag, d2.tag FROM d d1 JOIN d d2 ON d2.k = d1.k + 1",
        ],
    )
    .await;
    entries_hold(&db).await;
}

/// Guards: `check_volatility`, and that functions of the statement's time are literals before keys are taken.
#[tokio::test]
async fn functions_that_change_are_computed_anew() {
    let db = tables().await;
    for sql in [
        "SELECT sum(random() * a) FROM t",
        "SELECT max(uuid()) FROM t WHERE a < 3",
        "SELECT max(CAST(now() AS TEXT)) FROM t",
        "SELECT g, max(now()) FROM t GROUP BY g ORDER BY g LIMIT 1",
        "SELECT count(*), max(r) FROM (SELECT random() AS r, a FROM t) WHERE r >= 0",
    ] {
        let (_, first) = reused(&db, sql).await;
        let (second_reuse, second) = reused(&db, sql).await;
        assert_ne!(first, second, "{sql}");
        assert_ne!(second_reuse, Reused::Exact, "{sql}");
    }
    // Stable within the day, but not for ever: the literal is part of the key.
    holds(&db, "SELECT count(*) FROM t WHERE ts < now()").await;
    holds(&db, "SELECT count(*) FROM t WHERE ts < current_date()").await;
    entries_hold(&db).await;
}

/// Trap 2. Guard: the session's time zone is part of the salt.
#[tokio::test]
async fn time_zones_are_part_of_a_key() {
    let db = tables().await;
    let queries = [
        "SELECT date_part('hour', CAST(ts AS TIMESTAMPTZ)) AS h, count(*) FROM t GROUP BY 1",
        "SELECT CAST(CAST(ts AS TIMESTAMPTZ) AS TEXT), a FROM t WHERE a < 5",
        "SELECT max(to_timestamp('2024-03-01T10:00:00')) FROM t",
        "SELECT date_trunc('day', CAST(ts AS TIMESTAMPTZ)), count(*) FROM t GROUP BY 1",
    ];
    for _ in 0..2 {
        for zone in ["+00:00", "+05:30", "America/New_York"] {
            db.ok(&format!("SET datafusion.execution.time_zone = '{zone}'")).await;
            for sql in queries {
                holds(&db, sql).await;
            }
        }
    }
    entries_hold(&db).await;
}

/// Guard: settings that are not known to be harmless are part of the salt.
#[tokio::test]
async fn settings_that_change_rows_are_part_of_a_key() {
    let db = tables().await;
    let queries = [
        "SELECT k FROM d ORDER BY k",
        "SELECT 1.5 * k FROM d",
        "SELECT tag FROM d ORDER BY k DESC LIMIT 2",
        "SELECT k / 2 * 1.10 FROM d",
    ];
    for _ in 0..2 {
        for set in [
            "SET datafusion.sql_parser.default_null_ordering = 'nulls_first'",
            "SET datafusion.sql_parser.default_null_ordering = 'nulls_max'",
            "SET datafusion.sql_parser.parse_float_as_decimal = true",
            "SET datafusion.sql_parser.parse_float_as_decimal = false",
        ] {
            db.ok(set).await;
            for sql in queries {
                db.ok("SET nectarine.reuse = 'off'").await;
                let expected = db.ok(sql).await;
                db.ok("SET nectarine.reuse = 'on'").await;
                assert_eq!(db.ok(sql).await, expected, "{set}: {sql}");
                assert_eq!(db.ok(sql).await, expected, "{set}: {sql}");
            }
        }
    }
    entries_hold(&db).await;
}

/// Trap 17. Guard: plans that a declared constraint changed have other keys.
#[tokio::test]
async fn declared_constraints_are_part_of_a_plan() {
    let db = Db::new().await;
    db.file("x/1.csv", "1,a\n1,b\n2,c\n");
    db.file("y/1.csv", "1\n2\n2\n");
    for (name, key) in [("plain", ""), ("keyed", ", PRIMARY KEY (k)")] {
        let made = db
            .run(&format!(
                "CREATE EXTERNAL TABLE {name} (k INT, v TEXT{key}) STORED AS CSV LOCATION '{{dir}}/x/' \
                 OPTIONS ('format.has_header' 'false')"
            ))
            .await;
        if made.is_err() {
            // Constraints that nobody checks are refused: nothing to confuse.
            assert_eq!(name, "keyed", "{made:?}");
            return;
        }
    }
    db.ok("CREATE EXTERNAL TABLE y (k INT) STORED AS CSV LOCATION '{dir}/y/' OPTIONS ('format.has_header' 'false')")
        .await;
    for _ in 0..2 {
        for name in ["plain", "keyed"] {
            for sql in [
                "SELECT k, count(*) FROM {} GROUP BY k",
                "SELECT DISTINCT k FROM {}",
                "SELECT y.k FROM y JOIN {} x ON y.k = x.k",
                "SELECT DISTINCT y.k FROM y JOIN {} x ON y.k = x.k",
                "SELECT k FROM {} GROUP BY k",
            ] {
                holds(&db, &sql.replace("{}", name)).await;
            }
        }
    }
    entries_hold(&db).await;
}
