//! [`cluster_secret`]: where the secret of a cluster comes from: a file or the environment, never the command line, which everybody sees.

use std::path::Path;

use nectarine_executor::Secret;

use crate::{EngineError, ErrorKind, Result};

/// Where it is if there is no file.
const VARIABLE: &str = "NECTARINE_CLUSTER_SECRET";

/// The secret in a file, or in the environment; `None` if it is in neither.
pub fn cluster_secret(file: Option<&Path>) -> Result<Option<Secret>> {
    let wrong = |message: String| EngineError::new(ErrorKind::Configuration, message);
    let (from, text) = match file {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| wrong(format!("cannot read \"{}\"", path.display())).with_source(error))?;
            (format!("\"{}\"", path.display()), text)
        }
        None => match std::env::var(VARIABLE) {
            Ok(text) => (VARIABLE.to_owned(), text),
            Err(std::env::VarError::NotPresent) => return Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => return Err(wrong(format!("{VARIABLE} is not a text"))),
        },
    };
    let told = |reason: String| {
        wrong(format!("the secret in {from} can not be used: {reason}"))
            .with_hint("make one with `openssl rand -hex 32`, the same for the server and its executors")
    };
    Secret::new(&text).map(Some).map_err(told)
}
