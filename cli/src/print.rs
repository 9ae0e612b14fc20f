//! How rows look: one [`Sink`] per format takes batches as they come and writes them.
//!
//! ```text
//!   delimited   csv, tsv          nothing is held back
//!   json        json, ndjson      nothing is held back
//!   html        html              nothing is held back
//!   table       table, markdown   the first rows wait until the widths are known, see table.rs
//! ```

mod cell;
mod delimited;
mod html;
mod json;
mod record;
mod table;

use std::io::Write;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use clap::ValueEnum;
use nectarine_engine::CsvText;

use crate::failure::Result;
use crate::output::Output;

/// The formats of `--format` and `\pset format`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Boxes for people
    Table,
    /// Comma-separated, quoted where needed
    Csv,
    /// Tab-separated, quoted where needed
    Tsv,
    /// One array of objects
    Json,
    /// One object per line
    Ndjson,
    /// A table for a README
    Markdown,
    /// A table element
    Html,
}

/// When rows are printed one column per line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expanded {
    Off,
    On,
    /// When the table is wider than the window.
    Auto,
}

/// How the user wants rows to look.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) format: Format,
    pub(crate) header: bool,
    /// What a NULL looks like; `None` leaves it to the format.
    pub(crate) null: Option<String>,
    pub(crate) expanded: Expanded,
    /// 0: none, 1: between columns, 2: all around.
    pub(crate) border: u8,
    /// Lines made of box characters instead of `+-|`.
    pub(crate) unicode: bool,
    /// Whether a table says how many rows it has.
    pub(crate) footer: bool,
}

impl View {
    pub(crate) fn new(format: Format, header: bool) -> Self {
        Self { format, header, null: None, expanded: Expanded::Off, border: 2, unicode: true, footer: true }
    }
}

/// Takes the rows of one answer.
pub(crate) trait Sink {
    /// More rows.
    fn batch(&mut self, batch: &RecordBatch, paper: &mut dyn Paper) -> Result<()>;

    /// No more rows.
    fn finish(&mut self, paper: &mut dyn Paper) -> Result<()>;

    /// Whether nothing has been written yet.
    fn is_collecting(&self) -> bool {
        false
    }
}

/// What a sink writes on.
pub(crate) trait Paper: Write {
    /// Columns and lines of the window, when a person reads.
    fn window(&self) -> Option<(usize, usize)>;

    /// How large the answer will be at least.
    fn announce(&mut self, lines: usize, columns: usize);
}

impl Paper for Output {
    fn window(&self) -> Option<(usize, usize)> {
        Self::window(self)
    }

    fn announce(&mut self, lines: usize, columns: usize) {
        Self::announce(self, lines, columns);
    }
}

/// The sink for one answer.
pub(crate) fn sink(view: &View, schema: SchemaRef, title: Option<&str>) -> Box<dyn Sink> {
    let null = view.null.as_deref().unwrap_or_default();
    match view.format {
        Format::Table | Format::Markdown => Box::new(table::Table::new(view, &schema, title)),
        Format::Csv => Box::new(delimited::Delimited::new(CsvText::plain(b',', null), view, schema)),
        Format::Tsv => Box::new(delimited::Delimited::new(CsvText::plain(b'\t', null), view, schema)),
        Format::Json => Box::new(json::Json::<json::Rows>::new(schema)),
        Format::Ndjson => Box::new(json::Json::<arrow::json::writer::LineDelimited>::new(schema)),
        Format::Html => Box::new(html::Html::new(view, schema)),
    }
}

#[cfg(test)]
mod tests;
