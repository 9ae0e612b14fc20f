//! Jobs run with their owner's rights; only he and administrators see them.

use nectarine_tests::db::Db;

use super::{run_waiting, submit};

#[tokio::test(flavor = "multi_thread")]
async fn jobs_have_owners() {
    let db = Db::new().await;
    db.ok("CREATE USER ann PASSWORD 'a password'").await;
    db.ok("CREATE USER bob PASSWORD 'a password'").await;
    db.ok("CREATE USER boss PASSWORD 'a password' ADMIN").await;
    db.ok("CREATE TABLE secret AS SELECT 42 AS a").await;
    let (ann, bob, boss) = (db.user("ann"), db.user("bob"), db.user("boss"));
    // Rights are looked at when it runs.
    let first = submit(&ann, "SUBMIT JOB AS SELECT a FROM secret").await;
    run_waiting(&db).await;
    let error = ann.ok("SELECT error FROM system.jobs").await;
    assert!(error.contains("permission denied for table \"secret\""), "{error}");
    let second = submit(&ann, "SUBMIT JOB AS SELECT a FROM secret").await;
    db.ok("GRANT SELECT ON secret TO ann").await;
    run_waiting(&db).await;
    assert_eq!(ann.ok(&format!("SHOW RESULT OF JOB '{second}'")).await, "42");
    let third = submit(&ann, "SUBMIT JOB AS SELECT a FROM secret").await;
    db.ok("REVOKE SELECT ON secret FROM ann").await;
    // The answer is in the cache by now.
    run_waiting(&db).await;
    assert_eq!(ann.ok(&format!("SELECT state FROM system.jobs WHERE job_id = '{third}'")).await, "failed");
    // Others do not even learn that there is one.
    let waiting = submit(&ann, "SUBMIT JOB AS SELECT 1").await;
    for id in [&first, &second, &waiting] {
        for denied in ["SHOW JOB", "SHOW RESULT OF JOB", "CANCEL JOB", "DROP JOB"] {
            let error = bob.err(&format!("{denied} '{id}'")).await;
            assert!(error.contains("does not exist"), "{denied}: {error}");
        }
    }
    assert_eq!(bob.ok("SELECT count(*) FROM system.jobs").await, "0");
    assert_eq!(bob.ok("SHOW JOBS").await, "");
    assert_eq!(boss.ok("SELECT count(*), min(owner) FROM system.jobs").await, "4|ann");
    assert_eq!(boss.ok(&format!("SHOW RESULT OF JOB '{second}'")).await, "42");
    assert!(db.err("DROP USER ann").await.contains("owns 1 object"));
    boss.ok(&format!("CANCEL JOB '{waiting}'")).await;
    assert_eq!(ann.ok(&format!("SELECT error FROM system.jobs WHERE job_id = '{waiting}'")).await, "cancelled by boss");
    // Whoever is called the same later is another.
    db.ok("DROP USER ann").await;
    db.ok("CREATE USER ann PASSWORD 'a password'").await;
    let ann = db.user("ann");
    assert_eq!(ann.ok("SELECT count(*) FROM system.jobs").await, "0");
    assert!(ann.err(&format!("SHOW RESULT OF JOB '{second}'")).await.contains("does not exist"));
}
