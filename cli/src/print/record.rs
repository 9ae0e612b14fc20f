//! One row as a record: a line per column, for rows too wide to stand side by side.

use unicode_width::UnicodeWidthStr;

use super::Paper;
use super::cell::Column;
use super::table::{End, Style, lines};
use crate::failure::Result;

/// Writes one row with its number.
pub(super) fn write(
    columns: &[Column],
    row: &[String],
    number: u64,
    (name_width, value_width): (usize, usize),
    style: &Style,
    paper: &mut dyn Paper,
) -> Result<()> {
    let label = format!("{0}[ RECORD {number} ]", style.horizontal);
    // The rule crosses where names end, unless the label already goes further.
    let total = name_width + 2 + value_width + 1;
    let mut rule = label.clone();
    for at in label.width()..total {
        rule.push(if at == name_width + 1 { style.middle[1] } else { style.horizontal });
    }
    writeln!(paper, "{rule}")?;
    for (column, value) in columns.iter().zip(row) {
        let mut name = column.name.as_str();
        for line in lines(value, value_width) {
            let spaces = " ".repeat(name_width.saturating_sub(name.width()));
            let mark = match line.end {
                End::Last => "",
                End::Newline => &style.newline.to_string(),
                End::Wrapped => &style.wrapped.to_string(),
            };
            let text = format!("{name}{spaces} {} {}{mark}", style.vertical, line.text);
            writeln!(paper, "{}", text.trim_end())?;
            name = "";
        }
    }
    Ok(())
}
