//! Equal meaning, equal key; different meaning, different key.

pub(crate) mod different;
pub(crate) mod equal;
pub(crate) mod golden;
mod uncacheable;
