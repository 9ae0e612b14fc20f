//! The view cache: which results exist, of which program, over which extents.
//!
//! ```text
//!   entry        the records: an entry, its parts, its program, its summary
//!   change       what the metadata store tells an index: entries that came and went, counts to write down
//!   view_cache   [`ViewCache`]: Lookup, Inquire, AddEntry; what the rest of the engine talks to
//!   index        all summaries in memory, by key and by program
//!   inputs       the extents of entries that were asked for lately
//!   digest_map   a compact map from fingerprints to records
//!   space        room that is set aside, and what was evicted to make some
//!   pin          results that are not evicted to make room
//!   counts       what is counted in memory until it is written down: uses and look-ups
//!   source       how programs came to be
//!   provenance   what entries were made of
//!   packing      small texts, packed
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
pub(crate) mod packing;
mod pin;
mod provenance;
mod source;
mod space;
#[cfg(test)]
mod tests;
mod view_cache;

pub use self::change::{AddedEntries, CacheChange, CacheChanges, DroppedEntries, LookupCount, UseCount};
pub(crate) use self::entry::bounded;
pub use self::entry::{
    CacheEntry, DESCRIPTION_BYTES_MAX, EntryKind, EntryPart, EntrySummary, ProgramRecord, RelativeRecord,
};
pub use self::inputs::EntryInputs;
pub(crate) use self::pin::bytes_besides;
pub use self::pin::{Pin, PinMove, PinMoves, PinOutcome, PinSubject};
pub(crate) use self::provenance::groups_of;
pub use self::provenance::{
    DataScope, EntryLineage, EntryProvenance, ExtentPlace, InputLineage, InputProvenance, NewEntry, Publication,
};
pub use self::source::{NamedText, ProgramRun, ProgramSource, StoredProgram, source_name};
pub use self::space::{CacheLease, EvictionNote, EvictionRecord, EvictionTotals, SpaceOutcome, SpaceRequest};
pub use self::view_cache::{Inquiry, Totals, ViewCache};
