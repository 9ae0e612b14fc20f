//! Where results come from, for Graphviz: files to entries to entries.

use std::collections::BTreeSet;
use std::fmt::Write;

use nectarine_catalog::Fingerprint;
use nectarine_planner::node::{short, size};

use super::tree::reachable;
use crate::Result;
use crate::reuse::Reuse;

/// Files of a table that are drawn one by one; more of them are one node.
const FILES_MAX: usize = 12;

/// The graph of some entries, or of all.
pub(crate) async fn dot(reuse: &Reuse, entry: Option<Fingerprint>) -> Result<String> {
    reuse.refresh().await;
    let from = match entry {
        Some(key) => vec![key],
        None => reuse.cache.entries().into_iter().map(|entry| entry.key).collect(),
    };
    let mut text =
        String::from("digraph provenance {\n  rankdir = LR;\n  node [shape = box, fontname = \"sans-serif\"];\n");
    let mut edges: BTreeSet<String> = BTreeSet::new();
    let mut nodes: BTreeSet<String> = BTreeSet::new();
    for (key, made_of) in reachable(reuse, from).await? {
        let id = quoted(&key.to_string());
        let label = match reuse.cache.entry(&key).await.ok().flatten() {
            Some(entry) => {
                format!("{}\n{} rows, {}\n{}", short(&key), entry.rows, size(entry.bytes), cut(&entry.description))
            }
            None => format!("{}\nit is gone", short(&key)),
        };
        nodes.insert(format!("{id} [label = {}];", quoted(&label)));
        for origin in &made_of.origins {
            edges.insert(format!("{} -> {id} [label = \"reused\"];", quoted(&origin.to_string())));
            if reuse.cache.lookup(origin).is_none() {
                let label = format!("{}\nit is gone", short(origin));
                nodes.insert(format!("{} [label = {}, style = dashed];", quoted(&origin.to_string()), quoted(&label)));
            }
        }
        for input in &made_of.inputs {
            let scanned: Vec<_> = input.extents.iter().filter(|extent| !extent.is_reused).collect();
            let table = input.table.as_deref().unwrap_or("?");
            if scanned.len() > FILES_MAX {
                let name = format!("{table}: {} extents", scanned.len());
                let many = quoted(&format!("{name} of {key}"));
                nodes.insert(format!("{many} [label = {}, shape = cylinder];", quoted(&name)));
                edges.insert(format!("{many} -> {id} [label = \"scanned\"];"));
                continue;
            }
            for extent in scanned {
                let location = extent.location.as_deref().unwrap_or("?");
                let range = extent.range.map(|range| format!(" bytes {} to {}", range.start, range.end));
                let file = quoted(&extent.fingerprint.to_string());
                let label = quoted(&format!("{table}\n{location}{}", range.unwrap_or_default()));
                nodes.insert(format!("{file} [label = {label}, shape = note];"));
                edges.insert(format!("{file} -> {id} [label = \"scanned\"];"));
            }
        }
    }
    for line in nodes.iter().chain(&edges) {
        // Writing to a text does not fail.
        let _ = writeln!(text, "  {line}");
    }
    text.push_str("}\n");
    Ok(text)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn cut(sql: &str) -> String {
    match sql.char_indices().nth(60) {
        Some((end, _)) => format!("{}..", &sql[..end]),
        None => sql.to_string(),
    }
}
