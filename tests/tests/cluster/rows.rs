//! Queries of many shapes give the same rows on executors as in one process; what either computed serves both.

use nectarine_tests::fleet::Fleet;

/// Tables `t` (Parquet, four files) and `c` (CSV, two files) with the same rows and two more columns in `t`, `d` (Parquet), and `j`
/// (NDJSON).
fn tables(fleet: &Fleet) {
    for folder in ["t", "c", "d", "j"] {
        std::fs::create_dir_all(fleet.path(folder)).expect("a folder");
    }
    for file in 0..4 {
        let from = file * 5000;
        let columns = "value AS id, value % 97 AS g, (value * 7919) % 20011 AS v, CAST((value * 31) % 1000 AS DOUBLE) / 8 AS f, \
                       concat('name ', CAST(value % 13 AS TEXT)) AS name, CASE WHEN value % 5 = 0 THEN NULL ELSE value % 11 END AS n, \
                       DATE '2026-01-01' + CAST(value % 365 AS INT) AS day, CAST(value % 100000 AS DECIMAL(12, 2)) / 100 AS price";
        fleet.rows(&format!("COPY (SELECT {columns} FROM range({from}, {from} + 5000)) TO '{{dir}}/t/{file}.parquet'"));
    }
    for file in 0..2 {
        let from = file * 4000;
        fleet.rows(&format!(
            "COPY (SELECT value AS id, value % 97 AS g, concat('a, \"', CAST(value % 7 AS TEXT), '\"') AS name FROM range({from}, {from} \
             + 4000)) TO '{{dir}}/c/{file}.csv' OPTIONS (format.has_header true)"
        ));
        fleet.rows(&format!(
            "COPY (SELECT value AS id, value % 3 AS k FROM range({from}, {from} + 4000)) TO '{{dir}}/j/{file}.json'"
        ));
    }
    fleet.rows("COPY (SELECT value AS g, concat('group ', CAST(value AS TEXT)) AS title FROM range(0, 90)) TO '{dir}/d/0.parquet'");
    fleet.rows(
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'; CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION '{dir}/d/'; \
         CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{dir}/c/' OPTIONS (format.has_header true); \
         CREATE EXTERNAL TABLE j STORED AS JSON LOCATION '{dir}/j/'; \
         CREATE TABLE m AS SELECT value AS id, value % 10 AS k FROM range(0, 3000)",
    );
}

/// Queries that run on executors.
const THERE: [&str; 24] = [
    "SELECT count(*), sum(v), min(name), max(day) FROM t",
    "SELECT g, count(*) AS c, sum(v) AS s, min(day), sum(price) FROM t GROUP BY g ORDER BY g",
    "SELECT name, count(n), count(DISTINCT g), avg(v) FROM t WHERE v > 700 GROUP BY name ORDER BY name",
    "SELECT t.g, d.title, sum(v) AS s FROM t JOIN d ON t.g = d.g GROUP BY t.g, d.title ORDER BY s DESC, t.g LIMIT 7",
    "SELECT d.title, count(v) FROM d LEFT JOIN t ON t.g = d.g AND t.v < 40 GROUP BY d.title ORDER BY d.title",
    "SELECT t.id, d.title FROM t RIGHT JOIN d ON t.g = d.g WHERE t.id IS NULL OR t.id < 30 ORDER BY t.id, d.title",
    "SELECT a.g, b.g FROM (SELECT DISTINCT g FROM t WHERE g < 95) a FULL JOIN (SELECT g FROM d) b ON a.g = b.g ORDER BY a.g, b.g",
    "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM d WHERE d.g = t.g)",
    "SELECT count(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM d WHERE d.g = t.g)",
    "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 11",
    "SELECT id, v FROM t WHERE name = 'name 3' AND day < DATE '2026-02-01' ORDER BY id",
    "SELECT g, count(*) FROM c GROUP BY g ORDER BY g",
    "SELECT name, count(*), sum(id) FROM c GROUP BY name ORDER BY name",
    "SELECT t.g, count(*) FROM t JOIN c ON t.id = c.id WHERE c.name LIKE '%3%' GROUP BY t.g ORDER BY t.g",
    "SELECT k, sum(id) FROM j GROUP BY k ORDER BY k",
    "SELECT k, count(*), sum(id) FROM m GROUP BY k ORDER BY k",
    "SELECT count(*), sum(s) FROM (SELECT g, name, sum(v) AS s FROM t GROUP BY g, name HAVING sum(v) > 1000)",
    "SELECT g, c FROM (SELECT g, count(*) AS c FROM t GROUP BY g UNION ALL SELECT g, -count(*) FROM c GROUP BY g) ORDER BY g, c",
    "SELECT count(*) FROM (SELECT g FROM t UNION ALL SELECT g FROM c UNION ALL SELECT g FROM d)",
    "SELECT id, rank() OVER (PARTITION BY g ORDER BY v DESC) AS r FROM t WHERE g < 4 ORDER BY id",
    "SELECT g, sum(f) FROM t GROUP BY g ORDER BY g",
    "SELECT count(*) FROM t WHERE v > (SELECT avg(v) FROM t)",
    "SELECT a.g, count(*) FROM t a, d b WHERE a.g < b.g AND a.v < 60 GROUP BY a.g ORDER BY a.g",
    "SELECT upper(name), extract(month FROM day) AS mo, sum(price) FROM t GROUP BY upper(name), mo ORDER BY 1, 2",
];

/// Queries that stay in the server's process, and why.
const HERE: [(&str, &str); 6] = [
    ("SELECT 1", "has not been taught to travel"),
    ("SELECT name FROM system.settings WHERE name = 'nectarine.execution'", "memory"),
    ("SELECT count(*) FROM t WHERE random() < 2", "another value each time"),
    ("SELECT g, twice(count(*)) FROM t GROUP BY g ORDER BY g", ""),
    ("SELECT a.s = b.s FROM (SELECT sum(f) AS s FROM t) a, (SELECT sum(f) AS s FROM t) b", "order of rows"),
    ("SELECT count(*) FROM t WHERE g NOT IN (SELECT n FROM t WHERE v < 100)", ""),
];

#[test]
fn the_same_rows_there_as_here() {
    for n_executors in [1, 2, 3] {
        let fleet = Fleet::start(n_executors, if n_executors == 1 { 2 } else { 1 });
        tables(&fleet);
        let mut stayed = vec![];
        for sql in THERE {
            let n_before = fleet.jobs("finished");
            let explained = fleet.rows(&format!("EXPLAIN STAGES {sql}"));
            let there = fleet.there(sql, "off");
            assert_eq!(there, fleet.here(sql, "off"), "{n_executors} executors: {sql}\n{explained}");
            assert!(!there.is_empty(), "{sql}");
            if fleet.jobs("finished") != n_before + 1 {
                stayed.push((sql, explained));
            }
        }
        let failed = fleet.rows("SELECT query, state, detail FROM system.cluster_jobs WHERE state <> 'finished'");
        assert!(stayed.is_empty() && failed.is_empty(), "these did not run on executors: {stayed:#?}\n{failed}");
    }
}

#[test]
fn what_may_not_travel_stays() {
    let fleet = Fleet::start(1, 2);
    tables(&fleet);
    fleet.rows("CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN x * 2");
    for (sql, reason) in HERE {
        let n_before = fleet.jobs("finished");
        let ran = fleet.run(&format!("SET nectarine.execution = 'cluster'; SET nectarine.reuse = 'off'; {sql}"));
        assert!(ran.status.success(), "{sql}: {}", ran.stderr);
        assert_eq!(ran.stdout.trim_end(), fleet.here(sql, "off"), "{sql}");
        if fleet.jobs("finished") == n_before {
            assert!(ran.stderr.contains("ran in this process") && ran.stderr.contains(reason), "{sql}: {}", ran.stderr);
        } else {
            assert_eq!(reason, "", "{sql} travelled");
        }
    }
    let told = fleet.run("SET nectarine.execution = 'elsewhere'").stderr;
    assert!(told.contains("auto, local, cluster"), "{told}");
}

/// Elsewhere another file may have the same name: what is on this machine's disk travels only if somebody says that all see it.
#[test]
fn local_files_stay_where_others_may_have_others() {
    let fleet = Fleet::with_other_disks(1, 2);
    tables(&fleet);
    let sql = "SELECT g, count(*) FROM t GROUP BY g ORDER BY g";
    let ran = fleet.run(&format!("SET nectarine.execution = 'cluster'; SET nectarine.reuse = 'off'; {sql}"));
    assert!(ran.stderr.contains("nectarine.cluster_shared_files"), "{}", ran.stderr);
    assert_eq!(fleet.jobs("finished"), 0);
    let there = fleet.there(&format!("SET nectarine.cluster_shared_files = true; {sql}"), "off");
    assert_eq!(there, ran.stdout.trim_end());
    assert_eq!(fleet.jobs("finished"), 1);
}

/// Entries that the cluster made serve the process, those of the process serve the cluster's queries, and appends are seen.
#[test]
fn entries_of_either_serve_both() {
    let fleet = Fleet::start(2, 1);
    tables(&fleet);
    let exact = "SELECT sql FROM system.queries WHERE reuse = 'exact' ORDER BY started_at DESC LIMIT 1";
    let by_group = "SELECT g, count(*), sum(v) FROM t GROUP BY g ORDER BY g";
    let n_before = fleet.jobs("finished");
    let there = fleet.there(by_group, "on");
    assert_eq!(fleet.jobs("finished"), n_before + 1);
    // Found here, and found by whoever asks for the cluster.
    assert_eq!(fleet.here(by_group, "on"), there);
    assert_eq!(fleet.rows(exact).trim_matches('"'), by_group);
    assert_eq!(fleet.there(by_group, "on"), there);
    assert_eq!(fleet.jobs("finished"), n_before + 1, "what is known runs nowhere");
    let by_name = "SELECT name, count(*), min(v) FROM t GROUP BY name ORDER BY name";
    let here = fleet.here(by_name, "on");
    assert_eq!(fleet.there(by_name, "on"), here);
    assert_eq!(fleet.rows(exact).trim_matches('"'), by_name);
    // What was kept is what would be computed.
    assert_eq!(fleet.here(by_group, "check"), there);
    for round in 0..3 {
        fleet.rows(&format!(
            "COPY (SELECT value AS id, value % 97 AS g, value AS v, 1.5 AS f, 'name 1' AS name, value % 3 AS n, DATE '2026-05-05' AS day, \
             CAST(1 AS DECIMAL(12, 2)) AS price FROM range({round}000, {round}777)) TO '{{dir}}/t/more{round}.parquet'"
        ));
        for sql in [by_group, by_name] {
            assert_eq!(fleet.there(sql, "on"), fleet.here(sql, "off"), "{sql}");
            assert_eq!(fleet.there(sql, "off"), fleet.here(sql, "on"), "{sql}");
        }
    }
}

/// A statement whose client goes away ends on the executors too.
#[test]
fn cancelled_statements_end_there() {
    let fleet = Fleet::start(1, 2);
    tables(&fleet);
    // Long enough to be cancelled in the middle, on any machine.
    let long =
        "SELECT a.g, count(*) FROM t a, t b, t c WHERE a.v + b.v > 7 AND b.v + c.v > 7 GROUP BY a.g ORDER BY a.g";
    let out = fleet.run(&format!("SET nectarine.statement_timeout = 3; SET nectarine.execution = 'cluster'; {long}"));
    assert!(!out.status.success(), "{}", out.stdout);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while fleet.rows("SELECT count(*) FROM system.cluster_jobs WHERE state = 'running'") != "0" {
        assert!(std::time::Instant::now() < until, "the job goes on");
    }
    assert_eq!(fleet.jobs("cancelled"), 1, "{}", fleet.rows("SELECT * FROM system.cluster_jobs"));
    // The executor is free for the next one.
    let short = "SELECT count(*) FROM t";
    assert_eq!(fleet.there(short, "off"), "20000");
}

/// What the stages did, in place of the rows.
#[test]
fn analyzed_there() {
    let fleet = Fleet::start(2, 1);
    tables(&fleet);
    let sql = "SELECT g, count(*) AS c FROM t GROUP BY g ORDER BY g";
    let told = fleet.there(&format!("EXPLAIN ANALYZE {sql}"), "off");
    for word in
        ["\"rows=97, tries=1\"", "Stage 1,", "tasks=2", "Stage 2,", "reads=[1]", "longest_task=", "AggregateExec"]
    {
        assert!(told.contains(word), "{told} does not say {word}");
    }
    assert_eq!(fleet.jobs("finished"), 1);
    // In this process as ever.
    let told = fleet.here(&format!("EXPLAIN ANALYZE {sql}"), "off");
    assert!(told.contains("Plan with Metrics") && !told.contains("Stage 1"), "{told}");
    assert_eq!(fleet.jobs("finished"), 1);
}
