//! Small workloads whose savings one can work out by hand.

use super::super::workload::Key;
use super::*;

const SECOND_US: u64 = 1_000_000;
const DAY_US: u64 = 86_400 * SECOND_US;
/// What opening an entry takes.
const OPEN_US: u64 = 150;

/// A chain from the root down: programs, what each takes with all below it in seconds, and its kind; over `extents`.
fn job(day: u64, extents: (u32, u32), chain: &[(u32, u64, Kind)]) -> Job {
    let prefix = |(program, seconds, kind): &(u32, u64, Kind)| Prefix {
        key: Key { program: *program, stream: 0, first: extents.0, end: extents.1 },
        kind: *kind,
        cost_us: seconds * SECOND_US,
        bytes: 100,
    };
    let prefixes: Vec<_> = chain.iter().map(prefix).collect();
    Job { at_us: day * DAY_US, cost_us: prefixes[0].cost_us, prefixes }
}

fn outcome(jobs: Vec<Job>) -> Outcome {
    let workload = Workload { name: "by hand".to_string(), streams: vec![Stream::of([100; 30])], jobs };
    replay(&workload, EvictionPolicy::Nectar, u64::MAX)
}

#[test]
fn the_same_again_is_an_exact_hit() {
    let again = |day| job(day, (0, 1), &[(1, 10, Kind::Whole), (2, 8, Kind::Rows)]);
    let outcome = outcome(vec![again(0), again(1), again(2)]);
    assert_eq!((outcome.n_exact, outcome.n_hits(), outcome.cost_us), (2, 2, 30 * SECOND_US));
    assert_eq!(outcome.saved_us, 2 * (10 * SECOND_US - OPEN_US));
    assert_eq!(outcome.totals.bytes_max, 100, "only one parent asked for the filter: it is not kept");
}

#[test]
fn a_shared_prefix_is_kept_once_a_second_parent_asks() {
    let shares = |day, top| job(day, (0, 1), &[(top, 10, Kind::Whole), (2, 8, Kind::Rows)]);
    let outcome = outcome(vec![shares(0, 11), shares(1, 12), shares(2, 13)]);
    assert_eq!((outcome.n_prefix, outcome.n_hits()), (1, 1));
    assert_eq!(outcome.saved_us, 8 * SECOND_US - OPEN_US);
    // Groups are kept at first sight.
    let groups = |day, top| job(day, (0, 1), &[(top, 10, Kind::Whole), (2, 8, Kind::Groups)]);
    assert_eq!(self::outcome(vec![groups(0, 11), groups(1, 12), groups(2, 13)]).n_prefix, 2);
}

#[test]
fn an_input_that_grows_costs_the_new_extents() {
    let grown = |day: u32| job(u64::from(day), (0, day), &[(1, 10 * u64::from(day), Kind::Groups)]);
    let outcome = outcome(vec![grown(1), grown(2), grown(3)]);
    assert_eq!(outcome.n_segment, 2);
    assert_eq!(outcome.saved_us, 10 * SECOND_US + 20 * SECOND_US - 2 * OPEN_US);
}

#[test]
fn a_window_that_slides_costs_the_new_extents() {
    let week = |day: u32| {
        let chain = [(1, 80, Kind::Whole), (2, 70, Kind::WindowGroups)];
        job(u64::from(day), (day, day + 7), &chain)
    };
    let outcome = outcome(vec![week(0), week(1), week(2)]);
    assert_eq!(outcome.n_segment, 2);
    assert!(outcome.saved_us > 119 * SECOND_US && outcome.saved_us < 120 * SECOND_US, "{outcome:?}");
    // Rows of the whole window are no use to the next one.
    let rows = |day: u32| job(u64::from(day), (day, day + 7), &[(1, 70, Kind::Rows)]);
    assert_eq!(self::outcome(vec![rows(0), rows(1), rows(2)]).n_hits(), 0);
}
