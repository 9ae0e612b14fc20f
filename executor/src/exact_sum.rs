//! `sum` and `avg` of floats that do not depend on the order in which rows are added.
//!
//! ```text
//!   pair       an exact sum as two floats: enough for most
//!   limbs      an exact sum with all its bits: for the others
//!   groups     the same for many groups at once
//!   single     the same for one, which can also take rows away (sliding windows)
//!   function   DataFusion's `sum` and `avg` with these for floats; all other types are left to DataFusion
//! ```
//!
//! Sums are rounded once, at the very end. So the same rows have the same sum in whatever order, in however many pieces, on
//! however many threads they were added: what was reused, and what was computed, does not show.
//!
//! States of a sum: `high` and `low`, whose sum is exact, or all bits (`bits`). NULL in `high` if nothing was added.

mod function;
mod groups;
mod limbs;
mod pair;
mod single;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Float64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, exec_err};

pub use self::function::exact_aggregates;
use self::limbs::Limbs;
use self::pair::Pair;

/// The exact sum of some floats.
#[derive(Clone, Debug)]
enum Sum {
    Pair(Pair),
    Limbs(Box<Limbs>),
}

impl Sum {
    fn value(&self) -> f64 {
        match self {
            Self::Pair(pair) => pair.value(),
            Self::Limbs(limbs) => limbs.value(),
        }
    }
}

/// Columns of the state of a sum.
fn state_fields(name: &str) -> Vec<FieldRef> {
    let field = |part: &str, data_type| Arc::new(Field::new(format!("{name}[{part}]"), data_type, true));
    vec![field("high", DataType::Float64), field("low", DataType::Float64), field("bits", DataType::Binary)]
}

/// States of sums as columns.
fn to_columns(sums: impl Iterator<Item = Option<Sum>>) -> Vec<ArrayRef> {
    let (mut high, mut low, mut bits) = (vec![], vec![], vec![]);
    for sum in sums {
        let (pair, all) = match sum {
            Some(Sum::Pair(pair)) => (Some(pair), None),
            Some(Sum::Limbs(limbs)) => (Some(Pair::default()), Some(limbs.to_bytes())),
            None => (None, None),
        };
        high.push(pair.map(|pair| pair.high));
        low.push(pair.map(|pair| pair.low));
        bits.push(all);
    }
    let bits = BinaryArray::from_iter(bits);
    vec![Arc::new(Float64Array::from(high)), Arc::new(Float64Array::from(low)), Arc::new(bits)]
}

/// The columns of states of sums.
struct States<'a> {
    high: &'a Float64Array,
    low: &'a Float64Array,
    bits: &'a BinaryArray,
}

impl<'a> States<'a> {
    fn new(columns: &'a [ArrayRef]) -> Result<Self> {
        let [high, low, bits] = columns else { return exec_err!("the state of a sum has {} columns", columns.len()) };
        match (high.as_primitive_opt::<Float64Type>(), low.as_primitive_opt(), bits.as_binary_opt()) {
            (Some(high), Some(low), Some(bits)) => Ok(Self { high, low, bits }),
            _ => exec_err!("the state of a sum has columns of other types"),
        }
    }

    /// One of them; `None` if nothing was added.
    fn get(&self, row: usize) -> Result<Option<Sum>> {
        if self.high.is_null(row) {
            return Ok(None);
        }
        if self.bits.is_null(row) {
            return Ok(Some(Sum::Pair(Pair { high: self.high.value(row), low: self.low.value(row) })));
        }
        match Limbs::from_bytes(self.bits.value(row)) {
            Some(limbs) => Ok(Some(Sum::Limbs(Box::new(limbs)))),
            None => exec_err!("the state of a sum is damaged"),
        }
    }

    fn len(&self) -> usize {
        self.high.len()
    }
}
