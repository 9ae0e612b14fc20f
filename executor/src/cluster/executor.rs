//! The process that computes: Ballista's executor, with our functions, scans and object stores.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::BallistaError;
use ballista_core::extension::SessionConfigExt;
use ballista_core::utils::default_config_producer;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::FutureExt;
use futures::future::BoxFuture;
use tonic::Code;

use super::codec::ClusterCodec;
use super::functions::registry;
use super::options::MESSAGE_BYTES;
use super::restore::RestoringEngine;
use super::rows_port::rows_port;
use super::secret::{Gate, Secret};
use super::server::{ClusterError, HEARTBEAT_SECONDS, is_protected};

/// Rows on their way between stages are deleted after so long, if the server did not say that they can go.
const KEPT_SECONDS: u64 = 24 * 3600;

/// How often that is looked at.
const CLEANED_SECONDS: u64 = 600;

/// What an executor is made of.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// Where the server listens for executors.
    pub server: String,
    /// Where others reach this one.
    pub host: String,
    /// Port for rows; any that is free unless given.
    pub port: Option<u16>,
    /// Port for tasks; any that is free unless given.
    pub task_port: Option<u16>,
    /// Tasks at a time.
    pub cores: usize,
    /// Memory of all tasks, in bytes.
    pub memory: u64,
    /// Rows on their way between stages. All folders in it belong to the executor, which deletes them.
    pub work_dir: PathBuf,
    /// What the server knows, too. Must be there if others can reach this one.
    pub secret: Option<Secret>,
}

/// Runs tasks until somebody ends the process, or the server is away for long.
pub async fn run_executor(options: ExecutorOptions, runtime: Arc<RuntimeEnv>) -> Result<(), ClusterError> {
    let failed = |detail: String| ClusterError::Start { what: "the executor", detail };
    let (server_host, server_port) = options
        .server
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host.trim_matches(['[', ']']).to_owned(), port.parse::<u16>().ok()?)))
        .ok_or_else(|| failed(format!("\"{}\" is not HOST:PORT", options.server)))?;
    let address = address_of(&options.host).map_err(failed)?;
    is_protected(address, options.secret.as_ref())?;
    let port = free_port(address, options.port).map_err(failed)?;
    let task_port = free_port(address, options.task_port).map_err(failed)?;
    std::fs::create_dir_all(&options.work_dir)
        .map_err(|error| failed(format!("cannot create \"{}\": {error}", options.work_dir.display())))?;
    let shared = Arc::clone(&runtime);
    let shown = options.secret.as_ref().map(Secret::shown);
    let config = ExecutorProcessConfig {
        bind_host: address.ip().to_string(),
        external_host: Some(options.host.clone()),
        port,
        grpc_port: task_port,
        scheduler_host: server_host,
        scheduler_port: server_port,
        // Any number but 0 waits for the server as long as it takes.
        scheduler_connect_timeout_seconds: 5,
        vcores: options.cores.max(1),
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: Some(options.work_dir.display().to_string()),
        job_data_ttl_seconds: KEPT_SECONDS,
        job_data_clean_up_interval_seconds: CLEANED_SECONDS,
        grpc_max_decoding_message_size: MESSAGE_BYTES as u32,
        grpc_max_encoding_message_size: MESSAGE_BYTES as u32,
        executor_heartbeat_interval_seconds: HEARTBEAT_SECONDS,
        memory_pool_size: Some(options.memory.max(1 << 20)),
        override_execution_engine: Some(Arc::new(RestoringEngine::new(
            Arc::clone(&runtime),
            format!("{}:{port}", options.host),
        ))),
        override_function_registry: Some(Arc::new(registry())),
        override_runtime_producer: Some(Arc::new(move |_| Ok(Arc::clone(&shared)))),
        override_physical_codec: Some(ClusterCodec::shared(options.secret.clone())),
        override_arrow_flight_service: Some(rows_port(Gate { secret: options.secret.clone(), whose: "executor" })),
        override_create_grpc_client_endpoint: shown.clone(),
        override_config_producer: Some(Arc::new(move || {
            let config = default_config_producer();
            match &shown {
                Some(shown) => config.with_ballista_override_create_grpc_client_endpoint(Arc::clone(shown)),
                None => config,
            }
        })),
        ..ExecutorProcessConfig::default()
    };
    tracing::info!(server = options.server, host = options.host, port, task_port, "executor");
    // Boxed: it is large, and nobody else should have to look into it.
    let running: BoxFuture<'static, _> = start_executor_process(Arc::new(config)).boxed();
    running.await.map_err(|error| match error {
        // What the server says, and no more.
        BallistaError::GrpcError(status) if status.code() == Code::Unauthenticated => {
            ClusterError::Refused { server: options.server, reason: status.message().to_owned() }
        }
        error => failed(error.to_string()),
    })
}

fn address_of(host: &str) -> Result<SocketAddr, String> {
    let found = (host, 0).to_socket_addrs().map_err(|error| format!("\"{host}\" is not found: {error}"))?;
    let mut found: Vec<SocketAddr> = found.collect();
    // Where a name has both, most others reach the older one.
    found.sort_by_key(SocketAddr::is_ipv6);
    found.into_iter().next().ok_or_else(|| format!("\"{host}\" has no address"))
}

/// A port that nobody has; Ballista tells others the number before it listens.
fn free_port(address: SocketAddr, wanted: Option<u16>) -> Result<u16, String> {
    if let Some(port) = wanted {
        return Ok(port);
    }
    let told = |error: std::io::Error| format!("no port is free on {}: {error}", address.ip());
    let listener = TcpListener::bind(SocketAddr::new(address.ip(), 0)).map_err(told)?;
    Ok(listener.local_addr().map_err(told)?.port())
}
