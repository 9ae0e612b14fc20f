//! [`decides_by_floats`]: whether the last bits of a float may decide about rows.
//!
//! Two computations of `avg(x)` differ in their last bits. Whoever shows them shows almost the same; whoever joins or groups by
//! them, or cuts an order of them, may come to other rows.
//!
//! Caveats   a filter is not among these: it decides otherwise only if a value lies on its very bound.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, JoinOnRef, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;

/// Whether this node joins, groups or cuts by floats.
pub(super) fn decides_by_floats(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return joins_by_floats(join.on(), &join.left().schema(), join.filter());
    }
    if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        return joins_by_floats(join.on(), &join.left().schema(), join.filter().as_ref());
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        return compares_floats(join.filter());
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let schema = aggregate.input().schema();
        return aggregate.group_expr().expr().iter().any(|(expr, _)| is_float(expr, &schema));
    }
    if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        return limit.input().downcast_ref::<SortExec>().is_some_and(sorts_floats);
    }
    plan.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_some() && sorts_floats(sort))
}

fn sorts_floats(sort: &SortExec) -> bool {
    let schema = sort.input().schema();
    sort.expr().iter().any(|key| is_float(&key.expr, &schema))
}

fn joins_by_floats(on: JoinOnRef<'_>, left: &Schema, filter: Option<&JoinFilter>) -> bool {
    // Both sides of a pair have one type.
    on.iter().any(|(key, _)| is_float(key, left)) || compares_floats(filter)
}

fn compares_floats(filter: Option<&JoinFilter>) -> bool {
    filter.is_some_and(|filter| filter.schema().fields().iter().any(|field| holds_floats(field.data_type())))
}

fn is_float(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    expr.data_type(schema).map_or(true, |data_type| holds_floats(&data_type))
}

/// Whether values of the type are floats, or have some in them.
pub(super) fn holds_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => holds_floats(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_floats(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| holds_floats(field.data_type())),
        DataType::Dictionary(_, value) => holds_floats(value),
        plain => plain.is_floating(),
    }
}
