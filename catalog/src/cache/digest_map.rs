//! [`DigestMap`]: records by fingerprint, compact enough for millions.
//!
//! ```text
//!   buckets (tag, slot) (tag, slot) ..      tag: four bytes of the fingerprint; slot: where the record is
//!   slots   record record -free- record ..  a record keeps its slot until it is removed
//! ```
//!
//! Records name each other by slot in four bytes, and the key is stored once, in the record. `std`'s map doubles as a
//! whole and leaves up to half of it unused; here only the eight-byte buckets do. Fingerprints are digests already, so
//! that four of their bytes serve as the hash.

use crate::Fingerprint;

/// Something with a fingerprint of its own.
pub(super) trait Keyed {
    /// What it is found by; must not change while it is in a map.
    fn key(&self) -> &Fingerprint;
}

/// No slot.
pub(super) const NO_SLOT: u32 = u32::MAX;

const FREE: Bucket = Bucket { tag: 0, slot: NO_SLOT };

/// Least number of buckets; a power of two, as every number of them.
const MIN_BUCKETS: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tag: u32,
    slot: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct DigestMap<T> {
    buckets: Vec<Bucket>,
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for DigestMap<T> {
    fn default() -> Self {
        Self { buckets: vec![FREE; MIN_BUCKETS], slots: Vec::new(), free: Vec::new() }
    }
}

impl<T: Keyed> DigestMap<T> {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Where the record of a key is.
    pub(super) fn find(&self, key: &Fingerprint) -> Option<u32> {
        let tag = tag(key);
        let mut at = self.home(tag);
        loop {
            let bucket = self.buckets[at];
            if bucket.slot == NO_SLOT {
                return None;
            }
            if bucket.tag == tag && self.at(bucket.slot).is_some_and(|record| record.key() == key) {
                return Some(bucket.slot);
            }
            at = self.next(at);
        }
    }

    pub(super) fn get(&self, key: &Fingerprint) -> Option<&T> {
        self.at(self.find(key)?)
    }

    pub(super) fn get_mut(&mut self, key: &Fingerprint) -> Option<&mut T> {
        let slot = self.find(key)?;
        self.at_mut(slot)
    }

    /// The record in a slot.
    pub(super) fn at(&self, slot: u32) -> Option<&T> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(super) fn at_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// Puts a record into a slot. There must be none with its key.
    pub(super) fn insert(&mut self, record: T) -> u32 {
        debug_assert!(self.find(record.key()).is_none(), "two records with one key");
        let tag = tag(record.key());
        if (self.len() + 1) * 4 > self.buckets.len() * 3 {
            self.grow();
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(record);
                slot
            }
            None => {
                if self.slots.len() == self.slots.capacity() {
                    // A quarter more, not twice as much: these are the bytes that count.
                    self.slots.reserve_exact((self.slots.len() / 4).max(MIN_BUCKETS));
                }
                self.slots.push(Some(record));
                // Four billion records would be half a terabyte.
                (self.slots.len() - 1) as u32
            }
        };
        self.place(Bucket { tag, slot });
        slot
    }

    /// Takes the record out of a slot.
    pub(super) fn remove(&mut self, slot: u32) -> Option<T> {
        let record = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        let mut gap = self.home(tag(record.key()));
        while self.buckets[gap].slot != slot {
            gap = self.next(gap);
        }
        // Those behind the gap move up unless that would put them before their home; no marks are left in the way of
        // later searches.
        let mut at = gap;
        loop {
            at = self.next(at);
            let bucket = self.buckets[at];
            if bucket.slot == NO_SLOT {
                break;
            }
            let mask = self.buckets.len() - 1;
            let from_home = at.wrapping_sub(self.home(bucket.tag)) & mask;
            let from_gap = at.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.buckets[gap] = bucket;
                gap = at;
            }
        }
        self.buckets[gap] = FREE;
        Some(record)
    }

    /// All records, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    /// Keeps the records that satisfy a predicate.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].as_ref().is_some_and(|record| !keep(record)) {
                self.remove(slot as u32);
            }
        }
    }

    /// Takes all records out.
    pub(super) fn drain(&mut self) -> Vec<T> {
        std::mem::take(self).slots.into_iter().flatten().collect()
    }

    /// Memory that is reserved.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<Bucket>()
            + self.slots.capacity() * size_of::<Option<T>>()
            + self.free.capacity() * 4
    }

    fn home(&self, tag: u32) -> usize {
        tag as usize & (self.buckets.len() - 1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.buckets.len() - 1)
    }

    fn place(&mut self, bucket: Bucket) {
        let mut at = self.home(bucket.tag);
        while self.buckets[at].slot != NO_SLOT {
            at = self.next(at);
        }
        self.buckets[at] = bucket;
    }

    fn grow(&mut self) {
        let twice = self.buckets.len() * 2;
        for bucket in std::mem::replace(&mut self.buckets, vec![FREE; twice]) {
            if bucket.slot != NO_SLOT {
                self.place(bucket);
            }
        }
    }
}

fn tag(key: &Fingerprint) -> u32 {
    let [a, b, c, d, ..] = *key.as_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Record(Fingerprint, u32);

    impl Keyed for Record {
        fn key(&self) -> &Fingerprint {
            &self.0
        }
    }

    /// Keys of few tags and fewer homes, so that they crowd.
    fn crowded(number: u64) -> Fingerprint {
        let mut bytes = *Fingerprint::of_bytes(&number.to_le_bytes()).as_bytes();
        bytes[..4].copy_from_slice(&((number % 7) as u32 * 3).to_le_bytes());
        Fingerprint::from_bytes(bytes)
    }

    fn plain(number: u64) -> Fingerprint {
        Fingerprint::of_bytes(&number.to_le_bytes())
    }

    #[test]
    fn it_behaves_like_a_map() {
        for key in [crowded as fn(u64) -> Fingerprint, plain] {
            let (mut map, mut model) = (DigestMap::<Record>::default(), BTreeMap::new());
            let mut random = 1_u64;
            for step in 0..20_000_u32 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let key = key((random >> 33) % 300);
                match map.find(&key) {
                    Some(slot) => assert_eq!(map.remove(slot).map(|record| record.1), model.remove(&key)),
                    None => {
                        assert_eq!(model.insert(key, step), None);
                        let slot = map.insert(Record(key, step));
                        assert_eq!(map.at(slot), Some(&Record(key, step)));
                    }
                }
                assert_eq!(map.len(), model.len());
            }
            for number in 0..300 {
                assert_eq!(map.get(&key(number)).map(|record| record.1), model.get(&key(number)).copied());
            }
            map.retain(|record| record.1 % 2 == 0);
            model.retain(|_, step| *step % 2 == 0);
            let mut left: Vec<_> = map.iter().map(|record| (record.0, record.1)).collect();
            left.sort();
            assert_eq!(left, model.into_iter().collect::<Vec<_>>());
            assert_eq!(map.drain().len(), left.len());
            assert_eq!(map.len(), 0);
        }
    }
}
