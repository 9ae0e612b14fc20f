//! [`Hook`]: a function that does something once in the middle of a statement.
//!
//! `tests_hook(x)` gives `x` back. When the first rows pass through it, it does what it was told: overwrites a file that the
//! statement is reading, say. So "mid-query" is a place, not a matter of luck.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

type Action = Box<dyn FnOnce() + Send>;

/// What the function does next. Clones are the same.
#[derive(Clone, Default)]
pub struct Hook {
    action: Arc<Mutex<Option<Action>>>,
}

impl Hook {
    /// Sets what happens when the first rows pass.
    pub fn set(&self, action: impl FnOnce() + Send + 'static) {
        *self.action.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
    }

    /// The function.
    pub fn function(&self) -> Arc<ScalarUDF> {
        let function = HookFunction { hook: self.clone(), signature: Signature::any(1, Volatility::Volatile) };
        Arc::new(ScalarUDF::new_from_impl(function))
    }
}

struct HookFunction {
    hook: Hook,
    signature: Signature,
}

impl fmt::Debug for HookFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tests_hook")
    }
}

impl PartialEq for HookFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.hook.action, &other.hook.action)
    }
}

impl Eq for HookFunction {}

impl Hash for HookFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(Arc::as_ptr(&self.hook.action).addr());
    }
}

impl ScalarUDFImpl for HookFunction {
    fn name(&self) -> &str {
        "tests_hook"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let action = self.hook.action.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(action) = action {
            action();
        }
        Ok(args.args[0].clone())
    }
}
