//! [`NamedTable`]: a program that is kept by name, as DataFusion sees a table.
//!
//! Planned by itself, whatever the query around it needs of it, so that it is the same program each time and what was
//! computed of it is found: filters and choices of columns stay above it. Plain views are not like that; they become part of
//! the query.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use nectarine_catalog::{TableDef, TableKind};
use nectarine_planner::node::{DerivedTableExec, NamedExec};

use crate::shielded::Shielded;
use crate::statement::wrap;

/// A materialized view, or a derived table.
pub(crate) struct NamedTable {
    table: Arc<TableDef>,
    /// How it was made, as lists tell it.
    definition: Option<String>,
    schema: SchemaRef,
    /// Its query, as it was planned.
    query: Shielded<LogicalPlan>,
    /// The same, optimized.
    program: Shielded<LogicalPlan>,
    /// What it is planned with. Without physical rules: those see the whole plan.
    state: Shielded<Arc<SessionState>>,
}

impl NamedTable {
    /// The table that `query` is; `state` is what that was planned with.
    pub(crate) fn try_new(table: Arc<TableDef>, query: LogicalPlan, state: SessionState) -> Result<Self> {
        let program = state.optimize(&query)?;
        let schema = Arc::clone(program.schema().inner());
        let state = SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(vec![]).build();
        let (query, program) = (Shielded(query), Shielded(program));
        let definition = table.definition.clone();
        Ok(Self { table, definition, schema, query, program, state: Shielded(Arc::new(state)) })
    }

    /// The same with another word on how it was made.
    pub(crate) fn told_as(self, definition: Option<String>) -> Self {
        Self { definition, ..self }
    }

    /// Its query, for those who look through it.
    pub(crate) fn query(&self) -> &LogicalPlan {
        &self.query
    }

    /// What its program is planned with.
    pub(crate) fn state(&self) -> &Arc<SessionState> {
        &self.state
    }

    /// The initial plan of its program.
    pub(crate) async fn initial_plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let (program, state) = (self.program.clone(), Arc::clone(&self.state));
        // On a stack of its own: named tables may stand on each other.
        let planned = SpawnedTask::spawn(async move {
            let planner = Arc::clone(state.query_planner());
            planner.create_physical_plan(&program, state.as_ref()).await
        });
        let plan = planned.join().await.unwrap_or_else(|error| Err(wrap(error)))?;
        conform(plan, &self.schema)
    }
}

impl fmt::Debug for NamedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedTable").field("name", &self.table.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for NamedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        match self.table.kind {
            TableKind::Derived(_) => TableType::Base,
            _ => TableType::View,
        }
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.definition.as_deref()
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self.initial_plan().await?;
        let name = self.table.name.clone();
        let marked: Arc<dyn ExecutionPlan> = match self.table.kind {
            TableKind::Derived(_) => {
                Arc::new(DerivedTableExec::new(name, plan, Arc::clone(self.state.config_options())))
            }
            _ => Arc::new(NamedExec::new(name, plan)),
        };
        let is_all = |columns: &&Vec<usize>| columns.iter().copied().eq(0..self.schema.fields().len());
        match projection.filter(|columns| !is_all(columns)) {
            None => Ok(marked),
            Some(columns) => columns_of(marked, columns, &self.schema),
        }
    }
}

/// Names that the optimizer simplified away are there again.
fn conform(plan: Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Result<Arc<dyn ExecutionPlan>> {
    let found = plan.schema();
    let is_same = found.fields().iter().zip(schema.fields()).all(|(found, wanted)| found.name() == wanted.name());
    match is_same {
        true => Ok(plan),
        false => columns_of(plan, &(0..schema.fields().len()).collect::<Vec<_>>(), schema),
    }
}

/// Some columns of a plan, under the names that they have in `schema`.
fn columns_of(plan: Arc<dyn ExecutionPlan>, columns: &[usize], schema: &SchemaRef) -> Result<Arc<dyn ExecutionPlan>> {
    let input = plan.schema();
    let column = |position: &usize| {
        let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(input.field(*position).name(), *position));
        ProjectionExpr::new(expr, schema.field(*position).name().clone())
    };
    Ok(Arc::new(ProjectionExec::try_new(columns.iter().map(column).collect::<Vec<_>>(), plan)?))
}
