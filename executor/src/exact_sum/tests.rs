//! Order, pieces and threads do not show in a sum, whatever is added.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::datatypes::Float64Type;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::groups::ExactGroups;
use super::limbs::Limbs;
use super::single::ExactSingle;

/// Numbers that look random, the same ones each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Prices, numbers far apart, any bits at all, sums that overflow on the way, and what is not a number.
    fn float(&mut self, kind: u64) -> f64 {
        match kind {
            0 => self.below(10_000_000) as f64 / 100.0 * 0.93,
            1 => (self.below(2000) as f64 - 1000.0) * 10_f64.powi(self.below(60) as i32 - 30),
            2 => Some(f64::from_bits(self.next())).filter(|float| float.is_finite()).unwrap_or(1.0),
            3 => [1e308, -1e308, 1.5e308, 1.0][self.below(4) as usize],
            4 => f64::from_bits(self.below(1 << 54)),
            _ => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 0.1, 1e300][self.below(7) as usize],
        }
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for place in (1..all.len()).rev() {
            all.swap(place, self.below(place as u64 + 1) as usize);
        }
    }
}

const KINDS: u64 = 6;

fn column(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

/// Bits, so that nothing passes for the same that is not; a sum of zeros is 0.0 whatever their signs.
fn bits(value: Option<f64>) -> Option<u64> {
    value.map(f64::to_bits)
}

/// What the sum is, by all its bits.
fn expected(values: &[Option<f64>]) -> Option<f64> {
    let mut limbs = Limbs::default();
    values.iter().flatten().for_each(|value| limbs.add(*value));
    values.iter().flatten().next().map(|_| limbs.value())
}

fn single(accumulator: &mut ExactSingle) -> Option<f64> {
    match accumulator.evaluate().expect("a value") {
        ScalarValue::Float64(value) => value,
        other => panic!("{other}"),
    }
}

/// States of one accumulator, merged into another.
fn merge(into: &mut ExactSingle, mut from: ExactSingle) {
    let state = from.state().expect("a state");
    let columns: Vec<ArrayRef> = state.iter().map(|value| value.to_array().expect("one row")).collect();
    into.merge_batch(&columns).expect("a state");
}

#[test]
fn two_floats_add_up_as_the_processor_says() {
    let mut numbers = Numbers(1);
    for round in 0..60_000 {
        let (a, b) = (numbers.float(round % 5), numbers.float(2));
        // The same exponents, or nearly: halves, ties and carries.
        let near = (a.to_bits() & !0 << 52).wrapping_sub(numbers.below(60) << 52) | b.to_bits() & !0 >> 12;
        let near = Some(f64::from_bits(near)).filter(|float| float.is_finite()).unwrap_or(1.0);
        for b in [b, near, -near] {
            let mut limbs = Limbs::default();
            limbs.add(a);
            limbs.add(b);
            assert_eq!(limbs.value().to_bits(), (a + b + 0.0).to_bits(), "{a:e} + {b:e}");
        }
    }
}

#[test]
fn the_order_does_not_matter() {
    let mut numbers = Numbers(2);
    for round in 0..600 {
        let n = numbers.below(200) as usize;
        let mut values: Vec<Option<f64>> =
            (0..n).map(|_| (numbers.below(9) > 0).then(|| numbers.float(round % KINDS))).collect();
        let sum = expected(&values);
        let n_values = values.iter().flatten().count();
        for _ in 0..4 {
            numbers.shuffle(&mut values);
            let pieces: Vec<&[Option<f64>]> = values.chunks(1 + numbers.below(60) as usize).collect();
            let (mut all, mut average) = (ExactSingle::sum(), ExactSingle::average());
            for piece in &pieces {
                let (mut part, mut part_average) = (ExactSingle::sum(), ExactSingle::average());
                part.update_batch(&[column(piece)]).expect("floats");
                part_average.update_batch(&[column(piece)]).expect("floats");
                merge(&mut all, part);
                merge(&mut average, part_average);
            }
            assert_eq!(bits(single(&mut all)), bits(sum), "{values:?}");
            assert_eq!(bits(single(&mut average)), bits(sum.map(|sum| sum / n_values as f64)), "{values:?}");
        }
    }
}

#[test]
fn what_is_taken_away_was_never_there() {
    let mut numbers = Numbers(3);
    for round in 0..200 {
        let values: Vec<Option<f64>> =
            (0..60).map(|_| (numbers.below(9) > 0).then(|| numbers.float(round % KINDS))).collect();
        let mut window = ExactSingle::sum();
        for end in 1..=values.len() {
            window.update_batch(&[column(&values[end - 1..end])]).expect("floats");
            let start = end.saturating_sub(7);
            if start > 0 {
                window.retract_batch(&[column(&values[start - 1..start])]).expect("floats");
            }
            assert_eq!(bits(single(&mut window)), bits(expected(&values[start..end])), "{:?}", &values[..end]);
        }
    }
}

#[test]
fn groups_are_what_each_is_alone() {
    let mut numbers = Numbers(4);
    for round in 0..120 {
        let n_groups = 1 + numbers.below(9) as usize;
        let rows: Vec<(usize, Option<f64>, Option<bool>)> = (0..numbers.below(300))
            .map(|_| {
                let value = (numbers.below(9) > 0).then(|| numbers.float(round % KINDS));
                let filter = [Some(true), Some(true), Some(false), None][numbers.below(4) as usize];
                (numbers.below(n_groups as u64) as usize, value, filter)
            })
            .collect();
        let is_filtered = round % 2 == 0;
        for is_average in [false, true] {
            let new = || if is_average { ExactGroups::averages() } else { ExactGroups::sums() };
            let mut merged = new();
            for piece in rows.chunks(1 + numbers.below(80) as usize) {
                let groups: Vec<usize> = piece.iter().map(|(group, ..)| *group).collect();
                let values = [column(&piece.iter().map(|(_, value, _)| *value).collect::<Vec<_>>())];
                let filter: BooleanArray = piece.iter().map(|(.., filter)| *filter).collect();
                let filter = is_filtered.then_some(&filter);
                let mut part = new();
                match numbers.below(3) {
                    // Each row a state of its own.
                    0 => {
                        let states = part.convert_to_state(&values, filter).expect("floats");
                        merged.merge_batch(&states, &groups, n_groups).expect("states");
                    }
                    // In two goes.
                    1 => {
                        part.update_batch(&values, &groups, filter, n_groups).expect("floats");
                        let n_first = numbers.below(n_groups as u64) as usize;
                        let first = part.state(EmitTo::First(n_first)).expect("states");
                        let rest = part.state(EmitTo::All).expect("states");
                        let all: Vec<usize> = (0..n_groups).collect();
                        merged.merge_batch(&rest, &all[n_first..], n_groups).expect("states");
                        merged.merge_batch(&first, &all[..n_first], n_groups).expect("states");
                    }
                    _ => {
                        part.update_batch(&values, &groups, filter, n_groups).expect("floats");
                        let all: Vec<usize> = (0..n_groups).collect();
                        merged.merge_batch(&part.state(EmitTo::All).expect("states"), &all, n_groups).expect("states");
                    }
                }
            }
            merged.update_batch(&[column(&[])], &[], None, n_groups).expect("nothing");
            assert!(merged.size() > 0);
            let found = merged.evaluate(EmitTo::All).expect("values");
            let found = found.as_primitive::<Float64Type>();
            assert_eq!(found.len(), n_groups);
            for group in 0..n_groups {
                let is_in =
                    |row: &&(usize, Option<f64>, Option<bool>)| row.0 == group && (!is_filtered || row.2 == Some(true));
                let values: Vec<Option<f64>> = rows.iter().filter(is_in).map(|(_, value, _)| *value).collect();
                let n_values = values.iter().flatten().count() as f64;
                let sum = expected(&values).map(|sum| if is_average { sum / n_values } else { sum });
                let here = (!found.is_null(group)).then(|| found.value(group));
                assert_eq!(bits(here), bits(sum), "{values:?}");
            }
        }
    }
}

#[test]
fn bytes_are_the_sum_and_damaged_ones_are_none() {
    let mut numbers = Numbers(5);
    for round in 0..200 {
        let mut values: Vec<f64> = (0..30).map(|_| numbers.float(round % KINDS)).collect();
        let of = |values: &[f64]| {
            let mut limbs = Limbs::default();
            values.iter().for_each(|value| limbs.add(*value));
            limbs
        };
        let bytes = of(&values).to_bytes();
        numbers.shuffle(&mut values);
        assert_eq!(of(&values).to_bytes(), bytes);
        let again = Limbs::from_bytes(&bytes).expect("whole");
        assert_eq!(again.value().to_bits(), of(&values).value().to_bits());
        assert!(Limbs::from_bytes(&bytes[1..]).is_none() && Limbs::from_bytes(&bytes[8..]).is_none());
    }
}
