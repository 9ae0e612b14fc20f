//! Text files whose last record has no end yet: what is whole is the table, the rest comes later.

use std::time::{Duration, SystemTime};

use nectarine_tests::db::Db;
use nectarine_tests::files::{append, rest, set_modified};

#[tokio::test]
async fn a_log_is_opened_while_a_line_is_written() {
    for (name, whole, half, other_half) in [
        ("log.csv", "n,s\n1,one\n2,two\n", "3,\"thr", "ee\"\n"),
        ("log.csv", "n,s\n1,one\n2,two\n", "3", ",three\n"),
        ("log.json", "{\"n\":1,\"s\":\"one\"}\n{\"n\":2,\"s\":\"two\"}\n", "{\"n\":3,\"s\":\"th", "ree\"}\n"),
    ] {
        let db = Db::new().await;
        let path = db.file(name, format!("{whole}{half}"));
        let format = if name.ends_with("csv") { "CSV" } else { "JSON" };
        assert_eq!(db.ok(&format!("SELECT n, s FROM '{{dir}}/{name}' ORDER BY n")).await, "1|one\n2|two", "{half}");
        db.ok(&format!("CREATE EXTERNAL TABLE log STORED AS {format} LOCATION '{{dir}}/{name}'")).await;
        assert_eq!(db.ok("SELECT n, s FROM log ORDER BY n").await, "1|one\n2|two", "{half}");
        // Half a line may rest: who writes fills a buffer first. It is told of then.
        rest().await;
        let told =
            format!("2|2\nnotice: the last record of \"{{dir}}/{name}\" (from byte {} on) is unfinished", whole.len());
        let fresh = db.second().await;
        for db in [&db, &fresh] {
            let answer = db.ok("SELECT count(*), max(n) FROM log").await;
            assert!(answer.starts_with(&told), "{half}: {answer}");
        }
        append(&path, other_half);
        for db in [&db, &fresh] {
            assert_eq!(db.ok("SELECT n, s FROM log ORDER BY n").await, "1|one\n2|two\n3|three", "{half}");
            assert!(notices(db, "SELECT count(n) FROM log").await.is_empty());
        }
    }
}

/// A file that begins with blank lines or comments has its header where its first record is, however late that comes.
#[tokio::test]
async fn a_header_that_comes_late() {
    for (blank, options) in [("\n\n", ""), ("# begun\n", ", 'format.comment' '#'")] {
        let db = Db::new().await;
        let path = db.file("l/x.csv", blank);
        db.ok(&format!(
            "CREATE EXTERNAL TABLE l (a INT, b INT) STORED AS CSV LOCATION '{{dir}}/l/' \
             OPTIONS ('format.has_header' 'true'{options})"
        ))
        .await;
        assert_eq!(db.ok("SELECT * FROM l").await, "", "{blank}");
        rest().await;
        assert_eq!(db.ok("SELECT * FROM l").await, "", "{blank}");
        append(&path, "a,b\n1,2\n");
        assert_eq!(db.ok("SELECT * FROM l").await, "1|2", "{blank}");
        append(&path, "3,4\n");
        assert_eq!(db.ok("SELECT * FROM l ORDER BY a").await, "1|2\n3|4", "{blank}");
    }
}

/// Long after the last write nothing comes any more: then it is wrong, and said to be.
#[tokio::test]
async fn a_record_that_nobody_finishes() {
    let db = Db::new().await;
    for (name, text) in [("old.csv", "n,s\n1,one\n2"), ("old.json", "{\"n\":1}\n{\"n\":")] {
        let path = db.file(name, text);
        assert_eq!(db.ok(&format!("SELECT count(*) FROM '{{dir}}/{name}'")).await, "1");
        set_modified(&path, SystemTime::now() - Duration::from_secs(3600));
        let error = db.err(&format!("SELECT * FROM '{{dir}}/{name}'")).await;
        assert!(error.starts_with("Data:") && error.contains(&format!("{{dir}}/{name}")), "{error}");
    }
}

/// A last record that only lacks its line end is a row, at rest and while the file is young.
#[tokio::test]
async fn a_last_record_without_a_line_end() {
    let db = Db::new().await;
    for (name, text) in [("end.csv", "n,s\n1,one\n2,two"), ("end.json", "{\"n\":1}\n{\"n\":2}")] {
        let path = db.file(name, text);
        for _ in 0..2 {
            assert_eq!(db.ok(&format!("SELECT count(*), sum(n) FROM '{{dir}}/{name}'")).await, "2|3");
            assert!(notices(&db, &format!("SELECT sum(n) FROM '{{dir}}/{name}'")).await.is_empty());
            set_modified(&path, SystemTime::now() - Duration::from_secs(3600));
            rest().await;
        }
    }
}

async fn notices(db: &Db, sql: &str) -> Vec<String> {
    let sql = sql.replace("{dir}", &db.folder().display().to_string());
    let answer = db.session().execute(&sql).await.expect("it runs");
    let notices = answer.notices().iter().map(|notice| notice.message.clone()).collect();
    answer.collect().await.expect("rows");
    notices
}
