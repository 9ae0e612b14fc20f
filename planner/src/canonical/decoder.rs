//! [`Decoder`]: reads what [`Encoder`](super::encoder::Encoder) wrote, field by field.
//!
//! For explanations only: what is decoded never becomes a plan. Bytes that end too early or mean nothing give `None`, never
//! a panic: they come from a file.

use super::encoder::Tag;

/// The rest of some bytes.
#[derive(Clone, Copy)]
pub(super) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Goes on if the next byte is this tag.
    pub(super) fn expect(&mut self, tag: Tag) -> Option<()> {
        (self.byte()? == tag as u8).then_some(())
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A number of things that are still to come, so at most as many as there are bytes.
    pub(super) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.rest.len()).then_some(count)
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let n = usize::try_from(self.number()?).ok()?;
        self.take(n)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub(super) fn fingerprint(&mut self) -> Option<nectarine_catalog::Fingerprint> {
        nectarine_catalog::Fingerprint::from_slice(self.take(32)?)
    }

    pub(super) fn list(&mut self) -> Option<Vec<&'a [u8]>> {
        let n = self.count()?;
        (0..n).map(|_| self.bytes()).collect()
    }

    pub(super) fn numbers(&mut self) -> Option<Vec<usize>> {
        let n = self.count()?;
        (0..n).map(|_| usize::try_from(self.number()?).ok()).collect()
    }

    /// What follows, if the encoder wrote `Some` before it.
    pub(super) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            tag if tag == Tag::None as u8 => Some(None),
            tag if tag == Tag::Some as u8 => read(self).map(Some),
            _ => None,
        }
    }

    /// Nothing is left: all of it was understood.
    pub(super) fn end(self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }
}
