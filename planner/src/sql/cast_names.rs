//! [`CastNames`]: a column and a cast of it have different names.
//!
//! To DataFusion, `CAST(a AS TEXT)` is called as `a` is, and no list may name two things alike: not even one that also holds `a` because
//! the rows are sorted by it.
//!
//! ```text
//!   SELECT CAST(a AS TEXT) FROM t ORDER BY a     SELECT CAST(a AS TEXT) AS "CAST(a AS TEXT)" FROM t ORDER BY a
//!   SELECT a, a::TEXT FROM t                     SELECT a, a::TEXT AS "a::TEXT" FROM t
//! ```
//!
//! Stays quiet  where nothing else is called so: what has a name keeps it.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, OrderByKind, Query, SelectItem, SetExpr, Visit, Visitor, VisitorMut};

/// Gives casts a name that would clash without.
pub(super) struct CastNames;

impl VisitorMut for CastNames {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let mut sorted = vec![];
        if let Some(order) = &query.order_by
            && let OrderByKind::Expressions(keys) = &order.kind
        {
            sorted.extend(keys.iter().map(|key| key.expr.clone()));
        }
        if let SetExpr::Select(select) = query.body.as_mut() {
            name_casts(&mut select.projection, &sorted);
        }
        ControlFlow::Continue(())
    }
}

fn name_casts(items: &mut [SelectItem], sorted: &[Expr]) {
    let named: Vec<Option<(&[Ident], bool)>> = items.iter().map(name).collect();
    if !named.iter().flatten().any(|(_, is_cast)| *is_cast) {
        return;
    }
    let is_alias = |column: &[Ident]| {
        let aliases = items.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(alias),
            _ => None,
        });
        matches!(column, [column] if aliases.into_iter().any(|alias| is_same(alias, column)))
    };
    let has_wildcard =
        items.iter().any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    let clashes = |position: usize, column: &[Ident]| {
        let others = named.iter().enumerate().filter(|(other, _)| *other != position);
        let is_selected = others.flat_map(|(_, other)| other).any(|(other, _)| may_be(column, other));
        let own = expr_of(&items[position]);
        let keys = sorted.iter().flat_map(|key| columns_of(key, own));
        let is_sorted = keys.into_iter().any(|key| may_be(column, &key) && !is_alias(&key));
        has_wildcard || is_selected || is_sorted
    };
    let casts = named
        .iter()
        .enumerate()
        .filter_map(|(position, name)| name.filter(|(_, is_cast)| *is_cast).map(|(column, _)| (position, column)));
    let clashing: Vec<usize> =
        casts.filter(|(position, column)| clashes(*position, column)).map(|(position, _)| position).collect();
    for position in clashing {
        if let SelectItem::UnnamedExpr(expr) = &items[position] {
            let alias = Ident::with_quote('"', expr.to_string());
            items[position] = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

fn expr_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some(expr),
        _ => None,
    }
}

/// The column that an item without a name is called after, and whether it is a cast of it.
fn name(item: &SelectItem) -> Option<(&[Ident], bool)> {
    let mut expr = expr_of(item)?;
    let mut is_cast = false;
    loop {
        match expr {
            Expr::Cast { expr: inner, .. } => {
                expr = inner;
                is_cast = true;
            }
            Expr::Nested(inner) => expr = inner,
            Expr::Identifier(name) => return Some((std::slice::from_ref(name), is_cast)),
            Expr::CompoundIdentifier(names) => return Some((names, is_cast)),
            _ => return None,
        }
    }
}

/// Whether two names may mean one column: what both say is the same.
fn may_be(one: &[Ident], two: &[Ident]) -> bool {
    one.iter().rev().zip(two.iter().rev()).all(|(one, two)| is_same(one, two))
}

fn is_same(one: &Ident, two: &Ident) -> bool {
    match (one.quote_style, two.quote_style) {
        (Some(_), Some(_)) => one.value == two.value,
        _ => one.value.eq_ignore_ascii_case(&two.value),
    }
}

/// Columns in an expression, outside of `except`.
fn columns_of(expr: &Expr, except: Option<&Expr>) -> Vec<Vec<Ident>> {
    struct Columns<'a> {
        except: Option<&'a Expr>,
        n_inside: usize,
        found: Vec<Vec<Ident>>,
    }
    impl Visitor for Columns<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            self.n_inside += usize::from(Some(expr) == self.except);
            match expr {
                _ if self.n_inside > 0 => {}
                Expr::Identifier(name) => self.found.push(vec![name.clone()]),
                Expr::CompoundIdentifier(names) => self.found.push(names.clone()),
                _ => {}
            }
            ControlFlow::Continue(())
        }

        fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            self.n_inside -= usize::from(Some(expr) == self.except);
            ControlFlow::Continue(())
        }
    }
    let mut columns = Columns { except, n_inside: 0, found: vec![] };
    let _: ControlFlow<()> = expr.visit(&mut columns);
    columns.found
}

#[cfg(test)]
mod tests {
    use crate::sql::{ParseOptions, Statement, parse};

    #[test]
    fn only_what_would_clash() {
        let check = |sql: &str, expected: &str| {
            let Ok(Some(Statement::DataFusion(statement))) = parse(sql, &ParseOptions::default()) else {
                panic!("{sql}")
            };
            assert_eq!(statement.to_string(), expected, "{sql}");
        };
        let same = |sql: &str| check(sql, sql);
        check(
            "SELECT CAST(a AS TEXT) FROM t ORDER BY a",
            "SELECT CAST(a AS TEXT) AS \"CAST(a AS TEXT)\" FROM t ORDER BY a",
        );
        check("SELECT T.a::TEXT FROM t ORDER BY b, A", "SELECT T.a::TEXT AS \"T.a::TEXT\" FROM t ORDER BY b, A");
        check("SELECT a, (a::TEXT) FROM t", "SELECT a, (a::TEXT) AS \"(a::TEXT)\" FROM t");
        check("SELECT *, a::INT FROM t", "SELECT *, a::INT AS \"a::INT\" FROM t");
        check("SELECT a::INT, a::TEXT FROM t", "SELECT a::INT AS \"a::INT\", a::TEXT AS \"a::TEXT\" FROM t");
        check(
            "SELECT 1 FROM (SELECT a::TEXT FROM t ORDER BY a + 1 LIMIT 1) AS q",
            "SELECT 1 FROM (SELECT a::TEXT AS \"a::TEXT\" FROM t ORDER BY a + 1 LIMIT 1) AS q",
        );
        for sql in [
            "SELECT CAST(a AS TEXT) FROM t",
            "SELECT CAST(a AS TEXT) FROM t ORDER BY b",
            "SELECT CAST(a AS TEXT) FROM t ORDER BY CAST(a AS TEXT)",
            "SELECT CAST(a AS TEXT), b AS a FROM t ORDER BY a",
            "SELECT CAST(t.a AS TEXT), u.a FROM t, u ORDER BY u.a",
            "SELECT CAST(a AS TEXT) AS a FROM t ORDER BY a",
            "SELECT CAST(a + 1 AS TEXT) FROM t ORDER BY a",
        ] {
            same(sql);
        }
    }
}
