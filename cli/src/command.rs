//! Backslash commands: what psql's users have in their fingers.
//!
//! The table [`COMMANDS`] is the one list: help, completion and the hint for a mistyped name read it.

mod arguments;
mod copy;
mod describe;
mod help;
mod options;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::client::Client;
use crate::exec::{Flow, Shell};
use crate::failure::{Failure, Result};
use crate::input::Splitter;
use crate::output::{Paging, Target, shell};
use crate::print::Expanded;
use crate::units;
use arguments::split;

pub(crate) use help::STATEMENTS;
pub(crate) use options::OPTIONS;

/// Largest edit distance of a name that is suggested.
const TYPO_DISTANCE_MAX: usize = 2;

/// A command as help shows it.
pub(crate) struct CommandDoc {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static str,
    pub(crate) doc: &'static str,
}

const fn doc(name: &'static str, arguments: &'static str, doc: &'static str) -> CommandDoc {
    CommandDoc { name, arguments, doc }
}

/// All commands.
pub(crate) const COMMANDS: &[CommandDoc] = &[
    doc("?", "", "this list"),
    doc("h", "[STATEMENT]", "syntax of SQL statements"),
    doc("q", "", "leave"),
    doc("d", "[NAME]", "tables and views, or the columns and extents of one"),
    doc("dt", "[PATTERN]", "tables"),
    doc("dv", "[PATTERN]", "views"),
    doc("dm", "[PATTERN]", "materialized views"),
    doc("df", "[PATTERN]", "functions of yours; with a pattern also built-in ones"),
    doc("dn", "[PATTERN]", "schemas"),
    doc("dp", "[PATTERN]", "rights on tables and schemas"),
    doc("du", "[PATTERN]", "users and roles"),
    doc("l", "", "catalogs"),
    doc("conninfo", "", "which home this is"),
    doc("timing", "[on|off]", "tell how long statements take"),
    doc("x", "[on|off|auto]", "print a line per column"),
    doc("t", "[on|off]", "print rows only"),
    doc("pset", "[NAME [VALUE]]", "how rows look: format, null, border, linestyle, expanded, header, footer, pager"),
    doc("o", "[FILE or |PROGRAM]", "send rows to a file or program"),
    doc("i", "FILE", "run a script"),
    doc("e", "[FILE]", "edit the statement, or a file, and run it"),
    doc("p", "", "print the statement typed so far"),
    doc("r", "", "forget the statement typed so far"),
    doc("g", "[FILE or |PROGRAM]", "run the statement, or the last one again"),
    doc("gx", "", "the same, a line per column"),
    doc("watch", "[SECONDS]", "run the statement again and again until Ctrl-C"),
    doc(
        "copy",
        "TABLE from|to FILE",
        "read or write a file, STDIN or STDOUT; a query in parentheses can be written too",
    ),
    doc("set", "[NAME [VALUE]]", "set a variable for :name, :'name' and :\"name\""),
    doc("unset", "NAME", "forget a variable"),
    doc("echo", "TEXT", "print a line"),
    doc("cd", "[FOLDER]", "change the working folder"),
    doc("!", "[COMMAND]", "run a command of the operating system"),
];

impl Shell {
    /// Runs the command whose text followed the backslash.
    pub(crate) fn run_command(&mut self, text: &str, pending: &mut Splitter) -> Result<Flow> {
        let (name, rest) = parse(text);
        let rest = rest.trim();
        // What goes to the operating system's shell keeps its colons and quotes.
        if name == "!" {
            return run_program(rest).map(|()| Flow::Done);
        }
        if name == "copy" {
            return self.copy(rest).map(|()| Flow::Done);
        }
        let arguments: Vec<String> = split(&self.variables.interpolate(rest))?;
        let first = arguments.first().map(String::as_str);
        // A program's command line is not ours to take apart.
        let target = if rest.starts_with('|') { Some(rest) } else { first };
        match name {
            "?" => help::commands(self)?,
            "h" | "help" => help::statements(self, rest)?,
            "q" | "quit" | "exit" => return Ok(Flow::Quit),
            "d" => self.describe(first)?,
            "dt" => self.list_tables(first, "tables")?,
            "dv" => self.list_tables(first, "views")?,
            "dm" => self.list_tables(first, "materialized views")?,
            "df" => self.list_functions(first)?,
            "dn" => self.list_schemas(first)?,
            "dp" | "z" => self.list_rights(first)?,
            "du" | "dg" => self.list_users(first)?,
            "l" => self.list_catalogs()?,
            "conninfo" => self.connection_info(),
            "timing" => {
                self.timing = toggle(first, self.timing)?;
                self.terminal.say(if self.timing { "timing is on" } else { "timing is off" });
            }
            "x" => {
                let next = if self.view.expanded == Expanded::Off { "on" } else { "off" };
                self.set_option("expanded", first.unwrap_or(next))?;
                self.tell_option("expanded");
            }
            "t" => {
                let rows_only = toggle(first, !self.view.header)?;
                (self.view.header, self.view.footer) = (!rows_only, !rows_only);
                self.tell_option("header");
            }
            "pset" => match (first, arguments.get(1)) {
                (None, _) => self.tell_options(),
                (Some(option), None) => {
                    self.toggle_option(option)?;
                    self.tell_option(option);
                }
                (Some(option), Some(value)) => {
                    self.set_option(option, value)?;
                    if self.interactive {
                        self.tell_option(option);
                    }
                }
            },
            "o" => self.output.redirect(target)?,
            "i" => {
                let path = required(first, "i", "a file")?;
                return Ok(self.run_script(Path::new(path)));
            }
            "e" => return self.edit(first.map(PathBuf::from), pending),
            "p" => {
                let text = if pending.is_pending() { pending.buffer() } else { self.last.as_deref().unwrap_or("") };
                self.terminal.say(text.trim_end());
            }
            "r" => {
                pending.take();
                self.terminal.say("statement forgotten");
            }
            "g" | "gx" => self.go(name == "gx", target, pending)?,
            "watch" => return self.watch(first, pending),
            "set" => self.set_variable(first, arguments.get(1..).unwrap_or_default())?,
            "unset" => {
                let name = required(first, "unset", "a variable")?;
                if !self.variables.unset(name) {
                    return Err(Failure::new(format!("there is no variable '{name}'")));
                }
            }
            "echo" => self.print_line(&arguments.join(" "))?,
            "cd" => change_folder(first)?,
            _ => return Err(unknown(name)),
        }
        Ok(Flow::Done)
    }

    /// Runs a script from within another input: its failure ends it, not the prompt.
    fn run_script(&mut self, path: &Path) -> Flow {
        self.run_file(path)
    }

    /// The statement typed so far, else the last one.
    fn statement(&mut self, pending: &mut Splitter) -> Result<String> {
        if pending.is_pending() {
            return Ok(pending.take().text);
        }
        self.last.clone().ok_or_else(|| Failure::new("there is no statement to run yet"))
    }

    fn go(&mut self, expanded: bool, to: Option<&str>, pending: &mut Splitter) -> Result<()> {
        let sql = self.statement(pending)?;
        let kept = self.view.expanded;
        if expanded {
            self.view.expanded = Expanded::On;
        }
        let result = match to {
            None => self.run_statement(&sql),
            Some(to) => Target::open(Some(to)).and_then(|target| {
                // What waits for where rows go otherwise is older.
                self.output.flush()?;
                let kept = self.output.swap(target);
                let result = self.run_statement(&sql);
                let closed = self.output.swap(kept).close();
                self.terminal.restore_modes();
                match result.and(closed.map_err(Failure::from)) {
                    // A program may have seen enough.
                    Err(Failure::Closed) => Ok(()),
                    other => other,
                }
            }),
        };
        self.view.expanded = kept;
        result
    }

    fn watch(&mut self, seconds: Option<&str>, pending: &mut Splitter) -> Result<Flow> {
        let seconds = seconds.unwrap_or("2");
        let wrong = || Failure::new(format!("\\watch needs a number of seconds, not '{seconds}'"));
        let number = seconds.parse::<f64>().ok().filter(|number| *number >= 0.01).ok_or_else(wrong)?;
        let pause = Duration::try_from_secs_f64(number).map_err(|_| wrong())?;
        let sql = self.statement(pending)?;
        // Nobody wants to leave a pager every two seconds.
        let kept = std::mem::replace(&mut self.output.paging, Paging::Off);
        let watched = self.watch_statement(&sql, pause);
        self.output.paging = kept;
        watched
    }

    fn watch_statement(&mut self, sql: &str, pause: Duration) -> Result<Flow> {
        loop {
            let now = chrono::Local::now().format("%Y-%m-%d %H:%M:%S");
            self.terminal.say(&format!("{now} (every {})", units::duration(pause)));
            match self.run_statement(sql) {
                Ok(()) => {}
                Err(Failure::Cancelled) => return Ok(Flow::Done),
                Err(failure) => return Err(failure),
            }
            let interrupt = &mut self.interrupt;
            let pressed = self.runtime.block_on(async {
                tokio::select! {
                    () = interrupt.pressed() => true,
                    () = tokio::time::sleep(pause) => false,
                }
            });
            if pressed {
                return Ok(Flow::Done);
            }
        }
    }

    /// Opens the user's editor on a file, or on the statement, and runs what comes back.
    fn edit(&mut self, file: Option<PathBuf>, pending: &mut Splitter) -> Result<Flow> {
        let kept;
        let path = match file {
            Some(path) => path,
            None => {
                let attempt = "cannot write the statement for the editor";
                kept = tempfile::Builder::new()
                    .prefix("nectarine-")
                    .suffix(".sql")
                    .tempfile()
                    .map_err(|error| Failure::io(attempt, &error))?;
                let text = if pending.is_pending() {
                    pending.buffer().trim_end().to_owned()
                } else {
                    self.last.clone().map_or_else(String::new, |last| last + ";")
                };
                std::fs::write(kept.path(), text + "\n").map_err(|error| Failure::io(attempt, &error))?;
                kept.path().to_owned()
            }
        };
        let editor = ["VISUAL", "EDITOR"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty()));
        let editor = editor.unwrap_or_else(|| "vi".to_owned());
        run_program(&format!("{editor} {}", shell_quoted(&path.display().to_string())))?;
        let shown = path.display();
        let text =
            std::fs::read_to_string(&path).map_err(|error| Failure::io(format!("cannot read '{shown}'"), &error))?;
        pending.clear();
        if !text.trim().is_empty() {
            self.terminal.say(text.trim_end());
        }
        pending.feed(&text);
        Ok(Flow::Done)
    }

    fn set_variable(&mut self, name: Option<&str>, values: &[String]) -> Result<()> {
        match name {
            None => {
                let lines: Vec<String> =
                    self.variables.iter().map(|(name, value)| format!("{name} = '{value}'")).collect();
                lines.iter().for_each(|line| self.terminal.say(line));
                Ok(())
            }
            Some(name) if self.variables.set(name, values.concat()) => Ok(()),
            Some(name) => Err(Failure::new(format!("'{name}' cannot name a variable"))
                .with_hint("use letters, digits and underscores")),
        }
    }

    fn connection_info(&self) {
        let place = match &self.client {
            Client::Here { engine, .. } => format!("in this process, home: {}", engine.home().display()),
            Client::There(session) => format!("at {}", session.address()),
        };
        self.terminal.say(&format!("nectarine {}, {place}", env!("CARGO_PKG_VERSION")));
    }

    pub(crate) fn print_line(&mut self, line: &str) -> Result<()> {
        writeln!(self.output, "{line}")?;
        self.output.flush()?;
        Ok(())
    }
}

/// Name and rest: `dt+` style letters end at white space, `?` and `!` stand for themselves.
pub(crate) fn parse(text: &str) -> (&str, &str) {
    if text.starts_with(['!', '?']) {
        return text.split_at(1);
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    // psql's variants say more; there is nothing more to say here. A semicolon out of habit does no harm.
    (name.trim_end_matches(['+', ';']), rest.trim_end().trim_end_matches(';'))
}

/// The name nearest to a mistyped one.
pub(crate) fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let distance = |candidate: &str| strsim::damerau_levenshtein(name, candidate);
    let close = names.into_iter().map(|candidate| (distance(candidate), candidate));
    close
        .filter(|(distance, candidate)| *distance <= TYPO_DISTANCE_MAX.min(candidate.len().max(name.len()) - 1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn unknown(name: &str) -> Failure {
    let failure = Failure::new(format!("unknown command '\\{name}'"));
    match nearest(name, COMMANDS.iter().map(|command| command.name)) {
        Some(near) => failure.with_hint(format!("did you mean '\\{near}'? \\? lists all commands")),
        None => failure.with_hint("\\? lists all commands"),
    }
}

/// `on` or `off`; without either the opposite of now.
fn toggle(value: Option<&str>, now: bool) -> Result<bool> {
    value.map_or(Ok(!now), options::boolean)
}

fn required<'a>(argument: Option<&'a str>, name: &str, what: &str) -> Result<&'a str> {
    argument.ok_or_else(|| Failure::new(format!("\\{name} needs {what}")))
}

fn run_program(line: &str) -> Result<()> {
    let fallback = std::env::var("SHELL").unwrap_or_else(|_| "sh".to_owned());
    let line = if line.is_empty() { &fallback } else { line };
    let status = shell(line).status().map_err(|error| Failure::io(format!("cannot run '{line}'"), &error))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(Failure::new(format!("'{line}' ended with exit code {code}"))),
        None => Err(Failure::new(format!("'{line}' was ended by a signal"))),
    }
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn change_folder(folder: Option<&str>) -> Result<()> {
    let folder = match folder {
        Some(folder) => folder.to_owned(),
        None => std::env::var("HOME").map_err(|_| Failure::new("\\cd needs a folder: HOME is not set"))?,
    };
    std::env::set_current_dir(&folder).map_err(|error| Failure::io(format!("cannot change to '{folder}'"), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_where_they_should() {
        assert_eq!(parse("dt+ a*;"), ("dt", " a*"));
        assert_eq!(parse("!ls -l;"), ("!", "ls -l;"));
        assert_eq!(parse("q;"), ("q", ""));
        assert_eq!(parse(""), ("", ""));
    }

    #[test]
    fn a_slip_is_recognised() {
        let names = || COMMANDS.iter().map(|command| command.name);
        assert_eq!(nearest("tming", names()), Some("timing"));
        assert_eq!(nearest("wacth", names()), Some("watch"));
        assert_eq!(nearest("conection", names()), None);
        assert_eq!(nearest("z", names()), None);
    }
}
