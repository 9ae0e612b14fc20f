//! What many entries cost. `NECTARINE_CACHE_ENTRIES=1000000 cargo test --release -p nectarine-catalog scale -- --nocapture`
//! is the size that must hold; the normal suite runs a small one. Most times are judged at full size only: a bound on small
//! ones would say more of the machine than of the index.

use std::time::{Duration, Instant};

use super::{key, on};
use crate::cache::{CacheEntry, EntryKind, EntryPart, ProgramRecord};

const FULL_SIZE: u64 = 1_000_000;

/// Entries of mostly different programs over one snapshot of a table, as queries with changing literals leave them.
fn realistic(number: u64) -> (CacheEntry, ProgramRecord) {
    let program = key(number / 4 * 4 + 1_000_000_000);
    let entry = CacheEntry {
        key: key(number),
        program,
        kind: EntryKind::Rows,
        parts: vec![EntryPart { location: format!("{}.arrow", key(number)), bytes: 4096, rows: 10, checksum: program }],
        rows: 10,
        bytes: 4096,
        cost_us: 5000,
        inputs: vec![(number / 1000..number / 1000 + 20).map(key).collect()],
        description: "Aggregate: groupBy=[[l_returnflag]], aggr=[[sum(l_quantity)]]".to_owned(),
        created_at: 1_700_000_000_000_000 + number as i64,
    };
    let description = entry.description.clone();
    (entry, ProgramRecord { program, encoding: vec![7; 300].into(), description })
}

#[tokio::test]
async fn scale() {
    let n_entries = std::env::var("NECTARINE_CACHE_ENTRIES").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let judged = n_entries >= FULL_SIZE;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metadata.db");

    let cache = on(&path).await;
    let start = Instant::now();
    for first in (0..n_entries).step_by(10_000) {
        let added = cache.add_all((first..n_entries.min(first + 10_000)).map(realistic).collect()).await;
        assert!(added.expect("added").iter().all(|added| *added));
    }
    report("add in large transactions, each", start.elapsed() / n_entries as u32);
    cache.inner.store.close().await;
    drop(cache);

    let (before, computed) = (resident_bytes(), computed());
    let start = Instant::now();
    let cache = on(&path).await;
    let opening = start.elapsed();
    report("open the store and the cache", opening);
    report("  time computing meanwhile, all threads", self::computed().saturating_sub(computed));
    assert_eq!(cache.totals().entries, n_entries);
    let resident = (resident_bytes().saturating_sub(before)) / n_entries;
    let held = cache.inner.index.read().heap_bytes() as u64 / n_entries;
    eprintln!("memory an entry: {held} bytes held, {resident} bytes more resident than before");
    assert!(held < 300, "{held} bytes an entry");
    if judged {
        assert!(opening < Duration::from_secs(3), "{opening:?}");
        assert!(resident < 1000, "{resident} bytes an entry");
    }

    // Forty prefixes, half of them hits all over the index.
    let mut times = vec![];
    for query in 0..500 {
        let prefix = |at: u64| (query * 7919 + at * 104_729) % n_entries + at % 2 * (FULL_SIZE * 1000);
        let prefixes: Vec<_> = (0..40).map(|at| (key(prefix(at)), realistic(prefix(at)).0.program)).collect();
        let start = Instant::now();
        let answers = cache.inquire(&prefixes, true);
        times.push(start.elapsed());
        assert_eq!(answers.iter().filter(|answer| answer.hit.is_some()).count(), 20);
    }
    times.sort();
    report("look up 40 prefixes, median", times[250]);
    report("look up 40 prefixes, slowest of 500", times[499]);
    assert!(times[250] < Duration::from_millis(2), "{:?}", times[250]);

    let start = Instant::now();
    for _ in 0..1000 {
        cache.refresh().await.expect("refreshed");
    }
    report("refresh when nothing changed", start.elapsed() / 1000);
    let start = Instant::now();
    for _ in 0..1000 {
        cache.inner.store.catalog_version().await.expect("a version");
    }
    report("catalog_version, to compare", start.elapsed() / 1000);

    let other = on(&path).await;
    let start = Instant::now();
    for number in n_entries..n_entries + 200 {
        let (entry, program) = realistic(number);
        assert!(other.add(entry, program).await.expect("added"));
    }
    report("add one entry", start.elapsed() / 200);
    let start = Instant::now();
    cache.refresh().await.expect("refreshed");
    report("refresh after 200 adds", start.elapsed());
    assert_eq!(cache.totals().entries, n_entries + 200);

    let start = Instant::now();
    for number in 0..200 {
        other.entry(&key(number * 37 % n_entries)).await.expect("an answer").expect("an entry");
    }
    report("read a whole entry", start.elapsed() / 200);
    let start = Instant::now();
    for number in 0..1000 {
        cache.used(&key(number), 100);
    }
    cache.flush().await.expect("written");
    report("flush 1,000 uses and 20,000 look-ups", start.elapsed());
    let start = Instant::now();
    let removed = (0..10_000).map(key).collect::<Vec<_>>();
    let files = cache.remove(&removed).await.expect("removed");
    report("remove 10,000 entries", start.elapsed());
    assert_eq!(files.len(), 10_000);
    let start = Instant::now();
    other.refresh().await.expect("refreshed");
    report("refresh after 10,000 drops", start.elapsed());
    assert_eq!(other.totals(), cache.totals());
    let bytes = std::fs::metadata(&path).expect("a file").len();
    eprintln!("metadata.db: {} bytes an entry", bytes / n_entries);
}

fn report(what: &str, time: Duration) {
    eprintln!("{what}: {time:?}");
}

/// Time that this process computed, by the kernel's word and to its hundredth of a second: what counts on a busy machine.
fn computed() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Memory of this process that is in use, by the kernel's word; 0 where it does not tell.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4096
}
