//! The parts about TPC-H in one process: without reuse, with an empty cache, and again and again.

use super::{Report, gigabytes, megabytes, ratio, spread, time, verdict};
use crate::chart::{Chart, Scale, Series};
use crate::reuse;
use crate::tpch::{self, COLD_MEAN_MAX, COLD_RATIO_MAX, Estimate, GEOMETRIC_MEAN_MAX, QueryFigures, RATIO_MAX};

/// What changes at the top of a query gain at least, at the geometric mean.
const CHANGED_GAIN_MIN: f64 = 10.0;

impl Report {
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
        self.chart(
            "",
            &Chart {
                title: format!("TPC-H: {ours} against stock DataFusion"),
                unit: "ms, median",
                scale: Scale::Linear,
                groups: figures.queries.iter().map(|query| format!("q{}", query.number)).collect(),
                series: vec![
                    Series::new(ours, figures.queries.iter().map(|query| query.ours.total.median())),
                    Series::new("stock DataFusion", figures.queries.iter().map(|query| query.stock.total.median())),
                ],
            },
        );
        self.line("Milliseconds; planning is part of the total. Spread is the distance of the quartiles, in percent of the median.");
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
                "stock spread",
                "ours spread",
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
                    spread(&stock.total),
                    spread(&ours.total),
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
             ORDER BY and LIMIT; other list and other having are the text itself with half of its SELECT list (and without ORDER BY \
             and LIMIT), or with one more condition on one of its aggregates. Of each, the first change that was asked for. Targets: \
             exact hits at least 100x at the geometric mean, and 1 ms; changes at least 10x.",
        );
        self.line("");
        let slowest = figures.queries.iter().map(|query| query.exact.median()).fold(0.0, f64::max);
        self.chart(
            "",
            &Chart {
                title: format!("TPC-H, scale {}: cold, with another top, and again", figures.scale),
                unit: "ms, each line ten times the one below",
                scale: Scale::Log,
                groups: figures.queries.iter().map(|query| format!("q{}", query.number)).collect(),
                series: vec![
                    Series::new("exact hit", figures.queries.iter().map(|query| query.exact.median())),
                    Series::new("other top", figures.queries.iter().map(|query| query.top.first())),
                    Series::new("cold", figures.queries.iter().map(|query| query.cold.min())),
                ],
            },
        );
        self.line(&format!(
            "Exact hits: {:.0}x at the geometric mean {}; slowest median {} ms {}. Other top: {:.0}x {}. Other SELECT list: \
             {:.0}x {}. Other HAVING: {:.0}x {}.",
            figures.exact_gain(),
            verdict(figures.exact_gain() >= 100.0),
            time(slowest),
            verdict(slowest <= 1.0),
            figures.gain(|query| &query.top),
            verdict(figures.gain(|query| &query.top) >= CHANGED_GAIN_MIN),
            figures.gain(|query| &query.list),
            verdict(figures.gain(|query| &query.list) >= CHANGED_GAIN_MIN),
            figures.gain(|query| &query.having),
            verdict(figures.gain(|query| &query.having) >= CHANGED_GAIN_MIN),
        ));
        self.line("");
        self.table(
            &[
                "query",
                "rows",
                "cold",
                "exact p50",
                "exact p95",
                "gain",
                "other spelling p50",
                "other top",
                "gain",
                "other list",
                "gain",
                "other having",
                "gain",
            ],
            figures.queries.iter().map(|query| {
                [
                    format!("q{}", query.number),
                    query.n_rows.to_string(),
                    time(query.cold.min()),
                    format!("{:.3}", query.exact.median()),
                    format!("{:.3}", query.exact.percentile(95)),
                    format!("{:.0}x", query.exact_gain()),
                    time(query.spelling.median()),
                    time(query.top.first()),
                    gain(query.gain(&query.top)),
                    time(query.list.first()),
                    gain(query.gain(&query.list)),
                    if query.having.len() > 0 { time(query.having.first()) } else { String::new() },
                    gain(query.gain(&query.having)),
                ]
            }),
        );
    }
}

/// Nothing where there was nothing to change.
fn gain(gain: Option<f64>) -> String {
    gain.map_or_else(String::new, |gain| format!("{gain:.0}x"))
}

fn estimate_words(estimate: Estimate) -> &'static str {
    match estimate {
        Estimate::Paired => "**median of the pairs' ratios**",
        Estimate::Medians => "ratio of medians",
        Estimate::Mins => "ratio of minima",
        Estimate::Cpu => "ratio of processor time",
    }
}
