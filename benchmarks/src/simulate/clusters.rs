//! [`clusters`]: jobs with the shape of Nectar's section 4.1, made up from a seed.
//!
//! ```text
//!   paper                                             here
//!   33182 jobs of 25 clusters in three months         the same; clusters of unequal size, by the paper's table 1
//!   click logs and search logs, append-only streams   some streams a cluster, an extent a day, of unequal size
//!   programs are sequences of SQL-like queries        chains of 2 to 5 stages; some begin like others (`stages`)
//!   programs that run each day                        on the newest extent, a window that slides, or all there is
//!   programs that are being debugged                  a few tries on the same extents, the last stages changed
//! ```
//!
//! The paper's logs are not public: what is known of them is what the paper says, and the figures that it gives stand beside those
//! of this workload in the report. All else is a guess, and the same each time for a seed.

mod arrivals;
mod stages;

use self::arrivals::Cluster;
use super::workload::Workload;
use crate::random::Random;

/// Jobs in all.
pub(crate) const JOBS: u64 = 33_182;
/// Days of the log.
pub(crate) const DAYS: u32 = 90;

/// What caching would save in each cluster, hours a day: the paper's table 1. Says how large the clusters are.
const HOURS_SAVED: [f64; 25] = [
    3898.0, 2276.0, 977.0, 1345.0, 7143.0, 62.0, 57.0, 590.0, 763.0, 2457.0, 1924.0, 368.0, 105.0, 753.0, 755.0,
    2259.0, 3385.0, 528.0, 4.0, 415.0, 606.0, 2002.0, 1316.0, 291.0, 58.0,
];

/// All clusters, so many jobs together.
pub(crate) fn clusters(seed: u64, n_jobs: u64) -> Vec<Workload> {
    // A cluster that saves a hundred times as much has ten times as many jobs, and each is ten times as large.
    let sizes = HOURS_SAVED.map(f64::sqrt);
    let sum: f64 = sizes.iter().sum();
    let mean = sum / sizes.len() as f64;
    let (mut jobs_left, mut sizes_left) = (n_jobs, sum);
    let mut workloads = vec![];
    for (number, size) in (1..).zip(sizes) {
        // The last one has what rounding left.
        let own = (jobs_left as f64 * size / sizes_left).round() as u64;
        jobs_left -= own.min(jobs_left);
        sizes_left -= size;
        let random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number));
        workloads.push(Cluster::new(random, size / mean).workload(format!("C{number}"), own as usize));
    }
    workloads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_each_time_and_as_many_as_there_should_be() {
        let made = clusters(1, 2_000);
        assert_eq!(made, clusters(1, 2_000));
        assert_ne!(made, clusters(2, 2_000));
        assert_eq!(made.iter().map(|cluster| cluster.jobs.len()).sum::<usize>(), 2_000);
        assert_eq!(made.len(), 25);
        for cluster in &made {
            assert!(cluster.jobs.is_sorted_by_key(|job| job.at_us), "{}", cluster.name);
            for job in &cluster.jobs {
                assert!(job.prefixes.is_sorted_by_key(|prefix| std::cmp::Reverse(prefix.cost_us)));
                let inputs = job.prefixes.iter().map(|prefix| (prefix.key.stream, prefix.key.first, prefix.key.end));
                assert!(inputs.clone().all(|input| Some(input) == inputs.clone().next() && input.1 < input.2));
            }
        }
    }
}
