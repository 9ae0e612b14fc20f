//! `nectarine`: the shell and everything else that is started from a command line.
//!
//! ```text
//!   args       what was asked for
//!   exec       statements and scripts: run, print, cancel
//!   command    backslash commands
//!   prompt     line editing, completion, colours
//!   print      how rows look
//!   demo       a tour
//!   cache      looking after cached results
//! ```

mod args;
mod cache;
mod command;
mod demo;
mod exec;
mod failure;
mod input;
mod interrupt;
mod keywords;
mod lexer;
mod live;
mod output;
mod print;
mod prompt;
mod terminal;
mod units;
mod variables;

use std::process::ExitCode;

use anyhow::Context;
use nectarine_engine::{Engine, EngineError, Settings};
use tracing_subscriber::EnvFilter;

use crate::args::{Args, Input, Task};
use crate::exec::{Flow, Shell};
use crate::failure::Failure;
use crate::output::{Output, Paging};
use crate::print::View;
use crate::terminal::Terminal;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Stack of a worker: deeply nested statements are planned by recursion.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    let args = Args::from_command_line();
    let terminal = Terminal::detect();
    log_to_stderr(args.verbose, &terminal);
    match run(&args, terminal) {
        Ok(Flow::Done | Flow::Quit | Flow::Closed) => ExitCode::SUCCESS,
        Ok(Flow::Failed) => ExitCode::FAILURE,
        Ok(Flow::Interrupted) => ExitCode::from(interrupt::EXIT_CODE),
        Err(error) => {
            report(&error, &terminal);
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
    let home = args.home.clone().unwrap_or_else(nectarine_engine::default_home);
    let settings = Settings::load(&home, &args.set)?;
    let engine = runtime.block_on(Box::pin(Engine::builder().home(&home).settings(settings).open()))?;

    let output = Output::stdout(terminal, Paging::Auto);
    let view = View::new(args.format, !args.no_header);
    let interactive = args.subcommand.is_none() && args.inputs.is_empty() && terminal.stdin;
    let mut shell = Shell::new(engine.clone(), runtime.handle().clone(), terminal, view, output, interactive);
    shell.keep_going = args.keep_going;
    shell.verbose = args.verbose > 0;
    let flow = match &args.subcommand {
        Some(Task::Demo(demo)) => demo::run(&mut shell, demo),
        Some(Task::Cache(task)) => cache::run(&mut shell, &engine, task),
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
fn report(error: &anyhow::Error, terminal: &Terminal) {
    let failure = match error.downcast_ref::<EngineError>() {
        Some(error) => Failure::Statement { error: error.clone(), sql: String::new() },
        None => Failure::new(error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")),
    };
    failure.report(terminal, None);
}

fn log_to_stderr(verbose: u8, terminal: &Terminal) {
    let ours = |level: &str| {
        let crates = ["", "_engine", "_executor", "_planner", "_catalog"];
        crates.map(|name| format!(",nectarine{name}={level}")).concat()
    };
    let level = match verbose {
        0 => "error".to_owned(),
        1 => format!("warn{}", ours("info")),
        2 => format!("info{}", ours("debug")),
        _ => "trace".to_owned(),
    };
    let chosen = std::env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty());
    let filter = EnvFilter::new(chosen.unwrap_or(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(terminal.colors_messages())
        .init();
}
