//! Statements about users, roles and rights.
//!
//! ```text
//!   CREATE USER [IF NOT EXISTS] name [WITH] [PASSWORD 'text'] [ADMIN]
//!   CREATE ROLE [IF NOT EXISTS] name [ADMIN]
//!   ALTER USER name [WITH] [PASSWORD 'text'] [ADMIN | NOADMIN]
//!   DROP USER | ROLE [IF EXISTS] name
//!   GRANT SELECT, INSERT, CREATE | ALL [PRIVILEGES] ON [TABLE] name, .. | SCHEMA name, .. TO name, ..
//!   GRANT role, .. TO name, ..
//!   REVOKE .. FROM name, ..
//!   ALTER TABLE | VIEW | MATERIALIZED VIEW | DERIVED TABLE | SCHEMA name OWNER TO name
//!   REASSIGN OWNED BY name, .. TO name
//!   CREATE TOKEN name FOR [USER] user [VALID UNTIL 'time']
//!   DROP TOKEN [IF EXISTS] name FOR [USER] user
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
use super::statement::Relation;
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
    /// `ALTER .. OWNER TO`.
    SetOwner(SetOwner),
    /// `REASSIGN OWNED`.
    Reassign {
        /// Whose all is given away.
        from: Vec<Ident>,
        /// To whom.
        to: Ident,
    },
    /// `CREATE TOKEN`.
    CreateToken {
        /// Its name.
        name: Ident,
        /// Whom it stands for.
        user: Ident,
        /// As it was written.
        valid_until: Option<String>,
    },
    /// `DROP TOKEN`.
    DropToken {
        /// Its name.
        name: Ident,
        /// Whose it is.
        user: Ident,
        /// No error if there is none.
        if_exists: bool,
    },
}

/// `ALTER .. OWNER TO`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetOwner {
    /// What is given.
    pub of: Owned,
    /// To whom.
    pub owner: Ident,
    /// No error if there is none.
    pub if_exists: bool,
}

/// What somebody owns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Owned {
    /// A table or view, and what the statement calls it.
    Relation(Relation, ObjectName),
    /// A schema.
    Schema(Ident),
}

/// `CREATE USER`, `CREATE ROLE`
#[derive(Clone, PartialEq, Eq)]
pub struct CreateRole {
    /// Its name.
    pub name: Ident,
    /// Whether it can log in.
    pub is_user: bool,
    /// Of users; those without one log in with tokens.
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
    let is_of_someone = ["user", "role", "token"].iter().any(|noun| text.is_word(1, noun));
    let is_schema = text.is_word(0, "alter") && text.is_word(1, "schema") && text.is_word(3, "owner");
    let is_given = ["grant", "revoke", "reassign"].iter().any(|verb| text.is_word(0, verb));
    (is_made && is_of_someone) || is_schema || is_given
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
    if take(parser, &["reassign"]) {
        return Ok(reassign(parser)?);
    }
    if take(parser, &["alter", "schema"]) {
        let of = Owned::Schema(parser.parse_identifier()?);
        return Ok(AccessStatement::SetOwner(SetOwner { of, owner: owner(parser)?, if_exists: false }));
    }
    let is_created = is_word(parser, 0, "create");
    let is_altered = is_word(parser, 0, "alter");
    if is_word(parser, 1, "token") && !is_altered {
        parser.next_token();
        parser.next_token();
        return Ok(token(parser, is_created)?);
    }
    let is_user = is_word(parser, 1, "user");
    parser.next_token();
    parser.next_token();
    if is_created {
        let if_not_exists = take(parser, &["if", "not", "exists"]);
        let name = parser.parse_identifier()?;
        let (password, is_admin) = attributes(parser)?;
        if !is_user && password.is_some() {
            let found = parser.peek_token();
            return Ok(parser.expected("a role without a password: users have passwords", found)?);
        }
        return Ok(AccessStatement::Create(CreateRole {
            name,
            is_user,
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

/// `OWNER TO name`
pub(super) fn owner(parser: &mut Parser<'_>) -> Result<Ident, ParserError> {
    expect_word(parser, "owner")?;
    expect_word(parser, "to")?;
    parser.parse_identifier()
}

/// `OWNED BY name, .. TO name`
fn reassign(parser: &mut Parser<'_>) -> Result<AccessStatement, ParserError> {
    expect_word(parser, "owned")?;
    expect_word(parser, "by")?;
    let from = parser.parse_comma_separated(Parser::parse_identifier)?;
    expect_word(parser, "to")?;
    Ok(AccessStatement::Reassign { from, to: parser.parse_identifier()? })
}

/// What follows `CREATE TOKEN` or `DROP TOKEN`.
fn token(parser: &mut Parser<'_>, is_created: bool) -> Result<AccessStatement, ParserError> {
    let if_exists = !is_created && take(parser, &["if", "exists"]);
    let name = parser.parse_identifier()?;
    expect_word(parser, "for")?;
    // `FOR user` may also be about a user of that name.
    let is_next_end = matches!(parser.peek_nth_token(1).token, Token::EOF | Token::SemiColon);
    if !is_next_end && !is_word(parser, 1, "valid") {
        take(parser, &["user"]);
    }
    let user = parser.parse_identifier()?;
    if !is_created {
        return Ok(AccessStatement::DropToken { name, user, if_exists });
    }
    let mut valid_until = None;
    if take(parser, &["valid"]) {
        expect_word(parser, "until")?;
        let token = parser.next_token();
        match token.token {
            Token::SingleQuotedString(text) => valid_until = Some(text),
            _ => return parser.expected("a time in single quotes", token),
        }
    }
    Ok(AccessStatement::CreateToken { name, user, valid_until })
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
        // One who logs in with tokens.
        assert!(matches!(read("CREATE USER svc"), Ok(AccessStatement::Create(u)) if u.is_user && u.password.is_none()));
        for sql in [
            "CREATE ROLE r PASSWORD 'x'",
            "ALTER USER bob",
            "CREATE USER bob PASSWORD x",
            "DROP ROLE a, b",
            "CREATE USER bob PASSWORD 'x' SUPERUSER",
        ] {
            assert!(read(sql).is_err(), "{sql}");
        }
    }

    #[test]
    fn owners_and_tokens() {
        let made = read("CREATE TOKEN ci FOR USER svc VALID UNTIL '2030-01-01';");
        let Ok(AccessStatement::CreateToken { name, user, valid_until }) = made else { panic!("{made:?}") };
        assert_eq!((name.value.as_str(), user.value.as_str()), ("ci", "svc"));
        assert_eq!(valid_until.as_deref(), Some("2030-01-01"));
        let made = read("create token ci for svc");
        assert!(matches!(&made, Ok(AccessStatement::CreateToken { valid_until: None, .. })), "{made:?}");
        let made = read("CREATE TOKEN ci FOR user");
        assert!(matches!(&made, Ok(AccessStatement::CreateToken { user, .. }) if user.value == "user"), "{made:?}");
        let gone = read("DROP TOKEN IF EXISTS ci FOR svc");
        assert!(matches!(&gone, Ok(AccessStatement::DropToken { if_exists: true, .. })), "{gone:?}");
        for (sql, is_table) in [
            ("ALTER TABLE t OWNER TO bob", true),
            ("ALTER VIEW IF EXISTS s.v OWNER TO bob", true),
            ("ALTER MATERIALIZED VIEW v OWNER TO bob", true),
            ("ALTER DERIVED TABLE d OWNER TO bob", true),
            ("ALTER SCHEMA s OWNER TO bob", false),
        ] {
            let Ok(AccessStatement::SetOwner(set)) = read(sql) else { panic!("{sql}: {:?}", read(sql)) };
            assert_eq!((matches!(set.of, Owned::Relation(..)), set.owner.value.as_str()), (is_table, "bob"), "{sql}");
        }
        let given = read("REASSIGN OWNED BY bob, eve TO ann");
        assert!(matches!(&given, Ok(AccessStatement::Reassign { from, .. }) if from.len() == 2), "{given:?}");
        for sql in ["CREATE TOKEN ci", "CREATE TOKEN ci FOR svc VALID UNTIL 2030", "ALTER TABLE t OWNER bob"] {
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
