//! Leaves: how bytes become rows (part of the program), and which extents (the data it runs on).
//!
//! A table's name is not part of either: two tables over the same files share what was computed over them.

use std::sync::Arc;

use nectarine_catalog::{Extent, FileFormatKind, Fingerprint, FingerprintBuilder};

use crate::node::ExtentScanExec;

use super::encoder::{Encoder, Tag};
use super::types;

/// How the rows of a scan are made.
pub(super) fn reading(scan: &ExtentScanExec) -> Vec<u8> {
    let reading = scan.reading();
    let declared = reading.declared.fields();
    let (in_files, in_paths) = declared.split_at(declared.len() - reading.partition_fields.len().min(declared.len()));
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
            encoder.list(in_files.iter().map(|field| types::field(field)).collect());
            match scan.projection() {
                Some(columns) => encoder.tag(Tag::Some).numbers(columns),
                None => encoder.tag(Tag::None),
            };
        }
        // Others go by name.
        FileFormatKind::Parquet | FileFormatKind::Json | FileFormatKind::Arrow | FileFormatKind::Avro => {}
    }
    encoder.list(in_paths.iter().map(|field| types::field(field)).collect());
    let columns: Vec<_> = match scan.projection() {
        Some(columns) => columns.iter().filter_map(|ordinal| declared.get(*ordinal)).collect(),
        None => declared.iter().collect(),
    };
    encoder.list(columns.into_iter().map(|field| types::field(field)).collect());
    encoder.into_bytes()
}

/// Which extents are read, in order.
pub(super) fn extents(extents: &[Arc<Extent>]) -> Fingerprint {
    let mut encoder = Encoder::new(Tag::Extents);
    encoder.number(extents.len() as u64);
    extents.iter().for_each(|extent| _ = encoder.fingerprint(&extent.fingerprint));
    encoder.finish()
}
