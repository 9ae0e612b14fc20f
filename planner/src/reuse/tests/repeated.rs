//! What is computed once although a statement needs it several times, and what is not.

use super::*;
use crate::canonical::PrefixKind;

impl Setup {
    async fn repeated(&self, sql: &str, shares_everything: bool) -> Vec<(PrefixKind, Worth)> {
        let plan = self.fixture.plan(sql).await;
        let oracle = Arc::clone(&self.oracle) as Arc<dyn CacheOracle>;
        let (built_ins, policy) = (Arc::new(BuiltIns::default()), AdmissionPolicy::default());
        let context = ReuseContext::new(ReuseMode::On, oracle, built_ins, policy, HashSet::new(), true);
        let context = Arc::new(if shares_everything { context.sharing_everything() } else { context });
        let mut config = self.fixture.context.state().config_options().as_ref().clone();
        config.extensions.insert(ReuseExtension(Some(Arc::clone(&context))));
        ReusePrefixes.optimize(plan, &config).unwrap();
        let repeated = context.take_findings().unwrap().repeated;
        repeated.iter().map(|repeated| (repeated.prefix.kind, repeated.worth)).collect()
    }
}

const JOINED: &str = "SELECT t.a FROM t JOIN u ON t.a = u.a";

#[tokio::test]
async fn joins_that_occur_twice() {
    let setup = Setup::new();
    let once = [(PrefixKind::Join, Worth::Cheap)];
    for sql in [
        format!("SELECT count(*) FROM ({JOINED}) x JOIN ({JOINED}) y ON x.a = y.a"),
        format!("WITH v AS ({JOINED}) SELECT a FROM v UNION ALL SELECT a + 1 FROM v"),
    ] {
        assert_eq!(setup.repeated(&sql, true).await, once, "{sql}");
        // A few kilobytes are not worth it.
        assert_eq!(setup.repeated(&sql, false).await, [], "{sql}");
    }
    assert_eq!(setup.repeated(JOINED, true).await, []);
}

/// The largest prefix stands for what it contains.
#[tokio::test]
async fn the_largest_is_computed() {
    let setup = Setup::new();
    let groups = format!("SELECT a, count(*) AS n FROM ({JOINED}) GROUP BY a");
    let sql = format!("SELECT x.n FROM ({groups}) x JOIN ({groups}) y ON x.a = y.n");
    assert_eq!(setup.repeated(&sql, true).await, [(PrefixKind::Aggregate, Worth::Wanted)]);
    // It can not be kept: then what it is made of.
    let key = setup.fixture.key(&groups).await;
    let mut program = None;
    setup.fixture.tree(&groups).await.for_each(&mut |node| {
        program = program.or(node.prefix.as_ref().ok().filter(|prefix| prefix.key == key).map(|prefix| prefix.program));
    });
    setup.oracle.dear.lock().extend(program);
    assert_eq!(setup.repeated(&sql, true).await, [(PrefixKind::Join, Worth::Cheap)]);
}

/// Computing all rows may take much longer than what the statement needs of them.
#[tokio::test]
async fn rows_that_may_not_all_be_needed() {
    let setup = Setup::new();
    for sql in [
        // A limit stops asking.
        format!("SELECT a FROM ({JOINED}) UNION ALL SELECT a + 1 FROM ({JOINED}) LIMIT 5"),
        format!("SELECT a FROM ({JOINED}) UNION ALL SELECT a + 1 FROM ({JOINED}) ORDER BY a LIMIT 5"),
        // The other side tells both which keys it has.
        format!(
            "SELECT count(*) FROM u JOIN ({JOINED}) x ON u.b = x.a WHERE u.c = 1 UNION ALL \
             SELECT count(*) FROM u JOIN ({JOINED}) x ON u.b = x.a WHERE u.c = 2"
        ),
        // Which side that is, is decided later.
        format!(
            "SELECT count(*) FROM ({JOINED}) x JOIN u ON u.b = x.a WHERE u.c = 1 UNION ALL \
             SELECT count(*) FROM ({JOINED}) x JOIN u ON u.b = x.a WHERE u.c = 2"
        ),
        // Any ten groups end it.
        format!("SELECT DISTINCT a FROM (SELECT a FROM ({JOINED}) UNION ALL SELECT a + 1 FROM ({JOINED})) LIMIT 10"),
    ] {
        assert_eq!(setup.repeated(&sql, true).await, [], "{sql}");
    }
    let bounds = format!("SELECT max(a) AS m FROM ({JOINED}) UNION ALL SELECT min(a) FROM ({JOINED})");
    assert_eq!(setup.repeated(&bounds, true).await, [], "rows within the bounds so far are not needed");
    let groups = format!("SELECT max(a) AS m FROM ({JOINED}) UNION ALL SELECT count(a) FROM ({JOINED}) LIMIT 5");
    assert_eq!(setup.repeated(&groups, true).await.len(), 1, "groups need all rows, whatever is above them");
}

/// Two places in a statement must see the same rows, however few they are.
#[tokio::test]
async fn what_luck_decides_is_decided_once() {
    let setup = Setup::new();
    let ranked = "SELECT a, row_number() OVER (PARTITION BY b ORDER BY c) AS n FROM t";
    let sql = format!("WITH v AS ({ranked}) SELECT count(*) FROM v x JOIN v y ON x.a = y.a AND x.n = y.n");
    assert_eq!(setup.repeated(&sql, false).await, [(PrefixKind::Window, Worth::Wanted)]);
    // Whoever wants any five rows would wait for all of them.
    let limited = format!("WITH v AS ({ranked}) SELECT * FROM v UNION ALL SELECT * FROM v LIMIT 5");
    assert_eq!(setup.repeated(&limited, true).await, []);
    // What is made of them is nothing that luck decides once more.
    let joined = format!("SELECT u.b, v.n FROM u JOIN ({ranked}) v ON u.a = v.a");
    let sql = format!("WITH w AS ({joined}) SELECT * FROM w x JOIN w y ON x.b = y.b");
    assert_eq!(setup.repeated(&sql, false).await, [(PrefixKind::Window, Worth::Wanted)]);
}

/// Of a window, the rows that are needed.
#[tokio::test]
async fn what_is_left_of_a_window_is_computed() {
    let setup = Setup::new();
    let ranked = "SELECT a, b, row_number() OVER (PARTITION BY b ORDER BY c) AS n FROM t";
    let first = format!("SELECT a, b FROM ({ranked}) WHERE n = 1");
    let sql = format!("WITH v AS ({first}) SELECT count(*) FROM v x JOIN v y ON x.a = y.a");
    assert_eq!(setup.repeated(&sql, false).await, [(PrefixKind::Filter, Worth::Wanted)]);
    let others =
        format!("SELECT count(*) FROM ({first}) x JOIN (SELECT a, b FROM ({ranked}) WHERE n = 2) y ON x.a = y.a");
    assert_eq!(setup.repeated(&others, false).await, [(PrefixKind::Window, Worth::Wanted)]);
}

/// What is made of something that is needed twice comes after it: by itself it would come to other values.
#[tokio::test]
async fn the_inner_ones_come_first() {
    let setup = Setup::new();
    let ranked = "SELECT a, row_number() OVER (PARTITION BY b ORDER BY c) AS n FROM t";
    let sql = format!(
        "WITH v AS ({ranked}), d AS (SELECT x.a, x.n - y.n AS e FROM v x JOIN v y ON x.a = y.a) \
         SELECT sum(p.e), sum(q.e) FROM d p JOIN d q ON p.a = q.a"
    );
    assert_eq!(setup.repeated(&sql, true).await, [(PrefixKind::Window, Worth::Wanted)]);
    setup.fixture.tree(ranked).await.for_each(&mut |node| {
        let window = node.prefix.as_ref().ok().filter(|prefix| prefix.kind == PrefixKind::Window);
        setup.oracle.found.lock().extend(window.map(|prefix| (prefix.key, ENTRY)));
    });
    assert_eq!(setup.repeated(&sql, true).await, [(PrefixKind::Join, Worth::Cheap)]);
    // It can not be kept: then nothing is made of it that others would read.
    setup.oracle.found.lock().clear();
    setup.fixture.tree(ranked).await.for_each(&mut |node| {
        setup.oracle.dear.lock().extend(node.prefix.as_ref().ok().map(|prefix| prefix.program));
    });
    assert_eq!(setup.repeated(&sql, true).await, []);
}

/// It was not read: it will not be the next time.
#[tokio::test]
async fn what_has_an_entry_does_not_run_first() {
    let setup = Setup::new();
    let sql = format!("SELECT count(*) FROM ({JOINED}) x JOIN ({JOINED}) y ON x.a = y.a");
    let key = setup.fixture.key(JOINED).await;
    let mut join = None;
    setup.fixture.tree(JOINED).await.for_each(&mut |node| {
        join = join.or(node
            .prefix
            .as_ref()
            .ok()
            .filter(|prefix| prefix.kind == PrefixKind::Join)
            .map(|prefix| prefix.key));
    });
    for key in [Some(key), join].into_iter().flatten() {
        setup.oracle.found.lock().insert(key, Found { rows: 1, bytes: 100, cost_us: 1 });
    }
    assert_eq!(setup.repeated(&sql, true).await, []);
}
