//! What luck decides in two places of a statement, beside other columns in each: never one from the cache and the other computed.

use super::*;
use crate::canonical::PrefixKind;

const FEW: &str = "SELECT a, sum(f) AS s FROM t GROUP BY a";
const MORE: &str = "SELECT a, sum(f) AS s, count(*) AS n FROM t GROUP BY a";

fn joined(left: &str, right: &str) -> String {
    format!("SELECT count(*) FROM ({left}) x JOIN ({right}) y ON x.a = y.a AND x.s = y.s")
}

/// The same where the right one's other column is needed: else it would be dropped.
fn mixed(left: &str, right: &str) -> String {
    format!("{} WHERE y.n > 0", joined(left, right))
}

impl Setup {
    async fn reads(&self, sql: &str) -> usize {
        self.text(sql).await.matches("CacheReadExec").count()
    }

    /// Knows the entry of what does this kind of work in a query.
    async fn knows_its(&self, kind: PrefixKind, sql: &str) {
        self.fixture.tree(sql).await.for_each(&mut |node| {
            let its = node.prefix.as_ref().ok().filter(|prefix| prefix.kind == kind);
            self.oracle.found.lock().extend(its.map(|prefix| (prefix.key, ENTRY)));
        });
    }
}

#[tokio::test]
async fn sums_beside_other_columns_are_not_mixed() {
    let setup = Setup::new();
    let sql = mixed(FEW, MORE);
    setup.knows(FEW).await;
    assert_eq!(setup.reads(&sql).await, 0);
    // Two entries are two runs.
    setup.knows(MORE).await;
    assert_eq!(setup.reads(&sql).await, 0);
    assert_eq!(setup.reads(&joined(FEW, FEW)).await, 2, "one entry is one run");
    assert_eq!(setup.reads(&format!("{} AND x.n > 0", mixed(MORE, MORE))).await, 2);
    // By way of something larger.
    let largest = format!("SELECT max(s) AS s FROM ({FEW})");
    let sql = format!("SELECT a FROM ({MORE}) WHERE n > 0 AND s = ({largest})");
    setup.knows(&largest).await;
    assert_eq!(setup.reads(&sql).await, 0);
    // All of it is another matter.
    let within = format!("SELECT * FROM (SELECT x.a, n FROM ({FEW}) x JOIN ({MORE}) y ON x.a = y.a AND x.s = y.s)");
    let all = format!("{within} LIMIT 3");
    assert_eq!(setup.reads(&all).await, 0);
    setup.knows_its(PrefixKind::Join, &within).await;
    assert_eq!(setup.reads(&all).await, 1);
}

#[tokio::test]
async fn what_is_exact_is_read() {
    let setup = Setup::new();
    let counts = "SELECT a, count(*) AS s FROM t GROUP BY a";
    setup.knows(counts).await;
    assert_eq!(setup.reads(&mixed(counts, MORE)).await, 1, "they share nothing that luck decides");
    setup.knows("SELECT a, sum(b) AS s FROM t GROUP BY a").await;
    let (few, more) = (FEW.replace("(f)", "(b)"), MORE.replace("(f)", "(b)"));
    assert!(setup.reads(&mixed(&few, &more)).await > 0);
    // Other rows.
    setup.knows(FEW).await;
    assert_eq!(setup.reads(&mixed(FEW, &MORE.replace("FROM t", "FROM u"))).await, 1);
    assert_eq!(setup.reads(&mixed(FEW, &MORE.replace("GROUP BY", "WHERE b > 3 GROUP BY"))).await, 1);
}

/// What is below the sums is the same for both, or is computed for both.
#[tokio::test]
async fn what_sums_are_made_of() {
    let setup = Setup::new();
    let sums = |rows: &str| {
        (
            format!("SELECT a, sum(f) AS s FROM ({rows}) GROUP BY a"),
            format!("SELECT a, sum(f) AS s, sum(b) AS n FROM ({rows}) GROUP BY a"),
        )
    };
    let (few, more) = sums("SELECT a, b, f FROM t WHERE c > 3");
    setup.knows_its(PrefixKind::Filter, &few).await;
    assert_eq!(setup.reads(&few).await, 1);
    assert_eq!(setup.reads(&mixed(&few, &more)).await, 0);
    let groups = "SELECT a, b, max(c) AS f FROM t GROUP BY a, b";
    let (few, more) = sums(&format!("SELECT a, b, f * 0.5e0 AS f FROM ({groups})"));
    setup.knows(groups).await;
    assert_eq!(setup.reads(&mixed(&few, &more)).await, 2);
}

#[tokio::test]
async fn windows_beside_other_columns_are_not_mixed() {
    let setup = Setup::new();
    let few = "SELECT a, row_number() OVER (PARTITION BY b ORDER BY c) AS s FROM t";
    let more = "SELECT a, row_number() OVER (PARTITION BY b ORDER BY c) AS s, upper(r) AS n FROM t";
    setup.knows_its(PrefixKind::Window, few).await;
    assert_eq!(setup.reads(&joined(few, few)).await, 2);
    let sql = format!("{} WHERE y.n <> 'X'", joined(few, more));
    assert_eq!(setup.reads(&sql).await, 0);
    setup.knows_its(PrefixKind::Window, more).await;
    assert_eq!(setup.reads(&sql).await, 0);
    // Another number.
    let other = "SELECT a, row_number() OVER (PARTITION BY b ORDER BY day) AS s, upper(r) AS n FROM t";
    let sql = format!("{} WHERE y.n <> 'X'", joined(few, other));
    assert_eq!(setup.reads(&sql).await, 1);
}

/// By itself it would come to other values than the one beside it.
#[tokio::test]
async fn doubles_do_not_run_first() {
    let setup = Setup::new();
    let three = format!(
        "SELECT count(*) FROM ({FEW}) x JOIN ({FEW}) y ON x.a = y.a JOIN ({MORE}) z ON x.a = z.a AND x.s = z.s AND z.n > 0"
    );
    let (_, findings) = setup.run(&three, ReuseMode::On).await;
    assert!(findings.repeated.is_empty(), "{:?}", findings.repeated);
    let (_, findings) = setup.run(&joined(FEW, FEW), ReuseMode::On).await;
    assert_eq!(findings.repeated.len(), 1);
    // All of them are in something that does.
    let both = format!(
        "SELECT x.a, count(*) AS n FROM ({FEW}) x JOIN ({MORE}) y ON x.a = y.a AND x.s = y.s WHERE y.n > 0 GROUP BY x.a"
    );
    let (_, findings) =
        setup.run(&format!("SELECT count(*) FROM ({both}) v JOIN ({both}) w ON v.a = w.a"), ReuseMode::On).await;
    assert_eq!(findings.repeated.len(), 1);
}

/// Who computes anew sees one value in all places, too: not that of the entry.
#[tokio::test]
async fn what_is_made_anew_is_made_once() {
    let setup = Setup::new();
    let (sql, key) = (joined(FEW, FEW), setup.fixture.key(FEW).await);
    for _ in 0..2 {
        let (plan, findings) = setup.run(&sql, ReuseMode::Refresh).await;
        let first: Vec<Fingerprint> = findings.repeated.iter().map(|repeated| repeated.prefix.key).collect();
        assert_eq!(first, [key]);
        assert!(!displayable(plan.as_ref()).indent(false).to_string().contains("CacheReadExec"));
        setup.knows(FEW).await;
    }
    let (plan, findings) = setup.run_having(&sql, ReuseMode::Refresh, HashSet::from([key])).await;
    assert!(findings.repeated.is_empty());
    let text = displayable(plan.as_ref()).indent(false).to_string();
    assert_eq!(text.matches("CacheReadExec").count(), 2, "{text}");
}
