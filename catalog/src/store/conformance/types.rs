//! Schemas of every Arrow type, in every metadata store.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit, UnionFields, UnionMode};

use super::{MemoryStore, MetadataStore, SqliteStore, add, table};
use crate::TableDef;

conformance! {
    schemas_of_every_arrow_type_survive
}

async fn schemas_of_every_arrow_type_survive(store: &dyn MetadataStore) {
    let t = TableDef { schema: schema_of_every_type(), ..table("t") };
    let empty = TableDef { schema: Arc::new(Schema::empty()), ..table("empty") };
    add(store, &t, &[]).await;
    add(store, &empty, &[]).await;
    let tables = store.tables().await.expect("tables");
    for (stored, given) in tables[1].schema.fields().iter().zip(t.schema.fields()) {
        assert_eq!(stored, given);
    }
    assert_eq!(tables, [empty, t]);
}

fn schema_of_every_type() -> SchemaRef {
    use DataType::*;
    let metadata = |text: &str| HashMap::from([("key".to_owned(), text.to_owned()), (String::new(), "ü".to_owned())]);
    let item = |data_type: DataType| Arc::new(Field::new("item", data_type, true).with_metadata(metadata("item")));
    let dictionary = Dictionary(Box::new(UInt16), Box::new(LargeUtf8));
    let pair = || Fields::from(vec![Field::new("k", Utf8, false), Field::new("v", dictionary.clone(), true)]);
    let mut types = vec![
        Null,
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Date32,
        Date64,
        Binary,
        LargeBinary,
        BinaryView,
        FixedSizeBinary(16),
        Utf8,
        LargeUtf8,
        Utf8View,
        Decimal32(9, 2),
        Decimal64(18, -3),
        Decimal128(38, 10),
        Decimal256(76, 76),
        Time32(TimeUnit::Second),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
        Interval(IntervalUnit::YearMonth),
        Interval(IntervalUnit::DayTime),
        Interval(IntervalUnit::MonthDayNano),
        dictionary.clone(),
        Dictionary(Box::new(Int8), Box::new(Decimal128(10, 2))),
        List(item(Int32)),
        LargeList(item(dictionary.clone())),
        FixedSizeList(item(Float32), 3),
        ListView(item(Utf8View)),
        LargeListView(item(Null)),
        Struct(pair()),
        Struct(Fields::empty()),
        List(item(Struct(pair()))),
        Map(Arc::new(Field::new("entries", Struct(pair()), false)), false),
        RunEndEncoded(Arc::new(Field::new("run_ends", Int32, false)), Arc::new(Field::new("values", Utf8, true))),
        Union(UnionFields::try_new([1, 5], pair().iter().cloned()).expect("a union"), UnionMode::Dense),
        Union(UnionFields::try_new([0, 1], pair().iter().cloned()).expect("a union"), UnionMode::Sparse),
    ];
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        types.extend([Duration(unit), Timestamp(unit, None), Timestamp(unit, Some("Europe/Berlin".into()))]);
    }
    let fields: Vec<_> = types
        .into_iter()
        .enumerate()
        .map(|(idx, data_type)| {
            let field = Field::new(format!("column \"{idx}\""), data_type, idx % 2 == 0);
            if idx % 3 == 0 { field.with_metadata(metadata("field")) } else { field }
        })
        .collect();
    Arc::new(Schema::new_with_metadata(fields, metadata("schema")))
}
