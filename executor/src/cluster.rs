//! Plans that run as stages on other machines: Ballista's scheduler in the server, its executors in processes of their own.
//!
//! ```text
//!   travel      may a plan leave this process? what is not known to arrive whole stays
//!   told        which files the server saw, for those who will read them
//!   codec       how our functions travel
//!   functions   what an executor knows
//!   options     settings that plans are made and sent with
//!   server      the scheduler, and who is there
//!   door        what the port of the scheduler answers
//!   secret      to whom
//!   rows_port   where executors fetch rows from each other
//!   slots       cores that Ballista forgets to give back
//!   job         one try: send, watch, cancel
//!   graph       what a job did, and where its rows are
//!   judge       whether they can be believed
//!   spool       rows of a job that are all here before the first is given out
//!   run         tries, and what becomes of them
//!   analyze     EXPLAIN ANALYZE: the stages in place of the rows
//!   executor    the process that computes
//!   restore     what a plan loses on its way is put back
//!   check       a task that reads other files than the server saw fails
//! ```
//!
//! Keeps true   rows are given out only when all of them are here and the job that made them is known to have run each of its
//!              tasks once: Ballista 55 doubles rows when it recovers from a loss in the middle of a job.
//!              A job that fails, hangs or looks wrong is run again, and in the end left to this process.

mod analyze;
mod check;
mod codec;
mod door;
mod executor;
mod functions;
mod graph;
mod job;
mod judge;
mod options;
mod restore;
mod rows_port;
mod run;
mod secret;
mod server;
mod slots;
mod spool;
mod told;
mod travel;

pub use self::analyze::AnalyzeBackend;
pub use self::executor::{ExecutorOptions, run_executor};
pub use self::graph::{StageShape, stage_shapes};
pub use self::job::Counts;
pub use self::options::{planning_options, stays_behind};
pub use self::run::{ClusterBackend, GaveUp};
pub use self::secret::Secret;
pub use self::server::{Cluster, ClusterError, ClusterOptions, JobSummary, MemberSummary, StageSummary};
pub use self::told::tell_files;
pub use self::travel::{Stays, may_travel};
