//! What cannot be is told when it is said; what stops working is told in the runs, and others go on.

use super::{home, read, run_due};

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_told_at_once() {
    let (db, _) = home().await;
    db.ok("CREATE REPORT other SCHEDULE '@daily' OUTPUT '{dir}/o.csv' AS SELECT 1 AS a").await;
    db.ok("CREATE VIEW v AS SELECT 1 AS a").await;
    db.ok("CREATE TABLE two (a BIGINT, b BIGINT)").await;
    for (clauses, expected) in [
        ("SCHEDULE 'every day' OUTPUT '{dir}/x.csv' AS SELECT 1", "\"every day\" is no schedule"),
        ("SCHEDULE '0 0 30 2 *' OUTPUT '{dir}/x.csv' AS SELECT 1", "names no time that ever comes"),
        ("SCHEDULE '@daily' TIME ZONE 'Mars/Olympus' OUTPUT '{dir}/x.csv' AS SELECT 1", "there is no time zone"),
        ("OUTPUT '{dir}/x.csv' AS SELECT 1", "a report needs a SCHEDULE"),
        ("SCHEDULE '@daily' AS SELECT 1", "a report needs an OUTPUT"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv'", "a report needs a query"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.doc' AS SELECT 1", "cannot tell the form"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x-{day_of_week}.csv' AS SELECT 1", "is no part of a name"),
        ("SCHEDULE '@daily' OUTPUT TABLE nowhere AS SELECT 1", "table \"nowhere\" does not exist"),
        ("SCHEDULE '@daily' OUTPUT TABLE v AS SELECT 1", "\"v\" is a view"),
        ("SCHEDULE '@daily' OUTPUT TABLE two AS SELECT 1", "has 2 columns, the query has 1"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv' AS SELECT nothing FROM sales", "nothing"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv' AS SELECT 1 FROM nowhere", "nowhere"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv' AS SELEC 1", "SELEC"),
        (
            "SCHEDULE '@daily' OUTPUT '{dir}/x.csv' AS INSERT INTO two VALUES (1, 2)",
            "the last statement of a report is a query",
        ),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv' AS $$ INSERT INTO two VALUES (1, 2); SELECT 1 $$", "cannot run"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv' AS $$ SELECT 1; SELECT 2 $$", "has room for one result"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv' DEPENDS ON bad AS SELECT 1", "would depend on itself"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv' DEPENDS ON nothing AS SELECT 1", ""),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv' DEPENDS ON missing AS SELECT 1", "report \"missing\" does not exist"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv' TIMEOUT 'long' AS SELECT 1", "\"long\" is no duration"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv' RETRIES 1000 AS SELECT 1", "at most 100 times"),
        ("SCHEDULE '@daily' OUTPUT '{dir}/x.csv' EXPECT row_count > AS SELECT 1", ""),
    ] {
        let sql = format!("CREATE REPORT bad {clauses}");
        match expected {
            "" => drop(db.run(&sql).await),
            expected => {
                let error = db.err(&sql).await;
                assert!(error.contains(expected), "{sql}\n{error}");
            }
        }
        db.ok("DROP REPORT IF EXISTS bad").await;
    }
    db.ok("CREATE REPORT next SCHEDULE '@daily' OUTPUT '{dir}/n.csv' DEPENDS ON other AS SELECT 1 AS a").await;
    let error = db.err("ALTER REPORT other SET DEPENDS ON next").await;
    assert!(error.contains("\"other\" would depend on itself, by way of \"next\""), "{error}");
    assert_eq!(db.ok("SELECT count(*) FROM system.reports").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stops_working_is_told_and_others_go_on() {
    let (db, clock) = home().await;
    db.file("blocked", "a file where a folder should be");
    db.ok("CREATE TABLE narrow (amount BIGINT NOT NULL)").await;
    for (name, rest) in [
        ("broken", "OUTPUT '{dir}/broken.csv' AS SELECT amount FROM sales"),
        ("unwritable", "OUTPUT '{dir}/blocked/x.csv' AS SELECT 1 AS a"),
        ("folder", "OUTPUT '{dir}/taken-{hour}.csv' AS SELECT 1 AS a"),
        ("fails", "OUTPUT '{dir}/fails.csv' AS SELECT 1 / (amount - amount) AS a FROM sales"),
        ("nulls", "OUTPUT TABLE narrow AS SELECT CAST(NULL AS BIGINT)"),
        (
            "slow",
            "OUTPUT '{dir}/slow.csv' TIMEOUT '1 second' AS SELECT count(*) AS n FROM generate_series(1, 100000) AS a, generate_series(1, 1000000) AS b WHERE a.value % 7 = b.value % 11",
        ),
        ("strange", "OUTPUT '{dir}/strange.csv' EXPECT 'maybe' AS SELECT 1 AS a"),
        ("well", "OUTPUT '{dir}/well.csv' AS SELECT 1 AS a"),
    ] {
        db.ok(&format!("CREATE REPORT {name} SCHEDULE '@hourly' {rest}")).await;
    }
    db.ok("CREATE OR REPLACE TABLE sales AS SELECT 'x' AS other, 1 AS amounts").await;
    std::fs::create_dir(db.folder().join("taken-01.csv")).expect("a folder");
    db.ok("ALTER REPORT fails SET AS SELECT 1 / (amounts - amounts) AS a FROM sales").await;
    clock.pass(3600);
    run_due(&db).await;
    let state =
        async |name: &str| db.ok(&format!("SELECT state, error FROM system.report_runs WHERE report = '{name}'")).await;
    for (name, expected) in [
        ("broken", "failed|column \"amount\" does not exist"),
        ("unwritable", "failed|cannot"),
        ("folder", "failed|cannot write"),
        ("fails", "failed|"),
        ("nulls", "failed|"),
        ("slow", "failed|the run took longer than 1 seconds"),
        ("strange", "failed|"),
        ("well", "finished|NULL"),
    ] {
        let found = state(name).await;
        assert!(found.starts_with(expected), "{name}: {found}");
    }
    assert_eq!(db.ok("SELECT count(*) FROM narrow").await, "0");
    assert_eq!(read(&db, "well.csv"), "a\n1\n");
    // What is mended runs again.
    db.ok("CREATE OR REPLACE TABLE sales AS SELECT 5 AS amount").await;
    clock.pass(3600);
    run_due(&db).await;
    assert_eq!(read(&db, "broken.csv"), "amount\n5\n");
}
