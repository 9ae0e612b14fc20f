//! [`Cluster`]: who runs what when.

use super::super::workload::{Job, Key, Stream, Workload};
use super::DAYS;
use super::stages::{Program, Stages};
use crate::random::Random;

/// Days of data before the first day.
const HISTORY: u32 = 30;
/// Bytes of an extent, mostly.
const EXTENT_BYTES: f64 = 1e12;
/// Jobs for each stream, about.
const JOBS_PER_STREAM: usize = 80;

const SECOND_US: f64 = 1e6;
const HOUR_US: f64 = 3_600.0 * SECOND_US;
const DAY_US: f64 = 24.0 * HOUR_US;

/// How people of one cluster work.
pub(super) struct Cluster {
    random: Random,
    /// How large its extents are.
    size: f64,
    /// How often a program goes on as others did.
    sharing: f64,
    /// Jobs that belong to programs which run regularly.
    regular: f64,
    /// Regular programs that read more than the newest extent.
    windows: f64,
    streams: Vec<(Stream, Stages)>,
    next_program: u32,
    jobs: Vec<Job>,
}

/// Which extents a regular program reads.
#[derive(Clone, Copy)]
enum Reads {
    /// The last so many.
    Last(u32),
    /// All.
    All,
}

impl Cluster {
    /// `size` is 1 for the usual one.
    pub(super) fn new(mut random: Random, size: f64) -> Self {
        let sharing = (0.68 + 0.2 * random.bell()).clamp(0.1, 0.95);
        let regular = (0.6 + 0.12 * random.bell()).clamp(0.2, 0.9);
        let windows = random.magnitude(0.003, 0.06);
        Self { random, size, sharing, regular, windows, streams: vec![], next_program: 0, jobs: vec![] }
    }

    /// So many jobs.
    pub(super) fn workload(mut self, name: String, n_jobs: usize) -> Workload {
        for _ in 0..(n_jobs / JOBS_PER_STREAM).max(2) {
            let mean = self.random.skewed(EXTENT_BYTES * self.size, 0.8);
            let extents: Vec<u64> = (0..HISTORY + DAYS).map(|_| self.random.skewed(mean, 0.2) as u64).collect();
            self.streams.push((Stream::of(extents), Stages::new()));
        }
        let n_regular = (n_jobs as f64 * self.regular) as usize;
        while self.jobs.len() < n_regular {
            self.regular_program();
        }
        self.jobs.truncate(n_regular);
        while self.jobs.len() < n_jobs {
            self.tries();
        }
        self.jobs.truncate(n_jobs);
        self.jobs.sort_by_key(|job| job.at_us);
        let streams = self.streams.into_iter().map(|(stream, _)| stream).collect();
        Workload { name, streams, jobs: self.jobs }
    }

    /// A program that runs each day or each week, for some time.
    fn regular_program(&mut self) {
        let stream = self.some_stream();
        let program = self.streams[stream].1.write(&mut self.random, self.sharing, &mut self.next_program);
        let random = &mut self.random;
        let reads = match random.chance(self.windows) {
            false => Reads::Last(1),
            true if random.chance(0.8) => Reads::Last(7),
            true if random.chance(0.5) => Reads::Last(28),
            true => Reads::All,
        };
        let every = if random.chance(0.8) { 1 } else { 7 };
        let from = if random.chance(0.5) { random.below(7) } else { random.below(DAYS.into()) } as u32;
        let lasts = if random.chance(0.5) { DAYS } else { 7 + random.below(60) as u32 };
        let hour = random.fraction() * 20.0;
        let mut day = from;
        while day < DAYS.min(from + lasts) {
            let at = f64::from(day) * DAY_US + (hour + self.random.fraction() * 2.0) * HOUR_US;
            let key = self.extents(stream, day, reads);
            self.run(at, program, key, matches!(reads, Reads::Last(days) if days > 1));
            // Someone runs it once more: what came after it failed, or they did not know.
            if self.random.chance(0.1) {
                let later = self.random.skewed(2.0 * HOUR_US, 1.0);
                self.run(at + later, program, key, matches!(reads, Reads::Last(days) if days > 1));
            }
            day += every;
        }
    }

    /// Someone who looks into something: a program, and changes to it until they are content.
    fn tries(&mut self) {
        let stream = self.some_stream();
        let mut program = self.streams[stream].1.write(&mut self.random, self.sharing, &mut self.next_program);
        let day = self.random.below(DAYS.into()) as u32;
        let n_extents = [1, 1, 1, 1, 1, 2, 3, 7][self.random.below(8) as usize];
        let key = self.extents(stream, day, Reads::Last(n_extents));
        let mut at = f64::from(day) * DAY_US + (8.0 + self.random.fraction() * 10.0) * HOUR_US;
        loop {
            self.run(at, program, key, false);
            if self.random.chance(0.55) {
                return;
            }
            if self.random.chance(0.75) {
                program = self.streams[stream].1.rewrite(&mut self.random, program, &mut self.next_program);
            }
            at += self.random.skewed(0.4 * HOUR_US, 1.0);
        }
    }

    fn run(&mut self, at: f64, program: Program, key: Key, is_window: bool) {
        let (stream, stages) = &self.streams[key.stream as usize];
        let prefixes = stages.prefixes(program, key, stream.bytes(key.first, key.end), is_window);
        let cost_us = prefixes.first().map_or(0, |root| root.cost_us);
        self.jobs.push(Job { at_us: at as u64, cost_us, prefixes });
    }

    /// Few are read by many.
    fn some_stream(&mut self) -> usize {
        let share = self.random.fraction();
        ((self.streams.len() as f64 * share * share) as usize).min(self.streams.len() - 1)
    }

    fn extents(&self, stream: usize, day: u32, reads: Reads) -> Key {
        let end = HISTORY + day;
        let first = match reads {
            Reads::Last(n) => end - n.min(end),
            Reads::All => 0,
        };
        Key { program: 0, stream: stream as u32, first, end }
    }
}
