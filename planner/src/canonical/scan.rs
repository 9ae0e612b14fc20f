//! Leaves: how bytes become rows (part of the program), and which extents (the data it runs on).
//!
//! A table's name is not part of either: two tables over the same files share what was computed over them.

use std::sync::Arc;

use nectarine_catalog::{Extent, FileFormatKind, Fingerprint, FingerprintBuilder};

use crate::node::ExtentScanExec;

use super::encoder::{Encoder, Tag};
use super::types;

/// How the rows of a scan are made, and which of their columns it shows.
pub(super) fn reading(scan: &ExtentScanExec) -> Vec<u8> {
    let mut encoder = rows(scan);
    if scan.reading().format == FileFormatKind::Csv {
        match scan.projection() {
            Some(columns) => encoder.tag(Tag::Some).numbers(columns),
            None => encoder.tag(Tag::None),
        };
    }
    encoder.list(paths(scan)).list(columns(scan));
    encoder.into_bytes()
}

/// The columns in the paths.
pub(super) fn paths(scan: &ExtentScanExec) -> Vec<Vec<u8>> {
    let declared = scan.table_schema().fields();
    declared.iter().skip(n_in_files(scan)).map(|field| types::field(field)).collect()
}

/// The columns that are shown, as they were declared.
pub(super) fn columns(scan: &ExtentScanExec) -> Vec<Vec<u8>> {
    let declared = scan.table_schema().fields();
    let columns: Vec<_> = match scan.projection() {
        Some(columns) => columns.iter().filter_map(|ordinal| declared.get(*ordinal)).collect(),
        None => declared.iter().collect(),
    };
    columns.into_iter().map(|field| types::field(field)).collect()
}

fn n_in_files(scan: &ExtentScanExec) -> usize {
    scan.table_schema().fields().len().saturating_sub(scan.reading().partition_fields.len())
}

/// How the rows of a scan are made, whichever columns it shows.
pub(super) fn rows(scan: &ExtentScanExec) -> Encoder {
    let reading = scan.reading();
    let mut encoder = Encoder::new(Tag::Scan);
    encoder.text(&format!("{:?}", reading.format));
    // Options of stores hold secrets and where the bytes are: they count, but must not be readable.
    let mut store = FingerprintBuilder::new("store options");
    let mut options = vec![];
    for (key, value) in reading.options.iter() {
        if key.contains('.') && !key.starts_with("format.") {
            store = store.field(key, value.as_bytes());
        } else {
            let mut option = Encoder::default();
            option.text(key).text(value);
            options.push(option.into_bytes());
        }
    }
    encoder.set(options).fingerprint(&store.finish());
    match reading.format {
        // Columns of text go by position, so all of them decide about each.
        FileFormatKind::Csv => {
            let in_files = scan.table_schema().fields().iter().take(n_in_files(scan));
            encoder.list(in_files.map(|field| types::field(field)).collect());
        }
        // Others go by name.
        FileFormatKind::Parquet | FileFormatKind::Json | FileFormatKind::Arrow | FileFormatKind::Avro => {}
    }
    encoder
}

/// Which extents are read, in order.
pub(super) fn extents(extents: &[Arc<Extent>]) -> Fingerprint {
    named(extents.len(), extents.iter().map(|extent| &extent.fingerprint))
}

/// The same of extents that are only known by their fingerprints.
pub(super) fn named<'a>(n_extents: usize, extents: impl Iterator<Item = &'a Fingerprint>) -> Fingerprint {
    let mut encoder = Encoder::new(Tag::Extents);
    encoder.number(n_extents as u64);
    extents.for_each(|extent| _ = encoder.fingerprint(extent));
    encoder.finish()
}
