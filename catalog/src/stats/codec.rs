//! Bytes of the statistics of one extent; the layout is in the module above.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, i256};
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, ScalarValue, Statistics};

use super::MAX_BOUND_BYTES;
use super::value::{Bound, Class, Value, cut_down, cut_up};

const FORMAT: u8 = 1;

const HAS_TOTAL: u8 = 1;
const TOTAL_EXACT: u8 = 2;

const HAS_NULLS: u8 = 1;
const NULLS_EXACT: u8 = 2;
const HAS_MIN: u8 = 4;
const MIN_EXACT: u8 = 8;
const HAS_MAX: u8 = 16;
const MAX_EXACT: u8 = 32;
const HAS_BYTES: u8 = 64;
const BYTES_EXACT: u8 = 128;

/// One column, decoded without allocating.
pub(super) struct Column<'a> {
    pub(super) null_count: Precision<usize>,
    pub(super) byte_size: Precision<usize>,
    pub(super) min: Option<Bound<'a>>,
    pub(super) max: Option<Bound<'a>>,
}

pub(super) fn encode(statistics: &Statistics, schema: &Schema) -> Arc<[u8]> {
    let n_columns = statistics.column_statistics.len().min(schema.fields().len()).min(usize::from(u16::MAX));
    let (mut body, mut ends) = (Vec::new(), Vec::with_capacity(n_columns * 4));
    for (column, field) in statistics.column_statistics.iter().zip(schema.fields()).take(n_columns) {
        encode_column(column, field.data_type(), &mut body);
        ends.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    }
    if body.is_empty() && statistics.total_byte_size == Precision::Absent {
        return Arc::from([]);
    }
    let (total, exact) = split(&statistics.total_byte_size);
    let flags = flag(total.is_some(), HAS_TOTAL) | flag(exact, TOTAL_EXACT);
    let mut bytes = vec![FORMAT, flags];
    bytes.extend_from_slice(&(n_columns as u16).to_le_bytes());
    if let Some(total) = total {
        bytes.extend_from_slice(&total.to_le_bytes());
    }
    bytes.extend_from_slice(&ends);
    bytes.extend_from_slice(&body);
    Arc::from(bytes)
}

fn encode_column(column: &ColumnStatistics, data_type: &DataType, out: &mut Vec<u8>) {
    let Some(class) = Class::of(data_type) else {
        // Nothing but the NULLs and the size of such a column is comparable.
        return encode_fields(column, None, None, 0, out);
    };
    let lower = bound(&column.min_value, data_type).map(|(value, exact)| match value {
        Value::Bytes(bytes) => {
            let (cut, shorter) = cut_down(bytes, class);
            (Owned::Bytes(cut.to_vec()), exact && !shorter)
        }
        value => (Owned::Plain(value), exact),
    });
    let upper = bound(&column.max_value, data_type).and_then(|(value, exact)| match value {
        Value::Bytes(bytes) if bytes.len() > MAX_BOUND_BYTES => Some((Owned::Bytes(cut_up(bytes, class)?), false)),
        value => Some((Owned::Plain(value), exact)),
    });
    encode_fields(column, lower, upper, class as u8, out);
}

enum Owned<'a> {
    Plain(Value<'a>),
    Bytes(Vec<u8>),
}

fn encode_fields(
    column: &ColumnStatistics,
    lower: Option<(Owned<'_>, bool)>,
    upper: Option<(Owned<'_>, bool)>,
    class: u8,
    out: &mut Vec<u8>,
) {
    let (nulls, nulls_exact) = split(&column.null_count);
    let (size, size_exact) = split(&column.byte_size);
    let flags = flag(nulls.is_some(), HAS_NULLS)
        | flag(nulls_exact, NULLS_EXACT)
        | flag(size.is_some(), HAS_BYTES)
        | flag(size_exact, BYTES_EXACT)
        | lower.as_ref().map_or(0, |(_, exact)| HAS_MIN | flag(*exact, MIN_EXACT))
        | upper.as_ref().map_or(0, |(_, exact)| HAS_MAX | flag(*exact, MAX_EXACT));
    if flags == 0 {
        return;
    }
    out.extend_from_slice(&[flags, class]);
    for number in [nulls, size].into_iter().flatten() {
        push_integer(i128::from(number), out);
    }
    for (value, _) in [lower, upper].into_iter().flatten() {
        match value {
            Owned::Bytes(bytes) => push_bytes(&bytes, out),
            Owned::Plain(Value::Bytes(bytes)) => push_bytes(bytes, out),
            Owned::Plain(Value::Integer(value)) => push_integer(value, out),
            Owned::Plain(Value::Wide(value)) => out.extend_from_slice(&value.to_le_bytes()),
            Owned::Plain(Value::Float(value)) => out.extend_from_slice(&value.to_le_bytes()),
        }
    }
}

/// The statistics of one column; `None` if nothing is known of it.
pub(super) fn column<'a>(bytes: &'a [u8], ordinal: usize, data_type: &DataType) -> Option<Column<'a>> {
    let (ends, body) = parts(bytes)?;
    let end = |at: usize| {
        ends.get(at * 4..at * 4 + 4).and_then(|four| Some(u32::from_le_bytes(four.try_into().ok()?) as usize))
    };
    let start = if ordinal == 0 { 0 } else { end(ordinal - 1)? };
    let mut rest = body.get(start..end(ordinal)?)?;
    let [flags, class] = *take::<2>(&mut rest)?;
    let nulls = number(flags, HAS_NULLS, NULLS_EXACT, &mut rest)?;
    let size = number(flags, HAS_BYTES, BYTES_EXACT, &mut rest)?;
    let mut column = Column { null_count: nulls, byte_size: size, min: None, max: None };
    let Some(expected) = Class::of(data_type).filter(|expected| *expected as u8 == class) else { return Some(column) };
    let mut bound = |has: u8, exact: u8| -> Option<Option<Bound<'a>>> {
        if flags & has == 0 {
            return Some(None);
        }
        let value = match expected {
            Class::Integer => Value::Integer(take_integer(&mut rest)?),
            Class::Wide => Value::Wide(i256::from_le_bytes(*take::<32>(&mut rest)?)),
            Class::Float => Value::Float(f64::from_le_bytes(*take::<8>(&mut rest)?)),
            Class::Text | Class::Binary => Value::Bytes(take_bytes(&mut rest)?),
        };
        Some(Some(Bound { value, exact: flags & exact != 0 && expected != Class::Float }))
    };
    let (min, max) = (bound(HAS_MIN, MIN_EXACT)?, bound(HAS_MAX, MAX_EXACT)?);
    (column.min, column.max) = (min, max);
    Some(column)
}

/// Size of all columns, if the format told.
pub(super) fn total_bytes(bytes: &[u8]) -> Precision<usize> {
    let total = || {
        let flags = *bytes.get(1).filter(|_| bytes[0] == FORMAT)?;
        let total = u64::from_le_bytes(bytes.get(4..12).filter(|_| flags & HAS_TOTAL != 0)?.try_into().ok()?);
        Some((usize::try_from(total).ok()?, flags & TOTAL_EXACT != 0))
    };
    match total() {
        Some((total, true)) => Precision::Exact(total),
        Some((total, false)) => Precision::Inexact(total),
        None => Precision::Absent,
    }
}

/// The columns' ends, and what they are ends in.
fn parts(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes;
    let [FORMAT, flags, low, high] = *take::<4>(&mut rest)? else { return None };
    if flags & HAS_TOTAL != 0 {
        take::<8>(&mut rest)?;
    }
    rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])) * 4)
}

fn bound<'a>(precision: &'a Precision<ScalarValue>, data_type: &DataType) -> Option<(Value<'a>, bool)> {
    let exact = precision.is_exact()?;
    Some((Value::of(precision.get_value()?, data_type)?, exact))
}

fn split(precision: &Precision<usize>) -> (Option<u64>, bool) {
    (precision.get_value().map(|value| *value as u64), precision.is_exact() == Some(true))
}

fn flag(set: bool, flag: u8) -> u8 {
    if set { flag } else { 0 }
}

/// A count byte, then that many bytes: most numbers are small.
fn push_integer(value: i128, out: &mut Vec<u8>) {
    let bytes = value.to_le_bytes();
    let fill = if value < 0 { 0xFF } else { 0 };
    let mut len = 16;
    // The last byte kept must carry the sign.
    while len > 0 && bytes[len - 1] == fill && (len == 1 || (bytes[len - 2] ^ fill) & 0x80 == 0) {
        len -= 1;
    }
    // Zero and minus one would both be empty.
    if value < 0 {
        len = len.max(1);
    }
    out.push(len as u8);
    out.extend_from_slice(&bytes[..len]);
}

fn take_integer(rest: &mut &[u8]) -> Option<i128> {
    let bytes = take_bytes(rest).filter(|bytes| bytes.len() <= 16)?;
    let negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut wide = if negative { [0xFF; 16] } else { [0; 16] };
    wide[..bytes.len()].copy_from_slice(bytes);
    Some(i128::from_le_bytes(wide))
}

fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    // Bounds are cut far below 255.
    out.push(bytes.len().min(255) as u8);
    out.extend_from_slice(&bytes[..bytes.len().min(255)]);
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let [len] = *take::<1>(rest)?;
    let (bytes, others) = rest.split_at_checked(usize::from(len))?;
    *rest = others;
    Some(bytes)
}

fn number(flags: u8, has: u8, exact: u8, rest: &mut &[u8]) -> Option<Precision<usize>> {
    if flags & has == 0 {
        return Some(Precision::Absent);
    }
    let number = usize::try_from(take_integer(rest)?).ok()?;
    Some(if flags & exact != 0 { Precision::Exact(number) } else { Precision::Inexact(number) })
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, others) = rest.split_first_chunk::<N>()?;
    *rest = others;
    Some(first)
}
