//! What every metadata store does with programs that are kept by name.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};

use super::access::roles;
use super::{MemoryStore, MetadataStore, SqliteStore, add, extents, function, table, table_names};
use crate::{
    AccessChange, CatalogError, DerivedSources, DerivedTable, FileFormatKind, Frozen, FrozenRelation, FrozenStream,
    MaterializedView, Mentions, Replace, Securable, TableDef, TableId, TableKind, TableName,
};

conformance! {
    named_programs_come_back_as_they_were
    what_others_need_stays
    what_depends_goes_along
    names_that_others_know_stay
    extents_that_others_hold_are_not_replaced
    a_copy_takes_the_place_of_its_program
    plain_views_between_are_looked_through
    what_is_gone_carries_nothing
    what_dropped_ones_were_made_of_is_known
}

fn view(name: &str, over: &TableDef) -> TableDef {
    let view = MaterializedView {
        query: "SELECT 1".to_owned(),
        default_schema: "public".to_owned(),
        relations: vec![over.name.clone()],
        functions: vec!["f".to_owned()],
    };
    TableDef { kind: TableKind::MaterializedView(view), ..table(name) }
}

fn derived(name: &str, over: &TableDef) -> TableDef {
    let stream = FrozenStream {
        id: over.id,
        kind: over.kind.clone(),
        schema: Arc::clone(&over.schema),
        primary_keys: vec![],
        unique_keys: vec![vec![0]],
        n_extents: 3,
    };
    let derived = DerivedTable {
        query: "SELECT '\u{fc}'".to_owned(),
        default_schema: "public".to_owned(),
        settings: [("datafusion.execution.time_zone".to_owned(), "+01:00".to_owned())].into(),
        now_ns: -1,
        relations: vec![FrozenRelation { name: over.name.clone(), what: Frozen::Stream(Box::new(stream)) }],
        functions: vec![function("f", "CREATE FUNCTION f() ..")],
        pinned: None,
    };
    TableDef { kind: TableKind::Derived(Box::new(derived)), ..table(name) }
}

fn pinned(table: &TableDef) -> TableDef {
    let TableKind::Derived(derived) = &table.kind else { panic!("a derived table") };
    let derived = DerivedTable { pinned: Some(FileFormatKind::Arrow), ..derived.as_ref().clone() };
    TableDef { kind: TableKind::Derived(Box::new(derived)), ..table.clone() }
}

async fn named_programs_come_back_as_they_were(store: &dyn MetadataStore) {
    let t = table("t");
    let (v, d) = (view("v", &t), derived("d", &t));
    add(store, &t, &extents(0..3)).await;
    add(store, &v, &[]).await;
    add(store, &d, &extents(0..3)).await;
    assert_eq!(store.tables().await.expect("tables"), [d.clone(), t, v]);
    assert_eq!(store.extents(d.id).await.expect("extents"), extents(0..3));
}

async fn what_others_need_stays(store: &dyn MetadataStore) {
    let t = table("t");
    let (v, d) = (view("v", &t), derived("d", &t));
    for table in [&t, &v, &d] {
        add(store, table, &extents(0..3)).await;
    }
    store.create_function(&function("f", ".."), false).await.expect("a function");
    let before = store.catalog_version().await.expect("a version");
    let error = store.drop_table(t.id).await.expect_err("two depend on it");
    assert_eq!(error.to_string(), "cannot drop table \"t\": derived table \"d\", materialized view \"v\" depend on it");
    assert!(matches!(
        store.drop_function("f", &[], false).await,
        Err(CatalogError::HasDependants { what: "function", .. })
    ));
    assert_eq!(store.catalog_version().await.expect("a version"), before);
    assert_eq!(table_names(store).await, ["public.d", "public.t", "public.v"]);
    let dropped = store.drop_tables(&[t.id, v.id, d.id], false).await.expect("all of them");
    assert_eq!(dropped.len(), 3);
}

async fn what_depends_goes_along(store: &dyn MetadataStore) {
    let t = table("t");
    let (v, d) = (view("v", &t), derived("d", &t));
    let above = view("above", &v);
    for table in [&t, &v, &d, &above, &table("other")] {
        add(store, table, &[]).await;
    }
    store.create_function(&function("f", ".."), false).await.expect("a function");
    store.create_function(&function("g", ".."), false).await.expect("a function");
    let through = ["f".to_owned()];
    let refused = store.drop_function("g", &through, false).await;
    assert!(matches!(refused, Err(CatalogError::HasDependants { what: "function", .. })), "f calls it");
    let dropped = store.drop_function("f", &[], true).await.expect("dropped");
    assert_eq!(dropped, [above.clone(), v.clone()]);
    for table in [&v, &above] {
        add(store, table, &[]).await;
    }
    assert_eq!(store.drop_tables(&[t.id], true).await.expect("dropped"), [above, d, t, v]);
    assert_eq!(table_names(store).await, ["public.other"]);
    store.create_schema("zoo").await.expect("a schema");
    let ape = TableDef { name: TableName::new("zoo", "ape"), ..table("ape") };
    let outside = view("outside", &ape);
    add(store, &ape, &[]).await;
    add(store, &outside, &[]).await;
    assert_eq!(store.drop_schema("zoo", true).await.expect("dropped"), [outside, ape]);
}

async fn names_that_others_know_stay(store: &dyn MetadataStore) {
    let t = table("t");
    let (v, d) = (view("v", &t), derived("d", &t));
    for table in [&t, &v, &d] {
        add(store, table, &[]).await;
    }
    let other = TableName::new("public", "u");
    assert!(matches!(
        store.rename_table(t.id, &other).await,
        Err(CatalogError::HasDependants { attempted: "rename", .. })
    ));
    store.rename_table(t.id, &t.name).await.expect("its own name");
    store.drop_table(v.id).await.expect("dropped");
    store.rename_table(t.id, &other).await.expect("a derived table knows it by its id");
    assert!(store.drop_table(t.id).await.is_err());
}

async fn extents_that_others_hold_are_not_replaced(store: &dyn MetadataStore) {
    let t = table("t");
    let (v, d) = (view("v", &t), derived("d", &t));
    add(store, &t, &extents(0..3)).await;
    add(store, &v, &[]).await;
    let other = table("t");
    store.create_table(&other, &[], Replace::Seen(Some(t.id))).await.expect("a view knows it by its name");
    store.create_table(&t, &extents(0..3), Replace::Seen(Some(other.id))).await.expect("back again");
    add(store, &d, &extents(0..3)).await;
    assert!(matches!(
        store.create_table(&table("t"), &[], Replace::Seen(Some(t.id))).await,
        Err(CatalogError::HasDependants { attempted: "replace", .. })
    ));
    assert_eq!(store.extents(t.id).await.expect("extents").len(), 3);
}

async fn a_copy_takes_the_place_of_its_program(store: &dyn MetadataStore) {
    let t = table("t");
    let d = derived("d", &t);
    add(store, &t, &extents(0..3)).await;
    let schema = Arc::new(Schema::new(vec![Field::new("b", DataType::Utf8, false)]));
    let rows = extents(7..8);
    let pin = |id| store.pin_derived_table(id, FileFormatKind::Arrow, &schema, &rows);
    for id in [d.id, t.id] {
        assert!(matches!(pin(id).await, Err(CatalogError::TableNotFound { .. })), "nothing that it is a copy of");
    }
    add(store, &d, &extents(0..3)).await;
    // What happened to it meanwhile stays.
    roles(store, &["bob"]).await;
    let given = AccessChange::SetOwner { of: vec![Securable::Table(d.id)], owner: Some("bob".to_owned()) };
    store.change_access(&given).await.expect("given away");
    let name = TableName::new("public", "renamed");
    store.rename_table(d.id, &name).await.expect("renamed");
    let other = table("d");
    add(store, &other, &extents(4..6)).await;
    let before = store.catalog_version().await.expect("a version");
    assert!(pin(d.id).await.expect("a copy"));
    assert_eq!(store.extents(d.id).await.expect("extents"), extents(7..8));
    assert_eq!(store.extents(other.id).await.expect("extents"), extents(4..6));
    let after = store.catalog_version().await.expect("a version");
    assert!(after > before);
    assert!(!store.pin_derived_table(d.id, FileFormatKind::Parquet, &t.schema, &[]).await.expect("it is pinned"));
    assert_eq!(store.catalog_version().await.expect("a version"), after);
    store.drop_table(t.id).await.expect("nothing depends on it any more");
    let expected = TableDef { name, owner: Some("bob".to_owned()), schema: Arc::clone(&schema), ..pinned(&d) };
    assert_eq!(store.tables().await.expect("tables"), [other, expected]);
}

/// A plain view below a materialized one decides at each moment what that stands on.
async fn plain_views_between_are_looked_through(store: &dyn MetadataStore) {
    let plain = |over: &TableDef, function: &str| {
        let (relations, functions) = ([over.name.clone()].into(), [function.to_owned()].into());
        let (query, default_schema) = ("SELECT 1".to_owned(), "public".to_owned());
        let kind = TableKind::View { query, default_schema, mentions: Some(Mentions { relations, functions }) };
        TableDef { kind, ..table("plain") }
    };
    let (t, u) = (table("t"), table("u"));
    let (first, second) = (plain(&t, "g"), plain(&u, "h"));
    let v = view("v", &first);
    for table in [&t, &u, &first, &v] {
        add(store, table, &[]).await;
    }
    for name in ["f", "g", "h"] {
        store.create_function(&function(name, ".."), false).await.expect("a function");
    }
    let other = TableName::new("public", "other");
    assert!(store.drop_table(t.id).await.is_err() && store.rename_table(t.id, &other).await.is_err());
    assert!(store.drop_function("g", &[], false).await.is_err());
    store.create_table(&second, &[], Replace::Seen(Some(first.id))).await.expect("replaced");
    assert!(store.drop_table(u.id).await.is_err() && store.rename_table(u.id, &other).await.is_err());
    assert!(store.drop_function("h", &[], false).await.is_err());
    store.drop_function("g", &[], false).await.expect("nobody calls it any more");
    store.rename_table(t.id, &other).await.expect("nobody reads it any more");
    assert_eq!(store.drop_tables(&[t.id], true).await.expect("dropped").len(), 1);
    assert_eq!(store.drop_tables(&[u.id], true).await.expect("dropped"), [u, v]);
}

async fn what_is_gone_carries_nothing(store: &dyn MetadataStore) {
    let t = table("t");
    for new in [view("v", &t), derived("d", &t)] {
        let made = store.create_table(&new, &[], Replace::Never).await;
        assert!(matches!(made, Err(CatalogError::TableNotFound { .. })));
    }
    assert!(store.drop_tables(&[TableId::new()], true).await.is_err());
    assert_eq!(table_names(store).await, [""; 0]);
}

async fn what_dropped_ones_were_made_of_is_known(store: &dyn MetadataStore) {
    let t = table("t");
    let (d, e) = (derived("d", &t), derived("e", &t));
    for table in [&t, &d, &e] {
        add(store, table, &[]).await;
    }
    assert!(store.pin_derived_table(d.id, FileFormatKind::Arrow, &d.schema, &[]).await.expect("a copy"));
    assert_eq!(store.dropped_derived_tables().await.expect("an answer"), [], "none is gone");
    let other = TableDef { id: TableId::new(), ..e.clone() };
    store.create_table(&other, &[], Replace::Seen(Some(e.id))).await.expect("replaced");
    store.drop_tables(&[d.id, t.id], true).await.expect("dropped");
    let mut gone: Vec<_> = [&d, &e, &other].into_iter().filter_map(DerivedSources::of).collect();
    gone.sort_by_key(|derived| derived.id.to_string());
    assert!(gone.iter().all(|derived| derived.sources.iter().all(|source| source.id == t.id && source.name == t.name)));
    assert_eq!(store.dropped_derived_tables().await.expect("an answer"), gone);
}
