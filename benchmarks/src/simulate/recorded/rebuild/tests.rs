//! Few records, and the jobs that they are of.

use super::*;

fn query(id: &str, second: i64, elapsed_us: u64, saved_us: u64, extents: (u64, u64)) -> RecordedQuery {
    let (extents, extents_reused) = extents;
    RecordedQuery { id: id.to_string(), started_us: second * 1_000_000, elapsed_us, saved_us, extents, extents_reused }
}

/// `outcome` is hit, miss or segment.
fn lookup(query: &str, prefix: &str, program: &str, outcome: &str, node: &str) -> RecordedLookup {
    RecordedLookup {
        query: query.to_string(),
        prefix: prefix.to_string(),
        program: program.to_string(),
        node: node.to_string(),
        is_hit: outcome != "miss",
        is_segment: outcome == "segment",
    }
}

fn entry(prefix: &str, cost_us: u64, extents: u64) -> RecordedEntry {
    RecordedEntry { prefix: prefix.to_string(), bytes: 10, cost_us, extents }
}

fn extents(job: &Job) -> Vec<(u32, u32, u32)> {
    job.prefixes.iter().map(|prefix| (prefix.key.program, prefix.key.first, prefix.key.end)).collect()
}

#[test]
fn a_hit_brings_back_what_lies_below_it() {
    let records = Records {
        queries: vec![
            query("b", 20, 5, 995, (3, 3)),
            query("a", 10, 1_000, 0, (3, 0)),
            query("c", 30, 7, 0, (3, 0)),
            query("nothing asked", 40, 7, 0, (0, 0)),
        ],
        lookups: vec![
            lookup("a", "filter", "F", "miss", "FilterExec: x > 1"),
            lookup("a", "groups", "G", "miss", "AggregateExec: mode=FinalPartitioned"),
            lookup("a", "never kept", "S", "miss", "SortExec: x"),
            lookup("b", "groups", "G", "hit", "the whole answer"),
            lookup("c", "window", "W", "miss", "WindowAggExec: x"),
        ],
        entries: vec![entry("filter", 600, 3), entry("groups", 990, 3), entry("groups", 900, 0), entry("window", 7, 3)],
    };
    let Workload { jobs, streams, .. } = rebuild("home".to_string(), records);
    assert_eq!(jobs.iter().map(|job| job.at_us / 1_000_000).collect::<Vec<_>>(), [0, 10, 20]);
    assert_eq!(jobs.iter().map(|job| job.cost_us).collect::<Vec<_>>(), [1_000, 1_000, 7]);
    let keys = |job: &Job| job.prefixes.iter().map(|prefix| prefix.key).collect::<Vec<_>>();
    assert_eq!(keys(&jobs[0]), keys(&jobs[1]), "without the hit it would have asked for the same");
    assert_eq!(jobs[0].prefixes, jobs[1].prefixes, "also where its plan was not made");
    let first: Vec<_> = jobs[0].prefixes.iter().map(|prefix| (prefix.cost_us, prefix.kind)).collect();
    assert_eq!(first, [(990, Kind::Groups), (600, Kind::Rows)], "the root first");
    assert_eq!(jobs[2].prefixes[0].kind, Kind::Whole);
    assert_eq!(streams.len(), 3);
}

#[test]
fn inputs_that_grow_and_windows_that_slide() {
    let asks =
        |query: &str, outcome: &str| lookup(query, &format!("of {query}"), "G", outcome, "AggregateExec: mode=Partial");
    let records = Records {
        queries: vec![
            query("a", 1, 100, 0, (3, 0)),
            query("b", 2, 100, 0, (4, 3)),
            query("c", 3, 100, 0, (4, 3)),
            query("d", 4, 100, 0, (5, 0)),
        ],
        lookups: vec![asks("a", "miss"), asks("b", "segment"), asks("c", "segment"), asks("d", "miss")],
        entries: vec![entry("of a", 9, 3), entry("of b", 9, 4), entry("of c", 9, 0), entry("of d", 9, 5)],
    };
    let workload = rebuild("home".to_string(), records);
    assert_eq!(extents(&workload.jobs[0]), [(0, 0, 3)]);
    assert_eq!(extents(&workload.jobs[1]), [(0, 0, 4)], "one more");
    assert_eq!(extents(&workload.jobs[2]), [(0, 1, 5)], "one more, one less");
    assert_eq!(extents(&workload.jobs[3]), [(0, 5, 10)], "nobody knows what these have to do with those before");
    assert_eq!(workload.streams[0].bytes(0, 99), 10);
}
