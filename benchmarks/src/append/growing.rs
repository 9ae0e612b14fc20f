//! [`Growing`]: the tables of a scale, as far as they have arrived.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::tpch::data::{self, Table, TpchData};

/// A folder that files of another one are linked into, in their order.
pub(crate) struct Growing<'a> {
    source: &'a TpchData,
    data: TpchData,
    next: HashMap<&'static str, usize>,
    /// Removed at the end.
    _folder: TempDir,
}

impl<'a> Growing<'a> {
    /// Nothing has arrived yet. The folder is beside the data's, where files can be linked.
    pub(crate) fn new(source: &'a TpchData) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("growing").tempdir_in(source.folder().join(".."))?;
        for table in Table::ALL {
            fs::create_dir(folder.path().join(table.name()))?;
        }
        Ok(Self { source, data: TpchData::at(folder.path()), next: HashMap::new(), _folder: folder })
    }

    pub(crate) fn data(&self) -> &TpchData {
        &self.data
    }

    /// The next files of a table, as many as there are at most.
    pub(crate) fn add(&mut self, table: Table, n_files: u16) -> Result<()> {
        let first = *self.next.entry(table.name()).or_default();
        let files = self.source.files(table)?;
        let arriving: Vec<&PathBuf> = files.iter().skip(first).take(n_files.into()).collect();
        for (number, file) in arriving.iter().enumerate() {
            link(file, &self.data.folder().join(table.name()).join(format!("{:05}.parquet", first + number)))?;
        }
        self.next.insert(table.name(), first + arriving.len());
        Ok(())
    }

    /// A piece of a table that is made now: one in `one_in` of all its rows.
    pub(crate) fn write(&mut self, table: Table, scale: f64, piece: u16, one_in: u16) -> Result<()> {
        let number = self.next.entry(table.name()).or_default();
        let path = self.data.folder().join(table.name()).join(format!("{:05}.parquet", *number));
        *number += 1;
        tokio::task::block_in_place(|| data::write_part(&path, table, scale, piece.into(), one_in.into()))
    }

    /// Passes over the next files of a table.
    pub(crate) fn skip(&mut self, table: Table, n_files: u16) {
        *self.next.entry(table.name()).or_default() += usize::from(n_files);
    }

    /// The next file of a table instead of those that are there.
    pub(crate) fn replace(&mut self, table: Table) -> Result<()> {
        for file in self.data.files(table)? {
            fs::remove_file(file)?;
        }
        self.add(table, 1)
    }
}

fn link(from: &Path, to: &Path) -> Result<()> {
    fs::hard_link(from, to)
        .or_else(|_| fs::copy(from, to).map(drop))
        .with_context(|| format!("cannot link \"{}\" to \"{}\"", from.display(), to.display()))
}
