//! Statements about derived data: where it comes from, whether it is right, getting rid of it.
//!
//! ```text
//!   tree    EXPLAIN PROVENANCE: what something was made of, and what that was made of
//!   dot     the same for Graphviz
//!   purge   PURGE DERIVED FROM: everything that was made of something goes, and that is proven
//!   copies  pinned copies that were made of what is purged
//!   scope   which data a name or a location in a statement means
//!   verify  VERIFY: entries against what is computed anew
//!   again   a statement that ran once, planned again over the extents that it read then
//! ```

mod again;
mod copies;
mod dot;
mod purge;
mod scope;
mod tree;
mod verify;

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::physical_plan::memory::MemoryStream;
use nectarine_catalog::Fingerprint;

pub(crate) use self::dot::dot;
pub(crate) use self::purge::{purge, purge_schema};
pub(crate) use self::tree::{explain_provenance, tree_schema};
pub(crate) use self::verify::{verify, verify_schema};

use crate::command::StatementRun;
use crate::engine::Shared;
use crate::reuse::CacheAdmin;
use crate::{Answer, AnswerKind, Notice, Result};

/// Rows that are known already.
fn answer(run: &StatementRun<'_>, batch: RecordBatch, notices: Vec<Notice>) -> Result<Answer> {
    run.record.finished(batch.num_rows() as u64);
    let schema = batch.schema();
    let stream = MemoryStream::try_new(vec![batch], schema, None)?;
    Ok(Answer::new(run.record.query_id(), AnswerKind::Rows, notices, Box::pin(stream)))
}

/// The entry whose fingerprint begins like this.
async fn find_entry(shared: &Arc<Shared>, beginning: &str) -> Result<Fingerprint> {
    CacheAdmin::new(shared.reuse.clone()).find(beginning).await
}
