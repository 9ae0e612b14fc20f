//! Statements at random over tables whose extents mostly have keys of their own: joins of all kinds, groups in groups, sides that
//! are empty, keys by other names, keys that only look like it. Tables grow, singly and together, and lose files.
//!
//! What falls apart by a key, and what holds no partner, is decided by the shape of a plan: here are shapes that nobody thought of.
//! `NECTARINE_SEED` and `NECTARINE_ROUNDS` make it longer.

use std::fmt::Write;
use std::time::Duration;

use arrow::array::{Int32Array, UInt64Array};
use nectarine_tests::invariance::Random;

use super::*;

/// Keys of one extent.
const KEYS: i64 = 20;

/// What takes longer is left out.
const LONG: Duration = Duration::from_secs(1);

/// Makes statements; every relation has columns `k`, `x` and `y`.
struct Maker {
    random: Random,
    n_names: usize,
}

impl Maker {
    fn name(&mut self) -> String {
        self.n_names += 1;
        format!("r{}", self.n_names)
    }

    fn table(&mut self) -> String {
        let table = *self.random.pick(&["a", "a", "b", "b", "c", "d"]);
        match self.random.below(4) {
            0 => format!("(SELECT k, x, y FROM {table} WHERE y < {})", self.random.between(10, 90)),
            1 => format!("(SELECT k, x, y FROM {table} WHERE x <> {})", self.random.between(0, 7)),
            2 => format!("(SELECT k, y AS x, x AS y FROM {table})"),
            _ => table.to_owned(),
        }
    }

    fn on(&mut self, left: &str, right: &str) -> String {
        let mut on = match self.random.below(12) {
            0 => format!("{left}.x = {right}.x"),
            1 => format!("{left}.k = {right}.x"),
            2 => format!("{left}.k = {right}.k AND {left}.x = {right}.x"),
            3 => format!("{left}.k IS NOT DISTINCT FROM {right}.k"),
            4 => format!("{left}.k = {right}.k + 1"),
            _ => format!("{left}.k = {right}.k"),
        };
        match self.random.below(5) {
            0 => _ = write!(on, " AND {left}.x < {right}.x"),
            1 => _ = write!(on, " AND {right}.y > {}", self.random.between(0, 80)),
            2 => _ = write!(on, " AND {left}.y <> {right}.y"),
            _ => {}
        }
        on
    }

    fn relation(&mut self, depth: usize) -> String {
        if depth == 0 || self.random.chance(12) {
            return self.table();
        }
        let (l, r) = (self.name(), self.name());
        let one = self.relation(depth - 1);
        let some = self.random.between(1, 60);
        match self.random.below(26) {
            0 | 1 => format!("(SELECT k, count(*) AS x, sum(y) % 100 AS y FROM {one} AS {l} GROUP BY k)"),
            2 => format!("(SELECT k, x, count(DISTINCT y) AS y FROM {one} AS {l} GROUP BY k, x)"),
            3 => format!("(SELECT x AS k, min(k) AS x, count(*) AS y FROM {one} AS {l} GROUP BY x)"),
            4 => format!("(SELECT min(k) AS k, count(*) AS x, max(y) AS y FROM {one} AS {l})"),
            5 => format!("(SELECT DISTINCT k, x, y % 3 AS y FROM {one} AS {l})"),
            6 => {
                let key = *self.random.pick(&["coalesce(k, -1)", "CAST(CAST(k AS INT) AS BIGINT)", "k + 0", "abs(k)"]);
                format!("(SELECT {key} AS k, x, y FROM {one} AS {l})")
            }
            7 => format!("(SELECT k, x, y FROM {one} AS {l} ORDER BY k, x, y LIMIT {some})"),
            8 => {
                let over = "PARTITION BY k ORDER BY x, y";
                format!("(SELECT k, row_number() OVER ({over}) AS x, y FROM {one} AS {l})")
            }
            9 => {
                let two = self.relation(depth - 1);
                format!("(SELECT k, x, y FROM {one} AS {l} UNION ALL SELECT k, x, y FROM {two} AS {r})")
            }
            10 => {
                let two = self.relation(depth - 1);
                format!("(SELECT k, x, y FROM {one} AS {l} WHERE y < (SELECT max(y) - 5 FROM {two} AS {r}))")
            }
            11 => {
                let two = self.relation(depth - 1);
                format!("(SELECT k, x, y FROM {one} AS {l} WHERE k IN (SELECT k FROM {two} AS {r}) OR x = 3)")
            }
            12 => {
                let (two, not) = (self.relation(depth - 1), *self.random.pick(&["", "NOT "]));
                format!(
                    "(SELECT k, x, y FROM {one} AS {l} WHERE k {not}IN (SELECT k FROM {two} AS {r} WHERE y < {some}))"
                )
            }
            13 => format!("(SELECT k, x, count(*) AS y FROM {one} AS {l} GROUP BY GROUPING SETS ((k, x), (k)))"),
            14 => format!("(SELECT k, x, y FROM {one} AS {l} WHERE y < {some})"),
            15 | 16 => {
                let (two, on) = (self.relation(depth - 1), self.on(&l, &r));
                let (column, kind) = (*self.random.pick(&["k", "x"]), *self.random.pick(&["", "LEFT ", "RIGHT "]));
                let groups = format!("{l}.{column}, {r}.{column}");
                let joined = format!("{one} AS {l} {kind}JOIN {two} AS {r} ON {on}");
                format!("(SELECT {r}.{column} AS k, {l}.{column} AS x, count(*) AS y FROM {joined} GROUP BY {groups})")
            }
            17..=19 => {
                let (two, on) = (self.relation(depth - 1), self.on(&l, &r));
                let not = *self.random.pick(&["", "NOT "]);
                format!("(SELECT k, x, y FROM {one} AS {l} WHERE {not}EXISTS (SELECT 1 FROM {two} AS {r} WHERE {on}))")
            }
            _ => {
                let (two, on) = (self.relation(depth - 1), self.on(&l, &r));
                let kind = *self.random.pick(&["", "", "", "LEFT ", "LEFT ", "RIGHT ", "FULL "]);
                let key = self.random.pick(&["{l}.k", "{l}.k", "{r}.k", "coalesce({l}.k, {r}.k)"]);
                let key = key.replace("{l}", &l).replace("{r}", &r);
                format!("(SELECT {key} AS k, {l}.x AS x, {r}.y AS y FROM {one} AS {l} {kind}JOIN {two} AS {r} ON {on})")
            }
        }
    }

    fn statement(&mut self) -> String {
        let depth = 1 + self.random.below(3);
        let relation = self.relation(depth);
        match self.random.below(6) {
            0 => format!("SELECT count(*), sum(k), sum(x), sum(y) FROM {relation} AS t"),
            1 => format!("SELECT k, x, y FROM {relation} AS t"),
            2 => format!("SELECT k, count(*), max(x), sum(y) FROM {relation} AS t GROUP BY k"),
            3 => format!("SELECT DISTINCT x, y FROM {relation} AS t"),
            _ => format!("SELECT x % 5, count(*), sum(y), min(k), max(k) FROM {relation} AS t GROUP BY x % 5"),
        }
    }
}

/// Files of the tables, and what comes next.
struct Growing {
    db: Db,
    random: Random,
    n_files: i64,
    /// The first key of the next file of each table.
    next: [i64; 4],
}

impl Growing {
    fn append(&mut self, table: usize) {
        let start = match self.random.below(10) {
            0 => self.random.between(0, self.next[table] + 1),
            1 => self.next[table] - 1,
            _ => self.next[table],
        };
        let has_nulls = self.random.chance(5);
        let n_rows = *self.random.pick(&[0, 3, 60, 60, 60, 120]);
        let rows: Vec<(Option<i64>, i64, i64)> = (0..n_rows)
            .map(|_| {
                let key = start + self.random.between(0, KEYS);
                let key = (!has_nulls || self.random.chance(90)).then_some(key);
                (key, self.random.between(0, 8), self.random.between(0, 100))
            })
            .collect();
        self.next[table] = self.next[table].max(start + KEYS);
        let keys = rows.iter().map(|(key, ..)| *key);
        let keys: ArrayRef = match table {
            2 => Arc::new(keys.map(|key| key.map(|key| key as i32)).collect::<Int32Array>()),
            3 => Arc::new(keys.map(|key| key.map(|key| key.max(0) as u64)).collect::<UInt64Array>()),
            _ => Arc::new(keys.collect::<Int64Array>()),
        };
        let column = |value: fn(&(Option<i64>, i64, i64)) -> i64| {
            Arc::new(Int64Array::from_iter_values(rows.iter().map(value))) as ArrayRef
        };
        let name = ["a", "b", "c", "d"][table];
        let path = self.db.path(&format!("{name}/{:05}.parquet", self.n_files));
        self.n_files += 1;
        let bytes = files::parquet_bytes(vec![("k", keys), ("x", column(|row| row.1)), ("y", column(|row| row.2))]);
        files::appear(&path, &bytes);
    }

    fn grow(&mut self) {
        match self.random.below(8) {
            // Together, as orders and their lines.
            0..=2 => (0..4).for_each(|table| self.append(table)),
            3 => {
                self.append(0);
                self.append(1);
            }
            7 => {
                let name = *self.random.pick(&["a", "b"]);
                let folder = self.db.path(&format!("{name}/x"));
                let mut files: Vec<_> = std::fs::read_dir(folder.parent().expect("a folder"))
                    .expect("it is there")
                    .map(|entry| entry.expect("an entry").path())
                    .collect();
                files.sort();
                if files.len() > 3 {
                    std::fs::remove_file(self.random.pick(&files)).expect("it was there");
                }
            }
            _ => {
                let table = self.random.below(4);
                self.append(table);
            }
        }
    }
}

async fn round(seed: u64) -> (usize, usize) {
    let db = Db::new().await;
    let mut growing = Growing { db: db.clone(), random: Random::new(seed), n_files: 0, next: [0; 4] };
    let n_first = 2 + growing.random.below(4);
    for _ in 0..n_first {
        (0..4).for_each(|table| growing.append(table));
    }
    for table in ["a", "b", "c", "d"] {
        let columns = match table {
            "c" => "k INT, x BIGINT, y BIGINT",
            "d" => "k BIGINT UNSIGNED, x BIGINT, y BIGINT",
            _ => "k BIGINT, x BIGINT, y BIGINT",
        };
        db.ok(&format!("CREATE EXTERNAL TABLE {table} ({columns}) STORED AS PARQUET LOCATION '{{dir}}/{table}/'"))
            .await;
    }
    let plain = db.client();
    plain.ok("SET nectarine.reuse = 'off'").await;
    for of in ["join", "topk", "aggregate"] {
        plain.ok(&format!("SET datafusion.optimizer.enable_{of}_dynamic_filter_pushdown = false")).await;
    }
    let checking = db.client();
    checking.ok("SET nectarine.reuse = 'check'").await;
    let mut maker = Maker { random: Random::new(seed.wrapping_mul(31)), n_names: 0 };
    let mut statements = vec![];
    while statements.len() < 8 {
        let sql = maker.statement();
        // Some are refused by DataFusion: correlated deeper than it can follow.
        if let Ok(Ok(_)) = tokio::time::timeout(LONG, plain.run(&sql)).await {
            statements.push(sql);
        }
    }
    let (mut n_asked, mut n_partial) = (0, 0);
    for step in 0..5 {
        for sql in &statements {
            let expected = plain.run(sql).await.map(|text| sorted(&text));
            let told = db.run(sql).await.map(|text| sorted(&text));
            assert_eq!(
                told,
                expected,
                "seed {seed}, step {step}: {sql}\n{}",
                db.ok(&format!("EXPLAIN REUSE {sql}")).await
            );
            n_asked += 1;
            let again = db.run(sql).await.map(|text| sorted(&text));
            assert_eq!(again, expected, "seed {seed}, step {step}, again: {sql}");
            if step % 2 == 1 {
                let checked = checking.run(sql).await.map(|text| sorted(&text));
                assert_eq!(checked, expected, "seed {seed}, step {step}, checked: {sql}");
            }
        }
        let told = db.ok("SELECT count(*) FROM system.queries WHERE reuse = 'partial' AND extents_reused > 0").await;
        n_partial = told.trim().parse().expect("a number");
        growing.grow();
    }
    (n_asked, n_partial)
}

fn sorted(text: &str) -> Vec<String> {
    let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn shapes_that_nobody_thought_of() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, rounds) = (number("NECTARINE_SEED").unwrap_or(1), number("NECTARINE_ROUNDS").unwrap_or(3));
    let (mut n_asked, mut n_partial) = (0, 0);
    for nth in 0..rounds {
        let (asked, partial) = round(seed + nth).await;
        n_asked += asked;
        n_partial += partial;
        eprintln!("seed {}: {asked} asked, {partial} partly reused", seed + nth);
    }
    assert!(n_partial * 20 > n_asked, "{n_partial} of {n_asked}");
}
