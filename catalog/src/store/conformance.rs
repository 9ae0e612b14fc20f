//! What every metadata store does, as small named checks; each runs against a new store of each kind.
//!
//! A check knows only the trait. What only a file can do (two handles, old and damaged files) is in `sqlite/tests`.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};

use self::access::roles;
use super::{GoneFile, KnownFile, MemoryStore, MetadataStore, QueryRecord, SqliteStore};
use crate::cache::{DataScope, EvictionNote, PinMoves, Publication};
use crate::{
    AccessChange, ByteRange, CatalogError, ColumnDefault, Extent, ExternalSource, FileFormatKind, Fingerprint,
    Function, JobId, JobQuery, Mentions, QueryId, Replace, ReportId, Result, RunQuery, Securable, TableDef, TableId,
    TableKind, TableName,
};

/// A test per check and kind of store.
macro_rules! conformance {
    ($($check:ident)*) => {
        mod memory {
            $(#[tokio::test]
            async fn $check() {
                super::$check(&super::MemoryStore::new()).await;
            })*
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $check() {
                let home = tempfile::tempdir().expect("a folder");
                let store = super::SqliteStore::open(&home.path().join("metadata.db")).await.expect("a new store");
                super::$check(&store).await;
            })*
        }
    };
}

mod access;
pub(crate) mod cache;
mod jobs;
mod known;
mod log;
mod named;
mod pins;
mod provenance;
mod reports;
mod space;
mod types;

conformance! {
    a_new_store_has_one_empty_schema
    schemas_are_made_and_dropped
    schemas_with_tables_are_dropped_by_cascade_only
    tables_come_back_as_they_were
    tables_need_their_schema_and_a_free_name
    replacing_a_table_takes_its_extents_along
    rows_that_came_meanwhile_are_not_replaced
    only_what_was_seen_is_replaced
    a_refused_table_leaves_no_trace
    dropped_tables_are_gone
    renamed_tables_keep_id_and_extents
    refused_renames_change_nothing
    extents_come_back_as_they_were
    extents_are_appended_in_order
    ten_thousand_extents_keep_their_order
    every_change_raises_the_version
    refusals_and_notes_leave_the_version
    names_may_hold_anything
    functions_are_made_replaced_and_dropped
    concurrent_appends_both_land
    a_closed_store_refuses_everything
}

// Things to store.

pub(super) fn table(name: &str) -> TableDef {
    table_in("public", name)
}

fn table_in(schema: &str, name: &str) -> TableDef {
    TableDef {
        id: TableId::new(),
        name: TableName::new(schema, name),
        schema: Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false)])),
        kind: TableKind::Managed { format: FileFormatKind::Parquet },
        defaults: vec![],
        primary_keys: vec![],
        unique_keys: vec![],
        definition: None,
        created_at: 1_700_000_000_000_000,
        owner: None,
    }
}

pub(super) fn extent(number: u64) -> Extent {
    Extent {
        location: format!("file:///data/part-{number}.parquet").into(),
        range: None,
        lines: false,
        file_bytes: 1000 + number,
        modified_at: -5,
        etag: None,
        fingerprint: Fingerprint::of_bytes(&number.to_le_bytes()),
        rows: Some(number),
        stats: vec![7; 120].into(),
        partition_values: Arc::new([]),
        first_seen_at: 1_700_000_000_000_001,
    }
}

pub(super) fn extents(numbers: std::ops::Range<u64>) -> Vec<Extent> {
    numbers.map(extent).collect()
}

fn known(number: u64, position: u32) -> KnownFile {
    KnownFile { extent: extent(number), identity: vec![1, 2, 3], racy: number % 2 == 1, position }
}

fn gone(number: u64) -> GoneFile {
    GoneFile { location: extent(number).location.to_string(), byte_start: 0 }
}

fn function(name: &str, definition: &str) -> Function {
    Function { name: name.to_owned(), definition: definition.to_owned(), created_at: 3 }
}

fn query(started_at: i64) -> QueryRecord {
    QueryRecord {
        query_id: QueryId::new(),
        started_at,
        user_name: "me".to_owned(),
        sql: "SELECT 'ü'".to_owned(),
        state: "finished".to_owned(),
        error: None,
        elapsed_ms: Some(1.5),
        cpu_ms: Some(3.0),
        rows_returned: Some(1),
        bytes_scanned: None,
        planning_ms: Some(0.25),
        reuse: Some("exact".to_owned()),
        entries_used: Some(1),
        saved_ms: Some(12.5),
        extents_total: Some(365),
        extents_reused: Some(364),
        process: Some("0198".to_owned()),
        login: Some("bob".to_owned()),
        lookups: vec![],
    }
}

async fn add(store: &dyn MetadataStore, table: &TableDef, extents: &[Extent]) {
    store.create_table(table, extents, Replace::Never).await.expect("a new table");
}

async fn table_names(store: &dyn MetadataStore) -> Vec<String> {
    store.tables().await.expect("tables").iter().map(|table| table.name.to_string()).collect()
}

async fn version(store: &dyn MetadataStore) -> i64 {
    store.catalog_version().await.expect("a version")
}

/// The error must be of a variant, whatever its fields say.
macro_rules! assert_fails {
    ($outcome:expr, $pattern:pat) => {
        let error = $outcome.expect_err("a refusal");
        assert!(matches!(error, $pattern), "unexpected error: {error:?}");
    };
}

// Schemas.

async fn a_new_store_has_one_empty_schema(store: &dyn MetadataStore) {
    assert_eq!(store.schemas().await.expect("schemas"), ["public"]);
    assert_eq!(store.tables().await.expect("tables"), []);
    assert_eq!(store.functions().await.expect("functions"), []);
    assert_eq!(store.queries(10).await.expect("queries"), []);
    assert_eq!(store.known_files("s3://nowhere").await.expect("known files"), []);
}

async fn schemas_are_made_and_dropped(store: &dyn MetadataStore) {
    store.create_schema("zoo").await.expect("a schema");
    store.create_schema("Zoo").await.expect("another, names are compared exactly");
    store.create_schema("ä").await.expect("a schema");
    assert_eq!(store.schemas().await.expect("schemas"), ["Zoo", "public", "zoo", "ä"]);
    assert_fails!(store.create_schema("zoo").await, CatalogError::AlreadyExists { what: "schema", .. });
    assert_eq!(store.drop_schema("zoo", false).await.expect("dropped"), []);
    assert_fails!(store.drop_schema("zoo", true).await, CatalogError::NotFound { what: "schema", .. });
    assert_eq!(store.schemas().await.expect("schemas"), ["Zoo", "public", "ä"]);
}

async fn schemas_with_tables_are_dropped_by_cascade_only(store: &dyn MetadataStore) {
    store.create_schema("zoo").await.expect("a schema");
    let (bear, ape) = (table_in("zoo", "bear"), table_in("zoo", "ape"));
    add(store, &bear, &extents(0..3)).await;
    add(store, &ape, &[]).await;
    add(store, &table("bear"), &[]).await;
    assert_fails!(store.drop_schema("zoo", false).await, CatalogError::SchemaNotEmpty { n_tables: 2, .. });
    assert_eq!(store.extents(bear.id).await.expect("extents").len(), 3);
    assert_eq!(store.drop_schema("zoo", true).await.expect("dropped"), [ape, bear.clone()]);
    assert_eq!(table_names(store).await, ["public.bear"]);
    assert_fails!(store.extents(bear.id).await, CatalogError::TableNotFound { .. });
}

// Tables.

async fn tables_come_back_as_they_were(store: &dyn MetadataStore) {
    let managed = TableDef {
        defaults: vec![ColumnDefault { column: "a".to_owned(), sql: "now() - INTERVAL '1 day'".to_owned() }],
        primary_keys: vec![vec![0, 2], vec![]],
        unique_keys: vec![vec![1]],
        definition: Some("CREATE TABLE m (a BIGINT)".to_owned()),
        ..table("m")
    };
    let source = ExternalSource {
        location: "s3://bucket/it's/*.csv".to_owned(),
        more_locations: vec!["/data/b".to_owned(), "/data/a".to_owned()],
        format: FileFormatKind::Csv,
        partition_columns: vec!["year".to_owned(), "month".to_owned()],
        options: BTreeMap::from([("format.delimiter".to_owned(), "\t".to_owned())]),
        content_fingerprint: true,
        order: vec!["a, b DESC".to_owned()],
    };
    let external = TableDef { kind: TableKind::External(source), ..table("e") };
    let query = TableKind::View {
        query: "SELECT \"a\" FROM m".to_owned(),
        default_schema: "public".to_owned(),
        mentions: Some(Mentions { relations: [managed.name.clone()].into(), functions: ["f".to_owned()].into() }),
    };
    let view = TableDef { kind: query, ..table("v") };
    for table in [&view, &managed, &external] {
        add(store, table, &[]).await;
    }
    assert_eq!(store.tables().await.expect("tables"), [external, managed, view]);
}

async fn tables_need_their_schema_and_a_free_name(store: &dyn MetadataStore) {
    let lost = table_in("nowhere", "t");
    assert_fails!(
        store.create_table(&lost, &[], Replace::Seen(None)).await,
        CatalogError::NotFound { what: "schema", .. }
    );
    add(store, &table("t"), &[]).await;
    let error = store.create_table(&table("t"), &[], Replace::Never).await.expect_err("a taken name");
    assert_eq!(error.to_string(), "table \"public.t\" already exists");
}

async fn replacing_a_table_takes_its_extents_along(store: &dyn MetadataStore) {
    let (old, new) = (table("t"), table("t"));
    let made = store.create_table(&old, &extents(0..3), Replace::Seen(None)).await;
    assert_eq!(made.expect("nothing to replace"), None);
    let replaced = store.create_table(&new, &extents(3..5), Replace::Seen(Some(old.id))).await.expect("replaced");
    assert_eq!(replaced.as_ref(), Some(&old));
    assert_eq!(store.tables().await.expect("tables"), std::slice::from_ref(&new));
    assert_eq!(store.extents(new.id).await.expect("extents"), extents(3..5));
    assert_fails!(store.extents(old.id).await, CatalogError::TableNotFound { .. });
    assert_fails!(store.append_extents(old.id, &extents(0..1)).await, CatalogError::TableNotFound { .. });
}

async fn rows_that_came_meanwhile_are_not_replaced(store: &dyn MetadataStore) {
    let (old, new, new_rows) = (table("t"), table("t"), extents(5..6));
    add(store, &old, &extents(0..3)).await;
    store.append_extents(old.id, &extents(3..4)).await.expect("appended");
    let before = version(store).await;
    let create = |id, n_extents| store.create_table(&new, &new_rows, Replace::Read { id, n_extents });
    let read_three = create(old.id, 3).await;
    assert_fails!(read_three, CatalogError::Overtaken { .. });
    let read_another = create(new.id, 4).await;
    assert_fails!(read_another, CatalogError::Overtaken { .. });
    assert_eq!(version(store).await, before);
    assert_eq!(store.extents(old.id).await.expect("extents").len(), 4);
    let replaced = create(old.id, 4).await;
    assert_eq!(replaced.expect("nobody was faster"), Some(old));
    assert_eq!(store.extents(new.id).await.expect("extents"), extents(5..6));
}

/// A statement that replaces has looked at what it replaces: what came in its place meanwhile stays.
async fn only_what_was_seen_is_replaced(store: &dyn MetadataStore) {
    roles(store, &["bob"]).await;
    let (old, other, new) = (table("t"), table("t"), table("t"));
    let rows = extents(5..6);
    let create = |seen| store.create_table(&new, &rows, Replace::Seen(seen));
    let refused = |outcome: Result<Option<TableDef>>| outcome.expect_err("a refusal").to_string();
    let text = |what: &str| format!("cannot replace \"t\": {what} while the statement ran");
    assert_eq!(refused(create(Some(old.id)).await), text("it was dropped or renamed"));
    add(store, &old, &extents(0..3)).await;
    assert_eq!(refused(create(None).await), text("something of that name was made"));
    assert_eq!(refused(create(Some(other.id)).await), text("it was replaced"));
    let given = AccessChange::SetOwner { of: vec![Securable::Table(old.id)], owner: Some("bob".to_owned()) };
    store.change_access(&given).await.expect("given away");
    assert_eq!(refused(create(Some(old.id)).await), text("it was given to somebody else"));
    let taken = AccessChange::SetOwner { of: vec![Securable::Table(old.id)], owner: None };
    store.change_access(&taken).await.expect("taken back");
    let before = version(store).await;
    assert!(create(None).await.is_err());
    assert_eq!(version(store).await, before);
    assert_eq!(store.extents(old.id).await.expect("extents"), extents(0..3));
    assert_eq!(create(Some(old.id)).await.expect("nothing happened meanwhile"), Some(old));
    assert_eq!(store.extents(new.id).await.expect("extents"), extents(5..6));
}

async fn a_refused_table_leaves_no_trace(store: &dyn MetadataStore) {
    let (old, new) = (table("t"), table("t"));
    add(store, &old, &extents(0..3)).await;
    let before = version(store).await;
    assert_fails!(store.create_table(&new, &extents(3..9), Replace::Never).await, CatalogError::AlreadyExists { .. });
    assert_eq!(version(store).await, before);
    assert_eq!(store.tables().await.expect("tables"), std::slice::from_ref(&old));
    assert_eq!(store.extents(old.id).await.expect("extents"), extents(0..3));
    assert_fails!(store.extents(new.id).await, CatalogError::TableNotFound { .. });
}

async fn dropped_tables_are_gone(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &extents(0..3)).await;
    store.drop_table(t.id).await.expect("dropped");
    assert_eq!(table_names(store).await, [""; 0]);
    assert_fails!(store.drop_table(t.id).await, CatalogError::TableNotFound { .. });
    assert_fails!(store.extents(t.id).await, CatalogError::TableNotFound { .. });
    assert_fails!(store.append_extents(t.id, &[]).await, CatalogError::TableNotFound { .. });
    assert_fails!(store.rename_table(t.id, &t.name).await, CatalogError::TableNotFound { .. });
    add(store, &table("t"), &[]).await;
}

async fn renamed_tables_keep_id_and_extents(store: &dyn MetadataStore) {
    store.create_schema("zoo").await.expect("a schema");
    let t = table("t");
    add(store, &t, &extents(0..3)).await;
    let name = TableName::new("zoo", "ape");
    store.rename_table(t.id, &name).await.expect("renamed");
    store.rename_table(t.id, &name).await.expect("its own name is not taken");
    let renamed = TableDef { name, ..t.clone() };
    assert_eq!(store.tables().await.expect("tables"), [renamed]);
    assert_eq!(store.extents(t.id).await.expect("extents"), extents(0..3));
}

async fn refused_renames_change_nothing(store: &dyn MetadataStore) {
    let (one, two) = (table("one"), table("two"));
    add(store, &one, &[]).await;
    add(store, &two, &[]).await;
    assert_fails!(store.rename_table(one.id, &two.name).await, CatalogError::AlreadyExists { what: "table", .. });
    let nowhere = TableName::new("nowhere", "one");
    assert_fails!(store.rename_table(one.id, &nowhere).await, CatalogError::NotFound { what: "schema", .. });
    assert_eq!(table_names(store).await, ["public.one", "public.two"]);
}

// Extents.

async fn extents_come_back_as_they_were(store: &dyn MetadataStore) {
    let odd = vec![
        Extent { range: Some(ByteRange { start: 0, end: 10 }), ..extent(0) },
        Extent { range: Some(ByteRange { start: 10, end: u64::MAX }), file_bytes: u64::MAX, ..extent(0) },
        Extent { etag: Some("W/\"x\"".into()), rows: None, stats: Arc::new([]), ..extent(1) },
        Extent { partition_values: vec![Some("a\"b'c".into()), None, Some("".into())].into(), ..extent(2) },
        Extent { location: "s3://b/ключ?x=%20".into(), modified_at: i64::MIN, rows: Some(0), ..extent(3) },
    ];
    let t = table("t");
    add(store, &t, &odd).await;
    assert_eq!(store.extents(t.id).await.expect("extents"), odd);
}

async fn extents_are_appended_in_order(store: &dyn MetadataStore) {
    let (t, other) = (table("t"), table("other"));
    add(store, &t, &extents(0..2)).await;
    add(store, &other, &extents(50..51)).await;
    store.append_extents(t.id, &extents(2..3)).await.expect("appended");
    store.append_extents(t.id, &[]).await.expect("nothing appended");
    store.append_extents(t.id, &extents(3..700)).await.expect("appended");
    assert_eq!(store.extents(t.id).await.expect("extents"), extents(0..700));
    assert_eq!(store.extents(other.id).await.expect("extents"), extents(50..51));
}

async fn ten_thousand_extents_keep_their_order(store: &dyn MetadataStore) {
    let t = table("t");
    let many = extents(0..10_000);
    add(store, &t, &many).await;
    assert!(store.extents(t.id).await.expect("extents") == many);
}

async fn concurrent_appends_both_land(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &[]).await;
    let appends = (0..20).map(|number| async move {
        store.append_extents(t.id, &extents(number * 2..number * 2 + 2)).await.expect("appended");
    });
    futures::future::join_all(appends).await;
    let landed = store.extents(t.id).await.expect("extents");
    // Calls may land in any order, but each in one piece.
    for pair in landed.chunks(2) {
        let first = pair[0].rows.expect("a number");
        assert_eq!(pair, extents(first..first + 2));
    }
    let mut numbers: Vec<_> = landed.iter().filter_map(|extent| extent.rows).collect();
    numbers.sort();
    assert_eq!(numbers, (0..40).collect::<Vec<_>>());
}

// Versions.

async fn every_change_raises_the_version(store: &dyn MetadataStore) {
    let t = table("t");
    let mut last = version(store).await;
    macro_rules! raises {
        ($change:expr) => {
            $change.await.expect("a change");
            let now = version(store).await;
            assert!(now > last, "{} left the version at {now}", stringify!($change));
            last = now;
        };
    }
    raises!(store.create_schema("zoo"));
    raises!(store.create_table(&t, &[], Replace::Never));
    raises!(store.append_extents(t.id, &extents(0..1)));
    raises!(store.rename_table(t.id, &TableName::new("zoo", "t")));
    raises!(store.create_table(
        &TableDef { id: TableId::new(), name: TableName::new("zoo", "t"), ..t.clone() },
        &[],
        Replace::Seen(Some(t.id))
    ));
    raises!(store.drop_schema("zoo", true));
    raises!(store.create_function(&function("f", "x"), false));
    raises!(store.create_function(&function("f", "y"), true));
    raises!(store.drop_function("f", &[], false));
    let t = table("t");
    raises!(store.create_table(&t, &[], Replace::Never));
    raises!(store.drop_table(t.id));
    assert_eq!(version(store).await, last);
}

async fn refusals_and_notes_leave_the_version(store: &dyn MetadataStore) {
    let before = version(store).await;
    let gone = TableId::new();
    assert!(store.create_schema("public").await.is_err());
    assert!(store.drop_schema("nowhere", true).await.is_err());
    assert!(store.drop_table(gone).await.is_err());
    assert!(store.append_extents(gone, &extents(0..1)).await.is_err());
    assert!(store.drop_function("f", &[], false).await.is_err());
    store.save_known_files("k", &[known(1, 0)], &[]).await.expect("saved");
    store.log_queries(&[query(1)], 10).await.expect("logged");
    assert_eq!(version(store).await, before);
}
// Names.

async fn names_may_hold_anything(store: &dyn MetadataStore) {
    let names = ["", " ", "Robert'); DROP TABLE tables;--", "\"quoted\"", "a.b", "naïve 表 🍑", "%_\\", "$1"];
    for schema in &names {
        store.create_schema(schema).await.expect("a schema");
        for name in &names {
            add(store, &table_in(schema, name), &[]).await;
        }
        store.create_function(&function(schema, schema), false).await.expect("a function");
        store.save_known_files(schema, &[known(1, 0)], &[]).await.expect("saved");
    }
    let mut sorted = names.map(str::to_owned).to_vec();
    sorted.sort();
    let stored = store.tables().await.expect("tables");
    let expected: Vec<_> =
        sorted.iter().flat_map(|schema| sorted.iter().map(move |name| TableName::new(schema, name))).collect();
    assert_eq!(stored.into_iter().map(|table| table.name).collect::<Vec<_>>(), expected);
    let functions = store.functions().await.expect("functions");
    assert_eq!(functions.into_iter().map(|function| function.name).collect::<Vec<_>>(), sorted);
    for schema in &names {
        assert_eq!(store.known_files(schema).await.expect("known files").len(), 1);
        assert_eq!(store.drop_schema(schema, true).await.expect("dropped").len(), names.len());
    }
}

// Functions.

async fn functions_are_made_replaced_and_dropped(store: &dyn MetadataStore) {
    let (f, g) = (function("f", "CREATE FUNCTION f() ..'"), function("G", "CREATE FUNCTION \"G\"() .."));
    store.create_function(&f, false).await.expect("a function");
    store.create_function(&g, true).await.expect("nothing to replace");
    assert_fails!(store.create_function(&f, false).await, CatalogError::AlreadyExists { what: "function", .. });
    assert_eq!(store.functions().await.expect("functions"), [g.clone(), f]);
    let newer = Function { created_at: 4, ..function("f", "other") };
    store.create_function(&newer, true).await.expect("replaced");
    assert_eq!(store.functions().await.expect("functions"), [g.clone(), newer]);
    store.drop_function("f", &[], false).await.expect("dropped");
    assert_fails!(store.drop_function("f", &[], false).await, CatalogError::NotFound { what: "function", .. });
    assert_eq!(store.functions().await.expect("functions"), [g]);
}

async fn a_closed_store_refuses_everything(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &[]).await;
    store.close().await;
    store.close().await;
    macro_rules! refused {
        ($($call:expr;)*) => {
            $(assert_fails!($call.await, CatalogError::Store { .. });)*
        };
    }
    refused! {
        store.catalog_version();
        store.schemas();
        store.create_schema("s");
        store.drop_schema("public", true);
        store.tables();
        store.create_table(&table("u"), &[], Replace::Never);
        store.pin_derived_table(t.id, FileFormatKind::Arrow, &t.schema, &[]);
        store.local_folders();
        store.drop_table(t.id);
        store.rename_table(t.id, &t.name);
        store.extents(t.id);
        store.append_extents(t.id, &[]);
        store.known_files("k");
        store.save_known_files("k", &[], &[]);
        store.functions();
        store.create_function(&function("f", "x"), false);
        store.drop_function("f", &[], false);
        store.access();
        store.change_access(&AccessChange::Drop("bob".to_owned()));
        store.log_queries(&[], 1);
        store.queries(1);
        store.lookups(1);
        store.versions();
        store.cache_changes(None, &mut |_| {});
        store.add_cache_entries(&[cache::entry(1)]);
        store.drop_cache_entries(&[cache::key(1)], 1);
        store.cache_entry(&cache::key(1));
        store.cache_entries(None, 1);
        store.cache_neighbours(&[], 1);
        store.cache_program(&cache::key(1));
        store.cache_files_referenced(&[]);
        store.save_cache_counts(&[], &[], None);
        store.cache_lookups(&mut |_| {});
        store.save_relatives(&[], 1);
        store.relatives(0, 1);
        store.publish(&Publication::default());
        store.save_program_runs(&[]);
        store.program_source(&cache::key(1));
        store.program_sources(None, 1);
        store.provenance(&[]);
        store.dependants(&DataScope::default());
        store.purge(&DataScope::default(), 1, &EvictionNote { reason: "r", at: 0, keep: 1, spares_pinned: false });
        store.undeleted_parts();
        store.undeleted_bytes();
        store.add_undeleted_parts(&[cache::part("a")]);
        store.forget_undeleted_parts(&[]);
        store.dropped_derived_tables();
        store.known_files_of(&DataScope::default());
        store.wipe();
        store.pins();
        store.pin(&pins::pin(1), 1);
        store.unpin(&pins::pin(1).subject);
        store.move_pins(&PinMoves::default());
        store.reports();
        store.create_report(&reports::report("a"));
        store.change_report(&reports::report("a"));
        store.drop_report(ReportId::new());
        store.report_runs(&RunQuery::default());
        store.submit_job(&jobs::job(1), jobs::bounds(1, 1));
        store.jobs(&JobQuery::default());
        store.change_job(jobs::job(1).at(), &jobs::job(1), None);
        store.keep_job(JobId::new(), 1, 1);
        store.drop_job(JobId::new());
    }
    let error = store.append_extents(t.id, &[]).await.expect_err("a refusal");
    assert_eq!(error.to_string(), "cannot append extents in the metadata store");
}
