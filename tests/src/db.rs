//! [`Db`]: one engine on a temporary home; SQL in, text out.
//!
//! ```text
//!   CREATE TABLE t (a INT);        statements end with a semicolon at the end of a line
//!   INSERT INTO t VALUES (1);
//!   -> INSERT 1                    what it answers, line by line; without any it must only succeed
//!   SELECT a, a + 1 FROM t;
//!   -> 1|2                         rows: values between bars, NULL as NULL
//!   SELECT b FROM t;
//!   !! column "b" does not exist   it fails, and the error holds these words (one line each)
//! ```
//!
//! `{dir}` in a script is the folder for data files beside the home; in answers it stands for the same.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::SessionStateBuilder;
use nectarine_engine::{AnswerKind, CacheAdmin, Clock, Engine, EngineError, Receipt, Session, Settings};
use tempfile::TempDir;

use crate::hook::Hook;
use crate::watchdog::watch;

/// What is reused must not depend on how fast the machine is: everything takes so long to compute that it is worth keeping.
const COST_MIN: Duration = Duration::from_secs(1);

/// An engine, a session and a folder for files. Cheap to clone; clones are the same session.
#[derive(Clone)]
pub struct Db {
    session: Session,
    engine: Engine,
    hook: Hook,
    settings: Vec<(String, String)>,
    clock: Option<Arc<dyn Clock>>,
    /// Last, so that the folder goes after all who use it.
    folder: Arc<TempDir>,
}

impl Db {
    /// A new home in a new folder.
    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    /// The same with settings as flags.
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        Self::open(folder, settings).await.expect("a new home opens")
    }

    /// A new home whose time is told by a clock.
    pub async fn by(clock: Arc<dyn Clock>, settings: &[(&str, &str)]) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        Self::open_by(folder, settings, Some(clock), None).await.expect("a new home opens")
    }

    /// A new home whose results are kept in parts of so many bytes, as large ones are in larger parts.
    pub async fn in_parts(part_bytes: usize) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        Self::open_by(folder, &[], None, Some(part_bytes)).await.expect("a new home opens")
    }

    /// Another engine on the same home, beside this one.
    pub async fn second(&self) -> Self {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let opened = Self::open_by(Arc::clone(&self.folder), &settings, self.clock.clone(), None).await;
        opened.expect("the home opens a second time")
    }

    /// Closes the home and opens it again.
    pub async fn reopen(self) -> Self {
        let Self { session, engine, hook, settings, clock, folder } = self;
        engine.shutdown().await;
        drop((session, engine, hook));
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        Self::open_by(folder, &settings, clock, None).await.expect("the home opens again")
    }

    /// Opens the home in a folder.
    pub async fn open(folder: Arc<TempDir>, settings: &[(&str, &str)]) -> Result<Self, EngineError> {
        Self::open_by(folder, settings, None, None).await
    }

    async fn open_by(
        folder: Arc<TempDir>,
        settings: &[(&str, &str)],
        clock: Option<Arc<dyn Clock>>,
        part_bytes: Option<usize>,
    ) -> Result<Self, EngineError> {
        watch();
        let mut chosen = Settings::default();
        for (name, value) in settings {
            chosen = chosen.with(name, value)?;
        }
        let hook = Hook::default();
        let function = hook.function();
        let extend = move |mut builder: SessionStateBuilder| {
            builder.scalar_functions().get_or_insert_default().push(function);
            builder
        };
        let home = folder.path().join("home");
        let mut builder = Engine::builder().home(home).settings(chosen).cost_min(COST_MIN).extend(extend);
        if let Some(clock) = &clock {
            builder = builder.clock(Arc::clone(clock));
        }
        if let Some(part_bytes) = part_bytes {
            builder = builder.part_bytes(part_bytes);
        }
        let engine = Box::pin(builder.open()).await?;
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Ok(Self { session: engine.session(), engine, hook, settings, clock, folder })
    }

    /// The same home with a session of its own.
    pub fn client(&self) -> Self {
        Self { session: self.engine.session(), ..self.clone() }
    }

    /// The same home with a session that acts for a user.
    pub fn user(&self, name: &str) -> Self {
        Self { session: self.engine.session_as(name), ..self.clone() }
    }

    /// The engine itself, for those who serve it.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The session itself, for those who read rows as they come.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The cache of the home.
    pub fn cache(&self) -> CacheAdmin {
        self.engine.cache()
    }

    /// The folder around the home.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder around the home, to be kept or opened by others.
    pub fn shared_folder(&self) -> Arc<TempDir> {
        Arc::clone(&self.folder)
    }

    /// The home.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A path for a data file; folders above it are made.
    pub fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let above = path.parent().expect("it is in a folder");
        std::fs::create_dir_all(above).expect("a folder can be made");
        path
    }

    /// Writes a data file and says where it is.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file can be written");
        path
    }

    /// The rows of a statement as lines, sorted, and what it reused.
    pub async fn ask(&self, sql: &str) -> (Vec<String>, Receipt) {
        let answer = self.session.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let receipt = answer.receipt();
        let batches = answer.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let mut rows: Vec<String> = rows_text(&batches).lines().map(str::to_owned).collect();
        rows.sort();
        self.cache().settled().await;
        (rows, receipt())
    }

    /// Closes the home; every later statement fails.
    pub async fn shutdown(&self) {
        self.engine.shutdown().await;
    }

    /// Does something when the first rows pass through `tests_hook(x)` in the next statement that calls it.
    pub fn on_rows(&self, action: impl FnOnce() + Send + 'static) {
        self.hook.set(action);
    }

    /// Runs a statement; errors as text too.
    pub async fn run(&self, sql: &str) -> Result<String, String> {
        let text = match self.answer(&self.fill(sql)).await {
            Ok(text) => Ok(self.redact(&text)),
            Err(error) => Err(self.redact(&error_text(&error))),
        };
        tokio::task::yield_now().await;
        // Those who look at the home's files, or from another engine, find what this statement left behind.
        self.cache().settled().await;
        text
    }

    /// What a statement that must succeed answers.
    pub async fn ok(&self, sql: &str) -> String {
        match self.run(sql).await {
            Ok(text) => text,
            Err(error) => panic!("it failed: {}\n{error}", shown(sql)),
        }
    }

    /// Why a statement that must fail did.
    pub async fn err(&self, sql: &str) -> String {
        match self.run(sql).await {
            Ok(text) => panic!("it did not fail: {}\n{text}", shown(sql)),
            Err(error) => {
                assert!(!error.starts_with("Internal"), "a broken promise: {}\n{error}", shown(sql));
                error
            }
        }
    }

    /// All batches of a query that must succeed.
    pub async fn batches(&self, sql: &str) -> Vec<RecordBatch> {
        let answer = self.session.execute(&self.fill(sql)).await;
        let answer = answer.unwrap_or_else(|error| panic!("{}\n{error:?}", shown(sql)));
        let batches = answer.collect().await.unwrap_or_else(|error| panic!("{}\n{error:?}", shown(sql)));
        self.cache().settled().await;
        batches
    }

    /// Runs a script, see above, and says everything that came out differently.
    pub async fn script(&self, script: &str) {
        let mut wrong = String::new();
        for step in steps(script) {
            let outcome = self.run(&step.sql).await;
            let complaint = match (&outcome, step.fails) {
                (Ok(_), false) if step.expected.is_empty() => None,
                (Ok(text), false) => (*text != step.expected.join("\n")).then(|| format!("answered\n{}", indent(text))),
                (Err(error), true) => {
                    let lacks: Vec<&String> =
                        step.expected.iter().filter(|words| !error.contains(words.as_str())).collect();
                    let broken = error.starts_with("Internal")
                        && !step.expected.iter().any(|words| words.starts_with("Internal"));
                    (broken || !lacks.is_empty())
                        .then(|| format!("failed otherwise, without {lacks:?}\n{}", indent(error)))
                }
                (Ok(text), true) => Some(format!("did not fail but answered\n{}", indent(text))),
                (Err(error), false) => Some(format!("failed\n{}", indent(error))),
            };
            if let Some(complaint) = complaint {
                let _ =
                    writeln!(wrong, "{}\n{complaint}expected\n{}", shown(&step.sql), indent(&step.expected.join("\n")));
            }
        }
        assert!(wrong.is_empty(), "\n{wrong}");
    }

    async fn answer(&self, sql: &str) -> Result<String, EngineError> {
        let answer = self.session.execute(sql).await?;
        let kind = answer.kind().clone();
        let mut notices = String::new();
        for notice in answer.notices() {
            let _ = write!(notices, "\nnotice: {}", notice.message);
        }
        let text = rows_text(&answer.collect().await?);
        Ok(match kind {
            AnswerKind::Rows => text,
            AnswerKind::Command { tag } => tag,
            AnswerKind::Written { tag } => format!("{tag} {text}"),
        } + &notices)
    }

    fn fill(&self, sql: &str) -> String {
        sql.replace("{dir}", &self.folder.path().display().to_string())
    }

    fn redact(&self, text: &str) -> String {
        text.replace(&self.folder.path().display().to_string(), "{dir}")
    }
}

/// Rows as lines, values between bars.
pub fn rows_text(batches: &[RecordBatch]) -> String {
    let options = FormatOptions::default().with_null("NULL");
    let mut lines = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter<'_>> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).expect("a printable column"))
            .collect();
        for row in 0..batch.num_rows() {
            let value = |(formatter, column): (&ArrayFormatter<'_>, &Arc<dyn Array>)| match column.is_null(row) {
                true => "NULL".to_owned(),
                false => formatter.value(row).to_string(),
            };
            let values: Vec<String> = columns.iter().zip(batch.columns()).map(value).collect();
            lines.push(values.join("|"));
        }
    }
    lines.join("\n")
}

fn error_text(error: &EngineError) -> String {
    let mut text = format!("{:?}: {}", error.kind(), error.message());
    for (what, more) in [("detail", error.detail()), ("hint", error.hint())] {
        if let Some(more) = more {
            let _ = write!(text, "\n{what}: {more}");
        }
    }
    text
}

struct Step {
    sql: String,
    fails: bool,
    expected: Vec<String>,
}

fn steps(script: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut sql: Vec<&str> = Vec::new();
    for line in script.lines() {
        let trimmed = line.trim();
        let expected = trimmed
            .strip_prefix("->")
            .map(|text| (text, false))
            .or_else(|| trimmed.strip_prefix("!!").map(|text| (text, true)));
        if let (Some((text, fails)), Some(step), true) = (expected, steps.last_mut(), sql.is_empty()) {
            step.fails = fails;
            step.expected.push(text.strip_prefix(' ').unwrap_or(text).to_owned());
            continue;
        }
        if trimmed.is_empty() && sql.is_empty() {
            continue;
        }
        sql.push(trimmed);
        if trimmed.ends_with(';') {
            steps.push(Step { sql: sql.join("\n"), fails: false, expected: Vec::new() });
            sql.clear();
        }
    }
    assert!(sql.is_empty(), "a statement without its semicolon: {sql:?}");
    steps
}

fn shown(sql: &str) -> String {
    const SHOWN_MAX: usize = 2000;
    match sql.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{} .. ({} bytes)", &sql[..end], sql.len()),
        None => sql.to_owned(),
    }
}

fn indent(text: &str) -> String {
    text.lines().fold(String::new(), |mut indented, line| {
        let _ = writeln!(indented, "    {line}");
        indented
    })
}
