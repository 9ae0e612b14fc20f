//! What this ran on, and what this process has used of it. Linux tells; elsewhere some answers are missing.

use std::mem::MaybeUninit;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::temporal_conversions::date32_to_datetime;

const SECONDS_PER_DAY: u64 = 86_400;

pub(crate) fn n_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Memory of the machine.
pub(crate) fn memory_bytes() -> Option<u64> {
    kilobytes_in("/proc/meminfo", "MemTotal:")
}

/// Memory of this process that is in the machine's.
pub(crate) fn resident_bytes() -> Option<u64> {
    kilobytes_in("/proc/self/status", "VmRSS:")
}

/// Processor time of all threads of this process so far.
pub(crate) fn cpu_time() -> Option<Duration> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the call only writes to where it is told, and what it wrote is read only if it says that it did.
    let time = unsafe {
        let told = libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, time.as_mut_ptr());
        (told == 0).then(|| time.assume_init())?
    };
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

pub(crate) fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_string(), |(_, name)| name.trim().to_string())
}

/// Today, as 2026-01-31.
pub(crate) fn date() -> String {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / SECONDS_PER_DAY;
    date32_to_datetime(days as i32).map_or_else(String::new, |time| time.date().to_string())
}

fn kilobytes_in(path: &str, word: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
