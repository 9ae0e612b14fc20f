//! Each kind of reason why something can not be recognised.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use nectarine_engine::Engine;
use nectarine_tests::db::rows_text;
use nectarine_tests::files;

use super::{explain, run, table};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_says_why() {
    let db = table().await;
    for (sql, because) in [
        ("SELECT n, random() FROM t", "random() gives another value each time"),
        ("SELECT n FROM t WHERE tests_hook(n) > 5", "tests_hook() gives another value each time"),
        (
            "SELECT n, arrow_metadata(n) FROM t",
            "arrow_metadata() depends on names of columns, which are not part of a program",
        ),
        (
            "WITH RECURSIVE r AS (SELECT n FROM t WHERE n = 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
            "WorkTableExec is not known to give the same rows again",
        ),
        (
            "SELECT count(*) FROM t JOIN system.settings s ON s.name = arrow_cast(t.n, 'Utf8')",
            "DataSourceExec is not known to give the same rows again",
        ),
        ("SELECT n, sum(n) FILTER (WHERE n > 1) OVER (ORDER BY n) FROM t", "a window function with a FILTER"),
    ] {
        let told = explain(&db, sql).await;
        assert!(told.contains("|uncacheable: ") && told.contains(because), "{sql}\n{told}");
        let lookups = run(&db, sql).await;
        assert_eq!(lookups.matches("miss|uncacheable|").count(), 1, "told once: {sql}\n{lookups}");
        assert!(lookups.contains(because), "{sql}\n{lookups}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_that_are_not_known() {
    let db = table().await;
    db.ok("CREATE TABLE lists AS SELECT [n, n + 1] AS items FROM t WHERE n < 5").await;
    db.ok("SET datafusion.sql_parser.dialect = 'duckdb'").await;
    let sql = "SELECT array_transform(items, x -> x + 1) FROM lists";
    let because = "the expression array_transform(items@0, (x) -> x@1 + 1) is not known to give the same value again";
    assert!(explain(&db, sql).await.contains(&format!("|uncacheable: {because}|")));
    assert_eq!(run(&db, sql).await, format!("miss|uncacheable|{because}|ProjectionExec"));
}

/// A function that came from code is what its code does.
#[tokio::test(flavor = "multi_thread")]
async fn functions_from_code() {
    let db = table().await;
    let engine = Engine::builder()
        .home(db.folder().join("other"))
        .extend(|mut builder| {
            let body = Arc::new(|_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(1)))));
            let mine = create_udf("mine", vec![DataType::Int64], DataType::Int64, Volatility::Immutable, body);
            builder.scalar_functions().get_or_insert_default().push(Arc::new(mine));
            builder
        })
        .open();
    let engine = Box::pin(engine).await.expect("a new home");
    files::numbers(&db.path("d/a.parquet"), 0..10);
    let sql = format!("SELECT mine(n) FROM '{}'", db.path("d/a.parquet").display());
    for text in [format!("EXPLAIN REUSE {sql}"), sql, "SELECT outcome, reason, detail FROM system.lookups".to_owned()] {
        let answer = engine.session().execute(&text).await.expect("an answer").collect().await.expect("rows");
        if !text.starts_with("SELECT mine") {
            assert!(rows_text(&answer).contains("mine() is not a built-in function"), "{}", rows_text(&answer));
        }
    }
}

/// Without a stream there is nothing to reuse, and nothing to say.
#[tokio::test(flavor = "multi_thread")]
async fn what_reads_no_stream_asks_for_nothing() {
    let db = table().await;
    for sql in ["SELECT random()", "SELECT count(*) FROM system.queries", "SELECT * FROM (VALUES (1), (2))"] {
        assert_eq!(run(&db, sql).await, "", "{sql}");
    }
}
