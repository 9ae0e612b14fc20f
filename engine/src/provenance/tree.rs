//! EXPLAIN PROVENANCE: what an answer or an entry is made of, as a tree down to files.
//!
//! ```text
//!   answer to SELECT k, count(*) FROM t GROUP BY k
//!     entry 8d2f31c09a4e                 reused     states, 13 rows, 1.1 KB, "SELECT .."
//!       table public.t                   scanned    364 extents
//!         file:///data/2026-01-01.parquet
//!     table public.t                     scanned    1 of 365 extents
//!       file:///data/2026-12-31.parquet
//! ```
//!
//! Bounded   of each table some extents are named; `system.provenance` has all of them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use futures::future::BoxFuture;
use nectarine_catalog::{CacheEntry, EntryProvenance, ExtentPlace, Fingerprint, NamedText, plain_location};
use nectarine_planner::node::{short, size};
use nectarine_planner::reuse::Findings;
use nectarine_planner::sql::Subject;

use super::again::is_query;
use super::{answer, find_entry};
use crate::command::StatementRun;
use crate::reuse::{Reuse, StatementReuse, functions_of};
use crate::{Answer, EngineError, ErrorKind, Result};

/// Extents that are named of each table.
const EXTENTS_MAX: usize = 20;
/// How deep entries stand on entries before the rest is left out.
const DEPTH_MAX: usize = 32;
/// Characters of a statement that are shown.
const SQL_CHARS_MAX: usize = 80;

/// Something, and what it was made of.
pub(super) struct Node {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) role: &'static str,
    pub(super) detail: String,
    pub(super) below: Vec<Node>,
}

pub(crate) async fn explain_provenance(run: &StatementRun<'_>, subject: Subject) -> Result<Answer> {
    let shared = &run.session.inner.shared;
    shared.reuse.settled().await;
    let nodes = match subject {
        Subject::Entry(beginning) => {
            let key = find_entry(shared, &beginning).await?;
            vec![entry(&shared.reuse, key, "", &mut HashSet::new(), 0).await?]
        }
        Subject::Statement(statement) => vec![of_statement(run, *statement).await?],
        Subject::All(_) => all(&shared.reuse).await?,
    };
    let mut lines = vec![];
    nodes.iter().for_each(|node| node.lines(0, &mut lines));
    let schema = tree_schema();
    let filled = |text: &str| (!text.is_empty()).then(|| text.to_string());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(lines.iter().map(|(line, _)| line))),
        Arc::new(StringArray::from_iter_values(lines.iter().map(|(_, node)| node.kind))),
        Arc::new(lines.iter().map(|(_, node)| filled(node.role)).collect::<StringArray>()),
        Arc::new(lines.iter().map(|(_, node)| filled(&node.detail)).collect::<StringArray>()),
    ];
    answer(run, RecordBatch::try_new(schema, columns).map_err(DataFusionError::from)?, vec![])
}

impl Node {
    fn lines<'a>(&'a self, depth: usize, lines: &mut Vec<(String, &'a Node)>) {
        lines.push((format!("{}{}", "  ".repeat(depth), self.name), self));
        self.below.iter().for_each(|node| node.lines(depth + 1, lines));
    }
}

/// All entries that no other was made from.
async fn all(reuse: &Reuse) -> Result<Vec<Node>> {
    reuse.refresh().await;
    let mut entries = reuse.cache.entries();
    entries.sort_by_key(|entry| (entry.created_at, entry.key));
    let keys: Vec<Fingerprint> = entries.iter().map(|entry| entry.key).collect();
    let made_of = reuse.cache.provenance(&keys).await?;
    let origins: HashSet<Fingerprint> = made_of.iter().flat_map(|entry| entry.origins.iter().copied()).collect();
    let mut nodes = vec![];
    let mut seen = HashSet::new();
    for key in keys.into_iter().filter(|key| !origins.contains(key)) {
        nodes.push(entry(reuse, key, "", &mut seen, 0).await?);
    }
    Ok(nodes)
}

/// What the answer to a statement would be made of.
async fn of_statement(run: &StatementRun<'_>, statement: datafusion::sql::parser::Statement) -> Result<Node> {
    let reuse = &run.session.inner.shared.reuse;
    let plan = Box::pin(run.state.statement_to_plan(statement)).await?;
    if !is_query(&plan) {
        return Err(EngineError::new(ErrorKind::Sql, "EXPLAIN PROVENANCE takes a query, a name, ENTRY '..' or ALL"));
    }
    let findings = StatementReuse::new(reuse, run.state, run.catalog)?.explain(&plan).await?;
    let Some(Findings { root, made_of, .. }) = findings else {
        return Err(EngineError::new(ErrorKind::Unsupported, "nothing is known about this statement")
            .with_hint("what is not computed from tables has no provenance"));
    };
    let mut below = vec![];
    let mut seen = HashSet::new();
    for key in &made_of.entries {
        below.push(entry(reuse, *key, "reused", &mut seen, 1).await?);
    }
    let (key, detail) = match &root {
        Ok(root) => {
            for input in &root.inputs {
                let is_scanned = |fingerprint: &Fingerprint| {
                    made_of.scanned.as_ref().is_none_or(|scanned| scanned.contains(fingerprint))
                };
                let extents = input.extents.iter().map(|extent| ExtentPlace {
                    fingerprint: extent.fingerprint,
                    location: Some(Arc::from(plain_location(&extent.location))),
                    range: extent.range,
                    is_reused: !is_scanned(&extent.fingerprint),
                });
                below.extend(table(&input.table, &extents.collect::<Vec<_>>()));
            }
            let is_there = reuse.cache.lookup(&root.key).is_some();
            (short(&root.key), if is_there { "it is kept" } else { "it is not kept" }.to_string())
        }
        Err(reason) => {
            for table in run.catalog.tables_read() {
                below.push(leaf(table.name.to_string(), "table", "scanned", String::new()));
            }
            (String::new(), format!("it can not be recognised: {reason}"))
        }
    };
    let views = run.catalog.views_read();
    below.extend(views.into_iter().map(|(name, query)| leaf(format!("view {name}"), "view", "view", cut(&query))));
    below.extend(functions(&functions_of(&plan, &run.catalog.view.functions)));
    Ok(Node { name: format!("answer {key}").trim().to_string(), kind: "answer", role: "", detail, below })
}

/// An entry, and what it was made of.
pub(super) fn entry<'a>(
    reuse: &'a Reuse,
    key: Fingerprint,
    role: &'static str,
    seen: &'a mut HashSet<Fingerprint>,
    depth: usize,
) -> BoxFuture<'a, Result<Node>> {
    Box::pin(async move {
        let name = format!("entry {}", short(&key));
        let made_of = reuse.cache.provenance(&[key]).await?.pop();
        let known = reuse.cache.entry(&key).await.ok().flatten();
        let (Some(made_of), Some(known)) = (made_of, known) else {
            return Ok(leaf(name, "entry", role, "it is gone".to_string()));
        };
        if !seen.insert(key) {
            return Ok(leaf(name, "entry", role, "see above".to_string()));
        }
        if depth > DEPTH_MAX {
            return Ok(leaf(name, "entry", role, "and so on".to_string()));
        }
        let mut below = vec![];
        for origin in &made_of.origins {
            below.push(entry(reuse, *origin, "reused", seen, depth + 1).await?);
        }
        for input in &made_of.inputs {
            below.extend(table(input.table.as_deref().unwrap_or("of an older format"), &input.extents));
        }
        if let Some(program) = program(reuse, &made_of).await {
            let views = program.views.iter();
            below.extend(views.map(|view| leaf(format!("view {}", view.name), "view", "view", cut(&view.text))));
            below.extend(functions(&program.functions));
        }
        Ok(Node { name, kind: "entry", role, detail: words(&known), below })
    })
}

async fn program(reuse: &Reuse, made_of: &EntryProvenance) -> Option<nectarine_catalog::ProgramSource> {
    let source = made_of.source.as_ref()?;
    Some(reuse.cache.program_source(source).await.ok().flatten()?.how)
}

/// A table and its extents that were read; `None` if all came by way of entries.
fn table(name: &str, extents: &[ExtentPlace]) -> Option<Node> {
    let scanned: Vec<&ExtentPlace> = extents.iter().filter(|extent| !extent.is_reused).collect();
    if scanned.is_empty() && !extents.is_empty() {
        return None;
    }
    let detail = match (scanned.len(), extents.len()) {
        (n, all) if n == all => counted(n),
        (n, all) => format!("{n} of {}", counted(all)),
    };
    let mut below: Vec<Node> = scanned.iter().take(EXTENTS_MAX).map(|extent| place(extent)).collect();
    if scanned.len() > EXTENTS_MAX {
        let rest = format!("and {} more", scanned.len() - EXTENTS_MAX);
        below.push(leaf(rest, "extent", "scanned", "system.provenance has all of them".to_string()));
    }
    Some(Node { name: format!("table {name}"), kind: "table", role: "scanned", detail, below })
}

fn place(extent: &ExtentPlace) -> Node {
    let name = match &extent.location {
        Some(location) => location.to_string(),
        None => format!("extent {}", short(&extent.fingerprint)),
    };
    let range = extent.range.map(|range| format!("bytes {} to {}", range.start, range.end));
    leaf(name, "extent", "scanned", range.unwrap_or_default())
}

fn functions(functions: &[NamedText]) -> Vec<Node> {
    let node =
        |function: &NamedText| leaf(format!("function {}", function.name), "function", "function", cut(&function.text));
    functions.iter().map(node).collect()
}

fn leaf(name: String, kind: &'static str, role: &'static str, detail: String) -> Node {
    Node { name, kind, role, detail, below: vec![] }
}

fn words(entry: &CacheEntry) -> String {
    let (kind, rows, bytes) = (entry.kind.as_str(), entry.rows, size(entry.bytes));
    format!("{kind}, {rows} rows, {bytes}, \"{}\"", cut(&entry.description))
}

fn counted(n: usize) -> String {
    match n {
        1 => "1 extent".to_string(),
        n => format!("{n} extents"),
    }
}

fn cut(sql: &str) -> String {
    let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match sql.char_indices().nth(SQL_CHARS_MAX) {
        Some((end, _)) => format!("{}..", &sql[..end]),
        None => sql,
    }
}

/// Entries and all that they were made from, each once; for those who draw.
pub(super) async fn reachable(reuse: &Reuse, from: Vec<Fingerprint>) -> Result<BTreeMap<Fingerprint, EntryProvenance>> {
    let mut found = BTreeMap::new();
    let mut next = from;
    while !next.is_empty() {
        let made_of = reuse.cache.provenance(&next).await?;
        next = made_of.iter().flat_map(|entry| entry.origins.iter().copied()).collect();
        found.extend(made_of.into_iter().map(|entry| (entry.key, entry)));
        next.sort();
        next.dedup();
        next.retain(|key| !found.contains_key(key));
    }
    Ok(found)
}

/// Columns of `EXPLAIN PROVENANCE`.
pub(crate) fn tree_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("provenance", DataType::Utf8, false),
        Field::new("kind", DataType::Utf8, false),
        Field::new("role", DataType::Utf8, true),
        Field::new("detail", DataType::Utf8, true),
    ]))
}
