//! What has a name is kept as a whole, whatever a statement around it needs of it.

use nectarine_tests::db::Db;

use super::{entries_hold, holds};

/// Guard: what is kept for a name is all of its rows. Below a DISTINCT a semi join may be read from the entry of an inner join, which
/// has its rows more often; not where a name that is kept lies between.
#[tokio::test]
async fn a_semi_join_below_a_name_keeps_its_number_of_rows() {
    for semi_join in ["WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", "WHERE t.a IN (SELECT a FROM u)"] {
        let db = Db::new().await;
        // Of the numbers 0 to 1499 six each in u.
        db.ok("CREATE TABLE t AS SELECT value AS a, value % 50 AS x FROM generate_series(1, 3000)").await;
        db.ok("CREATE TABLE u AS SELECT value % 1500 AS a, value AS b FROM generate_series(1, 9000)").await;
        db.ok(&format!(
            "CREATE MATERIALIZED VIEW mv AS SELECT y * y AS z FROM (SELECT t.x + 1 AS y FROM t {semi_join})"
        ))
        .await;
        db.ok(&format!("CREATE VIEW v AS SELECT y * y AS z FROM (SELECT t.x + 1 AS y FROM t {semi_join})")).await;
        let inner_join = "SELECT t.a, t.x, u.b FROM t JOIN u ON t.a = u.a";
        for (n, more) in ["(2000, 1)", "(2001, 1), (2001, 2)", "(2050, 1), (1, 1)"].into_iter().enumerate() {
            // What was kept of the view is over the extents before.
            db.ok(&format!("INSERT INTO u VALUES {more}")).await;
            db.ok(inner_join).await;
            assert_eq!(db.ok("SELECT DISTINCT z FROM mv").await.lines().count(), 50);
            assert_eq!(db.ok("SELECT DISTINCT z FROM v").await.lines().count(), 50);
            // The rows of t from 1 to 1499 have 30 times the squares of 1 to 50, which add up to 42925, but for one 1 at 0; then
            // come 2000 and 2050, of which the square is 1, and 2001, of which it is 4.
            let expected = ["1500|1287750", "1501|1287754", "1502|1287755"][n];
            for name in ["mv", "v"] {
                let whole = format!("SELECT count(*), sum(z) FROM {name}");
                assert_eq!(db.ok(&whole).await, expected, "{name} {semi_join}");
                assert_eq!(holds(&db, &whole).await, expected, "{name} {semi_join}");
            }
        }
        entries_hold(&db).await;
    }
}

/// The same for other layers above and below: each name first without duplicates, then as a whole.
#[tokio::test]
async fn names_on_names_are_whole() {
    let db = Db::new().await;
    db.ok("CREATE TABLE t AS SELECT value AS a, value % 40 AS x FROM generate_series(1, 1000)").await;
    db.ok("CREATE TABLE u AS SELECT value % 300 AS a, value AS b FROM generate_series(1, 1200)").await;
    db.ok("CREATE VIEW once AS SELECT a, x + 1 AS y FROM t").await;
    db.ok("CREATE VIEW twice AS SELECT a, y * 2 AS w FROM once").await;
    let names = [
        ("partnered", "SELECT w % 6 AS z FROM twice WHERE EXISTS (SELECT 1 FROM u WHERE u.a = twice.a)"),
        ("single", "SELECT w % 6 AS z FROM twice WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = twice.a)"),
        ("joined", "SELECT w % 6 AS z FROM twice JOIN u ON u.a = twice.a"),
        ("grouped", "SELECT w % 6 AS z FROM twice JOIN u ON u.a = twice.a GROUP BY w"),
        ("above", "SELECT z + 1 AS z FROM partnered"),
    ];
    for (name, query) in names {
        db.ok(&format!("CREATE MATERIALIZED VIEW {name} AS {query}")).await;
    }
    for more in ["(500, 1)", "(501, 1), (501, 2)"] {
        db.ok(&format!("INSERT INTO u VALUES {more}")).await;
        db.ok("SELECT twice.a, twice.w, u.b FROM twice JOIN u ON u.a = twice.a").await;
        for (name, _) in names {
            db.ok(&format!("SELECT DISTINCT z FROM {name}")).await;
            db.ok(&format!("SELECT count(*) FROM t WHERE t.x IN (SELECT z FROM {name})")).await;
            db.ok(&format!("SELECT max(z) FROM {name}")).await;
        }
        for (name, _) in names {
            holds(&db, &format!("SELECT count(*), sum(z) FROM {name}")).await;
            holds(&db, &format!("SELECT z, count(*) FROM {name} GROUP BY z")).await;
        }
    }
    entries_hold(&db).await;
}
