//! Statements about reports, read.

use super::*;
use crate::sql::{ParseOptions, parse};

fn read(sql: &str) -> ReportStatement {
    match parse(sql, &ParseOptions::default()) {
        Ok(Some(Statement::Report(statement))) => statement,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn reports_keep_their_texts() {
    let sql = "CREATE OR REPLACE REPORT kpis SCHEDULE '0 6 * * *' TIME ZONE 'Europe/Berlin'
               OUTPUT 'kpis-{date}.html' RETRIES 3 BACKOFF '1 minute' TIMEOUT '10 minutes' CATCH UP ALL
               CONCURRENCY SKIP DEPENDS ON a, b EXPECT row_count > 0 AND 'x;' <> ',', row_count < 5 TITLE 'KPIs'
               CHART LINE AS SELECT day, ';' FROM t WHERE day < :run_date::date ;";
    let ReportStatement::Create { name, or_replace: true, if_not_exists: false, dry_run: false, clauses } = read(sql)
    else {
        panic!("not made")
    };
    assert_eq!(name.value, "kpis");
    assert_eq!(clauses.schedule.as_deref(), Some("0 6 * * *"));
    assert_eq!(clauses.time_zone.as_deref(), Some("Europe/Berlin"));
    assert_eq!(clauses.output, Some(ReportTarget::File("kpis-{date}.html".to_owned())));
    assert_eq!((clauses.retries, clauses.backoff.as_deref()), (Some(3), Some("1 minute")));
    assert_eq!(clauses.depends_on.map(|names| names.len()), Some(2));
    let expect = clauses.expect.expect("conditions");
    assert_eq!(expect, ["row_count > 0 AND 'x;' <> ','", "row_count < 5"]);
    assert_eq!(clauses.body.as_deref(), Some("SELECT day, ';' FROM t WHERE day < :run_date::date"));
}

#[test]
fn several_statements() {
    let sql = "create report r schedule '@daily' output table s.t as $$ SET a.b = 1; SELECT 1; $$";
    let ReportStatement::Create { clauses, .. } = read(sql) else { panic!("not made") };
    assert_eq!(clauses.body.as_deref(), Some("SET a.b = 1; SELECT 1;"));
    assert!(matches!(clauses.output, Some(ReportTarget::Table(_))));
}

#[test]
fn all_others() {
    assert!(matches!(read("PAUSE REPORT r"), ReportStatement::Pause { paused: true, .. }));
    assert!(matches!(read("resume report r;"), ReportStatement::Pause { paused: false, .. }));
    assert!(matches!(read("RUN REPORT r"), ReportStatement::Run { time: None, .. }));
    assert!(matches!(read("RUN REPORT r FOR '2026-11-01'"), ReportStatement::Run { time: Some(_), .. }));
    assert!(matches!(read("DROP REPORT IF EXISTS a, b"), ReportStatement::Drop { if_exists: true, .. }));
    assert!(matches!(read("ALTER REPORT r RENAME TO q"), ReportStatement::Rename { .. }));
    assert!(matches!(read("ALTER REPORT r OWNER TO bob"), ReportStatement::SetOwner { .. }));
    let explained = read("EXPLAIN CREATE OR REPLACE REPORT r AS SELECT 1");
    assert!(matches!(explained, ReportStatement::Create { dry_run: true, .. }));
    assert!(matches!(read("SHOW REPORTS"), ReportStatement::Show));
    assert!(matches!(read("SHOW CREATE REPORT r"), ReportStatement::ShowCreate(_)));
    let ReportStatement::Alter { clauses, .. } = read("ALTER REPORT r SET SCHEDULE '@hourly' EXPECT NOTHING") else {
        panic!("not altered")
    };
    assert_eq!(clauses.expect, Some(vec![]));
}

#[test]
fn mistakes_are_told() {
    for sql in [
        "CREATE REPORT",
        "CREATE REPORT r SCHEDULE",
        "CREATE REPORT r SCHEDULE '@daily' SCHEDULE '@daily' AS SELECT 1",
        "CREATE REPORT r SCHEDULE '@daily' OUTPUT 'x' RETRIES many AS SELECT 1",
        "CREATE REPORT r CATCH UP SOME AS SELECT 1",
        "CREATE REPORT r OUTPUT 'x' AS",
        "CREATE REPORT r OUTPUT 'x' SOMETHING ELSE AS SELECT 1",
        "ALTER REPORT r",
        "ALTER REPORT r SET",
        "RUN REPORT r FOR yesterday",
        "PAUSE REPORT",
    ] {
        assert!(parse(sql, &ParseOptions::default()).is_err(), "{sql}");
    }
    assert!(!matches!(parse("SELECT report FROM reports", &ParseOptions::default()), Ok(Some(Statement::Report(_)))));
}
