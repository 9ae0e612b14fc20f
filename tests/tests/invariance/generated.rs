//! Generated statements over tables that grow.
#![expect(clippy::print_stdout, reason = "a seed that nobody saw can not be tried again")]

use nectarine_tests::invariance::{Generator, Harness, Tables, in_homes, roomy_runtime};

/// Statements in everyday runs.
const STATEMENTS: usize = 40;

/// Statements in one home; the long form goes through several.
const STATEMENTS_PER_HOME: usize = 500;

fn run(seed: u64, n_statements: usize) {
    let runtime = roomy_runtime();
    let task = runtime.spawn(async move {
        println!("NECTARINE_SEED={seed}");
        let mut harness = Harness::new(seed).await;
        harness.all_modes = std::env::var_os("NECTARINE_INVARIANCE").is_some();
        let mut tables = Tables::new(&mut harness).await;
        let mut generator = Generator::new(seed);
        for n in 0..n_statements {
            if harness.random.chance(12) {
                tables.grow(&mut harness).await;
            }
            let stock = tables.stock(&harness).await;
            let sql = generator.next_sql();
            if std::env::var_os("NECTARINE_INVARIANCE_SHOW").is_some() {
                println!("{n}: {sql};");
            }
            harness.check(&sql, Some(&stock)).await;
            if n % 100 == 99 {
                println!("{n}: {}", harness.report());
            }
        }
        harness.finish().await;
    });
    runtime.block_on(task).expect("no difference");
}

/// The same statements each time.
#[test]
fn a_fixed_seed() {
    if std::env::var_os("NECTARINE_INVARIANCE").is_none() {
        run(42, STATEMENTS);
    }
}

/// Others each time.
#[test]
fn another_seed() {
    in_homes(STATEMENTS, STATEMENTS_PER_HOME, run);
}
