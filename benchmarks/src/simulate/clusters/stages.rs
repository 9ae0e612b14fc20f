//! [`Stages`]: what people do with one stream, as a tree. A program is a path from its root, so two programs that share the beginning
//! of their paths share a prefix.
//!
//! What many did before, more will do: a new program goes along with others in proportion to how many went there.

use super::super::workload::{Key, Kind, Prefix};
use crate::random::Random;

/// Microseconds of machine time for a byte of a stream, mostly: with this and the sizes of extents, what caching saves in all is
/// of the order of the paper's 35078 hours a day.
const US_PER_BYTE: f64 = 0.1;
/// The same for a byte that another stage left: joins, groups and sorts do more with each.
const US_PER_BYTE_ABOVE: f64 = 0.4;

/// Programs over one stream.
pub(super) struct Stages {
    stages: Vec<Stage>,
}

/// One operation on what the stages below it leave.
struct Stage {
    /// The program that ends here.
    program: u32,
    kind: Kind,
    below: Option<usize>,
    us_per_byte: f64,
    /// Bytes that it leaves for each that it reads of one extent.
    leaves: f64,
    /// Programs that begin with it.
    n_programs: f64,
}

/// A program, as the top of its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Program(usize);

impl Stages {
    pub(super) fn new() -> Self {
        Self { stages: vec![] }
    }

    /// A program that somebody writes. `sharing` is how often they begin or go on as others did.
    pub(super) fn write(&mut self, random: &mut Random, sharing: f64, next: &mut u32) -> Program {
        let n_stages = 2 + random.below(4);
        let mut top = None;
        for _ in 0..n_stages {
            top = Some(self.go_on(random, top, sharing, next));
        }
        Program(top.unwrap_or_default())
    }

    /// The same with its last stages changed.
    pub(super) fn rewrite(&mut self, random: &mut Random, program: Program, next: &mut u32) -> Program {
        let n_stages = self.path(program).count();
        let n_changed = (1 + random.below(2) as usize).min(n_stages - 1);
        let mut top = self.path(program).nth(n_changed);
        for _ in 0..n_changed {
            top = Some(self.go_on(random, top, 0.0, next));
        }
        Program(top.unwrap_or(program.0))
    }

    /// Its prefixes from the root down, over so many bytes of a stream.
    pub(super) fn prefixes(&self, program: Program, key: Key, input_bytes: u64, is_window: bool) -> Vec<Prefix> {
        let path: Vec<&Stage> = self.path(program).map(|stage| &self.stages[stage]).collect();
        let n_extents = f64::from(key.end - key.first);
        let (mut cost_us, mut bytes) = (0.0, input_bytes as f64);
        let mut prefixes = vec![];
        for stage in path.into_iter().rev() {
            cost_us += bytes * stage.us_per_byte;
            bytes *= stage.leaves;
            if stage.kind == Kind::Groups {
                // Most groups of a further extent are known from those before it.
                bytes /= n_extents.sqrt();
            }
            let kind = if is_window && stage.kind == Kind::Groups { Kind::WindowGroups } else { stage.kind };
            let key = Key { program: stage.program, ..key };
            prefixes.push(Prefix { key, kind, cost_us: cost_us as u64, bytes: bytes as u64 });
        }
        prefixes.reverse();
        prefixes
    }

    /// One more stage on top of `below`: as others did, or a new one.
    fn go_on(&mut self, random: &mut Random, below: Option<usize>, sharing: f64, next: &mut u32) -> usize {
        let others: Vec<usize> = (0..self.stages.len()).filter(|idx| self.stages[*idx].below == below).collect();
        let chosen = match others.is_empty() || !random.chance(sharing) {
            true => self.invent(random, below, next),
            false => {
                let sum: f64 = others.iter().map(|idx| self.stages[*idx].n_programs).sum();
                let mut left = random.fraction() * sum;
                let is_it = |idx: &&usize| {
                    left -= self.stages[**idx].n_programs;
                    left <= 0.0
                };
                others.iter().find(is_it).copied().unwrap_or(others[0])
            }
        };
        self.stages[chosen].n_programs += 1.0;
        chosen
    }

    fn invent(&mut self, random: &mut Random, below: Option<usize>, next: &mut u32) -> usize {
        let kind = match below.map(|below| self.stages[below].kind) {
            None => Kind::Rows,
            Some(Kind::Rows) if random.chance(0.4) => Kind::Rows,
            Some(Kind::Rows) if random.chance(0.8) => Kind::Groups,
            // What stands on groups does not decompose.
            Some(_) => Kind::Whole,
        };
        let leaves = match kind {
            Kind::Rows => random.magnitude(0.03, 0.8),
            Kind::Groups | Kind::WindowGroups => random.magnitude(0.0005, 0.2),
            Kind::Whole => random.magnitude(0.01, 1.0),
        };
        let us_per_byte = random.skewed(if below.is_none() { US_PER_BYTE } else { US_PER_BYTE_ABOVE }, 0.7);
        *next += 1;
        self.stages.push(Stage { program: *next, kind, below, us_per_byte, leaves, n_programs: 0.0 });
        self.stages.len() - 1
    }

    /// From its top down.
    fn path(&self, program: Program) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(program.0), |stage| self.stages[*stage].below)
    }
}
