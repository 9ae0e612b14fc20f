//! Reports: one output for each scheduled time, whatever happens.

mod bad_input;
mod bucket;
mod by_the_clock;
mod files;
mod kills;
mod months;
mod page;
mod rights;

use std::sync::Arc;

use nectarine_tests::clock::DrivenClock;
use nectarine_tests::db::Db;

/// A home on Tuesday, 17 November 2026, with a small table.
async fn home() -> (Db, Arc<DrivenClock>) {
    let clock = DrivenClock::at("2026-11-17T00:00:00Z");
    let db = Db::by(Arc::clone(&clock) as _, &[]).await;
    db.ok("CREATE TABLE sales (day DATE, shop TEXT, amount BIGINT)").await;
    db.ok("INSERT INTO sales VALUES ('2026-11-16', 'north', 10), ('2026-11-16', 'south', 20)").await;
    (db, clock)
}

/// Runs all that is due; how many runs that were.
async fn run_due(db: &Db) -> usize {
    db.engine().reports().run_due().await.expect("reports are run")
}

/// Runs with their states, the oldest first.
async fn runs(db: &Db) -> String {
    db.ok("SELECT report, scheduled_for, state FROM system.report_runs ORDER BY scheduled_for, report").await
}

fn read(db: &Db, name: &str) -> String {
    std::fs::read_to_string(db.folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}
