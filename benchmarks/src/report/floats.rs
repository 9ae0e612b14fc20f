//! The part about sums of floats.

use super::{Report, ratio, time, verdict};
use crate::chart::{Chart, Scale, Series};
use crate::floats::{Figures, QueryFigures, RATIO_MAX};

impl Report {
    pub(crate) fn floats(&mut self, figures: &Figures) {
        let args = &figures.args;
        self.line("## Exact sums of floats");
        self.line("");
        self.line(&format!(
            "{} lines of orders with floats, {} pairs of runs in turn, reuse off, processor time in milliseconds (medians; the ratio \
             is the median of the pairs'). Exact sums are the default if they cost at most {} at the geometric mean: {} {}.",
            args.rows,
            args.runs,
            ratio(RATIO_MAX),
            ratio(figures.mean()),
            verdict(figures.mean() <= RATIO_MAX),
        ));
        self.line("");
        let median = |mut times: Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2] * 1e3
        };
        let exact = |query: &QueryFigures| median(query.pairs.iter().map(|(exact, _)| *exact).collect());
        let fast = |query: &QueryFigures| median(query.pairs.iter().map(|(_, fast)| *fast).collect());
        self.chart(
            "",
            &Chart {
                title: "Sums of floats, exact and fast".to_string(),
                unit: "ms of processor time, median",
                scale: Scale::Linear,
                groups: figures.queries.iter().map(|query| query.name.to_string()).collect(),
                series: vec![
                    Series::new("exact", figures.queries.iter().map(exact)),
                    Series::new("fast", figures.queries.iter().map(fast)),
                ],
            },
        );
        self.table(
            &["query", "exact", "fast", "ratio"],
            figures
                .queries
                .iter()
                .map(|query| [query.name.to_string(), time(exact(query)), time(fast(query)), ratio(query.ratio())]),
        );
        self.line("");
    }
}
