//! Files and folders that may not be read or written.
#![cfg(unix)]

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;

use nectarine_tests::program::{Ran, binary, clean, finish};
use tempfile::TempDir;

/// Someone without rights.
const NOBODY: u32 = 65534;

/// Runs the program as someone who may not read everything: the tests themselves may be run by root, to whom permissions
/// mean nothing.
struct Unprivileged {
    folder: TempDir,
}

impl Unprivileged {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        allow(folder.path(), 0o755);
        let home = folder.path().join("home");
        std::fs::create_dir(&home).expect("a folder");
        if is_root(folder.path()) {
            chown(&home, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
            // The build folder may be hidden from others.
            let program = folder.path().join("nectarine");
            if std::fs::hard_link(binary(), &program).is_err() {
                std::fs::copy(binary(), &program).expect("a copy of the program");
            }
        }
        Self { folder }
    }

    fn run(&self, sql: &str) -> Ran {
        let own = self.folder.path().join("nectarine");
        let mut command = std::process::Command::new(if own.exists() { own.clone() } else { binary() });
        if own.exists() {
            command.uid(NOBODY).gid(NOBODY);
        }
        clean(&mut command);
        command.current_dir(self.folder.path()).arg("--home").arg(self.folder.path().join("home"));
        command.args(["--format", "csv", "--no-header", "-c", sql]);
        finish(command, b"")
    }

    fn file(&self, name: &str, content: &str, mode: u32) -> String {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, content).expect("a file");
        allow(&path, mode);
        path.display().to_string()
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        // So that the folder can be removed by those who are not root.
        for name in ["closed", "shut", "home"] {
            let path = self.folder.path().join(name);
            if path.exists() {
                allow(&path, 0o755);
            }
        }
    }
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("permissions can be set");
}

fn is_root(own_file: &Path) -> bool {
    std::fs::metadata(own_file).expect("it is there").uid() == 0
}

#[test]
fn a_file_that_may_not_be_read() {
    let run = Unprivileged::new();
    let file = run.file("secret.csv", "a\n1\n", 0o000);
    let parquet = run.file("secret.parquet", &"PAR1".repeat(1000), 0o000);
    for sql in [
        format!("SELECT * FROM '{file}'"),
        format!("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{file}'"),
        format!("CREATE TABLE t (a INT); COPY t FROM '{file}'"),
    ] {
        let error = run.run(&sql).error();
        assert!(error.contains(&file) && error.to_lowercase().contains("permission denied"), "{sql}: {error}");
    }
    let error = run.run(&format!("SELECT * FROM '{parquet}'")).error();
    assert!(error.contains(&parquet) && error.to_lowercase().contains("permission denied"), "{error}");
    // The columns are given, so that only reading finds out.
    let error =
        run.run(&format!("CREATE EXTERNAL TABLE y (a INT) STORED AS CSV LOCATION '{file}'; SELECT * FROM y")).error();
    assert!(error.contains(&file) && error.to_lowercase().contains("permission denied"), "{error}");
    assert_eq!(run.run("SELECT count(*) FROM t").rows(), "0");
    assert_eq!(run.run("SELECT table_name FROM system.tables ORDER BY 1").rows(), "t\ny");
}

/// One file of many.
#[test]
fn a_file_in_a_folder_that_may_not_be_read() {
    let run = Unprivileged::new();
    run.file("d/1.csv", "a\n1\n", 0o644);
    let folder = run.folder.path().join("d");
    let sql = format!("CREATE EXTERNAL TABLE d STORED AS CSV LOCATION '{}/'; SELECT * FROM d", folder.display());
    assert_eq!(run.run(&sql).rows(), "1");
    let secret = run.file("d/2.csv", "a\n2\n", 0o000);
    let error = run.run("SELECT * FROM d").error();
    assert!(error.contains(&secret) && error.to_lowercase().contains("permission denied"), "{error}");
    allow(Path::new(&secret), 0o644);
    assert_eq!(run.run("SELECT sum(a) FROM d").rows(), "3");
}

#[test]
fn a_folder_that_may_not_be_listed() {
    let run = Unprivileged::new();
    run.file("closed/1.csv", "a\n1\n", 0o644);
    let folder = run.folder.path().join("closed");
    allow(&folder, 0o000);
    let folder = folder.display().to_string();
    for sql in [
        format!("SELECT * FROM '{folder}/'"),
        format!("SELECT * FROM '{folder}/*.csv'"),
        format!("SELECT * FROM '{folder}/1.csv'"),
    ] {
        let error = run.run(&sql).error();
        assert!(error.contains(&folder) && error.to_lowercase().contains("permission denied"), "{sql}: {error}");
    }
}

#[test]
fn a_folder_that_may_not_be_written() {
    let run = Unprivileged::new();
    run.file("shut/1.csv", "a\n1\n", 0o644);
    let folder = run.folder.path().join("shut");
    allow(&folder, 0o555);
    let folder = folder.display().to_string();
    let create = format!("CREATE EXTERNAL TABLE d STORED AS CSV LOCATION '{folder}/'");
    assert_eq!(run.run(&create).rows(), "");
    for sql in [format!("COPY (SELECT 1 AS a) TO '{folder}/out.csv'"), "INSERT INTO d VALUES (2)".to_owned()] {
        let error = run.run(&sql).error();
        assert!(error.contains(&folder) && error.to_lowercase().contains("permission denied"), "{sql}: {error}");
    }
    assert_eq!(run.run("SELECT * FROM d").rows(), "1");
}

#[test]
fn a_home_that_may_not_be_written() {
    let run = Unprivileged::new();
    assert_eq!(run.run("CREATE TABLE t AS SELECT 1 AS a; SELECT a FROM t").rows(), "1");
    let home = run.folder.path().join("home");
    for (folder, mode) in [("", 0o000), ("", 0o555), ("tmp", 0o555), ("tables", 0o555)] {
        let path = home.join(folder);
        allow(&path, mode);
        // Reading may work or not; writing may not, and says where.
        let ran = run.run("INSERT INTO t VALUES (2)");
        allow(&path, 0o755);
        if ran.status.success() {
            // The table's own folder is still open.
            assert_eq!(folder, "tables", "{ran:?}");
            continue;
        }
        let error = ran.error();
        assert!(error.contains(&home.display().to_string()), "{folder} {mode:o}: {error}");
    }
    let rows = run.run("SELECT count(*) FROM t WHERE a = 1").rows();
    assert_eq!(rows, "1");
}

/// Where results are kept is away, or may not be written: queries answer, PIN tells why it can not.
#[test]
fn a_derived_folder_that_is_of_no_use() {
    let grouped = "SELECT k, count(*) FROM t GROUP BY k ORDER BY k";
    for breaks in ["away", "no folder", "closed"] {
        let run = Unprivileged::new();
        run.run("CREATE TABLE t AS SELECT value % 3 AS k FROM generate_series(1, 9)").rows();
        let derived = run.folder.path().join("home/derived");
        match breaks {
            "closed" => allow(&derived, 0o555),
            _ => std::fs::remove_dir_all(&derived).expect("it is there"),
        }
        match breaks {
            "away" => std::os::unix::fs::symlink("/nowhere/at/all", &derived).expect("a link"),
            "no folder" => std::fs::write(&derived, "").expect("a file"),
            _ => (),
        }
        for _ in 0..2 {
            assert_eq!(run.run(grouped).rows(), "0,3\n1,3\n2,3", "{breaks}");
        }
        let error = run.run(&format!("PIN {grouped}")).error();
        assert!(error.contains("cannot pin") && error.contains("derived"), "{breaks}: {error}");
        assert!(!error.contains("budget"), "{breaks}: {error}");
    }
}
