//! What jobs do, and what is told of them.

use std::time::Duration;

use nectarine_tests::db::Db;

use super::{run_waiting, submit};

#[tokio::test(flavor = "multi_thread")]
async fn statements_run_in_order_and_rows_are_kept() {
    let db = Db::new().await;
    let id = submit(
        &db,
        "SUBMIT JOB NAME 'first' AS $$
           CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 10);
           INSERT INTO t VALUES (11), (12);
           SELECT 'not kept';
           SELECT n, 'it''s' AS word, CAST(NULL AS INT) AS nothing FROM t WHERE n > 10 ORDER BY n;
         $$",
    )
    .await;
    assert_eq!(
        db.ok("SELECT name, state, statements, statements_done, attempt FROM system.jobs").await,
        "first|waiting|4|0|0"
    );
    assert!(db.err(&format!("SHOW RESULT OF JOB '{id}'")).await.contains("has no rows"));
    assert_eq!(run_waiting(&db).await, 1);
    let told = "SELECT state, statements_done, attempt, rows, statement, error FROM system.jobs";
    assert_eq!(db.ok(told).await, "finished|4|1|2|NULL|NULL");
    let result = format!("SHOW RESULT OF JOB '{id}'");
    assert_eq!(db.ok(&result).await, "11|it's|NULL\n12|it's|NULL");
    // The rows of that moment, with their types.
    db.ok("INSERT INTO t VALUES (13)").await;
    let direct = db
        .batches("SELECT n, 'it''s' AS word, CAST(NULL AS INT) AS nothing FROM t WHERE n > 10 AND n < 13 ORDER BY n")
        .await;
    let kept = db.batches(&result).await;
    assert_eq!(
        arrow::compute::concat_batches(&kept[0].schema(), &kept).expect("rows").columns(),
        arrow::compute::concat_batches(&direct[0].schema(), &direct).expect("rows").columns()
    );
    assert_eq!(run_waiting(&db).await, 0, "it is done");
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "13");
    // They outlive the process.
    let db = db.reopen().await;
    assert_eq!(db.ok(&result).await, "11|it's|NULL\n12|it's|NULL");
    db.ok(&format!("DROP JOB '{id}'")).await;
    assert!(db.err(&result).await.contains("does not exist"));
    assert_eq!(std::fs::read_dir(db.home().join("jobs")).expect("a folder").count(), 0);
    db.ok(&format!("DROP JOB IF EXISTS '{id}'")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_with_their_receipt() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT value AS n, value % 3 AS k FROM generate_series(1, 1000)").await;
    let query = "SELECT k, count(*) AS c FROM t GROUP BY k ORDER BY k";
    for expected in ["none", "exact"] {
        let id = submit(&db, &format!("SUBMIT JOB AS {query}")).await;
        run_waiting(&db).await;
        assert_eq!(db.ok(&format!("SELECT reused FROM system.jobs WHERE job_id = '{id}'")).await, expected);
        let (_, receipt) = db.ask(&format!("SHOW RESULT OF JOB '{id}'")).await;
        assert_eq!(receipt.reused.word(), expected);
        assert_eq!(db.ok(&format!("SHOW RESULT OF JOB '{id}'")).await, db.ok(query).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_told_when_it_is_known() {
    let db = Db::new().await;
    for (sql, expected) in [
        ("SUBMIT JOB AS SELEC 1", "in statement 1 of the job"),
        ("SUBMIT JOB AS $$ SELECT 1; SELECT (( $$", "in statement 2 of the job"),
        ("SUBMIT JOB AS $$ $$", "no statement"),
        ("SUBMIT JOB AS DELETE FROM t", "append-only"),
        ("SUBMIT JOB AS SUBMIT JOB AS SELECT 1", "cannot submit jobs"),
        ("SUBMIT JOB AS COPY t TO 'here.csv'", "does not begin at the root"),
        ("SUBMIT JOB AS COPY t FROM STDIN", "no STDIN"),
        ("SUBMIT JOB AS CREATE USER u PASSWORD 'a secret'", "secrets"),
        ("SUBMIT JOB TIMEOUT 'soon' AS SELECT 1", "no duration"),
        ("CANCEL JOB 'x'", "job \"x\" does not exist"),
    ] {
        let error = db.err(sql).await;
        assert!(error.contains(expected), "{sql}: {error}");
    }
    assert_eq!(db.ok("SELECT count(*) FROM system.jobs").await, "0");
    // What is not there now may be there when it runs.
    let id = submit(
        &db,
        "SUBMIT JOB AS $$ CREATE TABLE made (a INT); SELECT * FROM missing; INSERT INTO made VALUES (1) $$",
    )
    .await;
    run_waiting(&db).await;
    let told = db.ok("SELECT state, statements_done, statement, error FROM system.jobs").await;
    assert!(told.starts_with("failed|1|SELECT * FROM missing|statement 2: table"), "{told}");
    assert_eq!(db.ok("SELECT count(*) FROM made").await, "0", "what came before stays, what comes behind is not run");
    assert!(db.err(&format!("SHOW RESULT OF JOB '{id}'")).await.contains("has no rows"));
    assert!(db.ok(&format!("CANCEL JOB '{id}'")).await.contains("has ended before"));
    assert_eq!(run_waiting(&db).await, 0, "it is not tried again");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_the_session_go_along() {
    let db = Db::new().await;
    db.ok("CREATE SCHEMA s").await;
    db.ok("CREATE TABLE s.t AS SELECT 1 AS a").await;
    let session = db.client();
    session.ok("SET datafusion.catalog.default_schema = 's'").await;
    session.ok("SET datafusion.execution.time_zone = '+07:00'").await;
    let id = submit(&session, "SUBMIT JOB AS $$ SET datafusion.execution.batch_size = 77; SHOW datafusion.execution.time_zone; SELECT a FROM t $$").await;
    run_waiting(&db).await;
    assert_eq!(db.ok("SELECT state, error FROM system.jobs").await, "finished|NULL");
    assert_eq!(db.ok(&format!("SHOW RESULT OF JOB '{id}'")).await, "1");
    let id = submit(&session, "SUBMIT JOB AS SHOW datafusion.execution.time_zone").await;
    run_waiting(&db).await;
    assert_eq!(db.ok(&format!("SHOW RESULT OF JOB '{id}'")).await, "datafusion.execution.time_zone|+07:00");
}

#[tokio::test(flavor = "multi_thread")]
async fn time_is_up() {
    let db = Db::new().await;
    db.ok("CREATE TABLE big AS SELECT value AS k FROM generate_series(1, 200000)").await;
    submit(&db, "SUBMIT JOB TIMEOUT '1s' AS CREATE TABLE never AS SELECT count(*) AS c FROM big a JOIN big b ON a.k < b.k AND b.k < 0 - a.k").await;
    tokio::time::timeout(Duration::from_secs(60), run_waiting(&db)).await.expect("it ends");
    let told = db.ok("SELECT state, error FROM system.jobs").await;
    assert!(told.starts_with("failed|the job took longer than 1 seconds"), "{told}");
    assert!(db.err("SELECT * FROM never").await.contains("never"));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_while_waiting_and_while_running() {
    let db = Db::new().await;
    db.ok("CREATE TABLE big AS SELECT value AS k FROM generate_series(1, 200000)").await;
    db.ok("CREATE TABLE t (c BIGINT)").await;
    let endless = "SUBMIT JOB AS INSERT INTO t SELECT count(*) FROM big a JOIN big b ON a.k < b.k AND b.k < 0 - a.k";
    let first = submit(&db, endless).await;
    db.ok(&format!("CANCEL JOB '{first}'")).await;
    assert_eq!(run_waiting(&db).await, 0);
    let second = submit(&db, endless).await;
    let runner = db.engine().jobs().start();
    let state = format!("SELECT state FROM system.jobs WHERE job_id = '{second}'");
    while db.ok(&state).await != "running" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(db.err(&format!("DROP JOB '{second}'")).await.contains("has not ended"));
    db.ok(&format!("CANCEL JOB '{second}'")).await;
    assert_eq!(db.ok(&state).await, "cancelled");
    // Who was at it is free again soon: another job is run, and nothing came of the first.
    let third = submit(&db, "SUBMIT JOB AS SELECT 1").await;
    let state = format!("SELECT state FROM system.jobs WHERE job_id = '{third}'");
    let ended = async {
        while db.ok(&state).await != "finished" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it ends");
    runner.stop().await;
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "0");
    assert_eq!(
        db.ok("SELECT state, error FROM system.jobs ORDER BY submitted_at LIMIT 1").await,
        "cancelled|cancelled by the owner of the home"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_stops_lets_go() {
    let db = Db::new().await;
    db.ok("CREATE TABLE big AS SELECT value AS k FROM generate_series(1, 200000)").await;
    let id = submit(&db, "SUBMIT JOB AS $$ CREATE TABLE made AS SELECT 1 AS a; SELECT count(*) FROM big a JOIN big b ON a.k < b.k AND b.k < 0 - a.k $$").await;
    let runner = db.engine().jobs().start();
    let told = "SELECT state, statements_done, attempt FROM system.jobs";
    while db.ok(told).await != "running|1|1" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    runner.stop().await;
    assert_eq!(db.ok(told).await, "waiting|1|1");
    db.ok(&format!("CANCEL JOB '{id}'")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_gives_no_rows() {
    let db = Db::new().await;
    let id = submit(&db, "SUBMIT JOB AS SELECT value FROM generate_series(1, 10000)").await;
    run_waiting(&db).await;
    let file = std::fs::read_dir(db.home().join("jobs")).expect("a folder").flatten().next().expect("a file").path();
    let mut bytes = std::fs::read(&file).expect("bytes");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    assert!(db.err(&format!("SHOW RESULT OF JOB '{id}'")).await.contains("damaged"));
    std::fs::remove_file(&file).expect("removed");
    assert!(db.err(&format!("SHOW RESULT OF JOB '{id}'")).await.contains("cannot be read"));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_others_are_written_to_once() {
    let db = Db::new().await;
    db.file("ext/a.csv", "a\n1\n");
    db.ok("CREATE EXTERNAL TABLE files STORED AS CSV LOCATION '{dir}/ext/'").await;
    submit(&db, "SUBMIT JOB AS $$ INSERT INTO files VALUES (2); SELECT count(*) FROM files $$").await;
    run_waiting(&db).await;
    assert_eq!(db.ok("SELECT state, error FROM system.jobs").await, "finished|NULL");
    assert_eq!(db.ok("SELECT count(*) FROM files").await, "2");
    // What cannot be seen before it runs is not done at all.
    submit(&db, "SUBMIT JOB AS $$ PREPARE p AS INSERT INTO files VALUES (3); EXECUTE p $$").await;
    run_waiting(&db).await;
    assert_eq!(db.ok("SELECT count(*) FROM files").await, "2");
    assert_eq!(db.ok("SELECT count(*) FROM system.jobs WHERE state = 'failed'").await, "1");
}
