//! Small caches whose shadows one can work out by hand.

use super::*;

fn levels(budget: u64) -> Levels {
    Levels::new(budget, 0.8)
}

fn gone(bytes: u64, evicted_at: i64, remade: Option<(i64, u64)>) -> Gone {
    Gone { bytes, evicted_at, remade }
}

/// Idle for `idle` seconds, of one second's work.
fn kept(key: u8, bytes: u64, idle: u64, saved_us: u64) -> Kept<u8> {
    let candidate = EvictionCandidate {
        key,
        bytes,
        idle_us: idle * 1_000_000,
        uses: 1,
        cost_us: 1_000_000,
        pinned: false,
        leased: false,
        inflation: 0.0,
    };
    Kept { candidate, saved_us }
}

#[test]
fn what_came_back_soon_would_have_been_there() {
    // Room for 80 more.
    let all = [
        gone(40, 10, Some((11, 500))),
        gone(40, 12, Some((30, 700))),
        gone(30, 20, None),
        gone(30, 25, Some((40, 900))),
        gone(70, 35, None),
    ];
    let shadow = twice(levels(100), &all);
    // The second had 40 + 30 + 30 on top by the time it was needed, the fourth 30 + 70.
    assert_eq!(shadow, Shadow { budget: 200, entries: 1, bytes: 40, us: 500 });
    assert_eq!(twice(levels(125), &all), Shadow { budget: 250, entries: 3, bytes: 110, us: 2_100 });
}

#[test]
fn nothing_came_back_or_nothing_went() {
    let none = Shadow { budget: 200, ..Shadow::default() };
    assert_eq!(twice(levels(100), &[]), none);
    assert_eq!(twice(levels(100), &[gone(10, 1, None)]), none);
    assert_eq!(twice(levels(100), &[gone(90, 1, Some((2, 9)))]), none, "larger than the room");
}

#[test]
fn clocks_that_jump_are_harmless() {
    // Made again before it went: the clock was set back. What went in between can not be told, itself did.
    let shadow = twice(levels(100), &[gone(40, 10, Some((5, 7))), gone(50, 3, None)]);
    assert_eq!((shadow.entries, shadow.us), (1, 7));
    let shadow =
        twice(levels(100), &[gone(40, i64::MAX, Some((i64::MIN, 7))), gone(50, i64::MIN, Some((i64::MAX, 1)))]);
    assert_eq!((shadow.entries, shadow.us), (2, 8));
    assert_eq!(twice(levels(u64::MAX), &[gone(u64::MAX, 1, None), gone(9, 1, Some((2, 3)))]).us, 3);
}

#[test]
fn half_loses_what_the_policy_values_least() {
    // Half has room for 40 at low water, and starts to evict at 47.
    let all =
        [kept(1, 10, 9, 100), kept(2, 10, 1, 200), kept(3, 10, 8, 400), kept(4, 10, 2, 800), kept(5, 10, 3, 1_600)];
    assert_eq!(half(levels(100), &all), Shadow { budget: 50, entries: 1, bytes: 10, us: 100 });
    assert_eq!(half(levels(100), &all[..4]), Shadow { budget: 50, ..Shadow::default() }, "all fit");
    assert_eq!(half::<u8>(levels(100), &[]), Shadow { budget: 50, ..Shadow::default() });
}

#[test]
fn half_never_had_what_is_too_large_and_keeps_what_is_pinned() {
    let large = kept(1, 15, 0, 100);
    assert_eq!(half(levels(100), &[large, kept(2, 10, 9, 7)]), Shadow { budget: 50, entries: 1, bytes: 15, us: 100 });
    let pinned = Kept { candidate: EvictionCandidate { pinned: true, ..large.candidate }, ..large };
    assert_eq!(half(levels(100), &[pinned, kept(2, 10, 9, 7)]), Shadow { budget: 50, ..Shadow::default() });
}
