//! [`Outline`]: a program in words, read from its canonical encoding.
//!
//! ```text
//!   step        nodes, part by part
//!   expr        expressions, as people write them
//!   value       constants and types
//!   words       texts in two forms, bounded
//!   difference  what differs between two outlines
//! ```
//!
//! The encoding is all that is kept of a program, so everything that can be said of an old one is in it: names of columns
//! come from its scans, those of expressions are the expressions. For explanations only; nothing here becomes a plan.
//!
//! Honest   what the encoding holds and no word was found for still counts as a difference.
//! Bounded  programs with very many steps have no outline.

mod difference;
mod expr;
mod step;
#[cfg(test)]
mod tests;
mod value;
mod words;

use nectarine_catalog::Fingerprint;

pub use self::difference::Difference;
use self::step::Told;
use self::words::Words;
use super::decoder::Decoder;
use super::encoder::Tag;

/// Programs with more steps have no outline.
const STEPS_MAX: usize = 96;

/// Where files are and how they are reached. Holds secrets: that it differs is told, not how.
const STORE_OPTIONS: &str = "store options";

/// A program as a tree of steps.
#[derive(Debug)]
pub struct Outline {
    /// Children come before their parents; the last one is the top.
    steps: Vec<Step>,
}

/// One node of the program. Both halves of an aggregate are one step.
#[derive(Debug)]
struct Step {
    /// What it is, for people.
    kind: &'static str,
    parts: Vec<Part>,
    children: Vec<usize>,
    /// Of its own encoding, and of the whole subtree.
    own: Fingerprint,
    whole: Fingerprint,
}

/// Something about a step that can be said by itself.
#[derive(Debug)]
struct Part {
    /// What it is, for people: `filter`, `group by`.
    label: &'static str,
    words: Words,
    /// Whether it follows from what is above it, so that it is told only if nothing else differs.
    quiet: bool,
    /// Whether its place among its like counts.
    ordered: bool,
}

impl Outline {
    /// Reads an encoding; `None` if it is not one, of another version say, or has too many steps.
    pub fn read(encoding: &[u8]) -> Option<Self> {
        let mut reader = Reader { steps: vec![], depth: 0 };
        reader.node(encoding)?;
        Some(Self { steps: reader.steps })
    }
}

/// The step that was added, and its columns.
type Added = (usize, Vec<Words>);

struct Reader {
    steps: Vec<Step>,
    /// Steps above the one that is being read: they come after it, and count.
    depth: usize,
}

impl Reader {
    fn node(&mut self, encoding: &[u8]) -> Option<Added> {
        if self.steps.len() + self.depth >= STEPS_MAX {
            return None;
        }
        self.depth += 1;
        let added = self.step(encoding);
        self.depth -= 1;
        added
    }

    fn step(&mut self, encoding: &[u8]) -> Option<Added> {
        let (own, mut below) = split(encoding)?;
        let mut read = Decoder::new(own);
        // Joins are behind their length, everything else starts with its tag. The byte behind a tag's first number could be
        // that of a join only if that number had more than fifty bits.
        if let Some(join) = join_of(own) {
            return self.join(own, join, &below, encoding);
        }
        let tag = read.byte()?;
        let mut aggregation = own;
        if tag == Tag::Aggregation as u8 && Decoder::text(&mut read.clone())? == "final" {
            // The second half says what the first said; what it reads is the first half's input.
            let [first_half] = below.as_slice() else { return None };
            (aggregation, below) = split(first_half)?;
        }
        let mut children = vec![];
        let mut columns = vec![];
        for child in below {
            let (step, named) = self.node(child)?;
            children.push(step);
            columns.push(named);
        }
        let input = columns.first().map(Vec::as_slice).unwrap_or_default();
        let told = match tag {
            tag if tag == Tag::Scan as u8 => step::scan(read)?,
            tag if tag == Tag::Filter as u8 => step::filter(read, input)?,
            tag if tag == Tag::Projection as u8 => step::projection(read, input)?,
            tag if tag == Tag::Aggregation as u8 => step::groups(Decoder::new(&aggregation[1..]), input)?,
            tag if tag == Tag::Sorting as u8 => step::sorting(read, input)?,
            tag if tag == Tag::Limit as u8 => step::limit(read, input)?,
            tag if tag == Tag::Window as u8 => step::windows(read, input)?,
            tag if tag == Tag::Union as u8 => Told::columns("union", input.to_vec()),
            tag if tag == Tag::Empty as u8 => Told::columns("no rows", step::unnamed(read)?),
            tag if tag == Tag::OneRow as u8 => Told::columns("one row", step::unnamed(read)?),
            tag if tag == Tag::Unnest as u8 => step::unnest(read, input)?,
            tag if tag == Tag::Subqueries as u8 => Told::columns("subqueries", input.to_vec()),
            _ => return None,
        };
        // Both halves: only the first says what is grouped by.
        let own = Fingerprint::of_bytes(&[own, aggregation].concat());
        Some(self.add(told, children, own, encoding))
    }

    fn join(&mut self, own: &[u8], join: &[u8], below: &[&[u8]], encoding: &[u8]) -> Option<Added> {
        let [left, right] = below else { return None };
        let (left_step, left) = self.node(left)?;
        let (right_step, right) = self.node(right)?;
        // What follows the join itself is its limit; a cross join has none.
        let mut after = Decoder::new(own.get(8 + join.len()..)?);
        let fetch = match join.first() {
            Some(tag) if *tag == Tag::CrossJoin as u8 => None,
            _ => after.optional(Decoder::number)?,
        };
        after.end()?;
        let told = step::join(join, fetch, &left, &right)?;
        Some(self.add(told, vec![left_step, right_step], Fingerprint::of_bytes(own), encoding))
    }

    fn add(&mut self, told: Told, children: Vec<usize>, own: Fingerprint, encoding: &[u8]) -> Added {
        let whole = Fingerprint::of_bytes(encoding);
        self.steps.push(Step { kind: told.kind, parts: told.parts, children, own, whole });
        (self.steps.len() - 1, told.columns)
    }
}

/// A node's own encoding and those of its children.
fn split(encoding: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut decoder = Decoder::new(encoding);
    let own = decoder.bytes()?;
    let children = decoder.list()?;
    decoder.end()?;
    Some((own, children))
}

/// The encoding of a join, if the node is one.
fn join_of(own: &[u8]) -> Option<&[u8]> {
    let join = Decoder::new(own).bytes()?;
    let tags = [Tag::Join as u8, Tag::CrossJoin as u8, Tag::NestedLoopJoin as u8];
    join.first().filter(|tag| tags.contains(tag)).map(|_| join)
}
