//! [`in_pieces`]: the same small work on many things, taken piece by piece by a few threads.
//!
//! Halves would not do: a thread that is held up would hold up all the rest.

use std::panic::resume_unwind;

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
    let items = Mutex::new(items);
    let take_pieces = || {
        loop {
            let piece: Vec<T> = items.lock().by_ref().take(PIECE).collect();
            if piece.is_empty() {
                return Ok(());
            }
            piece.into_iter().try_for_each(&work)?;
        }
    };
    if n_items < PARALLEL_ITEMS {
        return take_pieces();
    }
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    std::thread::scope(|scope| {
        let builder = || std::thread::Builder::new().name("nectarine-files".to_owned());
        // Without another thread this one does it all.
        let others: Vec<_> = (1..n_threads).filter_map(|_| builder().spawn_scoped(scope, take_pieces).ok()).collect();
        let mine = take_pieces();
        let theirs = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        theirs.fold(mine, Result::and)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
}
