//! Queries of DataFusion's published scripts in several states of one cache.
//!
//! `NECTARINE_INVARIANCE_SCRIPTS=all` runs all of them, or those whose name holds the word.

use nectarine_tests::conformance::{Exceptions, run_invariant};
use nectarine_tests::invariance::{roomy_runtime, seed};

/// Scripts of every day.
const EVERY_DAY: [&str; 3] = ["subquery.slt", "aggregates_topk.slt", "grouping.slt"];

/// Set in the process that runs the scripts: they need a working directory, which belongs to a whole process.
const CHILD: &str = "NECTARINE_INVARIANCE_CHILD";

#[test]
fn published_scripts_answer_the_same() {
    if std::env::var_os(CHILD).is_none() {
        let status = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "invariance::scripts::published_scripts_answer_the_same", "--nocapture"])
            .env(CHILD, "1")
            .status()
            .expect("this program can be started again");
        assert!(status.success(), "answers differ; see above");
        return;
    }
    let runtime = roomy_runtime();
    let exceptions = Exceptions::parse(include_str!("../../conformance/exceptions.txt")).expect("a valid list");
    let wanted = std::env::var("NECTARINE_INVARIANCE_SCRIPTS").unwrap_or_default();
    let seed = seed();
    println!("NECTARINE_SEED={seed}");
    let is_wanted = move |script: &str| match wanted.as_str() {
        "" => EVERY_DAY.contains(&script),
        "all" => true,
        word => script.contains(word),
    };
    let report = runtime
        .block_on(async move { tokio::spawn(async move { run_invariant(&exceptions, seed, is_wanted).await }).await })
        .expect("it ends")
        .expect("the corpus can be copied");
    println!("{:?}", report.counts);
    assert!(report.counts.get("queries").is_some_and(|n| *n > 0), "no query was run");
    assert!(
        report.differences.is_empty(),
        "{} differences\n{}",
        report.differences.len(),
        report.differences.join("\n")
    );
}
