//! [`EngineError::locate`]: where in the text an error is, and what may have been meant.

use std::path::Path;

use nectarine_catalog::{FileFormatKind, FileKind};
use nectarine_planner::sql::{find_name, offset_of};

use super::suggest::{did_you_mean, nearest};
use super::{About, EngineError};

/// Names that a statement could have meant.
#[derive(Clone, Debug, Default)]
pub struct NameHints {
    /// Schema and name of tables and views.
    pub tables: Vec<(String, String)>,
    /// Functions of all kinds.
    pub functions: Vec<String>,
    /// Whether files of this machine may be hinted at.
    pub sees_files: bool,
}

impl EngineError {
    /// Adds the position in `sql`, and a name that is near to one that was not found. For errors about `sql` itself:
    /// those about a view inside of it have positions in another text.
    #[must_use]
    pub fn locate(mut self, sql: &str, names: &NameHints) -> Self {
        let inner = &mut self.0;
        let span = inner.span.take();
        if inner.position.is_none() {
            inner.position = span.and_then(|span| offset_of(sql, span.start.line, span.start.column));
            // The span of a long expression starts at its first word. A name is better looked for.
            if let Some(about) = &inner.about
                && !inner.position.is_some_and(|at| names_it(&sql[at..], about))
            {
                inner.position = find_name(sql, about.last_part()).or(inner.position);
            }
        }
        match &inner.about {
            Some(About::MissingTable(name)) if inner.hint.is_none() => {
                let path = inner.about.as_ref().filter(|_| names.sees_files).and_then(|about| path_meant(sql, about));
                let table = || inner.about.as_ref().and_then(|about| table_meant(about.last_part(), names));
                inner.hint = path.or_else(table);
                if inner.hint.is_none()
                    && names.sees_files
                    && let Some(file) = file_without_quotes(sql, name, names)
                {
                    inner.message = format!("table \"{file}\" does not exist");
                    inner.hint = Some(format!("a file is read by its name in quotes: FROM '{file}'"));
                }
            }
            // DataFusion finds window functions only where there is a window.
            Some(About::MissingFunction(name)) if names.functions.contains(name) => {
                inner.message = format!("function \"{name}\" needs an OVER clause");
                inner.hint = Some(format!("write {name}(..) OVER (..)"));
            }
            Some(About::MissingFunction(name)) if inner.hint.is_none() => {
                let nearest = || nearest(name, names.functions.iter().map(String::as_str));
                let reader = if names.sees_files { reader_meant(sql, name) } else { None };
                inner.hint = reader.or_else(|| nearest().map(|meant| did_you_mean(name, meant)));
            }
            _ => {}
        }
        self
    }
}

/// What to do about `FROM 'notes'` and `FROM 'notes.txt'`, if there is such a folder or file.
fn path_meant(sql: &str, about: &About) -> Option<String> {
    let is_meant = |path: &&str| !path.is_empty() && path.rsplit('.').next() == Some(about.last_part());
    let path = sql.split('\'').skip(1).step_by(2).find(is_meant)?;
    let on_disk = Path::new(path);
    if on_disk.is_dir() {
        return Some(format!("there is a folder of that name: write '{path}/'"));
    }
    let format = "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION";
    on_disk
        .is_file()
        .then(|| format!("there is a file of that name, which does not tell its format: {format} '{path}'"))
}

/// `x.csv` as it is written in `FROM x.csv`, where it is table `csv` of schema `x`. Who looks it up puts a catalog before it.
fn file_without_quotes<'a>(sql: &'a str, name: &str, names: &NameHints) -> Option<&'a str> {
    let ends = std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, rest)| rest));
    let lower = sql.to_ascii_lowercase();
    let written = ends.filter(|end| FileKind::of(end).is_some()).find_map(|end| {
        let at = lower.find(&end.to_ascii_lowercase())?;
        sql.get(at..at + end.len())
    })?;
    let stem = written.split('.').next()?;
    (!names.tables.iter().any(|(schema, _)| schema == stem)).then_some(written)
}

/// What to write instead of other engines' `read_csv('x.csv')`.
fn reader_meant(sql: &str, name: &str) -> Option<String> {
    let format = name
        .strip_prefix("read_")
        .or_else(|| name.strip_prefix("scan_"))
        .or_else(|| name.strip_suffix("_scan"))
        .and_then(|rest| rest.split('_').next())?;
    FileFormatKind::parse(format)?;
    let called = sql.to_ascii_lowercase().find(&name.to_ascii_lowercase());
    let arguments = called.and_then(|at| sql.get(at + name.len()..)).filter(|rest| rest.trim_start().starts_with('('));
    let file = arguments.and_then(|rest| rest.split('\'').nth(1)).unwrap_or("file");
    Some(format!("a file is read by its name in quotes: FROM '{file}'; CREATE EXTERNAL TABLE takes options"))
}

fn table_meant(name: &str, names: &NameHints) -> Option<String> {
    // The right name in another schema is the best guess.
    if let Some((schema, table)) = names.tables.iter().find(|(_, table)| table == name) {
        return Some(format!("did you mean \"{schema}.{table}\"?"));
    }
    nearest(name, names.tables.iter().map(|(_, table)| table.as_str())).map(|meant| did_you_mean(name, meant))
}

impl About {
    fn last_part(&self) -> &str {
        let (Self::MissingTable(name) | Self::MissingFunction(name) | Self::Column(name) | Self::Name(name)) = self;
        name.rsplit('.').next().unwrap_or(name)
    }
}

/// Whether `text` begins with the name it is about, quoted or qualified as it may be.
fn names_it(text: &str, about: &About) -> bool {
    let end = text.find(|c: char| !c.is_alphanumeric() && !"_.\"`$".contains(c)).unwrap_or(text.len());
    let name = text[..end].rsplit('.').next().unwrap_or_default();
    name.trim_matches(['"', '`']).eq_ignore_ascii_case(about.last_part())
}
