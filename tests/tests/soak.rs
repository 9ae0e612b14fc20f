//! A long run of all that derived data has to bear at once: tables that grow and lose their oldest files, windows that slide,
//! queries that come again and new ones, pins, eviction at a budget that is far too small, and wipes; by clients of two engines.
//!
//! Asserts   no query fails; a sample of the answers is what they are without reuse; the files never take more than the budget
//!           and one result in flight; in the long form, memory stays where it was after the first fifth of the time.
//! Prints    how much was reused.
//!
//! `NECTARINE_SOAK_MINUTES=30 tests/run soak:: -- --nocapture` runs so long; without it a few seconds, so that it does not rot.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, Int64Array};
use nectarine_engine::{ErrorKind, Receipt, Reused};
use nectarine_tests::db::Db;
use nectarine_tests::files;
use nectarine_tests::invariance::{Random, seed};

/// Room for a small part of what is computed.
const BUDGET: u64 = 4 << 20;
/// The largest result that is kept: what lies above the low-water mark.
const IN_FLIGHT: u64 = BUDGET / 5;
/// Without a wish.
const SHORT: Duration = Duration::from_secs(10);
const CLIENTS: usize = 4;
/// Files that the table has at most.
const DAYS_KEPT: i64 = 24;
const ROWS_A_DAY: i64 = 5_000;
const ROWS_FIXED: i64 = 60_000;
/// Memory may grow by half and this much: allocators keep what they once had.
const SLACK: u64 = 128 << 20;

/// What all clients share.
struct Soak {
    folder: PathBuf,
    derived: PathBuf,
    until: Instant,
    /// The youngest day.
    newest: AtomicI64,
    /// Held by who adds a file; who compares two answers holds it too.
    adding: tokio::sync::Mutex<()>,
    /// Held alone by who takes files away: a query whose files are deleted while it reads them has to fail.
    reading: tokio::sync::RwLock<()>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    exact: AtomicU64,
    partial: AtomicU64,
    none: AtomicU64,
    compared: AtomicU64,
    pins: AtomicU64,
    refused_pins: AtomicU64,
    wipes: AtomicU64,
    files: AtomicU64,
}

impl Counts {
    fn count(&self, receipt: &Receipt) {
        let counter = match receipt.reused {
            Reused::Exact => &self.exact,
            Reused::Partial => &self.partial,
            Reused::None => &self.none,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn told(&self) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (exact, partial, none) = (of(&self.exact), of(&self.partial), of(&self.none));
        let all = (exact + partial + none).max(1);
        format!(
            "{all} queries: {}% exact, {}% partial; {} compared, {} pins ({} refused), {} files, {} wipes",
            exact * 100 / all,
            partial * 100 / all,
            of(&self.compared),
            of(&self.pins),
            of(&self.refused_pins),
            of(&self.files),
            of(&self.wipes)
        )
    }
}

impl Soak {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    fn add_day(&self, day: i64) {
        let numbers = |value: &dyn Fn(i64) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..ROWS_A_DAY).map(value)))
        };
        let columns = vec![
            ("day", numbers(&|_| day)),
            ("user_id", numbers(&|row| (row * 7919 + day) % 313)),
            ("v", numbers(&|row| row * 104_729 % 1_000)),
        ];
        files::appear(&self.file(day), &files::parquet_bytes(columns));
        self.newest.fetch_max(day, Ordering::SeqCst);
        self.counts.files.fetch_add(1, Ordering::Relaxed);
    }

    fn file(&self, day: i64) -> PathBuf {
        self.folder.join(format!("c/{day:09}.parquet"))
    }

    /// A statement: one of those that come again, a window, or one that nobody asked before.
    fn statement(&self, random: &mut Random, n_new: &mut usize) -> String {
        let newest = self.newest.load(Ordering::SeqCst);
        match random.below(10) {
            0..=2 => repeated(random.below(12)),
            3..=5 => {
                let last = newest - random.between(0, 5);
                let window = format!("day > {} AND day <= {last}", last - 7);
                match random.below(2) {
                    0 => format!("SELECT user_id % 5 AS k, count(*), sum(v) FROM c WHERE {window} GROUP BY k"),
                    _ => format!("SELECT user_id, max(v), count(*) FROM c WHERE {window} AND v < 500 GROUP BY user_id"),
                }
            }
            6 => "SELECT user_id % 7 AS k, count(*), avg(v) FROM c GROUP BY k".to_owned(),
            7 => "SELECT sum(hits), max(best) FROM daily WHERE user_id % 2 = 0".to_owned(),
            _ => {
                *n_new += 1;
                repeated(1000 + *n_new)
            }
        }
    }
}

/// About 130 KB of rows, the same each time.
fn repeated(number: usize) -> String {
    format!("SELECT n, md5(CAST(n AS TEXT)) AS s FROM t WHERE n % 20 = {} AND n > {}", number % 20, number / 20)
}

/// Asks until the time is over, and compares some of the answers.
async fn client(soak: Arc<Soak>, db: Db, number: usize) {
    let mut random = Random::new(seed().wrapping_add(number as u64));
    let plain = db.client();
    plain.ok("SET nectarine.reuse = 'off'").await;
    let mut n_new = number * 1_000_000;
    while !soak.is_over() {
        let _reading = soak.reading.read().await;
        let sql = soak.statement(&mut random, &mut n_new);
        let adding = if random.chance(10) { Some(soak.adding.lock().await) } else { None };
        let (rows, receipt) = db.ask(&sql).await;
        soak.counts.count(&receipt);
        if adding.is_some() {
            assert!(rows == plain.ask(&sql).await.0, "it answers otherwise: {sql}");
            soak.counts.compared.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// New files come, the oldest go.
async fn feeder(soak: Arc<Soak>) {
    while !soak.is_over() {
        tokio::time::sleep(Duration::from_millis(700)).await;
        let adding = soak.adding.lock().await;
        let day = soak.newest.load(Ordering::SeqCst) + 1;
        soak.add_day(day);
        drop(adding);
        if day % 8 == 0 {
            let _alone = soak.reading.write().await;
            for old in (0..=day - DAYS_KEPT).rev() {
                // As far as others have been taken away before.
                if std::fs::remove_file(soak.file(old)).is_err() {
                    break;
                }
            }
        }
    }
}

/// Pins and unpins. That there is no room for one more is no failure.
async fn pinner(soak: Arc<Soak>, db: Db) {
    let mut random = Random::new(seed().wrapping_add(99));
    let mut pinned: Vec<String> = vec![];
    db.ok("PIN MATERIALIZED VIEW daily").await;
    while !soak.is_over() {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let _reading = soak.reading.read().await;
        if pinned.len() > 3 || (!pinned.is_empty() && random.chance(30)) {
            let sql = pinned.swap_remove(random.below(pinned.len()));
            db.ok(&format!("UNPIN {sql}")).await;
            continue;
        }
        let sql = repeated(random.below(12));
        match db.session().execute(&format!("PIN {sql}")).await {
            Ok(answer) => {
                answer.collect().await.expect("it says what was pinned");
                soak.counts.pins.fetch_add(1, Ordering::Relaxed);
                if !pinned.contains(&sql) {
                    pinned.push(sql);
                }
            }
            Err(error) => {
                // Others take all the room, or a wipe came between.
                assert!(matches!(error.kind(), ErrorKind::Resources | ErrorKind::Unsupported), "{sql}: {error:?}");
                soak.counts.refused_pins.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Evicts and sweeps by hand, and now and then deletes every file.
async fn vandal(soak: Arc<Soak>, db: Db) {
    let mut round = 0_u64;
    while !soak.is_over() {
        tokio::time::sleep(Duration::from_millis(500)).await;
        round += 1;
        db.cache().evict().await.expect("it can be asked");
        if round.is_multiple_of(7) {
            wipe(&soak.derived);
            soak.counts.wipes.fetch_add(1, Ordering::Relaxed);
        }
        if round.is_multiple_of(10) {
            db.cache().collect().await.expect("it can be asked");
        }
    }
}

fn wipe(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => wipe(&path),
            // Somebody else may be faster.
            false => drop(std::fs::remove_file(path)),
        }
    }
}

fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_below(&entry.path()),
        _ => entry.metadata().map_or(0, |metadata| metadata.len()),
    });
    bytes.sum()
}

/// Memory that this process has written to; `None` where nobody tells. Pages of the program's own file, which come in as its
/// parts are used for the first time, are not meant.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// What was seen from outside.
#[derive(Default)]
struct Seen {
    /// The most that the files took.
    bytes_max: u64,
    /// Memory after the first fifth, and at the end.
    warm: Option<u64>,
    last: Option<u64>,
}

/// Looks from outside until the end.
#[expect(clippy::print_stdout, reason = "it takes long; whoever runs it wants to see where it is")]
fn watch(soak: &Arc<Soak>, stop: &Arc<AtomicBool>, long: Duration) -> std::thread::JoinHandle<Seen> {
    let (soak, stop) = (Arc::clone(soak), Arc::clone(stop));
    std::thread::spawn(move || {
        let (started, mut told, mut seen) = (Instant::now(), Instant::now(), Seen::default());
        while !stop.load(Ordering::Relaxed) {
            seen.bytes_max = seen.bytes_max.max(bytes_below(&soak.derived));
            if seen.warm.is_none() && started.elapsed() > long / 5 {
                seen.warm = resident();
            }
            if told.elapsed() > Duration::from_secs(60) {
                told = Instant::now();
                println!("{:?}: {}; {:?} bytes of memory", started.elapsed(), soak.counts.told(), resident());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        seen.last = resident();
        seen
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn derived_data_bears_all_of_it_at_once() {
    let wish = std::env::var("NECTARINE_SOAK_MINUTES").ok().and_then(|minutes| minutes.parse::<f64>().ok());
    let long = wish.map_or(SHORT, |minutes| Duration::from_secs_f64(60.0 * minutes));
    println!("NECTARINE_SEED={}", seed());
    let settings = [("cache.budget", &*BUDGET.to_string()), ("cache.fresh_seconds", "0"), ("cache.memory", "8MB")];
    let db = Db::with(&settings).await;
    let soak = Arc::new(Soak {
        folder: db.folder().to_path_buf(),
        derived: db.home().join("derived"),
        until: Instant::now() + long,
        newest: AtomicI64::new(0),
        adding: tokio::sync::Mutex::default(),
        reading: tokio::sync::RwLock::default(),
        counts: Counts::default(),
    });
    files::numbers(&db.path("t/a.parquet"), 0..ROWS_FIXED);
    db.path("c/x");
    (1..=10).for_each(|day| soak.add_day(day));
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    db.ok("CREATE EXTERNAL TABLE c STORED AS PARQUET LOCATION '{dir}/c/'").await;
    let daily = "SELECT user_id, count(*) AS hits, max(v) AS best FROM c GROUP BY user_id";
    db.ok(&format!("CREATE MATERIALIZED VIEW daily AS {daily}")).await;
    let second = db.second().await;

    let stop = Arc::new(AtomicBool::new(false));
    let watcher = watch(&soak, &stop, long);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let db = if number % 2 == 0 { db.client() } else { second.client() };
        tasks.spawn(client(Arc::clone(&soak), db, number));
    }
    tasks.spawn(feeder(Arc::clone(&soak)));
    tasks.spawn(pinner(Arc::clone(&soak), db.client()));
    tasks.spawn(vandal(Arc::clone(&soak), second.client()));
    while let Some(task) = tasks.join_next().await {
        task.expect("nothing fails");
    }
    stop.store(true, Ordering::Relaxed);
    let seen = watcher.join().expect("it watches");

    let stats = db.cache().stats().await.expect("stats");
    println!("{}; {} evicted, {} bytes at most of {BUDGET}", soak.counts.told(), stats.evicted, seen.bytes_max);
    println!("memory: {:?} after a fifth of the time, {:?} at the end", seen.warm, seen.last);
    assert!(seen.bytes_max <= BUDGET + IN_FLIGHT, "{} bytes", seen.bytes_max);
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let counts = &soak.counts;
    assert!(of(&counts.exact) > 0 && of(&counts.partial) > 0 && of(&counts.compared) > 0, "{}", counts.told());
    assert!(stats.evicted > 0 && of(&counts.pins) > 0, "{} evicted; {}", stats.evicted, counts.told());
    // Other tests share the process unless somebody asked for this one.
    if let (Some(_), Some(warm), Some(last)) = (wish, seen.warm, seen.last) {
        assert!(last <= warm + warm / 2 + SLACK, "memory grew from {warm} to {last} bytes");
    }
    // What is left is whole, once nobody deletes it any more.
    db.cache().collect().await.expect("it can be asked");
    let (n_entries, faults) = db.cache().verify().await.expect("it can be asked");
    assert!(faults.is_empty(), "{faults:?} of {n_entries}");
    second.shutdown().await;
}
