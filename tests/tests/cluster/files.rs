//! Executors that have other files behind the same paths: the rows are those of the server's files, whatever others have.
//!
//! Every process has a folder of its own behind `/proc/self/cwd`, as every machine has disks of its own.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use nectarine_tests::fleet::Fleet;

const BY_GROUP: &str = "SELECT g, count(*), sum(v) FROM t GROUP BY g ORDER BY g";
const BY_NAME: &str = "SELECT name, count(*), sum(id) FROM c GROUP BY name ORDER BY name";

/// Files of two tables below a folder; `v` and `name` are those of `version`.
fn write(fleet: &Fleet, folder: &str, version: usize) {
    for name in ["t", "c"] {
        fs::create_dir_all(fleet.path(folder).join(name)).expect("a folder");
    }
    for file in 0..4 {
        let rows = format!("FROM range({file}000, {file}999)");
        fleet.rows(&format!(
            "COPY (SELECT value AS id, value % 7 AS g, value * {version} AS v {rows}) TO '{{dir}}/{folder}/t/{file}.parquet'; \
             COPY (SELECT value AS id, concat('name ', CAST(value % 3 + {version} AS TEXT)) AS name {rows}) TO \
             '{{dir}}/{folder}/c/{file}.csv' OPTIONS (format.has_header true)"
        ));
    }
}

fn each_file(folder: &Path, mut change: impl FnMut(&Path)) {
    for table in ["t", "c"] {
        for file in fs::read_dir(folder.join(table)).expect("a folder").flatten() {
            change(&file.path());
        }
    }
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|found| found.modified()).expect("a file has a time")
}

fn touch(path: &Path, time: SystemTime) {
    File::options().write(true).open(path).and_then(|file| file.set_modified(time)).expect("it can be touched");
}

/// A copy as `cp -p` makes it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("it is in a folder")).expect("a folder");
    fs::copy(from, to).expect("it can be copied");
    touch(to, modified(from));
}

struct Both {
    fleet: Fleet,
    expected: [String; 2],
}

impl Both {
    /// Runs both queries; how many of them the executors did.
    fn run(&self) -> usize {
        let n_before = self.fleet.jobs("finished");
        for (sql, expected) in [BY_GROUP, BY_NAME].iter().zip(&self.expected) {
            assert_eq!(self.fleet.there(sql, "off"), *expected, "{sql}: {}", self.told());
        }
        self.fleet.jobs("finished") - n_before
    }

    /// What the last job came to.
    fn told(&self) -> String {
        self.fleet.rows("SELECT state, detail FROM system.cluster_jobs ORDER BY started_at DESC LIMIT 1")
    }

    /// Runs both queries, which the executors can not do, because of that.
    fn stays(&self, table: &str, detail: &str) {
        let n_before = self.fleet.jobs("given up");
        let sql = if table == "t" { BY_GROUP } else { BY_NAME };
        let expected = &self.expected[usize::from(table == "c")];
        let ran = self.fleet.run(&format!("SET nectarine.execution = 'cluster'; SET nectarine.reuse = 'off'; {sql}"));
        assert!(ran.status.success(), "{}", ran.stderr);
        assert_eq!(ran.stdout.trim_end(), expected, "{}", self.told());
        assert_eq!(self.fleet.jobs("given up"), n_before + 1, "{}", self.told());
        // Whoever asked for the cluster is told, and so is whoever looks later.
        let path = format!("/proc/self/cwd/{table}/");
        for told in [self.told(), ran.stderr] {
            for word in ["executor 127.0.0.1:", "does not have the file that the server saw", path.as_str(), detail] {
                assert!(told.contains(word), "{told} does not say {word}");
            }
        }
    }
}

#[test]
fn other_files_behind_the_same_paths_are_not_read() {
    let mut fleet = Fleet::alone(|_| ());
    write(&fleet, ".", 1);
    let (here, elsewhere) = (fleet.folder().to_path_buf(), fleet.path("elsewhere"));
    each_file(&here, |path| copy(path, &elsewhere.join(path.strip_prefix(&here).expect("it is below"))));
    // Until it is known by its size and time: Parquet files are, text is known by its content.
    std::thread::sleep(Duration::from_millis(2_500));
    fleet.rows(
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '/proc/self/cwd/t/'; \
         CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '/proc/self/cwd/c/' OPTIONS (format.has_header true)",
    );
    let expected = [fleet.here(BY_GROUP, "off"), fleet.here(BY_NAME, "off")];
    fleet.add(1);
    fleet.add_with(1, |command| _ = command.current_dir(&elsewhere));
    fleet.wait_for(2);
    let both = Both { fleet, expected };
    assert_eq!(both.run(), 2, "copies are as good: {}", both.told());
    // Another time.
    each_file(&elsewhere, |path| touch(path, modified(path) + Duration::from_secs(1)));
    both.stays("t", "was modified at another time");
    assert_eq!(both.run(), 1, "text is known by its content: {}", both.told());
    // Other rows, and the same size and time where that is possible.
    fs::remove_dir_all(elsewhere.join("t"))
        .and_then(|()| fs::remove_dir_all(elsewhere.join("c")))
        .expect("they are there");
    write(&both.fleet, "elsewhere", 2);
    each_file(&elsewhere, |path| {
        touch(path, modified(&here.join(path.strip_prefix(&elsewhere).expect("it is below"))))
    });
    both.stays("c", "holds something else");
    each_file(&elsewhere, |path| touch(path, SystemTime::now()));
    both.stays("t", "");
    // What is kept is what the server saw.
    assert_eq!(both.fleet.there(BY_GROUP, "on"), both.expected[0]);
    assert_eq!(both.fleet.here(BY_GROUP, "on"), both.expected[0]);
    // None at all.
    each_file(&elsewhere, |path| fs::remove_file(path).expect("it is there"));
    both.stays("t", "is not there");
    both.stays("c", "is not there");
    // And as they were.
    each_file(&here, |path| copy(path, &elsewhere.join(path.strip_prefix(&here).expect("it is below"))));
    assert_eq!(both.run(), 2, "{}", both.told());
}
