//! [`BundledFiles`]: a scan of bundles that becomes a scan of files when it runs.
//!
//! Descriptions of ten thousand files take longer to make than the rest of a plan, and a plan that is only looked at, or whose
//! answer is found elsewhere, needs none of them.
//!
//! Keeps true   it prints, counts and runs as the scan of its files would. What travels to other machines is unpacked before.

use std::any::Any;
use std::fmt::{self, Formatter};
use std::ops::Add;
use std::sync::{Arc, OnceLock};

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use datafusion_datasource::source::OpenArgs;

use super::{bundle_of, unpacked};

/// A plan that is printed shows so many files of a group, and that there are more.
const SHOWN: usize = 6;

/// The scan.
#[derive(Debug)]
pub(super) struct BundledFiles {
    packed: FileScanConfig,
    /// Made when somebody reads.
    files: OnceLock<Result<FileScanConfig, Arc<DataFusionError>>>,
}

impl BundledFiles {
    /// `None` if the scan has no bundle.
    pub(super) fn of(packed: &FileScanConfig) -> Option<Self> {
        let has_bundle = packed.file_groups.iter().flat_map(FileGroup::iter).any(|file| bundle_of(file).is_some());
        has_bundle.then(|| Self { packed: packed.clone(), files: OnceLock::new() })
    }

    /// The scan of bundles.
    pub(super) fn packed(&self) -> &FileScanConfig {
        &self.packed
    }

    /// The scan of files.
    pub(super) fn files(&self) -> Result<&FileScanConfig> {
        let made = self.files.get_or_init(|| {
            let mut config = self.packed.clone();
            config.file_groups = unpacked(&self.packed.file_groups, None).map_err(Arc::new)?;
            Ok(config)
        });
        made.as_ref().map_err(|error| DataFusionError::Shared(Arc::clone(error)))
    }
}

impl DataSource for BundledFiles {
    fn open(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.files()?.open(partition, context)
    }

    fn open_with_args(&self, args: OpenArgs) -> Result<SendableRecordBatchStream> {
        self.files()?.open_with_args(args)
    }

    fn create_sibling_state(&self, config: &ConfigOptions) -> Option<Arc<dyn Any + Send + Sync>> {
        // What goes wrong is told by whoever opens it.
        self.files().ok()?.create_sibling_state(config)
    }

    fn fmt_as(&self, t: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        // Files that can not be described are told by whoever reads them: a plan that is only shown names none then.
        match t {
            DisplayFormatType::Default => match unpacked(&self.packed.file_groups, Some(SHOWN)) {
                Ok(file_groups) => {
                    let mut some = self.packed.clone();
                    some.file_groups = file_groups;
                    some.fmt_as(t, f)
                }
                Err(_) => self.packed.fmt_as(t, f),
            },
            // All of them, or how many they are.
            DisplayFormatType::Verbose | DisplayFormatType::TreeRender => {
                self.files().unwrap_or(&self.packed).fmt_as(t, f)
            }
        }
    }

    fn output_partitioning(&self) -> Partitioning {
        self.packed.output_partitioning()
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        self.packed.eq_properties()
    }

    fn scheduling_type(&self) -> SchedulingType {
        self.packed.scheduling_type()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.packed.partition_statistics(partition)
    }

    /// No rule that asks for this runs behind the one that puts it here.
    fn with_fetch(&self, _limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        None
    }

    fn fetch(&self) -> Option<usize> {
        self.packed.fetch()
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.packed.metrics()
    }

    fn try_swapping_with_projection(&self, _projection: &ProjectionExprs) -> Result<Option<Arc<dyn DataSource>>> {
        Ok(None)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.packed.apply_expressions(f)
    }
}

/// What a plan that is about to run reads from files: they themselves, or bundles in their place, which have their sizes.
pub fn file_scan(plan: &dyn ExecutionPlan) -> Option<&FileScanConfig> {
    let source = plan.downcast_ref::<DataSourceExec>()?.data_source();
    let bundled = || source.downcast_ref::<BundledFiles>().map(BundledFiles::packed);
    source.downcast_ref::<FileScanConfig>().or_else(bundled)
}

/// How much a scan has to read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ScanTotals {
    /// Files.
    pub files: u64,
    /// What is read by itself of them: large ones are read in several.
    pub pieces: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl ScanTotals {
    /// Those of a scan.
    pub fn of(config: &FileScanConfig) -> Self {
        let mut totals = Self::default();
        // Pieces of one file follow each other.
        let mut last = None;
        for file in config.file_groups.iter().flat_map(FileGroup::files) {
            totals.bytes += file.effective_size();
            match bundle_of(file) {
                Some(bundle) => {
                    let pieces = bundle.pieces(file);
                    totals.pieces += pieces.len() as u64;
                    let first = pieces.first().map(|extent| &*extent.location);
                    totals.files += pieces.len() as u64 - u64::from(first.is_some() && first == last);
                    last = pieces.last().map(|extent| &*extent.location);
                }
                None => {
                    let location = file.object_meta.location.as_ref();
                    totals.pieces += 1;
                    totals.files += u64::from(last != Some(location));
                    last = Some(location);
                }
            }
        }
        totals
    }
}

impl Add for ScanTotals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { files: self.files + other.files, pieces: self.pieces + other.pieces, bytes: self.bytes + other.bytes }
    }
}
