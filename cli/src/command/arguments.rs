//! Arguments of a backslash command: separated by white space, kept together by quotes.

use crate::failure::{Failure, Result};

/// The arguments. `'it''s'` is one argument without its outer quotes; `"a b"` keeps its quotes, because it is a name.
pub(super) fn split(text: &str) -> Result<Vec<String>> {
    let mut arguments = Vec::new();
    let mut current: Option<String> = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let argument = current.get_or_insert_default();
                if character == '"' {
                    argument.push('"');
                }
                loop {
                    match characters.next() {
                        None => return Err(Failure::new(format!("a quote ({character}) is not closed"))),
                        Some(next) if next == character => {
                            if characters.peek() != Some(&character) {
                                break;
                            }
                            characters.next();
                            argument.push(character);
                            if character == '"' {
                                argument.push('"');
                            }
                        }
                        Some(next) => argument.push(next),
                    }
                }
                if character == '"' {
                    argument.push('"');
                }
            }
            _ if character.is_whitespace() => arguments.extend(current.take()),
            _ => current.get_or_insert_default().push(character),
        }
    }
    arguments.extend(current);
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_arguments_together() {
        let shown = |text| split(text).unwrap();
        assert_eq!(shown(" a  'b ''c' d'e f' '' "), ["a", "b 'c", "de f", ""]);
        assert_eq!(shown(r#"s."My ""T""" x"#), [r#"s."My ""T""""#, "x"]);
        assert!(split("'open").is_err());
        assert!(shown("  ").is_empty());
    }
}
