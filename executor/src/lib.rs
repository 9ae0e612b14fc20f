//! How it runs: marker nodes become operators, files become rows and rows become files.
//!
//! ```text
//!   lower         the physical rule that turns marker nodes into operators and stock scans
//!   operator      our own operators: AddEntry and CacheRead
//!   derived       the derived store: parts, recordings
//!   scan          one extent scan as DataFusion's own file scans
//!   bundle        thousands of files as one while a plan is made
//!   rewrite_scans the file scans of a plan, changed where nothing above can tell
//!   footers       what Parquet files tell of themselves, without the bounds of floats
//!   padded        what is not true above outer joins, grouping sets, unions; keys that a projection misplaces
//!   null_text     text of CSV files that stands for NULL
//!   null_counts   how many NULLs a Parquet file tells of, and what it leaves open
//!   nullable      NOT NULL columns of files under nullable columns of tables
//!   named_source  what goes wrong in a file is told with the file's name
//!   text_file     CSV and JSON files into rows, losing nothing without a word
//!   counting_store counts the bytes that readers ask for
//!   format        reader options and schema inference per file format
//!   csv_text      rows as CSV, in which NULL is not an empty text
//!   csv_files     CSV files, written that way
//!   arrow_file    Arrow files and streams into rows, by name; their lengths, before anyone believes them
//!   describe      what a new file says of itself: rows and statistics
//!   write         rows into an immutable, fingerprinted extent
//!   exact_sum     sums of floats that do not depend on the order of rows
//!   stoppable     joins that end when nobody waits for them
//!   backend       where a plan runs: here, or on a cluster
//!   cluster       plans as stages on other machines
//!   sink          where INSERT ends: all extents of a statement appear at once, or none
//! ```

mod arrow_file;
mod backend;
mod bundle;
mod cluster;
mod counting_store;
mod csv_files;
mod csv_text;
mod derived;
mod describe;
mod error;
mod exact_sum;
mod footers;
mod format;
mod lower;
mod named_source;
mod null_counts;
mod null_text;
mod nullable;
mod operator;
mod padded;
mod rewrite_scans;
mod scan;
mod sink;
mod stoppable;
mod text_file;
mod write;

pub use backend::{Backend, LocalBackend, Placed, either};
pub use bundle::{ScanTotals, UnbundleFiles, file_scan};
pub use cluster::{
    AnalyzeBackend, Cluster, ClusterBackend, ClusterError, ClusterOptions, Counts, ExecutorOptions, GaveUp, JobSummary,
    MemberSummary, Secret, StageShape, StageSummary, Stays, may_travel, planning_options, run_executor, stage_shapes,
    stays_behind, tell_files,
};
pub use csv_files::CsvFilesFactory;
pub use csv_text::CsvText;
pub use derived::{
    DerivedError, DerivedStore, Finished, Found, FoundKind, LoadedEntry, NotRecorded, Recording, RecordingLimits,
    Removed, Reserved, Room, Section, StoredObject, Unpublished, Writer,
};
pub use describe::{FileDescriber, check_csv_header};
pub use error::{ExecutorError, Result};
pub use exact_sum::exact_aggregates;
pub use format::{compression_of, file_format, infer_schema, is_compression, parquet_compression, reader_options};
pub use lower::{LowerExtentScans, Lowering, StatementLowering};
pub use named_source::NameScannedFiles;
pub use null_text::is_null_text;
pub use operator::{AddEntryOperator, CacheReadOperator, EntryFault, Work, prepare_cache_reads, work_of};
pub use padded::{ForgetKeys, ForgetPadded, ForgetUneven};
pub use sink::{Commit, ExtentSink, refuse_nulls, with_nulls};
pub use stoppable::{Interrupt, Stoppable};
pub use text_file::is_json_array;
pub use write::{ExtentWriter, WriteTarget};
