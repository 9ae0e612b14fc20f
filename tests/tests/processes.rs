//! Several engines on one home: what one commits the others see in their next statement, and nothing gets lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nectarine_tests::db::Db;
use nectarine_tests::files::numbers;
use nectarine_tests::program::Program;

#[tokio::test]
async fn two_engines_see_what_the_other_commits() {
    let one = Db::new().await;
    let two = one.second().await;
    one.ok("CREATE TABLE t AS SELECT 1 AS a").await;
    assert_eq!(two.ok("SELECT * FROM t").await, "1");
    for n in 2..20 {
        let (writer, reader) = if n % 2 == 0 { (&one, &two) } else { (&two, &one) };
        writer.ok(&format!("INSERT INTO t VALUES ({n})")).await;
        assert_eq!(reader.ok("SELECT count(*), max(a) FROM t").await, format!("{n}|{n}"));
        assert_eq!(writer.ok("SELECT count(*), max(a) FROM t").await, format!("{n}|{n}"));
    }
    two.ok("CREATE VIEW v AS SELECT sum(a) AS s FROM t").await;
    two.ok("CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN x * 2").await;
    two.ok("CREATE SCHEMA s").await;
    assert_eq!(one.ok("SELECT twice(s) FROM v").await, "380");
    one.ok("ALTER TABLE t SET SCHEMA s").await;
    assert_eq!(two.ok("SELECT count(*) FROM s.t").await, "19");
    assert!(two.err("SELECT * FROM v").await.contains("does not exist"));
    one.ok("CREATE OR REPLACE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN x * 20").await;
    assert_eq!(two.ok("SELECT twice(1)").await, "20");
    two.ok("CREATE OR REPLACE TABLE s.t AS SELECT 'new' AS b").await;
    assert_eq!(one.ok("SELECT b FROM s.t").await, "new");
    two.ok("DROP TABLE s.t").await;
    assert!(one.err("SELECT * FROM s.t").await.contains("does not exist"));
    assert!(one.err("INSERT INTO s.t VALUES ('x')").await.contains("does not exist"));
    assert!(one.err("DROP TABLE s.t").await.contains("does not exist"));
    // Each is in the other's log.
    one.ok("SELECT 'said by one'").await;
    one.ok("SELECT count(*) FROM system.queries").await;
    assert_eq!(two.ok("SELECT count(*) FROM system.queries WHERE sql = 'SELECT ''said by one'''").await, "1");
}

/// Files of an external table that one engine knows are known to the other.
#[tokio::test]
async fn two_engines_agree_on_extents() {
    let one = Db::new().await;
    let two = one.second().await;
    numbers(&one.path("d/1.parquet"), 0..10);
    one.ok("CREATE EXTERNAL TABLE d STORED AS PARQUET LOCATION '{dir}/d/'").await;
    assert_eq!(two.ok("SELECT sum(n) FROM d").await, "45");
    numbers(&one.path("d/2.parquet"), 10..20);
    let extents = "SELECT position, location, rows, fingerprint FROM system.extents ORDER BY position";
    assert_eq!(one.ok(extents).await, two.ok(extents).await);
    two.ok("INSERT INTO d VALUES (100)").await;
    assert_eq!(one.ok("SELECT sum(n) FROM d").await, "290");
    assert_eq!(one.ok(extents).await, two.ok(extents).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_inserts_all_land() {
    const TASKS: i64 = 8;
    const INSERTS: i64 = 12;
    let one = Db::new().await;
    let two = one.second().await;
    one.ok("CREATE TABLE t (task BIGINT, n BIGINT, x BIGINT)").await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let db = if task % 2 == 0 { one.client() } else { two.client() };
            tokio::spawn(async move {
                for n in 0..INSERTS {
                    assert_eq!(
                        db.ok(&format!(
                            "INSERT INTO t SELECT {task} AS task, {n} AS n, value FROM generate_series(1, 10)"
                        ))
                        .await,
                        "INSERT 10"
                    );
                    // One's own rows are there at once.
                    let rows = db.ok(&format!("SELECT count(*) FROM t WHERE task = {task}")).await;
                    assert_eq!(rows, ((n + 1) * 10).to_string());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task ends well");
    }
    let total = TASKS * INSERTS * 10;
    for db in [&one, &two] {
        assert_eq!(
            db.ok("SELECT count(*), count(DISTINCT task * 1000000 + n * 1000 + x), sum(x) FROM t").await,
            format!("{total}|{total}|{}", TASKS * INSERTS * 55)
        );
        assert_eq!(
            db.ok(
                "SELECT count(*), count(DISTINCT position), max(position), count(DISTINCT location) FROM system.extents"
            )
            .await,
            {
                let n = TASKS * INSERTS;
                format!("{n}|{n}|{}|{n}", n - 1)
            }
        );
    }
}

/// Changes of the catalog by many at once: each happens once or says why not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_changes_do_not_lose_each_other() {
    let one = Db::new().await;
    let two = one.second().await;
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let db = if task % 2 == 0 { one.client() } else { two.client() };
            tokio::spawn(async move {
                // Only one can make it.
                let won = db.run(&format!("CREATE TABLE contested AS SELECT {task} AS a")).await.is_ok();
                for n in 0..5 {
                    db.ok(&format!("CREATE TABLE t{task}_{n} AS SELECT {n} AS a")).await;
                    db.ok(&format!("CREATE VIEW v{task}_{n} AS SELECT a FROM t{task}_{n}")).await;
                    db.ok(&format!("ALTER TABLE t{task}_{n} RENAME TO r{task}_{n}")).await;
                    db.ok(&format!("DROP VIEW v{task}_{n}")).await;
                    // Who finds that somebody else was faster has replaced nothing, and does it again.
                    while let Err(error) =
                        db.run(&format!("CREATE OR REPLACE TABLE shared AS SELECT {task} AS a")).await
                    {
                        let is_late = error.starts_with("Data: cannot replace \"shared\": ");
                        assert!(is_late && error.contains("hint: run the statement again"), "{error}");
                    }
                }
                won
            })
        })
        .collect();
    let mut winners = 0;
    for task in tasks {
        winners += usize::from(task.await.expect("a task ends well"));
    }
    assert_eq!(winners, 1);
    for db in [&one, &two] {
        assert_eq!(db.ok("SELECT count(*) FROM system.tables").await, "42");
        assert_eq!(db.ok("SELECT count(*) FROM contested").await, "1");
        assert_eq!(db.ok("SELECT count(*) FROM shared").await, "1");
    }
}

/// What somebody makes, drops or gives away while a statement computes is not what that statement saw when it began: it replaces
/// nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_came_meanwhile_is_not_replaced() {
    let precious = "CREATE TABLE x AS SELECT 'precious' AS p";
    let made = "something of that name was made";
    for (is_there, kind, meanwhile, error, left) in [
        (false, "TABLE", precious.to_owned(), made, Some("precious")),
        (false, "MATERIALIZED VIEW", precious.to_owned(), made, Some("precious")),
        (true, "TABLE", precious.replace("TABLE", "OR REPLACE TABLE"), "it was replaced", Some("precious")),
        (
            true,
            "TABLE",
            format!("DROP TABLE x; {}", precious.replace("TABLE", "VIEW")),
            "it was replaced",
            Some("precious"),
        ),
        (true, "TABLE", format!("ALTER TABLE x RENAME TO y; {precious}"), "it was replaced", Some("precious")),
        (true, "TABLE", "ALTER TABLE x RENAME TO y".to_owned(), "it was dropped or renamed", None),
        (true, "TABLE", "ALTER TABLE x OWNER TO bob".to_owned(), "it was given to somebody else", Some("old")),
    ] {
        let db = Db::new().await;
        db.ok("CREATE USER bob PASSWORD 'a-long-password'").await;
        db.ok("CREATE TABLE t AS SELECT 1 AS a").await;
        if is_there {
            db.ok("CREATE TABLE x AS SELECT 'old' AS p").await;
        }
        let (program, statements) = (Program::on(&db.home()), meanwhile.clone());
        let happened = Arc::new(AtomicBool::new(false));
        let happens = Arc::clone(&happened);
        db.on_rows(move || {
            program.run(&statements).rows();
            happens.store(true, Ordering::SeqCst);
        });
        let found = db.err(&format!("CREATE OR REPLACE {kind} x AS SELECT tests_hook(a) AS p FROM t")).await;
        assert!(happened.load(Ordering::SeqCst), "{meanwhile}: not in time");
        assert!(found.starts_with(&format!("Data: cannot replace \"x\": {error} while the statement ran")), "{found}");
        match left {
            Some(left) => assert_eq!(db.ok("SELECT p FROM x").await, left, "{meanwhile}"),
            None => assert!(db.err("SELECT p FROM x").await.contains("does not exist")),
        }
    }
}

/// The same for derived tables, which take no function that a test could wait in: who comes first is left to luck.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_came_meanwhile_is_not_replaced_by_a_derived_table() {
    let one = Db::new().await;
    let two = one.second().await;
    one.ok("CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 100000)").await;
    for round in 0..3 {
        let slow = one.client();
        let making = tokio::spawn(async move {
            let query = format!("SELECT md5(CAST(n + {round} AS TEXT)) AS m, count(*) AS c FROM t GROUP BY m");
            slow.run(&format!("CREATE OR REPLACE DERIVED TABLE x AS {query}")).await
        });
        tokio::time::sleep(Duration::from_millis(150)).await;
        let precious = two.run("CREATE TABLE x AS SELECT 'precious' AS p").await;
        let made = making.await.expect("a task ends well");
        match precious {
            Ok(_) => {
                let error = made.expect_err("x was another's by then");
                assert!(error.contains("cannot replace \"x\": something") || error.contains("is a table"), "{error}");
                assert_eq!(one.ok("SELECT p FROM x").await, "precious");
            }
            Err(error) => assert!(made.is_ok() && error.contains("already exists"), "{error}"),
        }
        one.ok("DROP TABLE x").await;
    }
}

/// INSERT while the table is replaced or dropped under it: the rows are in the table, or the statement fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn inserts_into_a_table_that_is_replaced() {
    let one = Db::new().await;
    let two = one.second().await;
    one.ok("CREATE TABLE t (a BIGINT)").await;
    let replacer = {
        let two = two.client();
        tokio::spawn(async move {
            for _ in 0..15 {
                two.ok("CREATE OR REPLACE TABLE t (a BIGINT)").await;
            }
        })
    };
    while !replacer.is_finished() {
        match one.run("INSERT INTO t VALUES (1)").await {
            Ok(answer) => assert_eq!(answer, "INSERT 1"),
            Err(error) => assert!(error.starts_with("Sql:") && error.contains("does not exist"), "{error}"),
        }
    }
    replacer.await.expect("it ends well");
    let before: i64 = one.ok("SELECT count(*) FROM t").await.parse().expect("a number");
    one.ok("INSERT INTO t VALUES (1)").await;
    assert_eq!(two.ok("SELECT count(*) FROM t").await, (before + 1).to_string());
}

/// Whoever opens a home sweeps it, and must not sweep away who opens it at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn engines_that_open_at_the_same_moment() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t (a BIGINT)").await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let folder = db.shared_folder();
            tokio::spawn(async move {
                for _ in 0..20 {
                    let db = Db::open(Arc::clone(&folder), &[]).await.expect("the home opens");
                    db.ok("INSERT INTO t VALUES (1)").await;
                    db.shutdown().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task ends well");
    }
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "160");
}

/// Real processes, all at once, on a home that none of them has seen before.
#[test]
fn many_processes_on_one_new_home() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::on(&folder.path().join("home"));
    let started: Vec<_> = (0..4)
        .map(|task| {
            let insert = format!("INSERT INTO t SELECT {task}, value FROM generate_series(1, 100);");
            program.start(&format!("CREATE TABLE IF NOT EXISTS t (task BIGINT, n BIGINT); {}", insert.repeat(5)))
        })
        .collect();
    let mut landed = 0;
    for run in started {
        let ran = run.wait();
        // Two may find that there is no such table yet, and then only one makes it.
        match ran.status.success() {
            true => landed += 5,
            false => assert!(ran.error().contains("already exists")),
        }
    }
    assert!(landed >= 5);
    assert_eq!(program.run("SELECT count(*), sum(n) FROM t").rows(), format!("{},{}", landed * 100, landed * 5050));
}

/// A process that stays open and one that comes and goes. (Its runtime goes on while the test waits for the other.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_and_an_engine() {
    let db = Db::new().await;
    let program = Program::on(&db.home());
    db.ok("CREATE TABLE t AS SELECT 1 AS a").await;
    for n in 2..6 {
        let inserted = program.run(&format!("INSERT INTO t VALUES ({n}); SELECT count(*) FROM t"));
        assert_eq!(inserted.rows(), n.to_string());
        assert_eq!(db.ok("SELECT count(*), sum(a) FROM t").await, format!("{n}|{}", n * (n + 1) / 2));
        db.ok(&format!("CREATE TABLE made_{n} AS SELECT {n} AS a")).await;
        assert_eq!(program.run(&format!("SELECT a FROM made_{n}")).rows(), n.to_string());
    }
    program.run("DROP TABLE t").rows();
    assert!(db.err("SELECT * FROM t").await.contains("does not exist"));
}

/// Everything in a folder, byte for byte.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => {
                found.insert(entry.path(), vec![]);
                found.extend(content(&entry.path()));
            }
            false => {
                found.insert(entry.path(), std::fs::read(entry.path()).expect("a file"));
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_of_a_newer_version_is_refused_and_left_alone() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT 1 AS a").await;
    let (folder, home) = (db.shared_folder(), db.home());
    db.shutdown().await;
    drop(db);
    // SQLite keeps the version in its header, in four bytes from 60 on.
    let path = home.join("metadata.db");
    let old = std::fs::read(&path).expect("the metadata");
    let mut newer = old.clone();
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&path, &newer).expect("the metadata");
    let before = content(&home);
    for _ in 0..2 {
        let error = Db::open(Arc::clone(&folder), &[]).await.err().expect("it is refused").to_string();
        assert!(
            error.contains("99") && error.contains("newer") && error.contains(&path.display().to_string()),
            "{error}"
        );
        assert_eq!(content(&home), before, "nothing was touched");
        let error = Program::on(&home).run("CREATE TABLE x AS SELECT 1 AS a").error();
        assert!(error.contains("newer") && error.contains("metadata.db"), "{error}");
        assert_eq!(content(&home), before, "nothing was touched");
    }
    std::fs::write(&path, &old).expect("the metadata");
    let db = Db::open(folder, &[]).await.expect("it opens again");
    assert_eq!(db.ok("SELECT a FROM t").await, "1");
}

#[tokio::test]
async fn a_home_that_is_none_is_refused_and_left_alone() {
    let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
    let home = folder.path().join("home");
    std::fs::create_dir(&home).expect("a folder");
    let path = home.join("metadata.db");
    for bytes in [b"this is no database, but something that someone needs".repeat(100), vec![0xff; 5000]] {
        std::fs::write(&path, &bytes).expect("a file");
        let error = Db::open(Arc::clone(&folder), &[]).await.err().expect("it is refused");
        assert!(format!("{error:?}").contains("metadata.db"), "{error:?}");
        assert_eq!(std::fs::read(&path).expect("a file"), bytes);
    }
    std::fs::remove_file(&path).expect("it was there");
    std::fs::create_dir(&path).expect("a folder");
    let error = Db::open(Arc::clone(&folder), &[]).await.err().expect("it is refused");
    assert!(format!("{error:?}").contains("metadata.db"), "{error:?}");
    // A file where the home should be.
    let other = Arc::new(tempfile::tempdir().expect("a temporary folder"));
    std::fs::write(other.path().join("home"), "a file").expect("a file");
    let error = Db::open(Arc::clone(&other), &[]).await.err().expect("it is refused");
    assert!(error.to_string().contains(&other.path().join("home").display().to_string()), "{error}");
    assert_eq!(std::fs::read(other.path().join("home")).expect("a file"), b"a file");
}

/// A home is a folder: it can be moved, and copied for a backup.
#[tokio::test]
async fn a_home_that_was_moved() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT 1 AS a").await;
    db.ok("CREATE TABLE odd AS SELECT INTERVAL '1 day' AS i").await;
    let folder = db.shared_folder();
    db.shutdown().await;
    drop(db);
    let elsewhere = Arc::new(tempfile::tempdir().expect("a temporary folder"));
    std::fs::rename(folder.path().join("home"), elsewhere.path().join("home")).expect("it can be moved");
    let db = Db::open(elsewhere, &[]).await.expect("it opens where it is now");
    assert_eq!(db.ok("SELECT a FROM t").await, "1");
    db.ok("INSERT INTO t VALUES (2)").await;
    assert_eq!(db.ok("SELECT count(*) FROM odd, t").await, "2");
}

/// What a process that was killed left in `tmp/` goes when the next one opens; what a living one has there stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_left_is_swept() {
    let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
    let home = folder.path().join("home");
    let program = Program::on(&home);
    program.run("CREATE TABLE t (a BIGINT, b TEXT)").rows();
    let temporary = || -> Vec<PathBuf> {
        std::fs::read_dir(home.join("tmp")).expect("a folder").flatten().map(|entry| entry.path()).collect()
    };
    assert!(temporary().is_empty(), "a process that ended well leaves nothing: {:?}", temporary());
    let long = "INSERT INTO t SELECT value, CAST(uuid() AS TEXT) FROM generate_series(1, 1000000000)";
    let running = program.start(long);
    let staged = || {
        temporary()
            .iter()
            .any(|folder| std::fs::read_dir(folder.join("staging")).is_ok_and(|mut files| files.next().is_some()))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !staged() {
        assert!(Instant::now() < deadline, "nothing is written");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // It lives: nobody takes its things away.
    let db = Db::open(Arc::clone(&folder), &[]).await.expect("the home opens");
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "0");
    assert!(staged());
    assert_eq!(temporary().len(), 2);
    drop(running.kill());
    assert!(staged(), "a killed process tidies nothing up");
    let second = db.second().await;
    assert!(!staged(), "the next one does");
    assert_eq!(temporary().len(), 2, "one folder for each that lives");
    assert_eq!(second.ok("SELECT count(*) FROM t").await, "0");
    drop(second);
    assert_eq!(temporary().len(), 1);
    db.ok("INSERT INTO t VALUES (1, 'x')").await;
    assert_eq!(db.ok("SELECT count(*) FROM t").await, "1");
}

/// The log of a process that was killed does not say that its statement runs for ever.
#[test]
fn a_killed_statement_is_no_longer_running() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::on(&folder.path().join("home"));
    program.run("CREATE TABLE t (a BIGINT)").rows();
    let mut running = program.start("INSERT INTO t SELECT value FROM generate_series(1, 100000000000)");
    std::thread::sleep(Duration::from_millis(1500));
    assert!(!running.has_ended());
    drop(running.kill());
    let state = program.run("SELECT state FROM system.queries WHERE sql LIKE 'INSERT%'").rows();
    assert!(!state.contains("running"), "it was killed: {state}");
}
