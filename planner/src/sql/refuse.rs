//! [`refuse_ignored`]: an error for every clause that the parser reads and DataFusion 55.2's planner then forgets.
//!
//! A forgotten `TABLESAMPLE` or `WITH ROLLUP` is a wrong answer without a warning. Each check names the clause and,
//! in a comment, where DataFusion drops it (files of datafusion-sql 55.2). What DataFusion implements, or refuses in words
//! that help (`bare` has those that do not), is not looked at, and neither are hints that cannot change an answer:
//! `MATERIALIZED` on a CTE, optimizer and index hints, `GLOBAL` joins, MySQL's `SQL_NO_CACHE` and the like.
//!
//! With each new version of DataFusion, look for new fields behind `..` and `_` in its patterns.

mod bare;
mod ddl;
mod expression;
mod function;
mod names;
mod query;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement as DFStatement};
use sqlparser::ast::{self, Expr, Query, Select, TableFactor, Visit, Visitor};
use sqlparser::tokenizer::Span;

pub use function::refuse_on_scalar_functions;

use super::lex::{Piece, Pieces};
use super::position::offset_of_span;
use super::statement::{PinTarget, Statement, Subject};
use crate::{PlannerError, Result};

/// Fails for the first clause that would be ignored. `sql` is the text that `statement` was read from.
pub fn refuse_ignored(statement: &Statement, sql: &str) -> Result<()> {
    let mut clauses = Clauses { n_queries_open: 0, into_allowed: false };
    let found = match statement {
        Statement::DataFusion(statement)
        | Statement::ExplainReuse(statement)
        | Statement::ExplainStages(statement)
        | Statement::ExplainProvenance(Subject::Statement(statement))
        | Statement::Verify(Subject::Statement(statement))
        | Statement::Pin(PinTarget::Query { statement, .. })
        | Statement::Unpin(PinTarget::Query { statement, .. }) => clauses.datafusion(statement),
        Statement::CreateView(create) => create.query.visit(&mut clauses),
        Statement::CreateDerived(create) => create.query.visit(&mut clauses),
        Statement::CreateFunction(create) => ddl::create_function(create),
        Statement::CopyFrom(_)
        | Statement::Refresh(_)
        | Statement::PinDerived(_)
        | Statement::DropFunction(_)
        | Statement::Drop(_)
        | Statement::AlterTableRename(_)
        | Statement::AlterTableSetSchema(_)
        | Statement::ShowCreate(_)
        | Statement::ExplainProvenance(_)
        | Statement::Purge(_)
        | Statement::Verify(_)
        | Statement::Pin(_)
        | Statement::Unpin(_)
        | Statement::Access(_)
        // What they run is looked at as a statement of its own.
        | Statement::Report(_)
        | Statement::Job(_) => ControlFlow::Continue(()),
    };
    match found {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(refusal) => Err(refusal.error(sql)),
    }
}

/// What a check finds.
type Found = ControlFlow<Refusal>;

/// A clause that is not offered.
struct Refusal {
    clause: String,
    near: Span,
    hint: Option<&'static str>,
}

impl Refusal {
    fn error(self, sql: &str) -> PlannerError {
        let near = offset_of_span(sql, self.near);
        let position = find_words(sql, near.unwrap_or(0), &self.clause).or(near);
        PlannerError::Refused { clause: self.clause, position, hint: self.hint.map(str::to_owned) }
    }
}

/// Refuses `clause`, which is at or after `near`, if `present`.
fn refuse_if(present: bool, clause: impl Into<String>, near: Span, hint: impl Into<Option<&'static str>>) -> Found {
    if present {
        ControlFlow::Break(Refusal { clause: clause.into(), near, hint: hint.into() })
    } else {
        ControlFlow::Continue(())
    }
}

/// Most clauses carry no position in the tree: looks for their words in the text.
fn find_words(sql: &str, from: usize, clause: &str) -> Option<usize> {
    let wanted: Vec<&str> = clause
        .split(' ')
        .take_while(|word| word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
        .collect();
    if wanted.is_empty() {
        return None;
    }
    let rest = sql.get(from..)?;
    let words: Vec<_> = Pieces::new(rest)
        .filter(|(piece, _)| matches!(piece, Piece::Text | Piece::Semicolon))
        .map(|(_, range)| range)
        .collect();
    let at = words.windows(wanted.len()).find(|window| {
        window.iter().zip(&wanted).all(|(range, word)| rest[range.clone()].eq_ignore_ascii_case(word))
    })?;
    Some(from + at.first()?.start)
}

/// Walks a statement.
struct Clauses {
    n_queries_open: usize,
    into_allowed: bool,
}

impl Clauses {
    fn datafusion(&mut self, statement: &DFStatement) -> Found {
        let mut statement = statement;
        while let DFStatement::Explain(explain) = statement {
            statement = &explain.statement;
        }
        match statement {
            DFStatement::Statement(statement) => {
                self.into_allowed = matches!(statement.as_ref(), ast::Statement::Query(_));
                statement.visit(self)
            }
            DFStatement::CreateExternalTable(create) => ddl::columns(&create.columns),
            DFStatement::CopyTo(copy) => match &copy.source {
                CopyToSource::Query(query) => query.visit(self),
                CopyToSource::Relation(_) => ControlFlow::Continue(()),
            },
            DFStatement::Explain(_) | DFStatement::Reset(_) => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Clauses {
    type Break = Refusal;

    fn pre_visit_statement(&mut self, statement: &ast::Statement) -> Found {
        ddl::statement(statement)?;
        bare::statement(statement)
    }

    fn pre_visit_query(&mut self, query: &Query) -> Found {
        let into_allowed = self.into_allowed && self.n_queries_open == 0;
        self.n_queries_open += 1;
        query::query(query, into_allowed)?;
        names::query(query)?;
        bare::query(query)
    }

    fn post_visit_query(&mut self, _query: &Query) -> Found {
        self.n_queries_open -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> Found {
        query::select(select)?;
        names::select(select)?;
        bare::select(select)
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> Found {
        query::table(table)?;
        bare::table(table)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Found {
        expression::expression(expr)
    }
}
