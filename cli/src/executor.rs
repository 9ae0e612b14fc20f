//! `nectarine executor`: computes for a server elsewhere, until somebody says that it is enough.
//!
//! A server that is away for a while, or takes this executor for dead, makes it end; then it begins anew by itself.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use nectarine_engine::{Executor, cluster_secret, run_executor};
use tokio::runtime::Runtime;

use crate::args::ExecutorArgs;
use crate::exec::Flow;
use crate::serve::Stop;

/// Before it begins anew: whatever ended it may need a moment.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn run(runtime: &Runtime, args: &ExecutorArgs) -> anyhow::Result<Flow> {
    let (folder, temporary) = folder(args)?;
    let executor = Executor {
        server: args.server.clone(),
        host: args.host.clone(),
        port: args.port,
        task_port: args.task_port,
        cores: args.cores.map(|n| n as usize),
        memory: args.memory.clone(),
        folder,
        secret: cluster_secret(args.secret_file.as_deref())?,
    };
    let is_enough = runtime.block_on(async {
        let mut stop = Stop::listen()?;
        writeln!(std::io::stdout(), "Executor for {}", args.server)?;
        std::io::stdout().flush()?;
        let mut is_asked = false;
        // Ballista hears the same signals, ends its tasks and takes leave; who asks twice does not want to wait for that.
        let asked_twice = async {
            stop.asked().await;
            is_asked = true;
            stop.asked().await;
        };
        tokio::select! {
            ended = Box::pin(run_executor(executor)) => ended?,
            () = asked_twice => {}
        }
        anyhow::Ok(is_asked)
    })?;
    // Before another process takes the place of this one.
    drop(temporary);
    if is_enough {
        return Ok(Flow::Done);
    }
    tracing::warn!("the server is away, or took this executor for dead; beginning anew");
    std::thread::sleep(PAUSE);
    again()
}

fn folder(args: &ExecutorArgs) -> anyhow::Result<(PathBuf, Option<tempfile::TempDir>)> {
    match &args.folder {
        Some(folder) => Ok((folder.clone(), None)),
        None => {
            let temporary = tempfile::Builder::new().prefix("nectarine-executor-").tempdir()?;
            Ok((temporary.path().to_path_buf(), Some(temporary)))
        }
    }
}

/// Ballista's executor runs once in a process: the same program takes the place of this one.
#[cfg(unix)]
fn again() -> anyhow::Result<Flow> {
    use std::os::unix::process::CommandExt;
    let mut arguments = std::env::args_os();
    let _name = arguments.next();
    let error = std::process::Command::new(std::env::current_exe()?).args(arguments).exec();
    Err(error.into())
}

#[cfg(not(unix))]
fn again() -> anyhow::Result<Flow> {
    anyhow::bail!("the server is away, or took this executor for dead")
}
