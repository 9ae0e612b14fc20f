//! What ran below a limit, a dynamic filter or a failing parent holds fewer rows than its plan says.

use futures::StreamExt;

use super::{all_hold, entries_hold, holds, sorted, tables};

/// Trap 3. Guard: AddEntry lets no dynamic filter, limit or sort through.
#[tokio::test]
async fn what_a_top_k_or_a_join_cuts_is_not_kept_as_whole() {
    let db = tables().await;
    for (cutting, whole) in [
        ("SELECT g, sum(a) AS s FROM t GROUP BY g ORDER BY s DESC LIMIT 2", "SELECT g, sum(a) AS s FROM t GROUP BY g"),
        (
            "SELECT a % 100 AS m, max(a) FROM t GROUP BY 1 ORDER BY 2 DESC LIMIT 3",
            "SELECT a % 100, max(a) FROM t GROUP BY 1",
        ),
        ("SELECT DISTINCT a % 50 AS m FROM t ORDER BY m LIMIT 3", "SELECT DISTINCT a % 50 FROM t"),
        (
            "SELECT d.tag, x.s FROM d JOIN (SELECT k, sum(a) s FROM t GROUP BY k) x ON d.k = x.k WHERE d.tag = 'one'",
            "SELECT k, sum(a) s FROM t GROUP BY k",
        ),
        (
            "SELECT count(*) FROM d JOIN (SELECT k, a FROM t WHERE a > 10) x ON d.k = x.k",
            "SELECT k, a FROM t WHERE a > 10",
        ),
        (
            "SELECT sum(x.a) FROM d JOIN (SELECT k, a FROM t WHERE a > 10) x ON d.k = x.k",
            "SELECT max(a), min(k), count(*) FROM (SELECT k, a FROM t WHERE a > 10)",
        ),
        ("SELECT max(a) FROM (SELECT a FROM t WHERE k > 2)", "SELECT count(*) FROM (SELECT a FROM t WHERE k > 2)"),
        ("SELECT min(a), max(a) FROM (SELECT a FROM t WHERE k > 3)", "SELECT a FROM t WHERE k > 3"),
        (
            "SELECT j.a FROM (SELECT t.a, d.tag FROM t JOIN d ON t.k = d.k) j ORDER BY j.a LIMIT 4",
            "SELECT t.a, d.tag FROM t JOIN d ON t.k = d.k",
        ),
        (
            "SELECT j.tag FROM (SELECT t.a, d.tag FROM t JOIN d ON t.k = d.k) j ORDER BY j.a DESC LIMIT 4",
            "SELECT count(*), sum(a) FROM (SELECT t.a, d.tag FROM t JOIN d ON t.k = d.k)",
        ),
        (
            "SELECT a FROM (SELECT a FROM t WHERE k = 1 UNION ALL SELECT a + 1 FROM t WHERE k = 2) ORDER BY a LIMIT 3",
            "SELECT count(*) FROM (SELECT a FROM t WHERE k = 1 UNION ALL SELECT a + 1 FROM t WHERE k = 2)",
        ),
    ] {
        // Asked for by several parents, so that what lies below is kept.
        for _ in 0..3 {
            holds(&db, cutting).await;
            holds(&db, whole).await;
        }
    }
    entries_hold(&db).await;
}

/// Trap 6. Guard: a recording ends well only if every partition was read to its end.
#[tokio::test]
async fn a_limit_above_discards_what_it_did_not_read() {
    let db = tables().await;
    for partitions in [1, 2, 7] {
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        db.ok("SET datafusion.execution.batch_size = 16").await;
        for limit in [1, 2, 40] {
            let cut = db.ok(&format!("SELECT x FROM (SELECT a + 1 AS x FROM t WHERE k > 0) LIMIT {limit}")).await;
            assert_eq!(cut.lines().count(), limit);
            assert_eq!(
                holds(&db, "SELECT count(x), sum(x) FROM (SELECT a + 1 AS x FROM t WHERE k > 0)").await,
                "900|450900"
            );
        }
    }
    let limited = "SELECT count(*) FROM (SELECT a FROM t WHERE k > 0 LIMIT 5)";
    assert_eq!(holds(&db, limited).await, "5");
    assert_eq!(holds(&db, "SELECT count(*) FROM (SELECT a FROM t WHERE k > 0 LIMIT 6)").await, "6");
    assert_eq!(holds(&db, "SELECT count(*) FROM (SELECT a FROM t WHERE k > 0 LIMIT 5 OFFSET 898)").await, "2");
    entries_hold(&db).await;
}

/// Trap 6. Guard: a cancelled or failed statement publishes only what had ended.
#[tokio::test]
async fn a_statement_that_does_not_end_leaves_nothing_half() {
    let db = tables().await;
    db.ok("SET datafusion.execution.batch_size = 8").await;
    let whole = "SELECT a, g FROM t WHERE k > 0";
    for n_batches in [0, 1, 3] {
        let answer = db.session().execute(whole).await.expect("it runs");
        let mut stream = answer.into_stream();
        for _ in 0..n_batches {
            stream.next().await.expect("a batch").expect("no error");
        }
        drop(stream);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    holds(&db, whole).await;
    // It fails at its last rows.
    let failing = "SELECT k, sum(100 / (999 - a)) FROM t WHERE k > 0 GROUP BY k";
    for _ in 0..3 {
        db.err(failing).await;
    }
    let fails_above = "SELECT 1 / (s - 49950) FROM (SELECT k, sum(a) AS s FROM t GROUP BY k) WHERE k = 9";
    for _ in 0..2 {
        let _ = db.run(fails_above).await;
        holds(&db, "SELECT k, sum(a) AS s FROM t GROUP BY k").await;
    }
    entries_hold(&db).await;
}

/// Guards: `candidate` reads nothing sorted in the middle of a plan; keys of limits hold skip and fetch.
#[tokio::test]
async fn an_order_is_not_lost_above_an_entry() {
    let db = tables().await;
    let queries = [
        "SELECT a, k FROM t ORDER BY k, a",
        "SELECT a, k FROM t ORDER BY k DESC, a",
        "SELECT a, k FROM t ORDER BY k, a DESC",
        "SELECT a, k FROM t ORDER BY k, a LIMIT 10",
        "SELECT a, k FROM t ORDER BY k, a LIMIT 11",
        "SELECT a, k FROM t ORDER BY k, a LIMIT 10 OFFSET 3",
        "SELECT a, k FROM t ORDER BY k, a LIMIT 10 OFFSET 4",
        "SELECT a FROM (SELECT a, k FROM t ORDER BY k, a LIMIT 10) ORDER BY a DESC",
        "SELECT k, sum(a) AS s FROM t GROUP BY k ORDER BY s",
        "SELECT k, sum(a) AS s FROM t GROUP BY k ORDER BY s DESC",
        "SELECT k, sum(a) AS s FROM t GROUP BY k ORDER BY k LIMIT 3",
        "SELECT k, sum(a) AS s FROM t GROUP BY k HAVING sum(a) > 49700 ORDER BY k DESC",
        "SELECT k, s, row_number() OVER (ORDER BY s) AS n FROM (SELECT k, sum(a) AS s FROM t GROUP BY k) ORDER BY n",
        "SELECT k AS x FROM d ORDER BY x NULLS FIRST",
        "SELECT k AS x FROM d ORDER BY x NULLS LAST",
    ];
    for _ in 0..2 {
        for sql in queries {
            db.ok("SET nectarine.reuse = 'off'").await;
            let expected = db.ok(sql).await;
            db.ok("SET nectarine.reuse = 'on'").await;
            for partitions in [1, 2, 7] {
                db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
                assert_eq!(db.ok(sql).await, expected, "{sql}");
            }
        }
    }
    // The same groups, by whoever asks.
    all_hold(&db, &["SELECT k, sum(a) AS s FROM t GROUP BY k"]).await;
    entries_hold(&db).await;
}

/// Guard: the tee in front of the client keeps the order in which rows came.
#[tokio::test]
async fn a_long_sorted_answer_comes_back_in_order() {
    let db = tables().await;
    db.ok("CREATE TABLE many AS SELECT (value * 7919) % 200003 AS n, md5(CAST(value AS TEXT)) AS s FROM generate_series(1, 60000)")
        .await;
    let sql = "SELECT n, s FROM many ORDER BY n";
    db.ok("SET nectarine.reuse = 'off'").await;
    let expected = db.ok(sql).await;
    db.ok("SET nectarine.reuse = 'on'").await;
    for _ in 0..3 {
        assert!(db.ok(sql).await == expected);
    }
    let second = db.second().await;
    assert!(second.ok(sql).await == expected);
    assert_eq!(sorted(&second.ok("SELECT count(*) FROM (SELECT n, s FROM many ORDER BY n)").await), "60000");
    entries_hold(&db).await;
}
