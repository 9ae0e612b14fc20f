//! [`NullableColumns`]: whether a column may be NULL is the plan's affair, not the reader's.
//!
//! Columns of external tables are declared nullable, because the next file may lack them; a plan takes them for NOT NULL where
//! its snapshot proves it; and files declare what their writers chose. DataFusion's own adapter puts a cast around every column
//! whose nullability differs from the file's, which costs time for each batch and hides the column from the pruning of row
//! groups. Where nothing else differs, the column is read as it is: the scan checks its batches against what was proven.

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

/// Makes adapters from a table's columns to a file's.
#[derive(Debug)]
pub(crate) struct NullableColumns {
    /// What the table declares. A column that is declared NOT NULL must be in every file.
    pub(crate) declared: SchemaRef,
}

impl PhysicalExprAdapterFactory for NullableColumns {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let logical = self.as_in_file(&logical_file_schema, &physical_file_schema);
        DefaultPhysicalExprAdapterFactory.create(logical, physical_file_schema)
    }
}

impl NullableColumns {
    /// The table's columns, as nullable as the file's are where nothing else differs.
    fn as_in_file(&self, logical: &SchemaRef, physical: &SchemaRef) -> SchemaRef {
        let adopt = |field: &FieldRef| {
            let may_be_null = |field: &Field| field.is_nullable();
            if !self.declared.field_with_name(field.name()).is_ok_and(may_be_null) {
                return Arc::clone(field);
            }
            match physical.field_with_name(field.name()) {
                Ok(file) => {
                    let same = field.as_ref().clone().with_nullable(file.is_nullable());
                    if &same == file { Arc::new(same) } else { Arc::clone(field) }
                }
                // A file without rows may lack what no other file has a NULL in.
                Err(_) => Arc::new(field.as_ref().clone().with_nullable(true)),
            }
        };
        let fields: Vec<FieldRef> = logical.fields().iter().map(adopt).collect();
        Arc::new(Schema::new_with_metadata(fields, logical.metadata().clone()))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;

    #[test]
    fn only_nullability_is_taken_from_the_file() {
        let field = |name: &str, data_type, nullable| Field::new(name, data_type, nullable);
        let schema = |proven: bool| {
            Arc::new(Schema::new(vec![
                field("a", DataType::Int64, true),
                field("b", DataType::Int64, true),
                field("c", DataType::Int64, !proven),
                field("d", DataType::Int64, false),
                field("e", DataType::Int64, !proven),
            ]))
        };
        let physical = Arc::new(Schema::new(vec![
            field("a", DataType::Int64, false),
            field("b", DataType::Int32, false),
            field("d", DataType::Int64, true),
            field("e", DataType::Int64, true),
        ]));
        let columns = NullableColumns { declared: schema(false) };
        let adopted = columns.as_in_file(&schema(true), &physical);
        let nullable: Vec<bool> = adopted.fields().iter().map(|field| field.is_nullable()).collect();
        assert_eq!(nullable, [false, true, true, false, true]);
        assert_eq!(adopted.field(1).data_type(), &DataType::Int64);
    }
}
