//! [`ClusterCodec`]: how what DataFusion cannot write down by itself travels.
//!
//! Functions travel by name. A name is written only if an executor finds the same function under it: one of another session,
//! of other settings or of a user would be another function there. Exact sums have a mark of their own.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, Volatility, WindowUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

use super::functions::{knows_aggregate, knows_scalar, knows_window};
use crate::exact_sum::exact_aggregates;

/// Goes with the name of an aggregate that adds floats exactly.
const EXACT: &[u8] = b"nectarine.exact";

/// Ballista's own nodes, and the functions that executors know.
#[derive(Debug, Default)]
pub(super) struct ClusterCodec {
    ballista: BallistaPhysicalExtensionCodec,
}

impl ClusterCodec {
    /// As Ballista takes it.
    pub(super) fn shared() -> Arc<dyn PhysicalExtensionCodec> {
        Arc::new(Self::default())
    }
}

/// Whether an aggregate is one of ours.
pub(super) fn is_exact(function: &AggregateUDF) -> bool {
    exact_aggregates().iter().any(|exact| exact.as_ref() == function)
}

impl PhysicalExtensionCodec for ClusterCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.ballista.try_decode(buf, inputs, ctx, proto_converter)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        self.ballista.try_encode(node, buf, proto_converter)
    }

    fn try_encode_udf(&self, node: &ScalarUDF, _buf: &mut Vec<u8>) -> Result<()> {
        if node.signature().volatility == Volatility::Volatile {
            return plan_err!("{} gives another value each time it is asked", node.name());
        }
        match knows_scalar(node) {
            true => Ok(()),
            false => plan_err!("executors do not know function {}", node.name()),
        }
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buf: &mut Vec<u8>) -> Result<()> {
        if is_exact(node) {
            buf.extend_from_slice(EXACT);
            return Ok(());
        }
        match knows_aggregate(node) {
            true => Ok(()),
            false => plan_err!("executors do not know aggregate function {}", node.name()),
        }
    }

    fn try_decode_udaf(&self, name: &str, buf: &[u8]) -> Result<Arc<AggregateUDF>> {
        match exact_aggregates().into_iter().find(|exact| buf == EXACT && exact.name() == name) {
            Some(exact) => Ok(exact),
            None => not_impl_err!("aggregate function {name} is not known"),
        }
    }

    fn try_encode_udwf(&self, node: &WindowUDF, _buf: &mut Vec<u8>) -> Result<()> {
        match knows_window(node) {
            true => Ok(()),
            false => plan_err!("executors do not know window function {}", node.name()),
        }
    }

    fn try_encode_higher_order_function(&self, node: &HigherOrderUDF, _buf: &mut Vec<u8>) -> Result<()> {
        plan_err!("{} takes a function", node.name())
    }
}
