//! Tells of last records that were left out of text files, because the rest of them may still come.

use std::collections::BTreeMap;
use std::path::Path;

use nectarine_catalog::{Clock, RACY_NS, SystemClock, plain_location};
use url::Url;

use crate::answer::Notice;
use crate::statement::StatementCatalog;

/// Files that are told by name.
const NAMED_MAX: usize = 3;

/// What a statement left out. Of files that are being written to right now nothing is told: the next statement has it.
pub(crate) fn notices(catalog: &StatementCatalog) -> Vec<Notice> {
    let now_ns = SystemClock.now_ns();
    let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
    for extents in catalog.external_extents() {
        for (at, extent) in extents.iter().enumerate() {
            let Some(range) = extent.range else { continue };
            let is_last = extents.get(at + 1).is_none_or(|next| next.location != extent.location);
            let rests = extent.modified_at.saturating_mul(1000) < now_ns.saturating_sub(RACY_NS);
            if is_last && rests && range.end < extent.file_bytes {
                left_out.insert(readable(&extent.location), range.end);
            }
        }
    }
    let hint = "it is read once it ends with a line; ten minutes after the last write it is an error".to_owned();
    let more = left_out.len().saturating_sub(NAMED_MAX);
    let mut notices: Vec<Notice> = left_out
        .iter()
        .take(NAMED_MAX)
        .map(|(name, byte)| Notice {
            message: format!("the last record of \"{name}\" (from byte {byte} on) is unfinished and was left out"),
            hint: Some(hint.clone()),
        })
        .collect();
    if more > 0 {
        notices.push(Notice { message: format!("so were those of {more} more files"), hint: None });
    }
    notices
}

fn readable(location: &str) -> String {
    let path = Url::parse(location).ok().filter(|url| url.scheme() == "file").and_then(|url| url.to_file_path().ok());
    match path {
        Some(path) => Path::display(&path).to_string(),
        None => plain_location(location).into_owned(),
    }
}
