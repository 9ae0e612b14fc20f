//! Attributes that SQL does not set in an initial plan today, on nodes made by hand. A later DataFusion may set them, and
//! physical rules do: what they mean must be part of a key, or the node must not be recognised.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::compute::CastOptions;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::FormatOptions;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{JoinType, NullEquality, NullHandling, ScalarValue, UnnestOptions};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal, NoOp, TryCastExpr, binary, lit};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, LimitOptions, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExecBuilder;
use datafusion::physical_plan::joins::HashJoinExecBuilder;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::unnest::{ListUnnest, UnnestExec};
use nectarine_catalog::Fingerprint;

use crate::canonical::fixture::Fixture;
use crate::canonical::{BuiltIns, Exactness, Prefix, Salt, Uncacheable, prefixes};

type Plan = Arc<dyn ExecutionPlan>;

/// Columns a and b, integers; `items`, a list.
async fn scan() -> Plan {
    Fixture::new().plan("SELECT a, b, items FROM t").await
}

fn prefix(plan: &Plan) -> Result<Prefix, Uncacheable> {
    let config = Fixture::new().context.state().config_options().as_ref().clone();
    prefixes(plan, &BuiltIns::default(), &config, &Salt::new(&config)).prefix
}

fn column(position: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(["a", "b", "items"][position], position))
}

fn projected(input: &Plan, expr: Arc<dyn PhysicalExpr>) -> Plan {
    let expr = ProjectionExpr { expr, alias: "x".to_string() };
    Arc::new(ProjectionExec::try_new(vec![expr], Arc::clone(input)).unwrap())
}

fn all_differ(plans: impl IntoIterator<Item = (&'static str, Plan)>) {
    let mut seen: HashMap<Fingerprint, &str> = HashMap::new();
    for (name, plan) in plans {
        let key = prefix(&plan).unwrap_or_else(|reason| panic!("{name}: {reason}")).key;
        if let Some(other) = seen.insert(key, name) {
            panic!("the same key: {other}, {name}");
        }
    }
}

#[tokio::test]
async fn casts_and_overflow() {
    let scan = scan().await;
    let cast = |safe, format| {
        let options = CastOptions { safe, format_options: format };
        Arc::new(CastExpr::new(column(0), DataType::Utf8, Some(options))) as Arc<dyn PhysicalExpr>
    };
    let plain = FormatOptions::default();
    let sum = || BinaryExpr::new(column(0), Operator::Plus, column(1));
    all_differ([
        ("a cast", projected(&scan, cast(false, plain.clone()))),
        ("whose errors are NULL", projected(&scan, cast(true, plain.clone()))),
        ("with a format for dates", projected(&scan, cast(false, plain.clone().with_date_format(Some("%Y"))))),
        ("with a text for NULL", projected(&scan, cast(false, plain.with_null("-")))),
        ("a try", projected(&scan, Arc::new(TryCastExpr::new(column(0), DataType::Utf8)))),
        ("a try to something else", projected(&scan, Arc::new(TryCastExpr::new(column(0), DataType::Int8)))),
        ("a sum", projected(&scan, Arc::new(sum()))),
        ("that fails on overflow", projected(&scan, Arc::new(sum().with_fail_on_overflow(true)))),
    ]);
}

#[tokio::test]
async fn limits_and_columns_inside_of_nodes() {
    let scan = scan().await;
    let filter = |fetch: Option<usize>, columns: Option<Vec<usize>>| {
        let predicate = binary(column(0), Operator::Gt, lit(1_i64), &scan.schema()).unwrap();
        let filter = FilterExecBuilder::new(predicate, Arc::clone(&scan)).apply_projection(columns).unwrap();
        Arc::new(filter.with_fetch(fetch).build().unwrap()) as Plan
    };
    let local = |fetch| Arc::new(LocalLimitExec::new(Arc::clone(&scan), fetch)) as Plan;
    let global = |below, skip, fetch| Arc::new(GlobalLimitExec::new(below, skip, Some(fetch))) as Plan;
    all_differ([
        ("a filter", filter(None, None)),
        ("with a limit", filter(Some(5), None)),
        ("with another", filter(Some(6), None)),
        ("of one column", filter(None, Some(vec![0]))),
        ("of another", filter(None, Some(vec![1]))),
        ("of both", filter(None, Some(vec![0, 1]))),
        ("the other way round", filter(None, Some(vec![1, 0]))),
        ("a limit of each partition", local(5)),
        ("and another", local(6)),
        ("a limit of all", global(Arc::clone(&scan), 0, 5)),
        ("over a smaller one of each", global(local(3), 0, 5)),
        ("that skips more than each has", global(local(5), 5, 5)),
    ]);
    let empty = |data_type| {
        let schema = Arc::new(Schema::new(vec![Field::new("x", data_type, true)]));
        [Arc::new(EmptyExec::new(Arc::clone(&schema))) as Plan, Arc::new(PlaceholderRowExec::new(schema)) as Plan]
    };
    let ([one, two], [three, four]) = (empty(DataType::Int64), empty(DataType::Int32));
    all_differ([("nothing", one), ("one row", two), ("nothing of another type", three), ("one row of another", four)]);
    // What a limit of each partition does not cut is not there.
    let (with, without) = (global(local(5), 0, 5), global(Arc::clone(&scan), 0, 5));
    assert_eq!(prefix(&with).unwrap().key, prefix(&without).unwrap().key);
    let family = |plan: Plan| prefix(&plan).unwrap().lineage.family;
    assert_eq!(family(filter(None, None)), family(filter(None, Some(vec![1]))), "the same rows");
    assert_ne!(family(filter(None, None)), family(filter(Some(5), None)), "fewer rows");
    for cut in [filter(Some(5), None), local(5), global(Arc::clone(&scan), 0, 5)] {
        assert_eq!(prefix(&cut).unwrap().exactness, Exactness::Any, "{cut:?}");
    }
}

#[tokio::test]
async fn joins() {
    let (left, right) = (scan().await, Fixture::new().plan("SELECT a, b, items FROM u").await);
    let join = |join_type| {
        let on = vec![(column(0), column(0))];
        HashJoinExecBuilder::new(Arc::clone(&left), Arc::clone(&right), on, join_type)
    };
    let built = |join: HashJoinExecBuilder| Arc::new(join.build().unwrap()) as Plan;
    all_differ([
        ("an anti join", built(join(JoinType::LeftAnti))),
        ("a NOT IN", built(join(JoinType::LeftAnti).with_null_aware(true))),
        ("an inner join", built(join(JoinType::Inner))),
        ("in which NULLs are equal", built(join(JoinType::Inner).with_null_equality(NullEquality::NullEqualsNull))),
        ("with a limit", built(join(JoinType::Inner).with_fetch(Some(3)))),
        ("with another", built(join(JoinType::Inner).with_fetch(Some(4)))),
        ("of some columns", built(join(JoinType::Inner).with_projection(Some(vec![0, 3])))),
        ("the other way round", built(join(JoinType::Inner).with_projection(Some(vec![3, 0])))),
    ]);
    // None of these has the rows of the plain join, whatever columns it shows.
    let family = |join| prefix(&built(join)).unwrap().lineage.family;
    let plain = family(join(JoinType::Inner));
    assert_eq!(plain, family(join(JoinType::Inner).with_projection(Some(vec![3, 0]))));
    assert_ne!(plain, family(join(JoinType::Inner).with_fetch(Some(3))));
    assert_ne!(plain, family(join(JoinType::Inner).with_null_equality(NullEquality::NullEqualsNull)));
    assert_ne!(plain, family(join(JoinType::Left)));
    assert_ne!(
        family(join(JoinType::LeftAnti)),
        family(join(JoinType::LeftAnti).with_null_aware(true)),
        "NOT IN is no anti join"
    );
    let cut = prefix(&built(join(JoinType::Inner).with_fetch(Some(3)))).unwrap();
    assert_eq!(cut.exactness, Exactness::Any);
}

#[tokio::test]
async fn lists_to_rows() {
    let scan = scan().await;
    let unnest = |null_handling, at: usize, depth, structs: &[usize]| {
        let fields: Vec<_> = ["a", "b", "items"].map(|name| Field::new(name, DataType::Int64, true)).to_vec();
        let lists = vec![ListUnnest { index_in_input_schema: at, depth }];
        let options = UnnestOptions { null_handling, ..UnnestOptions::default() };
        let plan = UnnestExec::new(Arc::clone(&scan), lists, structs.to_vec(), Arc::new(Schema::new(fields)), options);
        Arc::new(plan.unwrap()) as Plan
    };
    all_differ([
        ("rows of lists", unnest(NullHandling::Preserve, 2, 1, &[])),
        ("without those of NULL", unnest(NullHandling::Drop, 2, 1, &[])),
        ("deeper", unnest(NullHandling::Preserve, 2, 2, &[])),
        ("of another column", unnest(NullHandling::Preserve, 1, 1, &[])),
        ("and of a struct", unnest(NullHandling::Preserve, 2, 1, &[0])),
        ("of another struct", unnest(NullHandling::Preserve, 2, 1, &[1])),
    ]);
}

#[tokio::test]
async fn halves_of_aggregates() {
    let scan = scan().await;
    let groups = |mode, input: &Plan| {
        let by = PhysicalGroupBy::new_single(vec![(column(0), "a".to_string())]);
        AggregateExec::try_new(mode, by, vec![], vec![], Arc::clone(input), scan.schema()).unwrap()
    };
    let of = |mode| Arc::new(groups(mode, &scan)) as Plan;
    // The same columns, but a first half may hold a group more than once.
    all_differ([("groups", of(AggregateMode::Single)), ("a first half", of(AggregateMode::Partial))]);

    let half = of(AggregateMode::Partial);
    assert!(prefix(&(Arc::new(groups(AggregateMode::Final, &half)) as Plan)).is_ok());
    let refused = |plan: AggregateExec| matches!(prefix(&(Arc::new(plan) as Plan)), Err(Uncacheable::Shape(_)));
    assert!(refused(groups(AggregateMode::Final, &scan)), "a second half without its first");
    let limited = groups(AggregateMode::Single, &scan).with_limit_options(Some(LimitOptions::new(5)));
    assert!(refused(limited), "a limit");
    // A second half over something that is no first half has no groups that could stand for others.
    let odd = Arc::new(groups(AggregateMode::Final, &of(AggregateMode::Single))) as Plan;
    let even = Arc::new(groups(AggregateMode::Final, &half)) as Plan;
    assert_ne!(prefix(&odd).unwrap().lineage.family, prefix(&even).unwrap().lineage.family);
}

/// Without states to tell them apart by their types.
#[tokio::test]
async fn aggregates_in_one_go() {
    let scan = scan().await;
    let first = || AggregateExprBuilder::new(first_value_udaf(), vec![column(1)]).schema(scan.schema()).alias("x");
    let count = || AggregateExprBuilder::new(count_udaf(), vec![column(1)]).schema(scan.schema()).alias("x");
    let by = |descending, nulls_first| {
        let options = SortOptions { descending, nulls_first };
        vec![PhysicalSortExpr { expr: column(0), options }]
    };
    let groups = |aggregate: AggregateExprBuilder, filter: Option<i64>| {
        let by = PhysicalGroupBy::new_single(vec![(column(0), "a".to_string())]);
        let filter = filter.map(|least| binary(column(1), Operator::Gt, lit(least), &scan.schema()).unwrap());
        let aggregates = vec![Arc::new(aggregate.build().unwrap())];
        let mode = AggregateMode::Single;
        let plan = AggregateExec::try_new(mode, by, aggregates, vec![filter], Arc::clone(&scan), scan.schema());
        Arc::new(plan.unwrap()) as Plan
    };
    all_differ([
        ("a count", groups(count(), None)),
        ("of different values", groups(count().distinct(), None)),
        ("with a filter", groups(count(), Some(1))),
        ("with another", groups(count(), Some(2))),
        ("the first", groups(first(), None)),
        ("that is not NULL", groups(first().ignore_nulls(), None)),
        ("by an order", groups(first().order_by(by(false, false)), None)),
        ("by the opposite", groups(first().order_by(by(true, false)), None)),
        ("with NULL first", groups(first().order_by(by(false, true)), None)),
        ("reversed", groups(first().order_by(by(false, false)).reversed(), None)),
    ]);
}

#[tokio::test]
async fn what_is_not_known_is_refused() {
    let scan = scan().await;
    let sort = || {
        let key = PhysicalSortExpr { expr: column(0), options: SortOptions::default() };
        SortExec::new(LexOrdering::new([key]).unwrap(), Arc::clone(&scan))
    };
    assert!(prefix(&(Arc::new(sort()) as Plan)).is_ok());
    let metadata = FieldMetadata::new(BTreeMap::from([("ARROW:extension:name".to_string(), "money".to_string())]));
    let value = ScalarValue::Int64(Some(1));
    assert!(prefix(&projected(&scan, Arc::new(Literal::new(value.clone())))).is_ok());
    let refused: [(&str, Plan); 4] = [
        ("a sort of each partition", Arc::new(sort().with_preserve_partitioning(true))),
        ("a node", Arc::new(CoalescePartitionsExec::new(Arc::clone(&scan)))),
        ("an expression", projected(&scan, Arc::new(NoOp::new()))),
        (
            "a constant of an extension type",
            projected(&scan, Arc::new(Literal::new_with_metadata(value, Some(metadata)))),
        ),
    ];
    for (name, plan) in refused {
        assert!(prefix(&plan).is_err(), "{name}");
    }
}
