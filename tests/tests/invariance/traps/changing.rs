//! Files that are written to between statements and while they are read.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use nectarine_tests::db::Db;
use nectarine_tests::files;

use super::{entries_hold, holds};

fn bytes(values: &[i64]) -> Vec<u8> {
    files::parquet_bytes(vec![("n", Arc::new(Int64Array::from(values.to_vec())) as ArrayRef)])
}

/// Trap 7. Guard: extents are known by size, times, inode, and by content while fresh.
#[tokio::test]
async fn a_file_is_overwritten_with_the_same_size_and_time() {
    let db = Db::new().await;
    let path = db.path("e/1.parquet");
    std::fs::write(&path, bytes(&[1, 2, 3])).expect("it can be written");
    db.ok("CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{dir}/e/'").await;
    let (sum, groups) = ("SELECT sum(n) FROM e", "SELECT n % 2 AS m, sum(n) FROM e GROUP BY 1");
    assert_eq!(holds(&db, sum).await, "6");
    assert_eq!(holds(&db, groups).await, "0|2\n1|4");
    files::overwrite_unnoticed(&path, &bytes(&[1, 2, 30]));
    assert_eq!(holds(&db, sum).await, "33");
    files::rest().await;
    assert_eq!(holds(&db, sum).await, "33");
    files::overwrite_unnoticed(&path, &bytes(&[1, 2, 5]));
    assert_eq!(holds(&db, sum).await, "8");
    assert_eq!(holds(&db, groups).await, "0|2\n1|6");
    // Back to what it was.
    files::overwrite_unnoticed(&path, &bytes(&[1, 2, 3]));
    assert_eq!(holds(&db, sum).await, "6");
    // Renamed over, and deleted.
    files::appear(&path, &bytes(&[7, 7, 7]));
    assert_eq!(holds(&db, sum).await, "21");
    files::appear(&db.path("e/2.parquet"), &bytes(&[1]));
    assert_eq!(holds(&db, sum).await, "22");
    std::fs::remove_file(&path).expect("it was there");
    assert_eq!(holds(&db, sum).await, "1");
    entries_hold(&db).await;
}

/// Promise 1. Guard: nothing is published before the extents were looked at again.
///
/// The file is swapped after it was listed and before it is read, and put back afterwards: what was computed meanwhile must
/// not be found under the name of what is there again.
#[tokio::test]
async fn a_file_is_rewritten_while_it_is_read() {
    let db = Db::new().await;
    let path = db.path("e/1.parquet");
    files::appear(&path, &bytes(&[1, 2, 3]));
    db.ok("CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{dir}/e/' OPTIONS (fingerprint 'content')").await;
    db.ok("CREATE TABLE one AS SELECT CAST(0 AS BIGINT) AS v").await;
    for verify in [true, false] {
        db.ok(&format!("SET nectarine.verify_extents = {verify}")).await;
        // Other groups each time, so that they are computed.
        let groups = format!("SELECT n % 2 AS m, sum(n + {}) AS s FROM e GROUP BY 1", u8::from(verify));
        let swapped = path.clone();
        db.on_rows(move || files::appear(&swapped, &bytes(&[10, 20, 30])));
        let outcome = db
            .run(&format!("SELECT x.s FROM (SELECT tests_hook(v) AS v FROM one) a JOIN ({groups}) x ON a.v = x.m"))
            .await;
        // Without the last look the answer is given, but nothing is kept.
        assert_eq!(outcome.is_err(), verify, "{outcome:?}");
        if let Ok(rows) = outcome {
            assert_eq!(rows, "60", "the file was swapped before it was read");
        }
        files::appear(&path, &bytes(&[1, 2, 3]));
        assert_eq!(holds(&db, &groups).await, if verify { "0|3\n1|6" } else { "0|2\n1|4" });
    }
    files::appear(&path, &bytes(&[10, 20, 30]));
    assert_eq!(holds(&db, "SELECT n % 2 AS m, sum(n) AS s FROM e GROUP BY 1").await, "0|60");
    entries_hold(&db).await;
}

/// Promise 1. Guard: a file that was written to since it was pinned counts as changed, whatever it holds in the end.
///
/// The file is swapped before it is read and put back before the statement ends: its content is what was pinned, but not
/// what was read.
#[tokio::test]
async fn a_file_is_swapped_and_put_back_while_it_is_read() {
    for (options, rests) in
        [("OPTIONS (fingerprint 'content')", false), ("OPTIONS (fingerprint 'content')", true), ("", false)]
    {
        let db = Db::new().await;
        let path = db.path("e/1.parquet");
        files::appear(&path, &bytes(&[1, 2, 3]));
        db.ok(&format!("CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{{dir}}/e/' {options}")).await;
        db.ok("CREATE TABLE one AS SELECT CAST(0 AS BIGINT) AS v").await;
        if rests {
            files::rest().await;
            db.ok("SELECT count(*) FROM e").await;
        }
        for verify in [true, false] {
            db.ok(&format!("SET nectarine.verify_extents = {verify}")).await;
            let groups = format!("SELECT n % 2 AS m, sum(n + {}) AS s FROM e GROUP BY 1", u8::from(verify));
            let (swapped, again) = (path.clone(), db.clone());
            db.on_rows(move || {
                files::appear(&swapped, &bytes(&[10, 20, 30]));
                again.on_rows(move || files::appear(&swapped, &bytes(&[1, 2, 3])));
            });
            let sql = format!(
                "SELECT tests_hook(x.s) FROM (SELECT tests_hook(v) AS v FROM one) a JOIN ({groups}) x ON a.v = x.m"
            );
            let outcome = db.run(&sql).await;
            assert_eq!(outcome.is_err(), verify, "{outcome:?}");
            if let Ok(rows) = outcome {
                assert_eq!(rows, "60", "the file was swapped before it was read");
            }
            assert_eq!(holds(&db, &groups).await, if verify { "0|3\n1|6" } else { "0|2\n1|4" });
        }
        entries_hold(&db).await;
    }
}

/// Promise 1. Guard: what a failed statement had finished is published only if what it read is still there.
#[tokio::test]
async fn a_statement_fails_after_a_file_was_swapped() {
    let db = Db::new().await;
    let path = db.path("e/1.parquet");
    files::appear(&path, &bytes(&[1, 2, 3]));
    db.ok("CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{dir}/e/' OPTIONS (fingerprint 'content')").await;
    db.ok("CREATE TABLE one AS SELECT CAST(0 AS BIGINT) AS v").await;
    let groups = "SELECT n % 2 AS m, sum(n) AS s FROM e GROUP BY 1";
    let fails = format!(
        "SELECT 1 / (c - c) FROM (SELECT sum(x.s) AS c FROM (SELECT tests_hook(v) AS v FROM one) a JOIN ({groups}) x ON a.v = x.m)"
    );
    let swapped = path.clone();
    db.on_rows(move || files::appear(&swapped, &bytes(&[10, 20, 30])));
    db.err(&fails).await;
    // The last look is taken in the background.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(db.ok("SELECT count(*) FROM system.cache_entries WHERE rows > 0").await, "0");
    files::appear(&path, &bytes(&[1, 2, 3]));
    assert_eq!(holds(&db, groups).await, "0|2\n1|4");
    // Nothing was wrong with it: then it stays.
    db.cache().clear().await;
    db.err(&fails).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_ne!(db.ok("SELECT count(*) FROM system.cache_entries WHERE rows > 0").await, "0");
    assert_eq!(holds(&db, groups).await, "0|2\n1|4");
    entries_hold(&db).await;
}
