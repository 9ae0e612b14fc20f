//! What is kept knows what it was made of, also by way of a scalar subquery.

use super::*;

fn tables(kept: &Kept) -> Vec<&str> {
    kept.prefix.inputs.iter().map(|input| input.table.as_str()).collect()
}

/// Of the extents that the subquery reads, and of the entry that its value came from.
#[tokio::test]
async fn what_uses_a_subquery_is_made_of_it() {
    let setup = Setup::new();
    let largest = "SELECT max(b) FROM u";
    setup.knows(largest).await;
    let groups = format!("SELECT a, count(*) AS n FROM t WHERE b > ({largest}) GROUP BY a");
    let (_, findings) = setup.run(&format!("SELECT * FROM ({groups}) WHERE n > 5"), ReuseMode::On).await;
    let read: Vec<Fingerprint> = findings.hits.iter().map(|hit| hit.key).collect();
    assert_eq!(read, [setup.fixture.key(largest).await]);
    assert!(!findings.kept.is_empty());
    for kept in &findings.kept {
        assert_eq!(tables(kept), ["public.t", "public.u"]);
        assert_eq!(kept.made_of.entries, read);
        let scanned = kept.made_of.scanned.as_ref().unwrap();
        let n_scanned = |input: usize| {
            let extents = &kept.prefix.inputs[input].extents;
            extents.iter().filter(|extent| scanned.contains(&extent.fingerprint)).count()
        };
        assert_eq!((n_scanned(0), n_scanned(1)), (2, 0), "the value came by way of the entry");
    }
    // Whose groups do not depend on it has nothing to do with it.
    let sql = format!("SELECT * FROM (SELECT a, count(*) AS n FROM t GROUP BY a) WHERE n > ({largest})");
    let (_, findings) = setup.run(&sql, ReuseMode::On).await;
    assert_eq!(findings.hits.len(), 1);
    assert!(!findings.kept.is_empty());
    for kept in &findings.kept {
        assert_eq!(tables(kept), ["public.t"]);
        assert_eq!(kept.made_of, MadeOf::default());
    }
}
