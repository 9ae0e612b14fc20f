//! The parts about logs that grow, and about merging.

use super::{Report, duration, verdict};
use crate::clicks::{self, DAY_5_PERCENT_MIN, HISTOGRAM_PERCENT_MIN, Step};
use crate::merging::{self, RATE_MIN};

impl Report {
    pub(crate) fn clicks(&mut self, figures: &clicks::Figures) {
        self.line("## A click log that grows (Nectar, table 5)");
        self.line("");
        self.line(&format!(
            "A log of searches and clicks in CSV files, one a day, in the proportions of the paper, {} rows in the end. The query \
             finds the URL that is clicked most for each phrase. Processor time of the whole process, in milliseconds. The \
             ceiling is what could be saved that day if only new rows cost something; the paper's figures are cumulated. Target: \
             {DAY_5_PERCENT_MIN} % saved on the fifth day.",
            figures.args.rows
        ));
        self.line("");
        let mut rows = vec![];
        let (mut off, mut on) = (0.0, 0.0);
        for (day, step) in (1..).zip(&figures.days) {
            off += step.off.as_secs_f64();
            on += step.on.as_secs_f64();
            rows.push([
                day.to_string(),
                step.rows.to_string(),
                step.new_rows.to_string(),
                duration(step.off),
                duration(step.on),
                percent(step.saved_percent()),
                if day == 5 { verdict(step.saved_percent() >= DAY_5_PERCENT_MIN) } else { String::new() },
                percent(step.ceiling_percent()),
                percent((1.0 - on / off) * 100.0),
                step.paper_percent.map_or_else(String::new, percent),
                same(step),
            ]);
        }
        let head =
            ["day", "rows", "new", "off", "on", "saved", "", "ceiling", "cumulated", "Nectar, cumulated", "rows"];
        self.table(&head, rows);

        self.line("## A histogram of a log that grows by 1 % (DryadInc, figure 6)");
        self.line("");
        self.line(&format!(
            "How often phrases are searched, over a log in 100 CSV files to which one is added at a time; all times after the \
             first together. Target: {HISTOGRAM_PERCENT_MIN} % saved at the largest size."
        ));
        self.line("");
        let largest = figures.histogram.len();
        let rows = (1..).zip(&figures.histogram).map(|(number, step)| {
            [
                step.rows.to_string(),
                step.new_rows.to_string(),
                duration(step.off),
                duration(step.on),
                percent(step.saved_percent()),
                if number == largest { verdict(step.saved_percent() >= HISTOGRAM_PERCENT_MIN) } else { String::new() },
                same(step),
            ]
        });
        self.table(&["rows", "new", "off", "on", "saved", "", "rows"], rows);
    }

    pub(crate) fn merging(&mut self, figures: &merging::Figures) {
        self.line(&format!("## Merging states of {} groups", figures.args.groups));
        self.line("");
        self.line(&format!(
            "Two states of each group (a count and a sum, by one integer), merged on one core, in memory; the fastest of {} runs. \
             Target: {RATE_MIN} million states a second.",
            figures.args.runs
        ));
        self.line("");
        let rows = figures.ways.iter().map(|way| {
            let rate = way.rate();
            [way.name.to_string(), duration(way.best), format!("{rate:.1}"), verdict(rate >= RATE_MIN)]
        });
        self.table(&["how", "ms", "million states a second", ""], rows);
    }
}

fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

fn same(step: &Step) -> String {
    step.difference.as_deref().map_or_else(|| "the same".to_string(), |difference| format!("DIFFER: {difference}"))
}
