//! Functions that every executor knows: those of DataFusion, as they are without a session.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use ballista_core::registry::BallistaFunctionRegistry;
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

/// By name and by other names.
struct Known {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
    window: HashMap<String, Arc<WindowUDF>>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| Known {
    scalar: SessionStateDefaults::default_scalar_functions()
        .into_iter()
        .flat_map(|function| {
            let names: Vec<String> = function.aliases().iter().cloned().chain([function.name().to_owned()]).collect();
            names.into_iter().map(move |name| (name, Arc::clone(&function)))
        })
        .collect(),
    aggregate: SessionStateDefaults::default_aggregate_functions()
        .into_iter()
        .flat_map(|function| {
            let names: Vec<String> = function.aliases().iter().cloned().chain([function.name().to_owned()]).collect();
            names.into_iter().map(move |name| (name, Arc::clone(&function)))
        })
        .collect(),
    window: SessionStateDefaults::default_window_functions()
        .into_iter()
        .flat_map(|function| {
            let names: Vec<String> = function.aliases().iter().cloned().chain([function.name().to_owned()]).collect();
            names.into_iter().map(move |name| (name, Arc::clone(&function)))
        })
        .collect(),
});

/// Whether the function of that name is this one, with the same settings.
pub(super) fn knows_scalar(function: &ScalarUDF) -> bool {
    KNOWN.scalar.get(function.name()).is_some_and(|known| known.as_ref() == function)
}

/// The same for aggregates.
pub(super) fn knows_aggregate(function: &AggregateUDF) -> bool {
    KNOWN.aggregate.get(function.name()).is_some_and(|known| known.as_ref() == function)
}

/// The same for window functions.
pub(super) fn knows_window(function: &WindowUDF) -> bool {
    KNOWN.window.get(function.name()).is_some_and(|known| known.as_ref() == function)
}

/// What an executor looks names up in.
pub(super) fn registry() -> BallistaFunctionRegistry {
    BallistaFunctionRegistry {
        scalar_functions: KNOWN.scalar.clone(),
        aggregate_functions: KNOWN.aggregate.clone(),
        window_functions: KNOWN.window.clone(),
        // Lambdas do not travel.
        higher_order_functions: HashMap::new(),
    }
}
