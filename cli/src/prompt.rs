//! The prompt: reads lines with editing, history, completion and colours, and gives them to the shell.

mod complete;
mod highlight;

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use nectarine_engine::Names;
use rustyline::completion::{Completer, Pair};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Behavior, ColorMode, CompletionType, Config, Context, Editor, Helper};
use tokio::runtime::Handle;

use crate::client::Client;
use crate::exec::{Flow, Shell};
use crate::input::Splitter;
use crate::lexer::State;
use crate::terminal::Paint;

/// Statements kept in the history.
const HISTORY_ENTRIES_MAX: usize = 10_000;

/// How long a press of Tab may wait for names.
const NAMES_PATIENCE: Duration = Duration::from_secs(1);

/// Longer lines are not coloured while they are typed.
const HIGHLIGHT_BYTES_MAX: usize = 16 * 1024;

/// Reads and runs until the user leaves.
pub(crate) fn run(shell: &mut Shell) -> anyhow::Result<Flow> {
    let history = shell.client.history();
    let mut editor = editor(shell, &history)?;
    banner(shell);
    let mut splitter = Splitter::new();
    let mut entry = String::new();
    loop {
        if let Some(helper) = editor.helper_mut() {
            helper.prepare(&splitter, shell);
        }
        let prompt = prompt(&splitter);
        let styled = Paint::Strong.on(&prompt);
        match editor.readline(&(prompt, styled)) {
            Ok(line) => {
                let ends = splitter.ends_with(&line);
                entry.push_str(&line);
                if ends {
                    remember(&mut editor, &entry, &history);
                    entry.clear();
                } else {
                    entry.push('\n');
                }
                if !splitter.is_pending() && leaves(&line) {
                    return Ok(Flow::Quit);
                }
                splitter.feed(&line);
                splitter.feed("\n");
                match shell.run_items(&mut splitter, None) {
                    Flow::Quit => return Ok(Flow::Quit),
                    Flow::Interrupted => splitter.clear(),
                    Flow::Done | Flow::Failed | Flow::Closed => {}
                }
                splitter.forget_comments();
            }
            Err(ReadlineError::Interrupted) => {
                splitter.clear();
                entry.clear();
            }
            Err(ReadlineError::Eof) => return Ok(Flow::Quit),
            Err(ReadlineError::Signal(_)) => {}
            Err(error) => return Err(anyhow::Error::new(error).context("cannot read from the terminal")),
        }
    }
}

/// Words that people type to leave; no statement has them alone.
fn leaves(line: &str) -> bool {
    matches!(line.trim().trim_end_matches(';').to_ascii_lowercase().as_str(), "quit" | "exit")
}

fn editor(shell: &Shell, history: &Path) -> anyhow::Result<Editor<SqlHelper, DefaultHistory>> {
    let config = Config::builder()
        .max_history_size(HISTORY_ENTRIES_MAX)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        // Rows may go to a file while someone types.
        .behavior(if shell.terminal.stdout { Behavior::Stdio } else { Behavior::PreferTerm })
        .build();
    let mut editor = Editor::with_config(config)?;
    if !shell.terminal.colors_rows() {
        editor.set_color_mode(ColorMode::Disabled);
    }
    editor.set_helper(Some(SqlHelper {
        client: shell.client.clone(),
        runtime: shell.runtime.clone(),
        names: RefCell::new(None),
        before: String::new(),
        state: State::Plain,
        variables: Vec::new(),
    }));
    if history.exists()
        && let Err(error) = editor.load_history(history)
    {
        tracing::warn!("cannot read the history '{}': {error}", history.display());
    }
    Ok(editor)
}

/// Keeps a statement at once: a crash must not lose it.
fn remember(editor: &mut Editor<SqlHelper, DefaultHistory>, entry: &str, history: &Path) {
    if entry.trim().is_empty() {
        return;
    }
    let added = editor.add_history_entry(entry.trim_end());
    let kept = added.and_then(|added| if added { editor.append_history(history) } else { Ok(()) });
    if let Err(error) = kept {
        tracing::warn!("cannot keep the history: {error}");
    }
}

fn banner(shell: &Shell) {
    let place = shell.client.place();
    let name = format!("nectarine {}", env!("CARGO_PKG_VERSION"));
    shell.terminal.say(&format!("{}, {place}", shell.terminal.paint(Paint::Strong, &name)));
    shell.terminal.say("Type SQL ending with ';', \\? for help, \\q to leave.");
}

/// What stands before the line, with psql's hint at what is open.
fn prompt(splitter: &Splitter) -> String {
    let mark = match splitter.state() {
        State::Plain if !splitter.is_pending() => '=',
        State::Plain => '-',
        State::Text { .. } => '\'',
        State::Quoted { .. } => '"',
        State::Dollar { .. } => '$',
        State::Comment { .. } => '*',
    };
    format!("nectarine{mark}> ")
}

/// What the line editor asks us.
struct SqlHelper {
    client: Client,
    runtime: Handle,
    /// Asked for at the first Tab of a prompt.
    names: RefCell<Option<Names>>,
    /// Earlier lines of the statement.
    before: String,
    state: State,
    variables: Vec<String>,
}

impl SqlHelper {
    fn prepare(&mut self, splitter: &Splitter, shell: &Shell) {
        self.names.replace(None);
        splitter.buffer().clone_into(&mut self.before);
        self.state = splitter.state().clone();
        self.variables = shell.variables.iter().map(|(name, _)| name.to_owned()).collect();
    }
}

impl Helper for SqlHelper {}

impl Validator for SqlHelper {}

impl Hinter for SqlHelper {
    type Hint = String;
}

impl Completer for SqlHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let mut names = self.names.borrow_mut();
        if names.is_none() {
            let asked =
                self.runtime.block_on(async { tokio::time::timeout(NAMES_PATIENCE, self.client.names()).await });
            *names = asked.ok().and_then(Result::ok);
        }
        let names = names.get_or_insert_default();
        let known = complete::Known { names, variables: &self.variables };
        Ok(complete::complete(&self.before, line, position, &known))
    }
}

impl Highlighter for SqlHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if line.len() > HIGHLIGHT_BYTES_MAX {
            return Cow::Borrowed(line);
        }
        Cow::Owned(highlight(line, self.state.clone()))
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        true
    }
}

pub(crate) use highlight::highlight;
