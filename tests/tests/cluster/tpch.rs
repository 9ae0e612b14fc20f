//! TPC-H on executors: the rows of one process.

use std::fs::File;
use std::path::Path;

use arrow::record_batch::RecordBatchReader;
use nectarine_tests::fleet::Fleet;
use parquet::arrow::ArrowWriter;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

const SCALE: f64 = 0.01;

/// Files of the larger tables.
const FILES: i32 = 3;

fn write(folder: &Path, file: i32, rows: impl RecordBatchReader) {
    std::fs::create_dir_all(folder).expect("a folder");
    let target = File::create(folder.join(format!("{file}.parquet"))).expect("a file");
    let mut writer = ArrowWriter::try_new(target, rows.schema(), None).expect("a valid schema");
    for batch in rows {
        writer.write(&batch.expect("rows")).expect("it fits");
    }
    writer.close().expect("it fits");
}

fn tables(fleet: &Fleet) {
    let at = |name: &str| fleet.path("tpch").join(name);
    write(&at("nation"), 1, NationArrow::new(NationGenerator::new(SCALE, 1, 1)));
    write(&at("region"), 1, RegionArrow::new(RegionGenerator::new(SCALE, 1, 1)));
    write(&at("supplier"), 1, SupplierArrow::new(SupplierGenerator::new(SCALE, 1, 1)));
    for file in 1..=FILES {
        write(&at("customer"), file, CustomerArrow::new(CustomerGenerator::new(SCALE, file, FILES)));
        write(&at("lineitem"), file, LineItemArrow::new(LineItemGenerator::new(SCALE, file, FILES)));
        write(&at("orders"), file, OrderArrow::new(OrderGenerator::new(SCALE, file, FILES)));
        write(&at("part"), file, PartArrow::new(PartGenerator::new(SCALE, file, FILES)));
        write(&at("partsupp"), file, PartSuppArrow::new(PartSuppGenerator::new(SCALE, file, FILES)));
    }
    for name in ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"] {
        fleet.rows(&format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{{dir}}/tpch/{name}/'"));
    }
}

#[test]
fn all_of_tpch() {
    let fleet = Fleet::start(2, 1);
    tables(&fleet);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent").join("benchmarks/queries");
    let mut stayed = vec![];
    for number in 1..=22 {
        let sql = std::fs::read_to_string(folder.join(format!("q{number:02}.sql"))).expect("a query");
        let sql = sql.replace(":fraction", &(0.0001 / SCALE).to_string());
        let n_before = fleet.jobs("finished");
        let here = fleet.here(&sql, "off");
        assert_eq!(fleet.there(&sql, "off"), here, "query {number}");
        if fleet.jobs("finished") == n_before {
            stayed.push((number, fleet.rows(&format!("EXPLAIN STAGES {sql}"))));
            continue;
        }
        // Kept, and found again.
        assert_eq!(fleet.there(&sql, "on"), here, "query {number}, kept");
        assert_eq!(fleet.here(&sql, "on"), here, "query {number}, found");
    }
    assert!(
        stayed.is_empty(),
        "these stayed in the server's process: {stayed:?}\n{}",
        fleet.rows("SELECT * FROM system.cluster_jobs WHERE state <> 'finished'")
    );
}
