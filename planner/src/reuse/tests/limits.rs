//! Below a limit: rows that few of are needed are not kept, and what computes more than the statement would is told.

use super::*;
use crate::canonical::PrefixKind;

fn kinds(findings: &Findings) -> Vec<PrefixKind> {
    findings.kept.iter().map(|kept| kept.prefix.kind).collect()
}

/// Keeping all rows of a filter would be a wall to what the limit tells the scan.
#[tokio::test]
async fn rows_below_a_limit_are_not_kept() {
    for rows in [
        "SELECT a, b FROM t WHERE b > 3",
        "SELECT a, b + 1 FROM t WHERE b > 3",
        "SELECT a, b FROM t WHERE b > 3 UNION ALL SELECT a, b FROM u",
        "SELECT a, unnest(items) FROM t WHERE b > 3",
    ] {
        let setup = Setup::new();
        for n in 1..5 {
            for sql in [format!("{rows} ORDER BY 1 LIMIT {n}"), format!("{rows} LIMIT {n}")] {
                let (_, findings) = setup.run(&sql, ReuseMode::On).await;
                assert_eq!(kinds(&findings), [], "{sql}");
                assert!(!findings.sees_more, "{sql}");
            }
        }
        // Who needs all of them keeps them.
        let (_, findings) =
            setup.run(&format!("SELECT count(*) FROM ({rows} ORDER BY 1 LIMIT 9)"), ReuseMode::On).await;
        assert!(!kinds(&findings).contains(&PrefixKind::Filter), "{rows}");
        let counted = format!("SELECT max(x), min(y) FROM ({rows}) AS q (y, x)");
        let (_, findings) = setup.run(&counted, ReuseMode::On).await;
        assert!(
            kinds(&findings).iter().any(|kind| ![PrefixKind::Aggregate, PrefixKind::States].contains(kind)),
            "{rows}"
        );
    }
}

/// Groups, windows and joins are made of most of what there is.
#[tokio::test]
async fn what_needs_all_rows_is_kept_below_a_limit() {
    for (rows, kept) in [
        ("SELECT s, sum(b) FROM t WHERE b > 3 GROUP BY s", PrefixKind::Filter),
        ("SELECT a, sum(b) OVER (PARTITION BY s) FROM t", PrefixKind::Window),
        ("SELECT t.a, u.b FROM t JOIN u ON t.a = u.a", PrefixKind::Join),
    ] {
        let setup = Setup::new();
        // The filter below the groups has to be asked for by others than they.
        setup.run("SELECT max(s), min(b) FROM t WHERE b > 3", ReuseMode::On).await;
        for n in 1..4 {
            let (_, findings) = setup.run(&format!("{rows} ORDER BY 1 LIMIT {n}"), ReuseMode::On).await;
            let is_kept = kinds(&findings).contains(&kept);
            assert_eq!(is_kept, n > 1 || kept == PrefixKind::Filter, "{n}: {rows}: {:?}", kinds(&findings));
        }
    }
}

/// An error that the statement would not have met must not fail it.
#[tokio::test]
async fn who_sees_more_is_told() {
    let groups = "SELECT a, sum(b) AS s FROM t GROUP BY a";
    for (sql, sees_more) in [
        (groups.to_owned(), false),
        (format!("SELECT * FROM ({groups}) WHERE s > 3"), false),
        (format!("SELECT u.a, x.s FROM u JOIN ({groups}) x ON u.a = x.a"), true),
        (format!("SELECT * FROM ({groups}) ORDER BY s LIMIT 3"), true),
        ("SELECT a, b FROM t WHERE b > 3 ORDER BY a LIMIT 3".to_owned(), false),
    ] {
        let setup = Setup::new();
        assert_eq!(setup.run(&sql, ReuseMode::On).await.1.sees_more, sees_more, "{sql}");
    }
    // All rows are read, whatever the limit would have left out.
    let setup = Setup::new();
    setup.knows("SELECT a, b FROM t WHERE b > 3").await;
    let sql = "SELECT a, 1 / b FROM t WHERE b > 3 ORDER BY a LIMIT 3";
    assert!(setup.run(sql, ReuseMode::On).await.1.sees_more);
}

/// Somebody found out that they are too many.
#[tokio::test]
async fn what_is_too_large_is_not_tried_again() {
    let setup = Setup::new();
    let rows = "SELECT a, b FROM t WHERE b > 3";
    let counted = |name: &str| format!("SELECT {name}(a), {name}(b) FROM ({rows})");
    setup.run(&counted("sum"), ReuseMode::On).await;
    let (_, findings) = setup.run(&counted("max"), ReuseMode::On).await;
    assert!(kinds(&findings).contains(&PrefixKind::Filter));
    let program =
        findings.kept.iter().find(|kept| kept.prefix.kind == PrefixKind::Filter).map(|kept| kept.prefix.program);
    setup.oracle.too_large.lock().extend(program);
    let (_, findings) = setup.run(&counted("min"), ReuseMode::On).await;
    assert!(!kinds(&findings).contains(&PrefixKind::Filter) && kinds(&findings).contains(&PrefixKind::States));
}
