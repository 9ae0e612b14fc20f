//! Statements about users, roles and rights.
//!
//! ```text
//!   CREATE USER [IF NOT EXISTS] name [WITH] PASSWORD 'text' [ADMIN]
//!   CREATE ROLE [IF NOT EXISTS] name [ADMIN]
//!   ALTER USER name [WITH] [PASSWORD 'text'] [ADMIN | NOADMIN]
//!   DROP USER | ROLE [IF EXISTS] name
//!   GRANT SELECT, INSERT, CREATE | ALL [PRIVILEGES] ON [TABLE] name, .. | SCHEMA name, .. TO name, ..
//!   GRANT role, .. TO name, ..
//!   REVOKE .. FROM name, ..
//! ```
//!
//! Read here and not by sqlparser, which takes much more than there is, and would have it ignored.

use datafusion::common::DataFusionError;
use datafusion::sql::parser::DFParser;
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::derived::{expect_word, is_word};
use super::parse::Text;
use crate::Result;

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccessStatement {
    /// `CREATE USER`, `CREATE ROLE`.
    Create(CreateRole),
    /// `ALTER USER`.
    Alter(AlterRole),
    /// `DROP USER`, `DROP ROLE`.
    Drop(DropRole),
    /// `GRANT`, or `REVOKE` unless `is_given`.
    Rights {
        /// Which.
        rights: Rights,
        /// Whose.
        names: Vec<Ident>,
        /// Or taken away.
        is_given: bool,
    },
}

/// `CREATE USER`, `CREATE ROLE`
#[derive(Clone, PartialEq, Eq)]
pub struct CreateRole {
    /// Its name.
    pub name: Ident,
    /// Of users.
    pub password: Option<String>,
    /// Whether everything is allowed.
    pub is_admin: bool,
    /// Keeps one that is there.
    pub if_not_exists: bool,
}

/// `ALTER USER`
#[derive(Clone, PartialEq, Eq)]
pub struct AlterRole {
    /// Its name.
    pub name: Ident,
    /// A new one.
    pub password: Option<String>,
    /// Whether everything is allowed from now on.
    pub is_admin: Option<bool>,
}

// Whoever prints a statement must not tell its password.
impl std::fmt::Debug for CreateRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateRole")
            .field("name", &self.name.value)
            .field("is_admin", &self.is_admin)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for AlterRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AlterRole")
            .field("name", &self.name.value)
            .field("is_admin", &self.is_admin)
            .finish_non_exhaustive()
    }
}

/// `DROP USER`, `DROP ROLE`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DropRole {
    /// Its name.
    pub name: Ident,
    /// No error if there is none.
    pub if_exists: bool,
}

/// What is given or taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rights {
    /// All that roles have.
    Roles(Vec<Ident>),
    /// Words such as `SELECT`, in upper case; none for all of them.
    OnTables(Vec<String>, Vec<ObjectName>),
    /// The same for all tables of schemas.
    OnSchemas(Vec<String>, Vec<Ident>),
}

/// Whether a text is one of them.
pub(super) fn is_access(text: &Text<'_>) -> bool {
    let is_made = ["create", "alter", "drop"].iter().any(|verb| text.is_word(0, verb));
    let is_of_someone = ["user", "role"].iter().any(|noun| text.is_word(1, noun));
    (is_made && is_of_someone) || text.is_word(0, "grant") || text.is_word(0, "revoke")
}

pub(super) fn access(text: &Text<'_>) -> Result<AccessStatement> {
    text.read(statement)
}

fn statement(parser: &mut DFParser<'_>) -> Result<AccessStatement, DataFusionError> {
    let parser = &mut parser.parser;
    let is_given = is_word(parser, 0, "grant");
    if is_given || is_word(parser, 0, "revoke") {
        parser.next_token();
        return Ok(rights(parser, is_given)?);
    }
    let is_created = is_word(parser, 0, "create");
    let is_altered = is_word(parser, 0, "alter");
    let is_user = is_word(parser, 1, "user");
    parser.next_token();
    parser.next_token();
    if is_created {
        let if_not_exists = take(parser, &["if", "not", "exists"]);
        let name = parser.parse_identifier()?;
        let (password, is_admin) = attributes(parser)?;
        if is_user && password.is_none() {
            let found = parser.peek_token();
            return Ok(parser.expected("PASSWORD 'text'", found)?);
        }
        let password = password.filter(|_| is_user);
        return Ok(AccessStatement::Create(CreateRole {
            name,
            password,
            is_admin: is_admin.unwrap_or(false),
            if_not_exists,
        }));
    }
    if is_altered {
        let name = parser.parse_identifier()?;
        let (password, is_admin) = attributes(parser)?;
        if password.is_none() && is_admin.is_none() {
            let found = parser.peek_token();
            return Ok(parser.expected("PASSWORD 'text', ADMIN or NOADMIN", found)?);
        }
        return Ok(AccessStatement::Alter(AlterRole { name, password, is_admin }));
    }
    let if_exists = take(parser, &["if", "exists"]);
    Ok(AccessStatement::Drop(DropRole { name: parser.parse_identifier()?, if_exists }))
}

/// `[WITH] [PASSWORD 'text'] [ADMIN | NOADMIN]`
fn attributes(parser: &mut Parser<'_>) -> Result<(Option<String>, Option<bool>), ParserError> {
    take(parser, &["with"]);
    let mut password = None;
    if take(parser, &["password"]) {
        // In single quotes only: that is what is left out where statements are shown.
        let token = parser.next_token();
        match token.token {
            Token::SingleQuotedString(text) => password = Some(text),
            _ => return parser.expected("a text in single quotes", token),
        }
    }
    let is_admin = match (take(parser, &["admin"]), take(parser, &["noadmin"])) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    Ok((password, is_admin))
}

fn rights(parser: &mut Parser<'_>, is_given: bool) -> Result<AccessStatement, ParserError> {
    let end = if is_given { "to" } else { "from" };
    let words = parser.parse_comma_separated(Parser::parse_identifier)?;
    take(parser, &["privileges"]);
    let rights = match take(parser, &["on"]) {
        false => Rights::Roles(words),
        true => {
            let mut privileges: Vec<String> = words.iter().map(|word| word.value.to_ascii_uppercase()).collect();
            if privileges == ["ALL"] {
                privileges.clear();
            }
            match take(parser, &["schema"]) {
                true => Rights::OnSchemas(privileges, parser.parse_comma_separated(Parser::parse_identifier)?),
                false => {
                    take(parser, &["table"]);
                    let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
                    Rights::OnTables(privileges, names)
                }
            }
        }
    };
    expect_word(parser, end)?;
    let names = parser.parse_comma_separated(Parser::parse_identifier)?;
    Ok(AccessStatement::Rights { rights, names, is_given })
}

/// Takes these words, if they come next.
fn take(parser: &mut Parser<'_>, words: &[&str]) -> bool {
    let is_next = words.iter().enumerate().all(|(at, word)| is_word(parser, at, word));
    if is_next {
        words.iter().for_each(|_| _ = parser.next_token());
    }
    is_next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{ParseOptions, Statement, parse};

    fn read(sql: &str) -> std::result::Result<AccessStatement, String> {
        match parse(sql, &ParseOptions::default()) {
            Ok(Some(Statement::Access(statement))) => Ok(statement),
            Ok(other) => Err(format!("{other:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn users_and_roles() {
        let Ok(AccessStatement::Create(user)) = read("CREATE USER if not exists bob WITH PASSWORD 'it''s' ADMIN;")
        else {
            panic!("no user")
        };
        assert_eq!((user.name.value.as_str(), user.password.as_deref()), ("bob", Some("it's")));
        assert!(user.is_admin && user.if_not_exists);
        assert!(!format!("{user:?}").contains("it's"), "a password is told");
        assert!(matches!(read("create role r"), Ok(AccessStatement::Create(role)) if role.password.is_none()));
        assert!(
            matches!(read("ALTER USER bob NOADMIN"), Ok(AccessStatement::Alter(role)) if role.is_admin == Some(false))
        );
        assert!(matches!(read("DROP USER IF EXISTS bob"), Ok(AccessStatement::Drop(role)) if role.if_exists));
        for sql in [
            "CREATE USER bob",
            "ALTER USER bob",
            "CREATE USER bob PASSWORD x",
            "DROP ROLE a, b",
            "CREATE USER bob PASSWORD 'x' SUPERUSER",
        ] {
            assert!(read(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn rights_are_given_and_taken() {
        let given = read("GRANT select, INSERT ON TABLE s.t, u TO bob, eve");
        let Ok(AccessStatement::Rights { rights: Rights::OnTables(words, tables), names, is_given: true }) = given
        else {
            panic!("{given:?}")
        };
        assert_eq!((words, tables.len(), names.len()), (vec!["SELECT".to_owned(), "INSERT".to_owned()], 2, 2));
        let all = read("GRANT ALL PRIVILEGES ON t TO bob");
        assert!(
            matches!(&all, Ok(AccessStatement::Rights { rights: Rights::OnTables(words, _), .. }) if words.is_empty())
        );
        let taken = read("REVOKE CREATE ON SCHEMA public FROM bob");
        assert!(matches!(&taken, Ok(AccessStatement::Rights { rights: Rights::OnSchemas(..), is_given: false, .. })));
        let role = read("GRANT readers TO bob");
        assert!(matches!(&role, Ok(AccessStatement::Rights { rights: Rights::Roles(_), .. })), "{role:?}");
        for sql in
            ["GRANT SELECT ON t FROM bob", "REVOKE SELECT ON t TO bob", "GRANT SELECT ON t TO bob WITH GRANT OPTION"]
        {
            assert!(read(sql).is_err(), "{sql}");
        }
    }
}
