//! What becomes of values when they are cast.

use arrow::datatypes::{DataType, TimeUnit};

/// Whether comparing with a constant before the cast, or bounds of a column that are cast, would find other values than
/// comparing after it does.
pub(super) fn misleads(from: &DataType, to: &DataType, is_try: bool) -> bool {
    let (from, to) = (plain(from), plain(to));
    if from == to {
        return false;
    }
    // What can not be cast is NULL, and was none before.
    if is_try && !is_total(from, to) {
        return true;
    }
    match (from, to) {
        (DataType::Timestamp(_, None), DataType::Timestamp(_, Some(zone))) => !is_utc(zone),
        // Each day has the same times.
        (DataType::Timestamp(..), DataType::Time32(_) | DataType::Time64(_)) => true,
        // -1 is true, 0 is false, 1 is true.
        (_, DataType::Boolean) => from.is_numeric(),
        // Days, that DataFusion takes for milliseconds.
        (DataType::Int32, DataType::Date64) => true,
        _ => match (places(from), places(to)) {
            // DataFusion computes with powers of ten, and takes a negative one for a large one.
            (Some(from), Some(to)) => from < 0 || to < from,
            _ => false,
        },
    }
}

/// Whether values that differ still do after the cast, so that one is known from the other; the cast may fail.
pub(crate) fn keeps_values(from: &DataType, to: &DataType) -> bool {
    let (from, to) = (plain(from), plain(to));
    match (from, to) {
        _ if from == to => true,
        (DataType::Float32, DataType::Float64) => true,
        (DataType::Timestamp(from_unit, from_zone), DataType::Timestamp(to_unit, to_zone)) => {
            let shifts = from_zone.is_none() && to_zone.as_ref().is_some_and(|zone| !is_utc(zone));
            !shifts && ticks(from_unit) <= ticks(to_unit)
        }
        (DataType::Date32, DataType::Date64 | DataType::Timestamp(_, None)) => true,
        (from, DataType::Float32) => from.is_integer() && from.primitive_width().is_some_and(|bytes| bytes <= 2),
        (from, DataType::Float64) => from.is_integer() && from.primitive_width().is_some_and(|bytes| bytes <= 4),
        (DataType::Timestamp(..) | DataType::Date32 | DataType::Date64, to) => to.is_integer(),
        (from, to) => {
            matches!((places(from), places(to)), (Some(from), Some(to)) if 0 <= from && from <= to) && !is_time(to)
        }
    }
}

/// Zones whose clocks show what is stored.
pub(crate) fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "Etc/UTC" | "Z" | "+00:00" | "+0000" | "+00" | "-00:00")
}

/// Whether every value can be cast. What is not known may fail.
fn is_total(from: &DataType, to: &DataType) -> bool {
    use DataType::{Boolean, Date32, Date64, Int32, Int64, Timestamp};
    match (from, to) {
        _ if to.is_string() => !from.is_binary(),
        _ if from.is_numeric() && (to.is_floating() || *to == Boolean) => true,
        (Boolean, _) => to.is_numeric(),
        (Date32, Int32 | Int64 | Date64) | (Date64 | Timestamp(..), Int64) | (Timestamp(..), Date32) => true,
        (Int32, Date32) | (Int64, Date64 | Timestamp(..)) => true,
        (Timestamp(from_unit, from_zone), Timestamp(to_unit, to_zone)) => {
            // Hours that clocks leave out, and those that come twice.
            let shifts = from_zone.is_none() && to_zone.as_ref().is_some_and(|zone| !is_utc(zone));
            !shifts && ticks(to_unit) <= ticks(from_unit)
        }
        _ if from.is_integer() && to.is_integer() => {
            let (narrow, wide) = (from.primitive_width(), to.primitive_width());
            match (from.is_signed_integer(), to.is_signed_integer()) {
                (false, true) => narrow < wide,
                (true, false) => false,
                _ => narrow <= wide,
            }
        }
        _ => match (whole_digits(from), whole_digits(to)) {
            (Some(from_digits), Some(to_digits)) => to.is_decimal() && from_digits <= to_digits,
            _ => false,
        },
    }
}

/// The type of values, however they are written down.
fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, value) => plain(value),
        other => other,
    }
}

/// How many digits are behind the point. Times count something whole.
fn places(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => Some(*scale),
        other => (other.is_integer() || is_time(other)).then_some(0),
    }
}

/// How many digits may be before the point.
fn whole_digits(data_type: &DataType) -> Option<i16> {
    match data_type {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => Some(i16::from(*precision) - i16::from(*scale)),
        DataType::Int8 | DataType::UInt8 => Some(3),
        DataType::Int16 | DataType::UInt16 => Some(5),
        DataType::Int32 | DataType::UInt32 => Some(10),
        DataType::Int64 => Some(19),
        DataType::UInt64 => Some(20),
        _ => None,
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
}

/// How fine a unit is.
fn ticks(unit: &TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType::{
        self, Boolean, Date32, Date64, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Time64, UInt8, UInt64,
        Utf8,
    };
    use arrow::datatypes::TimeUnit::{self, Nanosecond, Second};

    use super::*;

    fn time(unit: TimeUnit, zone: Option<&str>) -> DataType {
        DataType::Timestamp(unit, zone.map(Into::into))
    }

    #[test]
    fn casts_that_are_kept() {
        let berlin = || time(Nanosecond, Some("Europe/Berlin"));
        for (from, to, cast, try_cast) in [
            (Decimal128(9, 2), Int32, true, true),
            (Decimal128(9, 2), Decimal128(9, 1), true, true),
            (Decimal128(9, 2), Decimal128(12, 2), false, false),
            (Decimal128(9, 2), Decimal128(9, 4), false, true),
            (Decimal128(9, 2), Float64, false, false),
            (Decimal128(5, -2), Decimal128(9, 2), true, true),
            (Decimal128(9, 0), Int64, false, true),
            (Int32, Int64, false, false),
            (Int32, Int8, false, true),
            (Int32, UInt64, false, true),
            (UInt8, Int16, false, false),
            (UInt64, Int64, false, true),
            (Int32, Decimal128(12, 2), false, false),
            (Int64, Decimal128(20, 2), false, true),
            (Int32, Decimal128(5, -2), true, true),
            (Int64, Float64, false, false),
            (Int32, Boolean, true, true),
            (Int32, Utf8, false, false),
            (Utf8, Int32, false, true),
            (Float64, Int32, false, true),
            (Float64, Float32, false, false),
            (Date32, Int32, false, false),
            (Int32, Date64, true, true),
            (Date32, time(Nanosecond, None), false, true),
            (time(Nanosecond, None), Date32, false, false),
            (time(Nanosecond, None), Time64(Nanosecond), true, true),
            (time(Second, None), time(Nanosecond, None), false, true),
            (time(Nanosecond, None), time(Second, None), false, false),
            (time(Nanosecond, None), berlin(), true, true),
            (time(Nanosecond, None), time(Nanosecond, Some("+00:00")), false, false),
            (berlin(), time(Nanosecond, None), false, false),
            (berlin(), time(Nanosecond, Some("UTC")), false, false),
            (DataType::Dictionary(Box::new(Int32), Box::new(Int32)), Boolean, true, true),
        ] {
            assert_eq!(misleads(&from, &to, false), cast, "CAST from {from} to {to}");
            assert_eq!(misleads(&from, &to, true), try_cast, "TRY_CAST from {from} to {to}");
        }
    }

    #[test]
    fn casts_that_keep_values_apart() {
        for (from, to, keeps) in [
            (Int32, Int64, true),
            (Int64, Int8, true),
            (Int32, Float64, true),
            (Int64, Float64, false),
            (Int32, Float32, false),
            (Int16, Float32, true),
            (Float32, Float64, true),
            (Float64, Int64, false),
            (Float64, Float32, false),
            (Date32, Date64, true),
            (Date64, Date32, false),
            (Date32, time(Second, None), true),
            (time(Second, None), Date32, false),
            (time(Second, None), time(Nanosecond, None), true),
            (time(Nanosecond, None), time(Second, None), false),
            (time(Second, None), time(Second, Some("Europe/Berlin")), false),
            (time(Second, None), Int64, true),
            (Int32, Decimal128(12, 2), true),
            (Decimal128(12, 2), Int32, false),
            (Int32, Boolean, false),
            (Int32, Date32, false),
        ] {
            assert_eq!(keeps_values(&from, &to), keeps, "{from} to {to}");
        }
    }
}
