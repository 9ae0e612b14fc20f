//! [`describe`]: what a statement gives back and what it asks for, without running it.
//!
//! For drivers, which ask before they run anything. Columns are those of the logical plan; the rows that come later may be
//! known to have no nulls where this says that they may.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_planner::sql::{AccessStatement, Statement};
use sqlparser::ast;

use crate::prepared::execution;
use crate::session::{Opened, Session};
use crate::settings::check_shown;
use crate::{Result, access, cluster, copy_to, job, listing, parameters, pins, provenance, report, reuse, show};

/// What is known of a statement before it runs.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    /// Columns of its rows; `None` if it has none to give.
    pub(crate) rows: Option<SchemaRef>,
    /// Its placeholders, as columns of the values that it needs.
    pub(crate) parameters: SchemaRef,
}

impl Default for Described {
    fn default() -> Self {
        Self { rows: None, parameters: Arc::new(Schema::empty()) }
    }
}

impl Described {
    /// A query without placeholders.
    pub(crate) fn rows(schema: SchemaRef) -> Self {
        Self { rows: Some(schema), ..Self::default() }
    }
}

/// Plans a statement as far as it takes to tell.
pub(crate) async fn describe(session: &Session, opened: Opened) -> Result<Described> {
    let state = opened.planning.state();
    Ok(match opened.statement {
        Statement::DataFusion(mut statement) => {
            listing::as_query(&mut statement, &opened.catalog, state.config_options())?;
            copy_to::prepare(&mut statement)?;
            if let DFStatement::Statement(inner) = statement.as_ref() {
                match inner.as_ref() {
                    ast::Statement::Prepare { .. } | ast::Statement::Deallocate { .. } | ast::Statement::Use(_) => {
                        return Ok(Described::default());
                    }
                    ast::Statement::ShowVariable { variable } => check_shown(variable, state.config_options())?,
                    ast::Statement::Execute { .. } => {
                        return described(&execution(session, &opened.catalog, state, *statement).await?.plan);
                    }
                    _ => {}
                }
            }
            described(&Box::pin(state.statement_to_plan(*statement)).await?)?
        }
        Statement::ShowCreate(_) => Described::rows(show::schema()),
        Statement::ExplainReuse(_) => Described::rows(reuse::explain_schema()),
        Statement::ExplainStages(_) => Described::rows(cluster::explain_schema()),
        Statement::ExplainProvenance(_) => Described::rows(provenance::tree_schema()),
        Statement::Purge(_) => Described::rows(provenance::purge_schema()),
        Statement::Verify(_) => Described::rows(provenance::verify_schema()),
        Statement::Pin(_) | Statement::Unpin(_) => Described::rows(pins::schema()),
        Statement::Access(AccessStatement::CreateToken { .. }) => Described::rows(access::token_schema()),
        Statement::Report(statement) => report::schema(&statement).map(Described::rows).unwrap_or_default(),
        Statement::Job(statement) => {
            job::schema(&opened.catalog, &statement).await?.map(Described::rows).unwrap_or_default()
        }
        Statement::CopyFrom(_)
        | Statement::CreateView(_)
        | Statement::CreateDerived(_)
        | Statement::Refresh(_)
        | Statement::PinDerived(_)
        | Statement::Drop(_)
        | Statement::CreateFunction(_)
        | Statement::DropFunction(_)
        | Statement::AlterTableRename(_)
        | Statement::AlterTableSetSchema(_)
        | Statement::Access(_) => Described::default(),
    })
}

fn described(plan: &LogicalPlan) -> Result<Described> {
    let rows = match plan {
        LogicalPlan::Ddl(_) | LogicalPlan::Dml(_) | LogicalPlan::Copy(_) | LogicalPlan::Statement(_) => None,
        plan => Some(Arc::clone(plan.schema().inner())),
    };
    Ok(Described { rows, parameters: parameters::schema(plan)? })
}
