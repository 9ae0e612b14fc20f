//! Carrying out one statement that was parsed and allowed.
//!
//! Queries become a stream that records its end; everything else is done before the answer is given.

use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::Schema;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::TableReference;
use datafusion::execution::context::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement as PlanStatement, WriteOp};
use datafusion::physical_plan::{EmptyRecordBatchStream, ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::TableKind;
use nectarine_planner::sql::Statement;
use sqlparser::ast;

use crate::engine::options;
use crate::progress::Progress;
use crate::record::Record;
use crate::rows::RecordedStream;
use crate::session::Session;
use crate::statement::{Planning, StatementCatalog};
use crate::{
    Answer, AnswerKind, EngineError, ErrorKind, Notice, Result, copy_from, copy_to, ddl, settings, show, system,
};

/// One statement and what it runs with.
pub(crate) struct StatementRun<'a> {
    pub(crate) session: &'a Session,
    pub(crate) text: &'a str,
    pub(crate) catalog: &'a Arc<StatementCatalog>,
    pub(crate) state: &'a Arc<SessionState>,
    pub(crate) planning: &'a Arc<Planning>,
    pub(crate) progress: &'a Progress,
    pub(crate) record: &'a Record,
    pub(crate) started: Instant,
}

impl StatementRun<'_> {
    pub(crate) async fn run(&self, statement: Statement) -> Result<Answer> {
        match statement {
            Statement::DataFusion(statement) => self.datafusion(*statement).await,
            Statement::CopyFrom(copy) => {
                let plan = copy_from::plan(self, copy).await?;
                self.written(plan, "COPY", false).await
            }
            Statement::CreateView(create) => ddl::create_view(self, *create).await,
            Statement::CreateFunction(create) => ddl::create_function(self, *create).await,
            Statement::DropFunction(drop) => ddl::drop_function(self, drop).await,
            Statement::AlterTableRename(rename) => ddl::rename(self, rename).await,
            Statement::AlterTableSetSchema(set) => ddl::set_schema(self, set).await,
            Statement::ShowCreate(show_create) => show::create(self, show_create).await,
        }
    }

    async fn datafusion(&self, statement: DFStatement) -> Result<Answer> {
        if let DFStatement::Statement(inner) = &statement {
            match inner.as_ref() {
                ast::Statement::Prepare { name, .. } => {
                    return self.prepare(ddl::normal(name, self.state.config_options()), statement).await;
                }
                ast::Statement::Deallocate { name, .. } => {
                    return self.deallocate(&ddl::normal(name, self.state.config_options()));
                }
                ast::Statement::Execute { .. } => return self.execute_prepared(statement).await,
                _ => {}
            }
        }
        if let DFStatement::CopyTo(copy) = &statement {
            copy_to::check(copy, self.state)?;
        }
        let plan = Box::pin(self.state.statement_to_plan(statement)).await?;
        self.plan(plan).await
    }

    /// Only tables take rows.
    fn check_insert(&self, reference: &TableReference) -> Result<()> {
        let name = self.table_name(reference)?;
        let refused = |what: &str, name: &str| {
            Err(EngineError::new(ErrorKind::Unsupported, format!("cannot insert into {what} \"{name}\"")))
        };
        if name.schema == system::SCHEMA || name.schema == INFORMATION_SCHEMA {
            return refused("system table", &name.to_string());
        }
        match self.catalog.view.tables.get(&name).map(|table| &table.kind) {
            Some(TableKind::View { .. }) => refused("view", &name.name),
            _ => Ok(()),
        }
    }

    async fn plan(&self, plan: LogicalPlan) -> Result<Answer> {
        match plan {
            LogicalPlan::Ddl(statement) => self.ddl(statement).await,
            LogicalPlan::Dml(ref dml) => {
                self.check_insert(&dml.table_name)?;
                let tag = match dml.op {
                    WriteOp::Insert(_) => "INSERT",
                    _ => return Err(EngineError::new(ErrorKind::Unsupported, "tables are append-only")),
                };
                self.written(plan, tag, false).await
            }
            LogicalPlan::Copy(copy) => self.copied(copy).await,
            LogicalPlan::Statement(statement) => self.statement(statement),
            plan => self.rows(plan).await,
        }
    }

    async fn ddl(&self, statement: DdlStatement) -> Result<Answer> {
        match statement {
            DdlStatement::CreateExternalTable(create) => ddl::create_external_table(self, *create).await,
            DdlStatement::CreateMemoryTable(create) => ddl::create_table(self, create).await,
            DdlStatement::CreateCatalogSchema(create) => ddl::create_schema(self, create).await,
            DdlStatement::DropTable(drop) => ddl::drop_table(self, &drop.name, drop.if_exists, false).await,
            DdlStatement::DropView(drop) => ddl::drop_table(self, &drop.name, drop.if_exists, true).await,
            DdlStatement::DropCatalogSchema(drop) => ddl::drop_schema(self, drop).await,
            DdlStatement::CreateCatalog(_) => {
                Err(EngineError::new(ErrorKind::Unsupported, "there is one database per home")
                    .with_hint("use CREATE SCHEMA, or another home (--home)"))
            }
            DdlStatement::CreateIndex(_) => Err(EngineError::new(ErrorKind::Unsupported, "indexes are not offered")
                .with_hint(
                    "extents are pruned by their statistics; keep data sorted or partitioned by what you filter on",
                )),
            other => Err(EngineError::new(ErrorKind::Unsupported, format!("{} is not offered", other.name()))),
        }
    }

    fn statement(&self, statement: PlanStatement) -> Result<Answer> {
        match statement {
            PlanStatement::SetVariable(set) => {
                settings::check_settable(&set.variable)?;
                settings::check_name(&set.variable, self.state.config_options())?;
                settings::check_value(&set.variable, &set.value)?;
                let change = self.change_state(PlanStatement::SetVariable(set.clone()));
                change.map_err(|error| settings::bad_value(&set.variable, &set.value, &error))?;
                self.session.inner.changed.lock().insert(set.variable);
                Ok(done(self.record, "SET"))
            }
            PlanStatement::ResetVariable(reset) => {
                settings::check_name(&reset.variable, self.state.config_options())?;
                // Back to what the session started with, which may not be the built-in default.
                let value = {
                    let template = self.session.inner.shared.template.config_options();
                    template
                        .entries()
                        .into_iter()
                        .find(|entry| entry.key == reset.variable)
                        .and_then(|entry| entry.value)
                };
                match value {
                    Some(value) => {
                        self.change_state(PlanStatement::SetVariable(datafusion::logical_expr::SetVariable {
                            variable: reset.variable.clone(),
                            value,
                        }))?
                    }
                    None => self.change_state(PlanStatement::ResetVariable(reset.clone()))?,
                }
                self.session.inner.changed.lock().remove(&reset.variable);
                Ok(done(self.record, "RESET"))
            }
            PlanStatement::TransactionStart(_) | PlanStatement::TransactionEnd(_) => {
                Err(EngineError::new(ErrorKind::Unsupported, "transactions over several statements are not offered")
                    .with_hint("every statement is a transaction of its own"))
            }
            other => Err(EngineError::new(ErrorKind::Unsupported, format!("{} is not offered", other.name()))),
        }
    }

    /// Lets DataFusion change the session's configuration, with the functions that depend on it.
    fn change_state(&self, statement: PlanStatement) -> Result<()> {
        let context = SessionContext::new_with_state(self.session.inner.state.read().clone());
        let run = context.execute_logical_plan(LogicalPlan::Statement(statement));
        // Setting a variable awaits nothing.
        match futures::FutureExt::now_or_never(run) {
            Some(outcome) => outcome.map(|_| ())?,
            None => return Err(EngineError::new(ErrorKind::Internal, "a setting took its time")),
        }
        *self.session.inner.state.write() = context.state();
        Ok(())
    }

    async fn prepare(&self, name: String, statement: DFStatement) -> Result<Answer> {
        if self.session.inner.prepared.lock().contains_key(&name) {
            return Err(EngineError::new(ErrorKind::Sql, format!("prepared statement \"{name}\" already exists"))
                .with_hint(format!("DEALLOCATE {name} first")));
        }
        // Planned once now, so that its mistakes are told now.
        let plan = Box::pin(self.state.statement_to_plan(statement.clone())).await?;
        let context = SessionContext::new_with_state(self.state.as_ref().clone());
        Box::pin(context.execute_logical_plan(plan)).await?;
        self.session.inner.prepared.lock().insert(name, statement);
        Ok(done(self.record, "PREPARE"))
    }

    fn deallocate(&self, name: &str) -> Result<Answer> {
        let mut prepared = self.session.inner.prepared.lock();
        if name.eq_ignore_ascii_case("all") {
            prepared.clear();
        } else if prepared.remove(name).is_none() {
            return Err(EngineError::new(ErrorKind::Sql, format!("prepared statement \"{name}\" does not exist")));
        }
        Ok(done(self.record, "DEALLOCATE"))
    }

    async fn execute_prepared(&self, statement: DFStatement) -> Result<Answer> {
        let execute = Box::pin(self.state.statement_to_plan(statement)).await?;
        let LogicalPlan::Statement(PlanStatement::Execute(parameters)) = &execute else {
            return Err(EngineError::new(ErrorKind::Internal, "EXECUTE was planned as something else"));
        };
        let prepared = self.session.inner.prepared.lock().get(&parameters.name).cloned();
        let Some(prepared) = prepared else {
            return Err(EngineError::new(
                ErrorKind::Sql,
                format!("prepared statement \"{}\" does not exist", parameters.name),
            ));
        };
        let prepare = Box::pin(self.state.statement_to_plan(prepared)).await?;
        let context = SessionContext::new_with_state(self.state.as_ref().clone());
        Box::pin(context.execute_logical_plan(prepare)).await?;
        let plan = Box::pin(context.execute_logical_plan(execute)).await?.into_unoptimized_plan();
        Box::pin(self.plan(plan)).await
    }

    /// Rows of a query, as they come.
    pub(crate) async fn rows(&self, plan: LogicalPlan) -> Result<Answer> {
        let stream = self.stream(plan, true).await?;
        Ok(Answer::new(self.record.query_id(), AnswerKind::Rows, vec![], stream))
    }

    /// A plan whose one row is the number of rows that it wrote; written when this returns. `verify` is for files; rows that
    /// go into a table are looked at before they are committed, because afterwards it would be too late.
    async fn written(&self, plan: LogicalPlan, tag: &str, verify: bool) -> Result<Answer> {
        let stream = self.stream(plan, verify).await?;
        self.counted(stream, tag).await
    }

    /// Rows into files.
    async fn copied(&self, mut copy: CopyTo) -> Result<Answer> {
        let place = copy_to::locate(&self.catalog.shared, self.state, &mut copy)?;
        let physical = Box::pin(self.state.create_physical_plan(&LogicalPlan::Copy(copy))).await?;
        let context = place.context(self.state);
        let stream = self.run_plan(physical, context, true, |stream| place.told(stream))?;
        self.counted(stream, "COPY").await
    }

    /// Reads the number of rows that were written.
    async fn counted(&self, stream: SendableRecordBatchStream, tag: &str) -> Result<Answer> {
        let schema = stream.schema();
        let batches = datafusion::physical_plan::common::collect(stream).await?;
        let stream = datafusion::physical_plan::memory::MemoryStream::try_new(batches, schema, None)?;
        let kind = AnswerKind::Written { tag: tag.to_string() };
        Ok(Answer::new(self.record.query_id(), kind, vec![], Box::pin(stream)))
    }

    async fn stream(&self, plan: LogicalPlan, verify: bool) -> Result<SendableRecordBatchStream> {
        let physical = Box::pin(self.state.create_physical_plan(&plan)).await?;
        self.run_plan(physical, self.state.task_ctx(), verify, |stream| stream)
    }

    /// Starts a plan; `told` sees its rows before they are recorded.
    fn run_plan(
        &self,
        physical: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        verify: bool,
        told: impl FnOnce(SendableRecordBatchStream) -> SendableRecordBatchStream,
    ) -> Result<SendableRecordBatchStream> {
        self.record.planned(&physical);
        self.progress.running(&physical);
        tracing::debug!(planning_ms = self.started.elapsed().as_secs_f64() * 1000.0, "planned");
        let stream = told(execute_stream(physical, context)?);
        let verify = verify && options(self.state.config_options()).verify_extents;
        let catalog = verify.then(|| Arc::clone(self.catalog));
        let planning = Arc::clone(self.planning);
        Ok(RecordedStream::wrap(stream, self.record.clone(), self.progress.clone(), catalog, planning))
    }

    /// The name that a statement means.
    pub(crate) fn table_name(&self, reference: &TableReference) -> Result<nectarine_catalog::TableName> {
        let catalog = &self.state.config_options().catalog.default_catalog;
        if let Some(given) = reference.catalog()
            && given != catalog
        {
            return Err(EngineError::new(ErrorKind::Sql, format!("database \"{given}\" does not exist"))
                .with_hint(format!("the database of this home is called \"{catalog}\"")));
        }
        Ok(self.session.table_name(reference))
    }

    pub(crate) fn command(&self, tag: &str) -> Answer {
        done(self.record, tag)
    }

    pub(crate) fn noticed(&self, tag: &str, message: String) -> Answer {
        let notices = vec![Notice { message, hint: None }];
        self.record.finished(0);
        Answer::new(self.record.query_id(), AnswerKind::Command { tag: tag.to_string() }, notices, no_rows())
    }
}

/// The last part of the name that a CREATE statement makes.
pub(crate) fn created_name(statement: &Statement) -> Option<String> {
    let name = match statement {
        Statement::DataFusion(statement) => match statement.as_ref() {
            DFStatement::CreateExternalTable(create) => &create.name,
            DFStatement::Statement(inner) => match inner.as_ref() {
                ast::Statement::CreateTable(create) => &create.name,
                _ => return None,
            },
            _ => return None,
        },
        Statement::CreateView(create) => &create.name,
        _ => return None,
    };
    name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.clone())
}

/// A command that has nothing more to say.
pub(crate) fn done(record: &Record, tag: &str) -> Answer {
    record.finished(0);
    Answer::new(record.query_id(), AnswerKind::Command { tag: tag.to_string() }, vec![], no_rows())
}

fn no_rows() -> SendableRecordBatchStream {
    Box::pin(EmptyRecordBatchStream::new(Arc::new(Schema::empty())))
}
