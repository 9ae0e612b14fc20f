//! [`Limbs`]: a sum of floats with all its bits, however far they are apart.
//!
//! Every float is a whole number of 2^-1074. A sum is kept as such a number, in pieces of 32 bits that are added to without
//! carrying; there is room for more floats than fit into any memory. NaN and infinities are counted beside it.

/// Bits of a piece.
const BITS: usize = 32;
/// Pieces: all bits that a float can have, and room above them for 2^64 floats.
const PIECES: usize = 68;
/// Additions after which pieces are carried, long before one of them could overflow.
const CARRY_AFTER: u32 = 1 << 29;
/// Bits of the fraction of a float.
const FRACTION_BITS: u32 = 52;

/// A sum with all its bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Limbs {
    pieces: [i64; PIECES],
    /// Additions since pieces were carried last.
    n_added: u32,
    n_nan: i64,
    n_infinite: i64,
    n_minus_infinite: i64,
}

impl Default for Limbs {
    fn default() -> Self {
        Self { pieces: [0; PIECES], n_added: 0, n_nan: 0, n_infinite: 0, n_minus_infinite: 0 }
    }
}

impl Limbs {
    /// Adds a float.
    pub(super) fn add(&mut self, value: f64) {
        self.count(value, 1);
    }

    /// Takes away a float that was added.
    pub(super) fn subtract(&mut self, value: f64) {
        self.count(value, -1);
    }

    fn count(&mut self, value: f64, times: i64) {
        if value.is_nan() {
            self.n_nan += times;
        } else if value == f64::INFINITY {
            self.n_infinite += times;
        } else if value == f64::NEG_INFINITY {
            self.n_minus_infinite += times;
        } else {
            self.add_finite(value, times);
        }
    }

    fn add_finite(&mut self, value: f64, times: i64) {
        let bits = value.to_bits();
        let exponent = (bits >> FRACTION_BITS) & 0x7ff;
        let fraction = bits & ((1 << FRACTION_BITS) - 1);
        // The smallest floats have no leading one, and the exponent of those just above them.
        let (digits, shift) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << FRACTION_BITS, exponent as usize - 1),
        };
        let sign = if value.is_sign_negative() { -times } else { times };
        let mut wide = u128::from(digits) << (shift % BITS);
        for piece in &mut self.pieces[shift / BITS..shift / BITS + 3] {
            *piece += sign * i64::from(wide as u32);
            wide >>= BITS;
        }
        self.added();
    }

    /// Adds another sum.
    pub(super) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        other.carry();
        self.pieces.iter_mut().zip(other.pieces).for_each(|(piece, more)| *piece += more);
        self.n_nan += other.n_nan;
        self.n_infinite += other.n_infinite;
        self.n_minus_infinite += other.n_minus_infinite;
        self.added();
    }

    fn added(&mut self) {
        self.n_added += 1;
        if self.n_added >= CARRY_AFTER {
            self.carry();
        }
    }

    /// Brings all pieces but the last, which has the sign, between 0 and 2^32. The same sum has the same pieces then.
    fn carry(&mut self) {
        let mut over = 0;
        let [others @ .., last] = &mut self.pieces;
        for piece in others {
            let with = *piece + over;
            *piece = with & 0xffff_ffff;
            over = with >> BITS;
        }
        *last += over;
        self.n_added = 0;
    }

    /// The float that is nearest to the sum; of two, the even one.
    pub(super) fn value(&self) -> f64 {
        match (self.n_nan > 0, self.n_infinite > 0, self.n_minus_infinite > 0) {
            (true, ..) | (_, true, true) => return f64::NAN,
            (_, true, _) => return f64::INFINITY,
            (_, _, true) => return f64::NEG_INFINITY,
            _ => {}
        }
        let mut size = self.clone();
        size.carry();
        let is_negative = size.pieces[PIECES - 1] < 0;
        if is_negative {
            size.pieces.iter_mut().for_each(|piece| *piece = -*piece);
            size.carry();
        }
        let value = rounded(&size.pieces);
        if is_negative { -value } else { value }
    }

    /// The same in bytes; the same sum has the same bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut carried = self.clone();
        carried.carry();
        let numbers = [carried.n_nan, carried.n_infinite, carried.n_minus_infinite].into_iter().chain(carried.pieces);
        numbers.flat_map(i64::to_le_bytes).collect()
    }

    /// What [`Limbs::to_bytes`] gave.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let mut numbers = numbers.iter().map(|number| i64::from_le_bytes(*number));
        let (n_nan, n_infinite, n_minus_infinite) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let pieces: Vec<i64> = numbers.collect();
        // What was carried can be added to.
        let is_carried = pieces.iter().take(PIECES - 1).all(|piece| (0..1 << BITS).contains(piece));
        let pieces = <[i64; PIECES]>::try_from(pieces).ok().filter(|_| is_carried)?;
        Some(Self { pieces, n_added: 0, n_nan, n_infinite, n_minus_infinite })
    }
}

/// A number of 2^-1074 that is not negative, as a float. All pieces are carried.
fn rounded(pieces: &[i64; PIECES]) -> f64 {
    let Some(first) = pieces.iter().rposition(|piece| *piece != 0) else { return 0.0 };
    if first == PIECES - 1 {
        return f64::INFINITY;
    }
    let bit = |place: usize| (pieces[place / BITS] >> (place % BITS)) & 1 == 1;
    let top = first * BITS + pieces[first].ilog2() as usize;
    let digits_below = top.saturating_sub(FRACTION_BITS as usize);
    let digits = (digits_below..=top).rev().fold(0_u64, |digits, place| digits << 1 | u64::from(bit(place)));
    if digits_below == 0 {
        return f64::from_bits(digits);
    }
    let is_half = bit(digits_below - 1);
    let is_more = (0..digits_below - 1).any(bit);
    let up = is_half && (is_more || digits & 1 == 1);
    let exponent = digits_below as u64 + 1;
    // Rounding up may carry into the exponent: that is the next float, and beyond the largest one infinity.
    let bits = (exponent << FRACTION_BITS) + (digits - (1 << FRACTION_BITS)) + u64::from(up);
    f64::from_bits(bits.min(f64::INFINITY.to_bits()))
}
