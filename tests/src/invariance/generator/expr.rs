//! Expressions of a type over the columns in scope.

use super::query::first_int;
use super::{Column, Generator, Type};
use crate::invariance::tables::NAMES;

impl Generator {
    /// An expression of that type. `depth` bounds it.
    pub(super) fn expr(&mut self, data_type: Type, scope: &[Column], depth: usize) -> String {
        let columns: Vec<&Column> = scope.iter().filter(|column| column.data_type == data_type).collect();
        if !columns.is_empty() && (depth == 0 || self.random.chance(40)) {
            return self.random.pick(&columns).name.clone();
        }
        if depth == 0 {
            return self.constant(data_type);
        }
        let below = depth - 1;
        if self.random.chance(12) {
            let (when, then, other) =
                (self.condition(scope, below), self.expr(data_type, scope, below), self.expr(data_type, scope, below));
            return format!("CASE WHEN {when} THEN {then} ELSE {other} END");
        }
        if self.random.chance(8) {
            let (first, second) = (self.expr(data_type, scope, below), self.expr(data_type, scope, below));
            return match self.random.chance(60) {
                true => format!("coalesce({first}, {second})"),
                false => format!("nullif({first}, {second})"),
            };
        }
        match data_type {
            Type::Int => self.int(scope, below),
            Type::Text => self.text(scope, below),
            Type::Decimal => self.decimal(scope, below),
            Type::Float => self.float(scope, below),
            Type::Bool => self.condition(scope, below),
            Type::Time => {
                let time = self.expr(Type::Time, scope, below);
                let hours = self.literal(1, 30);
                match self.random.below(3) {
                    0 => format!("date_trunc('{}', {time})", self.random.pick(&["day", "hour", "month", "week"])),
                    1 => format!("({time} + INTERVAL '{hours} hours')"),
                    _ => format!("CAST({} AS TIMESTAMP)", self.expr(Type::Date, scope, below)),
                }
            }
            Type::Date => match self.random.below(2) {
                0 => format!("CAST({} AS DATE)", self.expr(Type::Time, scope, below)),
                _ => {
                    let (date, days) = (self.expr(Type::Date, scope, below), self.literal(1, 5));
                    format!("CAST({date} + INTERVAL '{days} days' AS DATE)")
                }
            },
        }
    }

    fn int(&mut self, scope: &[Column], below: usize) -> String {
        let a = self.expr(Type::Int, scope, below);
        match self.random.below(9) {
            0 => format!("({a} + {})", self.expr(Type::Int, scope, below)),
            1 => format!("({a} - {})", self.expr(Type::Int, scope, below)),
            2 => format!("({a} * {})", self.literal(-3, 5)),
            3 => format!("({a} % {})", self.literal(1, 6)),
            4 => format!("abs({a})"),
            5 => format!("CAST(length({}) AS BIGINT)", self.expr(Type::Text, scope, below)),
            6 => {
                let part = *self.random.pick(&["day", "month", "dow", "hour"]);
                format!("CAST(date_part('{part}', {}) AS BIGINT)", self.expr(Type::Time, scope, below))
            }
            7 => format!("CAST(round({}) AS BIGINT)", self.expr(Type::Decimal, scope, below)),
            _ => format!("greatest({a}, {})", self.expr(Type::Int, scope, below)),
        }
    }

    fn text(&mut self, scope: &[Column], below: usize) -> String {
        let a = self.expr(Type::Text, scope, below);
        match self.random.below(7) {
            0 => format!("upper({a})"),
            1 => format!("lower({a})"),
            2 => format!("({a} || {})", self.expr(Type::Text, scope, below)),
            3 => format!("substr({a}, {}, {})", self.literal(1, 3), self.literal(1, 4)),
            4 => format!("CAST({} AS TEXT)", self.expr(Type::Int, scope, below)),
            5 => format!("CAST({} AS TEXT)", self.expr(Type::Date, scope, below)),
            _ => format!("concat({a}, '-', {})", self.expr(Type::Int, scope, below)),
        }
    }

    fn decimal(&mut self, scope: &[Column], below: usize) -> String {
        let a = self.expr(Type::Decimal, scope, below);
        match self.random.below(4) {
            0 => format!("CAST({a} + {} AS DECIMAL(20,2))", self.expr(Type::Decimal, scope, below)),
            1 => format!("CAST({a} * {} AS DECIMAL(20,2))", self.literal(-2, 4)),
            2 => format!("CAST({} AS DECIMAL(20,2))", self.expr(Type::Int, scope, below)),
            _ => format!("abs({a})"),
        }
    }

    fn float(&mut self, scope: &[Column], below: usize) -> String {
        let a = self.expr(Type::Float, scope, below);
        match self.random.below(5) {
            0 => format!("({a} + {})", self.expr(Type::Float, scope, below)),
            1 => format!("({a} * {})", self.literal(-2, 4)),
            2 => format!("CAST({} AS DOUBLE)", self.expr(Type::Int, scope, below)),
            3 => format!("(- {a})"),
            _ => format!("abs({a})"),
        }
    }

    fn constant(&mut self, data_type: Type) -> String {
        if self.random.chance(1) {
            return format!("CAST(NULL AS {})", sql_type(data_type));
        }
        match data_type {
            Type::Int => self.literal(-2, 20),
            Type::Text => format!("'{}'", self.random.pick(&["a", "b", "ab", "x", ""])),
            Type::Decimal => format!("CAST({} AS DECIMAL(12,2))", self.literal(-5, 20)),
            Type::Float => format!("CAST({} AS DOUBLE)", self.literal(-5, 10)),
            Type::Bool => (*self.random.pick(&["true", "false"])).to_owned(),
            Type::Time => format!("TIMESTAMP '2023-11-{}T06:00:00'", self.literal(14, 28)),
            Type::Date => format!("DATE '2022-01-{}'", self.literal(10, 28)),
        }
    }

    /// A condition: one or several conjuncts that can be swapped.
    pub(super) fn condition(&mut self, scope: &[Column], depth: usize) -> String {
        let n = *self.random.pick(&[1, 1, 2, 3]);
        let conjuncts: Vec<String> = (0..n).map(|_| format!("⟦{}⟧", self.predicate(scope, depth))).collect();
        format!("({})", conjuncts.join(" AND "))
    }

    fn predicate(&mut self, scope: &[Column], depth: usize) -> String {
        let below = depth.saturating_sub(1);
        let data_type = match scope.is_empty() || self.random.chance(5) {
            true => *self.random.pick(&Type::ALL),
            false => self.random.pick(scope).data_type,
        };
        let a = self.expr(data_type, scope, below.min(1));
        match self.random.below(13) {
            0 => format!("{a} IS NULL"),
            1 => format!("{a} IS NOT NULL"),
            2 => {
                format!("{} LIKE '{}'", self.expr(Type::Text, scope, below), self.random.pick(&["a%", "%b", "_", "%"]))
            }
            3 => {
                let list: Vec<String> = (0..3).map(|_| self.literal(0, 9)).collect();
                let not = if self.random.chance(30) { "NOT " } else { "" };
                format!("{} {not}IN ({})", self.expr(Type::Int, scope, below), list.join(", "))
            }
            4 => {
                let (low, high) = (self.literal(-3, 4), self.literal(3, 20));
                format!("{} BETWEEN {low} AND {high}", self.expr(Type::Int, scope, below))
            }
            5 if depth > 0 => format!("({} OR {})", self.predicate(scope, below), self.predicate(scope, below)),
            6 if depth > 0 => format!("NOT ({})", self.predicate(scope, below)),
            7 if depth > 0 => self.subquery_condition(scope),
            8 => {
                let op = *self.random.pick(&["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
                format!("({a} {op} ({}))", self.expr(data_type, scope, 0))
            }
            _ => {
                let op = *self.random.pick(&["=", "<>", "<", "<=", ">", ">="]);
                let other = match self.random.chance(60) {
                    true => self.constant(data_type),
                    false => self.expr(data_type, scope, below.min(1)),
                };
                format!("{a} {op} {other}")
            }
        }
    }

    fn subquery_condition(&mut self, scope: &[Column]) -> String {
        let table = *self.random.pick(&NAMES);
        let alias = self.name("q");
        let inner = table_columns(&alias);
        let outer: Vec<&Column> = scope.iter().filter(|column| column.data_type == Type::Int).collect();
        let outer = if outer.is_empty() { "3".to_owned() } else { self.random.pick(&outer).name.clone() };
        let filter = self.predicate(&inner, 0);
        let not = if self.random.chance(40) { "NOT " } else { "" };
        if self.random.chance(15) {
            let view = self.view();
            return format!("{outer} {not}IN (SELECT {} FROM {})", first_int(&view.scope), view.text);
        }
        match self.random.below(3) {
            0 => format!("{outer} {not}IN (SELECT {alias}.k FROM {table} {alias} WHERE {filter})"),
            1 => {
                format!("{not}EXISTS (SELECT 1 FROM {table} {alias} WHERE ⟦{alias}.id = {outer}⟧ AND ⟦{filter}⟧)")
            }
            _ => {
                let function = *self.random.pick(&["min", "max", "count"]);
                let op = *self.random.pick(&["<", ">=", "="]);
                format!("{outer} {op} (SELECT {function}({alias}.k) FROM {table} {alias} WHERE {filter})")
            }
        }
    }
}

/// The columns of a table under an alias.
pub(super) fn table_columns(alias: &str) -> Vec<Column> {
    let column = |name: &str, data_type| Column { name: format!("{alias}.{name}"), data_type };
    vec![
        column("id", Type::Int),
        column("k", Type::Int),
        column("g", Type::Text),
        column("d", Type::Decimal),
        column("f", Type::Float),
        column("b", Type::Bool),
        column("ts", Type::Time),
        column("dt", Type::Date),
    ]
}

fn sql_type(data_type: Type) -> &'static str {
    match data_type {
        Type::Int => "BIGINT",
        Type::Text => "TEXT",
        Type::Decimal => "DECIMAL(12,2)",
        Type::Float => "DOUBLE",
        Type::Bool => "BOOLEAN",
        Type::Time => "TIMESTAMP",
        Type::Date => "DATE",
    }
}
