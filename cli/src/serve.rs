//! `nectarine serve`: the home for other programs, until somebody says that it is enough.

pub(crate) mod config;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use nectarine_engine::{ClusterOptions, Engine, FlightOptions, FlightServer, Monitor, TlsOptions, cluster_secret};
use tokio::runtime::Runtime;

use crate::args::ServeArgs;
use crate::exec::Flow;

/// Where Flight SQL is expected.
const PORT: u16 = 32010;

pub(crate) fn run(runtime: &Runtime, engine: &Engine, args: &ServeArgs) -> anyhow::Result<Flow> {
    let address = args.flight.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
    let mut options = FlightOptions { no_auth: args.no_auth, ..FlightOptions::new(address) };
    options.plain_text = args.plain_text;
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let (certificate, key) = (certificate.clone(), key.clone());
        options.tls = Some(TlsOptions { certificate, key, client_roots: args.tls_client_ca.clone() });
    }
    if let Some(n) = args.statements_max {
        options.statements_max = n as usize;
    }
    if let Some(n) = args.user_statements_max {
        options.user_statements_max = n as usize;
    }
    if let Some(n) = args.waiting_max {
        options.waiting_max = n as usize;
    }
    if let Some(hours) = args.login_hours {
        options.token_life = Duration::from_secs(3600 * u64::from(hours));
    }
    runtime.block_on(async {
        let mut stop = Stop::listen().context("cannot listen to signals")?;
        let server = FlightServer::start(engine, options).await?;
        if let Some((user, password)) = server.first_login() {
            writeln!(std::io::stdout(), "made user \"{user}\" with password {password} (this is not told again)")?;
        }
        let monitor = match args.monitor {
            Some(address) => Some(Monitor::start(engine, &server, address).await?),
            None => None,
        };
        if let Some(monitor) = &monitor {
            writeln!(std::io::stdout(), "Metrics at http://{}/metrics", monitor.address())?;
        }
        if let Some(address) = args.cluster {
            let secret = cluster_secret(args.secret_file.as_deref())?;
            let address = engine.start_cluster(ClusterOptions { address, secret }).await?;
            writeln!(std::io::stdout(), "Executors at {address}")?;
        }
        // For who started it and has to know the port.
        writeln!(std::io::stdout(), "Flight SQL at {}", server.url())?;
        std::io::stdout().flush()?;
        let reports = (!args.no_reports).then(|| engine.reports().start());
        let jobs = (!args.no_jobs).then(|| engine.jobs().start());
        stop.asked().await;
        if let Some(jobs) = jobs {
            jobs.stop().await;
        }
        if let Some(reports) = reports {
            reports.stop().await;
        }
        // Whoever asks twice does not want to wait.
        tokio::select! {
            () = server.stop() => {}
            () = stop.asked() => {}
        }
        Ok(Flow::Done)
    })
}

#[cfg(unix)]
pub(crate) use unix::Stop;

#[cfg(not(unix))]
pub(crate) use other::Stop;

#[cfg(unix)]
mod unix {
    //! Ctrl-C, and what systemd and containers send.

    use tokio::signal::unix::{Signal, SignalKind, signal};

    pub(crate) struct Stop {
        interrupt: Signal,
        terminate: Signal,
    }

    impl Stop {
        pub(crate) fn listen() -> std::io::Result<Self> {
            Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
        }

        /// Returns when somebody wants the program to end.
        pub(crate) async fn asked(&mut self) {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
        }
    }
}

#[cfg(not(unix))]
mod other {
    //! Ctrl-C.

    pub(crate) struct Stop;

    impl Stop {
        pub(crate) fn listen() -> std::io::Result<Self> {
            Ok(Self)
        }

        /// Returns when somebody wants the program to end.
        pub(crate) async fn asked(&mut self) {
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}
