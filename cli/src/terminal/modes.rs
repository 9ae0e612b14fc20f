//! The terminal's modes, as they were when the process began.
//!
//! A program that rows go to (`\o | less`) shares the terminal with the line editor. Each sets modes of its own and puts back
//! what it found, which may be what the other had set: in the end nobody echoes, and Ctrl-C is a key like any other. So
//! nobody is trusted with it: the modes of the beginning are set again before a statement runs, and when such a program ends.

use std::sync::OnceLock;

static AT_START: OnceLock<libc::termios> = OnceLock::new();

/// Looks at the terminal on standard input; the first look counts.
pub(super) fn remember() {
    if let Some(modes) = read() {
        // A second look would find what others have set meanwhile.
        let _ = AT_START.set(modes);
    }
}

/// Sets the modes of the beginning, if others are set.
pub(super) fn restore() {
    let (Some(wanted), Some(now)) = (AT_START.get(), read()) else { return };
    let same = now.c_iflag == wanted.c_iflag && now.c_oflag == wanted.c_oflag && now.c_lflag == wanted.c_lflag;
    // In the background the terminal is somebody else's, and touching it would stop this process.
    // SAFETY: both calls only ask for a number.
    let is_ours = || unsafe { libc::tcgetpgrp(libc::STDIN_FILENO) == libc::getpgrp() };
    if !same && is_ours() {
        // SAFETY: the modes are those that tcgetattr has filled in, and nothing is kept. If they cannot be set they stay.
        let _ = unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, wanted) };
    }
}

fn read() -> Option<libc::termios> {
    let mut modes = std::mem::MaybeUninit::<libc::termios>::uninit();
    // SAFETY: tcgetattr fills the whole structure when it says 0, and only then is it taken.
    unsafe { (libc::tcgetattr(libc::STDIN_FILENO, modes.as_mut_ptr()) == 0).then(|| modes.assume_init()) }
}
