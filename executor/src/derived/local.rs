//! Parts as files of this machine.
//!
//! A part is staged beside its place as `<name>.arrow#1` and renamed. A process that is killed in between leaves the staged
//! file, which nobody reads; the collector removes it.
//! Not synced   what the machine loses when its power fails is noticed by length or checksum when it is read, and computed
//!              again; waiting for the disk would make every statement pay for that.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use nectarine_catalog::fail_point;

/// Writes a new file, whole or not at all.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut staged = path.as_os_str().to_owned();
    // The name is new, and so is this one.
    staged.push("#1");
    let staged = PathBuf::from(staged);
    let written = write_staged(&staged, bytes).and_then(|()| std::fs::rename(&staged, path));
    match &written {
        Ok(()) => fail_point("part_renamed"),
        Err(_) => drop(std::fs::remove_file(&staged)),
    }
    written
}

fn write_staged(staged: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = match File::create_new(staged) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            staged.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            File::create_new(staged)?
        }
        other => other?,
    };
    fail_point("part_staged");
    let (first, second) = bytes.split_at(bytes.len() / 2);
    file.write_all(first)?;
    fail_point("part_half");
    file.write_all(second)?;
    fail_point("part_written");
    file.flush()?;
    drop(file);
    fail_point("part_flushed");
    Ok(())
}

/// The content of a file of `bytes` bytes, or how many it has instead.
pub(super) fn read(path: &Path, bytes: u64) -> io::Result<Result<Bytes, u64>> {
    let file = File::open(path)?;
    let found = file.metadata()?.len();
    if found != bytes {
        return Ok(Err(found));
    }
    let mut content = Vec::with_capacity(bytes as usize);
    // It may grow meanwhile; one byte more is enough to know.
    file.take(bytes.saturating_add(1)).read_to_end(&mut content)?;
    Ok(match content.len() as u64 == bytes {
        true => Ok(Bytes::from(content)),
        false => Err(content.len() as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_only_at_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/x.arrow");
        write(&path, b"12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), Ok(Bytes::from_static(b"12345")));
        assert_eq!(read(&path, 4).unwrap(), Err(5));
        assert_eq!(read(&path, 6).unwrap(), Err(5));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing staged is left");
    }
}
