//! Generated statements that are asked again and again while tables grow, lose files and go from branch to branch.
#![expect(clippy::print_stdout, reason = "a seed that nobody saw can not be tried again")]

use nectarine_tests::invariance::{Generator, Harness, Tables, in_homes, roomy_runtime};

/// Statements in everyday runs.
const STATEMENTS: usize = 40;

/// Statements in one home; the long form goes through several.
const STATEMENTS_PER_HOME: usize = 250;

fn run(seed: u64, n_statements: usize) {
    let runtime = roomy_runtime();
    let task = runtime.spawn(async move {
        println!("NECTARINE_SEED={seed}");
        let shows = std::env::var_os("NECTARINE_INVARIANCE_SHOW").is_some();
        let mut harness = Harness::new(seed).await;
        let mut tables = Tables::growing(&mut harness).await;
        let mut generator = Generator::new(seed);
        for n in 0..n_statements {
            if harness.random.chance(70) {
                let what = tables.change(&mut harness).await;
                if shows {
                    println!("{n}: {what}");
                }
            }
            let statement = generator.next_growing();
            if shows {
                println!("{n}: {};", statement.sql);
            }
            match &statement.whole {
                Some((whole, limit)) => harness.check_part(&statement.sql, whole, *limit).await,
                None => {
                    let stock = tables.stock(&harness).await;
                    harness.check(&statement.sql, Some(&stock)).await;
                }
            }
            if n % 100 == 99 {
                println!("{n}: {}", harness.report());
            }
        }
        harness.finish().await;
        let n_segments = harness.counted("runs that read some extents and not others");
        assert!(n_segments > 0 || n_statements < STATEMENTS, "nothing was reused that is worth a test");
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
