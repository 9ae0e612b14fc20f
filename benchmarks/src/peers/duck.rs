//! [`Duck`]: DuckDB in a child process, by its Python package. It takes its own time; what is said between the two does not count.
//!
//! The package lives in an environment of its own below the cache folder, made when it is first needed and Python 3 is there. Without
//! it the comparison goes on without DuckDB, and says why.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use arrow::record_batch::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::tpch::data::{Table, TpchData};

/// What is installed. Raise the name of the folder with it.
const PACKAGES: [&str; 2] = ["duckdb==2.0.0", "pyarrow==26.0.1"];
const FOLDER: &str = "duckdb-2.0.0";

const PROGRAM: &str = include_str!("duck.py");

/// A running DuckDB.
pub(crate) struct Duck {
    version: String,
    pipes: Mutex<Pipes>,
    /// Where answers are written to be compared.
    folder: tempfile::TempDir,
}

struct Pipes {
    child: Child,
    /// Taken when it is to end.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Duck {
    /// Starts it with views of the tables' files.
    pub(crate) fn start(data: &TpchData, threads: usize, memory_bytes: u64) -> Result<Self> {
        let duck = Self::start_alone()?;
        duck.run(&format!("SET threads = {threads}"))?;
        duck.run(&format!("SET memory_limit = '{memory_bytes}B'"))?;
        // As the others, which know footers that they have read.
        duck.run("SET parquet_metadata_cache = true")?;
        for table in Table::ALL {
            // The list of files is looked at by each statement.
            let files = format!("{}*.parquet", data.location(table)).replace('\'', "''");
            duck.run(&format!("CREATE VIEW {} AS SELECT * FROM read_parquet('{files}')", table.name()))?;
        }
        Ok(duck)
    }

    fn start_alone() -> Result<Self> {
        let python = environment()?;
        let mut child = Command::new(&python)
            .args(["-I", "-c", PROGRAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("cannot start \"{}\"", python.display()))?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else { bail!("no pipes") };
        let mut pipes = Pipes { child, requests: Some(requests), answers: BufReader::new(answers) };
        let greeting = pipes.line()?;
        let Some(version) = greeting.strip_prefix("ready ") else { bail!("DuckDB did not start: {greeting}") };
        Ok(Self { version: version.to_string(), pipes: Mutex::new(pipes), folder: tempfile::tempdir()? })
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Runs a statement to its last row; how long that took there, and how many rows came.
    pub(crate) fn run(&self, sql: &str) -> Result<(Duration, usize)> {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = pipes.requests.as_mut().context("DuckDB has ended")?;
        write!(requests, "{}\n{sql}", sql.len()).and_then(|()| requests.flush()).context("cannot ask DuckDB")?;
        let line = pipes.line()?;
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("ok"), Some(seconds), Some(rows)) => Ok((Duration::from_secs_f64(seconds.parse()?), rows.parse()?)),
            _ => bail!("DuckDB: {}", line.trim_start_matches("error ")),
        }
    }

    /// The rows of a query.
    pub(crate) fn rows(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let path = self.folder.path().join("answer.parquet");
        let place = path.display().to_string().replace('\'', "''");
        self.run(&format!("COPY ({}\n) TO '{place}' (FORMAT parquet)", sql.trim().trim_end_matches(';')))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&path)?)?.build()?;
        Ok(reader.collect::<Result<_, _>>()?)
    }
}

impl Drop for Duck {
    fn drop(&mut self) {
        let pipes = self.pipes.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Nothing more to read: it ends.
        drop(pipes.requests.take());
        let _ = pipes.child.wait();
    }
}

impl Pipes {
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).context("cannot hear DuckDB")?;
        match line.is_empty() {
            true => bail!("DuckDB has ended"),
            false => Ok(line.trim_end().to_string()),
        }
    }
}

/// The Python of an environment that has DuckDB; made now if it is not there.
fn environment() -> Result<PathBuf> {
    let cache = match (std::env::var_os("NECTARINE_CACHE"), std::env::var_os("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => Path::new(&home).join(".cache/nectarine"),
        (None, None) => bail!("there is no home folder to keep DuckDB in"),
    };
    let folder = cache.join(FOLDER);
    let python = Path::new("bin").join("python");
    if folder.join("whole").exists() {
        return Ok(folder.join(python));
    }
    fs::create_dir_all(&cache).with_context(|| format!("cannot create \"{}\"", cache.display()))?;
    // Appears under its name when it is whole: an environment works wherever it is moved to, except for its scripts.
    let unfinished = tempfile::Builder::new().prefix(FOLDER).tempdir_in(&cache)?;
    say_and_run(Command::new("python3").args(["-m", "venv"]).arg(unfinished.path()))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20"];
    say_and_run(Command::new(unfinished.path().join(&python)).args(pip).args(PACKAGES))?;
    fs::write(unfinished.path().join("whole"), "")?;
    match fs::rename(unfinished.path(), &folder) {
        Ok(()) => drop(unfinished.keep()),
        // Another process was quicker.
        Err(_) if folder.join("whole").exists() => {}
        Err(error) => return Err(error).with_context(|| format!("cannot make \"{}\"", folder.display())),
    }
    Ok(folder.join(python))
}

/// Runs a command; the last line of what it complained about is the error.
fn say_and_run(command: &mut Command) -> Result<()> {
    let name = format!("{command:?}");
    let short = name.chars().take(80).collect::<String>();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {short}"))?;
    let mut complaints = String::new();
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_string(&mut complaints)?;
    }
    match child.wait()?.success() {
        true => Ok(()),
        false => bail!("{short} failed: {}", complaints.lines().last().unwrap_or_default()),
    }
}
