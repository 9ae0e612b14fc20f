//! Every program has an outline, and what is said of two is what differs.

use super::{Difference, Outline};
use crate::canonical::fixture::{Fixture, Source};
use crate::canonical::tests::{different, equal, golden};

async fn outline(fixture: &Fixture, sql: &str) -> Outline {
    let prefix = fixture.root(sql).await.unwrap();
    Outline::read(&prefix.encoding).unwrap_or_else(|| panic!("no outline: {sql}"))
}

async fn differs(fixture: &Fixture, sql: &str, entry: &str) -> Difference {
    outline(fixture, sql).await.difference(&outline(fixture, entry).await)
}

/// The decoder follows the encoder: to the last byte, or there is no outline.
#[tokio::test]
async fn everything_that_is_encoded_can_be_read() {
    let fixture = Fixture::new();
    let groups = different::DIFFERENT.iter().chain(equal::SAME).copied().flatten();
    for sql in groups.chain(golden::QUERIES) {
        let Ok(prefix) = fixture.root(sql).await else { continue };
        assert!(Outline::read(&prefix.encoding).is_some(), "{sql}");
        for cut in [1, prefix.encoding.len() / 2] {
            assert!(Outline::read(&prefix.encoding[..prefix.encoding.len() - cut]).is_none(), "{sql}");
        }
    }
    assert!(Outline::read(&[]).is_none());
}

#[tokio::test]
async fn what_differs_is_said_and_nothing_else() {
    let fixture = Fixture::new();
    for group in equal::SAME {
        for sql in *group {
            let difference = differs(&fixture, sql, group[0]).await;
            assert_eq!((difference.cost, difference.words), (0, vec![]), "{sql}");
        }
    }
    for group in different::DIFFERENT {
        for sql in &group[1..] {
            let (Ok(one), Ok(two)) = (fixture.root(sql).await, fixture.root(group[0]).await) else { continue };
            if one.program == two.program {
                continue;
            }
            let difference = differs(&fixture, sql, group[0]).await;
            assert!(!difference.words.is_empty(), "{sql} against {}", group[0]);
            assert!(difference.sentence().len() < 4000);
        }
    }
}

#[tokio::test]
async fn people_understand_it() {
    let fixture = Fixture::new();
    let base = "SELECT a, sum(b) FROM t WHERE c > 7 GROUP BY a ORDER BY a";
    for (sql, expected) in [
        ("SELECT a, sum(b) FROM t WHERE c > 5 GROUP BY a ORDER BY a", "filter c > 5 instead of c > 7"),
        ("SELECT a, sum(d) FROM t WHERE c > 7 GROUP BY a ORDER BY a", "aggregate sum(d) instead of sum(b)"),
        (
            "SELECT a, sum(b), max(b) FROM t WHERE c > 7 GROUP BY a ORDER BY a",
            "aggregate max(b), which the entry has not",
        ),
        ("SELECT a, sum(b) FROM t GROUP BY a ORDER BY a", "filter c > 7, which only the entry has"),
        (
            "SELECT a, sum(b) FROM t WHERE c > 7 AND s LIKE 'x%' GROUP BY a ORDER BY a",
            "filter s LIKE 'x%', which the entry has not",
        ),
        ("SELECT a, sum(b) FROM t WHERE c > 7 GROUP BY a ORDER BY a DESC", "order by a DESC instead of a"),
        ("SELECT a, sum(b) FROM t WHERE c > 7 GROUP BY a ORDER BY a LIMIT 3", "limit 3, which the entry has not"),
        ("SELECT a % 10, sum(b) FROM t WHERE c > 7 GROUP BY a % 10 ORDER BY a % 10", "group by a % 10 instead of a"),
    ] {
        let difference = differs(&fixture, sql, base).await;
        assert_eq!(difference.sentence(), expected, "{sql}");
        assert!(difference.cost <= outline(&fixture, sql).await.reach(), "{sql}: {difference:?}");
    }
}

#[tokio::test]
async fn joins_constants_and_types() {
    let fixture = Fixture::new();
    for (sql, entry, expected) in [
        (
            "SELECT t.b FROM t JOIN u ON t.a = u.b",
            "SELECT t.b FROM t JOIN u ON t.a = u.a",
            "join on a = b instead of a = a",
        ),
        ("SELECT t.b FROM t LEFT JOIN u ON t.a = u.a", "SELECT t.b FROM t JOIN u ON t.a = u.a", "join type"),
        ("SELECT 1::int, a FROM t", "SELECT 1, a FROM t", "column 1::Int32 instead of 1::Int64"),
        ("SELECT a FROM t WHERE day > '2024-01-02'", "SELECT a FROM t WHERE day > '2024-01-01'", "2024-01-02"),
        ("SELECT a FROM t WHERE a IN (1,2,3,4,5)", "SELECT a FROM t WHERE a IN (1,2,3,4,6)", "a IN (1, 2, 3, 4, 5)"),
        ("SELECT b FROM t WHERE a = 1", "SELECT c FROM t WHERE a = 1", "column b Int64 instead of c Int32"),
        ("SELECT a FROM t UNION ALL SELECT a FROM u", "SELECT a FROM t", "union instead of scan"),
    ] {
        let difference = differs(&fixture, sql, entry).await;
        assert!(difference.sentence().contains(expected), "{sql}: {}", difference.sentence());
    }
}

/// How files are read is part of a program too.
#[tokio::test]
async fn reader_options() {
    let fixture = Fixture::new();
    let mut source = Source::parquet(&["t0"]);
    source.options.insert("format.pushdown_filters".to_string(), "true".to_string());
    source.options.insert("aws.secret_access_key".to_string(), "hidden".to_string());
    fixture.table("w", source);
    let sentence = differs(&fixture, "SELECT a FROM w", "SELECT a FROM t").await.sentence();
    assert!(sentence.contains("reader option format.pushdown_filters=true, which the entry has not"), "{sentence}");
    assert!(sentence.contains("store options"), "{sentence}");
    assert!(!sentence.contains("hidden"), "{sentence}");
}
