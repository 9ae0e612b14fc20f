//! [`Html`]: rows as one `<table>`, with everything escaped.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use super::cell::{Cells, Column, columns};
use super::{Paper, Sink, View};
use crate::failure::Result;

/// Writes a table element.
pub(super) struct Html {
    columns: Vec<Column>,
    header: bool,
    null: String,
    begun: bool,
}

impl Html {
    pub(super) fn new(view: &View, schema: SchemaRef) -> Self {
        let null = view.null.clone().unwrap_or_else(|| "NULL".to_owned());
        Self { columns: columns(&schema), header: view.header, null, begun: false }
    }

    fn begin(&mut self, paper: &mut dyn Paper) -> Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        writeln!(paper, "<table>")?;
        if self.header {
            write!(paper, "<thead><tr>")?;
            for column in &self.columns {
                write!(paper, "<th>{}</th>", escaped(&column.name))?;
            }
            writeln!(paper, "</tr></thead>")?;
        }
        writeln!(paper, "<tbody>")?;
        Ok(())
    }
}

impl Sink for Html {
    fn batch(&mut self, batch: &RecordBatch, paper: &mut dyn Paper) -> Result<()> {
        self.begin(paper)?;
        let cells = Cells::new(batch, &self.null)?;
        for row in 0..batch.num_rows() {
            write!(paper, "<tr>")?;
            for (at, column) in self.columns.iter().enumerate() {
                let align = if column.right { " align=\"right\"" } else { "" };
                write!(paper, "<td{align}>{}</td>", escaped(&cells.text(row, at)?))?;
            }
            writeln!(paper, "</tr>")?;
        }
        Ok(())
    }

    fn finish(&mut self, paper: &mut dyn Paper) -> Result<()> {
        self.begin(paper)?;
        writeln!(paper, "</tbody>\n</table>")?;
        Ok(())
    }
}

fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '"' => result.push_str("&quot;"),
            '\'' => result.push_str("&#39;"),
            '\n' => result.push_str("<br>"),
            other => result.push(other),
        }
    }
    result
}
