//! [`Part`]: what `all` measures, in the order of the page. Each has a section of its own.

use clap::ValueEnum;

/// One section of docs/benchmarks.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Peers,
    Reuse,
    Append,
    Sliding,
    Reports,
    Documents,
    Clicks,
    Development,
    DevelopmentParquet,
    Tpch,
    Cold,
    Floats,
    Merging,
    Flight,
    Extents,
    Simulate,
}

impl Part {
    /// What people want to know first comes first.
    pub(crate) const ALL: [Self; 16] = [
        Self::Peers,
        Self::Reuse,
        Self::Append,
        Self::Sliding,
        Self::Reports,
        Self::Documents,
        Self::Clicks,
        Self::Development,
        Self::DevelopmentParquet,
        Self::Tpch,
        Self::Cold,
        Self::Floats,
        Self::Merging,
        Self::Flight,
        Self::Extents,
        Self::Simulate,
    ];

    /// Its name on the page, in the names of its pictures and on the command line.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Peers => "peers",
            Self::Reuse => "reuse",
            Self::Append => "append",
            Self::Sliding => "sliding",
            Self::Reports => "reports",
            Self::Documents => "documents",
            Self::Clicks => "clicks",
            Self::Development => "development",
            Self::DevelopmentParquet => "development-parquet",
            Self::Tpch => "tpch",
            Self::Cold => "cold",
            Self::Floats => "floats",
            Self::Merging => "merging",
            Self::Flight => "flight",
            Self::Extents => "extents",
            Self::Simulate => "simulate",
        }
    }
}
