//! Which inputs of a program are others than those of the nearest entry of it, in words.
//!
//! For EXPLAIN REUSE only: it reads entries from the metadata store. The text is bounded, whatever the number of extents.

use std::collections::HashMap;

use nectarine_catalog::{CacheEntry, Extent, Fingerprint, ViewCache};
use nectarine_planner::canonical::{Input, Prefix};

/// Entries of one program that are looked at, the youngest.
const ENTRIES_MAX: usize = 16;
/// Inputs that are named.
const INPUTS_MAX: usize = 3;
/// Extents that are named of each.
const EXTENTS_MAX: usize = 3;

/// What differs between the extents of a prefix and those of the entry that has most of them. `None` if no entry of its
/// program can be read.
pub(super) async fn inputs_changed(cache: &ViewCache, prefix: &Prefix) -> Option<String> {
    let mut nearest: Option<Changes<'_>> = None;
    for summary in cache.entries_of(&prefix.program).iter().take(ENTRIES_MAX) {
        let Ok(Some(entry)) = cache.entry(&summary.key).await else { continue };
        let Some(changes) = Changes::of(prefix, &entry) else { continue };
        if nearest.as_ref().is_none_or(|nearest| changes.n_extents < nearest.n_extents) {
            nearest = Some(changes);
        }
    }
    nearest.map(|changes| changes.words())
}

/// What differs from one entry.
struct Changes<'a> {
    inputs: Vec<Change<'a>>,
    /// Extents that only one of the two has.
    n_extents: usize,
}

struct Change<'a> {
    table: &'a str,
    /// Extents that the entry has not.
    new: Vec<&'a Extent>,
    /// Extents that only the entry has; nobody knows where they were.
    n_lacking: usize,
}

impl<'a> Changes<'a> {
    fn of(prefix: &'a Prefix, entry: &CacheEntry) -> Option<Self> {
        // One program has one list of inputs.
        if prefix.inputs.len() != entry.inputs.len() {
            return None;
        }
        let mut inputs: Vec<Change<'a>> = vec![];
        for (input, old) in prefix.inputs.iter().zip(&entry.inputs) {
            inputs.extend(Change::of(input, old));
        }
        let n_extents = inputs.iter().map(|change| change.new.len() + change.n_lacking).sum();
        Some(Self { inputs, n_extents })
    }

    fn words(&self) -> String {
        let mut told: Vec<String> = vec![];
        for change in &self.inputs {
            let words = change.words();
            // A table that is read twice changed once.
            if !told.contains(&words) {
                told.push(words);
            }
        }
        let n_more = told.len().saturating_sub(INPUTS_MAX);
        told.truncate(INPUTS_MAX);
        let more = if n_more > 0 { format!("; and {n_more} more") } else { String::new() };
        format!("inputs changed: {}{more}", told.join("; "))
    }
}

impl<'a> Change<'a> {
    fn of(input: &'a Input, old: &[Fingerprint]) -> Option<Self> {
        let is_same = input.extents.len() == old.len()
            && input.extents.iter().zip(old).all(|(extent, old)| extent.fingerprint == *old);
        if is_same {
            return None;
        }
        let mut left: HashMap<Fingerprint, usize> = HashMap::new();
        old.iter().for_each(|extent| *left.entry(*extent).or_default() += 1);
        let mut new = vec![];
        for extent in input.extents.iter() {
            match left.get_mut(&extent.fingerprint) {
                Some(n) if *n > 0 => *n -= 1,
                _ => new.push(extent.as_ref()),
            }
        }
        Some(Self { table: &input.table, new, n_lacking: left.values().sum() })
    }

    fn words(&self) -> String {
        let table = self.table.strip_prefix("public.").unwrap_or(self.table);
        if self.new.is_empty() && self.n_lacking == 0 {
            return format!("\"{table}\" has the same extents in another order");
        }
        let n_new = self.new.len();
        let extents = if n_new == 1 { "extent" } else { "extents" };
        let mut named: Vec<String> = self.new.iter().take(EXTENTS_MAX).map(|extent| name_of(extent)).collect();
        if n_new > EXTENTS_MAX {
            named.push(format!("and {} more", n_new - EXTENTS_MAX));
        }
        let named = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
        format!("\"{table}\" has {n_new} {extents} that the entry has not{named}, lacks {}", self.n_lacking)
    }
}

/// The folder and the file of an extent, and which part of it.
fn name_of(extent: &Extent) -> String {
    let mut last = extent.location.rsplit('/');
    let file = last.next().unwrap_or_default();
    let name = match last.next() {
        Some(folder) if !folder.is_empty() => format!("{folder}/{file}"),
        _ => file.to_string(),
    };
    match extent.range {
        Some(range) if range.start > 0 || range.end < extent.file_bytes => {
            format!("{name} bytes {} to {}", range.start, range.end)
        }
        _ => name,
    }
}
