//! [`Tables`]: what generated statements read, here and in stock DataFusion.
//!
//! ```text
//!   m, n   managed                                   z   managed, and never fed
//!   e      external Parquet, one file after another  h   external Parquet in Hive partitions, some files equal
//!   c      external CSV: new files, and old ones that grow
//!   j      external NDJSON, the same; only where tables change, see `changes`
//! ```
//!
//! All have the same columns, so that every statement fits every table. Values repeat, and NULL, NaN and -0.0 are among
//! them. Most floats are quarters: their sums are exact in whatever order they are added. `views` has what stands on them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use datafusion::catalog::TableProvider;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

use super::{Harness, Random, stock_context};
use crate::files;

/// Columns of every table.
const COLUMNS: &str = "id BIGINT, k INT, g TEXT, d DECIMAL(12,2), f DOUBLE, b BOOLEAN, ts TIMESTAMP, dt DATE";

/// Names, with what generated statements read most first.
pub(super) const NAMES: [&str; 6] = ["m", "e", "c", "h", "n", "z"];

/// Microseconds of the first timestamp.
const EPOCH_US: i64 = 1_700_000_000_000_000;

struct Row {
    id: i64,
    k: Option<i32>,
    g: Option<&'static str>,
    cents: Option<i64>,
    f: Option<f64>,
    b: Option<bool>,
    ts: Option<i64>,
    dt: Option<i32>,
}

/// The tables of a harness.
pub struct Tables {
    pub(super) folder: PathBuf,
    pub(super) n_files: usize,
    /// External tables.
    pub(super) external: Vec<&'static str>,
    /// Whether times go on from file to file, as in a log.
    pub(super) slides: bool,
    /// What was inserted last.
    pub(super) last_values: Option<String>,
    /// Files that were taken out: where they were, and where they are.
    pub(super) away: Vec<(PathBuf, PathBuf)>,
    pub(super) stock: Option<SessionContext>,
    /// The rows that derived tables had when they were made, for stock DataFusion.
    pub(super) snapshots: BTreeMap<&'static str, Arc<dyn TableProvider>>,
}

impl Tables {
    /// Makes them, with some rows in each.
    pub async fn new(harness: &mut Harness) -> Self {
        let mut tables = Self {
            folder: harness.folder(),
            n_files: 0,
            external: vec![],
            slides: false,
            last_values: None,
            away: vec![],
            stock: None,
            snapshots: BTreeMap::new(),
        };
        for name in ["m", "n", "z"] {
            harness.run(&format!("CREATE TABLE {name} ({COLUMNS})")).await;
        }
        for name in ["e", "c", "h"] {
            tables.add_external(harness, name).await;
        }
        for name in ["m", "m", "n"] {
            tables.feed(harness, name).await;
        }
        tables.make_views(harness).await;
        tables
    }

    pub(super) async fn add_external(&mut self, harness: &mut Harness, name: &'static str) {
        std::fs::create_dir_all(self.folder.join(name)).expect("a folder can be made");
        for _ in 0..2 {
            self.feed(harness, name).await;
        }
        harness.run(&self.external(name)).await;
        self.external.push(name);
    }

    fn external(&self, name: &str) -> String {
        let location = self.folder.join(name);
        let (columns, format, more) = match name {
            "c" => (COLUMNS.to_owned(), "CSV", "OPTIONS ('format.has_header' 'true')"),
            "j" => (COLUMNS.to_owned(), "JSON", ""),
            "h" => (format!("{COLUMNS}, p INT"), "PARQUET", "PARTITIONED BY (p)"),
            _ => (COLUMNS.to_owned(), "PARQUET", ""),
        };
        let (before, after) = if name == "h" { (more, "") } else { ("", more) };
        let location = location.display();
        format!("CREATE EXTERNAL TABLE {name} ({columns}) STORED AS {format} {before} LOCATION '{location}/' {after}")
    }

    /// Adds rows to some table.
    pub async fn grow(&mut self, harness: &mut Harness) {
        let name = *harness.random.pick(&NAMES[..5]);
        self.feed(harness, name).await;
        if harness.random.chance(20) {
            self.take_snapshots(harness).await;
        }
    }

    pub(super) async fn feed(&mut self, harness: &mut Harness, name: &str) {
        self.stock = None;
        self.n_files += 1;
        let random = &mut harness.random;
        let n_rows = *random.pick(&[0, 1, 5, 12, 12, 20]);
        let day = self.slides.then_some(self.n_files as i64 / 4);
        // Files of which many have keys that few others have.
        let keys = day.filter(|_| random.chance(70));
        let rows: Vec<Row> = (0..n_rows).map(|_| Row::new(random, name == "c", day, keys)).collect();
        let path = self.folder.join(name).join(format!("{:04}", self.n_files));
        match name {
            "e" => files::appear(&path.with_extension("parquet"), &parquet(&rows)),
            "h" => {
                let bytes = parquet(&rows);
                // The same bytes in two partitions are different rows.
                for p in [random.between(1, 4), random.between(1, 4)] {
                    let folder = self.folder.join(format!("h/p={p}"));
                    std::fs::create_dir_all(&folder).expect("a folder can be made");
                    files::appear(&folder.join(format!("{:04}.parquet", self.n_files)), &bytes);
                }
            }
            "c" | "j" => {
                let old = super::damage::files(&self.folder.join(name));
                let grows = !old.is_empty() && random.chance(50);
                let line = if name == "c" { Row::csv } else { Row::json };
                let text: String = rows.iter().map(line).collect();
                let header = if name == "c" { "id,k,g,d,f,b,ts,dt\n" } else { "" };
                match grows {
                    true => files::append(random.pick::<PathBuf>(&old), text),
                    false => {
                        let extension = if name == "c" { "csv" } else { "json" };
                        files::appear(&path.with_extension(extension), format!("{header}{text}").as_bytes());
                    }
                }
            }
            _ if rows.is_empty() => harness.run(&format!("INSERT INTO {name} SELECT * FROM {name} WHERE false")).await,
            _ => {
                let values: Vec<String> = rows.iter().map(Row::values).collect();
                let values = values.join(", ");
                harness.run(&format!("INSERT INTO {name} VALUES {values}")).await;
                self.last_values = Some(values);
            }
        }
    }

    /// Stock DataFusion over the same files.
    pub async fn stock(&mut self, harness: &Harness) -> SessionContext {
        if let Some(stock) = &self.stock {
            return stock.clone();
        }
        let stock = stock_context();
        for name in &self.external {
            let made = stock.sql(&self.external(name)).await;
            made.unwrap_or_else(|error| panic!("stock DataFusion reads {name}: {error}"));
        }
        for name in ["m", "n", "z"] {
            let sql = format!("SELECT location FROM system.extents WHERE table_name = '{name}'");
            let answer = harness.session().execute(&sql).await.expect("extents can be listed");
            let found = crate::db::rows_text(&answer.collect().await.expect("extents can be listed"));
            let paths: Vec<String> = found.lines().map(str::to_owned).collect();
            if paths.is_empty() {
                stock.sql(&format!("CREATE TABLE {name} ({COLUMNS})")).await.expect("a table can be made");
                continue;
            }
            let frame = stock.read_parquet(paths, ParquetReadOptions::default()).await.expect("extents can be read");
            stock.register_table(name, frame.into_view()).expect("a new name");
        }
        self.add_views(&stock).await;
        self.stock = Some(stock.clone());
        stock
    }
}

/// A quarter of a day: any of fifteen days, or of the day of a file and the next.
fn quarters(random: &mut Random, day: Option<i64>) -> i64 {
    match day {
        Some(day) => (day * 4 + random.between(0, 8)) % 60,
        None => random.between(0, 60),
    }
}

impl Row {
    fn new(random: &mut Random, inexact: bool, day: Option<i64>, keys: Option<i64>) -> Self {
        let mut maybe = |percent: usize| random.chance(percent);
        let (k, g, d, f, b, ts, dt) = (maybe(85), maybe(85), maybe(85), maybe(85), maybe(85), maybe(90), maybe(90));
        let float = match random.below(12) {
            0 => f64::NAN,
            1 => -0.0,
            2 => 0.0,
            _ if inexact && random.chance(30) => random.between(-50, 50) as f64 / 10.0,
            _ => random.between(-40, 40) as f64 / 4.0,
        };
        Self {
            id: match keys {
                Some(day) => day * 4 % 40 + random.between(0, 5),
                None => random.between(0, 40),
            },
            k: k.then(|| random.between(0, 8) as i32),
            g: g.then(|| *random.pick(&["a", "b", "B", "ab", "x y", "é", "NaN", "10"])),
            cents: d.then(|| random.between(-2000, 2000)),
            f: f.then_some(float),
            b: b.then(|| random.chance(50)),
            ts: ts.then(|| EPOCH_US + quarters(random, day) * 86_400_000_000 / 4),
            dt: dt.then(|| 19_000 + random.between(0, 30) as i32),
        }
    }

    fn texts(&self) -> [Option<String>; 8] {
        let cents = |cents: i64| {
            let sign = if cents < 0 { "-" } else { "" };
            format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
        };
        let timestamp = |us: i64| {
            let value = TimestampMicrosecondArray::from(vec![us]);
            value.value_as_datetime(0).expect("a time").format("%Y-%m-%dT%H:%M:%S").to_string()
        };
        let date = |days: i32| Date32Array::from(vec![days]).value_as_date(0).expect("a date").to_string();
        [
            Some(self.id.to_string()),
            self.k.map(|k| k.to_string()),
            self.g.map(str::to_owned),
            self.cents.map(cents),
            self.f.map(|f| format!("{f:?}")),
            self.b.map(|b| b.to_string()),
            self.ts.map(timestamp),
            self.dt.map(date),
        ]
    }

    fn json(&self) -> String {
        let names = ["id", "k", "g", "d", "f", "b", "ts", "dt"];
        let mut text = String::from("{");
        for (name, value) in names.into_iter().zip(self.texts()) {
            let is_bare = matches!(name, "id" | "k" | "d" | "f" | "b");
            let value = match value.filter(|value| !(name == "f" && value == "NaN")) {
                Some(value) if is_bare => value,
                Some(value) => format!("\"{value}\""),
                // Left out and null are the same.
                None if name == "k" => continue,
                None => "null".to_owned(),
            };
            let _ = write!(text, "{}\"{name}\":{value}", if text.len() == 1 { "" } else { "," });
        }
        text + "}\n"
    }

    fn csv(&self) -> String {
        let values = self.texts().map(Option::unwrap_or_default);
        values.join(",") + "\n"
    }

    fn values(&self) -> String {
        let types = ["BIGINT", "INT", "TEXT", "DECIMAL(12,2)", "DOUBLE", "BOOLEAN", "TIMESTAMP", "DATE"];
        let mut text = String::from("(");
        for (place, (value, data_type)) in self.texts().into_iter().zip(types).enumerate() {
            let value = value.map_or("NULL".to_owned(), |value| format!("'{value}'"));
            let _ = write!(text, "{}CAST({value} AS {data_type})", if place == 0 { "" } else { ", " });
        }
        text + ")"
    }
}

fn parquet(rows: &[Row]) -> Vec<u8> {
    let decimals = Decimal128Array::from_iter(rows.iter().map(|row| row.cents.map(i128::from)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.id)))),
        ("k", Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.k)))),
        ("g", Arc::new(StringArray::from_iter(rows.iter().map(|row| row.g)))),
        ("d", Arc::new(decimals.with_precision_and_scale(12, 2).expect("it fits"))),
        ("f", Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.f)))),
        ("b", Arc::new(BooleanArray::from_iter(rows.iter().map(|row| row.b)))),
        ("ts", Arc::new(TimestampMicrosecondArray::from_iter(rows.iter().map(|row| row.ts)))),
        ("dt", Arc::new(Date32Array::from_iter(rows.iter().map(|row| row.dt)))),
    ];
    files::parquet_bytes(columns)
}
