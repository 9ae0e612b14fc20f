//! Exact hits over Flight SQL: how long one takes, and how many there are in a second, with clients and server on one machine.
//!
//! ```text
//!   here      the session in this process, for what the wire adds
//!   one       one client, one statement after the other
//!   many      several clients at once, each on a connection of its own
//! ```
//!
//! Users log in as they would; each statement is GetFlightInfo and DoGet, and its rows are decoded. An answer that is no exact hit
//! ends the benchmark.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nectarine_engine::{Answer, Engine, FlightOptions, FlightServer, Login, Progress, RemoteSession, Reused};

use crate::args::FlightArgs;
use crate::timing::Samples;

/// What must hold on two cores.
pub(crate) const MEDIAN_MS_MAX: f64 = 3.0;
pub(crate) const HITS_PER_SECOND_MIN: f64 = 3_000.0;

const QUERY: &str = "SELECT g, count(*) AS n, sum(a) AS total FROM numbers GROUP BY g ORDER BY g";
const GROUPS: usize = 10;

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) args: FlightArgs,
    pub(crate) here: Samples,
    pub(crate) one: Samples,
    pub(crate) many: Samples,
    pub(crate) hits_per_second: f64,
}

pub(crate) async fn measure(args: &FlightArgs) -> Result<Figures> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let engine = Box::pin(Engine::builder().home(folder.path()).open()).await?;
    let session = engine.session();
    let rows = "SELECT a, a % 10 AS g FROM generate_series(1, 1000000) AS s (a)";
    session.execute(&format!("CREATE TABLE numbers AS {rows}")).await?.collect().await?;
    session.execute("CREATE USER bench PASSWORD 'a long password' ADMIN").await?;
    let options = FlightOptions::new("127.0.0.1:0".parse()?);
    let server = Box::pin(FlightServer::start(&engine, options)).await?;
    let url = server.url();
    let one = connect(&url).await?;
    // Computed once by each who asks, and written down.
    for _ in 0..2 {
        session.execute(QUERY).await?.collect().await?;
        one.execute_observed(QUERY, &Progress::new()).await?.collect().await?;
        engine.cache().settled().await;
    }
    let (mut here, mut alone) = (Samples::default(), Samples::default());
    for _ in 0..args.requests {
        let started = Instant::now();
        here.push(end(started, session.execute(QUERY).await?).await?);
    }
    for _ in 0..args.requests {
        alone.push(ask(&one).await?);
    }
    let mut clients = vec![];
    for _ in 0..args.clients {
        let client = connect(&url).await?;
        client.execute_observed(QUERY, &Progress::new()).await?.collect().await?;
        clients.push(client);
    }
    let started = Instant::now();
    let until = started + Duration::from_secs(u64::from(args.seconds));
    let tasks: Vec<_> = clients.into_iter().map(|client| tokio::spawn(ask_until(client, until))).collect();
    let mut many = Samples::default();
    for task in tasks {
        task.await??.into_iter().for_each(|time| many.push(time));
    }
    let hits_per_second = many.len() as f64 / started.elapsed().as_secs_f64();
    Box::pin(server.stop()).await;
    engine.shutdown().await;
    Ok(Figures { args: args.clone(), here, one: alone, many, hits_per_second })
}

async fn ask_until(client: RemoteSession, until: Instant) -> Result<Vec<Duration>> {
    let mut times = vec![];
    while Instant::now() < until {
        times.push(ask(&client).await?);
    }
    Ok(times)
}

async fn connect(url: &str) -> Result<RemoteSession> {
    let login = Login::Password { user: "bench", password: "a long password" };
    Ok(Box::pin(RemoteSession::connect(url, None, login)).await?)
}

/// Asks once.
async fn ask(client: &RemoteSession) -> Result<Duration> {
    let started = Instant::now();
    end(started, client.execute_observed(QUERY, &Progress::new()).await?).await
}

/// Reads an answer to its end.
async fn end(started: Instant, answer: Answer) -> Result<Duration> {
    let receipt = answer.receipt();
    let batches = answer.collect().await?;
    let time = started.elapsed();
    let n_rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    ensure!(n_rows == GROUPS, "an answer has {n_rows} rows");
    ensure!(receipt().reused == Reused::Exact, "an answer was no exact hit");
    Ok(time)
}
