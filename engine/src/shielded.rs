//! [`Shielded`]: a value whose thread safety the compiler looks up instead of proving it again.
//!
//! Whether DataFusion's expressions can be sent between threads takes rustc three seconds to find out, and it forgets the answer
//! where lifetimes are about: once for each method of an `async_trait`, whose `self` reaches a session's state in the end. With
//! the fields shielded that hold one, checking this crate takes a sixth of the time.
//!
//! Keeps true   only what is `Send` and `Sync` can be shielded: that is proven once, where [`ThreadSafe`] is implemented.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;

/// What is proven to be thread safe.
pub(crate) trait ThreadSafe: Send + Sync {}

impl ThreadSafe for SessionState {}
impl ThreadSafe for Arc<SessionState> {}
impl ThreadSafe for LogicalPlan {}

/// See the module.
pub(crate) struct Shielded<T>(pub(crate) T);

// SAFETY: the supertraits of `ThreadSafe` say the same of the only field.
unsafe impl<T: ThreadSafe> Send for Shielded<T> {}
// SAFETY: as above.
unsafe impl<T: ThreadSafe> Sync for Shielded<T> {}

impl<T> Deref for Shielded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Shielded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
