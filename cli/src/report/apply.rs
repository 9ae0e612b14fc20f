//! `nectarine report apply` and `diff`: a folder of files against the reports of a home.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use arrow::array::{AsArray, RecordBatch};
use nectarine_engine::report_from_file;

use super::quoted;
use crate::exec::Shell;
use crate::failure::{Failure, Result};

/// What a file wants.
struct Wanted {
    path: PathBuf,
    name: String,
    /// The statement that makes it so.
    statement: String,
    /// As the home would keep it.
    definition: String,
    /// `new`, `changed` or `same`.
    change: String,
}

/// Makes the reports of a home what the files say. All files are looked at before anything changes.
pub(super) fn apply(shell: &mut Shell, folder: &Path, dry_run: bool, prune: bool) -> Result<()> {
    let wanted = wanted(shell, folder)?;
    let extra = not_in(shell, &wanted)?;
    let mut left: Vec<&Wanted> = wanted.iter().filter(|one| one.change != "same").collect();
    // Those that need others come after them, whatever they are called.
    while !left.is_empty() {
        let n_left = left.len();
        let mut refused = None;
        let mut later = vec![];
        for one in left {
            match if dry_run { Ok(vec![]) } else { shell.fetch(&one.statement) } {
                Ok(_) => shell.terminal.say(&format!("{}: {}", one.change, one.name)),
                Err(failure) => {
                    refused = Some(named(&one.path, failure));
                    later.push(one);
                }
            }
        }
        left = later;
        if let Some(failure) = refused.filter(|_| left.len() == n_left) {
            return Err(failure);
        }
    }
    for name in &extra {
        match (prune, dry_run) {
            (true, true) => shell.terminal.say(&format!("dropped: {name}")),
            (true, false) => {
                shell.fetch(&format!("DROP REPORT {}", quoted(name, '"')))?;
                shell.terminal.say(&format!("dropped: {name}"));
            }
            (false, _) => shell.terminal.say(&format!("not in the folder, left as it is: {name}")),
        }
    }
    let n_same = wanted.iter().filter(|one| one.change == "same").count();
    shell.terminal.say(&format!("{} of {} are as they should be", n_same, wanted.len()));
    Ok(())
}

/// Says what applying would change, line by line.
pub(super) fn diff(shell: &mut Shell, folder: &Path) -> Result<()> {
    let wanted = wanted(shell, folder)?;
    let known = definitions(shell)?;
    for one in wanted.iter().filter(|one| one.change != "same") {
        let before = known.get(&one.name).map(String::as_str).unwrap_or_default();
        writeln!(shell.output, "{} ({})", one.name, one.path.display())?;
        for line in lines(before, &one.definition) {
            writeln!(shell.output, "{line}")?;
        }
    }
    for name in not_in(shell, &wanted)? {
        writeln!(shell.output, "{name} (not in the folder)")?;
    }
    Ok(shell.output.flush()?)
}

fn wanted(shell: &mut Shell, folder: &Path) -> Result<Vec<Wanted>> {
    let failed = |path: &Path, error: &std::io::Error| Failure::io(format!("cannot read '{}'", path.display()), error);
    let entries = std::fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sql")));
    paths.sort();
    let mut wanted: Vec<Wanted> = vec![];
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let statement = report_from_file(&stem, &text);
        let statement = statement.map_err(|error| named(&path, Failure::statement(error, "")))?;
        let (name, change, definition) = explained(shell, &statement).map_err(|failure| named(&path, failure))?;
        if let Some(other) = wanted.iter().find(|one| one.name == name) {
            let message = format!("'{}' and '{}' are both \"{name}\"", other.path.display(), path.display());
            return Err(Failure::new(message));
        }
        wanted.push(Wanted { path, name, statement, definition, change });
    }
    Ok(wanted)
}

/// Trouble with what a file says.
fn named(path: &Path, failure: Failure) -> Failure {
    let Failure::Statement { error, .. } = failure else { return failure };
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    let named = Failure::new(format!("{}: {}{detail}", path.display(), error.message()));
    match error.hint() {
        Some(hint) => named.with_hint(hint),
        None => named,
    }
}

/// What a statement would make, without making it.
fn explained(shell: &mut Shell, statement: &str) -> Result<(String, String, String)> {
    let batches = shell.fetch(&format!("EXPLAIN {statement}"))?;
    let text = |column: usize| {
        let batch = batches.iter().find(|batch| batch.num_rows() > 0);
        batch.map(|batch| batch.column(column).as_string::<i32>().value(0).to_owned()).unwrap_or_default()
    };
    Ok((text(0), text(1), text(2)))
}

fn definitions(shell: &mut Shell) -> Result<BTreeMap<String, String>> {
    let batches = shell.fetch("SELECT name, definition FROM system.reports")?;
    let pairs = |batch: &RecordBatch| {
        let (names, texts) = (batch.column(0).as_string::<i32>().clone(), batch.column(1).as_string::<i32>().clone());
        (0..batch.num_rows()).map(|row| (names.value(row).to_owned(), texts.value(row).to_owned())).collect::<Vec<_>>()
    };
    Ok(batches.iter().flat_map(pairs).collect())
}

/// Reports of the home that no file stands for.
fn not_in(shell: &mut Shell, wanted: &[Wanted]) -> Result<Vec<String>> {
    let known = definitions(shell)?;
    Ok(known.into_keys().filter(|name| wanted.iter().all(|one| one.name != *name)).collect())
}

/// The lines of two texts: what is gone, what is new, what stayed.
fn lines(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    // Lengths of the longest common sequences of what follows.
    let mut common = vec![vec![0_usize; after.len() + 1]; before.len() + 1];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            common[i][j] = match before[i] == after[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut told) = (0, 0, vec![]);
    while i < before.len() || j < after.len() {
        if i < before.len() && j < after.len() && before[i] == after[j] {
            told.push(format!("  {}", before[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < before.len() && (j == after.len() || common[i + 1][j] >= common[i][j + 1]) {
            told.push(format!("- {}", before[i]));
            i += 1;
        } else {
            told.push(format!("+ {}", after[j]));
            j += 1;
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_by_lines() {
        assert_eq!(lines("a\nb\nc", "a\nx\nc\nd"), ["  a", "- b", "+ x", "  c", "+ d"]);
        assert_eq!(lines("", "a"), ["+ a"]);
        assert_eq!(lines("a", "a"), ["  a"]);
    }
}
