//! [`Encoder`]: bytes in which no two different field lists run together.

use nectarine_catalog::Fingerprint;

/// What a run of bytes stands for. The numbers are part of the encoding: append, never renumber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Tag {
    Column = 1,
    JoinColumn = 2,
    Literal = 3,
    And = 4,
    Or = 5,
    Equality = 6,
    Binary = 8,
    Case = 9,
    Cast = 10,
    TryCast = 11,
    InList = 12,
    IsNull = 13,
    IsNotNull = 14,
    Like = 15,
    Negative = 16,
    Not = 17,
    Function = 18,
    ScalarSubquery = 19,
    Sort = 20,
    Aggregate = 21,
    AggregateFunction = 22,
    WindowFunction = 23,
    Scan = 32,
    Filter = 33,
    Projection = 34,
    Aggregation = 35,
    Join = 36,
    CrossJoin = 37,
    NestedLoopJoin = 38,
    Sorting = 39,
    Limit = 40,
    Union = 41,
    Window = 42,
    Empty = 43,
    OneRow = 44,
    Unnest = 45,
    Subqueries = 46,
    DerivedTable = 47,
    Type = 64,
    Field = 65,
    Fields = 66,
    Extents = 67,
    Salt = 68,
    Program = 69,
    Inputs = 70,
    Lineage = 71,
    Family = 72,
    None = 80,
    Some = 81,
}

/// Collects fields.
#[derive(Default)]
pub(super) struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    pub(super) fn new(tag: Tag) -> Self {
        Self { bytes: vec![tag as u8] }
    }

    pub(super) fn tag(&mut self, tag: Tag) -> &mut Self {
        self.bytes.push(tag as u8);
        self
    }

    pub(super) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(value);
        self
    }

    pub(super) fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    pub(super) fn number(&mut self, value: u64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn flag(&mut self, value: bool) -> &mut Self {
        self.bytes.push(u8::from(value));
        self
    }

    pub(super) fn optional_number(&mut self, value: Option<usize>) -> &mut Self {
        match value {
            Some(value) => self.tag(Tag::Some).number(value as u64),
            None => self.tag(Tag::None),
        }
    }

    pub(super) fn numbers(&mut self, values: &[usize]) -> &mut Self {
        self.number(values.len() as u64);
        values.iter().fold(self, |encoder, value| encoder.number(*value as u64))
    }

    pub(super) fn fingerprint(&mut self, value: &Fingerprint) -> &mut Self {
        self.bytes.extend_from_slice(value.as_bytes());
        self
    }

    /// A list in the given order.
    pub(super) fn list(&mut self, values: Vec<Vec<u8>>) -> &mut Self {
        self.number(values.len() as u64);
        values.iter().fold(self, |encoder, value| encoder.bytes(value))
    }

    /// A list whose order means nothing.
    pub(super) fn set(&mut self, mut values: Vec<Vec<u8>>) -> &mut Self {
        values.sort_unstable();
        self.list(values)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn finish(self) -> Fingerprint {
        Fingerprint::of_bytes(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(values: &[&[u8]]) -> Vec<u8> {
        let mut encoder = Encoder::new(Tag::And);
        encoder.list(values.iter().map(|value| value.to_vec()).collect());
        encoder.into_bytes()
    }

    #[test]
    fn fields_do_not_run_together() {
        assert_ne!(list(&[b"ab", b"c"]), list(&[b"a", b"bc"]));
        assert_ne!(list(&[b""]), list(&[]));
        let lists = |first: &[&[u8]], second: &[&[u8]]| {
            let owned = |values: &[&[u8]]| values.iter().map(|value| value.to_vec()).collect();
            let mut encoder = Encoder::default();
            encoder.list(owned(first)).list(owned(second));
            encoder.into_bytes()
        };
        assert_ne!(lists(&[b"a", b"b"], &[]), lists(&[b"a"], &[b"b"]), "where one ends and the next begins");
    }

    #[test]
    fn sets_have_no_order() {
        let set = |values: &[&[u8]]| {
            let mut encoder = Encoder::new(Tag::And);
            encoder.set(values.iter().map(|value| value.to_vec()).collect());
            encoder.into_bytes()
        };
        assert_eq!(set(&[b"b", b"a"]), set(&[b"a", b"b"]));
        assert_ne!(set(&[b"a", b"a"]), set(&[b"a"]));
    }
}
