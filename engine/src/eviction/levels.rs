//! [`Levels`]: the marks that usage is compared with. Pure, so that a simulation has the same ones.

/// Marks of one budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Levels {
    /// What there may be.
    pub budget: u64,
    /// Eviction starts above this.
    pub high: u64,
    /// Eviction ends here. Above it, only what somebody asked for is kept.
    pub low: u64,
}

impl Levels {
    /// `low` is a share of the budget; high water is a quarter of the rest below the budget.
    pub fn new(budget: u64, low_share: f64) -> Self {
        let low = ((budget as f64 * low_share) as u64).min(budget);
        Self { budget, high: budget - (budget - low) / 4, low }
    }

    /// The largest entry: one that fits when eviction has done what it can, if the low-water mark leaves anything.
    pub fn entry_bytes_max(&self) -> u64 {
        (self.budget - self.low).max(self.budget / 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks() {
        let levels = Levels::new(1000, 0.8);
        assert_eq!(levels, Levels { budget: 1000, high: 950, low: 800 });
        assert_eq!(levels.entry_bytes_max(), 200);
        assert_eq!(Levels::new(0, 0.8), Levels { budget: 0, high: 0, low: 0 });
        assert_eq!(Levels::new(1000, 1.0), Levels { budget: 1000, high: 1000, low: 1000 });
    }
}
