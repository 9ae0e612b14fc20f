//! Managed tables: extents that Nectarine writes and owns.

use std::sync::Arc;

use arrow::datatypes::{DataType, IntervalUnit, SchemaRef};
use async_trait::async_trait;
use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use nectarine_catalog::{CatalogError, Extent, FileFormatKind, JobEffect, Replace, TableDef, TableId};
use nectarine_executor::{Commit, WriteTarget};
use parquet::arrow::ArrowSchemaConverter;

use crate::engine::{Shared, options};
use crate::job::{Step, lost};
use crate::settings::parse_size;
use crate::statement::{PinnedExternal, wrap};

/// Parquet, or Arrow where a column type has no Parquet form that comes back as it was.
pub(crate) fn format_for(schema: &SchemaRef) -> FileFormatKind {
    let is_lossless = schema.fields().iter().all(|field| has_parquet_form(field.data_type()));
    match is_lossless && ArrowSchemaConverter::new().convert(schema).is_ok() {
        true => FileFormatKind::Parquet,
        false => FileFormatKind::Arrow,
    }
}

fn has_parquet_form(data_type: &DataType) -> bool {
    match data_type {
        DataType::Interval(IntervalUnit::MonthDayNano)
        | DataType::Union(_, _)
        | DataType::RunEndEncoded(_, _)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Null => false,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_parquet_form(field.data_type()),
        DataType::Struct(fields) => {
            !fields.is_empty() && fields.iter().all(|field| has_parquet_form(field.data_type()))
        }
        // The writer knows dictionaries of plain values only.
        DataType::Dictionary(_, value) => {
            value.is_primitive()
                || matches!(**value, DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary)
        }
        _ => true,
    }
}

/// Where the rows of a managed table go.
pub(crate) fn target(
    shared: &Shared,
    id: TableId,
    format: FileFormatKind,
    schema: &SchemaRef,
    config: &ConfigOptions,
) -> Result<WriteTarget> {
    let bytes = parse_size("nectarine.extent_bytes_max", &options(config).extent_bytes_max, u64::MAX).map_err(wrap)?;
    Ok(WriteTarget {
        staging: shared.home.staging(),
        folder: shared.home.table(id),
        format,
        schema: Arc::clone(schema),
        extent_bytes_max: bytes.max(1),
        now: now_micros(),
    })
}

/// Microseconds since 1970.
pub(crate) fn now_micros() -> i64 {
    chrono::Utc::now().timestamp_micros()
}

/// Appends extents to a table that exists.
pub(crate) struct AppendCommit {
    shared: Arc<Shared>,
    table: Arc<TableDef>,
    sources: Sources,
    step: Option<Arc<Step>>,
}

impl AppendCommit {
    /// `sources` are where the rows come from; `step` ends with them.
    pub(crate) fn new(shared: Arc<Shared>, table: Arc<TableDef>, sources: Sources, step: Option<Arc<Step>>) -> Self {
        Self { shared, table, sources, step }
    }
}

impl std::fmt::Debug for AppendCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppendCommit").field("table", &self.table.name).finish()
    }
}

#[async_trait]
impl Commit for AppendCommit {
    async fn commit(&self, extents: Vec<Extent>) -> Result<()> {
        if extents.is_empty() {
            return Ok(());
        }
        self.sources.look_again().await?;
        let appended = match &self.step {
            Some(step) => {
                let effect = JobEffect::Append { table: self.table.id, extents: &extents };
                match step.end(self.shared.store.as_ref(), effect).await {
                    Ok(None) => return Err(wrap(lost())),
                    other => other.map(drop),
                }
            }
            None => self.shared.store.append_extents(self.table.id, &extents).await,
        };
        let error = match appended {
            Ok(()) => return Ok(()),
            // The store knows it by its identifier, people by its name.
            Err(CatalogError::TableNotFound { .. }) => {
                return Err(wrap(CatalogError::TableNotFound { name: self.table.name.clone() }));
            }
            Err(error) => error,
        };
        // A commit whose answer was lost may have happened: only the store knows.
        let stored = self.shared.store.extents(self.table.id).await.map_err(wrap)?;
        let ours = |extent: &Extent| extents.iter().any(|ours| ours.location == extent.location);
        match stored.iter().any(ours) {
            true => Ok(()),
            false => Err(wrap(error)),
        }
    }
}

/// External extents that the rows of a statement come from.
#[derive(Clone)]
pub(crate) struct Sources {
    shared: Arc<Shared>,
    read: Arc<PinnedExternal>,
}

impl Sources {
    pub(crate) fn new(shared: Arc<Shared>, read: Arc<PinnedExternal>) -> Self {
        Self { shared, read }
    }

    /// Rows that were read while their file changed must not become part of a table.
    pub(crate) async fn look_again(&self) -> Result<()> {
        let read = self.read.lock().clone();
        for extents in read {
            self.shared.tracker.verify(&extents).await.map_err(wrap)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// Creates a table together with its first extents.
pub(crate) struct CreateCommit {
    pub(crate) shared: Arc<Shared>,
    pub(crate) table: Arc<TableDef>,
    /// What becomes of one that has its name.
    pub(crate) replace: Replace,
    /// Where the rows come from.
    pub(crate) sources: Sources,
    /// The table that was replaced.
    pub(crate) replaced: parking_lot::Mutex<Option<TableDef>>,
    /// Ends with it.
    pub(crate) step: Option<Arc<Step>>,
}

impl std::fmt::Debug for CreateCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateCommit").field("table", &self.table.name).finish()
    }
}

#[async_trait]
impl Commit for CreateCommit {
    async fn commit(&self, extents: Vec<Extent>) -> Result<()> {
        self.sources.look_again().await?;
        let store = &self.shared.store;
        let replaced = match &self.step {
            Some(step) => {
                let (table, extents, replace) = (self.table.as_ref(), &extents, self.replace);
                let ended = step.end(store.as_ref(), JobEffect::Create { table, extents, replace }).await;
                ended.map_err(wrap)?.ok_or_else(|| wrap(lost()))?.replaced
            }
            None => store.create_table(&self.table, &extents, self.replace).await.map_err(wrap)?,
        };
        *self.replaced.lock() = replaced;
        Ok(())
    }
}
