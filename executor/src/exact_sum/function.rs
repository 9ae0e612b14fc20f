//! DataFusion's `sum` and `avg`, with exact sums of floats.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

use super::groups::ExactGroups;
use super::single::ExactSingle;
use super::state_fields;

/// `sum` and `avg` whose floats do not depend on the order of rows, to be registered in the place of DataFusion's.
pub fn exact_aggregates() -> [Arc<AggregateUDF>; 2] {
    static MADE: LazyLock<[Arc<AggregateUDF>; 2]> = LazyLock::new(|| {
        let exact = |stock, is_average| Arc::new(AggregateUDF::from(ExactAggregate { stock, is_average }));
        [exact(sum_udaf(), false), exact(avg_udaf(), true)]
    });
    MADE.clone()
}

/// One of them. It is what DataFusion's function is, but for what it adds floats with.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactAggregate {
    stock: Arc<AggregateUDF>,
    is_average: bool,
}

/// Whether floats are added. DISTINCT is left to DataFusion.
fn adds_floats(is_distinct: bool, arguments: &[FieldRef]) -> bool {
    !is_distinct && arguments.first().is_some_and(|argument| argument.data_type() == &DataType::Float64)
}

impl ExactAggregate {
    fn single(&self) -> Box<dyn Accumulator> {
        Box::new(if self.is_average { ExactSingle::average() } else { ExactSingle::sum() })
    }
}

impl AggregateUDFImpl for ExactAggregate {
    fn name(&self) -> &str {
        self.stock.name()
    }

    fn aliases(&self) -> &[String] {
        self.stock.aliases()
    }

    fn signature(&self) -> &Signature {
        self.stock.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.stock.return_type(arg_types)
    }

    fn is_nullable(&self) -> bool {
        self.stock.is_nullable()
    }

    fn accumulator(&self, acc_args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match adds_floats(acc_args.is_distinct, acc_args.expr_fields) {
            true => Ok(self.single()),
            false => self.stock.accumulator(acc_args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !adds_floats(args.is_distinct, args.input_fields) {
            return self.stock.state_fields(args);
        }
        let count = Arc::new(Field::new(format!("{}[count]", args.name), DataType::UInt64, true));
        Ok(self.is_average.then_some(count).into_iter().chain(state_fields(args.name)).collect())
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        adds_floats(args.is_distinct, args.expr_fields) || self.stock.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        if !adds_floats(args.is_distinct, args.expr_fields) {
            return self.stock.create_groups_accumulator(args);
        }
        Ok(Box::new(if self.is_average { ExactGroups::averages() } else { ExactGroups::sums() }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match adds_floats(args.is_distinct, args.expr_fields) {
            true => Ok(self.single()),
            false => self.stock.create_sliding_accumulator(args),
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.stock.order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.stock.simplify()
    }

    fn simplify_expr_op_literal(
        &self,
        agg_function: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        lit: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        self.stock.simplify_expr_op_literal(agg_function, arg, op, lit, arg_is_left)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.stock.reverse_udf()
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.stock.coerce_types(arg_types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.stock.is_descending()
    }

    fn value_from_stats(&self, statistics_args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        // Whoever wrote a sum of floats down added them in some order.
        let is_float = statistics_args.return_type == &DataType::Float64;
        if is_float { None } else { self.stock.value_from_stats(statistics_args) }
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.stock.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.stock.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.stock.supports_within_group_clause()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.stock.inner().set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.stock.documentation()
    }
}
