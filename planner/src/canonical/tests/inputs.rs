//! A prefix tells of all extents that decide about its rows, whichever part of the plan reads them.

use crate::canonical::fixture::Fixture;
use crate::canonical::{Prefix, PrefixKind};

fn tables(prefix: &Prefix) -> Vec<&str> {
    prefix.inputs.iter().map(|input| input.table.as_str()).collect()
}

/// Below the node that computes a subquery, who uses its value is made of what it reads.
#[tokio::test]
async fn who_uses_a_subquery_lists_what_it_reads() {
    let fixture = Fixture::new();
    for sql in [
        "SELECT a, count(*) FROM t WHERE b > (SELECT max(b) FROM u) GROUP BY a",
        "SELECT a, sum(b + (SELECT max(b) FROM u)) FROM t GROUP BY a",
    ] {
        let tree = fixture.tree(sql).await;
        let mut users = 0;
        tree.for_each(&mut |node| {
            let prefix = node.prefix.as_ref().unwrap();
            match prefix.kind {
                PrefixKind::Scan => assert_eq!(tables(prefix).len(), 1, "{sql}"),
                PrefixKind::Filter | PrefixKind::States | PrefixKind::Aggregate => {
                    assert_ne!(tables(prefix), ["public.t"], "{sql}: {:?}", prefix.kind);
                    users += usize::from(prefix.uses_subqueries);
                }
                _ => {}
            }
        });
        assert!(users >= 2, "{sql}: both halves of the groups");
        assert!(!tree.prefix.unwrap().uses_subqueries, "all of it computes the subquery itself: {sql}");
    }
}

/// Scans one by one; what constants are made of each once, in whatever order they are met.
const INPUTS: &[(&str, &[&str])] = &[
    ("SELECT a FROM t WHERE b > (SELECT max(b) FROM u)", &["public.t", "public.u"]),
    ("SELECT a + (SELECT max(b) FROM u) FROM t WHERE b > (SELECT max(b) FROM u)", &["public.t", "public.u"]),
    ("SELECT a FROM t WHERE b > (SELECT max(b) FROM u) AND c < (SELECT min(c) FROM u)", &["public.t", "public.u"]),
    (
        "SELECT a FROM t WHERE b > (SELECT max(b) FROM u) AND c < (SELECT min(c) FROM v)",
        &["public.t", "public.u", "public.v"],
    ),
    (
        "SELECT a FROM t WHERE c < (SELECT min(c) FROM v) AND b > (SELECT max(b) FROM u)",
        &["public.t", "public.u", "public.v"],
    ),
    (
        "SELECT a FROM t WHERE b > (SELECT max(b) FROM u WHERE c < (SELECT min(c) FROM v))",
        &["public.t", "public.u", "public.v"],
    ),
    ("SELECT a FROM t WHERE b > (SELECT max(b) FROM t)", &["public.t", "public.t"]),
    ("SELECT x.a FROM t AS x JOIN t AS y ON x.a = y.b", &["public.t", "public.t"]),
];

#[tokio::test]
async fn constants_are_listed_once() {
    let fixture = Fixture::new();
    for (sql, expected) in INPUTS {
        assert_eq!(tables(&fixture.root(sql).await.unwrap()), *expected, "{sql}");
    }
}

/// What only uses the value of a subquery reads nothing: there is nothing to save.
#[tokio::test]
async fn what_a_subquery_reads_is_read_there() {
    let fixture = Fixture::new();
    let tree = fixture.tree("SELECT 1 WHERE 1 < (SELECT max(b) FROM u)").await;
    assert!(tree.prefix.as_ref().unwrap().reads);
    let [main, subquery] = tree.children.as_slice() else { panic!("{tree:?}") };
    assert!(subquery.prefix.as_ref().unwrap().reads);
    main.for_each(&mut |node| assert!(!node.prefix.as_ref().unwrap().reads, "{node:?}"));
    assert_eq!(tables(main.prefix.as_ref().unwrap()), ["public.u"]);
}
