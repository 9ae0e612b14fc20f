//! How many NULLs a Parquet file tells of, between which bounds its values are, and what it leaves open.
//!
//! Guarantees   `Exact` only where every row group tells, or where the file's schema rules NULLs out. DataFusion takes a count
//!              that the writer left out for zero; here it is unknown, because an extent is skipped, a row count answered
//!              and a column taken for NOT NULL on the strength of it. Bounds only where every row group that has a value tells
//!              both: DataFusion passes over groups that tell none, and takes the bounds of the others for those of all.

use arrow::datatypes::Schema;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use parquet::basic::{LogicalType, Repetition};
use parquet::file::metadata::ParquetMetaData;

/// Puts what the file really says in place of what was concluded; `statistics` are of the columns of `schema`.
pub(crate) fn correct(statistics: &mut Statistics, metadata: &ParquetMetaData, schema: &Schema) {
    for (field, column) in schema.fields().iter().zip(&mut statistics.column_statistics) {
        column.null_count = null_count(metadata, field.name());
        if !tells_bounds(metadata, field.name()) {
            (column.min_value, column.max_value) = (Precision::Absent, Precision::Absent);
        }
    }
}

fn null_count(metadata: &ParquetMetaData, name: &str) -> Precision<usize> {
    let file = metadata.file_metadata().schema_descr();
    let n_rows: i64 = metadata.row_groups().iter().map(|group| group.num_rows()).sum();
    let Some(root) = file.root_schema().get_fields().iter().find(|root| root.name() == name) else {
        // A column that the file lacks is read as NULL.
        return Precision::Exact(usize::try_from(n_rows).unwrap_or(usize::MAX));
    };
    if root.get_basic_info().repetition() == Repetition::REQUIRED {
        return Precision::Exact(0);
    }
    // What is told of a leaf says nothing of the struct or list around it.
    if !root.is_primitive() {
        return Precision::Absent;
    }
    let Some(leaf) = file.columns().iter().position(|column| column.path().parts() == [name]) else {
        return Precision::Absent;
    };
    let told = metadata.row_groups().iter().filter(|group| group.num_rows() > 0);
    let counts = told.map(|group| group.column(leaf).statistics().and_then(|known| known.null_count_opt()));
    match counts.sum::<Option<u64>>() {
        Some(count) => Precision::Exact(usize::try_from(count).unwrap_or(usize::MAX)),
        None => Precision::Absent,
    }
}

/// Whether all row groups tell the bounds of their values.
fn tells_bounds(metadata: &ParquetMetaData, name: &str) -> bool {
    let columns = metadata.file_metadata().schema_descr().columns();
    let Some(leaf) = columns.iter().position(|column| column.path().parts() == [name]) else { return false };
    let is_unsigned = matches!(columns[leaf].logical_type_ref(), Some(LogicalType::Integer(number)) if !number.is_signed)
        || columns[leaf].converted_type().to_string().starts_with("UINT");
    metadata.row_groups().iter().all(|group| {
        let known = group.column(leaf).statistics();
        let is_empty = group.num_rows() == 0
            || known.and_then(|known| known.null_count_opt()) == u64::try_from(group.num_rows()).ok();
        let tells = known.is_some_and(|known| {
            // The old fields compare as signed numbers, whatever the column is.
            let in_order = !(is_unsigned && known.is_min_max_deprecated());
            in_order && known.min_bytes_opt().is_some() && known.max_bytes_opt().is_some()
        });
        is_empty || tells
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StructArray, UInt64Array};
    use arrow::datatypes::{DataType, Field};
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::{ParquetMetaDataReader, RowGroupMetaData};
    use parquet::file::properties::{EnabledStatistics, WriterProperties};
    use parquet::file::statistics::Statistics as ColumnChunkStatistics;

    use super::*;

    fn file(with_statistics: bool) -> (ParquetMetaData, Schema) {
        let inner = Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(3)])) as ArrayRef;
        let fields = vec![Arc::new(Field::new("x", DataType::Int64, true))];
        let schema = Schema::new(vec![
            Field::new("some", DataType::Int64, true),
            Field::new("none", DataType::Int64, true),
            Field::new("required", DataType::Int64, false),
            Field::new("nested", DataType::Struct(fields.clone().into()), true),
        ]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
            Arc::clone(&inner),
            Arc::clone(&inner),
            Arc::new(StructArray::new(fields.into(), vec![inner], Some(vec![true, false, true].into()))),
        ];
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
        let level = if with_statistics { EnabledStatistics::Chunk } else { EnabledStatistics::None };
        let properties = WriterProperties::builder().set_statistics_enabled(level).build();
        let mut bytes = vec![];
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        (ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes)).unwrap(), schema)
    }

    fn counts(metadata: &ParquetMetaData, schema: &Schema) -> Vec<Precision<usize>> {
        let mut fields = schema.fields().to_vec();
        fields.push(Arc::new(Field::new("absent", DataType::Int64, true)));
        let schema = Schema::new(fields);
        let mut statistics = Statistics::new_unknown(&schema);
        correct(&mut statistics, metadata, &schema);
        statistics.column_statistics.into_iter().map(|column| column.null_count).collect()
    }

    #[test]
    fn what_a_file_tells() {
        let (metadata, schema) = file(true);
        let (one, none, all) = (Precision::Exact(1), Precision::Exact(0), Precision::Exact(3));
        assert_eq!(counts(&metadata, &schema), [one, none, none, Precision::Absent, all]);
    }

    #[test]
    fn what_a_file_leaves_out_is_unknown() {
        let (metadata, schema) = file(false);
        let unknown = Precision::Absent;
        let told = [unknown, unknown, Precision::Exact(0), unknown, Precision::Exact(3)];
        assert_eq!(counts(&metadata, &schema), told);

        // Bounds without a count, as some writers leave them.
        let (metadata, schema) = file(true);
        let groups: Vec<RowGroupMetaData> = metadata.row_groups().iter().map(without_counts).collect();
        let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), groups);
        assert_eq!(counts(&metadata, &schema), told);
    }

    /// Two row groups, of which one tells no bounds.
    #[test]
    fn bounds_of_some_row_groups_are_none() {
        let (metadata, schema) = file(true);
        let known = |metadata: &ParquetMetaData| {
            let exact = |value: i64| Precision::Exact(datafusion::common::ScalarValue::from(value));
            let mut statistics = Statistics::new_unknown(&schema);
            for column in &mut statistics.column_statistics {
                (column.min_value, column.max_value) = (exact(1), exact(3));
            }
            correct(&mut statistics, metadata, &schema);
            statistics.column_statistics.iter().map(|column| column.max_value != Precision::Absent).collect::<Vec<_>>()
        };
        assert_eq!(known(&metadata), [true, true, true, false]);
        let (silent, _) = file(false);
        let groups = [metadata.row_groups(), silent.row_groups()].concat();
        assert_eq!(known(&ParquetMetaData::new(metadata.file_metadata().clone(), groups)), [false; 4]);
        // A group of NULLs alone has no bounds to tell.
        let group = metadata.row_groups()[0].clone();
        let columns = group.columns().iter().map(|column| {
            let nulls = ColumnChunkStatistics::int64(None, None, None, Some(3), false);
            column.clone().into_builder().set_statistics(nulls).build().unwrap()
        });
        let nulls = group.clone().into_builder().set_column_metadata(columns.collect()).build().unwrap();
        let groups = vec![group, nulls];
        assert_eq!(known(&ParquetMetaData::new(metadata.file_metadata().clone(), groups)), [true, true, true, false]);
    }

    /// Old writers compared numbers without a sign as if they had one.
    #[test]
    fn old_bounds_of_unsigned_numbers_are_none() {
        let fields =
            vec![Field::new("unsigned", DataType::UInt64, false), Field::new("signed", DataType::Int64, false)];
        let columns: Vec<ArrayRef> =
            vec![Arc::new(UInt64Array::from(vec![1, 2])), Arc::new(Int64Array::from(vec![1, 2]))];
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let mut bytes = vec![];
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let metadata = writer.close().unwrap();
        for is_old in [false, true] {
            let group = metadata.row_groups()[0].clone();
            let columns = group.columns().iter().map(|column| {
                let bounds = ColumnChunkStatistics::int64(Some(1), Some(2), None, Some(0), is_old);
                column.clone().into_builder().set_statistics(bounds).build().unwrap()
            });
            let group = group.clone().into_builder().set_column_metadata(columns.collect()).build().unwrap();
            let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), vec![group]);
            assert_eq!((tells_bounds(&metadata, "unsigned"), tells_bounds(&metadata, "signed")), (!is_old, true));
        }
    }

    fn without_counts(group: &RowGroupMetaData) -> RowGroupMetaData {
        let mut builder = group.clone().into_builder();
        let columns = group.columns().iter().map(|column| {
            let bounds = ColumnChunkStatistics::int64(Some(1), Some(3), None, None, false);
            column.clone().into_builder().set_statistics(bounds).build().unwrap()
        });
        builder = builder.set_column_metadata(columns.collect());
        builder.build().unwrap()
    }
}
