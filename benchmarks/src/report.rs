//! [`Report`]: the figures as Markdown. All of them, whether they please or not.

mod append;
mod clicks;
mod extents;
mod flight;
mod floats;
mod peers;
mod reports;
mod sharing;
mod simulate;
mod tpch;

use std::time::Duration;

use crate::chart::Chart;
use crate::machine;
use crate::page::PICTURES;
use crate::part::Part;
use crate::timing::{Samples, milliseconds};

/// What is said of one part.
pub(crate) struct Section {
    pub(crate) part: Part,
    pub(crate) text: String,
    /// Names of files, and what is in them.
    pub(crate) pictures: Vec<(String, String)>,
}

/// A section that grows line by line.
pub(crate) struct Report {
    part: Part,
    text: String,
    pictures: Vec<(String, String)>,
}

impl Report {
    pub(crate) fn new(part: Part) -> Self {
        Self { part, text: String::new(), pictures: vec![] }
    }

    /// Ends with what it ran on and how to get these figures again. `others` are versions of who else took part.
    pub(crate) fn made_by(&mut self, arguments: &str, others: &str) {
        let memory = machine::memory_bytes().map_or_else(|| "unknown".to_string(), gigabytes);
        let build = if cfg!(debug_assertions) { "without optimization: figures mean nothing" } else { "release" };
        self.line("");
        self.line(&format!(
            "Measured {} on {}, {} cores, {memory}, {} {}; Nectarine {}, DataFusion {}{others}, {build}. Again: \
             `cargo run --release -p nectarine-benchmarks -- {arguments}`",
            machine::date(),
            machine::processor(),
            machine::n_cores(),
            std::env::consts::OS,
            std::env::consts::ARCH,
            env!("CARGO_PKG_VERSION"),
            datafusion::DATAFUSION_VERSION,
        ));
    }

    /// A picture, here. Its file is called like the part, with `suffix` behind.
    fn chart(&mut self, suffix: &str, chart: &Chart) {
        let name = format!("{}{suffix}.svg", self.part.key());
        self.line("");
        self.line(&format!("![{}]({PICTURES}/{name})", chart.title));
        self.line("");
        self.pictures.push((name, chart.svg()));
    }

    pub(crate) fn into_section(self) -> Section {
        // Parts that end with an empty line and those that do not look alike.
        let mut text = self.text.trim().to_string();
        while text.contains("\n\n\n") {
            text = text.replace("\n\n\n", "\n\n");
        }
        Section { part: self.part, text, pictures: self.pictures }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// First column to the left, the others to the right where they are numbers: as Markdown wants it, `-:`.
    fn table<const N: usize>(&mut self, head: &[&str; N], rows: impl IntoIterator<Item = [String; N]>) {
        self.rows(head, rows.into_iter().map(Vec::from));
    }

    /// A table of as many columns as its head has.
    fn rows(&mut self, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        let rows: Vec<Vec<String>> = rows.into_iter().collect();
        let begins_with_digit = |cell: &String| cell.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let is_number =
            |column: usize| !rows.is_empty() && rows.iter().all(|row| row.get(column).is_some_and(begins_with_digit));
        let rule: Vec<&str> =
            (0..head.len()).map(|column| if column > 0 && is_number(column) { "--:" } else { "---" }).collect();
        self.line(&format!("| {} |", head.join(" | ")));
        self.line(&format!("|{}|", rule.join("|")));
        for row in &rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
        self.line("");
    }
}

fn verdict(holds: bool) -> String {
    if holds { "PASS" } else { "FAIL" }.to_string()
}

fn ratio(value: f64) -> String {
    format!("{value:.3}")
}

/// How far the middle half of the samples is apart, in percent of the median.
fn spread(samples: &Samples) -> String {
    format!("{:.0} %", samples.spread() * 100.0)
}

fn time(milliseconds: f64) -> String {
    let digits = if milliseconds < 10.0 { 2 } else { 1 };
    format!("{milliseconds:.digits$}")
}

fn duration(time_taken: Duration) -> String {
    time(milliseconds(time_taken))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
