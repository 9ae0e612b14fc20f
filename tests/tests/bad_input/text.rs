//! Text that is too long, too deep, not text, or no value.

use std::fmt::Write;

use nectarine_tests::db::Db;
use nectarine_tests::files::numbers;
use nectarine_tests::program::Program;

use super::{db, goes_on};

const MEGABYTES: usize = 10 << 20;

#[tokio::test]
async fn invalid_utf8_in_files() {
    let db = db().await;
    db.file("u.csv", b"a,b\n1,ok\n2,\xff\xfe\n".as_slice());
    db.file("u.json", b"{\"a\":1}\n{\"a\":\"\xff\xfe\"}\n".as_slice());
    db.file("header.csv", b"a,\xff\n1,2\n".as_slice());
    db.file("latin1.csv", b"name\ncaf\xe9\n".as_slice());
    for name in ["u.csv", "u.json", "header.csv", "latin1.csv"] {
        for sql in
            [format!("SELECT * FROM '{{dir}}/{name}'"), format!("CREATE TABLE x AS SELECT * FROM '{{dir}}/{name}'")]
        {
            let error = db.err(&sql).await;
            assert!(error.contains(&format!("{{dir}}/{name}")), "{sql}: {error}");
        }
    }
    db.script(
        r#"
        CREATE EXTERNAL TABLE u (a BIGINT, b TEXT) STORED AS CSV LOCATION '{dir}/u.csv';
        SELECT * FROM u;
        !! Data:
        !! {dir}/u.csv
        !! UTF-8
        CREATE TABLE target (a BIGINT, b TEXT);
        COPY target FROM '{dir}/u.csv';
        !! {dir}/u.csv
        SELECT count(*) FROM target;
        -> 0
        "#,
    )
    .await;
    goes_on(&db).await;
}

#[test]
fn invalid_utf8_in_statements() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::on(&folder.path().join("home"));
    program.run("CREATE TABLE kept AS SELECT 42 AS a").rows();
    let ran = program.run_stdin(b"SELECT '\xff\xfe' AS x;\nSELECT 1;\n");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    assert!(ran.error().contains("UTF-8"));
    let script = folder.path().join("s.sql");
    std::fs::write(&script, b"SELECT 1;\nSELECT '\xc3';\n").expect("a file");
    let mut command = program.command();
    command.arg("-f").arg(&script);
    let error = nectarine_tests::program::finish(command, b"").error();
    assert!(error.contains("UTF-8") && error.contains("s.sql"), "{error}");
    assert_eq!(program.run("SELECT a FROM kept").rows(), "42");
}

/// Ten megabytes of SQL are read, or refused in words.
#[tokio::test]
async fn long_statements() {
    let db = db().await;
    let text = "x".repeat(MEGABYTES);
    assert_eq!(db.ok(&format!("SELECT length('{text}')")).await, MEGABYTES.to_string());
    assert_eq!(db.ok(&format!("SELECT 1 /* {text} */")).await, "1");
    assert_eq!(db.ok(&format!("SELECT 1 -- {text}")).await, "1");
    assert_eq!(db.ok(&format!("SELECT 1{}", " ".repeat(MEGABYTES))).await, "1");
    let error = db.err(&text).await;
    assert!(error.starts_with("Sql:") && error.len() < 2000, "{}", &error[..error.len().min(2000)]);
    let error = db.err(&format!("SELECT {text} FROM kept")).await;
    assert!(error.starts_with("Sql:"), "{}", &error[..error.len().min(200)]);
    let error = db.err(&format!("SELECT * FROM {text}")).await;
    assert!(error.starts_with("Sql:"), "{}", &error[..error.len().min(200)]);
    let error = db.err(&format!("SELECT '{text}")).await;
    assert!(error.starts_with("Sql:"), "{}", &error[..error.len().min(200)]);
    // The log keeps a part of them.
    let longest = db.ok("SELECT max(length(sql)) FROM system.queries").await;
    assert!(longest.parse::<usize>().expect("a number") < 1 << 20, "{longest}");
    goes_on(&db).await;
}

#[test]
fn long_lists() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::on(&folder.path().join("home"));
    program.run("CREATE TABLE kept AS SELECT 42 AS a").rows();
    let wide = |n: usize, width: usize| {
        (0..n).fold(String::new(), |mut text, n| {
            let _ = write!(text, "{}{n:0width$}", if n == 0 { "" } else { ", " });
            text
        })
    };
    let numbers = |n: usize| wide(n, 1);
    let rows = (0..60_000).fold(String::new(), |mut text, n| {
        let _ = write!(text, "{}({n}, 'some text for row {n}')", if n == 0 { "" } else { ", " });
        text
    });
    // Every value costs the planner the same; that they are long fills the ten megabytes in bearable time.
    let list = wide(300_000, 30);
    assert!(list.len() > MEGABYTES * 9 / 10);
    for (what, sql, expected) in [
        ("IN list", format!("SELECT count(*) FROM kept WHERE a IN ({list});"), "1"),
        (
            "rows",
            format!(
                "CREATE TABLE long (a BIGINT, b TEXT); INSERT INTO long VALUES {rows}; SELECT count(*), sum(a) FROM long;"
            ),
            "60000,1799970000",
        ),
        ("columns", format!("SELECT count(*) FROM (SELECT {});", numbers(3_000)), "1"),
        ("array", format!("SELECT cardinality([{}]);", numbers(100_000)), "100000"),
    ] {
        let ran = program.run_stdin(&sql);
        match ran.status.code() {
            Some(0) => assert_eq!(ran.stdout.trim_end(), expected, "{what}"),
            _ => {
                let error = ran.error();
                assert!(error.len() < 4000, "{what}: {}", &error[..error.len().min(4000)]);
            }
        }
        assert_eq!(program.run("SELECT a FROM kept").rows(), "42", "after {what}");
    }
}

/// Each in a process of its own: an overflow of the stack would take the tests with it.
#[test]
fn deep_nesting() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::on(&folder.path().join("home"));
    program.run("CREATE TABLE kept AS SELECT 42 AS a").rows();
    let repeat =
        |n: usize, before: &str, middle: &str, after: &str| format!("{}{middle}{}", before.repeat(n), after.repeat(n));
    let deep = [
        ("parentheses", format!("SELECT {}", repeat(100_000, "(", "1", ")"))),
        ("open parentheses", format!("SELECT {}", "(".repeat(100_000))),
        ("closing parentheses", format!("SELECT {}", ")".repeat(100_000))),
        ("NOT", format!("SELECT {}true", "NOT ".repeat(50_000))),
        ("minus", format!("SELECT {}1", "- ".repeat(50_000))),
        ("plus", format!("SELECT 1{}", " + 1".repeat(100_000))),
        ("and", format!("SELECT true{}", " AND true".repeat(100_000))),
        ("or of comparisons", format!("SELECT * FROM kept WHERE a = 0{}", " OR a = 1".repeat(100_000))),
        ("concatenation", format!("SELECT 'a'{}", " || 'a'".repeat(100_000))),
        ("casts", format!("SELECT 1{}", "::INT".repeat(50_000))),
        ("subqueries", format!("SELECT * FROM {}", repeat(20_000, "(SELECT * FROM ", "kept", ")"))),
        ("scalar subqueries", format!("SELECT {}", repeat(20_000, "(SELECT ", "1", ")"))),
        ("CASE", format!("SELECT {}", repeat(20_000, "CASE WHEN true THEN ", "1", " END"))),
        ("functions", format!("SELECT {}", repeat(50_000, "abs(", "1", ")"))),
        ("arrays", format!("SELECT {}", repeat(50_000, "[", "1", "]"))),
        ("structs", format!("SELECT {}", repeat(20_000, "{'a': ", "1", "}"))),
        ("UNION ALL", format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(50_000))),
        ("JOIN", format!("SELECT * FROM kept{}", " CROSS JOIN kept".repeat(20_000))),
        ("commas", format!("SELECT * FROM kept{}", ", kept".repeat(20_000))),
        (
            "WITH",
            format!(
                "WITH {} SELECT 1",
                (0..20_000).map(|n| format!("t{n} AS (SELECT 1)")).collect::<Vec<_>>().join(", ")
            ),
        ),
        ("WITH on WITH", {
            let links: Vec<String> = (1..5_000).map(|n| format!("t{n} AS (SELECT * FROM t{})", n - 1)).collect();
            format!("WITH t0 AS (SELECT 1), {} SELECT * FROM t4999", links.join(", "))
        }),
        ("EXPLAIN", format!("{}SELECT 1", "EXPLAIN ".repeat(50_000))),
        ("types", format!("SELECT CAST(NULL AS {})", repeat(20_000, "ARRAY<", "INT", ">"))),
        ("square brackets", format!("SELECT CAST(NULL AS INT{})", "[]".repeat(50_000))),
        ("BETWEEN", format!("SELECT 1{}", " BETWEEN 0 AND 2".repeat(20_000))),
        ("INTERVAL", format!("SELECT {}'1 day'", "INTERVAL ".repeat(50_000))),
        ("periods", format!("SELECT a{} FROM kept", ".a".repeat(50_000))),
        ("subscripts", format!("SELECT [1]{}", "[1]".repeat(50_000))),
        ("comments", format!("SELECT 1 {}", repeat(50_000, "/*", "", "*/"))),
        ("view", format!("CREATE VIEW v AS SELECT {}", repeat(100_000, "(", "1", ")"))),
        ("function", format!("CREATE FUNCTION f(x INT) RETURNS INT RETURN x{}", " + 1".repeat(50_000))),
        ("default", format!("CREATE TABLE d (a INT DEFAULT 1{})", " + 1".repeat(50_000))),
        ("prepare", format!("PREPARE p AS SELECT 1{}", " + 1".repeat(50_000))),
        ("insert", format!("INSERT INTO kept VALUES (1{})", " + 1".repeat(50_000))),
        ("copy", format!("COPY (SELECT {}) TO '/nowhere/x.csv'", repeat(100_000, "(", "1", ")"))),
    ];
    let mut wrong = String::new();
    for (what, sql) in &deep {
        let ran = program.run_stdin(sql);
        let fine = match ran.status.code() {
            Some(0) => true,
            Some(1) => {
                ran.stderr.contains("error:")
                    && !ran.stderr.contains("panicked")
                    && !ran.stderr.contains("internal error")
            }
            _ => false,
        };
        if !fine {
            let end = ran.stderr.char_indices().nth(400).map_or(ran.stderr.len(), |(end, _)| end);
            let _ = writeln!(wrong, "{what}: {:?} {}", ran.status, &ran.stderr[..end]);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert_eq!(program.run("SELECT a FROM kept").rows(), "42");
}

/// As deep as people write: these are answered.
#[tokio::test]
async fn nesting_within_reason() {
    let db = db().await;
    assert_eq!(db.ok(&format!("SELECT {}1{}", "(".repeat(30), ")".repeat(30))).await, "1");
    assert_eq!(db.ok(&format!("SELECT 1{}", " + 1".repeat(500))).await, "501");
    assert_eq!(db.ok(&format!("SELECT count(*) FROM kept WHERE a = 0{}", " OR a = 39".repeat(500))).await, "1");
    assert_eq!(db.ok(&format!("SELECT count(*) FROM (SELECT 1{})", " UNION ALL SELECT 1".repeat(200))).await, "201");
    assert_eq!(
        db.ok(&format!("SELECT * FROM {}kept{} LIMIT 1", "(SELECT * FROM ".repeat(20), ")".repeat(20))).await,
        "1"
    );
    assert_eq!(db.ok(&format!("SELECT length('a'{})", " || 'a'".repeat(300))).await, "301");
}

#[tokio::test]
async fn zero_bytes() {
    let db = db().await;
    db.file("z.csv", "a,b\n1,x\0y\n");
    assert_eq!(db.ok("SELECT length(b) FROM '{dir}/z.csv'").await, "3");
    assert_eq!(db.ok("SELECT length('x\0y')").await, "3");
    db.ok("CREATE TABLE z AS SELECT 'x\0y' AS b").await;
    assert_eq!(db.ok("SELECT length(b), b = 'x\0y' FROM z WHERE b LIKE 'x%'").await, "3|true");
    for sql in [
        "SELECT \0 1",
        "\0",
        "SELECT * FROM '{dir}/a\0b.csv'",
        "COPY kept FROM '{dir}/a\0b.csv'",
        "COPY kept TO '{dir}/a\0b.csv'",
    ] {
        db.err(sql).await;
    }
    // A name with one is a name like any other, or refused.
    if db.run("CREATE TABLE \"n\0ul\" (\"c\0ol\" INT)").await.is_ok() {
        db.ok("INSERT INTO \"n\0ul\" VALUES (5)").await;
        assert_eq!(db.ok("SELECT \"c\0ol\" FROM \"n\0ul\"").await, "5");
        let db = db.clone().reopen().await;
        assert_eq!(db.ok("SELECT \"c\0ol\" FROM \"n\0ul\"").await, "5");
        db.ok("DROP TABLE \"n\0ul\"").await;
    }
}

#[tokio::test]
async fn odd_names() {
    let mut db = db().await;
    let names = [
        "we\"ird",
        "it's",
        "two words",
        "ünïcødé ☃ 日本",
        "UPPER",
        "select",
        "a.b",
        "a;b",
        "--",
        "/* */",
        "%",
        "\\",
        "*",
        "x'y\"z`",
        "\u{202e}rtl",
        " ",
        "📈",
    ];
    for name in names {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let text = name.replace('\'', "''");
        for sql in [
            format!("CREATE TABLE {quoted} ({quoted} BIGINT DEFAULT 7, other TEXT)"),
            format!("INSERT INTO {quoted} ({quoted}) VALUES (1), (2)"),
            format!("INSERT INTO {quoted} (other) VALUES ('x')"),
            format!("CREATE SCHEMA IF NOT EXISTS {quoted}"),
            format!("CREATE VIEW {quoted}.{quoted} AS SELECT {quoted} FROM public.{quoted}"),
        ] {
            db.ok(&sql).await;
        }
        assert_eq!(db.ok(&format!("SELECT sum({quoted}), count(other) FROM {quoted}")).await, "10|1", "{name}");
        assert_eq!(db.ok(&format!("SELECT sum({quoted}) FROM {quoted}.{quoted}")).await, "10", "{name}");
        let described = db.ok(&format!("SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '{text}' ORDER BY ordinal_position")).await;
        assert_eq!(described, format!("{name}\nother"));
        assert_eq!(
            db.ok(&format!(
                "SELECT extents FROM system.tables WHERE table_schema = 'public' AND table_name = '{text}'"
            ))
            .await,
            "2"
        );
        db.ok(&format!("SHOW CREATE TABLE {quoted}")).await;
        db.ok(&format!("DESCRIBE {quoted}")).await;
    }
    db = db.reopen().await;
    for name in names {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        assert_eq!(db.ok(&format!("SELECT sum({quoted}) FROM {quoted}.{quoted}")).await, "10", "{name}");
        db.ok(&format!("DROP SCHEMA {quoted} CASCADE")).await;
        db.ok(&format!("ALTER TABLE {quoted} RENAME TO \"renamed {}\"", name.replace('"', "\"\""))).await;
        db.ok(&format!("DROP TABLE \"renamed {}\"", name.replace('"', "\"\""))).await;
    }
    assert_eq!(db.ok("SELECT count(*) FROM system.tables").await, "1");
    goes_on(&db).await;
}

#[tokio::test]
async fn odd_file_names() {
    let db = db().await;
    for name in [
        "two words",
        "a#b",
        "a%20b",
        "100%",
        "a?b",
        "ünïcødé ☃",
        "[1]",
        "{x,y}",
        "a+b&c=d",
        "it's",
        "a:b",
        "~tilde",
        "back\\slash",
        "*star",
        "a;b",
        "x=1",
    ] {
        let sql = name.replace('\'', "''");
        numbers(&db.path(&format!("{name}/{name}.parquet")), 0..10);
        db.file(&format!("{name}/{name}.csv"), "a,b\n1,2\n");
        for location in [format!("{sql}/{sql}.parquet"), format!("{sql}/{sql}.csv")] {
            let outcome = db.run(&format!("SELECT count(*) FROM '{{dir}}/{location}'")).await;
            let expected = if location.ends_with("csv") { "1" } else { "10" };
            assert_eq!(outcome.as_deref(), Ok(expected), "{location}");
        }
        // A folder of that name, written to and read.
        db.ok(&format!("CREATE OR REPLACE EXTERNAL TABLE odd (n BIGINT) STORED AS PARQUET LOCATION '{{dir}}/{sql}/'"))
            .await;
        assert_eq!(db.ok("SELECT count(*), sum(n) FROM odd").await, "10|45", "{name}");
        let inserted = db.run("INSERT INTO odd VALUES (100)").await;
        assert_eq!(inserted.as_deref(), Ok("INSERT 1"), "{name}");
        assert_eq!(db.ok("SELECT count(*), sum(n) FROM odd").await, "11|145", "{name}");
        let copied = db.run(&format!("COPY kept TO '{{dir}}/{sql}/out.csv'")).await;
        assert_eq!(copied.as_deref(), Ok("COPY 3"), "{name}");
        assert!(db.folder().join(name).join("out.csv").is_file(), "{name}");
        assert_eq!(db.ok(&format!("SELECT sum(a) FROM '{{dir}}/{sql}/out.csv'")).await, "42", "{name}");
    }
    goes_on(&db).await;
}

/// The home itself may be anywhere.
#[tokio::test]
async fn homes_with_odd_names() {
    let parent = tempfile::tempdir().expect("a temporary folder");
    for name in ["two words", "a#b", "a%20b", "100%", "a?b", "ünïcødé ☃", "[1]", "it's", "x=1", "a:b"] {
        let folder = tempfile::Builder::new().prefix(name).tempdir_in(parent.path()).expect("a folder");
        let mut db =
            Db::open(std::sync::Arc::new(folder), &[]).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        db.ok("CREATE TABLE t AS SELECT 1 AS a").await;
        db.ok("INSERT INTO t VALUES (41)").await;
        assert_eq!(db.ok("SELECT sum(a) FROM t").await, "42", "{name}");
        db = db.reopen().await;
        assert_eq!(db.ok("SELECT sum(a) FROM t").await, "42", "{name}");
        assert_eq!(
            db.ok("SELECT max(s) FROM (SELECT md5(CAST(value AS TEXT)) AS s FROM generate_series(1, 1000) ORDER BY s)")
                .await
                .len(),
            32
        );
    }
}

#[tokio::test]
async fn unknown_settings_and_bad_values() {
    let db = db().await;
    db.script(
        r#"
        SET nectarine.memory_limt = '1GB';
        !! unknown setting "nectarine.memory_limt"
        !! did you mean "nectarine.memory_limit"?
        SET nectarine.memory_limit = '1GB';
        !! nectarine.memory_limit is read when the home is opened
        SET memory_limit = '1GB';
        !! did you mean "nectarine.memory_limit"?
        SET batch_size = 5;
        !! did you mean "datafusion.execution.batch_size"?
        SET datafusion.execution.batch_siz = 5;
        !! did you mean "datafusion.execution.batch_size"?
        SET datafusion.execution.batch_size = 'many';
        !! batch_size
        SET nectarine.statement_timeout = -1;
        !! statement_timeout
        SET nectarine.query_log_keep = 2;
        !! nectarine.query_log_keep is read when the home is opened
        SET nectarine.verify_extents = 'perhaps';
        !! verify_extents
        SET nectarine.extent_bytes_max = 'lots';
        !! extent_bytes_max
        SET no.such.thing = 1;
        !! unknown setting "no.such.thing"
        RESET nectarine.memory_limt;
        !! did you mean "nectarine.memory_limit"?
        SHOW nectarine.memory_limt;
        !! unknown setting "nectarine.memory_limt"
        !! did you mean "nectarine.memory_limit"?
        SHOW memory_limit;
        !! unknown setting "memory_limit"
        !! did you mean "nectarine.memory_limit"?
        SHOW datafusion.execution.batch_siz;
        !! did you mean "datafusion.execution.batch_size"?
        SHOW datafusion.execution.batch_size;
        -> datafusion.execution.batch_size|8192
        SELECT value FROM system.settings WHERE name = 'datafusion.execution.batch_size';
        -> 8192
        "#,
    )
    .await;
    goes_on(&db).await;
    let folder = std::sync::Arc::new(tempfile::tempdir().expect("a temporary folder"));
    for (name, value) in [
        ("memory_limit", "lots"),
        ("memory_limit", "-5"),
        ("memory_limit", "0%"),
        ("memory_limit", "0"),
        ("extent_bytes_max", "0"),
        ("datafusion.runtime.memory_limit", "4G"),
        ("spill_limit", "101%"),
        ("nope", "1"),
        ("query_log_keep", "x"),
    ] {
        let error = match Db::open(std::sync::Arc::clone(&folder), &[(name, value)]).await {
            Ok(_) => panic!("{name} = {value} was taken"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(name), "{name} = {value}: {error}");
    }
}

#[tokio::test]
async fn bad_options() {
    let db = db().await;
    db.file("x.csv", "a,b\n1,2\n");
    db.file("p/1.csv", "a,b\n1,2\n");
    for (options, words) in [
        ("'format.has_header' 'maybe'", "has_header"),
        ("'format.delimiter' 'ab'", "delimiter"),
        ("'format.no_such' 'x'", "no_such"),
        ("'no_such' 'x'", "no_such"),
        ("'format.compression' 'lzma'", "lzma"),
        ("'fingerprint' 'guess'", "guess"),
        ("'format.schema_infer_max_rec' 'x'", "schema_infer_max_rec"),
    ] {
        let sql = format!("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{{dir}}/x.csv' OPTIONS ({options})");
        let error = db.err(&sql).await;
        assert!(error.contains(words), "{options}: {error}");
    }
    db.script(
        r#"
        SELECT * FROM x;
        !! table "x" does not exist
        CREATE EXTERNAL TABLE x STORED AS CSV PARTITIONED BY (p) LOCATION '{dir}/p/';
        !! "p=.."
        CREATE EXTERNAL TABLE x (a INT, b INT) STORED AS CSV PARTITIONED BY (c) LOCATION '{dir}/p/';
        !! "c"
        COPY kept FROM '{dir}/x.csv' OPTIONS ('format.has_header' 'maybe');
        !! has_header
        COPY kept FROM '{dir}/x.csv' OPTIONS ('format.no_such' 'maybe');
        !! no_such
        COPY kept TO '{dir}/out.csv' OPTIONS ('format.delimiter' 'ab');
        !! delimiter
        COPY kept TO '{dir}/out.csv' OPTIONS ('format.no_such' 'ab');
        !! no_such
        COPY kept TO '{dir}/out.xyz';
        !! {dir}/out.xyz
        CREATE TABLE bad (a NOSUCHTYPE);
        !! Unsupported:
        CREATE TABLE bad (a INT, a TEXT);
        !! "a"
        CREATE TABLE bad AS SELECT 1 AS a, 2 AS a;
        !! "a"
        CREATE FUNCTION abs(x INT) RETURNS INT RETURN 1;
        !! function "abs" is built in
        "#,
    )
    .await;
    assert!(!db.folder().join("out.csv").exists());
    goes_on(&db).await;
}
