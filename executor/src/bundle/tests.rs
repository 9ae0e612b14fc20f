//! Bundles and the files that they stand for come to the same.

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Statistics;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::{ExecutionPlanProperties, displayable};
use datafusion_datasource::file_groups::FileGroupPartitioner;
use nectarine_catalog::{ByteRange, FileFormatKind, Fingerprint, TableName};

use super::*;

fn extent(position: usize, bytes: u64) -> Arc<Extent> {
    Arc::new(Extent {
        location: format!("file:///d/{position:05}%20x.parquet").into(),
        range: None,
        lines: false,
        file_bytes: bytes,
        modified_at: 0,
        etag: None,
        fingerprint: Fingerprint::from_bytes([position as u8; 32]),
        rows: Some(1),
        stats: Arc::from([]),
        partition_values: Arc::from([]),
        first_seen_at: 0,
    })
}

fn scan(format: FileFormatKind, extents: Vec<Arc<Extent>>) -> ExtentScanExec {
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    let reading = Reading {
        format,
        file_schema: Arc::clone(&schema),
        partition_fields: vec![],
        options: Arc::default(),
        managed: false,
    };
    let statistics = Statistics::new_unknown(&schema);
    let name = TableName::new("public", "t");
    ExtentScanExec::try_new(name, Arc::new(reading), schema, extents.into(), None, statistics).unwrap()
}

/// Paths and ranges by group.
fn shape(groups: &[FileGroup]) -> Vec<Vec<String>> {
    let name = |file: &PartitionedFile| match &file.range {
        Some(range) => format!("{} {}..{}", file.object_meta.location, range.start, range.end),
        None => file.object_meta.location.to_string(),
    };
    groups.iter().map(|group| group.iter().map(name).collect()).collect()
}

#[test]
fn cut_where_files_would_be() {
    let mut state = 7_u64;
    for (n_extents, n_groups) in [(1, 1), (5, 2), (40, 3), (41, 7), (3, 8)] {
        let sizes = (0..n_extents).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Some are empty, some are larger than all others together.
            [0, 1, 17, 100, 5_000][(state >> 33) as usize % 5]
        });
        let extents: Vec<Arc<Extent>> = sizes.enumerate().map(|(at, bytes)| extent(at, bytes)).collect();
        let scan = scan(FileFormatKind::Parquet, extents);
        let bundled = bundles(&scan, n_groups).unwrap();
        assert!(bundled.len() <= n_groups && bundled.iter().all(|group| group.len() == 1));
        let files = scan.extents().iter().map(|extent| whole_file(extent, scan.reading()).unwrap()).collect();
        let plain = crate::scan::in_order(files, n_groups);
        assert_eq!(shape(&unpacked(&bundled, None).unwrap()), shape(&plain), "as they were");
        for n in [1, 2, 3, 16, 100] {
            let partitioner = FileGroupPartitioner::new().with_target_partitions(n).with_repartition_file_min_size(1);
            let cut = partitioner.repartition_file_groups(&plain).map(|groups| shape(&groups));
            let unbundled = partitioner.repartition_file_groups(&bundled);
            let unbundled = unbundled.map(|groups| shape(&unpacked(&groups, None).unwrap()));
            assert_eq!(unbundled, cut, "{n_extents} extents, {n_groups} groups, {n} partitions");
        }
        assert_eq!(shape(&unpacked(&plain, None).unwrap()), shape(&plain), "no bundle, nothing to do");
    }
}

#[test]
fn what_must_be_seen_is_not_bundled() {
    let whole = || vec![extent(0, 5), extent(1, 5)];
    assert!(bundles(&scan(FileFormatKind::Parquet, whole()), 2).is_some());
    assert!(bundles(&scan(FileFormatKind::Csv, whole()), 2).is_none());
    let mut remote = whole();
    Arc::make_mut(&mut remote[1]).location = "s3://b/x.parquet".into();
    assert!(bundles(&scan(FileFormatKind::Parquet, remote), 2).is_none());
    let mut piece = whole();
    Arc::make_mut(&mut piece[0]).range = Some(ByteRange { start: 0, end: 3 });
    assert!(bundles(&scan(FileFormatKind::Arrow, piece), 2).is_none());
}

fn scan_of(groups: Vec<FileGroup>) -> FileScanConfig {
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    let source = Arc::new(ParquetSource::new(schema));
    FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source).with_file_groups(groups).build()
}

/// Whoever looks at the plan, or counts what it will read, can not tell.
#[test]
fn a_scan_that_waits_looks_like_the_one_that_runs() {
    let extents: Vec<Arc<Extent>> = (0..40).map(|at| extent(at, 100 + at as u64)).collect();
    let bundled = bundles(&scan(FileFormatKind::Parquet, extents), 3).unwrap();
    let partitioner = FileGroupPartitioner::new().with_target_partitions(7).with_repartition_file_min_size(1);
    let cut = partitioner.repartition_file_groups(&bundled).unwrap();
    for groups in [bundled, cut] {
        let plan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(scan_of(groups.clone()));
        let waits = UnbundleFiles.optimize(Arc::clone(&plan), &ConfigOptions::default()).unwrap();
        let runs = unbundled(plan).unwrap();
        assert!(
            file_scan(waits.as_ref())
                .unwrap()
                .file_groups
                .iter()
                .flat_map(FileGroup::iter)
                .all(|file| { bundle_of(file).is_some() })
        );
        assert_eq!(shape(&file_scan(runs.as_ref()).unwrap().file_groups), shape(&unpacked(&groups, None).unwrap()));
        let printed = |plan: &Arc<dyn ExecutionPlan>, verbose| displayable(plan.as_ref()).indent(verbose).to_string();
        assert_eq!(printed(&waits, false), printed(&runs, false));
        assert_eq!(printed(&waits, true), printed(&runs, true));
        assert!(printed(&waits, true).contains("00039"), "{}", printed(&waits, true));
        let tree = |plan: &Arc<dyn ExecutionPlan>| displayable(plan.as_ref()).tree_render().to_string();
        assert_eq!(tree(&waits), tree(&runs));
        let totals = |plan: &Arc<dyn ExecutionPlan>| ScanTotals::of(file_scan(plan.as_ref()).unwrap());
        assert_eq!(totals(&waits), totals(&runs));
        assert_eq!(totals(&waits).files, 40);
        assert_eq!(waits.output_partitioning().partition_count(), runs.output_partitioning().partition_count());
        let files_of_partition = |partition: usize| {
            let source = waits.downcast_ref::<DataSourceExec>().unwrap().data_source();
            shape(&source.downcast_ref::<BundledFiles>().unwrap().files().unwrap().file_groups)[partition].clone()
        };
        let wanted = shape(&file_scan(runs.as_ref()).unwrap().file_groups);
        wanted.iter().enumerate().for_each(|(at, files)| assert_eq!(*files, files_of_partition(at)));
    }
}
