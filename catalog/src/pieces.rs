//! The same small work on many things, shared by a few threads: [`in_pieces`] in no order, [`in_order`] with results in order.
//!
//! Halves would not do: a thread that is held up would hold up all the rest.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Below this a second thread costs more than it brings.
const PARALLEL_ITEMS: usize = 1000;

/// How many a thread takes at a time.
const PIECE: usize = 256;

/// More threads would mostly wait for each other.
const MAX_THREADS: usize = 4;

/// Does `work` on all of the `n_items` items, in no order; the first error that a thread met, if any.
pub(crate) fn in_pieces<T: Send, E: Send>(
    items: impl Iterator<Item = T> + Send,
    n_items: usize,
    work: impl Fn(T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    in_pieces_meanwhile(items, n_items, work, || Ok(()))
}

/// The same, while this thread does something else `first`. If that fails nobody goes on with the work.
pub(crate) fn in_pieces_meanwhile<T: Send, E: Send>(
    items: impl Iterator<Item = T> + Send,
    n_items: usize,
    work: impl Fn(T) -> Result<(), E> + Sync,
    first: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let items = Mutex::new(items);
    let stopped = AtomicBool::new(false);
    let take_pieces = || {
        while !stopped.load(Ordering::Relaxed) {
            let piece: Vec<T> = items.lock().by_ref().take(PIECE).collect();
            if piece.is_empty() {
                break;
            }
            piece.into_iter().try_for_each(&work)?;
        }
        Ok(())
    };
    if n_items < PARALLEL_ITEMS {
        first()?;
        return take_pieces();
    }
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    std::thread::scope(|scope| {
        let builder = || std::thread::Builder::new().name("nectarine-files".to_owned());
        // Without another thread this one does it all.
        let others: Vec<_> = (1..n_threads).filter_map(|_| builder().spawn_scoped(scope, take_pieces).ok()).collect();
        let mine = first().inspect_err(|_| stopped.store(true, Ordering::Relaxed)).and_then(|()| take_pieces());
        let theirs = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        theirs.fold(mine, Result::and)
    })
}

/// What `work` makes of `items`, a part of them at a time: the results in order. Few items are one part.
pub fn in_order<T: Sync, R: Send>(items: &[T], work: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    if items.len() < PARALLEL_ITEMS {
        return vec![work(items)];
    }
    let parts: Vec<&[T]> = items.chunks(PARALLEL_ITEMS / 2).collect();
    let mut results: Vec<Option<R>> = Vec::new();
    results.resize_with(parts.len(), || None);
    let todo = Mutex::new(parts.into_iter().zip(&mut results));
    let take_parts = || {
        while let Some((part, result)) = next(&todo) {
            *result = Some(work(part));
        }
    };
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    std::thread::scope(|scope| {
        for _ in 1..n_threads {
            // Without another thread this one does it all.
            let _ = std::thread::Builder::new().name("nectarine-plan".to_owned()).spawn_scoped(scope, take_parts);
        }
        take_parts();
    });
    results.into_iter().flatten().collect()
}

/// The lock is not held while the work is done.
fn next<I: Iterator>(items: &Mutex<I>) -> Option<I::Item> {
    items.lock().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn each_once_and_errors_are_told() {
        for n in [0, 1, PIECE + 1, 10 * PARALLEL_ITEMS + 1] {
            let mut seen = vec![0; n];
            in_pieces(seen.iter_mut(), n, |seen| {
                *seen += 1;
                Ok::<(), ()>(())
            })
            .unwrap();
            assert!(seen.iter().all(|seen| *seen == 1), "{n}");
        }
        let n_done = AtomicUsize::new(0);
        let failed = in_pieces(0..5000, 5000, |item| {
            n_done.fetch_add(1, Ordering::Relaxed);
            if item == 4321 { Err(item) } else { Ok(()) }
        });
        assert_eq!(failed, Err(4321));
        assert!(n_done.into_inner() > 4000);
    }

    #[test]
    fn what_is_done_first_may_stop_the_rest() {
        for n in [10, 10 * PARALLEL_ITEMS] {
            let n_done = AtomicUsize::new(0);
            let count = |_| {
                n_done.fetch_add(1, Ordering::Relaxed);
                Ok(())
            };
            assert_eq!(in_pieces_meanwhile(0..n, n, count, || Ok::<(), &str>(())), Ok(()));
            assert_eq!(n_done.load(Ordering::Relaxed), n);
            assert_eq!(in_pieces_meanwhile(0..n, n, count, || Err("other names")), Err("other names"));
        }
    }

    #[test]
    fn results_are_in_order() {
        for n in [0, 1, PARALLEL_ITEMS - 1, PARALLEL_ITEMS, 10 * PARALLEL_ITEMS + 7] {
            let items: Vec<usize> = (0..n).collect();
            assert_eq!(in_order(&items, <[usize]>::to_vec).concat(), items, "{n}");
        }
    }
}
