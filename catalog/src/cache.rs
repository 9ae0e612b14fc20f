//! The view cache: which results exist, of which program, over which extents.
//!
//! ```text
//!   entry        the records: an entry, its parts, its program, its summary
//!   change       what the metadata store tells an index: entries that came and went, counts to write down
//!   view_cache   [`ViewCache`]: Lookup, Inquire, AddEntry; what the rest of the engine talks to
//!   index        all summaries in memory, by key and by program
//!   inputs       the extents of entries that were asked for lately
//!   digest_map   a compact map from fingerprints to records
//!   counts       what is counted in memory until it is written down: uses and look-ups
//! ```
//!
//! The metadata store is the truth; the index follows it. The index may be behind (an entry is then missed once more, or
//! its files are found missing and it is computed again), it never invents an entry.

mod change;
mod counts;
mod digest_map;
mod entry;
mod index;
mod inputs;
#[cfg(test)]
mod tests;
mod view_cache;

pub use self::change::{AddedEntries, CacheChange, CacheChanges, DroppedEntries, LookupCount, UseCount};
pub(crate) use self::entry::bounded;
pub use self::entry::{CacheEntry, DESCRIPTION_BYTES_MAX, EntryKind, EntryPart, EntrySummary, ProgramRecord};
pub use self::inputs::EntryInputs;
pub use self::view_cache::{Inquiry, Totals, ViewCache};
