//! Generated statements over tables that grow.
#![expect(clippy::print_stdout, reason = "a seed that nobody saw can not be tried again")]

use nectarine_tests::invariance::{Generator, Harness, Tables, seed, statements};

/// Statements in everyday runs.
const STATEMENTS: usize = 40;

/// Both engines and deep plans need room.
const STACK_BYTES: usize = 16 << 20;

/// Statements in one home; the long form goes through several.
const STATEMENTS_PER_HOME: usize = 500;

fn run(seed: u64, n_statements: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .expect("a runtime");
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
        harness.finish();
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
    let (mut seed, mut left) = (seed(), statements(STATEMENTS));
    while left > 0 {
        let now = left.min(STATEMENTS_PER_HOME);
        run(seed, now);
        left -= now;
        seed = seed.wrapping_add(1);
    }
}
