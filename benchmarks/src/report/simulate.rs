//! The part about eviction.

use nectarine_engine::EvictionPolicy;

use super::{Report, verdict};
use crate::chart::{Chart, Scale, Series};
use crate::simulate::{DAYS, Figures, KEPT_MIN, Limited, Outcome, share};

impl Report {
    pub(crate) fn simulate(&mut self, figures: &Figures) {
        self.line("## What eviction costs: a simulation");
        self.line("");
        match &figures.args.home {
            Some(home) => self.recorded(&home.display().to_string(), figures),
            None => self.made_up(figures),
        }
        self.line(
            "Nothing is computed: jobs arrive, and a cache with the engine's own marks (high and low water, largest entry, fresh \
             entries), admission and eviction keeps and evicts. Budgets are parts of what the same cache takes without one. \
             Saved is processor time, without what reading the entries takes; of unlimited is how much of that is left with the \
             budget (a little more than all is possible: who misses computes, and leaves more behind). Approximated: a job \
             arrives, runs and leaves its results in one moment; it is a chain of prefixes and reads entries of one of them; \
             work and rows go with the bytes of the input, groups with their root.",
        );
        self.line("");
        let target = figures.limited.iter().find(|limited| limited.is_target());
        self.line(&format!(
            "Target: the paper's policy keeps at least {} of the savings with half the space: {} {}{}.",
            percent(KEPT_MIN),
            percent(target.map_or(0.0, |target| target.kept)),
            verdict(target.is_some_and(|target| target.kept >= KEPT_MIN)),
            others(&figures.other_seeds),
        ));
        self.line("");
        let n_homes = figures.homes.len();
        let mut rows =
            vec![row("unlimited", "", &figures.unlimited, figures.unlimited.totals.bytes_max, 1.0, String::new())];
        rows.extend(figures.limited.iter().map(|limited| {
            let Limited { part, policy, budget, outcome, kept, n_homes_well } = limited;
            row(&format!("1/{part}"), name(*policy), outcome, *budget, *kept, format!("{n_homes_well} of {n_homes}"))
        }));
        let well = format!("homes that keep {}", percent(KEPT_MIN));
        let head = [
            "budget",
            "policy",
            "GB",
            "compute saved",
            "of unlimited",
            &well,
            "seconds saved per GB",
            "evictions",
            "jobs with a hit",
        ];
        let of = |policy: EvictionPolicy| {
            let limited = figures.limited.iter().filter(|limited| limited.policy == policy);
            Series::new(name(policy), limited.map(|limited| limited.kept * 100.0).collect::<Vec<f64>>())
        };
        let targets = figures.limited.iter().filter(|limited| limited.policy == EvictionPolicy::Nectar);
        self.chart(
            "",
            &Chart {
                title: "Savings that are left with a smaller budget (simulated)".to_string(),
                unit: "% of what no limit saves",
                scale: Scale::Linear,
                groups: targets.map(|limited| format!("1/{}", limited.part)).collect(),
                series: [EvictionPolicy::Nectar, EvictionPolicy::Lru, EvictionPolicy::GreedyDualSize].map(of).into(),
            },
        );
        self.table(&head, rows);
    }

    fn recorded(&mut self, home: &str, figures: &Figures) {
        self.line(&format!(
            "{} statements that the home {home} ran, from `system.queries` and `system.lookups`; what prefixes take and leave is from \
             `system.cache_entries` and `system.evictions`. What was not recorded is approximated: prefixes that were never kept \
             are left out, those below a hit are taken from the last statement that missed it, they are ordered by cost, and an \
             input is the continuation of another if the statement reused some of its extents.",
            figures.unlimited.n_jobs
        ));
        self.line("");
    }

    fn made_up(&mut self, figures: &Figures) {
        let args = &figures.args;
        self.line(&format!(
            "{} jobs of 25 clusters in {DAYS} days, made up (seed {}) with the shape of the logs in section 4.1 of the Nectar paper: \
             programs that run each day or each week, tries of programs that are being written, programs that begin like \
             others, windows that slide. Each cluster is a home of its own. The logs are not public: the parameters were set by hand \
             until what a cache without a limit finds here came near to what the paper says of them:",
            args.jobs, args.seed
        ));
        self.line("");
        let homes = &figures.homes;
        let count = |is: &dyn Fn(&Outcome) -> bool| homes.iter().filter(|home| is(home)).count();
        let largest = |of: &dyn Fn(&Outcome) -> f64| homes.iter().map(of).fold(0.0, f64::max);
        let mean = |of: &dyn Fn(&Outcome) -> f64| homes.iter().map(of).sum::<f64>() / homes.len().max(1) as f64;
        let segments = |home: &Outcome| share(home.n_segment, home.n_jobs);
        let all = &figures.unlimited;
        let shape = [
            ("jobs with a hit, mean of the clusters", "more than 35 %", percent(mean(&Outcome::hit_rate))),
            ("clusters where more than 30 % have one", "18 of 25", format!("{}", count(&|home| home.hit_rate() > 0.3))),
            ("the most in a cluster", "65 %", percent(largest(&Outcome::hit_rate))),
            (
                "compute saved",
                "most clusters 20 to 40 %",
                format!(
                    "{}; {} clusters 20 to 40 %",
                    percent(all.saved_share()),
                    count(&|home| (0.2..=0.4).contains(&home.saved_share()))
                ),
            ),
            ("the most in a cluster", "50 %", percent(largest(&Outcome::saved_share))),
            ("hours saved a day", "35078", format!("{:.0}", all.saved_us as f64 / 3.6e9 / f64::from(DAYS))),
            (
                "clusters where less than 5 % read results over some extents",
                "some",
                count(&|home| segments(home) < 0.05).to_string(),
            ),
            (
                "derived data of the first cluster",
                "670 TB",
                terabytes(homes.first().map_or(0, |home| home.totals.bytes_max)),
            ),
            (
                "derived data that nobody read",
                "half of another cluster's, in 250 days",
                percent(share(all.bytes_unread, all.totals.bytes_max)),
            ),
        ];
        self.table(
            &["", "paper", "here"],
            shape.map(|(what, paper, here)| [what.to_string(), paper.to_string(), here]),
        );
    }
}

fn row(part: &str, policy: &str, outcome: &Outcome, budget: u64, kept: f64, well: String) -> [String; 9] {
    let gigabytes = budget as f64 / 1e9;
    let digits = if gigabytes < 100.0 { 3 } else { 0 };
    [
        part.to_string(),
        policy.to_string(),
        format!("{gigabytes:.digits$}"),
        percent(outcome.saved_share()),
        percent(kept),
        well,
        format!("{:.1}", outcome.saved_us as f64 / 1e6 / gigabytes.max(f64::MIN_POSITIVE)),
        outcome.totals.evicted.to_string(),
        percent(outcome.hit_rate()),
    ]
}

fn others(seeds: &[f64]) -> String {
    let (low, high) =
        seeds.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), kept| (low.min(*kept), high.max(*kept)));
    match seeds.len() {
        0 => String::new(),
        n => format!(" (with {n} other seeds {} to {})", percent(low), percent(high)),
    }
}

fn name(policy: EvictionPolicy) -> &'static str {
    match policy {
        EvictionPolicy::Nectar => "nectar",
        EvictionPolicy::Lru => "lru",
        EvictionPolicy::GreedyDualSize => "greedy-dual-size",
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn terabytes(bytes: u64) -> String {
    format!("{:.0} TB", bytes as f64 / 1e12)
}
