//! Newline-delimited JSON: a record ends where its line does, because no string holds a raw line end.

use serde::de::IgnoredAny;

/// Whether the text is one JSON value, or nothing but space.
pub(super) fn is_value(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    text.trim_ascii().is_empty() || serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// Whether the first line with something in it is a JSON value; `None` if the text ends before that line does.
pub(super) fn first_line_is_value(text: &[u8]) -> Option<bool> {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let line = lines.find(|line| !line.trim_ascii().is_empty())?;
    line.ends_with(b"\n").then(|| is_value(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_values() {
        assert!(is_value(b"{\"a\":1}\r\n"));
        assert!(is_value(b"  "));
        assert!(!is_value(b"{\"a\":"));
        assert!(!is_value(b"{\"a\":1}{"));
        assert_eq!(first_line_is_value(b"\n\xEF\xBB\xBF{\"a\":1}\n{"), Some(true));
        assert_eq!(first_line_is_value(b"{\n \"a\":1}\n"), Some(false));
        assert_eq!(first_line_is_value(b"[\n"), Some(false));
        assert_eq!(first_line_is_value(b"{\"a\":1}"), None);
        assert_eq!(first_line_is_value(b""), None);
    }
}
