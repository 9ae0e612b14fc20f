//! What every metadata store does with reports and their runs.

use super::{MemoryStore, MetadataStore, SqliteStore, add, extent, table};
use crate::{
    CatalogError, CatchUp, Concurrency, Fingerprint, Report, ReportId, ReportOutput, ReportRun, ReportSpec, RunPlan,
    RunQuery, RunState, TableId, TableName,
};

/// The error must be of a variant, whatever its fields say.
macro_rules! assert_fails {
    ($outcome:expr, $pattern:pat) => {
        let error = $outcome.expect_err("a refusal");
        assert!(matches!(error, $pattern), "unexpected error: {error:?}");
    };
}

conformance! {
    reports_come_back_as_they_were
    names_of_reports_are_taken_once
    runs_are_planned_once
    runs_come_back_as_they_were
    only_the_newest_runs_that_ended_stay
    a_run_changes_only_from_where_it_is
    rows_and_the_end_of_a_run_are_one_transaction
    runs_go_with_their_report
    reports_leave_the_version
}

pub(super) fn report(name: &str) -> Report {
    Report {
        id: ReportId::new(),
        name: name.to_owned(),
        spec: ReportSpec {
            schedule: "0 6 * * *".to_owned(),
            time_zone: "Europe/Berlin".to_owned(),
            output: ReportOutput::File("/reports/ü-{date}.html".to_owned()),
            statements: vec!["SET x = 1".to_owned(), "SELECT 'ü'".to_owned()],
            default_schema: "public".to_owned(),
            title: Some("Title".to_owned()),
            chart: None,
            retries: 3,
            backoff_s: 60,
            timeout_s: 0,
            catch_up: CatchUp::All,
            concurrency: Concurrency::Skip,
            depends_on: vec!["other".to_owned()],
            expect: vec!["row_count > 0".to_owned()],
            hook: None,
        },
        owner: Some("bob".to_owned()),
        paused: false,
        created_at: 5,
        scheduled_to: 100,
    }
}

async fn made(store: &dyn MetadataStore, name: &str) -> Report {
    let report = report(name);
    store.create_report(&report).await.expect("made");
    report
}

fn plan(report: &Report, from: i64, to: i64, times: &[i64]) -> RunPlan {
    let runs = times.iter().map(|at| ReportRun::due(report.id, *at)).collect();
    RunPlan { report: report.id, from, to, runs, keep: 100 }
}

async fn times(store: &dyn MetadataStore, wanted: RunQuery) -> Vec<i64> {
    store.report_runs(&wanted).await.expect("runs").into_iter().map(|run| run.scheduled_for).collect()
}

async fn reports_come_back_as_they_were(store: &dyn MetadataStore) {
    assert_eq!(store.reports().await.expect("reports"), []);
    let (b, a) = (made(store, "b").await, made(store, "a").await);
    assert_eq!(store.reports().await.expect("reports"), [a.clone(), b.clone()]);
    let mut changed = Report { name: "c".to_owned(), paused: true, owner: None, scheduled_to: 200, ..a.clone() };
    changed.spec.output = ReportOutput::Table(TableName::new("public", "t"));
    changed.created_at = 77;
    store.change_report(&changed).await.expect("changed");
    changed.created_at = a.created_at;
    // Whoever did not see the last plan does not undo it.
    store.change_report(&Report { scheduled_to: 150, ..changed.clone() }).await.expect("changed");
    assert_eq!(store.reports().await.expect("reports"), [b.clone(), changed]);
    assert!(store.drop_report(b.id).await.expect("an answer"));
    assert!(!store.drop_report(b.id).await.expect("an answer"));
    assert_fails!(store.change_report(&b).await, CatalogError::NotFound { .. });
}

async fn names_of_reports_are_taken_once(store: &dyn MetadataStore) {
    let (a, b) = (made(store, "a").await, made(store, "b").await);
    assert_fails!(store.create_report(&report("a")).await, CatalogError::AlreadyExists { .. });
    assert_fails!(
        store.change_report(&Report { name: "a".to_owned(), ..b.clone() }).await,
        CatalogError::AlreadyExists { .. }
    );
    assert_eq!(store.reports().await.expect("reports"), [a, b]);
}

async fn runs_are_planned_once(store: &dyn MetadataStore) {
    let a = made(store, "a").await;
    assert!(store.plan_report_runs(&plan(&a, 100, 300, &[200, 300])).await.expect("an answer"));
    assert!(!store.plan_report_runs(&plan(&a, 100, 300, &[200, 300, 250])).await.expect("an answer"), "by another");
    assert_eq!(times(store, RunQuery::default()).await, [300, 200]);
    assert_eq!(store.reports().await.expect("reports")[0].scheduled_to, 300);
    let gone = report("gone");
    assert!(!store.plan_report_runs(&plan(&gone, 100, 300, &[200])).await.expect("an answer"));
    // What is there for a time stays.
    assert!(!store.add_report_run(&ReportRun::due(a.id, 300)).await.expect("an answer"));
    assert!(store.add_report_run(&ReportRun::due(a.id, 301)).await.expect("an answer"));
    assert!(store.plan_report_runs(&plan(&a, 300, 400, &[301, 400])).await.expect("an answer"));
    assert_eq!(times(store, RunQuery::default()).await, [400, 301, 300, 200]);
    assert_fails!(store.add_report_run(&ReportRun::due(gone.id, 1)).await, CatalogError::NotFound { .. });
}

fn finished(run: &ReportRun) -> ReportRun {
    ReportRun {
        state: RunState::Finished,
        attempt: run.attempt,
        failures: 2,
        not_before: 9,
        holder: Some("process".to_owned()),
        lease_until: Some(11),
        started_at: Some(12),
        elapsed_ms: Some(1.5),
        rows: Some(3),
        output: Some("file:///ü.html".to_owned()),
        digest: Some(Fingerprint::of_bytes(b"x")),
        reused: Some("partial".to_owned()),
        saved_ms: Some(0.25),
        error: Some("none".to_owned()),
        ..run.clone()
    }
}

async fn runs_come_back_as_they_were(store: &dyn MetadataStore) {
    let (a, b) = (made(store, "a").await, made(store, "b").await);
    store.plan_report_runs(&plan(&a, 100, 300, &[200, 300])).await.expect("planned");
    store.plan_report_runs(&plan(&b, 100, 300, &[250])).await.expect("planned");
    let due = ReportRun::due(a.id, 200);
    let done = finished(&due);
    assert!(store.change_report_run((RunState::Due, 0), &done, None).await.expect("an answer"));
    let of = |report: &Report| RunQuery { report: Some(report.id), ..RunQuery::default() };
    assert_eq!(store.report_runs(&of(&a)).await.expect("runs"), [ReportRun::due(a.id, 300), done]);
    assert_eq!(times(store, of(&b)).await, [250]);
    let open = RunQuery { states: vec![RunState::Due, RunState::Running], ..RunQuery::default() };
    assert_eq!(times(store, open).await, [300, 250]);
    assert_eq!(times(store, RunQuery { before: Some(300), limit: Some(1), ..RunQuery::default() }).await, [250]);
}

async fn only_the_newest_runs_that_ended_stay(store: &dyn MetadataStore) {
    let a = made(store, "a").await;
    store.plan_report_runs(&plan(&a, 100, 105, &[101, 102, 103, 104, 105])).await.expect("planned");
    for at in [102, 103, 104, 105] {
        let done = finished(&ReportRun::due(a.id, at));
        assert!(store.change_report_run((RunState::Due, 0), &done, None).await.expect("an answer"));
    }
    let next = RunPlan { keep: 2, ..plan(&a, 105, 106, &[106]) };
    assert!(store.plan_report_runs(&next).await.expect("an answer"));
    assert_eq!(times(store, RunQuery::default()).await, [106, 105, 101], "what is open stays, however old it is");
}

async fn a_run_changes_only_from_where_it_is(store: &dyn MetadataStore) {
    let a = made(store, "a").await;
    store.plan_report_runs(&plan(&a, 100, 200, &[200])).await.expect("planned");
    let claimed = ReportRun { state: RunState::Running, attempt: 1, ..ReportRun::due(a.id, 200) };
    assert!(store.change_report_run((RunState::Due, 0), &claimed, None).await.expect("an answer"));
    assert!(!store.change_report_run((RunState::Due, 0), &claimed, None).await.expect("an answer"), "a second claim");
    // The first was believed dead, and another took over.
    let second = ReportRun { attempt: 2, ..claimed.clone() };
    assert!(store.change_report_run((RunState::Running, 1), &second, None).await.expect("an answer"));
    assert!(!store.change_report_run((RunState::Running, 1), &finished(&claimed), None).await.expect("an answer"));
    assert_eq!(store.report_runs(&RunQuery::default()).await.expect("runs"), [second]);
}

async fn rows_and_the_end_of_a_run_are_one_transaction(store: &dyn MetadataStore) {
    let (a, t) = (made(store, "a").await, table("t"));
    add(store, &t, &[extent(1)]).await;
    store.plan_report_runs(&plan(&a, 100, 200, &[200])).await.expect("planned");
    let done = finished(&ReportRun::due(a.id, 200));
    let version = store.catalog_version().await.expect("a version");
    let rows = [extent(2), extent(3)];
    let lost = store.change_report_run((RunState::Running, 1), &done, Some((t.id, &rows))).await;
    assert!(!lost.expect("an answer"));
    assert_eq!(store.extents(t.id).await.expect("extents").len(), 1, "nothing came of a run that is another's");
    assert_fails!(
        store.change_report_run((RunState::Due, 0), &done, Some((TableId::new(), &rows))).await,
        CatalogError::TableNotFound { .. }
    );
    assert_eq!(store.report_runs(&RunQuery::default()).await.expect("runs")[0].state, RunState::Due);
    assert_eq!(store.catalog_version().await.expect("a version"), version);
    for expected in [true, false] {
        let changed = store.change_report_run((RunState::Due, 0), &done, Some((t.id, &rows))).await;
        assert_eq!(changed.expect("an answer"), expected);
        assert_eq!(store.extents(t.id).await.expect("extents"), [extent(1), extent(2), extent(3)]);
    }
    assert_eq!(store.catalog_version().await.expect("a version"), version + 1);
}

async fn runs_go_with_their_report(store: &dyn MetadataStore) {
    let a = made(store, "a").await;
    store.plan_report_runs(&plan(&a, 100, 200, &[200])).await.expect("planned");
    store.drop_report(a.id).await.expect("dropped");
    assert_eq!(times(store, RunQuery::default()).await, [0_i64; 0]);
}

async fn reports_leave_the_version(store: &dyn MetadataStore) {
    let version = store.catalog_version().await.expect("a version");
    let a = made(store, "a").await;
    store.plan_report_runs(&plan(&a, 100, 200, &[200])).await.expect("planned");
    store.change_report_run((RunState::Due, 0), &finished(&ReportRun::due(a.id, 200)), None).await.expect("changed");
    store.change_report(&a).await.expect("changed");
    store.drop_report(a.id).await.expect("dropped");
    assert_eq!(store.catalog_version().await.expect("a version"), version);
}
