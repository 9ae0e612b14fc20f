//! `ALTER TABLE|VIEW [IF EXISTS] name RENAME TO name | SET SCHEMA schema`.

use datafusion::common::DataFusionError;
use datafusion::sql::parser::DFParser;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use super::parse::Text;
use super::statement::{AlterTableRename, AlterTableSetSchema, Relation, Statement};
use crate::Result;

/// Reads the alterations that are ours; `None` for all others, which sqlparser knows and `refuse` names.
pub(super) fn alter(text: &Text<'_>) -> Result<Option<Statement>> {
    let relation = match text.keyword(1) {
        Keyword::TABLE => Relation::Table,
        Keyword::VIEW => Relation::View,
        _ => return Ok(None),
    };
    let name_at = if text.keyword(2) == Keyword::IF { 4 } else { 2 };
    let n_periods = text.words().skip(name_at + 1).step_by(2).take_while(|token| token.token == Token::Period).count();
    let verb_at = name_at + 1 + 2 * n_periods;
    match (text.keyword(verb_at), text.keyword(verb_at + 1)) {
        (Keyword::RENAME, Keyword::TO) | (Keyword::SET, Keyword::SCHEMA) => {
            text.read(|parser| alteration(parser, relation)).map(Some)
        }
        _ => Ok(None),
    }
}

fn alteration(parser: &mut DFParser<'_>, relation: Relation) -> Result<Statement, DataFusionError> {
    let parser = &mut parser.parser;
    parser.next_token(); // ALTER
    parser.next_token(); // TABLE or VIEW
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let table = parser.parse_object_name(false)?;
    if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        let schema = parser.parse_object_name(false)?;
        return Ok(Statement::AlterTableSetSchema(AlterTableSetSchema { relation, table, schema, if_exists }));
    }
    parser.expect_keyword(Keyword::RENAME)?;
    parser.expect_keyword(Keyword::TO)?;
    let new_name = parser.parse_object_name(false)?;
    Ok(Statement::AlterTableRename(AlterTableRename { relation, table, new_name, if_exists }))
}
