//! Which prefixes are worth a question.

use crate::canonical::{Exactness, Prefix, PrefixKind, PrefixNode};

/// The node's prefix, if it could be read from the cache or kept.
///
/// The whole plan: always. Below it, what does work: not scans and choices of columns, which the stream has already; not
/// halves of aggregates; and nothing whose order may mean something, because an entry in the middle of a plan has none.
pub(super) fn candidate(node: &PrefixNode, is_root: bool) -> Option<&Prefix> {
    let prefix = node.prefix.as_ref().ok()?;
    // Without a stream below there is nothing to save; what a subquery of the plan around it reads is saved there.
    if !prefix.reads {
        return None;
    }
    if is_root {
        return (prefix.kind != PrefixKind::Scan).then_some(prefix);
    }
    let works = match prefix.kind {
        PrefixKind::Aggregate
        | PrefixKind::Join
        | PrefixKind::Window
        | PrefixKind::Filter
        | PrefixKind::Union
        | PrefixKind::Unnest => true,
        // Of what has a name, that is part.
        PrefixKind::Projection => node.named,
        PrefixKind::States | PrefixKind::Scan | PrefixKind::Sort | PrefixKind::Limit | PrefixKind::Constant => false,
    };
    // The statement computes such a subquery anyway, and may come to another value than the entry did.
    let borrows_luck = prefix.borrowed != Exactness::Exact;
    (works && !prefix.ordered && !borrows_luck).then_some(prefix)
}
