//! The derived store: what programs made, kept so that it need not be made again.
//!
//! ```text
//!   store      where parts are: an object store, and a bounded memory of small entries
//!   local      the same in a folder of this machine
//!   part       one part as bytes: encoded, and decoded only after everything about it was checked
//!   storable   which types survive that
//!   compact    a small slice of large buffers without the large buffers
//!   recording  what one AddEntry collects, and when that is whole
//!   tee        the stream that shows a recording what passes
//!   error      what can be wrong with an entry, and why something was not recorded
//! ```
//!
//! Anything here may be deleted at any time; nothing here may fail a statement.

mod compact;
mod error;
mod local;
mod part;
mod recording;
mod storable;
mod store;
mod tee;

pub use error::{DerivedError, NotRecorded};
pub(crate) use part::relabel;
pub use recording::{Finished, Recording, RecordingLimits};
pub use store::{DerivedStore, LoadedEntry, StoredObject};

#[cfg(test)]
pub(crate) mod testing;
