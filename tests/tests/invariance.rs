//! Reuse never changes an answer; see `nectarine_tests::invariance`.
//!
//! ```text
//!   NECTARINE_SEED=7                       the same statements again; printed by every run
//!   NECTARINE_INVARIANCE=10000             so many generated statements, each in all modes; and as many over tables that change
//!                                          (`tests/run invariance::appended` for those alone), each in six modes; and all of
//!                                          TPC-H (`tests/run invariance::tpch`), twice in all modes
//!   NECTARINE_INVARIANCE_SHOW=1            prints each statement before it runs
//!   NECTARINE_INVARIANCE_SCRIPTS=all       all published scripts, or those whose name holds the word
//! ```

mod appended;
mod generated;
mod kill;
mod scripts;
mod tpch;
mod traps;
