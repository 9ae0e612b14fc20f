//! Windows over extents: what lies wholly inside a filter is reused wherever the filter's bounds are.
//!
//! Every answer is compared with the same statement with reuse off.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use nectarine_engine::{Receipt, Reused};
use nectarine_tests::db::Db;
use nectarine_tests::files;
use sqlx::{Connection, SqliteConnection};

const ROWS: i64 = 20_000;
const DAY_US: i64 = 86_400_000_000;
/// 2026-01-01.
const START_US: i64 = 1_767_225_600_000_000;

/// The clicks of one day: a time, a user, a page, a float that may be NaN, a number that may be NULL.
fn day(path: &Path, day: i64) {
    let rows = 0..ROWS;
    let times = rows.clone().map(|row| START_US + day * DAY_US + row * (DAY_US / ROWS));
    let numbers = |value: fn(i64) -> i64| Arc::new(Int64Array::from_iter_values(rows.clone().map(value))) as ArrayRef;
    let floats = rows.clone().map(|row| if row % 1000 == 0 { f64::NAN } else { day as f64 });
    let nullable = rows.clone().map(|row| (row % 500 != 0).then_some(day));
    files::parquet(
        path,
        vec![
            ("ts", Arc::new(TimestampMicrosecondArray::from_iter_values(times))),
            ("day", Arc::new(Int64Array::from_iter_values(rows.clone().map(|_| day)))),
            ("name", Arc::new(StringArray::from_iter_values(rows.clone().map(|_| format!("2026-{day:03}"))))),
            ("user_id", numbers(|row| row * 7919 % 313)),
            ("v", numbers(|row| row * 104_729 % 1_000)),
            ("w", numbers(|row| row % 11 - 5)),
            ("f", Arc::new(Float64Array::from_iter_values(floats))),
            ("n", Arc::new(nullable.collect::<Int64Array>())),
        ],
    );
}

async fn days(range: std::ops::Range<i64>) -> Db {
    let db = Db::new().await;
    for number in range {
        day(&db.path(&format!("c/{number:03}.parquet")), number);
    }
    files::parquet(
        &db.path("u/0.parquet"),
        vec![
            ("user_id", Arc::new(Int64Array::from_iter_values(0..313))),
            ("country", Arc::new(StringArray::from_iter_values((0..313).map(|user| format!("c{}", user % 9))))),
        ],
    );
    db.ok("CREATE EXTERNAL TABLE c STORED AS PARQUET LOCATION '{dir}/c/'").await;
    db.ok("CREATE EXTERNAL TABLE u STORED AS PARQUET LOCATION '{dir}/u/'").await;
    db
}

/// Asks with and without reuse.
async fn check(db: &Db, sql: &str) -> Receipt {
    let (rows, receipt) = db.ask(sql).await;
    let plain = db.client();
    plain.ok("SET nectarine.reuse = off").await;
    assert_eq!(rows, plain.ask(sql).await.0, "{sql}");
    receipt
}

/// Extents that were not read, of those that the window touches.
fn reused(receipt: &Receipt) -> (usize, usize) {
    let extents = receipt.extents.expect("reuse is on");
    (extents.reused, extents.total)
}

/// A day as SQL writes it, and an hour of it.
fn at(day: i64, hour: i64) -> String {
    format!("TIMESTAMP '2026-01-{:02} {hour:02}:00:00'", day + 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_week_that_slides_by_a_day() {
    let db = days(0..20).await;
    let shapes = [
        "SELECT user_id % 5 AS k, count(*), sum(v), min(ts) FROM c WHERE {w} GROUP BY k",
        "SELECT count(*), sum(v), avg(v) FROM c WHERE {w} AND v < 500",
        "SELECT u.country, count(*), max(c.v) FROM c JOIN u ON c.user_id = u.user_id WHERE {w} GROUP BY u.country ORDER BY 2",
        "SELECT count(DISTINCT user_id) FROM c WHERE {w}",
    ];
    for shape in shapes {
        for first in 0..10 {
            let window = format!("ts >= {} AND ts < {}", at(first, 0), at(first + 7, 0));
            let sql = shape.replace("{w}", &window);
            let receipt = check(&db, &sql).await;
            let expected = if first == 0 { Reused::None } else { Reused::Partial };
            let told = db.ok(&format!("EXPLAIN REUSE {sql}")).await;
            assert_eq!(receipt.reused, expected, "{sql}: {told}");
            if first > 0 {
                let (n_reused, n_all) = reused(&receipt);
                // One day is new; of a join, the other side is read for it.
                assert!(n_reused >= 6 && n_all <= 8, "{n_reused} of {n_all}: {sql}: {told}");
            }
        }
    }
}

/// Bounds in the middle of days: the edges are filtered, the days between are shared.
#[tokio::test(flavor = "multi_thread")]
async fn edges_keep_their_filter() {
    let db = days(0..12).await;
    let mut n_reused = 0;
    for (first, last) in [(0, 9), (1, 8), (0, 11), (2, 10), (5, 6), (3, 3), (1, 11)] {
        for (from, to) in [(0, 0), (5, 18), (23, 1), (12, 12)] {
            let bounds = [
                format!("ts >= {} AND ts < {}", at(first, from), at(last, to)),
                format!("ts > {} AND ts <= {}", at(first, from), at(last, to)),
                format!("ts BETWEEN {} AND {}", at(first, from), at(last, to)),
                format!("{} <= ts AND v % 3 = 1 AND {} > ts", at(first, from), at(last, to)),
            ];
            for window in bounds {
                let sql = format!("SELECT user_id % 3 AS k, count(*), sum(v) FROM c WHERE {window} GROUP BY k");
                n_reused += reused(&check(&db, &sql).await).0;
            }
        }
    }
    assert!(n_reused > 300, "{n_reused}");
}

/// Other columns that go up with the extents, and what is computed from them.
#[tokio::test(flavor = "multi_thread")]
async fn what_goes_up_with_time() {
    let db = days(0..12).await;
    let shapes = [
        "day >= {n}",
        "day BETWEEN {n} AND {n} + 6",
        "CAST(day AS INT) > {n}",
        "name >= '2026-00{n}'",
        "CAST(ts AS DATE) >= DATE '2026-01-0{n}'",
        "date_trunc('day', ts) >= TIMESTAMP '2026-01-0{n} 00:00:00'",
        "date_trunc('hour', ts) < TIMESTAMP '2026-01-1{n} 05:00:00'",
    ];
    for shape in shapes {
        for n in 1..6 {
            let filter = shape.replace("{n}", &n.to_string());
            let receipt = check(&db, &format!("SELECT count(*), sum(v) FROM c WHERE {filter}")).await;
            if n > 1 {
                let (n_reused, n_all) = reused(&receipt);
                assert!(n_reused + 1 >= n_all.min(5) && n_reused > 0, "{filter}: {n_reused} of {n_all}");
            }
        }
    }
}

/// Where statistics do not tell, nothing is dropped.
#[tokio::test(flavor = "multi_thread")]
async fn what_statistics_do_not_tell() {
    let db = days(0..8).await;
    for filter in [
        // NaN is greater than every bound, and no bound knows of it.
        "f <= {n}",
        "f < {n} + 1",
        // NULL is inside no window.
        "n >= {n}",
        "n <= {n}",
        "n = {n}",
        "n BETWEEN 0 AND {n}",
        // Not monotonic.
        "day % 4 >= {n} - 2",
        "abs(day - 4) <= {n}",
        // True at both bounds, and false between them.
        "abs(w) >= {n} - 3",
        "v <> {n}",
        "w * w > {n}",
        "CAST(w AS TEXT) >= '-{n}'",
        "day <> {n}",
        "NOT (day > {n})",
        "day IN (1, {n})",
        "day IS NOT NULL AND day > -{n}",
        "day + n > {n}",
        "coalesce(n, 3) >= {n}",
        "length(name) > {n}",
    ] {
        for n in [3, 2, 5, 7] {
            let filter = filter.replace("{n}", &n.to_string());
            check(&db, &format!("SELECT count(*), sum(v), count(n) FROM c WHERE {filter}")).await;
        }
    }
}

/// The same filter on several scans: each is decided for itself, and only one of them at a time.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_filter_twice() {
    let db = days(0..6).await;
    files::parquet(
        &db.path("o/0.parquet"),
        vec![
            ("ts", Arc::new(TimestampMicrosecondArray::from_iter_values((0..60).map(|n| START_US + n * DAY_US / 10)))),
            ("user_id", Arc::new(Int64Array::from_iter_values(0..60))),
        ],
    );
    db.ok("CREATE EXTERNAL TABLE o STORED AS PARQUET LOCATION '{dir}/o/'").await;
    for (day, hour) in [(2, 12), (1, 0), (2, 13), (3, 23)] {
        let from = at(day, hour);
        for sql in [
            format!(
                "SELECT count(*) FROM c a JOIN c b ON a.user_id = b.user_id AND a.v = b.v WHERE a.ts >= {from} AND b.ts >= {from}"
            ),
            format!(
                "SELECT count(*), sum(o.user_id) FROM c JOIN o ON c.user_id = o.user_id WHERE c.ts >= {from} AND o.ts >= {from}"
            ),
            format!(
                "SELECT count(*), sum(o.user_id) FROM o JOIN c ON c.user_id = o.user_id WHERE c.ts >= {from} AND o.ts >= {from}"
            ),
            format!(
                "SELECT count(*) FROM c WHERE ts >= {from} AND user_id IN (SELECT user_id FROM o WHERE ts >= {from})"
            ),
            format!(
                "SELECT count(*) FROM c WHERE ts >= {from} AND user_id NOT IN (SELECT user_id FROM o WHERE ts >= {from})"
            ),
            format!(
                "SELECT count(*), count(o.ts) FROM c LEFT JOIN o ON c.user_id = o.user_id AND o.ts >= {from} WHERE c.ts >= {from}"
            ),
            format!(
                "SELECT count(*) FROM (SELECT ts, user_id FROM c WHERE ts >= {from} UNION ALL SELECT ts, user_id FROM o WHERE ts >= {from}) AS x"
            ),
            format!("SELECT (SELECT count(*) FROM c WHERE ts >= {from}), (SELECT sum(v) FROM c WHERE ts >= {from})"),
        ] {
            check(&db, &sql).await;
            check(&db, &sql).await;
        }
    }
}

/// A window on the side of a join that decides about the other's rows, and one beside a table that grows.
#[tokio::test(flavor = "multi_thread")]
async fn windows_in_joins() {
    let db = days(0..6).await;
    for day in [1, 3, 2] {
        let from = at(day, 0);
        for sql in [
            format!("SELECT count(*) FROM u WHERE user_id NOT IN (SELECT user_id FROM c WHERE ts >= {from} AND v < 9)"),
            format!("SELECT count(*) FROM u WHERE user_id IN (SELECT user_id FROM c WHERE ts >= {from} AND v < 9)"),
            format!(
                "SELECT count(*), count(c.v) FROM u LEFT JOIN c ON u.user_id = c.user_id AND c.v < 9 AND c.ts >= {from}"
            ),
            format!(
                "SELECT count(*), count(c.v) FROM c RIGHT JOIN u ON u.user_id = c.user_id AND c.v < 9 AND c.ts >= {from}"
            ),
        ] {
            check(&db, &sql).await;
        }
    }
    // Larger than all days, so that reading what is there beside its new rows would pay.
    let large = |file: &str, users: std::ops::Range<i64>| {
        let numbers = |value: fn(i64) -> i64| Arc::new(Int64Array::from_iter_values(users.clone().map(value)));
        files::parquet(
            &db.path(file),
            vec![("user_id", numbers(|user| user % 400_000)), ("x", numbers(|user| user * 7919 % 1_000_003))],
        );
    };
    large("b/0.parquet", 0..400_000);
    db.ok("CREATE EXTERNAL TABLE b STORED AS PARQUET LOCATION '{dir}/b/'").await;
    let sql = format!(
        "SELECT count(*), sum(b.x) FROM c JOIN b ON c.user_id = b.user_id WHERE c.ts >= {} AND c.v < 50",
        at(2, 0)
    );
    for part in 1..4 {
        check(&db, &sql).await;
        large(&format!("b/{part}.parquet"), 400_000..400_313);
    }
    check(&db, &sql).await;
}

/// Days arrive, go, and are written anew while the window slides.
#[tokio::test(flavor = "multi_thread")]
async fn days_come_and_go() {
    let db = days(0..6).await;
    for today in 6..16 {
        day(&db.path(&format!("c/{today:03}.parquet")), today);
        if today % 3 == 0 {
            std::fs::remove_file(db.path(&format!("c/{:03}.parquet", today - 6))).expect("it was there");
        }
        if today == 10 {
            // The same place, other rows.
            day(&db.path("c/008.parquet"), 7);
        }
        for window in [
            format!("ts >= {}", at(today - 5, 0)),
            format!("ts >= {} AND ts <= {}", at(today - 4, 7), at(today, 13)),
            format!("day > {}", today - 3),
        ] {
            let sql = format!("SELECT user_id % 4 AS k, count(*), sum(v) FROM c WHERE {window} GROUP BY k");
            check(&db, &sql).await;
            check(&db, &sql).await;
        }
    }
}

/// Entries that a window would read are computed anew in check mode, though the statement itself needs none of them.
#[tokio::test(flavor = "multi_thread")]
async fn check_mode_looks_at_inner_extents() {
    let db = days(0..6).await;
    let sql = format!(
        "SELECT user_id % 5 AS k, count(*), sum(day) FROM c WHERE ts >= {} AND ts < {} GROUP BY k",
        at(1, 0),
        at(5, 0)
    );
    check(&db, &sql).await;
    let checking = db.client();
    checking.ok("SET nectarine.reuse = 'check'").await;
    checking.ok(&sql).await;
    db.shutdown().await;
    // What is about one day is said to be about another.
    let metadata = db.home().join("metadata.db");
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", metadata.display())).await.expect("a file");
    let lie = "UPDATE cache_entry_inputs SET input = (SELECT max(input) FROM cache_inputs WHERE length(extents) = 32) \
               WHERE input IN (SELECT input FROM cache_inputs WHERE length(extents) = 32)";
    let lied = sqlx::query(lie).execute(&mut connection).await.expect("an update").rows_affected();
    assert!(lied > 1, "there are entries over single days");
    connection.close().await.expect("it closes");

    let db = db.reopen().await;
    let checking = db.client();
    checking.ok("SET nectarine.reuse = 'check'").await;
    let error = checking.run(&sql).await.expect_err("an entry differs");
    assert!(error.contains("differs from what is computed"), "{error}");
}

/// What an entry is about is told by its key as well: where the two differ, it is not read.
#[tokio::test(flavor = "multi_thread")]
async fn entries_of_other_days() {
    let db = days(0..6).await;
    let window = |first: i64| {
        let sql = "SELECT user_id % 5 AS k, count(*), sum(day) FROM c WHERE ts >= {} AND ts < {} GROUP BY k";
        sql.replacen("{}", &at(first, 0), 1).replacen("{}", &at(first + 4, 0), 1)
    };
    check(&db, &window(0)).await;
    db.shutdown().await;
    // Entries over single days change places.
    let metadata = db.home().join("metadata.db");
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", metadata.display())).await.expect("a file");
    let lie = "WITH days AS (SELECT input FROM cache_inputs WHERE length(extents) = 32) UPDATE cache_entry_inputs SET input = \
               CASE WHEN input = (SELECT max(input) FROM days) THEN (SELECT min(input) FROM days) ELSE (SELECT max(input) FROM days) END \
               WHERE input IN (SELECT input FROM days)";
    let lied = sqlx::query(lie).execute(&mut connection).await.expect("an update").rows_affected();
    assert!(lied > 1, "there are entries over single days");
    connection.close().await.expect("it closes");

    let db = db.reopen().await;
    check(&db, &window(1)).await;
    check(&db, &window(2)).await;
}

/// Times at the ends of what can be told, which some write for infinity: truncating them is an error, or wraps around. Nobody
/// truncates those below, because another condition leaves them out.
#[tokio::test(flavor = "multi_thread")]
async fn times_at_the_ends_of_what_can_be_told() {
    let db = Db::new().await;
    for number in 0..6 {
        let times = (0..ROWS).map(|row| match row {
            0 => i64::MIN,
            1 => i64::MAX,
            _ => START_US + number * DAY_US + row,
        });
        files::parquet(
            &db.path(&format!("c/{number:03}.parquet")),
            vec![
                ("ts", Arc::new(TimestampMicrosecondArray::from_iter_values(times))),
                ("v", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| row % 10)))),
            ],
        );
    }
    db.ok("CREATE EXTERNAL TABLE c STORED AS PARQUET LOCATION '{dir}/c/'").await;
    for day in 1..4 {
        for filter in [">=", "<="] {
            check(
                &db,
                &format!("SELECT count(*) FROM c WHERE v = 7 AND date_trunc('day', ts) {filter} {}", at(day, 0)),
            )
            .await;
        }
    }
}

/// A window over many small files is put together from few entries: neighbours are merged while they are read.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_window_reads_few_entries() {
    let db = Db::new().await;
    let n_days = 150;
    for number in 0..n_days {
        let times = (0..600).map(|row| START_US + number * DAY_US + row * (DAY_US / 600));
        let column = |value: fn(i64) -> i64| Arc::new(Int64Array::from_iter_values((0..600).map(value))) as ArrayRef;
        files::parquet(
            &db.path(&format!("c/{number:03}.parquet")),
            vec![
                ("ts", Arc::new(TimestampMicrosecondArray::from_iter_values(times))),
                ("user_id", column(|row| row * 7919 % 313)),
                ("v", column(|row| row * 104_729 % 1_000)),
                ("w", column(|row| row % 11)),
                ("x", column(|row| row * row)),
            ],
        );
    }
    db.ok("CREATE EXTERNAL TABLE c STORED AS PARQUET LOCATION '{dir}/c/'").await;
    let shapes = [
        "SELECT user_id % 5 AS k, count(*), sum(v), min(ts), max(x), count(DISTINCT w) FROM c WHERE {w} GROUP BY k",
        "SELECT count(*), sum(v), avg(v), median(v) FROM c WHERE {w} AND v < 500",
    ];
    for shape in shapes {
        let mut most = 0;
        for slide in 0..40_i64 {
            // Mostly a day further; now and then back, or another length.
            let (first, length) = match slide % 10 {
                7 => (slide / 2, 77),
                9 => (slide + 11, 30),
                _ => (slide, 100),
            };
            let at = |day: i64| format!("to_timestamp_micros({})", START_US + day * DAY_US);
            let window = format!("ts >= {} AND ts < {}", at(first), at(first + length));
            let receipt = check(&db, &shape.replace("{w}", &window)).await;
            if slide > 1 {
                assert_eq!(receipt.reused, Reused::Partial, "{shape}: {slide}");
                most = most.max(receipt.entries.len());
            }
        }
        assert!(most <= 20, "{most} entries: {shape}");
    }
}

/// Whoever has little memory has it whole: pieces of a window, and what merges them, would each get a small share of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fits_without_reuse_fits_with_it() {
    let settings = [("nectarine.memory_limit", "20MB"), ("datafusion.execution.target_partitions", "2")];
    let db = Db::with(&settings).await;
    let rows = 0..60_000_i64;
    for number in 0..36 {
        let times = rows.clone().map(|row| START_US + number * DAY_US + row);
        let column =
            |value: fn(i64) -> i64| Arc::new(Int64Array::from_iter_values(rows.clone().map(value))) as ArrayRef;
        files::parquet(
            &db.path(&format!("c/{number:03}.parquet")),
            vec![
                ("ts", Arc::new(TimestampMicrosecondArray::from_iter_values(times))),
                ("user_id", column(|row| row)),
                ("v", column(|row| row * 104_729 % 1_000)),
            ],
        );
    }
    db.ok("CREATE EXTERNAL TABLE c STORED AS PARQUET LOCATION '{dir}/c/'").await;
    for first in 0..3 {
        let at = |day: i64| format!("to_timestamp_micros({})", START_US + day * DAY_US);
        let window = format!("ts >= {} AND ts < {}", at(first), at(first + 32));
        for shape in [
            "SELECT user_id % 5 AS k, count(DISTINCT user_id), count(DISTINCT v), sum(v) FROM c WHERE {w} GROUP BY k",
            "SELECT n, count(*), sum(s) FROM (SELECT user_id, count(*) AS n, sum(v) AS s FROM c WHERE {w} GROUP BY user_id) GROUP BY n",
            "SELECT count(DISTINCT user_id), count(DISTINCT v), median(v) FROM c WHERE {w} AND user_id % 8 = 0",
        ] {
            check(&db, &shape.replace("{w}", &window)).await;
        }
    }
}
