//! Rows to bytes.
//!
//! ```text
//!   cells      values as people read them
//!   markdown   headings and tables
//!   html       a page that needs nothing else: style, table, chart, receipt
//!   shape      what a result could be drawn as
//!   chart      a drawing of it
//!   axis       round numbers and times along an edge
//! ```

mod axis;
mod cells;
mod chart;
mod html;
mod markdown;
mod shape;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::json::writer::LineDelimited;
use chrono::{DateTime, Utc};
use nectarine_catalog::{Report, ReportRun};
use nectarine_executor::CsvText;
use parquet::arrow::ArrowWriter;

use super::compute::{Computed, Section};
use super::place::Form;
use super::schedule::{local, parse_zone};
use crate::{EngineError, ErrorKind, Result, Reused};

/// All that an output tells.
pub(super) struct Page {
    name: String,
    title: String,
    chart: Option<String>,
    /// The scheduled time, by the report's clock.
    scheduled: String,
    made: String,
    elapsed: Duration,
    parameters: Vec<(&'static str, String)>,
    sections: Vec<Section>,
}

impl Page {
    /// What a run computed, at a moment.
    pub(super) fn new(
        report: &Report,
        run: &ReportRun,
        computed: Computed,
        now: i64,
        elapsed: Duration,
    ) -> Result<Self> {
        let zone = parse_zone(&report.spec.time_zone)?;
        let told = |at: i64| local(at, zone).map(|time| time.format("%A, %-d %B %Y, %H:%M %Z").to_string());
        Ok(Self {
            name: report.name.clone(),
            title: report.spec.title.clone().unwrap_or_else(|| heading(&report.name)),
            chart: report.spec.chart.clone(),
            scheduled: told(run.scheduled_for).unwrap_or_default(),
            made: utc(now),
            elapsed,
            parameters: computed.parameters,
            sections: computed.sections,
        })
    }

    /// What was reused, and how old the data is; a line each.
    fn receipt(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("Computed in", duration(self.elapsed))];
        let (mut total, mut reused) = (0, 0);
        for section in &self.sections {
            if let Some(extents) = section.receipt.extents {
                total += extents.total;
                reused += extents.reused;
            }
        }
        let all = |wanted: Reused| self.sections.iter().all(|section| section.receipt.reused == wanted);
        let told = match (all(Reused::Exact), all(Reused::None)) {
            (true, _) => "everything: nothing had changed since it was computed last".to_string(),
            (_, true) => "nothing".to_string(),
            _ if total > 0 => format!("{reused} of {total} pieces of data; only the rest was read"),
            _ => "a part".to_string(),
        };
        lines.push(("Reused", told));
        let saved: Duration = self.sections.iter().map(|section| section.receipt.saved).sum();
        if saved > Duration::ZERO {
            lines.push(("Saved", duration(saved)));
        }
        if let Some(at) = self.sections.iter().filter_map(|section| section.receipt.data_to).max() {
            lines.push(("Data up to", utc(at)));
        }
        lines.push(("Made at", self.made.clone()));
        lines
    }
}

/// An output in its form.
pub(super) fn render(form: Form, page: &Page) -> Result<Vec<u8>> {
    let Some(last) = page.sections.last() else {
        return Err(EngineError::new(ErrorKind::Internal, "there is nothing to write"));
    };
    match form {
        Form::Csv(delimiter) => csv(delimiter, last),
        Form::Json => json(last),
        Form::Parquet => parquet(last),
        Form::Markdown => markdown::page(page).map(String::into_bytes),
        Form::Html => html::page(page).map(String::into_bytes),
    }
}

fn csv(delimiter: u8, section: &Section) -> Result<Vec<u8>> {
    let text = CsvText::plain(delimiter, "");
    let mut bytes = vec![];
    text.header(&section.schema, &mut bytes);
    for batch in &section.batches {
        text.rows(batch, &mut bytes)?;
    }
    Ok(bytes)
}

fn json(section: &Section) -> Result<Vec<u8>> {
    let mut writer = arrow::json::WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(vec![]);
    writer.write_batches(&section.batches.iter().collect::<Vec<&RecordBatch>>())?;
    writer.finish()?;
    Ok(writer.into_inner())
}

fn parquet(section: &Section) -> Result<Vec<u8>> {
    let fault = |error: parquet::errors::ParquetError| {
        EngineError::new(ErrorKind::Execution, "cannot write the rows as Parquet").with_detail(error.to_string())
    };
    let mut writer = ArrowWriter::try_new(vec![], Arc::clone(&section.schema), None).map_err(fault)?;
    for batch in &section.batches {
        writer.write(batch).map_err(fault)?;
    }
    writer.into_inner().map_err(fault)
}

/// `daily_kpis` as a heading: `Daily kpis`.
fn heading(name: &str) -> String {
    let words = name.replace(['_', '-'], " ");
    let mut letters = words.trim().chars();
    letters.next().map(|first| first.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}

fn utc(micros: i64) -> String {
    let time = DateTime::<Utc>::from_timestamp_micros(micros).unwrap_or_default();
    time.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn duration(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1000.0),
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}
