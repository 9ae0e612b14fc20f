//! `IN (SELECT ..)` and `EXISTS` have three values, wherever they stand. What is expected is worked out here, row by row.

use nectarine_tests::db::Db;

/// Key and value.
type Row = (Option<i64>, Option<i64>);

/// Rows of the outer table.
const ASKED: [Row; 8] = [
    (Some(1), Some(1)),
    (Some(1), Some(3)),
    (Some(1), None),
    (Some(2), Some(5)),
    (Some(2), None),
    (Some(3), Some(1)),
    (Some(3), None),
    (None, Some(1)),
];

/// Those of the inner one: the first key has a NULL among its values, the second has not, the third has none.
const HELD: [Row; 6] =
    [(Some(1), Some(1)), (Some(1), Some(2)), (Some(1), None), (Some(2), Some(5)), (Some(2), Some(6)), (None, None)];

async fn tables() -> Db {
    let db = Db::new().await;
    let values = |rows: &[Row]| {
        let text = |value: &Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
        let rows = rows.iter().enumerate().map(|(id, (k, v))| format!("({id}, {}, {})", text(k), text(v)));
        rows.collect::<Vec<_>>().join(", ")
    };
    db.ok("CREATE TABLE x (id INT, k INT, a INT)").await;
    db.ok("CREATE TABLE s (id INT, k INT, y INT)").await;
    db.ok(&format!("INSERT INTO x VALUES {}", values(&ASKED))).await;
    db.ok(&format!("INSERT INTO s VALUES {}", values(&HELD))).await;
    db
}

/// What a subquery holds, and for which outer row.
struct Asked {
    sql: &'static str,
    holds: fn(k: Option<i64>, row: Row) -> bool,
}

const SUBQUERIES: [Asked; 6] = [
    Asked { sql: "SELECT y FROM s", holds: |_, _| true },
    Asked { sql: "SELECT y FROM s WHERE y IS NOT NULL", holds: |_, (_, y)| y.is_some() },
    Asked { sql: "SELECT y FROM s WHERE y > 100", holds: |_, _| false },
    Asked { sql: "SELECT y FROM s WHERE s.k = x.k", holds: |k, (held, _)| k.is_some() && held == k },
    Asked {
        sql: "SELECT y FROM s WHERE s.k = x.k AND y IS NOT NULL",
        holds: |k, (held, y)| k.is_some() && held == k && y.is_some(),
    },
    Asked {
        sql: "SELECT y FROM s WHERE s.k > x.k",
        holds: |k, (held, _)| k.zip(held).is_some_and(|(k, held)| held > k),
    },
];

fn is_in(a: Option<i64>, held: &[Option<i64>]) -> Option<bool> {
    match a {
        _ if held.is_empty() => Some(false),
        Some(_) if held.contains(&a) => Some(true),
        Some(_) if !held.contains(&None) => Some(false),
        _ => None,
    }
}

/// Conditions around a question, and what they make of its value; `first` is whether the row is the first.
type Around = (&'static str, fn(is: Option<bool>, first: bool) -> Option<bool>);

const AROUND: [Around; 9] = [
    ("{q}", |is, _| is),
    ("NOT {q}", |is, _| is.map(|is| !is)),
    ("({q}) OR id = 0", |is, first| if first { Some(true) } else { is }),
    ("NOT ({q}) OR id = 0", |is, first| if first { Some(true) } else { is.map(|is| !is) }),
    ("({q}) IS NULL", |is, _| Some(is.is_none())),
    ("({q}) IS DISTINCT FROM true", |is, _| Some(is != Some(true))),
    ("({q}) = false", |is, _| is.map(|is| !is)),
    ("CASE WHEN {q} THEN false ELSE ({q}) IS NULL END", |is, _| Some(is.is_none())),
    ("coalesce({q}, id = 0)", |is, first| Some(is.unwrap_or(first))),
];

#[tokio::test(flavor = "multi_thread")]
async fn in_all_places() {
    let db = tables().await;
    for mode in ["off", "on", "on"] {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        for asked in &SUBQUERIES {
            for negated in [false, true] {
                let question = format!("a {}IN ({})", if negated { "NOT " } else { "" }, asked.sql);
                for (around, meant) in AROUND {
                    let value = |id: usize, (k, a): Row| {
                        let held = HELD.into_iter().filter(|row| (asked.holds)(k, *row)).map(|(_, y)| y);
                        let is = is_in(a, &held.collect::<Vec<_>>()).map(|is| is != negated);
                        meant(is, id == 0)
                    };
                    let values: Vec<_> = ASKED.into_iter().enumerate().map(|(id, row)| (id, value(id, row))).collect();
                    let condition = around.replace("{q}", &question);
                    let sql = format!("SELECT id FROM x WHERE {condition} ORDER BY id");
                    let kept = values.iter().filter(|(_, value)| *value == Some(true));
                    let expected: Vec<_> = kept.map(|(id, _)| id.to_string()).collect();
                    assert_eq!(db.ok(&sql).await, expected.join("\n"), "{mode}: {sql}");

                    let sql = format!("SELECT id, {condition} AS v FROM x ORDER BY id");
                    let text = |value: &Option<bool>| value.map_or("NULL".to_owned(), |value| value.to_string());
                    let expected: Vec<_> = values.iter().map(|(id, value)| format!("{id}|{}", text(value))).collect();
                    assert_eq!(db.ok(&sql).await, expected.join("\n"), "{mode}: {sql}");
                }
            }
        }
    }
}

/// An aggregate without GROUP BY is a row even of no rows.
#[tokio::test(flavor = "multi_thread")]
async fn of_groups_of_nothing() {
    let db = tables().await;
    for mode in ["off", "on", "on"] {
        db.ok(&format!("SET nectarine.reuse = '{mode}'")).await;
        for (condition, ids) in [
            ("0 IN (SELECT count(*) FROM s WHERE s.k = x.k)", "5,6,7"),
            ("0 NOT IN (SELECT count(*) FROM s WHERE s.k = x.k)", "0,1,2,3,4"),
            ("-1 IN (SELECT coalesce(max(y), -1) FROM s WHERE s.k = x.k)", "5,6,7"),
            ("a NOT IN (SELECT max(y) FROM s WHERE s.k = x.k)", "0,1,3"),
            ("a NOT IN (SELECT max(y) FROM s WHERE s.k = x.k HAVING count(*) > 1)", "0,1,3,5,6,7"),
            ("NOT EXISTS (SELECT max(y) FROM s WHERE s.k = x.k)", ""),
            ("NOT EXISTS (SELECT max(y) FROM s WHERE s.k = x.k) OR id = 3", "3"),
            ("EXISTS (SELECT max(y) FROM s WHERE s.k = x.k HAVING count(*) > 0)", "0,1,2,3,4"),
            ("EXISTS (SELECT 1 FROM s WHERE s.k = x.k HAVING count(*) = 0)", "5,6,7"),
            ("EXISTS (SELECT sum(y) FROM s WHERE s.k = x.k GROUP BY s.k)", "0,1,2,3,4"),
            // What is asked of the row may depend on the outer one, and what it is made of not.
            ("EXISTS (SELECT 1 FROM (SELECT min(y) AS c FROM s) b WHERE b.c = x.a)", "0,5,7"),
            ("NOT EXISTS (SELECT 1 FROM (SELECT min(y) AS c FROM s) b WHERE b.c = x.a)", "1,2,3,4,6"),
            ("EXISTS (SELECT 1 FROM (SELECT avg(y) AS c FROM s) b WHERE x.a > b.c)", "3"),
            ("a NOT IN (SELECT c FROM (SELECT max(y) AS c FROM s) b WHERE b.c > x.a)", "0,1,2,3,4,5,6,7"),
            ("EXISTS (SELECT 1 FROM (SELECT min(y) AS c FROM s WHERE false) b WHERE b.c = x.a)", ""),
        ] {
            let sql = format!("SELECT coalesce(string_agg(id::text, ',' ORDER BY id), '') FROM x WHERE {condition}");
            assert_eq!(db.ok(&sql).await, ids, "{mode}: {sql}");
        }
    }
}

/// In a SELECT list, in aggregates and as a group, beside `ANY` and `ALL`.
#[tokio::test]
async fn as_columns() {
    let db = tables().await;
    for (sql, rows) in [
        (
            "SELECT EXISTS (SELECT 1 FROM s WHERE s.k = x.k) AS e, count(*) FROM x GROUP BY e ORDER BY e",
            "false|3\ntrue|5",
        ),
        ("SELECT sum(CASE WHEN a IN (SELECT y FROM s) THEN 1 ELSE 0 END) FROM x", "4"),
        ("SELECT count(*) FILTER (WHERE a NOT IN (SELECT y FROM s WHERE y > 1)) FROM x", "4"),
        ("SELECT CASE WHEN EXISTS (SELECT 1 FROM s WHERE false) THEN 'y' ELSE 'n' END", "n"),
        (
            "SELECT a > ALL (SELECT y FROM s WHERE y < 3), a = ANY (SELECT y FROM s WHERE k = 2) FROM x WHERE id IN (1, 3) ORDER BY id",
            "true|false\ntrue|true",
        ),
        (
            "SELECT id, row_number() OVER (ORDER BY id) + CASE WHEN EXISTS (SELECT 1 FROM s WHERE y = a) THEN 100 ELSE 0 END FROM x WHERE id < 2 ORDER BY id",
            "0|101\n1|2",
        ),
        (
            "SELECT x.id, s.id FROM x JOIN s ON x.k = s.k AND x.a NOT IN (SELECT y FROM s WHERE y < 5) ORDER BY 1, 2",
            "1|0\n1|1\n1|2\n3|3\n3|4",
        ),
        (
            "SELECT EXISTS (SELECT 1 FROM s s2 WHERE s2.y = s.y AND s2.y NOT IN (SELECT a FROM x WHERE a IS NOT NULL)) FROM s ORDER BY id",
            "false\ntrue\nfalse\nfalse\ntrue\nfalse",
        ),
    ] {
        assert_eq!(db.ok(sql).await, rows, "{sql}");
    }
    // Names are those that they were.
    let error = db.err("SELECT a IN (SELECT y FROM s), a IN (SELECT k FROM s) FROM x").await;
    assert!(error.contains("same name"), "{error}");
}
