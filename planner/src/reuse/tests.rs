//! The rule on plans, with an oracle that knows what it is told.

mod cover;
mod cut;
mod doubles;
mod limits;
mod made_of;
mod middle;
mod repeated;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::join_selection::JoinSelection;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use nectarine_catalog::Fingerprint;
use parking_lot::Mutex;

use super::*;
use crate::canonical::BuiltIns;
use crate::canonical::fixture::Fixture;
use crate::node::{AddEntryExec, Worth};

#[derive(Debug, Default)]
struct Told {
    found: Mutex<HashMap<Fingerprint, Found>>,
    lookups: Mutex<HashMap<Fingerprint, u64>>,
    relatives: Mutex<HashMap<Fingerprint, Vec<Relative>>>,
    /// On how many other lists of extents each program has entries.
    n_other_extents: Mutex<u32>,
    /// Programs whose rows are not worth keeping.
    dear: Mutex<HashSet<Fingerprint>>,
    /// Programs whose rows are too many.
    too_large: Mutex<HashSet<Fingerprint>>,
}

impl CacheOracle for Told {
    fn inquire(&self, prefixes: &[(Fingerprint, Fingerprint)], count: bool) -> Vec<Inquiry> {
        let found = self.found.lock();
        let mut lookups = self.lookups.lock();
        let one = |(key, program): &(Fingerprint, Fingerprint)| {
            let asked = lookups.entry(*program).or_default();
            let (found, n_other_extents) = (found.get(key).copied(), *self.n_other_extents.lock());
            let inquiry = Inquiry { found, lookups: *asked, n_other_extents, was_dropped: false };
            *asked += u64::from(count);
            inquiry
        };
        prefixes.iter().map(one).collect()
    }

    fn is_dear(&self, program: &Fingerprint) -> bool {
        self.dear.lock().contains(program)
    }

    fn is_too_large(&self, program: &Fingerprint) -> bool {
        self.too_large.lock().contains(program)
    }

    fn segments(&self, _program: &Fingerprint, _states: bool) -> Vec<Segment> {
        vec![]
    }

    fn relatives(&self, family: &Fingerprint) -> Vec<Relative> {
        self.relatives.lock().get(family).cloned().unwrap_or_default()
    }
}

const ENTRY: Found = Found { rows: 10, bytes: 1000, cost_us: 1_000_000 };

struct Setup {
    fixture: Fixture,
    oracle: Arc<Told>,
}

impl Setup {
    fn new() -> Self {
        Self { fixture: Fixture::new(), oracle: Arc::default() }
    }

    async fn knows(&self, sql: &str) {
        let key = self.fixture.key(sql).await;
        self.oracle.found.lock().insert(key, ENTRY);
    }

    async fn run(&self, sql: &str, mode: ReuseMode) -> (Arc<dyn ExecutionPlan>, Findings) {
        self.run_having(sql, mode, HashSet::new()).await
    }

    /// The same for a statement that made some entries itself.
    async fn run_having(
        &self,
        sql: &str,
        mode: ReuseMode,
        made: HashSet<Fingerprint>,
    ) -> (Arc<dyn ExecutionPlan>, Findings) {
        let plan = self.fixture.plan(sql).await;
        let oracle = Arc::clone(&self.oracle) as Arc<dyn CacheOracle>;
        let policy = AdmissionPolicy::default();
        let context = ReuseContext::new(mode, oracle, Arc::new(BuiltIns::default()), policy, HashSet::new(), true);
        let context = Arc::new(context.with_made(made));
        let mut config = self.fixture.context.state().config_options().as_ref().clone();
        config.extensions.insert(ReuseExtension(Some(Arc::clone(&context))));
        let plan = ReusePrefixes.optimize(plan, &config).unwrap();
        (plan, context.take_findings().unwrap())
    }

    async fn text(&self, sql: &str) -> String {
        let (plan, _) = self.run(sql, ReuseMode::ReadOnly).await;
        displayable(plan.as_ref()).indent(false).to_string()
    }
}

#[tokio::test]
async fn the_whole_answer_is_read() {
    let setup = Setup::new();
    let sql = "SELECT a, sum(b) FROM t GROUP BY a ORDER BY a";
    setup.knows(sql).await;
    let (plan, findings) = setup.run(sql, ReuseMode::On).await;
    assert_eq!(plan.name(), "CacheReadExec");
    assert!(findings.is_exact());
    assert!(findings.kept.is_empty());
}

#[tokio::test]
async fn a_prefix_is_read_under_what_is_new() {
    let setup = Setup::new();
    setup.knows("SELECT a, sum(b) FROM t GROUP BY a").await;
    for sql in [
        "SELECT a, sum(b) FROM t GROUP BY a HAVING sum(b) > 5",
        "SELECT a, sum(b) FROM t GROUP BY a ORDER BY a DESC LIMIT 2",
        "SELECT sum(b) + 1 FROM t GROUP BY a",
        "SELECT u.a, x.n FROM u JOIN (SELECT a, sum(b) n FROM t GROUP BY a) x ON u.a = x.a",
        "SELECT max(n) FROM (SELECT a, sum(b) n FROM t GROUP BY a)",
        "SELECT a, sum(b) FROM v GROUP BY a HAVING sum(b) > 5",
    ] {
        let text = setup.text(sql).await;
        assert_eq!(text.matches("CacheReadExec").count(), 1, "{sql}\n{text}");
        assert!(!text.contains("table=public.t,"), "{sql}\n{text}");
    }
    let text = setup.text("SELECT a, sum(c) FROM t GROUP BY a").await;
    assert!(!text.contains("CacheReadExec"), "{text}");
}

#[tokio::test]
async fn off_reads_and_keeps_nothing() {
    let setup = Setup::new();
    let sql = "SELECT a, sum(b) FROM t GROUP BY a HAVING sum(b) > 5";
    setup.knows(sql).await;
    let (_, findings) = setup.run(sql, ReuseMode::Refresh).await;
    assert!(findings.hits.is_empty());
    assert_eq!(findings.kept.len(), 2, "the groups below and their states");
    let (_, findings) = setup.run(sql, ReuseMode::ReadOnly).await;
    assert!(findings.is_exact());
}

/// An entry in the middle of a plan has no order, so nothing sorted is read there.
#[tokio::test]
async fn order_is_not_lost() {
    let setup = Setup::new();
    setup.knows("SELECT a, b FROM t ORDER BY b LIMIT 7").await;
    setup.knows("SELECT a + 1, b FROM t ORDER BY b").await;
    for sql in
        ["SELECT a, b FROM t ORDER BY b LIMIT 5 OFFSET 2", "SELECT * FROM (SELECT a + 1, b FROM t ORDER BY b) LIMIT 3"]
    {
        let text = setup.text(sql).await;
        assert!(!text.contains("CacheReadExec"), "{sql}\n{text}");
    }
}

#[tokio::test]
async fn what_is_dearer_to_read_is_computed() {
    let setup = Setup::new();
    let sql = "SELECT a, sum(b) FROM t GROUP BY a";
    let key = setup.fixture.key(sql).await;
    setup.oracle.found.lock().insert(key, Found { rows: 1, bytes: 1 << 30, cost_us: 1000 });
    let (_, findings) = setup.run(sql, ReuseMode::On).await;
    assert!(findings.hits.is_empty());
    assert!(findings.report.iter().any(|line| matches!(line.verdict, Verdict::NotWorthIt(_))));
}

/// Floats that were summed twice may differ: both uses must see one sum.
#[tokio::test]
async fn two_runs_of_one_sum_are_not_mixed() {
    let setup = Setup::new();
    let totals = "SELECT a, sum(f) s FROM t GROUP BY a";
    let sql = format!("SELECT * FROM ({totals}) x JOIN (SELECT max(s) m FROM ({totals})) y ON x.s = y.m");
    // Only the larger prefix is there: reading it would leave the other sum to be computed.
    setup.knows(&format!("SELECT max(s) FROM ({totals})")).await;
    let text = setup.text(&sql).await;
    assert!(!text.contains("CacheReadExec"), "{text}");
    // The sum itself is there: both read it.
    setup.knows(totals).await;
    let text = setup.text(&sql).await;
    assert_eq!(text.matches("CacheReadExec").count(), 2, "{text}");

    // Sums of integers are exact.
    let setup = Setup::new();
    let totals = "SELECT a, sum(b) s FROM t GROUP BY a";
    let sql = format!("SELECT * FROM ({totals}) x JOIN (SELECT max(s) m FROM ({totals})) y ON x.s = y.m");
    setup.knows(&format!("SELECT max(s) FROM ({totals})")).await;
    let text = setup.text(&sql).await;
    assert_eq!(text.matches("CacheReadExec").count(), 1, "{text}");
}

#[tokio::test]
async fn groups_that_occur_twice_are_found() {
    let setup = Setup::new();
    let totals = "SELECT a, sum(b) s FROM t GROUP BY a";
    let sql = format!("SELECT * FROM ({totals}) x JOIN (SELECT max(s) m FROM ({totals})) y ON x.s = y.m");
    let (_, findings) = setup.run(&sql, ReuseMode::On).await;
    assert_eq!(findings.repeated.len(), 1);
    assert_eq!(findings.repeated[0].prefix.key, setup.fixture.key(totals).await);
    setup.knows(totals).await;
    let (_, findings) = setup.run(&sql, ReuseMode::On).await;
    assert!(findings.repeated.is_empty());
    let (_, findings) = setup.run(totals, ReuseMode::On).await;
    assert!(findings.repeated.is_empty());
}

/// A large result above a small one that has all that took long.
#[tokio::test]
async fn a_large_entry_is_beaten_by_smaller_ones() {
    let setup = Setup::new();
    let groups = "SELECT a, sum(b) AS s FROM t GROUP BY a";
    let (sql, small) = (above_joined(groups), setup.fixture.key(groups).await);
    let (large, large_entry) = setup.knows_large_join(&sql).await;
    let (_, findings) = setup.run(&sql, ReuseMode::ReadOnly).await;
    assert_eq!(findings.hits.iter().map(|hit| hit.key).collect::<Vec<_>>(), [large], "there is nothing better");
    setup.oracle.found.lock().insert(small, Found { rows: 1000, bytes: 10_000, cost_us: 5_000_000 });
    let (_, findings) = setup.run(&sql, ReuseMode::ReadOnly).await;
    assert_eq!(findings.hits.iter().map(|hit| hit.key).collect::<Vec<_>>(), [small]);
    let is_told = |line: &PrefixReport| line.key == Some(large) && line.verdict == Verdict::NotWorthIt(large_entry);
    assert!(findings.report.iter().any(is_told));
    // The whole answer is read whatever there is below it.
    let whole = setup.fixture.key(&sql).await;
    setup.oracle.found.lock().insert(whole, large_entry);
    let (_, findings) = setup.run(&sql, ReuseMode::ReadOnly).await;
    assert!(findings.is_exact());
}

/// What luck decided is read as it was decided.
#[tokio::test]
async fn a_large_entry_of_luck_is_not_beaten() {
    let setup = Setup::new();
    let groups = "SELECT a, first_value(b) AS s FROM t GROUP BY a";
    let sql = above_joined(groups);
    let (large, _) = setup.knows_large_join(&sql).await;
    let small = setup.fixture.key(groups).await;
    setup.oracle.found.lock().insert(small, Found { rows: 1000, bytes: 10_000, cost_us: 5_000_000 });
    let (_, findings) = setup.run(&sql, ReuseMode::ReadOnly).await;
    assert_eq!(findings.hits.iter().map(|hit| hit.key).collect::<Vec<_>>(), [large]);
}

fn above_joined(groups: &str) -> String {
    format!("SELECT max(s), min(b) FROM (SELECT u.b, x.s FROM u JOIN ({groups}) x ON u.a = x.a)")
}

impl Setup {
    /// A large entry of the join in a statement.
    async fn knows_large_join(&self, sql: &str) -> (Fingerprint, Found) {
        let mut large = None;
        self.fixture.tree(sql).await.for_each(&mut |node| {
            let prefix = node.prefix.as_ref().ok().filter(|prefix| prefix.kind == crate::canonical::PrefixKind::Join);
            if let Some(prefix) = prefix {
                // Whatever was published is known as its own relative.
                let (program, schema) = (prefix.program, Arc::clone(&prefix.schema));
                let relative = Relative { program, columns: Arc::clone(&prefix.lineage.columns), schema };
                self.oracle.relatives.lock().entry(prefix.lineage.family).or_default().push(relative);
                large = large.or(Some(prefix.key));
            }
        });
        let entry = Found { rows: 4_000_000, bytes: 800 << 20, cost_us: 5_300_000 };
        self.oracle.found.lock().insert(large.unwrap(), entry);
        (large.unwrap(), entry)
    }
}

#[tokio::test]
async fn joins_are_kept_when_several_ask() {
    let setup = Setup::new();
    let join = "SELECT t.a, u.b FROM t JOIN u ON t.a = u.a";
    let (_, first) = setup.run(&format!("SELECT sum(b) FROM ({join})"), ReuseMode::On).await;
    assert!(first.kept.iter().all(|kept| kept.prefix.kind != crate::canonical::PrefixKind::Join));
    let (plan, second) = setup.run(&format!("SELECT max(b) FROM ({join})"), ReuseMode::On).await;
    let text = displayable(plan.as_ref()).indent(false).to_string();
    assert!(second.kept.iter().any(|kept| kept.prefix.kind == crate::canonical::PrefixKind::Join), "{text}");
}

/// What nobody asked for yet must not cost much, and below a join less than that.
#[tokio::test]
async fn what_keeping_may_cost() {
    let setup = Setup::new();
    let groups = "SELECT a, sum(b) s FROM t GROUP BY a";
    let joined = format!("SELECT u.a, x.s FROM u JOIN ({groups}) x ON u.a = x.a");
    let worth = async |sql: &str, mode: ReuseMode| {
        let (plan, findings) = setup.run(sql, mode).await;
        let mut worth = vec![];
        plan.apply(|node| {
            worth.extend(node.downcast_ref::<AddEntryExec>().map(|mark| mark.prefix().worth));
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        assert_eq!(worth.len(), findings.kept.len());
        assert!(!worth.is_empty(), "{sql}");
        worth.dedup();
        worth
    };
    assert_eq!(worth(&joined, ReuseMode::Refresh).await, [Worth::Wanted]);
    setup.oracle.lookups.lock().clear();
    // The same statement again and again is no reason: its answer is there, or was not worth it.
    for _ in 0..3 {
        assert_eq!(worth(&joined, ReuseMode::On).await, [Worth::GivesWay]);
    }
    let having = format!("SELECT * FROM ({groups}) WHERE s > 5");
    // Another statement asks for the groups; their states are of use when data has grown.
    assert_eq!(worth(&having, ReuseMode::On).await, [Worth::Wanted, Worth::Cheap]);
    setup.oracle.lookups.lock().clear();
    assert_eq!(worth(&having, ReuseMode::On).await, [Worth::Cheap]);
    // The same statement over other extents is one.
    *setup.oracle.n_other_extents.lock() = 1;
    assert_eq!(worth(&joined, ReuseMode::On).await, [Worth::Wanted]);
}

/// DataFusion builds a hash table over the smaller side of a join; it must know how large entries are.
#[tokio::test]
async fn the_smaller_result_is_the_one_that_is_built() {
    let setup = Setup::new();
    let (large, small) = ("SELECT a, sum(b) FROM t GROUP BY a", "SELECT b, sum(a) FROM u GROUP BY b");
    for (sql, rows) in [(large, 1_000_000), (small, 10)] {
        let key = setup.fixture.key(sql).await;
        setup.oracle.found.lock().insert(key, Found { rows, ..ENTRY });
    }
    for (left, right) in [(large, small), (small, large)] {
        let sql = format!("SELECT x.n, y.n FROM ({left}) x(k, n) JOIN ({right}) y(k, n) ON x.k = y.k");
        let (plan, _) = setup.run(&sql, ReuseMode::On).await;
        let config = Arc::clone(setup.fixture.context.state().config_options());
        let plan = JoinSelection::new().optimize(plan, &config).unwrap();
        let text = displayable(plan.as_ref()).indent(false).to_string();
        let place = |rows: &str| text.find(rows).unwrap_or_else(|| panic!("{text}"));
        assert!(place("rows=10,") < place("rows=1000000,"), "{text}");
    }
}
