//! What stays of a login: over restarts, after rights were taken, and for services.

use std::time::Duration;

use arrow_flight::sql::{CommandPreparedStatementQuery, CommandStatementQuery};
use nectarine_engine::{Login, RemoteSession};
use nectarine_tests::flight::{Caller, Served};
use tonic::Code;

async fn served() -> Served {
    let served = Served::with_users().await;
    let script = "CREATE USER bob PASSWORD 'bob''s password';\nCREATE USER eve PASSWORD 'eve''s password';\n\
                  CREATE TABLE secret AS SELECT 42 AS a;\nCREATE VIEW v AS SELECT a FROM secret;\n\
                  GRANT SELECT ON secret, v TO bob;";
    served.db.script(script).await;
    served
}

fn command(sql: &str) -> CommandStatementQuery {
    CommandStatementQuery { query: sql.to_owned(), transaction_id: None }
}

/// Rows that were started, and not fetched, are those of who may read them when they are fetched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_are_looked_at_again_when_rows_are_fetched() {
    let served = served().await;
    let mut bob = served.user("bob", "bob's password").await;
    let prepared = bob.prepare("SELECT a FROM secret WHERE a > $1").await.unwrap().prepared_statement_handle;
    let values = arrow::array::RecordBatch::try_from_iter([(
        "p",
        std::sync::Arc::new(arrow::array::Int64Array::from(vec![1])) as arrow::array::ArrayRef,
    )])
    .unwrap();
    let bound = CommandPreparedStatementQuery { prepared_statement_handle: prepared };
    bob.put(&bound, Some((values.schema(), vec![values]))).await.unwrap();
    let started = [
        bob.info(&command("SELECT a FROM secret")).await.unwrap(),
        bob.info(&command("SELECT a FROM v")).await.unwrap(),
        bob.info(&command("SELECT 1 AS a")).await.unwrap(),
        bob.info(&bound).await.unwrap(),
        bob.info(&command("SELECT max(a) AS a FROM secret")).await.unwrap(),
    ];
    // What has nothing to do with him changes nothing.
    served.db.ok("GRANT SELECT ON secret TO eve").await;
    assert_eq!(bob.fetch(&started[4]).await.unwrap().text(), "42");
    served.db.ok("REVOKE SELECT ON secret FROM bob").await;
    for (info, ok) in [(&started[0], false), (&started[1], true), (&started[2], true), (&started[3], false)] {
        match (bob.fetch(info).await, ok) {
            (Ok(_), true) => {}
            (Err(error), false) => assert_eq!(error.code(), Code::PermissionDenied, "{error}"),
            (outcome, _) => panic!("{ok}: {outcome:?}"),
        }
    }
    let again = bob.fetch(&started[0]).await.unwrap_err();
    assert_eq!(again.code(), Code::NotFound, "{again}");
}

/// The same where the right was another's, whose view it is; where one to write is left; and where the table became another's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_of_views_are_looked_at_again_when_rows_are_fetched() {
    let served = served().await;
    served.db.script("GRANT SELECT ON secret TO eve;\nGRANT CREATE ON SCHEMA public TO bob, eve;\nGRANT INSERT ON secret TO bob, eve;").await;
    served
        .db
        .user("eve")
        .script(
            "CREATE VIEW w AS SELECT a FROM secret;\nCREATE MATERIALIZED VIEW m AS SELECT a FROM secret;\n\
             CREATE MATERIALIZED VIEW n AS SELECT a + 1 AS a FROM w;\nGRANT SELECT ON w, m, n TO bob;",
        )
        .await;
    served.db.user("bob").ok("CREATE TABLE mine AS SELECT 7 AS a").await;
    let mut bob = served.user("bob", "bob's password").await;
    let mut started = vec![];
    for sql in [
        "SELECT a FROM secret",
        "SELECT a FROM w",
        "SELECT a FROM m",
        "SELECT a FROM n",
        "SELECT 1 WHERE 42 IN (SELECT a FROM m)",
        "SHOW CREATE VIEW v",
        "EXPLAIN SELECT a FROM m",
    ] {
        started.push((sql, bob.info(&command(sql)).await.unwrap()));
    }
    served.db.script("REVOKE SELECT ON secret FROM bob, eve;\nREVOKE SELECT ON v FROM bob;").await;
    for (sql, info) in &started {
        let denied = bob.fetch(info).await.unwrap_err();
        assert_eq!(denied.code(), Code::PermissionDenied, "{sql}: {denied}");
    }
    let info = bob.info(&command("SELECT a FROM mine")).await.unwrap();
    served.db.ok("ALTER TABLE mine OWNER TO eve").await;
    assert_eq!(bob.fetch(&info).await.unwrap_err().code(), Code::PermissionDenied);
}

/// A server that is started again knows those who logged in before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logins_outlive_the_server() {
    let first = served().await;
    let bob = first.user("bob", "bob's password").await;
    let Served { db, server } = first;
    server.stop().await;
    let second = Served::with(db.reopen().await, |_| {}).await;
    let mut again = Caller { token: bob.token.clone(), ..second.caller().await };
    assert_eq!(again.text("SELECT a FROM secret").await.unwrap(), "42");
    second.db.ok("ALTER USER bob PASSWORD 'another password'").await;
    assert_eq!(again.text("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
    // A user of the same name and password is another user.
    let mut eve = second.user("eve", "eve's password").await;
    second.db.ok("DROP USER eve").await;
    second.db.ok("CREATE USER eve PASSWORD 'eve''s password'").await;
    assert_eq!(eve.text("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
    // Without the key of the home no login is known.
    let (key, mode) = (second.db.home().join("server.key"), 0o777);
    let permissions = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&key).unwrap().permissions());
    assert_eq!(permissions & mode, 0o600);
    let carol = second.user("eve", "eve's password").await;
    let Served { db, server } = second;
    server.stop().await;
    std::fs::remove_file(&key).unwrap();
    let third = Served::with(db, |_| {}).await;
    let mut forged = Caller { token: carol.token.clone(), ..third.caller().await };
    assert_eq!(forged.text("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_have_tokens() {
    let served = served().await;
    served
        .db
        .script(
            r#"
            CREATE USER svc;
            CREATE ROLE r;
            GRANT SELECT ON secret TO svc;
            CREATE TOKEN ci FOR nobody;
            !! user or role "nobody" does not exist
            CREATE TOKEN ci FOR r;
            !! "r" is a role and cannot log in
            CREATE TOKEN ci FOR svc VALID UNTIL '2001-01-01';
            !! expired
            CREATE TOKEN ci FOR svc VALID UNTIL 'soon';
            !! "soon" is no time
            "#,
        )
        .await;
    let made = served.db.ok("CREATE TOKEN ci FOR svc").await;
    let token = made.split('|').nth(2).expect("a token").to_owned();
    assert!(token.starts_with("nct_") && token.len() > 40, "{made}");
    assert!(served.db.err("CREATE TOKEN ci FOR svc").await.contains("token \"ci\" already exists"));
    // It works on any call, as a login, and for tools that know of users and passwords only.
    let mut caller = Caller { token: Some(token.clone()), ..served.caller().await };
    assert_eq!(caller.text("SELECT a FROM secret").await.unwrap(), "42");
    assert_eq!(caller.text("SELECT DISTINCT user_name FROM system.queries").await.unwrap(), "svc");
    let mut basic = served.user("svc", &token).await;
    assert_eq!(basic.text("SELECT a FROM secret").await.unwrap(), "42");
    let mut other = served.caller().await;
    assert!(other.log_in("bob", &token).await.is_err(), "a token is its user's");
    assert!(other.log_in("svc", "!").await.is_err() && other.log_in("svc", "").await.is_err());
    let url = served.server.url();
    let session = RemoteSession::connect(&url, None, Login::Token(&token)).await.unwrap();
    let progress = nectarine_engine::Progress::new();
    let answer = session.execute_observed("SELECT a FROM secret", &progress).await.unwrap();
    assert_eq!(answer.collect().await.unwrap()[0].num_rows(), 1);
    // Only administrators make them; everybody sees and ends his own.
    let denied = caller.text("CREATE TOKEN more FOR svc").await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied, "{denied}");
    assert_eq!(caller.text("SELECT user_name, name FROM system.tokens").await.unwrap(), "svc|ci");
    let mut bob = served.user("bob", "bob's password").await;
    assert_eq!(bob.text("SELECT count(*) FROM system.tokens").await.unwrap(), "0");
    assert_eq!(bob.text("DROP TOKEN ci FOR svc").await.unwrap_err().code(), Code::PermissionDenied);
    // Neither the store nor the log of statements has it.
    assert_eq!(
        served.db.ok(&format!("SELECT count(*) FROM system.queries WHERE sql LIKE '%{}%'", &token[..12])).await,
        "1"
    );
    let Served { db, server } = served;
    server.stop().await;
    let stored = std::fs::read(db.home().join("metadata.db")).unwrap();
    assert!(!stored.windows(token.len()).any(|bytes| bytes == token.as_bytes()));
    // It outlives the server, but neither itself nor its user.
    let second = Served::with(db.reopen().await, |_| {}).await;
    let mut caller = Caller { token: Some(token.clone()), ..second.caller().await };
    assert_eq!(caller.text("SELECT a FROM secret").await.unwrap(), "42");
    second.db.ok("REVOKE SELECT ON secret FROM svc").await;
    assert_eq!(caller.text("SELECT a FROM secret").await.unwrap_err().code(), Code::PermissionDenied);
    caller.update("DROP TOKEN ci FOR svc").await.unwrap();
    assert_eq!(caller.text("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
    let soon = chrono::Utc::now() + Duration::from_millis(1500);
    let made = second.db.ok(&format!("CREATE TOKEN brief FOR svc VALID UNTIL '{}'", soon.to_rfc3339())).await;
    caller.token = made.split('|').nth(2).map(str::to_owned);
    assert_eq!(caller.text("SELECT 1").await.unwrap(), "1");
    tokio::time::sleep(Duration::from_millis(1700)).await;
    assert_eq!(caller.text("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
    let made = second.db.ok("CREATE TOKEN last FOR svc").await;
    caller.token = made.split('|').nth(2).map(str::to_owned);
    assert_eq!(caller.text("SELECT 1").await.unwrap(), "1");
    second.db.ok("DROP USER svc").await;
    assert_eq!(caller.text("SELECT 1").await.unwrap_err().code(), Code::Unauthenticated);
    assert_eq!(second.db.ok("DROP TOKEN IF EXISTS last FOR svc").await.lines().next(), Some("DROP TOKEN"));
}
