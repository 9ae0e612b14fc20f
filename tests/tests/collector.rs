//! Derived data that is wiped, damaged, killed or put there by hand, beside everything else: no query fails, none answers
//! otherwise, and nothing is left behind.
//!
//! `NECTARINE_FAULT_ROUNDS=1000` kills that often; the default is enough for every day.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nectarine_engine::Reused;
use nectarine_tests::db::Db;
use nectarine_tests::files;
use nectarine_tests::invariance::Random;
use nectarine_tests::program::{Program, finish};
#[cfg(target_os = "linux")]
use nectarine_tests::small_disk::on_small_disk;
use sqlx::{Connection, SqliteConnection};

fn rounds() -> usize {
    std::env::var("NECTARINE_FAULT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(30)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let files = entries.flatten().flat_map(|entry| match entry.path().is_dir() {
        true => files_below(&entry.path()),
        false => vec![entry.path()],
    });
    files.collect()
}

fn statement(number: usize) -> String {
    match number % 4 {
        0 | 2 => {
            let (k, low) = (number % 10, number / 10);
            format!("SELECT n, md5(CAST(n AS TEXT)) AS s FROM t WHERE n % 10 = {k} AND n > {low} ORDER BY n")
        }
        1 => format!("SELECT n % 100 AS g, count(*), sum(n) FROM t WHERE n > {number} GROUP BY 1 ORDER BY 1"),
        _ => format!("SELECT a.n, b.n FROM t a JOIN t b ON a.n = b.n + {number} WHERE a.n % 50 = 0 ORDER BY 1"),
    }
}

/// Wipes the derived store, or a random part of it, damages files and sweeps, while eight clients ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn wiping_beside_eight_clients() {
    const STATEMENTS: usize = 24;
    let db = Db::with(&[("cache.budget", "2MB"), ("cache.fresh_seconds", "0"), ("cache.memory", "200KB")]).await;
    files::numbers(&db.path("t/a.parquet"), 0..20_000);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    db.ok("SET nectarine.reuse = 'off'").await;
    let mut expected = vec![];
    for number in 0..STATEMENTS {
        expected.push(db.ask(&statement(number)).await.0);
    }
    let expected = Arc::new(expected);
    let is_over = Arc::new(AtomicBool::new(false));
    let mut clients = vec![];
    for client in 0..8 {
        let (db, expected, is_over) = (db.client(), Arc::clone(&expected), Arc::clone(&is_over));
        db.ok("SET nectarine.reuse = 'on'").await;
        clients.push(tokio::spawn(async move {
            let mut n_reused = 0;
            for round in 0.. {
                let number = (round * 5 + client * 3) % STATEMENTS;
                let (rows, receipt) = db.ask(&statement(number)).await;
                assert!(rows == expected[number], "statement {number} answers otherwise");
                n_reused += usize::from(receipt.reused != Reused::None);
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
            n_reused
        }));
    }
    let mut random = Random::new(nectarine_tests::invariance::seed());
    let derived = db.home().join("derived");
    let begun = Instant::now();
    let mut n_harmed = 0;
    while begun.elapsed() < Duration::from_secs(6) {
        match random.between(0, 9) {
            0 => _ = std::fs::remove_dir_all(&derived),
            1 => _ = db.cache().collect().await.expect("it sweeps"),
            2 => _ = db.cache().evict().await.expect("it evicts"),
            _ => {
                for path in files_below(&derived) {
                    let harm = random.between(0, 9);
                    match (harm, std::fs::read(&path)) {
                        (0..=1, _) => _ = std::fs::remove_file(&path),
                        (2, Ok(mut bytes)) if !bytes.is_empty() => {
                            let at = bytes.len() / 2;
                            bytes[at] ^= 1;
                            let _ = std::fs::write(&path, bytes);
                        }
                        (3, _) => _ = std::fs::write(&path, b""),
                        _ => continue,
                    }
                    n_harmed += 1;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(random.between(1, 40) as u64)).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let mut n_reused = 0;
    for client in clients {
        n_reused += client.await.expect("no query fails");
    }
    println!("{n_harmed} files harmed, {n_reused} answers reused something");
    // All of it is made again, and what is left is whole or goes.
    let db = db.client();
    for number in 0..STATEMENTS {
        assert!(db.ask(&statement(number)).await.0 == expected[number]);
    }
    db.cache().collect().await.expect("it sweeps");
    assert_eq!(db.cache().collect().await.expect("it sweeps").bytes, 0);
}

/// The binary on a home with little room, so that it evicts all the time.
struct Home {
    folder: tempfile::TempDir,
    program: Program,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = Program::on(&folder.path().join("home"));
        let program = program.set("cache.budget", "500KB").set("cache.fresh_seconds", "0").set("cache.threshold", "1");
        program.run("CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 20000)").rows();
        Self { folder, program }
    }

    fn files(&self) -> Vec<PathBuf> {
        files_below(&self.folder.path().join("home/derived"))
    }

    fn cache(&self, task: &str) -> String {
        let mut command = self.program.command();
        command.args(["cache", task]);
        let ran = finish(command, b"");
        assert!(ran.status.success(), "{ran:?}");
        ran.stderr + &ran.stdout
    }

    /// Every entry is whole; after a sweep every file is an entry's, no room is set aside, and the budget holds.
    fn is_consistent(&self, what: &str) {
        self.cache("verify");
        self.cache("collect");
        let stats = self
            .program
            .run("SELECT coalesce(sum(parts), 0), coalesce(sum(bytes), 0) FROM system.cache_entries")
            .rows();
        let files = self.files();
        let bytes: u64 = files.iter().map(|path| std::fs::metadata(path).map_or(0, |metadata| metadata.len())).sum();
        assert_eq!(stats, format!("{},{bytes}", files.len()), "{what}: {files:?}");
        assert!(bytes <= 500 << 10, "{what}: {bytes}");
        let reserved = self.cache("stats");
        let reserved = reserved.trim().rsplit(',').nth(3).expect("a column");
        assert_eq!(reserved, "0", "{what}: nothing is in flight");
    }
}

#[test]
fn killed_while_evicting() {
    let home = Home::new();
    let seed = nectarine_tests::invariance::seed();
    println!("NECTARINE_SEED={seed}");
    let mut random = Random::new(seed);
    let script = |round: usize| (0..6).map(|number| statement(round * 6 + number)).collect::<Vec<_>>().join("; ");
    let begun = Instant::now();
    home.program.run(&script(1000)).rows();
    let time = begun.elapsed();
    // Full from the start: who dies later dies beside evictions, however early that is.
    (1001..1012).for_each(|round| _ = home.program.run(&script(round)).rows());
    let n_evicted = || home.program.run("SELECT count(*) FROM system.evictions").rows();
    assert_ne!(n_evicted(), "0");
    let mut n_killed = 0;
    for round in 0..rounds() {
        let victim = home.program.start(&script(round));
        let bystander = round.is_multiple_of(5).then(|| home.program.start(&script(round + 1)));
        let share = random.between(10, 110) as f64 / 100.0;
        std::thread::sleep(time.mul_f64(share).min(Duration::from_secs(30)));
        let ran = victim.kill();
        match ran.status.code() {
            Some(0) => {}
            Some(_) => panic!("round {round}: it failed by itself: {ran:?}"),
            None => n_killed += 1,
        }
        if let Some(bystander) = bystander {
            bystander.wait().rows();
        }
        // Not after every one of them: some of the dead are met by others that die.
        if round % 3 == 2 {
            home.is_consistent(&format!("round {round}"));
        }
    }
    home.is_consistent("at the end");
    println!("{n_killed} of {} were killed; {} results were evicted", rounds(), n_evicted());
    // And all is as it would be without.
    let all: Vec<_> = (0..24).map(statement).collect();
    let answers = |mode: &str| home.program.clone().set("reuse", mode).run(&all.join("; ")).rows();
    let expected = answers("off");
    for mode in ["on", "check", "on"] {
        assert!(answers(mode) == expected, "{mode} answers otherwise");
    }
}

/// `kill -9` at each step of an eviction, and of writing what is never published.
#[test]
fn dying_at_any_point_of_an_eviction_leaks_nothing() {
    // In other builds the points are empty.
    if !cfg!(debug_assertions) {
        return;
    }
    let home = Home::new();
    let points =
        ["part_half", "part_renamed", "entry_finished", "eviction_begun", "eviction_dropped", "eviction_deleted"];
    for (round, point) in points.into_iter().enumerate() {
        let mut command = home.program.command();
        // About twice the budget.
        let one = |number: usize| {
            let (k, rest) = (29 + number % 2, number / 2);
            format!("SELECT n, md5(CAST(n AS TEXT)) FROM t WHERE n % {k} = {rest} AND n > {round}")
        };
        let script: Vec<_> = (0..60).map(one).collect();
        command.env("NECTARINE_FAIL_POINT", point).args(["-c", &script.join("; ")]);
        let ran = finish(command, b"");
        assert_eq!(ran.status.signal(), Some(9), "{point} was not reached: {ran:?}");
        home.is_consistent(point);
    }
}

/// What runs first is published while the statement waits, and the statement may be cancelled meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_while_publishing() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT value AS id, value % 1000 AS k FROM generate_series(1, 20000)").await;
    // Room is set aside for more than this.
    db.ask("SELECT k, count(*), sum(id) FROM t GROUP BY k").await;
    let metadata = format!("sqlite://{}", db.home().join("metadata.db").display());
    let mut other = SqliteConnection::connect(&metadata).await.expect("it opens");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("a lock");
    db.ok("SET nectarine.statement_timeout = 2").await;
    let told = db
        .err(
            "WITH g AS (SELECT k, count(*) AS c, stddev(id * 0.37) AS m FROM t GROUP BY k) \
             SELECT a.k, b.m FROM g a JOIN g b ON a.m = b.m ORDER BY a.k LIMIT 2",
        )
        .await;
    assert!(told.contains("statement_timeout"), "{told}");
    let n_files = files_below(&db.home().join("derived")).len();
    assert!(n_files > 1, "it was about to be published");
    sqlx::query("ROLLBACK").execute(&mut other).await.expect("no lock");
    let n_parts = async || db.ok("SELECT coalesce(sum(parts), 0) FROM system.cache_entries").await;
    for _ in 0..100 {
        if files_below(&db.home().join("derived")).len().to_string() == n_parts().await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(files_below(&db.home().join("derived")).len().to_string(), n_parts().await);
    db.cache().collect().await.expect("it sweeps");
    assert_eq!(files_below(&db.home().join("derived")).len().to_string(), n_parts().await);
}

/// Derived data comes from computations only. And one home never takes another's.
#[tokio::test(flavor = "multi_thread")]
async fn by_hand_and_of_other_homes() {
    let shared = tempfile::tempdir().expect("a folder");
    let location = shared.path().display().to_string();
    let mut homes = vec![];
    for _ in 0..2 {
        let db = Db::with(&[("cache.location", &location)]).await;
        files::numbers(&db.path("t/a.parquet"), 0..20_000);
        db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
        db.ask(&statement(0)).await;
        homes.push(db);
    }
    let before = files_below(shared.path());
    assert!(before.len() >= 2);
    // Files beside the homes' own folders are none of their business; files inside are, when they are old.
    let old = std::time::SystemTime::now() - Duration::from_secs(7200);
    let outside = shared.path().join("precious.txt");
    let inside = before[0].with_file_name("0197c6a0-0000-7000-8000-000000000000.arrow");
    for path in [&outside, &inside] {
        std::fs::write(path, b"by hand").expect("written");
        files::set_modified(path, old);
    }
    let mut n_swept = 0;
    for db in &homes {
        let collected = db.cache().collect().await.expect("it sweeps");
        n_swept += collected.parts + collected.foreign;
        assert_eq!(collected.entries, 0);
    }
    assert_eq!(n_swept, 1);
    assert!(outside.exists() && !inside.exists());
    assert!(before.iter().all(|path| path.exists()));
    for db in &homes {
        assert_eq!(db.ask(&statement(0)).await.1.reused, Reused::Exact);
    }
}

/// A disk that is full of other things: queries answer, results give way.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let script = r#"
        run -c "CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 20000)"
        run --set cache.budget=8MB --set cache.fresh_seconds=0 -c "SELECT count(*) FROM (SELECT n, md5(CAST(n AS TEXT)) AS s FROM t ORDER BY n)" -c "SELECT n, md5(CAST(n AS TEXT)) FROM t ORDER BY n DESC LIMIT 1"
        echo filled
        dd if=/dev/zero of="$DISK/fill" bs=64k 2>/dev/null
        truncate -s -400K "$DISK/fill"
        for i in 1 2 3 4 5 6; do
            run --set cache.budget=8MB --set cache.fresh_seconds=0 -c "SELECT count(*), sum(n) FROM (SELECT n, md5(CAST(n AS TEXT)) AS s FROM t WHERE n > $i)" -c "SELECT count(*) FROM (SELECT * FROM (SELECT n, md5(CAST(n AS TEXT)) AS s FROM t WHERE n > $i ORDER BY s))"
        done
        rm "$DISK/fill"
        echo free
        run cache verify
    "#;
    let Some(output) = on_small_disk(24, script) else {
        println!("left out: this system has no small disks for tests");
        return;
    };
    assert!(!output.contains("panicked"), "{output}");
    assert_eq!(output.matches("exit 0").count(), 9, "{output}");
}
