//! [`ExactSingle`]: one exact sum, or average. Rows can be taken away again.

use std::mem::{size_of, size_of_val};

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{Float64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::Accumulator;

use super::limbs::Limbs;
use super::pair::Pair;
use super::{States, Sum, to_columns};

/// Values that are added side by side, each to a sum of its own.
const LANES: usize = 8;

/// One sum.
#[derive(Debug)]
pub(super) struct ExactSingle {
    pair: Pair,
    /// The sum, once a pair could not hold it.
    limbs: Option<Box<Limbs>>,
    /// Values that were added; for a sum of states, those states that had any.
    n_values: u64,
    is_average: bool,
}

impl ExactSingle {
    pub(super) fn sum() -> Self {
        Self { pair: Pair::default(), limbs: None, n_values: 0, is_average: false }
    }

    pub(super) fn average() -> Self {
        Self { is_average: true, ..Self::sum() }
    }

    fn limbs(&mut self) -> &mut Limbs {
        let pair = self.pair;
        self.limbs.get_or_insert_with(|| Box::new(pair.limbs()))
    }

    fn add(&mut self, value: f64) {
        match (&mut self.limbs, self.pair.plus(value)) {
            (Some(limbs), _) => limbs.add(value),
            (None, Some(sum)) => self.pair = sum,
            (None, None) => self.limbs().add(value),
        }
    }

    fn exact(&self) -> Option<Sum> {
        let sum = match &self.limbs {
            Some(limbs) => Sum::Limbs(limbs.clone()),
            None => Sum::Pair(self.pair),
        };
        (self.n_values > 0).then_some(sum)
    }

    /// Side by side: the order does not matter, and nobody waits for the sum before.
    fn add_all(&mut self, values: &[f64]) {
        let (mut high, mut low) = ([0.0; LANES], [0.0; LANES]);
        let (blocks, rest) = values.as_chunks::<LANES>();
        for block in blocks {
            let (mut new_high, mut new_low) = (high, low);
            let mut fits = true;
            for lane in 0..LANES {
                let pair = Pair { high: high[lane], low: low[lane] };
                match pair.plus(block[lane]) {
                    Some(sum) => (new_high[lane], new_low[lane]) = (sum.high, sum.low),
                    None => fits = false,
                }
            }
            match fits {
                true => (high, low) = (new_high, new_low),
                false => block.iter().for_each(|value| self.add(*value)),
            }
        }
        high.iter().chain(&low).chain(rest).for_each(|value| self.add(*value));
    }

    fn merge(&mut self, sum: Sum) {
        match sum {
            Sum::Pair(pair) => {
                self.add(pair.high);
                self.add(pair.low);
            }
            Sum::Limbs(limbs) => self.limbs().merge(&limbs),
        }
    }
}

fn floats(values: &[ArrayRef]) -> Result<&Float64Array> {
    match values.first().and_then(|values| values.as_primitive_opt::<Float64Type>()) {
        Some(floats) => Ok(floats),
        None => exec_err!("floats are added, and nothing else"),
    }
}

impl Accumulator for ExactSingle {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = floats(values)?;
        self.n_values += (values.len() - values.null_count()) as u64;
        match values.null_count() {
            0 => self.add_all(values.values()),
            _ => values.iter().flatten().for_each(|value| self.add(value)),
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = floats(values)?;
        self.n_values -= (values.len() - values.null_count()) as u64;
        for value in values.iter().flatten() {
            match &mut self.limbs {
                Some(limbs) => limbs.subtract(value),
                // Infinities and NaN were counted in limbs.
                None => self.add(-value),
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.exact().map(|sum| sum.value());
        Ok(ScalarValue::Float64(match self.is_average {
            true => sum.map(|sum| sum / self.n_values as f64),
            false => sum,
        }))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = self.exact();
        let mut state = vec![];
        if self.is_average {
            state.push(ScalarValue::from(self.n_values));
        }
        for column in to_columns(std::iter::once(sum)) {
            state.push(ScalarValue::try_from_array(&column, 0)?);
        }
        Ok(state)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let mut sums = states;
        if let (true, Some((counts, others))) = (self.is_average, states.split_first()) {
            let Some(counts) = counts.as_primitive_opt::<UInt64Type>() else {
                return exec_err!("counts are no numbers");
            };
            self.n_values += counts.iter().flatten().sum::<u64>();
            sums = others;
        }
        let states = States::new(sums)?;
        for row in 0..states.len() {
            if let Some(sum) = states.get(row)? {
                self.merge(sum);
                self.n_values += u64::from(!self.is_average);
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.limbs.as_ref().map_or(0, |_| size_of::<Limbs>())
    }
}
