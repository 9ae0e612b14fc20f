//! What there is, as drivers ask for it: catalogs, schemas, tables, kinds of tables, keys.
//!
//! Patterns are SQL's: `%` and `_`. A catalog that is not given means any.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables, ProstMessageExt,
};
use arrow_flight::{FlightDescriptor, FlightEndpoint, FlightInfo, Ticket};
use prost::Message;
use tonic::Status;

use super::client::Client;
use super::status::{internal, status};
use super::wire;
use crate::relations::RelationKind;

/// Where the rows of a metadata command are: at the command itself.
pub(super) fn flight_info(
    command: &impl ProstMessageExt,
    schema: &Schema,
    descriptor: FlightDescriptor,
) -> Result<FlightInfo, Status> {
    let ticket = Ticket::new(command.as_any().encode_to_vec());
    let info = FlightInfo::new().try_with_schema(schema).map_err(internal)?;
    Ok(info.with_endpoint(FlightEndpoint::new().with_ticket(ticket)).with_descriptor(descriptor))
}

pub(super) fn catalogs(client: &Client, command: CommandGetCatalogs) -> Result<RecordBatch, Status> {
    let mut catalogs = command.into_builder();
    catalogs.append(client.session.catalog_name());
    catalogs.build().map_err(Status::from)
}

pub(super) async fn schemas(client: &Client, command: CommandGetDbSchemas) -> Result<RecordBatch, Status> {
    let catalog = client.session.catalog_name();
    let mut schemas = command.into_builder();
    for name in client.session.schema_names().await.map_err(|error| status(&error))? {
        schemas.append(&catalog, name);
    }
    schemas.build().map_err(Status::from)
}

pub(super) async fn tables(client: &Client, command: CommandGetTables) -> Result<RecordBatch, Status> {
    let catalog = client.session.catalog_name();
    let mut tables = command.into_builder();
    for relation in client.session.relations().await.map_err(|error| status(&error))? {
        let columns = wire::schema(&relation.columns);
        tables.append(&catalog, relation.schema_name, relation.name, relation.kind.word(), &columns)?;
    }
    tables.build().map_err(Status::from)
}

pub(super) fn table_types(command: CommandGetTableTypes) -> Result<RecordBatch, Status> {
    let mut types = command.into_builder();
    RelationKind::ALL.into_iter().for_each(|kind| types.append(kind.word()));
    types.build().map_err(Status::from)
}

/// Columns of the answer about primary keys. There are no rows: nothing checks keys.
pub(super) fn primary_keys() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("catalog_name", DataType::Utf8, true),
        Field::new("db_schema_name", DataType::Utf8, true),
        Field::new("table_name", DataType::Utf8, false),
        Field::new("column_name", DataType::Utf8, false),
        Field::new("key_name", DataType::Utf8, true),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

/// Columns of the answers about foreign keys. There are none.
pub(super) fn foreign_keys() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("pk_catalog_name", DataType::Utf8, true),
        Field::new("pk_db_schema_name", DataType::Utf8, true),
        Field::new("pk_table_name", DataType::Utf8, false),
        Field::new("pk_column_name", DataType::Utf8, false),
        Field::new("fk_catalog_name", DataType::Utf8, true),
        Field::new("fk_db_schema_name", DataType::Utf8, true),
        Field::new("fk_table_name", DataType::Utf8, false),
        Field::new("fk_column_name", DataType::Utf8, false),
        Field::new("key_sequence", DataType::Int32, false),
        Field::new("fk_key_name", DataType::Utf8, true),
        Field::new("pk_key_name", DataType::Utf8, true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}
