//! What many files cost. `NECTARINE_COLLECT_FILES=1000000 cargo test --release --workspace --lib collector::tests::scale --
//! --nocapture` is the size that must hold: 60 s in the background, and queries beside it slow down by 5 % at most. The normal
//! suite runs a small one, whose times say nothing.

use std::time::{Duration, Instant};

use nectarine_catalog::{CacheEntry, EntryKind, EntryPart, ProgramRecord};

use super::*;
use crate::Engine;

const FULL_SIZE: u64 = 1_000_000;

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
    let timed = async |n: usize| {
        let mut times = vec![];
        for _ in 0..n {
            let started = Instant::now();
            run(query).await;
            times.push(started.elapsed());
        }
        times.sort();
        times[n / 2]
    };
    timed(5).await;
    let alone = timed(30).await;
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
        let started = Instant::now();
        run(query).await;
        beside.push(started.elapsed());
    }
    let (collected, elapsed) = collecting.await.expect("it ends");
    beside.sort();
    let beside = beside.get(beside.len() / 2).copied().unwrap_or_default();
    println!("swept in {elapsed:?}: {collected:?}");
    println!("a query takes {alone:?} alone and {beside:?} beside it");
    assert_eq!(collected.parts as u64, n_files / 100);
    assert_eq!(collected.entries, 0);
    if n_files >= FULL_SIZE {
        assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
    }
    engine.shutdown().await;
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
