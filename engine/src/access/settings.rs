//! Which settings are whose to change.
//!
//! ```text
//!   everybody        how his statements are read, shown and answered, and what they may take, up to what the server allows
//!   administrators   all else: what is shared, what is written into tables, how sure the cache is of its files
//! ```
//!
//! Keeps true   no setting lets a user take more memory, time or threads than the server gives to everybody, or puts something into the
//!              cache that others would not have.

use datafusion::config::ConfigOptions;

use super::Rights;
use crate::engine::options;
use crate::settings::{NectarineOptions, query_memory};
use crate::{EngineError, ErrorKind, Result};

/// Names, or with a dot at the end all that begin so, that change how statements are read and shown. Those that are numbers can only be
/// made smaller than they are on the server.
const OF_EVERYBODY: [&str; 12] = [
    "nectarine.reuse",
    "nectarine.float_sums",
    "nectarine.execution",
    "datafusion.catalog.default_schema",
    "datafusion.catalog.information_schema",
    "datafusion.execution.batch_size",
    "datafusion.execution.target_partitions",
    "datafusion.execution.time_zone",
    "datafusion.explain.",
    "datafusion.format.",
    "datafusion.optimizer.",
    "datafusion.sql_parser.",
];

/// Bounds on statements.
const SECONDS: &str = "nectarine.statement_timeout";
const BYTES: &str = "nectarine.query_memory";

/// Fails unless a setting may get that value; `None` for that of the server, which is always allowed. `server` is what sessions start
/// from.
pub(crate) fn check_set(rights: &Rights, name: &str, value: Option<&str>, server: &ConfigOptions) -> Result<()> {
    if name == "nectarine.user_name" && rights.user().is_some() {
        return Err(EngineError::new(ErrorKind::Denied, "the name of a user who logged in does not change"));
    }
    if rights.is_admin() {
        return Ok(());
    }
    let is_bound = name == SECONDS || name == BYTES;
    let is_own = |known: &&str| *known == name || (known.ends_with('.') && name.starts_with(*known));
    if !is_bound && !OF_EVERYBODY.iter().any(is_own) {
        return rights.check_admin(&format!("change {name}, which is not of one session alone"));
    }
    let Some(value) = value else { return Ok(()) };
    let known = server.entries().into_iter().find(|entry| entry.key == name).and_then(|entry| entry.value);
    let known = known.unwrap_or_default();
    let is_less = match name {
        SECONDS => bounded(value.parse().unwrap_or(0)) <= bounded(known.parse().unwrap_or(0)),
        BYTES => {
            let server = options(server);
            let wanted = NectarineOptions { query_memory: value.to_string(), ..server.clone() };
            query_memory(&wanted)?.unwrap_or(usize::MAX) <= query_memory(&server)?.unwrap_or(usize::MAX)
        }
        _ => match (value.parse::<u64>(), known.parse::<u64>()) {
            (Ok(value), Ok(known)) => value <= known,
            (Err(_), Ok(_)) | (Ok(_) | Err(_), Err(_)) => true,
        },
    };
    match is_less {
        true => Ok(()),
        false => Err(EngineError::new(ErrorKind::Denied, format!("permission denied to set {name} to {value}"))
            .with_detail(format!("the server allows {known} at the most"))),
    }
}

/// Of seconds, none is no bound.
fn bounded(limit: u64) -> u64 {
    if limit == 0 { u64::MAX } else { limit }
}
