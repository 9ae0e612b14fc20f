//! What every metadata store does with programs that are kept by name.

use std::sync::Arc;

use super::{MemoryStore, MetadataStore, SqliteStore, add, extents, function, table, table_names};
use crate::{
    CatalogError, DerivedSources, DerivedTable, FileFormatKind, Frozen, FrozenRelation, FrozenStream, MaterializedView,
    TableDef, TableId, TableKind, TableName,
};

conformance! {
    named_programs_come_back_as_they_were
    what_others_need_stays
    what_depends_goes_along
    names_that_others_know_stay
    extents_that_others_hold_are_not_replaced
    a_copy_takes_the_place_of_its_program
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
    assert!(matches!(store.drop_function("f", false).await, Err(CatalogError::HasDependants { what: "function", .. })));
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
    let dropped = store.drop_function("f", true).await.expect("dropped");
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
    store.create_table(&table("t"), &[], true).await.expect("a view knows it by its name");
    store.create_table(&t, &extents(0..3), true).await.expect("back again");
    add(store, &d, &extents(0..3)).await;
    assert!(matches!(
        store.create_table(&table("t"), &[], true).await,
        Err(CatalogError::HasDependants { attempted: "replace", .. })
    ));
    assert_eq!(store.extents(t.id).await.expect("extents").len(), 3);
}

async fn a_copy_takes_the_place_of_its_program(store: &dyn MetadataStore) {
    let t = table("t");
    let d = derived("d", &t);
    add(store, &t, &extents(0..3)).await;
    assert!(store.create_table(&pinned(&d), &[], true).await.is_err(), "there is nothing that it is a copy of");
    add(store, &d, &extents(0..3)).await;
    store.create_table(&pinned(&d), &extents(7..8), true).await.expect("a copy");
    assert_eq!(store.extents(d.id).await.expect("extents"), extents(7..8));
    store.drop_table(t.id).await.expect("nothing depends on it any more");
    assert_eq!(store.tables().await.expect("tables"), [pinned(&d)]);
}

async fn what_is_gone_carries_nothing(store: &dyn MetadataStore) {
    let t = table("t");
    for new in [view("v", &t), derived("d", &t)] {
        assert!(matches!(store.create_table(&new, &[], false).await, Err(CatalogError::TableNotFound { .. })));
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
    store.create_table(&pinned(&d), &[], true).await.expect("a copy");
    assert_eq!(store.dropped_derived_tables().await.expect("an answer"), [], "none is gone");
    let other = TableDef { id: TableId::new(), ..e.clone() };
    store.create_table(&other, &[], true).await.expect("replaced");
    store.drop_tables(&[d.id, t.id], true).await.expect("dropped");
    let mut gone: Vec<_> = [&d, &e, &other].into_iter().filter_map(DerivedSources::of).collect();
    gone.sort_by_key(|derived| derived.id.to_string());
    assert!(gone.iter().all(|derived| derived.sources.iter().all(|source| source.id == t.id && source.name == t.name)));
    assert_eq!(store.dropped_derived_tables().await.expect("an answer"), gone);
}
