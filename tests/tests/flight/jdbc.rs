//! The calls of the Flight SQL JDBC driver, in its order: it prepares everything, asks for the kind of a statement by its columns,
//! and reads everything there is to know about the server at once.

use std::sync::Arc;

use arrow::array::{Int32Array, RecordBatch, StringArray};
use arrow::datatypes::Schema;
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo,
    CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, DoPutUpdateResult,
};
use nectarine_tests::flight::{Caller, Served, schema_of};
use prost::Message;
use prost::bytes::Bytes;

/// `Statement.execute`, and `PreparedStatement` without parameters.
async fn execute(caller: &mut Caller, sql: &str) -> String {
    let prepared = caller.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let handle = prepared.prepared_statement_handle.clone();
    let answer = match schema_of(&prepared.dataset_schema).fields().is_empty() {
        true => {
            // It always sends its parameters, here a row of no columns.
            let empty = Arc::new(Schema::empty());
            let command = CommandPreparedStatementUpdate { prepared_statement_handle: handle.clone() };
            let results = caller.put(&command, Some((empty, vec![]))).await.expect("an answer");
            let update: DoPutUpdateResult = Message::decode(results[0].clone()).expect("an answer");
            format!("{} rows", update.record_count)
        }
        false => {
            let command = CommandPreparedStatementQuery { prepared_statement_handle: handle.clone() };
            let info = caller.info(&command).await.expect("an answer");
            caller.fetch(&info).await.expect("an answer").text()
        }
    };
    caller.close(&handle).await.expect("an answer");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_from_its_start_to_its_end() {
    let served = Served::with_users().await;
    let (user, password) = served.server.first_login().expect("a new home gets a user");
    // DriverManager.getConnection("..?user=&password=&catalog=").
    let mut caller = served.user(user, password).await;
    // The option catalog = 'nectarine', in the bytes of its message.
    let option = [&b"\x0a\x16\x0a\x07catalog\x12\x0b\x0a\x09"[..], b"nectarine"].concat();
    let outcome = caller.action("SetSessionOptions", option).await.unwrap();
    assert_eq!(outcome, [Bytes::new()], "nothing to complain about");
    // DatabaseMetaData.
    let info = caller.info(&CommandGetSqlInfo { info: vec![] }).await.unwrap();
    let all = caller.fetch(&info).await.unwrap();
    assert!(all.batches.iter().map(RecordBatch::num_rows).sum::<usize>() > 40);
    let info = caller.info(&CommandGetTableTypes {}).await.unwrap();
    assert!(caller.fetch(&info).await.unwrap().text().contains("TABLE"));
    let info = caller.info(&CommandGetCatalogs {}).await.unwrap();
    assert_eq!(caller.fetch(&info).await.unwrap().text(), "nectarine");
    // Statement.execute(..), Statement.executeUpdate(..), Statement.executeQuery(..).
    assert_eq!(execute(&mut caller, "CREATE TABLE t (a INT, b VARCHAR)").await, "0 rows");
    assert_eq!(execute(&mut caller, "INSERT INTO t VALUES (1, 'one'), (2, 'two')").await, "2 rows");
    assert_eq!(execute(&mut caller, "SELECT * FROM t ORDER BY a").await, "1|one\n2|two");
    assert_eq!(execute(&mut caller, "SET nectarine.reuse = 'off'").await, "0 rows");
    assert_eq!(execute(&mut caller, "SHOW nectarine.reuse").await, "nectarine.reuse|off");
    assert!(execute(&mut caller, "EXPLAIN REUSE SELECT * FROM t").await.contains("t"));
    // PreparedStatement.addBatch, executeBatch.
    let prepared = caller.prepare("INSERT INTO t VALUES (?, ?)").await.unwrap();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("0", Arc::new(Int32Array::from(vec![3, 4])) as _, true),
        ("1", Arc::new(StringArray::from(vec![Some("three"), None])) as _, true),
    ])
    .unwrap();
    assert_eq!(caller.update_prepared(&prepared.prepared_statement_handle, Some(batch)).await.unwrap(), 2);
    caller.close(&prepared.prepared_statement_handle).await.unwrap();
    // getColumns, getPrimaryKeys, getImportedKeys, getTypeInfo, getSchemas.
    let tables = CommandGetTables {
        catalog: None,
        db_schema_filter_pattern: None,
        table_name_filter_pattern: Some("t".to_owned()),
        table_types: vec![],
        include_schema: true,
    };
    let info = caller.info(&tables).await.unwrap();
    let found = caller.fetch(&info).await.unwrap();
    assert_eq!(found.batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    let table = || "t".to_owned();
    let info = caller.info(&CommandGetPrimaryKeys { catalog: None, db_schema: None, table: table() }).await.unwrap();
    assert_eq!(caller.fetch(&info).await.unwrap().text(), "");
    let info = caller.info(&CommandGetImportedKeys { catalog: None, db_schema: None, table: table() }).await.unwrap();
    assert_eq!(caller.fetch(&info).await.unwrap().text(), "");
    let info = caller.info(&CommandGetXdbcTypeInfo { data_type: None }).await.unwrap();
    assert!(caller.fetch(&info).await.unwrap().text().contains("VARCHAR"));
    let info = caller.info(&CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: None }).await.unwrap();
    assert!(caller.fetch(&info).await.unwrap().text().contains("nectarine|public"));
    // Connection.close.
    caller.action("CloseSession", vec![]).await.unwrap();
}
