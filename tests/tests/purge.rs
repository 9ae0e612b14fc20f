//! PURGE DERIVED FROM: all that was made of something goes, nothing else, and nothing comes back.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use futures::StreamExt;
use nectarine_engine::Reused;
use nectarine_tests::db::Db;
use nectarine_tests::files;

const QUERY: &str = "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY k ORDER BY k";
const OTHER: &str = "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM u GROUP BY k ORDER BY k";

/// Two tables, each with results.
async fn tables() -> Db {
    let db = Db::new().await;
    for (name, end) in [("t", 200_000), ("u", 100_000)] {
        files::numbers(&db.path(&format!("{name}/a.parquet")), 0..end);
        db.ok(&format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{{dir}}/{name}/'")).await;
    }
    db.ok(QUERY).await;
    db.ok(OTHER).await;
    db
}

async fn n_entries(db: &Db) -> usize {
    db.ok("SELECT count(*) FROM system.cache_entries").await.parse().expect("a number")
}

fn parts(db: &Db) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut folders = vec![db.home().join("derived")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found
}

/// Rows for what went, and the last one for what is left: `(entries, files)` each.
fn outcome(text: &str) -> ((usize, usize), (usize, usize)) {
    let rows: Vec<Vec<&str>> =
        text.lines().filter(|line| !line.starts_with("notice")).map(|line| line.split('|').collect()).collect();
    let (last, purged) = rows.split_last().expect("a last row");
    let number = |text: &str| text.parse::<usize>().expect("a number");
    assert_eq!(last[0], "left");
    assert!(purged.iter().all(|row| row[0] == "purged" && row[1].len() == 64 && number(row[4]) > 0), "{text}");
    ((purged.len(), purged.iter().map(|row| number(row[5])).sum()), (number(last[2]), number(last[5])))
}

#[tokio::test(flavor = "multi_thread")]
async fn by_table_file_folder_and_glob() {
    for source in [
        "t",
        "public.t",
        "'t'",
        "'public.t'",
        "'{dir}/t/a.parquet'",
        "'{dir}/t/'",
        "'{dir}/t/*.parquet'",
        "'file://{dir}/t/'",
    ] {
        let db = tables().await;
        let (before, files_before) = (n_entries(&db).await, parts(&db).len());
        let ((entries, n_files), left) = outcome(&db.ok(&format!("PURGE DERIVED FROM {source}")).await);
        assert_eq!(left, (0, 0), "{source}");
        assert!(entries >= 2 && entries < before, "{source}: {entries} of {before}");
        assert_eq!(n_entries(&db).await, before - entries, "{source}");
        assert_eq!(parts(&db).len(), files_before - n_files, "{source}");
        assert_eq!(db.ask(OTHER).await.1.reused, Reused::Exact, "{source}");
        let (rows, receipt) = db.ask(QUERY).await;
        assert_eq!((rows.len(), receipt.reused), (10, Reused::None), "{source}");
        // What is computed anew is kept anew.
        assert_eq!(db.ask(QUERY).await.1.reused, Reused::Exact, "{source}");
    }
}

/// By whatever name others read the same files, and whatever the table had before.
#[tokio::test(flavor = "multi_thread")]
async fn other_names_and_older_files() {
    let db = tables().await;
    db.ok("CREATE EXTERNAL TABLE same STORED AS PARQUET LOCATION '{dir}/t/a.parquet'").await;
    db.ok("SELECT max(n), n % 3 AS k FROM same GROUP BY k").await;
    db.ok("SELECT min(n), n % 3 AS k FROM '{dir}/t/a.parquet' GROUP BY k").await;
    // The first file gives way to another one; results over it are still there.
    std::fs::rename(db.path("t/a.parquet"), db.path("elsewhere.parquet")).expect("a file can be renamed");
    files::numbers(&db.path("t/b.parquet"), 0..1000);
    db.ok(QUERY).await;
    db.ok("ALTER TABLE t RENAME TO renamed").await;
    let ((entries, _), left) = outcome(&db.ok("PURGE DERIVED FROM renamed").await);
    assert_eq!(left, (0, 0));
    assert!(entries >= 5, "{entries}");
    let sources = db.ok("SELECT DISTINCT input FROM system.provenance WHERE input_kind = 'extent'").await;
    assert_eq!(sources, "file://{dir}/u/a.parquet");
    // A table that is gone is known by its name.
    db.ok("DROP TABLE u").await;
    let ((entries, _), left) = outcome(&db.ok("PURGE DERIVED FROM u").await);
    assert!(entries >= 2 && left == (0, 0));
    assert_eq!(n_entries(&db).await, 0);
    assert_eq!(parts(&db).len(), 0);
}

/// A table that is gone is known by the name that it had last, with all that was made of it under others.
#[tokio::test(flavor = "multi_thread")]
async fn tables_that_were_renamed_and_dropped() {
    let db = tables().await;
    db.ok("CREATE DERIVED TABLE d AS SELECT n AS k, n * 3 AS v FROM u WHERE n % 2 = 0").await;
    db.ok("ALTER DERIVED TABLE d SET PINNED").await;
    db.ok("SELECT k % 7 AS x, max(v) FROM d GROUP BY x").await;
    db.ok("ALTER TABLE u RENAME TO w").await;
    assert_eq!(n_made_of(&db, "public.u").await, 0);
    assert!(n_made_of(&db, "public.w").await >= 2);
    db.ok("DROP TABLE w").await;
    let told = db.ok("PURGE DERIVED FROM w").await;
    let ((entries, _), left) = outcome(&told);
    assert!(entries >= 3 && left == (0, 0), "{told}");
    assert!(told.contains("are left: derived table \"public.d\""), "{told}");
    for table in ["public.u", "public.w", "public.d"] {
        assert_eq!(n_made_of(&db, table).await, 0, "{table}");
    }
    assert_eq!(db.ask(QUERY).await.1.reused, Reused::Exact);
}

/// A file is the same by whatever links it is reached.
#[tokio::test(flavor = "multi_thread")]
async fn through_links() {
    for source in [
        "'{dir}/real/x/a.parquet'",
        "'{dir}/real/x/'",
        "'{dir}/real/*/*.parquet'",
        "'{dir}/link/x/a.parquet'",
        "'{dir}/link/*/a.parquet'",
        "'{dir}/other/a.parquet'",
        "r",
        "l",
    ] {
        for is_deleted in [false, true] {
            let db = tables().await;
            files::numbers(&db.path("real/x/a.parquet"), 0..50_000);
            std::os::unix::fs::symlink(db.path("real"), db.path("link")).expect("a link");
            std::os::unix::fs::symlink(db.path("real/x"), db.path("other")).expect("a link");
            for (name, folder) in [("r", "real"), ("l", "link")] {
                let location = format!("STORED AS PARQUET LOCATION '{{dir}}/{folder}/x/'");
                db.ok(&format!("CREATE EXTERNAL TABLE {name} {location}")).await;
                db.ok(&format!("SELECT n % 10 AS {name}, max(n) FROM {name} GROUP BY 1")).await;
            }
            db.ok("CREATE DERIVED TABLE d AS SELECT n + 1 AS n FROM l").await;
            db.ok("ALTER DERIVED TABLE d SET PINNED").await;
            db.ok("SELECT n % 10 AS k, max(n) FROM d GROUP BY k").await;
            assert!(n_made_of(&db, "public.l").await > 0 && n_made_of(&db, "public.d").await > 0);
            if is_deleted {
                std::fs::remove_file(db.path("real/x/a.parquet")).expect("a file can be deleted");
            }
            let (_, left) = outcome(&db.ok(&format!("PURGE DERIVED FROM {source}")).await);
            assert_eq!(left, (0, 0), "{source}");
            for table in ["public.r", "public.l", "public.d"] {
                assert_eq!(n_made_of(&db, table).await, 0, "{source}: {table}, {is_deleted}");
            }
            assert_eq!(db.ask(QUERY).await.1.reused, Reused::Exact, "{source}");
        }
    }
}

/// What was made from results goes with them, over managed tables too.
#[tokio::test(flavor = "multi_thread")]
async fn results_of_results_go_too() {
    let db = tables().await;
    db.ok("CREATE TABLE m AS SELECT value AS n FROM generate_series(1, 200000)").await;
    let sql = "SELECT n % 9 AS k, sum(n) FROM m GROUP BY k";
    db.ok(sql).await;
    db.ok("INSERT INTO m VALUES (7)").await;
    let (_, receipt) = db.ask(sql).await;
    assert_eq!(receipt.reused, Reused::Partial);
    let joined = "SELECT count(*), sum(t.n) FROM t JOIN u ON t.n = u.n WHERE t.n % 2 = 0";
    db.ok(joined).await;
    let ((_, _), left) = outcome(&db.ok("PURGE DERIVED FROM m").await);
    assert_eq!(left, (0, 0));
    assert_eq!(db.ask(sql).await.1.reused, Reused::None);
    // A join comes from both of its tables.
    assert_eq!(db.ask(joined).await.1.reused, Reused::Exact);
    db.ok("PURGE DERIVED FROM u").await;
    assert_eq!(db.ask(joined).await.1.reused, Reused::None);
    assert_eq!(db.ask(QUERY).await.1.reused, Reused::Exact);
}

/// What uses the value of a scalar subquery was made of what the subquery reads, also below the node that computes it.
#[tokio::test(flavor = "multi_thread")]
async fn what_uses_a_scalar_subquery() {
    let alone = "SELECT k, count(*) AS c FROM t GROUP BY k ORDER BY k";
    for sql in [
        "SELECT k, count(*) AS c FROM t WHERE a > (SELECT max(v) FROM x) GROUP BY k ORDER BY k",
        "SELECT k, sum(a + (SELECT max(v) FROM x)) AS s FROM t GROUP BY k ORDER BY k",
    ] {
        let db = Db::new().await;
        db.ok("CREATE TABLE t AS SELECT value AS a, value % 50 AS k FROM generate_series(1, 30000)").await;
        db.ok("CREATE TABLE x AS SELECT value AS v FROM generate_series(1, 100)").await;
        db.ok(alone).await;
        let before = n_entries(&db).await;
        assert!(before >= 2, "groups and their states");
        let rows = db.ok(sql).await;
        assert_eq!(db.ask(sql).await.1.reused, Reused::Exact, "{sql}");
        let made = n_entries(&db).await - before;
        assert!(made >= 3, "{sql}: the answer, groups and their states");
        assert_eq!(n_made_of(&db, "public.x").await, made, "{sql}: all of them know it");
        let ((entries, _), left) = outcome(&db.ok("PURGE DERIVED FROM x").await);
        assert_eq!((entries, left), (made, (0, 0)), "{sql}");
        assert_eq!(n_entries(&db).await, before, "{sql}");
        let told = db.ok(&format!("EXPLAIN REUSE {sql}")).await;
        assert!(!told.contains("hit"), "{told}");
        assert_eq!(db.ask(alone).await.1.reused, Reused::Exact, "{sql}");
        assert_eq!(db.ask(sql).await.1.reused, Reused::None, "{sql}");
        assert_eq!(db.ok(sql).await, rows, "{sql}");
        // Also what is kept of new extents only, and of old and new ones together.
        db.ok("INSERT INTO t VALUES (30001, 7)").await;
        db.ok(sql).await;
        assert!(n_made_of(&db, "public.x").await > made, "{sql}");
        db.ok("PURGE DERIVED FROM x").await;
        assert_eq!((n_made_of(&db, "public.x").await, n_entries(&db).await), (0, before), "{sql}");
    }
}

/// What a statement that began before read is not published after; what one that began after reads is.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_flight_does_not_come_back() {
    let db = Db::new().await;
    files::numbers(&db.path("t/a.parquet"), 0..200_000);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    let sql = "SELECT n, n % 7 AS k FROM t WHERE n % 3 = 0 ORDER BY k, n";
    let answer = db.session().execute(sql).await.expect("it begins");
    let mut stream = answer.into_stream();
    let first = stream.next().await.expect("rows").expect("rows");
    let ((entries, _), left) = outcome(&db.client().ok("PURGE DERIVED FROM t").await);
    assert_eq!((entries, left), (0, (0, 0)));
    let mut rows = first.num_rows();
    while let Some(batch) = stream.next().await {
        rows += batch.expect("a purge fails no query").num_rows();
    }
    assert_eq!(rows, 66_667);
    drop(stream);
    db.cache().settled().await;
    assert_eq!(n_entries(&db).await, 0);
    assert_eq!(parts(&db), Vec::<PathBuf>::new(), "its files are gone as well");
    // Also where it was put together from a result that was purged meanwhile, by another process.
    db.ok(QUERY).await;
    files::numbers(&db.path("t/b.parquet"), 0..50_000);
    let answer = db.session().execute(QUERY).await.expect("it begins");
    let receipt = answer.receipt();
    let two = db.second().await;
    outcome(&two.ok("PURGE DERIVED FROM '{dir}/t/a.parquet'").await);
    answer.collect().await.expect("a purge fails no query");
    assert_eq!(receipt().reused, Reused::Partial, "it had been read before");
    db.cache().settled().await;
    let left = two.ok("SELECT count(*) FROM system.provenance WHERE input = 'file://{dir}/t/a.parquet'").await;
    assert_eq!(left, "0");
    db.ok(sql).await;
    assert_eq!(db.ask(sql).await.1.reused, Reused::Exact);
}

/// Memory and fast path of other processes hold nothing of it any more.
#[tokio::test(flavor = "multi_thread")]
async fn other_processes_forget() {
    let one = tables().await;
    let two = one.second().await;
    for db in [&one, &two] {
        for sql in [QUERY, QUERY, OTHER, OTHER] {
            assert_eq!(db.ask(sql).await.1.reused, Reused::Exact);
        }
    }
    let (held_by_one, held) = (one.cache().entries_in_memory(), two.cache().entries_in_memory());
    assert_eq!(held, 2, "both answers");
    outcome(&one.ok("PURGE DERIVED FROM t").await);
    assert!(one.cache().entries_in_memory() < held_by_one);
    // Without a statement that asks for anything.
    for _ in 0..100 {
        if two.cache().entries_in_memory() < held {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(two.cache().entries_in_memory(), 1, "the answer of the other table stays");
    assert_eq!(two.ask(QUERY).await.1.reused, Reused::None);
    assert_eq!(two.ask(OTHER).await.1.reused, Reused::Exact);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes() {
    let db = tables().await;
    db.ok("CREATE VIEW v AS SELECT * FROM t").await;
    db.script(
        "
        PURGE DERIVED FROM nothing;
        !! there is no table \"public.nothing\"
        PURGE DERIVED FROM 'nothing';
        !! there is no table \"nothing\"
        PURGE DERIVED FROM v;
        !! \"public.v\" is a view
        PURGE DERIVED t;
        !! expected FROM
        PURGE DERIVED FROM t WHERE n = 1;
        !! expected the end of the statement
        PURGE t;
        !! expected
        ",
    )
    .await;
    assert!(n_entries(&db).await >= 4, "nothing went");
    // Words are names like any other.
    assert_eq!(db.ok("SELECT purge, derived FROM (SELECT 1 AS purge, 2 AS derived) AS verify").await, "1|2");
}

/// Pinned copies are the user's own: a purge names them.
#[tokio::test(flavor = "multi_thread")]
async fn pinned_copies_are_named() {
    let db = tables().await;
    db.ok("CREATE DERIVED TABLE d AS SELECT n % 10 AS k, count(*) AS c FROM t GROUP BY k").await;
    db.ok("CREATE DERIVED TABLE e AS SELECT sum(c) AS c FROM d").await;
    let told = db.ok("PURGE DERIVED FROM t").await;
    assert!(!told.contains("pinned copies"), "{told}");
    db.ok("ALTER DERIVED TABLE e SET PINNED").await;
    for source in ["t", "'{dir}/t/a.parquet'", "'{dir}/t/*.parquet'"] {
        let told = db.ok(&format!("PURGE DERIVED FROM {source}")).await;
        assert!(told.contains("are left: derived table \"public.e\""), "{source}: {told}");
    }
    let told = db.ok("PURGE DERIVED FROM u").await;
    assert!(!told.contains("pinned copies"), "{told}");
    db.ok("DROP DERIVED TABLE e").await;
    assert!(!db.ok("PURGE DERIVED FROM t").await.contains("pinned copies"));
}

async fn n_made_of(db: &Db, table: &str) -> usize {
    let rows = db.ok(&format!("SELECT count(*) FROM system.provenance WHERE input = '{table}'")).await;
    rows.parse().expect("a number")
}

/// What was made of a table goes also if another one has its name now.
#[tokio::test(flavor = "multi_thread")]
async fn tables_that_were_replaced() {
    let managed = "CREATE TABLE a AS SELECT value % 10 AS k, value AS n FROM generate_series(1, 200000)";
    let external = "CREATE EXTERNAL TABLE a STORED AS PARQUET LOCATION '{dir}/one/'";
    let elsewhere = "CREATE EXTERNAL TABLE a STORED AS PARQUET LOCATION '{dir}/two/'";
    for (made, replaced) in [
        (managed, vec!["CREATE OR REPLACE TABLE a AS SELECT * FROM a WHERE k <> 2"]),
        (managed, vec!["DROP TABLE a", "CREATE TABLE a (k INT, n INT)"]),
        (external, vec!["DROP TABLE a", elsewhere]),
        (external, vec!["CREATE OR REPLACE EXTERNAL TABLE a STORED AS PARQUET LOCATION '{dir}/two/'"]),
        (external, vec!["DROP TABLE a", managed]),
        (managed, vec!["DROP TABLE a", elsewhere]),
    ] {
        let db = tables().await;
        files::numbers(&db.path("one/a.parquet"), 0..200_000);
        files::numbers(&db.path("two/a.parquet"), 0..100);
        db.ok(made).await;
        db.ok("SELECT n % 10 AS x, max(n) FROM a GROUP BY x").await;
        for sql in &replaced {
            db.ok(sql).await;
        }
        assert!(n_made_of(&db, "public.a").await > 0, "{made}: there is something to purge");
        for source in ["a", "'public.a'"] {
            let (_, left) = outcome(&db.ok(&format!("PURGE DERIVED FROM {source}")).await);
            assert_eq!(left, (0, 0), "{made}");
            assert_eq!(n_made_of(&db, "public.a").await, 0, "{made}, {replaced:?}");
        }
        assert_eq!(db.ask(QUERY).await.1.reused, Reused::Exact, "{made}: others stay");
    }
}

/// A derived table goes on reading what its tables were: results of that have their names.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_derived_table_reads_of_a_replaced_one() {
    let db = tables().await;
    db.ok("CREATE DERIVED TABLE d AS SELECT n, n % 10 AS k FROM t").await;
    files::numbers(&db.path("two/a.parquet"), 0..100);
    db.ok("CREATE OR REPLACE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/two/'").await;
    let sql = "SELECT k, sum(n * n) FROM d GROUP BY k ORDER BY k";
    let rows = db.ok(sql).await;
    assert_eq!(db.ask(sql).await.1.reused, Reused::Exact);
    db.ok("PURGE DERIVED FROM t").await;
    assert_eq!(db.ask(sql).await.1.reused, Reused::None);
    assert_eq!(db.ok(sql).await, rows);
}

/// Pinned copies stay, but not what was made from them.
#[tokio::test(flavor = "multi_thread")]
async fn results_of_pinned_copies_go() {
    let over = "SELECT k % 7 AS x, max(v) FROM d GROUP BY x ORDER BY x";
    let db = tables().await;
    db.ok("CREATE TABLE m AS SELECT value AS n FROM generate_series(1, 200000)").await;
    let file_of_m = db.ok("SELECT location FROM system.extents WHERE table_name = 'm' LIMIT 1").await;
    let file_of_m = format!("'{}'", file_of_m.trim());
    for (table, sources) in [("t", ["t", "'{dir}/t/a.parquet'", "'{dir}/t/*.parquet'"]), ("m", ["m", &file_of_m, "m"])]
    {
        db.ok(&format!("CREATE DERIVED TABLE d AS SELECT n AS k, n * 3 AS v FROM {table} WHERE n % 2 = 0")).await;
        db.ok("ALTER DERIVED TABLE d SET PINNED").await;
        for source in sources {
            let rows = db.ok(over).await;
            assert_eq!(db.ask(over).await.1.reused, Reused::Exact, "{source}");
            let told = db.ok(&format!("PURGE DERIVED FROM {source}")).await;
            assert!(told.contains("are left: derived table \"public.d\""), "{source}: {told}");
            assert_eq!(n_made_of(&db, "public.d").await, 0, "{source}");
            assert_eq!(db.ask(over).await.1.reused, Reused::None, "{source}");
            assert_eq!(db.ok(over).await, rows, "{source}: the copy is still there");
        }
        // Others' results stay.
        assert_eq!(db.ask(OTHER).await.1.reused, Reused::Exact);
        db.ok("DROP DERIVED TABLE d").await;
        db.ok(&format!("PURGE DERIVED FROM {table}")).await;
        assert_eq!(n_made_of(&db, "public.d").await, 0, "results of a copy that is gone");
    }
}

/// Through copies, and programs between them, that are gone.
#[tokio::test(flavor = "multi_thread")]
async fn results_of_dropped_copies_go() {
    for dropped in
        ["DROP DERIVED TABLE e", "DROP SCHEMA s CASCADE", "CREATE OR REPLACE DERIVED TABLE e AS SELECT 1 AS v"]
    {
        let db = tables().await;
        db.ok("CREATE SCHEMA s").await;
        db.ok("CREATE DERIVED TABLE d AS SELECT n, n * 3 AS v FROM t WHERE n % 2 = 0").await;
        let e = if dropped.starts_with("DROP SCHEMA") { "s.e" } else { "e" };
        db.ok(&format!("CREATE DERIVED TABLE {e} AS SELECT n + 1 AS n, v FROM d")).await;
        db.ok(&format!("ALTER DERIVED TABLE {e} SET PINNED")).await;
        db.ok("DROP DERIVED TABLE d").await;
        db.ok(&format!("SELECT n % 5 AS x, max(v) FROM {e} GROUP BY x")).await;
        db.ok(dropped).await;
        let name = if e == "e" { "public.e" } else { e };
        assert!(n_made_of(&db, name).await > 0, "{dropped}: there is something to purge");
        let (_, left) = outcome(&db.ok("PURGE DERIVED FROM '{dir}/t/a.parquet'").await);
        assert_eq!(left, (0, 0));
        assert_eq!(n_made_of(&db, name).await, 0, "{dropped}");
    }
}

/// Files that can not be deleted are told of by every purge, until one deletes them.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_stay_are_not_forgotten() {
    let db = tables().await;
    let all = parts(&db);
    // Folders in their places can not be deleted like files.
    for (at, part) in all.iter().enumerate() {
        std::fs::rename(part, db.path(&format!("aside-{at}"))).expect("a file can be renamed");
        std::fs::create_dir(part).expect("a folder");
    }
    let ((entries, n_files), (n_left, files_left)) = outcome(&db.ok("PURGE DERIVED FROM t").await);
    assert!(entries > 0 && n_files > 0 && n_left == 0);
    assert_eq!(files_left, n_files);
    for other in [&db, &db.second().await] {
        let told = other.ok("PURGE DERIVED FROM t").await;
        assert_eq!(outcome(&told), ((0, 0), (0, n_files)), "it goes on telling");
        assert!(told.contains(&format!("{n_files} files of dropped results could not be deleted")), "{told}");
    }
    for (at, part) in all.iter().enumerate() {
        std::fs::remove_dir(part).expect("a folder");
        std::fs::rename(db.path(&format!("aside-{at}")), part).expect("a file can be renamed");
    }
    assert_eq!(outcome(&db.ok("PURGE DERIVED FROM t").await), ((0, 0), (0, 0)));
    assert_eq!(parts(&db).len(), all.len() - n_files);
    assert_eq!(db.ask(OTHER).await.1.reused, Reused::Exact);
}

/// Bounds of columns are values: those of files that are gone are not kept.
#[tokio::test(flavor = "multi_thread")]
async fn bounds_of_gone_files_are_forgotten() {
    let is_written = |db: &Db, text: &str| {
        ["metadata.db", "metadata.db-wal"].iter().any(|name| {
            let bytes = std::fs::read(db.home().join(name)).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
    };
    for (dropped, source) in [(false, "'{dir}/w/a.parquet'"), (false, "w"), (false, "'{dir}/w/'"), (true, "w")] {
        let db = tables().await;
        for (file, word) in [("a", "zanzibar-18"), ("b", "timbuktu-44")] {
            let words = StringArray::from_iter_values((0..20_000).map(|n| format!("{word}{:05}", n % 100)));
            files::parquet(&db.path(&format!("w/{file}.parquet")), vec![("s", Arc::new(words) as ArrayRef)]);
        }
        db.ok("CREATE EXTERNAL TABLE w STORED AS PARQUET LOCATION '{dir}/w/'").await;
        db.ok("SELECT s, count(*) FROM w GROUP BY s").await;
        assert!(is_written(&db, "zanzibar-18") && is_written(&db, "timbuktu-44"), "bounds are kept");
        std::fs::remove_file(db.path("w/a.parquet")).expect("a file can be deleted");
        if dropped {
            db.ok("DROP TABLE w").await;
        }
        let (_, left) = outcome(&db.ok(&format!("PURGE DERIVED FROM {source}")).await);
        assert_eq!(left, (0, 0));
        assert!(!is_written(&db, "zanzibar-18"), "{source}");
    }
}
