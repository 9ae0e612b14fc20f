//! Two tables in one FROM that go by the same name: DataFusion takes the columns of one of them for those of the other.
//!
//! `FROM q, zz.q`: `q.a` and `zz.q.a` are both the column of whichever comes first. Not so with an alias, or if both are named with their
//! schemas. PostgreSQL takes such tables, and refuses `q.a`.

use std::ops::ControlFlow;

use sqlparser::ast::{Ident, ObjectName, Select, Spanned, TableFactor, TableWithJoins};
use sqlparser::tokenizer::Span;

use super::{Found, refuse_if};

/// What a table goes by.
struct Called {
    /// Its own name, without those that it is in.
    name: String,
    /// Those, from the outside.
    within: Vec<String>,
    near: Span,
}

/// Refuses two that could be taken for each other.
pub(super) fn select(select: &Select) -> Found {
    let mut called = vec![];
    select.from.iter().for_each(|table| tables(table, &mut called));
    for (position, one) in called.iter().enumerate() {
        // Of two with the same text DataFusion knows that they are two.
        let is_like = |other: &&Called| other.name == one.name && other.within.len() != one.within.len();
        if let Some(other) = called[..position].iter().find(is_like) {
            let clause = format!("the name \"{}\" for two tables ({} and {})", one.name, other.told(), one.told());
            refuse_if(true, clause, one.near, "give one of them an alias: FROM a.t JOIN b.t AS u")?;
        }
    }
    ControlFlow::Continue(())
}

impl Called {
    fn told(&self) -> String {
        self.within.iter().chain([&self.name]).map(String::as_str).collect::<Vec<_>>().join(".")
    }
}

fn tables(table: &TableWithJoins, called: &mut Vec<Called>) {
    factor(&table.relation, called);
    table.joins.iter().for_each(|join| factor(&join.relation, called));
}

fn factor(table: &TableFactor, called: &mut Vec<Called>) {
    let near = table.span();
    let alias = match table {
        TableFactor::Table { name, alias: None, .. } => {
            called.extend(by_name(name, near));
            return;
        }
        TableFactor::NestedJoin { table_with_joins, alias: None } => return tables(table_with_joins, called),
        TableFactor::Table { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_ref(),
        _ => None,
    };
    called.extend(alias.map(|alias| Called { name: folded(&alias.name), within: vec![], near }));
}

fn by_name(name: &ObjectName, near: Span) -> Option<Called> {
    let mut parts: Vec<String> = name.0.iter().map(|part| part.as_ident().map(folded)).collect::<Option<_>>()?;
    let name = parts.pop()?;
    Some(Called { name, within: parts, near })
}

/// As it is looked up.
fn folded(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}
