//! [`Pair`]: a sum of floats as two floats, exactly.
//!
//! What rounding takes from an addition is a float itself, and easy to compute. As long as all that was lost fits into one
//! more float, the two together are the exact sum: true of most sums that anybody adds up. Where it does not fit, [`Limbs`]
//! go on.

use super::limbs::Limbs;

/// The exact sum is `high + low`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) high: f64,
    pub(super) low: f64,
}

/// Of nothing: no addition leaves a negative zero in `low`.
impl Default for Pair {
    fn default() -> Self {
        Self { high: 0.0, low: -0.0 }
    }
}

impl Pair {
    /// The sum with `value`; `None` if two floats can not hold it.
    #[inline(always)]
    pub(super) fn plus(self, value: f64) -> Option<Self> {
        let (high, lost) = sum(self.high, value);
        let (low, lost) = sum(self.low, lost);
        // Where something is infinite or not a number, so is what was lost.
        (lost == 0.0).then_some(Self { high, low })
    }

    /// Whether nothing was added.
    pub(super) fn is_empty(self) -> bool {
        self.low == 0.0 && self.low.is_sign_negative()
    }

    /// The float that is nearest to the sum.
    pub(super) fn value(self) -> f64 {
        self.high + self.low
    }

    /// The same, with room for more.
    pub(super) fn limbs(self) -> Limbs {
        let mut limbs = Limbs::default();
        limbs.add(self.high);
        limbs.add(self.low);
        limbs
    }
}

/// A rounded sum, and what rounding took from it.
#[inline(always)]
fn sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_rounded = sum - a;
    let a_rounded = sum - b_rounded;
    (sum, (a - a_rounded) + (b - b_rounded))
}
