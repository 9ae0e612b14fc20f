//! Nodes, part by part, each from its own encoding.

use super::super::decoder::Decoder;
use super::super::encoder::Tag;
use super::expr::Columns;
use super::words::Words;
use super::{Part, STORE_OPTIONS, value};

/// What is said of a node.
pub(super) struct Told {
    pub(super) kind: &'static str,
    pub(super) parts: Vec<Part>,
    /// The columns it has, by what they stand for.
    pub(super) columns: Vec<Words>,
}

impl Told {
    pub(super) fn columns(kind: &'static str, columns: Vec<Words>) -> Self {
        Self { kind, parts: vec![], columns }
    }

    /// Something whose place means nothing.
    fn part(&mut self, label: &'static str, words: Words) {
        self.parts.push(Part { label, words, quiet: false, ordered: false });
    }

    /// Something whose place counts.
    fn item(&mut self, label: &'static str, words: Words) {
        self.parts.push(Part { label, words, quiet: false, ordered: true });
    }

    /// A choice of columns, which follows from what is above it.
    fn choice(&mut self, words: Words) {
        self.parts.push(Part { label: "column", words, quiet: true, ordered: true });
    }

    fn limit(&mut self, fetch: Option<u64>) {
        if let Some(fetch) = fetch {
            self.part("limit", Words::plain(fetch.to_string()));
        }
    }

    fn project(&mut self, ordinals: Option<Vec<usize>>) -> Option<()> {
        if let Some(ordinals) = ordinals {
            self.columns =
                ordinals.into_iter().map(|ordinal| self.columns.get(ordinal).cloned()).collect::<Option<_>>()?;
        }
        Some(())
    }
}

pub(super) fn scan(mut read: Decoder<'_>) -> Option<Told> {
    let mut told = Told::columns("scan", vec![]);
    let format = read.text()?;
    told.part("file format", Words::plain(format));
    for option in read.list()? {
        let mut option = Decoder::new(option);
        told.part("reader option", Words::plain(format!("{}={}", option.text()?, option.text()?)));
        option.end()?;
    }
    let store = read.fingerprint()?;
    told.part(STORE_OPTIONS, Words::plain(store.to_string()));
    let typed = |(name, data_type): (String, String)| Words::plain(format!("{name} {data_type}"));
    if format == "Csv" {
        for field in read.list()? {
            told.item("file column", typed(value::field(field)?));
        }
        read.optional(Decoder::numbers)?;
    }
    for field in read.list()? {
        told.item("partition column", typed(value::field(field)?));
    }
    for field in read.list()? {
        let (name, data_type) = value::field(field)?;
        told.columns.push(Words::plain(name.clone()));
        told.choice(typed((name, data_type)));
    }
    read.end()?;
    Some(told)
}

pub(super) fn filter(mut read: Decoder<'_>, input: &[Words]) -> Option<Told> {
    let mut told = Told::columns("filter", input.to_vec());
    for conjunct in Columns::of(input).conjuncts(read.bytes()?)? {
        told.part("filter", conjunct);
    }
    told.limit(read.optional(Decoder::number)?);
    told.project(read.optional(Decoder::numbers)?)?;
    read.end()?;
    Some(told)
}

pub(super) fn projection(mut read: Decoder<'_>, input: &[Words]) -> Option<Told> {
    let mut told = Told::columns("columns", vec![]);
    for bytes in read.list()? {
        let words = Columns::of(input).expr(bytes)?;
        match bytes.first() == Some(&(Tag::Column as u8)) {
            true => told.choice(words.clone()),
            false => told.item("column", words.clone()),
        }
        told.columns.push(words);
    }
    read.end()?;
    Some(told)
}

pub(super) fn groups(mut read: Decoder<'_>, input: &[Words]) -> Option<Told> {
    let mut told = Told::columns("groups", vec![]);
    let columns = Columns::of(input);
    let mode = read.text()?;
    let mut by = Decoder::new(read.bytes()?);
    by.expect(Tag::Aggregate)?;
    for key in by.list()? {
        let words = columns.expr(key)?;
        told.columns.push(words.clone());
        told.item("group by", words);
    }
    by.list()?;
    let has_sets = by.flag()?;
    let mut sets = vec![];
    for _ in 0..by.count()? {
        let left_out = (0..by.count()?).map(|_| by.flag()).collect::<Option<Vec<_>>>()?;
        let kept = told.columns.iter().zip(&left_out).filter(|(_, left_out)| !**left_out);
        sets.push(format!("({})", kept.map(|(key, _)| key.short.as_str()).collect::<Vec<_>>().join(", ")));
    }
    by.end()?;
    if has_sets {
        told.part("grouping sets", Words::plain(sets.join(", ")));
        told.columns.push(Words::plain("grouping id"));
    }
    for _ in 0..read.count()? {
        let words = columns.aggregate(read.bytes()?, read.bytes()?)?;
        told.columns.push(words.clone());
        told.item("aggregate", words);
    }
    let n_columns = n_types(read.bytes()?)?;
    read.end()?;
    // States have no names, and an aggregate may have several.
    if !matches!(mode, "partial" | "single") || (mode == "single" && n_columns != told.columns.len()) {
        told.columns = (0..n_columns).map(|ordinal| Words::plain(format!("state {ordinal}"))).collect();
    }
    Some(told)
}

pub(super) fn sorting(mut read: Decoder<'_>, input: &[Words]) -> Option<Told> {
    let mut told = Told::columns("sort", input.to_vec());
    for key in read.list()? {
        told.item("order by", Columns::of(input).sort_key(key)?);
    }
    told.limit(read.optional(Decoder::number)?);
    read.end()?;
    Some(told)
}

pub(super) fn limit(read: Decoder<'_>, input: &[Words]) -> Option<Told> {
    let mut told = Told::columns("limit", input.to_vec());
    let global = |mut read: Decoder<'_>| {
        let (skip, fetch) = (read.number()?, read.optional(Decoder::number)?);
        read.end()?;
        Some((skip, fetch))
    };
    let local = |mut read: Decoder<'_>| {
        let fetch = (read.text()? == "local").then(|| read.number())??;
        read.end()?;
        Some((0, Some(fetch)))
    };
    let (skip, fetch) = global(read).or_else(|| local(read))?;
    if skip > 0 {
        told.part("offset", Words::plain(skip.to_string()));
    }
    told.limit(fetch);
    Some(told)
}

pub(super) fn windows(mut read: Decoder<'_>, input: &[Words]) -> Option<Told> {
    let mut told = Told::columns("window", input.to_vec());
    for function in read.list()? {
        let words = Columns::of(input).window(function)?;
        told.columns.push(words.clone());
        told.item("window function", words);
    }
    read.end()?;
    Some(told)
}

pub(super) fn unnest(mut read: Decoder<'_>, input: &[Words]) -> Option<Told> {
    let n_columns = n_types(read.bytes()?)?;
    let mut told = Told::columns("unnest", vec![]);
    told.part("nulls", Words::plain(read.text()?));
    let name = |ordinal: usize| input.get(ordinal).map_or("?", |words| words.short.as_str()).to_string();
    for _ in 0..read.count()? {
        let (ordinal, depth) = (usize::try_from(read.number()?).ok()?, read.number()?);
        told.part("unnest", Words::plain(format!("{} (depth {depth})", name(ordinal))));
    }
    for ordinal in read.numbers()? {
        told.part("unnest", Words::plain(name(ordinal)));
    }
    read.end()?;
    told.columns = (0..n_columns).map(|ordinal| Words::plain(format!("column {}", ordinal + 1))).collect();
    Some(told)
}

pub(super) fn join(bytes: &[u8], fetch: Option<u64>, left: &[Words], right: &[Words]) -> Option<Told> {
    let mut read = Decoder::new(bytes);
    let columns = Columns { left, right };
    let tag = read.byte()?;
    let mut told = Told::columns("join", vec![]);
    let mut join_type = "Cross";
    if tag != Tag::CrossJoin as u8 {
        join_type = read.text()?;
    }
    told.part("join type", Words::plain(join_type));
    if tag == Tag::Join as u8 {
        told.part("join of NULLs", Words::plain(read.text()?));
        let null_aware = read.flag()?;
        if null_aware {
            told.part("join of NULLs", Words::plain("as in NOT IN"));
        }
        for pair in read.list()? {
            let mut pair = Decoder::new(pair);
            pair.expect(Tag::Equality)?;
            let (one, two) = (Columns::of(left).expr(pair.bytes()?)?, Columns::of(right).expr(pair.bytes()?)?);
            pair.end()?;
            let exact = format!("{} = {}", one.exact, two.exact);
            told.part("join on", Words::new(format!("{} = {}", one.short, two.short), &exact));
        }
    }
    let mut projection = None;
    if tag != Tag::CrossJoin as u8 {
        if let Some(filter) = read.optional(Decoder::bytes)? {
            for conjunct in columns.conjuncts(filter)? {
                told.part("join on", conjunct);
            }
        }
        projection = read.optional(Decoder::numbers)?;
    }
    read.end()?;
    told.limit(fetch);
    told.columns = match join_type {
        "LeftSemi" | "LeftAnti" => left.to_vec(),
        "RightSemi" | "RightAnti" => right.to_vec(),
        "LeftMark" => [left, &[Words::plain("mark")]].concat(),
        "RightMark" => [right, &[Words::plain("mark")]].concat(),
        _ => [left, right].concat(),
    };
    told.project(projection)?;
    Some(told)
}

/// Columns of which only the types are known.
pub(super) fn unnamed(mut read: Decoder<'_>) -> Option<Vec<Words>> {
    let n_columns = n_types(read.bytes()?)?;
    read.end()?;
    Some((0..n_columns).map(|ordinal| Words::plain(format!("column {}", ordinal + 1))).collect())
}

fn n_types(bytes: &[u8]) -> Option<usize> {
    let mut read = Decoder::new(bytes);
    read.expect(Tag::Fields)?;
    let types = read.list()?;
    read.end()?;
    Some(types.len())
}
