//! What DataFusion itself answers wrongly: random statements, asked of the real binary and of DuckDB, over tables that grow. Stock
//! DataFusion, with which the invariance harness compares, cannot tell. `tests/clients/other_engine.py` does it, and says what is not asked.
//!
//! ```text
//!   NECTARINE_SEED=7                       the same statements again; printed by every run
//!   NECTARINE_OTHER_ENGINE=5000            so many statements
//! ```
#![expect(clippy::print_stdout, reason = "a seed that nobody saw can not be tried again")]

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use nectarine_tests::flight::python;
use nectarine_tests::invariance::seed;
use nectarine_tests::program::{binary, clean};
use nectarine_tests::watchdog::watch;

/// Statements in everyday runs.
const STATEMENTS: usize = 120;

fn statements() -> usize {
    std::env::var("NECTARINE_OTHER_ENGINE").ok().and_then(|count| count.parse().ok()).unwrap_or(STATEMENTS)
}

/// A Python with DuckDB; without one, the tests are left out and say so.
#[expect(clippy::print_stderr, reason = "whoever runs the tests should know what was not tested")]
fn python_with_duckdb() -> Option<OsString> {
    let python = python()?;
    let ran = Command::new(&python).args(["-c", "import duckdb, pyarrow.parquet"]).output();
    if ran.is_ok_and(|ran| ran.status.success()) {
        return Some(python);
    }
    assert!(std::env::var_os("CI").is_none(), "NECTARINE_TEST_PYTHON has no DuckDB: tests/run installs it");
    eprintln!("left out: NECTARINE_TEST_PYTHON names no Python with DuckDB; tests/run installs it");
    None
}

fn compare(seed: u64) {
    let Some(python) = python_with_duckdb() else { return };
    watch();
    println!("NECTARINE_SEED={seed}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/other_engine.py")).arg(binary());
    command.arg(folder.path()).args([seed.to_string(), statements().to_string()]);
    clean(&mut command);
    let ran = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let told = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    println!("{told}");
    assert!(ran.status.success(), "the two engines differ; NECTARINE_SEED={seed} asks the same again");
}

#[test]
fn the_same_statements_each_time() {
    compare(1);
}

#[test]
fn other_statements_each_time() {
    compare(seed());
}
