//! [`Glob`]: wildcards over the components of a path.
//!
//! `*`, `?` and `[a-z]` stay within a component, `**` spans any number of them, `{a,b}` is either. A component that
//! starts with a dot or an underscore is matched only by a pattern that starts with the same letter.

use glob::{MatchOptions, Pattern};

use super::encoding::decode_percent;
use crate::{CatalogError, Result};

/// `{a,b}{c,d}..` multiplies; nobody means more than this.
const MAX_ALTERNATIVES: usize = 1024;

const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: false };

/// Patterns of one location, braces already multiplied out.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    text: String,
    alternatives: Vec<Vec<Part>>,
}

/// One component of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Exactly this name.
    Literal(String),
    /// Any name that fits.
    Wild(Pattern),
    /// Any number of folders.
    AnyDepth,
}

/// How a path relates to a glob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Matched {
    /// Not at all.
    No,
    /// The glob names it.
    Whole,
    /// The glob names a folder above it.
    Below,
}

impl Glob {
    /// Reads a path without its leading slash; `None` if it has no wildcard.
    pub(crate) fn parse(pattern: &str, location: &str) -> Result<Option<Self>> {
        Self::build(pattern, location, |component| Some(component.to_owned()))
    }

    /// The same for the key of a URL, where `%XX` stands for a letter and never for a wildcard.
    pub(crate) fn parse_encoded(pattern: &str, location: &str) -> Result<Option<Self>> {
        Self::build(pattern, location, decode_percent)
    }

    fn build(pattern: &str, location: &str, decode: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        let invalid = |detail: String| CatalogError::InvalidLocation { location: location.to_owned(), detail };
        let mut expanded = Vec::new();
        if !expand_braces(pattern, &mut expanded) {
            return Err(invalid(format!("its braces stand for more than {MAX_ALTERNATIVES} patterns")));
        }
        if expanded.len() == 1 && !is_wild(pattern) {
            return Ok(None);
        }
        let part = |component: &str| -> Result<Part> {
            if component == "**" {
                return Ok(Part::AnyDepth);
            }
            if !is_wild(component) {
                return decode(component)
                    .map(Part::Literal)
                    .ok_or_else(|| invalid("%XX does not decode to UTF-8".to_owned()));
            }
            let decoded = decode_around_wildcards(component, &decode);
            Pattern::new(&decoded)
                .map(Part::Wild)
                .map_err(|error| invalid(format!("wildcard \"{component}\": {}", error.msg)))
        };
        let alternatives: Vec<Vec<Part>> = expanded
            .iter()
            .map(|one| one.split('/').filter(|component| !component.is_empty()).map(part).collect())
            .collect::<Result<_>>()?;
        Ok(Some(Self { text: pattern.to_owned(), alternatives }))
    }

    /// As written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Every alternative, as components.
    pub(crate) fn alternatives(&self) -> &[Vec<Part>] {
        &self.alternatives
    }

    /// Components that every match starts with.
    pub(crate) fn fixed_prefix(&self) -> Vec<&str> {
        let Some(first) = self.alternatives.first() else { return Vec::new() };
        let mut prefix = Vec::new();
        // The last component names what is sought, not where: it stays out even if it is literal.
        for (at, part) in first.iter().enumerate().take(first.len().saturating_sub(1)) {
            let Part::Literal(name) = part else { break };
            if !self.alternatives.iter().all(|other| other.len() > at + 1 && other[at] == *part) {
                break;
            }
            prefix.push(name.as_str());
        }
        prefix
    }

    /// Compares a whole path with the glob.
    pub(crate) fn matches(&self, components: &[&str]) -> Matched {
        let mut best = Matched::No;
        for alternative in &self.alternatives {
            match matches_from(alternative, components) {
                Matched::Whole => return Matched::Whole,
                Matched::Below => best = Matched::Below,
                Matched::No => {}
            }
        }
        best
    }
}

impl Part {
    /// Whether one component fits. Wildcards leave hidden names alone unless they begin like them.
    pub(crate) fn fits(&self, name: &str) -> bool {
        match self {
            Self::Literal(literal) => literal == name,
            Self::Wild(pattern) => {
                (!is_hidden(name) || pattern.as_str().as_bytes().first() == name.as_bytes().first())
                    && pattern.matches_with(name, OPTIONS)
            }
            Self::AnyDepth => !is_hidden(name),
        }
    }
}

/// Names that listings pass over: `.x`, `_x`, but not the partition `_x=1`.
pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || (name.starts_with('_') && !name.contains('='))
}

fn matches_from(parts: &[Part], components: &[&str]) -> Matched {
    match (parts.split_first(), components.split_first()) {
        (None, None) => Matched::Whole,
        (None, Some(_)) => Matched::Below,
        (Some((Part::AnyDepth, rest)), _) => {
            // `a/**` means everything below a.
            if rest.is_empty() {
                let seen = components.iter().all(|component| !is_hidden(component));
                return if seen && !components.is_empty() { Matched::Whole } else { Matched::No };
            }
            let mut best = Matched::No;
            for skipped in 0..=components.len() {
                match matches_from(rest, &components[skipped..]) {
                    Matched::Whole => return Matched::Whole,
                    Matched::Below => best = Matched::Below,
                    Matched::No => {}
                }
                if components.get(skipped).is_none_or(|component| is_hidden(component)) {
                    break;
                }
            }
            best
        }
        (Some((part, rest)), Some((first, below))) if part.fits(first) => matches_from(rest, below),
        (Some(_), _) => Matched::No,
    }
}

fn is_wild(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Multiplies `{a,b}` out; braces without a comma are letters. False if there are too many.
fn expand_braces(pattern: &str, out: &mut Vec<String>) -> bool {
    let Some((open, close)) = first_group(pattern) else {
        out.push(pattern.to_owned());
        return out.len() <= MAX_ALTERNATIVES;
    };
    split_top(&pattern[open + 1..close])
        .into_iter()
        .all(|choice| expand_braces(&format!("{}{choice}{}", &pattern[..open], &pattern[close + 1..]), out))
}

/// The first brace pair that holds a comma of its own.
fn first_group(pattern: &str) -> Option<(usize, usize)> {
    let mut open = Vec::new();
    let mut found: Option<(usize, usize)> = None;
    for (at, byte) in pattern.bytes().enumerate() {
        match byte {
            b'{' => open.push((at, false)),
            b',' => {
                if let Some((_, comma)) = open.last_mut() {
                    *comma = true;
                }
            }
            b'}' => {
                if let Some((start, true)) = open.pop() {
                    // An outer pair closes later but begins earlier, and is expanded first.
                    if found.is_none_or(|(first, _)| start < first) {
                        found = Some((start, at));
                    }
                    if open.is_empty() {
                        return found;
                    }
                }
            }
            _ => {}
        }
    }
    found
}

fn split_top(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut choices) = (0_usize, 0, Vec::new());
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                choices.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    choices.push(&group[start..]);
    choices
}

/// Decodes what stands between wildcards; a letter that turns out to be a wildcard is bracketed to stay a letter.
fn decode_around_wildcards(component: &str, decode: &impl Fn(&str) -> Option<String>) -> String {
    let mut decoded = String::new();
    let mut rest = component;
    while let Some(at) = rest.find('%') {
        decoded.push_str(&rest[..at]);
        // A run of escapes may be one letter in several bytes.
        let run = rest.as_bytes()[at..].chunks(3).take_while(|three| three.len() == 3 && three[0] == b'%').count() * 3;
        let run = if run == 0 { 1 } else { run };
        let Some(escapes) = rest.get(at..at + run) else { break };
        match decode(escapes) {
            Some(letters) if letters != escapes => decoded.push_str(&Pattern::escape(&letters)),
            _ => decoded.push_str(escapes),
        }
        rest = &rest[at + run..];
    }
    decoded.push_str(rest);
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, path: &str) -> Matched {
        let components: Vec<&str> = path.split('/').collect();
        Glob::parse(pattern, pattern).unwrap().unwrap().matches(&components)
    }

    #[test]
    fn wildcards_stay_within_a_component() {
        assert_eq!(check("d/*.csv", "d/a.csv"), Matched::Whole);
        assert_eq!(check("d/*.csv", "d/e/a.csv"), Matched::No);
        assert_eq!(check("d/[0-9]?.csv", "d/7x.csv"), Matched::Whole);
        assert_eq!(check("d/[!0-9].csv", "d/7.csv"), Matched::No);
        assert_eq!(check("d/year=*", "d/year=1/a.csv"), Matched::Below);
        assert_eq!(check("d/*", "e/a"), Matched::No);
    }

    #[test]
    fn two_stars_span_folders() {
        for path in ["d/x.csv", "d/a/x.csv", "d/a/b/x.csv"] {
            assert_eq!(check("d/**/x.csv", path), Matched::Whole, "{path}");
        }
        assert_eq!(check("d/**/x.csv", "d/.git/x.csv"), Matched::No);
        assert_eq!(check("d/**", "d/a/b"), Matched::Whole);
        assert_eq!(check("**/a/**/b", "x/a/y/z/b"), Matched::Whole);
        assert_eq!(check("d/**/y=*", "d/a/y=1/x.csv"), Matched::Below);
    }

    #[test]
    fn hidden_names_are_left_alone_unless_asked_for() {
        assert_eq!(check("d/*", "d/_temporary"), Matched::No);
        assert_eq!(check("d/*", "d/.x.csv"), Matched::No);
        assert_eq!(check("d/_*", "d/_x.csv"), Matched::Whole);
        assert_eq!(check("d/.*", "d/.x.csv"), Matched::Whole);
        assert_eq!(check("d/*/x.csv", "d/_p=1/x.csv"), Matched::Whole);
    }

    #[test]
    fn braces_are_either() {
        for path in ["d/a.csv", "d/b1.csv", "d/b2.csv"] {
            assert_eq!(check("d/{a,b{1,2}}.csv", path), Matched::Whole, "{path}");
        }
        assert_eq!(check("d/{a,b{1,2}}.csv", "d/b.csv"), Matched::No);
        assert_eq!(check("{d/a,e}/x{1}*", "e/x{1}y"), Matched::Whole);
        let many = "{a,b}".repeat(11);
        assert!(Glob::parse(&many, &many).is_err());
        assert!(Glob::parse("x{1}{", "").unwrap().is_none());
    }

    #[test]
    fn escapes_are_letters() {
        let glob = Glob::parse_encoded("a%20b/%2A*%C3%A9.csv", "").unwrap().unwrap();
        assert_eq!(glob.matches(&["a b", "*x\u{e9}.csv"]), Matched::Whole);
        assert_eq!(glob.matches(&["a b", "xx\u{e9}.csv"]), Matched::No);
    }
}
