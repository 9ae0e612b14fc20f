//! [`run_executor`]: the process that computes for a server elsewhere. It has no home.

use std::path::PathBuf;

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use nectarine_catalog::ObjectStores;
use nectarine_executor::{ExecutorOptions, Secret};

use super::from_cluster;
use crate::settings::parse_size;
use crate::stores::StoreRegistry;
use crate::{EngineError, ErrorKind, Result, machine};

/// What an executor is started with.
#[derive(Debug, Clone)]
pub struct Executor {
    /// Where the server listens for executors, `host:port`.
    pub server: String,
    /// Where the server and other executors reach this one.
    pub host: String,
    /// Port for rows; any that is free unless given.
    pub port: Option<u16>,
    /// Port for tasks; any that is free unless given.
    pub task_port: Option<u16>,
    /// Tasks at a time; as many as there are processors unless given.
    pub cores: Option<usize>,
    /// Memory of all tasks: a size, or a share of the machine's memory.
    pub memory: String,
    /// Folder for rows on their way between stages and what does not fit in memory.
    pub folder: PathBuf,
    /// What the server knows, too. Must be there if others can reach this one.
    pub secret: Option<Secret>,
}

/// Runs tasks until somebody ends the process, or the server was away for a while.
pub async fn run_executor(executor: Executor) -> Result<()> {
    let memory = parse_size("--memory", &executor.memory, machine::memory_bytes())?;
    let spill = executor.folder.join("spill");
    std::fs::create_dir_all(&spill).map_err(|error| {
        EngineError::new(ErrorKind::Configuration, format!("cannot create \"{}\"", spill.display())).with_source(error)
    })?;
    // Object stores are opened as the server opens them: by the same environment variables.
    let runtime = RuntimeEnvBuilder::new()
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![spill])))
        .with_object_store_registry(std::sync::Arc::new(StoreRegistry::new(ObjectStores::new())))
        .with_object_list_cache_limit(0)
        .build_arc()?;
    let cores = executor.cores.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    let options = ExecutorOptions {
        server: executor.server,
        host: executor.host,
        port: executor.port,
        task_port: executor.task_port,
        cores,
        memory,
        work_dir: executor.folder.join("stages"),
        secret: executor.secret,
    };
    nectarine_executor::run_executor(options, runtime).await.map_err(from_cluster)
}
