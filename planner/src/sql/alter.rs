//! `ALTER TABLE|VIEW|MATERIALIZED VIEW|DERIVED TABLE [IF EXISTS] name RENAME TO name | SET SCHEMA schema |
//! OWNER TO user`, and
//! `ALTER DERIVED TABLE [IF EXISTS] name SET PINNED`.

use datafusion::common::DataFusionError;
use datafusion::sql::parser::DFParser;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use super::access::{self, AccessStatement, Owned, SetOwner};
use super::derived;
use super::named::{is_word, relation_at};
use super::parse::Text;
use super::statement::{AlterTableRename, AlterTableSetSchema, PinDerived, Relation, Statement};
use crate::Result;

/// Reads the alterations that are ours; `None` for all others, which sqlparser knows and `refuse` names.
pub(super) fn alter(text: &Text<'_>) -> Result<Option<Statement>> {
    let Some((relation, first)) = relation_at(text, 1) else { return Ok(None) };
    let name_at = if text.keyword(first) == Keyword::IF { first + 2 } else { first };
    let n_periods = text.words().skip(name_at + 1).step_by(2).take_while(|token| token.token == Token::Period).count();
    let verb_at = name_at + 1 + 2 * n_periods;
    match (text.keyword(verb_at), text.keyword(verb_at + 1)) {
        (Keyword::RENAME | Keyword::OWNER, Keyword::TO) | (Keyword::SET, Keyword::SCHEMA) => {
            text.read(|parser| alteration(parser, relation, first)).map(Some)
        }
        // Whatever it is, sqlparser knows no such table.
        _ if relation == Relation::DerivedTable => text.read(|parser| alteration(parser, relation, first)).map(Some),
        _ => Ok(None),
    }
}

fn alteration(parser: &mut DFParser<'_>, relation: Relation, first: usize) -> Result<Statement, DataFusionError> {
    let parser = &mut parser.parser;
    // ALTER, and what.
    (0..first).for_each(|_| _ = parser.next_token());
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let table = parser.parse_object_name(false)?;
    if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        let schema = parser.parse_object_name(false)?;
        return Ok(Statement::AlterTableSetSchema(AlterTableSetSchema { relation, table, schema, if_exists }));
    }
    if derived::is_word(parser, 0, "owner") {
        let owner = access::owner(parser)?;
        let of = Owned::Relation(relation, table);
        return Ok(Statement::Access(AccessStatement::SetOwner(SetOwner { of, owner, if_exists })));
    }
    let is_pinned = is_word(&parser.peek_nth_token(1).token, "pinned");
    if relation == Relation::DerivedTable && is_pinned && parser.parse_keyword(Keyword::SET) {
        parser.next_token(); // PINNED
        return Ok(Statement::PinDerived(PinDerived { name: table, if_exists }));
    }
    parser.expect_keyword(Keyword::RENAME)?;
    parser.expect_keyword(Keyword::TO)?;
    let new_name = parser.parse_object_name(false)?;
    Ok(Statement::AlterTableRename(AlterTableRename { relation, table, new_name, if_exists }))
}
