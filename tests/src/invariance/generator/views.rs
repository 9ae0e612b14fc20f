//! What is asked of views, and of what they are made of.

use super::query::{Source, first_int};
use super::{Column, Generator, Relation, Type};
use crate::invariance::views::VIEWS;

/// Whether a source reads a view.
pub(super) fn reads_view(source: &Source) -> bool {
    VIEWS.iter().any(|view| source.text.contains(view.name))
}

impl Generator {
    /// A view, a materialized view or a derived table.
    pub(super) fn view(&mut self) -> Source {
        let view = self.random.pick(&VIEWS);
        let alias = self.name("t");
        let column = |name: &str, data_type| Column { name: format!("{alias}.{name}"), data_type };
        let scope = view.columns.iter().map(|(name, data_type)| column(name, *data_type)).collect();
        Source { text: format!("{} {alias}", view.name), scope }
    }

    /// Statements by which entries of views, and of what they are made of, come to be where others look for them.
    pub(super) fn around_views(&mut self) -> Relation {
        match self.random.below(5) {
            0 | 1 => self.without_duplicates(),
            2 => self.as_a_whole(),
            _ => self.below_views(),
        }
    }

    /// Rows of a view as they are, or one column of them, without duplicates.
    fn without_duplicates(&mut self) -> Relation {
        let view = self.random.pick(&VIEWS);
        let column = |(name, data_type): &(&str, Type)| Column { name: (*name).to_owned(), data_type: *data_type };
        let mut columns: Vec<Column> = view.columns.iter().map(column).collect();
        if self.random.chance(50) {
            let one = columns.swap_remove(self.random.below(columns.len()));
            columns = vec![one];
        }
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let text = format!("SELECT DISTINCT {} FROM {}", names.join(", "), view.name);
        Relation { text, columns }
    }

    /// How many rows a view has, and a sum of them: duplicates show.
    fn as_a_whole(&mut self) -> Relation {
        let source = self.view();
        let (count, sum) = (self.name("a"), self.name("a"));
        let text =
            format!("SELECT count(*) AS {count}, sum({}) AS {sum} FROM {}", first_int(&source.scope), source.text);
        let column = |name| Column { name, data_type: Type::Int };
        Relation { text, columns: vec![column(count), column(sum)] }
    }

    /// What lies below a semi or an anti join of a view, joined in some way: a semi join whose duplicates do not matter can be read
    /// from an inner one.
    fn below_views(&mut self) -> Relation {
        let of_squares = ("m", "id", ["id", "k"], "n");
        let of_lonely = ("doubled", "i", ["i", "y"], "c");
        let (left, key, ints, right) = *self.random.pick(&[of_squares, of_squares, of_lonely]);
        let join = *self.random.pick(&["INNER JOIN", "INNER JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]);
        let (a, b) = (self.name("t"), self.name("u"));
        let mut read: Vec<(String, Type)> = ints.iter().map(|name| (format!("{a}.{name}"), Type::Int)).collect();
        if !join.contains("SEMI") && !join.contains("ANTI") {
            read.push((format!("{b}.g"), Type::Text));
        }
        let (mut items, mut columns) = (vec![], vec![]);
        for (column, data_type) in read {
            let name = self.name("c");
            items.push(format!("{column} AS {name}"));
            columns.push(Column { name, data_type });
        }
        let distinct = if self.random.chance(30) { "DISTINCT " } else { "" };
        let text =
            format!("SELECT {distinct}{} FROM {left} {a} {join} {right} {b} ON ⟦{b}.id = {a}.{key}⟧", items.join(", "));
        Relation { text, columns }
    }
}
