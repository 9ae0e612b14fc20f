//! A disk of a few megabytes, for tests of what happens when it is full.

use std::process::Command;

use crate::program::{binary, clean, finish};

/// A disk of its own for a script of the shell, which finds it as `$DISK` and the program as `$NECTARINE`.
/// `None` where the system does not let us.
pub fn on_small_disk(megabytes: u32, script: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = format!(
        "mount -t tmpfs -o size={megabytes}m tmpfs \"$DISK\" 2>/dev/null || exit 77
         run() {{ \"$NECTARINE\" --home \"$DISK/home\" --format csv --no-header \"$@\" 2>&1; echo \"exit $?\"; }}
         {script}"
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command.env("DISK", folder.path()).env("NECTARINE", binary());
    clean(&mut command);
    // Neither the tool nor the right to use it is everywhere.
    let probe = Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return None;
    }
    let ran = finish(command, b"");
    (ran.status.code() != Some(77)).then(|| {
        assert!(ran.status.success(), "{ran:?}");
        ran.stdout
    })
}
