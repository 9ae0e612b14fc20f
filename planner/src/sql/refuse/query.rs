//! Clauses of queries, selects and tables that are forgotten.

use std::ops::ControlFlow;

use sqlparser::ast::{
    FunctionArg, GroupByExpr, OrderByKind, PipeOperator, Query, Select, SelectItem, SetExpr, SetOperator, Spanned,
    TableAlias, TableFactor, TableVersion, With,
};
use sqlparser::tokenizer::Span;

use super::{Found, refuse_if};
use crate::sql::refuse::expression::named_window;

/// query.rs, `query_to_plan`: `locks: _, for_clause: _, settings: _, format_clause: _`.
pub(super) fn query(query: &Query, into_allowed: bool) -> Found {
    let near = query.span();
    if let Some(lock) = query.locks.first() {
        refuse_if(
            true,
            format!("FOR {}", lock.lock_type),
            near,
            "a statement reads one snapshot and locks nothing: leave it out",
        )?;
    }
    if let Some(for_clause) = &query.for_clause {
        refuse_if(true, first_words(&for_clause.to_string(), 2), near, None)?;
    }
    refuse_if(query.settings.is_some(), "SETTINGS", Span::empty(), "use SET before the statement")?;
    refuse_if(query.format_clause.is_some(), "FORMAT", Span::empty(), "use COPY (..) TO 'file' STORED AS ..")?;

    // query.rs, `to_order_by_exprs`: without a select list, ALL gives no expressions and so no order.
    if let Some(order_by) = &query.order_by {
        let is_select = matches!(query.body.as_ref(), SetExpr::Select(_));
        refuse_if(
            !is_select && matches!(order_by.kind, OrderByKind::All(_)),
            "ORDER BY ALL",
            near,
            "name the columns",
        )?;
        if let OrderByKind::Expressions(expressions) = &order_by.kind {
            named_window(expressions, "in ORDER BY")?;
        }
    }
    // query.rs, `pipe_operator_aggregate`: takes the expression and its alias, not its order.
    for operator in &query.pipe_operators {
        if let PipeOperator::Aggregate { full_table_exprs, group_by_expr } = operator {
            let ordered = full_table_exprs
                .iter()
                .chain(group_by_expr)
                .any(|e| e.order_by.asc.is_some() || e.order_by.nulls_first.is_some());
            refuse_if(ordered, "order inside of |> AGGREGATE", near, "use |> ORDER BY after it")?;
        }
    }
    into(&query.body, into_allowed)?;
    query.with.as_ref().map_or(ControlFlow::Continue(()), with)
}

/// query.rs, `query_to_plan` looks at `INTO` only where the body is one select; elsewhere it is lost (set_expr.rs),
/// or ends up as a command in the middle of a plan. `temporary` is not looked at.
fn into(body: &SetExpr, allowed: bool) -> Found {
    let mut bodies = vec![(body, allowed)];
    while let Some((body, allowed)) = bodies.pop() {
        match body {
            SetExpr::Select(select) => {
                if let Some(into) = &select.into {
                    let near = select.span();
                    refuse_if(!allowed, "INTO in a part of a query", near, "use CREATE TABLE .. AS")?;
                    refuse_if(into.temporary, "TEMPORARY in SELECT INTO", near, "tables are durable: leave it out")?;
                }
            }
            SetExpr::SetOperation { left, right, .. } => {
                bodies.extend([(right.as_ref(), false), (left.as_ref(), false)])
            }
            _ => {}
        }
    }
    ControlFlow::Continue(())
}

/// cte.rs. `MATERIALIZED` is a hint: both ways give the same rows.
fn with(with: &With) -> Found {
    for cte in &with.cte_tables {
        let near = cte.alias.name.span;
        refuse_if(cte.from.is_some(), "FROM after a WITH query", near, None)?;
        alias(Some(&cte.alias))?;
        // cte.rs, `recursive_cte`: takes both sides of a UNION and leaves the rest of the query behind. ORDER BY alone
        // says nothing about the rows.
        let is_union = matches!(cte.query.body.as_ref(), SetExpr::SetOperation { op: SetOperator::Union, .. });
        if with.recursive && is_union {
            let hint = "put it around the name: SELECT .. FROM (SELECT * FROM name LIMIT ..)";
            let has_limit = cte.query.limit_clause.is_some() || cte.query.fetch.is_some();
            refuse_if(has_limit, "LIMIT in a WITH RECURSIVE query", near, hint)?;
            refuse_if(
                cte.query.with.is_some(),
                "WITH in a WITH RECURSIVE query",
                near,
                "define all names in the outer WITH",
            )?;
            refuse_if(!cte.query.pipe_operators.is_empty(), "pipe in a WITH RECURSIVE query", near, hint)?;
        }
    }
    ControlFlow::Continue(())
}

/// select.rs, `select_to_plan`. Hints stay: `optimizer_hints`, `select_modifiers` (`HIGH_PRIORITY`, `STRAIGHT_JOIN`,
/// ..).
pub(super) fn select(select: &Select) -> Found {
    let near = select.span();
    refuse_if(select.prewhere.is_some(), "PREWHERE", near, "use WHERE")?;
    refuse_if(!select.connect_by.is_empty(), "CONNECT BY", near, "use WITH RECURSIVE")?;
    for item in &select.projection {
        if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item {
            let near = options.wildcard_token.0.span;
            refuse_if(options.opt_ilike.is_some(), "* ILIKE", near, "name the columns, or use * EXCLUDE (..)")?;
        }
    }
    refuse_if(select.exclude.is_some(), "EXCLUDE after the select list", near, "use * EXCLUDE (..)")?;
    if let Some(mode) = &select.value_table_mode {
        refuse_if(true, mode.to_string(), near, "use named_struct(..)")?;
    }
    // `GroupByExpr::Expressions(exprs, _)`
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = &select.group_by;
    if let Some(modifier) = modifiers.first() {
        refuse_if(
            true,
            first_words(&modifier.to_string(), 2),
            near,
            "use GROUP BY ROLLUP (..), CUBE (..) or GROUPING SETS (..)",
        )?;
    }
    // `match_window_definitions` puts named windows into the select list and nowhere else. Elsewhere an aggregate
    // loses its OVER and becomes a plain aggregate (function.rs, `if let Some(WindowType::WindowSpec(window)) =
    // over`).
    named_window(&select.selection, "in WHERE")?;
    named_window(&select.group_by, "in GROUP BY")?;
    named_window(&select.having, "in HAVING")?;
    named_window(&select.qualify, "in QUALIFY")?;
    named_window(&select.distinct, "in DISTINCT ON")?;
    super::expression::window_definitions(&select.named_window)
}

/// relation/mod.rs, `create_default_relation`: `TableFactor::Table { name, alias, args, .. }`, `Derived { subquery,
/// alias, .. }` and `Function { name, args, alias, .. }`. Index hints stay: they are about speed only.
pub(super) fn table(table: &TableFactor) -> Found {
    let near = table.span();
    match table {
        TableFactor::Table {
            name,
            alias: table_alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints: _,
        } => {
            refuse_if(sample.is_some(), "TABLESAMPLE", near, SAMPLE_HINT)?;
            if let Some(version) = version {
                refuse_if(
                    true,
                    version_clause(version),
                    near,
                    "tables have no past versions: every statement reads the newest",
                )?;
            }
            refuse_if(
                !with_hints.is_empty(),
                "WITH (..) after a table",
                near,
                "table hints have no meaning here: leave it out",
            )?;
            refuse_if(*with_ordinality, "WITH ORDINALITY", near, "use row_number() OVER ()")?;
            refuse_if(
                !partitions.is_empty(),
                "PARTITION (..) after a table",
                near,
                "use WHERE on the partition columns",
            )?;
            refuse_if(json_path.is_some(), "path into a table", near, "use UNNEST")?;
            if let Some(args) = args {
                refuse_if(args.settings.is_some(), "SETTINGS", near, "use SET before the statement")?;
                // `name.0.first()`
                refuse_if(name.0.len() > 1, "schema before a table function", near, "leave it out")?;
            }
            alias(table_alias.as_ref())
        }
        TableFactor::Derived { alias: table_alias, sample, lateral: _, subquery: _ } => {
            refuse_if(sample.is_some(), "TABLESAMPLE", near, SAMPLE_HINT)?;
            alias(table_alias.as_ref())
        }
        TableFactor::Function { args, with_ordinality, alias: table_alias, lateral: _, name: _ } => {
            refuse_if(*with_ordinality, "WITH ORDINALITY", near, "use row_number() OVER ()")?;
            // `FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. }`: by position, whatever the name.
            let named = args.iter().any(|arg| matches!(arg, FunctionArg::Named { .. }));
            refuse_if(named, "name before an argument of a table function", near, "give the arguments in their order")?;
            alias(table_alias.as_ref())
        }
        TableFactor::UNNEST { alias: table_alias, .. } | TableFactor::NestedJoin { alias: table_alias, .. } => {
            alias(table_alias.as_ref())
        }
        // All others are refused by DataFusion.
        _ => ControlFlow::Continue(()),
    }
}

const SAMPLE_HINT: &str = "use WHERE random() < 0.1 for about a tenth of the rows";

/// planner.rs, `apply_table_alias`: takes the names.
fn alias(alias: Option<&TableAlias>) -> Found {
    let Some(alias) = alias else { return ControlFlow::Continue(()) };
    let typed = alias.columns.iter().find(|column| column.data_type.is_some());
    refuse_if(
        typed.is_some(),
        "type in a table alias",
        typed.map_or(alias.name.span, |column| column.name.span),
        "use CAST in the select list",
    )?;
    refuse_if(alias.at.is_some(), "AT in a table alias", alias.name.span, "use row_number() OVER ()")
}

fn version_clause(version: &TableVersion) -> &'static str {
    match version {
        TableVersion::ForSystemTimeAsOf(_) => "FOR SYSTEM_TIME AS OF",
        TableVersion::TimestampAsOf(_) => "TIMESTAMP AS OF",
        TableVersion::VersionAsOf(_) => "VERSION AS OF",
        TableVersion::Changes { .. } => "CHANGES (..)",
        _ => "AT (..) or BEFORE (..)",
    }
}

fn first_words(text: &str, n: usize) -> String {
    text.split(|c: char| c.is_whitespace() || c == '(')
        .filter(|word| !word.is_empty())
        .take(n)
        .collect::<Vec<_>>()
        .join(" ")
}
