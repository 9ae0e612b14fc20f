//! DataFusion's published scripts through Nectarine; see `nectarine_tests::conformance`.
//!
//! `NECTARINE_CONFORMANCE=joins` runs only scripts whose name holds that word.

use std::sync::Arc;

use nectarine_tests::conformance::{Exceptions, run};

/// Both engines at once need room for deep plans.
const STACK_BYTES: usize = 16 << 20;

/// Set in the process that runs the scripts: they need a working directory, which belongs to a whole process.
const CHILD: &str = "NECTARINE_CONFORMANCE_CHILD";

#[test]
fn published_scripts_pass() {
    if std::env::var_os(CHILD).is_none() {
        let status = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "conformance::published_scripts_pass", "--nocapture"])
            .env(CHILD, "1")
            .status()
            .expect("this program can be started again");
        assert!(status.success(), "records differ; see above");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .expect("a runtime");
    let exceptions = Exceptions::parse(include_str!("../conformance/exceptions.txt")).expect("a valid list");
    let wanted = std::env::var("NECTARINE_CONFORMANCE").unwrap_or_default();
    let reports = runtime
        .block_on(async move { run(Arc::new(exceptions), |script| script.contains(&wanted)).await })
        .expect("the corpus can be copied");
    assert!(!reports.is_empty(), "no script was run");

    let passed: usize = reports.iter().map(|report| report.passed).sum();
    let unavailable: usize = reports.iter().map(|report| report.unavailable).sum();
    let excepted: usize = reports.iter().map(|report| report.excepted).sum();
    println!(
        "{} scripts: {passed} records pass, {excepted} listed exceptions, {unavailable} need what is not published",
        reports.len()
    );
    let mut trouble = String::new();
    for report in &reports {
        for (line, sql, error) in &report.failed {
            trouble.push_str(&format!(
                "\n{}:{line}\n  {}\n  {}\n",
                report.script,
                sql.replace('\n', "\n  "),
                error.replace('\n', "\n  ")
            ));
        }
        for line in &report.stale {
            trouble.push_str(&format!(
                "\n{}:{line} is listed as an exception and passes: remove it from the list\n",
                report.script
            ));
        }
    }
    let failed: usize = reports.iter().map(|report| report.failed.len() + report.stale.len()).sum();
    assert!(failed == 0, "{failed} records differ{trouble}");
}
