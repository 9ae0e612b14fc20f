//! Outputs in an object store, against a real S3 server (see `s3_server`).

use nectarine_tests::db::Db;
use nectarine_tests::s3_server::Server;
use object_store::ObjectStoreExt;
use object_store::path::Path;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_is_an_object() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("reports");
    let db = Db::new().await;
    let run = |sql: &str| server.run(&db.home(), &[], &["-c", sql]);
    run("CREATE REPORT r SCHEDULE '@daily' OUTPUT 's3://reports/{year}/r-{date}.csv' AS SELECT :run_date AS d").rows();
    let ran = run("RUN REPORT r FOR '2026-11-17'; RUN REPORT r FOR '2026-11-18'; RUN REPORT r FOR '2026-11-17'").rows();
    assert_eq!(ran.matches("finished").count(), 3, "{ran}");
    for day in ["2026-11-17", "2026-11-18"] {
        let object = bucket.get(&Path::from(format!("2026/r-{day}.csv"))).await.expect("an object");
        assert_eq!(object.bytes().await.expect("its bytes"), format!("d\n{day}\n").as_bytes());
    }
    run("CREATE REPORT nowhere SCHEDULE '@daily' OUTPUT 's3://no-such-bucket/x.csv' AS SELECT 1 AS a").rows();
    let error = run("RUN REPORT nowhere FOR '2026-11-17'").error();
    assert!(error.contains("s3://no-such-bucket/x.csv"), "{error}");
    assert_eq!(db.ok("SELECT state FROM system.report_runs WHERE report = 'nowhere'").await, "failed");
}
