//! EXPLAIN PROVENANCE.

use nectarine_tests::files;

use super::{QUERY, table};

#[tokio::test(flavor = "multi_thread")]
async fn a_query_before_and_after() {
    let db = table().await;
    let before = db.ok(&format!("EXPLAIN PROVENANCE {QUERY}")).await;
    let lines: Vec<&str> = before.lines().collect();
    assert!(lines[0].starts_with("answer ") && lines[0].contains("|answer|NULL|it is not kept"), "{before}");
    assert_eq!(lines[1], "  table public.t|table|scanned|1 extent");
    assert_eq!(lines[2], "    file://{dir}/t/a.parquet|extent|scanned|NULL");
    assert_eq!(db.ok("SELECT count(*) FROM system.cache_entries").await, "0", "nothing ran");

    db.ok(QUERY).await;
    let after = db.ok(&format!("EXPLAIN PROVENANCE {QUERY}")).await;
    let lines: Vec<&str> = after.lines().collect();
    assert!(lines[0].contains("it is kept"), "{after}");
    assert!(lines[1].starts_with("  entry ") && lines[1].contains("|entry|reused|rows, 10 rows"), "{after}");
    assert_eq!(lines[2], "    table public.t|table|scanned|1 extent");

    // Old states and a new file.
    files::numbers(&db.path("t/b.parquet"), 0..50_000);
    let grown = db.ok(&format!("EXPLAIN PROVENANCE {QUERY}")).await;
    assert!(grown.contains("|entry|reused|states, "), "{grown}");
    assert!(grown.contains("  table public.t|table|scanned|1 of 2 extents"), "{grown}");
    assert!(grown.contains("    file://{dir}/t/b.parquet|extent|scanned|NULL"), "{grown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_and_names() {
    let db = table().await;
    db.ok("CREATE FUNCTION tenth(x BIGINT) RETURNS BIGINT RETURN x % 10").await;
    db.ok("CREATE VIEW v AS SELECT tenth(n) AS k, count(*) AS c FROM t GROUP BY 1").await;
    db.ok("SELECT * FROM v").await;
    let entry = db.ok("SELECT fingerprint FROM system.cache_entries WHERE kind = 'rows'").await;
    let tree = db.ok(&format!("EXPLAIN PROVENANCE ENTRY '{}'", &entry[..12])).await;
    assert!(tree.starts_with(&format!("entry {}|entry|NULL|rows, 10 rows", &entry[..12])), "{tree}");
    for line in [
        "    file://{dir}/t/a.parquet|extent|scanned|NULL",
        "  view public.v|view|view|SELECT tenth(n) AS k, count(*) AS c FROM t GROUP BY 1",
        "  function tenth|function|function|CREATE FUNCTION tenth",
    ] {
        assert!(tree.contains(line), "{line} in\n{tree}");
    }
    for name in ["v", "public.v", "\"v\";"] {
        let tree = db.ok(&format!("EXPLAIN PROVENANCE {name}")).await;
        assert!(tree.starts_with("answer ") && tree.contains("view public.v|view"), "{tree}");
    }
    let all = db.ok("EXPLAIN PROVENANCE ALL").await;
    assert!(all.contains(&format!("entry {}", &entry[..12])), "{all}");
    db.script(
        "
        EXPLAIN PROVENANCE ENTRY 'zz';
        !! no cached result starts with \"zz\"
        EXPLAIN PROVENANCE nothing;
        !! does not exist
        EXPLAIN PROVENANCE INSERT INTO t VALUES (1);
        !! EXPLAIN PROVENANCE takes a query
        EXPLAIN PROVENANCE;
        !! expected
        ",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn for_graphviz() {
    let db = table().await;
    db.ok(QUERY).await;
    files::numbers(&db.path("t/b.parquet"), 0..50_000);
    db.ok(QUERY).await;
    let all = db.cache().provenance_dot(None).await.expect("a graph");
    assert!(all.starts_with("digraph provenance {") && all.ends_with("}\n"), "{all}");
    for part in ["t/a.parquet", "t/b.parquet", "label = \"reused\"", "label = \"scanned\""] {
        assert!(all.contains(part), "{part} in\n{all}");
    }
    assert_eq!(all.matches('{').count(), all.matches('}').count());
    let entry = db.cache().find(&db.ok("SELECT max(fingerprint) FROM system.cache_entries").await).await.expect("one");
    let one = db.cache().provenance_dot(Some(entry)).await.expect("a graph");
    assert!(one.len() < all.len() && one.contains(&entry.to_string()), "{one}");
}
