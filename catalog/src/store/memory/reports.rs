//! Reports and their runs in memory.

use std::collections::BTreeMap;

use crate::{CatalogError, Report, ReportId, ReportRun, Result, RunPlan, RunQuery, RunState};

#[derive(Debug, Default)]
pub(super) struct Reports {
    reports: BTreeMap<ReportId, Report>,
    runs: BTreeMap<(ReportId, i64), ReportRun>,
}

impl Reports {
    pub(super) fn all(&self) -> Vec<Report> {
        let mut all: Vec<Report> = self.reports.values().cloned().collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    pub(super) fn create(&mut self, report: &Report) -> Result<()> {
        self.check_name(report)?;
        self.reports.insert(report.id, report.clone());
        Ok(())
    }

    pub(super) fn change(&mut self, report: &Report) -> Result<()> {
        self.check_name(report)?;
        let Some(known) = self.reports.get_mut(&report.id) else {
            return Err(CatalogError::NotFound { what: "report", name: report.name.clone() });
        };
        let scheduled_to = known.scheduled_to.max(report.scheduled_to);
        *known = Report { created_at: known.created_at, scheduled_to, ..report.clone() };
        Ok(())
    }

    pub(super) fn drop(&mut self, id: ReportId) -> bool {
        self.runs.retain(|(report, _), _| *report != id);
        self.reports.remove(&id).is_some()
    }

    pub(super) fn plan(&mut self, plan: &RunPlan) -> bool {
        let Some(report) = self.reports.get_mut(&plan.report).filter(|report| report.scheduled_to == plan.from) else {
            return false;
        };
        report.scheduled_to = plan.to;
        for run in &plan.runs {
            self.runs.entry((run.report, run.scheduled_for)).or_insert_with(|| run.clone());
        }
        let newest = self.runs(&RunQuery { report: Some(plan.report), ..RunQuery::default() });
        if let Some(oldest) = newest.get(plan.keep.max(1) - 1).map(|run| run.scheduled_for) {
            self.runs.retain(|(report, at), run| *report != plan.report || run.state.is_open() || *at >= oldest);
        }
        true
    }

    pub(super) fn runs(&self, wanted: &RunQuery) -> Vec<ReportRun> {
        let is_wanted = |run: &&ReportRun| {
            wanted.report.is_none_or(|report| report == run.report)
                && wanted.before.is_none_or(|before| run.scheduled_for < before)
                && (wanted.states.is_empty() || wanted.states.contains(&run.state))
        };
        let mut runs: Vec<ReportRun> = self.runs.values().filter(is_wanted).cloned().collect();
        runs.sort_by_key(|run| (std::cmp::Reverse(run.scheduled_for), run.report.to_string()));
        runs.truncate(wanted.limit.unwrap_or(usize::MAX));
        runs
    }

    pub(super) fn add(&mut self, run: &ReportRun) -> Result<bool> {
        if !self.reports.contains_key(&run.report) {
            return Err(CatalogError::NotFound { what: "report", name: run.report.to_string() });
        }
        let key = (run.report, run.scheduled_for);
        let is_new = !self.runs.contains_key(&key);
        if is_new {
            self.runs.insert(key, run.clone());
        }
        Ok(is_new)
    }

    /// Whether a run is still in that state and attempt.
    pub(super) fn is_at(&self, was: (RunState, i64), run: &ReportRun) -> bool {
        let known = self.runs.get(&(run.report, run.scheduled_for));
        known.is_some_and(|known| (known.state, known.attempt) == was)
    }

    pub(super) fn write(&mut self, run: &ReportRun) {
        self.runs.insert((run.report, run.scheduled_for), run.clone());
    }

    fn check_name(&self, report: &Report) -> Result<()> {
        match self.reports.values().any(|other| other.name == report.name && other.id != report.id) {
            true => Err(CatalogError::AlreadyExists { what: "report", name: report.name.clone() }),
            false => Ok(()),
        }
    }
}
