//! External tables: files that others write.
//!
//! Columns are fixed when the table is created: given, or inferred from the files that are there. Files that come later
//! are read by column name, with NULL for what they lack (CSV, which has no types and reads by position, must have the
//! same header).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{Constraint, Result, plan_err};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::CreateExternalTable;
use nectarine_catalog::{
    CatalogError, Clock, Extent, ExtentReader, ExternalSource, FileFormatKind, FileKind, ListedFile, Location,
    SystemClock, TableDef, TableId, TableKind, TableName, infer_partition_columns, list, list_partitioned,
};
use nectarine_executor::{infer_schema, is_json_array, reader_options};
use object_store::ObjectStore;

use crate::engine::Shared;
use crate::managed::now_micros;
use crate::statement::wrap;

/// The extents of all locations of a source now.
pub(crate) async fn snapshot(
    shared: &Shared,
    source: &ExternalSource,
    schema: &SchemaRef,
    reader: &dyn ExtentReader,
) -> Result<Arc<[Arc<Extent>]>> {
    let first = snapshot_one(shared, source, schema, reader).await?;
    if source.more_locations.is_empty() {
        return Ok(first);
    }
    let mut extents: Vec<Arc<Extent>> = first.to_vec();
    for location in &source.more_locations {
        let source = ExternalSource { location: location.clone(), more_locations: vec![], ..source.clone() };
        extents.extend(snapshot_one(shared, &source, schema, reader).await?.iter().cloned());
    }
    Ok(extents.into())
}

async fn snapshot_one(
    shared: &Shared,
    source: &ExternalSource,
    schema: &SchemaRef,
    reader: &dyn ExtentReader,
) -> Result<Arc<[Arc<Extent>]>> {
    match shared.tracker.snapshot(source, schema, reader).await {
        // A folder that is there and has no files yet is a table without rows. One that is not there is an error: it may
        // be a mount that is missing.
        Err(CatalogError::NoFiles { .. }) if is_there(source) => Ok(Arc::from([])),
        extents => extents.map_err(wrap),
    }
}

/// Whether an empty location exists at all. Object stores have no folders, so nothing can be missing there.
fn is_there(source: &ExternalSource) -> bool {
    match parse_location(&source.location) {
        Ok(location) if location.is_local() => std::path::Path::new(&location.fixed_prefix()).is_dir(),
        Ok(location) => location.names_folder() || location.is_glob(),
        Err(_) => false,
    }
}

/// The table that `FROM 'location'` stands for: format by the files' ending, columns by the files.
pub(crate) async fn locate(shared: &Shared, state: &SessionState, text: &str) -> Result<TableDef> {
    let location = parse_location(text)?;
    let Some(format) = format_by_name(shared, &location).await? else {
        return plan_err!(
            "cannot tell the format of \"{text}\" from its name: CREATE EXTERNAL TABLE with STORED AS says it"
        );
    };
    locate_as(shared, state, text, format, BTreeMap::new()).await
}

/// The same where the format is known.
pub(crate) async fn locate_as(
    shared: &Shared,
    state: &SessionState,
    text: &str,
    format: FileFormatKind,
    mut options: BTreeMap<String, String>,
) -> Result<TableDef> {
    let location = parse_location(text)?;
    if let Some(delimiter) = location.file_kind().and_then(|kind| kind.delimiter) {
        options.entry("format.delimiter".to_string()).or_insert_with(|| char::from(delimiter).to_string());
    }
    let mut source = ExternalSource {
        location: location.to_string(),
        more_locations: vec![],
        format,
        partition_columns: vec![],
        options,
        content_fingerprint: false,
        order: vec![],
    };
    let schema = discover(shared, state, &mut source, None).await?;
    Ok(TableDef {
        id: TableId::new(),
        name: TableName::new(state.config_options().catalog.default_schema.clone(), text),
        schema,
        kind: TableKind::External(source),
        defaults: vec![],
        primary_keys: vec![],
        unique_keys: vec![],
        definition: None,
        created_at: now_micros(),
        owner: None,
    })
}

/// The table that a `CREATE EXTERNAL TABLE` statement describes.
pub(crate) async fn describe(
    shared: &Shared,
    state: &SessionState,
    name: TableName,
    statement: &CreateExternalTable,
) -> Result<TableDef> {
    let Some(format) = FileFormatKind::parse(&statement.file_type) else {
        return plan_err!(
            "unknown format \"{}\" in STORED AS: one of PARQUET, CSV, JSON, ARROW, AVRO",
            statement.file_type
        );
    };
    if statement.unbounded {
        return plan_err!("unbounded external tables are not offered");
    }
    let mut options: BTreeMap<String, String> =
        statement.options.iter().map(|(key, value)| (key.to_ascii_lowercase(), value.clone())).collect();
    let fingerprint = options.remove("format.fingerprint").or_else(|| options.remove("fingerprint"));
    let content_fingerprint = match fingerprint.as_deref() {
        None | Some("identity") => false,
        Some("content") => true,
        Some(other) => return plan_err!("unknown fingerprint \"{other}\": one of content, identity"),
    };
    // Reported now, not at the first query.
    let reader = reader_options(state.config_options(), format, &options)?;
    if format == FileFormatKind::Csv {
        // Fixed now, so that the table means the same whatever a later session's defaults are.
        options.insert("format.has_header".to_string(), reader.csv.has_header.unwrap_or(false).to_string());
        // That no value holds a line end is a promise, which nobody gives by saying nothing.
        let is_given = options.contains_key("format.newlines_in_values") || options.contains_key("newlines_in_values");
        if is_given || reader.csv.newlines_in_values == Some(true) {
            let value = reader.csv.newlines_in_values.unwrap_or(true).to_string();
            options.insert("format.newlines_in_values".to_string(), value);
        }
    }
    let mut locations = vec![];
    for text in &statement.locations {
        let location = parse_location(text)?.to_string();
        if locations.contains(&location) {
            return plan_err!("duplicate location '{text}' in CREATE EXTERNAL TABLE");
        }
        locations.push(location);
    }
    let Some(location) = locations.first().cloned() else { return plan_err!("CREATE EXTERNAL TABLE needs a LOCATION") };
    let mut source = ExternalSource {
        location,
        more_locations: locations.split_off(1),
        format,
        partition_columns: statement.table_partition_cols.clone(),
        options,
        content_fingerprint,
        order: vec![],
    };
    let declared = (!statement.schema.fields().is_empty()).then(|| Arc::clone(statement.schema.inner()));
    let schema = discover(shared, state, &mut source, declared).await?;
    let keys = |wanted: fn(&Constraint) -> Option<&Vec<usize>>| {
        statement.constraints.iter().filter_map(wanted).cloned().collect()
    };
    Ok(TableDef {
        id: TableId::new(),
        name,
        schema,
        kind: TableKind::External(source),
        defaults: crate::ddl::defaults_of(statement.column_defaults.iter())?,
        primary_keys: keys(primary_key),
        unique_keys: keys(unique_key),
        definition: statement.definition.clone(),
        created_at: now_micros(),
        owner: None,
    })
}

pub(crate) fn primary_key(constraint: &Constraint) -> Option<&Vec<usize>> {
    match constraint {
        Constraint::PrimaryKey(columns) => Some(columns),
        Constraint::Unique(_) => None,
    }
}

pub(crate) fn unique_key(constraint: &Constraint) -> Option<&Vec<usize>> {
    match constraint {
        Constraint::Unique(columns) => Some(columns),
        Constraint::PrimaryKey(_) => None,
    }
}

fn parse_location(text: &str) -> Result<Location> {
    let base = std::env::current_dir()?;
    Location::parse(text, &base).map_err(wrap)
}

/// The format that a location's name tells, or the names of the files in it, if they agree.
async fn format_by_name(shared: &Shared, location: &Location) -> Result<Option<FileFormatKind>> {
    if let Some(kind) = location.file_kind() {
        return Ok(Some(kind.format));
    }
    let mut found = None;
    for format in [
        FileFormatKind::Parquet,
        FileFormatKind::Csv,
        FileFormatKind::Json,
        FileFormatKind::Arrow,
        FileFormatKind::Avro,
    ] {
        let files = match list(&shared.object_stores, location, format, &BTreeMap::new()).await {
            Ok(files) => files,
            Err(CatalogError::NoFiles { .. }) => continue,
            Err(error) => return Err(wrap(error)),
        };
        // A glob and a named file give whatever they name, so the endings decide.
        let kinds = files.iter().map(|file| FileKind::of(file.location()).map(|kind| kind.format));
        for kind in kinds {
            match (kind, found) {
                (None, _) => return Ok(None),
                (Some(kind), Some(other)) if kind != other => {
                    return plan_err!(
                        "\"{location}\" holds files of several formats ({other} and {kind}): name one of them"
                    );
                }
                (Some(kind), _) => found = Some(kind),
            }
        }
    }
    match found {
        Some(format) => Ok(Some(format)),
        None => Err(wrap(CatalogError::NoFiles { location: location.to_string(), hint: nothing_known(location) })),
    }
}

/// Why a folder tells no format.
fn nothing_known(location: &Location) -> String {
    let folder = location.fixed_prefix();
    match std::fs::read_dir(&folder).map(|mut entries| entries.next().is_none()) {
        _ if !location.is_local() || location.is_glob() => String::new(),
        Ok(true) => ": the folder is empty".to_string(),
        Ok(false) => ": no file in the folder has an ending that tells its format".to_string(),
        Err(_) => ": no such file or folder".to_string(),
    }
}

/// Columns of a source, partition columns last; fills in what the files tell about how to read them.
async fn discover(
    shared: &Shared,
    state: &SessionState,
    source: &mut ExternalSource,
    declared: Option<SchemaRef>,
) -> Result<SchemaRef> {
    let location = parse_location(&source.location)?;
    let (store_url, store) = shared.object_stores.with_options(location.store_url(), &source.options).map_err(wrap)?;
    let now_ns = SystemClock.now_ns();
    let listed = list(&shared.object_stores, &location, source.format, &source.options).await;
    let files: Vec<ListedFile> = match listed {
        Ok(files) => files,
        // A place that will be filled later, if its columns are known.
        Err(CatalogError::NoFiles { .. } | CatalogError::Location { .. }) if declared.is_some() => vec![],
        Err(error) => return Err(wrap(error)),
    };
    if let Some(schema) = &declared {
        for column in &source.partition_columns {
            if schema.field_with_name(column).is_err() {
                return plan_err!("partition column \"{column}\" is not among the columns of the table");
            }
        }
    }
    check_partitions(source, &location, &files)?;
    if !source.partition_columns.is_empty() && !files.is_empty() {
        // Each file must have a value for each, be it above the location.
        let columns = &source.partition_columns;
        list_partitioned(&shared.object_stores, &location, source.format, &source.options, columns)
            .await
            .map_err(wrap)?;
    }
    tell_array(&store, source, &files, now_ns).await;
    if let Some(schema) = declared {
        let is_partition = |field: &&FieldRef| source.partition_columns.contains(field.name());
        let in_files = schema.fields().iter().filter(|field| !is_partition(field)).cloned();
        let in_paths = source.partition_columns.iter().filter_map(|name| schema.field_with_name(name).ok());
        let fields: Vec<FieldRef> = in_files.chain(in_paths.map(|field| Arc::new(field.clone()))).collect();
        return Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())));
    }
    if source.partition_columns.is_empty() && state.config_options().execution.listing_table_factory_infer_partitions {
        source.partition_columns = infer_partition_columns(&location, &files);
    }
    let full = files.iter().filter(|file| file.identity.size > 0).map(|file| file.object_meta_for_cache(now_ns));
    let metas: Vec<_> = full.collect::<Result<_, CatalogError>>().map_err(wrap)?;
    if metas.is_empty() {
        return plan_err!("cannot infer the columns of \"{}\": all its files are empty", source.location);
    }
    tracing::debug!(store = store_url.scheme(), n_files = metas.len(), "inferring columns");
    let inferred = infer_schema(state, &store, source.format, &source.options, &metas)
        .await
        .map_err(|error| error.context(format!("cannot infer the columns of \"{}\"", source.location)))?;
    source.options.insert("schema_inferred".to_string(), "true".to_string());
    let text = DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8));
    // A file that comes later may lack any column.
    let nullable = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
    let mut fields: Vec<FieldRef> = inferred
        .fields()
        .iter()
        .filter(|field| !source.partition_columns.contains(field.name()))
        .map(nullable)
        .collect();
    fields.extend(source.partition_columns.iter().map(|name| Arc::new(Field::new(name, text.clone(), true))));
    Ok(Arc::new(Schema::new_with_metadata(fields, inferred.metadata().clone())))
}

/// Writes down that records of JSON files are elements of arrays, if nothing else is said and the first file is one.
async fn tell_array(
    store: &Arc<dyn ObjectStore>,
    source: &mut ExternalSource,
    files: &[ListedFile],
    looked_at_ns: i64,
) {
    let is_given =
        ["format.newline_delimited", "newline_delimited"].iter().any(|key| source.options.contains_key(*key));
    if source.format != FileFormatKind::Json || is_given {
        return;
    }
    let Some(first) = files.iter().find(|file| file.identity.size > 0) else { return };
    // Whoever reads it says what is wrong with it.
    let Ok(first) = first.object_meta_for_cache(looked_at_ns) else { return };
    if is_json_array(store, &first, &source.options).await.unwrap_or(false) {
        source.options.insert("format.newline_delimited".to_string(), "false".to_string());
    }
}

/// Declared partition columns must be the folders that the files are in, in that order.
fn check_partitions(source: &ExternalSource, location: &Location, files: &[ListedFile]) -> Result<()> {
    if source.partition_columns.is_empty() {
        return Ok(());
    }
    let is_folder = location.names_folder() || std::path::Path::new(&location.fixed_prefix()).is_dir();
    if location.file_kind().is_some() && !location.is_glob() && !is_folder {
        return plan_err!("a single file has no partitions: \"{location}\"");
    }
    let found = infer_partition_columns(location, files);
    match found.is_empty() || found.starts_with(&source.partition_columns) {
        true => Ok(()),
        false => plan_err!(
            "PARTITIONED BY ({}) does not fit the folders of \"{location}\", which are ({})",
            source.partition_columns.join(", "),
            found.join(", ")
        ),
    }
}
