//! [`Counting`]: mimalloc, the allocator that Nectarine ships with, which counts live bytes once it is asked to.
//!
//! Cost   one relaxed load per allocation while it does not count: timings are taken in that state.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use mimalloc::MiMalloc;

/// Switched on once, never off: memory that is freed was then counted when it was taken, but for what there was before.
static COUNTS: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicI64 = AtomicI64::new(0);

/// The global allocator.
pub(crate) struct Counting {
    inner: MiMalloc,
}

impl Counting {
    pub(crate) const fn new() -> Self {
        Self { inner: MiMalloc }
    }
}

/// Starts to count.
pub(crate) fn start_counting() {
    COUNTS.store(true, Ordering::SeqCst);
}

/// Bytes taken and not given back since counting began. What C libraries take for themselves is not in it.
pub(crate) fn live_bytes() -> i64 {
    LIVE.load(Ordering::SeqCst)
}

fn count(bytes: i64) {
    if COUNTS.load(Ordering::Relaxed) {
        LIVE.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: all work is mimalloc's; counting touches no memory that it manages.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { self.inner.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { self.inner.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promises are passed on.
        unsafe { self.inner.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { self.inner.realloc(pointer, layout, new_size) }
    }
}
