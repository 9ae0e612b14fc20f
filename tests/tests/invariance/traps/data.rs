//! The same words over other bytes, or the same bytes read in another way.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use nectarine_tests::db::Db;
use nectarine_tests::files;

use super::{all_hold, entries_hold, holds, sorted};

fn bytes(values: &[i64]) -> Vec<u8> {
    files::parquet_bytes(vec![("n", Arc::new(Int64Array::from(values.to_vec())) as ArrayRef)])
}

/// Guards: `scan::reading` encodes options and, for text, all columns; extents are the data.
#[tokio::test]
async fn one_file_read_in_several_ways() {
    let db = Db::new().await;
    db.file("x/1.csv", "1;2,3\n4;5,6\n,7\n\"8\",9\n");
    let made = [
        ("two_comma", "a TEXT, b TEXT", "'format.has_header' 'false'"),
        ("two_int", "a TEXT, b INT", "'format.has_header' 'false'"),
        ("headed", "a TEXT, b TEXT", "'format.has_header' 'true'"),
        (
            "semicolon",
            "a TEXT, b TEXT",
            "'format.has_header' 'false', 'format.delimiter' ';', 'format.truncated_rows' 'true'",
        ),
        ("other_names", "b TEXT, a TEXT", "'format.has_header' 'false'"),
        ("nulls", "a TEXT, b TEXT", "'format.has_header' 'false', 'format.null_regex' '^9$'"),
        ("quote", "a TEXT, b TEXT", "'format.has_header' 'false', 'format.quote' '~'"),
    ];
    let mut names = vec![];
    for (name, columns, options) in made {
        let sql =
            format!("CREATE EXTERNAL TABLE {name} ({columns}) STORED AS CSV LOCATION '{{dir}}/x/' OPTIONS ({options})");
        if db.run(&sql).await.is_ok() {
            names.push(name);
        }
    }
    assert!(names.len() >= 4, "{names:?}");
    for _ in 0..2 {
        for name in &names {
            for sql in [
                "SELECT a, b, 1 FROM {}",
                "SELECT b || '' FROM {}",
                "SELECT a, count(*) FROM {} GROUP BY a",
                "SELECT count(*), max(b) FROM {}",
                "SELECT count(b) FROM {} WHERE b <> '3'",
            ] {
                let sql = sql.replace("{}", name);
                db.ok("SET nectarine.reuse = 'off'").await;
                if db.run(&sql).await.is_ok() {
                    holds(&db, &sql).await;
                }
                db.ok("SET nectarine.reuse = 'on'").await;
            }
        }
    }
    // Options that change under the same name.
    for (options, expected) in [("'format.has_header' 'false'", "4"), ("'format.has_header' 'true'", "3")] {
        db.ok(&format!(
            "CREATE OR REPLACE EXTERNAL TABLE changing (a TEXT, b TEXT) STORED AS CSV LOCATION '{{dir}}/x/' OPTIONS ({options})"
        ))
        .await;
        assert_eq!(holds(&db, "SELECT count(*) FROM changing").await, expected);
        assert_eq!(holds(&db, "SELECT count(b) FROM (SELECT b, a FROM changing WHERE b > '')").await, expected);
    }
    entries_hold(&db).await;
}

/// Guard: columns of Parquet are encoded by name and type.
#[tokio::test]
async fn one_parquet_file_under_several_schemas() {
    let db = Db::new().await;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("a", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("b", Arc::new(Int64Array::from(vec![10, 20, 30]))),
        ("s", Arc::new(StringArray::from(vec!["1", "2", "x"]))),
    ];
    files::parquet(&db.path("e/1.parquet"), columns);
    for (name, declared) in [
        ("all_three", "a BIGINT, b BIGINT, s TEXT"),
        ("swapped", "b BIGINT, a BIGINT, s TEXT"),
        ("narrow", "a INT, b INT, s TEXT"),
        ("doubles", "a DOUBLE, b DOUBLE, s TEXT"),
        ("texts", "a TEXT, b TEXT, s TEXT"),
        ("missing", "a BIGINT, zzz BIGINT, s TEXT"),
    ] {
        let sql = format!("CREATE EXTERNAL TABLE {name} ({declared}) STORED AS PARQUET LOCATION '{{dir}}/e/'");
        let _ = db.run(&sql).await;
    }
    for _ in 0..2 {
        for name in ["all_three", "swapped", "narrow", "doubles", "texts", "missing"] {
            for sql in [
                "SELECT * FROM {} WHERE s <> ''",
                "SELECT a, count(*) FROM {} GROUP BY a",
                "SELECT max(a), max(s) FROM {}",
            ] {
                let sql = sql.replace("{}", name);
                db.ok("SET nectarine.reuse = 'off'").await;
                if db.run(&sql).await.is_ok() {
                    holds(&db, &sql).await;
                }
                db.ok("SET nectarine.reuse = 'on'").await;
            }
        }
    }
    entries_hold(&db).await;
}

/// Guard: a file that lacks or adds a column is another extent under the same program.
#[tokio::test]
async fn schemas_evolve() {
    let db = Db::new().await;
    let number = |n: i64| Arc::new(Int64Array::from(vec![n])) as ArrayRef;
    files::parquet(&db.path("e/1.parquet"), vec![("a", number(1)), ("b", number(10))]);
    db.ok("CREATE EXTERNAL TABLE e (a BIGINT, b BIGINT, c BIGINT) STORED AS PARQUET LOCATION '{dir}/e/'").await;
    let queries = ["SELECT sum(a), sum(b), sum(c), count(*) FROM e", "SELECT a, b, c FROM e WHERE a > 0"];
    assert_eq!(holds(&db, queries[0]).await, "1|10|NULL|1");
    files::parquet(&db.path("e/2.parquet"), vec![("c", number(300)), ("a", number(3))]);
    assert_eq!(holds(&db, queries[0]).await, "4|10|300|2");
    files::parquet(&db.path("e/3.parquet"), vec![("zzz", number(9)), ("b", number(40))]);
    assert_eq!(holds(&db, queries[0]).await, "4|50|300|3");
    all_hold(&db, &queries).await;
    entries_hold(&db).await;
}

/// Guard: a range of text that ends within a record is looked at again when the file grows.
#[tokio::test]
async fn text_that_ends_in_the_middle() {
    let db = Db::new().await;
    let path = db.file("c/log.csv", "1,a\n2,b");
    db.ok("CREATE EXTERNAL TABLE c (n BIGINT, s TEXT) STORED AS CSV LOCATION '{dir}/c/' OPTIONS ('format.has_header' 'false')")
        .await;
    let (sum, groups) = ("SELECT count(*), sum(n) FROM c", "SELECT s, sum(n) FROM c GROUP BY s");
    assert_eq!(holds(&db, sum).await, "2|3");
    assert_eq!(holds(&db, groups).await, "a|1\nb|2");
    for (more, expected) in [("b\n3", "a|1\nbb|2"), ("0,c\n", "a|1\nbb|2\nc|30"), ("4,c\n", "a|1\nbb|2\nc|34")] {
        files::append(&path, more);
        if let Ok(found) = db.run(groups).await
            && more.ends_with('\n')
        {
            assert_eq!(sorted(&found), expected);
            assert_eq!(holds(&db, groups).await, expected);
        }
    }
    files::rest().await;
    files::append(&path, "5,a\n");
    assert_eq!(holds(&db, groups).await, "a|6\nbb|2\nc|34");
    // Cut and grown again to the same length.
    std::fs::write(&path, "1,a\n2,bb\n30,c\n4,c\n5,z\n").expect("it can be written");
    assert_eq!(holds(&db, groups).await, "a|1\nbb|2\nc|34\nz|5");
    entries_hold(&db).await;
}

/// Guard: values of partitions are part of an extent's fingerprint.
#[tokio::test]
async fn partitions_with_equal_files() {
    let db = Db::new().await;
    for fingerprint in ["", "OPTIONS (fingerprint 'content')"] {
        let kind = if fingerprint.is_empty() { "identity" } else { "content" };
        for p in ["1", "2", "x"] {
            std::fs::write(db.path(&format!("{kind}/p={p}/f.parquet")), bytes(&[1, 2, 3])).expect("it can be written");
        }
        db.ok(&format!(
            "CREATE EXTERNAL TABLE h_{kind} (n BIGINT, p TEXT) STORED AS PARQUET PARTITIONED BY (p) \
             LOCATION '{{dir}}/{kind}/' {fingerprint}"
        ))
        .await;
        for p in ["1", "2", "x"] {
            db.ok(&format!(
                "CREATE EXTERNAL TABLE h_{kind}_{p} (n BIGINT) STORED AS PARQUET LOCATION '{{dir}}/{kind}/p={p}/' {fingerprint}"
            ))
            .await;
        }
        let queries: Vec<String> = [
            "SELECT p, sum(n) FROM h GROUP BY p",
            "SELECT p, n + 1 FROM h WHERE p = '1'",
            "SELECT p, n + 1 FROM h WHERE p = '2'",
            "SELECT max(p), min(p), count(*) FROM h WHERE p <> '1'",
            "SELECT max(p), min(p), count(*) FROM h WHERE p <> 'x'",
            "SELECT sum(n) FROM h_1",
            "SELECT sum(n) FROM h_2",
        ]
        .iter()
        .map(|sql| sql.replace("FROM h", &format!("FROM h_{kind}")))
        .collect();
        all_hold(&db, &queries.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    entries_hold(&db).await;
}

/// Trap 8. Guard: statistics of floats prove nothing.
#[tokio::test]
async fn floats_without_numbers() {
    let db = Db::new().await;
    let floats = |values: Vec<Option<f64>>| vec![("f", Arc::new(Float64Array::from(values)) as ArrayRef)];
    files::parquet(&db.path("e/1.parquet"), floats(vec![Some(1.0), Some(f64::NAN), Some(-0.0), None]));
    files::parquet(&db.path("e/2.parquet"), floats(vec![Some(0.0), Some(2.0)]));
    files::parquet(&db.path("e/3.parquet"), floats(vec![Some(f64::NAN), Some(f64::NAN)]));
    db.ok("CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{dir}/e/'").await;
    let queries = [
        "SELECT count(*) FROM e WHERE f > 100",
        "SELECT count(*) FROM e WHERE f < 100",
        "SELECT count(*) FROM e WHERE NOT (f <= 2)",
        "SELECT count(*) FROM e WHERE f <> 1",
        "SELECT max(f), min(f) FROM e",
        "SELECT f, count(*) FROM e GROUP BY f",
        "SELECT DISTINCT f FROM e",
        "SELECT count(*) FROM e WHERE f = 0.0",
        "SELECT count(*) FROM e WHERE f = -0.0",
        "SELECT count(*) FROM e WHERE f IS NOT NULL",
        "SELECT f FROM e ORDER BY f DESC LIMIT 2",
    ];
    all_hold(&db, &queries).await;
    files::parquet(&db.path("e/4.parquet"), floats(vec![None, Some(f64::NAN), Some(500.0)]));
    all_hold(&db, &queries).await;
    entries_hold(&db).await;
}

/// Promise 1: every answer is one prefix of the history of appends, whoever asks while files appear.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_beside_an_appender() {
    const FILES: i64 = 40;
    let db = Db::new().await;
    files::appear(&db.path("e/0000.parquet"), &bytes(&[0]));
    db.file("c/log.csv", "0\n");
    db.ok("CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{dir}/e/'").await;
    db.ok("CREATE EXTERNAL TABLE c (n BIGINT) STORED AS CSV LOCATION '{dir}/c/' OPTIONS ('format.has_header' 'false')")
        .await;
    db.ok("CREATE TABLE m (n BIGINT)").await;
    db.ok("INSERT INTO m VALUES (0)").await;
    let second = db.second().await;
    let appender = {
        let db = db.client();
        tokio::spawn(async move {
            for n in 1..=FILES {
                files::appear(&db.path(&format!("e/{n:04}.parquet")), &bytes(&[n]));
                files::append(&db.path("c/log.csv"), format!("{n}\n"));
                db.ok(&format!("INSERT INTO m VALUES ({n})")).await;
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        })
    };
    let mut readers = vec![];
    for reader in 0..6 {
        let db = if reader % 3 == 2 { second.client() } else { db.client() };
        let table = ["e", "c", "m"][reader % 3];
        readers.push(tokio::spawn(async move {
            let mut last = 0;
            let mut n_failed = 0;
            while last < FILES {
                let rows = db.run(&format!("SELECT count(*), sum(n), max(n), min(n) FROM {table}")).await;
                let Ok(rows) = rows else {
                    // A file of text that grows while it is read is an error that says so.
                    n_failed += 1;
                    assert!(table == "c" && n_failed < 500, "{rows:?}");
                    continue;
                };
                let rows = sorted(&rows);
                let numbers: Vec<i64> = rows.split('|').map(|number| number.parse().expect("a number")).collect();
                let max = numbers[2];
                assert_eq!(numbers, [max + 1, max * (max + 1) / 2, max, 0], "{table} after {last}");
                assert!(max >= last, "{table}: {max} after {last}");
                last = max;
                let groups = db.run(&format!("SELECT n % 3, count(*), max(n) FROM {table} GROUP BY 1")).await;
                let Ok(groups) = groups else { continue };
                let (mut count, mut largest) = (0, 0);
                for line in sorted(&groups).lines() {
                    let numbers: Vec<i64> = line.split('|').map(|number| number.parse().expect("a number")).collect();
                    count += numbers[1];
                    largest = largest.max(numbers[2]);
                }
                assert_eq!(count, largest + 1, "{table}: {groups}");
            }
        }));
    }
    appender.await.expect("it appends");
    for reader in readers {
        reader.await.expect("every answer is a prefix");
    }
    for table in ["e", "c", "m"] {
        assert_eq!(holds(&db, &format!("SELECT count(*), sum(n) FROM {table}")).await, "41|820");
    }
    entries_hold(&db).await;
}
