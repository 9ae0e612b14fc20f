//! What eviction costs: a workload is replayed against policies and budgets. Nothing is computed; months take a second.
//!
//! ```text
//!   clusters   jobs made up with the shape of Nectar's section 4.1
//!   recorded   jobs that a home ran
//!   workload   what a job is
//!   replay     what a cache saves of them
//!   home       that cache, with the engine's own marks, admission and eviction
//!   segments   which entries over some extents to read
//! ```

mod clusters;
mod home;
mod recorded;
mod replay;
mod segments;
mod workload;

use anyhow::Result;
use nectarine_engine::EvictionPolicy;

pub(crate) use self::clusters::{DAYS, JOBS};
use self::replay::replay;
pub(crate) use self::replay::{Outcome, share};
use self::workload::Workload;
use crate::args::SimulateArgs;

/// What the paper's policy has to keep of the savings when it has half the space.
pub(crate) const KEPT_MIN: f64 = 0.9;
/// One part in so many of what a cache without limit takes.
const PARTS: [u64; 4] = [2, 4, 8, 16];
const POLICIES: [EvictionPolicy; 3] = [EvictionPolicy::Nectar, EvictionPolicy::Lru, EvictionPolicy::GreedyDualSize];
/// Further seeds that are looked at, so that one lucky draw does not decide.
const OTHER_SEEDS: u64 = 9;

/// All that was found.
pub(crate) struct Figures {
    pub(crate) args: SimulateArgs,
    /// Of each home without a limit.
    pub(crate) homes: Vec<Outcome>,
    /// Of all together.
    pub(crate) unlimited: Outcome,
    pub(crate) limited: Vec<Limited>,
    /// What the paper's policy keeps at half the space of workloads made from other seeds.
    pub(crate) other_seeds: Vec<f64>,
}

/// One policy with one budget.
pub(crate) struct Limited {
    /// One part in so many of what each home takes without a limit.
    pub(crate) part: u64,
    pub(crate) policy: EvictionPolicy,
    /// All homes together.
    pub(crate) budget: u64,
    pub(crate) outcome: Outcome,
    /// Of the savings without a limit.
    pub(crate) kept: f64,
    /// Homes that keep enough of theirs.
    pub(crate) n_homes_well: usize,
}

impl Limited {
    /// Whether this is what the target is about.
    pub(crate) fn is_target(&self) -> bool {
        self.part == 2 && self.policy == EvictionPolicy::Nectar
    }
}

/// Replays what was asked for.
pub(crate) async fn measure(args: &SimulateArgs) -> Result<Figures> {
    let workloads = match &args.home {
        Some(home) => vec![recorded::read(home).await?],
        None => clusters::clusters(args.seed, args.jobs),
    };
    let args = args.clone();
    Ok(tokio::task::spawn_blocking(move || figures(args, &workloads)).await?)
}

fn figures(args: SimulateArgs, workloads: &[Workload]) -> Figures {
    let homes = without_limit(workloads);
    let mut limited = vec![];
    for part in PARTS {
        limited.extend(POLICIES.map(|policy| with_limit(workloads, &homes, policy, part)));
    }
    let seeds = (1..=OTHER_SEEDS).map(|step| args.seed.wrapping_add(step)).filter(|_| args.home.is_none());
    let other_seeds = seeds.map(|seed| {
        let workloads = clusters::clusters(seed, args.jobs);
        with_limit(&workloads, &without_limit(&workloads), EvictionPolicy::Nectar, 2).kept
    });
    Figures { unlimited: sum(&homes), limited, other_seeds: other_seeds.collect(), homes, args }
}

fn without_limit(workloads: &[Workload]) -> Vec<Outcome> {
    workloads.iter().map(|workload| replay(workload, EvictionPolicy::Nectar, u64::MAX)).collect()
}

fn with_limit(workloads: &[Workload], unlimited: &[Outcome], policy: EvictionPolicy, part: u64) -> Limited {
    let budget_of = |unlimited: &Outcome| unlimited.totals.bytes_max / part;
    let homes: Vec<Outcome> =
        workloads.iter().zip(unlimited).map(|(workload, all)| replay(workload, policy, budget_of(all))).collect();
    let outcome = sum(&homes);
    let is_well = |(home, all): &(&Outcome, &Outcome)| home.saved_us as f64 >= all.saved_us as f64 * KEPT_MIN;
    Limited {
        part,
        policy,
        budget: unlimited.iter().map(budget_of).sum(),
        kept: share(outcome.saved_us, sum(unlimited).saved_us),
        n_homes_well: homes.iter().zip(unlimited).filter(is_well).count(),
        outcome,
    }
}

fn sum(homes: &[Outcome]) -> Outcome {
    homes.iter().fold(Outcome::default(), |mut sum, home| {
        sum.add(home);
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_one() {
        let args = SimulateArgs { jobs: 2_000, ..SimulateArgs::default() };
        let figures = figures(args.clone(), &clusters::clusters(args.seed, args.jobs));
        assert_eq!((figures.unlimited.n_jobs, figures.unlimited.totals.evicted), (2_000, 0));
        assert!(figures.unlimited.n_hits() > 200 && figures.unlimited.saved_us < figures.unlimited.cost_us);
        assert_eq!((figures.limited.len(), figures.other_seeds.len()), (12, 9));
        for limited in &figures.limited {
            assert!(limited.outcome.totals.bytes_max <= limited.budget && limited.outcome.totals.evicted > 0);
            assert_eq!(limited.outcome.cost_us, figures.unlimited.cost_us);
        }
        let saved = |part: u64| {
            let of =
                figures.limited.iter().find(|limited| limited.part == part && limited.policy == EvictionPolicy::Nectar);
            of.map_or(0, |limited| limited.outcome.saved_us)
        };
        assert!(saved(16) < saved(2), "{} {}", saved(16), saved(2));
    }
}
