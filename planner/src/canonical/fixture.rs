//! Plans over tables that have extents but no files: only fingerprints are asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{Result, plan_err};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use nectarine_catalog::{Extent, ExternalSource, FileFormatKind, Fingerprint, TableDef, TableId, TableKind, TableName};

use crate::canonical::{BuiltIns, Prefix, PrefixNode, Salt, Uncacheable, prefixes};
use crate::{StreamTable, Streams};

/// A planner over the tables `t`, `u` and `v`.
pub(crate) struct Fixture {
    pub(crate) context: SessionContext,
}

#[derive(Debug)]
struct Pinned(Arc<[Arc<Extent>]>);

#[async_trait]
impl Streams for Pinned {
    async fn extents(&self, _table: &TableDef) -> Result<Arc<[Arc<Extent>]>> {
        Ok(Arc::clone(&self.0))
    }

    async fn insert(
        &self,
        _state: &dyn Session,
        _table: &Arc<TableDef>,
        _input: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan_err!("nothing is written here")
    }
}

/// An extent that is known by its name only.
pub(crate) fn extent(name: &str) -> Arc<Extent> {
    Arc::new(Extent {
        location: format!("file:///{name}").into(),
        range: None,
        lines: false,
        file_bytes: 1000,
        modified_at: 0,
        etag: None,
        fingerprint: Fingerprint::of_bytes(name.as_bytes()),
        rows: None,
        stats: Arc::from([]),
        partition_values: Arc::from([]),
        first_seen_at: 0,
    })
}

/// The columns of every table.
pub(crate) fn schema() -> SchemaRef {
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Int64, true),
        Field::new("c", DataType::Int32, true),
        Field::new("d", DataType::Decimal128(15, 2), true),
        Field::new("f", DataType::Float64, true),
        Field::new("s", DataType::Utf8View, true),
        Field::new("r", DataType::Utf8View, true),
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("day", DataType::Date32, true),
        Field::new("flag", DataType::Boolean, true),
        Field::new("items", list, true),
    ]))
}

/// How a table is read.
pub(crate) struct Source {
    pub(crate) format: FileFormatKind,
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) schema: SchemaRef,
    pub(crate) extents: Vec<Arc<Extent>>,
    /// Columns that are in the paths of files.
    pub(crate) partitions: Vec<String>,
}

impl Source {
    pub(crate) fn parquet(extents: &[&str]) -> Self {
        Self {
            format: FileFormatKind::Parquet,
            options: BTreeMap::new(),
            schema: schema(),
            extents: extents.iter().map(|name| extent(name)).collect(),
            partitions: vec![],
        }
    }
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with_config(SessionConfig::new().with_target_partitions(2))
    }

    pub(crate) fn with_config(config: SessionConfig) -> Self {
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            // What is left is DataFusion's initial plan.
            .with_physical_optimizer_rules(vec![])
            .build();
        let fixture = Self { context: SessionContext::new_with_state(state) };
        fixture.table("t", Source::parquet(&["t0", "t1"]));
        fixture.table("u", Source::parquet(&["u0"]));
        fixture.table("v", Source::parquet(&["t0", "t1"]));
        fixture
    }

    pub(crate) fn table(&self, name: &str, source: Source) {
        let table = TableDef {
            id: TableId::new(),
            name: TableName::new("public", name),
            schema: source.schema,
            kind: TableKind::External(ExternalSource {
                location: format!("/{name}"),
                more_locations: vec![],
                format: source.format,
                partition_columns: source.partitions,
                options: source.options,
                content_fingerprint: false,
                order: vec![],
            }),
            defaults: vec![],
            primary_keys: vec![],
            unique_keys: vec![],
            definition: None,
            created_at: 0,
            owner: None,
        };
        let streams = Arc::new(Pinned(source.extents.into()));
        self.context.register_table(name, Arc::new(StreamTable::new(Arc::new(table), streams, vec![]))).unwrap();
    }

    pub(crate) async fn plan(&self, sql: &str) -> Arc<dyn ExecutionPlan> {
        let frame = self.context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        frame.create_physical_plan().await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub(crate) async fn tree(&self, sql: &str) -> PrefixNode {
        let plan = self.plan(sql).await;
        let config = Arc::clone(self.context.state().config_options());
        prefixes(&plan, &BuiltIns::default(), &config, &Salt::new(&config))
    }

    pub(crate) async fn root(&self, sql: &str) -> Result<Prefix, Uncacheable> {
        self.tree(sql).await.prefix
    }

    pub(crate) async fn key(&self, sql: &str) -> Fingerprint {
        match self.root(sql).await {
            Ok(prefix) => prefix.key,
            Err(reason) => panic!("{sql}: uncacheable: {reason}"),
        }
    }
}
