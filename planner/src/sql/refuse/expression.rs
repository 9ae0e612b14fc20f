//! Parts of expressions that are forgotten.

use std::ops::ControlFlow;

use sqlparser::ast::{
    DataType, ExactNumberInfo, Expr, FunctionArguments, NamedWindowDefinition, NamedWindowExpr, Query, Spanned, Value,
    Visit, Visitor, WindowType,
};
use sqlparser::tokenizer::Span;

use super::{Found, Refusal, refuse_if};

pub(super) fn expression(expr: &Expr) -> Found {
    match expr {
        Expr::Function(function) => {
            let near = function.name.span();
            // expr/function.rs, `FunctionArgs::try_new`: `parameters` is behind `..`; anything but a list is no
            // arguments at all.
            refuse_if(
                function.parameters != FunctionArguments::None,
                "parameters before the arguments of a function",
                near,
                None,
            )?;
            let subquery = matches!(function.args, FunctionArguments::Subquery(_));
            refuse_if(
                subquery,
                "query as the argument of a function",
                near,
                "put the query in parentheses of its own: f((SELECT ..))",
            )?;
            // expr/function.rs: `window.window_name` is never read.
            if let Some(WindowType::WindowSpec(window)) = &function.over
                && let Some(name) = &window.window_name
            {
                return refuse_if(
                    true,
                    "named window inside of OVER (..)",
                    name.span,
                    "write out its PARTITION BY and ORDER BY",
                );
            }
            ControlFlow::Continue(())
        }
        // expr/mod.rs, `sql_trim_to_expr`: `trim_characters.first()`.
        Expr::Trim { trim_characters: Some(characters), .. } => refuse_if(
            characters.len() > 1,
            "TRIM with several lists of characters",
            expr.span(),
            "give all characters in one string",
        ),
        // expr/mod.rs: `SIMILAR TO` becomes a regular expression as it is: `%` and `_` stand for themselves, and any part of the
        // text will do. NULL is NULL either way.
        Expr::SimilarTo { pattern, .. } => {
            let is_null = matches!(pattern.as_ref(), Expr::Value(value) if value.value == Value::Null);
            refuse_if(!is_null, "SIMILAR TO", expr.span(), "use LIKE, or ~ with a regular expression: s ~ '^a.*$'")
        }
        Expr::Cast { data_type, .. } => self::data_type(data_type, expr.span()),
        _ => ControlFlow::Continue(()),
    }
}

/// planner.rs, `convert_simple_data_type`: `SQLDataType::Float(_) => Float32`, though more than 24 bits ask for a
/// double. The length of `VARCHAR(n)` is forgotten too, and stays: many engines do so, and refusing it would refuse
/// most existing DDL.
pub(super) fn data_type(data_type: &DataType, near: Span) -> Found {
    match data_type {
        DataType::Float(ExactNumberInfo::Precision(precision)) => {
            refuse_if(*precision > 24, "FLOAT with more than 24 bits", near, "use DOUBLE")
        }
        _ => ControlFlow::Continue(()),
    }
}

/// A window definition that builds on another: select.rs copies it, function.rs drops the name in it.
pub(super) fn window_definitions(definitions: &[NamedWindowDefinition]) -> Found {
    for NamedWindowDefinition(name, definition) in definitions {
        if let NamedWindowExpr::WindowSpec(window) = definition {
            refuse_if(
                window.window_name.is_some(),
                "window defined by another window",
                name.span,
                "write out its PARTITION BY and ORDER BY",
            )?;
        }
    }
    ControlFlow::Continue(())
}

/// Refuses `OVER name` in `part` of a select, but not in queries inside of it: they have their own select lists.
pub(super) fn named_window(part: &impl Visit, place: &str) -> Found {
    match part.visit(&mut NamedWindows { n_queries_open: 0 }) {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(near) => ControlFlow::Break(Refusal {
            clause: format!("OVER a named window {place}"),
            near,
            hint: Some("write out the window, or select it under a name"),
        }),
    }
}

struct NamedWindows {
    n_queries_open: usize,
}

impl Visitor for NamedWindows {
    type Break = Span;

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<Span> {
        self.n_queries_open += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<Span> {
        self.n_queries_open -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Span> {
        match expr {
            Expr::Function(function)
                if self.n_queries_open == 0 && matches!(function.over, Some(WindowType::NamedWindow(_))) =>
            {
                ControlFlow::Break(function.name.span())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
