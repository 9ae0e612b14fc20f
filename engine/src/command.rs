//! Carrying out one statement that was parsed and allowed.
//!
//! Queries become a stream that records its end; everything else is done before the answer is given.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::TableReference;
use datafusion::execution::context::SessionState;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::{CopyTo, DmlStatement};
use datafusion::logical_expr::{
    Analyze, DdlStatement, Explain, LogicalPlan, PlanType, Statement as PlanStatement, ToStringifiedPlan, WriteOp,
};
use datafusion::physical_plan::EmptyRecordBatchStream;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{DFParser, ExplainStatement, Statement as DFStatement};
use futures::StreamExt;
use nectarine_catalog::{Fingerprint, TableKind, TableName};
use nectarine_planner::reuse::Findings;
use nectarine_planner::sql::Statement;
use sqlparser::ast;

use crate::access::{self, Rights};
use crate::cluster::{self, Placement};
use crate::copy_place::Place;
use crate::discretion::Places;
use crate::engine::options;
use crate::prepared::{Execution, check_types, execution, keep_digits};
use crate::progress::Progress;
use crate::query_memory::task_context;
use crate::record::Record;
use crate::redact::redact;
use crate::reuse::{self, Keeping, ReceiptSlot, Root, StatementReuse};
use crate::rows::{Ending, Plain, RecordedStream, Remember};
use crate::session::Session;
use crate::statement::{Planning, StatementCatalog};
use crate::use_schema::{check_database, use_schema};
use crate::{
    Answer, AnswerKind, EngineError, ErrorKind, Notice, Pipes, Result, copy_from, copy_place, copy_to, ddl, job,
    listing, parameters, pins, plan_text, provenance, report, settings, show, system, unfinished,
};

/// One statement and what it runs with.
pub(crate) struct StatementRun<'a> {
    pub(crate) session: &'a Session,
    pub(crate) text: &'a str,
    /// Which columns it declares NOT NULL, in order, if that is known without reading the text.
    pub(crate) not_null: Option<&'a [bool]>,
    /// Values for its placeholders.
    pub(crate) values: Option<&'a RecordBatch>,
    /// What STDIN and STDOUT are.
    pub(crate) pipes: &'a Pipes,
    pub(crate) catalog: &'a Arc<StatementCatalog>,
    pub(crate) state: &'a Arc<SessionState>,
    pub(crate) planning: &'a Arc<Planning>,
    pub(crate) progress: &'a Progress,
    pub(crate) record: &'a Record,
    pub(crate) started: Instant,
    /// Names the statement, if it is a query that may be remembered by its text.
    pub(crate) statement_key: Option<Fingerprint>,
    /// Whether its answer is kept whatever it is worth.
    pub(crate) must_keep: bool,
}

impl StatementRun<'_> {
    pub(crate) async fn run(&self, statement: Statement) -> Result<Answer> {
        if self.values.is_some() && !takes_values(&statement) {
            let message = "only queries, INSERT and COPY .. TO take parameters";
            return Err(EngineError::new(ErrorKind::Unsupported, message));
        }
        match statement {
            Statement::DataFusion(statement) => self.datafusion(*statement).await,
            Statement::CopyFrom(copy) => {
                let source = copy_from::Source::of(self, copy)?;
                let copied = async { self.written(copy_from::plan(self, &source).await?, "COPY", false).await };
                copied.await.map_err(|error| source.named(error))
            }
            Statement::CreateView(create) => ddl::create_view(self, *create).await,
            Statement::CreateFunction(create) => ddl::create_function(self, *create).await,
            Statement::Refresh(name) => ddl::refresh(self, name).await,
            Statement::CreateDerived(create) => ddl::create_derived(self, *create).await,
            Statement::PinDerived(pin) => ddl::pin_derived(self, pin).await,
            Statement::Drop(drop) => ddl::drop(self, drop).await,
            Statement::DropFunction(drop) => ddl::drop_function(self, drop).await,
            Statement::AlterTableRename(rename) => ddl::rename(self, rename).await,
            Statement::AlterTableSetSchema(set) => ddl::set_schema(self, set).await,
            Statement::ShowCreate(show_create) => show::create(self, show_create).await,
            Statement::ExplainReuse(statement) => self.explain_reuse(*statement).await,
            Statement::ExplainStages(statement) => self.explain_stages(*statement).await,
            Statement::ExplainProvenance(subject) => provenance::explain_provenance(self, subject).await,
            Statement::Purge(source) => provenance::purge(self, &source).await,
            Statement::Verify(subject) => provenance::verify(self, subject).await,
            Statement::Pin(target) => pins::pin(self, target).await,
            Statement::Unpin(target) => pins::unpin(self, target).await,
            Statement::Access(statement) => access::run(self, statement).await,
            Statement::Report(statement) => Box::pin(report::run(self, statement)).await,
            Statement::Job(statement) => Box::pin(job::run(self, statement)).await,
        }
    }

    async fn datafusion(&self, mut statement: DFStatement) -> Result<Answer> {
        if let DFStatement::Statement(inner) = &statement {
            match inner.as_ref() {
                ast::Statement::Prepare { name, .. } => {
                    return self.prepare(ddl::normal(name, self.state.config_options()), statement).await;
                }
                ast::Statement::Deallocate { name, .. } => {
                    return self.deallocate(&ddl::normal(name, self.state.config_options()));
                }
                ast::Statement::Execute { .. } => return self.execute_prepared(statement).await,
                ast::Statement::ShowVariable { variable } => {
                    settings::check_shown(variable, self.state.config_options())?;
                }
                ast::Statement::Use(used) => return use_schema(self, used),
                _ => {}
            }
        }
        if let DFStatement::Explain(explain) = statement {
            if is_execute(&explain.statement) {
                return self.explain_prepared(explain).await;
            }
            statement = DFStatement::Explain(explain);
        }
        listing::as_query(&mut statement, self.catalog, self.state.config_options())?;
        keep_digits(self.session, self.catalog, self.state, &mut statement);
        copy_to::prepare(&mut statement)?;
        let plan = Box::pin(self.state.statement_to_plan(statement)).await?;
        let plan = match self.values {
            Some(values) => bound(plan, values)?,
            None => plan,
        };
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
            None | Some(TableKind::Managed { .. } | TableKind::External(_)) => Ok(()),
            Some(kind) => refused(kind.word(), &name.name),
        }
    }

    /// What the statement may do.
    pub(crate) fn rights(&self) -> &Rights {
        &self.catalog.rights
    }

    /// Whose a new table is. What takes the place of something is of who owned that.
    pub(crate) fn owner(&self, name: &TableName) -> Option<String> {
        match self.catalog.view.tables.get(name) {
            Some(replaced) => replaced.owner.clone(),
            None => self.rights().user().map(str::to_string),
        }
    }

    /// Fails if a plan reads what may not be read, or writes files.
    pub(crate) fn check_plan(&self, plan: &LogicalPlan) -> Result<()> {
        access::check_plan(self.rights(), plan)
    }

    async fn plan(&self, plan: LogicalPlan) -> Result<Answer> {
        self.check_plan(&plan)?;
        if let Some(insert) = insert_of(&plan) {
            self.check_insert(&insert.table_name)?;
        }
        match plan {
            LogicalPlan::Ddl(statement) => self.ddl(statement).await,
            LogicalPlan::Dml(ref dml) => {
                let tag = match dml.op {
                    WriteOp::Insert(_) => "INSERT",
                    _ => return Err(EngineError::new(ErrorKind::Unsupported, "tables are append-only")),
                };
                self.written(plan, tag, false).await
            }
            LogicalPlan::Copy(copy) => self.copied(copy).await,
            LogicalPlan::Analyze(analyze) if matches!(analyze.input.as_ref(), LogicalPlan::Copy(_)) => {
                self.copied_analyzed(analyze).await
            }
            LogicalPlan::Analyze(analyze) if matches!(analyze.input.as_ref(), LogicalPlan::Ddl(_)) => {
                let message = "EXPLAIN ANALYZE runs queries, INSERT and COPY .. TO";
                Err(EngineError::new(ErrorKind::Unsupported, message)
                    .with_hint("explain the query of a CREATE TABLE .. AS by itself"))
            }
            LogicalPlan::Statement(statement) => self.statement(statement),
            plan => self.rows(plan).await,
        }
    }

    async fn ddl(&self, statement: DdlStatement) -> Result<Answer> {
        match statement {
            DdlStatement::CreateExternalTable(create) => ddl::create_external_table(self, *create).await,
            DdlStatement::CreateMemoryTable(create) => ddl::create_table(self, create).await,
            DdlStatement::CreateCatalogSchema(create) => ddl::create_schema(self, create).await,
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
            PlanStatement::SetVariable(mut set) => {
                self.check_set(&set.variable, Some(&set.value))?;
                settings::check_settable(&set.variable)?;
                settings::check_name(&set.variable, self.state.config_options())?;
                settings::check_value(&set.variable, &set.value)?;
                set.value = settings::meant(&set.variable, set.value);
                let change = self.change_state(PlanStatement::SetVariable(set.clone()));
                let known = self.state.config_options();
                change
                    .map_err(|error| settings::bad_value(ErrorKind::Sql, &set.variable, &set.value, &error, known))?;
                self.session.inner.changed.lock().insert(set.variable);
                Ok(done(self.record, "SET"))
            }
            PlanStatement::ResetVariable(reset) => {
                self.check_set(&reset.variable, None)?;
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

    /// Users change what is theirs.
    fn check_set(&self, variable: &str, value: Option<&str>) -> Result<()> {
        // A name that is none is told as such.
        settings::check_name(variable, self.state.config_options())?;
        let server = self.session.inner.shared.template.config_options();
        access::check_set(self.rights(), variable, value, server)?;
        settings::check_runtime(variable)
    }

    /// Lets DataFusion change the session's configuration, with the functions that depend on it.
    pub(crate) fn change_state(&self, statement: PlanStatement) -> Result<()> {
        let context = SessionContext::new_with_state(self.session.inner.state.read().clone());
        let run = context.execute_logical_plan(LogicalPlan::Statement(statement));
        // Setting a variable awaits nothing.
        match futures::FutureExt::now_or_never(run) {
            Some(outcome) => outcome.map(|_| ())?,
            None => return Err(EngineError::new(ErrorKind::Internal, "a setting took its time")),
        }
        **self.session.inner.state.write() = context.state();
        Ok(())
    }

    async fn prepare(&self, name: String, statement: DFStatement) -> Result<Answer> {
        if self.session.inner.prepared.lock().contains_key(&name) {
            return Err(EngineError::new(ErrorKind::Sql, format!("prepared statement \"{name}\" already exists"))
                .with_hint(format!("DEALLOCATE {name} first")));
        }
        // Planned once now, so that its mistakes are told now.
        let mut planned = statement.clone();
        keep_digits(self.session, self.catalog, self.state, &mut planned);
        let plan = Box::pin(self.state.statement_to_plan(planned)).await?;
        self.check_plan(&plan)?;
        check_types(&statement, &plan)?;
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
        let Execution { plan, text, not_null } = execution(self.session, self.catalog, self.state, statement).await?;
        // What a table was made by is what was prepared: EXECUTE by itself would tell nobody.
        let text = if matches!(plan, LogicalPlan::Ddl(_)) { text.as_str() } else { self.text };
        Box::pin(StatementRun { text, not_null: Some(&not_null), ..*self }.plan(plan)).await
    }

    /// What an EXECUTE would run, explained, or run for that.
    async fn explain_prepared(&self, explain: ExplainStatement) -> Result<Answer> {
        let Execution { plan, not_null, .. } =
            execution(self.session, self.catalog, self.state, *explain.statement).await?;
        if matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::Statement(_)) {
            let message = "cannot explain what was prepared: it has no plan that could run";
            return Err(EngineError::new(ErrorKind::Unsupported, message));
        }
        // What the options mean is DataFusion's to say: another statement is explained with them, and what was prepared takes its place.
        let mut any = DFParser::parse_sql("SELECT 1")?;
        let statement = any
            .pop_front()
            .map(Box::new)
            .ok_or_else(|| EngineError::new(ErrorKind::Internal, "a query became no statement"))?;
        let explain = DFStatement::Explain(ExplainStatement { statement, ..explain });
        let explained = match Box::pin(self.state.statement_to_plan(explain)).await? {
            LogicalPlan::Explain(explain) => LogicalPlan::Explain(Explain {
                stringified_plans: vec![plan.to_stringified(PlanType::InitialLogicalPlan)],
                plan: Arc::new(plan),
                ..explain
            }),
            LogicalPlan::Analyze(analyze) => LogicalPlan::Analyze(Analyze { input: Arc::new(plan), ..analyze }),
            _ => return Err(EngineError::new(ErrorKind::Internal, "EXPLAIN was planned as something else")),
        };
        Box::pin(StatementRun { not_null: Some(&not_null), ..*self }.plan(explained)).await
    }

    /// The plan of what EXPLAIN REUSE and the like are asked about.
    async fn plan_of(&self, statement: DFStatement) -> Result<LogicalPlan> {
        if is_execute(&statement) {
            return Ok(execution(self.session, self.catalog, self.state, statement).await?.plan);
        }
        Ok(Box::pin(self.state.statement_to_plan(statement)).await?)
    }

    /// Rows of a query, as they come.
    pub(crate) async fn rows(&self, mut plan: LogicalPlan) -> Result<Answer> {
        // A plan that is only told reads no file.
        let reads = !matches!(plan, LogicalPlan::Explain(_));
        let is_discreet =
            matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_)) && !self.rights().is_admin();
        if let LogicalPlan::Explain(explain) = &mut plan
            && is_discreet
        {
            // Nor because the statement asks for them.
            explain.show_statistics = None;
        }
        let mut running = self.start(plan, reads, true).await?;
        if is_discreet {
            running.stream = plan_text::discreet(running.stream);
        }
        let answer = Answer::new(self.record.query_id(), AnswerKind::Rows, running.notices, running.stream);
        Ok(answer.with_receipt(running.receipt))
    }

    /// A plan whose one row is the number of rows that it wrote; written when this returns. `verify` is for files; rows that
    /// go into a table are looked at before they are committed, because afterwards it would be too late.
    async fn written(&self, plan: LogicalPlan, tag: &str, verify: bool) -> Result<Answer> {
        let running = self.start(plan, verify, false).await?;
        self.counted(running, tag).await
    }

    /// The same where nobody asks for the number.
    pub(crate) async fn write(&self, plan: LogicalPlan) -> Result<()> {
        self.written(plan, "", false).await.map(drop)
    }

    /// Rows into files.
    async fn copied(&self, mut copy: CopyTo) -> Result<Answer> {
        let place = copy_place::locate(&self.catalog.shared, self.state, self.pipes, &mut copy)?;
        let running = self.start_copy(place, LogicalPlan::Copy(copy)).await?;
        self.counted(running, "COPY").await
    }

    /// The same, where what it took is the answer.
    async fn copied_analyzed(&self, mut analyze: Analyze) -> Result<Answer> {
        let LogicalPlan::Copy(mut copy) = Arc::unwrap_or_clone(analyze.input) else {
            return Err(EngineError::new(ErrorKind::Internal, "a COPY became something else"));
        };
        let place = copy_place::locate(&self.catalog.shared, self.state, self.pipes, &mut copy)?;
        analyze.input = Arc::new(LogicalPlan::Copy(copy));
        let running = self.start_copy(place, LogicalPlan::Analyze(analyze)).await?;
        let answer = Answer::new(self.record.query_id(), AnswerKind::Rows, running.notices, running.stream);
        Ok(answer.with_receipt(running.receipt))
    }

    async fn start_copy(&self, place: Place, plan: LogicalPlan) -> Result<Running> {
        let context = place.context(self.state);
        // Looked at before files appear: afterwards the statement may have replaced what it read.
        let told = |stream| place.told(stream, self.catalog.sources());
        self.start_in(plan, context, false, false, told).await
    }

    /// Runs a query for what it leaves in the cache.
    pub(crate) async fn warm(&self, plan: LogicalPlan) -> Result<Warmed> {
        let Running { mut stream, notices, receipt, uncacheable, root } = self.start(plan, true, true).await?;
        while let Some(batch) = stream.next().await {
            batch?;
        }
        Ok(Warmed { notices, receipt, uncacheable, root })
    }

    /// Reads the number of rows that were written.
    async fn counted(&self, running: Running, tag: &str) -> Result<Answer> {
        let schema = running.stream.schema();
        let batches = datafusion::physical_plan::common::collect(running.stream).await?;
        let stream = datafusion::physical_plan::memory::MemoryStream::try_new(batches, schema, None)?;
        let kind = AnswerKind::Written { tag: tag.to_string() };
        let answer = Answer::new(self.record.query_id(), kind, running.notices, Box::pin(stream));
        Ok(answer.with_receipt(running.receipt))
    }

    /// What would be reused, and why not more.
    async fn explain_reuse(&self, statement: DFStatement) -> Result<Answer> {
        let plan = self.plan_of(statement).await?;
        let findings =
            StatementReuse::new(&self.session.inner.shared.reuse, self.state, self.catalog)?.explain(&plan).await?;
        let batch = reuse::explain(&self.session.inner.shared.reuse, findings.as_ref()).await?;
        let schema = batch.schema();
        self.record.finished(batch.num_rows() as u64);
        let stream = datafusion::physical_plan::memory::MemoryStream::try_new(vec![batch], schema, None)?;
        Ok(Answer::new(self.record.query_id(), AnswerKind::Rows, vec![], Box::pin(stream)))
    }

    /// The stages that it would run as on the cluster.
    async fn explain_stages(&self, statement: DFStatement) -> Result<Answer> {
        let plan = self.plan_of(statement).await?;
        let reuse = StatementReuse::new(&self.session.inner.shared.reuse, self.state, self.catalog)?;
        let findings = reuse.explain(&plan).await?;
        let n_hits = findings.map_or(0, |findings| findings.hits.len());
        let batch = cluster::explain_stages(&plan, n_hits, self.state, self.catalog).await?;
        let schema = batch.schema();
        self.record.finished(batch.num_rows() as u64);
        let stream = datafusion::physical_plan::memory::MemoryStream::try_new(vec![batch], schema, None)?;
        Ok(Answer::new(self.record.query_id(), AnswerKind::Rows, vec![], Box::pin(stream)))
    }

    /// How to answer this statement next time, if that depends on nothing but its text and its tables.
    fn remember(&self, plan: &LogicalPlan, findings: Option<&Findings>, schema: &SchemaRef) -> Option<Remember> {
        let statement = self.statement_key?;
        let findings = findings?;
        let root = findings.root.as_ref().ok()?;
        let shared = &self.session.inner.shared;
        let mode = settings::reuse_mode(&options(self.state.config_options()).reuse).ok()?;
        let is_same_types = root.schema.fields().len() == schema.fields().len();
        (mode.reads()
            && is_same_types
            && reuse::is_timeless(plan, &shared.reuse.built_ins, self.state.config_options()))
        .then(|| Remember { statement, root: root.key, schema: Arc::clone(schema), n_extents: findings.extents.total })
    }

    async fn start(&self, plan: LogicalPlan, verify: bool, is_query: bool) -> Result<Running> {
        self.start_in(plan, task_context(self.state), verify, is_query, |stream| stream).await
    }

    /// Starts a plan; `told` sees its rows before they are recorded.
    async fn start_in(
        &self,
        plan: LogicalPlan,
        context: Arc<TaskContext>,
        verify: bool,
        is_query: bool,
        told: impl FnOnce(SendableRecordBatchStream) -> SendableRecordBatchStream,
    ) -> Result<Running> {
        let shared = &self.session.inner.shared;
        self.catalog.look_ahead(&plan).await;
        let reuse = StatementReuse::new(&shared.reuse, self.state, self.catalog)?.of(self.text);
        let reuse = if self.must_keep { reuse.must_keep() } else { reuse };
        let looking = self.record.part("look-up");
        let mut planned = reuse.plan(&plan, is_query).await?;
        drop(looking);
        planned.notices.extend(unfinished::notices(self.catalog));
        self.record.planned(&planned.plan);
        if let Some(findings) = &planned.findings {
            self.record.looked_up(reuse::lookups(findings));
        }
        self.progress.running(&planned.plan);
        tracing::debug!(planning_ms = self.started.elapsed().as_secs_f64() * 1000.0, "planned");
        let keeping = planned.keeping.as_ref();
        // Who asked for a check wants to know that there was none.
        let checks = keeping.is_some_and(Keeping::tells);
        let sees_more = planned.findings.as_ref().is_some_and(|findings| findings.sees_more);
        let uses_cache = sees_more
            || keeping.is_some()
            || planned.findings.as_ref().is_some_and(|findings| !findings.hits.is_empty());
        // Rows go into a table in one piece at the end: until then an INSERT can begin again.
        let may_begin_again = is_query || matches!(plan, LogicalPlan::Dml(_));
        let plain = (may_begin_again && uses_cache && !checks).then(|| Plain {
            logical: plan.clone(),
            context: Arc::clone(&context),
            sees_less: sees_more,
        });
        let place = match is_query {
            true => Placement::of(&plan, &planned, self.state, self.catalog).await?,
            false => Placement::here(),
        };
        planned.notices.extend(place.notice.clone());
        let keeping = planned.keeping;
        let query = redact(self.text.trim());
        let receipt = ReceiptSlot::default();
        let mut stream = told(place.run(planned.plan, context, query, self.progress, &receipt)?);
        if let Some(keeping) = &keeping {
            stream = keeping.tee(stream);
        }
        let root = planned.findings.as_ref().map(|findings| findings.root.as_ref());
        let uncacheable = root.and_then(|root| root.err().map(ToString::to_string));
        let root = root.and_then(|root| Root::of(root.ok()?, self.catalog));
        let ending = Ending {
            record: self.record.clone(),
            progress: self.progress.clone(),
            verify: verify && options(self.state.config_options()).verify_extents,
            catalog: Arc::clone(self.catalog),
            planning: Some(Arc::clone(self.planning)),
            reuse: shared.reuse.clone(),
            remember: self.remember(&plan, planned.findings.as_ref(), &stream.schema()),
            extents: planned.findings.as_ref().map(|findings| findings.extents),
            hits: planned.findings.map(|findings| findings.hits).unwrap_or_default(),
            keeping,
            leader: planned.leader,
            receipt: receipt.clone(),
            planning_time: self.started.elapsed(),
            plain,
            ran: planned.ran,
        };
        let stream = RecordedStream::wrap(stream, ending);
        let notices = Places::hide_all(self.catalog, planned.notices);
        Ok(Running { stream, notices, receipt, uncacheable, root })
    }

    /// The name that a statement means.
    pub(crate) fn table_name(&self, reference: &TableReference) -> Result<TableName> {
        let catalog = &self.state.config_options().catalog.default_catalog;
        if let Some(given) = reference.catalog() {
            check_database(given, catalog)?;
        }
        Ok(self.session.table_name(reference))
    }

    pub(crate) fn command(&self, tag: &str) -> Answer {
        done(self.record, tag)
    }

    pub(crate) fn noticed(&self, tag: &str, message: String) -> Answer {
        self.noticed_all(tag, vec![Notice { message, hint: None }])
    }

    pub(crate) fn noticed_all(&self, tag: &str, notices: Vec<Notice>) -> Answer {
        self.record.finished(0);
        Answer::new(self.record.query_id(), AnswerKind::Command { tag: tag.to_string() }, notices, no_rows())
    }
}

/// A statement whose rows are on their way.
struct Running {
    stream: SendableRecordBatchStream,
    notices: Vec<Notice>,
    receipt: ReceiptSlot,
    /// Why its answer can not be kept.
    uncacheable: Option<String>,
    root: Option<Root>,
}

/// A query that ran to its end.
pub(crate) struct Warmed {
    pub(crate) notices: Vec<Notice>,
    pub(crate) receipt: ReceiptSlot,
    /// Why its answer can not be kept.
    pub(crate) uncacheable: Option<String>,
    /// Its program, if it can be recognised and reads something.
    pub(crate) root: Option<Root>,
}

/// The INSERT that a plan is, or explains.
fn insert_of(plan: &LogicalPlan) -> Option<&DmlStatement> {
    match plan {
        LogicalPlan::Dml(dml) => Some(dml),
        LogicalPlan::Analyze(analyze) => insert_of(&analyze.input),
        LogicalPlan::Explain(explain) => insert_of(&explain.plan),
        _ => None,
    }
}

/// Whether a statement may have placeholders.
fn takes_values(statement: &Statement) -> bool {
    let Statement::DataFusion(statement) = statement else { return false };
    match statement.as_ref() {
        DFStatement::Statement(inner) => {
            matches!(inner.as_ref(), ast::Statement::Query(_) | ast::Statement::Insert(_))
        }
        DFStatement::Explain(_) | DFStatement::CopyTo(_) => true,
        _ => false,
    }
}

fn is_execute(statement: &DFStatement) -> bool {
    matches!(statement, DFStatement::Statement(inner) if matches!(inner.as_ref(), ast::Statement::Execute { .. }))
}

/// The plan with values for its placeholders.
fn bound(plan: LogicalPlan, values: &RecordBatch) -> Result<LogicalPlan> {
    match values.num_rows() {
        1 => parameters::bind(plan, values, 0),
        n_rows => match parameters::bind_all(&plan, values)? {
            Some(plan) => Ok(plan),
            None => {
                let message = format!("{n_rows} rows of parameters were given where one was expected");
                Err(EngineError::new(ErrorKind::Unsupported, message).with_hint(
                    "only INSERT takes several, which are inserted all or not at all; run others once for each",
                ))
            }
        },
    }
}

/// Whether a statement is a query by itself: not EXPLAIN, not EXECUTE of something prepared.
pub(crate) fn is_query(statement: &Statement) -> bool {
    let Statement::DataFusion(statement) = statement else { return false };
    let DFStatement::Statement(inner) = statement.as_ref() else { return false };
    matches!(inner.as_ref(), ast::Statement::Query(_))
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
        Statement::CreateDerived(create) => &create.name,
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
