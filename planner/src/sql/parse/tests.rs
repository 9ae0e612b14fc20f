//! Statements that are ours, errors with their positions, and texts made to break a parser.

use super::*;
use crate::sql::{CopyFrom, CreateView, Relation};

fn read(sql: &str) -> Statement {
    parse(sql, &ParseOptions::default()).unwrap_or_else(|error| panic!("{sql}: {error}")).expect("a statement")
}

fn fail(sql: &str) -> PlannerError {
    parse(sql, &ParseOptions::default()).expect_err(sql)
}

#[test]
fn nothing_is_no_statement() {
    for sql in ["", "  \n", ";", " ; ;", "-- x", "/* x */ ;"] {
        assert_eq!(parse(sql, &ParseOptions::default()), Ok(None), "{sql}");
    }
}

#[test]
fn one_statement_and_no_more() {
    read("SELECT 1;");
    read("SELECT 1 ;; ");
    let error = fail("SELECT 1; SELECT 2");
    assert_eq!(error.to_string(), "syntax error: expected the end of the statement, found \"SELECT\"");
    assert_eq!(error.position(), Some(10));
}

#[test]
fn copy_from_in_all_spellings() {
    let copy = |sql: &str| match read(sql) {
        Statement::CopyFrom(CopyFrom { table, columns, source, format, options }) => {
            let columns: Vec<_> = columns.iter().map(ToString::to_string).collect();
            let options: Vec<_> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{table} [{}] {source} {} [{}]", columns.join(" "), format.unwrap_or_default(), options.join(" "))
        }
        other => panic!("{sql}: {other:?}"),
    };
    for (sql, expected) in [
        ("COPY t FROM 'f.csv'", "t [] f.csv  []"),
        ("copy s.t (a, \"B\") from 'f.csv';", "s.t [a \"B\"] f.csv  []"),
        ("COPY t FROM 'f' STORED AS parquet", "t [] f PARQUET []"),
        (
            "COPY t FROM 'f' STORED AS CSV OPTIONS ('format.has_header' 'true', delimiter ';')",
            "t [] f CSV [format.has_header=true format.delimiter=;]",
        ),
        (
            "COPY t FROM 'f' (FORMAT csv, HEADER, DELIMITER '|', NULL 'N/A')",
            "t [] f CSV [format.has_header=true format.delimiter=| format.null_regex=^N/A$]",
        ),
        ("COPY t FROM 'f' WITH (FORMAT 'csv', HEADER false)", "t [] f CSV [format.has_header=false]"),
        ("COPY t FROM 'f' (FORMAT = csv, quote = '\"')", "t [] f CSV [format.quote=\"]"),
        (
            "COPY t FROM 'f' WITH CSV HEADER DELIMITER AS ';' NULL ''",
            "t [] f CSV [format.has_header=true format.delimiter=; format.null_regex=^$]",
        ),
        ("COPY t FROM 'f' CSV", "t [] f CSV []"),
        ("COPY t FROM 'f' (ENCODING 'UTF8')", "t [] f  []"),
        ("COPY t FROM STDIN", "t [] stdin://  []"),
        ("COPY t (a) FROM stdin WITH (HEADER off)", "t [a] stdin://  [format.has_header=false]"),
    ] {
        assert_eq!(copy(sql), expected, "{sql}");
    }
    for (sql, message) in [
        ("COPY t FROM f", "syntax error: expected the file to copy from as a quoted string, or STDIN, found \"f\""),
        (
            "COPY t FROM PROGRAM 'ls'",
            "syntax error: COPY with a PROGRAM is not offered: use STDIN or STDOUT with a pipe of the shell",
        ),
        ("COPY t FROM 'f' SIDEWAYS", "syntax error: expected an option of COPY, found \"SIDEWAYS\""),
        ("COPY t FROM 'f' (FORMAT csv) STORED AS csv", "syntax error: the file format is specified more than once"),
        ("COPY t FROM 'f' (HEADER, HEADER)", "syntax error: option format.has_header is specified more than once"),
        ("COPY t FROM 'f' (ENCODING 'LATIN1')", "syntax error: encoding LATIN1 is not supported, only UTF8"),
        ("COPY t FROM 'f' (HEADER", "syntax error: expected the value of an option, found the end of the text"),
    ] {
        assert_eq!(fail(sql).to_string(), message, "{sql}");
    }
}

#[test]
fn copy_to_in_all_spellings() {
    let copy = |sql: &str| match read(sql) {
        Statement::DataFusion(statement) => match *statement {
            DFStatement::CopyTo(copy) => copy.to_string(),
            other => panic!("{sql}: {other:?}"),
        },
        other => panic!("{sql}: {other:?}"),
    };
    for (sql, expected) in [
        ("COPY t TO 'f.csv'", "COPY t TO f.csv"),
        ("copy (select * from t) to 'f' stored as csv;", "COPY (SELECT * FROM t) TO f STORED AS CSV"),
        ("COPY s.t STORED AS CSV TO 'f'", "COPY s.t TO f STORED AS CSV"),
        (
            "COPY t TO 'f/' STORED AS PARQUET PARTITIONED BY (a, \"B\") OPTIONS (compression 'zstd(3)', x.y 1)",
            "COPY t TO f/ STORED AS PARQUET PARTITIONED BY (a, \"B\") OPTIONS ('format.compression' 'zstd(3)', 'x.y' '1')",
        ),
        (
            "COPY t TO 'f' WITH (FORMAT csv, HEADER off, DELIMITER ';', NULL 'N/A', FORCE_QUOTE *)",
            "COPY t TO f STORED AS CSV OPTIONS ('format.has_header' 'false', 'format.delimiter' ';', 'format.null_value' 'N/A', 'format.quote_style' 'Always', 'copy.one_file' 'true')",
        ),
        (
            "COPY t TO STDOUT CSV HEADER FORCE QUOTE *",
            "COPY t TO stdout:// STORED AS CSV OPTIONS ('format.has_header' 'true', 'format.quote_style' 'Always', 'copy.one_file' 'true')",
        ),
        ("COPY t (a, \"B\") TO stdout", "COPY (SELECT a, \"B\" FROM t) TO stdout://"),
        ("COPY s.t (a) TO 'STDOUT'", "COPY (SELECT a FROM s.t) TO STDOUT"),
    ] {
        assert_eq!(copy(sql), expected, "{sql}");
    }
    for (sql, message) in [
        ("COPY t TO f", "syntax error: expected the file to copy to as a quoted string, or STDOUT, found \"f\""),
        ("COPY t", "syntax error: expected TO and the file to copy to, found the end of the text"),
        ("COPY t TO 'f' TO 'g'", "syntax error: TO is specified more than once"),
        ("COPY t TO 'f' SIDEWAYS", "syntax error: expected an option of COPY, found \"SIDEWAYS\""),
        ("COPY t (a + 1) TO 'f'", "syntax error: expected ), found \"+\""),
        ("COPY t TO 'f' (FORCE_QUOTE (a))", "syntax error: expected * after FORCE_QUOTE, found \"(\""),
        ("COPY t TO 'f' (FORMAT csv) STORED AS csv", "syntax error: the file format is specified more than once"),
    ] {
        assert_eq!(fail(sql).to_string(), message, "{sql}");
    }
    // What is wrong with a column is told where it stands.
    let Statement::DataFusion(statement) = read("COPY t (nope) TO 'f'") else { panic!() };
    let DFStatement::CopyTo(copy) = *statement else { panic!() };
    let datafusion::sql::parser::CopyToSource::Query(query) = copy.source else { panic!() };
    assert_eq!(ast::Spanned::span(query.as_ref()).start.column, 6);
}

#[test]
fn renaming() {
    let Statement::AlterTableRename(rename) = read("ALTER TABLE IF EXISTS s.t RENAME TO \"U\"") else { panic!() };
    assert_eq!(
        (rename.table.to_string().as_str(), rename.new_name.to_string().as_str(), rename.if_exists),
        ("s.t", "\"U\"", true)
    );
    let Statement::AlterTableRename(rename) = read("ALTER VIEW v RENAME TO w") else { panic!() };
    assert_eq!(rename.relation, Relation::View);
    let Statement::AlterTableSetSchema(moved) = read("ALTER TABLE t SET SCHEMA s") else { panic!() };
    assert_eq!((moved.table.to_string().as_str(), moved.schema.to_string().as_str()), ("t", "s"));
    assert!(matches!(read("ALTER TABLE t ADD COLUMN a INT"), Statement::DataFusion(_)));
    assert_eq!(
        fail("ALTER TABLE t RENAME TO").to_string(),
        "syntax error: expected identifier, found the end of the text"
    );
}

#[test]
fn views_keep_their_text() {
    let view = |sql: &str| match read(sql) {
        Statement::CreateView(view) => *view,
        other => panic!("{sql}: {other:?}"),
    };
    let CreateView { name, columns, query_text, or_replace, if_not_exists, .. } =
        view("CREATE OR REPLACE VIEW s.v (a, b) AS\n  SELECT 1 AS x, -- one\n  'é;' AS y ;");
    assert_eq!(query_text, "SELECT 1 AS x, -- one\n  'é;' AS y");
    assert_eq!((name.to_string().as_str(), columns.len(), or_replace, if_not_exists), ("s.v", 2, true, false));
    assert_eq!(
        view("CREATE VIEW IF NOT EXISTS v AS WITH a AS (SELECT 1) SELECT * FROM a").query_text,
        "WITH a AS (SELECT 1) SELECT * FROM a"
    );
    let materialized = view("CREATE MATERIALIZED VIEW v AS SELECT 1");
    assert!(materialized.materialized && materialized.query_text == "SELECT 1");
}

#[test]
fn functions_and_show() {
    assert!(matches!(read("CREATE FUNCTION f(x INT) RETURNS INT RETURN x * 2"), Statement::CreateFunction(_)));
    assert!(matches!(read("DROP FUNCTION f"), Statement::DropFunction(_)));
    let Statement::ShowCreate(show) = read("SHOW CREATE VIEW v") else { panic!() };
    assert_eq!(show.relation, Relation::View);
    assert!(matches!(read("SHOW CREATE TABLE t"), Statement::ShowCreate(_)));
}

#[test]
fn errors_say_where_and_what_was_meant() {
    for (sql, message, at, hint) in [
        (
            "SELEC 1",
            "syntax error: expected an SQL statement, found \"SELEC\"",
            "SELEC",
            Some("did you mean SELECT instead of \"SELEC\"?"),
        ),
        (
            "SELECT * FORM t",
            "syntax error: expected the end of the statement, found \"FORM\"",
            "FORM",
            Some("did you mean FROM instead of \"FORM\"?"),
        ),
        (
            "SELECT é\nFORM ö",
            "syntax error: expected the end of the statement, found \"ö\"",
            "ö",
            Some("did you mean FROM instead of \"FORM\"?"),
        ),
        ("SELECT 'é', (1", "syntax error: expected ), found the end of the text", "", None),
        ("SELECT 'abc", "syntax error: unterminated string literal", "'abc", None),
        ("SELECT 1 FROM ", "syntax error: expected identifier, found the end of the text", " ", None),
        ("EXPLAIN EXPLAIN SELECT 1", "EXPLAIN of EXPLAIN is not supported", "EXPLAIN SELECT", None),
        (
            "CREATE TABLE c (LIKE a INCLUDING ALL)",
            "syntax error: expected ',' or ')' after column definition, found \"INCLUDING\"",
            "INCLUDING",
            Some(keyword::TABLE_LIKE),
        ),
    ] {
        let error = fail(sql);
        assert_eq!(error.to_string(), message, "{sql}");
        assert_eq!(error.hint(), hint, "{sql}");
        if !at.is_empty() {
            let position = error.position().expect(sql);
            assert!(sql[position..].starts_with(at), "{sql}: {position}");
        }
    }
}

/// Shapes that grow with `n`, each on a thread with the small stack of a worker.
#[test]
fn deep_texts_are_errors_not_crashes() {
    type Shape = fn(usize) -> String;
    let shapes: Vec<(&str, Shape)> = vec![
        ("parentheses", |n| format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n))),
        ("open parentheses", |n| format!("SELECT {}", "(".repeat(n))),
        ("not", |n| format!("SELECT {}true", "NOT ".repeat(n))),
        ("minus", |n| format!("SELECT {}1", "- ".repeat(n))),
        ("case", |n| format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(n), " END".repeat(n))),
        ("case else", |n| format!("SELECT {}1{}", "CASE WHEN true THEN 1 ELSE ".repeat(n), " END".repeat(n))),
        ("plus", |n| format!("SELECT 1{}", "+1".repeat(n))),
        ("and", |n| format!("SELECT true{}", " AND true".repeat(n))),
        ("or", |n| format!("SELECT true{}", " OR 1 = 1 AND true".repeat(n))),
        ("case chain", |n| format!("SELECT 1{}", " + CASE WHEN true THEN 1 END".repeat(n))),
        ("cast", |n| format!("SELECT 1{}", "::INT".repeat(n))),
        ("is null", |n| format!("SELECT 1{}", " IS NULL".repeat(n))),
        ("distinct from", |n| format!("SELECT 1{}", " IS DISTINCT FROM 1".repeat(n))),
        ("concat", |n| format!("SELECT 'a'{}", " || 'a'".repeat(n))),
        ("union", |n| format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(n))),
        ("subquery", |n| format!("{}SELECT 1{}", "SELECT * FROM (".repeat(n), ") AS x".repeat(n))),
        ("in subquery", |n| format!("{}SELECT 1{}", "SELECT 1 WHERE 1 IN (".repeat(n), ")".repeat(n))),
        ("nested join", |n| format!("SELECT * FROM {}t{}", "(".repeat(n), ")".repeat(n))),
        ("nested query", |n| format!("{}SELECT 1{}", "(".repeat(n), ")".repeat(n))),
        ("function", |n| format!("SELECT {}1{}", "abs(".repeat(n), ")".repeat(n))),
        ("array", |n| format!("SELECT {}1{}", "[".repeat(n), "]".repeat(n))),
        ("struct", |n| format!("SELECT {}1{}", "{'a': ".repeat(n), "}".repeat(n))),
        ("array type", |n| format!("SELECT CAST(1 AS {}INT{})", "ARRAY<".repeat(n), ">".repeat(n))),
        ("array suffix", |n| format!("SELECT CAST(1 AS INT{})", "[]".repeat(n))),
        ("struct type", |n| format!("CREATE TABLE x (a {}INT{})", "STRUCT<a ".repeat(n), ">".repeat(n))),
        ("subscript", |n| format!("SELECT a{} FROM t", "[1]".repeat(n))),
        ("field", |n| format!("SELECT a{} FROM t", ".b".repeat(n))),
        ("arrow", |n| format!("SELECT a{} FROM t", " -> 'b'".repeat(n))),
        ("interval", |n| format!("SELECT {}'1 day'", "INTERVAL ".repeat(n))),
        ("explain", |n| format!("{}SELECT 1", "EXPLAIN ".repeat(n))),
        ("explain analyze", |n| format!("{}SELECT 1", "EXPLAIN ANALYZE ".repeat(n))),
        ("prepare", |n| format!("{}SELECT 1", "PREPARE p AS ".repeat(n))),
        ("with", |n| format!("{}SELECT 1{}", "WITH x AS (".repeat(n), ") SELECT * FROM x".repeat(n))),
        ("join", |n| format!("SELECT * FROM t{}", " JOIN t ON true".repeat(n))),
        ("nested right join", |n| format!("SELECT * FROM t{}{}", " JOIN (t".repeat(n), ")".repeat(n))),
        ("join on chain", |n| format!("SELECT * FROM t {} {}", "JOIN t ".repeat(n), "ON true ".repeat(n))),
        ("at time zone", |n| format!("SELECT now(){}", " AT TIME ZONE 'UTC'".repeat(n))),
        ("collate", |n| format!("SELECT 'a'{}", " COLLATE x".repeat(n))),
        ("exists", |n| format!("{}SELECT 1{}", "SELECT EXISTS (".repeat(n), ")".repeat(n))),
        ("between", |n| format!("SELECT 1{}", " BETWEEN 1 AND 1".repeat(n))),
        ("begin", |n| format!("{}SELECT 1", "BEGIN ".repeat(n))),
        ("create schema", |n| format!("CREATE TABLE a AS {}", "TABLE ".repeat(n))),
        ("not exists", |n| format!("SELECT {}true", "NOT EXISTS ".repeat(n))),
        ("pivot", |n| format!("SELECT * FROM t{}", " PIVOT (sum(a) FOR b IN (1))".repeat(n))),
        ("lambda", |n| format!("SELECT f({}1)", "x -> ".repeat(n))),
        ("values", |n| format!("VALUES {}1{}", "(".repeat(n), ")".repeat(n))),
        ("map", |n| format!("SELECT {}1{}", "MAP {1: ".repeat(n), "}".repeat(n))),
        ("pipe", |n| format!("FROM t{}", " |> WHERE true".repeat(n))),
        ("trim", |n| format!("SELECT {}'a'{}", "trim(".repeat(n), ")".repeat(n))),
        ("semicolons", |n| format!("SELECT 1{}", ";".repeat(n))),
    ];
    let dialects = [
        Dialect::PostgreSQL,
        Dialect::DuckDB,
        Dialect::Snowflake,
        Dialect::BigQuery,
        Dialect::ClickHouse,
        Dialect::MySQL,
    ];
    let sizes = dialects
        .into_iter()
        .flat_map(|dialect| [(dialect, 999), (dialect, 2000)])
        .chain([(Dialect::Generic, 999), (Dialect::Generic, 100_000)]);
    for (dialect, n) in sizes {
        for (name, shape) in &shapes {
            let sql = shape(n);
            let options = ParseOptions { dialect, ..ParseOptions::default() };
            let thread = std::thread::Builder::new()
                .name(format!("{name} {n} {dialect:?}"))
                .stack_size(2 * 1024 * 1024)
                .spawn(move || {
                    if let Ok(Some(statement)) = parse(&sql, &options) {
                        crate::sql::refuse_ignored(&statement, &sql).ok();
                        crate::sql::append_only(&statement, &sql).ok();
                    }
                });
            assert!(thread.expect("a thread").join().is_ok(), "{name} {n} {dialect:?}");
        }
    }
    // What is deep but bearable is read.
    for sql in [
        format!("SELECT 1{}", "+1".repeat(900)),
        format!("SELECT {}1{}", "(".repeat(20), ")".repeat(20)),
        format!("SELECT a IN (1{})", ",1".repeat(100_000)),
    ] {
        read(&sql);
    }
    for (sql, what) in [
        (format!("SELECT * FROM t{}", " JOIN t ON true".repeat(201)), "more than 200 joins in one query"),
        (format!("SELECT * FROM t{} WHERE true", ", t".repeat(201)), "more than 200 joins in one query"),
        (format!("SELECT * FROM t{}", " JOIN t".repeat(101)), "more than 100 joins before their ON"),
        (format!("SELECT 1{}", " EXCEPT SELECT 1".repeat(201)), "more than 1000 set operations in one query"),
        (
            format!("WITH x AS (SELECT 1){} SELECT 1", ", x AS (SELECT 1)".repeat(501)),
            "more than 500 queries in one WITH clause",
        ),
    ] {
        assert_eq!(fail(&sql).to_string(), format!("statement is too complex: {what}"));
    }
    for sql in [
        format!("SELECT * FROM t{}", " JOIN t ON true".repeat(200)),
        format!("SELECT * FROM t{}", " CROSS JOIN t".repeat(200)),
        format!("SELECT x{} FROM t", ", x".repeat(10_000)),
        format!("SELECT x IS DISTINCT FROM y{} FROM t", ", x".repeat(10_000)),
        format!("SELECT x FROM t ORDER BY x{}", ", x".repeat(10_000)),
    ] {
        read(&sql);
    }
    let error = fail(&format!("SELECT a FROM t WHERE a = 0{}", " OR a = 1".repeat(1000)));
    assert_eq!(error.to_string(), "statement is too complex: more than 1000 operators in one chain");
    assert!(error.position().is_some() && error.hint().is_some());
    for nested in [
        format!("SELECT {}1", "(".repeat(500)),
        format!("SELECT {}true", "NOT ".repeat(60)),
        format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(60), " END".repeat(60)),
    ] {
        assert_eq!(fail(&nested).to_string(), "statement is too complex: more than 50 levels of nesting", "{nested}");
    }
}

#[test]
fn ten_megabytes_of_sql() {
    let rows = "(1, 'some text', 2.5),".repeat(10 * 1024 * 1024 / 22);
    let sql = format!("INSERT INTO t VALUES {}", rows.trim_end_matches(','));
    read(&sql);
    read(&format!("SELECT '{}'", "x".repeat(10 * 1024 * 1024)));
    let error = fail(&format!("SELECT {} FROM", "x, ".repeat(3 * 1024 * 1024)));
    assert!(error.position().is_some());
}

#[test]
fn ctes_that_stand_for_millions_of_tables() {
    let doubled = |n: usize, last: &str| {
        let ctes: Vec<String> =
            (1..=n).map(|n| format!("c{n} AS (SELECT * FROM c{} x, c{} y)", n - 1, n - 1)).collect();
        format!("WITH c0 AS (SELECT 1), {} {last}", ctes.join(", "))
    };
    for sql in [
        doubled(30, "SELECT * FROM c30"),
        format!("EXPLAIN {}", doubled(30, "SELECT * FROM c30")),
        format!("SELECT * FROM ({}) z", doubled(30, "SELECT * FROM c30")),
        format!("CREATE VIEW v AS {}", doubled(30, "SELECT * FROM \"c30\"")),
    ] {
        let error = fail(&sql).to_string();
        assert!(error.starts_with("statement is too complex: more than 10000 tables"), "{error}");
    }
    read(&doubled(8, "SELECT * FROM c8"));
    // Each of them once.
    let chain: Vec<String> = (1..=400).map(|n| format!("c{n} AS (SELECT * FROM c{})", n - 1)).collect();
    read(&format!("WITH c0 AS (SELECT 1), {} SELECT * FROM c400", chain.join(", ")));
}
