//! [`Random`]: numbers that look random and are the same each time.

/// SplitMix64: a few instructions a number, and any seed will do.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is above 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // Not quite even for bounds near 2^64; those here are small.
        self.number() % bound
    }

    /// From 0 up to but not including 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether something happens that happens so often.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// Between two numbers above 0, as likely in each order of magnitude.
    pub(crate) fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.fraction())
    }

    /// Above 0, as often below `median` as above it; with a `spread` of 1 mostly within a factor of three.
    pub(crate) fn skewed(&mut self, median: f64, spread: f64) -> f64 {
        median * (self.bell() * spread).exp()
    }

    /// Around 0 and mostly within one of it, as sums of many small things are.
    pub(crate) fn bell(&mut self) -> f64 {
        (0..12).map(|_| self.fraction()).sum::<f64>() - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_they_are_spread() {
        let numbers = |seed: u64| -> Vec<u64> {
            let mut random = Random::new(seed);
            (0..1_000).map(|_| random.below(10)).collect()
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        assert!((0..10).all(|digit| numbers(3).iter().filter(|number| **number == digit).count() > 50));
        let mut random = Random::new(4);
        let mean = (0..1_000).map(|_| random.bell()).sum::<f64>() / 1_000.0;
        assert!(mean.abs() < 0.2, "{mean}");
        assert!((0..100).all(|_| (1.0..=100.0).contains(&random.magnitude(1.0, 100.0))));
        let n_below = (0..1_000).filter(|_| random.skewed(7.0, 1.0) < 7.0).count();
        assert!((400..600).contains(&n_below), "{n_below}");
        assert!(!random.chance(0.0) && random.chance(1.0));
    }
}
