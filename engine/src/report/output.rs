//! [`Staged`]: bytes on their way to their place: hidden first, then there as a whole.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use nectarine_catalog::{Fingerprint, Location, object_path};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use crate::copy_place::{check_file, fault};
use crate::engine::Shared;
use crate::staging::Staging;
use crate::{EngineError, ErrorKind, Result};

/// Bytes that are not there yet.
pub(super) enum Staged {
    /// In a hidden folder beside their place.
    Local {
        /// The folder.
        staging: Staging,
        /// The file's name in both folders.
        name: String,
        /// What it will be.
        path: PathBuf,
    },
    /// In memory: an object appears as a whole.
    Remote {
        /// The store.
        store: Arc<dyn ObjectStore>,
        /// The name there.
        key: ObjectPath,
        /// What it will be.
        bytes: Bytes,
        /// As people write it.
        location: String,
    },
}

/// Brings bytes as near to their place as can be done without anybody seeing them.
pub(super) async fn stage(shared: &Shared, target: &str, bytes: Vec<u8>) -> Result<Staged> {
    let location = locate(target)?;
    if !location.is_local() {
        let (store, key) = remote(shared, &location)?;
        return Ok(Staged::Remote { store, key, bytes: bytes.into(), location: target.to_string() });
    }
    let path = PathBuf::from(location.fixed_prefix());
    let staged = tokio::task::spawn_blocking(move || stage_local(path, &bytes)).await;
    staged.map_err(|error| EngineError::new(ErrorKind::Internal, "a file was not written").with_source(error))?
}

fn stage_local(path: PathBuf, bytes: &[u8]) -> Result<Staged> {
    if path.is_dir() {
        return Err(EngineError::new(ErrorKind::Io, format!("cannot write \"{}\"", path.display()))
            .with_detail("it is a folder"));
    }
    let path = check_file(path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let staging = Staging::create(folder).map_err(|error| fault("create files in", folder, error))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let written = File::create_new(staging.path().join(&name)).and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| fault("write", &path, error))?;
    Ok(Staged::Local { staging, name, path })
}

impl Staged {
    /// Makes them what is there; what was there before is replaced in one step.
    pub(super) async fn publish(self) -> Result<()> {
        match self {
            Self::Local { staging, name, path } => {
                let moved = staging.move_all(vec![name]).await;
                let _ = tokio::task::spawn_blocking(move || drop(staging)).await;
                moved.map_err(|error| fault("write", &path, error))
            }
            Self::Remote { store, key, bytes, location } => {
                let put = store.put(&key, PutPayload::from_bytes(bytes)).await;
                put.map(drop).map_err(|error| {
                    EngineError::new(ErrorKind::Io, format!("cannot write \"{location}\""))
                        .with_detail(error.to_string())
                        .with_source(error)
                })
            }
        }
    }
}

/// What is at a place hashes to; `None` if nothing is there, or it cannot be read.
pub(super) async fn digest_of(shared: &Shared, target: &str) -> Option<Fingerprint> {
    let location = locate(target).ok()?;
    let bytes = match location.is_local() {
        true => {
            let path = location.fixed_prefix();
            Bytes::from(tokio::task::spawn_blocking(move || fs::read(path)).await.ok()?.ok()?)
        }
        false => {
            let (store, key) = remote(shared, &location).ok()?;
            store.get(&key).await.ok()?.bytes().await.ok()?
        }
    };
    Some(Fingerprint::of_bytes(&bytes))
}

fn locate(target: &str) -> Result<Location> {
    Ok(Location::parse_name(target, Path::new("/"))?)
}

fn remote(shared: &Shared, location: &Location) -> Result<(Arc<dyn ObjectStore>, ObjectPath)> {
    let (url, key) = object_path(location.as_str())?;
    Ok((shared.object_stores.get(&url)?, key))
}
