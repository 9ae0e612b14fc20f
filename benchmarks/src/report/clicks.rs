//! The parts about logs that grow, and about merging.

use super::{Report, duration, verdict};
use crate::chart::{Chart, Scale, Series};
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
        let mut cumulated = vec![];
        let (mut off, mut on) = (0.0, 0.0);
        for (day, step) in (1..).zip(&figures.days) {
            off += step.off.as_secs_f64();
            on += step.on.as_secs_f64();
            cumulated.push((1.0 - on / off) * 100.0);
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
        self.chart(
            "",
            &Chart {
                title: "A click log that grows by a day: processor time saved".to_string(),
                unit: "%",
                scale: Scale::Linear,
                groups: (1..=figures.days.len()).map(|day| format!("day {day}")).collect(),
                series: vec![
                    Series::new("that day", figures.days.iter().map(Step::saved_percent)),
                    Series::new("cumulated", cumulated),
                    Series::new("Nectar's paper, cumulated", figures.days.iter().map(paper)),
                ],
            },
        );
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
        self.chart(
            "-histogram",
            &Chart {
                title: "A histogram of a log that grows by 1 %: processor time saved".to_string(),
                unit: "%",
                scale: Scale::Linear,
                groups: figures.histogram.iter().map(|step| format!("{} rows", step.rows)).collect(),
                series: vec![Series::new("saved", figures.histogram.iter().map(Step::saved_percent))],
            },
        );
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
        self.chart(
            "",
            &Chart {
                title: format!("Merging states of {} groups", figures.args.groups),
                unit: "million states a second",
                scale: Scale::Linear,
                groups: figures.ways.iter().map(|way| way.name.to_string()).collect(),
                series: vec![Series::new("merged", figures.ways.iter().map(merging::WayFigures::rate))],
            },
        );
        self.table(&["how", "ms", "million states a second", ""], rows);
    }
}

/// Not a number where the paper tells none.
fn paper(step: &Step) -> f64 {
    step.paper_percent.unwrap_or(f64::NAN)
}

fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

fn same(step: &Step) -> String {
    step.difference.as_deref().map_or_else(|| "the same".to_string(), |difference| format!("DIFFER: {difference}"))
}
