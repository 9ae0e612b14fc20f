//! [`TpchData`]: the eight tables as Parquet files, made once per scale and found again.
//!
//! ```text
//!   tpch-1-8f-v1/            appears under this name when it is whole
//!     done
//!     lineitem/part-0.parquet ..
//!     nation/part-0.parquet
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result};
use arrow::record_batch::RecordBatchReader;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

use crate::{REST, machine};

/// Raised when the files of a scale would come out differently.
const LAYOUT: u32 = 1;

/// A folder with all tables.
pub(crate) struct TpchData {
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Customer,
    LineItem,
    Nation,
    Orders,
    Part,
    PartSupp,
    Region,
    Supplier,
}

impl Table {
    /// The largest first, so that all threads end at about the same time.
    pub(crate) const ALL: [Self; 8] = [
        Self::LineItem,
        Self::Orders,
        Self::PartSupp,
        Self::Customer,
        Self::Part,
        Self::Supplier,
        Self::Nation,
        Self::Region,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Customer => "customer",
            Self::LineItem => "lineitem",
            Self::Nation => "nation",
            Self::Orders => "orders",
            Self::Part => "part",
            Self::PartSupp => "partsupp",
            Self::Region => "region",
            Self::Supplier => "supplier",
        }
    }

    /// Whether it comes in several files.
    pub(crate) fn is_large(self) -> bool {
        !matches!(self, Self::Nation | Self::Region | Self::Supplier)
    }

    fn rows(self, scale: f64, part: i32, n_parts: i32) -> Box<dyn RecordBatchReader> {
        match self {
            Self::Customer => Box::new(CustomerArrow::new(CustomerGenerator::new(scale, part, n_parts))),
            Self::LineItem => Box::new(LineItemArrow::new(LineItemGenerator::new(scale, part, n_parts))),
            Self::Nation => Box::new(NationArrow::new(NationGenerator::new(scale, part, n_parts))),
            Self::Orders => Box::new(OrderArrow::new(OrderGenerator::new(scale, part, n_parts))),
            Self::Part => Box::new(PartArrow::new(PartGenerator::new(scale, part, n_parts))),
            Self::PartSupp => Box::new(PartSuppArrow::new(PartSuppGenerator::new(scale, part, n_parts))),
            Self::Region => Box::new(RegionArrow::new(RegionGenerator::new(scale, part, n_parts))),
            Self::Supplier => Box::new(SupplierArrow::new(SupplierGenerator::new(scale, part, n_parts))),
        }
    }
}

impl TpchData {
    /// A folder that is laid out in the same way.
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A table's files, in the order that they were made in.
    pub(crate) fn files(&self, table: Table) -> Result<Vec<PathBuf>> {
        let mut files = vec![];
        for file in fs::read_dir(self.folder.join(table.name()))? {
            files.push(file?.path());
        }
        // Shorter numbers are smaller ones.
        files.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
        Ok(files)
    }

    /// The folder of a table's files, with a slash at its end.
    pub(crate) fn location(&self, table: Table) -> String {
        format!("{}/", self.folder.join(table.name()).display())
    }

    /// All files together.
    pub(crate) fn bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for table in Table::ALL {
            for file in fs::read_dir(self.folder.join(table.name()))? {
                bytes += file?.metadata()?.len();
            }
        }
        Ok(bytes)
    }
}

/// The data of a scale below `base`, made now if it is not there.
pub(crate) fn prepare(base: &Path, scale: f64, n_files: u16) -> Result<TpchData> {
    let name = format!("tpch-{scale}-{n_files}f-v{LAYOUT}");
    let folder = base.join(&name);
    if folder.join("done").exists() {
        return Ok(TpchData { folder });
    }
    let started = Instant::now();
    let unfinished = tempfile::Builder::new().prefix(&name).tempdir_in(base)?;
    generate(unfinished.path(), scale, n_files)?;
    File::create(unfinished.path().join("done"))?;
    match fs::rename(unfinished.path(), &folder) {
        // It is no longer where its owner would look to remove it.
        Ok(()) => drop(unfinished.keep()),
        // Another process was quicker.
        Err(_) if folder.join("done").exists() => {}
        Err(error) => return Err(error).with_context(|| format!("cannot make \"{}\"", folder.display())),
    }
    eprintln!("TPC-H data of scale {scale} made in {:.1} s", started.elapsed().as_secs_f64());
    std::thread::sleep(REST);
    Ok(TpchData { folder })
}

fn generate(folder: &Path, scale: f64, n_files: u16) -> Result<()> {
    let mut jobs = vec![];
    for table in Table::ALL {
        fs::create_dir(folder.join(table.name()))?;
        let n_parts = if table.is_large() { i32::from(n_files) } else { 1 };
        jobs.extend((1..=n_parts).map(|part| (table, part, n_parts)));
    }
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().ok().and_then(|mut jobs| jobs.next());
    let work = || -> Result<()> {
        while let Some((table, part, n_parts)) = next() {
            let path = folder.join(table.name()).join(format!("part-{}.parquet", part - 1));
            write_part(&path, table, scale, part - 1, n_parts)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..machine::n_cores()).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// One of `n_parts` parts of a table, counted from 0.
pub(crate) fn write_part(path: &Path, table: Table, scale: f64, part: i32, n_parts: i32) -> Result<()> {
    write(path, table.rows(scale, part + 1, n_parts)).with_context(|| format!("cannot write \"{}\"", path.display()))
}

fn write(path: &Path, rows: Box<dyn RecordBatchReader>) -> Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(File::create(path)?, rows.schema(), Some(properties))?;
    for batch in rows {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}
