//! Files and folders whose path begins as typed, written so that the path is one text.
//!
//! ```text
//!   'da        ->  'data.csv'       the only one: its quote is closed
//!   'da        ->  'data/           a folder: more may follow
//!   \i my      ->  \i 'my file.sql' a blank would end the argument
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use rustyline::completion::Pair;

use super::CANDIDATES_MAX;

/// What follows the cursor, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// The path stands behind a quote that is not closed.
    Open,
    /// The same, and the quote that closes it follows.
    Closed,
    /// It stands alone, as an argument of a command.
    None,
}

/// Candidates for a path, of which `typed` is there, without the quote before it.
pub(super) fn files(typed: &str, quotes: Quotes) -> Vec<Pair> {
    let typed = if quotes == Quotes::None { typed.to_owned() } else { typed.replace("''", "'") };
    let (folder, begun) = match typed.rfind('/') {
        Some(slash) => typed.split_at(slash + 1),
        None => ("", typed.as_str()),
    };
    let place = if folder.is_empty() { Path::new(".") } else { Path::new(folder) };
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut found = BTreeSet::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.starts_with(begun) || (name.starts_with('.') && begun.is_empty()) {
            continue;
        }
        let is_folder = entry.path().is_dir();
        found.insert(if is_folder { format!("{name}/") } else { name });
    }
    let written = |name: &str| {
        let path = format!("{folder}{name}");
        let needs_quotes = path.contains(|letter: char| letter.is_whitespace() || "'\"".contains(letter));
        if quotes == Quotes::None && !needs_quotes {
            return path;
        }
        let opening = if quotes == Quotes::None { "'" } else { "" };
        let closing = if quotes == Quotes::Closed || name.ends_with('/') { "" } else { "'" };
        format!("{opening}{}{closing}", path.replace('\'', "''"))
    };
    found.into_iter().take(CANDIDATES_MAX).map(|name| Pair { replacement: written(&name), display: name }).collect()
}
