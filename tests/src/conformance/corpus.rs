//! Where the scripts are: found by cargo, copied to a folder where they may write.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A private copy of the scripts and the data that is published with them.
pub struct Corpus {
    folder: tempfile::TempDir,
}

impl Corpus {
    /// Copies the package's `test_files` and `data`.
    pub fn copy() -> io::Result<Self> {
        let package = package_folder()?;
        let folder = tempfile::tempdir()?;
        for part in ["test_files", "data"] {
            copy_folder(&package.join(part), &folder.path().join(part))?;
        }
        Ok(Self { folder })
    }

    /// The folder that scripts expect to be run in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// All scripts, relative to `test_files`, sorted.
    pub fn scripts(&self) -> Vec<PathBuf> {
        let root = self.folder.path().join("test_files");
        let mut found = vec![];
        collect(&root, &mut found);
        let mut scripts: Vec<PathBuf> =
            found.iter().filter_map(|path| path.strip_prefix(&root).ok()).map(Path::to_path_buf).collect();
        scripts.sort();
        scripts
    }
}

/// The unpacked package, as cargo has it.
fn package_folder() -> io::Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Only this platform's packages are sure to be here; asking for others would need the network.
    let version = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV").output()?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or("x86_64-unknown-linux-gnu");
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--offline",
            "--locked",
            "--filter-platform",
            host,
            "--manifest-path",
        ])
        .arg(&manifest)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // One path is wanted of some megabytes of JSON.
    let mark = "/datafusion-sqllogictest-";
    let end_mark = "/Cargo.toml\"";
    let found = text.match_indices("\"manifest_path\":\"").find_map(|(at, start)| {
        let rest = &text[at + start.len()..];
        let path = &rest[..rest.find(end_mark)?];
        (path.contains(mark) && !path.contains('"')).then(|| PathBuf::from(path))
    });
    found.ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, "cargo metadata names no datafusion-sqllogictest package")
    })
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "scratch") {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|ending| ending == "slt") {
            found.push(path);
        }
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            false => {
                fs::copy(entry.path(), &target)?;
            }
        }
    }
    Ok(())
}
