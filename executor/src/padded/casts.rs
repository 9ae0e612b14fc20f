//! Which casts keep the order of values.
//!
//! DataFusion 55 takes the least value of `n::text` to be the text of the least `n`, and answers `min(x)` by it; but '10' is below '9'.
//! The same with `ts::time`, whose least value is of any day.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::CastExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

/// Whether a node gives columns of which DataFusion believes the wrong bounds.
pub(super) fn disorders(node: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(projection) = node.downcast_ref::<ProjectionExec>() else { return false };
    let below = projection.input().schema();
    // Bounds are carried through casts of columns, and casts of those.
    let disorders = |expr: &Arc<dyn PhysicalExpr>| {
        let mut expr = expr;
        while let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let from = cast.expr().data_type(&below);
            if !from.is_ok_and(|from| keeps_order(&from, cast.cast_type())) {
                return true;
            }
            expr = cast.expr();
        }
        false
    };
    projection.expr().iter().any(|projected| disorders(&projected.expr))
}

/// The same without bounds.
pub(super) fn without_bounds(statistics: &Statistics) -> Statistics {
    let mut statistics = statistics.clone();
    for column in &mut statistics.column_statistics {
        (column.min_value, column.max_value) = (Precision::Absent, Precision::Absent);
    }
    statistics
}

/// Whether a value that is not greater than another stays so. What is not known does not.
fn keeps_order(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Date64, Timestamp};
    let is_number = |data_type: &DataType| data_type.is_numeric() || *data_type == DataType::Boolean;
    match (from, to) {
        _ if from == to => true,
        _ if is_number(from) && is_number(to) => true,
        // Clocks are set back: times of a zone are not in the order of those of another, nor are its days.
        (Timestamp(_, one), Timestamp(_, other)) => one == other,
        (Timestamp(_, zone), Date32 | Date64) => zone.is_none(),
        (Date32 | Date64, Timestamp(_, None) | Date32 | Date64) => true,
        _ => (from.is_string() && to.is_string()) || (from.is_binary() && to.is_binary()),
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn what_changes_the_order() {
        let zoned = |zone: &str| DataType::Timestamp(TimeUnit::Second, Some(zone.into()));
        let plain = DataType::Timestamp(TimeUnit::Nanosecond, None);
        for (from, to, keeps) in [
            (DataType::Int32, DataType::Int64, true),
            (DataType::Float64, DataType::Int64, true),
            (DataType::Decimal128(10, 2), DataType::Int64, true),
            (DataType::Utf8, DataType::Utf8View, true),
            (plain.clone(), DataType::Date32, true),
            (DataType::Date32, plain.clone(), true),
            (DataType::Int64, DataType::Utf8, false),
            (DataType::Utf8, DataType::Int64, false),
            (DataType::Date32, DataType::Utf8, false),
            (plain.clone(), DataType::Time64(TimeUnit::Nanosecond), false),
            (zoned("Europe/Berlin"), DataType::Date32, false),
            (zoned("Europe/Berlin"), zoned("+00:00"), false),
            (DataType::Int64, plain.clone(), false),
        ] {
            assert_eq!(keeps_order(&from, &to), keeps, "{from} to {to}");
        }
    }
}
