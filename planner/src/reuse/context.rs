//! [`ReuseContext`]: one statement's mode and policy on the way in, its findings on the way out.
//!
//! The rule list belongs to all statements; what belongs to one travels in its configuration, as an extension that has no
//! options.

use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use datafusion::common::{Result, plan_err};
use datafusion::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::physical_plan::ExecutionPlan;
use nectarine_catalog::{Fingerprint, TableName};
use parking_lot::Mutex;

use super::{AdmissionPolicy, CacheOracle, Found, PrefixReport, Recheck, Unchecked};
use crate::canonical::{BuiltIns, Prefix, Salt, Uncacheable};
use crate::node::Worth;

/// Stored bytes of states that are merged at most, however much memory there is.
const MERGE_BYTES_MAX: u64 = 64 << 20;

/// Joins and the like that read less than this are computed as often as they are needed: running them first would take as long.
const SHARE_BYTES_MIN: u64 = 8 << 20;

/// What a session wants of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReuseMode {
    /// Read and keep.
    #[default]
    On,
    /// Neither.
    Off,
    /// Read, keep nothing.
    ReadOnly,
    /// Compute anew, and replace what was kept.
    Refresh,
    /// Compute anew, and compare with what was kept.
    Check,
}

impl ReuseMode {
    /// Whether entries are read.
    pub fn reads(self) -> bool {
        matches!(self, Self::On | Self::ReadOnly)
    }

    /// Whether entries are made.
    pub fn keeps(self) -> bool {
        matches!(self, Self::On | Self::Refresh | Self::Check)
    }
}

/// An entry that takes the place of a prefix.
#[derive(Clone, Debug)]
pub struct Hit {
    /// FP_PD.
    pub key: Fingerprint,
    /// FP_P.
    pub program: Fingerprint,
    /// The entry.
    pub found: Found,
    /// Whether it is the whole answer.
    pub is_root: bool,
}

/// A prefix that occurs several times in a plan.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// Which.
    pub prefix: Prefix,
    /// One occurrence, as it was in the initial plan.
    pub plan: Arc<dyn ExecutionPlan>,
    /// What keeping its rows may cost.
    pub worth: Worth,
}

/// A prefix that the plan keeps.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Which, over which extents.
    pub prefix: Prefix,
    /// What computing the entries took that it is made from, in microseconds.
    pub reused_us: u64,
    /// What it is made of.
    pub made_of: MadeOf,
}

/// What the rows of a plan are made of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MadeOf {
    /// Entries that are read.
    pub entries: Vec<Fingerprint>,
    /// Extents that are read; `None` if all are, because no entry is.
    pub scanned: Option<Arc<HashSet<Fingerprint>>>,
}

impl MadeOf {
    /// Adds what the value of a scalar subquery is made of.
    pub(super) fn add(&mut self, entries: &[Fingerprint], scanned: &HashSet<Fingerprint>) {
        for entry in entries {
            if !self.entries.contains(entry) {
                self.entries.push(*entry);
            }
        }
        if let Some(known) = &mut self.scanned {
            Arc::make_mut(known).extend(scanned.iter().copied());
        }
    }
}

/// How many extents a plan is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExtentCounts {
    /// All that its scans name, each once.
    pub total: usize,
    /// Those among them that are not read, because entries have what is needed of them.
    pub reused: usize,
}

/// What a materialized view in a plan computes, over today's extents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedPrefix {
    /// The view.
    pub name: TableName,
    /// FP_P.
    pub program: Fingerprint,
    /// FP_PD.
    pub key: Fingerprint,
}

/// What the rule found and decided.
#[derive(Debug)]
pub struct Findings {
    /// The whole plan.
    pub root: Result<Prefix, Uncacheable>,
    /// Whether the whole plan is worth keeping, as far as can be told before it runs.
    pub keeps_root: bool,
    /// Entries that the plan reads.
    pub hits: Vec<Hit>,
    /// Prefixes below the root that the plan keeps, by the ordinal of their AddEntry.
    pub kept: Vec<Kept>,
    /// What the plan would compute more than once: run first, and read wherever it is needed.
    pub repeated: Vec<Repeated>,
    /// In check mode: entries over some extents, and states, to be computed anew by themselves.
    pub rechecks: Vec<Recheck>,
    /// For VERIFY: entries that can not be.
    pub unchecked: Vec<Unchecked>,
    /// Extents below the plan, and how many of them need not be read. Only told where something is reused.
    pub extents: ExtentCounts,
    /// Materialized views that the plan reads. Those inside of derived tables are not among them: their extents are of old.
    pub named: Vec<NamedPrefix>,
    /// What the whole answer is made of.
    pub made_of: MadeOf,
    /// Extents that the plan reads, by their fingerprints.
    pub scanned: HashSet<Fingerprint>,
    /// One line for each node that was looked at.
    pub report: Vec<PrefixReport>,
    /// Whether values may be computed, for the sake of the cache, that the statement by itself would not look at: all rows of a view or
    /// a derived table, groups that a limit would have cut short, rows that a limit or a join would have left unread. One of them may
    /// be no value at all, such as a division by zero.
    pub sees_more: bool,
}

impl Findings {
    /// Whether the whole answer is there.
    pub fn is_exact(&self) -> bool {
        self.hits.iter().any(|hit| hit.is_root)
    }
}

/// One statement's reuse.
pub struct ReuseContext {
    /// What is wanted.
    pub mode: ReuseMode,
    /// What is known.
    pub oracle: Arc<dyn CacheOracle>,
    /// Functions that are what they say.
    pub built_ins: Arc<BuiltIns>,
    /// What is worth keeping.
    pub policy: AdmissionPolicy,
    /// Entries that turned out damaged or missing while this statement wanted them.
    pub banned: HashSet<Fingerprint>,
    /// Entries that this statement made, of what it needs several times. They are as good as computed.
    pub made: HashSet<Fingerprint>,
    /// Whether look-ups count; they do not for EXPLAIN.
    pub counts: bool,
    /// Whether somebody wants to know all about each prefix.
    pub explains: bool,
    /// Whether all entries are to be computed anew; see [`Findings::rechecks`].
    pub verifies: bool,
    /// Stored bytes of states that are merged into one entry at most.
    pub merge_bytes_max: u64,
    /// Branches of a plan that may hold groups at the same time, each of which takes its share of the memory.
    pub branches_max: usize,
    /// Bytes that joins and the like must read to be computed once for all who need them: at least, unless luck decides their rows,
    /// and at most.
    pub share_bytes: RangeInclusive<u64>,
    /// The salt of the statement's settings, if it is known already.
    salt: Option<Salt>,
    findings: Mutex<Option<Findings>>,
}

impl ReuseContext {
    /// A context that has found nothing yet.
    pub fn new(
        mode: ReuseMode,
        oracle: Arc<dyn CacheOracle>,
        built_ins: Arc<BuiltIns>,
        policy: AdmissionPolicy,
        banned: HashSet<Fingerprint>,
        counts: bool,
    ) -> Self {
        Self {
            mode,
            oracle,
            built_ins,
            policy,
            banned,
            made: HashSet::new(),
            counts,
            explains: false,
            verifies: false,
            merge_bytes_max: MERGE_BYTES_MAX,
            branches_max: usize::MAX,
            share_bytes: SHARE_BYTES_MIN..=u64::MAX,
            salt: None,
            findings: Mutex::default(),
        }
    }

    /// The same for EXPLAIN REUSE: nothing is counted, and the report holds all about each prefix.
    #[must_use]
    pub fn explaining(self) -> Self {
        Self { counts: false, explains: true, ..self }
    }

    /// The same for VERIFY: nothing is counted, and every entry of the plan is computed anew.
    #[must_use]
    pub fn verifying(self) -> Self {
        Self { counts: false, verifies: true, ..self }
    }

    /// The same for a statement that made these entries itself.
    #[must_use]
    pub fn with_made(self, made: HashSet<Fingerprint>) -> Self {
        Self { made, ..self }
    }

    /// The same with less room for merging.
    #[must_use]
    pub fn with_merge_bytes_max(mut self, bytes: u64) -> Self {
        self.merge_bytes_max = bytes.min(MERGE_BYTES_MAX);
        self
    }

    /// The same where memory is to be shared by few.
    #[must_use]
    pub fn with_branches_max(mut self, branches: usize) -> Self {
        self.branches_max = branches;
        self
    }

    /// The same where everything is taken to be worth computing once.
    #[must_use]
    pub fn sharing_everything(mut self) -> Self {
        self.share_bytes = 0..=u64::MAX;
        self
    }

    /// The same where what reads more than this gives more than could be kept.
    #[must_use]
    pub fn with_share_bytes_max(mut self, bytes: u64) -> Self {
        self.share_bytes = *self.share_bytes.start()..=bytes;
        self
    }

    /// The same for a caller that knows the salt of the statement's settings, which takes a while to work out.
    #[must_use]
    pub fn with_salt(mut self, salt: Salt) -> Self {
        self.salt = Some(salt);
        self
    }

    /// Whether an entry may be read.
    pub(super) fn reads(&self, key: &Fingerprint) -> bool {
        self.mode.reads() || self.made.contains(key)
    }

    pub(super) fn salt(&self, config: &ConfigOptions) -> Salt {
        self.salt.unwrap_or_else(|| Salt::new(config))
    }

    /// What the rule found the last time it ran.
    pub fn take_findings(&self) -> Option<Findings> {
        self.findings.lock().take()
    }

    pub(super) fn found(&self, findings: Findings) {
        *self.findings.lock() = Some(findings);
    }
}

impl fmt::Debug for ReuseContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReuseContext").field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// Carries a [`ReuseContext`] in a statement's configuration.
#[derive(Clone, Debug, Default)]
pub struct ReuseExtension(pub Option<Arc<ReuseContext>>);

impl ConfigExtension for ReuseExtension {
    const PREFIX: &'static str = "nectarine_statement_reuse";
}

impl ExtensionOptions for ReuseExtension {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _value: &str) -> Result<()> {
        plan_err!("there is no setting \"{}.{key}\"", Self::PREFIX)
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        vec![]
    }
}
