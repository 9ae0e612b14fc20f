//! Jobs: what was accepted is done, once, whoever dies.

mod flight;
mod kills;
mod rights;
mod served;
mod statements;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nectarine_tests::db::Db;
use nectarine_tests::program::{Program, Ran, finish};

/// Nothing that is waited for takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs all jobs that wait; how many.
async fn run_waiting(db: &Db) -> usize {
    db.engine().jobs().run_waiting().await.expect("jobs are run")
}

/// Submits a job; its identifier.
async fn submit(db: &Db, statement: &str) -> String {
    db.ok(statement).await
}

/// A server of the real binary on a home.
struct Server {
    child: Child,
    lines: Receiver<(Instant, String)>,
    url: String,
    /// When it was up.
    up: Instant,
}

impl Server {
    /// Starts it; `None` if it died before it was up, as a fail point may have it.
    fn start(program: &Program, flags: &[&str], fail_point: Option<&str>) -> Option<Self> {
        let mut command = program.command();
        command.args(["serve", "--flight", "127.0.0.1:0", "--no-reports"]).args(flags);
        if let Some(point) = fail_point {
            command.env("NECTARINE_FAIL_POINT", point);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a server starts");
        let (sender, lines) = channel();
        let pipes: [Box<dyn std::io::Read + Send>; 2] = [
            Box::new(child.stdout.take().expect("its output is piped")),
            Box::new(child.stderr.take().expect("its output is piped")),
        ];
        for pipe in pipes {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let _ = sender.send((Instant::now(), line));
                }
            });
        }
        drop(sender);
        let mut server = Self { child, lines, url: String::new(), up: Instant::now() };
        let (up, line) = server.after("Flight SQL at ")?;
        (server.up, server.url) = (up, line);
        Some(server)
    }

    /// When it first said these words, and what followed on the line; `None` if it ended before.
    fn after(&mut self, words: &str) -> Option<(Instant, String)> {
        let until = Instant::now() + PATIENCE;
        while let Ok((at, line)) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if let Some((_, rest)) = line.split_once(words) {
                return Some((at, rest.to_owned()));
            }
        }
        assert!(Instant::now() < until, "\"{words}\" was not said");
        None
    }

    /// Ends it, as `kill -9` does.
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits until it has died by itself.
    fn dies(&mut self) {
        let until = Instant::now() + PATIENCE;
        while self.child.try_wait().expect("a child can be asked").is_none() {
            assert!(Instant::now() < until, "the server did not come to its fail point");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A command of the shell on it.
    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = std::process::Command::new(nectarine_tests::program::binary());
        command.args(["--connect", &self.url, "--format", "csv", "--no-header"]).args(arguments);
        nectarine_tests::program::clean(&mut command);
        finish(command, b"")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `nectarine job ..` on a home.
fn job(program: &Program, arguments: &[&str]) -> Ran {
    let mut command = program.command();
    command.arg("job").args(arguments);
    finish(command, b"")
}

/// A home of the real binary.
fn program(folder: &Path) -> Program {
    Program::on(&folder.join("home"))
}
