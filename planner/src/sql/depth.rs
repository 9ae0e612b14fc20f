//! [`check`]: a bound on how deep the tree of a statement can become, from its tokens alone.
//!
//! The parser bounds its own recursion, but reads `1 + 1 + 1 ..` and `.. UNION ALL ..` in a loop that builds a tree
//! as deep as the chain is long, and later steps (dropping, cloning, comparing, evaluating) walk that tree by
//! recursion. So the chain is measured before there is a tree to fall over.
//!
//! DataFusion protects its own walks over trees from running out of stack, but not the derived ones (clone, compare,
//! hash, drop) and not the evaluation. On threads with 2 MB of stack and an unoptimized build, chains of 1000
//! operators and unions pass and 2000 do not; of joins, `EXCEPT` and `INTERSECT` 200 pass and 300 do not, of CTEs
//! that build on each other 700 and 1000. Hence the limit counts some things more than once.
//!
//! Operators of one precedence make a chain; a stronger one starts anew in each operand of a weaker one. Hence the
//! depth of an expression is at most the sum of its longest `OR` chain, `AND` chain and chain of all other operators.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::parse::keyword_of;
use super::position::offset_of_token;
use crate::{PlannerError, Result};

/// Fails where a chain of operators, set operations or joins in `tokens` is longer than `limit`, or brackets nest
/// deeper.
pub(super) fn check(sql: &str, tokens: &[TokenWithSpan], limit: usize) -> Result<()> {
    let mut frames = vec![Frame::default()];
    let mut after_interval = false;
    let mut after_cross = false;
    let mut before = Keyword::NoKeyword;
    for token in tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))) {
        // The one prefix that the parser reads by recursion without counting. It makes no sense twice.
        let interval = keyword_of(&token.token) == Keyword::INTERVAL;
        if interval && after_interval {
            let message = "expected the length of the interval, found \"INTERVAL\"".to_owned();
            return Err(PlannerError::Syntax { message, position: offset_of_token(sql, token), hint: None });
        }
        after_interval = interval;
        let keyword = keyword_of(&token.token);
        let Some(frame) = frames.last_mut() else { break };
        match &token.token {
            // In a type, each pair of square brackets wraps what is before it: `INT[][]`.
            Token::LBracket => {
                frame.other += 1;
                frames.push(Frame::default());
            }
            Token::LParen | Token::LBrace => {
                frame.ctes += usize::from(matches!(before, Keyword::AS | Keyword::MATERIALIZED));
                frames.push(Frame::default());
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                // An unmatched one is for the parser to complain about.
                while frames.len() > 1 && frames.pop().is_some_and(|frame| frame.case) {}
            }
            Token::Comma | Token::SemiColon => {
                frame.expression_ends();
                frame.joins += usize::from(frame.in_from);
            }
            Token::Word(_) => match keyword {
                Keyword::CASE => frames.push(Frame { case: true, ..Frame::default() }),
                Keyword::END if frame.case => {
                    frames.pop();
                }
                Keyword::WHEN | Keyword::THEN | Keyword::ELSE if frame.case => frame.expression_ends(),
                Keyword::FROM => frame.in_from = before != Keyword::DISTINCT,
                Keyword::SELECT
                | Keyword::WHERE
                | Keyword::GROUP
                | Keyword::ORDER
                | Keyword::HAVING
                | Keyword::QUALIFY => {
                    frame.expression_ends();
                    frame.in_from = false;
                }
                Keyword::ON | Keyword::USING => {
                    frame.expression_ends();
                    frame.joins_open = frame.joins_open.saturating_sub(1);
                }
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::MINUS => {
                    frame.expression_ends();
                    frame.set_operations += if keyword == Keyword::UNION { 1 } else { 5 };
                }
                Keyword::JOIN => {
                    frame.joins += 1;
                    // `a JOIN b JOIN c ON .. ON ..` nests to the right in some dialects, by recursion.
                    frame.joins_open += usize::from(!after_cross);
                }
                // Each wraps the table before it in a large node. A handful is more than anyone needs.
                Keyword::PIVOT | Keyword::UNPIVOT | Keyword::MATCH_RECOGNIZE => frame.joins += 20,
                Keyword::OR | Keyword::XOR => frame.or(),
                Keyword::AND => frame.and(),
                Keyword::IS
                | Keyword::NOT
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::RLIKE
                | Keyword::REGEXP
                | Keyword::SIMILAR
                | Keyword::MATCH
                | Keyword::BETWEEN
                | Keyword::COLLATE
                | Keyword::AT
                | Keyword::DIV
                | Keyword::NOTNULL
                | Keyword::OVERLAPS
                | Keyword::OPERATOR
                | Keyword::MEMBER => frame.other += 1,
                _ => {}
            },
            token if is_operator(token) => frame.other += 1,
            _ => {}
        }
        before = keyword;
        after_cross = matches!(keyword, Keyword::CROSS | Keyword::NATURAL)
            || after_cross
                && matches!(keyword, Keyword::LEFT | Keyword::RIGHT | Keyword::FULL | Keyword::INNER | Keyword::OUTER);
        let n_open = frames.len();
        let Some(frame) = frames.last() else { break };
        // The parser does not count its recursion into types.
        let (what, limit, hint) = if n_open > limit {
            ("levels of nesting", limit, "name inner queries in a WITH clause")
        } else if frame.depth() > limit {
            ("operators in one chain", limit, "write a long chain of OR as IN (..), or join with a table of the values")
        } else if frame.set_operations > limit {
            ("set operations in one query", limit, "put the rows into a table first, with several INSERTs")
        } else if 5 * frame.joins > limit {
            ("joins in one query", limit / 5, "put a part of the query into a table first")
        } else if 10 * frame.joins_open > limit {
            ("joins before their ON", limit / 10, "put each ON behind its JOIN")
        } else if 2 * frame.ctes > limit {
            ("queries in one WITH clause", limit / 2, "put a part of the query into a table first")
        } else {
            continue;
        };
        return Err(PlannerError::TooDeep {
            what,
            limit,
            position: offset_of_token(sql, token),
            hint: Some(hint.to_owned()),
        });
    }
    Ok(())
}

/// What is open: a pair of brackets or a `CASE`.
#[derive(Default)]
struct Frame {
    case: bool,
    in_from: bool,
    ctes: usize,
    set_operations: usize,
    joins: usize,
    joins_open: usize,
    or: usize,
    and: usize,
    and_max: usize,
    other: usize,
    other_max: usize,
}

impl Frame {
    fn or(&mut self) {
        self.or += 1;
        self.and_max = self.and_max.max(self.and);
        self.and = 0;
        self.operand_ends();
    }

    fn and(&mut self) {
        self.and += 1;
        self.operand_ends();
    }

    fn operand_ends(&mut self) {
        self.other_max = self.other_max.max(self.other);
        self.other = 0;
    }

    fn expression_ends(&mut self) {
        let Self { case, in_from, ctes, set_operations, joins, joins_open, .. } = *self;
        *self = Self { case, in_from, ctes, set_operations, joins, joins_open, ..Self::default() };
    }

    fn depth(&self) -> usize {
        self.or + self.and.max(self.and_max) + self.other.max(self.other_max)
    }
}

/// Everything that is no word, literal, bracket or separator.
fn is_operator(token: &Token) -> bool {
    !matches!(
        token,
        Token::EOF
            | Token::Word(_)
            | Token::Number(..)
            | Token::Char(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::TripleSingleQuotedByteStringLiteral(_)
            | Token::TripleDoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::TripleSingleQuotedRawStringLiteral(_)
            | Token::TripleDoubleQuotedRawStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_)
            | Token::Whitespace(_)
            | Token::Period
            | Token::Comma
            | Token::SemiColon
    )
}
