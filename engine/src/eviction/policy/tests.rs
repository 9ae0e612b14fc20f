//! By hand, and for any statistics.

use proptest::prelude::*;

use super::EvictionPolicy::{GreedyDualSize, Lru, Nectar};
use super::*;

const ALL: [EvictionPolicy; 3] = [Nectar, Lru, GreedyDualSize];
const SECOND: u64 = 1_000_000;

/// Ten kilobytes that took a second to make, were used once, a minute ago.
fn one(key: u32) -> EvictionCandidate<u32> {
    EvictionCandidate {
        key,
        bytes: 10_000,
        idle_us: 60 * SECOND,
        uses: 1,
        cost_us: SECOND,
        pinned: false,
        leased: false,
        inflation: 0.0,
    }
}

fn order(policy: EvictionPolicy, candidates: &[EvictionCandidate<u32>]) -> Vec<u32> {
    evict(policy, candidates, u64::MAX).keys
}

#[test]
fn nectar_weighs_room_and_time_against_use_and_cost() {
    let large = EvictionCandidate { bytes: 100_000, ..one(1) };
    let idle = EvictionCandidate { idle_us: 300 * SECOND, ..one(2) };
    let plain = one(3);
    let used = EvictionCandidate { uses: 9, ..one(4) };
    let dear = EvictionCandidate { cost_us: 100 * SECOND, ..one(5) };
    assert_eq!(order(Nectar, &[dear, used, plain, idle, large]), [1, 2, 3, 4, 5]);
    // An hour's work of a few bytes stays, though nobody used it yet; a large and cheap result goes, though somebody did.
    let unused = EvictionCandidate { uses: 0, cost_us: 3600 * SECOND, bytes: 1_000, ..one(6) };
    let cheap = EvictionCandidate { uses: 3, cost_us: SECOND / 10, bytes: 100 << 20, ..one(7) };
    assert_eq!(order(Nectar, &[unused, cheap]), [7, 6]);
}

#[test]
fn the_others_weigh_less() {
    let old = EvictionCandidate { idle_us: 90 * SECOND, uses: 100, cost_us: 3600 * SECOND, ..one(1) };
    assert_eq!(order(Lru, &[one(2), old]), [1, 2]);
    assert_eq!(order(Nectar, &[one(2), old]), [2, 1]);
    // 100 us a byte against 1: the cheaper one goes first, however long the other was idle.
    let dear = EvictionCandidate { cost_us: 1_000_000, idle_us: u64::MAX, ..one(1) };
    let cheap = EvictionCandidate { cost_us: 10_000, ..one(2) };
    assert_eq!(order(GreedyDualSize, &[dear, cheap]), [2, 1]);
    // Used after so much went, the cheap one stays longer.
    let cheap = EvictionCandidate { inflation: 100.0, ..cheap };
    assert_eq!(order(GreedyDualSize, &[dear, cheap]), [1, 2]);
    let gone = evict(GreedyDualSize, &[EvictionCandidate { inflation: 0.0, ..cheap }, dear], 1);
    assert_eq!((gone.keys, gone.inflation), (vec![2], 1.0));
}

#[test]
fn of_what_takes_no_room_there_are_so_many() {
    let empty = |key| EvictionCandidate { bytes: 0, ..one(key) };
    let idle = EvictionCandidate { idle_us: 300 * SECOND, ..empty(4) };
    let all = [empty(1), one(2), empty(3), idle, EvictionCandidate { uses: 9, ..empty(5) }];
    assert!(too_many_empty(&all, 4).is_empty());
    assert_eq!(too_many_empty(&all, 3), [4]);
    assert_eq!(too_many_empty(&all, 1), [4, 1, 3]);
    let pinned = EvictionCandidate { pinned: true, ..idle };
    assert_eq!(too_many_empty(&[pinned, empty(1), EvictionCandidate { leased: true, ..empty(6) }], 0), [1]);
}

#[test]
fn no_more_goes_than_is_needed_and_what_stays_stays() {
    let pinned = EvictionCandidate { pinned: true, bytes: 1 << 40, ..one(1) };
    let leased = EvictionCandidate { leased: true, bytes: 1 << 40, ..one(2) };
    let empty = EvictionCandidate { bytes: 0, idle_us: u64::MAX, ..one(3) };
    let all = [pinned, leased, empty, one(4), one(5), one(6)];
    for policy in ALL {
        let exact = evict(policy, &all, 20_000);
        assert_eq!((exact.keys, exact.bytes), (vec![4, 5], 20_000), "{policy:?}");
        assert_eq!(evict(policy, &all, 20_001).keys, [4, 5, 6], "{policy:?}");
        let all_there_is = evict(policy, &all, u64::MAX);
        assert_eq!((all_there_is.keys, all_there_is.bytes), (vec![4, 5, 6], 30_000), "{policy:?}");
        assert_eq!(evict(policy, &all, 0).keys, [0; 0], "{policy:?}");
        assert_eq!(evict::<u32>(policy, &[], 1).keys, [0; 0], "{policy:?}");
    }
}

#[test]
fn a_clock_that_stands_still_leaves_size_against_cost() {
    let large = EvictionCandidate { idle_us: 0, bytes: 20_000, ..one(2) };
    let small = EvictionCandidate { idle_us: 0, ..one(1) };
    assert_eq!(order(Nectar, &[small, large]), [2, 1]);
}

fn any_candidate() -> impl Strategy<Value = EvictionCandidate<u32>> {
    let numbers = || prop_oneof![Just(0), Just(u64::MAX), 0..1000_u64, any::<u64>()];
    let flags = (prop::bool::weighted(0.1), prop::bool::weighted(0.2));
    (any::<u32>(), numbers(), numbers(), numbers(), numbers(), flags, 0.0..1e12).prop_map(
        |(key, bytes, idle_us, uses, cost_us, (pinned, leased), inflation)| EvictionCandidate {
            key,
            bytes,
            idle_us,
            uses,
            cost_us,
            pinned,
            leased,
            inflation,
        },
    )
}

fn any_candidates() -> impl Strategy<Value = Vec<EvictionCandidate<u32>>> {
    prop::collection::vec(any_candidate(), 0..40).prop_map(|mut all| {
        (0..).zip(&mut all).for_each(|(key, one)| one.key = key);
        all
    })
}

proptest! {
    #[test]
    fn enough_goes_and_nothing_that_must_stay(
        all in any_candidates(),
        wanted in prop_oneof![0..5000_u64, any::<u64>()],
        policy in prop::sample::select(&ALL[..]),
    ) {
        let gone = evict(policy, &all, wanted);
        let of = |key: &u32| all.iter().find(|one| one.key == *key).unwrap();
        prop_assert!(gone.keys.iter().all(|key| !of(key).pinned && !of(key).leased && of(key).bytes > 0));
        let unique: std::collections::BTreeSet<_> = gone.keys.iter().collect();
        prop_assert_eq!(unique.len(), gone.keys.len());
        let freed = gone.keys.iter().fold(0_u64, |sum, key| sum.saturating_add(of(key).bytes));
        prop_assert_eq!(freed, gone.bytes);
        let may_go = all.iter().filter(|one| !one.pinned && !one.leased && one.bytes > 0).count();
        prop_assert!(freed >= wanted || gone.keys.len() == may_go);
        // The last one was needed.
        if let Some((_, before)) = gone.keys.split_last() {
            prop_assert!(before.iter().fold(0_u64, |sum, key| sum.saturating_add(of(key).bytes)) < wanted);
        }
        // What stays, though it may go, is worth more than what went.
        let last = gone.keys.last().map(|key| rank(policy, of(key)));
        let stays = all.iter().filter(|one| !one.pinned && !one.leased && one.bytes > 0 && !unique.contains(&one.key));
        prop_assert!(last.is_none_or(|last| stays.clone().all(|one| rank(policy, one) <= last)));
    }

    /// The order in which entries are listed means nothing, and needing more only adds to the end.
    #[test]
    fn it_is_a_function_of_the_set(
        all in any_candidates(),
        policy in prop::sample::select(&ALL[..]),
        (less, more) in (any::<u64>(), any::<u64>()),
    ) {
        let mut turned = all.clone();
        turned.reverse();
        prop_assert_eq!(evict(policy, &all, more), evict(policy, &turned, more));
        let (less, more) = (less.min(more), less.max(more));
        let (few, many) = (evict(policy, &all, less), evict(policy, &all, more));
        prop_assert!(many.keys.starts_with(&few.keys));
        prop_assert!(many.inflation >= few.inflation);
    }

    /// More of what speaks for an entry never sends it away sooner.
    #[test]
    fn each_number_pulls_its_way(one in any_candidate(), more in 0..1000_u64) {
        for policy in ALL {
            let before = rank(policy, &one);
            let mut used = one;
            used.uses = one.uses.saturating_add(more);
            let mut dear = one;
            dear.cost_us = one.cost_us.saturating_add(more);
            let mut idle = one;
            idle.idle_us = one.idle_us.saturating_add(more);
            let mut large = one;
            large.bytes = one.bytes.saturating_add(more);
            prop_assert!(rank(policy, &used) <= before && rank(policy, &dear) <= before);
            prop_assert!(rank(policy, &idle) >= before && rank(policy, &large) >= before);
        }
    }
}
