//! `nectarine`: the shell and everything else that is started from a command line.
//!
//! ```text
//!   args       what was asked for
//!   client     where statements go: here, or to a server
//!   exec       statements and scripts: run, print, cancel
//!   command    backslash commands
//!   prompt     line editing, completion, colours
//!   print      how rows look
//!   demo       a tour
//!   cache      looking after cached results
//!   report     looking after reports
//!   job        statements left to servers
//!   serve      the home for other programs
//!   executor   computing for a server elsewhere
//! ```

mod args;
mod cache;
mod client;
mod command;
mod demo;
mod exec;
mod executor;
mod failure;
mod input;
mod interrupt;
mod job;
mod keywords;
mod lexer;
mod lines;
mod live;
mod output;
mod print;
mod prompt;
mod report;
mod serve;
mod standard_input;
mod terminal;
mod units;
mod variables;

use std::process::ExitCode;

use anyhow::Context;
use nectarine_engine::{Engine, EngineError, Login, RemoteSession, Settings};
use tracing_subscriber::EnvFilter;

use crate::args::{Args, Input, JobTask, ServeArgs, Task};
use crate::client::Client;
use crate::exec::{Flow, Shell};
use crate::failure::{Failure, report_notice};
use crate::output::{Output, Paging};
use crate::print::View;
use crate::terminal::Terminal;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Stack of a worker: deeply nested statements are planned by recursion.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    let mut args = Args::from_command_line();
    let terminal = Terminal::detect();
    if let Err(error) = serve::config::merge(&mut args) {
        tell(&error, &terminal);
        return ExitCode::FAILURE;
    }
    let serve = match &args.subcommand {
        Some(Task::Serve(serve)) => Some(serve),
        _ => None,
    };
    let is_service = serve.is_some() || matches!(&args.subcommand, Some(Task::Executor(_)));
    log_to_stderr(args.verbose, &terminal, is_service, serve);
    match run(&args, terminal) {
        Ok(Flow::Done | Flow::Quit | Flow::Closed) => ExitCode::SUCCESS,
        Ok(Flow::Failed) => ExitCode::FAILURE,
        Ok(Flow::Interrupted) => ExitCode::from(interrupt::EXIT_CODE),
        Err(error) => {
            tell(&error, &terminal);
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args, terminal: Terminal) -> anyhow::Result<Flow> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .build()
        .context("cannot start worker threads")?;
    if let Some(Task::Executor(executor)) = &args.subcommand {
        return executor::run(&runtime, executor);
    }
    if let Some(address) = &args.connect {
        return connect(args, terminal, &runtime, address);
    }
    if matches!(&args.subcommand, Some(Task::Job(JobTask::Submit(_)))) && !args.set.is_empty() {
        anyhow::bail!("--set is for this process, which does not run the job: write SET into its statements");
    }
    let home = args.home.clone().unwrap_or_else(nectarine_engine::default_home);
    let settings = Settings::load(&home, &args.set)?;
    settings.notices().iter().for_each(|notice| report_notice(&terminal, notice));
    let engine = runtime.block_on(Box::pin(Engine::builder().home(&home).settings(settings).open()))?;

    let output = Output::stdout(terminal, Paging::Auto);
    let view = View::new(args.format, !args.no_header);
    let interactive = args.subcommand.is_none() && args.inputs.is_empty() && terminal.stdin;
    let mut shell =
        Shell::new(Client::here(engine.clone()), runtime.handle().clone(), terminal, view, output, interactive);
    shell.keep_going = args.keep_going;
    shell.verbose = args.verbose > 0;
    let flow = match &args.subcommand {
        Some(Task::Demo(demo)) => demo::run(&mut shell, demo),
        Some(Task::Cache(task)) => cache::run(&mut shell, &engine, task),
        Some(Task::Report(task)) => report::run(&mut shell, task),
        Some(Task::Job(task)) => job::run(&mut shell, task),
        Some(Task::Serve(serve)) => serve::run(&runtime, &engine, serve),
        // It has no home; see above.
        Some(Task::Executor(_)) => Ok(Flow::Done),
        None if !args.inputs.is_empty() => run_inputs(&mut shell, &args.inputs),
        None if interactive => prompt::run(&mut shell),
        None => Ok(shell.run_stdin()),
    };
    // A program that rows were sent to gets to read the last of them.
    let closed = shell.output.redirect(None);
    runtime.block_on(engine.shutdown());
    // A cancelled statement may still sit in a blocking call; nobody waits for it.
    runtime.shutdown_background();
    match closed {
        Err(failure @ (Failure::Shell { .. } | Failure::Statement { .. })) if flow.is_ok() => {
            Ok(shell.fail(&failure, None))
        }
        _ => flow,
    }
}

/// The shell on a server.
fn connect(args: &Args, terminal: Terminal, runtime: &tokio::runtime::Runtime, address: &str) -> anyhow::Result<Flow> {
    let job = match &args.subcommand {
        Some(Task::Job(job)) => Some(job),
        _ => None,
    };
    if (args.subcommand.is_some() && job.is_none()) || args.home.is_some() || !args.set.is_empty() {
        anyhow::bail!("--connect goes without --home, --set and subcommands other than job: those are for a home");
    }
    let password = std::env::var("NECTARINE_PASSWORD").unwrap_or_default();
    let token = std::env::var("NECTARINE_TOKEN").ok().filter(|token| !token.is_empty());
    let login = match (args.user.as_deref(), token.as_deref()) {
        (Some(user), _) => Login::Password { user, password: &password },
        (None, Some(token)) => Login::Token(token),
        (None, None) => Login::Nobody,
    };
    let session = runtime.block_on(Box::pin(RemoteSession::connect(address, args.ca.as_deref(), login)))?;
    let output = Output::stdout(terminal, Paging::Auto);
    let view = View::new(args.format, !args.no_header);
    let interactive = job.is_none() && args.inputs.is_empty() && terminal.stdin;
    let mut shell =
        Shell::new(Client::There(Box::new(session)), runtime.handle().clone(), terminal, view, output, interactive);
    shell.keep_going = args.keep_going;
    shell.verbose = args.verbose > 0;
    let flow = if let Some(job) = job {
        job::run(&mut shell, job)
    } else if !args.inputs.is_empty() {
        run_inputs(&mut shell, &args.inputs)
    } else if interactive {
        prompt::run(&mut shell)
    } else {
        Ok(shell.run_stdin())
    };
    match shell.output.redirect(None) {
        Err(failure @ (Failure::Shell { .. } | Failure::Statement { .. })) if flow.is_ok() => {
            Ok(shell.fail(&failure, None))
        }
        _ => flow,
    }
}

fn run_inputs(shell: &mut Shell, inputs: &[Input]) -> anyhow::Result<Flow> {
    let mut worst = Flow::Done;
    for input in inputs {
        let flow = match input {
            Input::Text(text) => shell.run_text(text),
            Input::File(path) => shell.run_file(path),
        };
        match flow {
            Flow::Done => {}
            Flow::Failed if shell.keep_going => worst = Flow::Failed,
            other => return Ok(other),
        }
    }
    Ok(worst)
}

/// The engine's errors keep their hints; others show what was attempted and why it failed.
fn tell(error: &anyhow::Error, terminal: &Terminal) {
    let failure = match error.downcast_ref::<EngineError>() {
        Some(error) => Failure::Statement { error: error.clone(), sql: String::new() },
        None => Failure::new(error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")),
    };
    failure.report(terminal, None);
}

fn log_to_stderr(verbose: u8, terminal: &Terminal, is_service: bool, serve: Option<&ServeArgs>) {
    let ours = |level: &str| {
        let crates = ["", "_engine", "_executor", "_planner", "_catalog"];
        crates.map(|name| format!(",nectarine{name}={level}")).concat()
    };
    let level = match verbose {
        // Nobody sits before a server: it says what it does, and which statements ended how.
        0 if is_service => format!("warn{},nectarine_engine::statements=debug", ours("info")),
        0 => "error".to_owned(),
        1 => format!("warn{}", ours("info")),
        2 => format!("info{}", ours("debug")),
        _ => "trace".to_owned(),
    };
    let chosen = std::env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty());
    let filter = EnvFilter::new(chosen.unwrap_or(level));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match serve.is_some_and(|serve| serve.log_json) {
        true => log.json().init(),
        false => log.with_ansi(terminal.colors_messages()).init(),
    }
}
