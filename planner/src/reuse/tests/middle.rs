//! What must not be read or kept in the middle of a plan.

use super::*;
use crate::canonical::PrefixKind;

impl Setup {
    /// Knows entries of all prefixes of this kind in a query.
    async fn knows_all(&self, sql: &str, kind: PrefixKind) {
        self.fixture.tree(sql).await.for_each(&mut |node| {
            if let Ok(prefix) = &node.prefix
                && prefix.kind == kind
            {
                self.oracle.found.lock().insert(prefix.key, ENTRY);
            }
        });
    }
}

/// An order passes through what keeps it.
#[tokio::test]
async fn filters_above_an_order() {
    let setup = Setup::new();
    let first = "SELECT a, b FROM (SELECT a, b FROM t ORDER BY b LIMIT 7) WHERE a > 1";
    setup.knows(first).await;
    let text = setup.text(&format!("{first} LIMIT 3")).await;
    assert!(!text.contains("CacheReadExec"), "{text}");
    let text = setup.text(first).await;
    assert!(text.contains("CacheReadExec"), "the whole answer comes in its order: {text}");
}

/// The statement computes the subquery anew, and may come to another value than the entry did.
#[tokio::test]
async fn what_uses_a_subquery_of_luck() {
    for (subquery, is_read) in [("SELECT b FROM u LIMIT 1", false), ("SELECT max(b) FROM u", true)] {
        let setup = Setup::new();
        let groups = format!("SELECT a, count(*) AS n FROM t WHERE b > ({subquery}) GROUP BY a");
        setup.knows_all(&groups, PrefixKind::Aggregate).await;
        // The subquery's own groups are another matter.
        let own = setup.fixture.key(&groups).await;
        setup.oracle.found.lock().remove(&own);
        let text = setup.text(&format!("SELECT n FROM ({groups}) WHERE n > 3")).await;
        assert_eq!(text.contains("CacheReadExec") && !text.contains("table=public.t,"), is_read, "{text}");
    }
}

/// A first half may hold a group more than once: it is no answer, and is not read as one.
#[tokio::test]
async fn states_are_not_groups() {
    let setup = Setup::new();
    let groups = "SELECT a, sum(b) FROM t GROUP BY a";
    setup.knows_all(groups, PrefixKind::States).await;
    let text = setup.text(&format!("SELECT max(s) FROM ({groups}) AS x (a, s)")).await;
    assert!(!text.contains("CacheReadExec"), "{text}");
}

/// A recursive term runs many times, and each time on other rows.
#[tokio::test]
async fn nothing_below_a_recursive_term_is_kept() {
    let setup = Setup::new();
    let groups = "SELECT a, count(*) AS c FROM u GROUP BY a";
    let sql = format!(
        "WITH RECURSIVE n AS (SELECT a FROM t UNION ALL \
         SELECT n.a + 1 FROM n JOIN ({groups}) g ON n.a = g.a JOIN ({groups}) h ON n.a = h.a WHERE n.a < 5) \
         SELECT count(*) FROM n"
    );
    for mode in [ReuseMode::On, ReuseMode::Refresh] {
        let (plan, findings) = setup.run(&sql, mode).await;
        let text = displayable(plan.as_ref()).indent(false).to_string();
        assert!(text.contains("RecursiveQueryExec"), "{text}");
        assert!(findings.kept.is_empty() && findings.repeated.is_empty(), "{findings:?}");
    }
    let outside = format!("SELECT count(*) FROM ({groups}) g JOIN ({groups}) h ON g.a = h.a");
    let (_, findings) = setup.run(&outside, ReuseMode::On).await;
    assert!(!findings.kept.is_empty() && !findings.repeated.is_empty());
}

/// What runs by itself has no plan around it that would give a subquery its value.
#[tokio::test]
async fn groups_that_use_a_subquery_do_not_run_first() {
    let setup = Setup::new();
    for (subquery, n_first) in
        [("1", 1), ("(SELECT max(b) FROM u)", 0), ("(SELECT count(b) FROM u WHERE a >= NULL)", 0)]
    {
        let groups = format!("SELECT a, count(*) AS c FROM t WHERE b > {subquery} GROUP BY a");
        let sql = format!("SELECT count(*) FROM ({groups}) g JOIN ({groups}) h ON g.a = h.a");
        let (_, findings) = setup.run(&sql, ReuseMode::On).await;
        assert_eq!(findings.repeated.len(), n_first, "{sql}");
    }
}
