//! [`Harness`]: runs a statement in all modes over one cache that is never reset, and says where answers differ.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::prelude::SessionContext;
use nectarine_engine::{Engine, EngineError, ErrorKind, Receipt, Reused, Session, Settings};
use tempfile::TempDir;

use super::mode::Place;
use super::ties::{whole_of, without_inner_ties};
use super::{Mode, Random, Rows, damage, order_of, stock, verify_all};

/// Memory of the engine that has hardly any.
const SMALL_MEMORY: &str = "24MB";

/// Runs without the cache that decide whether a statement has a right answer: partitions and batch sizes.
const MORE_REFERENCES: [(usize, usize); 6] = [(1, 8192), (4, 8192), (3, 2), (7, 7), (2, 1), (1, 5)];

/// Parts of results: so small that most results have several, as large ones do elsewhere.
const PART_BYTES: usize = 256;

/// Differences after which a run ends.
const DIFFERENCES_MAX: usize = 8;

/// Entries that are computed anew in the end.
const VERIFIED_MAX: usize = 300;

/// What a statement came to.
type Outcome = Result<Rows, Failure>;

/// Why a statement failed.
#[derive(Clone, Debug)]
struct Failure {
    kind: ErrorKind,
    text: String,
}

/// A home with three engines on it, and what was seen there.
pub struct Harness {
    engines: Vec<(Place, Engine)>,
    sessions: Vec<(Mode, Session)>,
    folder: Arc<TempDir>,
    /// Decides about modes and damage.
    pub random: Random,
    seed: u64,
    /// Whether each statement goes through all modes.
    pub all_modes: bool,
    has_check: bool,
    counts: BTreeMap<String, usize>,
    differences: Vec<String>,
}

impl Harness {
    /// A new home.
    pub async fn new(seed: u64) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        Self::on(folder, seed).await
    }

    /// A home in that folder.
    pub async fn on(folder: Arc<TempDir>, seed: u64) -> Self {
        let home = folder.path().join("home");
        let mut engines = vec![];
        for (place, settings) in [
            (Place::Main, vec![]),
            (Place::Second, vec![("nectarine.cache.memory", "0")]),
            (Place::Small, vec![("nectarine.memory_limit", SMALL_MEMORY), ("nectarine.cache.memory", "0")]),
        ] {
            let mut chosen = Settings::default();
            for (name, value) in settings {
                chosen = chosen.with(name, value).expect("a known setting");
            }
            let engine = Box::pin(Engine::builder().home(&home).settings(chosen).part_bytes(PART_BYTES).open()).await;
            engines.push((place, engine.expect("a home opens")));
        }
        let mut harness = Self {
            engines,
            sessions: vec![],
            folder,
            random: Random::new(seed),
            seed,
            all_modes: false,
            has_check: false,
            counts: BTreeMap::new(),
            differences: vec![],
        };
        harness.has_check = harness.session().execute("SET nectarine.reuse = 'check'").await.is_ok();
        harness
    }

    /// A new session on the main engine.
    pub fn session(&self) -> Session {
        self.engine(Place::Main).session()
    }

    /// The folder around the home.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_path_buf()
    }

    fn engine(&self, place: Place) -> &Engine {
        &self.engines.iter().find(|(of, _)| *of == place).expect("all places have one").1
    }

    /// Runs what changes something; it must succeed.
    pub async fn run(&self, sql: &str) {
        let session = self.session();
        let answer = session.execute(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
        answer.collect().await.unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
    }

    async fn session_of(&mut self, mode: Mode) -> Session {
        if let Some((_, session)) = self.sessions.iter().find(|(of, _)| *of == mode) {
            return session.clone();
        }
        let session = self.engine(mode.place()).session();
        for (name, value) in mode.settings() {
            let sql = format!("SET {name} = '{value}'");
            session.execute(&sql).await.unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
        }
        self.sessions.push((mode, session.clone()));
        session
    }

    /// Runs a statement in all its modes, or in some; compares with stock DataFusion if there is one.
    pub async fn check(&mut self, sql: &str, stock: Option<&SessionContext>) {
        self.count("statements");
        let reference = self.outcome(Mode::Reference, sql).await;
        let other = self.outcome(Mode::OtherReference, sql).await;
        let mut determined = same(&reference, &other, sql).is_ok();
        if let (Err(failure), Err(_)) = (&reference, &other) {
            self.count("statements that fail");
            if failure.kind == ErrorKind::Internal {
                self.differs(sql, "without the cache", "an internal error", &reference, &other);
            }
        }
        if let (true, Some(stock), Ok(_)) = (determined, stock, &reference) {
            self.compare_with_stock(sql, stock, &reference, &mut determined).await;
        }
        let mut modes = Mode::ALWAYS.to_vec();
        match self.all_modes {
            true => modes.extend(Mode::OTHERS),
            false => (0..3).for_each(|_| modes.push(*self.random.pick(&Mode::OTHERS))),
        }
        for mode in modes {
            if mode == Mode::Check && !self.has_check {
                continue;
            }
            self.prepare(mode).await;
            let outcome = self.outcome(mode, sql).await;
            self.count("runs");
            self.count(&format!("runs in mode {mode:?}"));
            self.judge(sql, mode, &reference, &outcome, &mut determined).await;
        }
        if !determined {
            self.count("statements without a right answer");
        }
        assert!(self.differences.len() < DIFFERENCES_MAX, "{}", self.report());
    }

    /// Checks that a statement with a LIMIT of `n` and without an order gives so many rows, all of them rows of `whole`.
    pub async fn check_part(&mut self, sql: &str, whole: &str, n: usize) {
        self.count("statements");
        let reference = self.outcome(Mode::Reference, whole).await;
        let Ok(all) = &reference else { return self.count("statements that fail") };
        for mode in [Mode::Cold, Mode::Hit, Mode::Partitions(7), Mode::SecondEngine, Mode::ReadOnly] {
            let outcome = self.outcome(mode, sql).await;
            self.count("runs");
            self.count(&format!("runs in mode {mode:?}"));
            let is_right = outcome.as_ref().is_ok_and(|rows| rows.len() == n.min(all.len()) && rows.is_part_of(all));
            if !is_right && !self.is_undetermined(whole, &reference).await {
                self.differs(sql, &format!("{mode:?}"), "not rows of the whole", &reference, &outcome);
            }
        }
        assert!(self.differences.len() < DIFFERENCES_MAX, "{}", self.report());
    }

    async fn judge(&mut self, sql: &str, mode: Mode, reference: &Outcome, outcome: &Outcome, determined: &mut bool) {
        if let Err(failure) = outcome
            && failure.kind == ErrorKind::Internal
        {
            self.differs(sql, &format!("{mode:?}"), "an internal error", reference, outcome);
            return;
        }
        // What does not fit into little memory fits no better without the cache.
        if mode == Mode::SmallMemory && outcome.is_err() && reference.is_ok() {
            let session = self.engine(Place::Small).session();
            session.execute("SET nectarine.reuse = 'off'").await.expect("a known setting");
            if run(&session, sql).await.0.is_err() {
                self.count("runs that need more memory");
                return;
            }
        }
        let Err(complaint) = same(reference, outcome, sql) else { return };
        if *determined {
            *determined = !self.is_undetermined(sql, reference).await;
        }
        if *determined && self.breaks_ties(sql, reference, outcome).await {
            return self.count("runs that break ties otherwise");
        }
        let may_break_ties = self.is_alike_but_for_ties(sql, mode, reference, outcome).await;
        if *determined && may_break_ties {
            return self.count("runs that break ties of a subquery otherwise");
        }
        if *determined {
            self.differs(sql, &format!("{mode:?}"), &complaint, reference, outcome);
            return;
        }
        // Without a right answer: as many rows, of the same types.
        if let (Ok(expected), Ok(found)) = (reference, outcome) {
            let is_counted = self.is_counted(sql, expected.len()).await;
            let shape = found.shape_differs(expected);
            if shape.is_some() || (is_counted && found.len() != expected.len() && !may_break_ties) {
                let complaint = shape.unwrap_or_else(|| "another number of rows".to_owned());
                self.differs(sql, &format!("{mode:?}"), &complaint, reference, outcome);
            }
        }
    }

    /// Whether both are right: LIMIT or OFFSET cuts among rows that the order does not tell apart.
    async fn breaks_ties(&self, sql: &str, expected: &Outcome, found: &Outcome) -> bool {
        let (Ok(expected), Ok(found)) = (expected, found) else { return false };
        let Some((whole, columns)) = whole_of(sql, expected.schema()) else { return false };
        let is_in_order = found.out_of_order(&order_of(sql, found.schema())).is_none();
        if found.shape_differs(expected).is_some() || !is_in_order {
            return false;
        }
        if !found.same_rows_in(&columns, expected) {
            return false;
        }
        let whole = self.reference(&whole, 2, 8192).await;
        whole.is_ok_and(|whole| found.is_part_of(&whole) && expected.is_part_of(&whole))
    }

    /// Whether the statement has inner limits that may cut among equal rows, is right in this mode once they do not, and the answer is
    /// in order and has the right columns.
    async fn is_alike_but_for_ties(&mut self, sql: &str, mode: Mode, expected: &Outcome, found: &Outcome) -> bool {
        let (Ok(expected), Ok(found)) = (expected, found) else { return false };
        let is_in_order = found.out_of_order(&order_of(sql, found.schema())).is_none();
        if found.shape_differs(expected).is_some() || !is_in_order {
            return false;
        }
        let Some(without) = without_inner_ties(sql) else { return false };
        let reference = self.outcome(Mode::Reference, &without).await;
        let outcome = self.outcome(mode, &without).await;
        reference.is_ok() && same(&reference, &outcome, &without).is_ok()
    }

    /// Whether runs without the cache differ among themselves.
    async fn is_undetermined(&mut self, sql: &str, reference: &Outcome) -> bool {
        for (partitions, batch) in MORE_REFERENCES {
            if same(reference, &self.reference(sql, partitions, batch).await, sql).is_err() {
                return true;
            }
        }
        false
    }

    /// Whether all runs without the cache have as many rows.
    async fn is_counted(&mut self, sql: &str, rows: usize) -> bool {
        for (partitions, batch) in MORE_REFERENCES {
            let outcome = self.reference(sql, partitions, batch).await;
            if !outcome.is_ok_and(|outcome| outcome.len() == rows) {
                return false;
            }
        }
        true
    }

    async fn reference(&self, sql: &str, partitions: usize, batch: usize) -> Outcome {
        let session = self.session();
        for set in [
            "SET nectarine.reuse = 'off'".to_owned(),
            format!("SET datafusion.execution.target_partitions = {partitions}"),
            format!("SET datafusion.execution.batch_size = {batch}"),
        ] {
            session.execute(&set).await.expect("a known setting");
        }
        run(&session, sql).await.0
    }

    async fn compare_with_stock(
        &mut self,
        sql: &str,
        stock: &SessionContext,
        reference: &Outcome,
        determined: &mut bool,
    ) {
        let Ok(expected) = reference else { return };
        match stock::answer(stock, sql).await {
            // What stock DataFusion can not plan or run is its own affair.
            Err(_) => self.count("statements that only stock DataFusion fails"),
            Ok(found) if found.same_rows(expected) => self.count("runs of stock DataFusion"),
            Ok(found) => {
                *determined = !self.is_undetermined(sql, reference).await;
                if !*determined {
                    return;
                }
                match stock::rule_at_fault(stock, sql, expected).await {
                    Some(rule) => self.at_fault(sql, &rule),
                    None => self.differs(sql, "stock DataFusion", "other rows", reference, &Ok(found)),
                }
            }
        }
    }

    #[expect(clippy::print_stdout, reason = "each of these wants a look")]
    fn at_fault(&mut self, sql: &str, rule: &str) {
        println!("STOCK (NECTARINE_SEED={}) gives these rows only {rule}:\n{sql};\n", self.seed);
        self.count(&format!("statements that stock DataFusion answers rightly only {rule}"));
    }

    /// Does to the cache what the mode is about.
    async fn prepare(&mut self, mode: Mode) {
        let derived = self.folder.path().join("home/derived");
        match mode {
            Mode::Evicted => self.evict(30).await,
            Mode::Damaged => {
                let percent = *self.random.pick(&[2, 10, 100]);
                let n = damage::damage_some(&derived, percent, &mut self.random);
                self.count_by("files damaged", n);
            }
            // Rarely: a cache that is always empty finds nothing.
            Mode::Wiped if self.random.chance(20) => {
                let n = damage::wipe(&derived);
                self.count_by("files deleted", n);
            }
            _ => {}
        }
    }

    /// Drops some entries.
    async fn evict(&mut self, percent: usize) {
        let session = self.session();
        let sql = "SELECT fingerprint FROM system.cache_entries ORDER BY last_used_at DESC LIMIT 30";
        let entries = session.execute(sql).await.expect("entries can be listed").collect().await;
        let names = crate::db::rows_text(&entries.expect("entries can be listed"));
        let names: Vec<&str> = self.random.some(names.lines().collect(), percent);
        let cache = self.engine(Place::Main).cache();
        let mut keys = vec![];
        for name in names {
            keys.extend(cache.find(name).await.ok());
        }
        cache.remove(&keys).await;
        self.count_by("entries dropped", keys.len());
    }

    async fn outcome(&mut self, mode: Mode, sql: &str) -> Outcome {
        let session = self.session_of(mode).await;
        let (outcome, receipt) = run(&session, sql).await;
        if let Some(Receipt { reused, extents, .. }) = receipt {
            let extents_reused = extents.unwrap_or_default().reused;
            if reused == Reused::Partial && extents_reused > 0 {
                self.count("runs that read some extents and not others");
            }
            self.count(&format!("runs reusing: {}", reused.word()));
            if mode == Mode::Hit {
                self.count(&format!("second runs reusing: {}", reused.word()));
            }
        }
        outcome
    }

    #[expect(clippy::print_stdout, reason = "whoever runs the tests wants to see it at once")]
    fn differs(&mut self, sql: &str, mode: &str, complaint: &str, expected: &Outcome, found: &Outcome) {
        let shown = |outcome: &Outcome| match outcome {
            Ok(rows) => rows.text(),
            Err(failure) => format!("{:?}: {}\n", failure.kind, failure.text),
        };
        let mut text = format!("DIFFERENCE (NECTARINE_SEED={}) {mode}: {complaint}\n{sql};\n", self.seed);
        let _ = write!(text, "  expected: {}  found: {}", shown(expected), shown(found));
        if let (Ok(expected), Ok(found)) = (expected, found) {
            let _ =
                writeln!(text, "  missing: {:?}\n  surplus: {:?}", expected.surplus(found), found.surplus(expected));
        }
        println!("{text}");
        self.differences.push(text);
    }

    /// How often something was counted.
    pub fn counted(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or(0)
    }

    fn count(&mut self, what: &str) {
        self.count_by(what, 1);
    }

    fn count_by(&mut self, what: &str, n: usize) {
        *self.counts.entry(what.to_owned()).or_default() += n;
    }

    /// What was run so far, and every difference.
    pub fn report(&self) -> String {
        let mut text = format!("NECTARINE_SEED={}\n", self.seed);
        self.counts.iter().for_each(|(what, n)| _ = writeln!(text, "  {n:>8} {what}"));
        if !self.has_check {
            text.push_str("  this build knows no SET nectarine.reuse = 'check'\n");
        }
        for difference in &self.differences {
            let _ = writeln!(text, "\n{difference}");
        }
        text
    }

    /// Has the entries that are left computed anew, and prints what was run; there must be no difference.
    #[expect(clippy::print_stdout, reason = "how much was compared is half of the result")]
    pub async fn finish(&mut self) {
        let verified = verify_all(&self.session(), VERIFIED_MAX).await;
        println!("{verified}");
        for wrong in &verified.different {
            self.differences.push(format!("DIFFERENCE (NECTARINE_SEED={}) in the end: {wrong}", self.seed));
        }
        println!("{}", self.report());
        assert!(self.differences.is_empty(), "{} answers or entries differ, see above", self.differences.len());
        // Not one that could be looked at would be no test.
        let n_known = verified.counted("same") + verified.counted("damaged");
        assert!(n_known > 0 || verified.n_entries == 0, "nothing was verified: {verified}");
    }
}

/// Runs a statement to its end.
async fn run(session: &Session, sql: &str) -> (Outcome, Option<Receipt>) {
    let failure = |error: EngineError| Failure {
        kind: error.kind(),
        text: format!("{} ({})", error.message(), error.detail().unwrap_or_default()),
    };
    let answer = match session.execute(sql).await {
        Ok(answer) => answer,
        Err(error) => return (Err(failure(error)), None),
    };
    let receipt = answer.receipt();
    let schema = answer.schema();
    let outcome = match answer.collect().await {
        Ok(batches) => {
            let rows = Rows::new(schema, &batches);
            rows.map_err(|text| Failure { kind: ErrorKind::Internal, text })
        }
        Err(error) => Err(failure(error)),
    };
    (outcome, Some(receipt()))
}

/// Whether two outcomes are the same, and the second in the order that was asked for.
fn same(expected: &Outcome, found: &Outcome, sql: &str) -> Result<(), String> {
    match (expected, found) {
        (Ok(expected), Ok(found)) => {
            if let Some(shape) = found.shape_differs(expected) {
                return Err(shape);
            }
            if !found.same_rows(expected) {
                return Err("other rows".to_owned());
            }
            found.out_of_order(&order_of(sql, found.schema())).map_or(Ok(()), Err)
        }
        (Err(_), Err(_)) => Ok(()),
        (Ok(_), Err(_)) => Err("it fails".to_owned()),
        (Err(_), Ok(_)) => Err("it should fail".to_owned()),
    }
}
