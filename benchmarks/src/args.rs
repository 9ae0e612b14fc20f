//! What can be asked for on the command line.

mod parts;
mod queries;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use self::parts::{
    AppendArgs, ClicksArgs, DevelopmentArgs, DocumentsArgs, ExtentsArgs, FlightArgs, FloatsArgs, KnownExtentsArgs,
    MergingArgs, PeersArgs, ReportsArgs, SimulateArgs, SkyFormat, SlidingArgs, TpchArgs,
};
use crate::part::Part;

/// How fast Nectarine is, against stock DataFusion in the same process, and over many extents.
#[derive(Debug, Parser)]
#[command(name = "nectarine-benchmarks", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) task: Task,

    /// A page like docs/benchmarks.md whose section is replaced. Without it one part goes to standard output, and `all` to
    /// docs/benchmarks.md.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) page: Option<PathBuf>,

    /// Where generated data is kept and found again; below the system's temporary folder unless given.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) data: Option<PathBuf>,
}

/// What to measure.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Task {
    /// The 22 TPC-H queries, Nectarine and stock DataFusion in turn.
    Tpch(TpchArgs),
    /// The 22 TPC-H queries by DuckDB, stock DataFusion and Nectarine: fresh, again, and after an append.
    Peers(PeersArgs),
    /// Planning, memory and reopening with many extents.
    Extents(ExtentsArgs),
    /// The 22 TPC-H queries again and again: what reuse saves.
    Reuse(TpchArgs),
    /// The 22 TPC-H queries while tables grow: what an append costs.
    Append(AppendArgs),
    /// A window that slides over a click log by a day.
    Sliding(SlidingArgs),
    /// Reports that run by the clock over a table that grows every day.
    Reports(ReportsArgs),
    /// Sums of floats, exact and fast.
    Floats(FloatsArgs),
    /// Exact hits over Flight SQL.
    Flight(FlightArgs),
    /// A click log that grows (Nectar's table 5, DryadInc's figure 6).
    Clicks(ClicksArgs),
    /// How fast states of groups merge.
    Merging(MergingArgs),
    /// Programs that start from what an earlier one left (Nectar's table 4).
    Documents(DocumentsArgs),
    /// A query that is developed step by step, with tries that fail (Nectar's table 6).
    Development(DevelopmentArgs),
    /// Policies and budgets of eviction, on a made-up workload (Nectar's section 4.1) or on what a home ran.
    Simulate(SimulateArgs),
    /// All of them, as in docs/benchmarks.md.
    All {
        /// How much.
        #[arg(long, value_enum, default_value = "full")]
        scale: Size,

        /// Only these parts, separated by commas.
        #[arg(long, value_enum, value_delimiter = ',')]
        only: Vec<Part>,
    },
    /// Opens a home in a process that knows nothing yet, and says what that took.
    #[command(hide = true)]
    KnownExtents(KnownExtentsArgs),
}

/// How much `all` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Size {
    /// A tenth: for a look whether it works.
    Small,
    /// What the targets are about.
    Full,
}

impl Size {
    /// What `all` measures, in the order of the page.
    pub(crate) fn tasks(self) -> Vec<Task> {
        let share = match self {
            Self::Small => 10,
            Self::Full => 1,
        };
        // What takes its time by waiting, not by the size of the data.
        let is_small = self == Self::Small;
        let or = |full: u16, small: u16| if is_small { small } else { full };
        let (peers, append, tpch) = (PeersArgs::default(), AppendArgs::default(), TpchArgs::default());
        let (sliding, floats, clicks) = (SlidingArgs::default(), FloatsArgs::default(), ClicksArgs::default());
        let (documents, development) = (DocumentsArgs::default(), DevelopmentArgs::default());
        let (extents, simulate, flight) = (ExtentsArgs::default(), SimulateArgs::default(), FlightArgs::default());
        let tpch = TpchArgs {
            scale: tpch.scale / f64::from(share),
            seconds: or(tpch.seconds, 1),
            runs: or(tpch.runs, 3),
            ..tpch
        };
        let development = DevelopmentArgs { objects: development.objects / u64::from(share), ..development };
        vec![
            Task::Peers(PeersArgs { scale: peers.scale / f64::from(share), rounds: or(peers.rounds, 3), ..peers }),
            Task::Reuse(tpch.clone()),
            Task::Append(AppendArgs {
                scale: append.scale / f64::from(share),
                rounds: or(append.rounds, 1),
                slices: or(append.slices, 4),
                appends: or(append.appends, 2),
                ..append
            }),
            Task::Sliding(SlidingArgs {
                rows: sliding.rows / share,
                slides: if is_small { 10 } else { sliding.slides },
            }),
            Task::Reports(match is_small {
                true => ReportsArgs { reports: 50, days: 30, ..ReportsArgs::default() },
                false => ReportsArgs::default(),
            }),
            Task::Documents(DocumentsArgs { count: documents.count / share, ..documents }),
            Task::Clicks(ClicksArgs { rows: clicks.rows / share }),
            Task::Development(development.clone()),
            Task::Development(DevelopmentArgs { format: SkyFormat::Parquet, ..development }),
            Task::Tpch(tpch.clone()),
            Task::Tpch(TpchArgs { cold: true, ..tpch }),
            Task::Floats(FloatsArgs { rows: floats.rows / share, ..floats }),
            Task::Merging(MergingArgs::default()),
            Task::Flight(FlightArgs { requests: flight.requests / share, seconds: or(flight.seconds, 3), ..flight }),
            Task::Extents(ExtentsArgs { count: extents.count / share, ..extents }),
            Task::Simulate(SimulateArgs { jobs: simulate.jobs / u64::from(share), ..simulate }),
        ]
    }
}

impl Task {
    /// The section that it fills; none if it is not one of the page's.
    pub(crate) fn part(&self) -> Option<Part> {
        Some(match self {
            Self::Tpch(TpchArgs { control: true, .. }) | Self::All { .. } | Self::KnownExtents(_) => return None,
            Self::Simulate(SimulateArgs { home: Some(_), .. }) => return None,
            Self::Tpch(TpchArgs { cold: true, .. }) => Part::Cold,
            Self::Tpch(_) => Part::Tpch,
            Self::Peers(_) => Part::Peers,
            Self::Reuse(_) => Part::Reuse,
            Self::Append(_) => Part::Append,
            Self::Sliding(_) => Part::Sliding,
            Self::Reports(_) => Part::Reports,
            Self::Documents(_) => Part::Documents,
            Self::Clicks(_) => Part::Clicks,
            Self::Development(DevelopmentArgs { format: SkyFormat::Parquet, .. }) => Part::DevelopmentParquet,
            Self::Development(_) => Part::Development,
            Self::Floats(_) => Part::Floats,
            Self::Merging(_) => Part::Merging,
            Self::Flight(_) => Part::Flight,
            Self::Extents(_) => Part::Extents,
            Self::Simulate(_) => Part::Simulate,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fills_every_section() {
        for size in [Size::Small, Size::Full] {
            let parts: Vec<Option<Part>> = size.tasks().iter().map(Task::part).collect();
            assert_eq!(parts, Part::ALL.map(Some));
        }
        // A part's name on the command line is its name on the page.
        for part in Part::ALL {
            let args = Args::try_parse_from(["x", "all", "--only", part.key()]).unwrap();
            assert!(matches!(args.task, Task::All { only, .. } if only == [part]));
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}
