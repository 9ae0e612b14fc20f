//! Equal meaning, equal key; different meaning, different key.

mod by_hand;
pub(crate) mod different;
pub(crate) mod equal;
pub(crate) mod golden;
mod inputs;
mod luck;
mod readers;
mod uncacheable;
