//! [`CsvFiles`]: DataFusion's CSV files, written by [`CsvText`].

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::catalog::Session;
use datafusion::common::file_options::csv_writer::CsvWriterOptions;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{GetExt, Result, Statistics, internal_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::datasource::file_format::csv::{CsvFormat, CsvFormatFactory, CsvSink};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use datafusion_datasource::file_sink_config::FileSink;
use datafusion_datasource::sink::{DataSink, DataSinkExec};
use datafusion_datasource::write::BatchSerializer;
use datafusion_datasource::write::demux::DemuxedStreamReceiver;
use datafusion_datasource::write::orchestration::spawn_writer_tasks_and_join;
use object_store::{ObjectMeta, ObjectStore};

use crate::csv_text::CsvText;

/// Makes [`CsvFiles`] for `COPY .. TO`.
#[derive(Debug, Default)]
pub struct CsvFilesFactory(CsvFormatFactory);

impl FileFormatFactory for CsvFilesFactory {
    fn create(&self, state: &dyn Session, options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        let format = self.0.create(state, options)?;
        match format.downcast_ref::<CsvFormat>() {
            Some(format) => Ok(Arc::new(CsvFiles(CsvFormat::default().with_options(format.options().clone())))),
            None => internal_err!("the format of CSV files is another"),
        }
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(CsvFiles(CsvFormat::default()))
    }
}

impl GetExt for CsvFilesFactory {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }
}

/// CSV files as DataFusion reads them, with a writer of our own.
#[derive(Debug)]
pub(crate) struct CsvFiles(pub(crate) CsvFormat);

#[async_trait]
impl FileFormat for CsvFiles {
    fn get_ext(&self) -> String {
        self.0.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.0.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.0.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        self.0.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.0.infer_stats(state, store, schema, object).await
    }

    async fn create_physical_plan(&self, state: &dyn Session, scan: FileScanConfig) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.create_physical_plan(state, scan).await
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let has_header = self.0.options().has_header.unwrap_or(state.config_options().catalog.has_header);
        let options = self.0.options().clone().with_has_header(has_header);
        let text = Arc::new(Rows { text: CsvText::new(&options)?, has_header });
        let plain = CsvSink::new(config, CsvWriterOptions::try_from(&options)?);
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(CsvTextSink { plain, text }), order)))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        self.0.file_source(schema)
    }
}

/// DataFusion's sink with another form of rows.
#[derive(Debug)]
struct CsvTextSink {
    plain: CsvSink,
    text: Arc<Rows>,
}

impl DisplayAs for CsvTextSink {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plain.fmt_as(format, f)
    }
}

#[async_trait]
impl FileSink for CsvTextSink {
    fn config(&self) -> &FileSinkConfig {
        self.plain.config()
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        files: DemuxedStreamReceiver,
        object_store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let CsvWriterOptions { compression, compression_level, .. } = *self.plain.writer_options();
        let text = Arc::clone(&self.text) as Arc<dyn BatchSerializer>;
        let compression = compression.into();
        spawn_writer_tasks_and_join(context, text, compression, compression_level, object_store, demux_task, files)
            .await
    }
}

#[async_trait]
impl DataSink for CsvTextSink {
    fn schema(&self) -> &SchemaRef {
        self.plain.config().output_schema()
    }

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        FileSink::write_all(self, data, context).await
    }
}

#[derive(Debug)]
struct Rows {
    text: CsvText,
    has_header: bool,
}

impl BatchSerializer for Rows {
    fn serialize(&self, batch: RecordBatch, initial: bool) -> Result<Bytes> {
        let mut text = Vec::with_capacity(batch.num_rows() * batch.num_columns() * 8);
        if initial && self.has_header {
            self.text.header(&batch.schema(), &mut text);
        }
        self.text.rows(&batch, &mut text)?;
        Ok(Bytes::from(text))
    }
}
