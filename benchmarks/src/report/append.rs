//! The parts about tables that grow and windows that slide.

use super::{Report, duration, ratio, time, verdict};
use crate::append::{Figures, LINEAR, growth};
use crate::chart::{Chart, Scale, Series};
use crate::sliding::{self, ENTRIES_MAX, SAVED_PERCENT_MIN};

/// Incremental against the new rows alone, at most.
const ALONE_MAX: f64 = 1.3;
/// Afresh against incremental, at least.
const GAIN_MIN: f64 = 4.0;
/// Incremental against afresh, at most.
const SLOWER_MAX: f64 = 1.05;
/// The same append on a base that is 25 times as large, at most.
const GROWTH_MAX: f64 = 1.1;

impl Report {
    pub(crate) fn append(&mut self, figures: &Figures) {
        let args = &figures.args;
        self.line(&format!("## Tables that grow: TPC-H, scale factor {}", args.scale));
        self.line("");
        self.line(&format!("### In slices: {} of ten", args.slices));
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
            "Median of {} appends, in milliseconds. Afresh: without reuse. Alone: without reuse, lineitem being the new file only. \
             Incremental against alone, geometric mean of the queries that are linear in lineitem: {} {}. All queries: {}x faster \
             than afresh {}. Slowest against afresh: q{} {} {}.",
            args.appends,
            ratio(figures.against_alone()),
            verdict(figures.against_alone() <= ALONE_MAX),
            ratio(figures.gain()),
            verdict(figures.gain() >= GAIN_MIN),
            slowest.0,
            ratio(slowest.1),
            verdict(slowest.1 <= SLOWER_MAX),
        ));
        self.line("");
        self.chart(
            "",
            &Chart {
                title: format!("TPC-H after one more file of lineitem (1 of {})", args.files),
                unit: "ms, median",
                scale: Scale::Linear,
                groups: figures.delta.iter().map(|query| format!("q{}", query.number)).collect(),
                series: vec![
                    Series::new("incremental", figures.delta.iter().map(|query| query.incremental.median())),
                    Series::new("the new file alone", figures.delta.iter().map(|query| query.alone.median())),
                    Series::new("afresh", figures.delta.iter().map(|query| query.afresh.median())),
                ],
            },
        );
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
        self.sizes(figures);
        self.bases(figures);
    }

    fn sizes(&mut self, figures: &Figures) {
        self.line("### From a thousandth to half of the data");
        self.line("");
        self.line(&format!(
            "All queries after one append, on {} homes each that saw nothing but the base; the best time of each. Incremental against \
             afresh: geometric mean, and the slowest query. Target: never more than 5 % slower.",
            figures.args.rounds
        ));
        self.line("");
        self.table(
            &["growing", "appended", "all queries", "mean", "slowest", "", "", "rows"],
            figures.sizes.iter().map(|size| {
                let names: Vec<&str> = size.growing.iter().map(|table| table.name()).collect();
                let (number, slowest) = size.slowest().map_or((0, f64::NAN), |query| (query.number, query.ratio()));
                let differences: Vec<String> =
                    size.queries.iter().flat_map(|query| query.differences.iter().cloned()).collect();
                [
                    names.join(", "),
                    size.name.to_string(),
                    format!("{}x faster", ratio(size.gain())),
                    ratio(size.mean()),
                    ratio(slowest),
                    format!("q{number}"),
                    verdict(slowest <= SLOWER_MAX),
                    same(&differences),
                ]
            }),
        );
        self.line("");
        self.line("Extents reused, of all that a query is about, and incremental against afresh:");
        self.line("");
        let numbers: Vec<usize> = figures.args.queries.iter().collect();
        let heads: Vec<String> =
            figures.sizes.iter().map(|size| format!("{}, {}", size.growing.len(), size.name)).collect();
        let mut head = vec!["query"];
        head.extend(heads.iter().map(String::as_str));
        self.rows(
            &head,
            numbers.iter().enumerate().map(|(position, number)| {
                let cell = |query: &crate::append::SizedQuery| {
                    format!("{}/{} {}", query.extents.reused, query.extents.total, ratio(query.ratio()))
                };
                let cells = figures.sizes.iter().filter_map(|size| size.queries.get(position)).map(cell);
                std::iter::once(format!("q{number}")).chain(cells).collect()
            }),
        );
        self.line("");
        self.line("(Heads: how many tables grow, and by how much.)");
        self.line("");
    }

    fn bases(&mut self, figures: &Figures) {
        self.line("### The same delta on other bases");
        self.line("");
        let (alone, joining) = (growth(&figures.bases, true), growth(&figures.bases, false));
        self.line(&format!(
            "{:.0} lines more, {} times; the median, in milliseconds. A base that is 25 times as large: {} for queries that read \
             nothing but lineitem {}, {} for those that join it with tables that are larger as well.",
            60_000.0 * figures.args.scale,
            figures.args.appends,
            ratio(alone),
            verdict(alone <= GROWTH_MAX),
            ratio(joining),
        ));
        self.line("");
        let scales: Vec<String> = figures
            .bases
            .first()
            .iter()
            .flat_map(|query| query.bases.iter().map(|(scale, _)| format!("scale {scale}")))
            .collect();
        let mut head = vec!["query"];
        head.extend(scales.iter().map(String::as_str));
        head.push("growth");
        self.rows(
            &head,
            figures.bases.iter().map(|query| {
                let times = query.bases.iter().map(|(_, samples)| time(samples.median()));
                std::iter::once(format!("q{}", query.number)).chain(times).chain([ratio(query.growth())]).collect()
            }),
        );
        self.line("");
    }

    pub(crate) fn sliding(&mut self, figures: &sliding::Figures) {
        self.line("## A window that slides by a day");
        self.line("");
        self.line(&format!(
            "Groups of a click log by page, {} clicks a day (a tenth for the year), in one file a day or one an hour; all are there from \
             the start. Processor time of the whole process, all windows after the first together, in milliseconds. The ceiling is \
             what could be saved if only rows cost something that are new in a window or in a file that it cuts. Targets: \
             {SAVED_PERCENT_MIN} % saved; a window reads {ENTRIES_MAX} entries at most.",
            figures.args.rows
        ));
        self.line("");
        self.chart(
            "",
            &Chart {
                title: "A window that slides: processor time saved".to_string(),
                unit: "%",
                scale: Scale::Linear,
                groups: figures.windows.iter().map(|window| window.name.to_string()).collect(),
                series: vec![
                    Series::new("saved", figures.windows.iter().map(sliding::WindowFigures::saved_percent)),
                    Series::new("ceiling", figures.windows.iter().map(|window| window.ceiling_percent)),
                ],
            },
        );
        self.table(
            &[
                "window",
                "slides",
                "first, off",
                "first, on",
                "off",
                "on",
                "saved",
                "",
                "ceiling",
                "entries, at most",
                "",
                "rows",
            ],
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
                    format!("{:.1} %", window.ceiling_percent),
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
