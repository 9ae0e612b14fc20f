//! Columns of JSON values, one after another, on a line each or over several.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow::error::ArrowError;
use arrow::json::reader::infer_json_schema_from_iterator;
use datafusion::common::Result;
use serde_json::{Deserializer, Value};

use super::json_order::{Clash, Order};

/// What the integers of a column are like.
#[derive(Clone, Copy, Default)]
struct Numbers {
    are_large: bool,
    are_negative: bool,
    are_others: bool,
}

/// What the values of a text are in the file it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Records {
    /// One after another, as they are.
    Lines,
    /// Of an array, without what is around and between them: lines are not those of the file.
    Elements,
}

/// The columns of the first `n_records` values, and how many there were. A text that goes on may end within a value.
pub(super) fn json_columns(records: Records, text: &[u8], n_records: usize, goes_on: bool) -> Result<(Schema, usize)> {
    let mut n_read = 0;
    let mut numbers: BTreeMap<String, Numbers> = BTreeMap::new();
    let mut values = Deserializer::from_slice(text).into_iter::<Value>().take(n_records);
    let values = std::iter::from_fn(|| match values.next()? {
        Err(error) if goes_on && error.is_eof() => None,
        Err(error) => Some(Err(not_valid(records, n_read, &error))),
        Ok(value) => {
            n_read += 1;
            look_at(&mut numbers, &value);
            Some(Ok(value))
        }
    });
    let inferred = infer_json_schema_from_iterator(values);
    let mut order = Order::default();
    let clash = order.note_records(text, n_records).err().map(|Clash { line, n_before, what }| match records {
        Records::Lines => format!("line {line}: {what}"),
        Records::Elements => format!("element {}: {what}", n_before + 1),
    });
    let schema = inferred.map_err(|error| in_words(records, error, clash))?;
    // Integers beyond those with a sign are inferred as floats, which have room for the first digits of them.
    let fields = schema.fields().iter().map(|field| match numbers.get(field.name()) {
        Some(Numbers { are_large: true, are_negative: false, are_others: false })
            if field.data_type() == &DataType::Float64 =>
        {
            FieldRef::new(Field::clone(field).with_data_type(DataType::UInt64))
        }
        _ => FieldRef::clone(field),
    });
    Ok((Schema::new(order.put(&fields.collect())), n_read))
}

fn not_valid(records: Records, n_before: usize, error: &serde_json::Error) -> ArrowError {
    let told = match records {
        Records::Lines => format!("not valid JSON: {error}"),
        Records::Elements => {
            let what = error.to_string();
            let what = what.split(" at line ").next().unwrap_or_default();
            format!("not valid JSON: {what} in element {}", n_before + 1)
        }
    };
    ArrowError::JsonError(told)
}

fn look_at(numbers: &mut BTreeMap<String, Numbers>, value: &Value) {
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let (are_large, are_negative, are_others) = match value {
            Value::Number(number) => (
                number.is_u64() && !number.is_i64(),
                number.as_i64().is_some_and(|number| number < 0),
                !number.is_i64() && !number.is_u64(),
            ),
            Value::Null => continue,
            _ => (false, false, true),
        };
        if are_large || are_negative || are_others {
            let known = numbers.entry(name.clone()).or_default();
            known.are_large |= are_large;
            known.are_negative |= are_negative;
            known.are_others |= are_others;
        }
    }
}

fn in_words(records: Records, error: ArrowError, clash: Option<String>) -> ArrowError {
    match error {
        ArrowError::JsonError(text)
            if ["Incompatible type found", "Expected scalar", "Expected object"]
                .iter()
                .any(|start| text.starts_with(start)) =>
        {
            let clash = clash
                .unwrap_or_else(|| "a name has an object in some records, and something else in others".to_owned());
            ArrowError::JsonError(format!("no column can hold these values: {clash}"))
        }
        ArrowError::JsonError(text) if text.starts_with("Expected JSON record to be an object") => {
            let advice = match records == Records::Lines && text.contains("found Array") {
                true => ": if the file is one array of records, use OPTIONS ('format.newline_delimited' 'false')",
                false => "",
            };
            ArrowError::JsonError(format!("a record is not an object ({{..}}){advice}"))
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(text: &str, goes_on: bool) -> Result<String> {
        of(Records::Lines, text, goes_on)
    }

    fn of(records: Records, text: &str, goes_on: bool) -> Result<String> {
        let (schema, n_read) = json_columns(records, text.as_bytes(), 1000, goes_on)?;
        let fields = schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
        Ok(format!("{n_read}: {}", fields.collect::<Vec<_>>().join(", ")))
    }

    #[test]
    fn values_over_lines_and_large_numbers() {
        let check = |text: &str, expected: &str| assert_eq!(columns(text, false).unwrap(), expected, "{text}");
        check("{\"a\":1}\n{\"a\":2.5}\n", "2: a Float64");
        check("{\n \"a\": 1,\n \"b\": \"x\"\n}\n{\"a\": 2}", "2: a Int64, b Utf8");
        check("{\"a\":1}\n{\"a\":18446744073709551615}", "2: a UInt64");
        check("{\"a\":-1}\n{\"a\":18446744073709551615}", "2: a Float64");
        check("{\"a\":1.5}\n{\"a\":18446744073709551615}", "2: a Float64");
        check("{\"a\":1}\n{\"a\":\"x\"}", "2: a Utf8");
        check("", "0: ");
        assert!(columns("{\"a\":1}\n{\"a\":", false).is_err());
        assert_eq!(columns("{\"a\":1}\n{\"a\":", true).unwrap(), "1: a Int64");
        assert!(columns("{\"a\":1}\nx", true).is_err());
        check(
            "{\"z\":1,\"b\":{\"y\":1,\"x\":2}}\n{\"a\":[{\"d\":1,\"c\":1}],\"b\":{\"w\":1}}",
            "2: z Int64, \
            b Struct(\"y\": Int64, \"x\": Int64, \"w\": Int64), a List(Struct(\"d\": Int64, \"c\": Int64))",
        );
        let error = columns("{\"a\":{\"b\":1}}\n{\"a\":5}\n", false).unwrap_err().to_string();
        assert!(error.contains("line 2: \"a\" is a number, and was an object before"), "{error}");
        let error = columns("[1]", false).unwrap_err().to_string();
        assert!(error.contains("newline_delimited"), "{error}");
        let error = columns("1\n2\n", false).unwrap_err().to_string();
        assert!(error.contains("not an object") && !error.contains("newline_delimited"), "{error}");
    }

    /// As they are without brackets and commas around them, which is not how they stand in their file.
    #[test]
    fn elements_have_numbers_instead_of_lines() {
        let elements = |text: &str| of(Records::Elements, text, false);
        assert_eq!(elements("{\n \"b\": 1,\n \"a\": \"x\"\n}\n{\n \"b\": 2.5\n}").unwrap(), "2: b Float64, a Utf8");
        let error = elements("{\n\"a\":{}\n}\n{\n\"a\":5\n}").unwrap_err().to_string();
        assert!(error.contains("element 2: \"a\" is a number, and was an object before"), "{error}");
        let error = elements("{\n\"a\":1\n}\n{\n\"a\":oops\n}").unwrap_err().to_string();
        assert!(error.contains("not valid JSON: expected value in element 2"), "{error}");
    }
}
