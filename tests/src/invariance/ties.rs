//! Rows that an order does not tell apart: which of them LIMIT and OFFSET leave is a matter of luck.

use std::ops::ControlFlow;

use arrow::datatypes::SchemaRef;
use datafusion::sql::sqlparser::ast::{
    Expr, OrderByExpr, OrderByKind, OrderByOptions, Query, SelectItem, SetExpr, Statement, Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::order_of;

/// For a statement that gives some rows of an order: the statement for all of them, and the columns that the order is by. `None` if it is
/// by something else than columns of the answer.
pub(super) fn whole_of(sql: &str, schema: &SchemaRef) -> Option<(String, Vec<usize>)> {
    let mut statements = Parser::parse_sql(&GenericDialect {}, sql).ok()?;
    let Some(Statement::Query(query)) = statements.first_mut() else { return None };
    query.limit_clause.take()?;
    let OrderByKind::Expressions(keys) = &query.order_by.as_ref()?.kind else { return None };
    let order = order_of(sql, schema);
    (order.len() == keys.len()).then(|| (query.to_string(), order.into_iter().map(|(column, ..)| column).collect()))
}

/// The same statement, its inner limits cutting an order of all columns. `None` if there is none that did not before.
pub(super) fn without_inner_ties(sql: &str) -> Option<String> {
    let mut statements = Parser::parse_sql(&GenericDialect {}, sql).ok()?;
    let [statement] = statements.as_mut_slice() else { return None };
    let before = statement.to_string();
    let _ = VisitMut::visit(statement, &mut Totals { depth: 0 });
    let after = statement.to_string();
    (before != after).then_some(after)
}

/// Completes orders below the outermost query.
struct Totals {
    depth: usize,
}

impl VisitorMut for Totals {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        if self.depth > 1 && query.limit_clause.is_some() {
            complete(query);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Appends all columns to an order, if it is known how many there are.
fn complete(query: &mut Query) {
    let Some(n_columns) = n_columns(&query.body) else { return };
    let Some(order_by) = &mut query.order_by else { return };
    let OrderByKind::Expressions(keys) = &mut order_by.kind else { return };
    let all = (1..=n_columns).map(|column| Expr::value(Value::Number(column.to_string(), false)));
    let missing: Vec<Expr> = all.filter(|column| keys.iter().all(|key| key.expr != *column)).collect();
    let options = OrderByOptions { asc: None, nulls_first: None };
    keys.extend(missing.into_iter().map(|expr| OrderByExpr { expr, options, with_fill: None }));
}

fn n_columns(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let is_one =
                |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
            select.projection.iter().all(is_one).then_some(select.projection.len())
        }
        SetExpr::SetOperation { left, .. } => n_columns(left),
        SetExpr::Query(query) => n_columns(&query.body),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::invariance::Rows;
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Schema};

    fn rows(pairs: &[(i64, i64)]) -> Rows {
        let fields = ["a", "b"].map(|name| Field::new(name, DataType::Int64, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let column =
            |of: fn(&(i64, i64)) -> i64| Arc::new(Int64Array::from_iter_values(pairs.iter().map(of))) as ArrayRef;
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column(|pair| pair.0), column(|pair| pair.1)]);
        Rows::new(schema, &[batch.unwrap()]).unwrap()
    }

    #[test]
    fn ties() {
        let (one, other, wrong) = (rows(&[(1, 1), (2, 1)]), rows(&[(1, 2), (2, 1)]), rows(&[(1, 1), (3, 1)]));
        assert!(
            one.same_rows_in(&[0], &other) && !one.same_rows_in(&[0, 1], &other) && !one.same_rows_in(&[0], &wrong)
        );
        let whole = |sql: &str| whole_of(sql, one.schema());
        assert_eq!(
            whole("SELECT a, b FROM t ORDER BY 1 DESC OFFSET 1"),
            Some(("SELECT a, b FROM t ORDER BY 1 DESC".to_owned(), vec![0]))
        );
        assert_eq!(whole("SELECT a, b FROM t ORDER BY b, a LIMIT 3").map(|(_, columns)| columns), Some(vec![1, 0]));
        assert_eq!(whole("SELECT a, b FROM t ORDER BY a + b LIMIT 3"), None);
        assert_eq!(whole("SELECT a, b FROM t ORDER BY a"), None);
        assert_eq!(whole("SELECT a, b FROM t LIMIT 3"), None);
    }
    #[test]
    fn inner_ties() {
        let inner = |limit: &str| {
            format!("SELECT a FROM (SELECT a, b AS c, d FROM t ORDER BY {limit}) AS v ORDER BY a LIMIT 1")
        };
        assert_eq!(without_inner_ties(&inner("3 DESC LIMIT 5")), Some(inner("3 DESC, 1, 2 LIMIT 5")));
        assert_eq!(without_inner_ties(&inner("3, 2, 1 LIMIT 5")), None);
        assert_eq!(without_inner_ties(&inner("3")), None);
        let union = "WITH v AS (SELECT a FROM t UNION ALL SELECT b FROM t ORDER BY a OFFSET 2) SELECT * FROM v";
        assert_eq!(without_inner_ties(union), Some(union.replace("BY a", "BY a, 1")));
    }
}
