//! [`SubqueryValues`]: `IN (SELECT ..)` and `EXISTS` are values: true, false or NULL, wherever they stand.
//!
//! ```text
//!   WHERE a NOT IN (s) OR b      NULL, not true, where `a` is not among the rows of s, and one of them is NULL, or `a` is
//!   SELECT a IN (s), EXISTS s    a column of marks, from a join with s, as below filters
//! ```
//!
//! DataFusion 55 joins with what is inside of a larger condition, and takes a missing partner for false: with a NOT around it such rows
//! are let through. A `NOT IN` whose subquery uses columns of the outer row minds NULLs that are not among the rows for this one.
//! Groups of no rows, of which there is one row (`count(*)` is 0), are forgotten where an outer row decides what they are made of.
//! Outside of WHERE and HAVING it has no plan for `IN` and `EXISTS`.
//!
//! Fires when   `IN` is inside of a condition that tells NULL from false; a `NOT IN` uses the outer row; a subquery that does has
//!              aggregates without GROUP BY; `IN` or `EXISTS` is in a SELECT list, in an aggregate, or in an inner join.
//! Stays quiet  for what else a filter asks for by itself, which becomes a semi or anti join; where neither side can be NULL.
//! Runs         before subqueries become joins, and after `ANY` and `ALL` became `EXISTS`.
//! Keeps true   names and types of columns.

mod one_row;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, ExprSchemable, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator,
    Projection, Subquery, lit, not, when,
};
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use self::one_row::by_value;
use crate::look::any_expr;

/// The rule after which `ANY` and `ALL` are `EXISTS`.
const AFTER: &str = "rewrite_set_comparison";

/// What the column of a subquery is called where it is compared with the outer row.
const APART: &str = "__asked";

/// See the module.
#[derive(Debug, Default)]
pub struct SubqueryValues;

impl SubqueryValues {
    /// Puts it into DataFusion's rules.
    pub fn put_into(rules: &mut Vec<Arc<dyn OptimizerRule + Send + Sync>>) {
        let at = rules.iter().position(|rule| rule.name() == AFTER).unwrap_or(0);
        rules.insert(at, Arc::new(KeptNames));
        rules.insert(at + 2, Arc::new(Self));
    }
}

impl OptimizerRule for SubqueryValues {
    fn name(&self) -> &str {
        "subquery_values"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !any_expr(&plan, is_about_subquery) {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(|node| {
            let valued = node.map_expressions(|expr| expr.transform_up(by_value))?;
            valued.transform_data(|node| rewrite_node(node, config))
        })
    }
}

fn rewrite_node(node: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Filter(filter) if has_subquery(&filter.predicate) => in_filter(filter),
        LogicalPlan::Projection(projection) if projection.expr.iter().any(has_subquery) => {
            in_projection(projection, config)
        }
        LogicalPlan::Aggregate(aggregate)
            if aggregate.group_expr.iter().chain(&aggregate.aggr_expr).any(has_subquery) =>
        {
            in_aggregate(aggregate, config)
        }
        LogicalPlan::Join(join)
            if join.join_type == JoinType::Inner && join.filter.as_ref().is_some_and(has_subquery) =>
        {
            in_join(join)
        }
        other => Ok(Transformed::no(other)),
    }
}

/// `= ANY (SELECT ..)` is given another form, and would get another name with it; what it compares may have one name on both sides.
#[derive(Debug)]
struct KeptNames;

impl OptimizerRule for KeptNames {
    fn name(&self) -> &str {
        "names_of_set_comparisons"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !any_expr(&plan, |part| matches!(part, Expr::SetComparison(_))) {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(|node| {
            let has_names = matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_));
            node.map_expressions(|expr| {
                let keeps_name = has_names && !matches!(expr, Expr::Alias(_));
                let name = expr.schema_name().to_string();
                let asked = expr.transform_up(|part| match part {
                    Expr::SetComparison(mut asked) => {
                        asked.subquery = apart(asked.subquery)?;
                        Ok(Transformed::yes(Expr::SetComparison(asked)))
                    }
                    other => Ok(Transformed::no(other)),
                })?;
                let keeps_name = keeps_name && asked.transformed;
                Ok(asked.update_data(|expr| if keeps_name { expr.alias(name) } else { expr }))
            })
        })
    }
}

fn is_about_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::InSubquery(_) | Expr::Exists(_))
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|part| Ok(is_about_subquery(part))).unwrap_or(false)
}

/// Conditions of a filter that are made of more than one question.
fn in_filter(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    let schema = Arc::clone(filter.input.schema());
    let mut is_changed = false;
    let conditions = split_conjunction_owned(filter.predicate).into_iter().map(|condition| {
        let is_question = match &condition {
            Expr::Not(inner) => is_about_subquery(inner),
            other => is_about_subquery(other),
        };
        if !has_subquery(&condition) || (is_question && !is_of_outer_row(&condition)) {
            return Ok(condition);
        }
        let told = told_apart(condition, &schema)?;
        is_changed |= told.transformed;
        Ok(told.data)
    });
    let conditions = conditions.collect::<Result<Vec<_>>>()?;
    let predicate = conjunction(conditions).unwrap_or_else(|| lit(true));
    let filter = LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?);
    Ok(Transformed::new_transformed(filter, is_changed))
}

/// Whether a question is a `NOT IN` whose rows depend on the outer row.
fn is_of_outer_row(question: &Expr) -> bool {
    let (question, is_negated) = match question {
        Expr::Not(inner) => (inner.as_ref(), true),
        other => (other, false),
    };
    matches!(question, Expr::InSubquery(asked) if asked.negated != is_negated && !asked.subquery.outer_ref_columns.is_empty())
}

/// A part of a condition of which only true matters: NULL may be false there, and in what AND and OR make it of.
fn told_apart(condition: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (told_apart(*left, schema)?, told_apart(*right, schema)?);
            let is_changed = left.transformed || right.transformed;
            let both = BinaryExpr::new(Box::new(left.data), op, Box::new(right.data));
            Ok(Transformed::new_transformed(Expr::BinaryExpr(both), is_changed))
        }
        Expr::InSubquery(InSubquery { negated: false, .. }) | Expr::Exists(_) => Ok(Transformed::no(condition)),
        Expr::InSubquery(question) => is_missing(question, schema),
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(InSubquery { expr, subquery, negated: false }) => {
                is_missing(InSubquery { expr, subquery, negated: true }, schema)
            }
            inner => values_in(not(inner), schema),
        },
        other => values_in(other, schema),
    }
}

/// Whether a `NOT IN` is true: in questions of which each is a join by itself.
fn is_missing(question: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    // The outer row may have a column of the same name.
    let question = InSubquery { subquery: apart(question.subquery)?, ..question };
    let nulls = Nulls::of(&question, schema)?;
    let InSubquery { expr, subquery, .. } = question;
    let is_it = nulls.found.clone().eq(of_outer_row(expr.as_ref().clone(), schema)?);
    let mut condition = not(exists(&subquery, only(&subquery, is_it)?));
    if nulls.in_rows {
        condition = condition.and(not(exists(&subquery, only(&subquery, nulls.found.is_null())?)));
    }
    if nulls.in_question {
        let nothing = not(exists(&subquery, subquery.subquery.as_ref().clone()));
        condition = condition.and(expr.is_not_null().or(nothing));
    }
    Ok(Transformed::yes(condition))
}

/// A part of a condition with questions that are told in all their values.
fn values_in(condition: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    condition.transform_down(|part| match part {
        Expr::InSubquery(question) => value(question, schema),
        other => Ok(Transformed::no(other)),
    })
}

/// Where NULLs may come from.
struct Nulls {
    /// The column of the subquery.
    found: Expr,
    in_rows: bool,
    in_question: bool,
}

impl Nulls {
    fn of(question: &InSubquery, schema: &DFSchema) -> Result<Self> {
        let rows = question.subquery.subquery.schema();
        if rows.fields().len() != 1 {
            return plan_err!("a subquery of IN has {} columns instead of one", rows.fields().len());
        }
        let found = Column::from(rows.qualified_field(0));
        let in_rows = rows.nullable(&found)?;
        // What can not be told may be NULL.
        let in_question = question.expr.nullable(schema).unwrap_or(true);
        Ok(Self { found: Expr::Column(found), in_rows, in_question })
    }
}

/// A subquery whose column nobody else's is taken for.
fn apart(subquery: Subquery) -> Result<Subquery> {
    let schema = subquery.subquery.schema();
    if schema.fields().len() != 1 {
        return Ok(subquery);
    }
    let column = Expr::Column(Column::from(schema.qualified_field(0))).alias(APART);
    let rows = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).project([column])?.build()?;
    Ok(Subquery { subquery: Arc::new(rows), ..subquery })
}

/// Rows of a subquery.
fn only(subquery: &Subquery, condition: Expr) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(subquery.subquery.as_ref().clone()).filter(condition)?.build()
}

/// An expression of the outer row, as it is written in a subquery.
fn of_outer_row(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    expr.transform_up(|part| match part {
        Expr::Column(column) => {
            let field = Arc::clone(schema.field_from_column(&column)?);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}

/// The three values of a question, in terms of questions that are not asked together with others.
fn value(question: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Nulls { found, in_rows, in_question } = Nulls::of(&question, schema)?;
    let InSubquery { expr, subquery, negated } = question;
    let nulls = match in_rows {
        true => Some(exists(&subquery, only(&subquery, found.is_null())?)),
        false => None,
    };
    let asked_for_null = in_question.then(|| {
        let any = exists(&subquery, subquery.subquery.as_ref().clone());
        expr.as_ref().clone().is_null().and(any)
    });
    let unknown = nulls.into_iter().chain(asked_for_null).reduce(Expr::or);
    let is_there = Expr::InSubquery(InSubquery { expr, subquery, negated: false });
    let value = match unknown {
        Some(unknown) => {
            when(is_there, lit(true)).when(unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(false))?
        }
        None if !negated => return Ok(Transformed::new(is_there, false, TreeNodeRecursion::Jump)),
        None => is_there,
    };
    let value = if negated { not(value) } else { value };
    // The question that is asked again is in it.
    Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
}

/// Whether there are rows, of the same place.
fn exists(subquery: &Subquery, rows: LogicalPlan) -> Expr {
    let outer_ref_columns = rows.all_out_ref_exprs();
    let subquery = Subquery { subquery: Arc::new(rows), outer_ref_columns, spans: subquery.spans.clone() };
    Expr::Exists(Exists { subquery, negated: false })
}

fn in_projection(projection: Projection, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    let mut input = Arc::unwrap_or_clone(projection.input);
    let exprs = projection.expr.into_iter().map(|expr| marked(expr, &mut input, config));
    let exprs = exprs.collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?)))
}

fn in_aggregate(aggregate: Aggregate, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    let mut input = Arc::unwrap_or_clone(aggregate.input);
    let mut all = |exprs: Vec<Expr>| -> Result<Vec<Expr>> {
        exprs.into_iter().map(|expr| marked(expr, &mut input, config)).collect()
    };
    let (groups, aggregates) = (all(aggregate.group_expr)?, all(aggregate.aggr_expr)?);
    Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), groups, aggregates)?)))
}

/// Rows that an inner join pairs are filtered after it as well as in it.
fn in_join(mut join: Join) -> Result<Transformed<LogicalPlan>> {
    let Some(filter) = join.filter.take() else { return Ok(Transformed::no(LogicalPlan::Join(join))) };
    let (asked, plain): (Vec<_>, Vec<_>) = split_conjunction_owned(filter).into_iter().partition(has_subquery);
    join.filter = conjunction(plain);
    let asked = conjunction(asked).unwrap_or_else(|| lit(true));
    in_filter(Filter::try_new(asked, Arc::new(LogicalPlan::Join(join)))?).map(|filter| Transformed::yes(filter.data))
}

/// An expression over an input that has marks for its questions, under its old name.
fn marked(expr: Expr, input: &mut LogicalPlan, config: &dyn OptimizerConfig) -> Result<Expr> {
    if !has_subquery(&expr) {
        return Ok(expr);
    }
    let name = expr.schema_name().to_string();
    let schema = Arc::clone(input.schema());
    let marked = expr.transform_down(|part| {
        let asked = match part {
            Expr::InSubquery(question) => value(question, &schema)?.data,
            Expr::Exists(_) => part,
            other => return Ok(Transformed::no(other)),
        };
        Ok(match marks(&asked, input, config)? {
            Some((with_marks, value)) => {
                *input = with_marks;
                Transformed::new(value, true, TreeNodeRecursion::Jump)
            }
            // DataFusion says what it can not do.
            None => Transformed::new(asked, false, TreeNodeRecursion::Jump),
        })
    });
    let marked = marked?.data;
    Ok(if marked.schema_name().to_string() == name { marked } else { marked.alias(name) })
}

/// The joins that DataFusion makes of questions inside of a condition, and what then stands for them.
fn marks(asked: &Expr, input: &LogicalPlan, config: &dyn OptimizerConfig) -> Result<Option<(LogicalPlan, Expr)>> {
    let condition = asked.clone().or(lit(false));
    let filter = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(input.clone()))?);
    let joined = DecorrelatePredicateSubquery::new().rewrite(filter, config)?.data;
    let LogicalPlan::Projection(shown) = joined else { return Ok(None) };
    let LogicalPlan::Filter(filter) = Arc::unwrap_or_clone(shown.input) else { return Ok(None) };
    Ok(match filter.predicate {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, .. }) if !has_subquery(&left) => {
            Some((Arc::unwrap_or_clone(filter.input), *left))
        }
        _ => None,
    })
}
