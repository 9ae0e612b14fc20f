//! What there is, as drivers ask for it.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Schema, UInt32Type};
use arrow_flight::IpcMessage;
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetSqlInfo,
    CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo, ProstMessageExt, SqlInfo,
};
use nectarine_tests::flight::{Caller, Served};
use prost::bytes::Bytes;

async fn ask(caller: &mut Caller, command: &impl ProstMessageExt) -> String {
    let info = caller.info(command).await.expect("an answer");
    caller.fetch(&info).await.expect("an answer").text()
}

fn tables() -> CommandGetTables {
    CommandGetTables {
        catalog: None,
        db_schema_filter_pattern: None,
        table_name_filter_pattern: None,
        table_types: vec![],
        include_schema: false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn catalogs_schemas_and_tables() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    for sql in [
        "CREATE SCHEMA zoo",
        "CREATE TABLE zoo.ape (a INT NOT NULL, b VARCHAR)",
        "CREATE TABLE bear (a INT)",
        "CREATE VIEW cat AS SELECT 1 AS a",
    ] {
        caller.update(sql).await.unwrap();
    }
    assert_eq!(ask(&mut caller, &CommandGetCatalogs {}).await, "nectarine");
    let schemas = |catalog: Option<&str>, pattern: Option<&str>| CommandGetDbSchemas {
        catalog: catalog.map(str::to_owned),
        db_schema_filter_pattern: pattern.map(str::to_owned),
    };
    let all = "nectarine|information_schema\nnectarine|public\nnectarine|system\nnectarine|zoo";
    assert_eq!(ask(&mut caller, &schemas(None, None)).await, all);
    assert_eq!(ask(&mut caller, &schemas(Some("nectarine"), Some("z%"))).await, "nectarine|zoo");
    assert_eq!(ask(&mut caller, &schemas(Some("elsewhere"), None)).await, "");
    let found =
        ask(&mut caller, &CommandGetTables { db_schema_filter_pattern: Some("public".into()), ..tables() }).await;
    assert_eq!(found, "nectarine|public|bear|TABLE\nnectarine|public|cat|VIEW");
    let found = ask(&mut caller, &CommandGetTables { table_types: vec!["VIEW".into()], ..tables() }).await;
    assert_eq!(found, "nectarine|public|cat|VIEW");
    assert!(ask(&mut caller, &tables()).await.contains("nectarine|system|queries|SYSTEM TABLE"));
    assert_eq!(ask(&mut caller, &CommandGetTables { catalog: Some("elsewhere".into()), ..tables() }).await, "");
    assert_eq!(ask(&mut caller, &CommandGetTableTypes {}).await, "SYSTEM TABLE\nTABLE\nVIEW");
    // Columns as they will be sent.
    let wanted = CommandGetTables { include_schema: true, table_name_filter_pattern: Some("ape".into()), ..tables() };
    let info = caller.info(&wanted).await.unwrap();
    let found = caller.fetch(&info).await.unwrap();
    let bytes = found.batches[0].column(4).as_binary::<i32>().value(0).to_vec();
    let columns = Schema::try_from(IpcMessage(Bytes::from(bytes))).unwrap();
    let sent = caller.query("SELECT * FROM zoo.ape").await.unwrap().schema;
    assert_eq!(columns.fields(), sent.fields());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_can_do() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    let info = caller.info(&CommandGetSqlInfo { info: vec![] }).await.unwrap();
    let all = caller.fetch(&info).await.unwrap();
    let names: Vec<u32> =
        all.batches.iter().flat_map(|batch| batch.column(0).as_primitive::<UInt32Type>().values().to_vec()).collect();
    for wanted in [SqlInfo::FlightSqlServerName, SqlInfo::FlightSqlServerTransaction, SqlInfo::SqlIdentifierQuoteChar] {
        assert!(names.contains(&(wanted as u32)), "{wanted:?}");
    }
    let one = CommandGetSqlInfo { info: vec![SqlInfo::FlightSqlServerName as u32] };
    assert!(ask(&mut caller, &one).await.contains("Nectarine"));
    let info = caller.info(&CommandGetXdbcTypeInfo { data_type: None }).await.unwrap();
    let types = caller.fetch(&info).await.unwrap();
    assert!(types.batches.iter().map(RecordBatch::num_rows).sum::<usize>() > 10);
    assert!(types.batches[0].column(0).len() > 10);
    let ints = CommandGetXdbcTypeInfo { data_type: Some(4) };
    assert!(ask(&mut caller, &ints).await.starts_with("INT|"));
    let keys = CommandGetExportedKeys { catalog: None, db_schema: None, table: "t".into() };
    assert_eq!(ask(&mut caller, &keys).await, "");
    let reference = CommandGetCrossReference {
        pk_catalog: None,
        pk_db_schema: None,
        pk_table: "t".into(),
        fk_catalog: None,
        fk_db_schema: None,
        fk_table: "u".into(),
    };
    assert_eq!(ask(&mut caller, &reference).await, "");
}
