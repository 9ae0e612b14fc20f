//! [`Replace`]: what a new table does with one that has its name.
//!
//! Keeps true   what nobody looked at is not destroyed: a statement replaces the table that it was planned with, whose kind and
//!              owner it knows, and nothing that came in its place while the statement computed.

use crate::store::table_exists;
use crate::{CatalogError, Result, TableDef, TableId};

/// What a new table does with one that has its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replace {
    /// There must be none.
    Never,
    /// Takes the place of what was there when the statement was planned; `None` if nothing was.
    Seen(Option<TableId>),
    /// The same, and the rows were made of so many of its extents.
    Read {
        /// The table that goes.
        id: TableId,
        /// How many extents of it were read.
        n_extents: usize,
    },
}

impl Replace {
    /// Fails unless `new` may take the place of what is there `now`.
    pub(crate) fn check(self, new: &TableDef, now: Option<&TableDef>) -> Result<()> {
        let overtaken = || Err(CatalogError::Overtaken { name: new.name.clone() });
        let not_as_seen = |what| Err(CatalogError::NotAsSeen { name: new.name.clone(), what });
        match (self, now) {
            (Self::Never, None) => Ok(()),
            (Self::Never, Some(_)) => Err(table_exists(&new.name)),
            (Self::Read { id, .. }, now) if now.is_none_or(|now| now.id != id) => overtaken(),
            (Self::Seen(None), Some(_)) => not_as_seen("something of that name was made"),
            (Self::Seen(Some(_)), None) => not_as_seen("it was dropped or renamed"),
            (Self::Seen(Some(id)), Some(now)) if now.id != id => not_as_seen("it was replaced"),
            // Whose it is goes over to the new one.
            (_, Some(now)) if now.owner != new.owner => not_as_seen("it was given to somebody else"),
            _ => Ok(()),
        }
    }

    /// The table that must have so many extents still.
    pub(crate) fn read(self) -> Option<(TableId, usize)> {
        match self {
            Self::Read { id, n_extents } => Some((id, n_extents)),
            Self::Never | Self::Seen(_) => None,
        }
    }
}
