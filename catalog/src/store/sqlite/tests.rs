//! What only a file can do: several handles and processes, old, newer and damaged files, and what it costs.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tempfile::TempDir;

use super::SqliteStore;
use super::format::{APPLICATION_ID, NEWEST};
use crate::cache::CacheChange;
use crate::store::MetadataStore;
use crate::store::conformance::{cache, extents, table};
use crate::{CatalogError, Replace};

fn home() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metadata.db");
    (folder, path)
}

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path).await.expect("a store")
}

async fn raw(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    options.connect().await.expect("a connection")
}

async fn execute(connection: &mut SqliteConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.expect(sql);
}

/// Every file of the folder with its bytes, and when the main one was modified.
fn contents(folder: &TempDir) -> Vec<(PathBuf, Vec<u8>, Option<std::time::SystemTime>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a listing")
        .map(|entry| entry.expect("an entry").path())
        // The log's index is rebuilt by every process that finds it stale; it holds nothing of its own.
        .filter(|path| !path.to_string_lossy().ends_with("-shm"))
        .map(|path| {
            let modified = path.metadata().and_then(|metadata| metadata.modified()).ok();
            (path.clone(), std::fs::read(path).expect("bytes"), modified)
        })
        .collect();
    files.sort();
    files
}

// Several handles.

#[tokio::test]
async fn a_store_remembers() {
    let (_folder, path) = home();
    let t = table("t");
    let store = open(&path).await;
    store.create_table(&t, &extents(0..3), Replace::Never).await.expect("a table");
    let version = store.catalog_version().await.expect("a version");
    store.close().await;
    let store = open(&path).await;
    assert_eq!(store.catalog_version().await.expect("a version"), version);
    assert_eq!(store.extents(t.id).await.expect("extents"), extents(0..3));
}

#[tokio::test]
async fn closing_leaves_one_file() {
    let (folder, path) = home();
    let store = open(&path).await;
    store.log_queries(&[], 1).await.expect("a note");
    store.close().await;
    let left: Vec<_> = contents(&folder).into_iter().map(|(path, ..)| path).collect();
    assert_eq!(left, [path]);
}

/// Many who ask at once share answers; none gets one that is older than its question.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_are_never_older_than_questions() {
    let (_folder, path) = home();
    let (asked, changing) = (Arc::new(open(&path).await), open(&path).await);
    let committed = Arc::new(AtomicI64::new(asked.catalog_version().await.expect("a version")));
    let askers: Vec<_> = (0..8)
        .map(|_| {
            let (asked, committed) = (Arc::clone(&asked), Arc::clone(&committed));
            tokio::spawn(async move {
                let mut n_asked = 0;
                while committed.load(Ordering::SeqCst) < 60 {
                    let before = committed.load(Ordering::SeqCst);
                    let versions = asked.versions().await.expect("versions");
                    assert!(versions.catalog >= before, "{} for {before}", versions.catalog);
                    n_asked += 1;
                }
                n_asked
            })
        })
        .collect();
    let mut last = None;
    while committed.load(Ordering::SeqCst) < 60 {
        let next = table("t");
        changing.create_table(&next, &[], Replace::Seen(last)).await.expect("a table");
        last = Some(next.id);
        committed.store(changing.catalog_version().await.expect("a version"), Ordering::SeqCst);
    }
    for asker in askers {
        assert!(asker.await.expect("asked") > 0);
    }
}

#[tokio::test]
async fn handles_see_each_others_changes() {
    let (_folder, path) = home();
    let (one, two) = (open(&path).await, open(&path).await);
    let before = two.catalog_version().await.expect("a version");
    let t = table("t");
    one.create_table(&t, &extents(0..2), Replace::Never).await.expect("a table");
    assert!(two.catalog_version().await.expect("a version") > before);
    assert_eq!(two.extents(t.id).await.expect("extents"), extents(0..2));
    two.drop_table(t.id).await.expect("dropped");
    let error = one.append_extents(t.id, &extents(2..3)).await.expect_err("a dropped table");
    assert!(matches!(error, CatalogError::TableNotFound { .. }));
    // One that closes takes nothing from the other.
    one.close().await;
    two.create_schema("zoo").await.expect("a schema");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_from_two_handles_both_land() {
    let (_folder, path) = home();
    let (one, two) = (open(&path).await, open(&path).await);
    let t = table("t");
    one.create_table(&t, &[], Replace::Never).await.expect("a table");
    let append = async |store: &SqliteStore, offset: u64| {
        for number in 0..30 {
            let first = offset + number * 2;
            store.append_extents(t.id, &extents(first..first + 2)).await.expect("appended");
        }
    };
    futures::join!(append(&one, 0), append(&two, 1000));

    let landed = one.extents(t.id).await.expect("extents");
    assert_eq!(landed, two.extents(t.id).await.expect("extents"));
    let of = |low: u64, high: u64| {
        landed
            .iter()
            .filter(|extent| extent.rows.is_some_and(|row| (low..high).contains(&row)))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(landed.len(), 120);
    assert_eq!(of(0, 1000), extents(0..60));
    assert_eq!(of(1000, 2000), extents(1000..1060));
    let mut connection = raw(&path).await;
    let positions: Vec<i64> = sqlx::query_scalar("SELECT position FROM extents ORDER BY position")
        .fetch_all(&mut connection)
        .await
        .expect("positions");
    assert_eq!(positions, (0..120).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_home_may_be_opened_twice_at_once() {
    for _ in 0..15 {
        let (_folder, path) = home();
        let openings = (0..4).map(|number| {
            let path = path.clone();
            tokio::spawn(async move {
                let store = open(&path).await;
                store.create_schema(&format!("s{number}")).await.expect("a schema");
                store
            })
        });
        for store in futures::future::join_all(openings).await {
            let store = store.expect("no panic");
            store.close().await;
        }
        let store = open(&path).await;
        assert_eq!(store.schemas().await.expect("schemas"), ["public", "s0", "s1", "s2", "s3"]);
        assert_eq!(store.catalog_version().await.expect("a version"), 5);
    }
}

#[tokio::test]
async fn a_writer_waits_for_another_and_gives_up_in_time() {
    let (_folder, path) = home();
    let patient = open(&path).await;
    let hasty = SqliteStore::open_with(&path, Duration::from_millis(20)).await.expect("a store");
    let mut other = raw(&path).await;
    execute(&mut other, "BEGIN IMMEDIATE").await;
    hasty.catalog_version().await.expect("readers do not wait");
    let error = hasty.create_schema("zoo").await.expect_err("a locked file");
    assert!(matches!(error, CatalogError::Store { attempted: "create a schema", .. }), "{error:?}");

    let release = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        execute(&mut other, "ROLLBACK").await;
    };
    let (created, ()) = futures::join!(patient.create_schema("zoo"), release);
    created.expect("the lock was free in time");
}

#[tokio::test]
async fn a_cancelled_change_is_rolled_back() {
    let (_folder, path) = home();
    let store = open(&path).await;
    let t = table("t");
    store.create_table(&t, &[], Replace::Never).await.expect("a table");
    let many = extents(0..5000);
    for micros in [0, 50, 200, 1000, 4000] {
        let _ = tokio::time::timeout(Duration::from_micros(micros), store.append_extents(t.id, &many)).await;
    }
    let n_extents = store.extents(t.id).await.expect("extents").len();
    assert_eq!(n_extents % 5000, 0, "a part of a change landed");
    store.create_schema("zoo").await.expect("the store still works");
}

// Several processes.

const HELPER_HOME: &str = "NECTARINE_TEST_HELPER_HOME";

/// Not a check of its own: what the processes run that the tests below start. It appends until it is killed.
#[tokio::test]
async fn helper_process() {
    let Some(path) = std::env::var_os(HELPER_HOME) else { return };
    let store = open(Path::new(&path)).await;
    let tables = loop {
        let tables = store.tables().await.expect("tables");
        if !tables.is_empty() {
            break tables;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    // Only so that it does not outlive a test that failed.
    let deadline = Instant::now() + Duration::from_secs(300);
    while Instant::now() < deadline {
        store.append_extents(tables[0].id, &extents(0..100)).await.expect("appended");
    }
}

fn start_helper(path: &Path) -> Child {
    start("helper_process", path)
}

fn start(helper: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", &format!("store::sqlite::tests::{helper}"), "--test-threads=1"])
        .env(HELPER_HOME, path)
        .stdout(Stdio::null())
        .spawn()
        .expect("a process")
}

#[tokio::test]
async fn killed_processes_leave_whole_changes_only() {
    let (_folder, path) = home();
    // The three meet on a home that none of them finds.
    let mut helpers = [start_helper(&path), start_helper(&path)];
    let store = open(&path).await;
    let t = table("t");
    // The helpers append as soon as there is a table, so that asking later would count some of theirs.
    let before = store.catalog_version().await.expect("a version") + 1;
    store.create_table(&t, &[], Replace::Never).await.expect("a table");
    while store.catalog_version().await.expect("a version") < before + 10 {
        assert!(helpers.iter_mut().all(|helper| helper.try_wait().expect("a state").is_none()), "a helper failed");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let seen = store.extents(t.id).await.expect("extents").len();
    store.close().await;
    for mut helper in helpers {
        helper.kill().expect("killed");
        helper.wait().expect("ended");
    }

    let store = open(&path).await;
    let extents = store.extents(t.id).await.expect("extents");
    let version = store.catalog_version().await.expect("a version");
    assert!(extents.len() >= seen, "what was committed is gone");
    assert_eq!(extents.len() as i64, (version - before) * 100);
    store.append_extents(t.id, &extents[..1]).await.expect("the home still works");
}

#[tokio::test]
async fn killed_processes_leave_whole_entries_only() {
    let (_folder, path) = home();
    let store = open(&path).await;
    let mut helper = start("cache_helper_process", &path);
    while store.versions().await.expect("versions").cache < 10 {
        assert!(helper.try_wait().expect("a state").is_none(), "the helper failed");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    helper.kill().expect("killed");
    helper.wait().expect("ended");

    let mut n_entries = 0;
    let mut count = |change| n_entries += usize::from(matches!(change, CacheChange::Entry { .. }));
    let changes = store.cache_changes(None, &mut count).await.expect("changes");
    assert_eq!(changes.n_damaged, 0);
    assert_eq!(n_entries as i64, (changes.version - 1) * 50);
    let whole = store.cache_entries(None, usize::MAX).await.expect("entries");
    assert_eq!(whole.len(), n_entries, "an entry without its parts");
}

/// Not a check of its own: adds entries until it is killed.
#[tokio::test]
async fn cache_helper_process() {
    let Some(path) = std::env::var_os(HELPER_HOME) else { return };
    let store = open(Path::new(&path)).await;
    let deadline = Instant::now() + Duration::from_secs(300);
    for first in (0..).step_by(50) {
        if Instant::now() > deadline {
            break;
        }
        store.add_cache_entries(&cache::entries(first..first + 50)).await.expect("added");
    }
}

#[tokio::test]
async fn a_cancelled_add_leaves_nothing() {
    let (_folder, path) = home();
    let store = open(&path).await;
    let many = cache::entries(0..3000);
    for micros in [0, 100, 1000, 5000, 20_000] {
        let _ = tokio::time::timeout(Duration::from_micros(micros), store.add_cache_entries(&many)).await;
        let n_whole = store.cache_entries(None, usize::MAX).await.expect("entries").len();
        assert!(n_whole == 0 || n_whole == 3000, "{n_whole} entries of an unfinished call");
    }
    store.add_cache_entries(&many).await.expect("the store still works");
}

// Older homes.

#[tokio::test]
async fn a_home_of_version_one_is_raised() {
    let (_folder, path) = home();
    let mut connection = raw(&path).await;
    execute(&mut connection, include_str!("../migrations/0001_first.sql")).await;
    execute(&mut connection, "INSERT INTO schemas (name) VALUES ('zoo'); UPDATE catalog_state SET version = 7").await;
    execute(&mut connection, &format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1")).await;
    connection.close().await.expect("closed");
    for _ in 0..2 {
        let store = open(&path).await;
        assert_eq!(store.schemas().await.expect("schemas"), ["public", "zoo"]);
        assert_eq!(store.catalog_version().await.expect("a version"), 7);
        store.add_cache_entries(&[cache::entry(1)]).await.expect("an answer");
        assert_eq!(store.cache_entry(&cache::key(1)).await.expect("an answer"), Some(cache::entry(1).0));
        store.close().await;
    }
}

/// As the version before look-ups were kept left it: with statements, and entries that share a list of extents.
#[tokio::test]
async fn a_home_of_version_four_is_raised() {
    let (_folder, path) = home();
    let mut connection = raw(&path).await;
    for migration in [
        include_str!("../migrations/0001_first.sql"),
        include_str!("../migrations/0002_cache.sql"),
        include_str!("../migrations/0003_reuse.sql"),
        include_str!("../migrations/0004_process.sql"),
    ] {
        execute(&mut connection, migration).await;
    }
    execute(
        &mut connection,
        "INSERT INTO queries (query_id, started_at, user_name, sql_text, state)
         VALUES ('0198a4c8-6d1c-7000-8000-000000000001', 5, 'me', 'SELECT 1', 'finished')",
    )
    .await;
    execute(&mut connection, &format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 4")).await;
    connection.close().await.expect("closed");
    for _ in 0..2 {
        let store = open(&path).await;
        assert_eq!(store.queries(10).await.expect("queries").len(), 1);
        assert_eq!(store.lookups(10).await.expect("look-ups"), []);
        store.add_cache_entries(&[cache::entry(1)]).await.expect("an answer");
        let list = Arc::clone(&cache::entry(1).0.inputs[0]);
        assert_eq!(store.cache_neighbours(&[list], 5).await.expect("an answer"), [cache::entry(1)]);
        store.close().await;
    }
}

// Files that are not ours to touch.

async fn assert_refused(folder: &TempDir, path: &Path) -> CatalogError {
    let before = contents(folder);
    let error = SqliteStore::open(path).await.expect_err("a refusal");
    assert!(before == contents(folder), "a refused file was touched");
    error
}

#[tokio::test]
async fn a_newer_home_is_refused_untouched() {
    let newer = NEWEST + 1;
    // A home of ours, a home in another journal mode, and tables we know nothing of.
    for journal_mode in ["WAL", "DELETE"] {
        let (folder, path) = home();
        open(&path).await.close().await;
        let mut connection = raw(&path).await;
        execute(&mut connection, &format!("PRAGMA journal_mode = {journal_mode}; PRAGMA user_version = {newer}")).await;
        execute(&mut connection, "DROP TABLE catalog_state; CREATE TABLE news (a TEXT)").await;
        connection.close().await.expect("closed");
        let error = assert_refused(&folder, &path).await;
        assert!(matches!(error, CatalogError::NewerFormat { found, supported: NEWEST, .. } if found == newer));
    }
}

#[tokio::test]
async fn a_newer_home_whose_process_was_killed_is_refused_untouched() {
    let (folder, path) = home();
    open(&path).await.close().await;
    let mut connection = raw(&path).await;
    execute(&mut connection, &format!("PRAGMA user_version = {}", NEWEST + 1)).await;
    // As a kill leaves it: the version is in the log only.
    let killed = tempfile::tempdir().expect("a folder");
    for name in ["metadata.db", "metadata.db-wal", "metadata.db-shm"] {
        std::fs::copy(folder.path().join(name), killed.path().join(name)).expect("a copy");
    }
    let error = assert_refused(&killed, &killed.path().join("metadata.db")).await;
    assert!(matches!(error, CatalogError::NewerFormat { .. }), "{error:?}");
}

#[tokio::test]
async fn another_programs_database_is_refused_untouched() {
    for sql in [
        "CREATE TABLE t (a INTEGER)",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 7; CREATE TABLE t (a INTEGER)",
        &format!("PRAGMA application_id = {APPLICATION_ID}"),
    ] {
        let (folder, path) = home();
        let mut connection = raw(&path).await;
        execute(&mut connection, sql).await;
        connection.close().await.expect("closed");
        let error = assert_refused(&folder, &path).await;
        assert!(error.to_string().ends_with("not one that nectarine made"), "{error}");
    }
}

#[tokio::test]
async fn garbage_is_refused_untouched() {
    for garbage in [&b"x"[..], &[0; 5000], "no database ".repeat(1000).as_bytes(), b"SQLite format 3\0"] {
        let (folder, path) = home();
        std::fs::write(&path, garbage).expect("written");
        let error = assert_refused(&folder, &path).await;
        assert!(matches!(error, CatalogError::Damaged { .. }), "{error:?}");
        assert!(error.to_string().contains("file is not a database"), "{error}");
    }
}

#[tokio::test]
async fn a_damaged_home_gives_errors() {
    let (_folder, path) = home();
    let store = open(&path).await;
    let t = table("t");
    store.create_table(&t, &extents(0..1000), Replace::Never).await.expect("a table");
    store.close().await;
    let whole = std::fs::read(&path).expect("bytes");
    for (start, end) in [(100, 4096), (4096, whole.len()), (whole.len() / 2, whole.len())] {
        let mut damaged = whole.clone();
        damaged[start..end].fill(0xa5);
        std::fs::write(&path, &damaged).expect("written");
        let outcome = match SqliteStore::open(&path).await {
            Ok(store) => store.extents(t.id).await.map(drop),
            Err(error) => Err(error),
        };
        assert!(matches!(outcome, Err(CatalogError::Damaged { .. })), "{start}..{end}: {outcome:?}");
    }
    std::fs::write(&path, &whole[..whole.len() / 3]).expect("written");
    let outcome = match SqliteStore::open(&path).await {
        Ok(store) => store.extents(t.id).await.map(drop),
        Err(error) => Err(error),
    };
    assert!(matches!(outcome, Err(CatalogError::Damaged { .. })), "cut: {outcome:?}");
}

#[tokio::test]
async fn damaged_records_are_named() {
    for (sql, expect) in [
        ("UPDATE tables SET kind = '{'", "metadata of table \"public.t\" is damaged: "),
        (
            "UPDATE tables SET arrow_schema = X'00'",
            "metadata of table \"public.t\" is damaged: its schema cannot be read",
        ),
        ("UPDATE tables SET id = 'x'", "metadata of table \"public.t\" is damaged: its id is not an identifier"),
        ("UPDATE tables SET created_at = 'x'", "metadata of "),
    ] {
        let (_folder, path) = home();
        let store = open(&path).await;
        store.create_table(&table("t"), &[], Replace::Never).await.expect("a table");
        execute(&mut raw(&path).await, sql).await;
        let error = store.tables().await.expect_err("a damaged record");
        assert!(matches!(error, CatalogError::Damaged { .. }), "{error:?}");
        assert!(error.to_string().starts_with(expect), "{error}");
    }
}

#[tokio::test]
async fn a_missing_folder_is_an_error() {
    let (folder, _) = home();
    let error = SqliteStore::open(&folder.path().join("no/metadata.db")).await.expect_err("no folder");
    assert!(matches!(error, CatalogError::Location { attempted: "open", .. }), "{error:?}");
    let error = SqliteStore::open(folder.path()).await.expect_err("a folder");
    assert!(matches!(error, CatalogError::Location { attempted: "open", .. }), "{error:?}");
}

#[tokio::test]
async fn paths_may_hold_anything() {
    let (folder, _) = home();
    for name in ["a b?mode=memory", "file:x", "100%", "käse#'\"", "-"] {
        let path = folder.path().join(name);
        let store = open(&path).await;
        store.create_schema("zoo").await.expect("a schema");
        store.close().await;
        assert!(path.exists(), "{name}");
    }
}

// Costs, reported and not judged: on a busy machine a bound on time says more of the machine than of the store.

#[tokio::test]
async fn costs() {
    let (_folder, path) = home();
    let start = Instant::now();
    let store = open(&path).await;
    report("create a home", start, 1);

    let (t, many) = (table("t"), extents(0..10_000));
    let start = Instant::now();
    store.create_table(&t, &many, Replace::Never).await.expect("a table");
    report("insert 10,000 extents", start, 1);
    for _ in 0..5 {
        let start = Instant::now();
        assert_eq!(store.extents(t.id).await.expect("extents").len(), many.len());
        report("load 10,000 extents", start, 1);
    }

    let start = Instant::now();
    for _ in 0..2000 {
        store.catalog_version().await.expect("a version");
    }
    report("read the catalog version", start, 2000);

    let start = Instant::now();
    for number in 0..50 {
        store.append_extents(t.id, &many[number..=number]).await.expect("appended");
    }
    report("append one extent", start, 50);

    store.close().await;
    let start = Instant::now();
    let store = open(&path).await;
    report("open a home", start, 1);
    let start = Instant::now();
    store.close().await;
    report("close a home", start, 1);
}

/// Says what one call took; `cargo test -- --nocapture costs` shows it.
fn report(what: &str, start: Instant, n_calls: u32) {
    eprintln!("{what}: {:?}", start.elapsed() / n_calls);
}
