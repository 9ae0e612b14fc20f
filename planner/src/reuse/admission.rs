//! [`AdmissionPolicy`]: which prefixes below the root are worth keeping. Pure; costs nothing.
//!
//! Groups are small and expensive: kept at first sight while space is free. Other prefixes when somebody asked for them
//! before, under another parent: if only ever the same parent asks, keeping the parent is enough. What is kept in the end is
//! decided at run time, by measured time and bytes.

use super::Inquiry;
use crate::canonical::PrefixKind;

/// How eager to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdmissionPolicy {
    /// Look-ups, this one included, after which a prefix is kept.
    pub threshold: u64,
    /// Whether there is so much free space that groups are kept at first sight.
    pub eager: bool,
}

impl Default for AdmissionPolicy {
    fn default() -> Self {
        Self { threshold: 2, eager: true }
    }
}

impl AdmissionPolicy {
    /// Whether to keep a prefix. `parent_lookups` is how often the nearest candidate above it was asked for.
    pub fn admits(&self, kind: PrefixKind, inquiry: &Inquiry, parent_lookups: u64) -> bool {
        (kind == PrefixKind::Aggregate && self.eager) || self.is_wanted(inquiry, parent_lookups)
    }

    /// Whether a prefix was asked for often enough, and not only by the same parent: if only that asks, keeping it is enough.
    pub fn is_wanted(&self, inquiry: &Inquiry, parent_lookups: u64) -> bool {
        let asked = inquiry.lookups + 1;
        asked >= self.threshold && inquiry.lookups > parent_lookups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(lookups: u64) -> Inquiry {
        Inquiry { lookups, ..Inquiry::default() }
    }

    #[test]
    fn groups_are_kept_at_first_sight_while_space_is_free() {
        let policy = AdmissionPolicy::default();
        assert!(policy.admits(PrefixKind::Aggregate, &asked(0), 0));
        let strict = AdmissionPolicy { eager: false, ..policy };
        assert!(!strict.admits(PrefixKind::Aggregate, &asked(0), 0));
        assert!(strict.admits(PrefixKind::Aggregate, &asked(1), 0));
    }

    #[test]
    fn others_are_kept_when_several_parents_ask() {
        let policy = AdmissionPolicy::default();
        assert!(!policy.admits(PrefixKind::Join, &asked(0), 0));
        assert!(policy.admits(PrefixKind::Join, &asked(1), 0));
        assert!(!policy.admits(PrefixKind::Join, &asked(3), 3), "only ever asked for by the same parent");
    }
}
