//! [`NameScannedFiles`]: what goes wrong in a file is told with the file's name, and what is read of it is counted.
//!
//! ```text
//!   before                              after
//!   DataSourceExec                      DataSourceExec
//!     FileScanConfig                      FileScanConfig
//!       ParquetSource                       NamedSource
//!                                             ParquetSource
//! ```
//!
//! Readers know bytes, not files. Runs last of all physical rules: they look for the formats' own sources, and so does
//! whoever writes a plan down. A plan prints and runs the same with it and without.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, SortOrderPushdownResult};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::StreamExt;
use futures::stream::BoxStream;
use nectarine_catalog::{CatalogError, Extent, plain_location};
use object_store::ObjectStore;
use url::Url;

use crate::arrow_file::arrow_morselizer;
use crate::counting_store::CountingStore;
use crate::rewrite_scans::rewrite_scans;
use crate::text_file::{bytes_scanned, of_other_length, text_morselizer};

/// The path of a local file, else the URL.
pub(crate) fn readable_location(location: &str) -> String {
    match Url::parse(location).ok().filter(|url| url.scheme() == "file").and_then(|url| url.to_file_path().ok()) {
        Some(path) => path.display().to_string(),
        None => plain_location(location).into_owned(),
    }
}

/// What is wrong with a file, with its name.
pub(crate) fn unreadable(location: &str, error: DataFusionError) -> DataFusionError {
    let location = location.to_owned();
    DataFusionError::External(Box::new(CatalogError::Location { attempted: "read", location, source: Arc::new(error) }))
}

/// The rule; see above.
#[derive(Debug, Default)]
pub struct NameScannedFiles;

impl PhysicalOptimizerRule for NameScannedFiles {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(rewrite_scans(&plan, &named)?.unwrap_or(plan))
    }

    fn name(&self) -> &str {
        "name_scanned_files"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn named(config: &FileScanConfig) -> Result<Option<FileScanConfig>> {
    if config.file_source.is::<NamedSource>() {
        return Ok(None);
    }
    let mut config = config.clone();
    config.file_source = NamedSource::around(config.file_source);
    Ok(Some(config))
}

/// A format's own source, with names around its errors.
struct NamedSource {
    inner: Arc<dyn FileSource>,
    /// Known when it runs.
    batch_size: Option<usize>,
}

impl NamedSource {
    fn around(inner: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(Self { inner, batch_size: None })
    }

    /// Whether it computes more than what is in the files: values may be wrong then where files are right.
    fn computes(&self) -> bool {
        let filters_rows = self.inner.filter().is_some()
            && self
                .inner
                .downcast_ref::<ParquetSource>()
                .is_some_and(|source| source.table_parquet_options().global.pushdown_filters);
        let projects = |projection: &ProjectionExprs| projection.iter().any(|projected| !projected.expr.is::<Column>());
        filters_rows || self.inner.projection().is_some_and(projects)
    }
}

impl FileSource for NamedSource {
    fn create_file_opener(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        self.inner.create_file_opener(object_store, base_config, partition)
    }

    fn create_morselizer(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Box<dyn Morselizer>> {
        let text = match self.batch_size {
            Some(rows) => text_morselizer(self.inner.as_ref(), &object_store, base_config, partition, rows)?,
            None => None,
        };
        let inner = match text {
            Some(morselizer) => morselizer,
            // Its own reader counts.
            None if self.inner.is::<ParquetSource>() => {
                self.inner.create_morselizer(object_store, base_config, partition)?
            }
            None => {
                let n_bytes = bytes_scanned(self.inner.as_ref(), partition);
                let counting: Arc<dyn ObjectStore> = Arc::new(CountingStore::new(object_store, n_bytes));
                match arrow_morselizer(self.inner.as_ref(), &counting)? {
                    Some(morselizer) => morselizer,
                    None => self.inner.create_morselizer(counting, base_config, partition)?,
                }
            }
        };
        let columns = Arc::clone(self.inner.table_schema().file_schema());
        let trusts_bytes = self.inner.file_type() == "arrow";
        Ok(Box::new(NamedMorselizer { inner, columns, computes: self.computes(), trusts_bytes }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.inner.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { inner: self.inner.with_batch_size(batch_size), batch_size: Some(batch_size) })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.inner.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.inner.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.inner.metrics()
    }

    fn file_type(&self) -> &str {
        self.inner.file_type()
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_extra(t, f)
    }

    fn supports_repartitioning(&self) -> bool {
        self.inner.supports_repartitioning()
    }

    fn repartitioned(
        &self,
        target_partitions: usize,
        repartition_file_min_size: usize,
        output_ordering: Option<LexOrdering>,
        config: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        self.inner.repartitioned(target_partitions, repartition_file_min_size, output_ordering, config)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let mut pushed = self.inner.try_pushdown_filters(filters, config)?;
        pushed.updated_node = pushed.updated_node.map(Self::around);
        Ok(pushed)
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        eq_properties: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(self.inner.try_pushdown_sort(order, eq_properties)?.map(Self::around))
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.inner.reorder_files(files)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        Ok(self.inner.try_pushdown_projection(projection)?.map(Self::around))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }
}

#[derive(Debug)]
struct NamedMorselizer {
    inner: Box<dyn Morselizer>,
    columns: SchemaRef,
    computes: bool,
    /// Arrow's own format is taken as it is, and damaged offsets make its reader panic.
    trusts_bytes: bool,
}

impl Morselizer for NamedMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let location = match file.extension::<Extent>() {
            Some(extent) => Arc::clone(&extent.location),
            None => Arc::from(file.object_meta.location.as_ref()),
        };
        let name = Name {
            location,
            columns: Arc::clone(&self.columns),
            computes: self.computes,
            trusts_bytes: self.trusts_bytes,
        };
        let inner = self.inner.plan_file(file).map_err(|error| name.put(error))?;
        Ok(Box::new(NamedPlanner { inner, name }))
    }
}

#[derive(Debug)]
struct NamedPlanner {
    inner: Box<dyn MorselPlanner>,
    name: Name,
}

impl MorselPlanner for NamedPlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        let Self { inner, name } = *self;
        let Some(mut plan) = inner.plan().map_err(|error| name.put(error))? else { return Ok(None) };
        let named = |inner| Box::new(NamedPlanner { inner, name: name.clone() }) as Box<dyn MorselPlanner>;
        let morsels = plan.take_morsels().into_iter();
        let morsels = morsels.map(|inner| Box::new(NamedMorsel { inner, name: name.clone() }) as Box<dyn Morsel>);
        let mut named_plan = MorselPlan::new()
            .with_morsels(morsels.collect())
            .with_planners(plan.take_ready_planners().into_iter().map(named).collect());
        if let Some(pending) = plan.take_pending_planner() {
            let name = name.clone();
            named_plan.set_pending_planner(async move {
                let inner = pending.await.map_err(|error| name.put(error))?;
                Ok(Box::new(NamedPlanner { inner, name }) as Box<dyn MorselPlanner>)
            });
        }
        Ok(Some(named_plan))
    }
}

#[derive(Debug)]
struct NamedMorsel {
    inner: Box<dyn Morsel>,
    name: Name,
}

impl Morsel for NamedMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        let Self { inner, name } = *self;
        let stream = inner.into_stream();
        if !name.trusts_bytes {
            return stream.map(move |batch| batch.map_err(|error| name.put(error))).boxed();
        }
        // Nothing of the stream is used after a panic: `catch_unwind` ends it.
        let stream = AssertUnwindSafe(stream).catch_unwind();
        stream
            .map(move |batch| match batch {
                Ok(batch) => batch.map_err(|error| name.put(error)),
                Err(_) => Err(name.put(ArrowError::IpcError("it is damaged".to_owned()).into())),
            })
            .boxed()
    }
}

/// What an error in one file needs to be understood.
#[derive(Clone, Debug)]
struct Name {
    location: Arc<str>,
    columns: SchemaRef,
    computes: bool,
    /// Arrow's own format is taken as it is, and damaged offsets make its reader panic.
    trusts_bytes: bool,
}

impl Name {
    fn put(&self, error: DataFusionError) -> DataFusionError {
        let root = error.find_root();
        match root {
            // Not the file's fault, or it has its name.
            DataFusionError::ResourcesExhausted(_)
            | DataFusionError::ExecutionJoin(_)
            | DataFusionError::Internal(_) => return error,
            _ => {}
        }
        if let DataFusionError::External(inner) = &error
            && inner.is::<CatalogError>()
        {
            return error;
        }
        if let DataFusionError::ArrowError(arrow, _) = root
            && let Some(clearer) = self.words(arrow)
        {
            return unreadable(&readable_location(&self.location), clearer.into());
        }
        match self.computes && may_be_computed(root) {
            true => error.context(format!("while reading \"{}\"", readable_location(&self.location))),
            false => unreadable(&readable_location(&self.location), error),
        }
    }

    /// Arrow counts the rows of what it was given, which is a piece of a file: its numbers of lines help nobody.
    fn words(&self, error: &ArrowError) -> Option<ArrowError> {
        match error {
            ArrowError::ParseError(text) => {
                let (value, rest) = text.strip_prefix("Error while parsing value ")?.rsplit_once(" for column ")?;
                let (column, row) = rest.split_once(" at line ")?;
                let column = self.columns.fields().get(column.parse::<usize>().ok()?)?;
                let row = row.split_once(". Row data: ").map_or(String::new(), |(_, row)| format!("\nrow: {row}"));
                Some(ArrowError::ParseError(format!("cannot parse {value} in column \"{}\"{row}", column.name())))
            }
            ArrowError::CsvError(text) => {
                let (_, fields) = text.strip_prefix("incorrect number of fields for line ")?.split_once(", ")?;
                let (expected, found) = fields.strip_prefix("expected ")?.split_once(" got ")?;
                Some(ArrowError::CsvError(of_other_length(expected, found)))
            }
            ArrowError::JsonError(text) => json_words(text).map(ArrowError::JsonError),
            _ => None,
        }
    }
}

/// `whilst decoding field 'a': whilst decoding field 'b': expected { got 5`
fn json_words(text: &str) -> Option<String> {
    let (mut path, mut rest) = (vec![], text);
    while let Some((name, below)) = rest.strip_prefix("whilst decoding field '").and_then(|rest| rest.split_once("': "))
    {
        path.push(name);
        rest = below;
    }
    let (expected, found) = rest.strip_prefix("expected ")?.split_once(" got ")?;
    let expected = match expected {
        "{" => "an object",
        "[" => "an array",
        other => other,
    };
    (!path.is_empty()).then(|| format!("column \"{}\" is {expected}, but there is {found}", path.join(".")))
}

/// Whether an expression can fail like this.
fn may_be_computed(root: &DataFusionError) -> bool {
    match root {
        DataFusionError::Execution(_) => true,
        DataFusionError::ArrowError(error, _) => matches!(
            error.as_ref(),
            ArrowError::DivideByZero
                | ArrowError::ArithmeticOverflow(_)
                | ArrowError::CastError(_)
                | ArrowError::ComputeError(_)
                | ArrowError::ParseError(_)
                | ArrowError::InvalidArgumentError(_)
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn name(computes: bool) -> Name {
        let columns = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        Name { location: "/d/1.csv".into(), columns, computes, trusts_bytes: false }
    }

    /// What is told of a file, if the file is to blame.
    fn told(computes: bool, error: ArrowError) -> Option<String> {
        match name(computes).put(error.into()) {
            DataFusionError::External(error) => match *error.downcast::<CatalogError>().expect("our own error") {
                CatalogError::Location { location, source, .. } => Some(format!("{location}: {source}")),
                other => panic!("{other:?}"),
            },
            _ => None,
        }
    }

    #[test]
    fn lines_that_nobody_can_find_are_not_told() {
        let text = "Error while parsing value 'x' as type 'Int64' for column 0 at line 1. Row data: '[x]'";
        let told_text = told(true, ArrowError::ParseError(text.to_owned())).expect("it is the file");
        assert!(told_text.contains("cannot parse 'x' as type 'Int64' in column \"n\""), "{told_text}");
        let text = "incorrect number of fields for line 7, expected 2 got more than 2";
        let told_text = told(false, ArrowError::CsvError(text.to_owned())).expect("it is the file");
        assert!(told_text.contains("a row has more than 2 fields where 2 are expected"), "{told_text}");
    }

    #[test]
    fn json_names_its_columns() {
        let text = "whilst decoding field 'o': whilst decoding field 'p': expected { got 5";
        let told = told(false, ArrowError::JsonError(text.to_owned())).expect("it is the file");
        assert!(told.contains("column \"o.p\" is an object, but there is 5"), "{told}");
    }

    #[test]
    fn expressions_are_not_the_files_fault() {
        assert_eq!(told(true, ArrowError::DivideByZero), None);
        assert!(told(false, ArrowError::CastError("no number".to_owned())).is_some());
        let named = name(false).put(unreadable("/d/2.csv", ArrowError::DivideByZero.into()));
        assert!(named.to_string().contains("/d/2.csv") && !named.to_string().contains("/d/1.csv"), "{named}");
        let full = name(false).put(DataFusionError::ResourcesExhausted("memory".to_owned()));
        assert!(matches!(full, DataFusionError::ResourcesExhausted(_)));
    }
}
