//! The part about other engines.

use super::{Report, gigabytes, megabytes, spread, time, verdict};
use crate::chart::{Chart, Scale, Series};
use crate::peers::{Engine, Figures, Side};
use crate::timing::Samples;

/// What is asked, by its name.
const MOMENTS: [(&str, Of); 3] =
    [("fresh", |side| &side.fresh), ("again", |side| &side.again), ("after +1 %", |side| &side.appended)];

type Of = fn(&Side) -> &Samples;

impl Report {
    pub(crate) fn peers(&mut self, figures: &Figures) {
        let args = &figures.args;
        self.line(&format!("## Peers side by side: TPC-H, scale factor {}", args.scale));
        self.line("");
        self.line(&format!(
            "{} of Parquet (snappy) in 10 files per large table, without the last of lineitem and orders; {} threads and a memory limit \
             of {} for each. All are warm and give all rows as Arrow; who begins alternates. Stock DataFusion runs in the process of \
             Nectarine, DuckDB in one of its own, by views over `read_parquet`, with its cache of footers on. Fresh: Nectarine has forgotten \
             everything, and keeps what it computes. Again: the same text; the others compute it once more. After +1 %: orders and their \
             lines have come (a hundredth of all); everybody has counted the new rows before. Medians of {} rounds, after +1 % of {} \
             appends.",
            megabytes(figures.data_bytes),
            figures.threads,
            gigabytes(figures.memory_bytes),
            args.rounds,
            args.appends,
        ));
        self.line("");
        if let Err(why) = &figures.duck {
            self.line(&format!("DuckDB was left out: {why}."));
            self.line("");
        }
        self.same_rows(figures);
        self.totals(figures);
        for (suffix, (moment, of)) in ["-fresh", "-append"].into_iter().zip([MOMENTS[0], MOMENTS[2]]) {
            self.by_query(suffix, &format!("TPC-H, scale {}: {moment}", args.scale), of, figures);
        }
        self.line("Milliseconds; in parentheses the distance of the quartiles, in percent of the median.");
        self.line("");
        let mut head = vec!["query".to_string(), "rows".to_string()];
        for (moment, _) in MOMENTS {
            head.extend(figures.engines().map(|engine| format!("{moment}: {}", engine.name())));
        }
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        self.rows(
            &head,
            figures.queries.iter().map(|query| {
                let mut row = vec![format!("q{}", query.number), query.n_rows.to_string()];
                for (_, of) in MOMENTS {
                    row.extend(figures.engines().map(|engine| {
                        let samples = of(query.side(engine));
                        format!("{} ({})", time(samples.median()), spread(samples))
                    }));
                }
                row
            }),
        );
    }

    fn same_rows(&mut self, figures: &Figures) {
        let different: Vec<String> = figures
            .queries
            .iter()
            .filter(|query| !query.differences.is_empty())
            .map(|query| format!("- q{}: {}", query.number, query.differences.join("; ")))
            .collect();
        self.line(&format!(
            "Rows, compared with stock DataFusion's at first and after each append: {} {}.",
            if different.is_empty() { "the same in all queries" } else { "DIFFERENT" },
            verdict(different.is_empty())
        ));
        self.line("");
        different.iter().for_each(|line| self.line(line));
        self.line("");
    }

    fn totals(&mut self, figures: &Figures) {
        self.chart(
            "",
            &Chart {
                title: format!("All {} TPC-H queries together, scale {}", figures.queries.len(), figures.args.scale),
                unit: "ms, sum of medians",
                scale: Scale::Linear,
                groups: MOMENTS.iter().map(|(moment, _)| (*moment).to_string()).collect(),
                series: figures
                    .engines()
                    .map(|engine| Series::new(engine.name(), MOMENTS.map(|(_, of)| figures.total(engine, of))))
                    .collect(),
            },
        );
        self.line("Sums of the medians, in milliseconds, and how much time Nectarine takes for one unit of the other's (geometric mean of the queries):");
        self.line("");
        self.table(
            &["engine", "fresh", "again", "after +1 %", "Nectarine's to it, fresh", "again", "after +1 %"],
            figures.engines().map(|engine| {
                let [fresh, again, appended] = MOMENTS.map(|(_, of)| time(figures.total(engine, of)));
                let ratios = MOMENTS.map(|(_, of)| match engine {
                    Engine::Nectarine => "1".to_string(),
                    other => format!("{:.4}", figures.ratio(other, of)),
                });
                let [to_fresh, to_again, to_appended] = ratios;
                [engine.name().to_string(), fresh, again, appended, to_fresh, to_again, to_appended]
            }),
        );
    }

    fn by_query(&mut self, suffix: &str, title: &str, of: Of, figures: &Figures) {
        let median = |engine: Engine| figures.queries.iter().map(move |query| of(query.side(engine)).median());
        self.chart(
            suffix,
            &Chart {
                title: title.to_string(),
                unit: "ms, median",
                scale: Scale::Linear,
                groups: figures.queries.iter().map(|query| format!("q{}", query.number)).collect(),
                series: figures.engines().map(|engine| Series::new(engine.name(), median(engine))).collect(),
            },
        );
    }
}
