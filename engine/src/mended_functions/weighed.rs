//! [`Weighed`]: a call whose values would be too large fails before they are made.
//!
//! `repeat('x', 2000000000)` is two gigabytes in a line of text. Values of functions are nobody's reservation: no bound on memory
//! knows of them, and those of constants are computed while planning.
//!
//! Cost         two lengths per row; nothing else for what stays small.

use datafusion::common::{Result, exec_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::ScalarFunctionArgs;

use super::growth::Growth;
use crate::engine::options;
use crate::machine;
use crate::settings::{parse_size, query_memory};

/// The most that one value may have.
const VALUE_BYTES_MAX: u64 = 256 << 20;

/// The most that the values of one batch may have together, if memory is not less.
const BATCH_BYTES_MAX: u64 = 1 << 30;

/// What is smaller is not weighed against settings.
pub(super) const SMALL_BYTES: u128 = 16 << 20;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Weighed(pub(super) Growth);

impl Weighed {
    /// Fails if the values of this call of `name` would be too large.
    pub(super) fn check(self, name: &str, args: &ScalarFunctionArgs) -> Result<()> {
        let (largest, total) = self.0.weigh(&args.args, args.number_rows)?;
        if total <= SMALL_BYTES {
            return Ok(());
        }
        let memory = memory_bytes(&args.config_options);
        let (value_max, batch_max) = (VALUE_BYTES_MAX.min(memory / 4), BATCH_BYTES_MAX.min(memory));
        if largest > u128::from(value_max) {
            return exec_err!("{name}() would make a value of {largest} bytes, and {value_max} are allowed");
        }
        if total > u128::from(batch_max) {
            return exec_err!(
                "{name}() would make {total} bytes for {} rows, and {batch_max} are allowed: a smaller \
                 datafusion.execution.batch_size makes it fewer rows at a time",
                args.number_rows
            );
        }
        Ok(())
    }
}

/// What a statement may use.
fn memory_bytes(config: &ConfigOptions) -> u64 {
    let ours = options(config);
    match query_memory(&ours) {
        Ok(Some(bytes)) => bytes as u64,
        _ => parse_size("nectarine.memory_limit", &ours.memory_limit, machine::memory_bytes()).unwrap_or(u64::MAX),
    }
}
