//! [`unstorable`]: which types come back from a part exactly as they went in.
//!
//! A whitelist: a type that is not known to survive Arrow IPC is not recorded.

use arrow::datatypes::{DataType, Schema};

/// The first column that can not be kept, and its type.
pub(crate) fn unstorable(schema: &Schema) -> Option<String> {
    let field = schema.fields().iter().find(|field| !is_storable(field.data_type()))?;
    Some(format!("column \"{}\" is {}", field.name(), field.data_type()))
}

fn is_storable(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null | DataType::Boolean => true,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => true,
        // Readers divide by these sizes.
        DataType::FixedSizeBinary(size) => *size > 0,
        DataType::FixedSizeList(field, size) => *size > 0 && is_storable(field.data_type()),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::Map(field, _) => is_storable(field.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_storable(field.data_type())),
        DataType::Union(fields, _) => fields.iter().all(|(_, field)| is_storable(field.data_type())),
        // An empty slice of runs can not be read again (arrow-ipc 59).
        DataType::RunEndEncoded(_, _) => false,
        // IPC has no way to say "a dictionary of dictionaries".
        DataType::Dictionary(keys, values) => {
            is_storable(keys) && is_storable(values) && !matches!(**values, DataType::Dictionary(_, _))
        }
        other => other.is_numeric() || other.is_temporal(),
    }
}
