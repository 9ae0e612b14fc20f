//! Groups that a limit above them cuts short: who needs only some neither keeps all nor reads all, unless that is cheaper.

use datafusion::physical_optimizer::limited_distinct_aggregation::LimitedDistinctAggregation;
use datafusion::physical_optimizer::topk_aggregation::TopKAggregation;
use datafusion::prelude::SessionConfig;

use super::*;
use crate::canonical::PrefixKind;

/// What DataFusion cuts short, and the groups that are.
const CUT: [(&str, &str); 6] = [
    ("SELECT DISTINCT s FROM t LIMIT 10", "SELECT DISTINCT s FROM t"),
    ("SELECT s FROM t WHERE a > 3 GROUP BY s LIMIT 10 OFFSET 5", "SELECT DISTINCT s FROM t WHERE a > 3"),
    ("SELECT upper(s), a FROM (SELECT DISTINCT s, a FROM t) LIMIT 3", "SELECT DISTINCT s, a FROM t"),
    (
        "SELECT s, max(b) AS m FROM t GROUP BY s ORDER BY m DESC NULLS LAST LIMIT 5",
        "SELECT s, max(b) FROM t GROUP BY s",
    ),
    ("SELECT min(b) AS m, s AS k FROM t GROUP BY s ORDER BY m LIMIT 5 OFFSET 2", "SELECT s, min(b) FROM t GROUP BY s"),
    ("SELECT DISTINCT s FROM t ORDER BY s DESC LIMIT 10", "SELECT DISTINCT s FROM t"),
];

/// What looks like it, but is computed to the end.
const WHOLE: [(&str, &str); 8] = [
    ("SELECT DISTINCT s FROM t ORDER BY s", "SELECT DISTINCT s FROM t"),
    ("SELECT s, count(*) FROM t GROUP BY s LIMIT 10", "SELECT s, count(*) FROM t GROUP BY s"),
    (
        "SELECT s, sum(b) AS m FROM t GROUP BY s ORDER BY m DESC NULLS LAST LIMIT 5",
        "SELECT s, sum(b) FROM t GROUP BY s",
    ),
    // NULL comes first, and a group is NULL until it is not.
    ("SELECT s, max(b) AS m FROM t GROUP BY s ORDER BY m DESC LIMIT 5", "SELECT s, max(b) FROM t GROUP BY s"),
    ("SELECT s, max(b) AS m FROM t GROUP BY s ORDER BY m LIMIT 5", "SELECT s, max(b) FROM t GROUP BY s"),
    (
        "SELECT s, max(b) AS m FROM t GROUP BY s ORDER BY m DESC NULLS LAST, s LIMIT 5",
        "SELECT s, max(b) FROM t GROUP BY s",
    ),
    (
        "SELECT s, max(b) AS m, count(*) FROM t GROUP BY s ORDER BY m DESC NULLS LAST LIMIT 5",
        "SELECT s, max(b), count(*) FROM t GROUP BY s",
    ),
    (
        "SELECT s, a, max(b) AS m FROM t GROUP BY s, a ORDER BY m DESC NULLS LAST LIMIT 5",
        "SELECT s, a, max(b) FROM t GROUP BY s, a",
    ),
];

/// As many groups as rows: reading them takes longer than finding a few.
const LARGE: Found = Found { rows: 3_000_000, bytes: 60_000_000, cost_us: 6_000_000 };

fn is_cut(findings: &Findings) -> bool {
    findings.report.iter().any(|line| line.verdict == Verdict::CutShort)
}

/// Whether DataFusion cuts groups of a plan short.
fn cuts(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let config = SessionConfig::new();
    let plan = LimitedDistinctAggregation::new().optimize(Arc::clone(plan), config.options()).unwrap();
    let plan = TopKAggregation::new().optimize(plan, config.options()).unwrap();
    displayable(plan.as_ref()).indent(false).to_string().contains("lim=[")
}

#[tokio::test]
async fn they_are_kept_by_those_who_need_all_of_them() {
    for (sql, groups) in CUT {
        let setup = Setup::new();
        // However often: nobody asked for all groups yet.
        for n in 0..4 {
            let sql = sql.replace(" LIMIT ", &format!(" LIMIT {}", n + 1));
            let (plan, findings) = setup.run(&sql, ReuseMode::On).await;
            let text = displayable(plan.as_ref()).indent(false).to_string();
            assert!(findings.kept.is_empty() && !text.contains("AddEntryExec"), "{sql}\n{text}");
            assert!(is_cut(&findings), "{sql}\n{:?}", findings.report);
            assert!(cuts(&plan), "{sql}\n{text}");
        }
        let numbered = format!("SELECT *, row_number() OVER () FROM ({groups})");
        let (_, findings) = setup.run(&numbered, ReuseMode::On).await;
        let key = setup.fixture.key(groups).await;
        assert!(findings.kept.iter().any(|kept| kept.prefix.key == key), "{groups}");
        let program = setup.fixture.root(groups).await.unwrap().program;
        assert_eq!(setup.oracle.lookups.lock().get(&program), Some(&1), "{groups}");
    }
    for (sql, groups) in WHOLE {
        let setup = Setup::new();
        let (plan, findings) = setup.run(sql, ReuseMode::On).await;
        let key = setup.fixture.key(groups).await;
        assert!(findings.kept.iter().any(|kept| kept.prefix.key == key), "{sql}");
        assert!(!is_cut(&findings) && !cuts(&plan), "{sql}");
    }
}

#[tokio::test]
async fn they_are_read_where_that_is_cheaper() {
    for (sql, groups) in CUT {
        for (found, is_read) in [(LARGE, false), (ENTRY, true), (Found { cost_us: 6_000_000_000_000, ..LARGE }, true)] {
            let setup = Setup::new();
            let key = setup.fixture.key(groups).await;
            setup.oracle.found.lock().insert(key, found);
            let (plan, findings) = setup.run(sql, ReuseMode::On).await;
            let text = displayable(plan.as_ref()).indent(false).to_string();
            assert_eq!(text.contains("CacheReadExec"), is_read, "{sql}\n{text}");
            assert_eq!(is_cut(&findings), !is_read, "{sql}");
            assert!(findings.kept.is_empty(), "{sql}\n{text}");
            // No more is saved than it would have taken.
            assert!(findings.hits.iter().all(|hit| hit.found.cost_us <= found.cost_us), "{sql}");
        }
        // The answer itself is another matter.
        let setup = Setup::new();
        setup.knows(sql).await;
        assert!(setup.run(sql, ReuseMode::On).await.1.is_exact(), "{sql}");
    }
    for (sql, groups) in WHOLE {
        let setup = Setup::new();
        let key = setup.fixture.key(groups).await;
        setup.oracle.found.lock().insert(key, LARGE);
        let text = setup.text(sql).await;
        assert!(text.contains("CacheReadExec"), "{sql}\n{text}");
    }
}

/// What is saved is what the limit would have left to do.
#[tokio::test]
async fn savings_are_those_of_the_cut() {
    let setup = Setup::new();
    let key = setup.fixture.key("SELECT DISTINCT s FROM t").await;
    setup.oracle.found.lock().insert(key, Found { rows: 100, ..ENTRY });
    for (sql, cost_us) in [
        ("SELECT DISTINCT s FROM t LIMIT 10", 100_000),
        ("SELECT DISTINCT s FROM t LIMIT 1000", 1_000_000),
        ("SELECT DISTINCT s FROM t ORDER BY s LIMIT 10", 125_000),
        ("SELECT DISTINCT s FROM t ORDER BY s", 1_000_000),
    ] {
        let (_, findings) = setup.run(sql, ReuseMode::On).await;
        let saved: Vec<u64> = findings.hits.iter().map(|hit| hit.found.cost_us).collect();
        assert_eq!(saved, [cost_us], "{sql}");
    }
}

/// Above a join of all rows there is little to be saved by stopping early.
#[tokio::test]
async fn what_must_be_computed_first_is_not_cut() {
    let groups = "SELECT DISTINCT t.s FROM t JOIN u ON t.a = u.a";
    let few = Found { rows: 100_000, bytes: 1_000_000, cost_us: 6_000_000 };
    for (groups, is_read) in [(groups, true), ("SELECT DISTINCT s FROM t WHERE a > 3", false)] {
        let setup = Setup::new();
        let key = setup.fixture.key(groups).await;
        setup.oracle.found.lock().insert(key, few);
        let text = setup.text(&format!("{groups} LIMIT 10")).await;
        assert_eq!(text.contains("CacheReadExec"), is_read, "{text}");
    }
}

/// Who needs all groups keeps them, also beside one who needs some.
#[tokio::test]
async fn both_in_one_plan() {
    let setup = Setup::new();
    let all = "SELECT s, max(b) AS m FROM t GROUP BY s";
    let some = |n: usize| format!("{all} ORDER BY m DESC NULLS LAST LIMIT {n}");
    for (other, n_repeated) in [(all.to_string(), 1), (some(6), 0)] {
        let sql = format!("SELECT x.s, y.m FROM ({}) x JOIN ({other}) y ON x.s = y.s", some(5));
        let (plan, findings) = setup.run(&sql, ReuseMode::On).await;
        let text = displayable(plan.as_ref()).indent(false).to_string();
        assert_eq!(findings.repeated.len(), n_repeated, "{text}");
        let key = setup.fixture.key(all).await;
        let n_kept = findings.kept.iter().filter(|kept| kept.prefix.key == key).count();
        assert_eq!(n_kept, n_repeated, "{text}");
        // What is kept is all of it.
        plan.apply(|node| {
            if node.is::<AddEntryExec>() {
                assert!(!cuts(node), "{text}");
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        assert!(cuts(&plan), "{text}");
    }
}

/// An entry that is there is replaced by all groups, although a limit is above it.
#[tokio::test]
async fn what_is_refreshed_is_whole() {
    for (sql, groups) in CUT {
        let setup = Setup::new();
        let (_, findings) = setup.run(sql, ReuseMode::Refresh).await;
        assert!(findings.kept.is_empty(), "{sql}");
        setup.knows(groups).await;
        let (plan, findings) = setup.run(sql, ReuseMode::Refresh).await;
        let kept: Vec<PrefixKind> = findings.kept.iter().map(|kept| kept.prefix.kind).collect();
        assert_eq!(kept, [PrefixKind::Aggregate], "{sql}");
        let config = SessionConfig::new();
        let plan = LimitedDistinctAggregation::new().optimize(plan, config.options()).unwrap();
        let plan = TopKAggregation::new().optimize(plan, config.options()).unwrap();
        let text = displayable(plan.as_ref()).indent(false).to_string();
        assert!(!text.contains("lim=["), "{sql}\n{text}");
    }
}

/// Nothing is cut where the session says so.
#[tokio::test]
async fn settings_of_datafusion() {
    let mut config = SessionConfig::new().with_target_partitions(2);
    config.options_mut().optimizer.enable_topk_aggregation = false;
    config.options_mut().optimizer.enable_distinct_aggregation_soft_limit = false;
    let setup = Setup { fixture: Fixture::with_config(config), oracle: Arc::default() };
    for (sql, _) in CUT {
        let (_, findings) = setup.run(sql, ReuseMode::On).await;
        assert!(!findings.kept.is_empty() && !is_cut(&findings), "{sql}");
    }
}
