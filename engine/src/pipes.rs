//! [`Pipes`]: what `STDIN` and `STDOUT` in a COPY lead to.

use std::path::PathBuf;

use nectarine_planner::sql::{self, ParseOptions, STANDARD_INPUT, Statement};
use tokio::sync::mpsc;

use crate::{EngineError, ErrorKind};

/// What a client reads from and writes to besides rows; nothing, unless it says so.
#[derive(Clone, Debug, Default)]
pub struct Pipes {
    /// A file that holds what was given to `COPY .. FROM STDIN`.
    pub input: Option<PathBuf>,
    /// Where the bytes of `COPY .. TO STDOUT` go.
    pub output: Option<mpsc::Sender<Vec<u8>>>,
}

/// Whether a statement needs [`Pipes::input`].
pub fn reads_standard_input(sql: &str) -> bool {
    // Most statements need no second look.
    if !sql.to_ascii_lowercase().contains("stdin") {
        return false;
    }
    match sql::parse(sql, &ParseOptions::default()) {
        Ok(Some(Statement::CopyFrom(copy))) => copy.source == STANDARD_INPUT,
        _ => false,
    }
}

/// For clients that have none.
pub(crate) fn no_pipe(name: &str) -> EngineError {
    let hint = match name {
        "STDOUT" => "run the query itself; the shell on a home has a standard output, and so has its \\copy",
        _ => "use INSERT or COPY .. FROM 'file'; the shell on a home has a standard input, and so has its \\copy",
    };
    EngineError::new(ErrorKind::Unsupported, format!("this client has no {name} for COPY")).with_hint(hint)
}
