//! What every metadata store does with programs that ran, and with where entries come from.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::cache::{entry, key};
use super::{MemoryStore, MetadataStore, SqliteStore, add, table};
use crate::cache::{
    DataScope, EntryLineage, EntryProvenance, EvictionNote, InputLineage, NamedText, NewEntry, ProgramRecord,
    ProgramRun, ProgramSource, Publication, source_name,
};
use crate::store::KnownFile;
use crate::{ByteRange, Extent, Fingerprint, Location, TableId, TableName};

conformance! {
    programs_are_written_down_once
    a_run_of_an_unknown_program_is_nothing
    programs_come_in_pages
    entries_know_what_they_are_made_of
    who_does_not_know_says_so
    dependants_are_found_by_file_table_and_entry
    files_are_the_same_through_links
    renamed_tables_are_known_by_their_new_name
    purging_drops_and_refuses
    a_purge_of_nothing_refuses_too
    files_to_delete_are_remembered
    known_files_of_a_scope_are_found
    places_are_forgotten_with_their_last_entry
    long_lists_share_places
}

const NOTE: EvictionNote<'_> = EvictionNote { reason: "purged", at: 5, keep: 10, spares_pinned: false };

// Things to store.

fn extent(name: &str, range: Option<(u64, u64)>) -> Arc<Extent> {
    let bytes = format!("{name} {range:?}");
    Arc::new(Extent {
        location: Arc::from(name),
        range: range.map(|(start, end)| ByteRange { start, end }),
        lines: false,
        file_bytes: 100,
        modified_at: 0,
        etag: None,
        fingerprint: Fingerprint::of_bytes(bytes.as_bytes()),
        rows: None,
        stats: Arc::from([]),
        partition_values: Arc::from([]),
        first_seen_at: 0,
    })
}

fn run(sql: &str) -> ProgramRun {
    let program = Fingerprint::of_bytes(sql.to_lowercase().as_bytes());
    let record = ProgramRecord { program, encoding: Arc::from(sql.as_bytes()), description: sql.to_owned() };
    let text = |name: &str| NamedText { name: name.to_owned(), text: format!("what {name} is") };
    let how = ProgramSource {
        sql: sql.to_owned(),
        default_schema: "public".to_owned(),
        engine_version: "1".to_owned(),
        settings: vec![("a.b".to_owned(), "ü".to_owned())],
        inputs: vec![text("t"), text("u")],
        views: vec![text("v")],
        functions: vec![],
    };
    ProgramRun {
        source: source_name(&program, ["t", "u"]),
        program,
        what: Some(Arc::new((record, how))),
        runs: 1,
        first_run_at: 10,
        last_run_at: 10,
    }
}

/// An entry over these extents of a table, made from those entries.
fn made(number: u64, table: &str, id: Option<TableId>, extents: &[Arc<Extent>], origins: &[u64]) -> NewEntry {
    let (mut entry, program) = entry(number);
    entry.inputs = vec![extents.iter().map(|extent| extent.fingerprint).collect()];
    let reused = if origins.is_empty() { vec![] } else { extents.iter().map(|_| true).collect() };
    let input = InputLineage { table: table.to_owned(), table_id: id, extents: extents.into(), reused };
    let lineage = EntryLineage { inputs: vec![input], origins: origins.iter().map(|origin| key(*origin)).collect() };
    NewEntry { entry, program, lineage: Some(lineage) }
}

async fn publish(store: &dyn MetadataStore, entries: Vec<NewEntry>) -> Vec<bool> {
    let publication = Publication { entries, ..Publication::default() };
    store.publish(&publication).await.expect("published").added
}

async fn dependants(store: &dyn MetadataStore, scope: DataScope) -> Vec<Fingerprint> {
    store.dependants(&scope).await.expect("an answer")
}

fn keys(numbers: &[u64]) -> Vec<Fingerprint> {
    let mut keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
    keys.sort();
    keys
}

fn files(names: &[&str]) -> DataScope {
    DataScope { files: names.iter().map(|name| (*name).to_owned()).collect(), ..DataScope::default() }
}

async fn provenance(store: &dyn MetadataStore, number: u64) -> EntryProvenance {
    store.provenance(&[key(number)]).await.expect("an answer").pop().expect("an entry")
}

// Programs.

async fn programs_are_written_down_once(store: &dyn MetadataStore) {
    let first = run("SELECT 1 FROM t, u");
    let before = store.versions().await.expect("versions");
    store.save_program_runs(std::slice::from_ref(&first)).await.expect("saved");
    assert_eq!(store.versions().await.expect("versions"), before, "nothing that an index has to know");
    // Another spelling of the same, and counts alone.
    let again = ProgramRun { last_run_at: 30, ..run("select 1 from t, u") };
    let counted = ProgramRun { what: None, runs: 5, first_run_at: 5, last_run_at: 7, ..first.clone() };
    store.save_program_runs(&[again, counted]).await.expect("saved");
    let stored = store.program_source(&first.source).await.expect("an answer").expect("a program");
    let (record, how) = first.what.as_ref().expect("a program").as_ref();
    assert_eq!((&stored.how, stored.runs, stored.first_run_at, stored.last_run_at), (how, 7, 5, 30));
    assert_eq!((stored.source, stored.program), (first.source, first.program));
    assert!(stored.bytes_stored > 0);
    assert_eq!(store.cache_program(&first.program).await.expect("an answer").as_ref(), Some(record));
    assert_eq!(store.program_source(&key(1)).await.expect("an answer"), None);
}

async fn a_run_of_an_unknown_program_is_nothing(store: &dyn MetadataStore) {
    let unknown = ProgramRun { what: None, ..run("SELECT 1") };
    store.save_program_runs(std::slice::from_ref(&unknown)).await.expect("saved");
    assert_eq!(store.program_source(&unknown.source).await.expect("an answer"), None);
}

async fn programs_come_in_pages(store: &dyn MetadataStore) {
    let runs: Vec<_> = (0..7).map(|number| run(&format!("SELECT {number} FROM t"))).collect();
    store.save_program_runs(&runs).await.expect("saved");
    let mut expected: Vec<_> = runs.iter().map(|run| run.source).collect();
    expected.sort();
    let mut found = vec![];
    loop {
        let page = store.program_sources(found.last(), 3).await.expect("a page");
        if page.is_empty() {
            break;
        }
        found.extend(page.iter().map(|program| program.source));
    }
    assert_eq!(found, expected);
}

// Where entries come from.

async fn entries_know_what_they_are_made_of(store: &dyn MetadataStore) {
    let id = TableId::new();
    let (whole, part) = (extent("file:///a.parquet", None), extent("file:///b.csv", Some((10, 20))));
    let statement = run("SELECT 1 FROM t");
    let new = made(1, "public.t", Some(id), &[Arc::clone(&whole), Arc::clone(&part)], &[7, 8]);
    let (entries, run) = (vec![new], Some(statement.clone()));
    let publication = Publication { entries, run, purges: Some(0), ..Publication::default() };
    assert_eq!(store.publish(&publication).await.expect("published").added, [true]);
    let found = provenance(store, 1).await;
    assert_eq!((found.key, found.source), (key(1), Some(statement.source)));
    assert_eq!(found.program, publication.entries[0].entry.program);
    assert_eq!(found.origins, [key(7), key(8)]);
    let input = &found.inputs[0];
    assert_eq!((input.table.as_deref(), input.table_id), (Some("public.t"), Some(id)));
    let places: Vec<_> =
        input.extents.iter().map(|extent| (extent.location.as_deref(), extent.range, extent.is_reused)).collect();
    assert_eq!(places, [(Some("file:///a.parquet"), None, true), (Some("file:///b.csv"), part.range, true)]);
    assert_eq!(input.extents[1].fingerprint, part.fingerprint);
    assert_eq!(store.program_source(&statement.source).await.expect("an answer").expect("a program").runs, 1);
    assert_eq!(store.provenance(&[key(99), key(1)]).await.expect("an answer"), [found]);
}

async fn who_does_not_know_says_so(store: &dyn MetadataStore) {
    store.add_cache_entries(&[entry(1)]).await.expect("added");
    let found = provenance(store, 1).await;
    assert_eq!((found.source, &found.origins[..]), (None, &[][..]));
    assert_eq!(found.inputs.len(), 3);
    assert!(found.inputs.iter().all(|input| input.table.is_none()));
    assert!(found.inputs.iter().flat_map(|input| &input.extents).all(|extent| extent.location.is_none()));
    // It may come from anything.
    assert_eq!(dependants(store, files(&["file:///a"])).await, []);
    assert_eq!(dependants(store, DataScope { unknown: true, ..files(&["file:///a"]) }).await, [key(1)]);
}

async fn dependants_are_found_by_file_table_and_entry(store: &dyn MetadataStore) {
    let (one, two) = (TableId::new(), TableId::new());
    let file = |name: &str| extent(&format!("file:///{name}"), None);
    let entries = vec![
        made(1, "public.t", Some(one), &[file("d/a.csv"), file("d/b.csv")], &[]),
        made(2, "public.u", Some(two), &[file("d/b.csv")], &[]),
        made(3, "public.u", Some(two), &[file("e/c.csv")], &[]),
        // Made from the first, over a file of its own.
        made(4, "x.csv", None, &[file("x.csv")], &[1]),
        made(5, "x.csv", None, &[file("x.csv")], &[4]),
        made(6, "public.nothing", None, &[], &[]),
    ];
    assert_eq!(publish(store, entries).await, [true; 6]);
    assert_eq!(dependants(store, files(&["file:///d/a.csv"])).await, keys(&[1, 4, 5]));
    assert_eq!(dependants(store, files(&["file:///d/b.csv"])).await, keys(&[1, 2, 4, 5]));
    assert_eq!(dependants(store, files(&["file:///e/c.csv", "file:///gone"])).await, keys(&[3]));
    let located = |text: &str| {
        let location = Location::parse(text, Path::new("/")).expect("a location");
        DataScope { locations: vec![location], ..DataScope::default() }
    };
    assert_eq!(dependants(store, located("/d/*.csv")).await, keys(&[1, 2, 4, 5]));
    assert_eq!(dependants(store, located("/e/")).await, keys(&[3]));
    assert_eq!(dependants(store, located("/d/a.csv")).await, keys(&[1, 4, 5]));
    assert_eq!(dependants(store, located("/d/a")).await, []);
    let beginning = DataScope { file_beginnings: vec!["file:///d/".to_owned()], ..DataScope::default() };
    assert_eq!(dependants(store, beginning).await, keys(&[1, 2, 4, 5]));
    // A table means all that it ever had, by whatever name others read it.
    let table = |id| DataScope { tables: vec![id], ..DataScope::default() };
    assert_eq!(dependants(store, table(one)).await, keys(&[1, 2, 4, 5]));
    assert_eq!(dependants(store, table(two)).await, keys(&[1, 2, 3, 4, 5]));
    let named = |name: &str| DataScope { table_names: vec![name.to_owned()], ..DataScope::default() };
    assert_eq!(dependants(store, named("x.csv")).await, keys(&[4, 5]));
    assert_eq!(dependants(store, named("public.nothing")).await, keys(&[6]));
    assert_eq!(dependants(store, named("t")).await, []);
    let from_entry = DataScope { entries: vec![key(1)], ..DataScope::default() };
    assert_eq!(dependants(store, from_entry).await, keys(&[4, 5]));
    assert_eq!(dependants(store, DataScope::default()).await, []);
}

async fn files_are_the_same_through_links(store: &dyn MetadataStore) {
    let (one, two) = (TableId::new(), TableId::new());
    let entries = vec![
        made(1, "public.t", Some(one), &[extent("file:///link/t/a.csv", None)], &[]),
        made(2, "public.u", Some(two), &[extent("file:///real/t/a.csv", None)], &[]),
        made(3, "x.csv", None, &[extent("file:///other/x.csv", None), extent("s3://bucket/a/x.csv", None)], &[]),
    ];
    publish(store, entries).await;
    let folders = store.local_folders().await.expect("an answer");
    assert_eq!(folders, ["file:///link/t/", "file:///other/", "file:///real/t/"]);
    let url = |path: &str| format!("file:///{path}/");
    let links = BTreeMap::from([(url("link/t"), url("real/t")), (url("other"), url("real/other"))]);
    let located = |text: &str| {
        let location = Location::parse(text, Path::new("/")).expect("a location");
        DataScope { locations: vec![location], ..DataScope::default() }
    };
    let table = |id| DataScope { tables: vec![id], ..DataScope::default() };
    for scope in [
        located("/real/t/"),
        located("/real/t/*.csv"),
        located("/real/t/a.csv"),
        files(&["file:///real/t/a.csv"]),
        table(one),
        table(two),
    ] {
        let with_links = DataScope { links: links.clone(), ..scope.clone() };
        assert_eq!(dependants(store, with_links).await, keys(&[1, 2]), "{scope:?}");
        assert_eq!(dependants(store, scope.clone()).await.len(), 1, "{scope:?}");
    }
    let other = DataScope { links: links.clone(), ..located("/real/other/") };
    assert_eq!(dependants(store, other).await, keys(&[3]));
    assert_eq!(dependants(store, DataScope { links, ..located("/real/t/b.csv") }).await, []);
}

async fn renamed_tables_are_known_by_their_new_name(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &[]).await;
    let entries = vec![
        made(1, "public.t", Some(t.id), &[extent("file:///a", None)], &[]),
        made(2, "public.t", Some(TableId::new()), &[extent("file:///b", None)], &[]),
    ];
    publish(store, entries).await;
    store.rename_table(t.id, &TableName::new("public", "u")).await.expect("renamed");
    let named = |name: &str| DataScope { table_names: vec![name.to_owned()], ..DataScope::default() };
    assert_eq!(dependants(store, named("public.u")).await, keys(&[1]));
    assert_eq!(dependants(store, named("public.t")).await, keys(&[2]), "one that had its name before it");
    assert_eq!(provenance(store, 1).await.inputs[0].table.as_deref(), Some("public.u"));
    store.drop_table(t.id).await.expect("dropped");
    assert_eq!(dependants(store, named("public.u")).await, keys(&[1]));
}

async fn purging_drops_and_refuses(store: &dyn MetadataStore) {
    let entries = |number| vec![made(number, "t", None, &[extent("file:///a", None)], &[])];
    publish(store, entries(1)).await;
    publish(store, vec![made(2, "t", None, &[extent("file:///b", None)], &[])]).await;
    let before = store.versions().await.expect("versions");
    let dropped = store.purge(&files(&["file:///a"]), 10, &NOTE).await.expect("purged");
    assert_eq!(dropped.keys, [key(1)]);
    let told = store.evictions(10).await.expect("evictions");
    assert_eq!((told.len(), told[0].key, told[0].reason.as_str(), told[0].evicted_at), (1, key(1), "purged", 5));
    assert_eq!(dropped.parts.len(), 2);
    let after = store.versions().await.expect("versions");
    assert_eq!(dropped.version, Some(after.cache));
    assert!(after.cache > before.cache && after.purges == before.purges + 1);
    assert_eq!(dependants(store, files(&["file:///a"])).await, []);
    assert_eq!(store.cache_entry(&key(1)).await.expect("an answer"), None);
    assert!(store.cache_entry(&key(2)).await.expect("an answer").is_some());
    // Who began before it comes too late; nothing of what it brings is there afterwards.
    let (new, run) = (entries(3), Some(run("SELECT 3")));
    let late = Publication { entries: new, run, purges: Some(before.purges), ..Publication::default() };
    let refused = store.publish(&late).await.expect("an answer");
    assert_eq!((refused.version, &refused.added[..]), (None, &[false][..]));
    assert_eq!(store.versions().await.expect("versions"), after);
    assert_eq!(store.provenance(&[key(3)]).await.expect("an answer"), []);
    // Who began after it may.
    let again = Publication { purges: Some(after.purges), ..late };
    assert_eq!(store.publish(&again).await.expect("published").added, [true]);
}

async fn a_purge_of_nothing_refuses_too(store: &dyn MetadataStore) {
    let before = store.versions().await.expect("versions");
    let dropped = store.purge(&files(&["file:///a"]), 10, &NOTE).await.expect("purged");
    assert_eq!((dropped.version, dropped.keys.len()), (None, 0));
    assert_eq!(store.evictions(10).await.expect("evictions"), []);
    let entries = vec![made(1, "t", None, &[extent("file:///a", None)], &[])];
    let late = Publication { entries, purges: Some(before.purges), ..Publication::default() };
    assert_eq!(store.publish(&late).await.expect("an answer").added, [false]);
}

async fn files_to_delete_are_remembered(store: &dyn MetadataStore) {
    assert_eq!(store.undeleted_parts().await.expect("an answer"), []);
    publish(store, vec![made(1, "t", None, &[extent("file:///a", None)], &[])]).await;
    let mut parts = store.purge(&files(&["file:///a"]), 10, &NOTE).await.expect("purged").parts;
    parts.sort_by(|one, two| one.location.cmp(&two.location));
    assert_eq!(parts.len(), 2);
    assert_eq!(store.undeleted_parts().await.expect("an answer"), parts);
    store.purge(&files(&["file:///a"]), 10, &NOTE).await.expect("nothing to purge");
    assert_eq!(store.undeleted_parts().await.expect("an answer"), parts, "until somebody has deleted them");
    store.forget_undeleted_parts(&[parts[0].location.clone(), "other".to_owned()]).await.expect("forgotten");
    assert_eq!(store.undeleted_parts().await.expect("an answer"), parts[1..]);
    store.wipe().await.expect("wiped");
    // Those that are evicted are the collector's.
    publish(store, vec![made(2, "t", None, &[extent("file:///a", None)], &[])]).await;
    store.drop_cache_entries(&[key(2)], 10).await.expect("dropped");
    assert_eq!(store.undeleted_parts().await.expect("an answer"), parts[1..]);
}

async fn known_files_of_a_scope_are_found(store: &dyn MetadataStore) {
    let known = |location: &str| KnownFile {
        extent: Extent::clone(&extent(location, None)),
        identity: vec![1],
        racy: false,
        position: 0,
    };
    let save = async |key: &str, locations: &[&str]| {
        let learnt: Vec<_> = locations.iter().map(|location| known(location)).collect();
        store.save_known_files(key, &learnt, &[]).await.expect("saved");
    };
    save("one", &["file:///d/a.csv", "file:///d/b.csv", "file:///e/c.csv"]).await;
    save("two", &["file:///d/a.csv"]).await;
    publish(store, vec![made(1, "public.t", None, &[extent("file:///e/c.csv", None)], &[])]).await;
    let found = async |scope: DataScope| {
        let found = store.known_files_of(&scope).await.expect("an answer");
        let mut found: Vec<_> =
            found.into_iter().map(|(key, file)| format!("{key} {}", file.extent.location)).collect();
        found.sort();
        found
    };
    let located = |text: &str| {
        let location = Location::parse(text, Path::new("/")).expect("a location");
        DataScope { locations: vec![location], ..DataScope::default() }
    };
    assert_eq!(found(located("/d/a.csv")).await, ["one file:///d/a.csv", "two file:///d/a.csv"]);
    assert_eq!(found(located("/d/")).await, ["one file:///d/a.csv", "one file:///d/b.csv", "two file:///d/a.csv"]);
    assert_eq!(found(files(&["file:///d/b.csv"])).await, ["one file:///d/b.csv"]);
    // What a table had is known from what was made of it.
    let named = DataScope { table_names: vec!["public.t".to_owned()], ..DataScope::default() };
    assert_eq!(found(named).await, ["one file:///e/c.csv"]);
    assert!(found(DataScope::default()).await.is_empty());
}

async fn places_are_forgotten_with_their_last_entry(store: &dyn MetadataStore) {
    let list = [extent("file:///a", None), extent("file:///b", None)];
    publish(store, vec![made(1, "t", None, &list, &[]), made(2, "t", None, &list, &[])]).await;
    store.drop_cache_entries(&[key(1)], 10).await.expect("dropped");
    assert_eq!(dependants(store, files(&["file:///a"])).await, [key(2)]);
    store.drop_cache_entries(&[key(2)], 10).await.expect("dropped");
    // The same list from who does not know where it is: not known any more.
    let (mut unknown, program) = entry(3);
    unknown.inputs = vec![list.iter().map(|extent| extent.fingerprint).collect()];
    store.add_cache_entries(&[(unknown, program)]).await.expect("added");
    assert!(provenance(store, 3).await.inputs[0].extents.iter().all(|extent| extent.location.is_none()));
}

async fn long_lists_share_places(store: &dyn MetadataStore) {
    let all: Vec<Arc<Extent>> = (0..1500).map(|n| extent(&format!("file:///d/{n:04}"), None)).collect();
    publish(store, vec![made(1, "t", None, &all[..1400], &[])]).await;
    publish(store, vec![made(2, "t", None, &all, &[]), made(3, "t", None, &all[700..], &[])]).await;
    for (number, list) in [(1, &all[..1400]), (2, &all[..]), (3, &all[700..])] {
        let found = provenance(store, number).await;
        let places = found.inputs[0].extents.iter().map(|extent| extent.location.as_deref());
        assert!(places.eq(list.iter().map(|extent| Some(&*extent.location))), "{number}");
    }
    assert_eq!(dependants(store, files(&["file:///d/0010"])).await, keys(&[1, 2]));
    assert_eq!(dependants(store, files(&["file:///d/1450"])).await, keys(&[2, 3]));
    store.drop_cache_entries(&keys(&[1, 2]), 10).await.expect("dropped");
    assert_eq!(dependants(store, files(&["file:///d/0010"])).await, []);
    assert_eq!(dependants(store, files(&["file:///d/1000"])).await, [key(3)]);
}
