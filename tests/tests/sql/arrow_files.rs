//! Arrow files of both layouts: with a footer, as `COPY .. TO` writes them, and streams, as pipes and servers do.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringArray};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use arrow::record_batch::RecordBatch;
use nectarine_tests::db::Db;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(vec![], &batches[0].schema()).expect("a valid schema");
    batches.iter().for_each(|batch| writer.write(batch).expect("it fits"));
    writer.into_inner().expect("it fits")
}

fn file(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = FileWriter::try_new(vec![], &batches[0].schema()).expect("a valid schema");
    batches.iter().for_each(|batch| writer.write(batch).expect("it fits"));
    writer.into_inner().expect("it fits")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_read_as_files_are() {
    let db = Db::with(&[
        ("datafusion.execution.target_partitions", "4"),
        ("datafusion.optimizer.repartition_file_min_size", "1000"),
    ])
    .await;
    let values: Vec<i64> = (0..10_000).collect();
    let batches: Vec<_> = values
        .chunks(1000)
        .map(|values| batch(vec![("n", ints(values)), ("s", texts(&vec!["x"; values.len()]))]))
        .collect();
    db.file("s.arrow", stream(&batches));
    db.file("both/1.arrow", stream(&batches));
    db.file("both/2.arrow", file(&batches));
    let counted = "SELECT count(*), count(DISTINCT n), sum(n), min(s)";
    assert_eq!(db.ok(&format!("{counted} FROM '{{dir}}/s.arrow'")).await, "10000|10000|49995000|x");
    assert_eq!(db.ok("SELECT count(*) FROM '{dir}/s.arrow'").await, "10000");
    assert_eq!(db.ok("SELECT s, n FROM '{dir}/s.arrow' WHERE n = 9999").await, "x|9999");
    db.ok("CREATE EXTERNAL TABLE s STORED AS ARROW LOCATION '{dir}/s.arrow'").await;
    assert_eq!(db.ok(&format!("{counted} FROM s")).await, "10000|10000|49995000|x");
    db.ok("CREATE TABLE t (s TEXT, n BIGINT)").await;
    assert_eq!(db.ok("COPY t FROM '{dir}/s.arrow'").await, "COPY 10000");
    // A folder may have both, and what is inserted is a file with a footer.
    db.ok("CREATE EXTERNAL TABLE both STORED AS ARROW LOCATION '{dir}/both/'").await;
    assert_eq!(db.ok(&format!("{counted} FROM both")).await, "20000|10000|99990000|x");
    db.ok("INSERT INTO both VALUES (10000, 'w')").await;
    assert_eq!(db.ok(&format!("{counted} FROM both")).await, "20001|10001|100000000|w");
}

/// Files that come later are read by column name, with NULL for what they lack.
#[tokio::test]
async fn columns_of_arrow_files_go_by_name() {
    let db = Db::new().await;
    db.file("d/1.arrow", file(&[batch(vec![("a", ints(&[1])), ("b", ints(&[10])), ("t", texts(&["one"]))])]));
    db.ok("CREATE EXTERNAL TABLE d STORED AS ARROW LOCATION '{dir}/d/'").await;
    for (name, write) in [("2", file as fn(&[RecordBatch]) -> Vec<u8>), ("3", stream)] {
        let number = name.parse::<i64>().expect("a number");
        let other = batch(vec![("b", ints(&[10 * number])), ("new", ints(&[0])), ("a", ints(&[number]))]);
        db.file(&format!("d/{name}.arrow"), write(&[other]));
    }
    assert_eq!(db.ok("SELECT * FROM d ORDER BY a").await, "1|10|one\n2|20|NULL\n3|30|NULL");
    assert_eq!(db.ok("SELECT b FROM d WHERE a = 3").await, "30");
    // Narrower numbers fit, floats do not fit into integers.
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![4]));
    db.file("d/4.arrow", stream(&[batch(vec![("a", narrow)])]));
    assert_eq!(db.ok("SELECT a, b FROM d WHERE a > 3").await, "4|NULL");
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![2.9]));
    for write in [file as fn(&[RecordBatch]) -> Vec<u8>, stream] {
        db.file("d/5.arrow", write(&[batch(vec![("a", Arc::clone(&floats))])]));
        let error = db.err("SELECT sum(a) FROM d").await;
        assert!(error.contains("{dir}/d/5.arrow") && error.contains("its column \"a\" is Float64"), "{error}");
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_is_told() {
    let db = Db::new().await;
    let whole = stream(&[batch(vec![("n", ints(&(0..100).collect::<Vec<_>>()))])]);
    let given = "CREATE OR REPLACE EXTERNAL TABLE c (n BIGINT) STORED AS ARROW LOCATION '{dir}/c.arrow'";
    for n_bytes in [9, 100, whole.len() / 2, whole.len() - 20] {
        db.file("c.arrow", &whole[..n_bytes]);
        db.ok(given).await;
        let error = db.err("SELECT sum(n) FROM c").await;
        assert!(error.contains("{dir}/c.arrow"), "{n_bytes}: {error}");
    }
    // Two of them are not taken for the first.
    db.file("c.arrow", [whole.clone(), whole].concat());
    let error = db.err("SELECT sum(n) FROM '{dir}/c.arrow'").await;
    assert!(error.contains("{dir}/c.arrow"), "{error}");
}
