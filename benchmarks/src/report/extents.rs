//! The part about many extents.

use super::{Report, duration, time, verdict};
use crate::chart::{Chart, Scale, Series};
use crate::extents::{self, BYTES_PER_EXTENT_MAX, PLANNING_MS_MAX, TableFigures};
use crate::timing::Samples;

impl Report {
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
        let bars = |of: fn(&TableFigures) -> &Samples, percent: usize| {
            tables.iter().map(|(_, table)| of(table).percentile(percent)).collect::<Vec<f64>>()
        };
        self.chart(
            "",
            &Chart {
                title: format!("Planning over {} known extents", figures.external.n_extents),
                unit: "ms",
                scale: Scale::Linear,
                groups: tables.iter().map(|(kind, _)| (*kind).to_string()).collect(),
                series: vec![
                    Series::new("one, p50", bars(|table| &table.planning_one, 50)),
                    Series::new("one, p95", bars(|table| &table.planning_one, 95)),
                    Series::new("all, p50", bars(|table| &table.explain_all, 50)),
                    Series::new("all, p95", bars(|table| &table.explain_all, 95)),
                ],
            },
        );
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
}
