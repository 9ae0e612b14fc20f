//! `\copy`: COPY with a path that is relative to where the shell was started.
//!
//! ```text
//!   \copy t from 'in.csv'                  COPY t FROM '/here/in.csv'
//!   \copy (select 1) to out.parquet        COPY (select 1) TO '/here/out.parquet'
//!   \copy t to stdout                      COPY t TO STDOUT
//! ```
//!
//! What follows the path goes along as it is.

use std::path::Path;

use crate::client::Client;
use crate::exec::Shell;
use crate::failure::{Failure, Result};
use crate::lexer::{Kind, Lexer};
use crate::variables::quoted;

impl Shell {
    pub(super) fn copy(&mut self, text: &str) -> Result<()> {
        // A server would take the path for one of its own.
        if matches!(self.client, Client::There(_)) {
            return Err(Failure::new("\\copy needs the home itself, not a server").with_hint(
                "for files here: \\pset format csv, \\o FILE and the query; COPY is for files of the server",
            ));
        }
        let text = self.variables.interpolate(text);
        let folder = std::env::current_dir().map_err(|error| Failure::io("cannot tell the working folder", &error))?;
        let sql = statement(&text, &folder).ok_or_else(|| {
            Failure::new("\\copy needs a table and a file")
                .with_hint("\\copy TABLE from 'FILE', or \\copy (SELECT ..) to 'FILE'")
        })?;
        self.run_statement(&sql)
    }
}

/// The COPY statement, or `None` when there is no direction or no path.
fn statement(text: &str, folder: &Path) -> Option<String> {
    let mut depth = 0_usize;
    let mut direction = None;
    for token in Lexer::new(text) {
        match (token.kind, &text[token.range.clone()]) {
            (Kind::Mark, "(") => depth += 1,
            (Kind::Mark, ")") => depth = depth.saturating_sub(1),
            (Kind::Word, word) if depth == 0 && ["from", "to"].iter().any(|known| word.eq_ignore_ascii_case(known)) => {
                direction = Some(token.range);
                break;
            }
            _ => {}
        }
    }
    let direction = direction?;
    let what = text[..direction.start].trim();
    let rest = text[direction.end..].trim_start();
    let (path, options) = if rest.starts_with('\'') {
        let token = Lexer::new(rest).next()?;
        let inner = rest[token.range.clone()].strip_prefix('\'')?.strip_suffix('\'')?;
        (inner.replace("''", "'"), &rest[token.range.end..])
    } else {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        (rest[..end].to_owned(), &rest[end..])
    };
    if what.is_empty() || path.is_empty() {
        return None;
    }
    let is_standard = |name: &str| !rest.starts_with('\'') && path.eq_ignore_ascii_case(name);
    if let Some(standard) = ["STDIN", "STDOUT"].into_iter().find(|name| is_standard(name)) {
        let direction = text[direction].to_ascii_uppercase();
        return Some(format!("COPY {what} {direction} {standard}{}", options.trim_end()));
    }
    let path = if path.contains("://") { path } else { folder.join(path).display().to_string() };
    let direction = text[direction].to_ascii_uppercase();
    Some(format!("COPY {what} {direction} {}{}", quoted(&path, '\''), options.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute() {
        let check = |text, expected: Option<&str>| assert_eq!(statement(text, Path::new("/here")).as_deref(), expected);
        check("t from 'in.csv'", Some("COPY t FROM '/here/in.csv'"));
        check("t FROM in.csv  options (a 1) ", Some("COPY t FROM '/here/in.csv'  options (a 1)"));
        check(
            "(select a from b where c = 'to') to 'it''s.csv'",
            Some("COPY (select a from b where c = 'to') TO '/here/it''s.csv'"),
        );
        check("t to /tmp/x", Some("COPY t TO '/tmp/x'"));
        check("t to stdout", Some("COPY t TO STDOUT"));
        check("t from STDIN (header)", Some("COPY t FROM STDIN (header)"));
        check("t to 'stdout'", Some("COPY t TO '/here/stdout'"));
        check("t to 's3://b/x.csv'", Some("COPY t TO 's3://b/x.csv'"));
        for text in ["", "t", "t from", "from x", "t from 'open", "t from ''"] {
            check(text, None);
        }
    }
}
