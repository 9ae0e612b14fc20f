//! The prompt: reads lines with editing, history, completion and colours, and gives them to the shell.

mod complete;
mod highlight;
mod keyboard;

use std::borrow::Cow;
use std::cell::RefCell;
use std::time::Duration;

use nectarine_engine::Names;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use tokio::runtime::Handle;

use crate::client::Client;
use crate::exec::{Flow, Shell};
use crate::input::Splitter;
use crate::lexer::State;
use crate::terminal::Paint;
use keyboard::Typed;

/// How long a press of Tab may wait for names.
const NAMES_PATIENCE: Duration = Duration::from_secs(1);

/// Longer lines are not coloured while they are typed.
const HIGHLIGHT_BYTES_MAX: usize = 16 * 1024;

/// Reads and runs until the user leaves.
pub(crate) fn run(shell: &mut Shell) -> anyhow::Result<Flow> {
    let history = shell.client.history();
    let keyboard = Keyboard::open(shell, &history)?;
    shell.keyboard = Some(keyboard.clone());
    banner(shell);
    let mut splitter = Splitter::new();
    let mut entry = String::new();
    loop {
        match keyboard.line(&prompt(&splitter), &splitter, shell)? {
            Typed::Line(line) => {
                let ends = splitter.ends_with(&line);
                entry.push_str(&line);
                if ends {
                    keyboard.remember(&entry, &history);
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
                    Flow::Interrupted => {
                        splitter.clear();
                        keyboard.clear();
                    }
                    Flow::Done | Flow::Failed | Flow::Closed => {}
                }
                splitter.forget_comments();
            }
            Typed::Interrupted => {
                splitter.clear();
                entry.clear();
            }
            Typed::End => return Ok(Flow::Quit),
        }
    }
}

/// Words that people type to leave; no statement has them alone.
fn leaves(line: &str) -> bool {
    matches!(line.trim().trim_end_matches(';').to_ascii_lowercase().as_str(), "quit" | "exit")
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
    /// Data is typed: there is nothing to complete or to colour.
    is_data: bool,
}

impl SqlHelper {
    fn new(shell: &Shell) -> Self {
        Self {
            client: shell.client.clone(),
            runtime: shell.runtime.clone(),
            names: RefCell::new(None),
            before: String::new(),
            state: State::Plain,
            variables: Vec::new(),
            is_data: false,
        }
    }

    fn prepare_data(&mut self) {
        self.is_data = true;
    }

    fn prepare(&mut self, splitter: &Splitter, shell: &Shell) {
        self.is_data = false;
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
        if self.is_data {
            return Ok((position, vec![Pair { display: "\t".to_owned(), replacement: "\t".to_owned() }]));
        }
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
        if self.is_data || line.len() > HIGHLIGHT_BYTES_MAX {
            return Cow::Borrowed(line);
        }
        Cow::Owned(highlight(line, self.state.clone()))
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        true
    }
}

pub(crate) use highlight::highlight;
pub(crate) use keyboard::Keyboard;
