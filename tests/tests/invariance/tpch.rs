//! TPC-H at a tiny scale, before and after orders came in.
//!
//! Everyday some of the queries, chosen by the seed: asked, and checked after the tables grew. In the long form all of them, in all
//! modes, checked before and after.
#![expect(clippy::print_stdout, reason = "a seed that nobody saw can not be tried again")]

use std::path::Path;

use arrow::record_batch::RecordBatchReader;
use datafusion::prelude::SessionContext;
use nectarine_tests::files;
use nectarine_tests::invariance::{Harness, Random, roomy_runtime, seed, stock_context};
use parquet::arrow::ArrowWriter;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

const TABLES: [&str; 8] = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];

/// Everyday: 1500 orders. Most of the time goes into runs with batches of a few rows.
const SCALE: f64 = 0.001;

/// In the long form.
const SCALE_LONG: f64 = 0.002;

/// Queries that are asked everyday.
const QUERIES: usize = 6;

/// Files of the larger tables; the last ones of orders and their lines come later.
const PARTS: i32 = 3;

fn write(folder: &Path, part: i32, rows: impl RecordBatchReader) {
    std::fs::create_dir_all(folder).expect("a folder can be made");
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), None).expect("a valid schema");
    for batch in rows {
        writer.write(&batch.expect("rows")).expect("it fits");
    }
    writer.close().expect("it fits");
    files::appear(&folder.join(format!("{part}.parquet")), &bytes);
}

/// All tables but the last orders.
fn make(folder: &Path, scale: f64) {
    let at = |name: &str| folder.join(name);
    write(&at("nation"), 1, NationArrow::new(NationGenerator::new(scale, 1, 1)));
    write(&at("region"), 1, RegionArrow::new(RegionGenerator::new(scale, 1, 1)));
    write(&at("supplier"), 1, SupplierArrow::new(SupplierGenerator::new(scale, 1, 1)));
    for part in 1..=PARTS {
        write(&at("customer"), part, CustomerArrow::new(CustomerGenerator::new(scale, part, PARTS)));
        write(&at("part"), part, PartArrow::new(PartGenerator::new(scale, part, PARTS)));
        write(&at("partsupp"), part, PartSuppArrow::new(PartSuppGenerator::new(scale, part, PARTS)));
    }
    for part in 1..PARTS {
        orders(folder, scale, part);
    }
}

/// Some orders, and their lines.
fn orders(folder: &Path, scale: f64, part: i32) {
    write(&folder.join("lineitem"), part, LineItemArrow::new(LineItemGenerator::new(scale, part, PARTS)));
    write(&folder.join("orders"), part, OrderArrow::new(OrderGenerator::new(scale, part, PARTS)));
}

fn external(folder: &Path, name: &str) -> String {
    format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{}/'", folder.join(name).display())
}

/// Stock DataFusion over the files that there are now.
async fn stock(folder: &Path) -> SessionContext {
    let stock = stock_context();
    for name in TABLES {
        let made = stock.sql(&external(folder, name)).await;
        made.unwrap_or_else(|error| panic!("stock DataFusion reads {name}: {error}"));
    }
    stock
}

/// So many of the queries, with their numbers.
fn queries(random: &mut Random, n_queries: usize, scale: f64) -> Vec<(usize, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benchmarks/queries");
    let mut numbers: Vec<usize> = (1..=22).collect();
    while numbers.len() > n_queries {
        numbers.swap_remove(random.below(numbers.len()));
    }
    let text = |number: usize| {
        let sql = std::fs::read_to_string(folder.join(format!("q{number:02}.sql"))).expect("a query");
        (number, sql.trim().replace(":fraction", &format!("{:.10}", 0.0001 / scale)))
    };
    numbers.into_iter().map(text).collect()
}

async fn check(harness: &mut Harness, queries: &[(usize, String)], folder: &Path) {
    let stock = stock(folder).await;
    for (number, sql) in queries {
        if std::env::var_os("NECTARINE_INVARIANCE_SHOW").is_some() {
            println!("query {number}");
        }
        harness.check(sql, Some(&stock)).await;
    }
}

#[test]
fn queries_over_orders_that_come_in() {
    let runtime = roomy_runtime();
    let task = runtime.spawn(async {
        let seed = seed();
        println!("NECTARINE_SEED={seed}");
        let mut harness = Harness::new(seed).await;
        harness.all_modes = std::env::var_os("NECTARINE_INVARIANCE").is_some();
        let (n_queries, scale) = if harness.all_modes { (22, SCALE_LONG) } else { (QUERIES, SCALE) };
        let queries = queries(&mut harness.random, n_queries, scale);
        let folder = harness.folder().join("tpch");
        make(&folder, scale);
        for name in TABLES {
            harness.run(&external(&folder, name)).await;
        }
        match harness.all_modes {
            true => check(&mut harness, &queries, &folder).await,
            false => {
                for (_, sql) in &queries {
                    harness.run(sql).await;
                }
            }
        }
        orders(&folder, scale, PARTS);
        check(&mut harness, &queries, &folder).await;
        harness.finish().await;
        assert!(harness.counted("second runs reusing: exact") > 0, "nothing was reused that is worth a test");
    });
    runtime.block_on(task).expect("no difference");
}
