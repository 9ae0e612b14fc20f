//! [`Table`]: rows in columns of equal width, for people.
//!
//! The first rows wait until the answer ends or [`ROWS_WAITING_MAX`] is reached; then the widths are settled and every later
//! row is written at once in the same widths, so that an answer of any length needs bounded memory. What does not fit its
//! column goes on in the next line of the same row, marked at the right; nothing is cut off. On a terminal wide text columns
//! give way first so that the table fits the window.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::cell::{Cells, Column, columns, printable};
use super::{Expanded, Format, Paper, Sink, View, record};
use crate::failure::Result;
use crate::units;

/// Rows that wait for the widths.
const ROWS_WAITING_MAX: usize = 10_000;

/// Bytes of text that wait for the widths.
const BYTES_WAITING_MAX: usize = 8 << 20;

/// Widest column where there is no window to fit into.
const COLUMN_WIDTH_MAX: usize = 1000;

/// Narrower than this a column of text is not made to fit a window.
const COLUMN_WIDTH_MIN: usize = 16;

/// Writes a table.
pub(super) struct Table {
    columns: Vec<Column>,
    view: View,
    title: Option<String>,
    null: String,
    waiting: Vec<Vec<String>>,
    bytes_waiting: usize,
    rows: u64,
    shape: Shape,
}

/// What has been settled about the table.
enum Shape {
    Collecting,
    Grid {
        widths: Vec<usize>,
    },
    /// One column per line.
    Records {
        name_width: usize,
        value_width: usize,
        next: u64,
    },
}

impl Table {
    pub(super) fn new(view: &View, schema: &SchemaRef, title: Option<&str>) -> Self {
        Self {
            columns: columns(schema),
            null: view.null.clone().unwrap_or_else(|| "NULL".to_owned()),
            view: view.clone(),
            title: title.map(str::to_owned),
            waiting: Vec::new(),
            bytes_waiting: 0,
            rows: 0,
            shape: Shape::Collecting,
        }
    }

    fn is_markdown(&self) -> bool {
        self.view.format == Format::Markdown
    }

    /// A value as this table shows it.
    fn shown(&self, text: String) -> String {
        if self.is_markdown() {
            return printable(&text)
                .replace('\\', "\\\\")
                .replace('|', "\\|")
                .replace('<', "&lt;")
                .replace('\n', "<br>");
        }
        match printable(&text) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(changed) => changed,
        }
    }

    /// Settles the widths and writes what waited.
    fn begin(&mut self, paper: &mut dyn Paper) -> Result<()> {
        let mut widths: Vec<usize> =
            self.columns.iter().map(|column| if self.view.header { column.name.width() } else { 0 }).collect();
        for row in &self.waiting {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(text_width(cell));
            }
        }
        let window = paper.window();
        let natural = self.total_width(&widths);
        let expanded = !self.is_markdown()
            && match self.view.expanded {
                Expanded::Off => false,
                Expanded::On => true,
                Expanded::Auto => window.is_some_and(|(columns, _)| natural > columns),
            };
        let waiting = std::mem::take(&mut self.waiting);
        if let Some(title) = &self.title {
            writeln!(paper, "{title}")?;
        }
        if expanded {
            let name_width = self.columns.iter().map(|column| column.name.width()).max().unwrap_or(0);
            let room = window
                .map_or(COLUMN_WIDTH_MAX, |(columns, _)| columns.saturating_sub(name_width + 3).max(COLUMN_WIDTH_MIN));
            let value_width = widths.iter().copied().max().unwrap_or(0).min(room);
            let heights = waiting.iter().flatten().map(|cell| lines(cell, value_width).len());
            paper.announce(heights.sum::<usize>() + waiting.len(), name_width + 3 + value_width);
            self.shape = Shape::Records { name_width, value_width, next: 1 };
        } else {
            if self.is_markdown() {
                widths.iter_mut().for_each(|width| *width = (*width).clamp(3, COLUMN_WIDTH_MAX));
            } else {
                self.fit(&mut widths, window.map(|(columns, _)| columns));
                let heights = waiting.iter().map(|row| {
                    row.iter().zip(&widths).map(|(cell, width)| lines(cell, *width).len()).max().unwrap_or(1)
                });
                paper.announce(heights.sum::<usize>() + 4, self.total_width(&widths));
            }
            self.head(&widths, paper)?;
            self.shape = Shape::Grid { widths };
        }
        for row in waiting {
            self.row(&row, paper)?;
        }
        Ok(())
    }

    /// Columns that the whole table takes.
    fn total_width(&self, widths: &[usize]) -> usize {
        let n = widths.len();
        let lines = match self.view.border {
            0 => n.saturating_sub(1),
            1 => 3 * n - usize::from(n > 0),
            _ => 3 * n + 1,
        };
        widths.iter().sum::<usize>() + lines
    }

    /// Makes the widest text columns narrower until the table fits the window, if that leaves them readable.
    fn fit(&self, widths: &mut [usize], window: Option<usize>) {
        let text = |at: usize| !self.columns[at].right;
        let capped = |cap: usize| -> Vec<usize> {
            widths.iter().enumerate().map(|(at, width)| if text(at) { (*width).min(cap) } else { *width }).collect()
        };
        let fitting = window.and_then(|window| {
            let widest = widths.iter().copied().max().unwrap_or(0).min(window);
            (COLUMN_WIDTH_MIN..=widest.max(COLUMN_WIDTH_MIN))
                .rev()
                .map(capped)
                .find(|widths| self.total_width(widths) <= window)
        });
        let settled = fitting.unwrap_or_else(|| capped(COLUMN_WIDTH_MAX));
        widths.copy_from_slice(&settled);
    }

    fn head(&self, widths: &[usize], paper: &mut dyn Paper) -> Result<()> {
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        if self.is_markdown() {
            // Markdown knows no table without a header.
            let names: Vec<String> =
                names.into_iter().map(|name| if self.view.header { self.shown(name) } else { String::new() }).collect();
            self.markdown_row(&names, widths, paper)?;
            for (column, width) in self.columns.iter().zip(widths) {
                write!(paper, "|{}{}", "-".repeat(width + 1), if column.right { ':' } else { '-' })?;
            }
            writeln!(paper, "|")?;
            return Ok(());
        }
        let style = Style::new(self.view.unicode);
        if self.view.border >= 2 {
            self.rule(widths, style.top, paper)?;
        }
        if self.view.header {
            self.grid_row(&names, widths, paper)?;
            self.rule(widths, style.middle, paper)?;
        }
        Ok(())
    }

    fn row(&mut self, row: &[String], paper: &mut dyn Paper) -> Result<()> {
        match &mut self.shape {
            Shape::Collecting => Ok(()),
            Shape::Grid { widths } => {
                let widths = std::mem::take(widths);
                let written = if self.is_markdown() {
                    self.markdown_row(row, &widths, paper)
                } else {
                    self.grid_row(row, &widths, paper)
                };
                self.shape = Shape::Grid { widths };
                written
            }
            Shape::Records { name_width, value_width, next } => {
                let number = *next;
                *next += 1;
                let style = Style::new(self.view.unicode);
                record::write(&self.columns, row, number, (*name_width, *value_width), &style, paper)
            }
        }
    }

    fn markdown_row(&self, row: &[String], widths: &[usize], paper: &mut dyn Paper) -> Result<()> {
        for ((cell, width), column) in row.iter().zip(widths).zip(&self.columns) {
            write!(paper, "| {} ", padded(cell, cell.width(), *width, column.right))?;
        }
        writeln!(paper, "|")?;
        Ok(())
    }

    fn grid_row(&self, row: &[String], widths: &[usize], paper: &mut dyn Paper) -> Result<()> {
        let style = Style::new(self.view.unicode);
        let border = self.view.border;
        let cells: Vec<Vec<Line<'_>>> = row.iter().zip(widths).map(|(cell, width)| lines(cell, *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1).max(1);
        let mut line = String::new();
        for level in 0..height {
            line.clear();
            if border >= 2 {
                line.push(style.vertical);
            }
            for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
                if at > 0 && border >= 1 {
                    line.push(style.vertical);
                }
                if border >= 1 {
                    line.push(' ');
                }
                let (text, columns, end) =
                    cell.get(level).map_or(("", 0, End::Last), |line| (line.text, line.columns, line.end));
                line.push_str(&padded(text, columns, *width, self.columns[at].right));
                line.push(match end {
                    End::Last => ' ',
                    End::Newline => style.newline,
                    End::Wrapped => style.wrapped,
                });
            }
            if border >= 2 {
                line.push(style.vertical);
            }
            writeln!(paper, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn rule(&self, widths: &[usize], [left, cross, right]: [char; 3], paper: &mut dyn Paper) -> Result<()> {
        let style = Style::new(self.view.unicode);
        let padding = if self.view.border == 0 { 0 } else { 2 };
        let mut line = String::new();
        if self.view.border >= 2 {
            line.push(left);
        }
        for (at, width) in widths.iter().enumerate() {
            if at > 0 {
                line.push(if self.view.border == 0 { ' ' } else { cross });
            }
            line.extend(std::iter::repeat_n(style.horizontal, width + padding));
        }
        if self.view.border >= 2 {
            line.push(right);
        }
        writeln!(paper, "{line}")?;
        Ok(())
    }
}

impl Sink for Table {
    fn batch(&mut self, batch: &RecordBatch, paper: &mut dyn Paper) -> Result<()> {
        let null = self.null.clone();
        let cells = Cells::new(batch, &null)?;
        for row in 0..batch.num_rows() {
            let mut texts = Vec::with_capacity(self.columns.len());
            for column in 0..self.columns.len() {
                texts.push(self.shown(cells.text(row, column)?));
            }
            self.rows += 1;
            if !matches!(self.shape, Shape::Collecting) {
                self.row(&texts, paper)?;
                continue;
            }
            self.bytes_waiting += texts.iter().map(String::len).sum::<usize>();
            self.waiting.push(texts);
            if self.waiting.len() >= ROWS_WAITING_MAX || self.bytes_waiting >= BYTES_WAITING_MAX {
                self.begin(paper)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, paper: &mut dyn Paper) -> Result<()> {
        if matches!(self.shape, Shape::Collecting) {
            self.begin(paper)?;
        }
        if let Shape::Grid { widths } = &self.shape
            && self.view.border >= 2
            && !self.is_markdown()
        {
            self.rule(widths, Style::new(self.view.unicode).bottom, paper)?;
        }
        if self.view.footer && !self.is_markdown() {
            writeln!(paper, "({})", units::rows(self.rows))?;
        }
        Ok(())
    }

    fn is_collecting(&self) -> bool {
        matches!(self.shape, Shape::Collecting)
    }
}

/// The characters that lines are made of.
pub(super) struct Style {
    pub(super) horizontal: char,
    pub(super) vertical: char,
    top: [char; 3],
    pub(super) middle: [char; 3],
    bottom: [char; 3],
    pub(super) newline: char,
    pub(super) wrapped: char,
}

impl Style {
    fn new(unicode: bool) -> Self {
        if unicode {
            let (top, middle, bottom) = (['┌', '┬', '┐'], ['├', '┼', '┤'], ['└', '┴', '┘']);
            Self { horizontal: '─', vertical: '│', top, middle, bottom, newline: '↵', wrapped: '…' }
        } else {
            let plus = ['+', '+', '+'];
            Self { horizontal: '-', vertical: '|', top: plus, middle: plus, bottom: plus, newline: '+', wrapped: '.' }
        }
    }
}

/// One line of a value.
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    pub(super) columns: usize,
    pub(super) end: End,
}

/// Why a line of a value ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Last,
    Newline,
    Wrapped,
}

/// A value cut into lines of at most `width` columns; a single character that is wider stands alone.
pub(super) fn lines(text: &str, width: usize) -> Vec<Line<'_>> {
    let columns = text.width();
    if columns <= width && !text.contains('\n') {
        return vec![Line { text, columns, end: End::Last }];
    }
    let mut result = Vec::new();
    let mut paragraphs = text.split('\n').peekable();
    while let Some(paragraph) = paragraphs.next() {
        let mut rest = paragraph;
        loop {
            let length = prefix_length(rest, width);
            let (line, following) = rest.split_at(length);
            let end = match (following.is_empty(), paragraphs.peek()) {
                (false, _) => End::Wrapped,
                (true, Some(_)) => End::Newline,
                (true, None) => End::Last,
            };
            result.push(Line { text: line, columns: line.width(), end });
            if following.is_empty() {
                break;
            }
            rest = following;
        }
    }
    result
}

/// Bytes of the longest beginning of at most `width` columns: at least one character, not inside a joined emoji, and up
/// to a space if there is one in the second half.
fn prefix_length(text: &str, width: usize) -> usize {
    if text.width() <= width {
        return text.len();
    }
    let mut columns = 0;
    let mut joined = false;
    let mut after_space = None;
    for (at, character) in text.char_indices() {
        let advance = character.width().unwrap_or(0);
        let breakable = at > 0 && advance > 0 && !joined;
        if breakable && columns + advance > width {
            return after_space.unwrap_or(at);
        }
        if character == ' ' && columns >= width / 2 {
            after_space = Some(at + 1);
        }
        joined = character == '\u{200D}';
        columns += advance;
    }
    text.len()
}

/// Columns of the widest line.
fn text_width(text: &str) -> usize {
    if text.contains('\n') { text.split('\n').map(UnicodeWidthStr::width).max().unwrap_or(0) } else { text.width() }
}

/// The text with spaces up to the width.
fn padded(text: &str, columns: usize, width: usize, right: bool) -> String {
    let spaces = " ".repeat(width.saturating_sub(columns));
    if right { format!("{spaces}{text}") } else { format!("{text}{spaces}") }
}
