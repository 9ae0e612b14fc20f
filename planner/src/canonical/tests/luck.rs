//! What luck may decide is known to be luck, and what has an order to have one, all the way up.

use crate::canonical::fixture::Fixture;
use crate::canonical::{Exactness, PrefixKind};

use Exactness::{Any, Exact, Floats};

/// How alike two computations are.
const EXACTNESS: &[(&str, Exactness)] = &[
    ("SELECT a, b FROM t WHERE a > 1", Exact),
    ("SELECT a, b FROM t ORDER BY a", Exact),
    ("SELECT a, sum(b), count(f), min(b), bool_or(flag) FROM t GROUP BY a", Exact),
    ("SELECT a, sum(d), avg(d) FROM t GROUP BY a", Exact),
    ("SELECT a FROM t WHERE b > (SELECT max(b) FROM u)", Exact),
    // Floats are added up in another order.
    ("SELECT a, sum(f) FROM t GROUP BY a", Floats),
    ("SELECT a, avg(b) FROM t GROUP BY a", Floats),
    ("SELECT a, var_pop(b) FROM t GROUP BY a", Floats),
    ("SELECT count(x) FROM (SELECT sum(f) AS x FROM t GROUP BY a)", Floats),
    ("SELECT t.a, x FROM t JOIN (SELECT a, sum(f) AS x FROM u GROUP BY a) AS v ON t.a = v.a", Floats),
    ("SELECT a, x FROM (SELECT a, sum(f) AS x FROM u GROUP BY a) ORDER BY x", Floats),
    ("SELECT a FROM t WHERE b > (SELECT avg(b) FROM u)", Floats),
    ("SELECT a + (SELECT avg(b) FROM u) FROM t", Floats),
    // Rows that are equal are the same.
    ("SELECT a, b FROM t ORDER BY b DESC, a LIMIT 5", Exact),
    ("SELECT a, b FROM t ORDER BY b DESC, a LIMIT 5 OFFSET 2", Exact),
    // Rows are chosen among equals.
    ("SELECT a, b FROM t LIMIT 5", Any),
    ("SELECT a, b FROM t ORDER BY a LIMIT 5", Any),
    ("SELECT a, b FROM t ORDER BY a OFFSET 5", Any),
    ("SELECT max(a) FROM (SELECT a FROM t ORDER BY b LIMIT 5)", Any),
    ("SELECT a FROM t WHERE b > (SELECT b FROM u LIMIT 1)", Any),
    ("SELECT a, row_number() OVER (ORDER BY b) FROM t", Any),
    ("SELECT a, sum(b) OVER (ORDER BY c ROWS 1 PRECEDING) FROM t", Any),
    // The last bits of floats decide.
    ("SELECT t.a FROM t JOIN (SELECT sum(f) AS x FROM u GROUP BY a) ON t.f = x", Any),
    ("SELECT t.a FROM t JOIN (SELECT sum(f) AS x FROM u GROUP BY a) ON t.f < x", Any),
    ("SELECT t.a FROM t JOIN (SELECT a, sum(f) AS x FROM u GROUP BY a) AS v ON t.a = v.a AND t.f < x", Any),
    ("WITH v AS (SELECT avg(b) AS x FROM t) SELECT one.x FROM v one JOIN v two ON one.x = two.x", Any),
    ("SELECT x, count(*) FROM (SELECT avg(b) AS x FROM t GROUP BY a) GROUP BY x", Any),
    ("SELECT a, x FROM (SELECT a, avg(b) AS x FROM t GROUP BY a) ORDER BY x, a LIMIT 5", Any),
    ("SELECT a, x FROM (SELECT a, avg(b) AS x FROM t GROUP BY a) ORDER BY x, a OFFSET 5", Any),
    // The order of rows decides; for floats also about the smallest and the largest, if there are NaN or two zeros.
    ("SELECT a, min(f) FROM t GROUP BY a", Any),
    ("SELECT a, max(f) FROM t GROUP BY a", Any),
    ("SELECT array_agg(a) FROM t", Any),
    ("SELECT string_agg(s, ',') FROM t", Any),
    ("SELECT first_value(a) FROM t", Any),
    ("SELECT approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM t", Any),
];

#[tokio::test]
async fn luck_is_known() {
    let fixture = Fixture::new();
    for (sql, expected) in EXACTNESS {
        assert_eq!(fixture.root(sql).await.unwrap().exactness, *expected, "{sql}");
    }
}

/// Below the node that computes a subquery, who uses it depends on a value that is not its own.
#[tokio::test]
async fn who_uses_a_subquery_borrows_its_luck() {
    let fixture = Fixture::new();
    for (subquery, expected) in
        [("SELECT b FROM u LIMIT 1", Any), ("SELECT avg(b) FROM u", Floats), ("SELECT max(b) FROM u", Exact)]
    {
        let tree = fixture.tree(&format!("SELECT a, count(*) FROM t WHERE b > ({subquery}) GROUP BY a")).await;
        assert_eq!(tree.prefix.as_ref().unwrap().borrowed, Exact, "all of it computes the subquery itself");
        let mut seen = vec![];
        tree.for_each(&mut |node| {
            let prefix = node.prefix.as_ref().unwrap();
            if matches!(prefix.kind, PrefixKind::Filter) {
                seen.push(prefix.borrowed);
            }
        });
        assert!(seen.contains(&expected) && seen.iter().all(|borrowed| *borrowed <= expected), "{subquery}: {seen:?}");
    }
}

/// Whether the order of rows may mean something.
const ORDERED: &[(&str, bool)] = &[
    ("SELECT a, b FROM t ORDER BY a", true),
    ("SELECT a, b FROM t ORDER BY a LIMIT 5", true),
    ("SELECT a + 1 FROM t ORDER BY b", true),
    ("SELECT a FROM (SELECT a, b FROM t ORDER BY b LIMIT 5) WHERE a > 1", true),
    ("SELECT * FROM (SELECT a, b FROM t ORDER BY b LIMIT 50) LIMIT 5", true),
    ("SELECT a FROM t", false),
    ("SELECT a FROM t LIMIT 5", false),
    ("SELECT b, count(*) FROM (SELECT a, b FROM t ORDER BY b LIMIT 5) GROUP BY b", false),
];

#[tokio::test]
async fn orders_are_known() {
    let fixture = Fixture::new();
    for (sql, expected) in ORDERED {
        assert_eq!(fixture.root(sql).await.unwrap().ordered, *expected, "{sql}");
    }
}
