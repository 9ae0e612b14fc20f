//! [`Keyboard`]: the lines that somebody types, one after the other: statements, and the data of a `COPY .. FROM STDIN`.
//!
//! Both come through the line editor, because it reads ahead: what is pasted in one go may hold a statement, its data and the
//! statements behind it. A paste that arrives as one text of many lines is handed out line by line for the same reason.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;

use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Behavior, ColorMode, CompletionType, Config, Editor};

use super::SqlHelper;
use crate::exec::Shell;
use crate::failure::{Failure, Result};
use crate::input::Splitter;
use crate::terminal::Paint;

/// Statements kept in the history.
const HISTORY_ENTRIES_MAX: usize = 10_000;

/// What stands before a line of data, as in psql.
const DATA_PROMPT: &str = ">> ";

/// What came from the keyboard.
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D.
    End,
}

/// The line editor, shared by the prompt and the shell.
#[derive(Clone)]
pub(crate) struct Keyboard {
    editor: Rc<RefCell<Editor<SqlHelper, DefaultHistory>>>,
    /// Lines of a paste that nobody has asked for yet.
    pasted: Rc<RefCell<VecDeque<String>>>,
}

impl Keyboard {
    pub(super) fn open(shell: &Shell, history: &Path) -> anyhow::Result<Self> {
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
        editor.set_helper(Some(SqlHelper::new(shell)));
        if history.exists()
            && let Err(error) = editor.load_history(history)
        {
            tracing::warn!("cannot read the history '{}': {error}", history.display());
        }
        Ok(Self { editor: Rc::new(RefCell::new(editor)), pasted: Rc::default() })
    }

    /// The next line of a statement.
    pub(super) fn line(&self, prompt: &str, splitter: &Splitter, shell: &Shell) -> anyhow::Result<Typed> {
        if let Some(helper) = self.editor.borrow_mut().helper_mut() {
            helper.prepare(splitter, shell);
        }
        self.next(prompt).map_err(|error| anyhow::Error::new(error).context("cannot read from the terminal"))
    }

    /// The next line of data; `None` at its end.
    pub(crate) fn data_line(&self) -> Result<Option<String>> {
        if let Some(helper) = self.editor.borrow_mut().helper_mut() {
            helper.prepare_data();
        }
        match self.next(DATA_PROMPT) {
            Ok(Typed::Line(line)) => Ok(Some(line)),
            Ok(Typed::End) => Ok(None),
            Ok(Typed::Interrupted) => Err(Failure::Cancelled),
            Err(error) => Err(Failure::new(format!("cannot read from the terminal: {error}"))),
        }
    }

    /// Forgets what was pasted and not asked for.
    pub(super) fn clear(&self) {
        self.pasted.borrow_mut().clear();
    }

    /// Keeps a statement at once: a crash must not lose it.
    pub(super) fn remember(&self, entry: &str, history: &Path) {
        if entry.trim().is_empty() {
            return;
        }
        let mut editor = self.editor.borrow_mut();
        let added = editor.add_history_entry(entry.trim_end());
        let kept = added.and_then(|added| if added { editor.append_history(history) } else { Ok(()) });
        if let Err(error) = kept {
            tracing::warn!("cannot keep the history: {error}");
        }
    }

    fn next(&self, prompt: &str) -> rustyline::Result<Typed> {
        if let Some(line) = self.pasted.borrow_mut().pop_front() {
            return Ok(Typed::Line(line));
        }
        let prompt = (prompt.to_owned(), Paint::Strong.on(prompt));
        loop {
            match self.editor.borrow_mut().readline(&prompt) {
                Ok(text) => {
                    let mut lines = text.split('\n').map(str::to_owned);
                    let first = lines.next().unwrap_or_default();
                    self.pasted.borrow_mut().extend(lines);
                    return Ok(Typed::Line(first));
                }
                Err(ReadlineError::Interrupted) => return Ok(Typed::Interrupted),
                Err(ReadlineError::Eof) => return Ok(Typed::End),
                Err(ReadlineError::Signal(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
