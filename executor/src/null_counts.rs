//! How many NULLs a Parquet file tells of, and what it leaves open.
//!
//! Guarantees   `Exact` only where every row group tells, or where the file's schema rules NULLs out. DataFusion takes a count
//!              that the writer left out for zero; here it is unknown, because an extent is skipped, a row count answered
//!              and a column taken for NOT NULL on the strength of it.

use arrow::datatypes::Schema;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use parquet::basic::Repetition;
use parquet::file::metadata::ParquetMetaData;

/// Puts what the file really says in place of what was concluded; `statistics` are of the columns of `schema`.
pub(crate) fn correct(statistics: &mut Statistics, metadata: &ParquetMetaData, schema: &Schema) {
    for (field, column) in schema.fields().iter().zip(&mut statistics.column_statistics) {
        column.null_count = null_count(metadata, field.name());
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StructArray};
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
