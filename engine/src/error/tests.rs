//! Real errors of DataFusion, and what a user is told of them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{CsvReadOptions, JsonReadOptions, ParquetReadOptions, SessionConfig, SessionContext};

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use nectarine_catalog::CatalogError;
use nectarine_planner::PlannerError;

use super::*;

fn context() -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(1);
    config.options_mut().sql_parser.collect_spans = true;
    SessionContext::new_with_config(config)
}

async fn with_tables() -> SessionContext {
    let context = context();
    for sql in [
        "CREATE TABLE clicks (user_id BIGINT, url VARCHAR, \"Price\" DOUBLE) AS VALUES (1, 'a', 2.5), (2, 'b', 0.0)",
        "CREATE TABLE users (user_id BIGINT) AS VALUES (1)",
    ] {
        context.sql(sql).await.expect(sql).collect().await.expect(sql);
    }
    context
}

fn names(context: &SessionContext) -> NameHints {
    let state = context.state();
    let functions = state.scalar_functions().keys().chain(state.window_functions().keys());
    NameHints {
        tables: ["clicks", "users"].map(|table| ("public".to_owned(), table.to_owned())).to_vec(),
        functions: functions.cloned().collect(),
        sees_files: false,
    }
}

async fn run(context: &SessionContext, sql: &str) -> EngineError {
    let error = match context.sql(sql).await {
        Ok(frame) => frame.collect().await.expect_err(sql),
        Err(error) => error,
    };
    EngineError::from(error).locate(sql, &names(context))
}

#[tokio::test]
async fn names_that_are_not_there() {
    let context = with_tables().await;
    for (sql, message, hint, at) in [
        ("SELECT usr_id FROM clicks", "column \"usr_id\" does not exist", "did you mean \"user_id\"?", "usr_id"),
        (
            "SELECT 'é',\n c.usr_id FROM clicks AS c",
            "column \"c.usr_id\" does not exist",
            "did you mean \"user_id\"?",
            "c.usr_id",
        ),
        (
            "SELECT price FROM clicks",
            "column \"price\" does not exist",
            "did you mean \"Price\"? names with capital letters need double quotes",
            "price",
        ),
        (
            "SELECT 1 FROM clicks WHERE usr_id = 1",
            "column \"usr_id\" does not exist",
            "did you mean \"user_id\"?",
            "usr_id",
        ),
        (
            "SELECT 1 FROM clicks ORDER BY usr_id",
            "column \"usr_id\" does not exist",
            "did you mean \"user_id\"?",
            "usr_id",
        ),
        (
            "SELECT user_id FROM clicks, users",
            "column \"user_id\" is ambiguous",
            "several tables have it: put a table before it, as in t.user_id",
            "user_id",
        ),
        ("SELECT * FROM clikcs", "table \"clikcs\" does not exist", "did you mean \"clicks\"?", "clikcs"),
        (
            "SELECT * FROM users JOIN public.clikcs ON true",
            "table \"clikcs\" does not exist",
            "did you mean \"clicks\"?",
            "public.clikcs",
        ),
        (
            "SELECT row_number() FROM clicks",
            "function \"row_number\" needs an OVER clause",
            "write row_number(..) OVER (..)",
            "row_number",
        ),
        (
            "SELECT * FROM elsewhere.clicks",
            "table \"clicks\" does not exist",
            "did you mean \"public.clicks\"?",
            "elsewhere.clicks",
        ),
        ("SELECT abss(user_id) FROM clicks", "function \"abss\" does not exist", "did you mean \"abs\"?", "abss"),
    ] {
        let error = run(&context, sql).await;
        assert_eq!(error.message(), message, "{sql}");
        assert_eq!(error.hint(), Some(hint), "{sql}");
        assert_eq!(error.kind(), ErrorKind::Sql, "{sql}");
        let position = error.position().unwrap_or_else(|| panic!("{sql}: no position: {error:?}"));
        assert!(sql[position..].starts_with(at), "{sql}: {}", &sql[position..]);
    }
    let error = run(&context, "SELECT * FROM nothing_like_it").await;
    assert_eq!(error.hint(), None);
    let error = run(&context, "SELECT nothing_like_it FROM clicks").await;
    assert_eq!(error.detail(), Some("there are: clicks.user_id, clicks.url, clicks.Price"));
}

#[tokio::test]
async fn statements_that_make_no_sense() {
    let context = with_tables().await;
    for (sql, kind, message, at) in [
        ("SELECT url + user_id FROM clicks", ErrorKind::Sql, "expressions have incompatible types", "url"),
        (
            "SELECT url, count(*) FROM clicks",
            ErrorKind::Sql,
            "'clicks.url' must appear in GROUP BY clause because it's not an aggregate expression",
            "url",
        ),
        ("SELECT 1 UNION SELECT 1, 2", ErrorKind::Sql, "UNION queries have different number of columns", "SELECT 1"),
        (
            "SELECT 1 FROM clicks FETCH FIRST 1 ROWS ONLY",
            ErrorKind::Unsupported,
            "FETCH clause is not supported yet",
            "",
        ),
        ("SELECT sum(url) FROM clicks", ErrorKind::Sql, "function 'sum' failed to match any signature", "sum"),
        ("SELECT 1, power(2)", ErrorKind::Sql, "function 'power' expects 2 arguments but received 1", "power"),
        ("SELECT substr(url) FROM clicks", ErrorKind::Sql, "substring without for/from is not valid", ""),
        (
            "SELECT (SELECT user_id, url FROM clicks)",
            ErrorKind::Sql,
            "too many columns! The subquery should only return one column",
            "",
        ),
    ] {
        let error = run(&context, sql).await;
        assert_eq!(error.kind(), kind, "{sql}: {error:?}");
        assert_eq!(error.message(), message, "{sql}");
        if !at.is_empty() {
            let position = error.position().unwrap_or_else(|| panic!("{sql}: no position: {error:?}"));
            assert!(sql[position..].starts_with(at), "{sql}: {}", &sql[position..]);
        }
        no_boilerplate(&error);
    }
}

/// Expressions have other uses for AS than to name them.
#[tokio::test]
async fn names_that_are_there_twice() {
    let context = with_tables().await;
    for (sql, message) in [
        ("SELECT user_id AS a, url AS a FROM clicks", "column \"a\" is there twice"),
        ("SELECT user_id::text AS a, url AS a FROM clicks", "column \"a\" is there twice"),
        ("SELECT user_id, user_id FROM clicks", "column \"user_id\" is there twice"),
        ("SELECT 1::text, 1::varchar", "columns 1 and 2 have the same name"),
        ("SELECT 0 AS z, 1, url, 1 FROM clicks", "columns 2 and 4 have the same name"),
    ] {
        let error = run(&context, sql).await;
        assert_eq!((error.kind(), error.message()), (ErrorKind::Sql, message), "{sql}");
        assert_eq!(error.hint(), Some("give one of them another name with AS"), "{sql}");
    }
    let error = run(&context, "SELECT 1::text, 1::varchar").await;
    assert_eq!(error.detail(), Some("both are CAST(Int64(1) AS Utf8View)"));
}

#[tokio::test]
async fn values_that_do_not_fit() {
    let context = with_tables().await;
    for (sql, message, hint) in [
        (
            "SELECT user_id / (user_id - 1) FROM clicks",
            "division by zero",
            Some("divide by nullif(x, 0) to get NULL instead"),
        ),
        (
            "SELECT CAST(url AS BIGINT) FROM clicks",
            "cannot cast string 'a' to value of Int64 type",
            Some("use TRY_CAST to get NULL for values that do not fit"),
        ),
    ] {
        let error = run(&context, sql).await;
        assert_eq!(error.kind(), ErrorKind::Execution, "{sql}");
        assert_eq!(error.message(), message, "{sql}");
        assert_eq!(error.hint(), hint, "{sql}");
    }
}

#[tokio::test]
async fn memory_that_is_not_there() {
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(20_000)))
        .build_arc()
        .expect("a runtime");
    let context = SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(1), runtime);
    let error = run(&context, "SELECT value % 99999 AS g, count(*) FROM generate_series(1, 200000) GROUP BY g").await;
    assert_eq!(error.kind(), ErrorKind::Resources, "{error:?}");
    assert_eq!(error.message(), "not enough memory to finish the statement");
    assert!(error.detail().is_some_and(|detail| detail.contains("failed to allocate additional")), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("memory_limit")));
    no_boilerplate(&error);
}

#[tokio::test]
async fn files_that_are_damaged() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = context();
    let parquet = folder.path().join("good.parquet");
    write_parquet(&context, &parquet).await;
    let bytes = fs::read(&parquet).expect("bytes");
    let cut = folder.path().join("cut.parquet");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    let error = context.read_parquet(path(&cut), ParquetReadOptions::default()).await.expect_err("truncated");
    let error = EngineError::from(error);
    assert_eq!(error.kind(), ErrorKind::Data, "{error:?}");
    assert!(error.message().starts_with("not a readable parquet file: "), "{error:?}");
    no_boilerplate(&error);

    let ragged = folder.path().join("ragged.csv");
    fs::write(&ragged, "a,b\n1,2\n3\n").expect("written");
    let frame = context.read_csv(path(&ragged), CsvReadOptions::new().schema_infer_max_records(1)).await;
    let error = match frame {
        Ok(frame) => frame.collect().await.expect_err("ragged"),
        Err(error) => error,
    };
    let error = EngineError::from(error);
    assert_eq!(error.kind(), ErrorKind::Data, "{error:?}");
    assert!(error.message().contains("incorrect number of fields"), "{error:?}");

    let json = folder.path().join("bad.json");
    fs::write(&json, "{\"a\": 1}\n{\"a\": oops}\n").expect("written");
    let frame = context.read_json(path(&json), JsonReadOptions::default().file_extension(".json")).await;
    let error = match frame {
        Ok(frame) => frame.collect().await.expect_err("bad"),
        Err(error) => error,
    };
    let error = EngineError::from(error);
    assert_eq!(error.kind(), ErrorKind::Data, "{error:?}");
    no_boilerplate(&error);
}

#[test]
fn a_file_is_named_with_what_is_wrong_in_it() {
    let inner = DataFusionError::from(ArrowError::ParseError(
        "Error while parsing value 'x' as type 'Int64' for column 0 at line 1.".to_owned(),
    ));
    let error =
        CatalogError::Location { attempted: "read", location: "data/x.csv".to_owned(), source: Arc::new(inner) };
    let outer = DataFusionError::Context(
        "a rule".to_owned(),
        Box::new(DataFusionError::Shared(Arc::new(DataFusionError::External(Box::new(error))))),
    );
    let error = EngineError::from(outer);
    assert_eq!(error.kind(), ErrorKind::Data);
    assert_eq!(
        error.message(),
        "cannot read \"data/x.csv\": error while parsing value 'x' as type 'Int64' for column 0 at line 1"
    );

    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let error = nectarine_executor::ExecutorError::Write {
        attempted: "write",
        location: "tables/1.parquet".to_owned(),
        source: Arc::new(full),
    };
    let error = EngineError::from(DataFusionError::from(error));
    assert_eq!(error.kind(), ErrorKind::Resources);
    assert_eq!(error.message(), "cannot write \"tables/1.parquet\": no storage space");
}

#[test]
fn only_our_own_contexts_are_told() {
    let missing = || DataFusionError::Plan("table 'nectarine.public.t' not found".to_owned());
    let error = EngineError::from(missing().context("view \"b\"").context("type_coercion").context("view \"a\""));
    assert_eq!((error.kind(), error.message()), (ErrorKind::Sql, "view \"b\": table \"t\" does not exist"));

    let bad = || DataFusionError::Execution("odd bytes".to_owned());
    let error = EngineError::from(bad().context("cannot infer the columns of \"/d/\""));
    assert_eq!((error.kind(), error.message()), (ErrorKind::Data, "cannot infer the columns of \"/d/\": odd bytes"));
    let file =
        |cause| CatalogError::Location { attempted: "read", location: "/d/1.csv".to_owned(), source: Arc::new(cause) };
    let error = DataFusionError::External(Box::new(file(bad()))).context("cannot infer the columns of \"/d/\"");
    assert_eq!(EngineError::from(error).message(), "cannot read \"/d/1.csv\": odd bytes");

    let error =
        EngineError::from(DataFusionError::from(ArrowError::DivideByZero).context("while reading \"/d/1.csv\""));
    assert_eq!((error.kind(), error.message()), (ErrorKind::Execution, "division by zero"));
    assert_eq!(error.detail(), Some("while reading \"/d/1.csv\""));
}

#[test]
fn files_that_change_are_read_again() {
    let error = EngineError::from(CatalogError::Changed { location: "/d/1.csv".to_owned() });
    assert_eq!((error.kind(), error.hint()), (ErrorKind::Data, Some("run the statement again")));
    let source = "Out of range of file /d/1.parquet, expected: 10, actual: 5".into();
    let short = object_store::Error::Generic { store: "LocalFileSystem", source };
    let location = "/d/1.parquet".to_owned();
    let error = CatalogError::Location { attempted: "read", location, source: Arc::new(short) };
    let error = EngineError::from(DataFusionError::External(Box::new(error)));
    assert_eq!(error.message(), "file \"/d/1.parquet\" changed while it was being read");
    assert_eq!((error.kind(), error.hint()), (ErrorKind::Data, Some("run the statement again")));
}

#[tokio::test]
async fn our_own_errors_pass_through_datafusion() {
    let mine = EngineError::new(ErrorKind::Cancelled, "statement was cancelled").with_hint("again");
    let wrapped = ArrowError::ExternalError(Box::new(DataFusionError::External(Box::new(mine))));
    let error = EngineError::from(DataFusionError::from(wrapped));
    assert_eq!(
        (error.kind(), error.message(), error.hint()),
        (ErrorKind::Cancelled, "statement was cancelled", Some("again"))
    );

    let refused = PlannerError::Refused { clause: "TABLESAMPLE".to_owned(), position: Some(16), hint: None };
    let error = EngineError::from(DataFusionError::External(Box::new(refused)));
    assert_eq!(
        (error.kind(), error.message(), error.position()),
        (ErrorKind::Unsupported, "TABLESAMPLE is not supported", Some(16))
    );

    let panicked = SpawnedTask::spawn(async { panic!("secret") }).join().await.expect_err("a panic");
    let error = EngineError::from(DataFusionError::ExecutionJoin(Box::new(panicked)));
    assert_eq!(error.kind(), ErrorKind::Internal);
    no_boilerplate(&error);
    let internal = EngineError::from(DataFusionError::Internal("Broken promise.".to_owned()));
    assert_eq!(internal.message(), "internal error: broken promise");
}

fn no_boilerplate(error: &EngineError) {
    let shown = format!("{} {:?} {:?}", error.message(), error.detail(), error.hint());
    for phrase in ["DataFusion error", "bug in DataFusion", "backtrace", "Error during planning", "External error"] {
        assert!(!shown.contains(phrase), "{shown}");
    }
    assert!(!error.message().ends_with('.') && !error.message().contains('\n'), "{shown}");
}

async fn write_parquet(context: &SessionContext, file: &Path) {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    let batch = RecordBatch::try_from_iter([("a", column)]).expect("a batch");
    let frame = context.read_batch(batch).expect("a frame");
    frame
        .write_parquet(
            path(file),
            datafusion::dataframe::DataFrameWriteOptions::new().with_single_file_output(true),
            None,
        )
        .await
        .expect("written");
}

fn path(file: &Path) -> &str {
    file.to_str().expect("UTF-8")
}
