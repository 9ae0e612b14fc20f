//! `system.provenance`: what each result was made of: extents, other results, tables, views, functions.
//!
//! Asked for one result (`derived = ..`) or one input (`input = ..`, `input LIKE 'file:///folder/%'`), only entries that have
//! to do with it are read, found by index.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Like, Operator};
use nectarine_catalog::{DataScope, EntryProvenance, Fingerprint, StoredProgram, ViewCache};

use super::{number, table_of, text};
use crate::statement::{StatementCatalog, wrap};

/// Entries that are read at a time.
const PAGE: usize = 256;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("derived"),
        text("input"),
        text("input_kind"),
        text("role"),
        number("byte_start"),
        number("byte_end"),
        text("extent"),
    ])
}

/// One row.
struct Line {
    derived: String,
    input: String,
    kind: &'static str,
    role: &'static str,
    range: Option<(u64, u64)>,
    extent: Option<Fingerprint>,
}

pub(super) async fn rows(catalog: &StatementCatalog, filters: &[Expr]) -> Result<RecordBatch> {
    let reuse = &catalog.shared.reuse;
    reuse.settled().await;
    reuse.refresh().await;
    let cache = &reuse.cache;
    let keys = keys(cache, &wanted(filters)).await?;
    let mut lines = vec![];
    let mut programs: HashMap<Fingerprint, Option<Arc<StoredProgram>>> = HashMap::new();
    for batch in keys.chunks(PAGE) {
        for entry in cache.provenance(batch).await.map_err(wrap)? {
            let program = match entry.source {
                Some(source) if !programs.contains_key(&source) => {
                    let program = cache.program_source(&source).await.map_err(wrap)?.map(Arc::new);
                    programs.entry(source).or_insert(program).clone()
                }
                Some(source) => programs.get(&source).cloned().flatten(),
                None => None,
            };
            lines_of(&entry, program.as_deref(), &mut lines);
        }
    }
    let texts =
        |of: &dyn Fn(&Line) -> Option<String>| -> ArrayRef { Arc::new(lines.iter().map(of).collect::<StringArray>()) };
    let numbers = |of: &dyn Fn(&Line) -> Option<u64>| -> ArrayRef {
        Arc::new(lines.iter().map(|line| of(line).map(|number| number as i64)).collect::<Int64Array>())
    };
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            texts(&|line| Some(line.derived.clone())),
            texts(&|line| Some(line.input.clone())),
            texts(&|line| Some(line.kind.to_string())),
            texts(&|line| Some(line.role.to_string())),
            numbers(&|line| line.range.map(|(start, _)| start)),
            numbers(&|line| line.range.map(|(_, end)| end)),
            texts(&|line| line.extent.map(|extent| extent.to_string())),
        ],
    )?)
}

fn lines_of(entry: &EntryProvenance, program: Option<&StoredProgram>, lines: &mut Vec<Line>) {
    let derived = entry.key.to_string();
    let line =
        |input: String, kind, role| Line { derived: derived.clone(), input, kind, role, range: None, extent: None };
    let mut seen: BTreeSet<(Fingerprint, bool)> = BTreeSet::new();
    let mut tables: BTreeSet<&str> = BTreeSet::new();
    for input in &entry.inputs {
        if let Some(table) = &input.table
            && tables.insert(table)
        {
            let is_scanned = input.extents.is_empty() || input.extents.iter().any(|extent| !extent.is_reused);
            lines.push(line(table.clone(), "table", if is_scanned { "scanned" } else { "reused" }));
        }
        for extent in input.extents.iter().filter(|extent| seen.insert((extent.fingerprint, extent.is_reused))) {
            let unknown = || format!("extent {}", extent.fingerprint);
            let input = extent.location.as_deref().map_or_else(unknown, str::to_string);
            let role = if extent.is_reused { "reused" } else { "scanned" };
            lines.push(Line {
                range: extent.range.map(|range| (range.start, range.end)),
                extent: Some(extent.fingerprint),
                ..line(input, "extent", role)
            });
        }
    }
    lines.extend(entry.origins.iter().map(|origin| line(origin.to_string(), "entry", "reused")));
    let how = program.map(|program| &program.how);
    lines.extend(how.iter().flat_map(|how| &how.views).map(|view| line(view.name.clone(), "view", "view")));
    let functions = how.iter().flat_map(|how| &how.functions);
    lines.extend(functions.map(|function| line(function.name.clone(), "function", "function")));
}

/// What filters ask for; `None` for everything.
#[derive(Default)]
struct Wanted {
    derived: Option<Vec<String>>,
    inputs: Option<Vec<Input>>,
}

enum Input {
    Exactly(String),
    BeginsWith(String),
}

fn wanted(filters: &[Expr]) -> Wanted {
    let mut wanted = Wanted::default();
    for filter in filters.iter().flat_map(split_conjunction) {
        let Some((column, values)) = values(filter) else { continue };
        match column.as_str() {
            "derived" if wanted.derived.is_none() => {
                let exact = |input| match input {
                    Input::Exactly(text) => Some(text),
                    Input::BeginsWith(_) => None,
                };
                wanted.derived = values.into_iter().map(exact).collect();
            }
            "input" if wanted.inputs.is_none() => wanted.inputs = Some(values),
            _ => {}
        }
    }
    wanted
}

/// A column and the texts that a filter lets through.
fn values(filter: &Expr) -> Option<(String, Vec<Input>)> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let (column, text) = column(left).zip(literal(right)).or_else(|| column(right).zip(literal(left)))?;
            Some((column, vec![Input::Exactly(text)]))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let texts: Option<Vec<Input>> = list.iter().map(|value| literal(value).map(Input::Exactly)).collect();
            Some((column(expr)?, texts?))
        }
        Expr::Like(Like { negated: false, expr, pattern, escape_char: None, case_insensitive: false }) => {
            let pattern = literal(pattern)?;
            let beginning = pattern.strip_suffix('%')?;
            let is_plain = !beginning.is_empty() && !beginning.contains(['%', '_', '\\']);
            is_plain.then_some((column(expr)?, vec![Input::BeginsWith(beginning.to_string())]))
        }
        _ => None,
    }
}

fn column(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Column(column) => Some(column.name.clone()),
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)),
            _,
        ) => Some(text.clone()),
        _ => None,
    }
}

/// Entries that rows may be about; more than those does no harm.
async fn keys(cache: &ViewCache, wanted: &Wanted) -> Result<Vec<Fingerprint>> {
    if let Some(derived) = &wanted.derived {
        return Ok(derived.iter().filter_map(|digits| Fingerprint::parse(digits)).collect());
    }
    if let Some(inputs) = &wanted.inputs
        && let Some(scope) = scope(inputs)
    {
        return cache.dependants(&scope).await.map_err(wrap);
    }
    let mut keys: Vec<Fingerprint> = cache.entries().into_iter().map(|entry| entry.key).collect();
    keys.sort();
    Ok(keys)
}

/// Where to look for inputs; `None` where only reading everything tells: views and functions.
fn scope(inputs: &[Input]) -> Option<DataScope> {
    let mut scope = DataScope::default();
    for input in inputs {
        match input {
            Input::Exactly(text) if text.contains("://") => scope.files.push(text.clone()),
            Input::Exactly(text) => {
                scope.entries.push(Fingerprint::parse(text)?);
            }
            Input::BeginsWith(text) if text.contains("://") => scope.file_beginnings.push(text.clone()),
            Input::BeginsWith(_) => return None,
        }
    }
    Some(scope)
}
