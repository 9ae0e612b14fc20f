//! Every type survives; no damage passes.

use arrow::array::*;
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::*;

use super::super::testing::{key, memory_store, numbers};
use super::super::{DerivedError, storable::unstorable};
use super::*;

fn part_of(encoded: &Encoded) -> EntryPart {
    EntryPart {
        location: "x".to_owned(),
        bytes: encoded.bytes.len() as u64,
        rows: encoded.rows,
        checksum: encoded.checksum,
    }
}

fn round_trip(batches: &[RecordBatch]) -> (Vec<RecordBatch>, u64) {
    let schema = batches[0].schema();
    assert_eq!(unstorable(&schema), None);
    let encoded = encode(&key("k"), 3, &schema, batches).unwrap();
    let part = part_of(&encoded);
    verify(&encoded.bytes, &part, &key("k"), 3, Some(&schema)).unwrap();
    let back = decode(&encoded.bytes, &part, &key("k"), 3, &schema).unwrap();
    let back: Vec<_> = back.iter().map(|batch| relabel(batch, &schema).unwrap()).collect();
    (back, part.bytes)
}

#[track_caller]
fn survives(array: impl Array + 'static) {
    let array: ArrayRef = Arc::new(array);
    let n = array.len();
    // The whole, a slice from the middle, none of it, and several batches.
    let slices = [array.slice(0, n), array.slice(1, n - 2), array.slice(n / 2, 0)];
    for slice in &slices {
        let batch = one_column(slice);
        let (back, _) = round_trip(std::slice::from_ref(&batch));
        let back = concat_batches(&batch.schema(), &back).unwrap();
        assert_eq!(back, batch, "{}", array.data_type());
    }
    let batches: Vec<_> = slices.iter().map(one_column).collect();
    let (back, _) = round_trip(&batches);
    let rows = |batches: &[RecordBatch]| {
        let options = arrow::util::display::FormatOptions::new().with_null("NULL");
        let mut rows = vec![];
        for batch in batches {
            let format = arrow::util::display::ArrayFormatter::try_new(batch.column(0), &options).unwrap();
            rows.extend((0..batch.num_rows()).map(|row| format.value(row).to_string()));
        }
        rows
    };
    assert_eq!(rows(&back), rows(&batches), "{}", array.data_type());
}

fn one_column(array: &ArrayRef) -> RecordBatch {
    let field = Field::new("an alias", array.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::clone(array)]).unwrap()
}

#[test]
fn flat_types_survive() {
    survives(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), None]));
    survives(Int8Array::from(vec![Some(1), None, Some(-128), Some(127)]));
    survives(Int16Array::from(vec![1, 2, 3, 4]));
    survives(Int32Array::from(vec![Some(1), None, Some(i32::MIN), Some(i32::MAX)]));
    survives(Int64Array::from(vec![Some(1), None, Some(i64::MIN), Some(i64::MAX)]));
    survives(UInt8Array::from(vec![1, 2, 3, 255]));
    survives(UInt16Array::from(vec![1, 2, 3, 4]));
    survives(UInt32Array::from(vec![1, 2, 3, 4]));
    survives(UInt64Array::from(vec![1, 2, 3, u64::MAX]));
    survives(Float16Array::from_iter_values([half(1.5), half(-0.0), half(f32::INFINITY)]));
    survives(Float32Array::from(vec![Some(1.5), None, Some(-0.0), Some(f32::INFINITY)]));
    survives(Float64Array::from(vec![Some(1.5), None, Some(-0.0), Some(f64::MIN_POSITIVE)]));
    survives(Decimal32Array::from(vec![1, -2, 3]).with_precision_and_scale(9, 2).unwrap());
    survives(Decimal64Array::from(vec![1, -2, 3]).with_precision_and_scale(18, 2).unwrap());
    survives(Decimal128Array::from(vec![Some(1), None, Some(-99)]).with_precision_and_scale(38, 10).unwrap());
    survives(
        Decimal256Array::from(vec![i256::ONE, i256::MINUS_ONE, i256::ZERO]).with_precision_and_scale(76, 3).unwrap(),
    );
    survives(StringArray::from(vec![Some("a"), None, Some(""), Some("Ωmega")]));
    survives(LargeStringArray::from(vec![Some("a"), None, Some(""), Some("Ωmega")]));
    survives(StringViewArray::from(vec![Some("short"), None, Some(""), Some("much longer than twelve bytes")]));
    survives(BinaryArray::from(vec![Some(b"a".as_slice()), None, Some(b""), Some(b"\xff\x00")]));
    survives(LargeBinaryArray::from(vec![Some(b"a".as_slice()), None, Some(b""), Some(b"\xff\x00")]));
    survives(BinaryViewArray::from(vec![Some(b"a".as_slice()), None, Some(b"much longer than twelve bytes")]));
    survives(FixedSizeBinaryArray::try_from_iter([[1u8, 2, 3], [4, 5, 6], [7, 8, 9]].into_iter()).unwrap());
    survives(NullArray::new(5));
}

fn half(value: f32) -> <Float16Type as ArrowPrimitiveType>::Native {
    let array: ArrayRef = Arc::new(Float32Array::from(vec![value]));
    arrow::compute::cast(&array, &DataType::Float16).unwrap().as_primitive::<Float16Type>().value(0)
}

#[test]
fn times_survive() {
    survives(Date32Array::from(vec![Some(1), None, Some(-9)]));
    survives(Date64Array::from(vec![86_400_000, 0, -86_400_000]));
    survives(Time32SecondArray::from(vec![1, 2, 3]));
    survives(Time32MillisecondArray::from(vec![1, 2, 3]));
    survives(Time64MicrosecondArray::from(vec![1, 2, 3]));
    survives(Time64NanosecondArray::from(vec![1, 2, 3]));
    survives(TimestampSecondArray::from(vec![Some(1), None, Some(3)]));
    survives(TimestampMillisecondArray::from(vec![1, 2, 3]).with_timezone("+02:00"));
    survives(TimestampMicrosecondArray::from(vec![1, 2, 3]).with_timezone("Europe/Prague"));
    survives(TimestampNanosecondArray::from(vec![1, 2, 3]).with_timezone("UTC"));
    survives(DurationSecondArray::from(vec![1, 2, 3]));
    survives(DurationNanosecondArray::from(vec![1, 2, 3]));
    survives(IntervalYearMonthArray::from(vec![1, 2, 3]));
    survives(IntervalDayTimeArray::from(vec![
        IntervalDayTime::new(1, 2),
        IntervalDayTime::ZERO,
        IntervalDayTime::new(3, -4),
    ]));
    survives(IntervalMonthDayNanoArray::from(vec![
        Some(IntervalMonthDayNano::new(1, -2, 3)),
        None,
        Some(IntervalMonthDayNano::ZERO),
    ]));
}

fn list() -> ListArray {
    ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
        Some(vec![Some(2), Some(3), Some(4)]),
    ])
}

#[test]
fn nested_types_survive() {
    survives(list());
    survives(LargeListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1)]), None, Some(vec![])]));
    survives(FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
        vec![Some(vec![Some(1), None]), None, Some(vec![Some(5), Some(6)])],
        2,
    ));
    let views =
        StringViewArray::from(vec!["a string longer than twelve bytes", "b", "another one that is rather long"]);
    let field = Arc::new(Field::new("item", DataType::Utf8View, true));
    survives(ListArray::new(field, OffsetBuffer::from_lengths([1, 0, 2]), Arc::new(views.clone()), None));
    let fields: Fields = vec![
        Field::new("a", DataType::Utf8View, true),
        Field::new("b", DataType::Int32, true).with_metadata(HashMap::from([("unit".to_owned(), "m".to_owned())])),
    ]
    .into();
    let columns: Vec<ArrayRef> = vec![Arc::new(views), Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]))];
    survives(StructArray::new(fields, columns, Some(vec![true, false, true].into())));
    survives(StructArray::new_empty_fields(4, None));

    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for row in 0..4 {
        for entry in 0..row {
            map.keys().append_value(format!("k{entry}"));
            map.values().append_option((entry != 1).then_some(entry));
        }
        map.append(row != 2).unwrap();
    }
    survives(map.finish());

    let field = Arc::new(Field::new("item", DataType::Int32, true));
    let values: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
    survives(ListViewArray::new(field, vec![2, 0, 1].into(), vec![2, 1, 3].into(), values, None));
}

#[test]
fn unions_survive() {
    let fields =
        UnionFields::try_new([0, 1], [Field::new("i", DataType::Int32, true), Field::new("s", DataType::Utf8, true)])
            .unwrap();
    let ids = ScalarBuffer::from(vec![0i8, 1, 0]);
    let sparse: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![1, 0, 3])), Arc::new(StringArray::from(vec!["", "b", ""]))];
    survives(UnionArray::try_new(fields.clone(), ids.clone(), None, sparse).unwrap());
    let dense: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![1, 3])), Arc::new(StringArray::from(vec!["b"]))];
    survives(UnionArray::try_new(fields, ids, Some(vec![0, 0, 1].into()), dense).unwrap());
}

#[test]
fn dictionaries_survive() {
    survives(vec![Some("a"), None, Some("b"), Some("a")].into_iter().collect::<DictionaryArray<Int8Type>>());
    let views: ArrayRef = Arc::new(StringViewArray::from(vec!["a string longer than twelve bytes", "b"]));
    survives(DictionaryArray::<UInt64Type>::new(vec![1, 0, 0, 1].into(), views));
    // Within a list, within a struct; each batch with a dictionary of its own.
    let words = |words: [&str; 3]| {
        let dictionary: ArrayRef = Arc::new(words.into_iter().collect::<DictionaryArray<Int32Type>>());
        let field = Arc::new(Field::new("item", dictionary.data_type().clone(), true));
        let list: ArrayRef = Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([1, 2]), dictionary, None));
        one_column(
            &(Arc::new(StructArray::from(vec![(Arc::new(Field::new("l", list.data_type().clone(), true)), list)]))
                as _),
        )
    };
    let batches = [words(["a", "b", "a"]), words(["x", "y", "z"]), words(["a", "b", "c"])];
    let (back, _) = round_trip(&batches);
    assert_eq!(
        concat_batches(&batches[0].schema(), &back).unwrap(),
        concat_batches(&batches[0].schema(), &batches).unwrap()
    );
}

#[test]
fn rows_without_columns_survive() {
    let options = RecordBatchOptions::new().with_row_count(Some(10_000));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    let (back, _) = round_trip(&[batch.clone(), batch]);
    assert_eq!(back.iter().map(RecordBatch::num_rows).sum::<usize>(), 20_000);
}

#[test]
fn columns_of_one_name_stay_apart() {
    let field = Field::new("sum(x)", DataType::Int64, false);
    let schema = Arc::new(Schema::new(vec![field.clone(), field]));
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![1])), Arc::new(Int64Array::from(vec![2]))];
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    assert_eq!(round_trip(std::slice::from_ref(&batch)).0, [batch]);
}

#[test]
fn small_batches_are_joined() {
    let batches: Vec<_> = (0..20_000).map(|n| numbers(n..n + 1)).collect();
    let (back, bytes) = round_trip(&batches);
    assert_eq!(back.len(), 3);
    assert_eq!(concat_batches(&back[0].schema(), &back).unwrap(), numbers(0..20_000));
    assert!(bytes < 20_000 * 16, "{bytes}");
}

#[test]
fn a_slice_is_written_without_the_rest() {
    let long = |n: usize| format!("{:032x}{n}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let view: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..100_000).map(long)));
    let plain: ArrayRef = Arc::new(StringArray::from_iter_values((0..100_000).map(long)));
    let dictionary: ArrayRef =
        Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from_iter_values(0..100_000), Arc::clone(&view)));
    let field = Arc::new(Field::new("item", DataType::Utf8View, true));
    let list: ArrayRef =
        Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(vec![1; 100_000]), Arc::clone(&view), None));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(
        Arc::new(Field::new("l", list.data_type().clone(), true)),
        Arc::clone(&list),
    )]));
    for array in [view, plain, dictionary, list, nested] {
        let batch = one_column(&array.slice(5_000, 10));
        let (back, bytes) = round_trip(std::slice::from_ref(&batch));
        assert_eq!(back, std::slice::from_ref(&batch));
        assert!(bytes < 8_000, "{bytes} bytes for ten rows of {}", array.data_type());
        let own = compact::unpinned(&batch, compact::row_bytes(&batch)).unwrap();
        assert_eq!(own, batch);
        assert!(compact::row_bytes(&batch) < 2_000, "{} {}", compact::row_bytes(&batch), array.data_type());
        assert!(own.get_array_memory_size() < 64 << 10, "{} {}", own.get_array_memory_size(), array.data_type());
    }
}

#[test]
fn every_flip_and_every_cut_is_noticed() {
    let words: ArrayRef = Arc::new(vec!["a", "b", "a"].into_iter().collect::<DictionaryArray<Int32Type>>());
    let batch = one_column(&words);
    let encoded = encode(&key("k"), 0, &batch.schema(), std::slice::from_ref(&batch)).unwrap();
    let part = part_of(&encoded);
    for position in 0..encoded.bytes.len() {
        let mut damaged = encoded.bytes.to_vec();
        for bit in [1, 0x80, 0xff] {
            damaged[position] ^= bit;
            assert!(decode(&damaged, &part, &key("k"), 0, &batch.schema()).is_err());
            damaged[position] ^= bit;
            assert!(decode(&encoded.bytes[..position], &part, &key("k"), 0, &batch.schema()).is_err());
        }
    }
    let longer = [&encoded.bytes, b"x".as_slice()].concat();
    assert!(decode(&longer, &part, &key("k"), 0, &batch.schema()).is_err());
}

#[test]
fn a_part_of_something_else_is_refused() {
    let batch = numbers(0..10);
    let encoded = encode(&key("k"), 1, &batch.schema(), std::slice::from_ref(&batch)).unwrap();
    let part = part_of(&encoded);
    let other_type = Schema::new(vec![Field::new("n", DataType::Int32, false)]);
    let two = Schema::new(vec![Field::new("n", DataType::Int64, false), Field::new("m", DataType::Int64, false)]);
    assert!(decode(&encoded.bytes, &part, &key("k"), 1, &batch.schema()).is_ok());
    assert!(decode(&encoded.bytes, &part, &key("l"), 1, &batch.schema()).is_err());
    assert!(decode(&encoded.bytes, &part, &key("k"), 0, &batch.schema()).is_err());
    assert!(decode(&encoded.bytes, &part, &key("k"), 1, &other_type).is_err());
    assert!(decode(&encoded.bytes, &part, &key("k"), 1, &two).is_err());
    let fewer = EntryPart { rows: 9, ..part };
    assert!(decode(&encoded.bytes, &fewer, &key("k"), 1, &batch.schema()).is_err());
}

#[tokio::test]
async fn the_store_tells_missing_from_damaged() {
    let store = memory_store();
    let batch = numbers(0..10);
    let schema = batch.schema();
    let part = store.write_part(&key("k"), 0, &schema, std::slice::from_ref(&batch)).await.unwrap();
    let read = store.read_part(&part, &key("k"), 0, &schema).await.unwrap();
    assert_eq!(relabel(&read[0], &schema).unwrap(), batch);
    let larger = EntryPart { bytes: part.bytes + 1, ..part.clone() };
    let damaged = store.read_part(&larger, &key("k"), 0, &schema).await;
    assert!(matches!(damaged, Err(DerivedError::Damaged { .. })), "{damaged:?}");
    let outside = EntryPart { location: "../../etc/passwd".to_owned(), ..part.clone() };
    let missing = store.read_part(&outside, &key("k"), 0, &schema).await;
    assert!(matches!(missing, Err(DerivedError::Missing { .. })), "{missing:?}");
    store.delete(std::slice::from_ref(&part)).await.unwrap();
    store.delete(std::slice::from_ref(&part)).await.unwrap();
    let missing = store.read_part(&part, &key("k"), 0, &schema).await;
    assert!(matches!(missing, Err(DerivedError::Missing { .. })), "{missing:?}");
}

#[test]
fn types_that_would_not_survive_are_not_recorded() {
    let runs =
        RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2, 3]), &StringArray::from(vec!["x", "y"])).unwrap();
    let inner = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    for data_type in [
        runs.data_type().clone(),
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(inner)),
        DataType::FixedSizeBinary(0),
        DataType::List(Arc::new(Field::new("item", DataType::FixedSizeBinary(0), true))),
    ] {
        assert!(unstorable(&Schema::new(vec![Field::new("c", data_type.clone(), true)])).is_some(), "{data_type}");
    }
}
