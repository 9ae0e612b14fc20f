//! The packed record of an entry: all that an index holds of it, in one value of fixed length.
//!
//! ```text
//!   format 1 | kind 1 | n_parts 4 | n_inputs 4 | key 32 | program 32
//!   rows 8 | bytes 8 | cost_us 8 | uses 8 | saved_us 8 | created_at 8 | last_used_at 8 | version 8      little endian
//! ```
//!
//! One value because opening a home reads a million of them and the driver takes its time for every column. How many
//! parts and inputs there must be is written here so that an entry never comes back with some of them missing.

use crate::{EntryKind, EntrySummary, Fingerprint};

const FORMAT: u8 = 1;

/// Bytes of a packed record.
pub(super) const N_BYTES: usize = 2 + 2 * 4 + 2 * 32 + 8 * 8;

/// What the packed record says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Summary {
    pub(super) entry: EntrySummary,
    pub(super) version: i64,
    pub(super) n_parts: u32,
    pub(super) n_inputs: u32,
}

impl Summary {
    pub(super) fn pack(&self) -> Vec<u8> {
        let entry = &self.entry;
        let kind = match entry.kind {
            EntryKind::Rows => 1,
            EntryKind::States => 2,
        };
        let mut packed = Vec::with_capacity(N_BYTES);
        packed.extend_from_slice(&[FORMAT, kind]);
        packed.extend_from_slice(&self.n_parts.to_le_bytes());
        packed.extend_from_slice(&self.n_inputs.to_le_bytes());
        packed.extend_from_slice(entry.key.as_bytes());
        packed.extend_from_slice(entry.program.as_bytes());
        for number in [entry.rows, entry.bytes, entry.cost_us, entry.uses, entry.saved_us] {
            packed.extend_from_slice(&number.to_le_bytes());
        }
        for number in [entry.created_at, entry.last_used_at, self.version] {
            packed.extend_from_slice(&number.to_le_bytes());
        }
        packed
    }

    /// `None` if the bytes are not a packed record.
    pub(super) fn unpack(packed: &[u8]) -> Option<Self> {
        if packed.len() != N_BYTES || packed[0] != FORMAT {
            return None;
        }
        let kind = match packed[1] {
            1 => EntryKind::Rows,
            2 => EntryKind::States,
            _ => return None,
        };
        let half = |at: usize| Some(u32::from_le_bytes(packed.get(at..at + 4)?.try_into().ok()?));
        let number = |at: usize| Some(u64::from_le_bytes(packed.get(at..at + 8)?.try_into().ok()?));
        let entry = EntrySummary {
            key: Fingerprint::from_slice(&packed[10..42])?,
            program: Fingerprint::from_slice(&packed[42..74])?,
            kind,
            rows: number(74)?,
            bytes: number(82)?,
            cost_us: number(90)?,
            uses: number(98)?,
            saved_us: number(106)?,
            created_at: number(114)?.cast_signed(),
            last_used_at: number(122)?.cast_signed(),
        };
        Some(Self { entry, version: number(130)?.cast_signed(), n_parts: half(2)?, n_inputs: half(6)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_nothing_else_does() {
        let entry = EntrySummary {
            key: Fingerprint::of_bytes(b"k"),
            program: Fingerprint::of_bytes(b"p"),
            kind: EntryKind::States,
            rows: 1,
            bytes: u64::MAX,
            cost_us: 3,
            uses: 4,
            saved_us: 5,
            created_at: -6,
            last_used_at: i64::MAX,
        };
        let summary = Summary { entry, version: 7, n_parts: 8, n_inputs: u32::MAX };
        let packed = summary.pack();
        assert_eq!(packed.len(), N_BYTES);
        assert_eq!(Summary::unpack(&packed), Some(summary));
        assert_eq!(Summary::unpack(&packed[1..]), None);
        assert_eq!(Summary::unpack(&[]), None);
        for (at, byte) in [(0, 2), (1, 0), (1, 3)] {
            let mut other = packed.clone();
            other[at] = byte;
            assert_eq!(Summary::unpack(&other), None);
        }
    }
}
