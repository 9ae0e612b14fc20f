//! [`FetchFirst`]: `FETCH FIRST n ROWS ONLY`, as the standard has it, is `LIMIT n`.
//!
//! `WITH TIES` and `PERCENT` stay as they are, and are refused later; so does a `FETCH` beside a `LIMIT`.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Fetch, LimitClause, Query, Value, VisitorMut};

/// Puts limits in the place of fetches.
pub(super) struct FetchFirst;

impl VisitorMut for FetchFirst {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let free = |clause: &Option<LimitClause>| match clause {
            None => true,
            Some(LimitClause::LimitOffset { limit, limit_by, .. }) => limit.is_none() && limit_by.is_empty(),
            Some(LimitClause::OffsetCommaLimit { .. }) => false,
        };
        let is_plain = |fetch: &Fetch| !fetch.with_ties && !fetch.percent;
        if free(&query.limit_clause)
            && let Some(fetch) = query.fetch.take_if(|fetch| is_plain(fetch))
        {
            let offset = match query.limit_clause.take() {
                Some(LimitClause::LimitOffset { offset, .. }) => offset,
                _ => None,
            };
            // FETCH FIRST ROW ONLY is one.
            let one = || Expr::value(Value::Number("1".to_owned(), false));
            let limit = Some(fetch.quantity.unwrap_or_else(one));
            query.limit_clause = Some(LimitClause::LimitOffset { limit, offset, limit_by: vec![] });
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::{ParseOptions, Statement, parse};

    #[test]
    fn only_what_means_the_same() {
        for (sql, meant) in [
            ("SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS ONLY", "SELECT a FROM t ORDER BY a LIMIT 2"),
            ("SELECT a FROM t FETCH FIRST ROW ONLY", "SELECT a FROM t LIMIT 1"),
            ("SELECT a FROM t OFFSET 3 ROWS FETCH NEXT 2 ROWS ONLY", "SELECT a FROM t LIMIT 2 OFFSET 3 ROWS"),
            ("SELECT (SELECT b FROM u FETCH FIRST 1 ROW ONLY) FROM t", "SELECT (SELECT b FROM u LIMIT 1) FROM t"),
            ("SELECT a FROM t LIMIT 5 FETCH FIRST 2 ROWS ONLY", "SELECT a FROM t LIMIT 5 FETCH FIRST 2 ROWS ONLY"),
            ("SELECT a FROM t FETCH FIRST 2 ROWS WITH TIES", "SELECT a FROM t FETCH FIRST 2 ROWS WITH TIES"),
            ("SELECT a FROM t FETCH FIRST 2 PERCENT ROWS ONLY", "SELECT a FROM t FETCH FIRST 2 PERCENT ROWS ONLY"),
        ] {
            let Ok(Some(Statement::DataFusion(statement))) = parse(sql, &ParseOptions::default()) else {
                panic!("{sql}")
            };
            assert_eq!(statement.to_string(), meant);
        }
    }
}
