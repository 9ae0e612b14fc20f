//! A report as a page that needs nothing else: no scripts, no fonts, no requests. Prints on paper.

use std::fmt::Write;

use super::Page;
use super::cells::{Cell, Cells};
use super::chart::chart;
use super::shape::{Drawing, drawing};
use crate::Result;

/// Rows that are shown.
const ROWS_MAX: usize = 5000;
/// More of them scroll.
const TALL_ROWS: usize = 25;

pub(super) fn page(page: &Page) -> Result<String> {
    let title = escaped(&page.title);
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<h1>{title}</h1>\n<p class=\"when\">{}</p>\n",
        include_str!("page.css"),
        escaped(&page.scheduled)
    );
    if !page.parameters.is_empty() {
        html.push_str("<dl class=\"parameters\">");
        for (name, value) in &page.parameters {
            let _ = write!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(value));
        }
        html.push_str("</dl>\n");
    }
    html.push_str("</header>\n");
    for section in &page.sections {
        html.push_str("<section>\n");
        let drawing = drawing(section, page.chart.as_deref())?;
        // A table of one row would say the same once more.
        let is_told = matches!(drawing, Some(Drawing::Figures(_)));
        if let Some(drawing) = drawing {
            let _ = writeln!(html, "<figure>{}</figure>", chart(&drawing));
        }
        let cells = Cells::new(&section.schema, &section.batches, ROWS_MAX)?;
        if !is_told {
            table(&mut html, &cells);
        }
        let n_rows = section.n_rows();
        let note = match n_rows {
            0 => "No rows.".to_string(),
            n if n > cells.rows.len() => format!("{} more rows are not shown.", n - cells.rows.len()),
            1 if is_told => String::new(),
            1 => "1 row.".to_string(),
            n => format!("{n} rows."),
        };
        let _ = write!(
            html,
            "<p class=\"note\">{note}</p>\n<details><summary>Query</summary><pre>{}</pre></details>\n</section>\n",
            escaped(&section.sql)
        );
    }
    html.push_str("<footer>\n<h2>Receipt</h2>\n<dl>");
    for (name, value) in page.receipt() {
        let _ = write!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&value));
    }
    let _ = write!(
        html,
        "</dl>\n<p>Report “{}”, made by Nectarine.</p>\n</footer>\n</main>\n</body>\n</html>\n",
        escaped(&page.name)
    );
    Ok(html)
}

fn table(html: &mut String, cells: &Cells) {
    // A long one scrolls, so that what is below is found; on paper it is whole.
    let tall = if cells.rows.len() > TALL_ROWS { " tall" } else { "" };
    let _ = write!(html, "<div class=\"scroll{tall}\"><table>\n<thead><tr>");
    let class = |is_number: bool| if is_number { " class=\"n\"" } else { "" };
    for (name, is_number) in cells.names.iter().zip(&cells.is_number) {
        let _ = write!(html, "<th{}>{}</th>", class(*is_number), escaped(name));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &cells.rows {
        html.push_str("<tr>");
        for (cell, is_number) in row.iter().zip(&cells.is_number) {
            let Cell { text, whole, is_null } = cell;
            let class = match (is_number, is_null) {
                (true, true) => " class=\"n null\"",
                (true, false) => " class=\"n\"",
                (false, true) => " class=\"null\"",
                (false, false) => "",
            };
            let whole = whole.as_ref().map(|whole| format!(" title=\"{}\"", escaped(whole))).unwrap_or_default();
            let _ = write!(html, "<td{class}{whole}>{}</td>", escaped(text));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
}

/// Nothing in it means anything to HTML. What no document may hold is left out.
pub(super) fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '"' => result.push_str("&quot;"),
            '\'' => result.push_str("&#39;"),
            '\n' | '\t' => result.push(letter),
            letter if letter.is_control() => result.push('\u{fffd}'),
            other => result.push(other),
        }
    }
    result
}
