//! What each part can be told: its sizes, how often, which queries.

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;

use super::queries::QuerySet;
use crate::simulate::JOBS;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PeersArgs {
    /// TPC-H scale factor; 1 is about 1 GB of text.
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    pub(crate) scale: f64,

    /// How often each query is asked for, fresh and again.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rounds: u16,

    /// How often 1 % is appended.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=10))]
    pub(crate) appends: u16,

    /// Which queries, such as 1,3,7..10,18..
    #[arg(long, default_value = "1..")]
    pub(crate) queries: QuerySet,

    /// Threads of each engine; the number of cores unless given.
    #[arg(long)]
    pub(crate) threads: Option<usize>,
}

impl Default for PeersArgs {
    fn default() -> Self {
        Self { scale: 1.0, rounds: 5, appends: 3, queries: QuerySet::all(), threads: None }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TpchArgs {
    /// TPC-H scale factor; 1 is about 1 GB of text.
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    pub(crate) scale: f64,

    /// Parquet files per large table.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) files: u16,

    /// Pairs of runs per query at least; short queries get more.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) runs: u16,

    /// Seconds for the pairs of a query, if that makes more.
    #[arg(long, default_value_t = 9)]
    pub(crate) seconds: u16,

    /// Which queries, such as 1,3,7..10,18..
    #[arg(long, default_value = "1..")]
    pub(crate) queries: QuerySet,

    /// Partitions that both engines plan for; the number of cores unless given.
    #[arg(long)]
    pub(crate) partitions: Option<usize>,

    /// Measures stock DataFusion against itself: the noise of this machine.
    #[arg(long)]
    pub(crate) control: bool,

    /// Runs Nectarine with reuse on, and forgets everything before each run: what keeping results costs.
    #[arg(long)]
    pub(crate) cold: bool,
}

impl Default for TpchArgs {
    fn default() -> Self {
        Self {
            scale: 1.0,
            files: 8,
            runs: 5,
            seconds: 9,
            queries: QuerySet::all(),
            partitions: None,
            control: false,
            cold: false,
        }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AppendArgs {
    /// TPC-H scale factor; 1 is about 1 GB of text.
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    pub(crate) scale: f64,

    /// Files of lineitem where one more is added.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(6..))]
    pub(crate) files: u16,

    /// Slices that tables arrive in, of ten.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(2..=10))]
    pub(crate) slices: u16,

    /// How often one more file is added.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=5))]
    pub(crate) appends: u16,

    /// How often each size of a delta is appended, each time on a new home.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rounds: u16,

    /// Which queries, such as 1,3,7..10,18..
    #[arg(long, default_value = "1..")]
    pub(crate) queries: QuerySet,
}

impl Default for AppendArgs {
    fn default() -> Self {
        Self { scale: 1.0, files: 100, slices: 10, appends: 5, rounds: 3, queries: QuerySet::all() }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SlidingArgs {
    /// Clicks in a day; a tenth of it where the window is a year.
    #[arg(long, default_value_t = 8_000_000, value_parser = clap::value_parser!(u32).range(240..))]
    pub(crate) rows: u32,

    /// How often the window moves on.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) slides: u32,
}

impl Default for SlidingArgs {
    fn default() -> Self {
        Self { rows: 8_000_000, slides: 60 }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReportsArgs {
    /// How many reports.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=5_000))]
    pub(crate) reports: u32,

    /// Days that pass.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) days: u32,

    /// Rows that arrive each day.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) rows: u32,
}

impl Default for ReportsArgs {
    fn default() -> Self {
        Self { reports: 500, days: 90, rows: 20_000 }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClicksArgs {
    /// Rows of the log in the end.
    #[arg(long, default_value_t = 40_000_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    pub(crate) rows: u32,
}

impl Default for ClicksArgs {
    fn default() -> Self {
        Self { rows: 40_000_000 }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MergingArgs {
    /// How many groups.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(i64).range(1..100_000_000))]
    pub(crate) groups: i64,

    /// How often they are merged.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) runs: u16,
}

impl Default for MergingArgs {
    fn default() -> Self {
        Self { groups: 1_000_000, runs: 5 }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FloatsArgs {
    /// Lines of orders.
    #[arg(long, default_value_t = 6_000_000, value_parser = clap::value_parser!(u32).range(100..))]
    pub(crate) rows: u32,

    /// Pairs of runs per query.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) runs: u16,
}

impl Default for FloatsArgs {
    fn default() -> Self {
        Self { rows: 6_000_000, runs: 15 }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FlightArgs {
    /// Statements of one client, one after the other.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) requests: u32,

    /// Clients at once.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) clients: u16,

    /// How long they go on.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) seconds: u16,
}

impl Default for FlightArgs {
    fn default() -> Self {
        Self { requests: 5_000, clients: 8, seconds: 10 }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ExtentsArgs {
    /// Extents of the external table.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,

    /// Columns of the table.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..))]
    pub(crate) columns: u16,

    /// Extents of the managed table; as many as the external one has unless given, 0 for none.
    #[arg(long)]
    pub(crate) managed: Option<u32>,

    /// How often each statement is planned.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) plans: u32,
}

impl Default for ExtentsArgs {
    fn default() -> Self {
        Self { count: 10_000, columns: 16, managed: None, plans: 60 }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DocumentsArgs {
    /// How many documents.
    #[arg(long, default_value_t = 60_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,

    /// Words in a document, about.
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..1_000_000))]
    pub(crate) words: u32,

    /// Parquet files that they are kept in.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) files: u16,

    /// How often everything is done, each time on a new home.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rounds: u16,
}

impl Default for DocumentsArgs {
    fn default() -> Self {
        Self { count: 60_000, words: 250, files: 8, rounds: 3 }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DevelopmentArgs {
    /// What the files are.
    #[arg(long, value_enum, default_value = "csv")]
    pub(crate) format: SkyFormat,

    /// Objects in the sky; each has about eight neighbours.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..1_000_000_000))]
    pub(crate) objects: u64,

    /// Files of each table. The last but one has objects without a magnitude, which some tries stumble over.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..))]
    pub(crate) files: u16,
}

/// What the files of the sky are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SkyFormat {
    /// Text, as the survey hands it out.
    Csv,
    /// What someone made of it who will ask often.
    Parquet,
}

impl SkyFormat {
    /// As CREATE EXTERNAL TABLE wants it.
    pub(crate) fn stored(self) -> &'static str {
        match self {
            Self::Csv => "CSV OPTIONS (has_header 'true')",
            Self::Parquet => "PARQUET",
        }
    }
}

impl fmt::Display for SkyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        })
    }
}

impl Default for DevelopmentArgs {
    fn default() -> Self {
        Self { format: SkyFormat::Csv, objects: 1_000_000, files: 8 }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// Jobs of the made-up workload.
    #[arg(long, default_value_t = JOBS, value_parser = clap::value_parser!(u64).range(100..10_000_000))]
    pub(crate) jobs: u64,

    /// What the made-up workload is made from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Replays what this home ran instead.
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

impl Default for SimulateArgs {
    fn default() -> Self {
        Self { jobs: JOBS, seed: 1, home: None }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct KnownExtentsArgs {
    #[arg(long)]
    pub(crate) home: PathBuf,
    /// The same query over a table of few extents.
    #[arg(long)]
    pub(crate) few: String,
    #[arg(long)]
    pub(crate) sql: String,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 1000.0 => Ok(scale),
        _ => Err("a scale is a number above 0, up to 1000".to_string()),
    }
}
