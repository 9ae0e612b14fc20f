//! Lists object stores: one object by asking for it, folders and globs by one listing of their fixed part.

use std::sync::Arc;

use futures::TryStreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt};
use url::Url;

use super::{ListedFile, PartitionReader, Taking};
use crate::location::{Matched, Place, encode_segment, is_hidden};
use crate::{CatalogError, FileIdentity, Location, Result};

pub(super) async fn list(
    store: &dyn ObjectStore,
    root: &Url,
    location: &Location,
    taking: &Taking,
    mut partitions: PartitionReader,
) -> Result<Vec<ListedFile>> {
    let Place::Remote(prefix) = location.place() else { return Ok(Vec::new()) };
    let mut objects = match one_object(store, location, prefix).await? {
        Some(object) => vec![object],
        None => {
            let mut n_others = 0;
            let found = below(store, location, prefix, taking, &mut n_others).await?;
            if found.is_empty() {
                return Err(nothing(location, taking, n_others));
            }
            found
        }
    };
    objects.sort_unstable_by(|one, two| one.location.as_ref().cmp(two.location.as_ref()));
    objects
        .iter()
        .map(|object| {
            let path = object.location.as_ref();
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let url: Vec<String> = object.location.parts().map(|part| encode_segment(part.as_ref())).collect();
            let url: Arc<str> = Arc::from(format!("{root}{}", url.join("/")));
            Ok(ListedFile {
                identity: FileIdentity::of_object(url, object),
                partition_values: partitions.read(folder)?,
            })
        })
        .collect()
}

/// The object that the location names exactly, if it names one.
async fn one_object(store: &dyn ObjectStore, location: &Location, path: &ObjectPath) -> Result<Option<ObjectMeta>> {
    if location.is_glob() || location.names_folder() {
        return Ok(None);
    }
    match store.head(path).await {
        Ok(object) => Ok(Some(object)),
        // Plain HTTP hosts list nothing, so there is nowhere else to look.
        Err(error) if matches!(error, Error::NotFound { .. }) && location.store_url().scheme().starts_with("http") => {
            Err(CatalogError::NoFiles {
                location: location.as_str().to_owned(),
                hint: ": the host does not have it".to_owned(),
            })
        }
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(failed("read", location, error)),
    }
}

async fn below(
    store: &dyn ObjectStore,
    location: &Location,
    prefix: &ObjectPath,
    taking: &Taking,
    n_others: &mut usize,
) -> Result<Vec<ObjectMeta>> {
    let skipped = prefix.parts_count();
    let mut found = Vec::new();
    let mut objects = store.list(Some(prefix));
    while let Some(object) = objects.try_next().await.map_err(|error| failed("list", location, error))? {
        let components: Vec<&str> = object.location.as_ref().split('/').collect();
        let name = components.last().copied().unwrap_or_default();
        let taken = match location.glob() {
            None => {
                components[skipped.min(components.len())..].iter().all(|part| !is_hidden(part)) && taking.takes(name)
            }
            Some(glob) => match glob.matches(&components) {
                Matched::Whole => true,
                Matched::Below => !is_hidden(name) && taking.takes(name),
                Matched::No => false,
            },
        };
        // Some tools mark folders with an empty object whose key ends in a slash.
        let marker = object.size == 0 && !name.contains('.');
        if taken && !marker {
            found.push(object);
        } else if !marker {
            *n_others += 1;
        }
    }
    Ok(found)
}

fn nothing(location: &Location, taking: &Taking, n_others: usize) -> CatalogError {
    if location.is_glob() || n_others == 0 {
        return CatalogError::NoFiles { location: location.as_str().to_owned(), hint: String::new() };
    }
    taking.nothing_fits(location, n_others)
}

fn failed(attempted: &'static str, location: &Location, error: Error) -> CatalogError {
    CatalogError::Location { attempted, location: location.as_str().to_owned(), source: Arc::new(error) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::super::{infer_partition_columns, list_partitioned};
    use crate::{FileFormatKind, Location, ObjectStores, Result};
    use object_store::{ObjectStoreExt, path::Path as ObjectPath};

    async fn check(text: &str, columns: &[&str]) -> Result<Vec<String>> {
        let stores = ObjectStores::new();
        let location = Location::parse(text, Path::new("/"))?;
        let store = stores.get(location.store_url())?;
        for key in [
            "d/a.parquet",
            "d/b c#%.parquet",
            "d/n.csv",
            "d/_tmp/x.parquet",
            "d/y=1/_z=2/c.parquet",
            "d/y=1/.h.parquet",
            "e/x.csv",
        ] {
            let path = ObjectPath::parse(key).unwrap();
            store.put(&path, "x".into()).await.unwrap();
        }
        let columns: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
        let files = list_partitioned(&stores, &location, FileFormatKind::Parquet, &BTreeMap::new(), &columns).await?;
        assert!(infer_partition_columns(&location, &files).len() <= 2);
        for file in &files {
            assert!(file.identity.etag.is_some());
            store.head(&file.object_meta().unwrap().location).await.unwrap();
        }
        Ok(files.iter().map(|file| file.location().to_string()).collect())
    }

    #[tokio::test]
    async fn files_folders_and_globs() {
        let all = ["memory:///d/a.parquet", "memory:///d/b%20c%23%25.parquet", "memory:///d/y=1/_z=2/c.parquet"];
        assert_eq!(check("memory:///d", &[]).await.unwrap(), all);
        assert_eq!(check("memory:///d/", &[]).await.unwrap(), all);
        assert_eq!(check("memory:///d/n.csv", &[]).await.unwrap(), ["memory:///d/n.csv"]);
        assert_eq!(check("memory:///d/*", &[]).await.unwrap(), [all[0], all[1], "memory:///d/n.csv", all[2]]);
        assert_eq!(check("memory:///d/**/*.parquet", &[]).await.unwrap(), all);
        assert_eq!(check("memory:///d/y=*", &["y", "_z"]).await.unwrap(), [all[2]]);
    }

    #[tokio::test]
    async fn nothing_is_an_error_with_a_hint() {
        let error = check("memory:///e/", &[]).await.unwrap_err().to_string();
        assert!(error.contains("1 other file") && error.contains(".parquet"), "{error}");
        let error = check("memory:///none/*.x", &[]).await.unwrap_err().to_string();
        assert_eq!(error, "no files match \"memory:///none/*.x\"");
        assert!(check("memory:///d/", &["q"]).await.unwrap_err().to_string().contains("q="));
    }
}
