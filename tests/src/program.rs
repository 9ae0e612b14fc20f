//! [`Program`]: the real `nectarine` binary on a home.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::watchdog::watch;

/// No run of a test takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// How to start the binary.
#[derive(Clone, Debug)]
pub struct Program {
    home: PathBuf,
    arguments: Vec<String>,
}

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub status: ExitStatus,
    /// Rows.
    pub stdout: String,
    /// Everything else.
    pub stderr: String,
}

impl Program {
    /// On that home; rows come as CSV without a header.
    pub fn on(home: &Path) -> Self {
        Self { home: home.to_path_buf(), arguments: vec!["--format".into(), "csv".into(), "--no-header".into()] }
    }

    /// With one more argument, such as `--keep-going`.
    #[must_use]
    pub fn with(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// With a setting.
    #[must_use]
    pub fn set(self, name: &str, value: &str) -> Self {
        self.with("--set").with(&format!("{name}={value}"))
    }

    /// The command line up to the point where `-c` or `-f` follows.
    pub fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command.arg("--home").arg(&self.home).args(&self.arguments);
        clean(&mut command);
        command
    }

    /// Runs SQL to its end.
    pub fn run(&self, sql: &str) -> Ran {
        let mut command = self.command();
        command.arg("-c").arg(sql);
        finish(command, b"")
    }

    /// Runs SQL from standard input.
    pub fn run_stdin(&self, sql: impl AsRef<[u8]>) -> Ran {
        finish(self.command(), sql.as_ref())
    }

    /// Starts SQL and does not wait for it.
    pub fn start(&self, sql: &str) -> Started {
        let mut command = self.command();
        command.arg("-c").arg(sql).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Started::new(command)
    }
}

impl Ran {
    /// The rows of a run that went well.
    pub fn rows(self) -> String {
        assert!(self.status.success(), "{self:?}");
        self.stdout.trim_end().to_owned()
    }

    /// The messages of a run that failed as it should: by itself, not by a signal or a panic.
    pub fn error(self) -> String {
        assert_eq!(self.status.code(), Some(1), "{self:?}");
        assert!(!self.stderr.contains("panicked") && !self.stderr.contains("internal error"), "{self:?}");
        self.stderr
    }
}

/// A run that goes on.
#[derive(Debug)]
pub struct Started {
    child: Child,
    readers: Option<[JoinHandle<Vec<u8>>; 2]>,
}

impl Started {
    fn new(mut command: Command) -> Self {
        watch();
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let stdout = child.stdout.take().map(reader).expect("its output is piped");
        let stderr = child.stderr.take().map(reader).expect("its output is piped");
        Self { child, readers: Some([stdout, stderr]) }
    }

    /// Ends it at once, as `kill -9` does.
    pub fn kill(mut self) -> Ran {
        // It may have ended by itself.
        let _ = self.child.kill();
        self.wait()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be asked").is_some()
    }

    /// Waits for its end, not for ever.
    pub fn wait(mut self) -> Ran {
        let deadline = Instant::now() + PATIENCE;
        while !self.has_ended() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("nectarine hangs");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let status = self.child.wait().expect("a child can be waited for");
        let read = self.readers.take().expect("it was not waited for yet");
        let [stdout, stderr] =
            read.map(|reader| String::from_utf8_lossy(&reader.join().expect("a pipe can be read")).into_owned());
        Ran { status, stdout, stderr }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.readers.is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Runs a command to its end with that input.
pub fn finish(mut command: Command, input: &[u8]) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut started = Started::new(command);
    let mut stdin = started.child.stdin.take().expect("its input is piped");
    let input = input.to_vec();
    // A program that ends before it has read everything is no trouble of ours.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let ran = started.wait();
    writer.join().expect("a pipe can be written");
    ran
}

/// The binary that was built together with the tests.
pub fn binary() -> PathBuf {
    let tests = std::env::current_exe().expect("the tests are a program");
    let folder = tests.ancestors().nth(2).expect("target/debug/deps/main is in target/debug");
    let binary = folder.join(format!("nectarine{}", std::env::consts::EXE_SUFFIX));
    assert!(
        binary.exists(),
        "\"{}\" is not built: run `cargo build --workspace`, or all tests with tests/run",
        binary.display()
    );
    binary
}

/// Takes what the machine's owner has set out of the child's environment.
pub fn clean(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("NECTARINE_") || text.starts_with("DATAFUSION_") || text.starts_with("AWS_") {
            command.env_remove(&name);
        }
    }
    for name in ["NO_COLOR", "PAGER", "RUST_LOG", "RUST_BACKTRACE"] {
        command.env_remove(OsStr::new(name));
    }
}

fn reader(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}
