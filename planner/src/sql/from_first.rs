//! [`FromFirst`]: `FROM t` without a SELECT is `SELECT * FROM t`, as in DuckDB.
//!
//! The parser leaves the select list empty, and DataFusion would give rows without columns.

use std::ops::ControlFlow;

use sqlparser::ast::{Select, SelectFlavor, SelectItem, VisitorMut, WildcardAdditionalOptions};

/// Says what is selected where nothing is said.
pub(super) struct FromFirst;

impl VisitorMut for FromFirst {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            select.flavor = SelectFlavor::Standard;
            select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::{ParseOptions, Statement, parse};

    #[test]
    fn everywhere_a_query_can_stand() {
        for (sql, meant) in [
            ("FROM t", "SELECT * FROM t"),
            (
                "FROM t AS x JOIN u USING (a) ORDER BY a LIMIT 2",
                "SELECT * FROM t AS x JOIN u USING(a) ORDER BY a LIMIT 2",
            ),
            ("FROM t SELECT a", "FROM t SELECT a"),
            ("FROM t UNION ALL FROM u", "SELECT * FROM t UNION ALL SELECT * FROM u"),
            (
                "WITH x AS (FROM t) SELECT * FROM (FROM x) AS y WHERE a IN (FROM u) AND EXISTS (FROM v)",
                "WITH x AS (SELECT * FROM t) SELECT * FROM (SELECT * FROM x) AS y WHERE a IN (SELECT * FROM u) AND EXISTS (SELECT * FROM v)",
            ),
            ("CREATE TABLE z AS FROM t", "CREATE TABLE z AS SELECT * FROM t"),
            ("INSERT INTO z FROM t", "INSERT INTO z SELECT * FROM t"),
            ("EXPLAIN FROM t", "EXPLAIN SELECT * FROM t"),
            // Rows without columns are what it says.
            ("SELECT FROM t", "SELECT FROM t"),
        ] {
            let Ok(Some(Statement::DataFusion(statement))) = parse(sql, &ParseOptions::default()) else {
                panic!("{sql}")
            };
            assert_eq!(statement.to_string(), meant);
        }
        let Ok(Some(Statement::CreateView(create))) = parse("CREATE VIEW v AS FROM t", &ParseOptions::default()) else {
            panic!("no view")
        };
        assert_eq!((create.query.to_string().as_str(), create.query_text.as_str()), ("SELECT * FROM t", "FROM t"));
    }

    #[test]
    fn clauses_behind_it_need_a_select() {
        for sql in [
            "FROM t WHERE a > 1",
            "FROM (SELECT 1) AS t WHERE a > 1",
            "SELECT * FROM (FROM t WHERE a > 1)",
            "CREATE TABLE z AS FROM t GROUP BY a",
        ] {
            let error = parse(sql, &ParseOptions::default()).expect_err(sql);
            assert_eq!(error.hint(), Some("write SELECT * before that FROM, or SELECT .. behind its tables"), "{sql}");
        }
        let error = parse("DELETE FROM t x y WHERE a", &ParseOptions::default()).expect_err("no SQL");
        assert_eq!(error.hint(), None);
    }
}
