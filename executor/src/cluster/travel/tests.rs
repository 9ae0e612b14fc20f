//! Plans that travel, and near misses that stay.

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{ArrowSource, FileGroup, FileScanConfigBuilder, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use nectarine_catalog::{Extent, Fingerprint, Told};

use super::super::options::planning_options;
use super::super::told::tell_files;
use super::*;
use crate::rewrite_scans::rewrite_scans;

fn columns() -> TableSchema {
    let fields = vec![Field::new("g", DataType::Int64, true), Field::new("f", DataType::Float64, true)];
    TableSchema::builder(Arc::new(Schema::new(fields))).build()
}

fn extent(path: &str, bytes: u64) -> Extent {
    Extent {
        location: Arc::from(format!("file:///{path}")),
        range: None,
        lines: false,
        file_bytes: bytes,
        modified_at: 0,
        etag: None,
        fingerprint: Fingerprint::of_bytes(path.as_bytes()),
        rows: None,
        stats: Arc::from([]),
        partition_values: Arc::from([]),
        first_seen_at: 0,
    }
}

fn file(path: &str) -> PartitionedFile {
    PartitionedFile::new(path, 10).with_extension(extent(path, 10))
}

/// A scan of two partitions.
fn scan(
    source: impl FileSource + 'static,
    change: impl FnOnce(FileScanConfigBuilder) -> FileScanConfigBuilder,
) -> Arc<dyn ExecutionPlan> {
    let groups = ["data/a", "data/b"].map(|path| FileGroup::new(vec![file(path)]));
    let builder = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source));
    DataSourceExec::from_data_source(change(builder.with_file_groups(groups.to_vec())).build())
}

fn parquet() -> Arc<dyn ExecutionPlan> {
    scan(ParquetSource::new(columns()), |builder| builder)
}

/// Why a plan stays, once all there is to tell of its files is told.
fn told(plan: Arc<dyn ExecutionPlan>) -> Result<(), String> {
    let plan = tell_files(plan, &|extent| Told::of(extent, false)).map_err(|error| error.strip_backtrace())?;
    may_travel(&plan, &SessionContext::new().task_ctx()).map_err(|stays| stays.0)
}

fn stays_because(found: Result<(), String>, reason: &str) {
    assert!(found.as_ref().is_err_and(|found| found.contains(reason)), "{found:?} instead of {reason:?}");
}

#[test]
fn files_of_three_formats_travel() {
    assert_eq!(told(parquet()), Ok(()));
    assert_eq!(told(scan(CsvSource::new(columns()), |builder| builder)), Ok(()));
    assert_eq!(told(scan(JsonSource::new(columns()), |builder| builder)), Ok(()));
    stays_because(
        told(scan(ArrowSource::new_file_source(columns()), |builder| builder)),
        "have not been taught to travel",
    );
}

#[test]
fn scans_whose_reading_is_not_all_written_down_stay() {
    let limit = |n| scan(ParquetSource::new(columns()), move |builder| builder.with_limit(Some(n)));
    assert_eq!(told(limit(7)), Ok(()));
    stays_because(told(limit(1 << 32)), "limit");
    let packed = FileCompressionType::from(CompressionTypeVariant::GZIP);
    stays_because(
        told(scan(CsvSource::new(columns()), |builder| builder.with_file_compression_type(packed))),
        "packed text",
    );
    let csv = CsvSource::new(columns()).with_terminator(Some(b';'));
    stays_because(told(scan(csv, |builder| builder)), "lines of a CSV file");
    let array = scan(JsonSource::new(columns()), |builder| {
        builder.with_file_groups(vec![FileGroup::new(vec![file("data/a").with_extension(JsonArray)])])
    });
    stays_because(told(array), "arrays of JSON");
}

#[test]
fn what_nobody_told_of_stays() {
    let context = SessionContext::new().task_ctx();
    let bare = may_travel(&parquet(), &context).map_err(|stays| stays.0);
    stays_because(bare, "which files it is about");
    // Half of it.
    let one = tell_files(parquet(), &|extent| Told::of(extent, false)).unwrap();
    let half = UnionExec::try_new(vec![one, parquet()]).unwrap();
    stays_because(may_travel(&half, &context).map_err(|stays| stays.0), "which files it is about");
    let unknown = scan(ParquetSource::new(columns()), |builder| {
        builder.with_file_groups(vec![FileGroup::new(vec![PartitionedFile::new("data/c", 10)])])
    });
    stays_because(told(unknown), "nothing is known of file data/c");
}

#[test]
fn what_reads_no_files_stays() {
    let empty: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(parquet().schema()));
    stays_because(told(empty), "has not been taught to travel");
}

#[test]
fn rows_are_dealt_out_by_their_keys_only() {
    use datafusion::physical_expr::expressions::col;
    let repartitioned = |partitioning| RepartitionExec::try_new(parquet(), partitioning).unwrap();
    let hash = || Partitioning::Hash(vec![col("g", &parquet().schema()).unwrap()], 3);
    assert_eq!(told(Arc::new(repartitioned(hash()))), Ok(()));
    stays_because(told(Arc::new(repartitioned(Partitioning::RoundRobinBatch(3)))), "other than by their keys");
}

/// Each task reads the left side whole: what found no partner in one may have found one in another.
#[test]
fn joins_without_keys_give_out_rows_of_the_right_side_only() {
    let one: Arc<dyn ExecutionPlan> = Arc::new(CoalescePartitionsExec::new(parquet()));
    for kind in [JoinType::Inner, JoinType::Right, JoinType::RightSemi, JoinType::RightAnti, JoinType::RightMark] {
        assert_eq!(check_collected(kind, &parquet()), Ok(()));
    }
    for kind in [JoinType::Left, JoinType::Full, JoinType::LeftSemi, JoinType::LeftAnti, JoinType::LeftMark] {
        stays_because(check_collected(kind, &parquet()).map_err(|stays| stays.0), "needs all rows in one place");
        assert_eq!(check_collected(kind, &one), Ok(()));
    }
}

/// Queries, and why they stay; nothing if they travel.
const QUERIES: [(&str, &str); 11] = [
    ("SELECT g, count(*), sum(f) FROM p GROUP BY g ORDER BY g", ""),
    ("SELECT a.g, count(*) FROM p a JOIN p b ON a.g = b.g GROUP BY a.g", ""),
    ("SELECT a.g, b.f FROM p a FULL JOIN p b ON a.g = b.g", ""),
    ("SELECT g, rank() OVER (PARTITION BY g ORDER BY f) FROM p", ""),
    ("SELECT g, upper(t) FROM p WHERE f > 1 ORDER BY g LIMIT 3", ""),
    ("SELECT string_agg(t, ',') FROM p", ""),
    ("SELECT sum(f) FROM p UNION ALL SELECT sum(f) FROM p", "order of rows"),
    ("SELECT g, sum(f) OVER (PARTITION BY g), sum(f) OVER (PARTITION BY t) FROM p", "order of rows"),
    ("SELECT string_agg(t, ','), 0 FROM p UNION ALL SELECT '', sum(f) FROM p", "order of rows"),
    ("SELECT count(*) FROM p WHERE g NOT IN (SELECT n FROM p WHERE f > 3)", "NOT IN"),
    ("SELECT count(*) FROM p WHERE random() < 2", "another value each time"),
];

/// As DataFusion plans for the cluster, with an extent for each file.
async fn planned(context: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let known = |config: &FileScanConfig| {
        let mut config = config.clone();
        let group = |group: &FileGroup| {
            let files = group.iter().map(|file| {
                let path = file.object_meta.location.to_string();
                file.clone().with_extension(extent(&path, file.object_meta.size))
            });
            FileGroup::new(files.collect())
        };
        config.file_groups = config.file_groups.iter().map(group).collect();
        Ok(Some(config))
    };
    rewrite_scans(&plan, &known).unwrap().unwrap_or(plan)
}

#[tokio::test]
async fn queries_travel_or_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = SessionConfig::new();
    planning_options(config.options_mut(), 3);
    let context = SessionContext::new_with_config(config);
    for file in 0..3 {
        let to = folder.path().join(format!("{file}.parquet"));
        let sql = format!(
            // In no order that a file would remember.
            "COPY (SELECT (value * 7) % 9 AS g, CAST((value * 5) % 9 AS DOUBLE) AS f, CAST(value % 5 AS TEXT) AS t, CASE WHEN value > 2 \
             THEN value % 4 END AS n FROM range(0, 9)) TO '{}'",
            to.display()
        );
        context.sql(&sql).await.unwrap().collect().await.unwrap();
    }
    let path = folder.path().display().to_string();
    context.register_parquet("p", &path, ParquetReadOptions::default()).await.unwrap();
    for (sql, reason) in QUERIES {
        let plan = planned(&context, sql).await;
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        let found = told(Arc::clone(&plan));
        match reason.is_empty() {
            true => assert_eq!(found, Ok(()), "{sql}\n{shown}"),
            false => stays_because(found, reason),
        }
    }
}

/// What was kept as groups is merged where it is.
#[test]
fn merged_groups_stay() {
    let aggregate = |mode| -> Arc<dyn ExecutionPlan> {
        use datafusion::physical_plan::aggregates::PhysicalGroupBy;
        let schema = parquet().schema();
        let group = datafusion::physical_expr::expressions::col("g", &schema).unwrap();
        let by = PhysicalGroupBy::new_single(vec![(group, "g".to_owned())]);
        Arc::new(AggregateExec::try_new(mode, by, vec![], vec![], parquet(), schema).unwrap())
    };
    assert_eq!(told(aggregate(AggregateMode::Partial)), Ok(()));
    stays_because(told(aggregate(AggregateMode::PartialReduce)), "merges cached groups");
}
