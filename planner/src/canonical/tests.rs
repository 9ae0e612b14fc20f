//! Equal meaning, equal key; different meaning, different key.

mod different;
mod equal;
mod golden;
mod uncacheable;
