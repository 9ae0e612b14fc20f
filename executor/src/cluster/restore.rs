//! [`RestoringEngine`]: what a plan loses on its way is put back before a task runs.
//!
//! ```text
//!   written down   ParquetSource                   stock
//!   put back       footers without the bounds of floats, columns that may be NULL, names of files around errors,
//!                  CSV and JSON read losing nothing without a word
//! ```
//!
//! Keeps true   a scan reads the same rows here as in the process that planned it: the same files (see `check`), the same way.

use std::sync::Arc;

use ballista_core::JobId;
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use nectarine_catalog::SameFiles;

use super::check::{CheckedStage, wanted_files};
use super::told::ToldFilesExec;
use crate::footers::{Footers, PlainFooters};
use crate::named_source::NameScannedFiles;
use crate::nullable::NullableColumns;

/// Ballista's engine, for plans of ours.
pub(super) struct RestoringEngine {
    ballista: DefaultExecutionEngine,
    runtime: Arc<RuntimeEnv>,
    footers: PlainFooters,
    files: SameFiles,
    /// How the executor is called in errors.
    executor: Arc<str>,
}

impl RestoringEngine {
    /// For tasks that read through `runtime`, on the executor that is called so.
    pub(super) fn new(runtime: Arc<RuntimeEnv>, executor: String) -> Self {
        let footers = PlainFooters::new(runtime.cache_manager.get_metadata_cache_limit());
        let (ballista, files) = (DefaultExecutionEngine::new(), SameFiles::default());
        Self { ballista, runtime, footers, files, executor: Arc::from(executor) }
    }
}

impl ExecutionEngine for RestoringEngine {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        global_output_partition_ids: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let wanted = wanted_files(&plan, &self.runtime)?;
        let plan = restored(plan, &self.runtime, &self.footers, config.options())?;
        let task = self.ballista.create_query_stage_exec(
            job_id,
            stage_id,
            task_id,
            global_output_partition_ids,
            plan,
            work_dir,
            config,
        )?;
        let (files, executor) = (self.files.clone(), Arc::clone(&self.executor));
        Ok(Arc::new(CheckedStage { task, wanted, files, executor }))
    }
}

/// The plan as the planner meant it.
pub(super) fn restored(
    plan: Arc<dyn ExecutionPlan>,
    runtime: &RuntimeEnv,
    plain: &PlainFooters,
    options: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan
        .transform_up(|node| {
            if let Some(told) = node.downcast_ref::<ToldFilesExec>() {
                return Ok(Transformed::yes(Arc::clone(told.input())));
            }
            match restored_scan(&node, runtime, plain)? {
                Some(scan) => Ok(Transformed::yes(scan)),
                None => Ok(Transformed::no(node)),
            }
        })
        .data()?;
    NameScannedFiles.optimize(plan, options)
}

fn restored_scan(
    node: &Arc<dyn ExecutionPlan>,
    runtime: &RuntimeEnv,
    plain: &PlainFooters,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(scan) = node.downcast_ref::<DataSourceExec>() else { return Ok(None) };
    let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else { return Ok(None) };
    let Some(source) = config.file_source().downcast_ref::<ParquetSource>() else { return Ok(None) };
    let store = runtime.object_store(&config.object_store_url)?;
    let cached = runtime.cache_manager.get_file_metadata_cache();
    let readers = Arc::new(Footers::new(store, cached, plain.clone()));
    let mut restored = source.clone().with_parquet_file_reader_factory(readers);
    if let Some(bytes) = source.table_parquet_options().global.metadata_size_hint {
        restored = restored.with_metadata_size_hint(bytes);
    }
    let config = FileScanConfigBuilder::from(config.clone())
        .with_source(Arc::new(restored))
        .with_expr_adapter(Some(Arc::new(NullableColumns)));
    Ok(Some(DataSourceExec::from_data_source(config.build())))
}
