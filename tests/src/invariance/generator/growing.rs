//! What is asked again and again of tables that grow: joins of several of them, unions, nested groups, windows that slide.

use super::query::{Source, first_int, through};
use super::views::reads_view;
use super::{Column, Generator, Relation};
use crate::invariance::changes::GROWING;
use crate::invariance::sketch::Sketch;

/// Statements that are asked again.
const ASKED_MAX: usize = 9;

/// A statement that may come again.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    sketch: Sketch,
    /// A LIMIT without an order, to be put behind it.
    limit: Option<usize>,
}

/// A statement over tables that grow.
#[derive(Clone, Debug)]
pub struct Growing {
    /// The statement.
    pub sql: String,
    /// With a LIMIT and without an order: the same without the limit, and the limit.
    pub whole: Option<(String, usize)>,
}

impl Generator {
    /// The next statement: mostly one that was asked before the tables changed.
    pub fn next_growing(&mut self) -> Growing {
        let asked = match self.asked.is_empty() || self.random.chance(25) {
            true => self.new_growing(),
            false => {
                let Asked { sketch, limit } = self.random.pick(&self.asked).clone();
                let random = &mut self.random;
                let sketch = match random.below(10) {
                    0..=5 => sketch,
                    // A window slides by a day, a filter by one.
                    6 | 7 => sketch.with_other_literal(random),
                    8 => sketch.with_other_word(random),
                    _ => sketch.with_swapped_conjuncts(random).renamed(random),
                };
                Asked { sketch, limit }
            }
        };
        let sql = asked.sketch.sql();
        if self.asked.iter().all(|other| other.sketch.sql() != sql) {
            self.asked.push(asked.clone());
        }
        if self.asked.len() > ASKED_MAX {
            let at = self.random.below(self.asked.len());
            self.asked.remove(at);
        }
        match asked.limit {
            Some(limit) => Growing { sql: format!("{sql} LIMIT {limit}"), whole: Some((sql, limit)) },
            None => Growing { sql, whole: None },
        }
    }

    fn new_growing(&mut self) -> Asked {
        self.n_names = 0;
        if self.random.chance(10) {
            let (_, text) = self.statement();
            return Asked { sketch: Sketch::new(text), limit: None };
        }
        if self.random.chance(8) {
            return Asked { sketch: Sketch::new(self.around_views().text), limit: None };
        }
        let source = match self.random.chance(15) {
            true => self.growing_view(),
            false => self.growing_source(),
        };
        let relation = match self.random.below(12) {
            _ if reads_view(&source) && self.random.chance(35) => self.distinct(source),
            0..=3 => self.grouped(source),
            4 | 5 => self.nested(source),
            6 => self.distinct(source),
            7 => {
                let inner = self.grouped(source);
                let source = self.derived(inner);
                self.windowed(source)
            }
            8 => {
                let (left, right) = (self.grouped(source), self.growing_source());
                let right = self.same_columns(&left, right);
                let operation = *self.random.pick(&["UNION ALL", "UNION"]);
                Relation { text: format!("{} {operation} {right}", left.text), ..left }
            }
            _ => self.plain(source),
        };
        match self.random.below(10) {
            0..=2 => Asked { sketch: Sketch::new(self.ordered(relation).text), limit: None },
            3 => Asked { sketch: Sketch::new(relation.text), limit: Some(self.random.below(9)) },
            _ => Asked { sketch: Sketch::new(relation.text), limit: None },
        }
    }

    /// Groups of groups.
    fn nested(&mut self, source: Source) -> Relation {
        let inner = self.grouped(source);
        let source = self.derived(inner);
        self.grouped(source)
    }

    fn derived(&mut self, inner: Relation) -> Source {
        let alias = self.name("s");
        let scope = inner.columns.iter().map(|column| through(&alias, column)).collect();
        Source { text: format!("({}) {alias}", inner.text), scope }
    }

    /// A SELECT with columns of the same types as a relation has.
    fn same_columns(&mut self, like: &Relation, source: Source) -> String {
        let mut items = vec![];
        for Column { data_type, .. } in &like.columns {
            items.push(self.expr(*data_type, &source.scope, 0));
        }
        format!("SELECT {} FROM {}", items.join(", "), source.text)
    }

    /// Tables that grow, and how they come together.
    fn growing_source(&mut self) -> Source {
        let left = self.growing_table();
        match self.random.below(13) {
            0..=2 => left,
            3 => {
                let right = self.growing_table();
                let union = self.union_all(&left, &right);
                match self.random.chance(50) {
                    true => union,
                    false => {
                        let right = self.growing_table();
                        self.join(union, right, "INNER JOIN")
                    }
                }
            }
            4 => self.chosen(left),
            // With itself.
            5 => {
                let table = left.text.split_whitespace().next().unwrap_or("m").to_owned();
                let right = match table.starts_with('(') {
                    true => self.growing_table(),
                    false => self.named_table(&table),
                };
                self.join(left, right, "INNER JOIN")
            }
            6 => {
                let (middle, right) = (self.growing_table(), self.growing_table());
                let join = *self.random.pick(&["INNER JOIN", "LEFT JOIN"]);
                let left = self.join(left, middle, join);
                self.join(left, right, "INNER JOIN")
            }
            7 => {
                let inner = self.growing_table();
                let inner = self.grouped(inner);
                let right = self.derived(inner);
                self.join(left, right, "INNER JOIN")
            }
            _ => {
                let right = self.growing_table();
                let join = *self.random.pick(&[
                    "INNER JOIN",
                    "LEFT JOIN",
                    "RIGHT JOIN",
                    "FULL JOIN",
                    "LEFT SEMI JOIN",
                    "LEFT ANTI JOIN",
                    "RIGHT SEMI JOIN",
                    "RIGHT ANTI JOIN",
                ]);
                self.join(left, right, join)
            }
        }
    }

    /// What stands on tables that grow, perhaps with one of them.
    fn growing_view(&mut self) -> Source {
        let left = self.view();
        if self.random.chance(60) {
            return left;
        }
        let right = self.growing_table();
        let join = *self.random.pick(&["INNER JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]);
        self.join(left, right, join)
    }

    fn growing_table(&mut self) -> Source {
        let name = *self.random.pick(&GROWING);
        if self.random.chance(30) {
            return self.window_of(name);
        }
        self.named_table(name)
    }

    fn named_table(&mut self, name: &str) -> Source {
        let alias = self.name("t");
        let scope = super::expr::table_columns(&alias);
        Source { text: format!("{name} {alias}"), scope }
    }

    /// Some days of a table.
    fn window_of(&mut self, name: &str) -> Source {
        let alias = self.name("t");
        let (first, days) = (self.random.between(14, 26), self.random.between(1, 5));
        let at = |day: i64| format!("TIMESTAMP '2023-11-‹{day}›T00:00:00'");
        let condition = match self.random.below(5) {
            // Whenever it is asked, it means the same days.
            4 => {
                let days = days_since(first);
                format!("⟦ts >= date_trunc('day', now()) - INTERVAL '‹{days}› days'⟧")
            }
            0 => format!("⟦ts >= {}⟧", at(first)),
            1 => format!("⟦ts BETWEEN {} AND {}⟧", at(first), at(first + days)),
            2 => format!("⟦date_trunc('day', ts) = {}⟧", at(first)),
            _ => format!("⟦ts >= {}⟧ AND ⟦ts < {}⟧", at(first), at(first + days)),
        };
        let scope = super::expr::table_columns(&alias);
        Source { text: format!("(SELECT * FROM {name} WHERE {condition}) {alias}"), scope }
    }

    fn join(&mut self, left: Source, right: Source, join: &str) -> Source {
        let mut on = format!("⟦{} = {}⟧", first_int(&left.scope), first_int(&right.scope));
        if self.random.chance(40) {
            let both: Vec<Column> = left.scope.iter().chain(&right.scope).cloned().collect();
            on.push_str(&format!(" AND ⟦{}⟧", self.comparison(&both)));
        }
        let text = format!("{} {join} {} ON {on}", left.text, right.text);
        let keeps_left = !join.starts_with("RIGHT SEMI") && !join.starts_with("RIGHT ANTI");
        let keeps_right = !join.starts_with("LEFT SEMI") && !join.starts_with("LEFT ANTI");
        let left = left.scope.into_iter().filter(|_| keeps_left);
        let scope = left.chain(right.scope.into_iter().filter(|_| keeps_right)).collect();
        Source { text, scope }
    }

    /// Rows that are, or are not, in another table.
    fn chosen(&mut self, left: Source) -> Source {
        let name = *self.random.pick(&GROWING);
        let (alias, inner) = (self.name("s"), self.name("q"));
        let not = if self.random.chance(50) { "NOT " } else { "" };
        let of = |column: &str| left.scope.iter().find(|of| of.name.ends_with(column)).map(|of| of.name.clone());
        let (id, k) = (of(".id").unwrap_or("1".to_owned()), of(".k").unwrap_or("1".to_owned()));
        let limit = self.literal(0, 8);
        let condition = match self.random.below(4) {
            // The NULLs of k decide about all rows.
            0 => format!("{k} {not}IN (SELECT {inner}.k FROM {name} {inner} WHERE {inner}.id > {limit})"),
            1 => format!("{id} {not}IN (SELECT {inner}.id FROM {name} {inner} WHERE {inner}.k = {limit})"),
            2 => format!(
                "{not}EXISTS (SELECT 1 FROM {name} {inner} WHERE ⟦{inner}.id = {id}⟧ AND ⟦{inner}.k > {limit}⟧)"
            ),
            _ => format!("({id} {not}IN (SELECT {inner}.id FROM {name} {inner} WHERE {inner}.b) OR {k} = {limit})"),
        };
        let alias_of = |column: &Column| {
            let (_, name) = column.name.rsplit_once('.').unwrap_or(("", column.name.as_str()));
            Column { name: format!("{alias}.{name}"), data_type: column.data_type }
        };
        let scope = left.scope.iter().map(alias_of).collect();
        Source { text: format!("(SELECT * FROM {} WHERE {condition}) {alias}", left.text), scope }
    }

    fn union_all(&mut self, left: &Source, right: &Source) -> Source {
        let columns = ["id", "k", "g", "d", "f", "b", "ts", "dt"].join(", ");
        let alias = self.name("u");
        let (k, literal) = (first_int(&right.scope), self.literal(0, 30));
        let text = format!(
            "(SELECT {columns} FROM {} UNION ALL SELECT {columns} FROM {} WHERE {k} > {literal}) {alias}",
            left.text, right.text
        );
        Source { text, scope: super::expr::table_columns(&alias) }
    }
}

/// Days from that day of November 2023 until today.
fn days_since(day: i64) -> i64 {
    /// 2023-11-01 in days since 1970.
    const NOVEMBER: i64 = 19_662;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_secs() / 86_400) as i64 - (NOVEMBER + day - 1)
}
