//! [`ClusterCodec`]: how what DataFusion cannot write down by itself travels.
//!
//! Functions travel by name. A name is written only if an executor finds the same function under it: one of another
//! session, of other settings or of a user would be another function there. Exact sums have a mark of their own, and so
//! have other functions of ours. So has what is told of files.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, Volatility, WindowUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use nectarine_planner::node::own_functions;

use super::functions::{knows_aggregate, knows_scalar, knows_window};
use super::secret::{Secret, TOKEN_BYTES};
use super::told::ToldFilesExec;
use crate::exact_sum::exact_aggregates;

/// Goes with the name of an aggregate that adds floats exactly.
const EXACT: &[u8] = b"nectarine.exact";

/// Goes before what one of our functions is called among them.
const OWN: &[u8] = b"nectarine.own\0";

/// Goes before the token of whoever wrote a node down.
const FROM: &[u8] = b"nectarine.from\0";

/// Ballista's own nodes, ours, and the functions that executors know.
///
/// With a secret, nodes of Ballista's are written with its token and read only with it. Each task has one at its root,
/// so an executor runs no plan that its server did not send.
#[derive(Debug, Default)]
pub(super) struct ClusterCodec {
    ballista: BallistaPhysicalExtensionCodec,
    secret: Option<Secret>,
}

impl ClusterCodec {
    /// As Ballista takes it.
    pub(super) fn shared(secret: Option<Secret>) -> Arc<dyn PhysicalExtensionCodec> {
        Arc::new(Self { secret, ..Self::default() })
    }

    /// What Ballista wrote, if it comes from somebody who knows what we know.
    fn admitted<'a>(&self, buf: &'a [u8]) -> Result<&'a [u8]> {
        let shown = buf.strip_prefix(FROM).and_then(|rest| rest.split_first_chunk::<TOKEN_BYTES>());
        match (&self.secret, shown) {
            (None, None) => Ok(buf),
            (Some(secret), Some((token, rest))) if secret.is(token) => Ok(rest),
            _ => plan_err!("a task was not sent by the server that this executor belongs to"),
        }
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
        match ToldFilesExec::decode(buf, inputs) {
            Some(told) => Ok(Arc::new(told?)),
            None => self.ballista.try_decode(self.admitted(buf)?, inputs, ctx, proto_converter),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        proto_converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match node.downcast_ref::<ToldFilesExec>() {
            Some(told) => told.encode(buf),
            None => {
                if let Some(secret) = &self.secret {
                    buf.extend_from_slice(FROM);
                    buf.extend_from_slice(secret.token());
                }
                self.ballista.try_encode(node, buf, proto_converter)
            }
        }
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        if node.signature().volatility == Volatility::Volatile {
            return plan_err!("{} gives another value each time it is asked", node.name());
        }
        if let Some((called, _)) = own_functions().into_iter().find(|(_, own)| own.as_ref() == node) {
            buf.extend_from_slice(OWN);
            buf.extend_from_slice(called.as_bytes());
            return Ok(());
        }
        match knows_scalar(node) {
            true => Ok(()),
            false => plan_err!("executors do not know function {}", node.name()),
        }
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        let called = buf.strip_prefix(OWN);
        match own_functions().into_iter().find(|(own, _)| called == Some(own.as_bytes())) {
            Some((_, own)) => Ok(own),
            None => not_impl_err!("function {name} is not known"),
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

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use ballista_core::JobId;
    use ballista_core::execution_plans::ShuffleWriterExec;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::prelude::SessionContext;
    use datafusion_proto::physical_plan::AsExecutionPlan;
    use datafusion_proto::protobuf::PhysicalPlanNode;

    use super::*;

    fn codec(secret: Option<&str>) -> Arc<dyn PhysicalExtensionCodec> {
        ClusterCodec::shared(secret.map(|text| Secret::new(text).unwrap()))
    }

    /// What becomes of a task that was written with one secret and is read with another.
    fn sent(theirs: Option<&str>, ours: Option<&str>) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        let rows = Arc::new(EmptyExec::new(Arc::new(schema)));
        let task = ShuffleWriterExec::try_new(JobId::new("job"), 1, rows, String::new())?;
        let written = PhysicalPlanNode::try_from_physical_plan(Arc::new(task), codec(theirs).as_ref())?;
        written.try_into_physical_plan(&SessionContext::new().task_ctx(), codec(ours).as_ref())
    }

    #[test]
    fn functions_of_ours_arrive_as_they_left() {
        for (called, own) in own_functions() {
            let mut written = vec![];
            ClusterCodec::default().try_encode_udf(&own, &mut written).unwrap();
            let read = ClusterCodec::default().try_decode_udf(own.name(), &written).unwrap();
            assert_eq!(read, own, "{called}");
        }
        assert!(ClusterCodec::default().try_decode_udf("round", b"").is_err());
    }

    #[test]
    fn tasks_of_strangers_are_not_read() {
        let (one, two) = (Some("the secret of one server"), Some("the secret of another server"));
        assert!(sent(one, one).unwrap().is::<ShuffleWriterExec>());
        assert!(sent(None, None).unwrap().is::<ShuffleWriterExec>());
        for (theirs, ours) in [(two, one), (None, one), (one, None)] {
            let error = sent(theirs, ours).unwrap_err().strip_backtrace();
            assert!(error.contains("was not sent by the server"), "{error}");
        }
    }
}
