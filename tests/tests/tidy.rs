//! The shape of the project: which crate may know which, and how files begin.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests has a parent").to_path_buf()
}

/// cli -> engine -> executor -> planner -> catalog; tests and benchmarks know only engine.
#[test]
fn arrows_point_one_way() {
    let metadata =
        MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().expect("cargo metadata works");
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("nectarine-catalog", &[][..]),
        ("nectarine-planner", &["nectarine-catalog"][..]),
        ("nectarine-executor", &["nectarine-planner", "nectarine-catalog"][..]),
        ("nectarine-engine", &["nectarine-executor", "nectarine-planner", "nectarine-catalog"][..]),
        ("nectarine", &["nectarine-engine"][..]),
        ("nectarine-tests", &["nectarine-engine"][..]),
        ("nectarine-benchmarks", &["nectarine-engine"][..]),
    ]);
    let packages: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let known: BTreeSet<&str> = allowed.keys().copied().collect();
    assert_eq!(packages, known, "a crate was added or removed: say here whom it may know");
    for package in &metadata.packages {
        let may = allowed[package.name.as_str()];
        for dependency in package.dependencies.iter().filter(|dependency| packages.contains(dependency.name.as_str())) {
            assert!(may.contains(&dependency.name.as_str()), "{} must not depend on {}", package.name, dependency.name);
        }
    }
}

/// The executor takes nodes from the planner, never rules or SQL.
#[test]
fn executor_takes_only_nodes_from_planner() {
    for path in rust_files(&root().join("executor")) {
        let text = fs::read_to_string(&path).expect("readable");
        let stray: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("nectarine_planner::"))
            .filter(|line| !line.contains("nectarine_planner::node") && !line.contains("nectarine_planner::reading_of"))
            .collect();
        assert!(stray.is_empty(), "{}: {stray:?}", path.display());
    }
}

#[test]
fn every_file_says_what_it_promises() {
    let silent: Vec<PathBuf> = rust_files(&root())
        .into_iter()
        .filter(|path| !fs::read_to_string(path).expect("readable").starts_with("//!"))
        .collect();
    assert!(silent.is_empty(), "files that do not open with `//!`: {silent:?}");
}

#[test]
fn no_unfinished_work_is_left_in_code() {
    for path in rust_files(&root()) {
        let text = fs::read_to_string(&path).expect("readable");
        for mark in ["TODO", "FIXME", "XXX", "HACK"] {
            // This file names them.
            if path.ends_with("tidy.rs") {
                continue;
            }
            assert!(!text.contains(mark), "{} holds a {mark}: unfinished work belongs in an issue", path.display());
        }
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).expect("readable folder").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "target" && name != ".git" {
                found.extend(rust_files(&path));
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}
