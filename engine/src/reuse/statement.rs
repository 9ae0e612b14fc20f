//! [`StatementReuse`]: one statement's way from logical plan to a plan that reads what is there.
//!
//! ```text
//!   plan --> entries loaded? --no--> drop the entry, plan again without it
//!     |          yes
//!     +--> whole answer there, or nobody else computes it --> run
//!                 somebody does --> wait, plan again
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::physical_planner::DefaultPhysicalPlanner;
use futures::StreamExt;
use nectarine_catalog::{Fingerprint, PinMoves};
use nectarine_executor::{Lowering, NotRecorded, RecordingLimits, StatementLowering};
use nectarine_planner::canonical::{Exactness, Prefix};
use nectarine_planner::reuse::{
    AdmissionPolicy, Findings, Repeated, ReuseContext, ReuseExtension, ReuseMode, Unchecked,
};

use super::in_flight::Turn;
use super::late::{Unusable, lower_reads};
use super::{Keeping, Leader, Oracle, Ran, Reuse, Root, Verified, check};
use crate::cluster;
use crate::derived::still_there;
use crate::engine::options;
use crate::machine;
use crate::query_memory::task_context;
use crate::redact::redact;
use crate::settings::{parse_size, reuse_mode};
use crate::statement::StatementCatalog;
use crate::{EngineError, ErrorKind, Notice, Result};

/// How often a statement is planned again before it does without the cache.
const TRIES_MAX: usize = 8;

/// How often a statement computes something first only to save time: what is needed twice may be made of something that is.
const RUN_FIRST_MAX: usize = 3;

/// The same for what luck decides: all who mention it are to see the same, however deep that goes.
const RUN_LUCK_FIRST_MAX: usize = 100;

/// What reads so many times the bytes of the largest entry is not run first to see whether it could be kept.
const READ_PER_KEPT: u64 = 4;

/// How long a statement waits for the store to take what it is about to read.
const RUN_FIRST_WAIT: Duration = Duration::from_secs(2);

/// States are merged if they take no more than one part in so many of the memory, packed as they are stored.
const MERGE_MEMORY_SHARE: u64 = 128;

/// Memory for each branch that a plan gets because of the cache, and each of its partitions. DataFusion divides memory by the
/// number of those who might need some, and who gets too little fails, where one who had it all would not.
const BRANCH_BYTES: u64 = 32 << 20;

/// A plan that can run.
pub(crate) struct Planned {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) notices: Vec<Notice>,
    /// What was found; `None` without reuse.
    pub(crate) findings: Option<Findings>,
    /// What is recorded while it runs.
    pub(crate) keeping: Option<Keeping>,
    /// Held by the one who computes for all.
    pub(crate) leader: Option<Leader>,
    /// The statement's program.
    pub(crate) ran: Option<Arc<Ran>>,
}

/// What came of running something first.
enum First {
    /// It can be read, or tried again.
    Kept,
    /// It was not worth it; so many bytes were too few to keep it.
    TooDear { bytes: u64 },
}

/// One statement's reuse.
pub(crate) struct StatementReuse<'a> {
    reuse: &'a Reuse,
    state: &'a SessionState,
    catalog: &'a Arc<StatementCatalog>,
    mode: ReuseMode,
    banned: HashSet<Fingerprint>,
    notices: Vec<Notice>,
    has_learnt: bool,
    /// The statement, without secrets.
    text: String,
    /// Whether the answer is kept whatever it is worth.
    must_keep: bool,
    /// Bytes that what runs on executors, which read no entries, has to read.
    travels_from: Option<u64>,
    /// What ran first.
    tried: HashSet<Fingerprint>,
    /// Entries that came of it, with their programs.
    made: HashMap<Fingerprint, Fingerprint>,
}

impl<'a> StatementReuse<'a> {
    pub(crate) fn new(reuse: &'a Reuse, state: &'a SessionState, catalog: &'a Arc<StatementCatalog>) -> Result<Self> {
        let mode = reuse_mode(&options(state.config_options()).reuse)?;
        let (banned, notices, text) = (HashSet::new(), vec![], String::new());
        Ok(Self {
            reuse,
            state,
            catalog,
            mode,
            banned,
            notices,
            has_learnt: false,
            text,
            must_keep: false,
            travels_from: None,
            tried: HashSet::new(),
            made: HashMap::new(),
        })
    }

    /// Which statement it is, for those who ask where results come from.
    pub(crate) fn of(mut self, text: &str) -> Self {
        self.text = redact(text.trim());
        self
    }

    /// The same for who wants the answer kept whatever it is worth.
    pub(crate) fn must_keep(self) -> Self {
        Self { must_keep: true, ..self }
    }

    /// The same for who keeps nothing: reads what is there, or computes.
    pub(crate) fn read_only(self) -> Self {
        let mode = if self.mode == ReuseMode::On { ReuseMode::ReadOnly } else { ReuseMode::Off };
        Self { mode, ..self }
    }

    /// The same as if there were no cache.
    pub(crate) fn off(self) -> Self {
        Self { mode: ReuseMode::Off, ..self }
    }

    /// The statement's program, if it has one and reads something.
    fn ran(&self, plan: &LogicalPlan, findings: &Findings) -> Option<Arc<Ran>> {
        let root = findings.root.as_ref().ok().filter(|root| !root.inputs.is_empty())?;
        let config = self.state.config_options();
        Some(Arc::new(Ran::new(root, self.text.clone(), plan.clone(), config, self.catalog)))
    }

    /// Plans a statement. `is_query`: its rows are the answer, and may be kept as such.
    pub(crate) async fn plan(mut self, logical: &LogicalPlan, is_query: bool) -> Result<Planned> {
        let is_explain = matches!(logical, LogicalPlan::Explain(_));
        let describes = matches!(logical, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        if self.mode == ReuseMode::Off {
            return self.without(logical).await;
        }
        self.travels_from = match is_query {
            true => cluster::travels_from(self.state, self.catalog).await,
            false => None,
        };
        self.reuse.refresh().await;
        self.notices.extend(self.reuse.trouble.tell().into_iter().chain(self.reuse.trouble.tell_undeleted()));
        let mut counts = !is_explain;
        let (mut n_tries, mut n_first) = (0, 0);
        let mut may_wait = true;
        while n_tries < TRIES_MAX {
            n_tries += 1;
            let (context, lowering, oracle) = self.contexts(counts)?;
            // Planning again for the same statement is not another look-up.
            counts = false;
            let mut state = self.state.clone();
            let extensions = &mut state.config_mut().options_mut().extensions;
            extensions.insert(ReuseExtension(Some(Arc::clone(&context))));
            if !is_explain {
                extensions.insert(StatementLowering(Arc::clone(&lowering)));
            }
            let plan = Box::pin(state.create_physical_plan(logical)).await?;
            if self.learn(&oracle).await {
                continue;
            }
            if is_explain {
                // Shown, not run: nothing is reused.
                let notices = self.notices;
                return Ok(Planned { plan, notices, findings: None, keeping: None, leader: None, ran: None });
            }
            let plan = match self.lower(plan).await? {
                Ok(plan) => plan,
                Err(unusable) => {
                    self.give_up(unusable).await;
                    continue;
                }
            };
            let Some(findings) = context.take_findings() else { return self.without(logical).await };
            still_there(self.catalog, Some(&findings.scanned)).await?;
            let ran = self.ran(logical, &findings);
            let first = self.first(&findings, n_first);
            if !first.is_empty() {
                n_first += 1;
                // It was a try of something else.
                n_tries -= 1;
                self.run_first(&state, &first, ran.as_ref()).await;
                // Also if nothing came of it: nodes of this plan have run, and hold what they came to (rows of a join's one side,
                // or an error). A plan that runs is made of new ones.
                continue;
            }
            for recheck in &findings.rechecks {
                check::recheck(self.reuse, self.state, self.catalog, recheck).await?;
            }
            let mut keeping = Keeping::new(self.reuse.clone(), self.mode, &lowering, &findings, self.catalog);
            keeping.describe(&self.text, ran.clone());
            keeping.replaces(&self.banned);
            keeping.moves(self.follow(&findings).await);
            let mut leader = None;
            let keeps_root = findings.keeps_root || self.must_keep;
            let may_keep = is_query && !describes && !findings.is_exact() && keeps_root && self.mode.keeps();
            if let Ok(root) = &findings.root
                && may_keep
                && !root.inputs.is_empty()
            {
                let is_kept = self.mode != ReuseMode::Check || self.reuse.cache.lookup(&root.key).is_some();
                if may_wait {
                    match self.reuse.in_flight.take_turn(root.key).await {
                        // Kept between this statement's look and its turn.
                        Turn::Lead(turn) if self.mode.reads() && self.reuse.cache.lookup(&root.key).is_some() => {
                            turn.finish();
                            may_wait = false;
                            continue;
                        }
                        Turn::Lead(turn) => leader = Some(turn),
                        Turn::Alone => {}
                        Turn::TakeOver => continue,
                        Turn::LookAgain if !self.mode.reads() => {}
                        Turn::LookAgain => {
                            may_wait = false;
                            self.reuse.refresh().await;
                            continue;
                        }
                    }
                }
                if is_kept {
                    let reused = findings.hits.iter().map(|hit| hit.found.cost_us).sum();
                    keeping.keep_root(root, Duration::from_micros(reused), self.limits()?, &findings.made_of);
                    keeping.must_keep = self.must_keep;
                }
            }
            let keeping = (!keeping.is_empty()).then_some(keeping);
            return Ok(Planned { plan, notices: self.notices, findings: Some(findings), keeping, leader, ran });
        }
        self.without(logical).await
    }

    /// Lets the pins of views that the plan reads follow their programs; returns those whose results it is about to make.
    async fn follow(&self, findings: &Findings) -> PinMoves {
        if !matches!(self.mode, ReuseMode::On | ReuseMode::Refresh) {
            return PinMoves::default();
        }
        let (_, levels) = self.reuse.caretaker.ledger.usage();
        self.reuse.pins.follow(&self.reuse.cache, &self.catalog.view, &findings.named, levels.low).await
    }

    /// The whole of a statement, if it can be recognised; nothing runs.
    pub(crate) async fn root(self, logical: &LogicalPlan) -> Result<Option<Root>> {
        let catalog = self.catalog;
        catalog.look_ahead(logical).await;
        let findings = self.explain(logical).await?;
        Ok(findings.and_then(|findings| Root::of(&findings.root.ok()?, catalog)))
    }

    /// What planning would find, without a trace: an entry that turns out damaged stays for the statement that wants it.
    pub(crate) async fn explain(mut self, logical: &LogicalPlan) -> Result<Option<Findings>> {
        self.reuse.refresh().await;
        for _ in 0..TRIES_MAX {
            let (context, oracle) = self.context(false)?;
            let context = Arc::new(context.explaining());
            let mut state = self.state.clone();
            state.config_mut().options_mut().extensions.insert(ReuseExtension(Some(Arc::clone(&context))));
            let plan = Box::pin(state.create_physical_plan(logical)).await?;
            if self.learn(&oracle).await {
                continue;
            }
            match self.lower(plan).await? {
                Ok(_) => return Ok(context.take_findings()),
                Err(unusable) => _ = self.banned.insert(unusable.key),
            }
        }
        Ok(None)
    }

    /// Computes every entry anew that has to do with a plan, or those among them that are wanted; nothing else runs.
    pub(crate) async fn verify(
        mut self,
        logical: &LogicalPlan,
        wanted: Option<&[Fingerprint]>,
    ) -> Result<Vec<(Fingerprint, Verified, Duration)>> {
        self.mode = ReuseMode::Check;
        self.reuse.refresh().await;
        let mut found = None;
        for _ in 0..TRIES_MAX {
            let (context, oracle) = self.context(false)?;
            let context = Arc::new(context.verifying());
            let mut state = self.state.clone();
            state.config_mut().options_mut().extensions.insert(ReuseExtension(Some(Arc::clone(&context))));
            Box::pin(state.create_physical_plan(logical)).await?;
            found = context.take_findings();
            if !self.learn(&oracle).await {
                break;
            }
        }
        let mut verified = vec![];
        let Some(findings) = found else { return Ok(verified) };
        // What is computed anew over other files than the entries were says nothing about them.
        let changed = still_there(self.catalog, None).await.err().map(|error| error.message().to_string());
        let is_wanted = |key: &Fingerprint| wanted.is_none_or(|wanted| wanted.contains(key));
        for Unchecked { key, reason } in findings.unchecked.iter().filter(|unchecked| is_wanted(&unchecked.key)) {
            verified.push((*key, Verified::Unknown((*reason).to_string()), Duration::ZERO));
        }
        for recheck in findings.rechecks.iter().filter(|recheck| is_wanted(&recheck.key)) {
            let started = Instant::now();
            let outcome = match &changed {
                Some(reason) => Verified::Unknown(reason.clone()),
                None => check::verify(self.reuse, self.state, self.catalog, recheck).await,
            };
            verified.push((recheck.key, outcome, started.elapsed()));
        }
        Ok(verified)
    }

    /// What runs first, if anything does, after it did so often.
    fn first(&self, findings: &Findings, n_first: usize) -> Vec<Repeated> {
        if !self.mode.keeps() || n_first >= RUN_LUCK_FIRST_MAX {
            return vec![];
        }
        let bytes = |root: &Prefix| -> u64 {
            root.inputs.iter().flat_map(|input| input.extents.iter()).map(|extent| extent.bytes()).sum()
        };
        let root_bytes = findings.root.as_ref().map_or(0, bytes);
        // Executors share large joins among themselves, and read no entries.
        let may_travel = self.travels_from.is_some_and(|from| root_bytes >= from);
        let saves_time = n_first < RUN_FIRST_MAX && !may_travel;
        let is_luck = |repeated: &&Repeated| repeated.prefix.exactness != Exactness::Exact;
        findings.repeated.iter().filter(|repeated| saves_time || is_luck(repeated)).cloned().collect()
    }

    /// Computes what the plan needs more than once, so that it can be read. What turns out not to be worth it is not tried again, for
    /// a while by nobody.
    async fn run_first(&mut self, state: &SessionState, repeated: &[Repeated], ran: Option<&Arc<Ran>>) {
        for repeated in repeated {
            let Prefix { key, program, .. } = repeated.prefix;
            // Who computes the same at the same time does it for all.
            let leader = match self.reuse.in_flight.take_turn(key).await {
                Turn::Lead(leader) => Some(leader),
                Turn::Alone => None,
                Turn::LookAgain | Turn::TakeOver => {
                    self.reuse.refresh().await;
                    continue;
                }
            };
            self.tried.insert(program);
            // What could not be read, or is to be made anew, is not there.
            let is_read = self.mode.reads() && !self.banned.contains(&key);
            let ended = match self.reuse.cache.lookup(&key).filter(|_| is_read) {
                Some(_) => Ok(First::Kept),
                None => Box::pin(self.run_one_first(state, repeated, ran)).await,
            };
            leader.into_iter().for_each(Leader::finish);
            match ended {
                Ok(First::Kept) => {}
                Ok(First::TooDear { bytes }) => self.reuse.dear.learn(program, bytes),
                // The statement itself may never get there; if it does, it will tell.
                Err(error) => tracing::debug!(%error, "a prefix could not be computed by itself"),
            }
        }
    }

    async fn run_one_first(
        &mut self,
        state: &SessionState,
        repeated: &Repeated,
        ran: Option<&Arc<Ran>>,
    ) -> Result<First> {
        let Repeated { prefix, plan, worth } = repeated;
        let started = Instant::now();
        let (state, plan, lowering, findings) = self.plan_first(state, plan).await?;
        let reused = findings.hits.iter().map(|hit| hit.found.cost_us).sum();
        let mut keeping = Keeping::new(self.reuse.clone(), self.mode, &lowering, &findings, self.catalog);
        keeping.describe(&self.text, ran.cloned());
        keeping.replaces(&self.banned);
        // The statement waits for this one.
        let limits = RecordingLimits { finish_wait: RUN_FIRST_WAIT, ..self.limits()? };
        keeping.keep_rows(prefix, *worth, Duration::from_micros(reused), limits, &findings.made_of);
        let recording = keeping.recording();
        let mut rows = keeping.tee(execute_stream(plan, task_context(&state))?);
        let mut waited = Duration::ZERO;
        while !keeping.has_given_up()
            && let Some(batch) = rows.next().await
        {
            batch?;
            if let Some(recording) = &recording {
                waited = recording.catch_up(RUN_FIRST_WAIT).await;
            }
        }
        drop(rows);
        let elapsed = started.elapsed().saturating_sub(waited);
        let published = self.reuse.background.to_its_end(keeping.publish_verified(elapsed)).await.unwrap_or_default();
        if published.contains(&prefix.key) {
            // Whatever was wrong with the one that it takes the place of. What somebody else made may be that one.
            self.banned.remove(&prefix.key);
            self.made.insert(prefix.key, prefix.program);
            return Ok(First::Kept);
        }
        if self.mode.reads() && self.reuse.cache.lookup(&prefix.key).is_some() {
            return Ok(First::Kept);
        }
        Ok(match recording.and_then(|recording| recording.why_not()) {
            Some(NotRecorded::TooLarge { bytes_max }) => First::TooDear { bytes: bytes_max },
            // There may be room, or a faster store, the next time, and what luck decides is worth another try.
            Some(NotRecorded::NoRoom { .. } | NotRecorded::StoreTooSlow | NotRecorded::Store(_))
                if prefix.exactness != Exactness::Exact =>
            {
                First::Kept
            }
            // Or there is less to read than it takes to read anything.
            _ => First::TooDear { bytes: u64::MAX },
        })
    }

    /// A prefix as a plan of its own.
    async fn plan_first(
        &mut self,
        state: &SessionState,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Result<(SessionState, Arc<dyn ExecutionPlan>, Arc<Lowering>, Findings)> {
        let mut may_learn = true;
        for _ in 0..TRIES_MAX {
            // With extensions of its own: what runs here is the prefix and nothing else.
            let (context, lowering, oracle) = self.contexts(false)?;
            let mut state = state.clone();
            let extensions = &mut state.config_mut().options_mut().extensions;
            extensions.insert(ReuseExtension(Some(Arc::clone(&context))));
            extensions.insert(StatementLowering(Arc::clone(&lowering)));
            let planner = DefaultPhysicalPlanner::default();
            let plan = planner.optimize_physical_plan(Arc::clone(plan), &state, |_, _| {})?;
            if std::mem::take(&mut may_learn) && self.load_unknown(&oracle).await {
                continue;
            }
            match self.lower(plan).await? {
                Ok(plan) => {
                    let findings = context.take_findings();
                    let unseen = || EngineError::new(ErrorKind::Internal, "a prefix was planned without the cache");
                    let findings = findings.ok_or_else(unseen)?;
                    return Ok((state, plan, lowering, findings));
                }
                Err(unusable) => self.give_up(unusable).await,
            }
        }
        Err(EngineError::new(ErrorKind::Internal, "entries that a prefix could read are lost again and again"))
    }

    /// The plan as it would be without any cache.
    async fn without(self, logical: &LogicalPlan) -> Result<Planned> {
        let plan = Box::pin(self.state.create_physical_plan(logical)).await?;
        if !matches!(logical, LogicalPlan::Explain(_)) {
            still_there(self.catalog, None).await?;
        }
        Ok(Planned { plan, notices: self.notices, findings: None, keeping: None, leader: None, ran: None })
    }

    /// Reads the extents of entries that planning would have liked to look at; `true` if it is worth planning again.
    async fn learn(&mut self, oracle: &Oracle) -> bool {
        // Once: lists that do not fit into memory together must not keep a statement from running.
        if self.has_learnt {
            return false;
        }
        self.has_learnt = self.load_unknown(oracle).await;
        self.has_learnt
    }

    /// Whether there was anything to read.
    async fn load_unknown(&self, oracle: &Oracle) -> bool {
        let unknown = oracle.take_unknown();
        if unknown.is_empty() {
            return false;
        }
        match self.reuse.cache.load_inputs(&unknown).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "cannot read the extents of cache entries");
                false
            }
        }
    }

    /// The plan with its entries loaded, or the entry that is not there.
    async fn lower(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Result<Arc<dyn ExecutionPlan>, Unusable>> {
        let n_partitions = self.state.config_options().execution.target_partitions;
        lower_reads(plan, self.reuse, self.state.runtime_env(), n_partitions).await
    }

    fn contexts(&self, counts: bool) -> Result<(Arc<ReuseContext>, Arc<Lowering>, Arc<Oracle>)> {
        let lowering = Lowering::new(self.reuse.store.clone(), [], self.limits()?);
        let (context, oracle) = self.context(counts)?;
        Ok((Arc::new(context), Arc::new(lowering), oracle))
    }

    fn context(&self, counts: bool) -> Result<(ReuseContext, Arc<Oracle>)> {
        let entry_bytes_max = self.limits()?.max_bytes;
        let Reuse { cache, relatives, dear, .. } = self.reuse;
        let oracle = Oracle::new(cache.clone(), relatives.clone(), dear.clone(), entry_bytes_max).after(&self.tried);
        let oracle = Arc::new(oracle);
        let ours = options(self.state.config_options());
        let context = ReuseContext::new(
            self.mode,
            Arc::clone(&oracle) as _,
            Arc::clone(&self.reuse.built_ins),
            AdmissionPolicy { threshold: ours.cache_threshold as u64, eager: !self.reuse.caretaker.ledger.is_tight() },
            self.banned.clone(),
            counts,
        )
        .with_made(self.made.keys().copied().collect());
        let memory = parse_size("nectarine.memory_limit", &ours.memory_limit, machine::memory_bytes())?;
        let n_partitions = self.state.config_options().execution.target_partitions.max(1) as u64;
        let branches_max = usize::try_from(memory / BRANCH_BYTES / n_partitions).unwrap_or(usize::MAX);
        let context = context.with_merge_bytes_max(memory / MERGE_MEMORY_SHARE).with_branches_max(branches_max);
        // Where everything is taken to have taken long, it is worth computing once.
        let context = if self.reuse.cost_min.is_zero() { context } else { context.sharing_everything() };
        let bytes_max = entry_bytes_max.saturating_mul(READ_PER_KEPT);
        // Joins that executors can share among themselves stay as they are.
        let context = context.with_share_bytes_max(self.travels_from.map_or(bytes_max, |bytes| bytes_max.min(bytes)));
        Ok((context.with_salt(self.reuse.salts.of(self.state.config_options())), oracle))
    }

    fn limits(&self) -> Result<RecordingLimits> {
        let ours = options(self.state.config_options());
        let max_bytes = parse_size("nectarine.cache.entry_limit", &ours.cache_entry_limit, machine::memory_bytes())?;
        let (_, levels) = self.reuse.caretaker.ledger.usage();
        let max_bytes = max_bytes.min(levels.entry_bytes_max());
        let limits = RecordingLimits { max_bytes, cost_min: self.reuse.cost_min, ..RecordingLimits::default() };
        Ok(match self.reuse.part_bytes {
            Some(part_bytes) => limits.in_parts_of(part_bytes),
            None => limits,
        })
    }

    async fn give_up(&mut self, unusable: Unusable) {
        if unusable.is_evicted {
            tracing::debug!(entry = %unusable.key, "a cache entry was evicted before it was read");
            self.banned.insert(unusable.key);
            self.reuse.store.forget(&unusable.key);
            // Made by this statement, and gone again: there is no other reason not to make it once more.
            if let Some(program) = self.made.remove(&unusable.key) {
                self.tried.remove(&program);
            }
            return;
        }
        tracing::warn!(entry = %unusable.key, reason = unusable.reason, "a cache entry can not be used");
        self.banned.insert(unusable.key);
        let message = match unusable.is_lost {
            true => {
                self.reuse.drop_entry_soon(unusable.key).await;
                "a cached result was missing or damaged and is computed again"
            }
            // It may be fine, and others may reach it: it is replaced when there is something to replace it with.
            false => "a cached result could not be read and is computed again",
        };
        // One store that is away may hold many entries; that is one thing to know.
        let is_told = |notice: &Notice| !unusable.is_lost && notice.message == message;
        if !self.notices.iter().any(is_told) {
            self.notices.push(Notice { message: message.to_string(), hint: Some(unusable.reason) });
        }
    }
}
