//! [`ToldFilesExec`]: goes with a scan, and tells executors which files the server saw.
//!
//! ```text
//!   server                   on its way                                     executor
//!   scan a b c d  -- tell -> ToldFiles(a b c d)  -- task of a b -> ToldFiles(a b)  -- check --> scan a b
//!                              scan a b c d                          scan a b
//! ```
//!
//! Keeps true   each file of a scan is told of, or the plan does not travel; what is told of other files is left out.
//! Runs         nowhere: it is taken out before a task begins, see `check`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, Statistics, internal_err, plan_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use nectarine_catalog::{ByteRange, Extent, Fingerprint, Told, object_path};
use prost::Message;

use crate::bundle::unbundled;

/// How the node begins when it is written down: no message of Ballista's can.
const MARK: &[u8] = b"nectarine.told\0";

/// A scan, and what the server knows of its files.
#[derive(Clone, Debug)]
pub(super) struct ToldFilesExec {
    input: Arc<dyn ExecutionPlan>,
    /// By path in the store.
    told: Arc<BTreeMap<String, Vec<Told>>>,
}

/// The plan with what is told of the files of each scan. Fails if nothing is known of one.
pub fn tell_files(plan: Arc<dyn ExecutionPlan>, tell: &dyn Fn(&Extent) -> Told) -> Result<Arc<dyn ExecutionPlan>> {
    unbundled(plan)?
        .transform_up(|node| {
            let Some(config) = files_of(&node) else { return Ok(Transformed::no(node)) };
            let mut told = vec![];
            for file in config.file_groups.iter().flat_map(FileGroup::iter) {
                match file.extension::<Extent>() {
                    Some(extent) => told.push(tell(extent)),
                    None => return plan_err!("nothing is known of file {}", file.object_meta.location),
                }
            }
            Ok(Transformed::yes(Arc::new(ToldFilesExec::try_new(node, told)?) as _))
        })
        .data()
}

/// What a node scans, if it scans files.
pub(super) fn files_of(node: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    node.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()
}

impl ToldFilesExec {
    fn try_new(input: Arc<dyn ExecutionPlan>, all: Vec<Told>) -> Result<Self> {
        let mut told: BTreeMap<String, Vec<Told>> = BTreeMap::new();
        for one in all {
            let (_, path) = object_path(&one.location).map_err(|error| DataFusionError::External(Box::new(error)))?;
            let of_file = told.entry(path.to_string()).or_default();
            // A large extent is read in pieces.
            if !of_file.contains(&one) {
                of_file.push(one);
            }
        }
        let this = Self { input, told: Arc::new(told) };
        this.needed()?;
        Ok(this)
    }

    /// The scan.
    pub(super) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// What is told of the files that the scan reads, which may be some of those that it once read. Fails if nothing is told of one.
    pub(super) fn needed(&self) -> Result<Vec<&Told>> {
        let Some(config) = files_of(&self.input) else { return internal_err!("ToldFilesExec is about a scan") };
        let mut needed: Vec<&Told> = vec![];
        for file in config.file_groups.iter().flat_map(FileGroup::iter) {
            let path = file.object_meta.location.as_ref();
            let found = self.told.get(path).and_then(|told| told.iter().find(|told| is_about(told, file)));
            let Some(found) = found else { return plan_err!("nothing is told of file {path}") };
            // Pieces of an extent mostly follow each other.
            if needed.last() != Some(&found) {
                needed.push(found);
            }
        }
        Ok(needed)
    }

    /// Writes it down, without its input.
    pub(super) fn encode(&self, buffer: &mut Vec<u8>) -> Result<()> {
        buffer.extend_from_slice(MARK);
        let files = self.needed()?.into_iter().map(ToldMessage::from).collect();
        FilesMessage { files }.encode(buffer).map_err(|error| DataFusionError::External(Box::new(error)))
    }

    /// What [`encode`](Self::encode) wrote; `None` if that was another node.
    pub(super) fn decode(buffer: &[u8], inputs: &[Arc<dyn ExecutionPlan>]) -> Option<Result<Self>> {
        let bytes = buffer.strip_prefix(MARK)?;
        let read = || {
            let [input] = inputs else { return internal_err!("ToldFilesExec has one child") };
            let message = FilesMessage::decode(bytes).map_err(|error| DataFusionError::External(Box::new(error)))?;
            let told = message.files.into_iter().map(Told::try_from).collect::<Result<_>>()?;
            Self::try_new(Arc::clone(input), told)
        };
        Some(read())
    }
}

/// Whether what is told is about this file, or the extent that it is a piece of.
fn is_about(told: &Told, file: &PartitionedFile) -> bool {
    if told.file_bytes != file.object_meta.size {
        return false;
    }
    match (told.range, &file.range) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(extent), Some(piece)) => {
            let (start, end) = (u64::try_from(piece.start), u64::try_from(piece.end));
            matches!((start, end), (Ok(start), Ok(end)) if extent.start <= start && end <= extent.end)
        }
    }
}

impl DisplayAs for ToldFilesExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_files = files_of(&self.input).map_or(0, |config| config.file_groups.iter().map(FileGroup::len).sum());
        write!(f, "ToldFilesExec: files={n_files}")
    }
}

impl ExecutionPlan for ToldFilesExec {
    fn name(&self) -> &str {
        "ToldFilesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self { input, told: Arc::clone(&self.told) })),
            _ => internal_err!("ToldFilesExec has one child"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("ToldFilesExec has one child"),
        }
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("a scan was about to run whose files nobody looked at")
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct FilesMessage {
    #[prost(message, repeated, tag = "1")]
    files: Vec<ToldMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ToldMessage {
    #[prost(string, tag = "1")]
    location: String,
    #[prost(message, optional, tag = "2")]
    range: Option<RangeMessage>,
    #[prost(uint64, tag = "3")]
    file_bytes: u64,
    #[prost(int64, tag = "4")]
    modified_at: i64,
    #[prost(string, optional, tag = "5")]
    etag: Option<String>,
    #[prost(bytes = "vec", tag = "6")]
    fingerprint: Vec<u8>,
    #[prost(bool, tag = "7")]
    by_content: bool,
    #[prost(message, repeated, tag = "8")]
    partition_values: Vec<ValueMessage>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct RangeMessage {
    #[prost(uint64, tag = "1")]
    start: u64,
    #[prost(uint64, tag = "2")]
    end: u64,
}

/// No text is NULL.
#[derive(Clone, PartialEq, prost::Message)]
struct ValueMessage {
    #[prost(string, optional, tag = "1")]
    text: Option<String>,
}

impl From<&Told> for ToldMessage {
    fn from(told: &Told) -> Self {
        let value = |value: &Option<Arc<str>>| ValueMessage { text: value.as_deref().map(str::to_owned) };
        Self {
            location: told.location.to_string(),
            range: told.range.map(|ByteRange { start, end }| RangeMessage { start, end }),
            file_bytes: told.file_bytes,
            modified_at: told.modified_at,
            etag: told.etag.as_deref().map(str::to_owned),
            fingerprint: told.fingerprint.as_bytes().to_vec(),
            by_content: told.by_content,
            partition_values: told.partition_values.iter().map(value).collect(),
        }
    }
}

impl TryFrom<ToldMessage> for Told {
    type Error = DataFusionError;

    fn try_from(message: ToldMessage) -> Result<Self> {
        let Some(fingerprint) = Fingerprint::from_slice(&message.fingerprint) else {
            return plan_err!("a fingerprint has 32 bytes");
        };
        let range = match message.range {
            Some(RangeMessage { start, end }) if start > end => return plan_err!("a range ends before it begins"),
            Some(RangeMessage { start, end }) => Some(ByteRange { start, end }),
            None => None,
        };
        Ok(Self {
            location: Arc::from(message.location),
            range,
            file_bytes: message.file_bytes,
            modified_at: message.modified_at,
            etag: message.etag.map(Arc::from),
            fingerprint,
            by_content: message.by_content,
            partition_values: message.partition_values.into_iter().map(|value| value.text.map(Arc::from)).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
