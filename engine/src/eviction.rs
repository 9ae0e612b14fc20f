//! Eviction: how much derived data there may be, and which of it goes when room is needed.
//!
//! ```text
//!   policy   pure: from statistics to the entries that go, in order
//!   budget   what the settings come to on this disk
//!   levels   pure: high and low water of a budget
//!   ledger   room is set aside before anything is written, by all processes of a home together
//!   in_vain  where dropping entries frees nothing
//!   readers  entries that a statement of this process is about to read
//!   evictor  drops entries until the low-water mark is reached
//!   shadow   pure: what twice or half the budget would have saved
//! ```
//!
//! Entries, what is set aside and what could not be deleted never come to more than the budget. Leases keep what is needed:
//!
//! ```text
//!   fresh entries      for some time, so that they can show what they are worth, and so that who waits for one finds it
//!   entries to read    from when a plan names them until they are loaded; a running statement holds its own copy
//!   parts in flight    from before their first byte until they are an entry's, or deleted: in memory here, and for other
//!                      processes by the lease of the process that wrote them, which ends when the process does
//! ```

mod budget;
mod evictor;
mod in_vain;
mod ledger;
mod levels;
mod policy;
mod readers;
mod shadow;

pub(crate) use self::budget::{Budget, parse_share};
pub(crate) use self::evictor::{Evictor, Why};
pub(crate) use self::in_vain::InVain;
pub(crate) use self::ledger::Ledger;
pub use self::levels::Levels;
pub(crate) use self::policy::too_many_empty;
pub use self::policy::{EvictionCandidate, EvictionPolicy, Evictions, evict};
pub(crate) use self::readers::Readers;
pub(crate) use self::shadow::{Gone, Kept, Shadow, half, twice};
