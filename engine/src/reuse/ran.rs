//! [`Ran`]: a statement that runs, and how its program came to be: put into words only if nobody has before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{Expr, LogicalPlan};
use nectarine_catalog::{
    DESCRIPTION_BYTES_MAX, ExternalSource, Fingerprint, Function, NamedText, ProgramRecord, ProgramRun, ProgramSource,
    TableDef, TableKind, is_store_option, source_name,
};
use nectarine_planner::canonical::{Prefix, PrefixKind, Salt, changes_rows};
use serde::Serialize;

use super::Programs;
use super::lineage::table_of;
use crate::managed::now_micros;
use crate::statement::StatementCatalog;

/// Our own setting that changes rows.
const FLOAT_SUMS: &str = "nectarine.float_sums";

/// The whole of a statement, as others name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Root {
    /// FP_PD.
    pub(crate) key: Fingerprint,
    /// FP_P.
    pub(crate) program: Fingerprint,
    /// The program over its tables, whatever they have.
    pub(crate) source: Fingerprint,
    /// What its top does.
    pub(crate) kind: PrefixKind,
}

impl Root {
    /// `None` for what reads nothing.
    pub(crate) fn of(root: &Prefix, catalog: &StatementCatalog) -> Option<Self> {
        let named = Self { key: root.key, program: root.program, source: source_of(root, catalog), kind: root.kind };
        (!root.inputs.is_empty()).then_some(named)
    }
}

fn source_of(root: &Prefix, catalog: &StatementCatalog) -> Fingerprint {
    let table = |name: &str| {
        let (name, id) = table_of(catalog, name);
        id.map_or(name, |id| id.to_string())
    };
    let tables: Vec<String> = root.inputs.iter().map(|input| table(&input.table)).collect();
    source_name(&root.program, tables.iter().map(String::as_str))
}

/// A statement and what it was planned with.
pub(crate) struct Ran {
    /// Names how the program came to be.
    pub(crate) source: Fingerprint,
    program: Fingerprint,
    encoding: Arc<[u8]>,
    text: String,
    plan: LogicalPlan,
    config: Arc<ConfigOptions>,
    catalog: Arc<StatementCatalog>,
}

impl Ran {
    /// `text` holds no secrets.
    pub(crate) fn new(
        root: &Prefix,
        text: String,
        plan: LogicalPlan,
        config: &Arc<ConfigOptions>,
        catalog: &Arc<StatementCatalog>,
    ) -> Self {
        Self {
            source: source_of(root, catalog),
            program: root.program,
            encoding: Arc::clone(&root.encoding),
            text,
            plan,
            config: Arc::clone(config),
            catalog: Arc::clone(catalog),
        }
    }

    /// So many runs of it, which ended now.
    pub(crate) fn runs(&self, programs: &Programs, runs: u64) -> ProgramRun {
        let now = now_micros();
        let what = (!programs.is_known(&self.source)).then(|| Arc::new((self.record(), self.how())));
        ProgramRun { source: self.source, program: self.program, what, runs, first_run_at: now, last_run_at: now }
    }

    fn record(&self) -> ProgramRecord {
        // As entries of this statement describe it.
        let mut description = one_line(&self.text);
        description.truncate(description.floor_char_boundary(DESCRIPTION_BYTES_MAX));
        ProgramRecord { program: self.program, encoding: Arc::clone(&self.encoding), description }
    }

    fn how(&self) -> ProgramSource {
        let defaults: BTreeMap<String, Option<String>> =
            ConfigOptions::new().entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
        let is_chosen = |key: &str, value: &str| match key {
            FLOAT_SUMS => value != "fast",
            _ => changes_rows(key) && defaults.get(key) != Some(&Some(value.to_string())),
        };
        let mut settings = vec![];
        for entry in self.config.entries() {
            if let Some(value) = entry.value.filter(|value| is_chosen(&entry.key, value)) {
                settings.push((entry.key, value));
            }
        }
        let mut inputs: Vec<NamedText> =
            self.catalog.tables_read().iter().filter_map(|table| described(table)).collect();
        inputs.sort();
        inputs.dedup();
        let view = |(name, text): (nectarine_catalog::TableName, String)| NamedText { name: name.to_string(), text };
        ProgramSource {
            sql: self.text.clone(),
            default_schema: self.config.catalog.default_schema.clone(),
            engine_version: Salt::versions(),
            settings,
            inputs,
            views: self.catalog.views_read().into_iter().map(view).collect(),
            functions: functions_of(&self.plan, &self.catalog.view.functions),
        }
    }
}

/// A statement for people.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What reading a table takes.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
struct Described<'a> {
    kind: &'a str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    source: Option<ExternalSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    columns: Vec<(&'a str, String)>,
}

fn described(table: &TableDef) -> Option<NamedText> {
    let columns = table.schema.fields().iter().map(|field| (field.name().as_str(), field.data_type().to_string()));
    let described = match &table.kind {
        TableKind::External(source) => {
            let mut source = source.clone();
            // Options of stores hold secrets, and say nothing about rows.
            source.options.retain(|key, _| !is_store_option(key));
            Described { kind: "external", source: Some(source), id: None, columns: columns.collect() }
        }
        kind if kind.own_files().is_some() => {
            let kind = if matches!(kind, TableKind::Managed { .. }) { "managed" } else { "derived" };
            Described { kind, source: None, id: Some(table.id.to_string()), columns: columns.collect() }
        }
        _ => return None,
    };
    Some(NamedText { name: table.name.to_string(), text: serde_json::to_string(&described).ok()? })
}

/// The functions written in SQL that a plan calls, and those that they call.
pub(crate) fn functions_of(plan: &LogicalPlan, functions: &[Function]) -> Vec<NamedText> {
    if functions.is_empty() {
        return vec![];
    }
    let mut called = BTreeSet::new();
    calls(plan, &mut called);
    let mut found: BTreeMap<&str, &Function> = BTreeMap::new();
    let mut next: Vec<&Function> = functions.iter().filter(|function| called.contains(&function.name)).collect();
    while let Some(function) = next.pop() {
        if found.insert(&function.name, function).is_none() {
            let words: BTreeSet<&str> = function.definition.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let calls = |other: &&Function| words.contains(other.name.as_str()) && other.name != function.name;
            next.extend(functions.iter().filter(calls));
        }
    }
    let text = |function: &Function| NamedText { name: function.name.clone(), text: function.definition.clone() };
    found.into_values().map(text).collect()
}

fn calls(plan: &LogicalPlan, called: &mut BTreeSet<String>) {
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(inner) = scan.source.get_logical_plan()
        {
            calls(&inner, called);
        }
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarFunction(call) = expr {
                    called.insert(call.func.name().to_string());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    // Only the closures above could fail.
    debug_assert!(visited.is_ok());
}
