//! [`Written`]: a number taken apart as it is written, and [`rounded`]: what a DECIMAL column takes of it.
//!
//! Arrow's readers cut digits that a column has no place for: 1.995 becomes 1.99 where there are two. Its CAST of texts
//! rounds, half away from zero, and knows no exponents. Here is both, exactly: no float is in between.

use arrow::datatypes::{ArrowNativeType, ArrowNativeTypeOp, DecimalType};

/// A number taken apart.
pub(super) struct Written<'a> {
    pub(super) is_negative: bool,
    before: &'a [u8],
    behind: &'a [u8],
    n_zeros: usize,
    /// Where the point is, counted from the first digit that is not zero.
    pub(super) point: i64,
}

impl<'a> Written<'a> {
    /// `None` of what is no number.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let (is_negative, unsigned) = match text.as_bytes() {
            [b'-', unsigned @ ..] => (true, unsigned),
            [b'+', unsigned @ ..] => (false, unsigned),
            unsigned => (false, unsigned),
        };
        let (mantissa, exponent) = match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])?),
            None => (unsigned, 0),
        };
        let (before, behind) = match mantissa.iter().position(|byte| *byte == b'.') {
            Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
            None => (mantissa, &[][..]),
        };
        let digits = before.iter().chain(behind);
        if (before.is_empty() && behind.is_empty()) || !digits.clone().all(u8::is_ascii_digit) {
            return None;
        }
        let n_zeros = digits.take_while(|digit| **digit == b'0').count();
        let point = exponent.saturating_add(before.len() as i64).saturating_sub(n_zeros as i64);
        Some(Self { is_negative, before, behind, n_zeros, point })
    }

    /// Its digits from the first that is not zero on.
    pub(super) fn digits(&self) -> impl Iterator<Item = u8> {
        self.before.iter().chain(self.behind).skip(self.n_zeros).map(|digit| digit - b'0')
    }
}

fn exponent(text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok()?;
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Whatever is longer is beyond all numbers.
    Some(text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX }))
}

/// What a column of so many digits, and so many of them behind the point, takes of a number; or why it takes none.
pub(super) fn rounded<T: DecimalType>(text: &str, precision: u8, scale: i8) -> Result<T::Native, &'static str> {
    if let Some(value) = short::<T>(text.as_bytes(), precision, scale) {
        return Ok(value);
    }
    // CAST minds no blanks around a number either.
    let number = Written::of(text.trim()).ok_or("it is not a number")?;
    let mut digits = number.digits().peekable();
    let (zero, one, ten) = (T::Native::default(), T::Native::usize_as(1), T::Native::usize_as(10));
    if digits.peek().is_none() {
        return Ok(zero);
    }
    let n_kept = number.point.saturating_add(i64::from(scale));
    if n_kept > i64::from(precision) {
        return Err(OUT_OF_RANGE);
    }
    // Neither can overflow: each type has room for one more than its longest number.
    let mut value = zero;
    for _ in 0..n_kept {
        let digit = digits.next().unwrap_or(0);
        value = value.mul_wrapping(ten).add_wrapping(T::Native::usize_as(usize::from(digit)));
    }
    // Of a number with zeros between the last place and its first digit, nothing is left.
    if n_kept >= 0 && digits.next().is_some_and(|digit| digit >= 5) {
        value = value.add_wrapping(one);
    }
    if !T::is_valid_decimal_precision(value, precision) {
        return Err(OUT_OF_RANGE);
    }
    Ok(if number.is_negative { value.neg_wrapping() } else { value })
}

/// Why a number is not taken that is one.
pub(super) const OUT_OF_RANGE: &str = "it is out of range";

/// Letters of a number that is read the short way: as many as nineteen digits, which always fit into 64 bits.
const SHORT_LETTERS: usize = 19;

/// 1, 10, 100, ..: as many as fit.
const POWERS: [u64; SHORT_LETTERS + 1] = {
    let mut powers = [1; SHORT_LETTERS + 1];
    let mut n = 1;
    while n < powers.len() {
        powers[n] = powers[n - 1] * 10;
        n += 1;
    }
    powers
};

/// The same for few digits without an exponent: nearly all numbers are such. What is out of range is for the long way
/// to say.
fn short<T: DecimalType>(text: &[u8], precision: u8, scale: i8) -> Option<T::Native> {
    let scale = usize::try_from(scale).ok()?;
    let (is_negative, unsigned) = match text {
        [b'-', unsigned @ ..] => (true, unsigned),
        unsigned => (false, unsigned),
    };
    if unsigned.len() > SHORT_LETTERS {
        return None;
    }
    let (mut value, mut n_digits, mut point) = (0_u64, 0_usize, None);
    for byte in unsigned {
        match byte {
            b'0'..=b'9' => {
                value = value * 10 + u64::from(byte - b'0');
                n_digits += 1;
            }
            b'.' if point.is_none() => point = Some(n_digits),
            _ => return None,
        }
    }
    if n_digits == 0 {
        return None;
    }
    let n_behind = n_digits - point.unwrap_or(n_digits);
    let value = match n_behind.checked_sub(scale) {
        None | Some(0) => value.checked_mul(*POWERS.get(scale - n_behind)?)?,
        Some(n_cut) => {
            let unit = *POWERS.get(n_cut)?;
            value / unit + u64::from(value % unit >= unit / 2)
        }
    };
    // More digits than there are powers take any such number.
    if POWERS.get(usize::from(precision)).is_some_and(|limit| value >= *limit) {
        return None;
    }
    let value = T::Native::usize_as(usize::try_from(value).ok()?);
    Some(if is_negative { value.neg_wrapping() } else { value })
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, StringArray};
    use arrow::compute::cast;
    use arrow::datatypes::{DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, i256};

    use super::*;

    #[test]
    fn digits_without_a_place_are_rounded() {
        for (text, precision, scale, expected) in [
            ("1.995", 20, 2, Ok(200)),
            ("0.0051", 20, 2, Ok(1)),
            ("0.005", 20, 2, Ok(1)),
            ("0.0049999999999999999999999999999", 20, 2, Ok(0)),
            ("-0.005", 20, 2, Ok(-1)),
            ("-1.994", 20, 2, Ok(-199)),
            ("1.9", 20, 2, Ok(190)),
            ("5", 20, 0, Ok(5)),
            ("0.5", 20, 0, Ok(1)),
            ("0.05", 20, 0, Ok(0)),
            ("-.5", 20, 0, Ok(-1)),
            ("7.", 20, 1, Ok(70)),
            ("+7", 20, 1, Ok(70)),
            (" 7 ", 20, 1, Ok(70)),
            ("00000000000000000000000007", 20, 1, Ok(70)),
            ("0", 20, 2, Ok(0)),
            ("-0.000", 20, 2, Ok(0)),
            ("0e99999999999999999999", 20, 2, Ok(0)),
            ("1e-3", 20, 2, Ok(0)),
            ("5e-3", 20, 2, Ok(1)),
            ("-5E-3", 20, 2, Ok(-1)),
            ("1e3", 20, 2, Ok(100_000)),
            ("12345.6789e-2", 20, 2, Ok(12_346)),
            ("1e-99999999999999999999", 20, 2, Ok(0)),
            ("99.994", 4, 2, Ok(9999)),
            ("99.995", 4, 2, Err(OUT_OF_RANGE)),
            ("-99.995", 4, 2, Err(OUT_OF_RANGE)),
            ("100", 4, 2, Err(OUT_OF_RANGE)),
            ("1e400", 4, 2, Err(OUT_OF_RANGE)),
            ("1e99999999999999999999", 4, 2, Err(OUT_OF_RANGE)),
            ("149", 5, -2, Ok(1)),
            ("-150", 5, -2, Ok(-2)),
            ("49", 5, -2, Ok(0)),
            ("4", 5, -2, Ok(0)),
            ("99999999999999999999999999999999999999", 38, 0, Ok(99_999_999_999_999_999_999_999_999_999_999_999_999)),
            ("99999999999999999999999999999999999999.5", 38, 0, Err(OUT_OF_RANGE)),
        ] {
            assert_eq!(rounded::<Decimal128Type>(text, precision, scale), expected, "{text} as ({precision}, {scale})");
        }
        for text in ["", " ", "-", "+", ".", "-.", "e5", "1e", "1e+", "1.2.3", "1..2", "1 2", "x", "0x1", "NaN", "1,5"]
        {
            assert_eq!(rounded::<Decimal128Type>(text, 20, 2), Err("it is not a number"), "{text}");
        }
    }

    #[test]
    fn every_width_has_its_ends() {
        assert_eq!(rounded::<Decimal32Type>("-9999999.994", 9, 2), Ok(-999_999_999));
        assert_eq!(rounded::<Decimal32Type>("9999999.995", 9, 2), Err(OUT_OF_RANGE));
        assert_eq!(rounded::<Decimal64Type>("999999999999999999.4", 18, 0), Ok(999_999_999_999_999_999));
        assert_eq!(rounded::<Decimal64Type>("999999999999999999.5", 18, 0), Err(OUT_OF_RANGE));
        let nines = "9".repeat(76);
        let largest = i256::from_string(&nines).unwrap();
        assert_eq!(rounded::<Decimal256Type>(&nines, 76, 0), Ok(largest));
        assert_eq!(rounded::<Decimal256Type>(&format!("-{nines}.4"), 76, 0), Ok(largest.wrapping_neg()));
        assert_eq!(rounded::<Decimal256Type>(&format!("{nines}.5"), 76, 0), Err(OUT_OF_RANGE));
    }

    /// Wherever CAST knows what a text means, it is the same number.
    #[test]
    fn a_cast_gives_the_same() {
        let mut texts: Vec<String> = vec![];
        for whole in ["0", "1", "9", "12", "999", "12345678901234567", "00012"] {
            for behind in ["", ".0", ".5", ".49", ".4999", ".995", ".0049", ".005", ".123456789012345", ".99999"] {
                texts.extend([format!("{whole}{behind}"), format!("-{whole}{behind}")]);
            }
        }
        let array = StringArray::from(texts.clone());
        for (precision, scale) in [(38, 2), (38, 0), (20, 4), (5, 2), (3, 3), (38, 20)] {
            let casted = cast(&array, &DataType::Decimal128(precision, scale)).unwrap();
            for (text, expected) in texts.iter().zip(casted.as_primitive::<Decimal128Type>()) {
                let found = rounded::<Decimal128Type>(text, precision, scale);
                assert_eq!(found.ok(), expected, "{text} as ({precision}, {scale})");
            }
        }
    }
}
