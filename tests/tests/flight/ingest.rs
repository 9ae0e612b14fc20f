//! Rows of clients into tables.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray, StringViewArray};
use arrow_flight::sql::{CommandStatementIngest, TableDefinitionOptions, TableExistsOption, TableNotExistOption};
use nectarine_tests::flight::{Caller, Served};
use prost::Message;
use tonic::{Code, Status};

fn rows(range: std::ops::Range<i64>) -> RecordBatch {
    let texts: Vec<Option<String>> = range.clone().map(|n| (n % 3 > 0).then(|| format!("row {n}"))).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("N", Arc::new(Int64Array::from_iter_values(range)) as _, false),
        ("text", Arc::new(StringArray::from(texts)) as _, true),
    ])
    .expect("an answer")
}

async fn ingest(
    caller: &mut Caller,
    table: &str,
    if_missing: TableNotExistOption,
    if_exists: TableExistsOption,
    batches: Vec<RecordBatch>,
) -> Result<i64, Status> {
    let command = CommandStatementIngest {
        table_definition_options: Some(TableDefinitionOptions {
            if_not_exist: if_missing as i32,
            if_exists: if_exists as i32,
        }),
        table: table.to_owned(),
        ..CommandStatementIngest::default()
    };
    let results = caller.put(&command, Some((batches[0].schema(), batches))).await?;
    Ok(arrow_flight::sql::DoPutUpdateResult::decode(results[0].clone()).expect("an answer").record_count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_made_appended_to_and_replaced() {
    use {TableExistsOption as Exists, TableNotExistOption as Missing};
    let served = Served::open().await;
    let mut caller = served.caller().await;
    let missing = ingest(&mut caller, "My Table", Missing::Fail, Exists::Append, vec![rows(0..1)]).await;
    assert_eq!(missing.unwrap_err().code(), Code::NotFound);
    let batches = || (0..20).map(|n| rows(n * 1000..(n + 1) * 1000)).collect::<Vec<_>>();
    let made = ingest(&mut caller, "My Table", Missing::Create, Exists::Fail, batches()).await.unwrap();
    assert_eq!(made, 20_000);
    let again = ingest(&mut caller, "My Table", Missing::Create, Exists::Fail, batches()).await;
    assert_eq!(again.unwrap_err().code(), Code::AlreadyExists);
    let more = ingest(&mut caller, "My Table", Missing::Fail, Exists::Append, vec![rows(0..5)]).await.unwrap();
    assert_eq!(more, 5);
    let sum = "SELECT count(*), sum(\"N\"), count(text) FROM \"My Table\"";
    let (mut n, mut total) = (20_000 + 5, (0..20_000).sum::<i64>() + 10);
    let texts = (0..20_000).filter(|n| n % 3 > 0).count() + 3;
    assert_eq!(caller.text(sum).await.unwrap(), format!("{n}|{total}|{texts}"));
    let replaced = ingest(&mut caller, "My Table", Missing::Create, Exists::Replace, vec![rows(0..3)]).await.unwrap();
    (n, total) = (3, 3);
    assert_eq!(replaced, 3);
    assert_eq!(caller.text(sum).await.unwrap(), format!("{n}|{total}|2"));
    // Columns go by name, whatever their order and type.
    let turned = RecordBatch::try_from_iter_with_nullable([
        ("text", Arc::new(StringViewArray::from(vec![Some("turned around, and a view")])) as _, true),
        ("N", Arc::new(Int64Array::from(vec![100])) as _, false),
    ])
    .unwrap();
    ingest(&mut caller, "My Table", Missing::Fail, Exists::Append, vec![turned]).await.unwrap();
    assert_eq!(
        caller.text("SELECT text FROM \"My Table\" WHERE \"N\" = 100").await.unwrap(),
        "turned around, and a view"
    );
}

/// Wrong rows change nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_rows_leave_no_trace() {
    use {TableExistsOption as Exists, TableNotExistOption as Missing};
    let served = Served::open().await;
    let mut caller = served.caller().await;
    caller.update("CREATE TABLE t (\"N\" BIGINT NOT NULL, text VARCHAR)").await.unwrap();
    let other = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1])) as _)]).unwrap();
    let error = ingest(&mut caller, "t", Missing::Fail, Exists::Append, vec![other]).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    // A stream that breaks off in the middle of a message.
    let command = CommandStatementIngest {
        table_definition_options: Some(TableDefinitionOptions {
            if_not_exist: Missing::Fail as i32,
            if_exists: Exists::Append as i32,
        }),
        table: "t".to_owned(),
        ..CommandStatementIngest::default()
    };
    let good = rows(0..10);
    let mut messages = super::hostile::messages(&command, &good).await;
    let last = messages.last_mut().unwrap();
    last.data_body = last.data_body.slice(0..last.data_body.len() / 2);
    let request = caller.request(futures::stream::iter(messages));
    assert!(caller.calls.do_put(request).await.is_err());
    assert_eq!(caller.text("SELECT count(*) FROM t").await.unwrap(), "0");
    assert_eq!(ingest(&mut caller, "t", Missing::Fail, Exists::Append, vec![good]).await.unwrap(), 10);
}
