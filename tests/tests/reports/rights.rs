//! Reports run with their owner's rights; only he and administrators change or run them.

use super::{home, run_due};

#[tokio::test(flavor = "multi_thread")]
async fn reports_have_owners() {
    let (db, clock) = home().await;
    db.ok("CREATE USER ann PASSWORD 'a password'").await;
    db.ok("CREATE USER bob PASSWORD 'a password'").await;
    db.ok("CREATE TABLE results (amount BIGINT)").await;
    db.ok("CREATE TABLE secrets (a BIGINT)").await;
    let (ann, bob) = (db.user("ann"), db.user("bob"));
    let create = "CREATE REPORT r SCHEDULE '@hourly' OUTPUT TABLE results AS SELECT sum(amount) FROM sales";
    assert!(ann.err(create).await.contains("permission denied"), "she may read nothing yet");
    db.ok("GRANT SELECT ON sales TO ann").await;
    assert!(ann.err(create).await.contains("permission denied"), "nor write");
    db.ok("GRANT INSERT ON results TO ann").await;
    ann.ok(create).await;
    for denied in [
        "CREATE REPORT f SCHEDULE '@hourly' OUTPUT '{dir}/x.csv' AS SELECT 1",
        "CREATE REPORT f SCHEDULE '@hourly' OUTPUT TABLE results HOOK 'true' AS SELECT 1",
        "CREATE REPORT f SCHEDULE '@hourly' OUTPUT TABLE results AS SELECT a FROM secrets",
        "ALTER REPORT r OWNER TO bob",
    ] {
        assert!(ann.err(denied).await.contains("permission denied"), "{denied}");
    }
    for denied in [
        "DROP REPORT r",
        "PAUSE REPORT r",
        "RUN REPORT r",
        "ALTER REPORT r SET RETRIES 3",
        "ALTER REPORT r RENAME TO q",
        "SHOW CREATE REPORT r",
        "CREATE OR REPLACE REPORT r SCHEDULE '@hourly' OUTPUT TABLE results AS SELECT 1",
    ] {
        assert!(bob.err(denied).await.contains("permission denied for report"), "{denied}");
    }
    assert_eq!(bob.ok("SELECT count(*) FROM system.reports").await, "0");
    assert_eq!(ann.ok("SELECT name, owner FROM system.reports").await, "r|ann");
    clock.pass(3600);
    assert_eq!(run_due(&db).await, 1);
    assert_eq!(db.ok("SELECT * FROM results").await, "30");
    assert_eq!(bob.ok("SELECT count(*) FROM system.report_runs").await, "0");
    assert_eq!(ann.ok("SELECT state FROM system.report_runs").await, "finished");
    // Rights are looked at when it runs.
    db.ok("REVOKE SELECT ON sales FROM ann").await;
    clock.pass(3600);
    run_due(&db).await;
    let failed = db.ok("SELECT error FROM system.report_runs WHERE state = 'failed'").await;
    assert!(failed.contains("permission denied for table \"sales\""), "{failed}");
    assert_eq!(db.ok("SELECT count(*) FROM results").await, "1");
    db.ok("ALTER REPORT r OWNER TO bob").await;
    assert!(ann.err("RUN REPORT r").await.contains("permission denied"));
    let error = db.err("DROP USER bob").await;
    assert!(error.contains("cannot drop \"bob\": it owns 1 object"), "{error}");
    db.ok("REASSIGN OWNED BY bob TO ann").await;
    assert_eq!(db.ok("SELECT owner FROM system.reports").await, "ann");
    db.ok("DROP USER bob").await;
    ann.ok("DROP REPORT r").await;
}
