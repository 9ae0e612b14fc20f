//! What runs when, and what it leaves.

use std::sync::Arc;

use nectarine_tests::clock::DrivenClock;
use nectarine_tests::db::Db;

use super::{home, read, run_due, runs};

#[tokio::test(flavor = "multi_thread")]
async fn a_report_has_an_output_for_each_of_its_times() {
    let (db, clock) = home().await;
    db.ok("CREATE REPORT daily SCHEDULE '0 6 * * *' TIME ZONE 'Europe/Berlin' OUTPUT '{dir}/out/{report}-{date}.csv'
           AS SELECT shop, sum(amount) AS amount FROM sales WHERE day < :run_date GROUP BY shop ORDER BY shop")
        .await;
    assert_eq!(run_due(&db).await, 0);
    clock.set("2026-11-17T04:59:59Z");
    assert_eq!(run_due(&db).await, 0, "it is a second to six in Berlin");
    clock.pass(1);
    assert_eq!(run_due(&db).await, 1);
    assert_eq!(run_due(&db).await, 0, "once");
    assert_eq!(read(&db, "out/daily-2026-11-17.csv"), "shop,amount\nnorth,10\nsouth,20\n");
    db.ok("INSERT INTO sales VALUES ('2026-11-17', 'north', 5)").await;
    clock.set("2026-11-18T05:00:30Z");
    assert_eq!(run_due(&db).await, 1);
    assert_eq!(read(&db, "out/daily-2026-11-18.csv"), "shop,amount\nnorth,15\nsouth,20\n");
    assert_eq!(read(&db, "out/daily-2026-11-17.csv"), "shop,amount\nnorth,10\nsouth,20\n");
    assert_eq!(runs(&db).await, "daily|2026-11-17T05:00:00Z|finished\ndaily|2026-11-18T05:00:00Z|finished");
    let told = "SELECT rows, reused, attempt, error FROM system.report_runs ORDER BY scheduled_for DESC LIMIT 1";
    assert_eq!(db.ok(told).await, "2|partial|1|NULL");
    assert_eq!(db.ok("SELECT name, paused, next_run FROM system.reports").await, "daily|false|2026-11-19T05:00:00Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form() {
    let (db, clock) = home().await;
    for ending in ["csv", "tsv", "json", "ndjson", "parquet", "md", "html"] {
        db.ok(&format!(
            "CREATE REPORT r_{ending} SCHEDULE '@hourly' OUTPUT '{{dir}}/x-{{hour}}.{ending}' AS SELECT * FROM sales ORDER BY shop"
        ))
        .await;
    }
    clock.pass(3600);
    assert_eq!(run_due(&db).await, 7);
    assert_eq!(read(&db, "x-01.tsv"), "day\tshop\tamount\n2026-11-16\tnorth\t10\n2026-11-16\tsouth\t20\n");
    assert_eq!(
        read(&db, "x-01.ndjson").lines().next(),
        Some("{\"day\":\"2026-11-16\",\"shop\":\"north\",\"amount\":10}")
    );
    assert_eq!(read(&db, "x-01.json"), read(&db, "x-01.ndjson"));
    assert_eq!(
        db.ok("SELECT * FROM '{dir}/x-01.parquet' ORDER BY shop").await,
        "2026-11-16|north|10\n2026-11-16|south|20"
    );
    let page = read(&db, "x-01.md");
    assert!(page.contains("| day | shop | amount |\n| --- | --- | --: |\n| 2026-11-16 | north | 10 |"), "{page}");
    assert!(read(&db, "x-01.html").contains("<td class=\"n\">20</td>"));
    let left: Vec<_> =
        std::fs::read_dir(db.folder()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "nothing hidden is left: {left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_added_to_a_table_once() {
    let (db, clock) = home().await;
    db.ok("CREATE TABLE kept (at TIMESTAMP, amount BIGINT)").await;
    db.ok("CREATE REPORT keep SCHEDULE '@hourly' OUTPUT TABLE kept CATCH UP ALL
           AS SELECT :run_time, sum(amount) FROM sales WHERE day < :run_date")
        .await;
    clock.pass(3 * 3600);
    assert_eq!(run_due(&db).await, 3);
    let rows = "2026-11-17T01:00:00|30\n2026-11-17T02:00:00|30\n2026-11-17T03:00:00|30";
    assert_eq!(db.ok("SELECT * FROM kept ORDER BY at").await, rows);
    let error = db.err("RUN REPORT keep FOR '2026-11-17 02:00'").await;
    assert!(error.contains("has added its rows for that time"), "{error}");
    assert_eq!(db.ok("SELECT * FROM kept ORDER BY at").await, rows);
    db.ok("RUN REPORT keep FOR '2026-11-17 02:30'").await;
    assert_eq!(db.ok("SELECT count(*) FROM kept").await, "4");
}

#[tokio::test(flavor = "multi_thread")]
async fn times_that_nobody_looked_at() {
    let (db, clock) = home().await;
    for catch_up in ["none", "last", "all"] {
        db.ok(&format!(
            "CREATE REPORT c_{catch_up} SCHEDULE '@hourly' OUTPUT '{{dir}}/{{report}}-{{hour}}.csv' CATCH UP {catch_up} AS SELECT 1 AS a"
        ))
        .await;
    }
    clock.pass(3 * 3600 + 1800);
    assert_eq!(run_due(&db).await, 4);
    let states = "SELECT report, count(*) FILTER (WHERE state = 'finished'), count(*) FILTER (WHERE state = 'skipped')
                  FROM system.report_runs GROUP BY report ORDER BY report";
    assert_eq!(db.ok(states).await, "c_all|3|0\nc_last|1|2\nc_none|0|3");
    clock.pass(1800);
    assert_eq!(run_due(&db).await, 3, "in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_are_no_time_to_catch_up_with() {
    let (db, clock) = home().await;
    db.ok("CREATE REPORT r SCHEDULE '@hourly' OUTPUT '{dir}/{hour}.csv' CATCH UP ALL AS SELECT 1 AS a").await;
    db.ok("PAUSE REPORT r").await;
    clock.pass(5 * 3600);
    assert_eq!(run_due(&db).await, 0);
    assert_eq!(db.ok("SELECT paused, next_run FROM system.reports").await, "true|NULL");
    db.ok("RESUME REPORT r").await;
    assert_eq!(run_due(&db).await, 0);
    clock.pass(3600);
    assert_eq!(run_due(&db).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_wait_longer_each_time() {
    let (db, clock) = home().await;
    db.ok("CREATE REPORT r SCHEDULE '0 1 * * *' OUTPUT '{dir}/x.csv' RETRIES 2 BACKOFF '1 minute' EXPECT row_count > 2
           AS SELECT * FROM sales")
        .await;
    clock.pass(3600);
    let state = "SELECT state, failures, CAST(not_before AS TEXT) FROM system.report_runs";
    assert_eq!(run_due(&db).await, 1);
    assert_eq!(db.ok(state).await, "due|1|2026-11-17T01:01:00Z");
    assert!(!db.folder().join("x.csv").exists(), "what is not as expected is not written");
    clock.pass(60);
    assert_eq!(run_due(&db).await, 1);
    assert_eq!(db.ok(state).await, "due|2|2026-11-17T01:03:00Z");
    clock.pass(60);
    assert_eq!(run_due(&db).await, 0, "not yet");
    db.ok("INSERT INTO sales VALUES ('2026-11-17', 'west', 1)").await;
    clock.pass(60);
    assert_eq!(run_due(&db).await, 1);
    assert_eq!(db.ok("SELECT state, failures, attempt, error FROM system.report_runs").await, "finished|2|3|NULL");
    db.ok("CREATE OR REPLACE REPORT r SCHEDULE '0 1 * * *' OUTPUT '{dir}/x.csv' EXPECT row_count > 9 AS SELECT * FROM sales")
        .await;
    clock.pass(86_400);
    run_due(&db).await;
    let error = "SELECT error FROM system.report_runs WHERE state = 'failed'";
    assert_eq!(db.ok(error).await, "the output is not as expected: row_count > 9; it has 3 rows");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_wait_for_those_they_need() {
    let (db, clock) = home().await;
    db.ok("CREATE TABLE totals (amount BIGINT)").await;
    db.ok("CREATE REPORT a_first SCHEDULE '@hourly' OUTPUT TABLE totals AS SELECT sum(amount) FROM sales").await;
    // By its name it would come before the other.
    db.ok("CREATE REPORT a_after SCHEDULE '@hourly' OUTPUT '{dir}/after-{hour}.csv' DEPENDS ON a_first
           AS SELECT count(*) AS n FROM totals")
        .await;
    clock.pass(3600);
    assert_eq!(run_due(&db).await, 2);
    assert_eq!(read(&db, "after-01.csv"), "n\n1\n");
    db.ok("DROP TABLE sales").await;
    clock.pass(3600);
    run_due(&db).await;
    let failed = "SELECT report, error FROM system.report_runs WHERE state = 'failed' ORDER BY report";
    let told = db.ok(failed).await;
    assert!(told.contains("a_after|report \"a_first\", which it depends on, failed"), "{told}");
    assert!(told.contains("a_first|table \"sales\" does not exist"), "{told}");
    let error = db.err("DROP REPORT a_first").await;
    assert!(error.contains("report \"a_after\" depends on it"), "{error}");
    db.ok("DROP REPORT a_first, a_after").await;
    assert_eq!(db.ok("SELECT count(*) FROM system.report_runs").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_and_several_statements() {
    let (db, clock) = home().await;
    db.ok("CREATE REPORT r SCHEDULE '@hourly' OUTPUT '{dir}/r-{hour}.md' AS $$
             CREATE OR REPLACE TABLE work AS SELECT sum(amount) AS amount FROM sales WHERE day < :run_date;
             SELECT amount FROM work;
             SELECT :run_date AS d, :run_time AS t, :last_run AS l
           $$")
        .await;
    clock.pass(3600);
    run_due(&db).await;
    let first = read(&db, "r-01.md");
    assert!(first.contains("| 30 |") && first.contains("| 2026-11-17 | 2026-11-17 01:00:00 | 1970-01-01 |"), "{first}");
    clock.pass(3600);
    run_due(&db).await;
    let second = read(&db, "r-02.md");
    assert!(second.contains("| 2026-11-17 | 2026-11-17 02:00:00 | 2026-11-17 01:00:00 |"), "{second}");
}

/// Commands are run only where the server allows it.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_are_off_unless_allowed() {
    for allowed in ["false", "true"] {
        let clock = DrivenClock::at("2026-11-17T00:00:00Z");
        let db = Db::by(Arc::clone(&clock) as _, &[("report_hooks", allowed)]).await;
        let told = db.folder().join("told");
        let made = db
            .ok(&format!(
                "CREATE REPORT r SCHEDULE '@hourly' OUTPUT '{{dir}}/{{hour}}.csv'
                 HOOK 'echo $NECTARINE_REPORT $NECTARINE_STATE $NECTARINE_ROWS $NECTARINE_SCHEDULED_FOR > {}' AS SELECT 1 AS a",
                told.display()
            ))
            .await;
        assert_eq!(made.contains("will not be run"), allowed == "false", "{made}");
        assert!(db.err("SET nectarine.report_hooks = true").await.contains("read when the home is opened"));
        clock.pass(3600);
        assert_eq!(run_due(&db).await, 1);
        let found = std::fs::read_to_string(&told).ok();
        let expected = (allowed == "true").then_some("r finished 1 2026-11-17T01:00:00+00:00\n");
        assert_eq!(found.as_deref(), expected);
    }
}

/// Two servers on one home, each with its own loop.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_servers_never_run_one_twice() {
    let (one, clock) = home().await;
    let two = one.second().await;
    one.ok("CREATE TABLE kept (report TEXT, at TIMESTAMP)").await;
    for n in 0..10 {
        one.ok(&format!(
            "CREATE REPORT r{n} SCHEDULE '@hourly' OUTPUT TABLE kept CATCH UP ALL AS SELECT 'r{n}', :run_time"
        ))
        .await;
    }
    clock.pass(5 * 3600);
    let (first, second) = (one.engine().reports(), two.engine().reports());
    let both = tokio::join!(first.run_due(), second.run_due());
    both.0.expect("the first is well");
    both.1.expect("the second is well");
    // One may have left while the other was still at it.
    run_due(&one).await;
    assert_eq!(one.ok("SELECT count(*), count(DISTINCT report || CAST(at AS TEXT)) FROM kept").await, "50|50");
    assert_eq!(
        one.ok("SELECT state, max(attempt), count(*) FROM system.report_runs GROUP BY state").await,
        "finished|1|50"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_runs_them_by_itself() {
    let (db, clock) = home().await;
    db.ok("CREATE REPORT r SCHEDULE '@hourly' OUTPUT '{dir}/{hour}.csv' AS SELECT 1 AS a").await;
    let scheduler = db.engine().reports().start();
    clock.pass(3600);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !db.folder().join("01.csv").exists() {
        assert!(std::time::Instant::now() < deadline, "it was not run");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    scheduler.stop().await;
    clock.pass(3600);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(!db.folder().join("02.csv").exists(), "nobody runs them any more");
    run_due(&db).await;
    assert!(db.folder().join("02.csv").exists(), "whoever comes next does");
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_changed_shown_and_dropped() {
    let (db, clock) = home().await;
    db.script(
        "CREATE REPORT r SCHEDULE '@daily' OUTPUT '{dir}/r-{date}.csv' RETRIES 1 AS SELECT 1 AS a;
         CREATE REPORT r SCHEDULE '@daily' OUTPUT '{dir}/x.csv' AS SELECT 1;
         !! report \"r\" already exists
         CREATE REPORT IF NOT EXISTS r SCHEDULE '@daily' OUTPUT '{dir}/x.csv' AS SELECT 1;
         -> CREATE REPORT
         -> notice: report \"r\" already exists, skipping
         ALTER REPORT r SET SCHEDULE '@hourly' TIMEOUT '5 minutes' TITLE 'It''s' EXPECT row_count = 1;
         -> ALTER REPORT
         -> notice: each run of report \"r\" replaces the output of the one before
         SELECT schedule, output, retries, expect FROM system.reports;
         -> @hourly|{dir}/r-{date}.csv|1|row_count = 1
         ALTER REPORT r RENAME TO \"R 2\";
         ALTER REPORT IF EXISTS r SET RETRIES 2;
         SELECT report, state FROM (SELECT name AS report, 'x' AS state FROM system.reports);
         -> R 2|x
         RUN REPORT nothing;
         !! report \"nothing\" does not exist
         DROP REPORT IF EXISTS nothing;
         EXPLAIN CREATE OR REPLACE REPORT \"R 2\" SCHEDULE '@daily' OUTPUT '{dir}/y.csv' AS SELECT 2 AS b;
         ",
    )
    .await;
    clock.pass(3600);
    assert_eq!(run_due(&db).await, 1);
    // What made it makes it again.
    let definition = db.ok("SELECT definition FROM system.reports").await;
    db.ok("DROP REPORT \"R 2\"").await;
    db.ok(&definition).await;
    assert_eq!(db.ok("SELECT definition FROM system.reports").await, definition);
    assert!(db.ok("SHOW REPORTS").await.starts_with("R 2|@hourly|UTC|"));
    assert!(db.ok("SHOW CREATE REPORT \"R 2\"").await.contains("CREATE REPORT \"R 2\""));
    let row = db.ok("RUN REPORT \"R 2\" FOR '2026-01-02'").await;
    assert!(
        row.starts_with("R 2|2026-01-02T00:00:00Z|") && row.contains("|finished|1|{dir}/r-2026-01-02.csv|"),
        "{row}"
    );
    let db = db.reopen().await;
    assert_eq!(db.ok("SELECT definition FROM system.reports").await, definition, "they outlive the process");
}
