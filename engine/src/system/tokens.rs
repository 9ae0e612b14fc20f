//! `system.tokens`: what services log in with, without what it takes to do so. Administrators see all of them, others their own.

use std::sync::Arc;

use arrow::array::{StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_catalog::Token;

use super::{table_of, text, time};
use crate::access::Rights;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![text("user_name"), text("name"), time("created_at"), time("valid_until")])
}

pub(super) fn rows(rights: &Rights) -> Result<RecordBatch> {
    let is_seen = |token: &&Token| rights.is_admin() || rights.user() == Some(token.user.as_str());
    let tokens: Vec<&Token> = rights.access().tokens.iter().filter(is_seen).collect();
    let created = tokens.iter().map(|token| token.created_at);
    let valid_until = tokens.iter().map(|token| token.expires_at).collect::<TimestampMicrosecondArray>();
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(tokens.iter().map(|token| &token.user))),
            Arc::new(StringArray::from_iter_values(tokens.iter().map(|token| &token.name))),
            Arc::new(TimestampMicrosecondArray::from_iter_values(created).with_timezone("UTC")),
            Arc::new(valid_until.with_timezone("UTC")),
        ],
    )?)
}
