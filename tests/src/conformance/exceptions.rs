//! Records and files whose answers differ on purpose, each with its reason.
//!
//! ```text
//!   explain.slt        plans are printed by Nectarine's own nodes
//!   insert.slt:214     INSERT OVERWRITE: tables are append-only
//!   math.slt:533       either way: LIMIT without ORDER BY may take another row
//! ```

use std::collections::BTreeMap;

/// The list.
#[derive(Debug, Default)]
pub struct Exceptions {
    files: BTreeMap<String, String>,
    records: BTreeMap<(String, u32), String>,
}

impl Exceptions {
    /// Reads the list; a line that does not parse or has no reason is an error.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut exceptions = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (place, reason) = line.split_once(char::is_whitespace).ok_or_else(|| format!("no reason: {line}"))?;
            let reason = reason.trim().to_string();
            match place.split_once(".slt:") {
                Some((file, number)) => {
                    let number = number.parse().map_err(|_| format!("no line number: {line}"))?;
                    exceptions.records.insert((format!("{file}.slt"), number), reason);
                }
                None => {
                    exceptions.files.insert(place.to_string(), reason);
                }
            }
        }
        Ok(exceptions)
    }

    /// Why a whole file is left out.
    pub fn file(&self, file: &str) -> Option<&str> {
        self.files.get(file).map(String::as_str)
    }

    /// Why a record is left out.
    pub fn record(&self, file: &str, line: u32) -> Option<&str> {
        self.records.get(&(file.to_string(), line)).map(String::as_str)
    }

    /// Records that are listed for a file.
    pub fn records(&self, file: &str) -> impl Iterator<Item = u32> {
        self.records.keys().filter(move |(known, _)| known == file).map(|(_, line)| *line)
    }
}
