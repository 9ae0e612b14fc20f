//! What is not known is not recognised, and says why.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, PartitionEvaluator, Signature, Volatility, WindowUDF,
    WindowUDFImpl, create_udf,
};

use crate::canonical::Uncacheable;
use crate::canonical::fixture::Fixture;

#[tokio::test]
async fn volatile_functions() {
    let fixture = Fixture::new();
    for sql in [
        "SELECT a, random() FROM t",
        "SELECT a FROM t WHERE random() < 0.5",
        "SELECT uuid(), a FROM t",
        "SELECT a, sum(random()) FROM t GROUP BY a",
        "SELECT a FROM t ORDER BY random()",
        "SELECT a FROM t LEFT JOIN u USING (a) WHERE random() > 1",
        "SELECT a, sum(b) OVER (ORDER BY random()) FROM t",
    ] {
        assert!(matches!(fixture.root(sql).await, Err(Uncacheable::Volatile(_))), "{sql}");
    }
}

#[tokio::test]
async fn functions_that_are_not_built_in() {
    let fixture = Fixture::new();
    let constant = |value: i64| {
        let body = Arc::new(move |_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(value)))));
        create_udf("mine", vec![DataType::Int64], DataType::Int64, Volatility::Immutable, body)
    };
    fixture.context.register_udf(constant(1));
    let sql = "SELECT mine(a) FROM t";
    assert_eq!(fixture.root(sql).await.unwrap_err(), Uncacheable::Function("mine".to_string()));

    // The name of a built-in one does not make it one.
    let body = Arc::new(|_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(0)))));
    let abs = create_udf("abs", vec![DataType::Int64], DataType::Int64, Volatility::Immutable, body);
    assert!(fixture.root("SELECT abs(a) FROM t").await.is_ok());
    fixture.context.register_udf(abs);
    assert_eq!(fixture.root("SELECT abs(a) FROM t").await.unwrap_err(), Uncacheable::Function("abs".to_string()));
}

/// Nor does it make aggregates and window functions what they are called.
#[tokio::test]
async fn aggregates_and_windows_that_are_not_built_in() {
    let fixture = Fixture::new();
    let (group, window) = ("SELECT sum(a) FROM t", "SELECT rank() OVER (ORDER BY a) FROM t");
    assert!(fixture.root(group).await.is_ok() && fixture.root(window).await.is_ok());
    let registered = fixture.context.state();
    let bit_xor = registered.aggregate_functions().get("bit_xor").map(|other| other.as_ref().clone()).unwrap();
    fixture.context.register_udaf(AggregateUDF::new_from_impl(Renamed { name: "sum", inner: bit_xor }));
    assert_eq!(fixture.root(group).await.unwrap_err(), Uncacheable::Function("sum".to_string()));
    let row_number = registered.window_functions().get("row_number").map(|other| other.as_ref().clone()).unwrap();
    fixture.context.register_udwf(WindowUDF::new_from_impl(Renamed { name: "rank", inner: row_number }));
    assert_eq!(fixture.root(window).await.unwrap_err(), Uncacheable::Function("rank".to_string()));
}

/// A function under another's name.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Renamed<F> {
    name: &'static str,
    inner: F,
}

impl AggregateUDFImpl for Renamed<AggregateUDF> {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(arguments)
    }
}

impl WindowUDFImpl for Renamed<WindowUDF> {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn partition_evaluator(&self, arguments: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        self.inner.partition_evaluator_factory(arguments)
    }

    fn field(&self, arguments: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.field(arguments)
    }
}

#[tokio::test]
async fn functions_of_names() {
    let fixture = Fixture::new();
    assert!(fixture.root("SELECT arrow_metadata(a) FROM t").await.is_err());
}

#[tokio::test]
async fn windows_with_a_filter() {
    let fixture = Fixture::new();
    for frame in ["ORDER BY c", "ORDER BY c ROWS 2 PRECEDING", "PARTITION BY a"] {
        let sql = format!("SELECT sum(b) FILTER (WHERE c > 1) OVER ({frame}) FROM t");
        assert!(matches!(fixture.root(&sql).await, Err(Uncacheable::Shape(_))), "{sql}");
    }
}

#[tokio::test]
async fn recursion() {
    let fixture = Fixture::new();
    let sql = "WITH RECURSIVE n AS (SELECT a FROM t UNION ALL SELECT a + 1 FROM n WHERE a < 5) SELECT * FROM n";
    assert!(matches!(fixture.root(sql).await, Err(Uncacheable::Node(_))));
}

/// What lies below something unknown is still known.
#[tokio::test]
async fn prefixes_below_the_unknown() {
    let fixture = Fixture::new();
    let tree = fixture.tree("SELECT x, random() FROM (SELECT a x, sum(b) y FROM t GROUP BY a) WHERE y > 3").await;
    assert!(tree.prefix.is_err());
    let mut keys = vec![];
    tree.for_each(&mut |node| keys.extend(node.prefix.as_ref().ok().map(|prefix| prefix.key)));
    let inner = fixture.key("SELECT a, sum(b) FROM t GROUP BY a").await;
    assert!(keys.contains(&inner), "the aggregate is the same prefix whatever is above it");
}

/// The time of the statement is a literal in the plan: another time, another program.
#[tokio::test]
async fn now_is_a_literal() {
    let fixture = Fixture::new();
    let sql = "SELECT a FROM t WHERE ts > now() - INTERVAL '1 day'";
    let first = fixture.root(sql).await.unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert_ne!(first.program, fixture.root(sql).await.unwrap().program);
}
