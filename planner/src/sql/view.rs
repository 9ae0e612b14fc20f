//! `CREATE VIEW`, materialized or not, with the text of its query.

use sqlparser::ast::{self, CreateTableOptions};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use super::parse::{Text, keyword_of};
use super::position::offset_of_token;
use super::statement::CreateView;

/// Whether there is nothing about a view that we would forget. All others stay DataFusion's, which refuses some of
/// them, and `refuse` the rest.
pub(super) fn is_plain(create: &ast::CreateView) -> bool {
    let ast::CreateView {
        or_alter,
        or_replace: _,
        materialized: _,
        secure,
        name: _,
        name_before_not_exists: _,
        columns,
        query: _,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        if_not_exists: _,
        temporary: _,
        copy_grants,
        to,
        params,
    } = create;
    !or_alter
        && !secure
        && columns.iter().all(|column| column.data_type.is_none() && column.options.is_none())
        && *options == CreateTableOptions::None
        && cluster_by.is_empty()
        && comment.is_none()
        && !with_no_schema_binding
        && !copy_grants
        && to.is_none()
        && params.is_none()
}

/// A plain view.
pub(super) fn create_view(text: &Text<'_>, create: ast::CreateView) -> CreateView {
    let query_text = query_text(text).unwrap_or_else(|| create.query.to_string());
    CreateView {
        name: create.name,
        columns: create.columns.into_iter().map(|column| column.name).collect(),
        query: create.query,
        query_text,
        or_replace: create.or_replace,
        if_not_exists: create.if_not_exists,
        temporary: create.temporary,
        materialized: false,
        with_data: true,
    }
}

/// What follows the first `AS` outside of parentheses, up to the last token.
pub(super) fn query_text(text: &Text<'_>) -> Option<String> {
    let mut depth = 0_usize;
    let mut words = text.words();
    words.find(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && keyword_of(&token.token) == Keyword::AS
    })?;
    let start = offset_of_token(text.sql, words.next()?)?;
    let range = super::split_statements(&text.sql[start..]).into_iter().next()?;
    Some(text.sql[start..][range].to_owned())
}
