//! What casts cut off, how long intervals are, and how `round` rounds, where values are compared.

use nectarine_engine::Reused;
use nectarine_tests::db::Db;

const MODES: [&str; 3] = ["off", "on", "on"];

/// Asks all of it without reuse, when it is kept, and when it is read.
async fn check(db: &Db, told: &str, asked: &[(&str, &str)]) {
    for mode in MODES {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        for (sql, expected) in asked {
            assert_eq!(db.ok(sql).await, *expected, "{told}{mode}: {sql}");
        }
    }
}

/// The rows of a table for which a condition is true.
async fn found(db: &Db, table: &str, asked: &[(&str, &str)]) {
    let asked: Vec<(String, &str)> = asked
        .iter()
        .map(|(condition, expected)| (format!("SELECT id FROM {table} WHERE {condition} ORDER BY id"), *expected))
        .collect();
    let asked: Vec<(&str, &str)> = asked.iter().map(|(sql, expected)| (sql.as_str(), *expected)).collect();
    check(db, "", &asked).await;
}

async fn numbers() -> Db {
    let db = Db::new().await;
    db.ok("CREATE TABLE w (id INT, m DECIMAL(9, 2), i INT, b BIGINT, f DOUBLE, s TEXT, t TIMESTAMP)").await;
    db.ok("INSERT INTO w VALUES (1, 14.48, 300, 9007199254740993, 1.9, '14', TIMESTAMP '2024-07-01T12:00:00'), \
           (2, 14.50, 5, 5, 1.2, 'abc', TIMESTAMP '2024-07-01T23:30:00'), \
           (3, -14.48, 6, 6, -1.9, '007', TIMESTAMP '2024-07-02T01:00:00'), (4, NULL, NULL, NULL, NULL, NULL, NULL)")
        .await;
    db
}

/// 14.48 is 14 as an integer, however it is asked.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_cast_cuts_off() {
    let db = numbers().await;
    found(
        &db,
        "w",
        &[
            ("m::int = 14", "1\n2"),
            ("14 = m::int", "1\n2"),
            ("m::int IN (14)", "1\n2"),
            ("m::int IN (14, 15, 16, 17, 18)", "1\n2"),
            ("m::int NOT IN (14)", "3"),
            ("m::int <> 14", "3"),
            ("NOT (m::int = 14)", "3"),
            ("m::int >= 14", "1\n2"),
            ("m::int > 14", ""),
            ("m::int < 14", "3"),
            ("m::int = -14", "3"),
            ("m::int BETWEEN 13 AND 14", "1\n2"),
            ("m::int IS NOT DISTINCT FROM 14", "1\n2"),
            ("m::int IS DISTINCT FROM 14", "3\n4"),
            ("m::int + 0 = 14", "1\n2"),
            ("m::int = 7 + 7", "1\n2"),
            ("m::int::bigint = 14", "1\n2"),
            ("CASE m::int WHEN 14 THEN true ELSE false END", "1\n2"),
            ("m::int = 14 AND i > 5", "1"),
            ("m::int = 14 OR i = 6", "1\n2\n3"),
            ("m::bigint = 14", "1\n2"),
            ("m::decimal(9, 1) = 14.5", "1\n2"),
            ("m::decimal(9, 1) < 14.5", "3"),
            ("m::decimal(9, 1) <> 14.5", "3"),
            ("m::decimal(9, 0) = 14", "1"),
            ("m::decimal(9, 0) = 15", "2"),
            ("m::decimal(9, 0) IN (14, 15)", "1\n2"),
            ("TRY_CAST(m AS INT) = 14", "1\n2"),
            ("(SELECT max(m) FROM w)::int = 14", "1\n2\n3\n4"),
            ("i IN (SELECT i FROM w WHERE m::int = 14)", "1\n2"),
            ("EXISTS (SELECT 1 FROM w v WHERE v.m::int = 14 AND v.i = w.i)", "1\n2"),
        ],
    )
    .await;
    check(
        &db,
        "",
        &[
            // A filter comes to the cast from above, from a join, from a top-k.
            ("SELECT id FROM (SELECT id, m::int AS x FROM w) q WHERE x = 14 ORDER BY id", "1\n2"),
            ("SELECT x, count(*) FROM (SELECT m::int AS x FROM w) q WHERE x > 0 GROUP BY x HAVING x = 14", "14|2"),
            ("SELECT w.id FROM w JOIN (VALUES (14)) v (k) ON w.m::int = v.k ORDER BY 1", "1\n2"),
            ("SELECT w.id FROM w JOIN (VALUES (14), (3)) v (k) ON w.m::int = v.k WHERE v.k > 3 ORDER BY 1", "1\n2"),
            (
                "SELECT x.id, y.id FROM w x JOIN w y ON x.m::int = y.m::int AND x.m::int = 14 ORDER BY 1, 2",
                "1|1\n1|2\n2|1\n2|2",
            ),
            (
                "SELECT x.id FROM w x JOIN w y ON x.m::int = y.m::int AND x.m::decimal(9, 0) = y.m::decimal(9, 0) \
                 ORDER BY 1",
                "1\n2\n3",
            ),
            ("SELECT m::int FROM w ORDER BY m::int DESC NULLS LAST, id LIMIT 2", "14\n14"),
            (
                "SELECT m::int AS x, m::int + 1 AS y, sum(m::int) OVER (PARTITION BY m::int) AS z FROM w \
                 WHERE id < 4 ORDER BY id",
                "14|15|28\n14|15|28\n-14|-13|-14",
            ),
            ("SELECT m::int, count(*) FROM w GROUP BY m::int ORDER BY 1", "-14|1\n14|2\nNULL|1"),
            (
                "SELECT m::int, i::bigint, count(*) FROM w GROUP BY ROLLUP (m::int, i::bigint) HAVING m::int = 14 \
                 ORDER BY 2",
                "14|5|1\n14|300|1\n14|NULL|2",
            ),
            ("SELECT DISTINCT m::int AS x FROM w WHERE m::int = 14", "14"),
            ("SELECT count(*) FILTER (WHERE m::int = 14), max(m::int), min(m::int) FROM w", "2|14|-14"),
            ("SELECT max(x) FROM (SELECT m::int AS x FROM w UNION ALL SELECT i FROM w) q WHERE x < 15", "14"),
        ],
    )
    .await;
    db.script(
        r#"
        SELECT arrow_typeof(m::int) AS x FROM w LIMIT 1;
        -> Int32
        CREATE VIEW v AS SELECT id, m::int AS x FROM w;
        SELECT id FROM v WHERE x = 14 ORDER BY id;
        -> 1
        -> 2
        CREATE FUNCTION is_it(x INT) RETURNS BOOLEAN RETURN x = 14;
        SELECT id FROM w WHERE is_it(m) ORDER BY id;
        -> 1
        -> 2
        CREATE FUNCTION whole(x DECIMAL(9, 2)) RETURNS INT RETURN x;
        SELECT id FROM w WHERE whole(m) = 14 ORDER BY id;
        -> 1
        -> 2
        PREPARE p AS SELECT id FROM w WHERE m::int = $1 ORDER BY id;
        EXECUTE p(14);
        -> 1
        -> 2
        CREATE TABLE copied (x INT);
        INSERT INTO copied SELECT m FROM w WHERE m::int = 14;
        SELECT x, count(*) FROM copied GROUP BY x;
        -> 14|2
        "#,
    )
    .await;
}

/// What does not fit is NULL, or an error, and no number.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit() {
    let db = numbers().await;
    found(
        &db,
        "w",
        &[
            ("TRY_CAST(i AS TINYINT) > 5", "3"),
            ("TRY_CAST(i AS TINYINT) <> 5", "3"),
            ("TRY_CAST(i AS TINYINT) IN (5, 6)", "2\n3"),
            ("TRY_CAST(i AS TINYINT) IS NULL", "1\n4"),
            ("TRY_CAST(i AS TINYINT) IS DISTINCT FROM 5", "1\n3\n4"),
            ("TRY_CAST(s AS INT) = 14", "1"),
            ("TRY_CAST(s AS INT) = 7", "3"),
            ("TRY_CAST(s AS INT) IS NOT DISTINCT FROM NULL", "2\n4"),
            ("TRY_CAST(s AS INT) IS DISTINCT FROM NULL", "1\n3"),
            ("TRY_CAST(m AS DECIMAL(3, 2)) > 5", ""),
            ("TRY_CAST(b AS INT) > 0", "2\n3"),
            ("TRY_CAST(i AS BIGINT) > 5", "1\n3"),
        ],
    )
    .await;
    db.ok("SET nectarine.reuse = 'off'").await;
    for cast in ["i::tinyint", "i::tinyint + 1", "b::int", "m::decimal(3, 2)"] {
        let error = db.err(&format!("SELECT {cast} FROM w")).await;
        assert!(error.contains("value") || error.contains("large"), "{cast}: {error}");
    }
}

/// Those that lose nothing are as before, and those beside floats.
#[tokio::test(flavor = "multi_thread")]
async fn casts_that_lose_nothing() {
    let db = numbers().await;
    found(
        &db,
        "w",
        &[
            ("i::bigint = 5", "2"),
            ("i::bigint IN (5, 300)", "1\n2"),
            ("i::bigint > 5", "1\n3"),
            ("i::smallint IN (300, 6)", "1\n3"),
            ("m::decimal(12, 4) = 14.48", "1"),
            ("m::decimal(12, 4) IN (14.48, -14.4801)", "1"),
            ("m::decimal(12, 4) < 14.4801", "1\n3"),
            ("i = 5.0", "2"),
            ("i = 5.5", ""),
            ("i > 5.5", "1\n3"),
            ("i::decimal(12, 2) = 5.00", "2"),
            ("b = 9007199254740993", "1"),
            ("b = 9007199254740992", ""),
            // As doubles they are the same.
            ("b::double = 9007199254740992", "1"),
            ("m::double = 14.48", "1"),
            ("m = 14.48", "1"),
            ("f::int = 1", "1\n2"),
            ("f::int = -1", "3"),
            ("f::int IN (1)", "1\n2"),
            ("f::decimal(9, 1) = 1.9", "1"),
            ("i::text = '5'", "2"),
            ("i::text = '0300'", ""),
            ("i::text <> '5'", "1\n3"),
            ("m::text = '14.50'", "2"),
            ("s::text = '007'", "3"),
            ("id < 3 AND t::date = DATE '2024-07-01'", "1\n2"),
            ("t::date > DATE '2024-07-01'", "3"),
            ("t::date::timestamp = TIMESTAMP '2024-07-02T00:00:00'", "3"),
            ("t::text LIKE '2024-07-01%'", "1\n2"),
        ],
    )
    .await;
    // Files are left out by them, or they are not there at all.
    db.ok("SET nectarine.reuse = 'off'").await;
    for (condition, bound) in [
        ("i::bigint = 5", "i_min@0 <= 5"),
        ("TRY_CAST(i AS BIGINT) = 5", "i_min@0 <= 5"),
        ("i::smallint = 5", "i_min@0 <= 5"),
        ("m::decimal(12, 4) > 14.48", "m_max@0 > 14.48"),
        ("i::decimal(12, 2) = 5", "i_min@0 <= 5"),
        ("b::double > 5.5", "b_max@0 AS Float64) > 5.5"),
        ("t::date > DATE '2024-07-01'", "t_max@0 AS Date32) > 2024-07-01"),
        ("t > DATE '2024-07-01'", "t_max@0 > "),
    ] {
        let plan = db.ok(&format!("EXPLAIN SELECT id FROM w WHERE {condition}")).await;
        assert!(plan.contains("pruning_predicate") && plan.contains(bound), "{condition}: {plan}");
        assert!(!plan.contains("kept_cast"), "{condition}: {plan}");
    }
    let plan = db.ok("EXPLAIN SELECT id FROM w WHERE m::int = 14").await;
    assert!(plan.contains("kept_cast(CAST(m@1 AS Int32)) = 14") && !plan.contains("m_min"), "{plan}");
}

/// Bounds of a file are not those of its times of day, nor of what is true.
#[tokio::test(flavor = "multi_thread")]
async fn bounds_in_another_order() {
    let db = numbers().await;
    db.ok("CREATE TABLE n AS SELECT * FROM (VALUES (-1), (0), (1), (NULL)) v (id)").await;
    found(&db, "w", &[("t::time < TIME '02:00:00'", "3"), ("t::time >= TIME '23:00:00'", "2")]).await;
    found(
        &db,
        "n",
        &[
            ("id::boolean", "-1\n1"),
            ("NOT id::boolean", "0"),
            ("id::boolean < true", "0"),
            ("id::boolean IS NOT DISTINCT FROM false", "0"),
        ],
    )
    .await;
}

/// A time without a zone beside one that has one is what the clocks of the session's zone show.
#[tokio::test(flavor = "multi_thread")]
async fn times_of_a_zone() {
    let db = numbers().await;
    db.ok("SET TIME ZONE 'Europe/Berlin'").await;
    db.ok("CREATE TABLE z AS SELECT id, t::timestamptz AS z FROM w").await;
    found(
        &db,
        "w",
        &[
            ("t = TIMESTAMPTZ '2024-07-01 10:00:00Z'", "1"),
            ("t = TIMESTAMPTZ '2024-07-01 12:00:00Z'", ""),
            ("t <> TIMESTAMPTZ '2024-07-01 10:00:00Z'", "2\n3"),
            ("t < TIMESTAMPTZ '2024-07-01 10:00:01Z'", "1"),
            ("t >= TIMESTAMPTZ '2024-07-01 21:30:00Z'", "2\n3"),
            ("t BETWEEN TIMESTAMPTZ '2024-07-01 10:00:00Z' AND TIMESTAMPTZ '2024-07-01 21:30:00Z'", "1\n2"),
            ("t IN (TIMESTAMPTZ '2024-07-01 10:00:00Z', TIMESTAMPTZ '2024-07-01 23:00:00Z')", "1\n3"),
            ("t IS NOT DISTINCT FROM TIMESTAMPTZ '2024-07-01 10:00:00Z'", "1"),
            ("t < now()", "1\n2\n3"),
            ("t::timestamptz = TIMESTAMPTZ '2024-07-01 10:00:00Z'", "1"),
            ("t = (SELECT min(z) FROM z)", "1"),
            // It is the hour that is shown twice.
            ("t < TIMESTAMPTZ '2024-10-27 00:30:00Z'", "1\n2\n3"),
        ],
    )
    .await;
    found(
        &db,
        "z",
        &[
            ("z = TIMESTAMP '2024-07-01 12:00:00'", "1"),
            ("z = TIMESTAMPTZ '2024-07-01 10:00:00Z'", "1"),
            ("z > TIMESTAMP '2024-07-01 12:00:00'", "2\n3"),
            ("z::timestamp = TIMESTAMP '2024-07-01 10:00:00'", "1"),
        ],
    )
    .await;
    check(
        &db,
        "",
        &[
            ("SELECT w.id FROM w JOIN z ON w.t = z.z ORDER BY 1", "1\n2\n3"),
            ("SELECT w.id FROM w JOIN (SELECT z AS t FROM z WHERE id < 3) y USING (t) ORDER BY 1", "1\n2"),
            (
                "SELECT id FROM (SELECT id, t::timestamptz AS x FROM w) q WHERE x = TIMESTAMPTZ '2024-07-01 10:00:00Z'",
                "1",
            ),
        ],
    )
    .await;
    db.ok("SET nectarine.reuse = 'off'").await;
    for condition in ["t > TIMESTAMPTZ '2024-07-01 10:00:00Z'", "t > now() - INTERVAL '7 days'"] {
        let plan = db.ok(&format!("EXPLAIN SELECT id FROM w WHERE {condition}")).await;
        assert!(plan.contains("pruning_predicate") && plan.contains("t_max@0 > "), "{plan}");
    }
}

/// Half a second is between two seconds, not one of them.
#[tokio::test(flavor = "multi_thread")]
async fn times_of_other_units() {
    let db = Db::new().await;
    db.ok("CREATE TABLE u (id INT, s TIMESTAMP(0))").await;
    db.ok("INSERT INTO u VALUES (1, '2024-07-01T10:00:00'), (2, '2024-07-01T10:00:01'), \
           (3, '1960-01-01T00:00:00'), (4, NULL)")
        .await;
    found(
        &db,
        "u",
        &[
            ("s = TIMESTAMP '2024-07-01 10:00:00'", "1"),
            ("s = TIMESTAMP '2024-07-01 10:00:00.5'", ""),
            ("s <> TIMESTAMP '2024-07-01 10:00:00.5'", "1\n2\n3"),
            ("s < TIMESTAMP '2024-07-01 10:00:00.5'", "1\n3"),
            ("s <= TIMESTAMP '2024-07-01 10:00:00.5'", "1\n3"),
            ("s > TIMESTAMP '2024-07-01 10:00:00.5'", "2"),
            ("s >= TIMESTAMP '2024-07-01 10:00:00.5'", "2"),
            ("TIMESTAMP '2024-07-01 10:00:00.5' > s", "1\n3"),
            ("s BETWEEN TIMESTAMP '2024-07-01 09:59:59.5' AND TIMESTAMP '2024-07-01 10:00:00.5'", "1"),
            ("s NOT BETWEEN TIMESTAMP '2024-07-01 09:59:59.5' AND TIMESTAMP '2024-07-01 10:00:00.5'", "2\n3"),
            ("s IN (TIMESTAMP '2024-07-01 10:00:00.5')", ""),
            ("s NOT IN (TIMESTAMP '2024-07-01 10:00:00.5')", "1\n2\n3"),
            ("s IN (TIMESTAMP '2024-07-01 10:00:00.5', TIMESTAMP '2024-07-01 10:00:01')", "2"),
            ("s IS DISTINCT FROM TIMESTAMP '2024-07-01 10:00:00.5'", "1\n2\n3\n4"),
            ("s IS NOT DISTINCT FROM TIMESTAMP '2024-07-01 10:00:00.5'", ""),
            ("s > TIMESTAMP '1959-12-31 23:59:59.5'", "1\n2\n3"),
            ("s < TIMESTAMP '1960-01-01 00:00:00.5'", "3"),
            ("s < TIMESTAMP '2024-06-30 10:00:00.5' + INTERVAL '1 day'", "1\n3"),
            ("s < now()", "1\n2\n3"),
        ],
    )
    .await;
    let moved = "SELECT id FROM (SELECT id, s::timestamp AS x FROM u) q WHERE x < TIMESTAMP '2024-07-01 10:00:00.5' \
                 ORDER BY id";
    check(&db, "", &[(moved, "1\n3")]).await;
    db.ok("SET nectarine.reuse = 'off'").await;
    let plan = db.ok("EXPLAIN SELECT id FROM u WHERE s > TIMESTAMP '2024-07-01 10:00:00.5'").await;
    assert!(!plan.contains("CAST"), "{plan}");
}

/// A filter on what is computed of a column leaves more than one value of it.
#[tokio::test(flavor = "multi_thread")]
async fn filters_that_leave_several_values() {
    let db = numbers().await;
    db.ok("CREATE TABLE q AS SELECT 31 - value AS i, (31 - value)::double AS f FROM generate_series(1, 30)").await;
    for partitions in [1, 2] {
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        check(
            &db,
            &format!("{partitions} partitions, "),
            &[
                ("SELECT id FROM w WHERE t::date = DATE '2024-07-01' ORDER BY t DESC", "2\n1"),
                ("SELECT id FROM w WHERE t::date = DATE '2024-07-01' ORDER BY t", "1\n2"),
                ("SELECT id FROM w WHERE f::int = 1 ORDER BY f", "2\n1"),
                ("SELECT id FROM w WHERE f::int = 1 ORDER BY f DESC", "1\n2"),
                ("SELECT i FROM q WHERE i / 10 = 1 ORDER BY i", "10\n11\n12\n13\n14\n15\n16\n17\n18\n19"),
                ("SELECT i FROM q WHERE i / 10 = 1 AND i > 12 ORDER BY i LIMIT 2", "13\n14"),
                ("SELECT i FROM q WHERE i / 10 = 1 AND f > 17 ORDER BY f DESC, i", "19\n18"),
                (
                    "SELECT i, row_number() OVER (ORDER BY i) AS n FROM q WHERE i / 10 = 1 ORDER BY n LIMIT 2",
                    "10|1\n11|2",
                ),
                ("SELECT i, count(*) AS n FROM q WHERE i / 10 = 1 GROUP BY i ORDER BY i LIMIT 2", "10|1\n11|1"),
                ("SELECT i FROM q WHERE i = 7 AND f < 10 ORDER BY i, f", "7"),
            ],
        )
        .await;
    }
    // Files are left out all the same.
    db.ok("SET nectarine.reuse = 'off'").await;
    let plan = db.ok("EXPLAIN SELECT id FROM w WHERE t::date = DATE '2024-07-01' ORDER BY t").await;
    assert!(plan.contains("SortExec") && plan.contains("t_max@1 AS Date32)"), "{plan}");
}

/// A subquery's groups are those of the value that the outer row is compared with.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_subqueries_that_are_computed() {
    let db = numbers().await;
    db.ok("CREATE TABLE o (k INT, d DATE)").await;
    db.ok("INSERT INTO o VALUES (14, '2024-07-01'), (-14, '2024-07-02'), (7, '2024-07-03')").await;
    check(
        &db,
        "",
        &[
            ("SELECT k, (SELECT sum(i) FROM w WHERE w.m::int = o.k) AS n FROM o ORDER BY k", "-14|6\n7|NULL\n14|305"),
            ("SELECT k, (SELECT count(*) FROM w WHERE w.m::int = o.k) AS n FROM o ORDER BY k", "-14|1\n7|0\n14|2"),
            (
                "SELECT d, (SELECT sum(i) FROM w WHERE w.t::date = o.d) AS n FROM o ORDER BY d",
                "2024-07-01|305\n2024-07-02|6\n2024-07-03|NULL",
            ),
            (
                "SELECT d, (SELECT sum(i) FROM w WHERE o.d = w.t::date AND w.i > 5) AS n FROM o ORDER BY d",
                "2024-07-01|300\n2024-07-02|6\n2024-07-03|NULL",
            ),
            ("SELECT k FROM o WHERE (SELECT sum(i) FROM w WHERE abs(w.m::int) = o.k) > 300", "14"),
            ("SELECT k FROM o WHERE EXISTS (SELECT 1 FROM w WHERE w.t::date = o.d HAVING count(*) > 1)", "14"),
            (
                "SELECT k, (SELECT sum(i) FROM w WHERE w.i::bigint = o.k - 8) AS n FROM o ORDER BY k",
                "-14|NULL\n7|NULL\n14|6",
            ),
        ],
    )
    .await;
}

/// As in PostgreSQL: a month has 30 days, a day 24 hours.
#[tokio::test(flavor = "multi_thread")]
async fn intervals_by_their_length() {
    let db = Db::new().await;
    db.ok("CREATE TABLE p (id INT, a TIMESTAMP, b TIMESTAMP, i INTERVAL)").await;
    db.ok("INSERT INTO p VALUES \
           (1, TIMESTAMP '2024-01-01T00:00:00', TIMESTAMP '2024-01-03T00:00:00', INTERVAL '25 hours'), \
           (2, TIMESTAMP '2024-01-01T00:00:00', TIMESTAMP '2024-01-01T12:00:00', INTERVAL '1 day'), \
           (3, TIMESTAMP '2024-01-01T00:00:00', TIMESTAMP '2024-03-01T00:00:00', INTERVAL '1 month'), \
           (4, NULL, NULL, NULL)")
        .await;
    db.ok("CREATE TABLE u AS SELECT INTERVAL '24 hours' AS i UNION ALL SELECT INTERVAL '30 days'").await;
    found(
        &db,
        "p",
        &[
            ("b - a > INTERVAL '1 day'", "1\n3"),
            ("INTERVAL '1 day' < b - a", "1\n3"),
            ("b - a = INTERVAL '2 days'", "1"),
            ("b - a <> INTERVAL '2 days'", "2\n3"),
            ("b - a < INTERVAL '1 day'", "2"),
            ("b - a <= INTERVAL '12 hours'", "2"),
            ("b - a >= INTERVAL '2 months'", "3"),
            ("b - a BETWEEN INTERVAL '1 day' AND INTERVAL '3 days'", "1"),
            ("b - a NOT BETWEEN INTERVAL '1 day' AND INTERVAL '3 days'", "2\n3"),
            ("b - a IN (INTERVAL '2 days', INTERVAL '12 hours')", "1\n2"),
            ("b - a NOT IN (INTERVAL '2 days')", "2\n3"),
            ("b - a IN (INTERVAL '2 days', NULL)", "1"),
            ("b - a IS NOT DISTINCT FROM INTERVAL '2 days'", "1"),
            ("b - a IS DISTINCT FROM INTERVAL '2 days'", "2\n3\n4"),
            ("CASE b - a WHEN INTERVAL '2 days' THEN true WHEN INTERVAL '12 hours' THEN true ELSE false END", "1\n2"),
            ("now() - a > INTERVAL '7 days'", "1\n2\n3"),
            ("b - a > a - b", "1\n2\n3"),
            ("b - a > i", "1\n3"),
            ("i > INTERVAL '1 day'", "1\n3"),
            ("i = INTERVAL '24 hours'", "2"),
            ("i = INTERVAL '30 days'", "3"),
            ("i <= INTERVAL '1 day'", "2"),
            ("i IN (INTERVAL '24 hours', INTERVAL '30 days')", "2\n3"),
            ("i IS DISTINCT FROM INTERVAL '24 hours'", "1\n3\n4"),
            ("CASE i WHEN INTERVAL '24 hours' THEN true ELSE false END", "2"),
            ("i > (SELECT min(b - a) FROM p)", "1\n2\n3"),
            ("i IN (SELECT i FROM u)", "2\n3"),
            ("i NOT IN (SELECT i FROM u)", "1"),
            ("id < 4 AND i = ANY (SELECT i FROM u)", "2\n3"),
            ("id < 4 AND i >= ALL (SELECT i FROM u)", "3"),
            ("i IS NULL", "4"),
            ("i > NULL", ""),
        ],
    )
    .await;
    check(
        &db,
        "",
        &[
            (
                "SELECT INTERVAL '25 hours' > INTERVAL '1 day' AS x, INTERVAL '1 month' = INTERVAL '30 days' AS y",
                "true|true",
            ),
            (
                "SELECT INTERVAL '1 year' > INTERVAL '12 months' AS x, INTERVAL '-1 day' < INTERVAL '0 days' AS y",
                "false|true",
            ),
            ("SELECT id FROM p ORDER BY i, id", "2\n1\n3\n4"),
            ("SELECT id FROM p ORDER BY i DESC NULLS LAST LIMIT 2", "3\n1"),
            ("SELECT i FROM p WHERE i IS NOT NULL ORDER BY i LIMIT 1", "1 days"),
            ("SELECT p.id FROM p JOIN u ON p.i = u.i ORDER BY 1", "2\n3"),
            ("SELECT p.id FROM p JOIN u USING (i) ORDER BY 1", "2\n3"),
            ("SELECT p.id FROM p LEFT JOIN u ON p.i = u.i WHERE u.i IS NULL ORDER BY 1", "1\n4"),
            ("SELECT p.id, u.i FROM p JOIN u ON p.b - p.a > u.i ORDER BY 1, 2", "1|24 hours\n3|24 hours\n3|30 days"),
            ("SELECT count(*) FILTER (WHERE b - a > INTERVAL '1 day') FROM p", "2"),
            (
                "SELECT b - a > INTERVAL '1 day' AS long, count(*) FROM p GROUP BY 1 ORDER BY 1",
                "false|1\ntrue|2\nNULL|1",
            ),
            ("SELECT count(*) FROM p HAVING max(b - a) > INTERVAL '59 days'", "4"),
            ("SELECT arrow_typeof(i) AS x FROM p LIMIT 1", "Interval(MonthDayNano)"),
        ],
    )
    .await;
    db.script(
        r#"
        CREATE FUNCTION is_long(x INTERVAL) RETURNS BOOLEAN RETURN x > INTERVAL '1 day';
        SELECT id FROM p WHERE is_long(b - a) ORDER BY id;
        -> 1
        -> 3
        PREPARE q AS SELECT id FROM p WHERE b - a > $1 ORDER BY id;
        EXECUTE q(INTERVAL '1 day');
        -> 1
        -> 3
        CREATE VIEW long AS SELECT id FROM p WHERE b - a > INTERVAL '1 day';
        SELECT id FROM long ORDER BY id;
        -> 1
        -> 3
        "#,
    )
    .await;
}

/// The type of a rounded number is the same while it is planned and when it runs.
#[tokio::test(flavor = "multi_thread")]
async fn rounded_decimals() {
    let db = Db::new().await;
    db.ok("CREATE TABLE a (m DECIMAL(9, 2), k INT)").await;
    db.ok("INSERT INTO a VALUES (1.23, 1), (4.56, 2), (1.20, 1)").await;
    db.ok("CREATE TABLE b (m DECIMAL(9, 2))").await;
    db.ok("INSERT INTO b VALUES (1.20), (4.60)").await;
    let placed = "(SELECT m, round(m, n) AS r FROM (SELECT m, 1 AS n FROM a) x) y";
    check(
        &db,
        "",
        &[
            ("SELECT a.m FROM a JOIN b ON round(a.m, 1) = b.m ORDER BY 1", "1.20\n1.23\n4.56"),
            ("SELECT a.m FROM a JOIN b ON round(a.m, 1 + 0) = b.m ORDER BY 1", "1.20\n1.23\n4.56"),
            ("SELECT a.m FROM a JOIN b ON round(a.m, -1) = round(b.m, -1) ORDER BY 1 LIMIT 1", "1.20"),
            ("SELECT CASE WHEN m > 2 THEN round(m, 1) ELSE m END AS x FROM a ORDER BY 1", "1.20\n1.23\n4.60"),
            ("SELECT m FROM a WHERE round(m, 2) = m ORDER BY 1", "1.20\n1.23\n4.56"),
            ("SELECT m FROM a WHERE round(m, 1) = m", "1.20"),
            ("SELECT m FROM a WHERE round(m, 1) IN (m, 4.6) ORDER BY 1", "1.20\n4.56"),
            ("SELECT m FROM a WHERE round(m, k) = m ORDER BY 1", "1.20\n4.56"),
            ("SELECT m FROM a WHERE round(m, -(1)) < m ORDER BY 1", "1.20\n1.23\n4.56"),
            ("SELECT array[round(m, 1), m] AS x FROM a ORDER BY m", "[1.20, 1.20]\n[1.20, 1.23]\n[4.60, 4.56]"),
            ("SELECT coalesce(round(m, 1), m) AS x FROM a ORDER BY m", "1.20\n1.20\n4.60"),
            ("SELECT round(m, 1) AS x, count(*) FROM a GROUP BY 1 ORDER BY 1", "1.2|2\n4.6|1"),
            ("SELECT round(m, 1) AS x FROM a UNION ALL SELECT m FROM b ORDER BY 1", "1.20\n1.20\n1.20\n4.60\n4.60"),
            ("SELECT sum(round(m, 1)) AS x, max(round(m, 1)) AS y FROM a", "7.0|4.6"),
            (
                "SELECT round(m, 1) + m AS x, arrow_typeof(round(m, -1) + m) AS y FROM a WHERE m = 1.23",
                "2.43|Decimal128(12, 2)",
            ),
            // As DataFusion has them.
            ("SELECT arrow_typeof(round(m, 1)) AS x, round(m, 1) AS y FROM a WHERE m = 1.23", "Decimal128(9, 1)|1.2"),
            (
                "SELECT arrow_typeof(round(m, 1::tinyint)) AS x, round(m, 1::tinyint) AS y FROM a WHERE m = 1.23",
                "Decimal128(9, 1)|1.2",
            ),
            (
                "SELECT arrow_typeof(round(m, 1 + 0)) AS x, round(m, 1 + 0) AS y FROM a WHERE m = 1.23",
                "Decimal128(9, 1)|1.2",
            ),
            (
                "SELECT arrow_typeof(round(m, -1)) AS x, round(m * 10, -1) AS y FROM a WHERE m = 4.56",
                "Decimal128(9, 0)|50",
            ),
            (
                "SELECT arrow_typeof(round(m, -(1))) AS x, round(m * 10, -(1)) AS y FROM a WHERE m = 4.56",
                "Decimal128(9, 0)|50",
            ),
            ("SELECT arrow_typeof(round(m)) AS x, round(m) AS y FROM a WHERE m = 4.56", "Decimal128(9, 0)|5"),
            (
                "SELECT arrow_typeof(round(m, NULL)) AS x, round(m, NULL) AS y FROM a WHERE m = 4.56",
                "Decimal128(9, 0)|NULL",
            ),
            ("SELECT arrow_typeof(round(m, k)) AS x, round(m, k) AS y FROM a WHERE m = 1.23", "Decimal128(10, 2)|1.20"),
            (
                "SELECT arrow_typeof(round(k, -1)) AS x, round(15, -1) AS y, round(2.567, 1) AS z FROM a LIMIT 1",
                "Int32|20|2.6",
            ),
            // A constant that comes later.
            (&format!("SELECT arrow_typeof(r) AS x, r FROM {placed} WHERE m = 1.23"), "Decimal128(10, 2)|1.20"),
            (&format!("SELECT m FROM {placed} WHERE r = m"), "1.20"),
            (&format!("SELECT y.m FROM {placed} JOIN b ON y.r = b.m ORDER BY 1"), "1.20\n1.23\n4.56"),
            // Neither of these has this fault.
            ("SELECT m FROM a WHERE trunc(m, 1) = m", "1.20"),
            ("SELECT array[ceil(m), floor(m), trunc(m, 1), m] AS x FROM a WHERE m = 1.23", "[2.00, 1.00, 1.20, 1.23]"),
        ],
    )
    .await;
    db.script(
        r#"
        CREATE FUNCTION tenths(x DECIMAL(9, 2)) RETURNS DECIMAL(9, 2)
        RETURN CASE WHEN x > 2 THEN round(x, 1) ELSE x END;
        SELECT tenths(m) AS x FROM a ORDER BY 1;
        -> 1.20
        -> 1.23
        -> 4.60
        CREATE FUNCTION to_places(x DECIMAL(9, 2), n INT) RETURNS DECIMAL(10, 2) RETURN round(x, n);
        SELECT m FROM a WHERE to_places(m, 1) = m;
        -> 1.20
        SELECT round(m, 3000000000) FROM a;
        !! out of supported i32 range
        SELECT round('a', 1) FROM a;
        !! round
        "#,
    )
    .await;
}

/// Functions of ours are known: what is made with them is kept.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_with_them_is_reused() {
    let db = numbers().await;
    for (sql, expected) in [
        ("SELECT m::int AS x, count(*) FROM w GROUP BY 1", "-14|1\n14|2\nNULL|1"),
        (
            "SELECT t - TIMESTAMP '2024-07-01' > INTERVAL '1 day' AS x, count(*) FROM w GROUP BY 1",
            "NULL|1\nfalse|2\ntrue|1",
        ),
        ("SELECT round(m, 1) AS x, count(*) FROM w GROUP BY 1", "-14.5|1\n14.5|2\nNULL|1"),
        ("SELECT round(m, id) AS x, count(*) FROM w GROUP BY 1", "-14.48|1\n14.50|2\nNULL|1"),
    ] {
        let (first, _) = db.ask(sql).await;
        assert_eq!(first.join("\n"), expected, "{sql}");
        let (second, receipt) = db.ask(sql).await;
        assert_eq!(second.join("\n"), expected, "{sql}");
        assert_eq!(receipt.reused, Reused::Exact, "{sql}");
    }
}
