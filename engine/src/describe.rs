//! [`describe`]: what a statement gives back and what it asks for, without running it.
//!
//! For drivers, which ask before they run anything. Columns are those of the logical plan; the rows that come later may be
//! known to have no nulls where this says that they may.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::CatalogError;
use nectarine_planner::sql::{AccessStatement, Statement};
use sqlparser::ast;

use crate::prepared::execution;
use crate::session::{Opened, Session};
use crate::settings::check_shown;
use crate::statement::StatementCatalog;
use crate::{Result, access, cluster, copy_to, ddl, job, listing, parameters, pins, provenance, report, reuse, show};

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
    Ok(match opened.statement {
        Statement::DataFusion(statement) => {
            match planned(session, &opened.catalog, opened.planning.state(), *statement).await? {
                Some(plan) => described(&plan)?,
                None => Described::default(),
            }
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

/// Fails unless whoever asked for rows may ask for them now, and would get some. Nothing is run again: what a command did is done.
pub(crate) async fn check_again(session: &Session, opened: Opened) -> Result<()> {
    let Opened { statement, catalog, planning, .. } = opened;
    match statement {
        Statement::DataFusion(statement) => match planned(session, &catalog, planning.state(), *statement).await? {
            Some(plan) => access::check_again(&catalog.rights, &plan),
            None => Ok(()),
        },
        Statement::ShowCreate(show) => {
            let name = session.table_name(&ddl::reference(&show.name, planning.state().config_options())?);
            match catalog.view.tables.get(&name) {
                Some(table) => catalog.rights.check_sees(table),
                None => Err(CatalogError::TableNotFound { name }.into()),
            }
        }
        Statement::Job(statement) => job::schema(&catalog, &statement).await.map(drop),
        // What these are about is for administrators, or was looked at when they were carried out.
        _ => Ok(()),
    }
}

/// The plan of what is DataFusion's, as far as that has rows or parameters.
async fn planned(
    session: &Session,
    catalog: &Arc<StatementCatalog>,
    state: &Arc<SessionState>,
    mut statement: DFStatement,
) -> Result<Option<LogicalPlan>> {
    listing::as_query(&mut statement, catalog, state.config_options())?;
    copy_to::prepare(&mut statement)?;
    if let DFStatement::Statement(inner) = &statement {
        match inner.as_ref() {
            ast::Statement::Prepare { .. } | ast::Statement::Deallocate { .. } | ast::Statement::Use(_) => {
                return Ok(None);
            }
            ast::Statement::ShowVariable { variable } => check_shown(variable, state.config_options())?,
            ast::Statement::Execute { .. } => {
                return Ok(Some(execution(session, catalog, state, statement).await?.plan));
            }
            _ => {}
        }
    }
    Ok(Some(Box::pin(state.statement_to_plan(statement)).await?))
}

fn described(plan: &LogicalPlan) -> Result<Described> {
    let rows = match plan {
        LogicalPlan::Ddl(_) | LogicalPlan::Dml(_) | LogicalPlan::Copy(_) | LogicalPlan::Statement(_) => None,
        plan => Some(Arc::clone(plan.schema().inner())),
    };
    Ok(Described { rows, parameters: parameters::schema(plan)? })
}
