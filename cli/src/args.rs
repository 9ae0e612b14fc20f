//! [`Args`]: the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, ArgMatches, Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::print::Format;

const EXAMPLES: &str = "\
Examples:
  nectarine                                          open a prompt
  nectarine -c \"SELECT count(*) FROM 'logs/*.csv'\"   query files as they are
  nectarine -f report.sql --format csv > out.csv     run a script, keep its rows
  echo 'SELECT 1' | nectarine --format json          read SQL from a pipe
  nectarine demo                                     a tour with a click log
  nectarine serve --no-auth                          answer Flight SQL on this machine
  nectarine --connect grpc://127.0.0.1:32010         open a prompt on a server

Without -c, -f or a subcommand SQL is read from standard input: with a prompt if it is a
terminal, as a script otherwise. Rows go to standard output, all else to standard error.";

/// A SQL engine that never computes the same thing twice.
#[derive(Parser, Debug)]
#[command(name = "nectarine", version, about, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Args {
    /// Folder that holds tables, metadata and history [default: NECTARINE_HOME, else the platform's data folder]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) home: Option<PathBuf>,

    /// Run statements on a server, grpc://host:port or grpcs://host:port, instead of a home
    #[arg(long, value_name = "URL")]
    pub(crate) connect: Option<String>,

    /// Trust the certificates in this PEM file beside those of the system
    #[arg(long, value_name = "FILE", requires = "connect")]
    pub(crate) ca: Option<PathBuf>,

    /// Log in to the server as this user; the password is in NECTARINE_PASSWORD. Without it, the token in NECTARINE_TOKEN
    #[arg(long, value_name = "NAME", requires = "connect")]
    pub(crate) user: Option<String>,

    /// Run these statements, separated by ';', and exit; may be repeated and mixed with -f
    #[arg(short, long, value_name = "SQL")]
    command: Vec<String>,

    /// Run the statements in this file ('-' is standard input) and exit
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,

    /// How rows are printed
    #[arg(long, value_enum, default_value_t = Format::Table, value_name = "FORMAT", global = true)]
    pub(crate) format: Format,

    /// Leave out column names
    #[arg(long, global = true)]
    pub(crate) no_header: bool,

    /// Go on after a statement that failed (the exit code is still 1)
    #[arg(long)]
    pub(crate) keep_going: bool,

    /// Change a setting for this run (see system.settings)
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, global = true)]
    pub(crate) set: Vec<(String, String)>,

    /// Say more on standard error; twice for details (RUST_LOG chooses finer)
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) subcommand: Option<Task>,

    /// What to run, in the order of the command line.
    #[arg(skip)]
    pub(crate) inputs: Vec<Input>,
}

/// What to do instead of running SQL.
#[derive(Subcommand, Debug)]
pub(crate) enum Task {
    /// Make a small click log, open it and run a few queries over it
    Demo(DemoArgs),
    /// Look after cached results
    #[command(subcommand)]
    Cache(CacheTask),
    /// Look after reports: queries that `nectarine serve` runs by the clock
    #[command(subcommand)]
    Report(ReportTask),
    /// Leave statements to the servers of a home: they outlive this program, and any server
    #[command(subcommand)]
    Job(JobTask),
    /// Serve the home to other programs
    Serve(ServeArgs),
    /// Compute for a server that runs elsewhere (`nectarine serve --cluster ADDR`)
    Executor(ExecutorArgs),
}

/// What to do with reports.
#[derive(Subcommand, Debug)]
pub(crate) enum ReportTask {
    /// List them, with their next and last times
    Ls,
    /// Show one: what it does, and its last runs
    Show {
        /// Its name
        name: String,
    },
    /// Run one now
    Run {
        /// Its name
        name: String,
        /// For this time instead of now, by the report's time zone
        #[arg(long = "for", value_name = "TIME")]
        time: Option<String>,
    },
    /// Let its times pass without runs
    Pause {
        /// Its name
        name: String,
    },
    /// Run it by its schedule again, from now on
    Resume {
        /// Its name
        name: String,
    },
    /// Forget it, and its runs; its outputs stay
    Drop {
        /// Its name
        name: String,
    },
    /// Make the reports what the .sql files of a folder say
    Apply {
        /// Where the files are
        folder: PathBuf,
        /// Only say what would change
        #[arg(long)]
        dry_run: bool,
        /// Drop reports that no file stands for
        #[arg(long)]
        prune: bool,
    },
    /// Say what applying a folder would change, line by line
    Diff {
        /// Where the files are
        folder: PathBuf,
    },
}

/// What to do with jobs.
#[derive(Subcommand, Debug)]
pub(crate) enum JobTask {
    /// Leave statements to `nectarine serve`, and print the job's identifier
    Submit(SubmitArgs),
    /// List them, the oldest first
    Ls,
    /// Show one: what it does, and how far it is
    Show {
        /// Its identifier
        id: String,
    },
    /// Return when one has ended; the exit code says whether it finished
    Wait {
        /// Its identifier
        id: String,
        /// Give up after so long; the job goes on
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u32>,
    },
    /// End one, whether it waits or runs; what its statements have done stays
    Cancel {
        /// Its identifier
        id: String,
    },
    /// Print the rows of its last query
    Result {
        /// Its identifier
        id: String,
    },
    /// Forget one that has ended, and its rows
    Drop {
        /// Its identifier
        id: String,
    },
}

#[derive(ClapArgs, Debug)]
pub(crate) struct SubmitArgs {
    /// These statements, separated by ';'; may be repeated
    #[arg(short, long, value_name = "SQL", required_unless_present = "file")]
    pub(crate) command: Vec<String>,

    /// The statements in this file ('-' is standard input), after those of -c; may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,

    /// What to call it
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,

    /// End it if it takes longer, such as '2 hours', from its beginning on
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct ServeArgs {
    /// Read what follows from a TOML file, with underscores in place of hyphens; flags win. Settings are below [settings]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Where to listen for Flight SQL (JDBC, ADBC) [default: 127.0.0.1:32010]
    #[arg(long, value_name = "ADDR")]
    pub(crate) flight: Option<SocketAddr>,

    /// The server's certificate, a PEM file with those between it and its root; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Its key, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Ask clients for a certificate of one of these roots, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_client_ca: Option<PathBuf>,

    /// Let passwords and rows travel in plain text beyond this machine: something else keeps them secret
    #[arg(long, conflicts_with = "tls_cert")]
    pub(crate) plain_text: bool,

    /// Where to tell how the server is: /healthz, /readyz, /metrics over HTTP [default: nowhere]
    #[arg(long, value_name = "ADDR")]
    pub(crate) monitor: Option<SocketAddr>,

    /// Write logs as JSON, one object a line
    #[arg(long)]
    pub(crate) log_json: bool,

    /// How many statements compute at a time; others wait for their turn [default: four for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) statements_max: Option<u32>,

    /// How many of them one user may have, also where there is room for more [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) user_statements_max: Option<u32>,

    /// How many statements may wait; more are refused [default: 10000]
    #[arg(long, value_name = "N")]
    pub(crate) waiting_max: Option<u32>,

    /// How long a login lasts [default: 12]
    #[arg(long, value_name = "HOURS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) login_hours: Option<u32>,

    /// Do not run reports: another server does, or nobody is to
    #[arg(long)]
    pub(crate) no_reports: bool,

    /// Do not run jobs: another server does, or nobody is to
    #[arg(long)]
    pub(crate) no_jobs: bool,

    /// Where to listen for executors (`nectarine executor`), which large queries then run on [default: nowhere]
    #[arg(long, value_name = "ADDR")]
    pub(crate) cluster: Option<SocketAddr>,

    /// File with the secret that executors have to know; without it NECTARINE_CLUSTER_SECRET. Needed where others than this machine can
    /// reach the port of --cluster
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) secret_file: Option<PathBuf>,

    /// Ask for no password: everybody who can connect may do everything (only on 127.0.0.1 or [::1])
    #[arg(long)]
    pub(crate) no_auth: bool,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct ExecutorArgs {
    /// Where the server listens for executors
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) server: String,

    /// Where the server and other executors reach this one
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub(crate) host: String,

    /// Port for rows [default: any that is free]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// Port for tasks [default: any that is free]
    #[arg(long, value_name = "PORT")]
    pub(crate) task_port: Option<u16>,

    /// How many tasks compute at a time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cores: Option<u32>,

    /// Memory of all tasks: a size such as 8GB, or a share of the machine's memory
    #[arg(long, value_name = "SIZE", default_value = "60%")]
    pub(crate) memory: String,

    /// Folder for rows on their way between stages [default: one that goes with the executor]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// File with the secret of the server; without it NECTARINE_CLUSTER_SECRET. Needed where others than this machine can reach the
    /// executor
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

/// What to do with cached results.
#[derive(Subcommand, Debug)]
pub(crate) enum CacheTask {
    /// List them, the dearest first; a star marks what is pinned
    Ls,
    /// Show one: what it is, where it is, what it was computed from
    Show {
        /// Its fingerprint, or the beginning of it
        fingerprint: String,
    },
    /// Delete some; the next query that needs them computes them again
    Rm {
        /// Their fingerprints, or the beginnings of them
        #[arg(required = true)]
        fingerprints: Vec<String>,
    },
    /// Delete all
    Clear,
    /// Keep some from being evicted to make room (the statement PIN does so for queries and materialized views)
    Pin {
        /// Their fingerprints, or the beginnings of them
        #[arg(required = true)]
        fingerprints: Vec<String>,
    },
    /// Let some be evicted again
    Unpin {
        /// Their fingerprints, or the beginnings of them
        #[arg(required = true)]
        fingerprints: Vec<String>,
    },
    /// Say how many there are, what they saved, and how much room there is
    Stats,
    /// Remove files that no result needs, and say what went; happens by itself now and then
    Collect,
    /// Read all of them and say which are missing or damaged (the statement VERIFY computes them anew and compares)
    Verify,
    /// Run queries for what they leave in the cache, and say what was there and what was made
    Warm(WarmArgs),
    /// Show what one was made of, or all of them: other results, tables, files
    Provenance {
        /// For Graphviz
        #[arg(long)]
        dot: bool,
        /// Its fingerprint, or the beginning of it
        fingerprint: Option<String>,
    },
}

#[derive(ClapArgs, Debug)]
pub(crate) struct WarmArgs {
    /// Run these queries, separated by ';'; may be repeated
    #[arg(short, long, value_name = "SQL", required_unless_present = "file")]
    pub(crate) command: Vec<String>,

    /// Run the queries in this file ('-' is standard input); may be repeated
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct DemoArgs {
    /// Clicks on an ordinary day
    #[arg(long, default_value_t = 14_000, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=5_000_000))]
    pub(crate) clicks_per_day: u32,
}

/// One thing to run.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Text(String),
    File(PathBuf),
}

impl Args {
    /// Parses the process's arguments; help, version and mistakes end the process.
    pub(crate) fn from_command_line() -> Self {
        let matches = Self::command().get_matches();
        Self::from_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    fn from_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = Self::from_arg_matches(matches)?;
        // Clap keeps -c and -f apart; their places on the command line say how they alternate.
        let places = |name| matches.indices_of(name).into_iter().flatten();
        let texts = places("command").zip(std::mem::take(&mut args.command)).map(|(at, text)| (at, Input::Text(text)));
        let files = places("file").zip(std::mem::take(&mut args.file)).map(|(at, path)| (at, Input::File(path)));
        let mut inputs: Vec<_> = texts.chain(files).collect();
        inputs.sort_by_key(|(at, _)| *at);
        args.inputs = inputs.into_iter().map(|(_, input)| input).collect();
        Ok(args)
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_keep_their_order() {
        let matches =
            Args::command().get_matches_from(["nectarine", "-c", "a", "-f", "b.sql", "--command", "c", "-f", "-"]);
        let args = Args::from_matches(&matches).unwrap();
        assert_eq!(format!("{:?}", args.inputs), r#"[Text("a"), File("b.sql"), Text("c"), File("-")]"#);
    }

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
        assert_eq!(setting("a.b = c=d"), Ok(("a.b".to_owned(), "c=d".to_owned())));
        assert!(setting("novalue").is_err());
    }
}
