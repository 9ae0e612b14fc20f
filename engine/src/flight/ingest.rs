//! Rows of a client into a table: appended, or as a new table. They are written as they arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::SchemaRef;
use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::{StreamExt, TryStreamExt};
use nectarine_catalog::TableName;
use parking_lot::Mutex;
use tonic::Status;

use super::client::Client;
use super::status::status;
use super::values::Incoming;
use crate::statement::wrap;

/// What the rows are called in the statement that writes them.
const ROWS: &str = "ingested rows";

/// Writes rows into the table that the command names; how many.
pub(super) async fn ingest(
    client: &Client,
    command: CommandStatementIngest,
    incoming: Incoming,
) -> Result<i64, Status> {
    if command.temporary {
        return Err(Status::unimplemented("temporary tables are not offered"));
    }
    if command.transaction_id.is_some() {
        return Err(Status::unimplemented("transactions are not offered"));
    }
    let session = client.session.fork();
    if let Some(catalog) = &command.catalog
        && *catalog != session.catalog_name()
    {
        return Err(Status::invalid_argument(format!("database \"{catalog}\" does not exist")));
    }
    let schema_name = command.schema.clone().unwrap_or_else(|| session.schema_name());
    let name = TableName::new(&schema_name, &command.table);
    let options = command.table_definition_options.unwrap_or_default();
    let if_exists = TableExistsOption::try_from(options.if_exists).unwrap_or(TableExistsOption::Unspecified);
    let if_missing = TableNotExistOption::try_from(options.if_not_exist).unwrap_or(TableNotExistOption::Unspecified);
    let exists = session.has_relation(&name).await.map_err(|error| status(&error))?;
    let table = format!("{}.{}", quoted(&name.schema), quoted(&name.name));
    // Quoted as it is looked up: the schema in which names are looked up is the session's.
    let source = quoted(ROWS);
    let columns: Vec<String> = incoming.schema.fields().iter().map(|field| quoted(field.name())).collect();
    let columns = columns.join(", ");
    let sql = match (exists, if_exists, if_missing) {
        (true, TableExistsOption::Fail, _) => {
            return Err(Status::already_exists(format!("table \"{}\" already exists", name.name)));
        }
        (true, TableExistsOption::Replace, _) => {
            format!("CREATE OR REPLACE TABLE {table} AS SELECT {columns} FROM {source}")
        }
        (true, TableExistsOption::Append | TableExistsOption::Unspecified, _) => {
            format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM {source}")
        }
        (false, _, TableNotExistOption::Create) => {
            format!("CREATE TABLE {table} AS SELECT {columns} FROM {source}")
        }
        (false, _, TableNotExistOption::Fail | TableNotExistOption::Unspecified) => {
            return Err(Status::not_found(format!("table \"{}\" does not exist", name.name)));
        }
    };
    let n_rows = Arc::new(AtomicU64::new(0));
    let stream = OnceStream {
        schema: Arc::clone(&incoming.schema),
        incoming: Mutex::new(Some(incoming)),
        n_rows: Arc::clone(&n_rows),
    };
    let schema = Arc::clone(&stream.schema);
    let table = StreamingTable::try_new(schema, vec![Arc::new(stream)])
        .map_err(|error| status(&crate::EngineError::from(error)))?;
    session.register_table(&format!("{}.{source}", quoted(&session.schema_name())), Arc::new(table));
    let answer = session.execute(&sql).await.map_err(|error| status(&error))?;
    answer.collect().await.map_err(|error| status(&error))?;
    Ok(n_rows.load(Ordering::Relaxed).cast_signed())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The rows of a client as a table that can be read once.
struct OnceStream {
    schema: SchemaRef,
    incoming: Mutex<Option<Incoming>>,
    n_rows: Arc<AtomicU64>,
}

impl std::fmt::Debug for OnceStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnceStream").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PartitionStream for OnceStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let incoming = self.incoming.lock().take();
        let n_rows = Arc::clone(&self.n_rows);
        let rows = match incoming {
            Some(incoming) => incoming.rows.map_err(wrap).inspect_ok(move |batch| {
                n_rows.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            }),
            None => {
                let twice = DataFusionError::Internal("rows of a client were read twice".to_string());
                return Box::pin(RecordBatchStreamAdapter::new(
                    Arc::clone(&self.schema),
                    futures::stream::iter([Err(twice)]),
                ));
            }
        };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows.boxed()))
    }
}
