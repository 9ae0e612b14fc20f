//! [`Prefix`]: one subtree of a plan with its two fingerprints, and all subtrees of a plan.
//!
//! ```text
//!   program (FP_P)   what is computed, inputs left open     salt, node, programs of the children
//!   key (FP_PD)      on which extents                       program, extents of every scan below, in order
//! ```

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use nectarine_catalog::{Extent, Fingerprint};

use super::encoder::{Encoder, Tag};
use super::expr::{ExprContext, Naming};
use super::{BuiltIns, Lineage, Salt, Uncacheable, node, scan};

/// What sort of work the top of a prefix does; admission asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrefixKind {
    /// The rows of some extents: the stream has them already.
    Scan,
    /// A choice of columns.
    Projection,
    /// A choice of rows.
    Filter,
    /// Groups.
    Aggregate,
    /// States of groups: the first half of an aggregate.
    States,
    /// Two inputs.
    Join,
    /// Window functions.
    Window,
    /// An order, perhaps with a limit.
    Sort,
    /// The first rows of something.
    Limit,
    /// Inputs one after the other.
    Union,
    /// Lists to rows.
    Unnest,
    /// No input: constants.
    Constant,
}

/// How alike two computations of the same program on the same extents are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Exactness {
    /// The same bits.
    Exact,
    /// The same up to the last bits of floats: they were added in another order.
    Floats,
    /// Perhaps other rows: a choice among equals, or a value that depends on the order of rows.
    Any,
}

/// The extents that one scan reads.
#[derive(Clone, Debug)]
pub struct Input {
    /// What they are together.
    pub fingerprint: Fingerprint,
    /// They themselves, in order.
    pub extents: Arc<[Arc<Extent>]>,
    /// The table, for people.
    pub table: String,
}

impl Input {
    /// Whether the two are the same extents under the same name.
    fn is(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint && self.table == other.table
    }
}

/// A subtree that can be recognised.
#[derive(Clone, Debug)]
pub struct Prefix {
    /// FP_PD: the program on its extents.
    pub key: Fingerprint,
    /// FP_P: the program.
    pub program: Fingerprint,
    /// What its top does.
    pub kind: PrefixKind,
    /// What each scan below reads, in the plan's order; then what the constants in the program were made of: derived tables, and
    /// scalar subqueries, also those that it uses but does not contain. Of these each once, by name.
    pub inputs: Vec<Input>,
    /// Whether computing it again gives the same.
    pub exactness: Exactness,
    /// How alike two computations of those scalar subqueries are that it uses but does not contain.
    pub borrowed: Exactness,
    /// Its columns; only their types mean something.
    pub schema: SchemaRef,
    /// Whether the order of its rows may mean something: it is sorted, or passes on the order of what is.
    pub ordered: bool,
    /// The canonical encoding: top first, then the children, each behind its length.
    pub encoding: Arc<[u8]>,
    /// Which rows these are, and what each column is, whatever other columns stand beside it.
    pub lineage: Lineage,
    /// The same for where it does not matter how often each row is there, if that makes it another.
    pub as_set: Option<Lineage>,
    /// How many of `inputs` belong to scans (the rest to constants, whose data is in the program).
    pub(super) n_scans: usize,
    /// Whether it reads anything itself. What a scalar subquery reads that it uses but does not contain is read elsewhere.
    pub(crate) reads: bool,
    /// Whether it uses a scalar subquery that it does not contain.
    pub(crate) uses_subqueries: bool,
}

impl Prefix {
    /// Today's extents of each scan, from the left.
    pub(crate) fn lists(&self) -> Vec<Arc<[Arc<Extent>]>> {
        self.inputs[..self.n_scans].iter().map(|input| Arc::clone(&input.extents)).collect()
    }

    /// The same program over other extents.
    pub(crate) fn over(&self, lists: &[Arc<[Arc<Extent>]>]) -> Self {
        let mut prefix = self.clone();
        for (input, extents) in prefix.inputs[..self.n_scans].iter_mut().zip(lists) {
            input.fingerprint = scan::extents(extents);
            input.extents = Arc::clone(extents);
        }
        prefix.key = prefix.key_of(&self.program);
        prefix
    }

    /// FP_PD of this program over lists of extents, one for each scan; more lists belong to subqueries.
    pub(crate) fn key_over(&self, lists: &[Arc<[Fingerprint]>]) -> Option<Fingerprint> {
        let named = |list: &Arc<[Fingerprint]>| scan::named(list.len(), list.iter());
        let lists: Vec<Fingerprint> = lists.get(..self.n_scans)?.iter().map(named).collect();
        Some(key(&self.program, lists.iter()))
    }

    /// Whether its rows may depend on the value of a scalar subquery of the plan around it. Told by what the subquery reads: one
    /// that reads nothing is of no interest to who asks where rows come from.
    pub(crate) fn uses(&self, subquery: &Self) -> bool {
        let constants = &self.inputs[self.n_scans..];
        let is_known = |input: &Input| constants.iter().any(|constant| constant.is(input));
        self.uses_subqueries && !subquery.inputs.is_empty() && subquery.inputs.iter().all(is_known)
    }

    /// FP_PD of another program on the extents of this one. They have to have the same scans, as all of a family do.
    pub fn key_of(&self, program: &Fingerprint) -> Fingerprint {
        key(program, self.inputs[..self.n_scans].iter().map(|input| &input.fingerprint))
    }
}

/// FP_PD of a program over what its scans read.
fn key<'a>(program: &Fingerprint, scans: impl ExactSizeIterator<Item = &'a Fingerprint>) -> Fingerprint {
    let mut key = Encoder::new(Tag::Inputs);
    key.fingerprint(program).number(scans.len() as u64);
    scans.for_each(|input| _ = key.fingerprint(input));
    key.finish()
}

/// A node of a plan with what is known of the subtree under it.
#[derive(Debug)]
pub struct PrefixNode {
    /// The node.
    pub plan: Arc<dyn ExecutionPlan>,
    /// Its fingerprints, or why it has none.
    pub prefix: Result<Prefix, Uncacheable>,
    /// The nodes below it.
    pub children: Vec<PrefixNode>,
    /// Whether somebody gave it a name, and wants it kept.
    pub named: bool,
}

impl PrefixNode {
    /// Calls `visit` on this node and all below it, top first.
    pub fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a PrefixNode)) {
        visit(self);
        self.children.iter().for_each(|child| child.for_each(visit));
    }
}

/// All prefixes of a plan. `plan` is DataFusion's initial plan: nothing in it depends on statistics or partitions yet.
pub fn prefixes(
    plan: &Arc<dyn ExecutionPlan>,
    built_ins: &BuiltIns,
    config: &ConfigOptions,
    salt: &Salt,
) -> PrefixNode {
    let met = Cell::new(Exactness::Exact);
    let naming = RefCell::new(Naming::default());
    let met_inputs = RefCell::default();
    let mut context = ExprContext { built_ins, config, scopes: vec![], met, met_inputs, naming };
    node::encode(plan, &mut context, salt)
}

/// What a prefix is put together from, besides its children.
pub(super) struct Parts {
    /// The top's own encoding.
    pub(super) own: Vec<u8>,
    pub(super) kind: PrefixKind,
    /// What the top reads itself.
    pub(super) inputs: Vec<Input>,
    /// What constants of the top were made of: derived tables, and scalar subqueries that it contains.
    pub(super) constants: Vec<Input>,
    /// What scalar subqueries read that the top uses but does not contain.
    pub(super) used: Vec<Input>,
    pub(super) exactness: Exactness,
    pub(super) borrowed: Exactness,
    pub(super) schema: SchemaRef,
}

/// Puts the parts of a prefix together.
pub(super) fn assemble(parts: Parts, children: &[&Prefix], salt: &Salt) -> Prefix {
    let Parts { own, kind, inputs: own_inputs, constants, used, exactness: own_exactness, borrowed, schema } = parts;
    let borrowed = children.iter().map(|child| child.borrowed).fold(borrowed, Ord::max);
    let passes_order = matches!(
        kind,
        PrefixKind::Projection | PrefixKind::Filter | PrefixKind::Limit | PrefixKind::Window | PrefixKind::Unnest
    );
    let ordered = kind == PrefixKind::Sort || (passes_order && children.iter().any(|child| child.ordered));
    let mut program = Encoder::new(Tag::Program);
    program.fingerprint(salt.fingerprint()).bytes(&own).number(children.len() as u64);
    children.iter().for_each(|child| _ = program.fingerprint(&child.program));
    let program = program.finish();

    let scans = children.iter().flat_map(|child| &child.inputs[..child.n_scans]).cloned();
    let mut inputs: Vec<Input> = own_inputs.into_iter().chain(scans).collect();
    let n_scans = inputs.len();
    let key = key(&program, inputs.iter().map(|input| &input.fingerprint));

    let reads = n_scans > 0 || !constants.is_empty() || children.iter().any(|child| child.reads);
    let uses_subqueries = !used.is_empty() || children.iter().any(|child| child.uses_subqueries);
    let below = children.iter().flat_map(|child| &child.inputs[child.n_scans..]).cloned();
    let mut constants: Vec<Input> = below.chain(constants).chain(used).collect();
    // One subquery is met wherever its value is used, and in an order that depends on how a condition was written.
    constants.sort_by(|one, two| (&one.table, &one.fingerprint).cmp(&(&two.table, &two.fingerprint)));
    constants.dedup_by(|one, two| one.is(two));
    inputs.extend(constants);
    let mut encoding = Encoder::default();
    encoding.bytes(&own).number(children.len() as u64);
    children.iter().for_each(|child| _ = encoding.bytes(&child.encoding));
    let exactness = children.iter().map(|child| child.exactness).fold(own_exactness, Ord::max);
    let lineage = Lineage::alone(&program, schema.fields().len());
    Prefix {
        key,
        program,
        kind,
        inputs,
        exactness,
        borrowed,
        schema,
        ordered,
        encoding: encoding.into_bytes().into(),
        lineage,
        as_set: None,
        n_scans,
        reads,
        uses_subqueries,
    }
}
