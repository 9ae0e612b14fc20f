//! A loss at the one moment that matters: a task in the middle of a job has ended, the stage it belongs to has not, and the rows that
//! the stage reads are lost. Ballista then begins the stage again and counts what the task had written twice.
//!
//! ```text
//!   maps (both executors) --> join by key: a short task ends, a long one runs --> rows in order
//!                                             on A             on B: killed
//! ```

use std::time::{Duration, Instant};

use nectarine_tests::fleet::Fleet;

/// Rows of the one key that many rows have: each meets all others, in one task. More where a machine is too fast to be caught.
const HEAVY: [usize; 4] = [5_000, 10_000, 20_000, 40_000];

/// Keys that one row has: some of them are in the task that ends soon.
const LIGHT: usize = 2_000;

const SQL: &str =
    "SELECT a.k, count(*) AS n, sum((a.v * b.v) % 7) AS s FROM t a JOIN t b ON a.k = b.k GROUP BY a.k ORDER BY a.k";

/// Stages in the middle of a job that runs, with one task that has ended and one that has not.
const HALF: &str = "SELECT count(*) FROM system.stages s JOIN system.cluster_jobs j ON s.job_id = j.job_id WHERE j.state = 'running' \
                    AND s.reads_stages <> '' AND s.state = 'running' AND s.tasks = 2 AND s.tasks_done = 1";

fn table(fleet: &Fleet, heavy: usize) {
    let folder = format!("t{heavy}");
    std::fs::create_dir_all(fleet.path(&folder)).expect("a folder");
    let n = (heavy + LIGHT).div_ceil(4);
    for file in 0..4 {
        let from = file * n;
        fleet.rows(&format!(
            "COPY (SELECT CASE WHEN value % ({heavy} + {LIGHT}) < {heavy} THEN 0 ELSE value END AS k, value % 101 AS v FROM range({from}, \
             {from} + {n})) TO '{{dir}}/{folder}/{file}.parquet'"
        ));
    }
    fleet.rows(&format!(
        "DROP TABLE IF EXISTS t; CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{{dir}}/{folder}/'"
    ));
}

/// Runs the query and kills the executor that has the long task when the short one has ended. `None` if it never came to that.
fn lost_in_the_middle(fleet: &mut Fleet) -> Option<String> {
    let mut command = fleet.client();
    command.arg("-c").arg(format!("SET nectarine.execution = 'cluster'; SET nectarine.reuse = 'off'; {SQL}"));
    let asked = std::thread::spawn(move || nectarine_tests::program::finish(command, b""));
    let mut hit = false;
    while !hit && !asked.is_finished() {
        let busy = match fleet.rows(HALF) == "1" {
            true => fleet.busy(),
            false => vec![],
        };
        if let [victim] = busy.as_slice() {
            fleet.kill(*victim);
            hit = true;
        }
    }
    let ran = asked.join().expect("the client ends");
    assert!(ran.status.success(), "{}\nserver: {}", ran.stderr, fleet.said());
    hit.then(|| ran.stdout.trim_end().to_owned())
}

#[test]
fn what_a_task_wrote_before_a_loss_is_not_counted_twice() {
    let mut fleet = Fleet::start(2, 1);
    for heavy in HEAVY {
        table(&fleet, heavy);
        let expected = fleet.here(SQL, "off");
        assert!(expected.starts_with("0,") && expected.lines().count() > LIGHT / 2, "{expected}");
        let started = Instant::now();
        let Some(found) = lost_in_the_middle(&mut fleet) else { continue };
        let jobs = fleet.rows("SELECT job_id, attempt, state, detail FROM system.cluster_jobs ORDER BY started_at");
        assert!(
            found == expected,
            "rows differ: {} instead of {}\n{jobs}",
            found.lines().count(),
            expected.lines().count()
        );
        // That the moment was hit: the stage was begun again, and so was the job.
        let again = "SELECT count(*) FROM system.cluster_jobs WHERE state = 'again' AND detail LIKE '%begun again%'";
        assert_ne!(fleet.rows(again), "0", "{jobs}");
        assert!(started.elapsed() < Duration::from_secs(120), "{:?}", started.elapsed());
        return;
    }
    panic!("the job never was where a loss matters");
}
