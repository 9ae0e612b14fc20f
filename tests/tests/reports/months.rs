//! Months of reports over a table that grows every day, with the clock driven: every scheduled time has one output, equal to the
//! same query by stock DataFusion on the data of that time. A second home has the same reports and data, and reuse off: its outputs are the
//! same, and what its runs take tells what reuse saves.
//!
//! `NECTARINE_REPORTS=500 NECTARINE_REPORT_DAYS=90 NECTARINE_REPORT_ROWS=20000` (rows a day) is the whole of it; the default is enough for every day.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use nectarine_engine::CsvText;
use nectarine_tests::clock::DrivenClock;
use nectarine_tests::db::Db;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::run_due;

const SHOPS: [&str; 7] = ["north", "south", "east", "west", "hill", "lake", "port"];

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

/// Queries that people would have run every day.
fn query(n: usize) -> String {
    let (bound, shop) = (n / 6 % 40, SHOPS[n / 6 % SHOPS.len()]);
    match n % 6 {
        0 => format!(
            "SELECT shop, count(*) AS n, sum(amount) AS amount FROM sales WHERE amount >= {bound} GROUP BY shop ORDER BY shop"
        ),
        1 => format!(
            "SELECT day, sum(amount) AS amount FROM sales WHERE shop <> '{shop}' AND amount <> {bound} GROUP BY day ORDER BY day"
        ),
        2 => {
            format!("SELECT count(*) AS n, min(amount) AS least, max(amount) AS most FROM sales WHERE amount > {bound}")
        }
        3 => format!(
            "SELECT day, shop, amount FROM sales WHERE amount > {} ORDER BY amount DESC, day, shop LIMIT 20",
            900 + bound
        ),
        4 => format!(
            "SELECT item % {} AS bin, count(DISTINCT shop) AS shops, sum(amount) AS amount FROM sales GROUP BY item % {} ORDER BY bin",
            bound + 2,
            bound + 2
        ),
        _ => format!("SELECT shop, avg(amount + {bound}) AS mean FROM sales GROUP BY shop ORDER BY shop"),
    }
}

/// Schedules by their number of times a week, about.
fn schedule(n: usize) -> (&'static str, &'static str) {
    match n % 5 {
        0 => ("0 6 * * *", "Europe/Berlin"),
        1 => ("30 2 * * *", "Europe/Berlin"),
        2 => ("0 9 * * MON-FRI", "America/New_York"),
        3 => ("15 0 * * MON", "Asia/Kolkata"),
        _ => ("0 */12 * * *", "UTC"),
    }
}

fn day_of_rows(random: &mut StdRng, day: usize, n_rows: usize) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![
        Field::new("day", DataType::Int64, true),
        Field::new("shop", DataType::Utf8, true),
        Field::new("item", DataType::Int64, true),
        Field::new("amount", DataType::Int64, true),
    ]));
    let shops = (0..n_rows).map(|_| SHOPS[random.random_range(0..SHOPS.len())]);
    let shops = Arc::new(StringArray::from_iter_values(shops));
    let items = Arc::new(Int64Array::from_iter_values((0..n_rows).map(|_| random.random_range(0..10_000))));
    let amounts = Arc::new(Int64Array::from_iter_values((0..n_rows).map(|_| random.random_range(0..1000))));
    let days = Arc::new(Int64Array::from_iter_values(std::iter::repeat_n(day as i64, n_rows)));
    RecordBatch::try_new(schema, vec![days, shops, items, amounts]).expect("a batch")
}

/// The answer of stock DataFusion, as a report would write it.
async fn stock(context: &SessionContext, sql: &str) -> String {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let (text, mut bytes) = (CsvText::plain(b',', ""), vec![]);
    text.header(&schema, &mut bytes);
    batches.iter().for_each(|batch| text.rows(batch, &mut bytes).expect("text"));
    String::from_utf8(bytes).expect("text")
}

/// Processor time of this process, in hundredths of a second.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind = text.rsplit(')').next().unwrap_or_default();
    behind.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_time_has_one_output_equal_to_stock_datafusion() {
    let (n_reports, n_days) = (number("NECTARINE_REPORTS", 15), number("NECTARINE_REPORT_DAYS", 9));
    let n_rows = number("NECTARINE_REPORT_ROWS", 2000);
    // Through the end of summer time in Europe and America.
    let clock = DrivenClock::at("2026-10-20T00:00:00Z");
    let db = Db::by(Arc::clone(&clock) as _, &[]).await;
    let plain = Db::by(Arc::clone(&clock) as _, &[("nectarine.reuse", "off")]).await;
    let mut random = StdRng::seed_from_u64(1);
    for db in [&db, &plain] {
        db.ok("CREATE TABLE sales (day BIGINT, shop TEXT, item BIGINT, amount BIGINT)").await;
        for n in 0..n_reports {
            let (cron, zone) = schedule(n);
            db.ok(&format!(
                "CREATE REPORT r{n} SCHEDULE '{cron}' TIME ZONE '{zone}' OUTPUT '{{dir}}/out/{{report}}-{{timestamp}}.csv' CATCH UP ALL AS {}",
                query(n)
            ))
            .await;
        }
    }
    let mut all: Vec<RecordBatch> = vec![];
    let (mut with_reuse, mut without, mut queries_alone, mut n_checked) = (0, 0, 0, 0);
    // Two looks a day: what is due between them runs on the data that is there at the second.
    for half in 0..n_days * 2 {
        if half % 2 == 0 {
            let rows = day_of_rows(&mut random, half / 2, n_rows);
            let table = MemTable::try_new(rows.schema(), vec![vec![rows.clone()]]).expect("a table");
            let table = Arc::new(table);
            for feeder in [db.client(), plain.client()] {
                feeder.session().register_table("fresh", Arc::clone(&table) as _);
                feeder.ok("INSERT INTO sales SELECT * FROM fresh").await;
            }
            all.push(rows);
        }
        clock.pass(12 * 3600);
        let before = cpu();
        run_due(&db).await;
        with_reuse += cpu() - before;
        let before = cpu();
        run_due(&plain).await;
        without += cpu() - before;
        let context = SessionContext::new();
        let table = MemTable::try_new(all[0].schema(), vec![all.clone()]).expect("a table");
        context.register_table("sales", Arc::new(table)).expect("a free name");
        let outputs = std::fs::read_dir(db.folder().join("out")).into_iter().flatten().flatten();
        let outputs: Vec<_> = outputs.map(|output| output.path()).collect();
        let mut expected: BTreeMap<usize, String> = BTreeMap::new();
        for path in outputs {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            assert!(!name.starts_with('.'), "nothing hidden is left: {name}");
            let n: usize = name[1..].split('-').next().and_then(|n| n.parse().ok()).expect("a number");
            if let Entry::Vacant(unknown) = expected.entry(n) {
                unknown.insert(stock(&context, &query(n)).await);
            }
            let without_reuse = plain.folder().join("out").join(&name);
            for path in [&path, &without_reuse] {
                assert_eq!(std::fs::read_to_string(path).expect("a file"), expected[&n], "{name}: {}", query(n));
                // Looked at; what comes later must not be taken for it.
                std::fs::remove_file(path).expect("a file");
            }
            n_checked += 1;
        }
        // The queries alone, without what a run does around them.
        let off = db.client();
        off.ok("SET nectarine.reuse = 'off'").await;
        let before = cpu();
        for n in expected.keys() {
            off.ok(&query(*n)).await;
        }
        queries_alone += cpu() - before;
    }
    let states = db.ok("SELECT state, count(*), max(attempt) FROM system.report_runs GROUP BY state").await;
    assert_eq!(states, format!("finished|{n_checked}|1"), "one output for each time");
    // By hand: times of each schedule in these days.
    let daily = db.ok("SELECT count(*) FROM system.report_runs WHERE report = 'r0'").await;
    assert_eq!(daily, n_days.to_string(), "six o'clock comes once a day, whatever the clock does");
    let kinds = db.ok("SELECT reused, count(*), round(sum(saved_ms) / 1000) FROM system.report_runs GROUP BY reused ORDER BY reused").await;
    let saved = 100.0 * (1.0 - with_reuse as f64 / without as f64);
    println!(
        "{n_checked} outputs of {n_reports} reports over {n_days} days, {n_rows} rows a day: {with_reuse} ticks of processor time with reuse, \
         {without} without, {saved:.0} % saved; the queries alone, without reuse and runs, {queries_alone}\n{kinds}"
    );
}
