//! Finding bytes, many at a time.

/// Lanes that the compiler turns into one vector comparison on every target.
const LANES: usize = 32;

/// First occurrence.
pub(super) fn find(bytes: &[u8], needle: u8) -> Option<usize> {
    let mut at = 0;
    // Most quotes are near each other: eight bytes at a time find them sooner than a vector does.
    let (words, _) = bytes.as_chunks::<8>();
    for word in words.iter().take(4) {
        let found = zero_bytes(u64::from_le_bytes(*word) ^ (ONES * u64::from(needle)));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let (chunks, rest) = bytes[at..].as_chunks::<LANES>();
    for chunk in chunks {
        if any(chunk, needle) {
            return chunk.iter().position(|byte| *byte == needle).map(|inside| at + inside);
        }
        at += LANES;
    }
    rest.iter().position(|byte| *byte == needle).map(|inside| at + inside)
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// The high bit of each byte that is zero; only the lowest one set is to be believed.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

/// First occurrence of either.
pub(super) fn find2(bytes: &[u8], one: u8, two: u8) -> Option<usize> {
    let (chunks, rest) = bytes.as_chunks::<LANES>();
    let mut at = 0;
    for chunk in chunks {
        if any(chunk, one) || any(chunk, two) {
            return chunk.iter().position(|byte| *byte == one || *byte == two).map(|inside| at + inside);
        }
        at += LANES;
    }
    rest.iter().position(|byte| *byte == one || *byte == two).map(|inside| at + inside)
}

/// Last occurrence.
pub(super) fn rfind(bytes: &[u8], needle: u8) -> Option<usize> {
    let (rest, chunks) = bytes.as_rchunks::<LANES>();
    for (nth, chunk) in chunks.iter().enumerate().rev() {
        if any(chunk, needle) {
            return chunk.iter().rposition(|byte| *byte == needle).map(|inside| rest.len() + nth * LANES + inside);
        }
    }
    rest.iter().rposition(|byte| *byte == needle)
}

fn any(chunk: &[u8; LANES], needle: u8) -> bool {
    chunk.iter().fold(0, |found, byte| found | u8::from(*byte == needle)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_loop_finds() {
        for len in 0..100 {
            for at in 0..len {
                let mut bytes = vec![b'.'; len];
                bytes[at] = b'x';
                assert_eq!(find(&bytes, b'x'), Some(at), "{len}");
                assert_eq!(find2(&bytes, b'y', b'x'), Some(at), "{len}");
                assert_eq!(rfind(&bytes, b'x'), Some(at), "{len}");
                bytes[len - 1] = b'x';
                assert_eq!(find(&bytes, b'x'), Some(at), "{len}");
                assert_eq!(rfind(&bytes, b'x'), Some(len - 1), "{len}");
            }
            let none = vec![b'.'; len];
            assert_eq!((find(&none, b'x'), find2(&none, b'x', b'y'), rfind(&none, b'x')), (None, None, None));
        }
    }
}
