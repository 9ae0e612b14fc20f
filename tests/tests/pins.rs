//! PIN, UNPIN: what is pinned is not evicted to make room, whoever needs it, and comes back if it goes for another reason.

use std::path::PathBuf;

use nectarine_engine::Reused;
use nectarine_tests::db::Db;
use nectarine_tests::files;
use nectarine_tests::program::{Program, finish};

/// Room for about eight of the results below; six of them may be pinned.
const BUDGET: u64 = 1 << 20;

/// About 130 KB of rows.
fn sql(number: usize) -> String {
    format!(
        "SELECT n, md5(CAST(n AS TEXT)) AS s FROM t WHERE n % 20 = {} AND n > {} ORDER BY n",
        number % 20,
        number / 20
    )
}

async fn small() -> Db {
    let db = Db::with(&[("cache.budget", &BUDGET.to_string()), ("cache.fresh_seconds", "0")]).await;
    files::numbers(&db.path("t/a.parquet"), 0..60_000);
    db.ok("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'").await;
    db
}

/// Computes others until there was no room for all of them, several times over.
async fn press(db: &Db, numbers: std::ops::Range<usize>) {
    for number in numbers {
        db.ask(&sql(number)).await;
        db.cache().evict().await.expect("it can be asked");
    }
}

/// Pins something; the fingerprint and the size that are told.
async fn pin(db: &Db, what: &str) -> (String, u64) {
    let told = db.ok(&format!("PIN {what}")).await;
    let mut columns = told.rsplit('|');
    let bytes = columns.next().and_then(|bytes| bytes.parse().ok());
    let fingerprint = columns.next().unwrap_or_default().to_owned();
    assert!(told.starts_with("pinned|") && fingerprint.len() == 64, "{told}");
    (fingerprint, bytes.unwrap_or_else(|| panic!("a size: {told}")))
}

async fn is_there(db: &Db, fingerprint: &str) -> bool {
    db.ok(&format!("SELECT count(*) FROM system.cache_entries WHERE fingerprint = '{fingerprint}'")).await == "1"
}

/// The pins, each with its fingerprint, and whether its result is there.
async fn pins(db: &Db) -> Vec<String> {
    let sql = "SELECT what, kind, fingerprint, bytes IS NOT NULL FROM system.pins ORDER BY pinned_at";
    db.ok(sql).await.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pinned_stays_while_others_go() {
    let db = small().await;
    let (query, bytes) = pin(&db, &sql(0)).await;
    assert!(bytes > 50_000, "{bytes}");
    db.ask(&sql(1)).await;
    let by_hand = db.ok("SELECT fingerprint FROM system.cache_entries WHERE NOT pinned").await;
    let by_hand = by_hand.lines().next().expect("the other one").to_owned();
    let (entry, _) = pin(&db, &format!("ENTRY '{}'", &by_hand[..12])).await;
    assert_eq!(entry, by_hand);
    press(&db, 2..40).await;
    assert!(is_there(&db, &query).await && is_there(&db, &entry).await);
    assert_eq!(db.ask(&sql(0)).await.1.reused, Reused::Exact);
    assert_eq!(db.ask(&sql(1)).await.1.reused, Reused::Exact);
    assert_eq!(db.ok("SELECT count(*) FROM system.cache_entries WHERE pinned").await, "2");
    let gone = format!("SELECT count(*) > 20, sum(CASE WHEN fingerprint IN ('{query}', '{entry}') THEN 1 ELSE 0 END)");
    assert_eq!(db.ok(&format!("{gone} FROM system.evictions")).await, "true|0");
    let stats = db.cache().stats().await.expect("stats");
    assert!(stats.used <= stats.budget, "{stats:?}");
    assert_eq!(
        pins(&db).await,
        [format!("{}|query|{query}|true", sql(0)), format!("{}|entry|{entry}|true", sql(1))],
        "what is told"
    );

    // They may go again. Nobody used them for a while, and what is new is used: the policy has a reason.
    let told = db.ok(&format!("UNPIN {}", sql(0))).await;
    assert_eq!(told, format!("unpinned|query|{}|{query}|{bytes}", sql(0)));
    db.ok(&format!("UNPIN ENTRY '{entry}'")).await;
    assert_eq!(pins(&db).await, Vec::<String>::new());
    for number in 40..80 {
        db.ask(&sql(number)).await;
        db.ask(&sql(number)).await;
        db.cache().evict().await.expect("it can be asked");
    }
    assert!(!is_there(&db, &query).await && !is_there(&db, &entry).await);
}

/// Pins are the home's: they outlive a process, and bind all others.
#[tokio::test(flavor = "multi_thread")]
async fn pins_outlive_processes_and_bind_others() {
    let db = small().await;
    let (query, _) = pin(&db, &sql(0)).await;
    let db = db.reopen().await;
    press(&db, 1..20).await;
    assert!(is_there(&db, &query).await);
    let second = db.second().await;
    assert_eq!(pins(&second).await.len(), 1);
    press(&second, 20..40).await;
    assert_eq!(second.ask(&sql(0)).await.1.reused, Reused::Exact);
    // What another pins or unpins counts at once.
    let (other, _) = pin(&second, &sql(50)).await;
    second.ok(&format!("UNPIN {}", sql(0))).await;
    for number in 60..100 {
        db.ask(&sql(number)).await;
        db.ask(&sql(number)).await;
        db.cache().evict().await.expect("it can be asked");
    }
    assert!(!is_there(&db, &query).await && is_there(&db, &other).await);
    second.shutdown().await;

    let program = Program::on(&db.home()).set("cache.budget", &BUDGET.to_string()).set("cache.fresh_seconds", "0");
    db.shutdown().await;
    let cache = |arguments: &[&str]| {
        let mut command = program.command();
        command.arg("cache").args(arguments);
        finish(command, b"")
    };
    let listed = cache(&["ls"]).rows();
    let starred = |listed: &str| listed.lines().filter(|line| line.contains(",*,")).count();
    assert_eq!(starred(&listed), 1, "{listed}");
    let unpinned = listed.lines().find(|line| !line.contains(",*,")).and_then(|line| line.split(',').next());
    let unpinned = unpinned.expect("one that is not pinned").to_owned();
    let told = cache(&["pin", &unpinned]).rows();
    assert!(told.starts_with("pinned,entry,"), "{told}");
    assert_eq!(starred(&cache(&["ls"]).rows()), 2);
    let told = cache(&["unpin", &unpinned, &other]).rows();
    assert_eq!(told.lines().filter(|line| line.starts_with("unpinned,")).count(), 2, "{told}");
    assert_eq!(program.run("SELECT count(*) FROM system.pins").rows(), "0");
    let error = cache(&["unpin", &other]).error();
    assert!(error.contains("is not pinned") && error.contains("system.pins"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_the_low_water_mark_is_refused() {
    let db = small().await;
    let mut n_pinned = 0;
    let error = loop {
        match db.run(&format!("PIN {}", sql(n_pinned))).await {
            Ok(_) => n_pinned += 1,
            Err(error) => break error,
        }
        assert!(n_pinned < 20, "all of it is pinned");
    };
    assert!(n_pinned >= 4, "{n_pinned}: {error}");
    for words in ["Resources: cannot pin \"SELECT n, md5", "all that is pinned would take", "UNPIN", "cache.budget"] {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(pins(&db).await.len(), n_pinned);
    let low = db.cache().stats().await.expect("stats").low_water;
    let pinned: u64 = db.ok("SELECT sum(bytes) FROM system.pins").await.parse().expect("a number");
    assert!(pinned <= low, "{pinned} of {low}");
    // What is there beside them still has room to come and go.
    press(&db, 30..40).await;
    assert_eq!(pins(&db).await.iter().filter(|line| line.ends_with("|true")).count(), n_pinned);
    db.ok(&format!("UNPIN {}", sql(0))).await;
    pin(&db, &sql(n_pinned)).await;
    // One that can not be kept at all says so.
    let all = "SELECT n, md5(CAST(n AS TEXT)) AS s FROM t WHERE n >= 0 ORDER BY n";
    let error = db.err(&format!("PIN {all}")).await;
    assert!(error.contains("cannot pin") && error.contains("found no room"), "{error}");
}

fn part(db: &Db, location: &str) -> PathBuf {
    db.home().join("derived").join(location)
}

/// Soundness first: what is damaged, deleted, purged or wrong goes; the pin waits, and has it again when it is made again.
#[tokio::test(flavor = "multi_thread")]
async fn what_went_for_another_reason_comes_back_pinned() {
    let db = small().await;
    let (query, _) = pin(&db, &sql(0)).await;
    let waiting = [format!("{}|query|{query}|false", sql(0))];
    let back = [format!("{}|query|{query}|true", sql(0))];
    let (rows, _) = db.ask(&sql(0)).await;

    // Damaged; what is in memory is not, so that another process must read it.
    let location = db.ok("SELECT location FROM system.cache_entries WHERE pinned").await;
    let mut bytes = std::fs::read(part(&db, &location)).expect("a part");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(part(&db, &location), &bytes).expect("a part can be written");
    let db = db.reopen().await;
    let answer = db.session().execute(&sql(0)).await.expect("it answers");
    assert!(answer.notices().iter().any(|notice| notice.message.contains("damaged")), "{:?}", answer.notices());
    answer.collect().await.expect("it answers");
    db.cache().settled().await;
    assert_eq!(pins(&db).await, back);

    // By hand.
    assert_ne!(db.cache().clear().await, 0);
    assert_eq!(pins(&db).await, waiting);
    assert_eq!(db.ask(&sql(0)).await.0, rows);
    assert_eq!(pins(&db).await, back);

    // Purged, and written down as such.
    db.ok("PURGE DERIVED FROM t").await;
    assert_eq!(pins(&db).await, waiting);
    let gone =
        format!("SELECT reason, bytes > 0, remade_at IS NULL FROM system.evictions WHERE fingerprint = '{query}'");
    let told = db.ok(&format!("{gone} ORDER BY evicted_at DESC LIMIT 1")).await;
    assert_eq!(told, "purged|true|true");
    assert_eq!(db.ask(&sql(0)).await.0, rows);
    assert_eq!(pins(&db).await, back);
    assert_eq!(db.ok(&format!("{gone} ORDER BY evicted_at DESC LIMIT 1")).await, "purged|true|false");

    // Still pinned after all of that; and PIN itself makes what is not there.
    press(&db, 1..30).await;
    assert_eq!(pins(&db).await, back);
    db.cache().clear().await;
    assert_eq!(pin(&db, &sql(0)).await.0, query);
    assert_eq!(pins(&db).await, back);
    assert_eq!(db.cache().verify().await.expect("it can be asked").1, []);
}

const DAILY: &str = "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY n % 10";

async fn growing() -> Db {
    let db = Db::new().await;
    for table in ["t", "u"] {
        files::numbers(&db.path(&format!("{table}/0.parquet")), 0..50_000);
        db.ok(&format!("CREATE EXTERNAL TABLE {table} STORED AS PARQUET LOCATION '{{dir}}/{table}/'")).await;
    }
    db
}

/// The one fingerprint that is pinned.
async fn pinned(db: &Db) -> String {
    let entries = db.ok("SELECT fingerprint FROM system.cache_entries WHERE pinned").await;
    assert_eq!(entries, db.ok("SELECT fingerprint FROM system.pins").await);
    assert_eq!(entries.len(), 64, "{entries}");
    entries
}

/// The pin of a view goes with its newest result, whoever makes it and however it is read.
#[tokio::test(flavor = "multi_thread")]
async fn the_pin_of_a_view_follows_its_program() {
    let db = growing().await;
    db.ok(&format!("CREATE MATERIALIZED VIEW v AS {DAILY}")).await;
    let (first, _) = pin(&db, "MATERIALIZED VIEW v").await;
    assert_eq!(pins(&db).await, [format!("public.v|materialized view|{first}|true")]);
    // The same program over another table is another result.
    db.ok(&DAILY.replace("FROM t", "FROM u")).await;
    assert_eq!(pinned(&db).await, first);

    files::numbers(&db.path("t/1.parquet"), 0..10_000);
    db.ok("SELECT * FROM v").await;
    let second = pinned(&db).await;
    assert_ne!(second, first);
    assert!(is_there(&db, &first).await, "it may go, and has not yet");

    // Inside of a larger query, by another process.
    files::numbers(&db.path("t/2.parquet"), 0..10_000);
    let other = db.second().await;
    other.ok("SELECT sum(c) FROM v WHERE k < 5").await;
    let third = pinned(&db).await;
    assert_ne!(third, second);
    // By its query, which has no name; the pin comes along when the view is read.
    files::numbers(&db.path("t/3.parquet"), 0..10_000);
    db.ok(DAILY).await;
    db.ok("SELECT max(c) FROM v").await;
    let fourth = pinned(&db).await;
    assert_ne!(fourth, third);
    // REFRESH.
    files::numbers(&db.path("t/4.parquet"), 0..10_000);
    db.ok("REFRESH MATERIALIZED VIEW v").await;
    assert_ne!(pinned(&db).await, fourth);
    // A file goes: the older result is today's again.
    std::fs::remove_file(db.path("t/4.parquet")).expect("a file can be removed");
    db.ok("SELECT * FROM v").await;
    assert_eq!(pinned(&db).await, fourth);
    other.shutdown().await;

    db.ok("ALTER MATERIALIZED VIEW v RENAME TO w").await;
    assert_eq!(pins(&db).await, [format!("public.w|materialized view|{fourth}|true")]);
    let error = db.err(&format!("UNPIN ENTRY '{}'", &fourth[..10])).await;
    assert!(error.contains("as the result of \"public.w\"") && error.contains("UNPIN MATERIALIZED VIEW"), "{error}");
    let told = db.ok("UNPIN MATERIALIZED VIEW w").await;
    assert!(told.starts_with("unpinned|materialized view|public.w|"), "{told}");
    pin(&db, "MATERIALIZED VIEW w").await;
    db.ok("DROP MATERIALIZED VIEW w").await;
    assert_eq!(pins(&db).await, Vec::<String>::new());
}

/// Older results of a pinned view go like others when room is needed.
#[tokio::test(flavor = "multi_thread")]
async fn older_results_of_a_view_may_go() {
    let db = small().await;
    db.ok(&format!("CREATE MATERIALIZED VIEW v AS {}", sql(0).replace(" ORDER BY n", ""))).await;
    let (first, _) = pin(&db, "MATERIALIZED VIEW v").await;
    files::numbers(&db.path("t/b.parquet"), 0..1_000);
    db.ok("SELECT count(*) FROM v").await;
    let second = pinned(&db).await;
    assert_ne!(second, first);
    for number in 1..40 {
        db.ask(&sql(number)).await;
        db.ask(&sql(number)).await;
        db.cache().evict().await.expect("it can be asked");
    }
    assert!(is_there(&db, &second).await && !is_there(&db, &first).await);
    assert_eq!(pinned(&db).await, second);
}

/// The pin of a query is for the extents of then. UNPIN knows the query, whatever its tables have.
#[tokio::test(flavor = "multi_thread")]
async fn the_pin_of_a_query_stays_where_it_is() {
    let db = growing().await;
    let (first, _) = pin(&db, DAILY).await;
    files::numbers(&db.path("t/1.parquet"), 0..10_000);
    db.ok(DAILY).await;
    assert_eq!(pinned(&db).await, first);
    // The same query, said otherwise; and the same over another table.
    let error = db.err(&format!("UNPIN {}", DAILY.replace("FROM t", "FROM u"))).await;
    assert!(error.contains("is not pinned"), "{error}");
    let (second, _) = pin(&db, DAILY).await;
    assert_ne!(second, first);
    assert_eq!(pinned(&db).await, second, "one pin for one query");
    files::numbers(&db.path("t/2.parquet"), 0..10_000);
    db.ok("UNPIN SELECT n % 10, count(*), sum(n) FROM t GROUP BY n % 10").await;
    assert_eq!(pins(&db).await, Vec::<String>::new());
    // What made a result is known as the query, and can be computed anew.
    assert_eq!(db.ok("SELECT count(*) FROM system.programs WHERE sql ILIKE '%pin%select%'").await, "0");
    let verified = db.ok(&format!("VERIFY ENTRY '{second}'")).await;
    assert!(verified.contains("|same|"), "{verified}");
}

#[tokio::test(flavor = "multi_thread")]
async fn statements() {
    let db = growing().await;
    db.script(
        r#"
        PIN SELECT 1;
        !! cannot pin "SELECT 1"
        !! it reads no table
        PIN SELECT * FROM t;
        !! cannot pin "SELECT * FROM t"
        !! it is what its table holds
        PIN SELECT n, random() FROM t WHERE n < 5;
        !! cannot pin
        PIN INSERT INTO t SELECT 1;
        !! PIN takes a query, ENTRY '..' or MATERIALIZED VIEW
        PIN EXPLAIN SELECT 1;
        !! PIN takes a query
        PIN SELECT nope FROM t;
        !! "nope"
        PIN t;
        !! expected a query, ENTRY 'fingerprint' or MATERIALIZED VIEW
        PIN MATERIALIZED VIEW t;
        !! "t" is a
        !! SET PINNED
        PIN MATERIALIZED VIEW nothing;
        !! does not exist
        PIN ENTRY '0000';
        !! no cached result starts with "0000"
        UNPIN ENTRY '0000';
        !! "0000" is not pinned
        !! system.pins
        UNPIN SELECT count(*) FROM t;
        !! "SELECT count(*) FROM t" is not pinned
        CREATE MATERIALIZED VIEW v AS SELECT count(*) AS c FROM t WHERE n > 3;
        UNPIN MATERIALIZED VIEW v;
        !! "public.v" is not pinned
        SET nectarine.reuse = 'off';
        PIN SELECT max(n) FROM t WHERE n > 5;
        !! cannot pin
        !! nothing is kept
        RESET nectarine.reuse;
        SELECT count(*) FROM system.pins;
        -> 0
        "#,
    )
    .await;
    // Twice is once.
    let (one, _) = pin(&db, "SELECT n % 7 AS k, max(n) FROM t GROUP BY k").await;
    assert_eq!(pin(&db, "SELECT n % 7 AS k, max(n) FROM t GROUP BY k").await.0, one);
    assert_eq!(pins(&db).await.len(), 1);
    // An entry may have several pins, and stays until the last is gone.
    pin(&db, &format!("ENTRY '{one}'")).await;
    assert_eq!(pins(&db).await.len(), 2);
    db.ok("UNPIN SELECT n % 7 AS k, max(n) FROM t GROUP BY k").await;
    assert_eq!(pinned(&db).await, one);
}

/// A process that is killed while it pins leaves the pin whole, or none.
#[test]
fn dying_while_pinning() {
    // In other builds the points are empty.
    if !cfg!(debug_assertions) {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::on(&folder.path().join("home"));
    program.run("CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 100000)").rows();
    let query = "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY n % 10 ORDER BY k";
    let expected = program.run(query).rows();
    for (point, n_pins) in
        [("entry_finished", "0"), ("commit_done", "0"), ("pin_begun", "0"), ("pin_done", "1"), ("drop_done", "1")]
    {
        let mut command = program.clone().set("reuse", "refresh").command();
        command.env("NECTARINE_FAIL_POINT", point).args(["-c", &format!("PIN {query}")]);
        let ran = finish(command, b"");
        assert!(!ran.status.success(), "{point} was not reached: {ran:?}");
        assert_eq!(program.run("SELECT count(*) FROM system.pins").rows(), n_pins, "{point}");
        let mut command = program.command();
        command.args(["cache", "verify"]);
        assert!(finish(command, b"").status.success(), "{point}");
        assert_eq!(program.run(query).rows(), expected, "{point}");
    }
    // The last death was between what was there and what was to take its place.
    assert_eq!(program.run("SELECT count(bytes), count(*) FROM system.pins").rows(), "1,1");
}
