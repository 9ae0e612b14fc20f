//! The byte budget of derived data: it holds under load, what goes is told, and no query ever fails or answers otherwise.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use nectarine_engine::{Clock, Engine, Reused, Settings, SystemClock};
use nectarine_tests::db::{Db, rows_text};
use nectarine_tests::files;
use nectarine_tests::program::{Program, finish};

/// Room for about eight of the results below.
const BUDGET: u64 = 1 << 20;

/// About 130 KB of rows.
fn sql(number: usize) -> String {
    format!(
        "SELECT n, md5(CAST(n AS TEXT)) AS s FROM t WHERE n % 20 = {} AND n > {} ORDER BY n",
        number % 20,
        number / 20
    )
}

async fn small(budget: u64, fresh_seconds: usize) -> Db {
    let (budget, fresh) = (budget.to_string(), fresh_seconds.to_string());
    let db = Db::with(&[("cache.budget", &budget), ("cache.fresh_seconds", &fresh)]).await;
    files::numbers(&db.path("t/a.parquet"), 0..60_000);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    db
}

/// Bytes of all files below a folder; what goes meanwhile counts as it is met.
fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_below(&entry.path()),
        _ => entry.metadata().map_or(0, |metadata| metadata.len()),
    });
    bytes.sum()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files_below(&entry.path()),
        _ => vec![entry.path()],
    });
    files.collect()
}

/// Looks at the files all the time; the most that was there.
fn watch(folder: &Path) -> (Arc<AtomicBool>, std::thread::JoinHandle<u64>) {
    let (folder, stop) = (folder.to_path_buf(), Arc::new(AtomicBool::new(false)));
    let watching = Arc::clone(&stop);
    let watcher = std::thread::spawn(move || {
        let mut most = 0;
        while !watching.load(Ordering::Relaxed) {
            most = most.max(bytes_below(&folder));
            std::thread::sleep(Duration::from_millis(2));
        }
        most
    });
    (stop, watcher)
}

async fn entries_are_whole(db: &Db) {
    let (n_entries, faults) = db.cache().verify().await.expect("it can be asked");
    assert!(faults.is_empty(), "{faults:?} of {n_entries}");
}

/// What each statement answers without a cache.
async fn answers(db: &Db, n: usize) -> Arc<Vec<Vec<String>>> {
    let client = db.client();
    client.ok("SET nectarine.reuse = 'off'").await;
    let mut answers = vec![];
    for number in 0..n {
        answers.push(client.ask(&sql(number)).await.0);
    }
    Arc::new(answers)
}

/// Clients of one engine or of two on the same home: what is in the folder never comes to more than the budget.
async fn hold_the_budget(engines: &[&Db]) {
    const STATEMENTS: usize = 30;
    let expected = answers(engines[0], STATEMENTS).await;
    let (stop, watcher) = watch(&engines[0].home().join("derived"));
    let mut clients = vec![];
    for client in 0..4 {
        let (db, expected) = (engines[client % engines.len()].client(), Arc::clone(&expected));
        clients.push(tokio::spawn(async move {
            for round in 0..40 {
                let number = (round * 7 + client * 11) % STATEMENTS;
                let (rows, _) = db.ask(&sql(number)).await;
                assert!(rows == expected[number], "statement {number} answers otherwise");
            }
        }));
    }
    for client in clients {
        client.await.expect("no query fails");
    }
    stop.store(true, Ordering::Relaxed);
    let most = watcher.join().expect("it watches");
    let stats = engines[0].cache().stats().await.expect("stats");
    assert!(most > BUDGET / 2, "there is something to bound: {most}");
    assert!(most <= BUDGET, "{most}");
    assert!(stats.evicted > 0 && stats.used <= stats.budget, "{stats:?}");
    entries_are_whole(engines[0]).await;
    let told = engines[0].ok("SELECT count(*) > 0, count(DISTINCT reason), min(reason) FROM system.evictions").await;
    assert_eq!(told, "true|1|space");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_budget_holds_under_load() {
    hold_the_budget(&[&small(BUDGET, 0).await]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_engines_share_one_budget() {
    let one = small(BUDGET, 0).await;
    let two = one.second().await;
    hold_the_budget(&[&one, &two]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_is_told_and_what_it_took_to_make_it_again() {
    let db = small(BUDGET, 0).await;
    for number in 0..20 {
        db.ask(&sql(number)).await;
        db.cache().evict().await.expect("it can be asked");
    }
    let gone = "SELECT count(*) FROM system.evictions WHERE remade_at IS NULL AND bytes > 0 AND cost_ms > 0 AND \
                reason = 'space' AND sql LIKE 'SELECT n, md5%'";
    assert_ne!(db.ok(gone).await, "0");
    let (fingerprint, number) = {
        let row = db.ok("SELECT fingerprint, sql FROM system.evictions ORDER BY evicted_at LIMIT 1").await;
        let (fingerprint, text) = row.split_once('|').expect("two columns");
        let number = (0..20).find(|number| sql(*number) == text).expect("one of ours");
        (fingerprint.to_owned(), number)
    };
    let why = db.ok(&format!("EXPLAIN REUSE {}", sql(number))).await;
    assert!(why.lines().next().is_some_and(|line| line.contains("evicted")), "{why}");
    assert_eq!(db.ask(&sql(number)).await.1.reused, Reused::None);
    let remade = format!(
        "SELECT remade_at > evicted_at, remade_cost_ms > 0 FROM system.evictions WHERE fingerprint = '{fingerprint}'"
    );
    assert_eq!(db.ok(&remade).await, "true|true");
    assert_eq!(db.ask(&sql(number)).await.1.reused, Reused::Exact);
    // Another process knows as well.
    let db = db.reopen().await;
    assert_eq!(db.ok(&remade).await, "true|true");
    let stats = db.cache().stats().await.expect("stats");
    assert_eq!(stats.budget, BUDGET);
    assert_eq!(
        db.ok("SELECT count(*), sum(bytes) FROM system.evictions").await,
        format!("{}|{}", stats.evicted, stats.evicted_bytes)
    );

    let program = Program::on(&db.home()).set("cache.budget", &BUDGET.to_string());
    db.shutdown().await;
    let mut command = program.command();
    command.args(["cache", "stats"]);
    let told = finish(command, b"").rows();
    assert!(told.ends_with(&format!(",{BUDGET},0,{},{},0", stats.evicted, stats.evicted_bytes)), "{told}");
}

/// Twice the budget would have held what went last and came back; half of it would not hold what is there.
#[tokio::test(flavor = "multi_thread")]
async fn other_budgets_are_estimated() {
    let db = small(BUDGET, 0).await;
    let shadows = "SELECT budget, bytes, entries > 0, entry_bytes > 0, saved_ms, since IS NULL FROM system.shadow_budgets \
                   ORDER BY budget";
    let nothing = format!("half|{}|false|false|0.0|true\ntwice|{}|false|false|0.0|true", BUDGET / 2, BUDGET * 2);
    assert_eq!(db.ok(shadows).await, nothing);
    for number in 0..10 {
        db.ask(&sql(number)).await;
        db.ask(&sql(number)).await;
        db.cache().evict().await.expect("it can be asked");
    }
    let gone = db.ok("SELECT sql FROM system.evictions ORDER BY evicted_at DESC LIMIT 1").await;
    db.ask(&gone).await;
    db.cache().settled().await;
    let told = db
        .ok("SELECT budget, entries > 0, entry_bytes > 0, saved_ms > 0, saved_ms < 0, since IS NOT NULL \
             FROM system.shadow_budgets ORDER BY budget")
        .await;
    assert_eq!(told, "half|true|true|false|true|true\ntwice|true|true|true|false|true");
}

/// The policy at work: what is used often stays.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_stays() {
    let db = small(BUDGET, 0).await;
    db.ask(&sql(0)).await;
    for number in 1..30 {
        for _ in 0..3 {
            assert_eq!(db.ask(&sql(0)).await.1.reused, Reused::Exact, "before {number}");
        }
        db.ask(&sql(number)).await;
        db.cache().evict().await.expect("it can be asked");
    }
}

/// New results have a lease; when all are new, what comes later is not kept, and the budget holds.
#[tokio::test(flavor = "multi_thread")]
async fn fresh_results_stay() {
    let db = small(BUDGET, 3600).await;
    for number in 0..20 {
        db.ask(&sql(number)).await;
    }
    assert_eq!(db.cache().evict().await.expect("it can be asked"), 0);
    assert_eq!(db.ask(&sql(0)).await.1.reused, Reused::Exact);
    assert_eq!(db.ask(&sql(19)).await.1.reused, Reused::None);
    assert!(bytes_below(&db.home().join("derived")) <= BUDGET);
    // Who opens the home with more room keeps more.
    let folder = db.shared_folder();
    db.shutdown().await;
    drop(db);
    let db = Db::open(folder, &[("cache.budget", "100MB")]).await.expect("it opens");
    db.ask(&sql(19)).await;
    assert_eq!(db.ask(&sql(19)).await.1.reused, Reused::Exact);
}

/// Above the low-water mark, groups that nobody asked for are not kept any more.
#[tokio::test(flavor = "multi_thread")]
async fn little_room_makes_choosy() {
    let groups = |k: usize| format!("SELECT max(c) FROM (SELECT n % {k} AS g, count(*) AS c FROM t GROUP BY g)");
    let db = small(BUDGET, 3600).await;
    let kept = |receipt: nectarine_engine::Receipt| receipt.kept;
    let roomy = kept(db.ask(&groups(7)).await.1);
    for number in 0..20 {
        db.ask(&sql(number)).await;
    }
    let tight = kept(db.ask(&groups(11)).await.1);
    assert!(tight < roomy, "{tight} of {roomy}");
}

#[tokio::test(flavor = "multi_thread")]
async fn budgets_of_nothing_and_of_nonsense() {
    let db = small(0, 0).await;
    for _ in 0..2 {
        assert_eq!(db.ask(&sql(0)).await.1.reused, Reused::None);
    }
    assert_eq!(bytes_below(&db.home().join("derived")), 0);
    let folder = db.shared_folder();
    for (name, value) in [("cache.budget", "much"), ("cache.low_water", "80"), ("cache.fresh_seconds", "-1")] {
        assert!(Db::open(Arc::clone(&folder), &[(name, value)]).await.is_err(), "{name}");
    }
    let error = db.err("SET nectarine.cache.budget = '1GB'").await;
    assert!(error.contains("is read when the home is opened"), "{error}");
}

/// A clock that tests set.
#[derive(Debug, Default)]
struct Jumping(AtomicI64);

impl Clock for Jumping {
    fn now_ns(&self) -> i64 {
        SystemClock.now_ns() + self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_jumps_is_harmless() {
    const YEAR: i64 = 365 * 24 * 3600 * 1_000_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    files::numbers(&folder.path().join("a.parquet"), 0..60_000);
    let settings = Settings::default().with("cache.budget", &BUDGET.to_string()).expect("valid");
    let clock = Arc::new(Jumping::default());
    let builder = Engine::builder().home(folder.path().join("home")).settings(settings);
    let engine = builder.clock(Arc::clone(&clock) as Arc<dyn Clock>).open().await.expect("it opens");
    let session = engine.session();
    let ask = async |sql: &str| {
        let answer = session.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(answer.notices().is_empty(), "{:?}", answer.notices());
        rows_text(&answer.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}")))
    };
    let location = folder.path().join("a.parquet");
    ask(&format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{}'", location.display())).await;
    let mut expected: Vec<Option<String>> = vec![None; 12];
    for (round, jump) in [0, YEAR, -YEAR, 0, -30 * YEAR, 100 * YEAR, 0].into_iter().enumerate() {
        clock.0.store(jump, Ordering::Relaxed);
        for (number, expected) in expected.iter_mut().enumerate() {
            let rows = ask(&sql(number)).await;
            let first = expected.get_or_insert_with(|| rows.clone());
            assert!(*first == rows, "round {round}: statement {number} answers otherwise");
        }
        let cache = engine.cache();
        cache.evict().await.expect("it can be asked");
        assert_eq!(cache.collect().await.expect("it can be asked").parts, 0);
        let (_, faults) = cache.verify().await.expect("it can be asked");
        assert!(faults.is_empty(), "round {round}: {faults:?}");
        assert!(bytes_below(&folder.path().join("home/derived")) <= BUDGET);
        // Whatever the clock said: what was made then is fresh no longer, or not yet, and something can be evicted.
        ask("SELECT count(*) FROM system.evictions").await;
    }
    assert_ne!(ask("SELECT count(*) FROM system.evictions").await, "0");
    engine.shutdown().await;
}

/// Nothing can be written where results go: queries answer, and somebody says so, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_can_not_be_written() {
    let db = small(BUDGET, 0).await;
    let derived = db.home().join("derived");
    std::fs::remove_dir_all(&derived).expect("a folder can be removed");
    std::fs::write(&derived, b"no folder").expect("a file can be written");
    let mut notices = vec![];
    for number in 0..4 {
        let answer = db.session().execute(&sql(number)).await.expect("it answers");
        notices.extend(answer.notices().iter().map(|notice| notice.message.clone()));
        answer.collect().await.expect("it answers");
        db.cache().settled().await;
    }
    assert_eq!(notices, ["results can not be kept; queries are computed each time"]);
    std::fs::remove_file(&derived).expect("a file can be removed");
    for number in 0..2 {
        db.ask(&sql(number)).await;
        assert_eq!(db.ask(&sql(number)).await.1.reused, Reused::Exact);
    }
}

/// Puts folders in the places of all files: they can not be deleted like files. Returns what brings the files back.
fn can_not_be_deleted(db: &Db) -> impl FnOnce() + use<> {
    let files = files_below(&db.home().join("derived"));
    let aside: Vec<PathBuf> = (0..files.len()).map(|number| db.path(&format!("aside-{number}"))).collect();
    for (file, aside) in files.iter().zip(&aside) {
        std::fs::rename(file, aside).expect("a file can be renamed");
        std::fs::create_dir(file).expect("a folder");
    }
    move || {
        for (file, aside) in files.iter().zip(&aside) {
            std::fs::remove_dir(file).expect("a folder can be removed");
            std::fs::rename(aside, file).expect("a file can be renamed");
        }
    }
}

/// What is dropped and can not be deleted still takes its room: for this process, for others, and for those that come later.
#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_deleted_counts() {
    let db = small(BUDGET, 0).await;
    for number in 0..7 {
        db.ask(&sql(number)).await;
    }
    let used = db.cache().stats().await.expect("stats").used;
    assert!(used > BUDGET / 2, "{used}");
    let bring_back = can_not_be_deleted(&db);
    db.cache().clear().await;
    let two = db.second().await;
    for db in [&db, &two] {
        let stats = db.cache().stats().await.expect("stats");
        assert_eq!((stats.used, stats.reserved, stats.undeleted), (0, 0, used));
    }
    let mut notices = vec![];
    for number in 10..20 {
        let answer = db.session().execute(&sql(number)).await.expect("it answers");
        notices.extend(answer.notices().iter().map(|notice| notice.message.clone()));
        answer.collect().await.expect("it answers");
        two.ask(&sql(number + 10)).await;
        db.cache().settled().await;
        let stats = db.cache().stats().await.expect("stats");
        assert!(stats.used + stats.undeleted <= BUDGET, "{stats:?}");
    }
    assert_eq!(notices, ["files of dropped results can not be deleted; they take room until they are gone"]);
    let collected = db.cache().collect().await.expect("it sweeps");
    assert!(collected.left > 0 && collected.left_bytes == used, "{collected:?}");
    two.shutdown().await;
    let db = db.reopen().await;
    assert_eq!(db.cache().stats().await.expect("stats").undeleted, used);
    // They can be deleted again.
    bring_back();
    let collected = db.cache().collect().await.expect("it sweeps");
    assert!(collected.parts > 0 && collected.bytes == used && collected.left == 0, "{collected:?}");
    let stats = db.cache().stats().await.expect("stats");
    assert_eq!((stats.undeleted, bytes_below(&db.home().join("derived"))), (0, stats.used));
}

/// Results are not thrown away for room that does not come.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_evicted_in_vain() {
    let settings = [("cache.budget", "1MB"), ("cache.fresh_seconds", "0"), ("cache.low_water", "20%")];
    let db = Db::with(&settings).await;
    files::numbers(&db.path("t/a.parquet"), 0..60_000);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    for number in 0..5 {
        db.ask(&sql(number)).await;
    }
    let entries = async || db.cache().entries().await.len();
    let n_entries = entries().await;
    let bring_back = can_not_be_deleted(&db);
    let n_shown = db.cache().evict().await.expect("it can be asked");
    assert!((1..n_entries / 2).contains(&n_shown), "one step shows it: {n_shown} of {n_entries}");
    for _ in 0..3 {
        assert_eq!(db.cache().evict().await.expect("it can be asked"), 0);
    }
    assert_eq!(entries().await, n_entries - n_shown);
    let stats = db.cache().stats().await.expect("stats");
    assert!(stats.undeleted > 0 && stats.used + stats.undeleted > stats.low_water, "{stats:?}");
    bring_back();
    db.cache().collect().await.expect("it sweeps");
    assert!(db.cache().evict().await.expect("it can be asked") > 0);
    let stats = db.cache().stats().await.expect("stats");
    assert!(stats.undeleted == 0 && stats.used <= stats.low_water, "{stats:?}");
}

/// Results without rows take no room there, but a record each: of those as well there are so many.
#[tokio::test(flavor = "multi_thread")]
async fn results_without_rows_do_not_pile_up() {
    let db = small(20 << 10, 0).await;
    let empty = |number: usize| format!("SELECT n FROM t WHERE (n * 2) % 2 = 1 AND n > {number}");
    let n_empty = async || db.ok("SELECT count(*) FROM system.cache_entries WHERE bytes = 0").await;
    for number in 0..40 {
        assert_eq!(db.ask(&empty(number)).await.0, [""; 0]);
    }
    assert_eq!(db.ask(&empty(39)).await.1.reused, Reused::Exact);
    db.cache().evict().await.expect("it can be asked");
    // As many as there are kilobytes below the low-water mark.
    assert_eq!(n_empty().await, "16");
    assert_eq!(db.ask(&empty(39)).await.1.reused, Reused::Exact, "it was used");
    assert_eq!(db.ask(&empty(0)).await.0, [""; 0]);
}
