//! Bundles and the files that they stand for come to the same.

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Statistics;
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
        assert_eq!(shape(&unpacked(&bundled).unwrap().unwrap()), shape(&plain), "as they were");
        for n in [1, 2, 3, 16, 100] {
            let partitioner = FileGroupPartitioner::new().with_target_partitions(n).with_repartition_file_min_size(1);
            let cut = partitioner.repartition_file_groups(&plain).map(|groups| shape(&groups));
            let unbundled = partitioner.repartition_file_groups(&bundled);
            let unbundled = unbundled.map(|groups| shape(&unpacked(&groups).unwrap().unwrap()));
            assert_eq!(unbundled, cut, "{n_extents} extents, {n_groups} groups, {n} partitions");
        }
        assert!(unpacked(&plain).unwrap().is_none());
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
