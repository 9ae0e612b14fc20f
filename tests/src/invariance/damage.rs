//! What can happen to the files of a cache: flipped bits, lost ends, lost files, one file in the place of another.

use std::path::{Path, PathBuf};

use super::Random;

/// All files below a folder.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

/// Damages some of the files. They may vanish meanwhile: whoever cannot be damaged is left alone.
pub(super) fn damage_some(folder: &Path, percent: usize, random: &mut Random) -> usize {
    let all = files(folder);
    let mut n_damaged = 0;
    for path in &all {
        if random.chance(percent) {
            n_damaged += usize::from(damage(path, &all, random).is_ok());
        }
    }
    n_damaged
}

/// Deletes all files, but not the folder.
pub(super) fn wipe(folder: &Path) -> usize {
    files(folder).iter().filter(|path| std::fs::remove_file(path).is_ok()).count()
}

fn damage(path: &Path, all: &[PathBuf], random: &mut Random) -> std::io::Result<()> {
    match random.below(5) {
        0 => std::fs::remove_file(path),
        1 => {
            let bytes = std::fs::read(path)?;
            std::fs::write(path, &bytes[..random.below(bytes.len() + 1)])
        }
        2 => {
            let other = std::fs::read(random.pick(all))?;
            std::fs::write(path, other)
        }
        _ => {
            let mut bytes = std::fs::read(path)?;
            if !bytes.is_empty() {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            std::fs::write(path, bytes)
        }
    }
}
