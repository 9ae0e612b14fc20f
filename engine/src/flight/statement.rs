//! Running what a client asks for: once, or once for each row of values.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Field, Schema, SchemaRef, UInt64Type};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use super::client::Client;
use super::handles::Watch;
use super::told::{Told, ToldNotice};
use super::wire;
use crate::catalog_view::CatalogView;
use crate::progress::Progress;
use crate::session::Session;
use crate::{Answer, AnswerKind, EngineError, ErrorKind, Receipt, Result};

/// Rows that were started, and nobody has asked for yet.
pub(super) struct Pending {
    /// Columns as they are sent.
    pub(super) schema: SchemaRef,
    pub(super) rows: BoxStream<'static, Result<RecordBatch>>,
    pub(super) receipt: Box<dyn Fn() -> Receipt + Send + Sync>,
    pub(super) query_id: String,
    /// What it was started for, if that is looked at again when its rows are fetched.
    pub(super) asked: Option<Asked>,
    /// Lets the client ask how far it is.
    pub(super) watch: Option<Watch>,
}

/// What somebody asked for, and what there was and what he was allowed then.
pub(super) struct Asked {
    pub(super) sql: String,
    pub(super) view: Arc<CatalogView>,
}

/// A statement that was started.
pub(super) struct Started {
    pub(super) told: Told,
    pub(super) pending: Pending,
}

/// Starts a statement; its rows are on their way when this returns, commands are done.
pub(super) async fn start(
    client: &Client,
    sql: &str,
    values: Option<&RecordBatch>,
    progress: &Progress,
) -> Result<Started> {
    let Some(values) = values.filter(|values| values.num_rows() != 1) else {
        let answer = client.session.execute_with(sql, values, progress).await?;
        return started(answer).await;
    };
    let described = client.session.describe(sql).await?;
    match described.rows {
        None => {
            let (told, _) = update_all(client, sql, values, progress).await?;
            Ok(Started { pending: nothing(&told.query_id), told })
        }
        Some(columns) if values.num_rows() == 0 => {
            let told = Told { query_id: String::new(), tag: None, count: None, notices: vec![] };
            Ok(Started { pending: Pending { schema: wire::schema(&columns), ..nothing("") }, told })
        }
        Some(_) => {
            let first = client.session.execute_with(sql, Some(&values.slice(0, 1)), progress).await?;
            let mut started = started(first).await?;
            // What the first row of values gives need not have the nulls that the others may give.
            let fields = started.pending.schema.fields().iter().map(|field| Field::clone(field).with_nullable(true));
            started.pending.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let rest =
                rest(client.session.clone(), sql.to_string(), values.clone(), Arc::clone(&started.pending.schema));
            started.pending.rows = started.pending.rows.chain(rest).boxed();
            Ok(started)
        }
    }
}

/// Whether a text begins like a query, whose rows are computed as they are read. Only to save work: one that looks otherwise waits for
/// its turn once more.
pub(super) fn is_query(sql: &str) -> bool {
    let word = sql.trim_start().split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    ["select", "with", "values", "from", "show", "set", "use"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Runs a statement to its end: how many rows it wrote, if that is known.
pub(super) async fn update(client: &Client, sql: &str, values: Option<&RecordBatch>) -> Result<Option<u64>> {
    if let Some(values) = values.filter(|values| values.num_rows() != 1) {
        return update_all(client, sql, values, &Progress::new()).await.map(|(_, count)| Some(count));
    }
    let Started { told, mut pending } = start(client, sql, values, &Progress::new()).await?;
    while pending.rows.try_next().await?.is_some() {}
    Ok(match told.tag {
        Some(_) => Some(told.count.unwrap_or(0)),
        None => None,
    })
}

/// Runs a command for all rows of values: all of them in one transaction, or it is refused.
async fn update_all(client: &Client, sql: &str, values: &RecordBatch, progress: &Progress) -> Result<(Told, u64)> {
    if values.num_rows() == 0 {
        return Ok((Told { query_id: String::new(), tag: None, count: Some(0), notices: vec![] }, 0));
    }
    let answer = client.session.execute_with(sql, Some(values), progress).await?;
    let Started { told, .. } = started(answer).await?;
    let count = told.count.unwrap_or(0);
    Ok((told, count))
}

/// The answers for all rows of values but the first, as they are asked for.
fn rest(
    session: Session,
    sql: String,
    values: RecordBatch,
    schema: SchemaRef,
) -> BoxStream<'static, Result<RecordBatch>> {
    let answers = futures::stream::iter(1..values.num_rows()).then(move |row| {
        let (session, sql, values) = (session.clone(), sql.clone(), values.slice(row, 1));
        let schema = Arc::clone(&schema);
        async move {
            let answer = session.execute_with(&sql, Some(&values), &Progress::new()).await?;
            let columns = wire::schema(&answer.schema());
            let is_same = columns.fields().iter().map(|field| field.data_type());
            if !is_same.eq(schema.fields().iter().map(|field| field.data_type())) {
                let message = format!("row {} of the parameters gives rows of other types than the first", row + 1);
                return Err(EngineError::new(ErrorKind::Sql, message).with_hint("use a CAST, such as $1::bigint"));
            }
            Ok(answer.into_stream())
        }
    });
    answers.try_flatten().boxed()
}

async fn started(answer: Answer) -> Result<Started> {
    let query_id = answer.query_id().to_string();
    let notices = answer.notices().iter().map(ToldNotice::from).collect();
    match answer.kind().clone() {
        AnswerKind::Rows => {
            let pending = Pending {
                schema: wire::schema(&answer.schema()),
                receipt: Box::new(answer.receipt()),
                query_id: query_id.clone(),
                asked: None,
                watch: None,
                rows: answer.into_stream().boxed(),
            };
            Ok(Started { told: Told { query_id, tag: None, count: None, notices }, pending })
        }
        AnswerKind::Command { tag } => {
            let pending = Pending { receipt: Box::new(answer.receipt()), ..nothing(&query_id) };
            Ok(Started { told: Told { query_id, tag: Some(tag), count: None, notices }, pending })
        }
        AnswerKind::Written { tag } => {
            let pending = Pending { receipt: Box::new(answer.receipt()), ..nothing(&query_id) };
            let count = count(&answer.collect().await?);
            Ok(Started { told: Told { query_id, tag: Some(tag), count, notices }, pending })
        }
    }
}

/// The one number that a command gives which wrote rows.
fn count(batches: &[RecordBatch]) -> Option<u64> {
    let batch = batches.iter().find(|batch| batch.num_rows() > 0)?;
    batch.column(0).as_primitive_opt::<UInt64Type>().map(|counts| counts.value(0))
}

fn nothing(query_id: &str) -> Pending {
    Pending {
        schema: Arc::new(Schema::empty()),
        rows: futures::stream::empty().boxed(),
        receipt: Box::new(Receipt::default),
        query_id: query_id.to_string(),
        asked: None,
        watch: None,
    }
}
