//! The same query as people change it: another SELECT list, another HAVING. The text itself is changed, nothing is put around it.

use anyhow::{Context, Result, bail};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArguments, Query, Select, SelectItem, SetExpr, Statement, Value,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// The first half of the SELECT list, the other way round, and a number that makes it another text; of a single column, what it
/// computes and one more. Without ORDER BY, whose columns may have gone, and LIMIT, which would end it early without an order.
pub(super) fn other_list(sql: &str, number: usize) -> Result<String> {
    change(sql, |query| {
        query.order_by = None;
        query.limit_clause = None;
        let select = select(query)?;
        let n_left = select.projection.len().div_ceil(2);
        select.projection.truncate(n_left);
        select.projection.reverse();
        if let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] = select.projection.as_slice() {
            let more = binary(Expr::Nested(Box::new(expr.clone())), BinaryOperator::Plus, literal(number));
            select.projection.push(SelectItem::UnnamedExpr(more));
        }
        select.projection.push(SelectItem::UnnamedExpr(literal(number)));
        Ok(true)
    })?
    .context("every query has a SELECT list")
}

/// One more condition on an aggregate of the SELECT list. `None` for a query without one.
pub(super) fn other_having(sql: &str, number: usize) -> Result<Option<String>> {
    change(sql, |query| {
        let select = select(query)?;
        let exprs = select.projection.iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
            _ => None,
        });
        let Some(aggregate) = exprs.into_iter().find_map(aggregate) else { return Ok(false) };
        let condition = binary(aggregate, BinaryOperator::Gt, literal(number));
        select.having = Some(match select.having.take() {
            Some(having) => binary(Expr::Nested(Box::new(having)), BinaryOperator::And, condition),
            None => condition,
        });
        Ok(true)
    })
}

fn change(sql: &str, change: impl FnOnce(&mut Query) -> Result<bool>) -> Result<Option<String>> {
    let mut statements = Parser::parse_sql(&GenericDialect {}, sql)?;
    let [Statement::Query(query)] = statements.as_mut_slice() else { bail!("not one query") };
    Ok(change(query)?.then(|| query.to_string()))
}

fn select(query: &mut Query) -> Result<&mut Select> {
    match query.body.as_mut() {
        SetExpr::Select(select) => Ok(select),
        _ => bail!("not a SELECT"),
    }
}

/// The first aggregate that an expression uses.
fn aggregate(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Function(function) => {
            let name = function.name.to_string().to_lowercase();
            let is_aggregate = ["sum", "count", "avg", "min", "max"].contains(&name.as_str());
            let has_arguments = matches!(function.args, FunctionArguments::List(_));
            (is_aggregate && has_arguments).then(|| expr.clone())
        }
        Expr::BinaryOp { left, right, .. } => aggregate(left).or_else(|| aggregate(right)),
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => aggregate(inner),
        _ => None,
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn literal(number: usize) -> Expr {
    Expr::Value(Value::Number(number.to_string(), false).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_changed_where_people_change_it() {
        let sql = "SELECT a, sum(b) * 2 AS s, c FROM t GROUP BY a, c HAVING count(*) > 1 OR a = 3 ORDER BY c LIMIT 3";
        assert_eq!(
            other_list(sql, 7).unwrap(),
            "SELECT sum(b) * 2 AS s, a, 7 FROM t GROUP BY a, c HAVING count(*) > 1 OR a = 3"
        );
        assert_eq!(
            other_having(sql, 7).unwrap().unwrap(),
            "SELECT a, sum(b) * 2 AS s, c FROM t GROUP BY a, c HAVING (count(*) > 1 OR a = 3) AND sum(b) > 7 ORDER BY c LIMIT 3"
        );
        assert_eq!(other_list("SELECT sum(b) FROM t", 1).unwrap(), "SELECT sum(b), (sum(b)) + 1, 1 FROM t");
        assert_eq!(other_having("SELECT a FROM t", 1).unwrap(), None);
    }

    #[test]
    fn all_queries_can_be_changed() {
        let mut n_having = 0;
        for number in 1..=crate::tpch::queries::N_QUERIES {
            let sql = crate::tpch::queries::sql(number, 1.0);
            assert_ne!(other_list(&sql, 1).unwrap(), sql);
            n_having += usize::from(other_having(&sql, 1).unwrap().is_some());
        }
        assert!(n_having >= 18, "{n_having}");
    }
}
