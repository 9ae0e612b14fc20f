//! The derived store: what programs made, kept so that it need not be made again.
//!
//! ```text
//!   store      where parts are, and a bounded memory of small entries
//!   place      one folder or bucket with parts in it; asked with bounded patience
//!   local      parts as files of this machine
//!   location   what parts are called, and who wrote them
//!   room       asked before anything is written
//!   in_flight  parts that are no entry's yet
//!   unpublished  the same with their room, deleted unless they are published
//!   undeleted  parts that could not be deleted
//!   walk       what there is, for the collector
//!   health     a store that made us wait in vain is not asked again for a moment
//!   part       one part as bytes: encoded, and decoded only after everything about it was checked
//!   storable   which types survive that
//!   compact    a small slice of large buffers without the large buffers
//!   recording  what one AddEntry collects, and when that is whole
//!   tee        the stream that shows a recording what passes
//!   thrift     how much may be recorded of what nobody has asked for yet
//!   error      what can be wrong with an entry, and why something was not recorded
//! ```
//!
//! Anything here may be deleted at any time; nothing here may fail a statement.

mod compact;
mod error;
mod health;
mod in_flight;
mod local;
mod location;
mod part;
mod place;
mod recording;
mod room;
mod storable;
mod store;
mod tee;
mod thrift;
mod undeleted;
mod unpublished;
mod walk;

pub use error::{DerivedError, NotRecorded};
pub use location::Writer;
pub(crate) use part::relabel;
pub use recording::{Finished, Recording, RecordingLimits};
pub use room::{Reserved, Room};
pub use store::{DerivedStore, LoadedEntry, StoredObject};
pub(crate) use store::{decode_part, decode_verified_part};
pub use unpublished::Unpublished;
pub use walk::{Found, FoundKind, Removed, Section};

#[cfg(test)]
pub(crate) mod testing;
