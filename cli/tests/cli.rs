//! The program as its users meet it: as a command (`batch`) and at the prompt on a terminal (`prompt`).

#[path = "cli/batch.rs"]
mod batch;
#[cfg(unix)]
#[path = "cli/prompt.rs"]
mod prompt;

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

/// A home of its own for every test.
struct Home(TempDir);

/// What a run left behind.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file beside what the engine keeps.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path.display().to_string()
    }

    fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("nectarine"));
        command.arg("--home").arg(self.path().join("home")).current_dir(self.path());
        for name in ["NO_COLOR", "PAGER", "LESS", "RUST_LOG", "EDITOR", "VISUAL", "NECTARINE_HOME"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, "")
    }

    fn run_with(&self, arguments: &[&str], stdin: &str) -> Ran {
        let mut command = assert_cmd::Command::from_std(self.command());
        let output = command
            .args(arguments)
            .write_stdin(stdin)
            .timeout(std::time::Duration::from_secs(120))
            .output()
            .expect("nectarine starts");
        Ran::from(output)
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ran {
    /// The rows of a run that went well.
    #[track_caller]
    fn rows(self) -> String {
        assert_eq!(self.code, Some(0), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stdout
    }

    /// The messages of a run that failed.
    #[track_caller]
    fn error(self) -> String {
        assert_eq!(self.code, Some(1), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self.stderr
    }
}
