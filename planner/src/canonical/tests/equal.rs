//! Groups of statements that mean the same and must share a key.

use datafusion::prelude::SessionConfig;

use crate::canonical::fixture::Fixture;

/// Each inner list: one meaning, several spellings.
pub(crate) const SAME: &[&[&str]] = &[
    // Names and aliases.
    &[
        "SELECT a, b FROM t",
        "SELECT a AS x, b AS y FROM t",
        "SELECT t.a, t.b FROM t",
        "SELECT z.a, z.b FROM t z",
        "SELECT a \"A column\", b FROM t AS other",
        "SELECT q.a, q.b FROM (SELECT a, b FROM t) q",
        "WITH w AS (SELECT a, b FROM t) SELECT a, b FROM w",
        "WITH w(x, y) AS (SELECT a, b FROM t) SELECT x, y FROM w",
        "SELECT a, b FROM v",
    ],
    // Order of conjuncts, direction of comparisons.
    &[
        "SELECT a FROM t WHERE a > 3 AND b < 5",
        "SELECT a FROM t WHERE b < 5 AND a > 3",
        "SELECT a FROM t WHERE 3 < a AND 5 > b",
        "SELECT a FROM t WHERE 5 > b AND a > 3",
        "SELECT a FROM (SELECT a, b FROM t WHERE a > 3) WHERE b < 5",
        "SELECT x FROM (SELECT a x, b y FROM t WHERE b < 5) WHERE x > 3",
        "WITH w AS (SELECT * FROM t WHERE a > 3) SELECT a FROM w WHERE b < 5",
    ],
    &["SELECT a FROM t WHERE a = b", "SELECT a FROM t WHERE b = a"],
    &[
        "SELECT a FROM t WHERE a >= 7 OR b <= 9 OR c = 4",
        "SELECT a FROM t WHERE b <= 9 OR a >= 7 OR c = 4",
        "SELECT a FROM t WHERE c = 4 OR 9 >= b OR 7 <= a",
        "SELECT a FROM t WHERE (c = 4 OR b <= 9) OR a >= 7",
    ],
    &[
        "SELECT a FROM t WHERE a IN (1, 2, 3, 4, 5)",
        "SELECT a FROM t WHERE a IN (5, 4, 3, 2, 1)",
        "SELECT a FROM t WHERE a IN (3, 1, 5, 2, 4)",
    ],
    &["SELECT a FROM t WHERE s NOT IN ('x', 'y', 'z', 'w')", "SELECT a FROM t WHERE s NOT IN ('w', 'z', 'y', 'x')"],
    &[
        "SELECT a FROM t WHERE a BETWEEN 1 AND 10",
        "SELECT a FROM t WHERE a >= 1 AND a <= 10",
        "SELECT a FROM t WHERE a <= 10 AND a >= 1",
        "SELECT a FROM t WHERE 10 >= a AND 1 <= a",
    ],
    &["SELECT a FROM t WHERE a IS DISTINCT FROM b", "SELECT a FROM t WHERE b IS DISTINCT FROM a"],
    // Groups.
    &[
        "SELECT a, sum(b) FROM t GROUP BY a",
        "SELECT a, sum(b) AS total FROM t GROUP BY a",
        "SELECT a k, sum(b) total FROM t GROUP BY a",
        "SELECT x.a, sum(x.b) FROM t x GROUP BY x.a",
        "SELECT a, sum(b) FROM t GROUP BY 1",
        "SELECT k, sum(w) FROM (SELECT a k, b w FROM t) GROUP BY k",
        "WITH w AS (SELECT a, b FROM t) SELECT a, sum(b) FROM w GROUP BY a",
        "SELECT k, n FROM (SELECT a k, sum(b) n FROM t GROUP BY a)",
    ],
    &[
        "SELECT a, count(*) FROM t WHERE b > 1 AND c > 2 GROUP BY a",
        "SELECT a, count(*) FROM t WHERE c > 2 AND b > 1 GROUP BY a",
        "SELECT a, count(1) FROM t WHERE c > 2 AND b > 1 GROUP BY a",
        "SELECT a AS g, count(*) AS n FROM t WHERE 2 < c AND 1 < b GROUP BY a",
    ],
    &[
        "SELECT a, sum(b) FROM t GROUP BY a HAVING sum(b) > 10",
        "SELECT a, sum(b) AS s FROM t GROUP BY a HAVING sum(b) > 10",
        "SELECT * FROM (SELECT a, sum(b) s FROM t GROUP BY a) WHERE s > 10",
        "SELECT a, sum(b) FROM t GROUP BY a HAVING 10 < sum(b)",
    ],
    &[
        "SELECT DISTINCT a, b FROM t",
        "SELECT a, b FROM t GROUP BY a, b",
        "SELECT DISTINCT x, y FROM (SELECT a x, b y FROM t)",
    ],
    &[
        "SELECT count(DISTINCT a) FROM t",
        "SELECT count(DISTINCT a) AS n FROM t",
        "SELECT count(DISTINCT x) FROM (SELECT a x FROM t)",
    ],
    &[
        "SELECT sum(b) FILTER (WHERE a > 1 AND c > 2) FROM t",
        "SELECT sum(b) FILTER (WHERE c > 2 AND a > 1) FROM t",
        "SELECT sum(b) FILTER (WHERE 2 < c AND 1 < a) AS x FROM t",
    ],
    &[
        "SELECT a, b, sum(c) FROM t GROUP BY ROLLUP (a, b)",
        "SELECT a AS x, b AS y, sum(c) AS z FROM t GROUP BY ROLLUP (a, b)",
    ],
    // Order and limit.
    &[
        "SELECT a FROM t ORDER BY a",
        "SELECT a AS x FROM t ORDER BY x",
        "SELECT a FROM t ORDER BY 1",
        "SELECT a FROM t ORDER BY a ASC",
        "SELECT a FROM t ORDER BY a ASC NULLS LAST",
        "SELECT * FROM (SELECT a FROM t) ORDER BY a",
    ],
    &[
        "SELECT a, b FROM t ORDER BY b DESC LIMIT 5",
        "SELECT a x, b y FROM t ORDER BY y DESC LIMIT 5",
        "SELECT a, b FROM t ORDER BY 2 DESC NULLS FIRST LIMIT 5",
        "SELECT a, b FROM t ORDER BY b DESC LIMIT 5 OFFSET 0",
    ],
    &["SELECT a FROM t LIMIT 5", "SELECT a AS x FROM t LIMIT 5", "SELECT a FROM (SELECT a FROM t) LIMIT 5"],
    // Joins.
    &[
        "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a",
        "SELECT t.a, u.b FROM t JOIN u ON u.a = t.a",
        "SELECT t.a, u.b FROM t JOIN u USING (a)",
        "SELECT x.a, y.b FROM t x JOIN u y ON x.a = y.a",
        "SELECT t.a, u.b FROM t INNER JOIN u ON t.a = u.a",
        "SELECT t.a, u.b FROM t, u WHERE t.a = u.a",
        "SELECT t.a, u.b FROM t, u WHERE u.a = t.a",
        "SELECT t.a, u.b FROM t CROSS JOIN u WHERE t.a = u.a",
    ],
    &[
        "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a AND t.b = u.b",
        "SELECT t.a, u.b FROM t JOIN u ON t.b = u.b AND t.a = u.a",
        "SELECT t.a, u.b FROM t JOIN u ON u.b = t.b AND u.a = t.a",
        "SELECT t.a, u.b FROM t, u WHERE t.b = u.b AND t.a = u.a",
    ],
    &[
        "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a AND t.b < u.b AND t.c > u.c",
        "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a AND t.c > u.c AND t.b < u.b",
        "SELECT t.a FROM t LEFT OUTER JOIN u ON u.c < t.c AND u.b > t.b AND u.a = t.a",
    ],
    &[
        "SELECT t.a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
        "SELECT t.a FROM t WHERE EXISTS (SELECT * FROM u WHERE t.a = u.a)",
        "SELECT x.a FROM t x WHERE EXISTS (SELECT 1 FROM u y WHERE y.a = x.a)",
    ],
    &[
        "SELECT a FROM t WHERE a IN (SELECT a FROM u)",
        "SELECT x.a FROM t x WHERE x.a IN (SELECT y.a FROM u y)",
        "SELECT a FROM t LEFT SEMI JOIN u USING (a)",
    ],
    // Sets.
    &[
        "SELECT a FROM t UNION ALL SELECT a FROM u",
        "SELECT a AS x FROM t UNION ALL SELECT a AS y FROM u",
        "SELECT * FROM (SELECT a FROM t UNION ALL SELECT a FROM u)",
    ],
    // Expressions.
    &["SELECT a + 1 FROM t", "SELECT a + 1 AS x FROM t", "SELECT (a + (1)) FROM t", "SELECT t.a + 1 FROM t"],
    &[
        "SELECT CASE WHEN a = 1 THEN 'one' ELSE 'more' END FROM t",
        "SELECT CASE WHEN 1 = a THEN 'one' ELSE 'more' END AS word FROM t",
        "select case when a=1 then 'one' else 'more' end from t",
    ],
    &[
        "SELECT upper(s) FROM t WHERE length(s) > 3",
        "SELECT upper(s) AS u FROM t WHERE 3 < char_length(s)",
        "SELECT upper(x.s) FROM t x WHERE length(x.s) > 3",
    ],
    &["SELECT CAST(a AS DOUBLE) FROM t", "SELECT a::double FROM t", "SELECT CAST(a AS double precision) AS x FROM t"],
    &[
        "SELECT date_trunc('day', ts), count(*) FROM t GROUP BY 1",
        "SELECT date_trunc('day', ts) AS d, count(*) AS n FROM t GROUP BY date_trunc('day', ts)",
        "SELECT date_trunc('day', x.ts), count(1) FROM t x GROUP BY 1",
    ],
    // Windows.
    &[
        "SELECT a, rank() OVER (PARTITION BY a ORDER BY b) FROM t",
        "SELECT a AS k, rank() OVER (PARTITION BY a ORDER BY b) AS place FROM t",
        "SELECT a, rank() OVER w FROM t WINDOW w AS (PARTITION BY a ORDER BY b)",
        "SELECT a, rank() OVER (PARTITION BY a ORDER BY b ASC NULLS LAST) FROM t",
    ],
    &[
        "SELECT a, sum(b) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT a, sum(b) OVER (ORDER BY ts ROWS 2 PRECEDING) AS moving FROM t",
    ],
    // Subqueries.
    &[
        "SELECT a FROM t WHERE b > (SELECT avg(b) FROM u)",
        "SELECT a FROM t WHERE (SELECT avg(b) FROM u) < b",
        "SELECT x.a FROM t x WHERE x.b > (SELECT avg(y.b) AS m FROM u y)",
    ],
];

#[tokio::test]
async fn spellings_share_a_key() {
    let fixture = Fixture::new();
    let mut n_pairs = 0;
    let mut failures = vec![];
    for group in SAME {
        let mut keys = vec![];
        for sql in *group {
            keys.push(fixture.key(sql).await);
        }
        n_pairs += group.len() * (group.len() - 1) / 2;
        for (sql, key) in group.iter().zip(&keys) {
            if key != &keys[0] {
                failures.push(format!("{}\n    {sql}", group[0]));
            }
        }
    }
    assert!(failures.is_empty(), "not the same key:\n{}", failures.join("\n"));
    assert!(n_pairs >= 200, "only {n_pairs} pairs");
}

/// Views are planned where they are used, so they are as good as subqueries.
#[tokio::test]
async fn a_view_is_its_text() {
    let fixture = Fixture::new();
    fixture.context.sql("CREATE VIEW w AS SELECT a, sum(b) AS total FROM t GROUP BY a").await.unwrap();
    assert_eq!(
        fixture.key("SELECT * FROM w WHERE total > 3").await,
        fixture.key("SELECT a, sum(b) FROM t GROUP BY a HAVING sum(b) > 3").await
    );
}

/// How a plan is run is not what it means.
#[tokio::test]
async fn ways_of_running_share_a_key() {
    let queries = [
        "SELECT a, sum(b) FROM t WHERE c > 1 GROUP BY a ORDER BY a",
        "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a WHERE t.b > 2",
        "SELECT a FROM t LIMIT 5",
        "SELECT a, rank() OVER (PARTITION BY a ORDER BY b) FROM t",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t UNION SELECT a FROM u ORDER BY 1 LIMIT 3",
    ];
    let base = Fixture::new();
    let change = |key: &str, value: &str| SessionConfig::new().with_target_partitions(2).set_str(key, value);
    let others = [
        SessionConfig::new().with_target_partitions(1),
        SessionConfig::new().with_target_partitions(7),
        change("datafusion.execution.batch_size", "7"),
        change("datafusion.optimizer.prefer_hash_join", "false"),
        change("datafusion.optimizer.repartition_joins", "false"),
        change("datafusion.optimizer.repartition_aggregations", "false"),
        change("datafusion.optimizer.enable_dynamic_filter_pushdown", "false"),
        change("datafusion.execution.parquet.pushdown_filters", "true"),
        change("datafusion.execution.coalesce_batches", "false"),
        change("datafusion.execution.collect_statistics", "false"),
        change("datafusion.explain.show_statistics", "true"),
    ];
    for config in others {
        let text = format!("{:?}", config.options().execution.target_partitions);
        let other = Fixture::with_config(config);
        for sql in queries {
            assert_eq!(base.key(sql).await, other.key(sql).await, "{sql} with {text} partitions");
        }
    }
}
