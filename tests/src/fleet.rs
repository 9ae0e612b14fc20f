//! [`Fleet`]: a server and its executors, each the real binary in a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::program::{Ran, binary, clean, finish};
use crate::watchdog::watch;

/// Nothing that is waited for takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// One fleet at a time: several would take each other's processors and look like losses.
static ONE: Mutex<()> = Mutex::new(());

/// A process that goes on until it is ended.
struct Process {
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Process {
    fn start(mut command: Command) -> Self {
        clean(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let said = Arc::new(Mutex::new(String::new()));
        listen(child.stdout.take().expect("its output is piped"), Arc::clone(&said));
        listen(child.stderr.take().expect("its output is piped"), Arc::clone(&said));
        Self { child, said }
    }

    fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What follows these words on a line that it says.
    fn after(&mut self, words: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.said();
            // Whole lines only.
            let whole = &said[..said.rfind('\n').map_or(0, |end| end + 1)];
            if let Some(found) = whole.lines().find_map(|line| line.strip_prefix(words)) {
                return found.to_owned();
            }
            let ended = self.child.try_wait().expect("a child can be asked");
            assert!(ended.is_none() && Instant::now() < until, "\"{words}\" was not said, but:\n{said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn listen(pipe: impl Read + Send + 'static, said: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            said.push_str(&line);
            said.push('\n');
        }
    });
}

/// A port that nobody has now.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it has an address").port()
}

/// A server and its executors.
pub struct Fleet {
    executors: Vec<Option<Process>>,
    /// Where each of them listens for tasks.
    task_ports: Vec<u16>,
    server: Process,
    url: String,
    cluster: String,
    folder: TempDir,
    _only: MutexGuard<'static, ()>,
}

impl Fleet {
    /// With so many executors of so many cores each.
    pub fn start(n_executors: usize, cores: usize) -> Self {
        Self::with(&["--set", "cluster_shared_files=true"], |_| (), n_executors, cores)
    }

    /// The same where nobody said that executors see the server's files.
    pub fn with_other_disks(n_executors: usize, cores: usize) -> Self {
        Self::with(&[], |_| (), n_executors, cores)
    }

    /// A server that is started another way, and no executors.
    pub fn alone(change: impl FnOnce(&mut Command)) -> Self {
        Self::with(&["--set", "cluster_shared_files=true"], change, 0, 0)
    }

    fn with(flags: &[&str], change: impl FnOnce(&mut Command), n_executors: usize, cores: usize) -> Self {
        watch();
        let only = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(binary());
        command.arg("serve").arg("--home").arg(folder.path().join("home"));
        command.args(["--no-auth", "--no-reports", "--flight", "127.0.0.1:0", "--cluster", "127.0.0.1:0"]).args(flags);
        // What is reused does not depend on how fast the machine is.
        command.args(["--set", "cluster_bytes_min=0"]);
        command.current_dir(folder.path());
        change(&mut command);
        let mut server = Process::start(command);
        let cluster = server.after("Executors at ");
        let url = server.after("Flight SQL at ");
        let (executors, task_ports) = (vec![], vec![]);
        let mut fleet = Self { executors, task_ports, server, url, cluster, folder, _only: only };
        for _ in 0..n_executors {
            fleet.add(cores);
        }
        fleet.wait_for(n_executors);
        fleet
    }

    /// One more executor; its number.
    pub fn add(&mut self, cores: usize) -> usize {
        self.add_with(cores, |_| ())
    }

    /// One more executor that is started another way.
    pub fn add_with(&mut self, cores: usize, change: impl FnOnce(&mut Command)) -> usize {
        let port = free_port();
        let mut command = self.executor();
        command.args(["--cores", &cores.to_string(), "--memory", "1GB", "--task-port", &port.to_string()]);
        command.arg("--folder").arg(self.folder.path().join(format!("executor-{}", self.executors.len())));
        command.current_dir(self.folder.path());
        change(&mut command);
        self.executors.push(Some(Process::start(command)));
        self.task_ports.push(port);
        self.executors.len() - 1
    }

    /// The command line of an executor for this server.
    pub fn executor(&self) -> Command {
        let mut command = Command::new(binary());
        command.args(["executor", "--server", &self.cluster]);
        command
    }

    /// Numbers of executors that have tasks.
    pub fn busy(&self) -> Vec<usize> {
        let ports = self.rows("SELECT task_port FROM system.executors WHERE running_tasks > 0");
        let number = |port: &str| self.task_ports.iter().position(|known| port == known.to_string());
        ports.lines().filter_map(number).collect()
    }

    /// What an executor said so far; nothing if it was killed.
    pub fn executor_said(&self, executor: usize) -> String {
        self.executors[executor].as_ref().map(Process::said).unwrap_or_default()
    }

    /// Waits until so many executors are there.
    pub fn wait_for(&self, n_executors: usize) {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.rows("SELECT count(*) FROM system.executors");
            if found == n_executors.to_string() {
                return;
            }
            assert!(
                Instant::now() < until,
                "{found} executors are there instead of {n_executors}\nserver: {}\nexecutors: {}",
                self.server.said(),
                self.executors.iter().flatten().map(Process::said).collect::<Vec<_>>().join("\n--\n")
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends an executor at once, as `kill -9` does. Those that are gone stay so.
    pub fn kill(&mut self, executor: usize) {
        if let Some(mut process) = self.executors[executor].take() {
            process.kill();
        }
    }

    /// Numbers of executors that were not killed.
    pub fn alive(&self) -> Vec<usize> {
        (0..self.executors.len()).filter(|executor| self.executors[*executor].is_some()).collect()
    }

    /// Sends a signal to an executor, such as `STOP` and `CONT`.
    pub fn signal(&self, executor: usize, name: &str) {
        let process = self.executors[executor].as_ref().expect("it was not killed");
        let sent = Command::new("kill").arg(format!("-{name}")).arg(process.child.id().to_string()).status();
        assert!(sent.expect("kill is there").success());
    }

    /// The command line of a client up to the point where `-c` follows.
    pub fn client(&self) -> Command {
        let mut command = Command::new(binary());
        clean(&mut command);
        command.args(["--connect", &self.url, "--format", "csv", "--no-header"]);
        command
    }

    /// Runs statements to their end. `{dir}` is the fleet's folder.
    pub fn run(&self, sql: &str) -> Ran {
        let mut command = self.client();
        command.arg("-c").arg(sql.replace("{dir}", &self.folder.path().display().to_string()));
        finish(command, b"")
    }

    /// Rows of statements that go well.
    pub fn rows(&self, sql: &str) -> String {
        let ran = self.run(sql);
        assert!(ran.status.success(), "{sql}: {}\nserver: {}", ran.stderr, self.server.said());
        ran.stdout.trim_end().to_owned()
    }

    /// The same on the executors, without what was kept before unless `reuse` says so.
    pub fn there(&self, sql: &str, reuse: &str) -> String {
        self.rows(&format!("SET nectarine.execution = 'cluster'; SET nectarine.reuse = '{reuse}'; {sql}"))
    }

    /// The same in the server's process.
    pub fn here(&self, sql: &str, reuse: &str) -> String {
        self.rows(&format!("SET nectarine.execution = 'local'; SET nectarine.reuse = '{reuse}'; {sql}"))
    }

    /// How many jobs ended like this.
    pub fn jobs(&self, state: &str) -> usize {
        let found = self.rows(&format!("SELECT count(*) FROM system.cluster_jobs WHERE state = '{state}'"));
        found.parse().expect("a number")
    }

    /// Where a file of the fleet is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The fleet's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until the server says something.
    pub fn wait_said(&self, words: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.said().contains(words) {
            assert!(Instant::now() < until, "\"{words}\" was not said, but:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the server said, for those who look for what went wrong.
    pub fn said(&self) -> String {
        self.server.said()
    }
}
