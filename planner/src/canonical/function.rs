//! [`BuiltIns`]: the functions that are known to be what their name says.
//!
//! A name is not an identity: `CREATE OR REPLACE FUNCTION` keeps it. A function counts as built-in only if it equals the one
//! that DataFusion registers under its name, or one of ours. Functions written in SQL are inlined before plans are looked
//! at, so their bodies count, not their names.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::config::ConfigOptions;
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, Volatility, WindowUDF};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use super::Uncacheable;
use crate::node::own_functions;

/// Functions whose value depends on names or metadata of columns, which fingerprints leave out.
const NAME_DEPENDENT: [&str; 3] = ["arrow_field", "arrow_metadata", "with_metadata"];

/// The functions that DataFusion comes with.
#[derive(Debug)]
pub struct BuiltIns {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    /// Those of ours, by themselves or in the place of others.
    own: HashMap<String, Vec<Arc<ScalarUDF>>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
    /// Aggregates of ours that go by the names of others.
    exact: HashMap<String, Arc<AggregateUDF>>,
    window: HashMap<String, Arc<WindowUDF>>,
}

impl Default for BuiltIns {
    fn default() -> Self {
        let scalar = SessionStateDefaults::default_scalar_functions();
        let aggregate = SessionStateDefaults::default_aggregate_functions();
        let window = SessionStateDefaults::default_window_functions();
        let theirs = Self {
            scalar: scalar.into_iter().map(|function| (function.name().to_string(), function)).collect(),
            own: HashMap::new(),
            aggregate: aggregate.into_iter().map(|function| (function.name().to_string(), function)).collect(),
            exact: HashMap::new(),
            window: window.into_iter().map(|function| (function.name().to_string(), function)).collect(),
        };
        theirs.with_mended(own_functions().map(|(_, function)| function))
    }
}

impl BuiltIns {
    /// The same with aggregates that stand in the place of those of the same name, and whose value does not depend on the
    /// order in which floats are added. Of all else, DISTINCT included, they make what those make whose place they take.
    #[must_use]
    pub fn with_exact(mut self, functions: impl IntoIterator<Item = Arc<AggregateUDF>>) -> Self {
        self.exact.extend(functions.into_iter().map(|function| (function.name().to_string(), function)));
        self
    }

    /// The same with scalar functions that stand in the place of those of the same name, and give what those give, should have
    /// given where they fail, or fail.
    #[must_use]
    pub fn with_mended(mut self, functions: impl IntoIterator<Item = Arc<ScalarUDF>>) -> Self {
        for function in functions {
            self.own.entry(function.name().to_string()).or_default().push(function);
        }
        self
    }

    /// Whether an aggregate adds floats without a trace of their order.
    pub(super) fn is_exact(&self, aggregate: &AggregateFunctionExpr) -> bool {
        let function = aggregate.fun();
        let is_ours = self.exact.get(function.name()).is_some_and(|known| known.as_ref() == function);
        is_ours && !aggregate.is_distinct() && aggregate.field().data_type() == &DataType::Float64
    }

    /// Checks a scalar function. `config` is what it was planned with: some functions carry a part of it with them.
    pub(crate) fn check_scalar(&self, function: &ScalarUDF, config: &ConfigOptions) -> Result<(), Uncacheable> {
        let name = function.name();
        check_volatility(name, function.signature().volatility)?;
        let is_one = |known: &Arc<ScalarUDF>| {
            known.as_ref() == function
                || known.inner().with_updated_config(config).is_some_and(|updated| &updated == function)
        };
        let own = self.own.get(name).into_iter().flatten();
        let is_known = self.scalar.get(name).into_iter().chain(own).any(is_one);
        if !is_known {
            return Err(Uncacheable::Function(name.to_string()));
        }
        if NAME_DEPENDENT.contains(&name) {
            return Err(Uncacheable::Names(name.to_string()));
        }
        Ok(())
    }

    /// Whether a function is built in and gives the same value for the same arguments at any time.
    pub fn is_immutable(&self, function: &ScalarUDF, config: &ConfigOptions) -> bool {
        self.check_scalar(function, config).is_ok()
    }

    pub(super) fn check_aggregate(&self, function: &AggregateUDF) -> Result<(), Uncacheable> {
        let name = function.name();
        check_volatility(name, function.signature().volatility)?;
        let is_known = |known: Option<&Arc<AggregateUDF>>| known.is_some_and(|known| known.as_ref() == function);
        match is_known(self.aggregate.get(name)) || is_known(self.exact.get(name)) {
            true => Ok(()),
            false => Err(Uncacheable::Function(name.to_string())),
        }
    }

    pub(super) fn check_window(&self, function: &WindowUDF) -> Result<(), Uncacheable> {
        let name = function.name();
        check_volatility(name, function.signature().volatility)?;
        match self.window.get(name) {
            Some(known) if known.as_ref() == function => Ok(()),
            _ => Err(Uncacheable::Function(name.to_string())),
        }
    }
}

fn check_volatility(name: &str, volatility: Volatility) -> Result<(), Uncacheable> {
    match volatility {
        Volatility::Immutable => Ok(()),
        // Those that depend on the time of the statement were folded to literals; what is left depends on something else.
        Volatility::Stable | Volatility::Volatile => Err(Uncacheable::Volatile(name.to_string())),
    }
}
