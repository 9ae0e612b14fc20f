//! [`Report`]: the figures as Markdown. All of them, whether they please or not.

mod append;
mod clicks;
mod flight;
mod floats;
mod sharing;
mod simulate;

use std::time::Duration;

use crate::extents::{self, BYTES_PER_EXTENT_MAX, PLANNING_MS_MAX, TableFigures};
use crate::machine;
use crate::reuse;
use crate::timing::{Samples, milliseconds};
use crate::tpch::{self, COLD_MEAN_MAX, COLD_RATIO_MAX, Estimate, GEOMETRIC_MEAN_MAX, QueryFigures, RATIO_MAX};

/// Text that grows section by section.
pub(crate) struct Report {
    text: String,
}

impl Report {
    /// Begins with what it ran on.
    pub(crate) fn new() -> Self {
        let mut report = Self { text: String::new() };
        let memory = machine::memory_bytes().map_or_else(|| "unknown".to_string(), gigabytes);
        let build = if cfg!(debug_assertions) { "without optimization: figures mean nothing" } else { "release" };
        report.line("# Benchmarks");
        report.line("");
        report.table(
            &["", ""],
            [
                ["date".to_string(), machine::date()],
                ["processor".to_string(), format!("{}, {} cores", machine::processor(), machine::n_cores())],
                ["memory".to_string(), memory],
                ["system".to_string(), format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)],
                ["Nectarine".to_string(), env!("CARGO_PKG_VERSION").to_string()],
                ["DataFusion".to_string(), datafusion::DATAFUSION_VERSION.to_string()],
                ["build".to_string(), build.to_string()],
            ],
        );
        report
    }

    /// Says how to get these figures again.
    pub(crate) fn made_by(&mut self, arguments: &str) {
        self.line("Made by");
        self.line("");
        self.line(&format!("    cargo run --release -p nectarine-benchmarks -- {arguments} --out docs/benchmarks.md"));
        self.line("");
    }

    pub(crate) fn tpch(&mut self, figures: &tpch::Figures) {
        let args = &figures.args;
        let ours = match (args.control, args.cold) {
            (true, _) => "stock again",
            (false, false) => "Nectarine without reuse",
            (false, true) => "Nectarine with an empty cache",
        };
        let (mean_max, ratio_max) =
            if args.cold { (COLD_MEAN_MAX, COLD_RATIO_MAX) } else { (GEOMETRIC_MEAN_MAX, RATIO_MAX) };
        self.line(&format!("## TPC-H: {ours} against stock DataFusion"));
        self.line("");
        self.line(&format!(
            "Scale {}, {} of Parquet (snappy), {} files per large table, {} partitions, {} memory limit, warm. Both engines \
             run in one process over the same files, in turn, one pair after the other; the order within a pair alternates. \
             Stock DataFusion reads through its `ListingTable`, Nectarine through external tables.",
            args.scale,
            megabytes(figures.data_bytes),
            args.files,
            figures.partitions,
            gigabytes(figures.memory_bytes),
        ));
        self.line("");
        self.line(&format!(
            "Targets: geometric mean of the ratios at most {mean_max}, none above {ratio_max}. The ratio of a query \
             is the median of its pairs' ratios; the other ways to boil the runs down stand beside it. Processor time \
             includes what an engine does just after its answer."
        ));
        self.line("");
        self.table(
            &["ratio by", "geometric mean", "", "worst", ""],
            Estimate::ALL.map(|estimate| {
                let mean = figures.geometric_mean(estimate);
                let (worst, number) = figures.worst(estimate);
                [
                    estimate_words(estimate).to_string(),
                    ratio(mean),
                    verdict(mean <= mean_max),
                    format!("{} (q{number})", ratio(worst)),
                    verdict(worst <= ratio_max),
                ]
            }),
        );
        let differing: Vec<&QueryFigures> = figures.queries.iter().filter(|query| query.difference.is_some()).collect();
        match differing.is_empty() {
            true => self.line("Rows: the same in all queries (in any order, floats up to 1e-9)."),
            false => {
                self.line("Rows DIFFER:");
                self.line("");
                for query in differing {
                    self.line(&format!("- q{}: {}", query.number, query.difference.as_deref().unwrap_or_default()));
                }
            }
        }
        self.line("");
        self.line("Milliseconds; planning is part of the total.");
        self.line("");
        self.table(
            &[
                "query",
                "rows",
                "pairs",
                "stock min",
                "ours min",
                "stock median",
                "ours median",
                "ratio of pairs",
                "of medians",
                "of mins",
                "of processor time",
                "stock planning",
                "ours planning",
            ],
            figures.queries.iter().map(|query| {
                let (stock, ours) = (&query.stock, &query.ours);
                [
                    format!("q{}", query.number),
                    query.n_rows.to_string(),
                    ours.total.len().to_string(),
                    time(stock.total.min()),
                    time(ours.total.min()),
                    time(stock.total.median()),
                    time(ours.total.median()),
                    ratio(Estimate::Paired.of(query)),
                    ratio(Estimate::Medians.of(query)),
                    ratio(Estimate::Mins.of(query)),
                    ratio(Estimate::Cpu.of(query)),
                    time(stock.planning.median()),
                    time(ours.planning.median()),
                ]
            }),
        );
    }

    pub(crate) fn reuse(&mut self, figures: &reuse::Figures) {
        self.line(&format!("## What reuse saves: TPC-H, scale factor {}", figures.scale));
        self.line("");
        self.line(
            "Cold is the fastest of three runs with an empty cache; exact is the same text again (median of 51, in process); other \
             spelling is the same query with another text, which is planned and then found; other top is the query under another \
             ORDER BY and LIMIT. Targets: exact hits at least 100x at the geometric mean, and 1 ms.",
        );
        self.line("");
        let slowest = figures.queries.iter().map(|query| query.exact.median()).fold(0.0, f64::max);
        self.line(&format!(
            "Exact hits: {:.0}x at the geometric mean {}; slowest median {} ms {}. Other top: {:.0}x {}.",
            figures.exact_gain(),
            verdict(figures.exact_gain() >= 100.0),
            time(slowest),
            verdict(slowest <= 1.0),
            figures.top_gain(),
            verdict(figures.top_gain() >= 10.0),
        ));
        self.line("");
        self.table(
            &["query", "rows", "cold", "exact p50", "exact p95", "gain", "other spelling p50", "other top", "gain"],
            figures.queries.iter().map(|query| {
                [
                    format!("q{}", query.number),
                    query.n_rows.to_string(),
                    time(query.cold.min()),
                    format!("{:.3}", query.exact.median()),
                    format!("{:.3}", query.exact.percentile(95)),
                    format!("{:.0}x", query.exact_gain()),
                    time(query.spelling.median()),
                    time(query.top.min()),
                    format!("{:.0}x", query.top_gain()),
                ]
            }),
        );
    }

    pub(crate) fn extents(&mut self, figures: &extents::Figures) {
        self.line(&format!("## {} extents", figures.external.n_extents));
        self.line("");
        self.line(&format!(
            "Parquet files with {} columns of mixed types and a few rows each. Planning over known extents opens no file; for \
             the external table it does list the folder and look at each file's attributes, because a file may have come or \
             changed since. Target: at most {PLANNING_MS_MAX} ms.",
            figures.columns
        ));
        self.line("");
        self.line(
            "*One* is a query whose filter leaves a single extent, *all* one that needs every extent. EXPLAIN is timed from \
             text to rows; planning is what `system.queries.planning_ms` says of a query that was run. Milliseconds.",
        );
        self.line("");
        let tables = [("external", Some(&figures.external)), ("managed", figures.managed.as_ref())];
        let tables: Vec<(&str, &TableFigures)> =
            tables.into_iter().filter_map(|(kind, table)| Some((kind, table?))).collect();
        let mut rows = vec![];
        for (kind, table) in &tables {
            let mut row = |what: &str, samples: &Samples, is_planning: bool| {
                let (p50, p95) = (samples.percentile(50), samples.percentile(95));
                let judged = |time: f64| if is_planning { verdict(time <= PLANNING_MS_MAX) } else { String::new() };
                rows.push([
                    format!("{kind}, {} extents", table.n_extents),
                    what.to_string(),
                    samples.len().to_string(),
                    time(samples.min()),
                    time(p50),
                    judged(p50),
                    time(p95),
                    judged(p95),
                ]);
            };
            row("planning, one", &table.planning_one, true);
            row("EXPLAIN, one", &table.explain_one, true);
            row("EXPLAIN, all", &table.explain_all, true);
            row("query, one", &table.query_one, false);
        }
        self.table(&["table", "what", "times", "min", "p50", "", "p95", ""], rows);

        self.line(&format!(
            "Memory: what a new process on the same home grows by when a query plans over the known extents for the first \
             time, after the same query over ten extents, divided by their number; resident is the operating system's \
             figure (with SQLite's share), live is what Rust code holds. \
             Target: at most {BYTES_PER_EXTENT_MAX:.0} bytes."
        ));
        self.line("");
        self.table(
            &["table", "resident bytes per extent", "", "live bytes per extent", ""],
            tables.iter().map(|(kind, table)| {
                let per_extent = |bytes: i64| bytes as f64 / f64::from(table.n_extents);
                let (resident, live) =
                    (per_extent(table.reopened.resident_bytes), per_extent(table.reopened.live_bytes));
                [
                    (*kind).to_string(),
                    format!("{resident:.0}"),
                    verdict(resident <= BYTES_PER_EXTENT_MAX),
                    format!("{live:.0}"),
                    verdict(live <= BYTES_PER_EXTENT_MAX),
                ]
            }),
        );

        self.line("Learning and opening again, once each, in milliseconds. Reopening happens in a new process.");
        self.line("");
        self.table(
            &[
                "table",
                "made (CREATE or INSERT)",
                "first query over all",
                "reopen home",
                "first statement (SELECT 1)",
                "first query, one",
                "the same again",
            ],
            tables.iter().map(|(kind, table)| {
                let reopened = &table.reopened;
                let times = [
                    table.made,
                    table.first_query,
                    reopened.open,
                    reopened.first_statement,
                    reopened.first_query,
                    reopened.second_query,
                ];
                let times = times.map(duration);
                let [made, first, open, statement, one, again] = times;
                [(*kind).to_string(), made, first, open, statement, one, again]
            }),
        );
    }

    pub(crate) fn into_text(self) -> String {
        format!("{}\n", self.text.trim_end())
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// First column to the left, the others to the right where they are numbers: as Markdown wants it, `-:`.
    fn table<const N: usize>(&mut self, head: &[&str; N], rows: impl IntoIterator<Item = [String; N]>) {
        self.rows(head, rows.into_iter().map(Vec::from));
    }

    /// A table of as many columns as its head has.
    fn rows(&mut self, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        let rows: Vec<Vec<String>> = rows.into_iter().collect();
        let begins_with_digit = |cell: &String| cell.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let is_number =
            |column: usize| !rows.is_empty() && rows.iter().all(|row| row.get(column).is_some_and(begins_with_digit));
        let rule: Vec<&str> =
            (0..head.len()).map(|column| if column > 0 && is_number(column) { "--:" } else { "---" }).collect();
        self.line(&format!("| {} |", head.join(" | ")));
        self.line(&format!("|{}|", rule.join("|")));
        for row in &rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
        self.line("");
    }
}

fn estimate_words(estimate: Estimate) -> &'static str {
    match estimate {
        Estimate::Paired => "**median of the pairs' ratios**",
        Estimate::Medians => "ratio of medians",
        Estimate::Mins => "ratio of minima",
        Estimate::Cpu => "ratio of processor time",
    }
}

fn verdict(holds: bool) -> String {
    if holds { "PASS" } else { "FAIL" }.to_string()
}

fn ratio(value: f64) -> String {
    format!("{value:.3}")
}

fn time(milliseconds: f64) -> String {
    let digits = if milliseconds < 10.0 { 2 } else { 1 };
    format!("{milliseconds:.digits$}")
}

fn duration(time_taken: Duration) -> String {
    time(milliseconds(time_taken))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
