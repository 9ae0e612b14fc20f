//! [`Generator`]: typed random queries over the tables, with many repetitions and near-copies.
//!
//! ```text
//!   expr   expressions of a type over the columns in scope
//!   query  SELECTs: joins, groups, windows, unions, subqueries, CTEs
//!   growing  what is asked again and again of tables that grow
//!   views  what is asked of views, and of what they are made of
//! ```
//!
//! A cache is wrong where two statements that differ share a key, or one statement meets what another left behind. So
//! most statements here are changed copies of earlier ones.

mod expr;
mod growing;
mod query;
mod views;

use super::Random;
use super::sketch::Sketch;

pub use growing::Growing;

/// Earlier statements that are remembered.
const EARLIER_MAX: usize = 60;

/// The types that expressions have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Type {
    Int,
    Text,
    Decimal,
    Float,
    Bool,
    Time,
    Date,
}

impl Type {
    const ALL: [Self; 7] = [Self::Int, Self::Text, Self::Decimal, Self::Float, Self::Bool, Self::Time, Self::Date];
}

/// A column that expressions may name.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    data_type: Type,
}

/// A query with its columns.
#[derive(Clone, Debug)]
struct Relation {
    /// Marked, see [`Sketch`].
    text: String,
    columns: Vec<Column>,
}

/// Makes statements.
pub struct Generator {
    random: Random,
    /// What an outer layer can be put around, and the statement itself.
    earlier: Vec<(Relation, Sketch)>,
    /// What was asked of tables that grow.
    asked: Vec<growing::Asked>,
    n_names: usize,
}

impl Generator {
    /// The statements of a seed.
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed ^ 0x5eed), earlier: vec![], asked: vec![], n_names: 0 }
    }

    /// The next statement.
    pub fn next_sql(&mut self) -> String {
        if self.earlier.is_empty() || self.random.chance(35) {
            self.n_names = 0;
            let (relation, text) = self.statement();
            return self.remember(relation, Sketch::new(text));
        }
        let at = self.random.below(self.earlier.len());
        let (relation, sketch) = self.earlier[at].clone();
        let random = &mut self.random;
        match random.below(20) {
            // Word for word.
            0 | 1 => sketch.sql(),
            8..=11 => {
                let sketch = sketch.with_other_word(random);
                self.remember(relation, sketch)
            }
            // The same, deeper below: under another order, and under what is built upon it later.
            12..=14 => {
                let changed = Sketch::new(relation.text.clone()).with_other_word(random);
                let (relation, text) = self.perhaps_ordered(Relation { text: changed.text, ..relation });
                self.remember(relation, Sketch::new(text))
            }
            2..=4 => {
                let sketch = sketch.with_other_literal(random);
                self.remember(relation, sketch)
            }
            5 => sketch.with_swapped_conjuncts(random).sql(),
            6 => sketch.renamed(random).sql(),
            7 => sketch.with_swapped_conjuncts(random).renamed(random).sql(),
            _ => {
                self.n_names = 500 + self.random.below(400);
                let (relation, text) = self.outer_layer(&relation);
                self.remember(relation, Sketch::new(text))
            }
        }
    }

    fn remember(&mut self, relation: Relation, sketch: Sketch) -> String {
        let sql = sketch.sql();
        // Copies of copies of copies grow.
        if sql.len() < 1500 {
            self.earlier.push((relation, sketch));
        }
        if self.earlier.len() > EARLIER_MAX {
            self.earlier.remove(0);
        }
        sql
    }

    /// A name that no other part of the statement has.
    fn name(&mut self, stem: &str) -> String {
        self.n_names += 1;
        format!("§{stem}{}§", self.n_names)
    }

    fn literal(&mut self, start: i64, end: i64) -> String {
        format!("‹{}›", self.random.between(start, end))
    }
}
