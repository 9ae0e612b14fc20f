//! How bytes become rows, and which bytes: what is not in a statement must be in its key all the same.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::prelude::SessionConfig;
use nectarine_catalog::FileFormatKind;

use crate::canonical::fixture::{Fixture, Source, extent, schema};

const QUERY: &str = "SELECT a, sum(b) FROM t WHERE s = 'x' GROUP BY a";

/// Settings that change values or how files are read.
#[tokio::test]
async fn settings_that_change_rows_change_the_key() {
    let base = Fixture::new().key(QUERY).await;
    for (key, value) in [
        ("datafusion.execution.time_zone", "Europe/Berlin"),
        ("datafusion.execution.enable_ansi_mode", "true"),
        ("datafusion.execution.parquet.binary_as_string", "true"),
        ("datafusion.execution.parquet.coerce_int96", "ms"),
        ("datafusion.execution.parquet.schema_force_view_types", "false"),
        ("datafusion.execution.parquet.skip_metadata", "false"),
        ("datafusion.catalog.has_header", "false"),
        ("datafusion.catalog.newlines_in_values", "true"),
    ] {
        let config = SessionConfig::new().with_target_partitions(2).set_str(key, value);
        assert_ne!(base, Fixture::with_config(config).key(QUERY).await, "{key}");
    }
}

/// Everything about how bytes become rows, and which bytes.
#[tokio::test]
async fn readers_and_extents_change_the_key() {
    let keys_of = async |source: Source| {
        let fixture = Fixture::new();
        fixture.context.deregister_table("t").unwrap();
        fixture.table("t", source);
        let prefix = fixture.root(QUERY).await.unwrap();
        (prefix.program, prefix.key)
    };
    let (program, key) = keys_of(Source::parquet(&["t0", "t1"])).await;

    // Other extents: the same program on other data.
    let more: [&[&str]; 5] = [&["t0"], &["t1", "t0"], &["t0", "t1", "t2"], &["t0", "t2"], &[]];
    for names in more {
        let (other_program, other_key) = keys_of(Source::parquet(names)).await;
        assert_eq!(program, other_program, "{names:?}");
        assert_ne!(key, other_key, "{names:?}");
    }

    // Other readers: another program.
    let options = |key: &str, value: &str| BTreeMap::from([(key.to_string(), value.to_string())]);
    let csv = |options| Source { format: FileFormatKind::Csv, options, ..Source::parquet(&["t0", "t1"]) };
    let mut renamed = schema().fields().to_vec();
    renamed[1] = Arc::new(Field::new("b", DataType::Int32, true));
    let retyped = Source { schema: Arc::new(Schema::new(renamed)), ..Source::parquet(&["t0", "t1"]) };
    let others = [
        Source { format: FileFormatKind::Arrow, ..Source::parquet(&["t0", "t1"]) },
        Source { format: FileFormatKind::Json, ..Source::parquet(&["t0", "t1"]) },
        csv(BTreeMap::new()),
        csv(options("format.delimiter", ";")),
        csv(options("format.delimiter", "|")),
        csv(options("format.quote", "'")),
        csv(options("format.has_header", "false")),
        csv(options("format.null_regex", "^-$")),
        csv(options("format.comment", "#")),
        csv(options("aws.endpoint", "http://127.0.0.1:1")),
        csv(options("aws.endpoint", "http://127.0.0.1:2")),
        retyped,
    ];
    let mut seen = HashMap::from([(program, "parquet".to_string())]);
    for source in others {
        let name = format!("{:?} {:?}", source.format, source.options);
        let (other, _) = keys_of(source).await;
        if let Some(same) = seen.insert(other, name.clone()) {
            panic!("the same program for {same} and {name}");
        }
    }
}

/// All of a column's declaration: its name, its type with everything nested in it, whether it may be NULL, its metadata.
#[tokio::test]
async fn declarations_change_the_program() {
    let item = |data_type: DataType, nullable| Arc::new(Field::new("item", data_type, nullable));
    let inner = |name: &str, data_type: DataType| Field::new(name, data_type, true);
    let dictionary = |key: DataType, value: DataType| DataType::Dictionary(Box::new(key), Box::new(value));
    let timestamp = |unit, zone: Option<&str>| DataType::Timestamp(unit, zone.map(Into::into));
    let map = |value, sorted| {
        let entries = vec![Field::new("keys", DataType::Utf8, false), Field::new("values", value, true)];
        DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries.into()), false)), sorted)
    };
    let runs = |ends, values| {
        DataType::RunEndEncoded(Arc::new(Field::new("ends", ends, false)), Arc::new(Field::new("values", values, true)))
    };
    let types = [
        DataType::Int64,
        DataType::UInt64,
        DataType::Decimal128(10, 2),
        DataType::Decimal128(10, 3),
        DataType::Decimal128(11, 2),
        DataType::Decimal256(10, 2),
        timestamp(TimeUnit::Microsecond, None),
        timestamp(TimeUnit::Nanosecond, None),
        timestamp(TimeUnit::Microsecond, Some("+00:00")),
        timestamp(TimeUnit::Microsecond, Some("Europe/Berlin")),
        DataType::FixedSizeBinary(2),
        DataType::FixedSizeBinary(3),
        DataType::List(item(DataType::Int64, true)),
        DataType::List(item(DataType::Int32, true)),
        DataType::List(item(DataType::Int64, false)),
        DataType::LargeList(item(DataType::Int64, true)),
        DataType::FixedSizeList(item(DataType::Int64, true), 2),
        DataType::FixedSizeList(item(DataType::Int64, true), 3),
        DataType::Struct(vec![inner("x", DataType::Int64)].into()),
        DataType::Struct(vec![inner("y", DataType::Int64)].into()),
        DataType::Struct(vec![inner("x", DataType::Int64), inner("y", DataType::Int64)].into()),
        map(DataType::Int64, false),
        map(DataType::Int64, true),
        map(DataType::Int32, false),
        dictionary(DataType::Int8, DataType::Utf8),
        dictionary(DataType::Int16, DataType::Utf8),
        dictionary(DataType::Int8, DataType::LargeUtf8),
        runs(DataType::Int32, DataType::Utf8),
        runs(DataType::Int64, DataType::Utf8),
        runs(DataType::Int32, DataType::Int8),
    ];
    let mut fields: Vec<Field> = types.into_iter().map(|data_type| Field::new("x", data_type, true)).collect();
    fields.push(Field::new("x", DataType::Int64, false));
    let with = |name: &str, value: &str| HashMap::from([(name.to_string(), value.to_string())]);
    for metadata in [with("unit", "m"), with("unit", "km"), with("ARROW:extension:name", "m")] {
        fields.push(Field::new("x", DataType::Int64, true).with_metadata(metadata));
    }
    // Other names in the file are other columns, whatever they are called in the end.
    fields.push(Field::new("z", DataType::Int64, true));
    let mut seen: HashMap<_, Field> = HashMap::new();
    for field in fields {
        let fixture = Fixture::new();
        let sql = format!("SELECT {} AS x FROM w", field.name());
        let source = Source { schema: Arc::new(Schema::new(vec![field.clone()])), ..Source::parquet(&["w"]) };
        fixture.table("w", source);
        let program = fixture.root(&sql).await.unwrap().program;
        if let Some(other) = seen.insert(program, field.clone()) {
            panic!("the same program for {other:?} and {field:?}");
        }
    }
}

/// Columns of CSV go by position: one more in front changes what every name stands for.
#[tokio::test]
async fn columns_by_position_count_all() {
    let key_of = async |fields: Vec<Field>| {
        let fixture = Fixture::new();
        let source = Source {
            format: FileFormatKind::Csv,
            options: BTreeMap::new(),
            schema: Arc::new(Schema::new(fields)),
            extents: vec![extent("w")],
            partitions: vec![],
        };
        fixture.table("w", source);
        fixture.key("SELECT sum(y) FROM w").await
    };
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    let two = key_of(vec![field("x"), field("y")]).await;
    let three = key_of(vec![field("x"), field("z"), field("y")]).await;
    let behind = key_of(vec![field("x"), field("y"), field("z")]).await;
    let other_type = key_of(vec![Field::new("x", DataType::Utf8, true), field("y")]).await;
    for (one, other) in [(two, three), (two, behind), (three, behind), (two, other_type)] {
        assert_ne!(one, other);
    }
}

/// A column of the files is not the column of that name in their paths.
#[tokio::test]
async fn columns_in_paths_are_others() {
    for format in [FileFormatKind::Parquet, FileFormatKind::Json, FileFormatKind::Csv] {
        let prefix_of = async |partitions: &[&str]| {
            let fixture = Fixture::new();
            let fields = ["x", "y"].map(|name| Field::new(name, DataType::Int64, true));
            let source = Source {
                format,
                schema: Arc::new(Schema::new(fields.to_vec())),
                partitions: partitions.iter().map(ToString::to_string).collect(),
                ..Source::parquet(&["w"])
            };
            fixture.table("w", source);
            fixture.root("SELECT sum(y) FROM w").await.unwrap()
        };
        let (plain, in_path) = (prefix_of(&[]).await, prefix_of(&["y"]).await);
        assert_ne!(plain.program, in_path.program, "{format}");
        assert_ne!(plain.lineage.family, in_path.lineage.family, "{format}");
    }
}

/// Columns of Parquet go by name: more of them change nothing for those who do not read them.
#[tokio::test]
async fn columns_by_name_count_alone() {
    let key_of = async |fields: Vec<Field>| {
        let fixture = Fixture::new();
        let source = Source { schema: Arc::new(Schema::new(fields)), ..Source::parquet(&["w"]) };
        fixture.table("w", source);
        fixture.key("SELECT sum(y) FROM w").await
    };
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    assert_eq!(key_of(vec![field("x"), field("y")]).await, key_of(vec![field("x"), field("y"), field("z")]).await);
    assert_ne!(key_of(vec![field("y")]).await, key_of(vec![Field::new("y", DataType::Int32, true)]).await);
}
