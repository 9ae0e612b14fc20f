//! Statistics survive their encoding, and whatever is lost is lost on the safe side.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit, i256};
use datafusion_common::stats::Precision::{self, Absent, Exact, Inexact};
use datafusion_common::{ColumnStatistics, ScalarValue, Statistics};

use super::*;
use crate::Fingerprint;

fn extent(rows: Option<u64>, stats: Arc<[u8]>, partitions: &[Option<&str>]) -> Arc<Extent> {
    Arc::new(Extent {
        location: Arc::from("file:///a"),
        range: None,
        lines: false,
        file_bytes: 1000,
        modified_at: 0,
        etag: None,
        fingerprint: Fingerprint::of_bytes(b""),
        rows,
        stats,
        partition_values: partitions.iter().map(|value| value.map(Arc::from)).collect(),
        first_seen_at: 0,
    })
}

fn bounds(min: Precision<ScalarValue>, max: Precision<ScalarValue>, nulls: Precision<usize>) -> ColumnStatistics {
    ColumnStatistics {
        min_value: min,
        max_value: max,
        null_count: nulls,
        byte_size: Exact(7),
        ..ColumnStatistics::new_unknown()
    }
}

fn statistics(columns: Vec<ColumnStatistics>) -> Statistics {
    Statistics { num_rows: Exact(10), total_byte_size: Inexact(99), column_statistics: columns }
}

/// One column of `data_type` through the encoding.
fn through(data_type: &DataType, column: ColumnStatistics) -> ColumnStatistics {
    let schema = Schema::new(vec![Field::new("c", data_type.clone(), true)]);
    let bytes = encode(&statistics(vec![column]), &schema);
    super::column(&extent(Some(10), bytes, &[]), &schema, 0)
}

#[test]
fn every_ordered_type_comes_back() {
    let zone: Option<Arc<str>> = Some(Arc::from("Europe/Berlin"));
    let pairs = [
        (ScalarValue::from(false), ScalarValue::from(true)),
        (ScalarValue::from(i8::MIN), ScalarValue::from(i8::MAX)),
        (ScalarValue::from(i16::MIN), ScalarValue::from(i16::MAX)),
        (ScalarValue::from(i32::MIN), ScalarValue::from(i32::MAX)),
        (ScalarValue::from(i64::MIN), ScalarValue::from(i64::MAX)),
        (ScalarValue::from(-1_i64), ScalarValue::from(0_i64)),
        (ScalarValue::from(-128_i64), ScalarValue::from(128_i64)),
        (ScalarValue::from(0_u8), ScalarValue::from(u8::MAX)),
        (ScalarValue::from(255_u16), ScalarValue::from(u16::MAX)),
        (ScalarValue::from(1_u32), ScalarValue::from(u32::MAX)),
        (ScalarValue::from(1_u64), ScalarValue::from(u64::MAX)),
        (ScalarValue::Date32(Some(-1)), ScalarValue::Date32(Some(20_000))),
        (ScalarValue::Date64(Some(-1)), ScalarValue::Date64(Some(1 << 40))),
        (ScalarValue::Time32Second(Some(0)), ScalarValue::Time32Second(Some(86_399))),
        (ScalarValue::Time32Millisecond(Some(1)), ScalarValue::Time32Millisecond(Some(2))),
        (ScalarValue::Time64Microsecond(Some(1)), ScalarValue::Time64Microsecond(Some(2))),
        (ScalarValue::Time64Nanosecond(Some(1)), ScalarValue::Time64Nanosecond(Some(2))),
        (ScalarValue::TimestampSecond(Some(1), None), ScalarValue::TimestampSecond(Some(2), None)),
        (
            ScalarValue::TimestampMillisecond(Some(-1), zone.clone()),
            ScalarValue::TimestampMillisecond(Some(2), zone.clone()),
        ),
        (ScalarValue::TimestampMicrosecond(Some(1), None), ScalarValue::TimestampMicrosecond(Some(1 << 50), None)),
        (
            ScalarValue::TimestampNanosecond(Some(1), zone.clone()),
            ScalarValue::TimestampNanosecond(Some(i64::MAX), zone),
        ),
        (ScalarValue::Decimal32(Some(-5), 9, 2), ScalarValue::Decimal32(Some(5), 9, 2)),
        (ScalarValue::Decimal64(Some(-5), 18, 2), ScalarValue::Decimal64(Some(5), 18, 2)),
        (ScalarValue::Decimal128(Some(i128::MIN), 38, 2), ScalarValue::Decimal128(Some(i128::MAX), 38, 2)),
        (ScalarValue::Decimal256(Some(i256::MIN), 76, 2), ScalarValue::Decimal256(Some(i256::MAX), 76, 2)),
        (ScalarValue::from(""), ScalarValue::from("z\u{e9}")),
        (ScalarValue::LargeUtf8(Some("a".into())), ScalarValue::LargeUtf8(Some("b".into()))),
        (ScalarValue::Utf8View(Some("a".into())), ScalarValue::Utf8View(Some("b".into()))),
        (ScalarValue::Binary(Some(vec![0])), ScalarValue::Binary(Some(vec![255; 64]))),
        (ScalarValue::LargeBinary(Some(vec![])), ScalarValue::LargeBinary(Some(vec![1]))),
        (ScalarValue::BinaryView(Some(vec![])), ScalarValue::BinaryView(Some(vec![1]))),
        (ScalarValue::FixedSizeBinary(2, Some(vec![1, 2])), ScalarValue::FixedSizeBinary(2, Some(vec![3, 4]))),
    ];
    for (min, max) in pairs {
        let given = bounds(Exact(min.clone()), Inexact(max), Exact(3));
        assert_eq!(through(&min.data_type(), given.clone()), given);
    }
}

#[test]
fn floats_are_never_exact_and_nan_is_nothing() {
    let float = |value: f64| Exact(ScalarValue::from(value));
    let back = through(&DataType::Float64, bounds(float(-0.5), float(f64::INFINITY), Exact(0)));
    assert_eq!(back.min_value, Inexact(ScalarValue::from(-0.5)));
    assert_eq!(back.max_value, Inexact(ScalarValue::from(f64::INFINITY)));
    let back = through(&DataType::Float64, bounds(float(f64::NAN), float(1.0), Absent));
    assert_eq!((back.min_value, back.null_count), (Absent, Absent));
    let back = through(&DataType::Float32, bounds(Exact(ScalarValue::from(1.5_f32)), Absent, Exact(0)));
    assert_eq!(back.min_value, Inexact(ScalarValue::from(1.5_f32)));
}

#[test]
fn long_strings_are_cut_on_the_safe_side() {
    let text = |text: &str| Exact(ScalarValue::from(text));
    let long = format!("{}\u{e9}tail", "a".repeat(63));
    let back = through(&DataType::Utf8, bounds(text(&long), text(&long), Exact(0)));
    assert_eq!(back.min_value, Inexact(ScalarValue::from("a".repeat(63))), "the letter that crosses the cut goes");
    assert_eq!(back.max_value, Inexact(ScalarValue::from(format!("{}b", "a".repeat(62)))));
    let top = char::MAX.to_string().repeat(17);
    let back = through(&DataType::Utf8, bounds(text(&top), text(&top), Exact(0)));
    assert_eq!(back.max_value, Absent, "nothing short is above");
    let surrogates = format!("{}\u{d7ff}\u{d7ff}", "a".repeat(61));
    let back = through(&DataType::Utf8, bounds(Absent, text(&surrogates), Exact(0)));
    assert_eq!(back.max_value, Inexact(ScalarValue::from(format!("{}\u{e000}", "a".repeat(61)))));

    let binary = |bytes: Vec<u8>| Exact(ScalarValue::Binary(Some(bytes)));
    let mut tail = vec![1];
    tail.extend([255; 80]);
    let back = through(&DataType::Binary, bounds(binary(tail.clone()), binary(tail.clone()), Exact(0)));
    assert_eq!(back.min_value, Inexact(ScalarValue::Binary(Some(tail[..64].to_vec()))));
    assert_eq!(back.max_value, Inexact(ScalarValue::Binary(Some(vec![2]))));
    assert_eq!(through(&DataType::Binary, bounds(Absent, binary(vec![255; 80]), Exact(0))).max_value, Absent);
}

#[test]
fn what_has_no_order_or_another_type_is_unknown() {
    let list = DataType::new_list(DataType::Int32, true);
    let back = through(&list, bounds(Exact(ScalarValue::from(1)), Absent, Exact(3)));
    assert_eq!((back.min_value, back.null_count, back.byte_size), (Absent, Exact(3), Exact(7)));
    let seconds = DataType::Timestamp(TimeUnit::Second, None);
    let back = through(&seconds, bounds(Exact(ScalarValue::TimestampMillisecond(Some(1), None)), Absent, Exact(3)));
    assert_eq!(back.min_value, Absent);
    // In a zone the same number is another time than on the wall.
    let (naive, zoned) =
        (DataType::Timestamp(TimeUnit::Second, None), DataType::Timestamp(TimeUnit::Second, Some("+02:00".into())));
    let back = through(&zoned, bounds(Exact(ScalarValue::TimestampSecond(Some(1), None)), Absent, Exact(3)));
    assert_eq!(back.min_value, Absent);
    let back =
        through(&naive, bounds(Absent, Exact(ScalarValue::TimestampSecond(Some(1), Some("+02:00".into()))), Exact(3)));
    assert_eq!(back.max_value, Absent);
    let back = through(&DataType::Utf8View, bounds(Exact(ScalarValue::from("a")), Absent, Exact(3)));
    assert_eq!(back.min_value, Exact(ScalarValue::Utf8View(Some("a".into()))), "strings are strings");
}

#[test]
fn damaged_bytes_are_nothing_known() {
    let schema = Schema::new(vec![Field::new("a", DataType::Utf8, true), Field::new("b", DataType::Int64, true)]);
    let columns = vec![
        bounds(Exact(ScalarValue::from("x")), Exact(ScalarValue::from("y")), Exact(1)),
        bounds(Exact(ScalarValue::from(1_i64)), Exact(ScalarValue::from(300_i64)), Absent),
    ];
    let bytes = encode(&statistics(columns), &schema);
    for cut in 0..bytes.len() {
        let _ = decode(&extent(Some(1), Arc::from(&bytes[..cut]), &[]), &schema, None);
    }
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7F, 0xFF] {
            let mut damaged = bytes.to_vec();
            damaged[at] = value;
            let _ = decode(&extent(Some(1), Arc::from(damaged), &[]), &schema, None);
        }
    }
    assert_eq!(
        decode(&extent(None, Arc::from([]), &[]), &schema, None).column_statistics,
        Statistics::unknown_column(&schema)
    );
}

fn schema_abp() -> Schema {
    Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
        Field::new("p", DataType::Int32, true),
    ])
}

fn known(rows: u64, min: i64, max: i64, text: (&str, &str), nulls: usize, partition: Option<&str>) -> Arc<Extent> {
    let schema = schema_abp();
    let columns = vec![
        bounds(Exact(ScalarValue::from(min)), Exact(ScalarValue::from(max)), Exact(nulls)),
        bounds(Exact(ScalarValue::from(text.0)), Exact(ScalarValue::from(text.1)), Exact(0)),
    ];
    extent(Some(rows), encode(&statistics(columns), &schema), &[partition])
}

#[test]
fn totals_are_merged() {
    let extents = [
        known(10, 5, 9, ("b", "c"), 1, Some("7")),
        known(5, -3, 6, ("a", "b"), 2, Some("12")),
        known(5, 0, 0, ("b", "b"), 0, None),
    ];
    let total = merge_total(&extents, &schema_abp(), None);
    assert_eq!(total.num_rows, Exact(20));
    assert_eq!(total.total_byte_size, Inexact(297));
    let [a, b, p] = total.column_statistics.as_slice() else { panic!("three columns") };
    assert_eq!(
        (&a.min_value, &a.max_value, a.null_count),
        (&Exact(ScalarValue::from(-3_i64)), &Exact(ScalarValue::from(9_i64)), Exact(3))
    );
    assert_eq!((&b.min_value, &b.max_value), (&Exact(ScalarValue::from("a")), &Exact(ScalarValue::from("c"))));
    assert_eq!(
        (&p.min_value, &p.max_value, p.null_count),
        (&Exact(ScalarValue::from(7)), &Exact(ScalarValue::from(12)), Exact(5))
    );

    let projected = merge_total(&extents, &schema_abp(), Some(&[2, 0]));
    assert_eq!(projected.column_statistics, [p.clone(), a.clone()]);
    let wide = merge_total_wide(&extents, &schema_abp(), Some(&[0]));
    assert_eq!(wide.column_statistics, [a.clone(), ColumnStatistics::new_unknown(), ColumnStatistics::new_unknown()]);
    assert_eq!(column(&extents[0], &schema_abp(), 2).min_value, Exact(ScalarValue::from(7)));

    // DataFusion adds the partition columns of a file by itself.
    let file_schema = Schema::new(schema_abp().fields()[..2].to_vec());
    let file = decode(&extents[0], &file_schema, Some(&[1]));
    assert_eq!(file.column_statistics[0], ColumnStatistics::new_unknown());
    assert_eq!(file.column_statistics[1].max_value, Exact(ScalarValue::from("c")));
}

#[test]
fn one_unknown_extent_makes_the_total_unknown() {
    let extents = [known(10, 5, 9, ("b", "c"), 1, Some("1")), extent(None, Arc::from([]), &[Some("2")])];
    let total = merge_total(&extents, &schema_abp(), None);
    assert_eq!(total.num_rows, Absent);
    assert_eq!(total.column_statistics[0].min_value, Absent);
    assert_eq!(total.column_statistics[0].null_count, Absent);
    assert_eq!(total.column_statistics[2].max_value, Inexact(ScalarValue::from(2)), "the extent may have no rows");
}

#[test]
fn extents_without_values_take_no_part() {
    let schema = schema_abp();
    let all_null = vec![bounds(Absent, Absent, Exact(4)), bounds(Absent, Absent, Exact(4))];
    let extents = [
        known(10, 5, 9, ("b", "c"), 1, Some("1")),
        extent(Some(4), encode(&statistics(all_null), &schema), &[Some("1")]),
        extent(Some(0), Arc::from([]), &[Some("99")]),
    ];
    let total = merge_total(&extents, &schema, None);
    assert_eq!(total.num_rows, Exact(14));
    assert_eq!(total.column_statistics[0].min_value, Exact(ScalarValue::from(5_i64)));
    assert_eq!(total.column_statistics[0].null_count, Exact(5));
    assert_eq!(total.column_statistics[2].max_value, Exact(ScalarValue::from(1)));
    let none = merge_total(&[], &schema, None);
    assert_eq!(none.num_rows, Exact(0));
    assert_eq!(none.column_statistics[0].min_value, Absent);
}

/// In release the budget is 5 ms.
#[test]
fn ten_thousand_extents_are_merged_quickly() {
    let extents: Vec<Arc<Extent>> = (0..10_000)
        .map(|n| known(1000, n, n + 1_700_000_000_000, ("some string value", "zzz"), 3, Some("2024")))
        .collect();
    let mut best = std::time::Duration::MAX;
    for _ in 0..20 {
        let started = std::time::Instant::now();
        let total = merge_total(&extents, &schema_abp(), Some(&[0, 1, 0, 2]));
        best = best.min(started.elapsed());
        assert_eq!(total.num_rows, Exact(10_000_000));
    }
    eprintln!("merging 10,000 extents, 4 columns: {best:?}");
}
