//! What is told to users who may not know where files of the server are, and what is in rows that a view hides.
//!
//! ```text
//!   Discretion           what a statement of such a user is planned with: no figures of columns in plans, no places among settings
//!   Places               errors and notices without paths
//!   without_locations    the text of a view without the files that it reads
//! ```
//!
//! Keeps true   who has the home, and administrators, are told everything.

use std::sync::Arc;

use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::config::ConfigOptions;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::parser::Statement as DFStatement;
use datafusion::sql::resolve::resolve_table_references;
use nectarine_catalog::{TableDef, TableKind, looks_like_location};
use nectarine_planner::any_node;
use nectarine_planner::sql::{self, ParseOptions, Statement, rename_relations};
use sqlparser::ast;

use crate::statement::StatementCatalog;
use crate::{EngineError, Notice};

/// What stands for a place that is not told.
const HIDDEN: &str = "..";

/// Settings that tell where something is.
const PLACES: [&str; 3] = ["datafusion.runtime.temp_directory", "nectarine.cache_location", "nectarine.trace_endpoint"];

/// Whether the value of a setting is for administrators.
pub(crate) fn is_place(setting: &str) -> bool {
    PLACES.contains(&setting)
}

/// The rule; see above.
#[derive(Debug)]
pub(crate) struct Discretion;

impl Discretion {
    /// Lets the statement that a session is about to plan tell no more than is its user's to know.
    pub(crate) fn put_into(state: &mut SessionState) {
        // The least and the greatest value of a column are of all its rows, also of those that a view leaves out.
        state.config_mut().options_mut().explain.show_statistics = false;
        state.add_analyzer_rule(Arc::new(Self));
    }
}

impl AnalyzerRule for Discretion {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, is_settings) {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| {
            if !is_settings(&node) {
                return Ok(Transformed::no(node));
            }
            // Not there if the scan was cut to other columns, and then it was analyzed before.
            let Some(name) = node.schema().columns().into_iter().find(|column| column.name == "name") else {
                return Ok(Transformed::no(node));
            };
            let places = PLACES.iter().map(|place| lit(*place)).collect();
            let others = LogicalPlanBuilder::from(node).filter(Expr::Column(name).in_list(places, true))?.build()?;
            Ok(Transformed::yes(others))
        })
        .data()
    }

    fn name(&self) -> &str {
        "discretion"
    }
}

fn is_settings(node: &LogicalPlan) -> bool {
    let LogicalPlan::TableScan(scan) = node else { return false };
    scan.table_name.schema() == Some(INFORMATION_SCHEMA) && scan.table_name.table() == "df_settings"
}

/// Where files of the server are.
pub(crate) struct Places(Vec<String>);

impl Places {
    /// An error as it is told to who ran the statement.
    pub(crate) fn hide(catalog: &StatementCatalog, error: EngineError) -> EngineError {
        if catalog.rights.is_admin() {
            return error;
        }
        let places = Self::of(catalog);
        let told = error.clone().reworded(|text| places.without(text));
        if told.message() != error.message() || told.detail() != error.detail() {
            // Who keeps the server can do something about it.
            tracing::info!(%error, detail = error.detail(), "an error was told without its places");
        }
        told
    }

    /// The same of notices.
    pub(crate) fn hide_all(catalog: &StatementCatalog, mut notices: Vec<Notice>) -> Vec<Notice> {
        if notices.is_empty() || catalog.rights.is_admin() {
            return notices;
        }
        let places = Self::of(catalog);
        for notice in &mut notices {
            notice.message = places.without(&notice.message);
            notice.hint = notice.hint.as_ref().map(|hint| places.without(hint));
        }
        notices
    }

    fn of(catalog: &StatementCatalog) -> Self {
        let resolved = catalog.resolved();
        let tables = catalog.view.tables.values().chain(resolved.values());
        let mut places: Vec<String> = tables.flat_map(|table| locations(table)).collect();
        places.push(catalog.shared.home.root().display().to_string());
        Self::new(places)
    }

    fn new(places: Vec<String>) -> Self {
        // Stores leave out the first slash; without it a folder at the root would be found in any text.
        let bare = |place: String| match place.trim_start_matches('/') {
            below if below.trim_end_matches('/').contains('/') => below.to_string(),
            _ => place,
        };
        let mut places: Vec<String> = places.into_iter().map(bare).filter(|place| place.len() > 2).collect();
        places.sort();
        places.dedup();
        Self(places)
    }

    /// A text without the places in it, and without whatever else stands in quotes as only places do.
    fn without(&self, text: &str) -> String {
        let mut shown = text.to_string();
        for place in &self.0 {
            let mut from = 0;
            while let Some(at) = shown[from..].find(place.as_str()).map(|at| from + at) {
                let (start, end) = around(&shown, at);
                shown.replace_range(start..end, HIDDEN);
                from = start + HIDDEN.len();
            }
        }
        without_quoted_paths(&shown)
    }
}

/// Where the name of a file begins and ends that has something of a place in it.
fn around(text: &str, at: usize) -> (usize, usize) {
    let ends_name = |letter: char| letter.is_whitespace() || "\"'`(),;=".contains(letter);
    let start = text[..at]
        .rfind(ends_name)
        .map_or(0, |before| before + text[before..].chars().next().map_or(1, char::len_utf8));
    let quote = text[..start].chars().next_back().filter(|letter| "\"'`".contains(*letter));
    let end = match quote {
        Some(quote) => text[at..].find(quote),
        None => text[at..].find(ends_name),
    };
    (start, end.map_or(text.len(), |end| at + end))
}

fn without_quoted_paths(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (at, part) in text.split('"').enumerate() {
        if at > 0 {
            shown.push('"');
        }
        let is_quoted = at % 2 == 1;
        let is_path = part.starts_with('/') || part.contains("://");
        shown.push_str(if is_quoted && is_path { HIDDEN } else { part });
    }
    shown
}

/// The beginnings of the locations of a table's files.
fn locations(table: &TableDef) -> Vec<String> {
    let TableKind::External(source) = &table.kind else { return vec![] };
    let all = std::iter::once(&source.location).chain(&source.more_locations);
    all.map(|location| location.split(['*', '?', '[', '{']).next().unwrap_or_default().to_string()).collect()
}

/// The text that made something, without the files that its query reads; none if they cannot be told from the rest.
pub(crate) fn without_locations(definition: &str, config: &ConfigOptions) -> Option<String> {
    // Names of files stand in quotes.
    if !definition.contains(['\'', '"', '`']) {
        return Some(definition.to_string());
    }
    let options = ParseOptions::from(config);
    if !reads_locations(definition, &options)? {
        return Some(definition.to_string());
    }
    let query = match sql::parse(definition, &options).ok()?? {
        Statement::CreateView(create) => create.query_text,
        Statement::CreateDerived(create) => create.query_text,
        _ => return None,
    };
    let hidden = |name: &str| looks_like_location(name).then(|| HIDDEN.to_string());
    let renamed = rename_relations(&query, &options, hidden).ok()?;
    let shown = definition.replacen(&query, &renamed, 1);
    // Such as one that is named with a schema.
    (!reads_locations(&shown, &options)?).then_some(shown)
}

/// Whether a statement reads files by their location; none if that is not known.
fn reads_locations(text: &str, options: &ParseOptions) -> Option<bool> {
    let of_query = |query: Box<ast::Query>| DFStatement::Statement(Box::new(ast::Statement::Query(query)));
    let statement = match sql::parse(text, options).ok()?? {
        Statement::CreateView(create) => of_query(create.query),
        Statement::CreateDerived(create) => of_query(create.query),
        Statement::DataFusion(statement) => *statement,
        _ => return None,
    };
    let (relations, _) = resolve_table_references(&statement, false).ok()?;
    Some(relations.iter().any(|relation| looks_like_location(relation.table())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_left_out() {
        let places = Places::new(
            ["/srv/data/", "/srv/one file.csv", "s3://bucket/x", "/data", "/", ""].map(str::to_string).into(),
        );
        for (text, shown) in [
            ("cannot read \"/srv/data/a b.csv\": no such file", "cannot read \"..\": no such file"),
            (
                "Object at location srv/data/x.csv not found: gone (os error 2)",
                "Object at location .. not found: gone (os error 2)",
            ),
            ("no files match \"/elsewhere/*.csv\"", "no files match \"..\""),
            ("no files match \"s3://other/x\" and file:///srv/data/y, 2", "no files match \"..\" and .., 2"),
            ("\"/srv/one file.csv\" changed", "\"..\" changed"),
            ("cannot read data of /data/x", "cannot read data of .."),
            ("column \"a/b\" does not exist; 1 / 2", "column \"a/b\" does not exist; 1 / 2"),
            ("(location=/srv/data/t, ending=csv)", "(location=.., ending=csv)"),
        ] {
            assert_eq!(places.without(text), shown);
        }
    }

    #[test]
    fn texts_without_locations() {
        let shown = |text: &str| without_locations(text, &ConfigOptions::default());
        for text in [
            "CREATE VIEW v AS SELECT a, 'x/y' FROM t",
            "CREATE VIEW \"a view\" AS SELECT a FROM t WHERE b LIKE '%/x.csv'",
            "CREATE TABLE t (a INT DEFAULT 1, \"b\" TEXT)",
        ] {
            assert_eq!(shown(text).as_deref(), Some(text));
        }
        for (text, expected) in [
            ("CREATE VIEW v AS SELECT a, 'x/y' FROM '/srv/x.csv'", "CREATE VIEW v AS SELECT a, 'x/y' FROM '..'"),
            (
                "CREATE MATERIALIZED VIEW v (b) AS SELECT a FROM \"/srv/x\" JOIN t USING (a) WITH NO DATA",
                "CREATE MATERIALIZED VIEW v (b) AS SELECT a FROM \"..\" JOIN t USING (a) WITH NO DATA",
            ),
            (
                "CREATE DERIVED TABLE d AS SELECT a FROM 's3://b/*.parquet'",
                "CREATE DERIVED TABLE d AS SELECT a FROM '..'",
            ),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected));
        }
        for text in [
            "CREATE VIEW v AS SELECT a FROM public.\"/srv/x.csv\"",
            "CREATE TABLE t AS SELECT a FROM '/srv/x.csv'",
            "no '/statement'",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
