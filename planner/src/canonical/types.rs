//! Data types and fields.
//!
//! Names of top-level columns are left out where rows do not depend on them; names inside structs are part of the type.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Field, Schema};

use super::encoder::{Encoder, Tag};

/// A data type with everything nested in it.
pub(super) fn data_type(data_type: &DataType) -> Vec<u8> {
    let mut encoder = Encoder::new(Tag::Type);
    match data_type {
        DataType::List(item) => nested(&mut encoder, "List", &[item]),
        DataType::LargeList(item) => nested(&mut encoder, "LargeList", &[item]),
        DataType::ListView(item) => nested(&mut encoder, "ListView", &[item]),
        DataType::LargeListView(item) => nested(&mut encoder, "LargeListView", &[item]),
        DataType::FixedSizeList(item, size) => {
            nested(&mut encoder, "FixedSizeList", &[item]);
            encoder.number(*size as u64);
        }
        DataType::Struct(fields) => {
            encoder.text("Struct").list(fields.iter().map(|inner| field(inner)).collect());
        }
        DataType::Map(entries, sorted) => {
            nested(&mut encoder, "Map", &[entries]);
            encoder.flag(*sorted);
        }
        DataType::Union(fields, mode) => {
            encoder.text("Union").text(&format!("{mode:?}"));
            encoder.number(fields.len() as u64);
            for (id, inner) in fields.iter() {
                encoder.number(id as u64).bytes(&field(inner));
            }
        }
        DataType::Dictionary(key, value) => {
            encoder.text("Dictionary").bytes(&self::data_type(key)).bytes(&self::data_type(value));
        }
        DataType::RunEndEncoded(ends, values) => nested(&mut encoder, "RunEndEncoded", &[ends, values]),
        // Units, zones, precisions and scales are all in the text of the others, which holds nothing else.
        simple => {
            encoder.text("Simple").text(&format!("{simple:?}"));
        }
    }
    encoder.into_bytes()
}

fn nested(encoder: &mut Encoder, name: &str, fields: &[&Field]) {
    encoder.text(name).list(fields.iter().map(|inner| field(inner)).collect());
}

/// A field with its name, for where the name decides about rows.
pub(super) fn field(field: &Field) -> Vec<u8> {
    let mut encoder = Encoder::new(Tag::Field);
    encoder.text(field.name()).bytes(&data_type(field.data_type())).flag(field.is_nullable());
    let metadata: BTreeMap<_, _> = field.metadata().iter().collect();
    encoder.number(metadata.len() as u64);
    for (name, value) in metadata {
        encoder.text(name).text(value);
    }
    encoder.into_bytes()
}

/// The types of columns, without their names.
pub(super) fn column_types(schema: &Schema) -> Vec<u8> {
    let mut encoder = Encoder::new(Tag::Fields);
    encoder.list(schema.fields().iter().map(|field| data_type(field.data_type())).collect());
    encoder.into_bytes()
}
