//! [`list`]: which files a location names right now.
//!
//! ```text
//!   file      that file, whatever its name
//!   folder    files below it with endings of the format, or with the ending in OPTIONS (file_extension '.x')
//!   glob      what it names; a folder that it names counts as a folder
//! ```
//!
//! Guarantees   the order is that of the paths' bytes, the same in every process. Names that begin with `.` or `_` below
//!              the fixed part are passed over (partitions such as `_k=1` are not). Symbolic links are followed, loops
//!              end. Empty files are listed. Nothing found is an error that says what was there instead.
//! Cost         one `stat` per local file; one listing per remote location. Nothing is opened.

mod hive;
mod local;
mod remote;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::{GetOptions, ObjectMeta};

pub(crate) use self::hive::PartitionReader;
pub use self::hive::infer_partition_columns;
pub(crate) use self::local::Memory;
use crate::identity::strong;
use crate::location::{FileKind, Place, endings, local_path};
use crate::{
    CatalogError, FileFormatKind, FileIdentity, FingerprintBuilder, Location, ObjectStores, Result, object_path,
};

/// A file that a location names.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedFile {
    /// Where it is and how it looked.
    pub identity: FileIdentity,
    /// Values of the table's partition columns, as written in the path; empty unless [`list_partitioned`] read them.
    pub partition_values: Arc<[Option<Arc<str>>]>,
}

impl ListedFile {
    /// Full URL.
    pub fn location(&self) -> &Arc<str> {
        &self.identity.location
    }

    /// Its path, if it is a file of this machine.
    pub fn local_path(&self) -> Option<PathBuf> {
        local_path(&self.identity.location)
    }

    /// As object stores and DataFusion describe it.
    pub fn object_meta(&self) -> Result<ObjectMeta> {
        let (_, location) = object_path(&self.identity.location)?;
        Ok(ObjectMeta {
            location,
            last_modified: chrono::DateTime::from_timestamp_nanos(self.identity.mtime_ns),
            size: self.identity.size,
            e_tag: self.identity.etag.as_deref().map(str::to_owned),
            version: self.identity.version.as_deref().map(str::to_owned),
        })
    }

    /// The same for caches of DataFusion, which take what has one path, size and time for one file, in whatever store it is:
    /// a file that may be another one has another time. `looked_at_ns` is before it was listed.
    pub fn object_meta_for_cache(&self, looked_at_ns: i64) -> Result<ObjectMeta> {
        let mut name =
            FingerprintBuilder::new("look at a file").field("file", self.identity.fingerprint(&[]).as_bytes());
        if self.identity.is_racy(looked_at_ns) {
            // Bytes may change and leave no trace: what is read now is for this look alone.
            name = name.field("time", &looked_at_ns.to_le_bytes());
        }
        Ok(ObjectMeta { last_modified: name.finish().as_time(), ..self.object_meta()? })
    }

    /// Options for a read that fails if the object is no longer the one that was listed. Local files have no such
    /// thing: their readers are checked afterwards. Nor have those with a weak etag, which hosts take for no match.
    pub fn get_options(&self) -> GetOptions {
        GetOptions { if_match: strong(self.identity.etag.as_deref()).map(str::to_owned), ..GetOptions::default() }
    }
}

/// Files that `location` names now, without partition values. `options` are those of the table.
pub async fn list(
    stores: &ObjectStores,
    location: &Location,
    format: FileFormatKind,
    options: &BTreeMap<String, String>,
) -> Result<Vec<ListedFile>> {
    list_partitioned(stores, location, format, options, &[]).await
}

/// Files that `location` names now, with the values of Hive partition columns read from their paths.
pub async fn list_partitioned(
    stores: &ObjectStores,
    location: &Location,
    format: FileFormatKind,
    options: &BTreeMap<String, String>,
    partition_columns: &[String],
) -> Result<Vec<ListedFile>> {
    list_again(stores, location, format, options, partition_columns, None).await
}

/// The same, by whoever lists one table again and again; `memory` belongs to that table.
pub(crate) async fn list_again(
    stores: &ObjectStores,
    location: &Location,
    format: FileFormatKind,
    options: &BTreeMap<String, String>,
    partition_columns: &[String],
    mut memory: Option<&mut Memory>,
) -> Result<Vec<ListedFile>> {
    let taking = Taking::new(format, options);
    let columns = partition_columns.to_vec();
    match location.place() {
        Place::Local(_) => {
            let location = location.clone();
            let mut remembered = memory.as_deref_mut().map(std::mem::take);
            let listing = tokio::task::spawn_blocking(move || {
                let listed = local::list(&location, &taking, PartitionReader::new(columns), remembered.as_mut());
                (listed, remembered)
            });
            let (listed, remembered) = listing.await.map_err(|panic| CatalogError::Location {
                attempted: "list",
                location: "local files".to_owned(),
                source: Arc::new(panic),
            })?;
            if let (Some(memory), Some(remembered)) = (memory, remembered) {
                *memory = remembered.of_this_listing();
            }
            listed
        }
        Place::Remote(_) => {
            // Locations of files carry the URL of the very store, so that whoever reads them needs no options.
            let (root, store) = stores.with_options(location.store_url(), options)?;
            remote::list(store.as_ref(), &root, location, &taking, PartitionReader::new(columns)).await
        }
    }
}

/// Which files of a folder belong to the table.
#[derive(Clone, Debug)]
pub(crate) struct Taking {
    format: FileFormatKind,
    extension: Option<String>,
}

impl Taking {
    fn new(format: FileFormatKind, options: &BTreeMap<String, String>) -> Self {
        let extension = options.get("file_extension").or_else(|| options.get("format.file_extension")).cloned();
        Self { format, extension }
    }

    fn takes(&self, name: &str) -> bool {
        match &self.extension {
            Some(extension) => name.ends_with(extension.as_str()),
            None => FileKind::fits(name, self.format),
        }
    }

    fn describe(&self) -> String {
        match &self.extension {
            Some(extension) => format!("\"{extension}\""),
            None => endings(self.format).iter().map(|ending| format!(".{ending}")).collect::<Vec<_>>().join(", "),
        }
    }

    /// Nothing in a folder fits.
    fn nothing_fits(&self, location: &Location, n_others: usize) -> CatalogError {
        let hint = match n_others {
            0 => ": the folder is empty".to_owned(),
            n => format!(
                ": the folder holds {n} other {}, none ends in {}; name them with a glob such as \"*\"",
                if n == 1 { "file" } else { "files" },
                self.describe()
            ),
        };
        CatalogError::NoFiles { location: location.as_str().to_owned(), hint }
    }
}
