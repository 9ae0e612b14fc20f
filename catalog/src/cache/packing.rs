//! Packing what is kept for ever: many small texts, each by itself, against a dictionary of what they are likely to hold.
//!
//! The dictionary is part of the format: another one needs another number in front. A packed text begins with that number.

use std::io;

/// Zstandard's level for small texts: packing takes well below a millisecond, and is done once.
const LEVEL: i32 = 19;
/// A program never is as large; what claims to be is damaged.
const BYTES_MAX: usize = 64 << 20;
/// Packed with [`DICTIONARY`].
const FORMAT: u8 = 1;

/// What SQL, its plans and descriptions of tables often hold; the likeliest at the end.
const DICTIONARY: &[u8] = include_bytes!("packing/dictionary_1.txt");

/// Packs a text.
pub(crate) fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = vec![FORMAT];
    let mut compressor = zstd::bulk::Compressor::with_dictionary(LEVEL, DICTIONARY)?;
    compressor.include_checksum(false)?;
    compressor.include_dictid(false)?;
    packed.extend(compressor.compress(bytes)?);
    Ok(packed)
}

/// The text again; `None` if it is damaged.
pub(crate) fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let (format, packed) = packed.split_first()?;
    if *format != FORMAT {
        return None;
    }
    let size = zstd::zstd_safe::get_frame_content_size(packed).ok()??;
    let size = usize::try_from(size).ok().filter(|size| *size <= BYTES_MAX)?;
    zstd::bulk::Decompressor::with_dictionary(DICTIONARY).ok()?.decompress(packed, size).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_and_are_smaller() {
        let sql = "SELECT l_returnflag, sum(l_quantity) AS sum_qty FROM lineitem WHERE l_shipdate <= date '1998-09-02' \
                   GROUP BY l_returnflag ORDER BY l_returnflag";
        for text in ["", "x", sql, &sql.repeat(100)] {
            let packed = pack(text.as_bytes()).expect("packed");
            assert_eq!(unpack(&packed).as_deref(), Some(text.as_bytes()));
        }
        assert!(pack(sql.as_bytes()).expect("packed").len() < sql.len());
    }

    #[test]
    fn what_is_damaged_is_nothing() {
        let packed = pack(b"SELECT 1 FROM t").expect("packed");
        assert_eq!(unpack(&[]), None);
        assert_eq!(unpack(&[7, 1, 2, 3]), None);
        for cut in 1..packed.len() - 1 {
            assert_eq!(unpack(&packed[..cut]), None, "{cut}");
        }
    }
}
