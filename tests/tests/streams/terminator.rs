//! CSV whose records end in another letter than a line end.

use std::fmt::Write;

use nectarine_tests::db::Db;
use nectarine_tests::files::{append, gz};

#[tokio::test]
async fn columns_are_told_by_records() {
    let db = Db::new().await;
    let text = "a,b;1,x y;2,\"in; quotes\n\";3,z;";
    let path = db.file("t.csv", text);
    db.file("t.csv.gz", gz(text.as_bytes()));
    for name in ["t.csv", "t.csv.gz"] {
        db.ok(&format!("CREATE OR REPLACE EXTERNAL TABLE t STORED AS CSV LOCATION '{{dir}}/{name}' OPTIONS ('format.terminator' ';')"))
            .await;
        assert_eq!(
            db.ok("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 't' ORDER BY 1")
                .await,
            "a|Int64\nb|Utf8"
        );
        assert_eq!(db.ok("SELECT a, length(b) FROM t ORDER BY a").await, "1|3\n2|11\n3|1", "{name}");
    }
    // Another header is seen as such.
    db.file("d/1.csv", "a,b;1,x;");
    db.ok("CREATE EXTERNAL TABLE d STORED AS CSV LOCATION '{dir}/d/' OPTIONS ('format.terminator' ';')").await;
    db.file("d/2.csv", "b,a;x,2;");
    let error = db.err("SELECT * FROM d").await;
    assert!(error.contains("{dir}/d/2.csv") && error.contains("(b, a)"), "{error}");
    // A log of such records grows by them.
    db.ok("CREATE EXTERNAL TABLE log STORED AS CSV LOCATION '{dir}/t.csv' OPTIONS ('format.terminator' ';')").await;
    assert_eq!(db.ok("SELECT count(*) FROM log").await, "3");
    append(&path, "4,four;5,fi");
    assert_eq!(db.ok("SELECT max(a) FROM log WHERE b = 'four'").await, "4");
    append(&path, "ve;");
    assert_eq!(db.ok("SELECT a, b FROM log WHERE a > 3 ORDER BY a").await, "4|four\n5|five");
}

/// Several threads read a large file: no record twice, none not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_is_split_at_terminators() {
    let db = Db::with(&[
        ("datafusion.execution.target_partitions", "7"),
        ("datafusion.optimizer.repartition_file_min_size", "1000"),
    ])
    .await;
    let mut text = "n,s;".to_owned();
    let mut quoted = "n,s;".to_owned();
    for n in 0..20_000 {
        let _ = write!(text, "{n},{}\n;", "x".repeat(n % 7 + 1));
        let _ = write!(quoted, "{n},\"{}\n;\";", "x;".repeat(n % 7 + 1));
    }
    db.file("plain.csv", &text);
    db.file("quoted.csv", &quoted);
    for name in ["plain", "quoted"] {
        db.ok(&format!(
            "CREATE EXTERNAL TABLE {name} STORED AS CSV LOCATION '{{dir}}/{name}.csv' OPTIONS ('format.terminator' ';')"
        ))
        .await;
        let rows = db.ok(&format!("SELECT count(*), count(DISTINCT n), sum(n) FROM {name}")).await;
        assert_eq!(rows, "20000|20000|199990000", "{name}");
    }
}
