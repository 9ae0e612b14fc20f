//! What the machine has, where the operating system tells.

use std::path::Path;

/// Memory of this machine, or of the control group that bounds this process if that is less.
pub(crate) fn memory_bytes() -> u64 {
    const ASSUMED: u64 = 4 << 30;
    let machine = physical_memory().unwrap_or(ASSUMED);
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    group.map_or(machine, |group: u64| group.min(machine))
}

#[cfg(unix)]
fn physical_memory() -> Option<u64> {
    // SAFETY: sysconf only reads.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    (pages > 0 && size > 0).then(|| pages as u64 * size as u64)
}

#[cfg(not(unix))]
fn physical_memory() -> Option<u64> {
    None
}

/// A disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Disk {
    /// Its size.
    pub(crate) total: u64,
    /// What this process may still write.
    pub(crate) free: u64,
}

/// Space that is free where `path` is.
pub(crate) fn free_disk_bytes(path: &Path) -> u64 {
    const ASSUMED: u64 = 16 << 30;
    disk(path).map_or(ASSUMED, |disk| disk.free)
}

/// The disk that `path` is on, where the operating system tells.
#[cfg(unix)]
pub(crate) fn disk(path: &Path) -> Option<Disk> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with NUL and `stat` is written before it is read.
    unsafe {
        match libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) {
            0 => {
                let stat = stat.assume_init();
                Some(Disk { total: stat.f_blocks * stat.f_frsize, free: stat.f_bavail * stat.f_frsize })
            }
            _ => None,
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn disk(_path: &Path) -> Option<Disk> {
    None
}
