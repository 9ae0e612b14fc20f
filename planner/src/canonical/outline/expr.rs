//! Expressions in words, as people write them: `n > 5`, not `5 < column 0`.

use datafusion::logical_expr::Operator;

use super::super::decoder::Decoder;
use super::super::encoder::Tag;
use super::value;
use super::words::Words;
use crate::node::short;

/// Deeper expressions are not told.
const DEPTH_MAX: usize = 100;

/// Operators that the encoding names by their variant.
const OPERATORS: [Operator; 38] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::Plus,
    Operator::Minus,
    Operator::Multiply,
    Operator::Divide,
    Operator::Modulo,
    Operator::And,
    Operator::Or,
    Operator::IsDistinctFrom,
    Operator::IsNotDistinctFrom,
    Operator::RegexMatch,
    Operator::RegexIMatch,
    Operator::RegexNotMatch,
    Operator::RegexNotIMatch,
    Operator::LikeMatch,
    Operator::ILikeMatch,
    Operator::NotLikeMatch,
    Operator::NotILikeMatch,
    Operator::BitwiseAnd,
    Operator::BitwiseOr,
    Operator::BitwiseXor,
    Operator::BitwiseShiftRight,
    Operator::BitwiseShiftLeft,
    Operator::StringConcat,
    Operator::AtArrow,
    Operator::ArrowAt,
    Operator::Arrow,
    Operator::LongArrow,
    Operator::HashArrow,
    Operator::HashLongArrow,
    Operator::AtAt,
    Operator::IntegerDivide,
    Operator::HashMinus,
];

/// What expressions refer to.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    /// The columns of the input; of the left one, for a join.
    pub(super) left: &'a [Words],
    /// The columns of a join's right input.
    pub(super) right: &'a [Words],
}

impl<'a> Columns<'a> {
    pub(super) fn of(left: &'a [Words]) -> Self {
        Self { left, right: &[] }
    }

    /// An expression in words.
    pub(super) fn expr(self, bytes: &[u8]) -> Option<Words> {
        self.both(|teller| teller.expr(bytes))
    }

    /// The members of a conjunction.
    pub(super) fn conjuncts(self, bytes: &[u8]) -> Option<Vec<Words>> {
        let mut decoder = Decoder::new(bytes);
        if decoder.expect(Tag::And).is_none() {
            return Some(vec![self.expr(bytes)?]);
        }
        let members = decoder.list()?;
        decoder.end()?;
        members.into_iter().map(|member| self.expr(member)).collect()
    }

    /// One key of an order.
    pub(super) fn sort_key(self, bytes: &[u8]) -> Option<Words> {
        self.both(|teller| teller.sort_key(bytes))
    }

    /// An aggregate with its filter.
    pub(super) fn aggregate(self, bytes: &[u8], filter: &[u8]) -> Option<Words> {
        self.both(|teller| {
            let mut text = teller.aggregate(bytes)?;
            let mut decoder = Decoder::new(filter);
            if let Some(filter) = decoder.optional(Decoder::bytes)? {
                text.push_str(&format!(" FILTER (WHERE {})", teller.expr(filter)?));
            }
            decoder.end()?;
            Some(text)
        })
    }

    /// A window function with its frame.
    pub(super) fn window(self, bytes: &[u8]) -> Option<Words> {
        self.both(|teller| teller.window(bytes))
    }

    fn both(self, tell: impl Fn(Teller<'a>) -> Option<String>) -> Option<Words> {
        let short = tell(Teller { columns: self, exact: false, depth: 0 })?;
        let exact = tell(Teller { columns: self, exact: true, depth: 0 })?;
        Some(Words::new(short, &exact))
    }
}

#[derive(Clone, Copy)]
struct Teller<'a> {
    columns: Columns<'a>,
    /// With all that the encoding tells apart, types of constants among it.
    exact: bool,
    depth: usize,
}

impl Teller<'_> {
    fn expr(self, bytes: &[u8]) -> Option<String> {
        let here = Self { depth: self.depth + 1, ..self };
        if here.depth > DEPTH_MAX {
            return None;
        }
        let mut decoder = Decoder::new(bytes);
        let tag = decoder.byte()?;
        let text = match tag {
            tag if tag == Tag::Column as u8 => here.column(self.columns.left, decoder.number()?)?,
            tag if tag == Tag::JoinColumn as u8 => {
                let side = decoder.text()?;
                let columns = if side == "Right" { self.columns.right } else { self.columns.left };
                here.column(columns, decoder.number()?)?
            }
            tag if tag == Tag::Literal as u8 => value::literal(&mut decoder, self.exact)?,
            tag if tag == Tag::And as u8 => here.joined(decoder.list()?, " AND ")?,
            tag if tag == Tag::Or as u8 => here.joined(decoder.list()?, " OR ")?,
            tag if tag == Tag::Equality as u8 || tag == Tag::Binary as u8 => here.binary(&mut decoder)?,
            tag if tag == Tag::Case as u8 => here.case(&mut decoder)?,
            tag if tag == Tag::Cast as u8 => {
                let (inner, target) = (here.expr(decoder.bytes()?)?, value::data_type(decoder.bytes()?)?);
                let (safe, format) = (decoder.flag()?, decoder.text()?);
                match self.exact {
                    true => format!("CAST({inner} AS {target}, safe={safe}, {format})"),
                    false => format!("CAST({inner} AS {target})"),
                }
            }
            tag if tag == Tag::TryCast as u8 => {
                format!("TRY_CAST({} AS {})", here.expr(decoder.bytes()?)?, value::data_type(decoder.bytes()?)?)
            }
            tag if tag == Tag::InList as u8 => {
                let inner = here.nested(decoder.bytes()?)?;
                let not = if decoder.flag()? { "NOT " } else { "" };
                let list = decoder.list()?.into_iter().map(|member| here.expr(member)).collect::<Option<Vec<_>>>()?;
                format!("{inner} {not}IN ({})", list.join(", "))
            }
            tag if tag == Tag::Like as u8 => {
                let not = if decoder.flag()? { "NOT " } else { "" };
                let like = if decoder.flag()? { "ILIKE" } else { "LIKE" };
                format!("{} {not}{like} {}", here.nested(decoder.bytes()?)?, here.nested(decoder.bytes()?)?)
            }
            tag if tag == Tag::IsNull as u8 => format!("{} IS NULL", here.nested(decoder.bytes()?)?),
            tag if tag == Tag::IsNotNull as u8 => format!("{} IS NOT NULL", here.nested(decoder.bytes()?)?),
            tag if tag == Tag::Not as u8 => format!("NOT {}", here.nested(decoder.bytes()?)?),
            tag if tag == Tag::Negative as u8 => format!("-{}", here.nested(decoder.bytes()?)?),
            tag if tag == Tag::Function as u8 => {
                let (name, returns) = (decoder.text()?, value::data_type(decoder.bytes()?)?);
                let call = here.call(name, decoder.list()?)?;
                if self.exact { format!("{call}::{returns}") } else { call }
            }
            // What it computes and on what is one fingerprint.
            tag if tag == Tag::ScalarSubquery as u8 => format!("(subquery {})", short(&decoder.fingerprint()?)),
            _ => return None,
        };
        decoder.end()?;
        Some(text)
    }

    fn column(self, columns: &[Words], ordinal: u64) -> Option<String> {
        let words = columns.get(usize::try_from(ordinal).ok()?)?;
        Some(if self.exact { words.exact.clone() } else { words.short.clone() })
    }

    /// In brackets where it would be read otherwise.
    fn nested(self, bytes: &[u8]) -> Option<String> {
        let text = self.expr(bytes)?;
        let compound = [Tag::And, Tag::Or, Tag::Binary, Tag::Equality, Tag::InList, Tag::Like, Tag::IsNull];
        let is_compound = compound.iter().any(|tag| bytes.first() == Some(&(*tag as u8)));
        // A column may stand for an expression.
        let is_long = bytes.first() == Some(&(Tag::Column as u8)) && text.contains(' ') && !text.ends_with(')');
        Some(if is_compound || is_long { format!("({text})") } else { text })
    }

    fn joined(self, members: Vec<&[u8]>, between: &str) -> Option<String> {
        let members = members.into_iter().map(|member| self.nested(member)).collect::<Option<Vec<_>>>()?;
        Some(members.join(between))
    }

    fn call(self, name: &str, arguments: Vec<&[u8]>) -> Option<String> {
        let arguments = arguments.into_iter().map(|argument| self.expr(argument)).collect::<Option<Vec<_>>>()?;
        Some(format!("{name}({})", arguments.join(", ")))
    }

    fn binary(self, decoder: &mut Decoder<'_>) -> Option<String> {
        let name = decoder.text()?;
        let fails = decoder.flag()?;
        let (left, right) = (decoder.bytes()?, decoder.bytes()?);
        let operator = OPERATORS.iter().find(|operator| format!("{operator:?}") == name);
        let is_literal = |bytes: &[u8]| bytes.first() == Some(&(Tag::Literal as u8));
        let turned = operator.and_then(Operator::swap).filter(|_| is_literal(left) && !is_literal(right));
        // The encoding lets comparisons point one way; people write the constant last.
        let (left, right, symbol) = match (turned, operator) {
            (Some(turned), _) => (right, left, turned.to_string()),
            (None, Some(operator)) => (left, right, operator.to_string()),
            (None, None) => (left, right, name.to_string()),
        };
        let checked = if fails && self.exact { " (checked)" } else { "" };
        Some(format!("{} {symbol}{checked} {}", self.nested(left)?, self.nested(right)?))
    }

    fn case(self, decoder: &mut Decoder<'_>) -> Option<String> {
        let base = decoder.optional(|decoder| self.expr(decoder.bytes()?))?;
        let otherwise = decoder.optional(|decoder| self.expr(decoder.bytes()?))?;
        let mut text = base.map_or_else(|| "CASE".to_string(), |base| format!("CASE {base}"));
        for _ in 0..decoder.count()? {
            let (when, then) = (self.expr(decoder.bytes()?)?, self.expr(decoder.bytes()?)?);
            text.push_str(&format!(" WHEN {when} THEN {then}"));
        }
        if let Some(otherwise) = otherwise {
            text.push_str(&format!(" ELSE {otherwise}"));
        }
        text.push_str(" END");
        Some(text)
    }

    fn sort_key(self, bytes: &[u8]) -> Option<String> {
        let mut decoder = Decoder::new(bytes);
        decoder.expect(Tag::Sort)?;
        let key = self.expr(decoder.bytes()?)?;
        let (descending, nulls_first) = (decoder.flag()?, decoder.flag()?);
        decoder.end()?;
        let order = if descending { " DESC" } else { "" };
        // NULLs come last where nothing is said, and first where the order is turned.
        let nulls = match (descending, nulls_first) {
            (false, true) => " NULLS FIRST",
            (true, false) => " NULLS LAST",
            _ => "",
        };
        Some(format!("{key}{order}{nulls}"))
    }

    fn sort_keys(self, keys: Vec<&[u8]>) -> Option<String> {
        let keys = keys.into_iter().map(|key| self.sort_key(key)).collect::<Option<Vec<_>>>()?;
        Some(keys.join(", "))
    }

    fn aggregate(self, bytes: &[u8]) -> Option<String> {
        let mut decoder = Decoder::new(bytes);
        decoder.expect(Tag::AggregateFunction)?;
        let (name, returns) = (decoder.text()?, value::data_type(decoder.bytes()?)?);
        let (distinct, ignores_nulls, reversed) = (decoder.flag()?, decoder.flag()?, decoder.flag()?);
        let arguments = decoder.list()?;
        let arguments = arguments.into_iter().map(|argument| self.expr(argument)).collect::<Option<Vec<_>>>()?;
        let order = self.sort_keys(decoder.list()?)?;
        decoder.end()?;
        let distinct = if distinct { "DISTINCT " } else { "" };
        let mut text = format!("{name}({distinct}{}", arguments.join(", "));
        if !order.is_empty() {
            text.push_str(&format!(" ORDER BY {order}"));
        }
        text.push(')');
        if ignores_nulls {
            text.push_str(" IGNORE NULLS");
        }
        if self.exact {
            text.push_str(&format!("::{returns} reversed={reversed}"));
        }
        Some(text)
    }

    fn window(self, bytes: &[u8]) -> Option<String> {
        let mut decoder = Decoder::new(bytes);
        decoder.expect(Tag::WindowFunction)?;
        let function = decoder.bytes()?;
        let function = match function.first() == Some(&(Tag::AggregateFunction as u8)) {
            true => self.aggregate(function)?,
            false => self.window_function(function)?,
        };
        let units = decoder.text()?.to_uppercase();
        let (start, end) = (self.bound(decoder.bytes()?)?, self.bound(decoder.bytes()?)?);
        let partition = decoder.list()?.into_iter().map(|key| self.expr(key)).collect::<Option<Vec<_>>>()?;
        let order = self.sort_keys(decoder.list()?)?;
        decoder.end()?;
        let mut over = vec![];
        if !partition.is_empty() {
            over.push(format!("PARTITION BY {}", partition.join(", ")));
        }
        if !order.is_empty() {
            over.push(format!("ORDER BY {order}"));
        }
        over.push(format!("{units} BETWEEN {start} AND {end}"));
        Some(format!("{function} OVER ({})", over.join(" ")))
    }

    fn window_function(self, bytes: &[u8]) -> Option<String> {
        let mut decoder = Decoder::new(bytes);
        decoder.expect(Tag::Function)?;
        let (name, ignores_nulls) = (decoder.text()?, decoder.flag()?);
        let call = self.call(name, decoder.list()?)?;
        decoder.end()?;
        Some(if ignores_nulls { format!("{call} IGNORE NULLS") } else { call })
    }

    fn bound(self, bytes: &[u8]) -> Option<String> {
        let mut decoder = Decoder::new(bytes);
        let name = decoder.text()?;
        if name == "current" {
            decoder.end()?;
            return Some("CURRENT ROW".to_string());
        }
        let value = self.expr(decoder.bytes()?)?;
        decoder.end()?;
        let value = if value.starts_with("NULL") { "UNBOUNDED".to_string() } else { value };
        Some(format!("{value} {}", name.to_uppercase()))
    }
}
