//! External tables: files that others write, seen as they are now.

mod concurrent;
mod growing;
mod identity;
mod listing;
mod many;
mod nulls;
mod terminator;
mod unfinished;
mod writing;
