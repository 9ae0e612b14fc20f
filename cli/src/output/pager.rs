//! The program that shows an answer larger than the window: `$PAGER`, else less.

use std::process::{Command, Stdio};

use super::{Program, shell};

/// Starts it. `None` if there is none; an error names one that was asked for and cannot run.
pub(super) fn start() -> Result<Option<Program>, String> {
    let chosen = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let (name, mut command) = match &chosen {
        Some(line) if !is_there(line) => return Err(line.clone()),
        Some(line) => (line.as_str(), shell(line)),
        None => ("less", Command::new("less")),
    };
    if std::env::var_os("LESS").is_none() {
        // Chop long lines, pass colours, end by itself when one screen is enough, leave the text on the screen.
        command.env("LESS", "-SRFX");
    }
    match Program::start(name, command) {
        Ok(program) => Ok(Some(program)),
        Err(_) if chosen.is_none() => Ok(None),
        Err(_) => Err(name.to_owned()),
    }
}

/// Whether the shell would find the program of a command line. Asked before, because a shell that does not find it has
/// started well, and has taken the rows with it. What only the shell can read is taken for a yes.
fn is_there(line: &str) -> bool {
    let Some(word) = line.split_whitespace().find(|word| !is_assignment(word)) else { return false };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+./".contains(&byte);
    if cfg!(windows) || !word.bytes().all(plain) {
        return true;
    }
    let mut asked = Command::new("sh");
    asked.args(["-c", "command -v \"$0\"", word]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// `NAME=value` before a program's name.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::is_there;

    #[test]
    fn a_pager_that_is_not_there_is_noticed() {
        for line in ["cat", "  cat -n", "LC_ALL=C cat", "/bin/sh -c cat", "\"cat\"", "exec cat", "${X:-cat}"] {
            assert!(is_there(line), "{line}");
        }
        for line in ["/nonexistent/pager", "no-such-pager -S", "A=1 no-such-pager", "A=1", ""] {
            assert!(!is_there(line), "{line}");
        }
    }
}
