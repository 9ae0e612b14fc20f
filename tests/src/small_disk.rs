//! A disk of a few megabytes, for tests of what happens when it is full.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::program::{binary, clean, finish};

/// What may give us a disk, as options of `unshare`. Root needs no namespace of users, which some systems forbid.
const WAYS: [&[&str]; 2] = [&["--user", "--map-root-user", "--mount"], &["--mount"]];

/// A disk of its own for a script of the shell, which finds it as `$DISK` and the program as `$NECTARINE`.
/// `None` where the system does not let us.
pub fn on_small_disk(megabytes: u32, script: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = format!(
        "mount -t tmpfs -o size={megabytes}m tmpfs \"$DISK\" 2>/dev/null || exit 77
         run() {{ \"$NECTARINE\" --home \"$DISK/home\" --format csv --no-header \"$@\" 2>&1; echo \"exit $?\"; }}
         {script}"
    );
    let output = WAYS.into_iter().filter(|way| is_allowed(way)).find_map(|way| {
        let mut command = Command::new("unshare");
        command.args(way).args(["sh", "-c", &script]).env("DISK", folder.path()).env("NECTARINE", binary());
        clean(&mut command);
        let ran = finish(command, b"");
        (ran.status.code() != Some(77)).then(|| {
            assert!(ran.status.success(), "{ran:?}");
            ran.stdout
        })
    });
    // On the build machine a test that did not run must not look like one that passed. Others may lack the right.
    let on_build_machine = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(
        output.is_some() || !on_build_machine || !is_root(folder.path()),
        "no small disk, though root asks for one: unshare and mount are needed, and the right to mount (CAP_SYS_ADMIN)"
    );
    output
}

/// Neither the tool nor the right to use it is everywhere.
fn is_allowed(way: &[&str]) -> bool {
    Command::new("unshare").args(way).arg("true").output().is_ok_and(|probe| probe.status.success())
}

/// Who owns what we make is who we are.
fn is_root(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|metadata| metadata.uid() == 0)
}
