//! [`decide`]: which runs begin now. Pure: what is known goes in, what is to be done comes out.

use std::collections::BTreeMap;

use nectarine_catalog::{CatchUp, Concurrency, Report, ReportRun, RunPlan, RunState};

use super::Schedule;

/// How many times of a report are planned at once; the others follow.
const PLANNED_MAX: usize = 1000;
/// How many skipped times are written down at once, the newest.
const SKIPPED_MAX: usize = 100;
/// A time that nobody looked at for longer is missed, microseconds.
const MISSED_AFTER: i64 = 60_000_000;
/// How many runs that ended are kept of a report.
const RUNS_KEPT: usize = 10_000;

/// What is to be done with a run.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Action {
    /// Begin it.
    Start(ReportRun),
    /// Leave it out, and say why.
    Skip(ReportRun, String),
    /// It cannot be run.
    Fail(ReportRun, String),
}

/// What is to be done now; `open` are all runs that are due or running, `is_abandoned` tells those that are nobody's.
pub(super) fn decide(
    reports: &[Report],
    open: &[ReportRun],
    now: i64,
    is_abandoned: impl Fn(&ReportRun) -> bool,
) -> Vec<Action> {
    let by_name: BTreeMap<&str, &Report> = reports.iter().map(|report| (report.name.as_str(), report)).collect();
    let mut actions = vec![];
    for report in reports.iter().filter(|report| !report.paused) {
        let mut runs: Vec<&ReportRun> = open.iter().filter(|run| run.report == report.id).collect();
        runs.sort_by_key(|run| run.scheduled_for);
        let mut is_busy = false;
        for run in runs {
            if run.state == RunState::Running && !is_abandoned(run) {
                is_busy = true;
                continue;
            }
            if is_busy && report.spec.concurrency != Concurrency::Allow {
                if report.spec.concurrency == Concurrency::Skip && run.state == RunState::Due {
                    actions.push(Action::Skip(run.clone(), "an earlier run was still going on".to_string()));
                }
                continue;
            }
            if run.not_before > now {
                is_busy = true;
                continue;
            }
            match needs(report, run, &by_name, open) {
                Needs::Nothing => actions.push(Action::Start(run.clone())),
                Needs::Waiting => {}
                Needs::Gone(name) => {
                    let error = format!("report \"{name}\", which it depends on, does not exist");
                    actions.push(Action::Fail(run.clone(), error));
                    continue;
                }
            }
            is_busy = true;
        }
    }
    // What is scheduled first begins first, whosever it is.
    actions.sort_by_key(|action| match action {
        Action::Start(run) | Action::Skip(run, _) | Action::Fail(run, _) => run.scheduled_for,
    });
    actions
}

enum Needs {
    Nothing,
    Waiting,
    Gone(String),
}

fn needs(report: &Report, run: &ReportRun, by_name: &BTreeMap<&str, &Report>, open: &[ReportRun]) -> Needs {
    for name in &report.spec.depends_on {
        let Some(needed) = by_name.get(name.as_str()) else { return Needs::Gone(name.clone()) };
        if open.iter().any(|other| other.report == needed.id && other.scheduled_for <= run.scheduled_for) {
            return Needs::Waiting;
        }
    }
    Needs::Nothing
}

/// The runs that a report's times up to now make; `None` if there are no new ones.
pub(super) fn plan(report: &Report, schedule: &Schedule, now: i64) -> Option<RunPlan> {
    let first = schedule.next_after(report.scheduled_to).filter(|next| *next <= now)?;
    let mut to = now;
    let mut runs = vec![];
    match report.spec.catch_up {
        CatchUp::All => {
            let mut next = Some(first);
            while let Some(at) = next.filter(|at| *at <= now) {
                if runs.len() == PLANNED_MAX {
                    to = runs.last().map_or(now, |run: &ReportRun| run.scheduled_for);
                    break;
                }
                runs.push(ReportRun::due(report.id, at));
                next = schedule.next_after(at);
            }
        }
        CatchUp::Last | CatchUp::None => {
            let mut at = schedule.last_at(now).filter(|last| *last > report.scheduled_to);
            while let Some(time) = at.filter(|_| runs.len() <= SKIPPED_MAX) {
                let is_newest = runs.is_empty();
                let is_missed = now - time > MISSED_AFTER;
                let mut run = ReportRun::due(report.id, time);
                if !is_newest || (is_missed && report.spec.catch_up == CatchUp::None) {
                    run.state = RunState::Skipped;
                    run.error = Some("nobody looked when its time came".to_string());
                }
                runs.push(run);
                at = schedule.last_at(time - 1).filter(|last| *last > report.scheduled_to);
            }
        }
    }
    Some(RunPlan { report: report.id, from: report.scheduled_to, to, runs, keep: RUNS_KEPT })
}

#[cfg(test)]
mod tests {
    use nectarine_catalog::{ReportId, ReportOutput, ReportSpec};

    use super::*;

    const HOUR: i64 = 3_600_000_000;

    fn report(name: &str) -> Report {
        let spec = ReportSpec {
            schedule: "@hourly".to_string(),
            time_zone: "UTC".to_string(),
            output: ReportOutput::File("/x.csv".to_string()),
            statements: vec!["SELECT 1".to_string()],
            default_schema: "public".to_string(),
            title: None,
            chart: None,
            retries: 0,
            backoff_s: 0,
            timeout_s: 0,
            catch_up: CatchUp::Last,
            concurrency: Concurrency::Queue,
            depends_on: vec![],
            expect: vec![],
            hook: None,
        };
        let (id, name) = (ReportId::new(), name.to_string());
        Report { id, name, spec, owner: None, paused: false, created_at: 0, scheduled_to: 0 }
    }

    fn planned(catch_up: CatchUp, now: i64) -> (i64, Vec<(i64, RunState)>) {
        let mut report = report("r");
        report.spec.catch_up = catch_up;
        let schedule = Schedule::parse("@hourly", "UTC").expect("a schedule");
        let plan = plan(&report, &schedule, now).expect("a plan");
        assert_eq!(plan.from, 0);
        (plan.to, plan.runs.into_iter().map(|run| (run.scheduled_for / HOUR, run.state)).collect())
    }

    #[test]
    fn missed_times() {
        use RunState::{Due, Skipped};
        let late = 3 * HOUR + HOUR / 2;
        assert_eq!(planned(CatchUp::All, late), (late, vec![(1, Due), (2, Due), (3, Due)]));
        assert_eq!(planned(CatchUp::Last, late), (late, vec![(3, Due), (2, Skipped), (1, Skipped)]));
        assert_eq!(planned(CatchUp::None, late), (late, vec![(3, Skipped), (2, Skipped), (1, Skipped)]));
        let now = 3 * HOUR + 1_000_000;
        assert_eq!(planned(CatchUp::None, now), (now, vec![(3, Due), (2, Skipped), (1, Skipped)]));
        let schedule = Schedule::parse("@hourly", "UTC").expect("a schedule");
        assert_eq!(plan(&report("r"), &schedule, HOUR - 1), None);
    }

    #[test]
    fn years_are_planned_in_pieces() {
        let (to, runs) = planned(CatchUp::All, 5000 * HOUR);
        assert_eq!((to / HOUR, runs.len()), (1000, 1000));
        let (to, runs) = planned(CatchUp::Last, 5000 * HOUR);
        assert_eq!((to / HOUR, runs.len(), runs[0].0), (5000, 101, 5000));
    }

    fn decided(reports: &[Report], open: &[ReportRun]) -> Vec<String> {
        let name = |run: &ReportRun| {
            let report = reports.iter().find(|report| report.id == run.report);
            format!("{}@{}", report.map_or("?", |report| &report.name), run.scheduled_for)
        };
        decide(reports, open, 100, |run| run.holder.is_none())
            .iter()
            .map(|action| match action {
                Action::Start(run) => format!("start {}", name(run)),
                Action::Skip(run, _) => format!("skip {}", name(run)),
                Action::Fail(run, _) => format!("fail {}", name(run)),
            })
            .collect()
    }

    fn running(run: ReportRun, holder: Option<&str>) -> ReportRun {
        ReportRun { state: RunState::Running, attempt: 1, holder: holder.map(str::to_string), ..run }
    }

    #[test]
    fn one_at_a_time_unless_said_otherwise() {
        let mut a = report("a");
        let due = |report: &Report, at| ReportRun::due(report.id, at);
        let open = [due(&a, 3), due(&a, 1), due(&a, 2)];
        assert_eq!(decided(&[a.clone()], &open), ["start a@1"]);
        let busy = [running(due(&a, 1), Some("p")), due(&a, 2)];
        assert_eq!(decided(&[a.clone()], &busy), [""; 0]);
        let left = [running(due(&a, 1), None), due(&a, 2)];
        assert_eq!(decided(&[a.clone()], &left), ["start a@1"], "whoever had it died");
        let later = [ReportRun { not_before: 200, ..due(&a, 1) }, due(&a, 2)];
        assert_eq!(decided(&[a.clone()], &later), [""; 0], "it is tried again first");
        a.spec.concurrency = Concurrency::Skip;
        assert_eq!(decided(&[a.clone()], &busy), ["skip a@2"]);
        a.spec.concurrency = Concurrency::Allow;
        assert_eq!(decided(&[a.clone()], &busy), ["start a@2"]);
        a.paused = true;
        assert_eq!(decided(&[a], &busy), [""; 0]);
    }

    #[test]
    fn what_is_needed_comes_first() {
        let (a, mut b) = (report("a"), report("b"));
        b.spec.depends_on = vec!["a".to_string()];
        let due = |report: &Report, at| ReportRun::due(report.id, at);
        assert_eq!(decided(&[a.clone(), b.clone()], &[due(&b, 5), due(&a, 5)]), ["start a@5"]);
        assert_eq!(decided(&[a.clone(), b.clone()], &[due(&b, 5), due(&a, 6)]), ["start b@5", "start a@6"]);
        assert_eq!(decided(&[b.clone()], &[due(&b, 5)]), ["fail b@5"], "it is gone");
    }
}
