//! [`Output`]: where rows go: standard output, a file or program of `\o`, or a pager for this one answer.

mod pager;

use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use nectarine_engine::Notice;

use crate::failure::{Failure, Result, report_notice};
use crate::terminal::Terminal;

/// Bytes collected before they are written.
const BUFFER_BYTES: usize = 64 * 1024;

/// When a pager is used on a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Paging {
    Off,
    /// When the answer is larger than the window.
    Auto,
    Always,
}

/// A place for rows.
pub(crate) struct Output {
    target: Target,
    pager: Option<Program>,
    terminal: Terminal,
    pub(crate) paging: Paging,
}

/// What stands behind an output.
pub(crate) enum Target {
    Stdout(BufWriter<Stdout>),
    File(BufWriter<File>),
    Program(Program),
}

/// A program that reads rows.
pub(crate) struct Program {
    name: String,
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
}

impl Output {
    pub(crate) fn stdout(terminal: Terminal, paging: Paging) -> Self {
        Self { target: Target::Stdout(standard_output()), pager: None, terminal, paging }
    }

    /// Whether a person reads what is written, so that fitting it into the window helps.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.target, Target::Stdout(_)) && self.terminal.stdout
    }

    /// Whether a pager has this answer.
    pub(crate) fn is_paged(&self) -> bool {
        self.pager.is_some()
    }

    /// Columns and lines available, when a person reads.
    pub(crate) fn window(&self) -> Option<(usize, usize)> {
        if self.is_terminal() { self.terminal.size() } else { None }
    }

    /// Says how large the answer will be at least, before it is written: too large goes through a pager.
    pub(crate) fn announce(&mut self, lines: usize, columns: usize) {
        if self.pager.is_some() || !self.terminal.stdin || self.paging == Paging::Off {
            return;
        }
        let Some((window_columns, window_lines)) = self.window() else { return };
        // One line each for the summary and the next prompt.
        if self.paging == Paging::Always || lines + 2 > window_lines || columns > window_columns {
            match pager::start() {
                Ok(pager) => self.pager = pager,
                Err(name) => {
                    let message = format!("the pager '{name}' cannot be run: rows are printed without one");
                    let hint = Some("choose another one by PAGER".to_owned());
                    report_notice(&self.terminal, &Notice { message, hint });
                    // Once is enough; `\pset pager on` tries again.
                    self.paging = Paging::Off;
                }
            }
        }
    }

    /// Ends this answer: what is buffered is written, a pager is waited for.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self.pager.take() {
            Some(pager) => pager.close(),
            None => self.flush(),
        }
    }

    /// Sends the rows of later answers to a file, to a program (`| program`), or back to standard output.
    pub(crate) fn redirect(&mut self, to: Option<&str>) -> Result<()> {
        let target = Target::open(to)?;
        let closed = self.swap(target).close();
        self.terminal.restore_modes();
        Ok(closed?)
    }

    /// The same, and gives back where they went until now, with what is not written yet.
    pub(crate) fn swap(&mut self, target: Target) -> Target {
        std::mem::replace(&mut self.target, target)
    }
}

impl Target {
    /// A file, a program (`| program`), or standard output.
    pub(crate) fn open(to: Option<&str>) -> Result<Self> {
        match to.map(str::trim) {
            None | Some("") => Ok(Self::Stdout(standard_output())),
            Some(program) if program.starts_with('|') => {
                let program = program[1..].trim();
                let started = Program::start(program, shell(program));
                started.map(Self::Program).map_err(|error| Failure::io(format!("cannot start '{program}'"), &error))
            }
            Some(path) => {
                let file = File::create(path).map_err(|error| Failure::io(format!("cannot write '{path}'"), &error))?;
                Ok(Self::File(BufWriter::with_capacity(BUFFER_BYTES, file)))
            }
        }
    }

    /// Throws away what is buffered and not written.
    fn forget_buffered(&mut self) {
        match self {
            Self::Stdout(stdout) => drop(std::mem::replace(stdout, standard_output()).into_parts()),
            Self::File(file) => {
                // Without a second descriptor what is buffered stays, and is tried again.
                if let Ok(again) = file.get_ref().try_clone() {
                    let again = BufWriter::with_capacity(BUFFER_BYTES, again);
                    drop(std::mem::replace(file, again).into_parts());
                }
            }
            Self::Program(_) => {}
        }
    }

    /// Nothing follows: a program gets to read the last of it.
    pub(crate) fn close(self) -> io::Result<()> {
        match self {
            Self::Program(program) => program.close(),
            Self::Stdout(mut stdout) => stdout.flush(),
            Self::File(mut file) => file.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (&mut self.pager, &mut self.target) {
            (Some(program), _) | (None, Target::Program(program)) => program.write(bytes),
            (None, Target::Stdout(stdout)) => stdout.write(bytes),
            (None, Target::File(file)) => file.write(bytes),
        }
    }

    /// What cannot be written is told once, by this error, and then forgotten: later rows do not wait behind it.
    fn flush(&mut self) -> io::Result<()> {
        let flushed = match (&mut self.pager, &mut self.target) {
            (Some(program), _) | (None, Target::Program(program)) => return program.flush(),
            (None, Target::Stdout(stdout)) => stdout.flush(),
            (None, Target::File(file)) => file.flush(),
        };
        if flushed.is_err() {
            self.target.forget_buffered();
        }
        flushed
    }
}

impl Program {
    fn start(name: &str, mut command: Command) -> io::Result<Self> {
        let name = name.to_owned();
        let mut child = command.stdin(Stdio::piped()).spawn()?;
        let input = child.stdin.take().map(|input| BufWriter::with_capacity(BUFFER_BYTES, input));
        Ok(Self { name, child, input })
    }

    /// Tells the program that nothing follows, and waits until it has ended.
    fn close(mut self) -> io::Result<()> {
        let flushed = self.flush();
        if let Some(input) = self.input.take() {
            // What is left in the buffer after a failed flush has no reader.
            drop(input.into_parts());
        }
        match self.child.wait()?.code() {
            // What the shell says of a program that it did not find, or could not start.
            Some(code @ (126 | 127)) => {
                Err(io::Error::other(format!("'{}' cannot be run (exit code {code})", self.name)))
            }
            _ => flushed,
        }
    }
}

impl Write for Program {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.input.as_mut().map_or(Ok(bytes.len()), |input| input.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.input.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// A command line for the user's shell.
pub(crate) fn shell(line: &str) -> Command {
    let (program, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut command = Command::new(program);
    command.arg(option).arg(line);
    command
}

fn standard_output() -> BufWriter<Stdout> {
    BufWriter::with_capacity(BUFFER_BYTES, io::stdout())
}
