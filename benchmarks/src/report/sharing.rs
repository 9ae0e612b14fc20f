//! The parts about Nectar's own measurements: a shared sub-computation, and a query that is developed step by step.

use std::time::Duration;

use super::{Report, duration, megabytes, verdict};
use crate::args::SkyFormat;
use crate::chart::{Chart, Scale, Series};
use crate::development;
use crate::documents::{self, ProgramFigures, SAVED_PERCENT_MIN};

impl Report {
    pub(crate) fn documents(&mut self, figures: &documents::Figures) {
        let args = &figures.args;
        self.line("## A shared sub-computation: documents (Nectar, table 4)");
        self.line("");
        self.line(&format!(
            "{} documents of about {} words, {} of text in {} Parquet files; {} different words. WordAnalysis counts for each \
             word how often it occurs and in how many documents; TopWord, MostDoc and TopRatio start from it (a view). Off: \
             without reuse. On: each program is asked for the first time, after WordAnalysis was, on a new home. Processor time \
             of the whole process per run, planning and keeping included, mean of {} rounds, in milliseconds. Target: \
             {SAVED_PERCENT_MIN} % saved. WordAnalysis itself, with an empty cache: {} ms.",
            args.count,
            args.words,
            megabytes(figures.text_bytes),
            args.files,
            figures.n_words,
            args.rounds,
            duration(figures.analysis / args.rounds.into()),
        ));
        self.line("");
        self.chart(
            "",
            &Chart {
                title: "Programs that start from what an earlier one left: processor time saved".to_string(),
                unit: "%",
                scale: Scale::Linear,
                groups: figures.programs.iter().map(|program| program.name.to_string()).collect(),
                series: vec![
                    Series::new("Nectarine", figures.programs.iter().map(ProgramFigures::saved_percent)),
                    Series::new("Nectar's paper", figures.programs.iter().map(|program| program.paper_percent)),
                ],
            },
        );
        self.table(
            &["program", "off", "on", "saved", "", "Nectar saved", "hits", "rows"],
            figures.programs.iter().map(|program| {
                let ProgramFigures { name, paper_percent, off, on, n_hits, difference } = program;
                let saved = program.saved_percent();
                [
                    (*name).to_string(),
                    duration(*off / args.rounds.into()),
                    duration(*on / args.rounds.into()),
                    percent(saved),
                    verdict(saved >= SAVED_PERCENT_MIN),
                    percent(*paper_percent),
                    format!("{n_hits} of {}", args.rounds),
                    same(difference.as_deref()),
                ]
            }),
        );
    }

    pub(crate) fn development(&mut self, figures: &development::Figures) {
        let format = match figures.args.format {
            SkyFormat::Csv => "CSV",
            SkyFormat::Parquet => "Parquet",
        };
        self.line(&format!("## A query that is developed: SkyServer, query 18, over {format} files (Nectar, table 6)"));
        self.line("");
        self.line(&format!(
            "{} objects and {} neighbours, made up in the proportions of the survey, in {} {format} files each. The query comes \
             about in four steps, each on top of the one before; before each step is right, it fails while it is planned and while \
             it runs. Processor time of the whole process for all tries of a step, planning and keeping included, in \
             milliseconds.",
            figures.n_objects, figures.n_neighbors, figures.args.files,
        ));
        self.line("");
        self.chart(
            "",
            &Chart {
                title: format!("A query that is developed step by step ({format}): processor time saved"),
                unit: "%",
                scale: Scale::Linear,
                groups: (1..=figures.steps.len()).map(|number| format!("step {number}")).collect(),
                series: vec![
                    Series::new("Nectarine", figures.steps.iter().map(development::StepFigures::saved_percent)),
                    Series::new("Nectar's paper", figures.steps.iter().map(|step| step.paper_percent)),
                ],
            },
        );
        self.table(
            &["steps", "adds", "rows", "off", "on", "saved", "target", "", "Nectar saved", "rows"],
            (1..).zip(&figures.steps).map(|(number, step)| {
                let saved = step.saved_percent();
                [
                    if number == 1 { "1".to_string() } else { format!("1 to {number}") },
                    step.adds.to_string(),
                    step.n_rows.to_string(),
                    duration(step.off()),
                    duration(step.on()),
                    percent(saved),
                    step.saved_percent_min.map_or_else(String::new, |least| format!("{least:.0} %")),
                    step.saved_percent_min.map_or_else(String::new, |least| verdict(saved >= least)),
                    format!("{:.0} %", step.paper_percent),
                    same(step.difference.as_deref()),
                ]
            }),
        );
        let (off, on) = figures
            .steps
            .iter()
            .fold((Duration::ZERO, Duration::ZERO), |(off, on), step| (off + step.off(), on + step.on()));
        self.line(&format!("All steps together: {} ms off, {} ms on. Each try:", duration(off), duration(on)));
        self.line("");
        let tries = (1..).zip(&figures.steps).flat_map(|(number, step)| {
            step.tries.iter().map(move |attempt| {
                [
                    number.to_string(),
                    attempt.flaw.map_or_else(|| "right".to_string(), |flaw| format!("fails: {flaw}")),
                    duration(attempt.off),
                    duration(attempt.on),
                    attempt.reused.word().to_string(),
                ]
            })
        });
        self.table(&["step", "try", "off", "on", "reused"], tries);
    }
}

fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

fn same(difference: Option<&str>) -> String {
    difference.map_or_else(|| "the same".to_string(), |difference| format!("DIFFER: {difference}"))
}
