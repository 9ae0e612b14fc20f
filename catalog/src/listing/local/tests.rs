//! What local locations name, on real folders.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::super::{Memory, infer_partition_columns, list, list_again, list_partitioned};
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

/// Whoever remembers names sees what somebody sees who looks for the first time, whatever happened in between.
#[tokio::test]
async fn remembered_names_are_never_believed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let n_files = if cfg!(debug_assertions) { 1100 } else { 3000 };
    for n in 0..n_files {
        fs::write(at(&format!("part-{n:05}.csv")), "x").unwrap();
    }
    fs::write(at("other.csv"), "other").unwrap();
    fs::create_dir(at("k=1")).unwrap();
    for n in 0..70 {
        fs::write(at(&format!("k=1/{n}.csv")), "x").unwrap();
    }
    symlink(at("other.csv"), at("link.csv")).unwrap();
    type Happening = fn(&Path);
    let happenings: [(&str, Happening); 11] = [
        ("nothing", |_| {}),
        ("nothing again", |_| {}),
        ("one is rewritten", |at| fs::write(at.join("part-00007.csv"), "longer").unwrap()),
        ("one is new", |at| fs::write(at.join("part-00007-b.csv"), "new").unwrap()),
        ("one is gone", |at| fs::remove_file(at.join("part-00003.csv")).unwrap()),
        ("one has another name", |at| fs::rename(at.join("part-00001.csv"), at.join("part-00001x.csv")).unwrap()),
        ("two change places", |at| {
            fs::write(at.join("part-00010.csv"), "ten").unwrap();
            fs::rename(at.join("part-00010.csv"), at.join("aside")).unwrap();
            fs::rename(at.join("part-00011.csv"), at.join("part-00010.csv")).unwrap();
            fs::rename(at.join("aside"), at.join("part-00011.csv")).unwrap();
        }),
        ("a folder takes the place of a file", |at| {
            fs::remove_file(at.join("part-00020.csv")).unwrap();
            fs::create_dir(at.join("part-00020.csv")).unwrap();
            fs::write(at.join("part-00020.csv/within.csv"), "within").unwrap();
        }),
        ("a link leads elsewhere", |at| {
            fs::remove_file(at.join("link.csv")).unwrap();
            symlink(at.join("part-00011.csv"), at.join("link.csv")).unwrap();
        }),
        ("below, too", |at| fs::write(at.join("k=1/7.csv"), "longer").unwrap()),
        ("a folder goes and comes again", |at| {
            fs::remove_dir_all(at.join("k=1")).unwrap();
            fs::create_dir(at.join("k=1")).unwrap();
            fs::write(at.join("k=1/0.csv"), "x").unwrap();
        }),
    ];
    let (stores, options) = (ObjectStores::new(), BTreeMap::new());
    let texts = [".", "*.csv", "part-*", "{part-0000*,part-0001*,link*}.csv", "**/*.csv"];
    let mut memories: Vec<Memory> = texts.iter().map(|_| Memory::default()).collect();
    for (what, happen) in happenings {
        happen(folder.path());
        for (text, memory) in texts.iter().zip(&mut memories) {
            let location = Location::parse(text, folder.path()).unwrap();
            let expected = list(&stores, &location, FileFormatKind::Csv, &options).await.unwrap();
            let again = list_again(&stores, &location, FileFormatKind::Csv, &options, &[], Some(memory)).await.unwrap();
            assert_eq!(again, expected, "{text}: {what}");
        }
    }
    assert!(memories[0].remembers(folder.path()) && memories[1].remembers(folder.path()));
    assert!(!memories[0].remembers(&at("k=1")), "it is small now");
}
