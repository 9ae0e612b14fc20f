//! What stands on what: the names in the texts of views and functions, and what derived tables hold.
//!
//! A view, materialized or not, depends on what the names in its text stand for now; a derived table on the streams and
//! derived tables whose extents it holds; a function on the functions that it calls.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::config::ConfigOptions;
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::resolve::resolve_table_references;
use nectarine_catalog::{Frozen, Mentions, TableDef, TableId, TableKind, TableName, needs_extents};
use nectarine_planner::sql::{self, ParseOptions, Statement};
use sqlparser::ast::{self, Visit, visit_expressions};

use crate::catalog_view::CatalogView;
use crate::ddl::normal;

/// One line of `system.dependencies`.
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) depends_on: String,
    pub(crate) depends_on_kind: &'static str,
}

/// The names in the text of a view, as far as there is something of that name.
pub(crate) fn mentioned(view: &CatalogView, query: &str, default_schema: &str, config: &ConfigOptions) -> Mentions {
    let Ok(Some(Statement::DataFusion(statement))) = sql::parse(query, &ParseOptions::from(config)) else {
        return Mentions::default();
    };
    let normalizes = config.sql_parser.enable_ident_normalization;
    let relations = resolve_table_references(&statement, normalizes).map(|(relations, _)| relations);
    let name = |reference: datafusion::common::TableReference| {
        TableName::new(reference.schema().unwrap_or(default_schema), reference.table())
    };
    let relations = relations.unwrap_or_default().into_iter().map(name).filter(|name| view.tables.contains_key(name));
    let functions = match statement.as_ref() {
        DFStatement::Statement(statement) => called(view, statement.as_ref(), config),
        _ => BTreeSet::new(),
    };
    Mentions { relations: relations.collect(), functions }
}

/// The names in the text of a view and in those of plain views below it.
pub(crate) fn mentioned_through_views(
    view: &CatalogView,
    query: &str,
    default_schema: &str,
    config: &ConfigOptions,
) -> Mentions {
    through(view, query, default_schema, config, |_| true)
}

/// What a view is to be kept with: the names in its text, and in those of plain views below it that do not say themselves what
/// theirs name.
pub(crate) fn mentioned_to_keep(
    view: &CatalogView,
    query: &str,
    default_schema: &str,
    config: &ConfigOptions,
) -> Mentions {
    through(view, query, default_schema, config, |mentions| mentions.is_none())
}

/// The names in the text of a view and in those of plain views below it that are to be looked through.
fn through(
    view: &CatalogView,
    query: &str,
    default_schema: &str,
    config: &ConfigOptions,
    is_looked_through: impl Fn(&Option<Mentions>) -> bool,
) -> Mentions {
    let mut all = mentioned(view, query, default_schema, config);
    let mut left: Vec<TableName> = all.relations.iter().cloned().collect();
    while let Some(name) = left.pop() {
        let (query, default_schema) = match view.tables.get(&name).map(|table| &table.kind) {
            Some(TableKind::View { query, default_schema, mentions }) if is_looked_through(mentions) => {
                (query, default_schema)
            }
            _ => continue,
        };
        let more = mentioned(view, query, default_schema, config);
        all.functions.extend(more.functions);
        left.extend(more.relations.into_iter().filter(|name| all.relations.insert(name.clone())));
    }
    all
}

/// The functions written in SQL that a part of a statement calls.
pub(crate) fn called(view: &CatalogView, part: &impl Visit, config: &ConfigOptions) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let _: ControlFlow<()> = visit_expressions(part, |expr| {
        if let ast::Expr::Function(function) = expr
            && let Some(ident) = function.name.0.last().and_then(|part| part.as_ident())
        {
            let name = normal(ident, config);
            if view.functions.iter().any(|known| known.name == name) {
                found.insert(name);
            }
        }
        ControlFlow::Continue(())
    });
    found
}

/// The functions that a function calls.
fn called_by(view: &CatalogView, definition: &str, config: &ConfigOptions) -> BTreeSet<String> {
    match sql::parse(definition, &ParseOptions::from(config)) {
        Ok(Some(Statement::CreateFunction(create))) => called(view, create.as_ref(), config),
        _ => BTreeSet::new(),
    }
}

/// The same functions, and all that they call.
pub(crate) fn with_called(
    view: &CatalogView,
    mut functions: BTreeSet<String>,
    config: &ConfigOptions,
) -> BTreeSet<String> {
    loop {
        let known = view.functions.iter().filter(|function| functions.contains(&function.name));
        let more: BTreeSet<String> = known.flat_map(|function| called_by(view, &function.definition, config)).collect();
        let n_before = functions.len();
        functions.extend(more);
        if functions.len() == n_before {
            return functions;
        }
    }
}

/// The functions that call a function, and those that call them.
pub(crate) fn callers(view: &CatalogView, function: &str, config: &ConfigOptions) -> Vec<String> {
    let mut others: Vec<(&String, BTreeSet<String>)> =
        view.functions.iter().map(|other| (&other.name, called_by(view, &other.definition, config))).collect();
    let mut found = BTreeSet::from([function.to_string()]);
    loop {
        let calls = |called: &BTreeSet<String>| !called.is_disjoint(&found);
        let (more, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, called)| calls(called));
        if more.is_empty() {
            found.remove(function);
            return found.into_iter().collect();
        }
        found.extend(more.into_iter().map(|(name, _)| name.clone()));
        others = rest;
    }
}

/// All of these tables and functions, and everything that can not be read without them, plain views included.
pub(crate) fn with_dependants(
    view: &CatalogView,
    first: &[TableId],
    functions: &BTreeSet<String>,
    config: &ConfigOptions,
) -> Vec<TableId> {
    let mut found: BTreeSet<TableId> = first.iter().copied().collect();
    loop {
        let below: Vec<&TableDef> =
            view.tables.values().filter(|table| found.contains(&table.id)).map(AsRef::as_ref).collect();
        let needs = |table: &TableDef| {
            let by_text = table.kind.as_view().is_some_and(|(query, default_schema)| {
                let mentions = mentioned(view, query, default_schema, config);
                below.iter().any(|below| mentions.relations.contains(&below.name))
                    || !mentions.functions.is_disjoint(functions)
            });
            by_text || below.iter().any(|below| needs_extents(table, below))
        };
        let others = view.tables.values().filter(|table| !found.contains(&table.id));
        let more: Vec<TableId> = others.filter(|table| needs(table)).map(|table| table.id).collect();
        if more.is_empty() {
            return found.into_iter().collect();
        }
        found.extend(more);
    }
}

/// Everything that depends directly on something.
pub(crate) fn all(view: &CatalogView, config: &ConfigOptions) -> Vec<Dependency> {
    let mut found = vec![];
    for table in view.tables.values() {
        let line = |depends_on: String, depends_on_kind| {
            let (name, kind) = (table.name.to_string(), table.kind.word());
            Dependency { name, kind, depends_on, depends_on_kind }
        };
        if let Some((query, default_schema)) = table.kind.as_view() {
            let mentions = mentioned(view, query, default_schema, config);
            let relations = mentions.relations.iter().filter_map(|name| view.tables.get(name));
            found.extend(relations.map(|below| line(below.name.to_string(), below.kind.word())));
            found.extend(mentions.functions.into_iter().map(|function| line(function, "function")));
        }
        if let TableKind::Derived(derived) = &table.kind
            && derived.pinned.is_none()
        {
            let ids = derived.relations.iter().filter_map(|relation| match &relation.what {
                Frozen::Stream(stream) => Some(stream.id),
                Frozen::Derived { id } => Some(*id),
                Frozen::View { .. } => None,
            });
            let below = ids.filter_map(|id| view.tables.values().find(|below| below.id == id));
            found.extend(below.map(|below| line(below.name.to_string(), below.kind.word())));
        }
    }
    for function in &view.functions {
        let calls = called_by(view, &function.definition, config).into_iter();
        found.extend(calls.map(|other| Dependency {
            name: function.name.clone(),
            kind: "function",
            depends_on: other,
            depends_on_kind: "function",
        }));
    }
    found
}
