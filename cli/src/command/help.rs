//! `\?` and `\h`: help that fits a screen.

use std::io::Write;

use super::{COMMANDS, nearest};
use crate::exec::Shell;
use crate::failure::{Failure, Result};

/// Statements and their syntax, in the order of a first session.
pub(crate) const STATEMENTS: &[(&str, &str)] = &[
    (
        "SELECT",
        "[WITH [RECURSIVE] name AS (query), ..]\n\
         SELECT [DISTINCT [ON (..)]] expression [AS name], ..\n\
         FROM table | 'file, glob or URL' | (query) [AS alias]\n\
         \x20 [[LEFT | RIGHT | FULL] JOIN table ON condition | USING (column, ..)]\n\
         [WHERE condition] [GROUP BY expression, .. | ALL] [HAVING condition] [QUALIFY condition]\n\
         [UNION | INTERSECT | EXCEPT [ALL] query]\n\
         [ORDER BY expression [ASC | DESC] [NULLS FIRST | LAST], ..] [LIMIT n] [OFFSET n]",
    ),
    ("VALUES", "VALUES (expression, ..), .."),
    (
        "CREATE EXTERNAL TABLE",
        "CREATE EXTERNAL TABLE [IF NOT EXISTS] name [(column type, ..)]\n\
         STORED AS PARQUET | CSV | JSON | ARROW | AVRO\n\
         [PARTITIONED BY (column, ..)]\n\
         LOCATION 'file, folder, glob or URL'\n\
         [OPTIONS (key value, ..)]",
    ),
    (
        "CREATE TABLE",
        "CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name (column type [NOT NULL] [DEFAULT expression], ..)",
    ),
    ("CREATE TABLE AS", "CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name AS query"),
    ("CREATE VIEW", "CREATE [OR REPLACE] VIEW name AS query"),
    (
        "CREATE MATERIALIZED VIEW",
        "CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] name [(column, ..)] AS query [WITH [NO] DATA]\n\
         A query whose result is kept. Reading it is always fresh, and costs what was added since.",
    ),
    ("REFRESH MATERIALIZED VIEW", "REFRESH MATERIALIZED VIEW name"),
    (
        "CREATE DERIVED TABLE",
        "CREATE [OR REPLACE] DERIVED TABLE [IF NOT EXISTS] name [(column, ..)] AS query [WITH [NO] DATA]\n\
         The query on the files of this moment. Its rows may be dropped to make room, and are then computed again.",
    ),
    ("CREATE SCHEMA", "CREATE SCHEMA [IF NOT EXISTS] name"),
    ("CREATE FUNCTION", "CREATE [OR REPLACE] FUNCTION name(argument type, ..) RETURNS type RETURN expression"),
    ("INSERT", "INSERT INTO table [(column, ..)] VALUES (expression, ..), .. | query"),
    (
        "COPY",
        "COPY table [(column, ..)] FROM 'file or URL' | STDIN [[WITH] (option, ..) | OPTIONS (key value, ..)]\n\
         COPY table [(column, ..)] | (query) TO 'file or URL' | STDOUT [[WITH] (option, ..)\n\
         \x20 | [STORED AS PARQUET | CSV | JSON | ARROW] [PARTITIONED BY (column, ..)] [OPTIONS (key value, ..)]]\n\
         Options: FORMAT csv | json | parquet | arrow, HEADER [true | false], DELIMITER ';', NULL 'text', QUOTE '\"', ESCAPE '\"',\n\
         \x20 FORCE_QUOTE *, ENCODING 'UTF8', COMPRESSION gzip | zstd | bzip2 | xz\n\
         What is not said is told by the file's name. Data of STDIN ends with a line \\. or with the input.",
    ),
    ("DROP TABLE", "DROP TABLE [IF EXISTS] name, .. [CASCADE | RESTRICT]"),
    ("DROP VIEW", "DROP VIEW [IF EXISTS] name, .. [CASCADE | RESTRICT]"),
    ("DROP MATERIALIZED VIEW", "DROP MATERIALIZED VIEW [IF EXISTS] name, .. [CASCADE | RESTRICT]"),
    ("DROP DERIVED TABLE", "DROP DERIVED TABLE [IF EXISTS] name, .. [CASCADE | RESTRICT]"),
    ("DROP SCHEMA", "DROP SCHEMA [IF EXISTS] name [CASCADE]"),
    ("DROP FUNCTION", "DROP FUNCTION [IF EXISTS] name [CASCADE | RESTRICT]"),
    ("ALTER TABLE", "ALTER TABLE [IF EXISTS] name RENAME TO new_name | SET SCHEMA schema | OWNER TO user"),
    ("ALTER VIEW", "ALTER VIEW name RENAME TO new_name | SET SCHEMA schema | OWNER TO user"),
    ("ALTER SCHEMA", "ALTER SCHEMA name OWNER TO user"),
    ("ALTER MATERIALIZED VIEW", "ALTER MATERIALIZED VIEW name RENAME TO new_name | SET SCHEMA schema | OWNER TO user"),
    (
        "ALTER DERIVED TABLE",
        "ALTER DERIVED TABLE name RENAME TO new_name | SET SCHEMA schema | SET PINNED | OWNER TO user\n\
         SET PINNED copies the rows into files of the table's own, which nothing drops.",
    ),
    ("CREATE USER", "CREATE USER [IF NOT EXISTS] name [PASSWORD 'text'] [ADMIN]"),
    ("CREATE ROLE", "CREATE ROLE [IF NOT EXISTS] name [ADMIN]"),
    ("ALTER USER", "ALTER USER name [PASSWORD 'text'] [ADMIN | NOADMIN]"),
    ("DROP USER", "DROP USER [IF EXISTS] name"),
    ("DROP ROLE", "DROP ROLE [IF EXISTS] name"),
    (
        "GRANT",
        "GRANT SELECT, INSERT, .. | ALL ON [TABLE] name, .. TO user, ..\n\
         GRANT SELECT, INSERT, CREATE, .. | ALL ON SCHEMA name, .. TO user, ..\n\
         GRANT role, .. TO user, ..",
    ),
    (
        "REVOKE",
        "REVOKE right, .. | ALL ON [TABLE] name, .. | SCHEMA name, .. FROM user, ..\nREVOKE role, .. FROM user, ..",
    ),
    ("REASSIGN OWNED", "REASSIGN OWNED BY user, .. TO user"),
    ("CREATE TOKEN", "CREATE TOKEN name FOR user [VALID UNTIL 'time']\nWhat a service logs in with. It is told once."),
    ("DROP TOKEN", "DROP TOKEN [IF EXISTS] name FOR user"),
    (
        "PIN",
        "PIN query | ENTRY 'fingerprint' | MATERIALIZED VIEW name\n\
         Its result is never evicted to make room; that of a view also when its tables grow. SELECT * FROM system.pins shows all.",
    ),
    ("UNPIN", "UNPIN query | ENTRY 'fingerprint' | MATERIALIZED VIEW name"),
    (
        "VERIFY",
        "VERIFY query | ENTRY 'fingerprint' | ALL [SAMPLE n PERCENT]\n\
         Computes every kept result anew that the query could read, and compares.",
    ),
    (
        "PURGE DERIVED",
        "PURGE DERIVED FROM table | 'table, file, folder, glob or URL'\n\
         Deletes every result that was made of it, and proves it.",
    ),
    ("DESCRIBE", "DESCRIBE table | query"),
    ("EXPLAIN", "EXPLAIN [ANALYZE] [VERBOSE] [FORMAT indent | tree | pgjson | graphviz] statement"),
    ("EXPLAIN REUSE", "EXPLAIN REUSE query\nWhat would be reused, and why not more."),
    (
        "EXPLAIN STAGES",
        "EXPLAIN STAGES query\nThe stages that it would run as on the executors of a cluster, or why it stays in this process.",
    ),
    (
        "EXPLAIN PROVENANCE",
        "EXPLAIN PROVENANCE query | name | ENTRY 'fingerprint' | ALL\nWhat the answer is made of, down to files.",
    ),
    ("PREPARE", "PREPARE name [(type, ..)] AS statement with $1, $2, .."),
    ("EXECUTE", "EXECUTE name(value, ..)"),
    ("DEALLOCATE", "DEALLOCATE name | ALL"),
    ("SET", "SET setting = value    (SELECT * FROM system.settings shows all)"),
    ("RESET", "RESET setting"),
    (
        "SHOW",
        "SHOW TABLES | VIEWS | MATERIALIZED VIEWS [FROM schema] [LIKE 'x%']\n\
         SHOW SCHEMAS | COLUMNS FROM table | FUNCTIONS | ALL | setting\n\
         SHOW CREATE TABLE table | VIEW view",
    ),
    ("USE", "USE schema\nWhere names without a schema are looked for. RESET search_path goes back."),
];

/// All backslash commands.
pub(super) fn commands(shell: &mut Shell) -> Result<()> {
    let shown = |command: &super::CommandDoc| format!("\\{} {}", command.name, command.arguments);
    let width = COMMANDS.iter().map(|command| shown(command).len()).max().unwrap_or(0);
    let mut text =
        String::from("Statements end with ';' and may have many lines. Ctrl-C cancels one, Ctrl-D leaves.\n\n");
    for command in COMMANDS {
        text.push_str(&format!("  {:width$}  {}\n", shown(command), command.doc));
    }
    page(shell, &text)
}

/// The syntax of one statement, or all there are.
pub(super) fn statements(shell: &mut Shell, wanted: &str) -> Result<()> {
    let wanted = wanted.trim().trim_end_matches(';').split_whitespace().collect::<Vec<_>>().join(" ").to_uppercase();
    if wanted.is_empty() {
        let mut text = String::from("\\h STATEMENT shows the syntax of one of these:\n\n");
        STATEMENTS.iter().for_each(|(name, _)| text.push_str(&format!("  {name}\n")));
        return page(shell, &text);
    }
    let found: Vec<_> = STATEMENTS.iter().filter(|(name, _)| wanted == "*" || name.starts_with(&wanted)).collect();
    if found.is_empty() {
        let failure = Failure::new(format!("there is no help for '{wanted}'"));
        return Err(match nearest(&wanted, STATEMENTS.iter().map(|(name, _)| *name)) {
            Some(near) => failure.with_hint(format!("did you mean '{near}'?")),
            None => failure.with_hint("\\h alone lists all statements"),
        });
    }
    let text: Vec<String> = found.iter().map(|(_, syntax)| format!("{syntax}\n")).collect();
    page(shell, &text.join("\n"))
}

fn page(shell: &mut Shell, text: &str) -> Result<()> {
    let columns = text.lines().map(str::len).max().unwrap_or(0);
    shell.output.announce(text.lines().count(), columns);
    let paged = shell.output.is_paged();
    let written = shell.output.write_all(text.as_bytes());
    match written.and(shell.output.finish()) {
        Err(error) if paged && error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What docs/sql.md shows has help: each statement of its examples, and each of its list of statements about results.
    #[test]
    fn every_statement_of_the_manual_has_help() {
        let manual = include_str!("../../../docs/sql.md");
        let (mut in_sql, mut in_text, mut in_list) = (false, false, false);
        let mut previous_ended = true;
        let mut n_checked = 0;
        for line in manual.lines() {
            if line.starts_with("```") {
                (in_sql, in_text) = (line == "```sql", line == "```text");
                continue;
            }
            in_list = if line.starts_with('#') { line == "## Statements about results" } else { in_list };
            let begins = (in_sql && previous_ended) || (in_list && in_text);
            previous_ended = line.split("--").next().is_some_and(|code| code.trim().ends_with(';')) || !in_sql;
            if !begins || line.trim().is_empty() {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().filter(|word| !["OR", "REPLACE"].contains(word)).collect();
            let statement = words.join(" ");
            let known = |(name, _): &(&str, &str)| statement.starts_with(name);
            assert!(STATEMENTS.iter().any(known), "no help for: {line}");
            n_checked += 1;
        }
        assert!(n_checked > 40, "{n_checked}");
        for name in ["EXPLAIN REUSE", "EXPLAIN PROVENANCE", "PURGE DERIVED", "VERIFY", "PIN", "UNPIN", "DROP ROLE"] {
            assert!(STATEMENTS.iter().any(|(known, _)| *known == name), "{name}");
        }
    }

    #[test]
    fn help_fits_the_window() {
        for (name, syntax) in STATEMENTS {
            assert!(syntax.lines().all(|line| line.len() <= 130), "{name}");
        }
    }
}
