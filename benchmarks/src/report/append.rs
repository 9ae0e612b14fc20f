//! The parts about tables that grow and windows that slide.

use super::{Report, duration, ratio, time, verdict};
use crate::append::{Figures, LINEAR};
use crate::sliding::{self, ENTRIES_MAX, SAVED_PERCENT_MIN};

/// Incremental against the new rows alone, at most.
const ALONE_MAX: f64 = 1.3;
/// Afresh against incremental, at least.
const GAIN_MIN: f64 = 4.0;
/// Incremental against afresh, at most.
const SLOWER_MAX: f64 = 1.05;

impl Report {
    pub(crate) fn append(&mut self, figures: &Figures) {
        let args = &figures.args;
        self.line(&format!("## Tables that grow: TPC-H, scale factor {}", args.scale));
        self.line("");
        self.line("### In ten slices");
        self.line("");
        self.line(
            "After each slice all queries, with reuse on one home that is never reset, and with stock DataFusion on the same files; \
             rows compared each time. The ratio is ours to stock, the median over the slices after the first.",
        );
        for slices in &figures.slices {
            let names: Vec<&str> = slices.growing.iter().map(|table| table.name()).collect();
            let n_same = slices.queries.iter().filter(|query| query.differences.is_empty()).count();
            let n_all = slices.queries.len();
            self.line("");
            self.line(&format!(
                "Growing: {}. The same rows: {n_same} of {n_all} {}.",
                names.join(", "),
                verdict(n_same == n_all)
            ));
            self.line("");
            self.table(
                &["query", "stock", "ours", "ratio", "extents reused at the last slice", "rows"],
                slices.queries.iter().map(|query| {
                    [
                        format!("q{}", query.number),
                        time(query.stock.median()),
                        time(query.ours.median()),
                        ratio(query.ours.paired_ratio(&query.stock)),
                        format!("{} of {}", query.extents.reused, query.extents.total),
                        same(&query.differences),
                    ]
                }),
            );
        }
        self.line("");
        self.line(&format!("### One more file: 1 of {} of lineitem", args.files));
        self.line("");
        let slowest = figures.slowest().unwrap_or((0, f64::NAN));
        self.line(&format!(
            "Median of five appends, in milliseconds. Afresh: without reuse. Alone: without reuse, lineitem being the new file only. \
             Incremental against alone, geometric mean of the queries that are linear in lineitem: {} {}. All queries: {}x faster \
             than afresh {}. Slowest against afresh: q{} {} {}.",
            ratio(figures.against_alone()),
            verdict(figures.against_alone() <= ALONE_MAX),
            ratio(figures.gain()),
            verdict(figures.gain() >= GAIN_MIN),
            slowest.0,
            ratio(slowest.1),
            verdict(slowest.1 <= SLOWER_MAX),
        ));
        self.line("");
        self.table(
            &["query", "linear", "afresh", "incremental", "alone", "to afresh", "to alone", "extents reused", "rows"],
            figures.delta.iter().map(|query| {
                [
                    format!("q{}", query.number),
                    if LINEAR.contains(&query.number) { "yes" } else { "" }.to_string(),
                    time(query.afresh.median()),
                    time(query.incremental.median()),
                    time(query.alone.median()),
                    ratio(query.incremental.median() / query.afresh.median()),
                    ratio(query.incremental.median() / query.alone.median()),
                    format!("{} of {}", query.extents.reused, query.extents.total),
                    same(&query.differences),
                ]
            }),
        );
        self.line("");
    }

    pub(crate) fn sliding(&mut self, figures: &sliding::Figures) {
        self.line("## A window that slides by a day");
        self.line("");
        self.line(&format!(
            "Groups of a click log by page, {} clicks a day (a tenth for the year), one file a day; all days are there from the start. \
             Processor time of the whole process, all windows after the first together, in milliseconds. Targets: \
             {SAVED_PERCENT_MIN} % saved; a window reads {ENTRIES_MAX} entries at most.",
            figures.args.rows
        ));
        self.line("");
        self.table(
            &["window", "slides", "first, off", "first, on", "off", "on", "saved", "", "entries, at most", "", "rows"],
            figures.windows.iter().map(|window| {
                [
                    window.name.to_string(),
                    window.n_slides.to_string(),
                    duration(window.first_off),
                    duration(window.first_on),
                    duration(window.off),
                    duration(window.on),
                    format!("{:.1} %", window.saved_percent()),
                    verdict(window.saved_percent() >= SAVED_PERCENT_MIN),
                    window.entries_max.to_string(),
                    verdict(window.entries_max <= ENTRIES_MAX),
                    same(&window.differences),
                ]
            }),
        );
        self.line("");
    }
}

fn same(differences: &[String]) -> String {
    match differences.first() {
        None => "the same".to_string(),
        Some(first) => format!("DIFFER {} times: {first}", differences.len()),
    }
}
