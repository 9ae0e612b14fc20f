//! [`NullableColumns`]: a column that a file declares NOT NULL serves where the table lets it be NULL.
//!
//! Columns of external tables are nullable, because the next file may lack them. DataFusion's own adapter puts a cast around
//! every column whose nullability differs from the file's, which costs time for each batch and hides the column from the
//! pruning of row groups. A column that is never NULL is one that may be NULL: nothing has to be done about it.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

/// Makes adapters from a table's columns to a file's.
#[derive(Debug)]
pub(crate) struct NullableColumns;

impl PhysicalExprAdapterFactory for NullableColumns {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let logical = narrowed(&logical_file_schema, &physical_file_schema);
        DefaultPhysicalExprAdapterFactory.create(logical, physical_file_schema)
    }
}

/// The table's columns, NOT NULL where the file's are and nothing else differs.
fn narrowed(logical: &SchemaRef, physical: &SchemaRef) -> SchemaRef {
    let narrow = |field: &FieldRef| match physical.field_with_name(field.name()) {
        Ok(file) if field.is_nullable() && !file.is_nullable() => {
            let same = field.as_ref().clone().with_nullable(false);
            if &same == file { Arc::new(same) } else { Arc::clone(field) }
        }
        _ => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = logical.fields().iter().map(narrow).collect();
    Arc::new(Schema::new_with_metadata(fields, logical.metadata().clone()))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn only_nullability_is_narrowed() {
        let field = |name: &str, data_type, nullable| Field::new(name, data_type, nullable);
        let logical = Arc::new(Schema::new(vec![
            field("a", DataType::Int64, true),
            field("b", DataType::Int64, true),
            field("c", DataType::Int64, true),
            field("d", DataType::Int64, false),
        ]));
        let physical = Arc::new(Schema::new(vec![
            field("a", DataType::Int64, false),
            field("b", DataType::Int32, false),
            field("d", DataType::Int64, true),
        ]));
        let narrowed = narrowed(&logical, &physical);
        let nullable: Vec<bool> = narrowed.fields().iter().map(|field| field.is_nullable()).collect();
        assert_eq!(nullable, [false, true, true, false]);
        assert_eq!(narrowed.field(1).data_type(), &DataType::Int64);
    }
}
