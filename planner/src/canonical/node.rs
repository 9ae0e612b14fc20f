//! Plan nodes, by whitelist.
//!
//! Keeps true   every expression that a node admits to (`apply_expressions`) was encoded, or the node is not understood:
//!              a field that a later DataFusion adds makes plans uncacheable, not wrong.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use crate::node::{DerivedTableExec, ExtentScanExec};

use super::aggregate::exactness_of;
use super::by_floats::decides_by_floats;
use super::encoder::{Encoder, Tag};
use super::expr::{ExprContext, SubqueryScope, SubqueryValue};
use super::prefix::{Exactness, Input, Parts, PrefixKind, PrefixNode, assemble, prefixes};
use super::{Prefix, Salt, Uncacheable, lineage, scan, types};

/// A node's own part of the encoding.
struct Own {
    bytes: Vec<u8>,
    kind: PrefixKind,
    exactness: Exactness,
    inputs: Vec<Input>,
    /// What it reads that is part of what it is, as derived tables are.
    constants: Vec<Input>,
    /// Whether the node changes nothing but names: its prefix is that of its child.
    transparent: bool,
}

impl Own {
    fn new(encoder: Encoder, kind: PrefixKind) -> Self {
        let (bytes, exactness) = (encoder.into_bytes(), Exactness::Exact);
        Self { bytes, kind, exactness, inputs: vec![], constants: vec![], transparent: false }
    }
}

/// Encodes a subtree.
pub(super) fn encode(plan: &Arc<dyn ExecutionPlan>, context: &mut ExprContext<'_>, salt: &Salt) -> PrefixNode {
    if let Some(subqueries) = plan.downcast_ref::<ScalarSubqueryExec>() {
        return encode_subqueries(plan, subqueries, context, salt);
    }
    let children: Vec<PrefixNode> = plan.children().into_iter().map(|child| encode(child, context, salt)).collect();
    let prefix = prefix_of(plan, &children, context, salt);
    PrefixNode { plan: Arc::clone(plan), prefix, children, named: false }
}

fn prefix_of(
    plan: &Arc<dyn ExecutionPlan>,
    children: &[PrefixNode],
    context: &ExprContext<'_>,
    salt: &Salt,
) -> Result<Prefix, Uncacheable> {
    let inputs: Vec<&Prefix> =
        children.iter().map(|child| child.prefix.as_ref().map_err(Clone::clone)).collect::<Result<_, _>>()?;
    context.met.set(Exactness::Exact);
    context.met_inputs.borrow_mut().clear();
    let own = own_part(plan, context)?;
    check_all_encoded(plan)?;
    if own.transparent {
        return Ok(inputs[0].clone());
    }
    let inputs = skip_partial_limits(plan, children, inputs);
    let mut exactness = own.exactness.max(context.met.get());
    if inputs.iter().any(|input| input.exactness == Exactness::Floats) && decides_by_floats(plan) {
        exactness = Exactness::Any;
    }
    let parts = Parts {
        own: own.bytes,
        kind: own.kind,
        inputs: own.inputs,
        constants: own.constants,
        used: context.met_inputs.take(),
        exactness,
        borrowed: context.met.get(),
        schema: plan.schema(),
    };
    let mut prefix = assemble(parts, &inputs, salt);
    if let Some(lineage) = lineage::of(plan, children, context, salt) {
        prefix.lineage = lineage;
    }
    prefix.as_set = lineage::as_set(plan, children, context, salt);
    Ok(prefix)
}

/// Below a limit over several partitions DataFusion puts a limit for each: what it does not cut is not there.
fn skip_partial_limits<'a>(
    plan: &Arc<dyn ExecutionPlan>,
    children: &'a [PrefixNode],
    inputs: Vec<&'a Prefix>,
) -> Vec<&'a Prefix> {
    let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() else { return inputs };
    let Some(fetch) = limit.fetch() else { return inputs };
    let child = &children[0];
    match (child.plan.downcast_ref::<LocalLimitExec>(), child.children.first().map(|below| &below.prefix)) {
        (Some(local), Some(Ok(below))) if local.fetch() >= limit.skip().saturating_add(fetch) => vec![below],
        _ => inputs,
    }
}

/// The main input of a plan with scalar subqueries is the plan; the subqueries are where its expressions name them.
fn encode_subqueries(
    plan: &Arc<dyn ExecutionPlan>,
    subqueries: &ScalarSubqueryExec,
    context: &mut ExprContext<'_>,
    salt: &Salt,
) -> PrefixNode {
    let mut below = vec![];
    let mut values = vec![];
    for link in subqueries.subqueries() {
        let node = encode(&link.plan, context, salt);
        let value = |prefix: &Prefix| SubqueryValue {
            key: prefix.key,
            exactness: prefix.exactness,
            inputs: prefix.inputs.clone(),
        };
        values.push((link.index.as_usize(), node.prefix.as_ref().map(value).map_err(Clone::clone)));
        below.push(node);
    }
    context.scopes.push(SubqueryScope { results: subqueries.results().clone(), values });
    let main = encode(subqueries.input(), context, salt);
    context.scopes.pop();

    let prefix = main.prefix.as_ref().map_err(Clone::clone).and_then(|prefix| {
        let mut read = vec![];
        let mut exactness = Exactness::Exact;
        for node in &below {
            let subquery = node.prefix.as_ref().map_err(Clone::clone)?;
            read.extend(subquery.inputs.iter().cloned());
            exactness = exactness.max(subquery.exactness);
        }
        let parts = Parts {
            own: Encoder::new(Tag::Subqueries).into_bytes(),
            kind: prefix.kind,
            inputs: vec![],
            constants: read,
            used: vec![],
            exactness,
            borrowed: Exactness::Exact,
            schema: plan.schema(),
        };
        let mut prefix = assemble(parts, &[prefix], salt);
        // What it used is now part of it, unless it is itself inside of something that has subqueries.
        if context.scopes.is_empty() {
            prefix.borrowed = Exactness::Exact;
            prefix.uses_subqueries = false;
        }
        Ok(prefix)
    });
    let mut children = vec![main];
    children.extend(below);
    PrefixNode { plan: Arc::clone(plan), prefix, children, named: false }
}

fn own_part(plan: &Arc<dyn ExecutionPlan>, context: &ExprContext<'_>) -> Result<Own, Uncacheable> {
    if let Some(scan) = plan.downcast_ref::<ExtentScanExec>() {
        let input = Input {
            fingerprint: scan::extents(scan.extents()),
            extents: Arc::clone(scan.extents()),
            table: scan.table().to_string(),
        };
        let bytes = scan::reading(scan);
        return Ok(Own {
            bytes,
            kind: PrefixKind::Scan,
            exactness: Exactness::Exact,
            inputs: vec![input],
            constants: vec![],
            transparent: false,
        });
    }
    if let Some(derived) = plan.downcast_ref::<DerivedTableExec>() {
        return derived_table(derived, context);
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let mut encoder = Encoder::new(Tag::Filter);
        encoder.bytes(&context.predicate(filter.predicate())?).optional_number(filter.fetch());
        match filter.projection() {
            Some(columns) => encoder.tag(Tag::Some).numbers(columns),
            None => encoder.tag(Tag::None),
        };
        let own = Own::new(encoder, PrefixKind::Filter);
        return Ok(Own { exactness: cut(filter.fetch()), ..own });
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let exprs = projection.expr().iter().map(|projected| &projected.expr);
        let mut encoder = Encoder::new(Tag::Projection);
        encoder.list(context.exprs(exprs)?);
        let own = Own::new(encoder, PrefixKind::Projection);
        return Ok(Own { transparent: only_renames(projection), ..own });
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return aggregation(aggregate, context);
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let mut encoder = Encoder::default();
        encoder.bytes(&context.hash_join(join)?).optional_number(join.fetch());
        let own = Own::new(encoder, PrefixKind::Join);
        return Ok(Own { exactness: cut(join.fetch()), ..own });
    }
    if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        let mut encoder = Encoder::default();
        encoder.bytes(&context.merge_join(join)?).optional_number(join.fetch());
        let own = Own::new(encoder, PrefixKind::Join);
        return Ok(Own { exactness: cut(join.fetch()), ..own });
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        let mut encoder = Encoder::default();
        encoder.bytes(&context.nested_loop_join(join)?).optional_number(join.fetch());
        return Ok(Own::new(encoder, PrefixKind::Join));
    }
    if let Some(join) = plan.downcast_ref::<CrossJoinExec>() {
        let mut encoder = Encoder::default();
        encoder.bytes(&context.cross_join(join));
        return Ok(Own::new(encoder, PrefixKind::Join));
    }
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        if sort.preserve_partitioning() {
            return Err(Uncacheable::Shape("a sort of each partition by itself"));
        }
        let mut encoder = Encoder::new(Tag::Sorting);
        encoder.list(context.sort(sort.expr().iter())?).optional_number(sort.fetch());
        let own = Own::new(encoder, PrefixKind::Sort);
        // Which of several equal rows is the last of the first k is a matter of luck, unless equal rows are the same.
        let exactness = if is_total(sort) { Exactness::Exact } else { cut(sort.fetch()) };
        return Ok(Own { exactness, ..own });
    }
    if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        let mut encoder = Encoder::new(Tag::Limit);
        encoder.number(limit.skip() as u64).optional_number(limit.fetch());
        let is_total = limit.input().downcast_ref::<SortExec>().is_some_and(is_total);
        let exactness = if is_total { Exactness::Exact } else { Exactness::Any };
        return Ok(Own { exactness, ..Own::new(encoder, PrefixKind::Limit) });
    }
    if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        let mut encoder = Encoder::new(Tag::Limit);
        encoder.text("local").number(limit.fetch() as u64);
        return Ok(Own { exactness: Exactness::Any, ..Own::new(encoder, PrefixKind::Limit) });
    }
    if plan.is::<UnionExec>() {
        return Ok(Own::new(with_types(Tag::Union, plan), PrefixKind::Union));
    }
    if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        return windows(window.window_expr(), context);
    }
    if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        return windows(window.window_expr(), context);
    }
    if plan.is::<EmptyExec>() {
        return Ok(Own::new(with_types(Tag::Empty, plan), PrefixKind::Constant));
    }
    if plan.is::<PlaceholderRowExec>() {
        return Ok(Own::new(with_types(Tag::OneRow, plan), PrefixKind::Constant));
    }
    if let Some(unnest) = plan.downcast_ref::<UnnestExec>() {
        let mut encoder = with_types(Tag::Unnest, plan);
        // Which depths were asked for (`recursions`, by name) has become the list of columns below.
        encoder.text(&format!("{:?}", unnest.options().null_handling));
        encoder.number(unnest.list_column_indices().len() as u64);
        for list in unnest.list_column_indices() {
            encoder.number(list.index_in_input_schema as u64).number(list.depth as u64);
        }
        encoder.numbers(unnest.struct_column_indices());
        return Ok(Own::new(encoder, PrefixKind::Unnest));
    }
    Err(Uncacheable::Node(plan.name().to_string()))
}

/// A derived table never changes: it is a constant, named by its program, settings and extents.
fn derived_table(derived: &DerivedTableExec, context: &ExprContext<'_>) -> Result<Own, Uncacheable> {
    let config = derived.config();
    let program = prefixes(derived.program(), context.built_ins, config, &Salt::new(config)).prefix?;
    let mut encoder = Encoder::new(Tag::DerivedTable);
    encoder.fingerprint(&program.key).bytes(&types::column_types(&program.schema));
    let own = Own::new(encoder, PrefixKind::Scan);
    Ok(Own { exactness: program.exactness, constants: program.inputs, ..own })
}

/// Whether all columns decide about the order: rows that are equal in it are the same rows.
fn is_total(sort: &SortExec) -> bool {
    let columns: HashSet<usize> =
        sort.expr().iter().filter_map(|key| key.expr.downcast_ref::<Column>().map(Column::index)).collect();
    let schema = sort.input().schema();
    columns.len() == schema.fields().len() && schema.fields().iter().all(|field| !field.data_type().is_nested())
}

/// Which rows a limit leaves is a matter of luck.
fn cut(fetch: Option<usize>) -> Exactness {
    if fetch.is_some() { Exactness::Any } else { Exactness::Exact }
}

fn with_types(tag: Tag, plan: &Arc<dyn ExecutionPlan>) -> Encoder {
    let mut encoder = Encoder::new(tag);
    encoder.bytes(&types::column_types(&plan.schema()));
    encoder
}

fn only_renames(projection: &ProjectionExec) -> bool {
    let n_columns = projection.input().schema().fields().len();
    let is_same = |(position, expr): (usize, &Arc<dyn PhysicalExpr>)| {
        expr.downcast_ref::<Column>().is_some_and(|column| column.index() == position)
    };
    let exprs = projection.expr();
    exprs.len() == n_columns && exprs.iter().map(|projected| &projected.expr).enumerate().all(is_same)
}

/// Both halves of an aggregate; on how many partitions the second half runs is left out.
fn aggregation(aggregate: &AggregateExec, context: &ExprContext<'_>) -> Result<Own, Uncacheable> {
    if aggregate.limit_options().is_some() {
        return Err(Uncacheable::Shape("an aggregate with a limit"));
    }
    let mode = match aggregate.mode() {
        AggregateMode::Partial => "partial",
        AggregateMode::Final | AggregateMode::FinalPartitioned => "final",
        AggregateMode::Single | AggregateMode::SinglePartitioned => "single",
        AggregateMode::PartialReduce => "reduce",
    };
    if mode == "final" && !aggregate.input().is::<AggregateExec>() {
        return Err(Uncacheable::Shape("the second half of an aggregate without its first"));
    }
    let mut encoder = Encoder::new(Tag::Aggregation);
    encoder.text(mode).bytes(&context.group_by(aggregate.group_expr())?);
    encoder.number(aggregate.aggr_expr().len() as u64);
    let mut exactness = Exactness::Exact;
    let schema = aggregate.input_schema();
    for (function, filter) in aggregate.aggr_expr().iter().zip(aggregate.filter_expr()) {
        encoder.bytes(&context.aggregate(function)?).bytes(&context.filter(filter.as_ref())?);
        let arguments: Result<Vec<_>, _> =
            function.expressions().iter().map(|argument| argument.data_type(&schema)).collect();
        let alike = |types: Vec<_>| exactness_of(function, &types, context.built_ins);
        exactness = exactness.max(arguments.map_or(Exactness::Any, alike));
    }
    encoder.bytes(&types::column_types(&ExecutionPlan::schema(aggregate)));
    let kind = if mode == "partial" || mode == "reduce" { PrefixKind::States } else { PrefixKind::Aggregate };
    Ok(Own { exactness, ..Own::new(encoder, kind) })
}

fn windows(
    functions: &[Arc<dyn datafusion::physical_expr::window::WindowExpr>],
    context: &ExprContext<'_>,
) -> Result<Own, Uncacheable> {
    let mut encoder = Encoder::new(Tag::Window);
    encoder.list(functions.iter().map(|function| context.window(function)).collect::<Result<_, _>>()?);
    // The order among equal rows decides about many of them.
    Ok(Own { exactness: Exactness::Any, ..Own::new(encoder, PrefixKind::Window) })
}

/// Every expression that the node admits to is one that its encoding looked at.
fn check_all_encoded(plan: &Arc<dyn ExecutionPlan>) -> Result<(), Uncacheable> {
    let identity = |expr: &Arc<dyn PhysicalExpr>| Arc::as_ptr(expr).cast::<()>() as usize;
    let mut known: HashSet<usize> = HashSet::new();
    for expr in looked_at(plan) {
        known.insert(identity(&expr));
    }
    // Filters that only appear at run time may skip rows that their maker would drop; they change no rows.
    plan.dynamic_expressions_produced().iter().for_each(|expr| _ = known.insert(identity(expr)));
    let mut unknown = None;
    let visited = plan.apply_expressions(&mut |expr| {
        if !known.contains(&identity(expr)) {
            unknown = Some(expr.to_string());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    match (visited, unknown) {
        (Ok(_), None) => Ok(()),
        (_, Some(expr)) => Err(Uncacheable::Expression(expr)),
        (Err(error), None) => Err(Uncacheable::Expression(error.to_string())),
    }
}

/// The expressions that `own_part` encodes, at their roots.
fn looked_at(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn PhysicalExpr>> {
    let mut exprs: Vec<Arc<dyn PhysicalExpr>> = vec![];
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        exprs.push(Arc::clone(filter.predicate()));
    } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        exprs.extend(projection.expr().iter().map(|projected| Arc::clone(&projected.expr)));
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let group_by = aggregate.group_expr();
        exprs.extend(group_by.expr().iter().chain(group_by.null_expr()).map(|(expr, _)| Arc::clone(expr)));
        for function in aggregate.aggr_expr() {
            exprs.extend(function.expressions());
            exprs.extend(function.order_bys().iter().map(|key| Arc::clone(&key.expr)));
        }
        exprs.extend(aggregate.filter_expr().iter().flatten().cloned());
    } else if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        exprs.extend(join.on().iter().flat_map(|(left, right)| [Arc::clone(left), Arc::clone(right)]));
        exprs.extend(join.filter().map(|filter| Arc::clone(filter.expression())));
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        exprs.extend(join.on().iter().flat_map(|(left, right)| [Arc::clone(left), Arc::clone(right)]));
        exprs.extend(join.filter().as_ref().map(|filter| Arc::clone(filter.expression())));
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        exprs.extend(join.filter().map(|filter| Arc::clone(filter.expression())));
    } else if let Some(sort) = plan.downcast_ref::<SortExec>() {
        exprs.extend(sort.expr().iter().map(|key| Arc::clone(&key.expr)));
    } else if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        window.window_expr().iter().for_each(|function| exprs.extend(window_exprs(function)));
    } else if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        window.window_expr().iter().for_each(|function| exprs.extend(window_exprs(function)));
    }
    exprs
}

fn window_exprs(function: &Arc<dyn datafusion::physical_expr::window::WindowExpr>) -> Vec<Arc<dyn PhysicalExpr>> {
    let all = function.all_expressions();
    all.args.into_iter().chain(all.partition_by_exprs).chain(all.order_by_exprs).collect()
}
