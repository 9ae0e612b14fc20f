//! What is told of files arrives, and is about the files that are read.

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{CsvSource, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::displayable;
use datafusion::physical_plan::union::UnionExec;

use super::super::check::wanted_files;
use super::*;

fn extent(name: &str, range: Option<(u64, u64)>) -> Extent {
    Extent {
        location: Arc::from(format!("file:///data/{name}")),
        range: range.map(|(start, end)| ByteRange { start, end }),
        lines: true,
        file_bytes: 100,
        modified_at: 1_234_567,
        etag: Some(Arc::from("\"e\"")),
        fingerprint: Fingerprint::of_bytes(format!("{name} {range:?}").as_bytes()),
        rows: None,
        stats: Arc::from([]),
        partition_values: Arc::from([Some(Arc::from("2026")), None]),
        first_seen_at: 0,
    }
}

/// A piece of an extent.
fn file(extent: &Extent, piece: Option<(i64, i64)>) -> PartitionedFile {
    let path = extent.location.trim_start_matches("file:///");
    let file = PartitionedFile::new(path, extent.file_bytes).with_extension(extent.clone());
    match piece {
        Some((start, end)) => file.with_range(start, end),
        None => file,
    }
}

fn scan(groups: Vec<Vec<PartitionedFile>>) -> Arc<dyn ExecutionPlan> {
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    let source = Arc::new(CsvSource::new(TableSchema::builder(schema).build()));
    let builder = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
        .with_file_groups(groups.into_iter().map(FileGroup::new).collect());
    DataSourceExec::from_data_source(builder.build())
}

fn told(groups: Vec<Vec<PartitionedFile>>) -> Arc<dyn ExecutionPlan> {
    tell_files(scan(groups), &|extent| Told::of(extent, extent.range.is_some())).unwrap()
}

/// The same over another scan, as Ballista makes it for a task.
fn over(plan: &Arc<dyn ExecutionPlan>, scan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(vec![scan], options).unwrap()
}

fn node(plan: &Arc<dyn ExecutionPlan>) -> &ToldFilesExec {
    plan.downcast_ref().unwrap()
}

fn names(plan: &ToldFilesExec) -> Vec<(String, Option<ByteRange>)> {
    plan.needed().unwrap().into_iter().map(|told| (told.location.to_string(), told.range)).collect()
}

/// Two extents of a log, the first of which is read in two pieces, and a whole file.
fn groups() -> Vec<Vec<PartitionedFile>> {
    let (first, second) = (extent("log", Some((0, 60))), extent("log", Some((60, 100))));
    vec![
        vec![file(&first, Some((0, 30)))],
        vec![file(&first, Some((30, 60))), file(&second, Some((60, 100)))],
        vec![file(&extent("whole", None), None)],
    ]
}

#[test]
fn arrives_as_it_left() {
    let plan = told(groups());
    let mut written = vec![];
    node(&plan).encode(&mut written).unwrap();
    let read = ToldFilesExec::decode(&written, &[scan(groups())]).unwrap().unwrap();
    assert_eq!(read.needed().unwrap(), node(&plan).needed().unwrap());
    let told = read.needed().unwrap();
    assert_eq!(*told[0], Told::of(&extent("log", Some((0, 60))), true));
    assert_eq!(**told.last().unwrap(), Told::of(&extent("whole", None), false));
    let mut again = vec![];
    read.encode(&mut again).unwrap();
    assert_eq!(again, written);
    assert!(displayable(&read).one_line().to_string().contains("ToldFilesExec: files=4"));
    assert!(ToldFilesExec::decode(b"of another node", &[scan(groups())]).is_none());
}

/// A task reads some of the files, and is told of those.
#[test]
fn other_files_are_left_out() {
    let plan = told(groups());
    let restricted = |group: usize| over(&plan, scan(vec![groups().swap_remove(group)]));
    let range = |start, end| Some(ByteRange { start, end });
    let log = || "file:///data/log".to_owned();
    assert_eq!(names(node(&restricted(0))), [(log(), range(0, 60))]);
    assert_eq!(names(node(&restricted(1))), [(log(), range(0, 60)), (log(), range(60, 100))]);
    assert_eq!(names(node(&restricted(2))), [("file:///data/whole".to_owned(), None)]);
    let none = over(&plan, scan(vec![]));
    assert_eq!(names(node(&none)), []);
    assert_eq!(none.properties().output_partitioning().partition_count(), 0);
}

#[test]
fn a_file_that_nothing_is_told_of_is_not_read() {
    let plan = told(vec![vec![file(&extent("log", Some((0, 60))), Some((0, 30)))]]);
    let read = |file: PartitionedFile| {
        let plan = over(&plan, scan(vec![vec![file]]));
        node(&plan).needed().is_ok()
    };
    let log = extent("log", Some((0, 60)));
    assert!(read(file(&log, Some((10, 60)))));
    // Beyond what was told, all of it, another size, another file.
    assert!(!read(file(&log, Some((10, 61)))));
    assert!(!read(file(&log, None)));
    assert!(!read(file(&Extent { file_bytes: 101, ..log.clone() }, Some((0, 30)))));
    assert!(!read(file(&extent("other", Some((0, 60))), Some((0, 30)))));
}

/// Nobody looked at the files.
#[test]
fn it_does_not_run() {
    assert!(told(groups()).execute(0, Arc::default()).is_err());
}

/// An executor reads no file that nobody told of, whoever sent the plan.
#[test]
fn what_is_read_is_told_of() {
    let runtime = RuntimeEnv::default();
    let union = |plans| UnionExec::try_new(plans).unwrap();
    // Three each: pieces of an extent need it once.
    assert_eq!(wanted_files(&union(vec![told(groups()), told(groups())]), &runtime).unwrap().len(), 6);
    assert!(wanted_files(&scan(groups()), &runtime).is_err());
    assert!(wanted_files(&union(vec![told(groups()), scan(groups())]), &runtime).is_err());
}
