//! [`rewrite`]: what DataFusion's planner stumbles over, said in other words that mean the same.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement as DFStatement};
use sqlparser::ast::VisitMut;

use super::cast_names::CastNames;
use super::decimal_values::DecimalColumns;
use super::distinct_operands::DistinctOperands;
use super::fetch_first::FetchFirst;
use super::from_first::FromFirst;
use super::inner_values::InnerValues;
use super::queries_in_values::QueriesInValues;
use super::statement::{PinTarget, Statement, Subject};
use super::true_filters::TrueFilters;

/// Rewrites all queries of a statement, and operators also elsewhere.
pub(super) fn rewrite(statement: &mut Statement) {
    match statement {
        Statement::DataFusion(statement)
        | Statement::ExplainReuse(statement)
        | Statement::ExplainStages(statement)
        | Statement::ExplainProvenance(Subject::Statement(statement))
        | Statement::Verify(Subject::Statement(statement))
        | Statement::Pin(PinTarget::Query { statement, .. })
        | Statement::Unpin(PinTarget::Query { statement, .. }) => rewrite_query(statement),
        Statement::CreateView(create) => queries(&mut create.query),
        Statement::CreateDerived(create) => queries(&mut create.query),
        Statement::CreateFunction(create) => DistinctOperands::mend(create.as_mut()),
        _ => {}
    }
}

/// The same for the text of a view, which is read when the view is.
pub fn rewrite_query(statement: &mut DFStatement) {
    match statement {
        DFStatement::Statement(statement) => queries(statement.as_mut()),
        DFStatement::Explain(explain) => rewrite_query(&mut explain.statement),
        DFStatement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => queries(query.as_mut()),
            CopyToSource::Relation(_) => {}
        },
        DFStatement::CreateExternalTable(create) => {
            DistinctOperands::mend(&mut create.columns);
            DistinctOperands::mend(&mut create.order_exprs);
        }
        DFStatement::Reset(_) => {}
    }
}

fn queries(tree: &mut impl VisitMut) {
    // First: it looks for what only the parser can have done.
    DistinctOperands::mend(tree);
    let _: ControlFlow<()> = tree.visit(&mut FromFirst);
    let _: ControlFlow<()> = tree.visit(&mut FetchFirst);
    let _: ControlFlow<()> = tree.visit(&mut QueriesInValues);
    let _: ControlFlow<()> = tree.visit(&mut InnerValues);
    let _: ControlFlow<()> = tree.visit(&mut DecimalColumns);
    let _: ControlFlow<()> = tree.visit(&mut TrueFilters);
    let _: ControlFlow<()> = tree.visit(&mut CastNames);
}
