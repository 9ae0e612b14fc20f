//! A report as Markdown: readable as it is, and a page wherever Markdown becomes one.

use std::fmt::Write;

use super::Page;
use super::cells::Cells;
use crate::Result;

/// Rows that are shown.
const ROWS_MAX: usize = 1000;

pub(super) fn page(page: &Page) -> Result<String> {
    let mut text = format!("# {}\n\n{}\n", escaped(&page.title), escaped(&page.scheduled));
    if !page.parameters.is_empty() {
        text.push('\n');
        for (name, value) in &page.parameters {
            let _ = writeln!(text, "- {name}: {}", escaped(value));
        }
    }
    for (at, section) in page.sections.iter().enumerate() {
        if page.sections.len() > 1 {
            let _ = write!(text, "\n## {}\n", at + 1);
        }
        let cells = Cells::new(&section.schema, &section.batches, ROWS_MAX)?;
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        text.push('\n');
        text.push_str(&line(cells.names.iter().map(|name| escaped(name)).collect()));
        text.push_str(&line(
            cells.is_number.iter().map(|number| if *number { "--:" } else { "---" }.to_string()).collect(),
        ));
        for row in &cells.rows {
            text.push_str(&line(row.iter().map(|cell| escaped(&cell.text)).collect()));
        }
        let n_rows = section.n_rows();
        if n_rows > cells.rows.len() {
            let _ = write!(text, "\n{} more rows are not shown.\n", n_rows - cells.rows.len());
        }
    }
    text.push_str("\n---\n\n");
    for (name, value) in page.receipt() {
        let _ = writeln!(text, "{name}: {value}  ");
    }
    Ok(text)
}

/// What would mean something to Markdown, or to HTML inside of it.
fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => result.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                result.push('\\');
                result.push(letter);
            }
            '<' => result.push_str("&lt;"),
            '&' => result.push_str("&amp;"),
            other => result.push(other),
        }
    }
    result
}
