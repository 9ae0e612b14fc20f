//! Logging in, tokens, and what belongs to whom.

use std::time::{Duration, Instant};

use arrow_flight::sql::{CommandGetTables, CommandPreparedStatementQuery, CommandStatementQuery};
use arrow_flight::{Criteria, Empty};
use nectarine_tests::db::Db;
use nectarine_tests::flight::{Caller, Served};
use tonic::Code;

async fn served() -> Served {
    let served = Served::with_users().await;
    served
        .db
        .script(
            r#"
            CREATE USER bob PASSWORD 'bob''s password';
            CREATE USER eve PASSWORD 'eve''s password';
            CREATE TABLE t AS SELECT 1 AS a;
            CREATE TABLE secret AS SELECT 42 AS a;
            GRANT SELECT ON t TO bob, eve;
            GRANT SELECT ON secret TO bob;
            "#,
        )
        .await;
    served
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_without_a_login() {
    let served = served().await;
    let mut caller = served.caller().await;
    for token in [None, Some("none-needed".to_owned()), Some("x".repeat(100))] {
        caller.token = token;
        let query = CommandStatementQuery { query: "SELECT 1".to_owned(), transaction_id: None };
        assert_eq!(caller.info(&query).await.unwrap_err().code(), Code::Unauthenticated);
        assert_eq!(caller.update("CREATE TABLE x (a INT)").await.unwrap_err().code(), Code::Unauthenticated);
        assert_eq!(caller.prepare("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
        assert_eq!(caller.action("GetSessionOptions", vec![]).await.unwrap_err().code(), Code::Unauthenticated);
        let (list, actions) = (caller.request(Criteria::default()), caller.request(Empty {}));
        assert_eq!(caller.calls.list_flights(list).await.unwrap_err().code(), Code::Unauthenticated);
        assert_eq!(caller.calls.list_actions(actions).await.unwrap_err().code(), Code::Unauthenticated);
    }
    let mut bob = served.user("bob", "bob's password").await;
    assert_eq!(bob.text("SELECT a FROM t").await.unwrap(), "1");
    // A token introduces who has it, on any connection.
    let mut again = Caller { token: bob.token.clone(), ..served.caller().await };
    assert_eq!(again.text("SELECT a FROM secret").await.unwrap(), "42");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_hold_on_every_call() {
    let served = served().await;
    let mut bob = served.user("bob", "bob's password").await;
    let mut eve = served.user("eve", "eve's password").await;
    for _ in 0..2 {
        assert_eq!(bob.text("SELECT a FROM secret").await.unwrap(), "42");
        let denied = eve.text("SELECT a FROM secret").await.unwrap_err();
        assert_eq!(denied.code(), Code::PermissionDenied, "{denied}");
        assert_eq!(eve.prepare("SELECT a FROM secret").await.unwrap_err().code(), Code::PermissionDenied);
    }
    let tables = CommandGetTables {
        catalog: None,
        db_schema_filter_pattern: Some("public".to_owned()),
        table_name_filter_pattern: None,
        table_types: vec![],
        include_schema: true,
    };
    let info = eve.info(&tables).await.unwrap();
    let seen = eve.fetch(&info).await.unwrap();
    assert_eq!(seen.batches[0].num_rows(), 1);
    // What bob prepared and started is nobody's but his.
    let prepared = bob.prepare("SELECT a FROM secret").await.unwrap().prepared_statement_handle;
    let command = CommandPreparedStatementQuery { prepared_statement_handle: prepared.clone() };
    assert_eq!(eve.info(&command).await.unwrap_err().code(), Code::NotFound);
    eve.close(&prepared).await.unwrap();
    let info = bob.info(&command).await.unwrap();
    assert_eq!(eve.fetch(&info).await.unwrap_err().code(), Code::NotFound);
    let cancel = prost::Message::encode_to_vec(&arrow_flight::CancelFlightInfoRequest::new(info.clone()));
    assert_eq!(eve.action("CancelFlightInfo", cancel).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(bob.fetch(&info).await.unwrap().text(), "42");
    // A right that is taken away is gone for statements that were prepared before, and for answers in the cache.
    served.db.ok("REVOKE SELECT ON secret FROM bob").await;
    assert_eq!(bob.query_prepared(&prepared, None).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(bob.text("SELECT a FROM secret").await.unwrap_err().code(), Code::PermissionDenied);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_end() {
    let served = served().await;
    let mut bob = served.user("bob", "bob's password").await;
    let mut eve = served.user("eve", "eve's password").await;
    served.db.ok("ALTER USER bob PASSWORD 'another password'").await;
    assert_eq!(bob.text("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
    bob.log_in("bob", "another password").await.unwrap();
    assert_eq!(bob.text("SELECT 1").await.unwrap(), "1");
    served.db.ok("DROP USER eve").await;
    assert_eq!(eve.text("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);

    let short = Served::with(Db::new().await, |options| options.token_life = Duration::from_millis(700)).await;
    let (user, password) = short.server.first_login().unwrap();
    let mut admin = short.user(user, password).await;
    let prepared = admin.prepare("SELECT 1").await.unwrap().prepared_statement_handle;
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(admin.text("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
    assert_eq!(admin.query_prepared(&prepared, None).await.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_passwords_cost_time() {
    let served = served().await;
    let mut caller = served.caller().await;
    let started = Instant::now();
    for _ in 0..4 {
        let wrong = caller.log_in("bob", "wrong password").await.unwrap_err();
        assert_eq!((wrong.code(), wrong.message()), (Code::Unauthenticated, "user or password is wrong"));
    }
    assert!(started.elapsed() > Duration::from_millis(250 + 500 + 1000), "{:?}", started.elapsed());
    let nobody = caller.log_in("nobody", "wrong password").await.unwrap_err();
    assert_eq!(nobody.message(), "user or password is wrong");
    caller.log_in("bob", "bob's password").await.unwrap();
    assert_eq!(caller.text("SELECT 1").await.unwrap(), "1");
    // A role has no password.
    served.db.ok("CREATE ROLE readers").await;
    assert!(caller.log_in("readers", "").await.is_err());
}

/// The first start makes an administrator; later ones do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_start_makes_an_administrator() {
    let served = Served::with_users().await;
    let (user, password) = served.server.first_login().expect("a first login");
    let (user, password) = (user.to_owned(), password.to_owned());
    assert_eq!(user, "admin");
    let mut admin = served.user(&user, &password).await;
    admin.update("CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    let Served { db, server } = served;
    server.stop().await;
    let served = Served::with(db, |_| {}).await;
    assert_eq!(served.server.first_login(), None);
    let mut admin = served.user(&user, &password).await;
    assert_eq!(admin.text("SELECT a FROM t").await.unwrap(), "1");
    // Without passwords, only on this machine.
    let mut options = nectarine_engine::FlightOptions::new("0.0.0.0:0".parse().unwrap());
    options.no_auth = true;
    let refused = nectarine_engine::FlightServer::start(served.db.engine(), options).await.unwrap_err();
    assert!(refused.message().contains("without passwords"), "{refused:?}");
}
