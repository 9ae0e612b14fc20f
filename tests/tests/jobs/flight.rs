//! Jobs for clients of Flight SQL, who ask for columns before rows.

use nectarine_tests::flight::Served;
use tonic::Code;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_over_flight_sql() {
    let served = Served::with_users().await;
    served
        .db
        .script(
            r#"
            CREATE USER bob PASSWORD 'bob''s password';
            CREATE USER eve PASSWORD 'eve''s password';
            CREATE TABLE t AS SELECT 42 AS a;
            GRANT SELECT ON t TO bob;
            "#,
        )
        .await;
    let mut bob = served.user("bob", "bob's password").await;
    let mut eve = served.user("eve", "eve's password").await;
    let id = bob.text("SUBMIT JOB AS SELECT a FROM t").await.unwrap();
    let prepared = bob.prepare("SUBMIT JOB AS SELECT a + 1 AS b FROM t").await.unwrap().prepared_statement_handle;
    let second = bob.query_prepared(&prepared, None).await.unwrap().text();
    assert_eq!(bob.text("SELECT count(*) FROM system.jobs").await.unwrap(), "2", "each was submitted once");
    let result = format!("SHOW RESULT OF JOB '{id}'");
    assert_eq!(bob.text(&result).await.unwrap_err().code(), Code::InvalidArgument, "there is none yet");
    assert_eq!(served.db.engine().jobs().run_waiting().await.unwrap(), 2);
    let fetched = bob.query(&result).await.unwrap();
    assert_eq!((fetched.text().as_str(), fetched.trailer("nectarine-reuse")), ("42", Some("none")));
    let prepared = bob.prepare(&format!("SHOW RESULT OF JOB '{second}'")).await.unwrap().prepared_statement_handle;
    assert_eq!(bob.query_prepared(&prepared, None).await.unwrap().text(), "43");
    assert!(bob.text(&format!("SHOW JOB '{id}'")).await.unwrap().contains("finished"));
    for denied in [&result, &format!("SHOW JOB '{id}'"), &format!("CANCEL JOB '{id}'"), &format!("DROP JOB '{id}'")] {
        let told = eve.text(denied).await.unwrap_err();
        assert!(told.message().contains("does not exist"), "{denied}: {told}");
        assert!(eve.update(denied).await.is_err(), "{denied}");
        assert!(!denied.starts_with("SHOW RESULT") || eve.prepare(denied).await.is_err(), "{denied}");
    }
    assert_eq!(bob.text(&result).await.unwrap(), "42");
    bob.update(&format!("DROP JOB '{id}'")).await.unwrap();
    assert!(bob.text(&result).await.is_err());
}
