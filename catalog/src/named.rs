//! Programs that are kept by name: [`MaterializedView`] and [`DerivedTable`], and what depends on what.
//!
//! ```text
//!   view               text; its names mean what they mean when it is read
//!   materialized view  the same, and its result is kept
//!   derived table      text, and all that its names, its settings and its clock meant when it was made
//! ```
//!
//! Depends      a materialized view on the names in its text, and in the texts of plain views that it reads so, as they are
//!              when somebody asks; a derived table on the streams and derived tables whose extents it holds. A derived table
//!              whose rows were copied depends on nothing.
//! Protected    what one of them depends on is neither dropped nor renamed below it. Plain views protect nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow_ipc::convert::{IpcSchemaEncoder, fb_to_schema};
use arrow_ipc::writer::DictionaryTracker;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{CatalogError, FileFormatKind, Function, TableDef, TableId, TableKind, TableName};

/// A program that is kept by name. Reading it is reading its query; what it gives is kept for the next time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MaterializedView {
    /// The query's text.
    pub query: String,
    /// The schema that its unqualified names belong to.
    pub default_schema: String,
    /// What its text names, and what is below those plain views in it of which nobody knows what theirs name. Of one that an
    /// older version made, all that was below it then.
    pub relations: Vec<TableName>,
    /// Functions written in SQL that it calls, in the same way.
    pub functions: Vec<String>,
}

/// The names in the text of a plain view, and what is below those plain views in it of which nobody knows what theirs name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Mentions {
    /// Tables and views.
    pub relations: BTreeSet<TableName>,
    /// Functions written in SQL.
    pub functions: BTreeSet<String>,
}

/// A program on the extents of one moment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DerivedTable {
    /// The query's text.
    pub query: String,
    /// The schema that its unqualified names belong to.
    pub default_schema: String,
    /// Settings that may change rows, those that were not the default.
    pub settings: BTreeMap<String, String>,
    /// What `now()` is, nanoseconds since 1970.
    pub now_ns: i64,
    /// All that its names stand for, below views as well. The extents of its streams are stored as those of the derived
    /// table, one list after the other.
    pub relations: Vec<FrozenRelation>,
    /// Functions written in SQL that it calls, below views and other functions as well.
    pub functions: Vec<Function>,
    /// The format of its own copy of the rows, if there is one; the stored extents are then those of the copy.
    pub pinned: Option<FileFormatKind>,
}

/// What a name stood for when a derived table was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FrozenRelation {
    /// The name then.
    pub name: TableName,
    /// What it was.
    pub what: Frozen,
}

/// A relation as it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Frozen {
    /// A view, plain or materialized: a text.
    View {
        /// The query.
        query: String,
        /// The schema that its unqualified names belong to.
        default_schema: String,
    },
    /// A stream, with this many of the stored extents.
    Stream(Box<FrozenStream>),
    /// Another derived table, which never changes.
    Derived {
        /// Which.
        id: TableId,
    },
}

/// A stream as it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FrozenStream {
    /// The table; of a file that was read by its location, nobody's.
    pub id: TableId,
    /// How its bytes become rows.
    pub kind: TableKind,
    /// Its columns.
    #[serde(serialize_with = "schema_to_text", deserialize_with = "schema_from_text")]
    pub schema: SchemaRef,
    /// Declared keys.
    pub primary_keys: Vec<Vec<usize>>,
    /// Declared unique keys.
    pub unique_keys: Vec<Vec<usize>>,
    /// How many extents it had.
    pub n_extents: usize,
}

/// What a derived table was made of: enough to find what was made of its copy, and no more, because it outlives the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DerivedSources {
    /// Which derived table.
    pub id: TableId,
    /// Streams and other derived tables.
    pub sources: Vec<DerivedSource>,
}

/// A stream or a derived table below another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DerivedSource {
    /// The name then.
    pub name: TableName,
    /// The table; of a file that was read by its location, nobody's.
    pub id: TableId,
    /// Where an external one had its files.
    pub locations: Vec<String>,
}

impl DerivedSources {
    /// `None` for what is no derived table.
    pub fn of(table: &TableDef) -> Option<Self> {
        let TableKind::Derived(derived) = &table.kind else { return None };
        let source = |relation: &FrozenRelation| {
            let (id, locations) = match &relation.what {
                Frozen::View { .. } => return None,
                Frozen::Derived { id } => (*id, vec![]),
                Frozen::Stream(stream) => match &stream.kind {
                    TableKind::External(source) => {
                        let all = std::iter::once(&source.location).chain(&source.more_locations);
                        (stream.id, all.cloned().collect())
                    }
                    _ => (stream.id, vec![]),
                },
            };
            Some(DerivedSource { name: relation.name.clone(), id, locations })
        };
        Some(Self { id: table.id, sources: derived.relations.iter().filter_map(source).collect() })
    }
}

impl DerivedTable {
    /// Whether it holds extents of that table, and no copy of its rows.
    fn needs(&self, id: TableId) -> bool {
        self.pinned.is_none()
            && self.relations.iter().any(|relation| match &relation.what {
                Frozen::Stream(stream) => stream.id == id,
                Frozen::Derived { id: other } => *other == id,
                Frozen::View { .. } => false,
            })
    }
}

/// Whether the first is a derived table that can not be remade without the second.
pub fn needs_extents(table: &TableDef, other: &TableDef) -> bool {
    matches!(&table.kind, TableKind::Derived(derived) if derived.needs(other.id))
}

/// What the texts of materialized views stand on, with those of plain views between. It is looked for each time, because any of
/// these views may be another by now.
struct Below<'a> {
    views: BTreeMap<TableId, (BTreeSet<&'a TableName>, BTreeSet<&'a str>)>,
}

impl<'a> Below<'a> {
    fn of(tables: &'a [TableDef]) -> Self {
        let plain = plain_views(tables);
        let names = |table: &'a TableDef| match &table.kind {
            TableKind::MaterializedView(view) => Some((table.id, names_below(&plain, view))),
            _ => None,
        };
        Self { views: tables.iter().filter_map(names).collect() }
    }

    /// Whether the first can not be read, or not be remade, without the second.
    fn depends_on(&self, table: &TableDef, other: &TableDef) -> bool {
        self.knows(table, other) || needs_extents(table, other)
    }

    /// Whether the first is a materialized view that finds the second by its name.
    fn knows(&self, table: &TableDef, other: &TableDef) -> bool {
        self.views.get(&table.id).is_some_and(|(relations, _)| relations.contains(&other.name))
    }
}

/// Plain views, with what their texts name.
fn plain_views(tables: &[TableDef]) -> BTreeMap<&TableName, &Mentions> {
    let tables = tables.iter().filter_map(|table| match &table.kind {
        TableKind::View { mentions, .. } => mentions.as_ref().map(|mentions| (&table.name, mentions)),
        _ => None,
    });
    tables.collect()
}

/// The names in the text of a materialized view, and in those of plain views that it reads so.
fn names_below<'a>(
    plain: &BTreeMap<&'a TableName, &'a Mentions>,
    view: &'a MaterializedView,
) -> (BTreeSet<&'a TableName>, BTreeSet<&'a str>) {
    let mut relations: BTreeSet<&TableName> = view.relations.iter().collect();
    let mut functions: BTreeSet<&str> = view.functions.iter().map(String::as_str).collect();
    let mut left: Vec<&TableName> = view.relations.iter().collect();
    while let Some(name) = left.pop() {
        let Some(mentions) = plain.get(name).copied() else { continue };
        functions.extend(mentions.functions.iter().map(String::as_str));
        left.extend(mentions.relations.iter().filter(|name| relations.insert(*name)));
    }
    (relations, functions)
}

/// All of `tables` that go when `first` do: they, what depends on them, what depends on that.
pub(crate) fn with_dependants(tables: &[TableDef], first: &[TableId]) -> BTreeSet<TableId> {
    let known = Below::of(tables);
    let mut found: BTreeSet<TableId> = first.iter().copied().collect();
    loop {
        let is_found = |table: &&TableDef| found.contains(&table.id);
        let below: Vec<&TableDef> = tables.iter().filter(is_found).collect();
        let more: Vec<TableId> = tables
            .iter()
            .filter(|table| !found.contains(&table.id) && below.iter().any(|other| known.depends_on(table, other)))
            .map(|table| table.id)
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// The materialized views that call a function, or one of those `through` which it is called.
pub(crate) fn callers(tables: &[TableDef], function: &str, through: &[String]) -> Vec<TableId> {
    let mut known = Below::of(tables).views;
    known.retain(|_, (_, called)| called.iter().any(|name| *name == function || through.iter().any(|one| one == name)));
    known.into_keys().collect()
}

/// What is dropped with `ids`: without `cascade` nothing else may have to go.
pub(crate) fn dropped_with(
    tables: &[TableDef],
    ids: &[TableId],
    cascade: bool,
) -> Result<BTreeSet<TableId>, CatalogError> {
    let all = with_dependants(tables, ids);
    if !cascade && let Some(table) = tables.iter().find(|table| ids.contains(&table.id)) {
        let others = tables.iter().filter(|other| all.contains(&other.id) && !ids.contains(&other.id));
        let others: Vec<&TableDef> = others.collect();
        if !others.is_empty() {
            let named = ids.iter().filter_map(|id| tables.iter().find(|table| table.id == *id));
            let known = Below::of(tables);
            let below = named.clone().find(|named| others.iter().any(|other| known.depends_on(other, named)));
            return Err(refused("drop", below.unwrap_or(table), &others));
        }
    }
    Ok(all)
}

/// Fails if a materialized view knows the table by its name.
pub(crate) fn may_rename(tables: &[TableDef], table: &TableDef) -> Result<(), CatalogError> {
    let known = Below::of(tables);
    let by_name = |other: &&TableDef| other.id != table.id && known.knows(other, table);
    match tables.iter().filter(by_name).collect::<Vec<_>>().as_slice() {
        [] => Ok(()),
        others => Err(refused("rename", table, others)),
    }
}

/// Fails if a derived table holds extents of the table that would go with it. Those of an external table stay where they are.
pub(crate) fn may_replace(tables: &[TableDef], old: &TableDef, new: TableId) -> Result<(), CatalogError> {
    if old.id == new || matches!(old.kind, TableKind::External(_)) {
        return Ok(());
    }
    let needs = |other: &&TableDef| matches!(&other.kind, TableKind::Derived(derived) if derived.needs(old.id));
    match tables.iter().filter(needs).collect::<Vec<_>>().as_slice() {
        [] => Ok(()),
        others => Err(refused("replace", old, others)),
    }
}

/// Fails if something that a new table stands on has gone since it was planned.
pub(crate) fn stands(tables: &[TableDef], new: &TableDef) -> Result<(), CatalogError> {
    let gone = match &new.kind {
        TableKind::MaterializedView(view) => {
            let (relations, _) = names_below(&plain_views(tables), view);
            relations.into_iter().find(|name| !tables.iter().any(|table| table.name == **name)).cloned()
        }
        // A copy needs nothing.
        TableKind::Derived(derived) if derived.pinned.is_some() => None,
        TableKind::Derived(derived) => derived
            .relations
            .iter()
            .find(|relation| match &relation.what {
                Frozen::View { .. } => false,
                Frozen::Derived { id } => !tables.iter().any(|table| table.id == *id),
                // Files need no table.
                Frozen::Stream(stream) => {
                    matches!(stream.kind, TableKind::Managed { .. })
                        && !tables.iter().any(|table| table.id == stream.id)
                }
            })
            .map(|relation| relation.name.clone()),
        _ => None,
    };
    gone.map_or(Ok(()), |name| Err(CatalogError::TableNotFound { name }))
}

fn refused(attempted: &'static str, table: &TableDef, others: &[&TableDef]) -> CatalogError {
    CatalogError::HasDependants {
        attempted,
        what: table.kind.word(),
        name: table.name.clone(),
        dependants: others.iter().map(|other| (other.kind.word(), other.name.clone())).collect(),
    }
}

/// The same for a function.
pub(crate) fn refused_function(function: &str, tables: &[TableDef], callers: &[TableId]) -> CatalogError {
    let others = tables.iter().filter(|table| callers.contains(&table.id));
    CatalogError::HasDependants {
        attempted: "drop",
        what: "function",
        name: TableName::new("", function),
        dependants: others.map(|other| (other.kind.word(), other.name.clone())).collect(),
    }
}

/// The schema as a bare IPC flatbuffer: every type, nullability and all metadata survive.
pub(crate) fn encode_schema(schema: &Schema) -> Vec<u8> {
    // Dictionary columns need a tracker to number them, even where there is no data.
    let mut tracker = DictionaryTracker::new(false);
    let mut encoder = IpcSchemaEncoder::new().with_dictionary_tracker(&mut tracker);
    encoder.schema_to_fb(schema).finished_data().to_vec()
}

pub(crate) fn decode_schema(bytes: &[u8]) -> Result<SchemaRef, String> {
    let schema = arrow_ipc::root_as_schema(bytes).map_err(|error| format!("its schema cannot be read: {error}"))?;
    // `fb_to_schema` takes the list for granted.
    if schema.fields().is_none() {
        return Err("its schema has no columns".to_owned());
    }
    Ok(Arc::new(fb_to_schema(schema)))
}

fn schema_to_text<S: Serializer>(schema: &SchemaRef, serializer: S) -> Result<S::Ok, S::Error> {
    let text: String = encode_schema(schema).iter().map(|byte| format!("{byte:02x}")).collect();
    serializer.serialize_str(&text)
}

fn schema_from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SchemaRef, D::Error> {
    use serde::de::Error;
    let text = String::deserialize(deserializer)?;
    let bytes = text.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    let bytes: Vec<u8> = bytes.collect::<Option<_>>().ok_or_else(|| D::Error::custom("a schema is not in hex"))?;
    decode_schema(&bytes).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};

    use super::*;

    fn table(name: &str, kind: TableKind) -> TableDef {
        TableDef {
            id: TableId::new(),
            name: TableName::new("public", name),
            schema: Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)])),
            kind,
            defaults: vec![],
            primary_keys: vec![],
            unique_keys: vec![],
            definition: None,
            created_at: 0,
            owner: None,
        }
    }

    fn managed(name: &str) -> TableDef {
        table(name, TableKind::Managed { format: FileFormatKind::Parquet })
    }

    fn materialized(name: &str, over: &[&TableDef]) -> TableDef {
        let view = MaterializedView {
            query: String::new(),
            default_schema: "public".to_owned(),
            relations: over.iter().map(|table| table.name.clone()).collect(),
            functions: vec!["f".to_owned()],
        };
        table(name, TableKind::MaterializedView(view))
    }

    fn plain(name: &str, over: &TableDef, function: &str) -> TableDef {
        let relations = BTreeSet::from([over.name.clone()]);
        let mentions = Some(Mentions { relations, functions: BTreeSet::from([function.to_owned()]) });
        let (query, default_schema) = (String::new(), "public".to_owned());
        table(name, TableKind::View { query, default_schema, mentions })
    }

    fn derived(name: &str, over: &TableDef, pinned: Option<FileFormatKind>) -> TableDef {
        let what = match over.kind {
            TableKind::Derived(_) => Frozen::Derived { id: over.id },
            _ => Frozen::Stream(Box::new(FrozenStream {
                id: over.id,
                kind: over.kind.clone(),
                schema: Arc::clone(&over.schema),
                primary_keys: vec![],
                unique_keys: vec![],
                n_extents: 0,
            })),
        };
        let derived = DerivedTable {
            query: String::new(),
            default_schema: "public".to_owned(),
            settings: BTreeMap::new(),
            now_ns: 0,
            relations: vec![FrozenRelation { name: over.name.clone(), what }],
            functions: vec![],
            pinned,
        };
        table(name, TableKind::Derived(Box::new(derived)))
    }

    #[test]
    fn what_goes_with_a_table() {
        let t = managed("t");
        let d = derived("d", &t, None);
        let above = derived("above", &d, None);
        let v = materialized("v", &[&above]);
        let free = derived("free", &t, Some(FileFormatKind::Parquet));
        let tables = [t.clone(), d.clone(), above.clone(), v.clone(), free];
        let error = dropped_with(&tables, &[t.id], false).expect_err("others depend on it");
        assert_eq!(
            error.to_string(),
            "cannot drop table \"t\": derived table \"d\", derived table \"above\", materialized view \"v\" depend on it"
        );
        let all = dropped_with(&tables, &[t.id], true).expect("with all of them");
        assert_eq!(all, BTreeSet::from([t.id, d.id, above.id, v.id]));
        let together = dropped_with(&tables, &[v.id, above.id], false).expect("nothing is left out");
        assert_eq!(together.len(), 2);
        assert_eq!(callers(&tables, "f", &[]), [v.id]);
        assert!(callers(&tables, "g", &[]).is_empty());
        assert_eq!(callers(&tables, "g", &["f".to_owned()]), [v.id], "by way of another function");
    }

    /// What a materialized view stands on is what the plain views below it say now.
    #[test]
    fn plain_views_between_are_looked_through() {
        let (t, u) = (managed("t"), managed("u"));
        let (first, second) = (plain("first", &t, "g"), plain("second", &plain("first", &t, "g"), "h"));
        let v = materialized("v", &[&second]);
        let tables = [t.clone(), u.clone(), first.clone(), second.clone(), v.clone()];
        for (table, is_needed) in [(&t, true), (&u, false), (&first, true), (&second, true)] {
            assert_eq!(dropped_with(&tables, &[table.id], false).is_err(), is_needed, "{}", table.name);
            assert_eq!(may_rename(&tables, table).is_err(), is_needed, "{}", table.name);
        }
        assert_eq!(with_dependants(&tables, &[t.id]), BTreeSet::from([t.id, v.id]), "plain views stay");
        let called = ["f", "g", "h", "i"].map(|function| !callers(&tables, function, &[]).is_empty());
        assert_eq!(called, [true, true, true, false]);
        let replaced = [t.clone(), u.clone(), plain("first", &u, "i"), second.clone(), v.clone()];
        assert!(dropped_with(&replaced, &[t.id], false).is_ok() && may_rename(&replaced, &t).is_ok());
        assert!(dropped_with(&replaced, &[u.id], false).is_err() && may_rename(&replaced, &u).is_err());
        assert_eq!(with_dependants(&replaced, &[t.id]), BTreeSet::from([t.id]));
        assert!(callers(&replaced, "g", &[]).is_empty() && !callers(&replaced, "i", &[]).is_empty());
        assert!(stands(&replaced, &v).is_ok());
        assert!(stands(&[t, replaced[2].clone(), second], &v).is_err(), "what is below the views is gone");
        // They may even go round in circles.
        let round = [plain("first", &v, "g"), plain("second", &first, "h"), v.clone()];
        assert!(dropped_with(&round, &[v.id], false).is_ok());
    }

    #[test]
    fn views_of_older_versions_are_read() {
        let text = r#"{"kind":"view","query":"SELECT 1","default_schema":"public"}"#;
        let kind: TableKind = serde_json::from_str(text).expect("a view");
        assert!(matches!(kind, TableKind::View { mentions: None, .. }));
    }

    #[test]
    fn names_and_extents_are_protected() {
        let t = managed("t");
        let v = materialized("v", &[&t]);
        let d = derived("d", &t, None);
        let tables = [t.clone(), v.clone(), d.clone()];
        assert!(may_rename(&tables, &t).is_err(), "a view knows it by its name");
        assert!(may_rename(&tables, &v).is_ok() && may_rename(&tables[..1], &t).is_ok());
        assert!(may_rename(&[t.clone(), d.clone()], &t).is_ok(), "a derived table knows it by its id");
        assert!(may_replace(&tables, &t, TableId::new()).is_err(), "its extents would go");
        assert!(may_replace(&tables, &t, t.id).is_ok());
        assert!(may_replace(&[t.clone(), v.clone()], &t, TableId::new()).is_ok(), "the name stays");
        assert!(stands(&tables, &v).is_ok() && stands(&tables, &d).is_ok());
        assert!(stands(std::slice::from_ref(&v), &v).is_err() && stands(&[v], &d).is_err());
    }

    #[test]
    fn definitions_survive_as_text() {
        let t = managed("t");
        for kind in [materialized("v", &[&t]).kind, derived("d", &t, None).kind, plain("p", &t, "f").kind] {
            let text = serde_json::to_string(&kind).expect("written");
            assert_eq!(serde_json::from_str::<TableKind>(&text).expect("read"), kind);
        }
    }
}
