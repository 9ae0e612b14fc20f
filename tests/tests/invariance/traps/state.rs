//! Nodes hold state, parts are used twice, and many clients ask at once.

use nectarine_engine::Reused;
use nectarine_tests::db::Db;

use super::{all_hold, entries_hold, holds, reused, sorted, tables};

/// Traps 13 and 18. Guards: nodes are used once; `consistent` mixes no two runs of one sum of floats.
#[tokio::test]
async fn parts_that_are_used_twice() {
    let db = tables().await;
    db.ok("CREATE TABLE fl AS SELECT CAST(value % 5 AS INT) AS k, value * 0.1 AS f FROM generate_series(1, 3000)")
        .await;
    let totals = "SELECT k, sum(f) AS s FROM fl GROUP BY k";
    let queries = [
        // One row each, whichever runs the sums come from.
        format!("SELECT k FROM ({totals}) WHERE s = (SELECT max(s) FROM ({totals}))"),
        format!("WITH v AS ({totals}) SELECT count(*) FROM v a JOIN v b ON a.s = b.s"),
        format!("WITH v AS ({totals}) SELECT a.k, b.k FROM v a JOIN v b ON a.k = b.k"),
        format!("SELECT count(*) FROM (({totals}) EXCEPT ({totals}))"),
        format!("SELECT max(s) FROM ({totals})").replace("max(s)", "count(s)"),
        "WITH v AS (SELECT k, sum(a) AS s FROM t GROUP BY k) SELECT x.k, y.s FROM v x JOIN v y ON x.k = y.k + 1"
            .to_owned(),
        "WITH v AS (SELECT t.a, d.tag FROM t JOIN d ON t.k = d.k) SELECT count(*) FROM v x JOIN v y ON x.a = y.a"
            .to_owned(),
        "SELECT (SELECT max(a) FROM t) AS x, (SELECT max(a) FROM t) AS y, count(*) FROM t WHERE a = (SELECT max(a) FROM t)"
            .to_owned(),
    ];
    for partitions in [1, 2, 7] {
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        for sql in &queries {
            holds(&db, sql).await;
            holds(&db, totals.replace("k, sum(f) AS s", "k, count(f) AS s").as_str()).await;
        }
    }
    // The larger part alone is there, and the smaller one is computed: both must see one sum.
    let largest = format!("SELECT max(s) FROM ({totals})");
    db.ok(&largest).await;
    for _ in 0..6 {
        assert_eq!(db.ok(&queries[0]).await.lines().count(), 1);
    }
    entries_hold(&db).await;
}

/// Promise on floats. Guard: `consistent` gives up a hit that contains a sum which is also computed.
///
/// The sums are large, small and large again: in another order another part of them is lost. All else is exact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runs_of_one_sum_are_not_mixed() {
    let db = Db::new().await;
    db.ok("CREATE TABLE fl (k BIGINT, f DOUBLE)").await;
    for part in 0..6 {
        // Each group has its terms in another order.
        db.ok(&format!(
            "INSERT INTO fl SELECT value, CASE (value * 7 + {part} * (1 + value % 5)) % 3 WHEN 0 THEN 1e17 WHEN 1 THEN -1e17 \
             ELSE value + {part} END FROM generate_series(1, 50)"
        ))
        .await;
    }
    let totals = "SELECT k, sum(f) AS s FROM fl GROUP BY k";
    let total = format!("SELECT sum(s) AS m FROM ({totals})");
    let sql = format!("SELECT max(x.s - y.s) FROM ({totals}) x JOIN ({totals}) y ON x.k = y.k");
    let mixed = format!("SELECT sum(x.s) - max(y.m) FROM ({totals}) x CROSS JOIN ({total}) y");
    for partitions in [2, 7, 3] {
        // The larger part is kept by one who adds in another order; what it contains is not.
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        db.ok(&total).await;
        let parts = db.ok("SELECT fingerprint FROM system.cache_entries WHERE rows > 1").await;
        for name in parts.lines() {
            let key = db.cache().find(name).await.expect("it is there");
            db.cache().remove(&[key]).await;
        }
        db.ok("SET datafusion.execution.target_partitions = 1").await;
        db.ok("SET nectarine.reuse = 'off'").await;
        let expected = [db.ok(&sql).await, db.ok(&mixed).await];
        db.ok("SET nectarine.reuse = 'read_only'").await;
        assert_eq!([db.ok(&sql).await, db.ok(&mixed).await], expected);
        db.ok("SET nectarine.reuse = 'on'").await;
        db.cache().clear().await;
    }
    entries_hold(&db).await;
}

/// Promise on floats. Guard: what runs first for all who need it is not made of two runs of one sum (`repeated::is_torn`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_first_sees_one_sum() {
    let db = Db::new().await;
    db.ok("CREATE TABLE fl (k BIGINT, f DOUBLE)").await;
    for part in 0..6 {
        db.ok(&format!(
            "INSERT INTO fl SELECT value, CASE (value * 7 + {part} * (1 + value % 5)) % 3 WHEN 0 THEN 1e17 WHEN 1 THEN -1e17 \
             ELSE value + {part} END FROM generate_series(1, 50)"
        ))
        .await;
    }
    let difference = "WITH g AS (SELECT k, sum(f) AS s FROM fl GROUP BY k), \
                      d AS (SELECT x.k, x.s - y.s AS e FROM g x JOIN g y ON x.k = y.k)";
    for partitions in [2, 7, 3] {
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        let twice = format!("{difference} SELECT max(abs(a.e)), count(*) FROM d a JOIN d b ON a.k = b.k");
        assert_eq!(db.ok(&twice).await, "0.0|50");
        // Whatever that left behind.
        assert_eq!(db.ok(&format!("{difference} SELECT max(abs(e)), count(*) FROM d")).await, "0.0|50");
        db.cache().clear().await;
    }
    let ranked = "WITH v AS (SELECT k, f, row_number() OVER (PARTITION BY f ORDER BY k % 2) AS n FROM fl)";
    let sql = format!(
        "{ranked} SELECT count(*) FROM v x JOIN v y ON x.k = y.k AND x.f = y.f AND x.n <> y.n WHERE x.f > 1e16"
    );
    db.ok(&sql).await;
    entries_hold(&db).await;
}

/// Promise on floats. Guard: `exactness_of` knows that NaN make the smallest float of a group a matter of order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_smallest_floats_do_not_meet() {
    let db = Db::new().await;
    db.ok("CREATE TABLE fl (k BIGINT, f DOUBLE)").await;
    for part in 0..6 {
        db.ok(&format!(
            "INSERT INTO fl SELECT value, CASE (value + {part}) % 3 WHEN 0 THEN CAST('NaN' AS DOUBLE) ELSE value + {part} END \
             FROM generate_series(1, 50)"
        ))
        .await;
    }
    let smallest = "SELECT k, min(f) AS s, max(f) AS l FROM fl GROUP BY k";
    let flags = format!("SELECT k, CASE WHEN isnan(s) THEN 1 ELSE 0 END AS n FROM ({smallest})");
    let total = format!("SELECT sum(n) AS m FROM ({flags})");
    let mixed = format!("SELECT sum(x.n) - max(y.m) FROM ({flags}) x CROSS JOIN ({total}) y");
    for partitions in [2, 7, 3] {
        // The larger part is kept by one who met the rows in another order; what it contains is not.
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        db.ok(&total).await;
        db.ok(smallest).await;
        db.ok("SET datafusion.execution.target_partitions = 1").await;
        // Another choice is no difference.
        db.ok("SET nectarine.reuse = 'check'").await;
        db.ok(smallest).await;
        for name in db.ok("SELECT fingerprint FROM system.cache_entries WHERE rows > 1").await.lines() {
            let key = db.cache().find(name).await.expect("it is there");
            db.cache().remove(&[key]).await;
        }
        db.ok("SET nectarine.reuse = 'off'").await;
        let expected = db.ok(&mixed).await;
        db.ok("SET nectarine.reuse = 'read_only'").await;
        assert_eq!(db.ok(&mixed).await, expected);
        db.ok("SET nectarine.reuse = 'on'").await;
        db.cache().clear().await;
    }
    entries_hold(&db).await;
}

/// Guard: a value that luck decides is one value in a statement, whether its parts are read or computed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chosen_value_is_chosen_once() {
    let db = tables().await;
    let chosen = "(SELECT a FROM t WHERE k = 3 LIMIT 1)";
    let both = format!("SELECT a - {chosen} FROM t WHERE a = {chosen}");
    let run = async |mode: &str| {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        let mut others = vec![];
        for n in 0..30 {
            db.ok(&format!("SET datafusion.execution.target_partitions = {}", [1, 2, 7, 4][n % 4])).await;
            db.ok(&format!("SET datafusion.execution.batch_size = {}", [1, 8192, 5][n % 3])).await;
            let found = sorted(&db.ok(&both).await);
            if found != "0" {
                others.push(found);
            }
        }
        others
    };
    // If the statement computes it twice anyway, there is nothing to keep.
    if !run("off").await.is_empty() {
        return;
    }
    db.ok("SET nectarine.reuse = 'on'").await;
    for column in ["count(a)", "sum(a)", "min(k)", "max(g)"] {
        db.ok(&format!("SELECT {column} FROM t WHERE a = {chosen}")).await;
    }
    assert_eq!(run("on").await, Vec::<String>::new());
    entries_hold(&db).await;
}

/// Trap 11. Guard: an entry without rows is an entry.
#[tokio::test]
async fn nothing_is_a_result() {
    let db = tables().await;
    for sql in [
        "SELECT a, k FROM t WHERE a > 5000",
        "SELECT k, count(*) FROM t WHERE a > 5000 GROUP BY k",
        "SELECT t.a FROM t JOIN d ON t.k = d.k + 100",
    ] {
        assert_eq!(holds(&db, sql).await, "");
        let (reused, text) = reused(&db, sql).await;
        assert_eq!((reused, text.as_str()), (Reused::Exact, ""), "{sql}");
    }
    entries_hold(&db).await;
}

/// Trap 16. Guards: a scan over nothing becomes an empty plan; clauses that the planner drops are refused.
#[tokio::test]
async fn tables_without_extents() {
    let db = tables().await;
    db.ok("CREATE TABLE nothing (a BIGINT, k INT)").await;
    let queries = [
        "SELECT count(*), sum(a) FROM nothing",
        "SELECT * FROM nothing",
        "SELECT d.k, nothing.a FROM d LEFT JOIN nothing ON d.k = nothing.k",
        "SELECT count(*) FROM d WHERE k NOT IN (SELECT k FROM nothing)",
        "SELECT k FROM d UNION ALL SELECT k FROM nothing",
        "SELECT k FROM d WHERE k > (SELECT max(k) FROM nothing)",
    ];
    all_hold(&db, &queries).await;
    db.ok("INSERT INTO nothing VALUES (1, 1), (2, 2)").await;
    assert_eq!(holds(&db, queries[0]).await, "2|3");
    all_hold(&db, &queries).await;
    db.err("SELECT count(*) FROM t TABLESAMPLE BERNOULLI (10)").await;
    entries_hold(&db).await;
}

/// Trap 9. Guard: entries hold the second half of an aggregate, never a first half with duplicate groups.
#[tokio::test]
async fn partial_groups_are_not_groups() {
    let db = tables().await;
    db.ok("SET datafusion.execution.skip_partial_aggregation_probe_rows_threshold = 10").await;
    db.ok("SET datafusion.execution.skip_partial_aggregation_probe_ratio_threshold = 0.0").await;
    db.ok("SET datafusion.execution.batch_size = 16").await;
    all_hold(
        &db,
        &[
            "SELECT a % 400 AS m, count(*), avg(a), avg(k) FROM t GROUP BY 1",
            "SELECT m, n FROM (SELECT a % 400 AS m, count(*) AS n, avg(a) AS x, avg(k) AS y FROM t GROUP BY 1) WHERE n > 2",
            "SELECT count(*) FROM (SELECT a % 400 AS m, avg(a), avg(a) FILTER (WHERE k > 3) FROM t GROUP BY 1)",
            "SELECT a % 3 AS m, sum(a) AS x, sum(a) AS y, sum(k) AS x2 FROM t GROUP BY 1",
        ],
    )
    .await;
    entries_hold(&db).await;
}

/// Trap 15. Guard: a recording that needs memory gives up before the statement does.
#[tokio::test]
async fn little_memory() {
    let db = Db::with(&[("nectarine.memory_limit", "20MB")]).await;
    db.ok("CREATE TABLE w AS SELECT value AS a, md5(CAST(value AS TEXT)) AS s FROM generate_series(1, 60000)").await;
    db.ok("SET datafusion.execution.target_partitions = 2").await;
    for sql in [
        "SELECT count(*) FROM (SELECT s, count(*) AS n FROM w GROUP BY s)",
        "SELECT count(*), max(n) FROM (SELECT s, count(*) AS n FROM w GROUP BY s)",
        "SELECT substr(s, 1, 1) AS x, count(DISTINCT s) FROM w GROUP BY 1",
        "SELECT a FROM w ORDER BY s LIMIT 5",
    ] {
        db.ok("SET nectarine.reuse = 'off'").await;
        let Ok(expected) = db.run(sql).await else { continue };
        for mode in ["on", "on", "refresh", "on", "check"] {
            db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
            assert_eq!(sorted(&db.ok(sql).await), sorted(&expected), "{mode}: {sql}");
        }
    }
    entries_hold(&db).await;
}

/// Guard: nothing below a recursive query is kept, and its work table is not known.
#[tokio::test]
async fn recursive_queries() {
    let db = tables().await;
    let recursive = |end: usize| {
        format!(
            "WITH RECURSIVE r AS (SELECT min(k) AS n FROM d UNION ALL SELECT n + 1 FROM r WHERE n < {end}) \
             SELECT count(*), sum(n) FROM r"
        )
    };
    let joined = "WITH RECURSIVE r AS (SELECT CAST(1 AS BIGINT) AS n UNION ALL SELECT t.a FROM r JOIN t ON t.a = r.n * 2 \
                  WHERE t.a < 900) SELECT count(*), max(n) FROM r";
    all_hold(&db, &[&recursive(5), &recursive(6), joined]).await;
    assert_eq!(holds(&db, &recursive(5)).await, "5|15");
    db.ok("INSERT INTO d VALUES (0, 'zero')").await;
    assert_eq!(holds(&db, &recursive(5)).await, "6|15");
    entries_hold(&db).await;
}

/// Guard: what many clients compute at once is one entry, and right for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_clients_at_once() {
    let db = tables().await;
    db.ok("CREATE TABLE big AS SELECT value AS a, value % 13 AS k FROM generate_series(1, 50000)").await;
    for round in 0..4 {
        let sql = format!("SELECT k, count(*), sum(a) FROM big WHERE a > {round} GROUP BY k");
        db.ok("SET nectarine.reuse = 'off'").await;
        let expected = sorted(&db.ok(&sql).await);
        let clients: Vec<_> = (0..8)
            .map(|n| {
                let (client, sql, expected) = (db.client(), sql.clone(), expected.clone());
                tokio::spawn(async move {
                    if n == 3 {
                        // One that goes away in the middle.
                        drop(client.session().execute(&sql).await);
                        return;
                    }
                    assert_eq!(sorted(&client.ok(&sql).await), expected);
                })
            })
            .collect();
        for client in clients {
            client.await.expect("all answers are the same");
        }
        holds(&db, &sql).await;
    }
    entries_hold(&db).await;
}

/// Trap 13. Guards: `repeated::stands_alone`; after `run_first` the statement is planned again, whatever came of it: nodes that ran
/// hold an error, or one side of a join.
#[tokio::test]
async fn groups_that_are_needed_twice_and_use_a_subquery() {
    let db = tables().await;
    db.ok("CREATE TABLE many AS SELECT value AS a, value % 7 AS x FROM generate_series(1, 5000)").await;
    for subquery in ["SELECT count(k) FROM d WHERE k >= CAST(NULL AS INT)", "SELECT min(k) FROM d", "SELECT 1"] {
        for groups in [
            format!(
                "SELECT DISTINCT g, k FROM t LEFT SEMI JOIN many m ON t.a = m.a AND t.k <> m.x WHERE t.a >= ({subquery})"
            ),
            format!("SELECT DISTINCT g, k FROM t WHERE a >= ({subquery}) AND g LIKE 'g_'"),
            format!("SELECT g, count(*) AS k FROM t WHERE a >= ({subquery}) GROUP BY g"),
        ] {
            holds(&db, &format!("WITH v AS ({groups}) SELECT x.k, y.g FROM v x JOIN v y ON x.g = y.g")).await;
        }
    }
    entries_hold(&db).await;
}

/// The same where the groups are computed, but are not kept. Without the guard all joins but the inner one lose rows, and the wrong
/// answer is kept.
#[tokio::test]
async fn groups_that_are_needed_twice_and_do_not_fit() {
    for limit in [1, 1_500] {
        let db = tables().await;
        db.ok("CREATE TABLE many AS SELECT value AS a, value % 7 AS x FROM generate_series(1, 5000)").await;
        db.ok(&format!("SET nectarine.cache.entry_limit = '{limit}'")).await;
        for join in ["LEFT", "LEFT SEMI", "LEFT ANTI", "FULL", "INNER"] {
            let groups = format!(
                "SELECT t.g, t.a, md5(CAST(t.a AS TEXT)) AS h, count(*) AS n FROM t {join} JOIN many m ON t.a = m.a AND m.x > 3 \
                 GROUP BY 1, 2, 3"
            );
            let sql = "SELECT count(*), sum(x.n), sum(y.n) FROM v x JOIN v y ON x.g = y.g";
            holds(&db, &format!("WITH v AS ({groups}) {sql}")).await;
        }
        entries_hold(&db).await;
    }
}

/// Groups whose floats depend on the order in which they are added, below something larger that is needed twice as well.
const LUCK: &str = "CREATE TABLE f AS SELECT value AS id, value % 10 AS g, value % 500 AS k, \
                    CASE value % 3 WHEN 0 THEN 1e16 WHEN 1 THEN -1e16 ELSE (value % 1013) * 0.37 END AS f, md5(CAST(value AS TEXT)) AS pad \
                    FROM generate_series(1, 30000)";

async fn luck() -> Db {
    let db = Db::with(&[("nectarine.cache.memory", "1B")]).await;
    db.ok(LUCK).await;
    for from in [30_001, 40_001, 50_001] {
        let to = from + 9_999;
        let part =
            LUCK.split_once(" AS SELECT").expect("it is a query").1.replace("1, 30000", &format!("{from}, {to}"));
        db.ok(&format!("INSERT INTO f SELECT{part}")).await;
    }
    db.ok("SET datafusion.execution.target_partitions = 4").await;
    db
}

/// What is around the groups does not fit, and is given up: they come first all the same. Without that most keys differ.
#[tokio::test(flavor = "multi_thread")]
async fn luck_below_what_is_given_up() {
    let db = luck().await;
    db.ok("SET nectarine.cache.entry_limit = '300KB'").await;
    let sql = "WITH a AS (SELECT k, sum(f) AS s FROM f GROUP BY k), \
               j AS (SELECT t.id, t.pad, t.pad || 'x' AS p2, a.s FROM f t JOIN a ON a.k = t.k) \
               SELECT count(*) FROM j x JOIN j y ON x.id = y.id AND x.s = y.s AND x.p2 = y.p2";
    for _ in 0..2 {
        assert_eq!(db.ok(sql).await, "60000");
    }
}

/// However deep groups stand on groups.
#[tokio::test(flavor = "multi_thread")]
async fn luck_upon_luck() {
    let db = luck().await;
    let mut ctes = "a1 AS (SELECT k, sum(f) AS s FROM f GROUP BY k)".to_owned();
    for (n, below) in (2..=6).zip(1..) {
        ctes.push_str(&format!(
            ", a{n} AS (SELECT x.k, sum(y.s * 0.1 + x.s * (y.k % 7)) AS s FROM a{below} x JOIN a{below} y ON x.k % 50 = y.k % 50 GROUP BY x.k)"
        ));
    }
    let sql = format!("WITH {ctes} SELECT count(*) FROM a6 x JOIN a6 y ON x.k = y.k AND x.s = y.s");
    for _ in 0..2 {
        assert_eq!(db.ok(&sql).await, "500");
    }
}

/// What the groups could be made of turns out to be gone when they are computed first.
#[tokio::test(flavor = "multi_thread")]
async fn luck_made_of_what_is_gone() {
    let db = luck().await;
    let groups = "SELECT k, sum(f) AS s FROM f GROUP BY k";
    db.ok(groups).await;
    db.ok("INSERT INTO f SELECT id + 100000, g, k, f, pad FROM f WHERE id <= 5000").await;
    let derived = db.home().join("derived");
    std::fs::remove_dir_all(&derived).expect("the folder can be removed");
    std::fs::create_dir(&derived).expect("the folder can be made");
    let sql = format!("WITH a AS ({groups}) SELECT count(*) FROM a x JOIN a y ON x.k = y.k AND x.s = y.s");
    assert!(db.ok(&sql).await.starts_with("500"));
    assert!(db.ok(&sql).await.starts_with("500"));
}

/// Promise on floats. Guard: `consistent::Doubles`. Two uses of one view with other columns are two programs with one sum.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_sum_beside_other_columns() {
    let db = Db::new().await;
    db.ok("CREATE TABLE fl (k BIGINT, f DOUBLE)").await;
    for part in 0..6 {
        // Each group has its terms in another order: where one part is added up by itself, others are lost.
        db.ok(&format!(
            "INSERT INTO fl SELECT value, CASE (value * 7 + {part} * (1 + value % 5)) % 3 WHEN 0 THEN 1e17 WHEN 1 THEN -1e17 \
             ELSE value + {part} END FROM generate_series(1, 50)"
        ))
        .await;
    }
    db.ok("CREATE VIEW s AS SELECT k, sum(f) AS x, count(*) AS c FROM fl GROUP BY k").await;
    let queries = [
        "SELECT count(*) FROM (SELECT k, x FROM s) a JOIN (SELECT k, x, c FROM s) b ON a.k = b.k AND a.x = b.x WHERE b.c > 0",
        "SELECT count(*) FROM s WHERE x = (SELECT max(x) FROM s) AND c > 0",
    ];
    for partitions in [2, 7, 3] {
        db.ok(&format!("SET datafusion.execution.target_partitions = {partitions}")).await;
        // Kept by others, who add in another order.
        db.ok("SELECT k, x FROM s").await;
        db.ok("SELECT max(x) > 0 FROM s").await;
        db.ok("SET datafusion.execution.target_partitions = 1").await;
        for sql in queries {
            db.ok("SET nectarine.reuse = 'off'").await;
            let expected = db.ok(sql).await;
            for mode in ["read_only", "on", "on", "refresh", "on"] {
                db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
                assert_eq!(db.ok(sql).await, expected, "{mode}, {partitions}: {sql}");
            }
        }
        db.cache().clear().await;
    }
    entries_hold(&db).await;
}

/// The same of rows that a window numbers by luck.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_number_beside_other_columns() {
    let db = Db::new().await;
    db.ok("CREATE TABLE n (id BIGINT, k BIGINT, b BIGINT, s VARCHAR)").await;
    for from in [1, 4_001] {
        let to = from + 3_999;
        db.ok(&format!(
            "INSERT INTO n SELECT value, value % 37, value % 11, 's' || (value % 3) FROM generate_series({from}, {to})"
        ))
        .await;
    }
    db.ok("CREATE VIEW v AS SELECT id, k, s, row_number() OVER (PARTITION BY k ORDER BY b) AS r FROM n").await;
    let sql = "SELECT count(*) FROM (SELECT id, r FROM v) x JOIN (SELECT id, r, s FROM v) y ON x.id = y.id \
               WHERE x.r <> y.r AND y.s <> ''";
    db.ok("SET datafusion.execution.target_partitions = 3").await;
    db.ok("SET datafusion.execution.batch_size = 70").await;
    db.ok("SET nectarine.cache.threshold = 1").await;
    db.ok("SELECT count(id), sum(r) FROM v WHERE id > 0").await;
    db.ok("SELECT max(id), sum(r) FROM v").await;
    db.ok("SET datafusion.execution.target_partitions = 1").await;
    db.ok("SET datafusion.execution.batch_size = 8192").await;
    for mode in ["off", "read_only", "on", "on"] {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        assert_eq!(db.ok(sql).await, "0", "{mode}");
    }
    entries_hold(&db).await;
}

/// Guards: what was made anew in the place of what could not be read is read; what is computed anew on demand is computed once.
#[tokio::test(flavor = "multi_thread")]
async fn luck_that_is_made_anew() {
    let db = luck().await;
    let sql = "WITH a AS (SELECT k, sum(f) AS s FROM f GROUP BY k) SELECT count(*) FROM a x JOIN a y ON x.k = y.k AND x.s = y.s";
    let derived = db.home().join("derived");
    for round in 0..4 {
        assert!(db.ok(sql).await.starts_with("500"), "{round}");
        std::fs::remove_dir_all(&derived).expect("the folder can be removed");
        std::fs::create_dir(&derived).expect("the folder can be made");
    }
    for mode in ["refresh", "on", "refresh", "refresh", "on"] {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        assert!(db.ok(sql).await.starts_with("500"), "{mode}");
    }
}
