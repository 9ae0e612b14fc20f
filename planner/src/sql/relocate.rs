//! [`rename_relations`]: the text of a query with other names for some of what it reads.
//!
//! Everything else stays as it was written: blanks, comments, case.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};

use datafusion::sql::parser::Statement as DFStatement;
use sqlparser::ast::{self, ObjectName, Query, Visit, Visitor};
use sqlparser::tokenizer::{Token, Word};

use super::parse::{ParseOptions, Text, tokenize};
use super::position::offset_of_location;
use crate::Result;

/// Asks `rename` for each quoted name without a schema that stands for something outside of the query.
///
/// The parser does not say where such a name was: each quoted token that could be one is given a name of its own, and those that
/// are found again as names of relations are the ones.
pub fn rename_relations(
    query: &str,
    options: &ParseOptions,
    rename: impl Fn(&str) -> Option<String>,
) -> Result<String> {
    let dialect = options.dialect();
    let mut tokens = tokenize(query, dialect.as_ref())?;
    let mut candidates = vec![];
    for (at, token) in tokens.iter_mut().enumerate() {
        let (value, quote) = match &mut token.token {
            Token::SingleQuotedString(value) => (value, '\''),
            Token::Word(Word { value, quote_style: Some(quote), .. }) => (value, *quote),
            _ => continue,
        };
        let Some(new) = rename(value) else { continue };
        let marker = format!("nectarine relation {at}");
        let old = std::mem::replace(value, marker.clone());
        let ends = (offset_of_location(query, token.span.start), offset_of_location(query, token.span.end));
        if let (Some(start), Some(end)) = ends {
            candidates.push(Candidate { marker, old, new, quote, range: start..end });
        }
    }
    if candidates.is_empty() {
        return Ok(query.to_owned());
    }
    let text = Text::new(query, &tokens, dialect.as_ref(), options);
    let DFStatement::Statement(statement) = text.read(|parser| parser.parse_statement())? else {
        return Ok(query.to_owned());
    };
    let mut names = Names::default();
    let _: ControlFlow<()> = statement.visit(&mut names);
    let local: BTreeSet<&str> = candidates
        .iter()
        .filter(|candidate| names.local.contains(&candidate.marker))
        .map(|candidate| candidate.old.as_str())
        .collect();
    let mut text = query.to_owned();
    for Candidate { marker, old, new, quote, range } in candidates.iter().rev() {
        if names.relations.contains(marker) && !local.contains(old.as_str()) {
            let doubled = format!("{quote}{quote}");
            text.replace_range(range.clone(), &format!("{quote}{}{quote}", new.replace(*quote, &doubled)));
        }
    }
    Ok(text)
}

/// A quoted token that may be the name of a relation.
struct Candidate {
    marker: String,
    old: String,
    new: String,
    quote: char,
    range: Range<usize>,
}

#[derive(Default)]
struct Names {
    relations: BTreeSet<String>,
    /// Names that `WITH` gives.
    local: BTreeSet<String>,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let named = query.with.iter().flat_map(|with| &with.cte_tables);
        self.local.extend(named.map(|cte| cte.alias.name.value.clone()));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if let [ast::ObjectNamePart::Identifier(name)] = relation.0.as_slice() {
            self.relations.insert(name.value.clone());
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_files_change() {
        let rename = |name: &str| name.contains('/').then(|| format!("/here/{name}"));
        for (query, expected) in [
            ("SELECT * FROM 'd/x.csv'", "SELECT * FROM '/here/d/x.csv'"),
            (
                "select 'd/x', \"d/y\" -- 'd/z'\nfrom\n  \"d/é/x.csv\" AS a, 'd/it''s.csv' b",
                "select 'd/x', \"d/y\" -- 'd/z'\nfrom\n  \"/here/d/é/x.csv\" AS a, '/here/d/it''s.csv' b",
            ),
            (
                "SELECT * FROM t WHERE a IN (SELECT a FROM 'd/x.csv' WHERE b = (SELECT max(b) FROM 'd/y.csv'))",
                "SELECT * FROM t WHERE a IN (SELECT a FROM '/here/d/x.csv' WHERE b = (SELECT max(b) FROM '/here/d/y.csv'))",
            ),
            (
                "WITH \"d/x\" AS (SELECT 1) SELECT * FROM \"d/x\", 'd/y' UNION ALL SELECT * FROM 'd/y'",
                "WITH \"d/x\" AS (SELECT 1) SELECT * FROM \"d/x\", '/here/d/y' UNION ALL SELECT * FROM '/here/d/y'",
            ),
            ("SELECT * FROM \"s\".\"d/x\"", "SELECT * FROM \"s\".\"d/x\""),
            (
                "SELECT a, 'd/x.csv' AS name FROM 'd/x.csv' WHERE b = 'd/x.csv'",
                "SELECT a, 'd/x.csv' AS name FROM '/here/d/x.csv' WHERE b = 'd/x.csv'",
            ),
        ] {
            assert_eq!(rename_relations(query, &ParseOptions::default(), rename).unwrap(), expected);
        }
    }
}
