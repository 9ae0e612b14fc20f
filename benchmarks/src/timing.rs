//! [`Samples`]: measured milliseconds, and what is said of them.

use std::time::Duration;

/// Measurements of one thing, in the order taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(milliseconds(time));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The first one: nothing of the kind was asked before.
    pub(crate) fn first(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn median(&self) -> f64 {
        median(self.0.clone())
    }

    /// The value that `percent` of the samples do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
    }

    /// How far the quartiles are apart, relative to the median.
    pub(crate) fn spread(&self) -> f64 {
        (self.percentile(75) - self.percentile(25)) / self.median()
    }

    /// The median of what each sample is to the one of `base` taken beside it: slow drifts of the machine fall out.
    pub(crate) fn paired_ratio(&self, base: &Self) -> f64 {
        median(self.0.iter().zip(&base.0).map(|(own, base)| own / base).collect())
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(milliseconds: I) -> Self {
        Self(milliseconds.into_iter().collect())
    }
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// NaN without values.
pub(crate) fn geometric_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, n) = values.into_iter().fold((0.0, 0), |(sum, n), value| (sum + value.ln(), n + 1));
    (sum / f64::from(n)).exp()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_one_can_check_by_hand() {
        let samples: Samples = [4.0, 1.0, 3.0, 2.0].into_iter().collect();
        assert_eq!((samples.min(), samples.median()), (1.0, 2.5));
        assert_eq!((samples.percentile(50), samples.percentile(95)), (2.0, 4.0));
        assert_eq!(samples.spread(), (3.0 - 1.0) / 2.5);
        let twice: Samples = [8.0, 2.0, 6.0, 5.0].into_iter().collect();
        assert_eq!(twice.paired_ratio(&samples), 2.0);
        assert!((geometric_mean([2.0, 8.0]) - 4.0).abs() < 1e-12);
        assert!(Samples::default().median().is_nan() && geometric_mean([]).is_nan());
    }
}
