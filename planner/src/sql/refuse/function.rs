//! [`refuse_on_scalar_functions`]: clauses of aggregates on functions that are none.
//!
//! datafusion-sql's expr/function.rs returns at the first scalar function of the name, with its arguments alone:
//! `abs(DISTINCT x)`, `abs(x) FILTER (..)` and `abs(x) OVER (..)` are all `abs(x)`. Apart from the other checks
//! because it must know the functions. Aggregates of pairs take DISTINCT and forget it as well.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement as DFStatement};
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArgumentClause, FunctionArguments, Spanned, Visit, Visitor,
};

use super::{Found, refuse_if};
use crate::Result;
use crate::sql::statement::Statement;

/// Aggregates that count each pair as often as it is there, whatever is said.
const IGNORES_DISTINCT: [&str; 13] = [
    "corr",
    "covar",
    "covar_pop",
    "covar_samp",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
];

/// Fails where a clause that only aggregates and window functions have is on a function for which `is_scalar` says
/// yes. It is asked by names as DataFusion looks them up: lower case unless quoted.
pub fn refuse_on_scalar_functions(statement: &Statement, sql: &str, is_scalar: impl Fn(&str) -> bool) -> Result<()> {
    let mut functions = Functions { is_scalar };
    let found = match statement {
        Statement::DataFusion(statement) => {
            let mut statement = statement.as_ref();
            while let DFStatement::Explain(explain) = statement {
                statement = &explain.statement;
            }
            match statement {
                DFStatement::Statement(statement) => statement.visit(&mut functions),
                DFStatement::CopyTo(copy) => match &copy.source {
                    CopyToSource::Query(query) => query.visit(&mut functions),
                    CopyToSource::Relation(_) => ControlFlow::Continue(()),
                },
                _ => ControlFlow::Continue(()),
            }
        }
        Statement::CreateView(create) => create.query.visit(&mut functions),
        Statement::CreateDerived(create) => create.query.visit(&mut functions),
        Statement::CreateFunction(create) => create.visit(&mut functions),
        _ => ControlFlow::Continue(()),
    };
    match found {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(refusal) => Err(refusal.error(sql)),
    }
}

struct Functions<F> {
    is_scalar: F,
}

impl<F: Fn(&str) -> bool> Visitor for Functions<F> {
    type Break = super::Refusal;

    fn pre_visit_expr(&mut self, expr: &Expr) -> Found {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let Some(clause) = clause_of_aggregates(function) else { return ControlFlow::Continue(()) };
        let [name] = function.name.0.as_slice() else { return ControlFlow::Continue(()) };
        let Some(ident) = name.as_ident() else { return ControlFlow::Continue(()) };
        let name = if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() };
        if clause == "DISTINCT" && IGNORES_DISTINCT.contains(&name.as_str()) {
            let hint = "aggregate a subquery with SELECT DISTINCT";
            return refuse_if(true, format!("DISTINCT on the function \"{name}\""), function.name.span(), hint);
        }
        let hint = "the function is neither an aggregate nor a window function: leave it out";
        refuse_if((self.is_scalar)(&name), format!("{clause} on the function \"{name}\""), function.name.span(), hint)
    }
}

fn clause_of_aggregates(function: &Function) -> Option<&'static str> {
    if let FunctionArguments::List(list) = &function.args {
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
            return Some("DISTINCT");
        }
        for clause in &list.clauses {
            match clause {
                FunctionArgumentClause::OrderBy(_) => return Some("ORDER BY"),
                FunctionArgumentClause::IgnoreOrRespectNulls(_) => return Some("IGNORE or RESPECT NULLS"),
                _ => {}
            }
        }
    }
    if function.filter.is_some() {
        return Some("FILTER");
    }
    if function.over.is_some() {
        return Some("OVER");
    }
    if !function.within_group.is_empty() {
        return Some("WITHIN GROUP");
    }
    function.null_treatment.as_ref().map(|_| "IGNORE or RESPECT NULLS")
}
