//! [`Session::warm`]: a query runs for what it leaves in the cache; its rows go nowhere.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use datafusion::sql::parser::Statement as DFStatement;
use futures::StreamExt;
use nectarine_planner::sql::{self, ParseOptions, Statement};
use sqlparser::ast;

use crate::session::Session;
use crate::{EngineError, ErrorKind, Receipt, Result};

/// What warming a query came to.
#[derive(Clone, Debug)]
pub struct Warmed {
    /// What was there already.
    pub receipt: Receipt,
    /// Results that it made.
    pub made: usize,
    /// Their size.
    pub bytes: u64,
    /// Rows of the answer.
    pub rows: u64,
    /// How long it took.
    pub elapsed: Duration,
}

impl Session {
    /// Runs a query to fill the cache. `None` for a statement that only prepares what follows: SET, PREPARE.
    pub async fn warm(&self, text: &str) -> Result<Option<Warmed>> {
        let options = ParseOptions::from(self.inner.state.read().config_options().as_ref());
        let Some(statement) = sql::parse(text, &options)? else { return Ok(None) };
        let is_query = match &statement {
            Statement::DataFusion(statement) => match statement.as_ref() {
                DFStatement::Statement(statement) => match statement.as_ref() {
                    ast::Statement::Query(_) | ast::Statement::Execute { .. } => true,
                    ast::Statement::Set(_)
                    | ast::Statement::Use(_)
                    | ast::Statement::Prepare { .. }
                    | ast::Statement::Deallocate { .. } => false,
                    _ => return Err(refused()),
                },
                DFStatement::Reset(_) => false,
                _ => return Err(refused()),
            },
            _ => return Err(refused()),
        };
        let cache = &self.inner.shared.reuse.cache;
        let admin = crate::CacheAdmin::new(self.inner.shared.reuse.clone());
        let before: HashSet<_> = admin.entries().await.into_iter().map(|entry| entry.key).collect();
        let started = Instant::now();
        let answer = self.execute(text).await?;
        let receipt = answer.receipt();
        let mut rows = 0;
        let mut stream = answer.into_stream();
        while let Some(batch) = stream.next().await {
            rows += batch?.num_rows() as u64;
        }
        drop(stream);
        let elapsed = started.elapsed();
        if !is_query {
            return Ok(None);
        }
        // What it leaves behind is there when this returns.
        let after = admin.entries().await;
        let made: Vec<_> = after.into_iter().filter(|entry| !before.contains(&entry.key)).collect();
        let bytes = made.iter().filter_map(|entry| cache.lookup(&entry.key)).map(|entry| entry.bytes).sum();
        Ok(Some(Warmed { receipt: receipt(), made: made.len(), bytes, rows, elapsed }))
    }
}

fn refused() -> EngineError {
    EngineError::new(ErrorKind::Unsupported, "only queries fill the cache")
        .with_hint("run other statements with -f or -c")
}
