//! One case for each guard of segment hits: without the guard, some answer or entry here is wrong. See docs/soundness.md.

use sqlx::{Connection, SqliteConnection};

use super::*;

/// Asks, lets files come and go, and asks again.
async fn holds_after(db: &Db, statements: &[&str], change: impl FnOnce()) {
    for sql in statements {
        check(db, sql).await;
    }
    change();
    for sql in statements {
        check(db, sql).await;
    }
}

async fn explained(db: &Db, sql: &str) -> String {
    db.ok(&format!("EXPLAIN REUSE {sql}")).await
}

/// The side of a join that decides about the other's rows takes rows back when it grows. Here it is the large one, of which
/// computing only what is new would pay.
#[tokio::test(flavor = "multi_thread")]
async fn the_side_that_decides() {
    let statements = [
        "SELECT name, count(*), sum(id) FROM n LEFT JOIN f ON f.k = n.k AND v = 5 AND g < 99 GROUP BY name",
        "SELECT name, count(*), sum(id) FROM f RIGHT JOIN n ON f.k = n.k AND v = 5 AND g < 99 GROUP BY name",
        "SELECT name, count(*), sum(id) FROM n FULL JOIN (SELECT k, id FROM f WHERE v = 5 AND g < 99) AS x ON x.k = n.k GROUP BY name",
        "SELECT count(*), sum(k) FROM n WHERE k IN (SELECT k FROM f WHERE v = 5)",
        "SELECT count(*), sum(k) FROM n WHERE k NOT IN (SELECT k FROM f WHERE v = 5 AND g < 99)",
        "SELECT count(*), sum(k) FROM n WHERE NOT EXISTS (SELECT 1 FROM f WHERE f.k = n.k AND v = 5 AND g < 99)",
        "SELECT count(*), sum(k) FROM n WHERE k IN (SELECT k FROM f WHERE v = 5) OR w < 0.5",
        "SELECT count(*), sum(k) FROM n WHERE k NOT IN (SELECT k FROM f WHERE v = 5 AND g < 99) OR w < 0.5",
        "SELECT count(*), sum(n.k) FROM (SELECT k FROM f WHERE v < 9 AND g < 99) AS x RIGHT SEMI JOIN n ON x.k = n.k",
        "SELECT k, name FROM n LEFT ANTI JOIN (SELECT k FROM f WHERE v = 5 AND g < 99) AS x ON x.k = n.k",
    ];
    let db = tables(3).await;
    names(&db.path("n/1.parquet"), 5..11);
    for part in 3..5 {
        holds_after(&db, &statements, || facts(&db.path(&format!("f/{part:03}.parquet")), part)).await;
    }
    // Both sides.
    let both = || {
        names(&db.path("n/2.parquet"), 10..12);
        facts(&db.path("f/005.parquet"), 5);
    };
    holds_after(&db, &statements, both).await;
}

/// NOT IN, when a NULL comes: no row is left.
#[tokio::test(flavor = "multi_thread")]
async fn a_null_comes() {
    let statements = [
        "SELECT count(*), sum(v) FROM f WHERE s NOT IN (SELECT s FROM x)",
        "SELECT id FROM f WHERE v = 5 AND s NOT IN (SELECT s FROM x)",
        "SELECT count(*) FROM f WHERE v < 9 AND (s NOT IN (SELECT s FROM x) OR g = 3)",
    ];
    let db = tables(4).await;
    let texts = |path: &str, texts: Vec<Option<&str>>| {
        files::parquet(&db.path(path), vec![("s", Arc::new(StringArray::from(texts)))]);
    };
    texts("x/0.parquet", vec![Some("t1")]);
    db.ok("CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '{dir}/x/'").await;
    holds_after(&db, &statements, || facts(&db.path("f/004.parquet"), 4)).await;
    holds_after(&db, &statements, || texts("x/1.parquet", vec![None])).await;
}

/// Entries over different days of one branch of a UNION ALL each hold all of the other branch.
#[tokio::test(flavor = "multi_thread")]
async fn what_other_branches_add_is_added_once() {
    let statements = [
        "SELECT k, count(*) FROM (SELECT k FROM f UNION ALL SELECT k FROM n) AS u GROUP BY k",
        "SELECT count(*), sum(k) FROM (SELECT k FROM f UNION ALL SELECT k FROM n UNION ALL SELECT k FROM f) AS u",
        "SELECT u.k, count(*) FROM (SELECT k FROM f WHERE v < 9 UNION ALL SELECT k FROM n) AS u JOIN n ON u.k = n.k GROUP BY u.k",
        "SELECT k FROM f WHERE v = 3 AND g < 40 UNION ALL SELECT k FROM n",
    ];
    let db = tables(2).await;
    let away = |part: i64| std::fs::remove_file(db.path(&format!("f/{part:03}.parquet"))).expect("it was there");
    let back = |part: i64| facts(&db.path(&format!("f/{part:03}.parquet")), part);
    let others = || {
        (0..2).for_each(away);
        (2..4).for_each(back);
    };
    holds_after(&db, &statements, others).await;
    holds_after(&db, &statements, || (0..2).for_each(back)).await;
    let both = || {
        back(4);
        names(&db.path("n/1.parquet"), 3..9);
    };
    holds_after(&db, &statements, both).await;
    // What is computed of one branch alone is no result of the whole.
    holds_after(&db, &statements, || back(5)).await;
}

/// Entries that share extents are not read together, and none of an extent that is gone.
#[tokio::test(flavor = "multi_thread")]
async fn every_extent_once() {
    let statements = [
        "SELECT k, count(*), sum(v), avg(v) FROM f GROUP BY k",
        "SELECT id, v FROM f WHERE v = 999 AND g < 50",
        "SELECT id, v FROM f WHERE g < 100 ORDER BY v DESC, id LIMIT 20",
    ];
    let db = tables(3).await;
    let away = |part: i64| std::fs::remove_file(db.path(&format!("f/{part:03}.parquet"))).expect("it was there");
    let back = |part: i64| facts(&db.path(&format!("f/{part:03}.parquet")), part);
    // 0 1 2, then 1 2 3, then 0 2 3, then all.
    let second = || {
        back(3);
        away(0);
    };
    holds_after(&db, &statements, second).await;
    let third = || {
        back(0);
        away(1);
    };
    holds_after(&db, &statements, third).await;
    holds_after(&db, &statements, || back(1)).await;
    // The head goes, then the middle.
    holds_after(&db, &statements, || away(0)).await;
    holds_after(&db, &statements, || away(2)).await;
}

/// Managed extents are known by content: one that was inserted twice is twice in a scan.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_extent_twice() {
    let db = Db::new().await;
    let insert = |table: &str, part: i64| {
        let (start, end) = (part * 30_000, part * 30_000 + 29_999);
        format!("INSERT INTO {table} SELECT value, value % 7 FROM generate_series({start}, {end})")
    };
    // In one stream, so that the same rows are the same bytes.
    let writer = db.client();
    writer.ok("SET datafusion.execution.target_partitions = 1").await;
    for table in ["a", "b", "c"] {
        db.ok(&format!("CREATE TABLE {table} (v BIGINT, k BIGINT)")).await;
    }
    let over = |table: &str| {
        [
            format!("SELECT k, count(*), sum(v) FROM {table} GROUP BY k"),
            format!("SELECT v FROM {table} WHERE v % 1000 = 7"),
            format!("SELECT * FROM {table} WHERE v % 1000 = 7 AND k < 9 LIMIT 60"),
        ]
    };
    // a: 0 0, b: 0 1, c: 0 0 1, all of them the same programs.
    for (table, parts) in [("a", vec![0, 0]), ("b", vec![0, 1]), ("c", vec![0])] {
        for part in parts {
            writer.ok(&insert(table, part)).await;
        }
        for sql in &over(table)[..2] {
            check(&db, sql).await;
        }
    }
    for part in [0, 1] {
        writer.ok(&insert("c", part)).await;
        for sql in &over("c")[..2] {
            check(&db, sql).await;
        }
    }
    let extents = "SELECT count(*), count(DISTINCT fingerprint) FROM system.extents";
    assert_eq!(db.ok(extents).await, "7|2", "the same rows are the same extent");
    // Rows that are there twice in the one are there once in the other.
    assert_eq!(db.ask(&over("a")[2]).await.0.len(), 60);
    let (rows, _) = db.ask(&over("b")[2]).await;
    let mut distinct = rows.clone();
    distinct.dedup();
    assert_eq!((rows.len(), distinct.len()), (60, 60));
}

/// A LIMIT without an order may answer from old rows: as many as it asks for, and only while they are rows.
#[tokio::test(flavor = "multi_thread")]
async fn enough_rows_that_still_hold() {
    let db = tables(3).await;
    let few = "SELECT * FROM f WHERE v = 777 AND g < 50 LIMIT 40";
    let before = db.ask(few).await.0.len();
    for part in 3..12 {
        facts(&db.path(&format!("f/{part:03}.parquet")), part);
    }
    let all = computed(&db, "SELECT id, v FROM f WHERE v = 777 AND g < 50").await.len();
    assert!(before < 40 && before < all, "{before} of {all}");
    assert_eq!(db.ask(few).await.0.len(), all.min(40));

    let not_in = "SELECT * FROM f WHERE v < 500 AND k NOT IN (SELECT k FROM n) LIMIT 9";
    assert_eq!(db.ask(not_in).await.0.len(), 9);
    names(&db.path("n/1.parquet"), 8..12);
    let (rows, _) = db.ask(not_in).await;
    assert!(rows.len() == 9 && rows.iter().all(|row| row.split('|').nth(1) == Some("12")), "{rows:?}");

    let enough = "SELECT id, v FROM f WHERE v < 900 LIMIT 5";
    db.ask(enough).await;
    facts(&db.path("f/012.parquet"), 12);
    assert_eq!(db.ask(enough).await.1.reused, Reused::Partial, "{}", explained(&db, enough).await);
    // Of what is sorted or skipped, not just any rows.
    for sql in [
        "SELECT id, v FROM f WHERE g < 100 ORDER BY v, id LIMIT 5 OFFSET 3",
        "SELECT k, count(*) FROM f GROUP BY k ORDER BY k LIMIT 3 OFFSET 1",
        "SELECT count(*) FROM (SELECT id FROM f WHERE v < 900 LIMIT 50) AS x",
    ] {
        holds_after(&db, &[sql], || facts(&db.path(&format!("f/{:03}.parquet", 20 + sql.len())), 13)).await;
    }
}

/// Old rows and new ones together are in the order that was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn sorted_again() {
    let db = tables(4).await;
    let sql = "SELECT id, v FROM f WHERE g = 7 AND v > 500 ORDER BY v DESC, id";
    for part in 4..6 {
        let order = db.ok(sql).await;
        let other = db.client();
        other.ok("SET nectarine.reuse = 'off'").await;
        assert_eq!(order, other.ok(sql).await);
        facts(&db.path(&format!("f/{part:03}.parquet")), part);
        assert!(explained(&db, sql).await.contains("segment hit"));
    }
}

/// Groups over groups, windows and limits need all rows.
#[tokio::test(flavor = "multi_thread")]
async fn what_needs_all_rows() {
    let statements = [
        "SELECT c, count(*) FROM (SELECT g, count(*) AS c FROM f WHERE v < 40 GROUP BY g) AS x GROUP BY c",
        "SELECT r, count(*) FROM (SELECT id, rank() OVER (PARTITION BY g ORDER BY v, id) AS r FROM f WHERE v < 40) AS x WHERE r < 4 GROUP BY r",
        "SELECT id, r FROM (SELECT id, rank() OVER (PARTITION BY g ORDER BY v, id) AS r FROM f WHERE v < 40) AS x WHERE r = 3",
        "SELECT count(*), sum(v) FROM (SELECT v, id FROM f ORDER BY v, id LIMIT 100) AS x",
        "SELECT x.k, c, count(*) FROM f JOIN (SELECT k, count(*) AS c FROM f WHERE v < 9 GROUP BY k) AS x ON f.k = x.k GROUP BY x.k, c",
    ];
    let db = tables(4).await;
    holds_after(&db, &statements, || facts(&db.path("f/004.parquet"), 4)).await;
}

/// Aggregates that are not named as mergeable are not merged.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_merge() {
    let statements = [
        "SELECT k, array_agg(v ORDER BY id) FROM f WHERE g = 5 GROUP BY k",
        "SELECT k, string_agg(s, ',' ORDER BY id) FROM f WHERE g = 5 GROUP BY k",
        "SELECT k, first_value(v ORDER BY id), nth_value(v, 2 ORDER BY id) FROM f GROUP BY k",
        "SELECT k, last_value(id ORDER BY v, id) FROM f GROUP BY k",
    ];
    let db = tables(4).await;
    holds_after(&db, &statements, || facts(&db.path("f/004.parquet"), 4)).await;
    db.ask("SELECT k, array_agg(v), first_value(s) FROM f WHERE g = 5 GROUP BY k").await;
    facts(&db.path("f/005.parquet"), 5);
    let of_luck = "SELECT k, array_agg(v), first_value(s) FROM f WHERE g = 5 GROUP BY k";
    for sql in statements.into_iter().chain([of_luck]) {
        let text = explained(&db, sql).await;
        assert!(!text.contains("merge groups"), "{sql}\n{text}");
    }
}

/// What differs from run to run below groups, or is needed twice, is not put together from two runs.
#[tokio::test(flavor = "multi_thread")]
async fn two_runs_do_not_meet() {
    let below = "SELECT total, count(*) FROM f JOIN (SELECT k, sum(w) AS total FROM n GROUP BY k) AS x ON f.k = x.k GROUP BY total";
    let borrowed = "SELECT count(*), sum(v) FROM f WHERE CAST(k AS DOUBLE) > (SELECT avg(w) FROM n)";
    let twice = "WITH t AS (SELECT k, avg(CAST(v AS DOUBLE) / 3) AS a FROM f GROUP BY k) \
                 SELECT count(*) FROM t WHERE a >= 0.999 * (SELECT max(a) FROM t)";
    let db = tables(4).await;
    names(&db.path("n/1.parquet"), 0..8);
    holds_after(&db, &[below, borrowed, twice], || facts(&db.path("f/004.parquet"), 4)).await;
    facts(&db.path("f/005.parquet"), 5);
    for sql in [below, borrowed, twice] {
        let text = explained(&db, sql).await;
        assert!(!text.contains("segment hit"), "{sql}\n{text}");
    }
}

/// Both sides of joins grow at once, again and again: every pair of rows is found once.
#[tokio::test(flavor = "multi_thread")]
async fn every_pair_once() {
    let statements = [
        "SELECT name, count(*), sum(v) FROM f JOIN n ON f.k = n.k GROUP BY name",
        "SELECT a.k, count(*) FROM f a JOIN f b ON a.id = b.id + 1 WHERE a.v < 5 GROUP BY a.k",
        "SELECT a.name, b.name, c.name, count(*) FROM n a JOIN n b ON a.k = b.k JOIN n c ON b.k = c.k GROUP BY a.name, b.name, c.name",
        "SELECT f.id, n.name FROM f JOIN n ON f.k = n.k WHERE v = 777 AND g < 20",
        "SELECT count(*), sum(v + n.k) FROM f CROSS JOIN n WHERE v < 3",
        "SELECT count(*), sum(v) FROM f JOIN n ON f.k < n.k AND f.v = n.k",
    ];
    let db = tables(3).await;
    for step in 3..5_i64 {
        let both = || {
            facts(&db.path(&format!("f/{step:03}.parquet")), step);
            names(&db.path(&format!("n/{step}.parquet")), step..9 + step);
        };
        holds_after(&db, &statements, both).await;
    }
}

/// An entry whose content is not that of its extents is found by check mode, also where it has some of today's only; and the
/// extents that the catalog names are not believed if the entry's key was made of others.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_of_other_extents() {
    let db = tables(2).await;
    let states = "SELECT k, count(*), sum(v) FROM f GROUP BY k";
    let rows = "SELECT id, v FROM f WHERE v = 999 AND g < 500";
    for sql in [states, rows] {
        check(&db, sql).await;
    }
    facts(&db.path("f/002.parquet"), 2);
    for sql in [states, rows] {
        check(&db, sql).await;
    }
    db.shutdown().await;
    // What is about the first two files is said to be about the third.
    let metadata = db.home().join("metadata.db");
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", metadata.display())).await.expect("a file");
    let lie = "UPDATE cache_entry_inputs SET input = (SELECT input FROM cache_inputs WHERE length(extents) = 32) \
               WHERE input = (SELECT input FROM cache_inputs WHERE length(extents) = 64)";
    let lied = sqlx::query(lie).execute(&mut connection).await.expect("an update").rows_affected();
    assert!(lied > 0, "there are entries over two files");
    connection.close().await.expect("it closes");

    let db = db.reopen().await;
    for sql in [states, rows] {
        let checking = db.client();
        checking.ok("SET nectarine.reuse = 'check'").await;
        let error = checking.run(sql).await.expect_err("an entry differs");
        assert!(error.contains("differs from what is computed"), "{error}");
    }
    facts(&db.path("f/003.parquet"), 3);
    std::fs::remove_file(db.path("f/001.parquet")).expect("it was there");
    for sql in [states, rows] {
        assert_eq!(db.ask(sql).await.0, computed(&db, sql).await, "{sql}");
    }
}

/// States of which one entry has several parts, read alone: an aggregate of all rows is one row all the same, and a group is one
/// group, however they are planned.
#[tokio::test(flavor = "multi_thread")]
async fn states_in_several_parts() {
    let db = Db::in_parts(256).await;
    db.ok("CREATE TABLE c AS SELECT value AS u, value % 7 AS p, value % 500 AS k FROM generate_series(1, 3000)").await;
    // Several partitions get rows, and each of them makes states.
    db.ok("SET datafusion.execution.batch_size = 100").await;
    db.ok("SET datafusion.execution.target_partitions = 4").await;
    for repartitions in [true, false] {
        db.ok(&format!("SET datafusion.optimizer.repartition_aggregations = {repartitions}")).await;
        // The first leaves states, the others are windows over the same extents.
        for bound in [0, -1, -2, -2] {
            for (sql, expected) in [
                (format!("SELECT count(DISTINCT u), count(*) FROM c WHERE u >= {bound}"), "3000|3000"),
                (format!("SELECT (SELECT median(u) FROM c WHERE u >= {bound}), 1"), "1500.5|1"),
                (
                    format!(
                        "SELECT count(*), sum(n) FROM (SELECT k, count(*) AS n, count(DISTINCT u) AS m FROM c \
                         WHERE u >= {bound} GROUP BY k) AS g"
                    ),
                    "500|3000",
                ),
            ] {
                assert_eq!(db.ok(&sql).await, expected, "{sql}, {repartitions}");
                db.ok("SET nectarine.reuse = 'check'").await;
                assert_eq!(db.ok(&sql).await, expected, "{sql}, {repartitions}, check");
                db.ok("SET nectarine.reuse = 'on'").await;
            }
        }
    }
    let kinds = db.ok("SELECT kind, max(parts) FROM system.cache_entries GROUP BY kind ORDER BY kind").await;
    let n_parts =
        kinds.lines().find_map(|line| line.strip_prefix("states|")).and_then(|parts| parts.parse::<u64>().ok());
    assert!(n_parts.is_some_and(|parts| parts > 1), "no entry of states has several parts: {kinds}");
    let verified = db.ok("VERIFY ALL").await;
    assert!(!verified.contains("different"), "{verified}");
}

/// Of structs that are not told apart, or are compared with NULLs inside, the first one is kept: old and new do not merge.
#[tokio::test(flavor = "multi_thread")]
async fn the_least_of_structs() {
    let db = Db::with(&[("datafusion.execution.target_partitions", "1")]).await;
    let file = |name: &str, value: &str, rows: i64| {
        format!(
            "COPY (SELECT value % 3 AS k, named_struct('a', {value}) AS e FROM generate_series(1, {rows})) TO '{{dir}}/s/{name}.parquet'"
        )
    };
    db.ok(&file("b", "value % 50", 6000)).await;
    db.ok("CREATE EXTERNAL TABLE s STORED AS PARQUET LOCATION '{dir}/s/'").await;
    let sql = "SELECT k, min(e), max(e) FROM s GROUP BY k ORDER BY k";
    check(&db, sql).await;
    db.ok(&file("a", "CASE WHEN value < 4 THEN NULL ELSE value END", 90)).await;
    check(&db, sql).await;
    check(&db, sql).await;
    let verified = db.ok("VERIFY ALL").await;
    assert!(!verified.contains("different"), "{verified}");
}
