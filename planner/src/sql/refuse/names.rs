//! Two tables in one FROM that go by the same name: DataFusion takes the columns of one of them for those of the other.
//!
//! `FROM q, zz.q`: `q.a` and `zz.q.a` are both the column of whichever comes first. Not so with an alias, or if both are
//! named with their schemas. PostgreSQL takes such tables, and refuses `q.a`.
//!
//! A subquery without an alias goes by the names of the tables that its columns are of: `FROM q, (SELECT * FROM zz.q)`.
//! Two that go by the same text (`FROM q, (SELECT * FROM q)`) are an error of DataFusion's if they have a column of one
//! name.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, ObjectName, PipeOperator, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    SetOperator, Spanned, TableFactor, TableWithJoins,
};
use sqlparser::tokenizer::Span;

use super::{Found, refuse_if};

/// What columns of a table go by.
struct Called {
    /// Its own name, without those that it is in.
    name: String,
    /// Those, from the outside.
    within: Vec<String>,
    near: Span,
}

/// Refuses two that could be taken for each other.
pub(super) fn select(select: &Select) -> Found {
    tell_apart(&from(select))
}

/// The same for those that a pipe joins.
pub(super) fn query(query: &Query) -> Found {
    if query.pipe_operators.is_empty() {
        return ControlFlow::Continue(());
    }
    let mut called = of_body(&query.body);
    for operator in &query.pipe_operators {
        called = piped(operator, called);
        tell_apart(&called)?;
    }
    ControlFlow::Continue(())
}

fn tell_apart(called: &[Called]) -> Found {
    for (position, one) in called.iter().enumerate() {
        // Of two with the same text DataFusion knows that they are two.
        let is_like = |other: &&Called| other.name == one.name && other.within.len() != one.within.len();
        if let Some(other) = called[..position].iter().find(is_like) {
            let clause = format!("the name \"{}\" for two tables ({} and {})", one.name, other.told(), one.told());
            refuse_if(true, clause, one.near, "give one of them an alias: FROM a.t JOIN b.t AS u")?;
        }
    }
    ControlFlow::Continue(())
}

impl Called {
    fn told(&self) -> String {
        self.within.iter().chain([&self.name]).map(String::as_str).collect::<Vec<_>>().join(".")
    }
}

/// What columns go by behind a FROM.
fn from(select: &Select) -> Vec<Called> {
    let mut called = vec![];
    select.from.iter().for_each(|table| tables(table, &mut called));
    called
}

fn tables(table: &TableWithJoins, called: &mut Vec<Called>) {
    factor(&table.relation, called);
    table.joins.iter().for_each(|join| factor(&join.relation, called));
}

fn factor(table: &TableFactor, called: &mut Vec<Called>) {
    let near = table.span();
    let alias = match table {
        // Functions with brackets go by them as well: `range()`.
        TableFactor::Table { alias: None, args: Some(_), .. } => return,
        TableFactor::Table { name, alias: None, .. } | TableFactor::Function { name, alias: None, .. } => {
            called.extend(by_name(name, near));
            return;
        }
        TableFactor::NestedJoin { table_with_joins, alias: None } => return tables(table_with_joins, called),
        TableFactor::Derived { subquery, alias: None, .. } => {
            called.extend(of_query(subquery));
            return;
        }
        TableFactor::Table { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_ref(),
        _ => None,
    };
    called.extend(alias.map(|alias| Called { name: folded(&alias.name), within: vec![], near }));
}

/// What the columns of a query go by.
fn of_query(query: &Query) -> Vec<Called> {
    query.pipe_operators.iter().fold(of_body(&query.body), |called, operator| piped(operator, called))
}

fn of_body(body: &SetExpr) -> Vec<Called> {
    match body {
        SetExpr::Select(select) => selected(&select.projection, from(select)),
        SetExpr::Query(query) => of_query(query),
        // logical_plan/plan.rs, `derive_schema_from_inputs`: columns of a UNION are of no table; those of EXCEPT and
        // INTERSECT are the left ones.
        SetExpr::SetOperation { op: SetOperator::Union, .. } => vec![],
        SetExpr::SetOperation { left, .. } => of_body(left),
        _ => vec![],
    }
}

/// What is left after a pipe.
fn piped(operator: &PipeOperator, mut called: Vec<Called>) -> Vec<Called> {
    match operator {
        PipeOperator::Join(join) => factor(&join.relation, &mut called),
        PipeOperator::Select { exprs } => return selected(exprs, called),
        PipeOperator::As { alias } => {
            return vec![Called { name: folded(alias), within: vec![], near: alias.span }];
        }
        PipeOperator::Union { .. } => called.clear(),
        _ => {}
    }
    called
}

/// What those of a select list go by: columns as their tables do, all else by no name.
fn selected(items: &[SelectItem], called: Vec<Called>) -> Vec<Called> {
    let is_of = |item: &SelectItem, table: &Called| match item {
        SelectItem::Wildcard(_) => true,
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            name.0.last().and_then(|part| part.as_ident()).is_some_and(|of| folded(of) == table.name)
        }
        _ => match column(item) {
            Some([.., of, _]) => folded(of) == table.name,
            // Of any of them.
            Some(_) => true,
            None => false,
        },
    };
    called.into_iter().filter(|table| items.iter().any(|item| is_of(item, table))).collect()
}

/// The name of a column that is selected under its own name.
fn column(item: &SelectItem) -> Option<&[Ident]> {
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(expr) => (expr, None),
        SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
        _ => return None,
    };
    let mut expr = expr;
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    let name = match expr {
        Expr::Identifier(name) => std::slice::from_ref(name),
        Expr::CompoundIdentifier(names) => names.as_slice(),
        _ => return None,
    };
    // select.rs, `sql_select_to_rex`: the same name is no alias.
    let is_own = alias.is_none_or(|alias| name.last().is_some_and(|column| folded(column) == folded(alias)));
    is_own.then_some(name)
}

fn by_name(name: &ObjectName, near: Span) -> Option<Called> {
    let mut parts: Vec<String> = name.0.iter().map(|part| part.as_ident().map(folded)).collect::<Option<_>>()?;
    let name = parts.pop()?;
    Some(Called { name, within: parts, near })
}

/// As it is looked up.
fn folded(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::{ParseOptions, parse, refuse_ignored};

    fn refusal(sql: &str) -> Option<String> {
        let statement = parse(sql, &ParseOptions::default()).unwrap_or_else(|error| panic!("{sql}: {error}"));
        refuse_ignored(&statement.expect("a statement"), sql).err().map(|error| error.to_string())
    }

    #[test]
    fn subqueries_go_by_what_is_in_them() {
        for sql in [
            "SELECT * FROM q, (SELECT * FROM zz.q)",
            "SELECT q.w FROM (SELECT * FROM zz.q), q",
            "SELECT * FROM (SELECT * FROM q), (SELECT * FROM zz.q)",
            "SELECT count(*) FROM q JOIN (SELECT * FROM zz.q) ON q.a = zz.q.a",
            "SELECT * FROM zz.q, ((SELECT a AS a FROM q WHERE a > 1 ORDER BY b LIMIT 1))",
            "SELECT * FROM zz.q, (SELECT DISTINCT b + 1, (Q.a) FROM t, q)",
            "SELECT * FROM zz.q, (SELECT * FROM (SELECT * FROM (q JOIN t ON true)))",
            "SELECT * FROM zz.q, (SELECT a, count(*) FROM q GROUP BY a)",
            "SELECT * FROM zz.q, (SELECT a FROM q EXCEPT SELECT a FROM t)",
            "SELECT * FROM zz.q, (WITH q AS (SELECT 1 AS a) SELECT * FROM q)",
            "SELECT * FROM zz.q, LATERAL (SELECT * FROM u AS q)",
            "SELECT * FROM zz.q, (FROM q)",
            "SELECT * FROM zz.q, (SELECT t.a, q.* FROM q, t)",
            "SELECT * FROM q, (SELECT zz.q.* EXCLUDE (a) FROM zz.q)",
            "SELECT * FROM t WHERE a IN (SELECT a FROM q, (SELECT a FROM zz.q))",
            "FROM q |> JOIN zz.q ON q.a = zz.q.a |> AS z",
            "SELECT * FROM q, (FROM zz.q |> WHERE a > 1)",
        ] {
            let refusal = refusal(sql).unwrap_or_else(|| panic!("{sql}"));
            assert!(refusal.contains("the name \"q\" for two tables"), "{sql}: {refusal}");
        }
        for sql in [
            "SELECT * FROM q, (SELECT * FROM zz.q) AS z",
            "SELECT * FROM (SELECT * FROM zz.q)",
            "SELECT * FROM (SELECT zz.q.*, zz.q.a AS x FROM zz.q)",
            "SELECT * FROM q, (SELECT a + 1, b AS x, count(*) FROM zz.q GROUP BY a, b)",
            "SELECT * FROM q, (SELECT t.a FROM zz.q, t)",
            "SELECT * FROM q, (SELECT t.* FROM zz.q, t)",
            "SELECT * FROM q, (SELECT a FROM zz.q UNION ALL SELECT a FROM zz.q)",
            "SELECT * FROM q, (SELECT a FROM t EXCEPT SELECT a FROM zz.q)",
            "SELECT * FROM q, (VALUES (1)), (SELECT 1)",
            "SELECT * FROM public.q, (SELECT * FROM zz.q)",
            "SELECT * FROM zz.range, range(1, 2)",
            "SELECT * FROM q, (FROM zz.q |> AS z)",
            "FROM q |> AS z |> JOIN zz.q ON z.a = zz.q.a",
            "SELECT zz.q.* FROM t, zz.q |> WHERE a > 1",
        ] {
            assert_eq!(refusal(sql), None, "{sql}");
        }
    }
}
