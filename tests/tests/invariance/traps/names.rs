//! A name is not an identity: views, functions, tables and prepared statements change under it.

use super::{all_hold, entries_hold, holds, tables};

/// Trap 2. Guard: bodies of SQL functions are inlined before keys are taken.
#[tokio::test]
async fn a_function_is_replaced() {
    let db = tables().await;
    for (body, expected) in [("$1 + 1", "500500"), ("$1 + 2", "501500"), ("$1 + 1", "500500")] {
        db.ok(&format!("CREATE OR REPLACE FUNCTION plus(BIGINT) RETURNS BIGINT RETURN {body}")).await;
        assert_eq!(holds(&db, "SELECT sum(plus(a)) FROM t").await, expected);
        holds(&db, "SELECT plus(a) % 5 AS m, count(*) FROM t GROUP BY 1").await;
        holds(&db, "SELECT a FROM t WHERE plus(a) > 990").await;
    }
    entries_hold(&db).await;
}

/// Guard: a view is its plan.
#[tokio::test]
async fn a_view_is_redefined() {
    let db = tables().await;
    for (n, expected) in [(1, "998"), (2, "997"), (1, "998")] {
        db.ok(&format!("CREATE OR REPLACE VIEW v AS SELECT a, k FROM t WHERE a > {n}")).await;
        assert_eq!(holds(&db, "SELECT count(*) FROM v").await, expected);
        holds(&db, "SELECT k, sum(a) FROM v GROUP BY k").await;
    }
    db.ok("DROP VIEW v").await;
    db.ok("CREATE VIEW v AS SELECT a + 1 AS a, k FROM t").await;
    assert_eq!(holds(&db, "SELECT sum(a) FROM v").await, "500500");
    // A view over a view, whose inner one changes.
    db.ok("CREATE VIEW outer_v AS SELECT k, sum(a) AS s FROM v GROUP BY k").await;
    holds(&db, "SELECT * FROM outer_v").await;
    db.ok("CREATE OR REPLACE VIEW v AS SELECT a + 2 AS a, k FROM t").await;
    assert_eq!(holds(&db, "SELECT sum(s) FROM outer_v").await, "501500");
    entries_hold(&db).await;
}

/// Guard: keys name extents, not tables.
#[tokio::test]
async fn a_table_is_dropped_and_made_again() {
    let db = tables().await;
    for n in [1, 2, 3] {
        db.ok("CREATE TABLE again (a INT, g TEXT)").await;
        db.ok(&format!("INSERT INTO again VALUES ({n}, 'x'), ({n}, 'y')")).await;
        assert_eq!(holds(&db, "SELECT sum(a) FROM again").await, (2 * n).to_string());
        assert_eq!(holds(&db, "SELECT g, max(a) FROM again GROUP BY g").await, format!("x|{n}\ny|{n}"));
        db.ok("DROP TABLE again").await;
    }
    // Columns swapped, rows the same.
    db.ok("CREATE TABLE again (x INT, y INT)").await;
    db.ok("INSERT INTO again VALUES (1, 2)").await;
    assert_eq!(holds(&db, "SELECT x + 10, y FROM again").await, "11|2");
    db.ok("CREATE OR REPLACE TABLE again AS SELECT 2 AS x, 1 AS y").await;
    assert_eq!(holds(&db, "SELECT x + 10, y FROM again").await, "12|1");
    db.err("SELECT x FROM missing_table").await;
    db.ok("DROP TABLE again").await;
    db.err("SELECT x + 10, y FROM again").await;
    entries_hold(&db).await;
}

/// Guard: parameters are literals before keys are taken.
#[tokio::test]
async fn prepared_statements_with_other_parameters() {
    let db = tables().await;
    db.ok("PREPARE above(BIGINT) AS SELECT count(*) FROM t WHERE a > $1").await;
    db.ok("PREPARE groups(INT) AS SELECT g, sum(a) FROM t WHERE k = $1 GROUP BY g").await;
    for _ in 0..2 {
        for (n, expected) in [(10, "989"), (11, "988"), (10, "989")] {
            assert_eq!(db.ok(&format!("EXECUTE above({n})")).await, expected);
        }
        for k in [1, 2, 3] {
            holds(&db, &format!("EXECUTE groups({k})")).await;
        }
    }
    entries_hold(&db).await;
}

/// Guard: names are not part of a key, but of an answer.
#[tokio::test]
async fn answers_have_the_names_that_were_asked_for() {
    let db = tables().await;
    for names in [["x", "y"], ["y", "x"], ["Sum of A", "k"]] {
        let sql = format!("SELECT k AS \"{}\", sum(a) AS \"{}\" FROM t GROUP BY k", names[0], names[1]);
        for _ in 0..2 {
            let batches = db.batches(&sql).await;
            let schema = batches[0].schema();
            let found: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            assert_eq!(found, names, "{sql}");
        }
        holds(&db, &sql).await;
    }
    all_hold(
        &db,
        &[
            "SELECT y FROM (SELECT k AS x, sum(a) AS y FROM t GROUP BY k) WHERE x = 1",
            "SELECT x FROM (SELECT k AS y, sum(a) AS x FROM t GROUP BY k) WHERE y = 1",
            "SELECT named_struct('p', k, 'q', sum(a)) FROM t GROUP BY k",
            "SELECT named_struct('q', k, 'p', sum(a)) FROM t GROUP BY k",
            "SELECT s['p'] FROM (SELECT named_struct('p', k, 'q', sum(a)) AS s FROM t GROUP BY k)",
        ],
    )
    .await;
    entries_hold(&db).await;
}
