//! The `system` schema: what the engine knows of itself, as tables.
//!
//! A column here is public, like a function's signature: add at the end, never change.

mod cache_entries;
mod cluster_jobs;
mod dependencies;
mod evictions;
mod executors;
mod extents;
mod functions;
mod grants;
mod jobs;
mod lookups;
mod pins;
mod programs;
mod provenance;
mod queries;
mod report_runs;
mod reports;
mod settings;
mod shadow_budgets;
mod stages;
mod tables;
mod tokens;
mod users;

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, Session as DataFusionSession, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

pub(crate) use self::stages::list;
use crate::access::Rights;
use crate::statement::{StatementCatalog, wrap};

/// Its name.
pub(crate) const SCHEMA: &str = "system";

/// Which of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    CacheEntries,
    ClusterJobs,
    Dependencies,
    Evictions,
    Executors,
    Extents,
    Functions,
    Grants,
    Jobs,
    Lookups,
    Pins,
    Programs,
    Provenance,
    Queries,
    ReportRuns,
    Reports,
    Settings,
    ShadowBudgets,
    Stages,
    Tables,
    Tokens,
    Users,
}

const ALL: [(&str, Kind); 22] = [
    ("cache_entries", Kind::CacheEntries),
    ("cluster_jobs", Kind::ClusterJobs),
    ("dependencies", Kind::Dependencies),
    ("evictions", Kind::Evictions),
    ("executors", Kind::Executors),
    ("extents", Kind::Extents),
    ("functions", Kind::Functions),
    ("grants", Kind::Grants),
    ("jobs", Kind::Jobs),
    ("lookups", Kind::Lookups),
    ("pins", Kind::Pins),
    ("programs", Kind::Programs),
    ("provenance", Kind::Provenance),
    ("queries", Kind::Queries),
    ("report_runs", Kind::ReportRuns),
    ("reports", Kind::Reports),
    ("settings", Kind::Settings),
    ("shadow_budgets", Kind::ShadowBudgets),
    ("stages", Kind::Stages),
    ("tables", Kind::Tables),
    ("tokens", Kind::Tokens),
    ("users", Kind::Users),
];

/// Tables that leave out what is not his to see.
const OF_EVERYBODY: [&str; 10] =
    ["functions", "grants", "jobs", "queries", "report_runs", "reports", "settings", "tables", "tokens", "users"];

/// The schema as one statement sees it.
#[derive(Debug)]
pub(crate) struct SystemSchema {
    catalog: Arc<StatementCatalog>,
    rights: Rights,
}

impl SystemSchema {
    pub(crate) fn new(catalog: Arc<StatementCatalog>, rights: Rights) -> Self {
        Self { catalog, rights }
    }
}

/// Whether a table is there for somebody. What tells of other users' statements and data is for administrators; the
/// others leave out what is not his.
pub(crate) fn is_for(name: &str, rights: &Rights) -> bool {
    rights.is_admin() || OF_EVERYBODY.contains(&name)
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        ALL.iter().filter(|(name, _)| is_for(name, &self.rights)).map(|(name, _)| (*name).to_string()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some((_, kind)) = ALL.iter().find(|(known, _)| *known == name) else { return Ok(None) };
        if !is_for(name, &self.rights) {
            self.rights.check_admin(&format!("read system.{name}")).map_err(wrap)?;
        }
        let (catalog, rights) = (Arc::clone(&self.catalog), self.rights.clone());
        Ok(Some(Arc::new(SystemTable { kind: *kind, catalog, rights })))
    }

    fn table_exist(&self, name: &str) -> bool {
        ALL.iter().any(|(known, _)| *known == name)
    }
}

/// Column names of all tables here, for completion.
pub(crate) fn columns() -> impl Iterator<Item = (&'static str, SchemaRef)> {
    ALL.iter().map(|(name, kind)| (*name, kind.schema()))
}

impl Kind {
    fn schema(self) -> SchemaRef {
        match self {
            Self::CacheEntries => cache_entries::schema(),
            Self::ClusterJobs => cluster_jobs::schema(),
            Self::Dependencies => dependencies::schema(),
            Self::Evictions => evictions::schema(),
            Self::Executors => executors::schema(),
            Self::Extents => extents::schema(),
            Self::Functions => functions::schema(),
            Self::Grants => grants::schema(),
            Self::Jobs => jobs::schema(),
            Self::Lookups => lookups::schema(),
            Self::Pins => pins::schema(),
            Self::Programs => programs::schema(),
            Self::Provenance => provenance::schema(),
            Self::Queries => queries::schema(),
            Self::ReportRuns => report_runs::schema(),
            Self::Reports => reports::schema(),
            Self::Settings => settings::schema(),
            Self::ShadowBudgets => shadow_budgets::schema(),
            Self::Stages => stages::schema(),
            Self::Tables => tables::schema(),
            Self::Tokens => tokens::schema(),
            Self::Users => users::schema(),
        }
    }
}

struct SystemTable {
    kind: Kind,
    catalog: Arc<StatementCatalog>,
    rights: Rights,
}

impl fmt::Debug for SystemTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "system.{:?}", self.kind)
    }
}

#[async_trait]
impl TableProvider for SystemTable {
    fn schema(&self) -> SchemaRef {
        self.kind.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        // Only to find rows by index; they are filtered again.
        let pushdown = match self.kind {
            Kind::Provenance => TableProviderFilterPushDown::Inexact,
            _ => TableProviderFilterPushDown::Unsupported,
        };
        Ok(vec![pushdown; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn DataFusionSession,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let batch: RecordBatch = match self.kind {
            Kind::CacheEntries => cache_entries::rows(&self.catalog).await?,
            Kind::ClusterJobs => cluster_jobs::rows(&self.catalog)?,
            Kind::Dependencies => dependencies::rows(&self.catalog)?,
            Kind::Evictions => evictions::rows(&self.catalog).await?,
            Kind::Executors => executors::rows(&self.catalog).await?,
            Kind::Extents => extents::rows(&self.catalog).await?,
            Kind::Functions => functions::rows(&self.catalog)?,
            Kind::Grants => grants::rows(&self.catalog, &self.rights)?,
            Kind::Jobs => jobs::rows(&self.catalog, &self.rights).await?,
            Kind::Lookups => lookups::rows(&self.catalog).await?,
            Kind::Pins => pins::rows(&self.catalog).await?,
            Kind::Programs => programs::rows(&self.catalog).await?,
            Kind::Provenance => provenance::rows(&self.catalog, filters).await?,
            Kind::Queries => queries::rows(&self.catalog, &self.rights).await?,
            Kind::ReportRuns => report_runs::rows(&self.catalog, &self.rights).await?,
            Kind::Reports => reports::rows(&self.catalog, &self.rights).await?,
            Kind::Settings => settings::rows(&self.catalog, state)?,
            Kind::ShadowBudgets => shadow_budgets::rows(&self.catalog).await?,
            Kind::Stages => stages::rows(&self.catalog)?,
            Kind::Tables => tables::rows(&self.catalog, &self.rights).await?,
            Kind::Tokens => tokens::rows(&self.rights)?,
            Kind::Users => users::rows(&self.rights)?,
        };
        let schema = batch.schema();
        Ok(MemorySourceConfig::try_new_exec(&[vec![batch]], schema, projection.cloned())?)
    }
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::Int64, true)
}

fn flag(name: &str) -> Field {
    Field::new(name, DataType::Boolean, true)
}

fn decimal(name: &str) -> Field {
    Field::new(name, DataType::Float64, true)
}

fn time(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true)
}

fn table_of(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}
