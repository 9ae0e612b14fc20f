//! Prepared statements: parameters of all kinds, many of them, many rows of them.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int8Array, Int32Array, Int64Array,
    NullArray, RecordBatch, StringArray, StringViewArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::DataType;
use nectarine_tests::flight::{Served, schema_of};
use tonic::Code;

fn values(columns: Vec<ArrayRef>) -> RecordBatch {
    let names = (1..).map(|number| format!("{number}"));
    RecordBatch::try_from_iter_with_nullable(names.zip(columns).map(|(name, column)| (name, column, true)))
        .expect("an answer")
}

fn int(number: i64) -> ArrayRef {
    Arc::new(Int64Array::from(vec![number]))
}

fn text(value: &str) -> ArrayRef {
    Arc::new(StringArray::from(vec![value]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_are_described_and_bound() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    caller.update("CREATE TABLE t (a INT, b VARCHAR, c DOUBLE)").await.unwrap();
    let insert = caller.prepare("INSERT INTO t VALUES (?, ?, ?)").await.unwrap();
    assert!(insert.dataset_schema.is_empty(), "a command has no columns at all");
    let types: Vec<DataType> =
        schema_of(&insert.parameter_schema).fields().iter().map(|field| field.data_type().clone()).collect();
    assert_eq!(types.len(), 3);
    assert_eq!((&types[0], &types[2]), (&DataType::Int32, &DataType::Float64));
    let handle = &insert.prepared_statement_handle;
    let one = values(vec![int(1), text("one"), Arc::new(Float64Array::from(vec![1.5]))]);
    assert_eq!(caller.update_prepared(handle, Some(one)).await.unwrap(), 1);
    // Many rows, with nulls, are one INSERT.
    let many = values(vec![
        Arc::new(Int64Array::from(vec![Some(2), None, Some(4)])),
        Arc::new(StringArray::from(vec![Some("two"), Some("three"), None])),
        Arc::new(Float64Array::from(vec![None, Some(3.5), Some(4.5)])),
    ]);
    assert_eq!(caller.update_prepared(handle, Some(many)).await.unwrap(), 3);
    assert_eq!(caller.text("SELECT extents FROM system.tables WHERE table_name = 't'").await.unwrap(), "2");
    let all = caller.text("SELECT * FROM t ORDER BY a").await.unwrap();
    assert_eq!(all, "1|one|1.5\n2|two|NULL\n4|NULL|4.5\nNULL|three|3.5");
    // A value that does not fit is refused, not cut.
    let large = values(vec![int(5_000_000_000), text("x"), Arc::new(Float64Array::from(vec![0.0]))]);
    assert!(caller.update_prepared(handle, Some(large)).await.is_err());
    let few = values(vec![int(1)]);
    let error = caller.update_prepared(handle, Some(few)).await.unwrap_err();
    assert!(error.message().contains("3 parameters, 1 were given"), "{error}");
    assert_eq!(caller.text("SELECT count(*) FROM t").await.unwrap(), "4");

    let query = caller.prepare("SELECT b FROM t WHERE a = $1 OR b = $2 ORDER BY b").await.unwrap();
    assert_eq!(schema_of(&query.dataset_schema).fields().len(), 1);
    assert_eq!(schema_of(&query.parameter_schema).fields().len(), 2);
    let handle = &query.prepared_statement_handle;
    let found = caller.query_prepared(handle, Some(values(vec![int(1), text("three")]))).await.unwrap();
    assert_eq!(found.text(), "one\nthree");
    // 1.5 is no integer: compared as it is.
    let half = values(vec![Arc::new(Float64Array::from(vec![1.5])), text("")]);
    assert_eq!(caller.query_prepared(handle, Some(half)).await.unwrap().text(), "");
    // Several rows of values: one answer after the other.
    let several = values(vec![
        Arc::new(Int64Array::from(vec![2, 1, 9])),
        Arc::new(StringArray::from(vec![None, Some("three"), None])),
    ]);
    assert_eq!(caller.query_prepared(handle, Some(several)).await.unwrap().text(), "two\none\nthree");
    let none = values(vec![int(1), text("")]).slice(0, 0);
    assert_eq!(caller.query_prepared(handle, Some(none)).await.unwrap().text(), "");
}

/// A decimal is stored with the digits that it has, one or many at a time, as it is or as text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decimals_are_stored_as_they_are() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    caller.update("CREATE TABLE d (n INT, x DECIMAL(20, 4))").await.unwrap();
    let exact = "1234567890123456.7891";
    let decimals = |values: Vec<i128>, scale: i8| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, scale).unwrap())
    };
    let insert = caller.prepare("INSERT INTO d VALUES (?, ?)").await.unwrap();
    let types = schema_of(&insert.parameter_schema);
    assert_eq!(types.field(1).data_type(), &DataType::Decimal128(20, 4));
    let handle = &insert.prepared_statement_handle;
    let value = 12_345_678_901_234_567_891_i128;
    for given in [
        values(vec![int(1), decimals(vec![value], 4)]),
        values(vec![int(2), decimals(vec![value * 100], 6)]),
        values(vec![int(3), text(exact)]),
        values(vec![Arc::new(Int64Array::from(vec![4, 5])), decimals(vec![value, value], 4)]),
        values(vec![Arc::new(Int64Array::from(vec![6, 7])), Arc::new(StringArray::from(vec![exact, exact]))]),
    ] {
        caller.update_prepared(handle, Some(given)).await.unwrap();
    }
    let half = caller.prepare(&format!("INSERT INTO d (x, n) VALUES ({exact}, ?)")).await.unwrap();
    caller.update_prepared(&half.prepared_statement_handle, Some(values(vec![int(8)]))).await.unwrap();
    let many = values(vec![Arc::new(Int64Array::from(vec![9, 10]))]);
    caller.update_prepared(&half.prepared_statement_handle, Some(many)).await.unwrap();
    let explained = caller.prepare("EXPLAIN ANALYZE INSERT INTO d VALUES (?, ?)").await.unwrap();
    let given = values(vec![int(11), decimals(vec![value], 4)]);
    caller.query_prepared(&explained.prepared_statement_handle, Some(given)).await.unwrap();
    assert_eq!(caller.text("SELECT x, count(*) FROM d GROUP BY x").await.unwrap(), format!("{exact}|11"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_parameters_keep_their_order() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    let marks: Vec<String> = (1..=25).map(|number| format!("${number}::bigint AS c{number}")).collect();
    let prepared = caller.prepare(&format!("SELECT {}", marks.join(", "))).await.unwrap();
    let names: Vec<String> =
        schema_of(&prepared.parameter_schema).fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, (1..=25).map(|number| format!("${number}")).collect::<Vec<_>>());
    let given = values((1..=25).map(int).collect());
    let found = caller.query_prepared(&prepared.prepared_statement_handle, Some(given)).await.unwrap();
    let expected: Vec<String> = (1..=25).map(|number| number.to_string()).collect();
    assert_eq!(found.text(), expected.join("|"));
    // Names instead of numbers.
    let prepared = caller.prepare("SELECT $low::bigint AS low, $high::bigint AS high").await.unwrap();
    let given = RecordBatch::try_from_iter([("low", int(1)), ("high", int(2))]).unwrap();
    let found = caller.query_prepared(&prepared.prepared_statement_handle, Some(given)).await.unwrap();
    assert_eq!(found.text(), "1|2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_of_every_type() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    let prepared = caller.prepare("SELECT ? AS x").await.unwrap();
    let all: Vec<(ArrayRef, &str)> = vec![
        (Arc::new(BooleanArray::from(vec![true])), "true"),
        (Arc::new(Int8Array::from(vec![-8])), "-8"),
        (Arc::new(Int32Array::from(vec![32])), "32"),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), "18446744073709551615"),
        (Arc::new(Float64Array::from(vec![0.1])), "0.1"),
        (Arc::new(StringArray::from(vec!["it's ü"])), "it's ü"),
        (
            Arc::new(StringViewArray::from(vec!["a text that is longer than twelve bytes"])),
            "a text that is longer than twelve bytes",
        ),
        (Arc::new(BinaryArray::from(vec![&b"\x00\xff"[..]])), "00ff"),
        (Arc::new(Date32Array::from(vec![20_000])), "2024-10-04"),
        (Arc::new(TimestampMicrosecondArray::from(vec![1_700_000_000_000_001])), "2023-11-14T22:13:20.000001"),
        (Arc::new(Decimal128Array::from(vec![12_345]).with_precision_and_scale(10, 2).unwrap()), "123.45"),
        (Arc::new(Int64Array::from(vec![None])), "NULL"),
        (Arc::new(NullArray::new(1)), "NULL"),
    ];
    for (value, expected) in all {
        let kind = value.data_type().clone();
        let found = caller.query_prepared(&prepared.prepared_statement_handle, Some(values(vec![value]))).await;
        assert_eq!(found.unwrap_or_else(|error| panic!("{kind}: {error}")).text(), expected, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_are_planned_anew_and_closed() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    caller.update("CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    let count = caller.prepare("SELECT count(*) FROM t").await.unwrap().prepared_statement_handle;
    assert_eq!(caller.query_prepared(&count, None).await.unwrap().text(), "1");
    caller.update("INSERT INTO t VALUES (2)").await.unwrap();
    assert_eq!(caller.query_prepared(&count, None).await.unwrap().text(), "2");
    caller.close(&count).await.unwrap();
    caller.close(&count).await.unwrap();
    assert_eq!(caller.query_prepared(&count, None).await.unwrap_err().code(), Code::NotFound);
    let wrong = caller.prepare("SELECT * FROM nowhere").await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
    for sql in ["SELECT ? + $1", "INSERT INTO t VALUES ($4000000000)"] {
        assert_eq!(caller.prepare(sql).await.unwrap_err().code(), Code::InvalidArgument, "{sql}");
    }
    let ddl = caller.prepare("CREATE TABLE u (a INT)").await.unwrap();
    assert!(ddl.dataset_schema.is_empty() && ddl.parameter_schema.is_empty());
    assert_eq!(caller.update_prepared(&ddl.prepared_statement_handle, None).await.unwrap(), 0);
    assert_eq!(caller.text("SELECT count(*) FROM u").await.unwrap(), "0");
}

/// Several rows of values are inserted in one transaction, or not at all; what cannot be is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_are_whole() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    caller.update("CREATE TABLE t (a BIGINT)").await.unwrap();
    let divided = caller.prepare("INSERT INTO t SELECT 100 / ?").await.unwrap().prepared_statement_handle;
    let numbers = |numbers: Vec<i64>| values(vec![Arc::new(Int64Array::from(numbers))]);
    assert_eq!(caller.update_prepared(&divided, Some(numbers(vec![1, 2, 4]))).await.unwrap(), 3);
    assert_eq!(caller.text("SELECT a FROM t ORDER BY a").await.unwrap(), "25\n50\n100");
    let error = caller.update_prepared(&divided, Some(numbers(vec![5, 0, 10]))).await.unwrap_err();
    assert!(error.message().to_lowercase().contains("zero"), "{error}");
    assert_eq!(caller.text("SELECT count(*) FROM t").await.unwrap(), "3", "a part of a batch was inserted");
    // All queries of a batch read the same snapshot.
    let doubled = caller.prepare("INSERT INTO t SELECT a + ? FROM t").await.unwrap().prepared_statement_handle;
    assert_eq!(caller.update_prepared(&doubled, Some(numbers(vec![1, 2]))).await.unwrap(), 6);
    let error = caller.update_prepared(&divided, Some(numbers(vec![1; 101]))).await.unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented, "{error}");
    assert_eq!(caller.text("SELECT count(*) FROM t").await.unwrap(), "9");
    let file = served.db.path("out.csv").display().to_string();
    let copy = caller.prepare(&format!("COPY (SELECT a FROM t WHERE a > ?) TO '{file}'")).await.unwrap();
    let copy = copy.prepared_statement_handle;
    let error = caller.update_prepared(&copy, Some(numbers(vec![1, 2]))).await.unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented, "{error}");
    assert!(!served.db.path("out.csv").exists());
    caller.update_prepared(&copy, Some(numbers(vec![50]))).await.unwrap();
    assert!(served.db.path("out.csv").exists());
}
