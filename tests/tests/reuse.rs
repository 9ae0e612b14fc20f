//! Reuse as a user sees it: what is read, what is kept, what is said about it.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::datasource::MemTable;
use futures::StreamExt;
use nectarine_engine::{Receipt, Reused};
use nectarine_tests::db::Db;
use nectarine_tests::files;

const QUERY: &str = "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY k ORDER BY k";

/// What can happen to a file: lost, emptied, one bit flipped.
const HARMS: [fn(&PathBuf); 3] = [
    |path| std::fs::remove_file(path).expect("a file can be removed"),
    |path| std::fs::write(path, b"").expect("a file can be written"),
    |path| {
        let mut bytes = std::fs::read(path).expect("a file can be read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).expect("a file can be written");
    },
];

async fn table() -> Db {
    let db = Db::new().await;
    files::numbers(&db.path("t/a.parquet"), 0..200_000);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    db
}

/// Rows and receipt of a query.
async fn ask(db: &Db, sql: &str) -> (String, Receipt) {
    let answer = db.session().execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let receipt = answer.receipt();
    let batches = answer.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    db.cache().settled().await;
    (nectarine_tests::db::rows_text(&batches), receipt())
}

fn parts(db: &Db) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut folders = vec![db.home().join("derived")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_query_is_answered_from_its_result() {
    let db = table().await;
    let (first, receipt) = ask(&db, QUERY).await;
    assert_eq!(receipt.reused, Reused::None);
    assert!(receipt.kept >= 1);
    for spelling in [QUERY, &QUERY.to_lowercase(), &QUERY.replace(" t ", " t AS x ")] {
        let (again, receipt) = ask(&db, spelling).await;
        assert_eq!(first, again);
        assert_eq!(receipt.reused, Reused::Exact, "{spelling}");
    }
    // Also in the next process.
    let db = db.reopen().await;
    let (again, receipt) = ask(&db, QUERY).await;
    assert_eq!(first, again);
    assert_eq!(receipt.reused, Reused::Exact);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_above_a_cached_prefix_is_computed() {
    let db = table().await;
    ask(&db, QUERY).await;
    for sql in [
        "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY k ORDER BY k DESC LIMIT 2",
        "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY k HAVING sum(n) > 1999960000 ORDER BY k",
        "SELECT sum(s), max(c) FROM (SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY k)",
    ] {
        let (rows, receipt) = ask(&db, sql).await;
        assert_eq!(receipt.reused, Reused::Partial, "{sql}");
        db.ok("SET nectarine.reuse = 'off'").await;
        assert_eq!(ask(&db, sql).await.0, rows, "{sql}");
        db.ok("SET nectarine.reuse = 'on'").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_files_are_new_inputs() {
    let db = table().await;
    let (before, _) = ask(&db, QUERY).await;
    files::numbers(&db.path("t/b.parquet"), 0..10);
    let (after, receipt) = ask(&db, QUERY).await;
    assert_eq!(receipt.reused, Reused::Partial, "the states of the old file still hold");
    assert_ne!(before, after);
    let reasons = db.ok(&format!("EXPLAIN REUSE {}", QUERY.replace("n % 10", "n % 11"))).await;
    assert!(reasons.contains("never seen"), "{reasons}");
    // Back to what there was: the old result still holds.
    std::fs::remove_file(db.path("t/b.parquet")).expect("a file can be removed");
    let (again, receipt) = ask(&db, QUERY).await;
    assert_eq!((again, receipt.reused), (before, Reused::Exact));
    // And the inputs of the other one are gone again.
    files::numbers(&db.path("t/c.parquet"), 0..10);
    let reasons = db.ok(&format!("EXPLAIN REUSE {QUERY}")).await;
    assert!(reasons.contains("inputs changed"), "{reasons}");
}

#[tokio::test(flavor = "multi_thread")]
async fn modes() {
    let db = table().await;
    db.ok("SET nectarine.reuse = 'read_only'").await;
    assert_eq!(ask(&db, QUERY).await.1.kept, 0);
    db.ok("SET nectarine.reuse = 'off'").await;
    assert_eq!(ask(&db, QUERY).await.1.kept, 0);
    db.ok("SET nectarine.reuse = 'on'").await;
    assert!(ask(&db, QUERY).await.1.kept > 0);
    db.ok("SET nectarine.reuse = 'refresh'").await;
    let refreshed = ask(&db, QUERY).await.1;
    assert_eq!(refreshed.reused, Reused::None);
    assert!(refreshed.kept > 0);
    db.ok("SET nectarine.reuse = 'check'").await;
    ask(&db, QUERY).await;
    let error = db.err("SET nectarine.reuse = 'sometimes'").await;
    assert!(error.contains("on, off, read_only, refresh, check"), "{error}");
}

/// Missing, cut and flipped results are computed again, with a notice.
#[tokio::test(flavor = "multi_thread")]
async fn damage_is_noticed_and_mended() {
    let db = Db::with(&[("nectarine.cache.memory", "1B")]).await;
    files::numbers(&db.path("t/a.parquet"), 0..200_000);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    let (rows, _) = ask(&db, QUERY).await;
    for harm in HARMS {
        assert_eq!(ask(&db, QUERY).await.1.reused, Reused::Exact);
        parts(&db).iter().for_each(harm);
        let answer = db.session().execute(QUERY).await.expect("damage fails no query");
        assert_eq!(answer.notices().len(), 3, "the answer, the groups below it and their states");
        let batches = answer.collect().await.expect("damage fails no query");
        assert_eq!(nectarine_tests::db::rows_text(&batches), rows);
    }
}

/// Results that are too large to be decoded at once: what happens to their files after the statement began does not matter.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_result_is_read_whatever_happens_to_its_files() {
    const SQL: &str = "SELECT n, s FROM large ORDER BY s";
    // The second has no memory to hold it in.
    for settings in [&[][..], &[("nectarine.memory_limit", "200MB")]] {
        let db = Db::with(settings).await;
        db.ok(
            "CREATE TABLE large AS SELECT value AS n, sha256(CAST(value AS TEXT)) AS h FROM generate_series(1, 600000)",
        )
        .await;
        db.ok("CREATE VIEW wide AS SELECT n, encode(h, 'hex') AS s FROM large").await;
        let sql = SQL.replace("large", "wide");
        let (rows, _) = ask(&db, &sql).await;
        let bytes = db.ok("SELECT max(bytes) FROM system.cache_entries").await;
        assert!(bytes.parse::<u64>().expect("a number") > 33 << 20, "{bytes}");
        for read_first in [false, true] {
            assert_eq!(ask(&db, &sql).await.1.reused, Reused::Exact);
            let answer = db.session().execute(&sql).await.expect("it is prepared");
            assert_eq!(answer.notices().len(), 0);
            let receipt = answer.receipt();
            let mut stream = answer.into_stream();
            let mut batches = vec![];
            if read_first {
                batches.push(stream.next().await.expect("a first batch").expect("rows"));
            }
            for (at, path) in parts(&db).iter().enumerate() {
                HARMS[at % HARMS.len()](path);
            }
            while let Some(batch) = stream.next().await {
                batches.push(batch.expect("damage fails no query"));
            }
            assert!(nectarine_tests::db::rows_text(&batches) == rows, "the rows are others");
            assert_eq!(receipt().reused, Reused::Exact);
            // The next one notices.
            let answer = db.session().execute(&sql).await.expect("damage fails no query");
            assert_eq!(answer.notices().len(), 1);
            let batches = answer.collect().await.expect("damage fails no query");
            assert!(nectarine_tests::db::rows_text(&batches) == rows, "the rows are others");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wiped_store_is_harmless() {
    let db = table().await;
    let (rows, _) = ask(&db, QUERY).await;
    let db = db.reopen().await;
    std::fs::remove_dir_all(db.home().join("derived")).expect("a folder can be removed");
    assert_eq!(ask(&db, QUERY).await.0, rows);
    let (again, receipt) = ask(&db, QUERY).await;
    assert_eq!((again, receipt.reused), (rows, Reused::Exact));
}

/// The same query at the same time is computed once.
#[tokio::test(flavor = "multi_thread")]
async fn one_computes_for_all() {
    let db = table().await;
    let running = (0..8).map(|_| {
        let db = db.client();
        tokio::spawn(async move { ask(&db, QUERY).await })
    });
    let mut answers = vec![];
    for task in running.collect::<Vec<_>>() {
        answers.push(task.await.expect("it does not die"));
    }
    assert!(answers.iter().all(|(rows, _)| *rows == answers[0].0));
    let computed = answers.iter().filter(|(_, receipt)| receipt.reused == Reused::None).count();
    assert_eq!(computed, 1);
}

/// The one who computes for all is cancelled: another one computes, and the rest read what that one left. Who waits can be cancelled too.
#[tokio::test(flavor = "multi_thread")]
async fn another_takes_over_from_one_who_is_cancelled() {
    let db = Db::new().await;
    files::numbers(&db.path("t/a.parquet"), 0..20_000);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    // Looks at 400,000,000 pairs.
    let sql = "SELECT count(*) AS c FROM t a JOIN t b ON a.n < b.n AND a.n * b.n % 1000 = 1";
    let start = || {
        let db = db.client();
        tokio::spawn(async move { ask(&db, sql).await })
    };
    let beginning = std::time::Duration::from_millis(300);
    let leader = start();
    tokio::time::sleep(beginning).await;
    let waiting: Vec<_> = (0..4).map(|_| start()).collect();
    let impatient = start();
    tokio::time::sleep(beginning).await;
    impatient.abort();
    assert!(impatient.await.is_err_and(|error| error.is_cancelled()), "who waits can be cancelled");
    assert!(!leader.is_finished() && waiting.iter().all(|task| !task.is_finished()), "it was too fast to be cancelled");
    leader.abort();
    let mut answers = vec![];
    for task in waiting {
        answers.push(task.await.expect("it does not die"));
    }
    let expected =
        (0..20_000_u64).flat_map(|a| (a + 1..20_000).map(move |b| a * b)).filter(|ab| ab % 1000 == 1).count();
    assert!(answers.iter().all(|(rows, _)| *rows == expected.to_string()), "{expected} {answers:?}");
    let computed = answers.iter().filter(|(_, receipt)| receipt.reused == Reused::None).count();
    assert_eq!(computed, 1);
}

/// A statement that fails above a finished prefix leaves the prefix behind.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_statement_had_finished_stays() {
    let db = table().await;
    let groups = "SELECT n % 10 AS k, sum(n) AS s FROM t GROUP BY k";
    db.err(&format!("SELECT k, 1 / (s % 1) FROM (SELECT * FROM ({groups}) ORDER BY s LIMIT 5)")).await;
    for _ in 0..100 {
        if db.ok("SELECT count(*) FROM system.cache_entries").await != "0" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_ne!(ask(&db, groups).await.1.reused, Reused::None);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_all_told() {
    let db = table().await;
    ask(&db, QUERY).await;
    ask(&db, QUERY).await;
    db.script(
        "SELECT reuse, entries_used FROM system.queries WHERE sql LIKE 'SELECT n %' ORDER BY started_at;
         -> none|0
         -> exact|1
         SELECT kind, rows > 0, bytes > 0, cost_ms > 0, extents FROM system.cache_entries WHERE uses > 0;
         -> rows|true|true|true|1",
    )
    .await;
    let plan = db.ok(&format!("EXPLAIN {QUERY}")).await;
    assert!(plan.contains("CacheReadExec: entry="), "{plan}");
    let reasons = db.ok(&format!("EXPLAIN REUSE {QUERY}")).await;
    assert!(reasons.contains("hit: 10 rows"), "{reasons}");
    let reasons = db.ok("EXPLAIN REUSE SELECT n % 3, max(n) FROM t GROUP BY 1").await;
    assert!(
        reasons.lines().next().is_some_and(|line| line.contains("|never seen|true|")),
        "the answer is kept: {reasons}"
    );
    let reasons = db.ok("EXPLAIN REUSE SELECT n, random() FROM t").await;
    assert!(reasons.contains("uncacheable: random() gives another value each time"), "{reasons}");
}

/// A function's name is not its body: one that is called like a built-in one may tell the time.
#[tokio::test(flavor = "multi_thread")]
async fn functions_of_time_are_asked_each_time() {
    let db = table().await;
    for name in ["moment", "pi"] {
        if db.run(&format!("CREATE FUNCTION {name}() RETURNS TIMESTAMP RETURN now()")).await.is_err() {
            continue;
        }
        let sql = format!("SELECT count(*), {name}() FROM t");
        let (first, _) = ask(&db, &sql).await;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        assert_ne!(ask(&db, &sql).await.0, first, "{name}");
    }
}

/// The time is also told below a name, and in a subquery.
#[tokio::test(flavor = "multi_thread")]
async fn times_below_are_asked_each_time() {
    let db = table().await;
    db.ok("CREATE VIEW v AS SELECT count(*) AS c, now() AS at FROM t").await;
    db.ok("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS c, now() AS at FROM t").await;
    for sql in [
        "SELECT * FROM v",
        "SELECT * FROM m",
        "SELECT count(*), (SELECT now()) FROM t",
        "SELECT count(*), (SELECT max(at) FROM v) FROM t",
    ] {
        let (first, _) = ask(&db, sql).await;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        assert_ne!(ask(&db, sql).await.0, first, "{sql}");
    }
}

/// A table that a session has for itself is not that of others, though it has its name.
#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_session_are_its_own() {
    let db = table().await;
    let sql = "SELECT sum(n) FROM t";
    for _ in 0..2 {
        assert_eq!(db.ok(sql).await, "19999900000");
    }
    let other = db.client();
    let rows = db.batches("SELECT n FROM t WHERE n < 7").await;
    let own = MemTable::try_new(rows[0].schema(), vec![rows]).expect("a table");
    other.session().register_table("t", Arc::new(own));
    for _ in 0..2 {
        assert_eq!(other.ok(sql).await, "21");
        assert_eq!(db.ok(sql).await, "19999900000");
    }
}

/// Which columns a result has is known to who opens the home, and to who has it open already.
#[tokio::test(flavor = "multi_thread")]
async fn other_columns_are_found_by_another_process() {
    let db = table().await;
    let all = "SELECT n % 10 AS k, count(*) AS c, min(n) AS low FROM t GROUP BY k";
    let some = ["SELECT n % 10 AS k, count(*) AS c FROM t GROUP BY k", "SELECT n % 10 AS k, min(n) FROM t GROUP BY k"];
    db.ok("SET nectarine.reuse = 'off'").await;
    let expected = [db.ask(some[0]).await.0, db.ask(some[1]).await.0];
    db.ok("SET nectarine.reuse = 'on'").await;
    let second = db.second().await;
    // Looks into the view cache while there is nothing in it.
    second.ok("SELECT count(*) FROM t WHERE n < 5").await;
    db.ask(all).await;
    let (rows, receipt) = second.ask(some[0]).await;
    assert_eq!((&rows, receipt.reused), (&expected[0], Reused::Partial));
    second.shutdown().await;
    let db = db.reopen().await;
    let (rows, receipt) = db.ask(some[1]).await;
    assert_eq!((&rows, receipt.reused), (&expected[1], Reused::Partial));
}

/// Two columns of one name: the filter that a join makes while it runs goes to that which it is about, or nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn columns_of_one_name() {
    let db = Db::new().await;
    db.ok("COPY (SELECT 'a1' AS id, 'x1' AS ty) TO '{dir}/a/0.parquet' STORED AS PARQUET").await;
    db.ok("COPY (SELECT 'x1' AS id) TO '{dir}/b/0.parquet' STORED AS PARQUET").await;
    db.ok("COPY (SELECT 100 AS amount, 1 AS id) TO '{dir}/o/0.parquet' STORED AS PARQUET").await;
    db.ok("COPY (SELECT 300 AS amount, 2 AS id) TO '{dir}/o/1.parquet' STORED AS PARQUET").await;
    db.ok("COPY (SELECT 30 AS amount, 1 AS id) TO '{dir}/p/0.parquet' STORED AS PARQUET").await;
    db.ok("COPY (SELECT 10 AS amount, 2 AS id) TO '{dir}/p/1.parquet' STORED AS PARQUET").await;
    for table in ["a", "b", "o", "p"] {
        db.ok(&format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{{dir}}/{table}/'")).await;
    }
    let groups = "SELECT a.id, b.id FROM a LEFT JOIN b ON a.ty = b.id GROUP BY a.id, b.id";
    let rows = "SELECT a.id, b.id, a.ty || '!' AS tag FROM a JOIN b ON a.ty = b.id";
    let cases = [
        (format!("SELECT s.id, a.id, b.id FROM b AS s JOIN ({groups}) ON s.id = b.id"), "x1|a1|x1"),
        (format!("SELECT s.id, a.id, b.id, tag FROM a AS s JOIN ({rows}) ON s.id = a.id"), "a1|a1|x1|x1!"),
        (format!("SELECT s.id, a.id, b.id, tag FROM b AS s JOIN ({rows}) ON s.id = b.id"), "x1|a1|x1|x1!"),
        (
            "SELECT o.amount, p.amount FROM o JOIN p ON o.id = p.id JOIN p AS c ON p.id = c.id ORDER BY p.amount LIMIT 1"
                .to_owned(),
            "300|10",
        ),
    ];
    for mode in ["off", "on", "on", "check", "refresh", "on"] {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        for (sql, expected) in &cases {
            assert_eq!(db.ok(sql).await, *expected, "{mode}: {sql}");
        }
    }
}

/// The key of a semi join has a name that means another column on its other side: a filter on it goes to one side only.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_semi_joins_with_misleading_names() {
    let db = Db::new().await;
    db.ok(
        "COPY (SELECT value AS k, value % 7 AS v FROM generate_series(1, 1000)) TO '{dir}/l.parquet' STORED AS PARQUET",
    )
    .await;
    db.ok("COPY (SELECT value AS j, 5000 - value AS k FROM generate_series(1, 1000)) TO '{dir}/r.parquet' STORED AS PARQUET").await;
    db.ok("COPY (SELECT value AS x FROM generate_series(1, 5)) TO '{dir}/s.parquet' STORED AS PARQUET").await;
    for table in ["l", "r", "s"] {
        db.ok(&format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{{dir}}/{table}.parquet'")).await;
    }
    let semi = "SELECT k FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.j = l.k AND r.k <> l.v)";
    db.ok(&format!("CREATE MATERIALIZED VIEW mv AS {semi}")).await;
    for mode in ["off", "on", "on", "check", "refresh", "on"] {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        assert_eq!(db.ok(&format!("SELECT count(*) FROM s JOIN ({semi}) q ON s.x = q.k")).await, "5", "{mode}");
        assert_eq!(db.ok("SELECT count(*) FROM mv WHERE k < 10").await, "9", "{mode}");
    }
}

/// A window function ranks all groups, however few of them are wanted in the end.
#[tokio::test(flavor = "multi_thread")]
async fn groups_below_a_window_are_not_cut() {
    let db = Db::new().await;
    db.ok("COPY (SELECT value FROM generate_series(1, 1000)) TO '{dir}/t/0.parquet' STORED AS PARQUET").await;
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    for mode in ["off", "on", "on", "read_only", "check"] {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        for from in ["t", "generate_series(1, 1000)"] {
            let sql = format!(
                "SELECT value, rank() OVER (ORDER BY value) AS r FROM (SELECT DISTINCT value FROM {from}) AS x \
                 ORDER BY value DESC LIMIT 3"
            );
            assert_eq!(db.ok(&sql).await, "1000|1000\n999|999\n998|998", "{mode}: {sql}");
        }
    }
}

/// What the statement by itself would not have computed, because a limit needs few rows, or nobody the column, fails nothing.
#[tokio::test(flavor = "multi_thread")]
async fn values_that_nobody_needs_fail_no_query() {
    let db = Db::new().await;
    db.ok("SET datafusion.execution.target_partitions = 1").await;
    let part = |id: &str, b: &str| format!("SELECT {id} AS id, {b} AS b FROM generate_series(1, 60000)");
    db.ok(&format!("COPY ({}) TO '{{dir}}/t/1.parquet'", part("value", "6 + value % 500"))).await;
    db.ok(&format!("COPY ({}) TO '{{dir}}/t/2.parquet'", part("100000 + value", "value % 500"))).await;
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    let few = |n: usize| format!("SELECT id, 1000 / (b - 5) AS q FROM t WHERE b > 3 ORDER BY id LIMIT {n}");
    for n in 1..4 {
        assert_eq!(db.ok(&few(n)).await.lines().count(), n, "{n}");
    }
    // Somebody keeps all rows, and they are read.
    assert_eq!(ask(&db, "SELECT id, b FROM t WHERE b > 3").await.0.lines().count(), 119_520);
    let told = db.ok(&format!("EXPLAIN REUSE {}", few(4))).await;
    assert!(told.contains("hit: 119520 rows"), "{told}");
    for n in 4..7 {
        assert_eq!(db.ok(&few(n)).await.lines().count(), n, "{n}");
    }

    db.ok("CREATE MATERIALIZED VIEW m AS SELECT id, b, 1000 / (b - 5) AS q FROM t WITH NO DATA").await;
    for _ in 0..2 {
        assert_eq!(db.ok("SELECT sum(id) FROM m").await, "9600060000");
    }
    // What is needed fails as ever.
    let error = db.err("SELECT sum(q) FROM m").await;
    assert!(error.contains("ivide by zero") || error.contains("ivision by zero"), "{error}");
}

/// A limit with an order lets scans leave out most rows: nobody keeps all of them for its sake, however often it is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn all_rows_are_not_kept_below_a_limit() {
    let db = table().await;
    for n in 1..6 {
        let sql = format!("SELECT n FROM t WHERE n % 7 > 3 ORDER BY n LIMIT {n}");
        let told = db.ok(&format!("EXPLAIN REUSE {sql}")).await;
        let filter = told.lines().find(|line| line.contains("FilterExec")).expect("a filter");
        assert!(filter.contains("|false|"), "{n}: {told}");
        assert_eq!(ask(&db, &sql).await.1.kept, 1, "only the answer");
    }
}

/// What turned out to be too much is not tried again by each statement that could use it.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_too_many_are_not_kept_again_and_again() {
    let db = table().await;
    db.ok("SET nectarine.cache.entry_limit = '1KB'").await;
    let sql = |name: &str| format!("SELECT {name}(n), {name}(n % 3) FROM t WHERE n % 7 > 3");
    let is_kept = async |name: &str| {
        let told = db.ok(&format!("EXPLAIN REUSE {}", sql(name))).await;
        let filter = told.lines().find(|line| line.contains("FilterExec")).expect("a filter");
        filter.contains("|true|")
    };
    db.ok(&sql("sum")).await;
    db.ok(&sql("avg")).await;
    // Asked for often enough, and given up.
    assert!(!is_kept("max").await);
    // Who may keep more tries.
    db.ok("SET nectarine.cache.entry_limit = '100MB'").await;
    assert!(is_kept("max").await);
    db.ok(&sql("max")).await;
    assert_ne!(ask(&db, &sql("min")).await.1.reused, Reused::None);
}

/// Settings that change while a statement is on its way to be planned are not those that it is remembered by.
#[tokio::test(flavor = "multi_thread")]
async fn settings_that_change_meanwhile() {
    let db = table().await;
    let name = "datafusion.sql_parser.parse_float_as_decimal";
    for n in 0..12 {
        let sql = format!("SELECT arrow_typeof(n * 0.5), {n} FROM t LIMIT 1");
        // While its answer is published, others wait.
        let answer = db.session().execute(&format!("SELECT n + {n} FROM t")).await.expect("rows");
        answer.collect().await.expect("rows");
        let (session, text) = (db.session().clone(), sql.clone());
        let asked = tokio::spawn(async move { session.execute(&text).await?.collect().await });
        tokio::time::sleep(std::time::Duration::from_micros(200 * n)).await;
        db.session().execute(&format!("SET {name} = true")).await.expect("it is set");
        asked.await.expect("it does not die").expect("rows");
        db.cache().settled().await;
        db.ok(&format!("SET {name} = false")).await;
        assert_eq!(db.ok(&sql).await, format!("Float64|{n}"));
    }
}
