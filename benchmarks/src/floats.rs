//! What exact sums of floats cost: the same queries with `nectarine.float_sums` exact and fast, in turn.
//!
//! Lines of orders as in TPC-H, but with floats for quantities and prices. Reuse is off.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow::array::{ArrayRef, Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;

use crate::args::FloatsArgs;
use crate::client::Client;
use crate::random::Random;
use crate::{REST, machine};

/// Raised when the files would come out differently.
const LAYOUT: u32 = 1;
const FILES: u32 = 4;

/// The most that exact sums may cost to be the default.
pub(crate) const RATIO_MAX: f64 = 1.10;

/// Names and texts.
const QUERIES: [(&str, &str); 5] = [
    (
        "pricing summary (q1)",
        "SELECT flag, status, sum(quantity), sum(price), sum(price * (1 - discount)), \
         sum(price * (1 - discount) * (1 + tax)), avg(quantity), avg(price), avg(discount), count(*) \
         FROM lines WHERE shipped <= DATE '1998-09-02' GROUP BY flag, status",
    ),
    (
        "forecast of revenue (q6)",
        "SELECT sum(price * discount) FROM lines WHERE shipped >= DATE '1994-01-01' AND shipped < DATE '1995-01-01' \
         AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24",
    ),
    ("one sum of all", "SELECT sum(price), avg(price) FROM lines"),
    ("by part", "SELECT part, sum(price), avg(quantity) FROM lines GROUP BY part"),
    ("by order", "SELECT order_id, sum(price * (1 - discount)) FROM lines GROUP BY order_id ORDER BY 2 DESC LIMIT 10"),
];

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) args: FloatsArgs,
    pub(crate) queries: Vec<QueryFigures>,
}

/// One query: processor time of each pair, in seconds.
pub(crate) struct QueryFigures {
    pub(crate) name: &'static str,
    pub(crate) pairs: Vec<(f64, f64)>,
}

impl QueryFigures {
    /// The median of exact against fast.
    pub(crate) fn ratio(&self) -> f64 {
        let mut ratios: Vec<f64> = self.pairs.iter().map(|(exact, fast)| exact / fast).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    }
}

impl Figures {
    /// The geometric mean of the queries' ratios.
    pub(crate) fn mean(&self) -> f64 {
        let sum: f64 = self.queries.iter().map(|query| query.ratio().ln()).sum();
        (sum / self.queries.len() as f64).exp()
    }
}

/// Makes the data if it is not there and measures.
pub(crate) async fn measure(args: &FloatsArgs, folder: &Path) -> Result<Figures> {
    let files = tokio::task::block_in_place(|| prepare(folder, args.rows))?;
    let client = Client::open(machine::n_cores().max(1)).await?;
    client.create_table("lines", "", "PARQUET", &files).await?;
    client.set_reuse(false).await?;
    let mut queries = vec![];
    for (name, sql) in QUERIES {
        let mut pairs = vec![];
        for pair in 0..=args.runs {
            let mut times = [0.0; 2];
            // Who goes first alternates.
            let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
            for which in order {
                let sums = ["exact", "fast"][which];
                client.run(&format!("SET nectarine.float_sums = '{sums}'")).await?;
                let asked = client.ask(sql).await?;
                asked.outcome?;
                times[which] = asked.cpu.as_secs_f64();
            }
            // The first pair warms up.
            if pair > 0 {
                pairs.push((times[0], times[1]));
            }
        }
        let figures = QueryFigures { name, pairs };
        eprintln!("{name}: {:.3}", figures.ratio());
        queries.push(figures);
    }
    client.close().await;
    Ok(Figures { args: args.clone(), queries })
}

fn prepare(base: &Path, n_rows: u32) -> Result<PathBuf> {
    let name = format!("lines-{n_rows}r-v{LAYOUT}");
    let folder = base.join(&name);
    if folder.exists() {
        return Ok(folder);
    }
    let unfinished = tempfile::Builder::new().prefix(&name).tempdir_in(base)?;
    for file in 0..FILES {
        let path = unfinished.path().join(format!("{file:02}.parquet"));
        write_lines(&path, file, n_rows / FILES).with_context(|| format!("cannot write \"{}\"", path.display()))?;
    }
    fs::rename(unfinished.keep(), &folder)?;
    std::thread::sleep(REST);
    Ok(folder)
}

fn write_lines(path: &Path, file: u32, n_rows: u32) -> Result<()> {
    let mut random = Random::new(u64::from(file));
    let first = i64::from(file) * i64::from(n_rows);
    let rows = 0..i64::from(n_rows);
    let quantities: Vec<f64> = rows.clone().map(|_| 1.0 + random.below(50) as f64).collect();
    let prices: Vec<f64> =
        quantities.iter().map(|quantity| quantity * (90_000 + random.below(110_000)) as f64 / 100.0).collect();
    let percent =
        |random: &mut Random, end: u64| -> Vec<f64> { (0..n_rows).map(|_| random.below(end) as f64 / 100.0).collect() };
    let (discounts, taxes) = (percent(&mut random, 11), percent(&mut random, 9));
    let letters = |random: &mut Random, of: [&'static str; 3]| -> Vec<&'static str> {
        (0..n_rows).map(|_| of[random.below(3) as usize]).collect()
    };
    let (flags, statuses) = (letters(&mut random, ["A", "N", "R"]), letters(&mut random, ["F", "O", "O"]));
    let parts: Vec<i64> = rows.clone().map(|_| random.below(200_000).cast_signed()).collect();
    let days: Vec<i32> = rows.clone().map(|_| 8_036 + random.below(2_526) as i32).collect();
    let batch = RecordBatch::try_from_iter([
        ("order_id", Arc::new(Int64Array::from_iter_values(rows.map(|row| (first + row) / 4))) as ArrayRef),
        ("part", Arc::new(Int64Array::from(parts))),
        ("quantity", Arc::new(Float64Array::from(quantities))),
        ("price", Arc::new(Float64Array::from(prices))),
        ("discount", Arc::new(Float64Array::from(discounts))),
        ("tax", Arc::new(Float64Array::from(taxes))),
        ("flag", Arc::new(StringArray::from_iter_values(flags))),
        ("status", Arc::new(StringArray::from_iter_values(statuses))),
        ("shipped", Arc::new(Date32Array::from(days))),
    ])?;
    let mut writer = ArrowWriter::try_new(File::create(path)?, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}
