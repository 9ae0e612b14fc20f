//! The part about reports that run by the clock.

use super::{Report, time, verdict};
use crate::chart::{Chart, Scale, Series};
use crate::reports::{Figures, PieceFigures, SAVED_PERCENT_MIN};

impl Report {
    pub(crate) fn reports(&mut self, figures: &Figures) {
        let (args, total) = (&figures.args, figures.total());
        self.line("## Reports by the clock, over a table that grows every day");
        self.line("");
        self.line(&format!(
            "{} reports over {} days with the clock driven, {} rows more each day: six kinds of queries with different constants, once a week to \
             twice a day, each run with its CSV file. A second home has the same reports and rows, and reuse off. Processor time of the whole \
             process, all that a run does included. Target: {SAVED_PERCENT_MIN} % saved: {:.1} % {}. Outputs: {} {}.",
            args.reports,
            args.days,
            args.rows,
            total.saved_percent(),
            verdict(total.saved_percent() >= SAVED_PERCENT_MIN),
            match figures.differences.first() {
                None => "the same".to_string(),
                Some(first) => format!("DIFFER {} times: {first}", figures.differences.len()),
            },
            verdict(figures.differences.is_empty()),
        ));
        self.line("");
        let days = |piece: &PieceFigures| format!("days {} to {}", piece.first_day, piece.last_day);
        self.chart(
            "",
            &Chart {
                title: format!("What one run of a report takes: {} reports, {} rows a day", args.reports, args.rows),
                unit: "ms of processor time",
                scale: Scale::Linear,
                groups: figures.pieces.iter().map(days).collect(),
                series: vec![
                    Series::new("with reuse", figures.pieces.iter().map(|piece| piece.per_run(piece.on))),
                    Series::new("without", figures.pieces.iter().map(|piece| piece.per_run(piece.off))),
                ],
            },
        );
        self.table(
            &["days", "runs", "off, s", "on, s", "off, ms a run", "on, ms a run", "saved"],
            figures.pieces.iter().chain([&total]).map(|piece| {
                [
                    days(piece),
                    piece.n_runs.to_string(),
                    format!("{:.1}", piece.off.as_secs_f64()),
                    format!("{:.1}", piece.on.as_secs_f64()),
                    time(piece.per_run(piece.off)),
                    time(piece.per_run(piece.on)),
                    format!("{:.1} %", piece.saved_percent()),
                ]
            }),
        );
    }
}
