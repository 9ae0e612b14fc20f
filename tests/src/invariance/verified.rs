//! [`Verified`]: what VERIFY says about the entries that are left in the end.
//!
//! ```text
//!   same           it holds what is computed anew
//!   different      it does not, though nobody damaged its files: must never be
//!   evicted        it was made from one that is different
//!   damaged        its files are gone or are others: the harness does that to some, and checksums tell
//!   not verified   luck decides about its rows, or its tables, files and settings are no longer those that it was made with
//! ```

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use nectarine_engine::Session;

/// Reasons that are told.
const REASONS_MAX: usize = 8;

/// What came of it.
#[derive(Debug, Default)]
pub struct Verified {
    /// Entries that there were.
    pub n_entries: usize,
    /// Entries that were wrong, with the statements that made them, for people.
    pub different: Vec<String>,
    outcomes: BTreeMap<String, usize>,
    reasons: BTreeMap<String, usize>,
}

/// Has all entries computed anew and compared, or about so many of them, another choice each time.
pub async fn verify_all(session: &Session, n_max: usize) -> Verified {
    let before = answer(session, "SELECT fingerprint, sql FROM system.cache_entries").await;
    let fingerprints = column(&before, "fingerprint");
    let mut verified = Verified { n_entries: fingerprints.len(), ..Verified::default() };
    // Entries that are wrong are gone afterwards, and with them who made them.
    let made_by: HashMap<String, String> = fingerprints.into_iter().zip(column(&before, "sql")).collect();
    let sql = match verified.n_entries > n_max {
        true => format!("VERIFY ALL SAMPLE {:.3} PERCENT", 100.0 * n_max as f64 / verified.n_entries as f64),
        false => "VERIFY ALL".to_owned(),
    };
    let told = answer(session, &sql).await;
    let (entries, outcomes, details) = (column(&told, "entry"), column(&told, "outcome"), column(&told, "detail"));
    for ((entry, outcome), detail) in entries.into_iter().zip(outcomes).zip(details) {
        match outcome.as_str() {
            "different" | "evicted" => {
                let made_by = made_by.get(&entry).map_or("", String::as_str);
                verified.different.push(format!("entry {entry} is {outcome}: {detail}\n  made by: {made_by}"));
            }
            "not verified" => {
                // Without the names and numbers in it.
                let reason = detail.split([':', ',', '"']).next().unwrap_or_default();
                let reason = reason.trim_start_matches(|c: char| c.is_ascii_digit()).trim();
                *verified.reasons.entry(reason.to_owned()).or_default() += 1;
            }
            _ => {}
        }
        *verified.outcomes.entry(outcome).or_default() += 1;
    }
    verified
}

impl Verified {
    /// How many came out so.
    pub fn counted(&self, outcome: &str) -> usize {
        self.outcomes.get(outcome).copied().unwrap_or(0)
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_looked_at: usize = self.outcomes.values().sum();
        writeln!(f, "VERIFY: {n_looked_at} of {} entries", self.n_entries)?;
        for (outcome, n) in &self.outcomes {
            writeln!(f, "  {n:>8} {outcome}")?;
        }
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        for (reason, n) in reasons.into_iter().take(REASONS_MAX) {
            writeln!(f, "  {n:>8} not verified because: {reason}")?;
        }
        self.different.iter().try_for_each(|what| writeln!(f, "{what}"))
    }
}

async fn answer(session: &Session, sql: &str) -> Vec<RecordBatch> {
    let answer = session.execute(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
    answer.collect().await.unwrap_or_else(|error| panic!("{sql}\n{error:?}"))
}

/// A column as text.
fn column(batches: &[RecordBatch], name: &str) -> Vec<String> {
    let options = FormatOptions::default();
    let mut values = vec![];
    for batch in batches {
        let column = batch.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"));
        let formatter = ArrayFormatter::try_new(column.as_ref(), &options).expect("a printable column");
        values.extend((0..batch.num_rows()).map(|row| formatter.value(row).to_string()));
    }
    values
}
