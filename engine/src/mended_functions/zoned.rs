//! [`with_zone`]: times that a function read from text are of the zone that it said they would be.
//!
//! Under `SET TIME ZONE`, DataFusion's `to_timestamp` and its kin announce times of that zone and read text in it, but
//! a column of them comes without the zone; DataFusion then gives up with an internal error. The moments are right, only
//! their type is not.

use arrow::array::{Array, make_array};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;

/// Functions that this happens to.
pub(super) const NAMES: [&str; 5] =
    ["to_timestamp", "to_timestamp_seconds", "to_timestamp_millis", "to_timestamp_micros", "to_timestamp_nanos"];

/// The value as `announced`, if only the zone is missing.
pub(super) fn with_zone(value: ColumnarValue, announced: &DataType) -> Result<ColumnarValue> {
    let ColumnarValue::Array(array) = &value else { return Ok(value) };
    match (array.data_type(), announced) {
        (DataType::Timestamp(unit, None), DataType::Timestamp(wanted, Some(_))) if unit == wanted => {
            // Not a cast: that would take the moments for local times.
            let data = array.to_data().into_builder().data_type(announced.clone()).build()?;
            Ok(ColumnarValue::Array(make_array(data)))
        }
        _ => Ok(value),
    }
}
