//! [`Shell`]: runs what the user asks for, whoever reads it: prompt, script or demo.
//!
//! ```text
//!   text --Splitter--> statement --variables--> engine task --batches--> sink --> output
//!                      command   --> command.rs        \--progress--> live line
//! ```
//!
//! A statement runs in its own task, so that Ctrl-C and the live line never wait for an operator. Dropping the task
//! cancels the statement.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, SchemaRef, UInt64Type};
use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use nectarine_engine::{AnswerKind, EngineError, Notice, Pipes, Progress, Receipt, Reused};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::failure::{Failure, Result, report_notice};
use crate::input::{Item, Piece, Splitter};
use crate::interrupt::Interrupt;
use crate::lines::{Lines, StandardInput};
use crate::live::{self, Live};
use crate::output::Output;
use crate::print::{self, Format, Sink, View};
use crate::prompt::Keyboard;
use crate::terminal::Terminal;
use crate::units;
use crate::variables::Variables;

/// Batches that wait for the printer.
const BATCHES_WAITING_MAX: usize = 2;

/// How long a cancelled statement may take to put its things away before the prompt comes back.
const CANCEL_PATIENCE: Duration = Duration::from_secs(2);

/// Deepest `\i` inside `\i`.
const SCRIPT_DEPTH_MAX: usize = 32;

/// Everything that lasts from one input to the next.
pub(crate) struct Shell {
    pub(crate) client: Client,
    pub(crate) runtime: Handle,
    pub(crate) terminal: Terminal,
    pub(crate) interrupt: Interrupt,
    pub(crate) view: View,
    pub(crate) output: Output,
    pub(crate) variables: Variables,
    /// Whether the summary tells the time.
    pub(crate) timing: bool,
    /// Whether a person types.
    pub(crate) interactive: bool,
    pub(crate) keep_going: bool,
    pub(crate) verbose: bool,
    /// The last statement, for `\g`, `\e` and `\watch`.
    pub(crate) last: Option<String>,
    /// Markdown was written: the next table needs an empty line before it, or it would be more rows of the last one.
    has_markdown: bool,
    depth: usize,
    /// The scripts that are being read, the innermost last: what follows a `COPY .. FROM STDIN` in one is its data.
    pub(crate) scripts: Vec<Lines>,
    pub(crate) standard: StandardInput,
    /// Where a person types statements, and data between them.
    pub(crate) keyboard: Option<Keyboard>,
}

/// How an input ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// All of it ran.
    Done,
    /// All of it ran, some of it failed.
    Failed,
    /// The user wants to leave.
    Quit,
    /// The user pressed Ctrl-C.
    Interrupted,
    /// Nobody reads the rows any more.
    Closed,
}

/// What is said about one answer.
pub(crate) struct Summary {
    pub(crate) rows: u64,
    pub(crate) tag: Option<String>,
    pub(crate) elapsed: Duration,
    /// What was reused.
    pub(crate) receipt: Receipt,
    /// Whether all rows came; not so when the reader left before.
    pub(crate) whole: bool,
}

impl Shell {
    pub(crate) fn new(
        client: Client,
        runtime: Handle,
        terminal: Terminal,
        view: View,
        output: Output,
        interactive: bool,
    ) -> Self {
        Self {
            client,
            interrupt: Interrupt::listen(&runtime, interactive),
            runtime,
            terminal,
            view,
            output,
            variables: Variables::default(),
            timing: true,
            interactive,
            keep_going: false,
            verbose: false,
            last: None,
            has_markdown: false,
            depth: 0,
            scripts: vec![],
            standard: StandardInput::default(),
            keyboard: None,
        }
    }

    /// Runs all statements of a text.
    pub(crate) fn run_text(&mut self, text: &str) -> Flow {
        let mut splitter = Splitter::new();
        splitter.feed(text);
        let flow = self.run_items(&mut splitter, None);
        self.run_rest(flow, &mut splitter, None)
    }

    /// Runs a script.
    pub(crate) fn run_file(&mut self, path: &Path) -> Flow {
        let name = path.display().to_string();
        if name == "-" {
            return self.run_stdin();
        }
        if self.depth >= SCRIPT_DEPTH_MAX {
            let failure = Failure::new(format!(
                "cannot read '{name}': scripts include each other more than {SCRIPT_DEPTH_MAX} deep"
            ));
            return self.fail(&failure, None);
        }
        match std::fs::File::open(path) {
            Ok(file) => {
                self.depth += 1;
                let flow = self.run_lines(Lines::file(file), &name);
                self.depth -= 1;
                flow
            }
            Err(error) => self.fail(&Failure::io(format!("cannot read '{name}'"), &error), None),
        }
    }

    /// Runs standard input as a script.
    pub(crate) fn run_stdin(&mut self) -> Flow {
        self.run_lines(Lines::Standard, "standard input")
    }

    fn run_lines(&mut self, lines: Lines, name: &str) -> Flow {
        self.scripts.push(lines);
        let flow = self.run_script_lines(name);
        self.scripts.pop();
        flow
    }

    /// Runs statements of the innermost script as soon as their last line has been read.
    fn run_script_lines(&mut self, name: &str) -> Flow {
        let mut splitter = Splitter::new();
        let mut flow = Flow::Done;
        let mut line = Vec::new();
        let mut number = 0;
        loop {
            line.clear();
            number += 1;
            match self.read_line(&mut line, &format!("cannot read '{name}'")) {
                Ok(0) => return self.run_rest(flow, &mut splitter, Some(name)),
                Ok(_) => {}
                // There was no statement that could be cancelled.
                Err(Failure::Cancelled) => return Flow::Interrupted,
                // A folder opens like a file and fails here.
                Err(failure) => return self.fail(&failure, None),
            }
            // Some editors begin a file with a mark of its encoding.
            let bytes = if number == 1 { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line) } else { &line };
            match std::str::from_utf8(bytes) {
                Ok(text) => splitter.feed(text),
                Err(_) => {
                    return self.fail(&Failure::new(format!("cannot read '{name}': line {number} is not UTF-8")), None);
                }
            }
            match self.run_items(&mut splitter, Some(name)) {
                Flow::Done => {}
                Flow::Failed if self.keep_going => flow = Flow::Failed,
                other => return other,
            }
        }
    }

    /// Runs what is whole so far.
    pub(crate) fn run_items(&mut self, splitter: &mut Splitter, script: Option<&str>) -> Flow {
        let mut flow = Flow::Done;
        while let Some(item) = splitter.next() {
            match self.run_item(item, splitter, script) {
                Flow::Done => {}
                Flow::Failed if self.keep_going || (self.interactive && self.depth == 0) => flow = Flow::Failed,
                other => return other,
            }
        }
        flow
    }

    /// Runs what has no semicolon at the end of the input.
    fn run_rest(&mut self, flow: Flow, splitter: &mut Splitter, script: Option<&str>) -> Flow {
        if flow != Flow::Done && !(flow == Flow::Failed && self.keep_going) {
            return flow;
        }
        match splitter.finish().map(|item| self.run_item(item, splitter, script)) {
            None | Some(Flow::Done) => flow,
            Some(other) => other,
        }
    }

    fn run_item(&mut self, item: Item, splitter: &mut Splitter, script: Option<&str>) -> Flow {
        if self.interactive {
            self.terminal.restore_modes();
        }
        let (result, line) = match item {
            Item::Statement(Piece { text, line }) => (self.run_statement(&text).map(|()| Flow::Done), line),
            Item::Command(Piece { text, line }) => (self.run_command(&text, splitter), line),
        };
        match result {
            Ok(flow) => flow,
            Err(failure) => {
                let place = script.map(|name| format!("{name}, line {line}"));
                self.fail(&failure, place.as_deref())
            }
        }
    }

    /// Tells the user about a failure.
    pub(crate) fn fail(&mut self, failure: &Failure, place: Option<&str>) -> Flow {
        failure.report(&self.terminal, place);
        match failure {
            Failure::Closed => Flow::Closed,
            Failure::Cancelled => Flow::Interrupted,
            Failure::Statement { .. } | Failure::Shell { .. } => Flow::Failed,
        }
    }

    /// Runs one statement and prints its answer.
    pub(crate) fn run_statement(&mut self, text: &str) -> Result<()> {
        let sql = self.variables.interpolate(text);
        self.last = Some(sql.clone());
        let printed = self.print_answer(&sql, &self.view_for_answer(), None);
        let summary = printed.map_err(|failure| self.variables.explain(failure))?;
        self.tell(&summary);
        Ok(())
    }

    /// Prints the rows of a query of our own, without a summary.
    pub(crate) fn show(&mut self, sql: &str, title: Option<&str>) -> Result<()> {
        self.print_answer(sql, &self.view.clone(), title).map(drop)
    }

    /// Prints rows that are there, without a summary.
    pub(crate) fn show_rows(&mut self, batches: &[RecordBatch], title: Option<&str>) -> Result<()> {
        let Some(first) = batches.first() else { return Ok(()) };
        self.part_tables(self.view.format)?;
        let mut sink = print::sink(&self.view, first.schema(), title);
        let output = &mut self.output;
        let printed = batches.iter().try_for_each(|batch| sink.batch(batch, output)).and_then(|()| sink.finish(output));
        let paged = self.output.is_paged();
        match printed.and(self.output.finish().map_err(Failure::from)) {
            Err(Failure::Closed) if paged => Ok(()),
            other => other,
        }
    }

    /// The rows of a small query of our own.
    pub(crate) fn fetch(&mut self, sql: &str) -> Result<Vec<RecordBatch>> {
        let running = Running::start(self, sql, None);
        let mut batches = Vec::new();
        let runtime = self.runtime.clone();
        runtime.block_on(async {
            let mut running = running;
            let mut live = Live::new(None);
            while let Some(event) = running.next(&mut self.interrupt, &mut live, false, sql).await? {
                if let Event::Batch(batch) = event {
                    batches.push(batch);
                }
            }
            Ok(batches)
        })
    }

    /// On a terminal the summary takes the footer's place.
    fn view_for_answer(&self) -> View {
        let footer = self.view.footer && !(self.output.is_terminal() && self.tells_summary());
        View { footer, ..self.view.clone() }
    }

    fn tells_summary(&self) -> bool {
        self.interactive || self.verbose || (self.terminal.stderr && self.view.format == Format::Table)
    }

    /// Says how many rows there were and how long it took.
    fn tell(&self, summary: &Summary) {
        let told = self.tells_summary();
        let what = match &summary.tag {
            Some(tag) if tag.is_empty() => return,
            // Without a terminal a tag is still what psql would print; the time would only be noise.
            Some(tag) if told || self.view.format == Format::Table => tag.clone(),
            None if told && !summary.whole => format!("{} until the pager was left", units::rows(summary.rows)),
            None if told => units::rows(summary.rows),
            _ => return,
        };
        let time = if told && self.timing { format!(", {}", units::duration(summary.elapsed)) } else { String::new() };
        let reused = if told { reused(&summary.receipt) } else { String::new() };
        self.terminal.say(&format!("{what}{time}{reused}"));
    }

    /// Runs a statement and prints its rows.
    pub(crate) fn print_answer(&mut self, sql: &str, view: &View, title: Option<&str>) -> Result<Summary> {
        // What a COPY reads from standard input is there before it begins; gone when it has ended.
        let input = match nectarine_engine::reads_standard_input(sql) {
            true => Some(self.standard_input()?),
            false => None,
        };
        let running = Running::start(self, sql, input.as_ref().map(|file| file.path().to_owned()));
        let mut summary =
            Summary { rows: 0, tag: None, elapsed: Duration::ZERO, receipt: Receipt::default(), whole: false };
        let started = running.started;
        let runtime = self.runtime.clone();
        let printed = runtime.block_on(self.print_running(running, sql, view, title, &mut summary));
        if printed.is_err() {
            summary.elapsed = started.elapsed();
        }
        let paged = self.output.is_paged();
        let finished = self.output.finish().map_err(Failure::from);
        match (printed, finished) {
            // Leaving the pager early is an ordinary way to end reading.
            (Ok(()) | Err(Failure::Closed), Ok(()) | Err(Failure::Closed)) if paged => Ok(summary),
            // A pager that could not run says so itself.
            (Err(Failure::Closed), Err(failure)) | (Err(failure), _) | (Ok(()), Err(failure)) => Err(failure),
            (Ok(()), Ok(())) => Ok(summary),
        }
    }

    /// Keeps the next table apart from the last one.
    fn part_tables(&mut self, format: Format) -> Result<()> {
        if format == Format::Markdown && std::mem::replace(&mut self.has_markdown, true) {
            writeln!(self.output)?;
        }
        Ok(())
    }

    async fn print_running(
        &mut self,
        mut running: Running,
        sql: &str,
        view: &View,
        title: Option<&str>,
        summary: &mut Summary,
    ) -> Result<()> {
        let mut live = Live::new(self.terminal.draws().then_some(self.terminal));
        let mut sink: Option<Box<dyn Sink>> = None;
        let mut written = None;
        let mut has_bytes = false;
        loop {
            // Once rows appear on the same screen they are sign of life enough.
            let screen_busy = self.output.is_terminal() && sink.as_ref().is_some_and(|sink| !sink.is_collecting());
            let Some(event) = running.next(&mut self.interrupt, &mut live, !screen_busy, sql).await? else { break };
            match event {
                Event::Begin { schema, kind, notices } => {
                    live.hide();
                    notices.iter().for_each(|notice| report_notice(&self.terminal, notice));
                    match kind {
                        AnswerKind::Rows => {
                            self.part_tables(view.format)?;
                            sink = Some(print::sink(view, schema, title));
                        }
                        AnswerKind::Command { tag } => summary.tag = Some(tag),
                        AnswerKind::Written { tag } => written = Some(tag),
                    }
                }
                Event::Batch(batch) => {
                    if let Some(sink) = &mut sink {
                        summary.rows += batch.num_rows() as u64;
                        if self.output.is_terminal() {
                            live.hide();
                        }
                        sink.batch(&batch, &mut self.output)?;
                    } else {
                        summary.rows += written_rows(&batch);
                    }
                }
                Event::Bytes(bytes) => {
                    live.hide();
                    has_bytes = true;
                    self.output.write_all(&bytes)?;
                }
                Event::End(receipt) => {
                    if !receipt.notices.is_empty() {
                        live.hide();
                    }
                    receipt.notices.iter().for_each(|notice| report_notice(&self.terminal, notice));
                    summary.receipt = receipt;
                }
            }
        }
        live.hide();
        summary.whole = true;
        summary.elapsed = running.started.elapsed();
        if let Some(tag) = written {
            summary.tag = Some(format!("{tag} {}", summary.rows));
        }
        if has_bytes {
            self.output.flush()?;
            // The rows were the answer; psql says no more either.
            if !self.interactive && !self.verbose {
                summary.tag = Some(String::new());
            }
        }
        if let Some(sink) = &mut sink {
            sink.finish(&mut self.output)?;
            self.output.flush()?;
        }
        Ok(())
    }
}

/// What was reused, in brackets.
pub(crate) fn reused(receipt: &Receipt) -> String {
    let saved = || units::duration(receipt.saved);
    let extents = receipt.extents.unwrap_or_default();
    match (receipt.reused, receipt.entries.len()) {
        (Reused::None, _) => String::new(),
        (Reused::Exact, _) => format!(" (exact hit, saved {})", saved()),
        (Reused::Partial, _) if (1..extents.total).contains(&extents.reused) => {
            format!(" ({} of {} extents reused, saved {})", extents.reused, extents.total, saved())
        }
        (Reused::Partial, 1) => format!(" (1 prefix hit, saved {})", saved()),
        (Reused::Partial, n) => format!(" ({n} prefix hits, saved {})", saved()),
    }
}

/// The one number of a command that wrote rows.
fn written_rows(batch: &RecordBatch) -> u64 {
    if batch.num_columns() == 0 {
        return 0;
    }
    let column = batch.column(0);
    if let Some(counts) = column.as_primitive_opt::<UInt64Type>() {
        counts.iter().flatten().sum()
    } else if let Some(counts) = column.as_primitive_opt::<Int64Type>() {
        counts.iter().flatten().map(|count| u64::try_from(count).unwrap_or(0)).sum()
    } else {
        0
    }
}

/// What a running statement sends.
enum Event {
    Begin {
        schema: SchemaRef,
        kind: AnswerKind,
        notices: Vec<Notice>,
    },
    Batch(RecordBatch),
    /// What goes to standard output as it is.
    Bytes(Vec<u8>),
    /// After the last row: what was reused.
    End(Receipt),
}

/// A statement in its own task.
struct Running {
    task: JoinHandle<()>,
    events: mpsc::Receiver<Result<Event, EngineError>>,
    progress: Progress,
    started: Instant,
}

impl Running {
    fn start(shell: &mut Shell, sql: &str, input: Option<PathBuf>) -> Self {
        shell.interrupt.clear();
        let progress = Progress::new();
        let (sender, events) = mpsc::channel(BATCHES_WAITING_MAX);
        let work = run(shell.client.clone(), sql.to_owned(), input, progress.clone(), sender);
        let started = Instant::now();
        Self { task: shell.runtime.spawn(Box::pin(work)), events, progress, started }
    }

    /// The next event, `None` at the end; meanwhile the live line and Ctrl-C are served.
    async fn next(
        &mut self,
        interrupt: &mut Interrupt,
        live: &mut Live,
        visible: bool,
        sql: &str,
    ) -> Result<Option<Event>> {
        loop {
            tokio::select! {
                biased;
                () = interrupt.pressed() => {
                    live.hide();
                    self.cancel(interrupt).await;
                    return Err(Failure::Cancelled);
                }
                event = self.events.recv() => return match event {
                    Some(Ok(event)) => Ok(Some(event)),
                    Some(Err(error)) => Err(Failure::statement(error, sql)),
                    None => self.outcome().await.map(|()| None),
                },
                () = tokio::time::sleep(live::PERIOD) => {
                    if visible {
                        live.show(&self.progress.snapshot());
                    }
                }
            }
        }
    }

    /// Whether the task ended as it should.
    async fn outcome(&mut self) -> Result<()> {
        match (&mut self.task).await {
            Err(error) if error.is_panic() => {
                let payload = error.into_panic();
                let text = payload
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| payload.downcast_ref::<&str>().copied());
                Err(Failure::new(format!("the engine failed: {}", text.unwrap_or("no reason given")))
                    .with_hint("this is a bug in nectarine"))
            }
            _ => Ok(()),
        }
    }

    /// Ends the statement and waits a little until it has put its things away.
    async fn cancel(&mut self, interrupt: &mut Interrupt) {
        self.events.close();
        self.task.abort();
        tokio::select! {
            _ = &mut self.task => {}
            () = interrupt.pressed() => {}
            () = tokio::time::sleep(CANCEL_PATIENCE) => {}
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(
    client: Client,
    sql: String,
    input: Option<PathBuf>,
    progress: Progress,
    events: mpsc::Sender<Result<Event, EngineError>>,
) {
    let (output, mut bytes) = mpsc::channel(BATCHES_WAITING_MAX);
    let pipes = Pipes { input, output: Some(output) };
    let mut executing = Box::pin(client.execute(&sql, &pipes, &progress));
    let answer = loop {
        tokio::select! {
            biased;
            Some(bytes) = bytes.recv() => {
                if events.send(Ok(Event::Bytes(bytes))).await.is_err() {
                    return;
                }
            }
            answer = &mut executing => break answer,
        }
    };
    while let Ok(bytes) = bytes.try_recv() {
        if events.send(Ok(Event::Bytes(bytes))).await.is_err() {
            return;
        }
    }
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let _ = events.send(Err(error)).await;
            return;
        }
    };
    let begin =
        Event::Begin { schema: answer.schema(), kind: answer.kind().clone(), notices: answer.notices().to_vec() };
    if events.send(Ok(begin)).await.is_err() {
        return;
    }
    let receipt = answer.receipt();
    let mut rows = answer.into_stream();
    while let Some(batch) = rows.next().await {
        let last = batch.is_err();
        if events.send(batch.map(Event::Batch)).await.is_err() || last {
            return;
        }
    }
    // Whoever listens no longer needs no receipt.
    let _ = events.send(Ok(Event::End(receipt()))).await;
}
