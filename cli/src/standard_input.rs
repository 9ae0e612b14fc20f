//! What `COPY .. FROM STDIN` reads: the lines that follow it in a script, what is typed, or the input of the process.
//!
//! ```text
//!   COPY t FROM STDIN;
//!   1,one
//!   2,two
//!   \.                       ends it; so does the end of the input
//! ```
//!
//! All of it is read before the statement begins, so Ctrl-C meanwhile means that nothing is stored.

use std::io::Write;

use futures::FutureExt;
use tempfile::NamedTempFile;

use crate::client::Client;
use crate::exec::Shell;
use crate::failure::{Failure, Result};

/// A line that ends the data.
const END: &[u8] = b"\\.";

/// What is said when it cannot be read or kept.
const ATTEMPT: &str = "cannot keep what standard input gives";

impl Shell {
    /// All of the data, in a file.
    pub(crate) fn standard_input(&mut self) -> Result<NamedTempFile> {
        if matches!(self.client, Client::There(_)) {
            return Err(Failure::new("COPY .. FROM STDIN needs the home itself, not a server")
                .with_hint("INSERT INTO .. VALUES, or COPY .. FROM a file of the server"));
        }
        let file = tempfile::Builder::new().prefix("nectarine-").tempfile();
        let mut file = file.map_err(|error| Failure::io(ATTEMPT, &error))?;
        self.interrupt.clear();
        if self.scripts.is_empty() && self.terminal.stdin {
            self.terminal.say(
                "Type the rows, and a line with nothing but \\. after the last one (or press Ctrl-D). Ctrl-C cancels.",
            );
        }
        copy_lines(&mut || self.data_line(), file.as_file_mut())?;
        Ok(file)
    }

    /// The next line of data with its end; `None` at the end of the input.
    fn data_line(&mut self) -> Result<Option<Vec<u8>>> {
        // A long script is read without waiting for anything, so nobody else would look.
        if self.interrupt.pressed().now_or_never().is_some() {
            return Err(Failure::Cancelled);
        }
        // The editor may have read ahead: what was pasted behind the statement is its data.
        if self.scripts.is_empty()
            && let Some(keyboard) = &self.keyboard
        {
            return Ok(keyboard.data_line()?.map(|line| (line + "\n").into_bytes()));
        }
        let mut line = Vec::new();
        let n_read = self.read_line(&mut line, ATTEMPT)?;
        Ok((n_read > 0).then_some(line))
    }
}

fn copy_lines(next: &mut dyn FnMut() -> Result<Option<Vec<u8>>>, to: &mut dyn Write) -> Result<()> {
    let mut to = std::io::BufWriter::new(to);
    let fault = |error: std::io::Error| Failure::io(ATTEMPT, &error);
    while let Some(line) = next()?.filter(|line| line.trim_ascii_end() != END) {
        to.write_all(&line).map_err(fault)?;
    }
    to.flush().map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;

    #[test]
    fn data_ends_with_a_mark_or_with_the_input() {
        let check = |text: &str, data: &str, rest: &str| {
            let mut from = text.as_bytes();
            let mut to = Vec::new();
            let mut next = || {
                let mut line = Vec::new();
                from.read_until(b'\n', &mut line).unwrap();
                Ok((!line.is_empty()).then_some(line))
            };
            copy_lines(&mut next, &mut to).unwrap();
            assert_eq!((to.as_slice(), from), (data.as_bytes(), rest.as_bytes()));
        };
        check("1,a\n2,b\n\\.\nSELECT 1;\n", "1,a\n2,b\n", "SELECT 1;\n");
        check("1\r\n\\.\r\nx", "1\r\n", "x");
        check("1\n\\.x\n2", "1\n\\.x\n2", "");
        check("", "", "");
    }

    #[test]
    fn data_that_is_cancelled_is_a_failure() {
        let mut lines = vec![Err(Failure::Cancelled), Ok(Some(b"1\n".to_vec()))];
        let copied = copy_lines(&mut || lines.pop().unwrap(), &mut Vec::new());
        assert!(matches!(copied, Err(Failure::Cancelled)));
    }
}
