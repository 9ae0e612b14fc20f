//! Extents that have keys of their own: what joins and groups by the key is computed for the new ones alone, and other
//! extents that hold no partner are not read.
//!
//! Where keys are shared, or not known, or missing, nothing of the kind may happen: without a guard, some answer here is wrong.

use super::*;

const KEYS: i64 = 3_000;

/// Orders: a key each, a customer, a number.
fn orders(path: &Path, keys: std::ops::Range<i64>) {
    let column = |value: fn(i64) -> i64| Arc::new(Int64Array::from_iter_values(keys.clone().map(value))) as ArrayRef;
    files::parquet(
        path,
        vec![("key", column(|key| key)), ("c", column(|key| key * 31 % 17)), ("v", column(|key| key % 100))],
    );
}

/// Four lines for each key; `nth` makes others of the same keys. Keys below 0 are NULL.
fn lines(path: &Path, keys: std::ops::Range<i64>, nth: i64) {
    let rows: Vec<(i64, i64)> = keys.flat_map(|key| (0..4).map(move |line| (key, line + 4 * nth))).collect();
    let column =
        |value: fn(&(i64, i64)) -> i64| Arc::new(Int64Array::from_iter_values(rows.iter().map(value))) as ArrayRef;
    let keys: Int64Array = rows.iter().map(|(key, _)| (*key >= 0).then_some(*key)).collect();
    files::parquet(
        path,
        vec![
            ("key", Arc::new(keys)),
            ("line", column(|(_, line)| *line)),
            ("supp", column(|(key, line)| (key * 7 + line * 5).rem_euclid(11))),
            ("v", column(|(key, line)| (key * 104_729 + line * 7_919).rem_euclid(1_000))),
        ],
    );
}

async fn orders_and_lines(n_orders: i64, n_lines: i64) -> Db {
    let db = Db::new().await;
    for part in 0..n_orders {
        orders(&db.path(&format!("o/{part:03}.parquet")), part * KEYS..(part + 1) * KEYS);
    }
    for part in 0..n_lines {
        lines(&db.path(&format!("l/{part:03}.parquet")), part * KEYS..(part + 1) * KEYS, 0);
    }
    db.ok("CREATE EXTERNAL TABLE o STORED AS PARQUET LOCATION '{dir}/o/'").await;
    db.ok("CREATE EXTERNAL TABLE l STORED AS PARQUET LOCATION '{dir}/l/'").await;
    db
}

/// Fall apart by the key when `l` grows.
const BY_LINES: &[&str] = &[
    "SELECT c, count(*) FROM o WHERE EXISTS (SELECT 1 FROM l WHERE l.key = o.key AND l.v < 300) GROUP BY c",
    "SELECT key, v FROM o WHERE v = 7 AND EXISTS (SELECT 1 FROM l WHERE l.key = o.key AND l.v < 30)",
    "SELECT a.supp, count(*) FROM l a JOIN o ON o.key = a.key WHERE a.v < 700
       AND EXISTS (SELECT 1 FROM l b WHERE b.key = a.key AND b.supp <> a.supp AND b.v < 900)
       AND NOT EXISTS (SELECT 1 FROM l d WHERE d.key = a.key AND d.supp <> a.supp AND d.v > 800) GROUP BY a.supp",
    "SELECT c, sum(l.v) FROM o JOIN l ON o.key = l.key
       WHERE o.key IN (SELECT key FROM l GROUP BY key HAVING sum(v) > 2500) GROUP BY c",
    "SELECT n, count(*), sum(t) FROM (SELECT key, count(*) AS n, sum(v) AS t FROM l WHERE v < 500 GROUP BY key) AS x GROUP BY n",
    "SELECT a.supp, count(*), count(b.v) FROM l a LEFT JOIN l b ON a.key = b.key AND b.v < 50 AND a.line <> b.line GROUP BY a.supp",
];

/// Do not, for one reason or another.
const OTHERS: &[&str] = &[
    "SELECT c, count(*) FROM o WHERE NOT EXISTS (SELECT 1 FROM l WHERE l.key = o.key AND l.v < 300) GROUP BY c",
    "SELECT c, count(l.v), count(*) FROM o LEFT JOIN l ON o.key = l.key AND l.v < 50 GROUP BY c",
    "SELECT c, count(l.v), count(*) FROM o FULL JOIN (SELECT * FROM l WHERE v < 50) AS l ON o.key = l.key GROUP BY c",
    "SELECT supp, count(*) FROM l a WHERE EXISTS (SELECT 1 FROM l b WHERE b.supp = a.supp AND b.v = a.v AND b.key <> a.key) GROUP BY supp",
    "SELECT a.supp, count(*) FROM (SELECT key, supp FROM l WHERE v < 10) a JOIN (SELECT key, supp FROM l WHERE v < 10) b ON a.supp = b.supp GROUP BY a.supp",
    "SELECT c, count(*) FROM o WHERE key IN (SELECT key FROM l WHERE v < 100) OR c < 5 GROUP BY c",
    "SELECT count(*) FROM o WHERE key NOT IN (SELECT key FROM l WHERE v < 100 AND key IS NOT NULL)",
    "SELECT count(*) FROM o WHERE key NOT IN (SELECT key FROM l WHERE v < 100)",
    "SELECT n, count(*) FROM (SELECT supp, count(*) AS n FROM l WHERE v < 500 GROUP BY supp) AS x GROUP BY n",
    "SELECT n, count(*) FROM (SELECT key, supp, count(*) AS n FROM l GROUP BY ROLLUP (key, supp)) AS x GROUP BY n",
    "SELECT c, sum(l.v) FROM o JOIN l ON o.key = l.key GROUP BY c",
    "SELECT o.c, count(*) FROM o JOIN l ON o.key + 1 = l.key WHERE l.v < 100 GROUP BY o.c",
    "SELECT o.c, count(*) FROM o JOIN l ON o.key IS NOT DISTINCT FROM l.key WHERE l.v < 100 GROUP BY o.c",
    "SELECT c, n, count(*) FROM o LEFT JOIN (SELECT key, count(*) AS n FROM l WHERE v < 100 GROUP BY key) AS x ON x.key = o.key GROUP BY c, n",
];

async fn check_all(db: &Db) {
    for sql in BY_LINES {
        check(db, sql).await;
    }
    for sql in OTHERS {
        assert_eq!(db.ask(sql).await.0, computed(db, sql).await, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_with_keys_of_their_own() {
    let db = orders_and_lines(8, 5).await;
    check_all(&db).await;
    for part in 5..7 {
        lines(&db.path(&format!("l/{part:03}.parquet")), part * KEYS..(part + 1) * KEYS, 0);
        for sql in BY_LINES {
            let receipt = check(&db, sql).await;
            let told = db.ok(&format!("EXPLAIN REUSE {sql}")).await;
            assert_eq!(receipt.reused, Reused::Partial, "{sql}: {told}");
            let extents = receipt.extents.expect("reuse is on");
            // One of lines, and that of orders which has its keys.
            assert!(extents.total - extents.reused <= 2, "{extents:?}: {sql}: {told}");
        }
        check_all(&db).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_and_their_lines_together() {
    let db = orders_and_lines(5, 5).await;
    check_all(&db).await;
    for part in 5..7 {
        orders(&db.path(&format!("o/{part:03}.parquet")), part * KEYS..(part + 1) * KEYS);
        lines(&db.path(&format!("l/{part:03}.parquet")), part * KEYS..(part + 1) * KEYS, 0);
        let inner = "SELECT c, sum(l.v) FROM o JOIN l ON o.key = l.key GROUP BY c";
        for sql in BY_LINES[..4].iter().chain([&inner, &OTHERS[0], &OTHERS[1]]) {
            let receipt = check(&db, sql).await;
            let told = db.ok(&format!("EXPLAIN REUSE {sql}")).await;
            assert_eq!(receipt.reused, Reused::Partial, "{sql}: {told}");
            let extents = receipt.extents.expect("reuse is on");
            assert!(extents.total - extents.reused <= 2, "{extents:?}: {sql}: {told}");
        }
        check_all(&db).await;
    }
}

/// Keys that old extents have too, the last one of them only, or none at all.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_shared_or_missing() {
    let db = orders_and_lines(6, 4).await;
    check_all(&db).await;
    let new =
        |file: &str, keys: std::ops::Range<i64>, nth: i64| lines(&db.path(&format!("l/{file}.parquet")), keys, nth);
    new("100", 4 * KEYS - 1..5 * KEYS, 1);
    check_all(&db).await;
    new("101", 1_000..KEYS, 2);
    check_all(&db).await;
    // NULL is a group like any other, and has no bounds.
    new("102", -900..-1, 3);
    check_all(&db).await;
    new("103", -90..4, 4);
    check_all(&db).await;
    // As if they had never been there.
    std::fs::remove_file(db.path("l/001.parquet")).expect("it was there");
    check_all(&db).await;
    orders(&db.path("o/200.parquet"), 100..400);
    check_all(&db).await;
}

/// New orders whose lines are old, and the other way round.
#[tokio::test(flavor = "multi_thread")]
async fn partners_among_old_extents() {
    let db = orders_and_lines(3, 6).await;
    check_all(&db).await;
    orders(&db.path("o/100.parquet"), 3 * KEYS..4 * KEYS);
    check_all(&db).await;
    orders(&db.path("o/101.parquet"), 4 * KEYS..4 * KEYS + 10);
    lines(&db.path("l/101.parquet"), 0..10, 5);
    check_all(&db).await;
    orders(&db.path("o/102.parquet"), 5 * KEYS..6 * KEYS);
    lines(&db.path("l/102.parquet"), 8 * KEYS..9 * KEYS, 0);
    check_all(&db).await;
}
