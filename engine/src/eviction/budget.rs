//! [`Budget`]: what the settings come to on the disk that holds derived data.
//!
//! Never more than free space allows: derived data may grow by half of what is free. When others fill the disk, the budget
//! shrinks to what is there, then eviction makes room, and so on: derived data gives way.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Levels;
use crate::machine::{self, Disk};
use crate::settings::{NectarineOptions, parse_size};
use crate::{EngineError, ErrorKind, Result};

/// What an object store counts as when the budget is a share of the disk.
const STORE_BYTES: u64 = 1 << 40;
/// How long a look at the disk is believed.
const LOOK: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(crate) struct Budget {
    /// By the settings, on this disk.
    bytes: u64,
    low_share: f64,
    /// The folder whose disk has to have the space; `None` for an object store.
    folder: Option<PathBuf>,
    looked: Mutex<Option<(Instant, Disk)>>,
}

impl Budget {
    /// For derived data in `folder`, or in an object store.
    pub(crate) fn new(options: &NectarineOptions, folder: Option<&Path>) -> Result<Self> {
        let whole = folder.and_then(machine::disk).map_or(STORE_BYTES, |disk| disk.total);
        let bytes = parse_size("nectarine.cache.budget", &options.cache_budget, whole)?;
        let low_share = parse_share(&options.cache_low_water)?;
        Ok(Self { bytes, low_share, folder: folder.map(Path::to_path_buf), looked: Mutex::default() })
    }

    /// The marks as of now, if entries take `used` bytes.
    pub(crate) fn levels(&self, used: u64) -> Levels {
        let allowed = self.disk().map_or(u64::MAX, |disk| used.saturating_add(disk.free / 2));
        Levels::new(self.bytes.min(allowed), self.low_share)
    }

    /// Makes the next question look at the disk again.
    pub(crate) fn look_again(&self) {
        *self.looked.lock() = None;
    }

    fn disk(&self) -> Option<Disk> {
        let folder = self.folder.as_deref()?;
        let mut looked = self.looked.lock();
        if let Some((at, disk)) = *looked
            && at.elapsed() < LOOK
        {
            return Some(disk);
        }
        let disk = machine::disk(folder)?;
        *looked = Some((Instant::now(), disk));
        Some(disk)
    }
}

/// Reads the value of `nectarine.cache.low_water`.
pub(crate) fn parse_share(text: &str) -> Result<f64> {
    let share = text.trim().strip_suffix('%').and_then(|share| share.trim().parse::<f64>().ok());
    share.filter(|share| (0.0..=100.0).contains(share)).map(|share| share / 100.0).ok_or_else(|| {
        let message = format!("cannot read nectarine.cache.low_water = \"{text}\" as a share");
        EngineError::new(ErrorKind::Configuration, message).with_hint("write a share such as 80%")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(size: &str, folder: Option<&Path>) -> Budget {
        let options = NectarineOptions { cache_budget: size.to_string(), ..NectarineOptions::default() };
        Budget::new(&options, folder).expect("valid")
    }

    #[test]
    fn shares_as_text() {
        assert!(parse_share("80%").is_ok() && parse_share("0%").is_ok());
        for bad in ["80", "-1%", "101%", "", "NaN%"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_sizes_and_free_space() {
        assert_eq!(budget("10%", None).levels(0).budget, STORE_BYTES / 10);
        assert_eq!(budget("5GB", None).levels(u64::MAX).budget, 5 << 30);
        let folder = tempfile::tempdir().expect("a folder");
        let disk = machine::disk(folder.path()).expect("a disk");
        assert!(disk.free <= disk.total);
        // Nobody has this much.
        let greedy = budget("1000000TB", Some(folder.path())).levels(7);
        assert!(greedy.budget >= 7 && greedy.budget <= 7 + disk.total / 2, "{greedy:?}");
        assert!(budget("100%", Some(folder.path())).levels(0).budget <= disk.total);
        assert_eq!(budget("1MB", Some(folder.path())).levels(0).budget.min(1 << 20), 1 << 20);
    }
}
