//! What statements do around a recording does not change what it records; what is read back is what was recorded.
//!
//! A rule in front of all others marks a node of each statement's plan, as the rewriter does. The tables are Parquet
//! files with small row groups and filters are pushed into their readers, so that whatever gets through the wall of
//! AddEntry shows as missing rows.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use nectarine_catalog::{CacheEntry, EntryKind};
use nectarine_planner::node::{AddEntryExec, CacheReadExec, Worth};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tempfile::TempDir;

use super::{CacheReadOperator, EntryFault, prepare_cache_reads, work_of};
use crate::derived::testing::{
    entry_of, key, memory_store, number_schema, numbers, prefix, prefix_worth, store_over, stream_of,
};
use crate::derived::{DerivedError, DerivedStore, Finished, NotRecorded, Recording, RecordingLimits};
use crate::lower::{LowerExtentScans, Lowering, StatementLowering};

type Plan = Arc<dyn ExecutionPlan>;
type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Marks the first node, from the top, that a statement is to record.
struct Mark(fn(&Plan) -> bool, Worth);

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mark")
    }
}

impl PhysicalOptimizerRule for Mark {
    fn optimize(&self, plan: Plan, _config: &ConfigOptions) -> Result<Plan> {
        let mut marked = false;
        plan.transform_down(|node| {
            if marked || !(self.0)(&node) {
                return Ok(Transformed::no(node));
            }
            marked = true;
            let marked: Plan = Arc::new(AddEntryExec::new(node, prefix_worth("p", self.1)));
            // Not into itself again.
            Ok(Transformed::new(marked, true, datafusion::common::tree_node::TreeNodeRecursion::Jump))
        })
        .data()
    }

    fn name(&self) -> &str {
        "mark"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Marks the filter, and a sort above it that no one asked for.
#[derive(Debug)]
struct MarkSorted;

impl PhysicalOptimizerRule for MarkSorted {
    fn optimize(&self, plan: Plan, _config: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| {
            if !is_filter(&node) {
                return Ok(Transformed::no(node));
            }
            let column = Arc::new(Column::new_with_schema("v", &node.schema())?);
            let ordering = LexOrdering::new([PhysicalSortExpr::new_default(column)]);
            let sort: Plan = Arc::new(SortExec::new(ordering.unwrap(), node));
            Ok(Transformed::yes(Arc::new(AddEntryExec::new(sort, prefix("p")))))
        })
        .data()
    }

    fn name(&self) -> &str {
        "mark_sorted"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Replaces the whole plan by a read of the entry "p".
#[derive(Debug)]
struct ReadInstead;

impl PhysicalOptimizerRule for ReadInstead {
    fn optimize(&self, plan: Plan, _config: &ConfigOptions) -> Result<Plan> {
        Ok(Arc::new(CacheReadExec::new(key("p"), key("program"), 0, 0, 0, plan.schema())))
    }

    fn name(&self) -> &str {
        "read_instead"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// 20,000 rows `t(k, g, v)` in four files, 100 rows `d(k, tag)`.
async fn tables() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut config = SessionConfig::new();
    config.options_mut().execution.parquet.max_row_group_size = 500;
    let context = SessionContext::new_with_config(config);
    let root = folder.path().display();
    for file in 0..4 {
        let (from, to) = (file * 5000, file * 5000 + 4999);
        let rows =
            format!("SELECT value AS k, value % 1000 AS g, (value * 7919) % 20011 AS v FROM range({from}, {to} + 1)");
        run(&context, &format!("COPY ({rows}) TO '{root}/t/{file}.parquet'")).await;
    }
    run(&context, &format!("COPY (SELECT value AS k, value % 7 AS tag FROM range(0, 100)) TO '{root}/d/0.parquet'"))
        .await;
    folder
}

async fn run(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    context.sql(sql).await.unwrap().collect().await.unwrap()
}

async fn context(
    folder: &TempDir,
    rule: Option<Rule>,
    lowering: Option<Arc<Lowering>>,
    partitions: usize,
) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(128);
    let options = config.options_mut();
    options.execution.parquet.pushdown_filters = true;
    options.execution.parquet.reorder_filters = true;
    options.optimizer.repartition_file_min_size = 0;
    if let Some(lowering) = lowering {
        options.extensions.insert(StatementLowering(lowering));
    }
    let runtime = Arc::new(RuntimeEnv::default());
    let mut rules = PhysicalOptimizer::new().rules;
    rules.insert(0, Arc::new(LowerExtentScans::new(Arc::clone(&runtime))));
    if let Some(rule) = rule {
        rules.insert(0, rule);
    }
    let builder = SessionStateBuilder::new().with_config(config).with_runtime_env(runtime).with_default_features();
    let context = SessionContext::new_with_state(builder.with_physical_optimizer_rules(rules).build());
    for table in ["t", "d"] {
        let path = folder.path().join(table).display().to_string();
        context.register_parquet(table, path, ParquetReadOptions::default()).await.unwrap();
    }
    context
}

struct Session {
    context: SessionContext,
    lowering: Arc<Lowering>,
}

impl Session {
    async fn new(folder: &TempDir, rule: Option<Rule>, lowering: Lowering, partitions: usize) -> Self {
        let lowering = Arc::new(lowering);
        let context = context(folder, rule, Some(Arc::clone(&lowering)), partitions).await;
        Self { context, lowering }
    }

    async fn plan(&self, sql: &str) -> Plan {
        self.context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
    }
}

fn lowering(store: &DerivedStore) -> Lowering {
    Lowering::new(store.clone(), [], RecordingLimits::default())
}

fn text(batches: &[RecordBatch]) -> String {
    pretty_format_batches(batches).unwrap().to_string()
}

/// Runs a statement with a marked node, compares its answer with the unmarked one, and gives what was recorded.
async fn recorded(
    folder: &TempDir,
    sql: &str,
    mark: fn(&Plan) -> bool,
    partitions: usize,
) -> (Result<Finished, NotRecorded>, DerivedStore, String) {
    recorded_worth(folder, sql, mark, Worth::Wanted, partitions).await
}

async fn recorded_worth(
    folder: &TempDir,
    sql: &str,
    mark: fn(&Plan) -> bool,
    worth: Worth,
    partitions: usize,
) -> (Result<Finished, NotRecorded>, DerivedStore, String) {
    let store = memory_store();
    let plain = Session::new(folder, None, lowering(&store), partitions).await;
    let expected = run(&plain.context, sql).await;
    let session = Session::new(folder, Some(Arc::new(Mark(mark, worth))), lowering(&store), partitions).await;
    let plan = session.plan(sql).await;
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    let answer = collect(Arc::clone(&plan), session.context.task_ctx()).await.unwrap();
    assert_eq!(sorted(&answer), sorted(&expected), "{sql}\n{shown}");
    let recordings = session.lowering.recordings();
    assert_eq!(recordings.len(), 1, "{shown}");
    (recordings[0].finish().await, store, shown)
}

fn sorted(batches: &[RecordBatch]) -> Vec<String> {
    let mut lines: Vec<_> = text(batches).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

async fn count(folder: &TempDir, sql: &str) -> u64 {
    let session = Session::new(folder, None, lowering(&memory_store()), 2).await;
    let rows = run(&session.context, &format!("SELECT count(*) FROM ({sql})")).await;
    rows[0].column(0).as_primitive::<Int64Type>().value(0) as u64
}

fn is_filter(plan: &Plan) -> bool {
    plan.is::<FilterExec>()
}

fn is_filter_of_t(plan: &Plan) -> bool {
    plan.is::<FilterExec>() && plan.schema().index_of("v").is_ok()
}

fn is_final_aggregate(plan: &Plan) -> bool {
    plan.downcast_ref::<AggregateExec>().is_some_and(|node| !matches!(node.mode(), AggregateMode::Partial))
}

fn is_partial_aggregate(plan: &Plan) -> bool {
    plan.downcast_ref::<AggregateExec>().is_some_and(|node| matches!(node.mode(), AggregateMode::Partial))
}

fn is_sort(plan: &Plan) -> bool {
    plan.is::<SortExec>()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_push_down_stops_at_a_recording() {
    let folder = tables().await;
    let filtered = count(&folder, "SELECT * FROM t WHERE v > 5000").await;
    assert!(filtered > 10_000);
    type Case = (&'static str, &'static str, fn(&Plan) -> bool, u64);
    let cases: &[Case] = &[
        ("TopK", "SELECT k, v FROM t WHERE v > 5000 ORDER BY v DESC, k LIMIT 5", is_filter, filtered),
        ("global max", "SELECT max(v), min(k) FROM t WHERE v > 5000", is_filter, filtered),
        (
            "join",
            "SELECT count(*) FROM d JOIN (SELECT k, v FROM t WHERE v > 5000) t ON d.k = t.k WHERE d.tag = 3",
            is_filter_of_t,
            filtered,
        ),
        (
            "join over aggregate",
            "SELECT count(*), sum(s) FROM d JOIN (SELECT g, sum(v) AS s FROM t GROUP BY g) x ON d.k = x.g WHERE d.tag = 3",
            |plan| is_final_aggregate(plan) && plan.schema().field(0).name() == "g",
            1000,
        ),
        (
            "TopK over groups",
            "SELECT g, max(v) AS m FROM t GROUP BY g ORDER BY m DESC LIMIT 5",
            is_final_aggregate,
            1000,
        ),
        ("TopK on the group key", "SELECT g, count(*) FROM t GROUP BY g ORDER BY g LIMIT 5", is_final_aggregate, 1000),
    ];
    for (name, sql, mark, rows) in cases {
        for partitions in [1, 2] {
            let (outcome, _, plan) = recorded(&folder, sql, *mark, partitions).await;
            let finished = outcome.unwrap_or_else(|reason| panic!("{name}, {partitions} partitions: {reason}\n{plan}"));
            assert_eq!(finished.rows, *rows, "{name}, {partitions} partitions\n{plan}");
            assert_eq!(finished.rows, finished.parts.iter().map(|part| part.rows).sum::<u64>());
            assert!(finished.work.computed.as_nanos() > 0, "{name}");
        }
    }
}

/// What nobody asked for yet lets the filter of a join through, and records nothing then; it stays a wall for all else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_asked_for_gives_way_to_a_join() {
    let folder = tables().await;
    let join =
        "SELECT count(*), sum(s) FROM d JOIN (SELECT g, sum(v) AS s FROM t GROUP BY g) x ON d.k = x.g WHERE d.tag = 3";
    let groups = |plan: &Plan| is_final_aggregate(plan) && plan.schema().field(0).name() == "g";
    let states = |plan: &Plan| is_partial_aggregate(plan) && plan.schema().field(0).name() == "g";
    let topk = "SELECT g, max(v) AS m FROM t GROUP BY g ORDER BY m DESC LIMIT 5";
    type Case = (&'static str, fn(&Plan) -> bool, Worth, bool);
    let cases: &[Case] = &[
        (join, groups, Worth::GivesWay, false),
        (join, states, Worth::GivesWay, false),
        (join, groups, Worth::Cheap, true),
        (join, states, Worth::Cheap, true),
        (topk, is_final_aggregate, Worth::GivesWay, true),
    ];
    for (sql, mark, worth, is_recorded) in cases {
        for partitions in [1, 2] {
            let (outcome, _, plan) = recorded_worth(&folder, sql, *mark, *worth, partitions).await;
            match outcome {
                Ok(finished) => {
                    assert!(*is_recorded, "{worth:?}, {partitions} partitions\n{plan}");
                    assert!(
                        finished.rows >= 1000,
                        "{} rows: {worth:?}, {partitions} partitions\n{plan}",
                        finished.rows
                    );
                }
                Err(reason) => {
                    assert!(!is_recorded, "{reason}: {worth:?}, {partitions} partitions\n{plan}");
                    assert!(matches!(reason, NotRecorded::GaveWay), "{reason}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_below_a_limit_are_whole_or_not_there() {
    let folder = tables().await;
    for sql in [
        "SELECT g, max(v) AS m FROM t GROUP BY g ORDER BY m DESC LIMIT 5",
        "SELECT g FROM t GROUP BY g ORDER BY g LIMIT 5",
        "SELECT DISTINCT g FROM t LIMIT 5",
    ] {
        for partitions in [1, 2] {
            let (outcome, _, plan) = recorded_unordered(&folder, sql, is_partial_aggregate, partitions).await;
            match outcome {
                // Each partition has its own groups.
                Ok(finished) => assert!(finished.rows >= 1000, "{} rows\n{plan}", finished.rows),
                Err(reason) => assert!(matches!(reason, NotRecorded::NotAllRows { .. }), "{reason}\n{plan}"),
            }
        }
    }
}

/// As [`recorded`], for statements whose answer is not determined.
async fn recorded_unordered(
    folder: &TempDir,
    sql: &str,
    mark: fn(&Plan) -> bool,
    partitions: usize,
) -> (Result<Finished, NotRecorded>, DerivedStore, String) {
    let store = memory_store();
    let session = Session::new(folder, Some(Arc::new(Mark(mark, Worth::Wanted))), lowering(&store), partitions).await;
    let plan = session.plan(sql).await;
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    let _ = collect(plan, session.context.task_ctx()).await.unwrap();
    (session.lowering.recordings()[0].finish().await, store, shown)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_read_to_its_end_is_not_recorded() {
    let folder = tables().await;
    for (sql, mark) in [
        ("SELECT k FROM t WHERE v > 5000 LIMIT 5", is_filter as fn(&Plan) -> bool),
        (
            "SELECT count(*) FROM d JOIN (SELECT k, v FROM t WHERE v > 5000) t ON d.k = t.k WHERE d.tag > 100",
            is_filter_of_t,
        ),
    ] {
        for partitions in [1, 2] {
            let (outcome, _, plan) = recorded_unordered(&folder, sql, mark, partitions).await;
            match outcome {
                Err(NotRecorded::NotAllRows { .. }) => {}
                // Everything may have been read ahead of the limit; then everything is there.
                Ok(finished) => {
                    assert_eq!(finished.rows, count(&folder, "SELECT * FROM t WHERE v > 5000").await, "{plan}")
                }
                Err(reason) => panic!("{reason}\n{plan}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_statement_records_what_had_ended() {
    let folder = tables().await;
    let store = memory_store();
    let mark: fn(&Plan) -> bool = |plan| is_final_aggregate(plan) && plan.schema().field(0).name() == "g";
    let session = Session::new(&folder, Some(Arc::new(Mark(mark, Worth::Wanted))), lowering(&store), 2).await;
    let plan = session.plan("SELECT 1 / (c - c) FROM (SELECT count(*) AS c FROM (SELECT g FROM t GROUP BY g))").await;
    assert!(collect(plan, session.context.task_ctx()).await.is_err());
    let outcome = session.lowering.recordings()[0].finish().await;
    assert!(outcome.is_ok_and(|finished| finished.rows == 1000));

    let session = Session::new(&folder, Some(Arc::new(Mark(is_filter, Worth::Wanted))), lowering(&store), 2).await;
    let plan = session.plan("SELECT count(*) FROM t WHERE 10 / (v - 5000) > 0").await;
    assert!(collect(plan, session.context.task_ctx()).await.is_err());
    assert!(session.lowering.recordings()[0].finish().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_runs_twice_is_not_recorded() {
    let folder = tables().await;
    let store = memory_store();
    let session = Session::new(&folder, Some(Arc::new(Mark(is_filter, Worth::Wanted))), lowering(&store), 2).await;
    let plan = session.plan("SELECT count(*) FROM t WHERE v > 5000").await;
    let first = collect(Arc::clone(&plan), session.context.task_ctx()).await.unwrap();
    let again = datafusion::physical_plan::execution_plan::reset_plan_states(plan).unwrap();
    assert_eq!(text(&collect(again, session.context.task_ctx()).await.unwrap()), text(&first));
    assert!(matches!(session.lowering.recordings()[0].finish().await, Err(NotRecorded::RanTwice)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sort_that_nobody_needs_is_recorded_sorted() {
    let folder = tables().await;
    for partitions in [1, 2] {
        let store = memory_store();
        let session = Session::new(&folder, Some(Arc::new(MarkSorted)), lowering(&store), partitions).await;
        let physical = session.plan("SELECT max(k), max(v) FROM t WHERE v > 5000").await;
        let plan = displayable(physical.as_ref()).indent(false).to_string();
        collect(physical, session.context.task_ctx()).await.unwrap();
        let outcome = session.lowering.recordings()[0].finish().await;
        let finished = outcome.unwrap_or_else(|reason| panic!("{reason}\n{plan}"));
        assert!(finished.in_order, "{plan}");
        let schema: SchemaRef = finished.loaded.as_ref().unwrap().batches[0][0].schema();
        let mut values = vec![];
        for (ordinal, part) in finished.parts.iter().enumerate() {
            for batch in store.read_part(part, &key("p"), ordinal, &schema).await.unwrap() {
                values.extend_from_slice(batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>().values());
            }
        }
        assert!(values.len() > 10_000 && values.is_sorted(), "{plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_can_not_be_required_is_not_recorded() {
    let folder = tables().await;
    let session = Session::new(
        &folder,
        Some(Arc::new(Mark(|plan| plan.is::<ProjectionExec>(), Worth::Wanted))),
        lowering(&memory_store()),
        2,
    )
    .await;
    let plan = session.plan("SELECT k + 1 FROM t ORDER BY v").await;
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    assert!(shown.contains("Sort"), "{shown}");
    assert!(session.lowering.recordings().is_empty(), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordered_answer_comes_back_in_order() {
    let folder = tables().await;
    let sql = "SELECT v AS \"a name\", k FROM t ORDER BY v, k";
    for partitions in [1, 2] {
        let store = memory_store();
        let mark: fn(&Plan) -> bool = is_sort;
        let session =
            Session::new(&folder, Some(Arc::new(Mark(mark, Worth::Wanted))), lowering(&store), partitions).await;
        let expected = collect(session.plan(sql).await, session.context.task_ctx()).await.unwrap();
        let finished = session.lowering.recordings()[0].finish().await.unwrap();
        let entry = Arc::new(entry_of("p", &finished));
        let lowering = Lowering::new(store, [Arc::clone(&entry)], RecordingLimits::default());
        let session = Session::new(&folder, Some(Arc::new(ReadInstead)), lowering, partitions).await;
        let plan = session.plan(sql).await;
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        assert!(shown.contains("CacheReadExec: entry=") && !shown.contains("DataSource"), "{shown}");
        prepare_cache_reads(&plan, &RuntimeEnv::default()).await.unwrap();
        let read = collect(Arc::clone(&plan), session.context.task_ctx()).await.unwrap();
        assert_eq!(text(&read), text(&expected));
        assert!(read.iter().all(|batch| batch.num_rows() <= 128));
        assert_eq!(work_of(&plan).reused, Duration::from_millis(1));
    }
}

async fn numbers_entry(objects: Arc<dyn ObjectStore>, kind: EntryKind) -> (DerivedStore, Arc<CacheEntry>) {
    let store = store_over(objects);
    let limits = RecordingLimits { part_bytes: 4 << 10, parts_behind_max: 1000, ..RecordingLimits::default() };
    let recording = Recording::new(store.clone(), prefix("p"), limits);
    let items = (0..10).map(|n| Ok(numbers(n * 1000..(n + 1) * 1000))).collect();
    let stream = recording.tee(0, 1, stream_of(number_schema(), items));
    datafusion::physical_plan::common::collect(stream).await.unwrap();
    let finished = recording.finish().await.unwrap();
    let entry = CacheEntry { kind, ..entry_of("p", &finished) };
    finished.unpublished.published();
    (store, Arc::new(entry))
}

#[tokio::test]
async fn states_are_read_by_several_partitions() {
    let (store, entry) = numbers_entry(Arc::new(InMemory::new()), EntryKind::States).await;
    let context = SessionContext::new();
    for (n, expected) in [(1, 1), (4, 4), (1000, entry.parts.len())] {
        let read = CacheReadOperator::new(Arc::clone(&entry), store.clone(), number_schema(), None, n);
        assert_eq!(read.properties().partitioning.partition_count(), expected);
        // Also without being prepared.
        let mut values: Vec<i64> = vec![];
        for batch in collect(Arc::new(read), context.task_ctx()).await.unwrap() {
            values.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
        }
        values.sort();
        assert!(values.into_iter().eq(0..10_000));
    }
}

#[tokio::test]
async fn an_empty_entry_has_no_rows() {
    let (store, entry) = numbers_entry(Arc::new(InMemory::new()), EntryKind::Rows).await;
    let entry = CacheEntry { parts: vec![], rows: 0, bytes: 0, ..entry.as_ref().clone() };
    let read = CacheReadOperator::new(Arc::new(entry), store, number_schema(), None, 4);
    read.prepare(&RuntimeEnv::default()).await.unwrap();
    assert_eq!(collect(Arc::new(read), SessionContext::new().task_ctx()).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_faulty_entry_is_named_before_anything_runs() {
    let objects = Arc::new(InMemory::new());
    let (store, entry) = numbers_entry(Arc::clone(&objects) as _, EntryKind::Rows).await;
    let read = |entry: &Arc<CacheEntry>| -> Plan {
        Arc::new(CacheReadOperator::new(Arc::clone(entry), store.clone(), number_schema(), None, 4))
    };
    prepare_cache_reads(&read(&entry), &RuntimeEnv::default()).await.unwrap();
    store.forget(&entry.key);

    // One that is too large to be held is verified first and read when it runs.
    let large = Arc::new(CacheEntry { bytes: 1 << 40, ..entry.as_ref().clone() });
    let plan = read(&large);
    prepare_cache_reads(&plan, &RuntimeEnv::default()).await.unwrap();
    let rows = collect(plan, SessionContext::new().task_ctx()).await.unwrap();
    assert_eq!(concat_batches(&number_schema(), &rows).unwrap(), numbers(0..10_000));

    let wrong_sum = Arc::new(CacheEntry { rows: entry.rows + 1, ..entry.as_ref().clone() });
    assert!(prepare_cache_reads(&read(&wrong_sum), &RuntimeEnv::default()).await.is_err());

    let last = entry.parts.last().unwrap();
    let path = Path::from(format!("home/derived/{}", last.location));
    let good = objects.get(&path).await.unwrap().bytes().await.unwrap();
    let mut flipped = good.to_vec();
    flipped[good.len() / 2] ^= 1;
    objects.put(&path, flipped.into()).await.unwrap();
    let fault = prepare_cache_reads(&read(&entry), &RuntimeEnv::default()).await.unwrap_err();
    assert_eq!(fault.key, entry.key);
    assert!(matches!(fault.error, DerivedError::Damaged { .. }), "{fault:?}");
    assert!(fault.error.is_lost());
    let fault = prepare_cache_reads(&read(&large), &RuntimeEnv::default()).await.unwrap_err();
    assert!(matches!(fault.error, DerivedError::Damaged { .. }), "{fault:?}");
    // Whoever executes without preparing learns it from the error.
    let error = collect(read(&entry), SessionContext::new().task_ctx()).await.unwrap_err();
    assert!(EntryFault::find(&error).is_some_and(|fault| fault.key == entry.key), "{error:?}");
    let wrapped = DataFusionError::Context("while".to_owned(), Box::new(error));
    assert!(EntryFault::find(&wrapped).is_some());

    objects.delete(&path).await.unwrap();
    let fault = prepare_cache_reads(&read(&entry), &RuntimeEnv::default()).await.unwrap_err();
    assert!(matches!(fault.error, DerivedError::Missing { .. }), "{fault:?}");
    // What is held can go from the store.
    objects.put(&path, good.into()).await.unwrap();
    let held = read(&entry);
    prepare_cache_reads(&held, &RuntimeEnv::default()).await.unwrap();
    store.delete(&entry.parts).await.unwrap();
    let rows = collect(held, SessionContext::new().task_ctx()).await.unwrap();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 10_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_without_context_do_no_harm() {
    let folder = tables().await;
    let sql = "SELECT count(*) FROM t WHERE v > 5000";
    let marked = context(&folder, Some(Arc::new(Mark(is_filter, Worth::Wanted))), None, 2).await;
    let plain = context(&folder, None, None, 2).await;
    assert_eq!(text(&run(&marked, sql).await), text(&run(&plain, sql).await));
    // A read that nobody knows can be explained.
    let read = context(&folder, Some(Arc::new(ReadInstead)), None, 2).await;
    let explained = text(&run(&read, &format!("EXPLAIN {sql}")).await);
    assert!(explained.contains("CacheReadExec: entry="), "{explained}");
    assert!(read.sql(sql).await.unwrap().collect().await.is_err());
}
