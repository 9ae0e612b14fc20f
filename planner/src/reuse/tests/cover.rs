//! Entries with other columns but the same rows.

use super::*;

/// Each: an earlier query, and one that has the same rows in fewer or other columns.
const COVERED: &[(&str, &str)] = &[
    // Fewer aggregates, in another order.
    ("SELECT a, sum(b), count(*) FROM t GROUP BY a", "SELECT a, count(*) FROM t GROUP BY a"),
    ("SELECT a, sum(b), count(*) FROM t GROUP BY a", "SELECT a, count(*), sum(b) FROM t GROUP BY a"),
    ("SELECT a, sum(b), count(*) FROM t GROUP BY a", "SELECT DISTINCT a FROM t"),
    ("SELECT a, sum(b), max(c) FROM t GROUP BY a", "SELECT a, max(c) FROM t GROUP BY a ORDER BY 2 DESC LIMIT 3"),
    ("SELECT a, b, min(d), max(d) FROM t GROUP BY a, b", "SELECT a, b, max(d) FROM t GROUP BY a, b"),
    ("SELECT sum(b), count(*) FROM t", "SELECT sum(b) FROM t"),
    // Groups of groups: what is dropped above is dropped below.
    (
        "SELECT a, sum(n), count(*) FROM (SELECT a, b, count(*) n FROM t GROUP BY a, b) GROUP BY a",
        "SELECT a, count(*) FROM (SELECT a, b, count(*) n FROM t GROUP BY a, b) GROUP BY a",
    ),
    // Joins and filters.
    (
        "SELECT t.a, t.b, t.c, u.s FROM t JOIN u ON t.a = u.a WHERE t.b > 3",
        "SELECT t.b, u.s FROM t JOIN u ON t.a = u.a WHERE t.b > 3",
    ),
    (
        "SELECT t.a, t.b, u.b AS b2 FROM t JOIN u ON t.a = u.a AND t.c < u.c",
        "SELECT t.b + u.b, t.a FROM t JOIN u ON t.a = u.a AND t.c < u.c",
    ),
    (
        "SELECT t.a, t.b, u.b AS b2 FROM t LEFT JOIN u ON t.a = u.a",
        "SELECT max(x) FROM (SELECT t.a * u.b AS x FROM t LEFT JOIN u ON t.a = u.a)",
    ),
    // As a set, a semijoin is one side of the join.
    (
        "SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a AND t.b < u.b",
        "SELECT DISTINCT t.b FROM t JOIN u ON t.a = u.a AND t.b < u.b",
    ),
    (
        "SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a AND t.b < u.b",
        "SELECT x, count(*) FROM (SELECT DISTINCT t.b + 1 AS x, t.a FROM t JOIN u ON t.a = u.a AND t.b < u.b) GROUP BY x",
    ),
    ("SELECT a, b, c FROM t WHERE a > 1 AND b < 5", "SELECT b * 2 FROM t WHERE b < 5 AND a > 1"),
    ("SELECT a, b, a + b AS s FROM t WHERE s LIKE 'x%'", "SELECT (a + b) * 2 FROM t WHERE s LIKE 'x%'"),
];

/// Each: an earlier query, and one that must not be answered from it.
const NOT_COVERED: &[(&str, &str)] = &[
    // Other values.
    ("SELECT a, sum(b), count(*) FROM t GROUP BY a", "SELECT a, sum(c) FROM t GROUP BY a"),
    ("SELECT a, sum(b), count(*) FROM t GROUP BY a", "SELECT a, sum(DISTINCT b) FROM t GROUP BY a"),
    ("SELECT a, sum(b), count(*) FROM t GROUP BY a", "SELECT a, sum(b) FILTER (WHERE c > 1) FROM t GROUP BY a"),
    ("SELECT a, sum(b), count(*) FROM t GROUP BY a", "SELECT a, count(b) FROM t GROUP BY a"),
    ("SELECT a, count(c), count(*) FROM t GROUP BY a", "SELECT a, count(b) FROM t GROUP BY a"),
    // Other rows.
    ("SELECT a, sum(b), count(*) FROM t GROUP BY a", "SELECT b, count(*) FROM t GROUP BY b"),
    ("SELECT a, sum(b), count(*) FROM t GROUP BY a", "SELECT a, b, count(*) FROM t GROUP BY a, b"),
    ("SELECT a, sum(b), count(*) FROM t GROUP BY a", "SELECT a, count(*) FROM t WHERE b > 1 GROUP BY a"),
    ("SELECT a, sum(b), count(*) FROM t GROUP BY a", "SELECT a, count(*) FROM u GROUP BY a"),
    ("SELECT a, b, sum(c), count(*) FROM t GROUP BY ROLLUP (a, b)", "SELECT a, b, count(*) FROM t GROUP BY a, b"),
    (
        "SELECT a, b, sum(c), count(*) FROM t GROUP BY ROLLUP (a, b)",
        "SELECT a, b, count(*) FROM t GROUP BY CUBE (a, b)",
    ),
    (
        "SELECT a, sum(n), count(*) FROM (SELECT a, b, count(*) n FROM t GROUP BY a, b) GROUP BY a",
        "SELECT a, count(*) FROM (SELECT a, c, count(*) n FROM t GROUP BY a, c) GROUP BY a",
    ),
    ("SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a", "SELECT t.b, u.s FROM t JOIN u ON t.a = u.b"),
    ("SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a", "SELECT t.b, u.s FROM t LEFT JOIN u ON t.a = u.a"),
    ("SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a", "SELECT t.b, u.s FROM t JOIN u ON t.a = u.a AND t.b < u.b"),
    ("SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a", "SELECT t.b, u.s FROM u AS t JOIN t AS u ON t.a = u.a"),
    (
        "SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a AND t.b < u.b",
        "SELECT t.b, u.s FROM t JOIN u ON t.a = u.a AND t.b <= u.b",
    ),
    (
        "SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a AND t.b < u.b",
        "SELECT t.b, u.s FROM t JOIN u ON t.a = u.a AND u.b < t.b",
    ),
    ("SELECT a, b, c FROM t WHERE a > 1", "SELECT b FROM t WHERE a > 2"),
    // Where it matters how often a row is there, a semijoin is not the join.
    ("SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a", "SELECT t.b FROM t LEFT SEMI JOIN u ON t.a = u.a"),
    ("SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a", "SELECT t.b FROM t WHERE t.a IN (SELECT a FROM u)"),
    (
        "SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a",
        "SELECT t.b, count(*) FROM t LEFT SEMI JOIN u ON t.a = u.a GROUP BY t.b",
    ),
    (
        "SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a",
        "SELECT DISTINCT b, n FROM (SELECT t.b, count(*) OVER (PARTITION BY t.b) n FROM t LEFT SEMI JOIN u ON t.a = u.a)",
    ),
    ("SELECT t.a, t.b, u.s FROM t JOIN u ON t.a = u.a", "SELECT DISTINCT t.b FROM t LEFT ANTI JOIN u ON t.a = u.a"),
    // A column that the entry has not, at a place where it has another.
    ("SELECT a, a * 2 AS x, s FROM t WHERE a > 1", "SELECT a + b FROM t WHERE a > 1"),
    // A column of the other side.
    ("SELECT t.a, t.b, t.s FROM t JOIN u ON t.a = u.a", "SELECT u.b FROM t JOIN u ON t.a = u.a"),
    // Sums of floats may differ from run to run, and so may what is first.
    ("SELECT a, sum(f), count(*) FROM t GROUP BY a", "SELECT a, sum(f) FROM t GROUP BY a"),
    ("SELECT a, first_value(b), count(*) FROM t GROUP BY a", "SELECT a, count(*) FROM t GROUP BY a"),
    ("SELECT a, min(f), max(f) FROM t GROUP BY a", "SELECT a, max(f) FROM t GROUP BY a"),
    // Which rows a limit leaves is luck, and order means something.
    ("SELECT a, b FROM t WHERE a > 1 LIMIT 5", "SELECT b FROM t WHERE a > 1 LIMIT 5"),
    ("SELECT a, b FROM t WHERE a > 1 ORDER BY a", "SELECT b FROM t WHERE a > 1 ORDER BY b"),
];

impl Setup {
    /// Knows the entry of a query, and that there is its program.
    async fn knows_relative(&self, sql: &str) {
        self.knows(sql).await;
        let prefix = self.fixture.root(sql).await.unwrap();
        if may_cover(&prefix) {
            let relative = Relative { program: prefix.program, columns: prefix.lineage.columns, schema: prefix.schema };
            self.oracle.relatives.lock().entry(prefix.lineage.family).or_default().push(relative);
        }
    }
}

#[tokio::test]
async fn fewer_columns_of_the_same_rows_are_read() {
    for (known, asked) in COVERED {
        let setup = Setup::new();
        setup.knows_relative(known).await;
        let (plan, findings) = setup.run(asked, ReuseMode::On).await;
        let text = displayable(plan.as_ref()).indent(false).to_string();
        assert!(text.contains("CacheReadExec") && !text.contains("ExtentScanExec"), "{known}\n{asked}\n{text}");
        assert_eq!(findings.hits[0].key, setup.fixture.key(known).await, "{asked}");
        assert!(!findings.is_exact(), "the answer's own entry is yet to be made: {asked}");
    }
}

#[tokio::test]
async fn other_rows_and_other_values_are_computed() {
    for (known, asked) in NOT_COVERED {
        let setup = Setup::new();
        setup.knows_relative(known).await;
        let text = setup.text(asked).await;
        assert!(!text.contains("CacheReadExec"), "{known}\n{asked}\n{text}");
    }
}

/// A family is known without extents: the entry must be over those that are asked for.
#[tokio::test]
async fn other_extents_are_computed() {
    let setup = Setup::new();
    let known = "SELECT a, sum(b), count(*) FROM t GROUP BY a";
    setup.knows_relative(known).await;
    let asked = "SELECT a, count(*) FROM v GROUP BY a";
    assert!(setup.text(asked).await.contains("CacheReadExec"), "another table over the same extents");
    setup.fixture.table("w", crate::canonical::fixture::Source::parquet(&["t0", "t1", "t2"]));
    let asked = "SELECT a, count(*) FROM w GROUP BY a";
    assert!(!setup.text(asked).await.contains("CacheReadExec"), "one extent more");
}

/// In text files one column may decide about another: only what was read is known.
#[tokio::test]
async fn columns_of_text_files_do_not_stand_alone() {
    let setup = Setup::new();
    let text = crate::canonical::fixture::Source {
        format: nectarine_catalog::FileFormatKind::Csv,
        ..crate::canonical::fixture::Source::parquet(&["c0"])
    };
    setup.fixture.table("lines", text);
    setup.knows_relative("SELECT a, sum(b), count(*) FROM lines GROUP BY a").await;
    let asked = "SELECT a, count(*) FROM lines GROUP BY a";
    assert!(!setup.text(asked).await.contains("CacheReadExec"));
}

#[tokio::test]
async fn modes_that_do_not_read_compute() {
    let setup = Setup::new();
    setup.knows_relative("SELECT a, sum(b), count(*) FROM t GROUP BY a").await;
    for mode in [ReuseMode::Refresh, ReuseMode::Check] {
        let (_, findings) = setup.run("SELECT a, count(*) FROM t GROUP BY a", mode).await;
        assert!(findings.hits.is_empty(), "{mode:?}");
    }
}
