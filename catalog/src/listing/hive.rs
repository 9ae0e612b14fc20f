//! Hive partitions: values of columns that are written in the path, `../year=2024/month=01/x.parquet`.

use std::sync::Arc;

use super::ListedFile;
use crate::location::{Place, decode_percent, local_path};
use crate::{CatalogError, Location, Result, object_path};

/// How Hive writes NULL.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Values of a table's partition columns; `None` is NULL.
type Values = Arc<[Option<Arc<str>>]>;

/// Reads the values of given columns, once per folder.
pub(crate) struct PartitionReader {
    columns: Vec<String>,
    last: Option<(String, Values)>,
    none: Values,
}

impl PartitionReader {
    pub(crate) fn new(columns: Vec<String>) -> Self {
        Self { columns, last: None, none: Arc::from([]) }
    }

    /// Values for a file in `folder`, the decoded path above its name. Neighbours share one list.
    pub(crate) fn read(&mut self, folder: &str) -> Result<Values> {
        if self.columns.is_empty() {
            return Ok(Arc::clone(&self.none));
        }
        if let Some((last, values)) = &self.last
            && last == folder
        {
            return Ok(Arc::clone(values));
        }
        let values = self.columns.iter().map(|column| value(folder, column)).collect::<Result<Vec<_>>>()?;
        let values: Values = Arc::from(values);
        self.last = Some((folder.to_owned(), Arc::clone(&values)));
        Ok(values)
    }
}

fn value(folder: &str, column: &str) -> Result<Option<Arc<str>>> {
    // The component nearest to the file wins.
    let found = folder.rsplit('/').filter_map(split).find(|(key, _)| key == column);
    match found {
        Some((_, value)) if value == NULL => Ok(None),
        Some((_, value)) => Ok(Some(Arc::from(value))),
        None => Err(CatalogError::InvalidLocation {
            location: folder.to_owned(),
            detail: format!("its path has no folder \"{column}=..\" for the partition column \"{column}\""),
        }),
    }
}

/// Writers encode letters that a path cannot hold, on top of whatever the URL encodes.
fn split(component: &str) -> Option<(String, String)> {
    let (key, value) = component.split_once('=')?;
    let decode = |text: &str| decode_percent(text).unwrap_or_else(|| text.to_owned());
    (!key.is_empty()).then(|| (decode(key), decode(value)))
}

/// Partition columns that all files below the fixed part of a location have, in path order.
pub fn infer_partition_columns(location: &Location, files: &[ListedFile]) -> Vec<String> {
    let prefix_len = match location.place() {
        Place::Local(path) => path.components().count().saturating_sub(1),
        Place::Remote(path) => path.parts_count(),
    };
    let mut common: Option<Vec<String>> = None;
    for file in files {
        let keys = keys(&file.identity.location, prefix_len);
        match &mut common {
            None => common = Some(keys),
            Some(common) => common.retain(|key| keys.contains(key)),
        }
        if common.as_ref().is_some_and(Vec::is_empty) {
            break;
        }
    }
    common.unwrap_or_default()
}

fn keys(location: &str, prefix_len: usize) -> Vec<String> {
    let path = match local_path(location) {
        Some(path) => path.to_string_lossy().trim_start_matches('/').to_owned(),
        None => object_path(location).map(|(_, path)| path.to_string()).unwrap_or_default(),
    };
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    let mut keys = Vec::new();
    for (key, _) in folders.split('/').skip(prefix_len).filter_map(split) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(folder: &str, columns: &[&str]) -> Result<Vec<Option<String>>> {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        let values = PartitionReader::new(columns).read(folder)?;
        Ok(values.iter().map(|value| value.as_deref().map(str::to_owned)).collect())
    }

    #[test]
    fn values_come_from_folders() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("/d/y=2024/m=01", &["y", "m"]).unwrap(), [some("2024"), some("01")]);
        assert_eq!(read("/d/y=2024/m=01", &["m"]).unwrap(), [some("01")]);
        assert_eq!(read("/d/y=__HIVE_DEFAULT_PARTITION__", &["y"]).unwrap(), [None]);
        assert_eq!(read("/d/y=", &["y"]).unwrap(), [some("")]);
        assert_eq!(read("/d/t=12%3A30%2F1", &["t"]).unwrap(), [some("12:30/1")]);
        assert_eq!(read("/d/e=a=b", &["e"]).unwrap(), [some("a=b")]);
        assert_eq!(read("/y=1/d/y=2", &["y"]).unwrap(), [some("2")]);
        let error = read("/d/m=1", &["y"]).unwrap_err().to_string();
        assert!(error.contains("\"y=..\"") && error.contains("/d/m=1"), "{error}");
    }
}
