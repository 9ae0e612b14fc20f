//! What `COPY .. FROM STDIN` reads: the lines that follow it in a script, what is typed, or the input of the process.
//!
//! ```text
//!   COPY t FROM STDIN;
//!   1,one
//!   2,two
//!   \.                       ends it; so does the end of the input
//! ```

use std::io::{BufRead, Write};

use tempfile::NamedTempFile;

use crate::client::Client;
use crate::exec::Shell;
use crate::failure::{Failure, Result};

/// A line that ends the data.
const END: &[u8] = b"\\.";

impl Shell {
    /// All of the data, in a file.
    pub(crate) fn standard_input(&mut self) -> Result<NamedTempFile> {
        if matches!(self.client, Client::There(_)) {
            return Err(Failure::new("COPY .. FROM STDIN needs the home itself, not a server")
                .with_hint("INSERT INTO .. VALUES, or COPY .. FROM a file of the server"));
        }
        let attempt = "cannot keep what standard input gives";
        let mut file =
            tempfile::Builder::new().prefix("nectarine-").tempfile().map_err(|error| Failure::io(attempt, &error))?;
        let read = match self.scripts.last_mut() {
            Some(script) => copy_lines(script.as_mut(), file.as_file_mut()),
            None => {
                if self.terminal.stdin {
                    self.terminal
                        .say("Type the rows, and a line with nothing but \\. after the last one (or press Ctrl-D).");
                }
                copy_lines(&mut std::io::stdin().lock(), file.as_file_mut())
            }
        };
        read.and_then(|()| file.flush()).map_err(|error| Failure::io(attempt, &error))?;
        Ok(file)
    }
}

fn copy_lines(from: &mut dyn BufRead, to: &mut dyn Write) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 || line.trim_ascii_end() == END {
            return Ok(());
        }
        to.write_all(&line)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_ends_with_a_mark_or_with_the_input() {
        let check = |text: &str, data: &str, rest: &str| {
            let mut from = text.as_bytes();
            let mut to = Vec::new();
            copy_lines(&mut from, &mut to).unwrap();
            assert_eq!((to.as_slice(), from), (data.as_bytes(), rest.as_bytes()));
        };
        check("1,a\n2,b\n\\.\nSELECT 1;\n", "1,a\n2,b\n", "SELECT 1;\n");
        check("1\r\n\\.\r\nx", "1\r\n", "x");
        check("1\n\\.x\n2", "1\n\\.x\n2", "");
        check("", "", "");
    }
}
