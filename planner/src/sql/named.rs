//! Statements about programs that are kept by name.
//!
//! ```text
//!   CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] name [(columns)] AS query [WITH [NO] DATA]
//!   REFRESH MATERIALIZED VIEW [CONCURRENTLY] name
//!   CREATE [OR REPLACE] DERIVED TABLE [IF NOT EXISTS] name [(columns)] AS query [WITH [NO] DATA]
//!   DROP DERIVED TABLE [IF EXISTS] name, .. [CASCADE | RESTRICT]
//! ```

use datafusion::sql::parser::{DFParser, Statement as DFStatement};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::IsOptional;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::parse::{Text, keyword_of};
use super::statement::{CreateDerived, Drop, Relation, ShowCreate, Statement};
use super::view;
use crate::Result;

/// Whether a token is this word, which is no keyword of sqlparser's.
pub(super) fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// `CREATE MATERIALIZED VIEW` and `CREATE DERIVED TABLE`; `None` for all else that begins with `CREATE`.
pub(super) fn create(text: &Text<'_>) -> Result<Option<Statement>> {
    let at = if text.keyword(1) == Keyword::OR { 3 } else { 1 };
    let is_derived = text.words().nth(at).is_some_and(|token| is_word(&token.token, "derived"));
    match (text.keyword(at), text.keyword(at + 1)) {
        (Keyword::MATERIALIZED, Keyword::VIEW) => create_view(text).map(Some),
        (_, Keyword::TABLE) if is_derived => create_derived(text).map(Some),
        _ => Ok(None),
    }
}

fn create_view(text: &Text<'_>) -> Result<Statement> {
    let (n_tokens, with_data) = with_data(text);
    let create = text.first(n_tokens).read(|parser| {
        let or_replace = begin(parser);
        Ok(parser.parser.parse_create_view(false, or_replace, false, None)?)
    })?;
    if !view::is_plain(&create) {
        // Says which clause is not offered, as for any other view.
        let create = ast::Statement::CreateView(ast::CreateView { materialized: false, ..create });
        return Ok(Statement::DataFusion(Box::new(DFStatement::Statement(Box::new(create)))));
    }
    let mut created = view::create_view(text, create);
    created.materialized = true;
    created.with_data = with_data;
    created.query_text = without_data(&created.query_text).to_owned();
    Ok(Statement::CreateView(Box::new(created)))
}

fn create_derived(text: &Text<'_>) -> Result<Statement> {
    let (n_tokens, with_data) = with_data(text);
    let mut created = text.first(n_tokens).read(|parser| {
        let or_replace = begin(parser);
        let parser = &mut parser.parser;
        parser.next_token(); // DERIVED
        parser.expect_keyword(Keyword::TABLE)?;
        let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
        let name = parser.parse_object_name(false)?;
        let columns = parser.parse_parenthesized_column_list(IsOptional::Optional, false)?;
        parser.expect_keyword(Keyword::AS)?;
        let query = parser.parse_query()?;
        let query_text = String::new();
        Ok(CreateDerived { name, columns, query, query_text, or_replace, if_not_exists, with_data })
    })?;
    let query_text = view::query_text(text).unwrap_or_else(|| created.query.to_string());
    created.query_text = without_data(&query_text).to_owned();
    Ok(Statement::CreateDerived(Box::new(created)))
}

/// `CREATE [OR REPLACE]`.
fn begin(parser: &mut DFParser<'_>) -> bool {
    parser.parser.next_token();
    parser.parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE])
}

/// How many tokens stand before a `WITH [NO] DATA` at the end, and whether rows are wanted. Cut off before the query is read: after a
/// `GROUP BY`, `WITH` would begin something else.
fn with_data(text: &Text<'_>) -> (usize, bool) {
    let is_mute = |token: &Token| matches!(token, Token::Whitespace(_) | Token::SemiColon | Token::EOF);
    let spoken = text.tokens.iter().enumerate().filter(|(_, token)| !is_mute(&token.token));
    let mut from_end = spoken.rev().map(|(at, token)| (at, keyword_of(&token.token)));
    let all = (text.tokens.len(), true);
    match (from_end.next(), from_end.next(), from_end.next()) {
        (Some((_, Keyword::DATA)), Some((at, Keyword::WITH)), _) => (at, true),
        (Some((_, Keyword::DATA)), Some((_, Keyword::NO)), Some((at, Keyword::WITH))) => (at, false),
        _ => all,
    }
}

/// The text of a query without the `WITH [NO] DATA` behind it.
fn without_data(query: &str) -> &str {
    let mut ends = query.len();
    let mut last = |wanted: &str| {
        let rest = query[..ends].trim_end();
        let start = rest.len().saturating_sub(wanted.len());
        let is_there = rest.get(start..).is_some_and(|word| word.eq_ignore_ascii_case(wanted))
            && rest[..start].ends_with(|before: char| before.is_whitespace() || before == ')');
        if is_there {
            ends = start;
        }
        is_there
    };
    if last("data") {
        last("no");
        if last("with") {
            return query[..ends].trim_end();
        }
    }
    query
}

/// `REFRESH MATERIALIZED VIEW`. `CONCURRENTLY` is what happens anyway.
pub(super) fn refresh(text: &Text<'_>) -> Result<Statement> {
    text.read(|parser| {
        let parser = &mut parser.parser;
        parser.next_token(); // REFRESH
        parser.expect_keyword(Keyword::MATERIALIZED)?;
        parser.expect_keyword(Keyword::VIEW)?;
        let _ = parser.parse_keyword(Keyword::CONCURRENTLY);
        Ok(Statement::Refresh(parser.parse_object_name(false)?))
    })
}

/// Whether a text is `DROP DERIVED TABLE`.
pub(super) fn is_drop_derived(text: &Text<'_>) -> bool {
    let is_derived = |token: &TokenWithSpan| is_word(&token.token, "derived");
    text.words().nth(1).is_some_and(is_derived) && text.keyword(2) == Keyword::TABLE
}

/// `DROP DERIVED TABLE`.
pub(super) fn drop_derived(text: &Text<'_>) -> Result<Statement> {
    text.read(|parser| {
        let parser = &mut parser.parser;
        parser.next_token(); // DROP
        parser.next_token(); // DERIVED
        parser.next_token(); // TABLE
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
        let cascade = parser.parse_keyword(Keyword::CASCADE);
        let _ = !cascade && parser.parse_keyword(Keyword::RESTRICT);
        Ok(Statement::Drop(Drop { relation: Relation::DerivedTable, names, if_exists, cascade }))
    })
}

/// `DROP TABLE`, `DROP VIEW`, `DROP MATERIALIZED VIEW`; anything else is given back.
pub(super) fn drop(statement: ast::Statement) -> Statement {
    let ast::Statement::Drop { object_type, if_exists, names, cascade, temporary: false, .. } = &statement else {
        return Statement::DataFusion(Box::new(DFStatement::Statement(Box::new(statement))));
    };
    let relation = match object_type {
        ast::ObjectType::Table => Relation::Table,
        ast::ObjectType::View => Relation::View,
        ast::ObjectType::MaterializedView => Relation::MaterializedView,
        _ => return Statement::DataFusion(Box::new(DFStatement::Statement(Box::new(statement)))),
    };
    Statement::Drop(Drop { relation, names: names.clone(), if_exists: *if_exists, cascade: *cascade })
}

/// The relation that the words from number `at` on name, and where its name begins.
pub(super) fn relation_at(text: &Text<'_>, at: usize) -> Option<(Relation, usize)> {
    let first = text.words().nth(at)?;
    match (keyword_of(&first.token), text.keyword(at + 1)) {
        (Keyword::TABLE, _) => Some((Relation::Table, at + 1)),
        (Keyword::VIEW, _) => Some((Relation::View, at + 1)),
        (Keyword::MATERIALIZED, Keyword::VIEW) => Some((Relation::MaterializedView, at + 2)),
        (_, Keyword::TABLE) if is_word(&first.token, "derived") => Some((Relation::DerivedTable, at + 2)),
        _ => None,
    }
}

/// `SHOW CREATE TABLE|VIEW|MATERIALIZED VIEW|DERIVED TABLE name`; `None` for all else that is shown.
pub(super) fn show_create(text: &Text<'_>) -> Result<Option<Statement>> {
    let Some((relation, name_at)) = relation_at(text, 2).filter(|_| text.keyword(1) == Keyword::CREATE) else {
        return Ok(None);
    };
    let name = text.read(|parser| {
        (0..name_at).for_each(|_| _ = parser.parser.next_token());
        Ok(parser.parser.parse_object_name(false)?)
    })?;
    Ok(Some(Statement::ShowCreate(ShowCreate { relation, name })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{ParseOptions, parse};

    fn read(sql: &str) -> Statement {
        parse(sql, &ParseOptions::default()).unwrap_or_else(|error| panic!("{sql}: {error}")).expect("a statement")
    }

    #[test]
    fn materialized_views_keep_the_text_of_their_query() {
        for (sql, query, with_data) in [
            ("CREATE MATERIALIZED VIEW v AS SELECT a FROM t", "SELECT a FROM t", true),
            ("CREATE MATERIALIZED VIEW v AS SELECT a FROM t WITH NO DATA;", "SELECT a FROM t", false),
            ("CREATE MATERIALIZED VIEW v AS SELECT a FROM t\n  with\tdata ;", "SELECT a FROM t", true),
            ("CREATE MATERIALIZED VIEW v AS (SELECT ' with data')WITH DATA", "(SELECT ' with data')", true),
            (
                "CREATE OR REPLACE MATERIALIZED VIEW v (x) AS WITH c AS (SELECT 1) SELECT * FROM c",
                "WITH c AS (SELECT 1) SELECT * FROM c",
                true,
            ),
        ] {
            let Statement::CreateView(create) = read(sql) else { panic!("{sql}") };
            assert!(create.materialized && create.query_text == query && create.with_data == with_data, "{create:?}");
        }
        let Statement::CreateView(create) = read("CREATE VIEW v AS SELECT data FROM t") else { panic!("a view") };
        assert!(!create.materialized && create.query_text == "SELECT data FROM t");
    }

    #[test]
    fn derived_tables() {
        let sql = "create derived table if not exists s.d (x, y) as select a, b from t where b in (1, 2) with no data";
        let Statement::CreateDerived(create) = read(sql) else { panic!("a derived table") };
        assert_eq!(create.name.to_string(), "s.d");
        assert_eq!(create.columns.len(), 2);
        assert_eq!(create.query_text, "select a, b from t where b in (1, 2)");
        assert!(create.if_not_exists && !create.or_replace && !create.with_data);
        for sql in
            ["CREATE DERIVED TABLE d", "CREATE DERIVED TABLE d AS SELECT 1 WITH", "CREATE DERIVED TABLE d (a INT)"]
        {
            assert!(parse(sql, &ParseOptions::default()).is_err(), "{sql}");
        }
    }

    #[test]
    fn drops_and_refreshes() {
        for (sql, relation, n_names, cascade) in [
            ("DROP TABLE t, u CASCADE", Relation::Table, 2, true),
            ("DROP VIEW IF EXISTS v RESTRICT", Relation::View, 1, false),
            ("DROP MATERIALIZED VIEW v", Relation::MaterializedView, 1, false),
            ("DROP DERIVED TABLE a, b RESTRICT;", Relation::DerivedTable, 2, false),
        ] {
            let Statement::Drop(drop) = read(sql) else { panic!("{sql}") };
            assert_eq!((drop.relation, drop.names.len(), drop.cascade), (relation, n_names, cascade), "{sql}");
        }
        assert!(matches!(read("REFRESH MATERIALIZED VIEW CONCURRENTLY s.v"), Statement::Refresh(_)));
        assert!(parse("REFRESH VIEW v", &ParseOptions::default()).is_err());
        assert!(matches!(read("DROP SCHEMA s"), Statement::DataFusion(_)));
    }
}
