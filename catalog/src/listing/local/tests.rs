//! What local locations name, on real folders.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::super::{infer_partition_columns, list, list_partitioned};
use crate::{FileFormatKind, Location, ObjectStores, Result};

fn tree(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    folder
}

/// Names relative to the folder, in the order listed.
async fn names(folder: &Path, text: &str, format: FileFormatKind, options: &[(&str, &str)]) -> Result<Vec<String>> {
    let options: BTreeMap<String, String> =
        options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let location = Location::parse(text, folder)?;
    let files = list(&ObjectStores::new(), &location, format, &options).await?;
    let relative = |path: std::path::PathBuf| path.strip_prefix(folder).unwrap().display().to_string();
    Ok(files.iter().map(|file| relative(file.local_path().unwrap())).collect())
}

#[tokio::test]
async fn folders_take_what_fits_in_path_order() {
    let folder = tree(&[
        "d/b.parquet",
        "d/a/z.parquet",
        "d/a.parquet",
        "d/a-b.parquet",
        "d/n.csv",
        "d/x.pq",
        "d/_tmp/t.parquet",
        "d/.h.parquet",
        "d/_k=1/k.parquet",
        "d/\u{e9} #%.parquet",
        "d/_SUCCESS",
        "d/B.PARQUET",
    ]);
    let root = folder.path();
    let found = names(root, "d", FileFormatKind::Parquet, &[]).await.unwrap();
    let mut expected = vec![
        "d/B.PARQUET",
        "d/_k=1/k.parquet",
        "d/a-b.parquet",
        "d/a.parquet",
        "d/a/z.parquet",
        "d/b.parquet",
        "d/x.pq",
        "d/\u{e9} #%.parquet",
    ];
    assert_eq!(found, expected);
    expected.sort_unstable();
    assert_eq!(found, expected, "the order of whole paths");
    assert_eq!(names(root, "d/", FileFormatKind::Csv, &[]).await.unwrap(), ["d/n.csv"]);
    assert_eq!(names(root, "d/", FileFormatKind::Csv, &[("file_extension", ".pq")]).await.unwrap(), ["d/x.pq"]);
    assert_eq!(names(root, "d/_SUCCESS", FileFormatKind::Csv, &[]).await.unwrap(), ["d/_SUCCESS"]);
}

#[tokio::test]
async fn globs_take_what_they_name() {
    let folder = tree(&["d/1.csv", "d/2.csv", "d/x.txt", "d/e/1.csv", "d/e/f/1.csv", "d/_h/1.csv", "d/.g/1.csv"]);
    let root = folder.path();
    let check = async |text: &str| names(root, text, FileFormatKind::Csv, &[]).await.unwrap();
    assert_eq!(check("d/*.csv").await, ["d/1.csv", "d/2.csv"]);
    assert_eq!(check("d/[0-1].csv").await, ["d/1.csv"]);
    assert_eq!(check("d/{2,1,?}.csv").await, ["d/1.csv", "d/2.csv"]);
    assert_eq!(check("d/**/1.csv").await, ["d/1.csv", "d/e/1.csv", "d/e/f/1.csv"]);
    assert_eq!(check("**/f/*").await, ["d/e/f/1.csv"]);
    assert_eq!(check("d/*").await, ["d/1.csv", "d/2.csv", "d/e/1.csv", "d/e/f/1.csv", "d/x.txt"]);
    assert_eq!(check("d/**").await, ["d/1.csv", "d/2.csv", "d/e/1.csv", "d/e/f/1.csv", "d/x.txt"]);
    assert_eq!(check("d/_*/1.csv").await, ["d/_h/1.csv"]);
    assert_eq!(check("*/e/1.csv").await, ["d/e/1.csv"]);
    assert_eq!(check("?").await, ["d/1.csv", "d/2.csv", "d/e/1.csv", "d/e/f/1.csv", "d/x.txt"]);
}

#[tokio::test]
async fn links_are_followed_and_loops_end() {
    let folder = tree(&["d/a.csv", "other/b.csv"]);
    let root = folder.path();
    symlink(root.join("other"), root.join("d/link")).unwrap();
    symlink(root.join("other/b.csv"), root.join("d/c.csv")).unwrap();
    symlink(root.join("d"), root.join("d/loop")).unwrap();
    symlink(root.join("nowhere"), root.join("d/broken.csv")).unwrap();
    symlink(root.join("d/ring.csv"), root.join("d/ring.csv")).unwrap();
    let found = names(root, "d", FileFormatKind::Csv, &[]).await.unwrap();
    assert_eq!(found, ["d/a.csv", "d/c.csv", "d/link/b.csv"]);
    let found = names(root, "d/**/*.csv", FileFormatKind::Csv, &[]).await.unwrap();
    assert_eq!(found, ["d/a.csv", "d/c.csv", "d/link/b.csv"]);
}

#[tokio::test]
async fn nothing_found_says_why() {
    let folder = tree(&["d/a.csv", "d/Sales.CSV"]);
    let root = folder.path();
    fs::create_dir(root.join("empty")).unwrap();
    let check = async |text: &str| names(root, text, FileFormatKind::Parquet, &[]).await.unwrap_err().to_string();
    assert!(check("empty").await.ends_with("the folder is empty"));
    let error = check("d").await;
    assert!(error.contains("2 other files") && error.contains(".parquet, .parq, .pq"), "{error}");
    let error = check("d/sales.csv").await;
    assert!(error.contains("did you mean") && error.contains("d/Sales.CSV"), "{error}");
    let error = check("no/such/x.csv").await;
    assert!(error.contains("there is no folder"), "{error}");
    assert!(check("d/*.nope").await.starts_with("no files match"));
    assert!(check("no/*.nope").await.contains("there is no folder"));
    assert!(check("d/a.csv/").await.contains("cannot list"));
}

#[tokio::test]
async fn permission_is_an_error_that_names_the_folder() {
    let folder = tree(&["d/secret/a.csv"]);
    let secret = folder.path().join("d/secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser may read everything; there is nothing to test then.
    if fs::read_dir(&secret).is_err() {
        for text in ["d", "d/secret/*.csv", "d/**/*.csv"] {
            let error = names(folder.path(), text, FileFormatKind::Csv, &[]).await.unwrap_err().to_string();
            assert!(error.contains("secret"), "{text}: {error}");
        }
    }
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn partitions_are_read_and_inferred() {
    let folder = tree(&["d/y=1/m=01/a.csv", "d/y=1/m=__HIVE_DEFAULT_PARTITION__/b.csv", "d/y=2/m=a%2Fb/c.csv"]);
    let location = Location::parse("d", folder.path()).unwrap();
    let stores = ObjectStores::new();
    let files = list(&stores, &location, FileFormatKind::Csv, &BTreeMap::new()).await.unwrap();
    let columns = infer_partition_columns(&location, &files);
    assert_eq!(columns, ["y", "m"]);
    let files = list_partitioned(&stores, &location, FileFormatKind::Csv, &BTreeMap::new(), &columns).await.unwrap();
    let values: Vec<Vec<Option<&str>>> =
        files.iter().map(|file| file.partition_values.iter().map(Option::as_deref).collect()).collect();
    assert_eq!(values, [vec![Some("1"), Some("01")], vec![Some("1"), None], vec![Some("2"), Some("a/b")]]);

    fs::write(folder.path().join("d/stray.csv"), "x").unwrap();
    let files = list(&stores, &location, FileFormatKind::Csv, &BTreeMap::new()).await.unwrap();
    assert!(infer_partition_columns(&location, &files).is_empty());
    let error =
        list_partitioned(&stores, &location, FileFormatKind::Csv, &BTreeMap::new(), &columns).await.unwrap_err();
    assert!(error.to_string().contains("y=.."), "{error}");
}

#[tokio::test]
async fn the_object_store_finds_what_was_listed() {
    let folder = tree(&["d e/100% #1 \u{1f351}[x]{y}~^`|.csv", "d e/empty.csv"]);
    fs::write(folder.path().join("d e/empty.csv"), "").unwrap();
    let stores = ObjectStores::new();
    let location = Location::parse("d e", folder.path()).unwrap();
    let files = list(&stores, &location, FileFormatKind::Csv, &BTreeMap::new()).await.unwrap();
    assert_eq!(files.len(), 2);
    for file in files {
        let (url, path) = crate::object_path(file.location()).unwrap();
        let meta = object_store::ObjectStoreExt::head(&stores.get(&url).unwrap(), &path).await.unwrap();
        assert_eq!(meta.size, file.identity.size);
        assert_eq!(meta.location, file.object_meta().unwrap().location);
    }
}

/// In release, 10,000 files have a budget of 12 ms on an idle machine; in debug, just enough for both threads.
#[tokio::test]
async fn many_files_are_listed_quickly() {
    let n_files = if cfg!(debug_assertions) { 1200 } else { 10_000 };
    let folder = tempfile::tempdir().unwrap();
    for n in 0..n_files {
        fs::File::create(folder.path().join(format!("part-{n:05}-0123456789abcdef.parquet"))).unwrap();
    }
    for text in [".", "*.parquet", "**/*.parquet"] {
        let location = Location::parse(text, folder.path()).unwrap();
        let mut best = std::time::Duration::MAX;
        for _ in 0..5 {
            let started = std::time::Instant::now();
            let files = list(&ObjectStores::new(), &location, FileFormatKind::Parquet, &BTreeMap::new()).await.unwrap();
            best = best.min(started.elapsed());
            assert_eq!(files.len(), n_files);
        }
        eprintln!("listing {n_files} files of \"{text}\": {best:?}");
    }
}
