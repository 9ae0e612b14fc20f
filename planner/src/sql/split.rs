//! [`split_statements`] and [`is_complete`]: where statements begin and end in a text.
//!
//! A statement ends at a semicolon outside of quotes, dollar quotes and comments. Nothing is parsed, so both work on
//! any text, in time linear in its length. `BEGIN ATOMIC` bodies, the one place where SQL has semicolons inside a
//! statement, are not offered.

use std::ops::Range;

use super::lex::{Piece, Pieces};

/// Byte ranges of the statements in `text`: without semicolons, without blanks and comments around them, without
/// those that are nothing else. The last one may lack its semicolon.
pub fn split_statements(text: &str) -> Vec<Range<usize>> {
    let mut statements = Vec::new();
    let mut current: Option<Range<usize>> = None;
    for (piece, range) in Pieces::new(text) {
        match piece {
            Piece::Blank => {}
            Piece::Semicolon => statements.extend(current.take()),
            // A comment without an end may hide statements: whoever parses it says so.
            Piece::Text | Piece::OpenText | Piece::OpenBlank => match &mut current {
                Some(statement) => statement.end = range.end,
                None => current = Some(range),
            },
        }
    }
    statements.extend(current);
    statements
}

/// Whether a prompt can run `text` as it is: its last statement is ended by a semicolon, or there is none.
pub fn is_complete(text: &str) -> bool {
    let mut complete = true;
    for (piece, _) in Pieces::new(text) {
        match piece {
            Piece::Blank => {}
            Piece::Semicolon => complete = true,
            Piece::Text => complete = false,
            Piece::OpenBlank | Piece::OpenText => return false,
        }
    }
    complete
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        split_statements(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn splits_at_semicolons_that_count() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            (" \n\t; ;; -- nothing\n /* ; */", &[]),
            ("SELECT 1", &["SELECT 1"]),
            ("SELECT 1;SELECT 2 ;\n", &["SELECT 1", "SELECT 2"]),
            ("SELECT ';', 'it''s;'; SELECT 2", &["SELECT ';', 'it''s;'", "SELECT 2"]),
            (r"SELECT E'\';', 'a\'; SELECT 2", &[r"SELECT E'\';', 'a\'", "SELECT 2"]),
            (r"SELECT e'\\'; SELECT name'x\'", &[r"SELECT e'\\'", r"SELECT name'x\'"]),
            ("SELECT \"a;\"\"b\"; SELECT `;`", &["SELECT \"a;\"\"b\"", "SELECT `;`"]),
            ("SELECT $$;$$; SELECT $a$ ; $b$ ; $a$;", &["SELECT $$;$$", "SELECT $a$ ; $b$ ; $a$"]),
            (
                "SELECT $1;SELECT $2;SELECT $x;SELECT a$b$;1",
                &["SELECT $1", "SELECT $2", "SELECT $x", "SELECT a$b$", "1"],
            ),
            ("-- a;b\nSELECT 1 -- c;\n;/* x; /* y; */ z; */ SELECT 2", &["SELECT 1", "SELECT 2"]),
            ("SELECT 1 - -1; SELECT 4/2", &["SELECT 1 - -1", "SELECT 4/2"]),
            ("SELECT 'open; SELECT 2", &["SELECT 'open; SELECT 2"]),
            ("SELECT 1; /* open; SELECT 2;", &["SELECT 1", "/* open; SELECT 2;"]),
            ("SELECT 'ö;ß'; SELECT 'ü'", &["SELECT 'ö;ß'", "SELECT 'ü'"]),
        ];
        for (text, expected) in cases {
            assert_eq!(split(text), *expected, "{text}");
        }
    }

    #[test]
    fn knows_when_a_text_is_complete() {
        for text in
            ["", "  \n", "-- only a comment", "/* a */", "SELECT 1;", "SELECT 1; -- done", "SELECT ';';\n\n", ";"]
        {
            assert!(is_complete(text), "{text}");
        }
        for text in [
            "SELECT 1",
            "SELECT 1; SELECT",
            "SELECT ';",
            "SELECT \";",
            "SELECT $$;",
            "SELECT 1 /* ;",
            "/* a",
            "SELECT 1 -- ;",
        ] {
            assert!(!is_complete(text), "{text}");
        }
    }

    /// By the clock of whoever waits for the tests: a quadratic scan of these would take hours.
    #[test]
    fn long_texts_take_linear_time() {
        for unit in ["SELECT 1;", "'", "$a$b", "/*", "$", "''", "--\n", "\\'", "$$;", "(("] {
            let text = unit.repeat(2 * 1024 * 1024 / unit.len());
            let n_statements = split_statements(&text).len();
            assert!(n_statements <= text.len() / unit.len());
            is_complete(&text);
        }
        assert_eq!(split_statements(&"SELECT 1;".repeat(1_200_000)).len(), 1_200_000);
    }

    #[test]
    fn random_texts_do_not_panic() {
        let alphabet: Vec<char> = "aE'\"`$;-/*\\\n 1é漢".chars().collect();
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..(seed >> 59) + 3 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push(alphabet[(seed >> 33) as usize % alphabet.len()]);
            }
            let mut end = 0;
            for range in split_statements(&text) {
                assert!(range.start >= end && !range.is_empty(), "{text:?}");
                end = range.end;
                assert!(!text[range].trim().is_empty(), "{text:?}");
            }
            is_complete(&text);
        }
    }
}
