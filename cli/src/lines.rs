//! [`Lines`]: where the lines of a script come from, and [`StandardInput`], which Ctrl-C can end the waiting for.
//!
//! All that reads standard input reads it here: one buffer, so that nothing is lost between a script and the data of its
//! `COPY .. FROM STDIN`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use futures::FutureExt;

use crate::exec::Shell;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;

/// A source of lines.
pub(crate) enum Lines {
    File(BufReader<File>),
    Standard,
}

impl Lines {
    pub(crate) fn file(file: File) -> Self {
        Self::File(BufReader::new(file))
    }
}

impl Shell {
    /// Adds the next line with its end, of the innermost script or else of standard input; 0 at the end. `attempt` is what a
    /// failure begins with.
    pub(crate) fn read_line(&mut self, line: &mut Vec<u8>, attempt: &str) -> Result<usize> {
        match self.scripts.last_mut() {
            Some(Lines::File(file)) => file.read_until(b'\n', line).map_err(|error| Failure::io(attempt, &error)),
            Some(Lines::Standard) | None => self.standard.read_line(line, &mut self.interrupt, attempt),
        }
    }
}

/// The input of the process.
#[derive(Default)]
pub(crate) struct StandardInput {
    /// Opened when it is first read.
    reader: Option<BufReader<input::Input>>,
}

impl StandardInput {
    fn read_line(&mut self, line: &mut Vec<u8>, interrupt: &mut Interrupt, attempt: &str) -> Result<usize> {
        let fault = |error: io::Error| Failure::io(attempt, &error);
        if self.reader.is_none() {
            self.reader = Some(BufReader::new(input::open().map_err(fault)?));
        }
        let Some(reader) = &mut self.reader else { return Ok(0) };
        let mut n_read = 0;
        loop {
            while reader.buffer().is_empty() && !input::is_ready() {
                if interrupt.pressed().now_or_never().is_some() {
                    return Err(Failure::Cancelled);
                }
            }
            let waiting = match reader.fill_buf() {
                Ok(waiting) => waiting,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(fault(error)),
            };
            let end = waiting.iter().position(|byte| *byte == b'\n').map(|newline| newline + 1);
            let taken = end.unwrap_or(waiting.len());
            line.extend_from_slice(&waiting[..taken]);
            reader.consume(taken);
            n_read += taken;
            if end.is_some() || taken == 0 {
                return Ok(n_read);
            }
        }
    }
}

#[cfg(unix)]
mod input {
    //! Standard input as a file that can be asked whether there is something to read.

    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd;

    /// How long to wait before somebody looks whether Ctrl-C was pressed.
    const PATIENCE_MS: i32 = 50;

    /// Without a buffer below the one here: what is in that could not be seen.
    pub(super) type Input = File;

    pub(super) fn open() -> io::Result<Input> {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    }

    /// Waits a moment; false if nothing came.
    pub(super) fn is_ready() -> bool {
        let mut asked = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
        // SAFETY: poll looks at the one pollfd that the pointer names, and keeps nothing.
        let n_ready = unsafe { libc::poll(&raw mut asked, 1, PATIENCE_MS) };
        // The end of the input and faults are ready too: reading tells. A signal is no answer.
        n_ready > 0 || (n_ready < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted)
    }
}

#[cfg(not(unix))]
mod input {
    //! Standard input, which is waited for until it comes.

    use std::io;

    pub(super) type Input = io::Stdin;

    pub(super) fn open() -> io::Result<Input> {
        Ok(io::stdin())
    }

    pub(super) fn is_ready() -> bool {
        true
    }
}
