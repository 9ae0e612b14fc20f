//! The derived store: what programs made, kept so that it need not be made again.
//!
//! ```text
//!   store      where parts are, and a bounded memory of small entries
//!   place      one folder or bucket with parts in it; asked with bounded patience
//!   local      parts as files of this machine
//!   location   what parts are called
//!   health     a store that made us wait in vain is not asked again for a moment
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
mod health;
mod local;
mod location;
mod part;
mod place;
mod recording;
mod storable;
mod store;
mod tee;

pub use error::{DerivedError, NotRecorded};
pub(crate) use part::relabel;
pub use recording::{Finished, Recording, RecordingLimits};
pub(crate) use store::decode_part;
pub use store::{DerivedStore, LoadedEntry, StoredObject};

#[cfg(test)]
pub(crate) mod testing;
