//! [`Bundle`]: thousands of files of a scan as one, for as long as a plan is being made.
//!
//! ```text
//!   lower_extent_scans   DataFusion's rules                  when it runs
//!   [bundle of a b c]    [bundle, bytes 0..70]               [a 0..40, b 0..30]
//!   [bundle of d e]      [bundle, bytes 70..90; bundle]      [b 30..40, c 0..10, d, e]
//! ```
//!
//! Whatever a physical rule changes about a scan, it copies the names of all its files: ten thousand of them half a dozen times
//! take longer than all else in planning. Rules only look at sizes, and cut at bytes; a bundle has the size of its files together
//! and is cut where they would be.
//!
//! Keeps true   what runs has exactly the files, groups and ranges that it would have had without. A bundle that nobody takes
//!              apart names no file, so reading it is an error.
//! Stays quiet  where files carry statistics (rules look at those), for text (cut before) and for files of other machines.

mod as_it_runs;

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSource;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use nectarine_catalog::{Extent, in_order};
use nectarine_planner::node::{ExtentScanExec, Reading};

use self::as_it_runs::BundledFiles;
pub use self::as_it_runs::{ScanTotals, file_scan};
use crate::rewrite_scans::{rewrite_scans, rewrite_sources};
use crate::scan::whole_file;

/// Goes with a file that stands for many.
#[derive(Debug)]
struct Bundle {
    reading: Arc<Reading>,
    extents: Arc<[Arc<Extent>]>,
    /// Which of them.
    positions: Range<usize>,
}

/// The extents of a scan in at most `n` groups of one bundle each; `None` if its files have to be seen.
pub(crate) fn bundles(scan: &ExtentScanExec, n: usize) -> Option<Vec<FileGroup>> {
    let extents = scan.extents();
    let is_whole = |extent: &Arc<Extent>| extent.range.is_none() && extent.location.starts_with("file://");
    if scan.reading().format.is_text() || !extents.iter().all(is_whole) {
        return None;
    }
    let size = extents.len().div_ceil(n.max(1)).max(1);
    let group = |start: usize| {
        let positions = start..(start + size).min(extents.len());
        let bytes = extents[positions.clone()].iter().map(|extent| extent.file_bytes).sum();
        let bundle =
            Bundle { reading: Arc::clone(scan.reading()), extents: Arc::clone(extents), positions: positions.clone() };
        let file = PartitionedFile::new(format!("{} extents", positions.len()), bytes).with_extension(bundle);
        FileGroup::new(vec![file])
    };
    Some((0..extents.len()).step_by(size).map(group).collect())
}

fn bundle_of(file: &PartitionedFile) -> Option<&Bundle> {
    file.extension::<Bundle>()
}

/// What of its bytes is read, if not all.
fn range_of(file: &PartitionedFile) -> Option<(u64, u64)> {
    file.range.is_some().then(|| file.range())
}

impl Bundle {
    fn extents(&self) -> &[Arc<Extent>] {
        &self.extents[self.positions.clone()]
    }

    /// The extents of which something is read where `file` stands for this bundle.
    fn pieces(&self, file: &PartitionedFile) -> Vec<&Arc<Extent>> {
        match range_of(file) {
            None => self.extents().iter().collect(),
            Some(range) => within(self.extents(), range).into_iter().map(|(extent, _)| extent).collect(),
        }
    }

    /// Adds its files to `files`, so many at `most`: all of them as they are, or what lies in a range of their bytes.
    fn unpack(&self, range: Option<(u64, u64)>, most: usize, files: &mut Vec<PartitionedFile>) -> Result<()> {
        let made = match range {
            None => in_order(first(self.extents(), most), |part| {
                part.iter().map(|extent| self.file(extent, None)).collect()
            }),
            Some(range) => in_order(first(&within(self.extents(), range), most), |part| {
                part.iter().map(|(extent, (from, to))| self.file(extent, Some((*from, *to)))).collect()
            }),
        };
        let made: Vec<Vec<PartitionedFile>> = made.into_iter().collect::<Result<_>>()?;
        files.reserve(made.iter().map(Vec::len).sum());
        files.extend(made.into_iter().flatten());
        Ok(())
    }

    fn file(&self, extent: &Arc<Extent>, range: Option<(u64, u64)>) -> Result<PartitionedFile> {
        let file = whole_file(extent, &self.reading)?;
        Ok(match range {
            Some((from, to)) => file.with_range(from as i64, to as i64),
            None => file,
        })
    }
}

fn first<T>(all: &[T], most: usize) -> &[T] {
    &all[..all.len().min(most)]
}

/// Which extents lie in a range of the bytes of all, and which of their own bytes.
fn within(extents: &[Arc<Extent>], (first, last): (u64, u64)) -> Vec<(&Arc<Extent>, (u64, u64))> {
    let mut start = 0;
    let own = extents.iter().filter_map(|extent| {
        let end = start + extent.file_bytes;
        let (from, to) = (start.max(first), end.min(last));
        let own = (from < to).then(|| (extent, (from - start, to - start)));
        start = end;
        own
    });
    own.collect()
}

/// Has files take the place of bundles when they are read. Runs behind all rules that look at scans.
#[derive(Debug, Default)]
pub struct UnbundleFiles;

impl PhysicalOptimizerRule for UnbundleFiles {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let later =
            |config: &FileScanConfig| Ok(BundledFiles::of(config).map(|files| Arc::new(files) as Arc<dyn DataSource>));
        Ok(rewrite_sources(&plan, &later)?.unwrap_or(plan))
    }

    fn name(&self) -> &str {
        "unbundle_files"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with files in the place of bundles, for who has to see them.
pub(crate) fn unbundled(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let now = |config: &FileScanConfig| match BundledFiles::of(config) {
        Some(files) => files.files().cloned().map(Some),
        None => Ok(None),
    };
    Ok(rewrite_scans(&plan, &now)?.unwrap_or(plan))
}

/// The groups with files in the place of bundles, or with so many at `most` of each.
fn unpacked(groups: &[FileGroup], most: Option<usize>) -> Result<Vec<FileGroup>> {
    let most = most.unwrap_or(usize::MAX);
    let unpack = |group: &FileGroup| {
        let mut files = vec![];
        for file in group.iter() {
            let left = most - files.len().min(most);
            match bundle_of(file) {
                Some(bundle) => bundle.unpack(range_of(file), left, &mut files)?,
                None => files.extend((left > 0).then(|| file.clone())),
            }
        }
        Ok(FileGroup::new(files))
    };
    groups.iter().map(unpack).collect()
}

#[cfg(test)]
mod tests;
