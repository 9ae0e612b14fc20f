//! Every refused clause, and proof that DataFusion would have dropped it: without us, each of these statements gets a
//! plan.

use datafusion::config::Dialect::{
    self, BigQuery, ClickHouse, Databricks, DuckDB, Generic, Hive, MsSQL, MySQL, PostgreSQL, Redshift, Snowflake,
};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as DFStatement;

use super::*;
use crate::sql::{ParseOptions, parse};

fn read(dialect: Dialect, sql: &str) -> Statement {
    let options = ParseOptions { dialect, ..ParseOptions::default() };
    parse(sql, &options).unwrap_or_else(|error| panic!("{sql}: {error} {error:?}")).expect("a statement")
}

async fn context() -> SessionContext {
    let config = datafusion::prelude::SessionConfig::new().with_information_schema(true);
    let context = SessionContext::new_with_config(config);
    for sql in [
        "CREATE TABLE t (a BIGINT, b BIGINT, s VARCHAR) AS VALUES (1, 2, 'x'), (3, 4, 'y')",
        "CREATE TABLE u (a BIGINT, c BIGINT) AS VALUES (1, 2)",
    ] {
        context.sql(sql).await.expect(sql);
    }
    context
}

/// What DataFusion makes of it without us.
async fn plan(context: &SessionContext, statement: &Statement) -> std::result::Result<String, String> {
    let statement = match statement {
        Statement::DataFusion(statement) => statement.as_ref().clone(),
        Statement::CreateFunction(create) => {
            DFStatement::Statement(Box::new(ast::Statement::CreateFunction(create.as_ref().clone())))
        }
        Statement::DropFunction(drop) => DFStatement::Statement(Box::new(ast::Statement::DropFunction(drop.clone()))),
        Statement::CreateView(create) => DFStatement::Statement(Box::new(ast::Statement::Query(create.query.clone()))),
        // Ours: DataFusion would know nothing of what depends on it.
        Statement::Drop(_) => return Ok(String::new()),
        other => panic!("not for DataFusion: {other:?}"),
    };
    context.state().statement_to_plan(statement).await.map(|plan| plan.to_string()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn refuses_what_datafusion_drops() {
    let cases: &[(Dialect, &str, &str, &str)] = &[
        // Expressions.
        (Generic, "SELECT s SIMILAR TO 'x%' FROM t", "SIMILAR TO", "SIMILAR"),
        (Generic, "SELECT s NOT SIMILAR TO s FROM t", "SIMILAR TO", "SIMILAR"),
        // Tables.
        (Generic, "SELECT * FROM t TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE", "TABLESAMPLE"),
        (PostgreSQL, "SELECT * FROM t AS x TABLESAMPLE SYSTEM (50) REPEATABLE (1)", "TABLESAMPLE", "TABLESAMPLE"),
        (Snowflake, "SELECT * FROM t SAMPLE (10)", "TABLESAMPLE", "t SAMPLE"),
        (ClickHouse, "SELECT * FROM t SAMPLE 0.1", "TABLESAMPLE", "t SAMPLE"),
        (
            Generic,
            "SELECT * FROM u JOIN (SELECT * FROM t) AS x TABLESAMPLE (10 ROWS) ON u.a = x.a",
            "TABLESAMPLE",
            "TABLESAMPLE",
        ),
        (
            BigQuery,
            "SELECT * FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01'",
            "FOR SYSTEM_TIME AS OF",
            "FOR SYSTEM",
        ),
        (MsSQL, "SELECT * FROM t FOR SYSTEM_TIME AS OF '2020-01-01'", "FOR SYSTEM_TIME AS OF", "FOR SYSTEM"),
        (Databricks, "SELECT * FROM t VERSION AS OF 2", "VERSION AS OF", "VERSION"),
        (Databricks, "SELECT * FROM t TIMESTAMP AS OF '2020-01-01'", "TIMESTAMP AS OF", "TIMESTAMP"),
        (Snowflake, "SELECT * FROM t AT(TIMESTAMP => '2020-01-01')", "AT (..) or BEFORE (..)", "AT("),
        (Generic, "SELECT * FROM t WITH (NOLOCK)", "WITH (..) after a table", "WITH ("),
        (Generic, "SELECT * FROM generate_series(1, 3) WITH ORDINALITY", "WITH ORDINALITY", "WITH ORD"),
        (MySQL, "SELECT * FROM t PARTITION (p0)", "PARTITION (..) after a table", "PARTITION"),
        (Generic, "SELECT * FROM range.nonsense(1, 3)", "schema before a table function", "range"),
        (
            Generic,
            "SELECT * FROM t, LATERAL generate_series(stop => 3, start => 1)",
            "name before an argument of a table function",
            "generate",
        ),
        (Generic, "SELECT * FROM t AS x (a INT, b INT, s INT)", "type in a table alias", "a INT"),
        (ClickHouse, "SELECT * FROM generate_series(1, 3, SETTINGS x = 1)", "SETTINGS", "SETTINGS"),
        // Queries.
        (Generic, "SELECT * FROM t FOR UPDATE", "FOR UPDATE", "FOR UPDATE"),
        (PostgreSQL, "SELECT * FROM (SELECT * FROM t FOR SHARE) AS x", "FOR SHARE", "FOR SHARE"),
        (MsSQL, "SELECT * FROM t FOR JSON AUTO", "FOR JSON", "FOR JSON"),
        (ClickHouse, "SELECT * FROM t SETTINGS max_threads = 1", "SETTINGS", "SETTINGS"),
        (ClickHouse, "SELECT * FROM t FORMAT JSON", "FORMAT", "FORMAT"),
        (DuckDB, "SELECT a FROM t UNION ALL SELECT a FROM u ORDER BY ALL", "ORDER BY ALL", "ORDER BY ALL"),
        (
            Generic,
            "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT 2 LIMIT 1) SELECT * FROM x",
            "LIMIT in a WITH RECURSIVE query",
            "LIMIT 1",
        ),
        (
            Generic,
            "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x WHERE n < 9 LIMIT 3) SELECT * FROM x",
            "LIMIT in a WITH RECURSIVE query",
            "LIMIT 3",
        ),
        (
            BigQuery,
            "SELECT * FROM t |> AGGREGATE sum(a) AS s GROUP BY b DESC",
            "order inside of |> AGGREGATE",
            "SELECT",
        ),
        (Generic, "SELECT 1 AS a INTO x UNION ALL SELECT 2", "INTO in a part of a query", "INTO"),
        (Generic, "SELECT a INTO TEMPORARY x FROM t", "TEMPORARY in SELECT INTO", "TEMPORARY"),
        // Selects.
        (ClickHouse, "SELECT * FROM t PREWHERE a = 1", "PREWHERE", "PREWHERE"),
        (Snowflake, "SELECT a FROM t START WITH a = 1 CONNECT BY a = PRIOR b", "CONNECT BY", "CONNECT BY"),
        (Snowflake, "SELECT * ILIKE '%a%' FROM t", "* ILIKE", "* ILIKE"),
        (Redshift, "SELECT a, b EXCLUDE b FROM t", "EXCLUDE after the select list", "EXCLUDE"),
        (BigQuery, "SELECT AS STRUCT a, b FROM t", "AS STRUCT", "AS STRUCT"),
        (BigQuery, "SELECT AS VALUE a FROM t", "AS VALUE", "AS VALUE"),
        (ClickHouse, "SELECT a, count(*) FROM t GROUP BY a WITH ROLLUP", "WITH ROLLUP", "WITH ROLLUP"),
        (ClickHouse, "SELECT a, count(*) FROM t GROUP BY a WITH CUBE", "WITH CUBE", "WITH CUBE"),
        (ClickHouse, "SELECT a, count(*) FROM t GROUP BY a WITH TOTALS", "WITH TOTALS", "WITH TOTALS"),
        (Hive, "SELECT a, count(*) FROM t GROUP BY a GROUPING SETS ((a), ())", "GROUPING SETS", "GROUPING SETS"),
        (
            Generic,
            "SELECT sum(a) FROM t WINDOW w AS (PARTITION BY b) ORDER BY sum(a) OVER w",
            "OVER a named window in ORDER BY",
            "OVER w",
        ),
        (
            Generic,
            "SELECT b, row_number() OVER (ORDER BY b) AS n FROM t GROUP BY b WINDOW w AS (PARTITION BY b) QUALIFY row_number() OVER (ORDER BY b) = 1 AND sum(a) OVER w > 1",
            "OVER a named window in QUALIFY",
            "OVER w > 1",
        ),
        // Expressions.
        (
            Generic,
            "SELECT sum(a) OVER (w ORDER BY b) FROM t WINDOW w AS (PARTITION BY s)",
            "named window inside of OVER (..)",
            "w ORDER",
        ),
        (
            Generic,
            "SELECT sum(a) OVER v FROM t WINDOW w AS (PARTITION BY s), v AS (w ORDER BY b)",
            "window defined by another window",
            "v AS",
        ),
        (ClickHouse, "SELECT sum(0.5)(a) FROM t", "parameters before the arguments of a function", "sum"),
        (Snowflake, "SELECT now(SELECT a FROM t)", "query as the argument of a function", "now"),
        (Snowflake, "SELECT trim(s, 'a', 'b') FROM t", "TRIM with several lists of characters", "s, 'a'"),
        (Generic, "SELECT CAST(a AS FLOAT(53)) FROM t", "FLOAT with more than 24 bits", "FLOAT"),
        // Statements.
        (Generic, "CREATE TABLE x (a INT COLLATE \"de\")", "COLLATE on a column", "COLLATE"),
        (
            Generic,
            "CREATE TABLE x (a INT, b INT GENERATED ALWAYS AS (a + 1) STORED)",
            "GENERATED on a column",
            "GENERATED",
        ),
        (PostgreSQL, "CREATE TABLE x (a INT GENERATED ALWAYS AS IDENTITY)", "GENERATED on a column", "GENERATED"),
        (MySQL, "CREATE TABLE x (a INT AUTO_INCREMENT)", "AUTO_INCREMENT or the like on a column", "AUTO_INC"),
        (MySQL, "CREATE TABLE x (a INT ON UPDATE now())", "ON UPDATE on a column", "ON UPDATE"),
        (MySQL, "CREATE TABLE x (a INT COMMENT 'c')", "COMMENT on a column", "COMMENT"),
        (MsSQL, "CREATE TABLE x (a INT IDENTITY(1, 1))", "IDENTITY on a column", "IDENTITY"),
        (ClickHouse, "CREATE TABLE x (a INT, b INT MATERIALIZED 1)", "MATERIALIZED on a column", "MATERIALIZED"),
        (Generic, "CREATE TABLE x (a FLOAT(53))", "FLOAT with more than 24 bits", "FLOAT"),
        (
            Generic,
            "CREATE EXTERNAL TABLE x (a INT COLLATE \"de\") STORED AS CSV LOCATION 'x.csv'",
            "COLLATE on a column",
            "COLLATE",
        ),
        (MsSQL, "CREATE OR ALTER VIEW x AS SELECT 1 AS a", "OR ALTER", "OR ALTER"),
        (Snowflake, "CREATE SECURE VIEW x AS SELECT 1 AS a", "SECURE", "SECURE"),
        (MySQL, "CREATE SQL SECURITY DEFINER VIEW x AS SELECT 1 AS a", "SQL SECURITY of a view", "SQL SECURITY"),
        (ClickHouse, "CREATE VIEW x (a INT) AS SELECT 1 AS a", "type of a view's column", "x (a"),
        (Generic, "CREATE SCHEMA x AUTHORIZATION joe", "AUTHORIZATION", "AUTHORIZATION"),
        (Generic, "CREATE SCHEMA x WITH (a = 'b')", "WITH in CREATE SCHEMA", "WITH ("),
        (BigQuery, "CREATE SCHEMA x OPTIONS(a = 'b')", "OPTIONS in CREATE SCHEMA", "OPTIONS"),
        (BigQuery, "CREATE SCHEMA x DEFAULT COLLATE 'und:ci'", "DEFAULT COLLATE", "DEFAULT"),
        (Generic, "CREATE SCHEMA x CLONE y", "CLONE", "CLONE"),
        (Generic, "CREATE DATABASE x LOCATION 'y'", "option in CREATE DATABASE", "x LOC"),
        (Generic, "EXPLAIN DROP TABLE t CASCADE", "CASCADE", "CASCADE"),
        (Generic, "EXPLAIN DROP VIEW t CASCADE", "CASCADE", "CASCADE"),
        (MySQL, "DROP TEMPORARY TABLE t", "TEMPORARY in DROP", "TEMPORARY"),
        (
            PostgreSQL,
            "CREATE FUNCTION f(x INT) RETURNS INT STRICT RETURN $1 + 1",
            "STRICT or RETURNS NULL ON NULL INPUT",
            "STRICT",
        ),
        (
            PostgreSQL,
            "CREATE FUNCTION f(x INT) RETURNS INT SECURITY DEFINER RETURN $1 + 1",
            "SECURITY DEFINER",
            "SECURITY",
        ),
        (PostgreSQL, "CREATE FUNCTION f(OUT x INT) RETURNS INT RETURN 1", "OUT argument", "OUT"),
        (PostgreSQL, "PREPARE p AS DROP FUNCTION f CASCADE", "CASCADE", "CASCADE"),
        (Generic, "START TRANSACTION", "transaction of several statements", ""),
        (Generic, "COMMIT", "transaction of several statements", ""),
        (Generic, "ROLLBACK", "transaction of several statements", ""),
        // Inside of others.
        (Generic, "EXPLAIN SELECT * FROM t TABLESAMPLE (10)", "TABLESAMPLE", "TABLESAMPLE"),
        (Generic, "PREPARE p AS SELECT * FROM t TABLESAMPLE (10)", "TABLESAMPLE", "TABLESAMPLE"),
        (Generic, "COPY (SELECT * FROM t TABLESAMPLE (10)) TO 'x.csv'", "TABLESAMPLE", "TABLESAMPLE"),
        (Generic, "CREATE VIEW x AS SELECT * FROM t TABLESAMPLE (10)", "TABLESAMPLE", "TABLESAMPLE"),
        (Generic, "INSERT INTO u SELECT a, b FROM t TABLESAMPLE (10)", "TABLESAMPLE", "TABLESAMPLE"),
        (Generic, "SELECT * FROM t WHERE a IN (SELECT a FROM u TABLESAMPLE (10))", "TABLESAMPLE", "TABLESAMPLE"),
    ];
    let context = context().await;
    let mut wrong = Vec::new();
    for (dialect, sql, clause, at) in cases {
        let options = ParseOptions { dialect: *dialect, ..ParseOptions::default() };
        let statement = match parse(sql, &options) {
            Ok(statement) => statement.expect("a statement"),
            Err(error) => {
                wrong.push(format!("{sql}\n   does not parse: {error}"));
                continue;
            }
        };
        match refuse_ignored(&statement, sql) {
            Err(PlannerError::Refused { clause: found, position, .. }) => {
                if found != *clause {
                    wrong.push(format!("{sql}\n   refused for: {found}"));
                }
                if !at.is_empty() && !position.is_some_and(|position| sql[position..].starts_with(at)) {
                    wrong.push(format!("{sql}\n   refused at: {:?}", position.map(|position| &sql[position..])));
                }
            }
            other => wrong.push(format!("{sql}\n   not refused: {other:?}")),
        }
        if let Err(error) = plan(&context, &statement).await {
            wrong.push(format!("{sql}\n   DataFusion refuses it by itself: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn refuses_clauses_of_aggregates_on_scalar_functions() {
    let context = context().await;
    for (sql, clause) in [
        ("SELECT abs(DISTINCT a) FROM t", "DISTINCT on the function \"abs\""),
        ("SELECT abs(a ORDER BY b) FROM t", "ORDER BY on the function \"abs\""),
        ("SELECT ABS(a) FILTER (WHERE b > 100) FROM t", "FILTER on the function \"abs\""),
        ("SELECT abs(a) OVER (PARTITION BY b) FROM t", "OVER on the function \"abs\""),
        ("SELECT abs(a) IGNORE NULLS FROM t", "IGNORE or RESPECT NULLS on the function \"abs\""),
        ("SELECT regr_count(DISTINCT a, b) FROM t", "DISTINCT on the function \"regr_count\""),
        ("SELECT corr(DISTINCT a, b) FROM t", "DISTINCT on the function \"corr\""),
        ("SELECT abs(0) WITHIN GROUP (ORDER BY a) FROM t", "WITHIN GROUP on the function \"abs\""),
        ("CREATE VIEW v AS SELECT abs(DISTINCT a) FROM t", "DISTINCT on the function \"abs\""),
    ] {
        let statement = read(Generic, sql);
        let is_scalar = |name: &str| context.state().scalar_functions().contains_key(name);
        match refuse_on_scalar_functions(&statement, sql, is_scalar) {
            Err(PlannerError::Refused { clause: found, position, .. }) => {
                assert_eq!(found, clause, "{sql}");
                assert!(position.is_some(), "{sql}");
            }
            other => panic!("{sql}: {other:?}"),
        }
        plan(&context, &statement)
            .await
            .unwrap_or_else(|error| panic!("DataFusion refuses it by itself: {sql}: {error}"));
    }
    let sql = "SELECT abs(ALL a), sum(DISTINCT a), sum(a) FILTER (WHERE b > 1), sum(a) OVER (ORDER BY b), \
               percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t";
    let is_scalar = |name: &str| context.state().scalar_functions().contains_key(name);
    refuse_on_scalar_functions(&read(Generic, sql), sql, is_scalar).expect(sql);
}

#[tokio::test]
async fn keeps_what_works() {
    let cases: &[(Dialect, &str)] = &[
        (Generic, "SELECT * FROM t AS x (a, b, c)"),
        (Generic, "SELECT * EXCLUDE (a) FROM t"),
        (Generic, "SELECT * EXCEPT (a) FROM t"),
        (Generic, "SELECT * REPLACE (a + 1 AS a) FROM t"),
        (DuckDB, "SELECT a FROM t ORDER BY ALL"),
        (Generic, "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b DESC NULLS LAST"),
        (Generic, "SELECT a, sum(b) FROM t GROUP BY ROLLUP (a)"),
        (Generic, "SELECT a, sum(b) FROM t GROUP BY GROUPING SETS ((a), ())"),
        (Generic, "SELECT a, sum(b) FROM t GROUP BY ALL"),
        (
            Generic,
            "SELECT sum(a) OVER w, row_number() OVER (PARTITION BY b ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t WINDOW w AS (PARTITION BY s)",
        ),
        (Generic, "SELECT a FROM t WHERE a IN (SELECT row_number() OVER w FROM u WINDOW w AS (ORDER BY c))"),
        (Generic, "SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a) = 1"),
        (Generic, "SELECT first_value(a) IGNORE NULLS OVER (ORDER BY b) FROM t"),
        (Generic, "SELECT array_agg(DISTINCT a ORDER BY a) FILTER (WHERE b > 0) FROM t"),
        (Generic, "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t"),
        (PostgreSQL, "WITH x AS MATERIALIZED (SELECT * FROM t) SELECT * FROM x"),
        (Generic, "WITH x AS (SELECT a FROM t UNION ALL SELECT a FROM u LIMIT 1) SELECT * FROM x"),
        (
            Generic,
            "WITH RECURSIVE x (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x WHERE n < 5) SELECT * FROM x ORDER BY n LIMIT 3",
        ),
        (Generic, "WITH RECURSIVE x AS (SELECT a FROM t LIMIT 1) SELECT * FROM x"),
        (Generic, "SELECT * FROM t JOIN u USING (a) LEFT JOIN u AS v ON v.a = t.b"),
        (Generic, "SELECT * FROM t NATURAL JOIN u CROSS JOIN u AS v"),
        (Generic, "SELECT * FROM t, LATERAL (SELECT * FROM u WHERE u.a = t.a) AS x"),
        (Generic, "SELECT * FROM t LEFT SEMI JOIN u ON t.a = u.a"),
        (Generic, "SELECT * FROM generate_series(1, 3) AS g (x)"),
        (Generic, "SELECT * FROM unnest([1, 2, 3]) AS x (v)"),
        (Generic, "SELECT a FROM t UNION SELECT a FROM u INTERSECT SELECT c FROM u EXCEPT SELECT 1"),
        (Generic, "SELECT a AS x INTO n FROM t LIMIT 1"),
        (Generic, "FROM t SELECT a"),
        (Generic, "FROM t"),
        (
            Generic,
            "SELECT trim(BOTH 'x' FROM s), substring(s FROM 1 FOR 2), position('x' IN s), extract(year FROM now()), overlay(s PLACING 'y' FROM 1) FROM t",
        ),
        (
            Generic,
            "SELECT CAST(s AS VARCHAR(10)), CAST(a AS FLOAT), CAST(b AS FLOAT(24)), 1::DOUBLE, TRY_CAST(s AS INT) AS i FROM t",
        ),
        (
            Generic,
            "SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END, a IS DISTINCT FROM b, a BETWEEN 1 AND 2, s LIKE 'x%', s ~ 'x' FROM t",
        ),
        (MySQL, "SELECT SQL_NO_CACHE * FROM t USE INDEX (i)"),
        (Generic, "CREATE TABLE x (a INT NOT NULL DEFAULT 1, b VARCHAR(10) NULL, PRIMARY KEY (a))"),
        (Generic, "CREATE OR REPLACE TABLE x AS SELECT * FROM t"),
        (Generic, "CREATE TABLE IF NOT EXISTS x (a INT) AS VALUES (1)"),
        (Generic, "CREATE VIEW x (p, q, r) AS SELECT * FROM t"),
        (
            Generic,
            "CREATE EXTERNAL TABLE x (a INT) STORED AS CSV PARTITIONED BY (p INT) WITH ORDER (a ASC) LOCATION 'x/' OPTIONS ('format.has_header' 'true')",
        ),
        (Generic, "CREATE SCHEMA IF NOT EXISTS x"),
        (Generic, "CREATE DATABASE IF NOT EXISTS x"),
        (Generic, "DROP TABLE IF EXISTS t"),
        (Generic, "DROP TABLE t RESTRICT"),
        (Generic, "DROP SCHEMA x CASCADE"),
        (Generic, "DROP TABLE t CASCADE"),
        (Generic, "DROP VIEW t CASCADE"),
        (PostgreSQL, "DROP FUNCTION f CASCADE"),
        (Generic, "CREATE FUNCTION f(BIGINT) RETURNS BIGINT IMMUTABLE LANGUAGE SQL RETURN $1 * 2"),
        (
            PostgreSQL,
            "CREATE OR REPLACE FUNCTION f(x BIGINT) RETURNS BIGINT PARALLEL SAFE CALLED ON NULL INPUT RETURN $x * 2",
        ),
        (Generic, "DROP FUNCTION IF EXISTS f"),
        (PostgreSQL, "DROP FUNCTION f, g"),
        (Generic, "INSERT INTO u (c, a) VALUES (1, 2)"),
        (Generic, "COPY t TO 'x.parquet' STORED AS PARQUET OPTIONS (compression 'zstd(3)')"),
        (Generic, "COPY (SELECT a FROM t) TO 'x/' STORED AS CSV PARTITIONED BY (a)"),
        (Generic, "EXPLAIN ANALYZE VERBOSE SELECT * FROM t"),
        (Generic, "EXPLAIN FORMAT TREE SELECT * FROM t"),
        (PostgreSQL, "EXPLAIN (ANALYZE, FORMAT INDENT) SELECT * FROM t"),
        (Generic, "PREPARE p (BIGINT) AS SELECT * FROM t WHERE a = $1"),
        (Generic, "EXECUTE p(1)"),
        (Generic, "DEALLOCATE p"),
        (Generic, "SET datafusion.execution.batch_size = 100"),
        (Generic, "RESET datafusion.execution.batch_size"),
        (Generic, "SHOW ALL"),
        (Generic, "SHOW TABLES"),
        (Generic, "SHOW COLUMNS FROM t"),
        (Generic, "SHOW FUNCTIONS LIKE 'abs%'"),
        (Generic, "DESCRIBE t"),
        (Generic, "VALUES (1, 'a'), (2, 'b')"),
        (BigQuery, "SELECT * FROM t |> WHERE a > 0 |> AGGREGATE sum(a) AS s GROUP BY b |> ORDER BY s"),
    ];
    let context = context().await;
    let mut wrong = Vec::new();
    for (dialect, sql) in cases {
        let options = ParseOptions { dialect: *dialect, ..ParseOptions::default() };
        let statement = match parse(sql, &options) {
            Ok(statement) => statement.expect("a statement"),
            Err(error) => {
                wrong.push(format!("{sql}\n   does not parse: {error}"));
                continue;
            }
        };
        if let Err(error) = refuse_ignored(&statement, sql) {
            wrong.push(format!("{sql}\n   {error}"));
        }
        if let Err(error) = plan(&context, &statement).await {
            wrong.push(format!("{sql}\n   DataFusion: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// DataFusion has no plan for these either, but no words for it.
#[test]
fn says_what_to_do_instead() {
    for (dialect, sql, clause, at) in [
        (MsSQL, "SELECT TOP 5 a FROM t", "TOP", "TOP"),
        (Hive, "SELECT a FROM t SORT BY a", "SORT BY", "SORT"),
        (Hive, "SELECT a FROM t CLUSTER BY a", "CLUSTER BY", "CLUSTER"),
        (Hive, "SELECT a FROM t LATERAL VIEW explode(x) y", "LATERAL VIEW", "LATERAL"),
        (Snowflake, "SELECT * RENAME (a AS x) FROM t", "* RENAME", "*"),
        (Generic, "SELECT a FROM t FETCH FIRST 2 ROWS WITH TIES", "FETCH .. WITH TIES", "FETCH"),
        (Generic, "SELECT a FROM t FETCH FIRST 2 PERCENT ROWS ONLY", "FETCH .. PERCENT", "FETCH"),
        (Generic, "SELECT a FROM t LIMIT 3 FETCH FIRST 2 ROWS ONLY", "FETCH beside LIMIT", "FETCH"),
        (Generic, "SELECT * FROM t PIVOT (sum(b) FOR a IN (1, 2))", "PIVOT", "PIVOT"),
        (Generic, "SELECT * FROM t UNPIVOT (x FOR y IN (a, b))", "UNPIVOT", "UNPIVOT"),
        (Generic, "CREATE TABLE x (LIKE t)", "LIKE in CREATE TABLE", "LIKE"),
        (Generic, "CREATE TABLE IF NOT EXISTS x LIKE t", "LIKE in CREATE TABLE", "LIKE"),
        (PostgreSQL, "CREATE TABLE x (LIKE t INCLUDING DEFAULTS)", "LIKE in CREATE TABLE", "LIKE"),
    ] {
        let Err(PlannerError::Refused { clause: told, position, .. }) = refuse_ignored(&read(dialect, sql), sql) else {
            panic!("{sql}: not refused");
        };
        assert_eq!(told, clause, "{sql}");
        assert!(position.is_some_and(|position| sql[position..].starts_with(at)), "{sql}: {position:?}");
    }
}
