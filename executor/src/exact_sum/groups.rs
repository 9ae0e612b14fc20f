//! [`ExactGroups`]: exact sums, or averages, of many groups at once.

use std::collections::HashMap;
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, UInt64Array};
use arrow::datatypes::{Float64Type, UInt64Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use super::limbs::Limbs;
use super::pair::Pair;
use super::{States, Sum, to_columns};

/// Stands in the place of a pair that could not hold its sum.
const IN_LIMBS: Pair = Pair { high: f64::NAN, low: 0.0 };

/// Sums of groups.
#[derive(Debug, Default)]
pub(super) struct ExactGroups {
    pairs: Vec<Pair>,
    /// Sums that are too wide for a pair, by their groups.
    limbs: HashMap<usize, Box<Limbs>>,
    /// Values of each group, for averages.
    counts: Option<Vec<u64>>,
}

impl ExactGroups {
    pub(super) fn sums() -> Self {
        Self::default()
    }

    pub(super) fn averages() -> Self {
        Self { counts: Some(vec![]), ..Self::default() }
    }

    fn make_room(&mut self, n_groups: usize) {
        self.pairs.resize(n_groups, Pair::default());
        if let Some(counts) = &mut self.counts {
            counts.resize(n_groups, 0);
        }
    }

    #[inline(always)]
    fn add(&mut self, group: usize, value: f64) {
        let pair = &mut self.pairs[group];
        match pair.plus(value) {
            Some(sum) => *pair = sum,
            None => self.limbs_of(group).add(value),
        }
    }

    #[cold]
    fn limbs_of(&mut self, group: usize) -> &mut Limbs {
        let pair = std::mem::replace(&mut self.pairs[group], IN_LIMBS);
        self.limbs.entry(group).or_insert_with(|| Box::new(pair.limbs()))
    }

    /// Takes groups out, and moves the others to the front.
    fn take(&mut self, emit_to: EmitTo) -> (Vec<Option<Sum>>, Option<Vec<u64>>) {
        let pairs = emit_to.take_needed(&mut self.pairs);
        let mut sums: Vec<Option<Sum>> =
            pairs.into_iter().map(|pair| (!pair.is_empty()).then_some(Sum::Pair(pair))).collect();
        let n_taken = sums.len();
        for (group, limbs) in std::mem::take(&mut self.limbs) {
            match group.checked_sub(n_taken) {
                Some(left) => _ = self.limbs.insert(left, limbs),
                None => sums[group] = Some(Sum::Limbs(limbs)),
            }
        }
        (sums, self.counts.as_mut().map(|counts| emit_to.take_needed(counts)))
    }
}

fn floats(values: &[ArrayRef]) -> Result<&Float64Array> {
    match values.first().and_then(|values| values.as_primitive_opt::<Float64Type>()) {
        Some(floats) => Ok(floats),
        None => exec_err!("floats are added, and nothing else"),
    }
}

impl GroupsAccumulator for ExactGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.make_room(total_num_groups);
        let values = floats(values)?;
        if values.null_count() == 0 && opt_filter.is_none() {
            group_indices.iter().zip(values.values()).for_each(|(group, value)| self.add(*group, *value));
            if let Some(counts) = &mut self.counts {
                group_indices.iter().for_each(|group| counts[*group] += 1);
            }
            return Ok(());
        }
        let is_wanted = |row: usize| opt_filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        for (row, group) in group_indices.iter().enumerate() {
            if values.is_valid(row) && is_wanted(row) {
                self.add(*group, values.value(row));
                if let Some(counts) = &mut self.counts {
                    counts[*group] += 1;
                }
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (sums, counts) = self.take(emit_to);
        let sums = sums.iter().map(|sum| sum.as_ref().map(Sum::value));
        Ok(Arc::new(match counts {
            None => Float64Array::from_iter(sums),
            Some(counts) => Float64Array::from_iter(
                sums.zip(counts).map(|(sum, count)| sum.filter(|_| count > 0).map(|sum| sum / count as f64)),
            ),
        }))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let (sums, counts) = self.take(emit_to);
        let counts = counts.map(|counts| Arc::new(UInt64Array::from(counts)) as ArrayRef);
        Ok(counts.into_iter().chain(to_columns(sums.into_iter())).collect())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.make_room(total_num_groups);
        let mut values = values;
        if let (Some(counts), Some((more, sums))) = (&mut self.counts, values.split_first()) {
            let Some(more) = more.as_primitive_opt::<UInt64Type>() else { return exec_err!("counts are no numbers") };
            group_indices.iter().zip(more).for_each(|(group, n)| counts[*group] += n.unwrap_or(0));
            values = sums;
        }
        let states = States::new(values)?;
        for (row, group) in group_indices.iter().enumerate() {
            match states.get(row)? {
                None => {}
                Some(Sum::Pair(pair)) => {
                    self.add(*group, pair.high);
                    self.add(*group, pair.low);
                }
                Some(Sum::Limbs(limbs)) => self.limbs_of(*group).merge(&limbs),
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = floats(values)?;
        let is_wanted = |row: usize| opt_filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let value = |row: usize| (values.is_valid(row) && is_wanted(row)).then(|| values.value(row));
        // A sum of one value is that value, whatever it is: it is looked at when it is added to another.
        let sums = (0..values.len()).map(|row| value(row).map(|high| Sum::Pair(Pair { high, low: 0.0 })));
        let counts = self.counts.as_ref().map(|_| {
            let counts = (0..values.len()).map(|row| u64::from(value(row).is_some()));
            Arc::new(UInt64Array::from_iter_values(counts)) as ArrayRef
        });
        Ok(counts.into_iter().chain(to_columns(sums)).collect())
    }

    fn size(&self) -> usize {
        self.pairs.capacity() * size_of::<Pair>()
            + self.limbs.len() * (size_of::<Limbs>() + size_of::<(usize, Box<Limbs>)>())
            + self.counts.as_ref().map_or(0, |counts| counts.capacity() * size_of::<u64>())
    }
}
