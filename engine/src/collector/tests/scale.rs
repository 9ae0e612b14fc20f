//! What many files cost. `NECTARINE_COLLECT_FILES=1000000 cargo test --release --workspace --lib collector::tests::scale --
//! --nocapture` is the size that must hold: 60 s in the background, and queries beside it slow down by 5 % at most. The normal
//! suite runs a small one, whose times say nothing.
//!
//! Whatever else the machine does must not decide: queries are timed before, beside and after each of several sweeps, each sweep
//! is compared with what lies around it, and the sweep in the middle counts.

use std::time::{Duration, Instant};

use nectarine_catalog::{CacheEntry, EntryKind, EntryPart, ProgramRecord};

use super::*;
use crate::Engine;

const FULL_SIZE: u64 = 1_000_000;
/// Sweeps of a full run.
const ROUNDS: usize = 7;
/// Queries before and after each.
const QUERIES: usize = 40;
/// How much longer a query may take beside a sweep.
const SLOWER_MAX: f64 = 1.05;

/// One entry with one file each; one file in a hundred is nobody's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scale() {
    let n_files: u64 = std::env::var("NECTARINE_COLLECT_FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(5_000);
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("home");
    {
        let home = Home::open(&root).expect("it opens");
        let collector = collector(&home).await;
        let started = Instant::now();
        fill(&home, &collector, n_files).await;
        println!("{n_files} files and entries made in {:?}", started.elapsed());
        collector.metadata.close().await;
    }
    let engine = Engine::builder().home(&root).open().await.expect("it opens");
    let session = engine.session();
    let run = |sql: &'static str| {
        let session = session.clone();
        async move { session.execute(sql).await.expect("it runs").collect().await.expect("rows") }
    };
    run("CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 300000)").await;
    run("SET nectarine.reuse = 'read_only'").await;
    let query = "SELECT n % 1000 AS k, count(*), sum(n * 3) FROM t WHERE n % 7 <> random() GROUP BY k";
    let one = async || {
        let started = Instant::now();
        run(query).await;
        started.elapsed().as_secs_f64()
    };
    let alone = async || {
        let mut times = vec![];
        for _ in 0..QUERIES {
            times.push(one().await);
        }
        times
    };
    alone().await;
    let is_full = n_files >= FULL_SIZE;
    let (mut before, mut slower) = (alone().await, vec![]);
    for round in 0..if is_full { ROUNDS } else { 1 } {
        let collecting = tokio::spawn({
            let reuse = engine.cache();
            async move {
                let started = Instant::now();
                let collected = reuse.collect_gently().await.expect("swept");
                (collected, started.elapsed())
            }
        });
        let mut beside = vec![];
        while !collecting.is_finished() {
            beside.push(one().await);
        }
        let (collected, elapsed) = collecting.await.expect("it ends");
        let after = alone().await;
        let around = median([before, after.clone()].concat());
        let beside = median(beside);
        println!("swept in {elapsed:?}: {collected:?}");
        println!("a query takes {around:.4} s alone and {beside:.4} s beside it");
        assert_eq!(collected.parts as u64, if round == 0 { n_files / 100 } else { 0 });
        assert_eq!(collected.entries, 0);
        if is_full {
            assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
        }
        slower.push(beside / around);
        before = after;
    }
    if is_full {
        println!("beside each sweep, times alone: {slower:.3?}");
        let slower = median(slower);
        assert!(slower <= SLOWER_MAX, "queries take {slower:.3} times as long beside a sweep");
    }
    engine.shutdown().await;
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or_default()
}

async fn fill(home: &Home, collector: &Collector, n_files: u64) {
    const BATCH: u64 = 10_000;
    for first in (0..n_files).step_by(BATCH as usize) {
        let mut entries = vec![];
        for number in first..n_files.min(first + BATCH) {
            let (key, bytes) = (key(number), key(number).as_bytes().to_owned());
            let id = uuid::Builder::from_custom_bytes(bytes[..16].try_into().expect("sixteen bytes")).into_uuid();
            let location = format!("{:02x}/{:02x}/{id}.arrow", bytes[0], bytes[1]);
            let path = home.derived().join(&location);
            if fs::write(&path, b"x").is_err() {
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(&path, b"x").expect("written");
            }
            if number % 100 == 0 {
                continue;
            }
            let entry = CacheEntry {
                key,
                program: self::key(number / 4),
                kind: EntryKind::Rows,
                parts: vec![EntryPart { location, bytes: 1, rows: 1, checksum: key }],
                rows: 1,
                bytes: 1,
                cost_us: 5000,
                inputs: vec![(number / 1000..number / 1000 + 20).map(self::key).collect()],
                description: "SELECT k, sum(n) FROM t GROUP BY k".to_owned(),
                created_at: 1_700_000_000_000_000,
            };
            let program = ProgramRecord {
                program: entry.program,
                encoding: Arc::from(vec![7; 300]),
                description: entry.description.clone(),
            };
            entries.push((entry, program));
        }
        collector.cache.add_all(entries).await.expect("added");
    }
}
