//! [`Terminal`]: what the three standard streams are connected to, and how messages to people look.
//!
//! Rows go to stdout through `output.rs`; everything said here goes to stderr. Colours appear only on a terminal and never
//! when `NO_COLOR` is set.

#[cfg(unix)]
mod modes;

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

/// Which streams are terminals, and whether to colour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Someone types.
    pub(crate) stdin: bool,
    /// Someone reads the rows.
    pub(crate) stdout: bool,
    /// Someone reads the messages.
    pub(crate) stderr: bool,
    color: bool,
}

/// How a piece of text stands out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Paint {
    Error,
    Notice,
    Hint,
    Keyword,
    Text,
    Number,
    Comment,
    Command,
    Strong,
    Faint,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Self::Error => "1;31",
            Self::Notice => "33",
            Self::Hint => "36",
            Self::Keyword => "1;34",
            Self::Text => "32",
            Self::Number => "35",
            Self::Comment | Self::Faint => "2",
            Self::Command => "33",
            Self::Strong => "1",
        }
    }

    /// The text between this paint's escape sequences.
    pub(crate) fn on(self, text: &str) -> String {
        format!("\x1b[{}m{text}\x1b[0m", self.code())
    }
}

impl Terminal {
    /// Looks at the process's streams and environment.
    pub(crate) fn detect() -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        #[cfg(unix)]
        modes::remember();
        Self {
            stdin: std::io::stdin().is_terminal(),
            stdout: std::io::stdout().is_terminal(),
            stderr: std::io::stderr().is_terminal(),
            color: !no_color && !dumb,
        }
    }

    /// Whether messages on stderr are coloured.
    pub(crate) fn colors_messages(&self) -> bool {
        self.color && self.stderr
    }

    /// Whether what is printed on stdout may be coloured.
    pub(crate) fn colors_rows(&self) -> bool {
        self.color && self.stdout
    }

    /// Whether a line on stderr can be drawn again and again.
    pub(crate) fn draws(&self) -> bool {
        self.stderr && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// One line to stderr. A reader who went away is no reason to stop.
    pub(crate) fn say(&self, line: &str) {
        let mut stderr = std::io::stderr().lock();
        let _ = writeln!(stderr, "{line}");
    }

    /// `text` painted if messages are coloured.
    pub(crate) fn paint<'t>(&self, paint: Paint, text: &'t str) -> Cow<'t, str> {
        if self.colors_messages() { Cow::Owned(paint.on(text)) } else { Cow::Borrowed(text) }
    }

    /// Undoes what other programs have done to the keyboard: lines are echoed and edited, Ctrl-C is a signal.
    pub(crate) fn restore_modes(&self) {
        #[cfg(unix)]
        if self.stdin {
            modes::restore();
        }
    }

    /// Columns and lines of the window, where it is known.
    pub(crate) fn size(&self) -> Option<(usize, usize)> {
        window_size().or_else(|| {
            let number = |name| std::env::var(name).ok()?.parse::<usize>().ok().filter(|n| *n > 0);
            Some((number("COLUMNS")?, number("LINES").unwrap_or(24)))
        })
    }
}

#[cfg(unix)]
fn window_size() -> Option<(usize, usize)> {
    for descriptor in [libc::STDOUT_FILENO, libc::STDERR_FILENO, libc::STDIN_FILENO] {
        let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: TIOCGWINSZ fills the winsize that the pointer names and keeps nothing.
        let answer = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, &raw mut size) };
        if answer == 0 && size.ws_col > 0 && size.ws_row > 0 {
            return Some((usize::from(size.ws_col), usize::from(size.ws_row)));
        }
    }
    None
}

#[cfg(not(unix))]
fn window_size() -> Option<(usize, usize)> {
    None
}
