//! Who asks, and what he may do.
//!
//! ```text
//!   password    hashes, and telling whether one fits
//!   statement   CREATE USER, GRANT and the like
//!   owner       things change hands
//!   token       what services log in with
//!   settings    which settings are whose to change
//!   streams     a table as somebody may use it
//!   plan        what a plan reads, before anything of it runs
//! ```
//!
//! Keeps true   rights are looked at when a statement is planned, each time and whatever it will read from the cache: a table
//!              that may not be read is not scanned, and what is not scanned is not looked up. The one way around planning, the
//!              answer to the same text as before, is the user's own and of the same catalog version, which every change of
//!              rights raises. A view reads with the rights of who made it. What belongs to nobody, and files by
//!              their location, are for administrators.

mod owner;
mod password;
mod plan;
mod settings;
mod statement;
mod streams;
mod token;

use std::sync::Arc;

use nectarine_catalog::{Access, Privilege, TableDef, TableKind};
use nectarine_planner::sql::Statement;

pub(crate) use self::password::{NO_PASSWORD, fits, hashed, random_password};
pub(crate) use self::plan::{check_again, check_plan, each_table};
pub(crate) use self::settings::check_set;
pub(crate) use self::statement::{FIRST_USER, run};
pub(crate) use self::streams::StreamsFor;
pub(crate) use self::token::{PREFIX as TOKEN_PREFIX, digest as token_digest, schema as token_schema};

use crate::{EngineError, ErrorKind, Result};

/// Whom a session acts for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Who {
    /// Whoever has the home itself: the shell on it, and servers that ask for no password. May do everything.
    Owner,
    /// A user, by name.
    User(Arc<str>),
}

/// What somebody may do, as of one moment.
#[derive(Clone, Debug)]
pub(crate) struct Rights {
    who: Who,
    access: Arc<Access>,
}

impl Rights {
    pub(crate) fn new(who: Who, access: Arc<Access>) -> Self {
        Self { who, access }
    }

    /// Everything.
    pub(crate) fn everything() -> Self {
        Self { who: Who::Owner, access: Arc::default() }
    }

    /// Fails for a user who is gone, or can no longer log in.
    pub(crate) fn check_user(&self) -> Result<()> {
        match &self.who {
            Who::Owner => Ok(()),
            Who::User(name) => match self.access.roles.get(name.as_ref()).is_some_and(|role| role.password.is_some()) {
                true => Ok(()),
                false => Err(EngineError::new(ErrorKind::Denied, format!("user \"{name}\" does not exist"))),
            },
        }
    }

    /// The user; none for whoever has the home.
    pub(crate) fn user(&self) -> Option<&str> {
        match &self.who {
            Who::Owner => None,
            Who::User(name) => Some(name),
        }
    }

    /// Whether everything is allowed.
    pub(crate) fn is_admin(&self) -> bool {
        self.user().is_none_or(|user| self.access.is_admin(user))
    }

    /// Whether something may be done with a table.
    pub(crate) fn may(&self, privilege: Privilege, table: &TableDef) -> bool {
        self.user().is_none_or(|user| self.access.may(user, privilege, table))
    }

    /// Whether anything may be done with a table. Views are only read.
    pub(crate) fn sees(&self, table: &TableDef) -> bool {
        self.may(Privilege::Select, table) || (table.kind.as_view().is_none() && self.may(Privilege::Insert, table))
    }

    /// Whether there is anything for him in a schema.
    pub(crate) fn sees_schema(&self, schema: &str, mut tables: impl Iterator<Item = Arc<TableDef>>) -> bool {
        self.is_admin()
            || self.user().is_some_and(|user| self.access.may_create(user, schema))
            || tables.any(|table| table.name.schema == schema && self.sees(&table))
    }

    /// What there is to be allowed.
    pub(crate) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Whether he may know where a table's files are, and all that was said when it was made.
    pub(crate) fn sees_inside(&self, table: &TableDef) -> bool {
        self.is_admin() || (self.check_owns(table).is_ok() && !matches!(table.kind, TableKind::External(_)))
    }

    /// The rights that a view reads with.
    pub(crate) fn of_owner(&self, table: &TableDef) -> Self {
        let who = match &table.owner {
            Some(owner) => Who::User(Arc::from(owner.as_str())),
            None => Who::Owner,
        };
        Self { who, access: Arc::clone(&self.access) }
    }

    /// Fails unless something may be done with a table.
    pub(crate) fn check(&self, privilege: Privilege, table: &TableDef) -> Result<()> {
        match self.may(privilege, table) {
            true => Ok(()),
            false => Err(self.denied_table(table).with_hint(format!(
                "GRANT {} ON {} TO {} allows it",
                privilege.word(),
                table.name,
                self.user().unwrap_or_default()
            ))),
        }
    }

    /// Fails unless a table can be seen.
    pub(crate) fn check_sees(&self, table: &TableDef) -> Result<()> {
        if self.sees(table) { Ok(()) } else { self.check(Privilege::Select, table) }
    }

    /// Fails unless a table may be changed or dropped.
    pub(crate) fn check_owns(&self, table: &TableDef) -> Result<()> {
        match self.user().is_none_or(|user| self.access.owns(user, table)) {
            true => Ok(()),
            false => Err(self.denied_table(table).with_detail("only its owner, and administrators, may change it")),
        }
    }

    /// Fails unless a schema is his.
    pub(crate) fn check_owns_schema(&self, schema: &str) -> Result<()> {
        match self.user().is_none_or(|user| self.access.owns_schema(user, schema)) {
            true => Ok(()),
            false => Err(EngineError::new(ErrorKind::Denied, format!("permission denied for schema \"{schema}\""))
                .with_detail("only its owner, and administrators, may change it")),
        }
    }

    /// Fails unless something of his, in a schema if that is given, may become another's.
    pub(crate) fn check_gives_to(&self, owner: &str, schema: Option<&str>) -> Result<()> {
        let Some(user) = self.user().filter(|_| !self.is_admin()) else { return Ok(()) };
        let denied = |detail: String| {
            let message = format!("permission denied to make \"{owner}\" the owner");
            Err(EngineError::new(ErrorKind::Denied, message).with_detail(detail))
        };
        if !self.access.roles_of(user).contains(owner) {
            return denied("one who is no administrator gives only to roles that he is in".to_string());
        }
        match schema.is_none_or(|schema| self.access.may_create(owner, schema)) {
            true => Ok(()),
            false => denied(format!("it may not make anything in schema \"{}\"", schema.unwrap_or_default())),
        }
    }

    /// Fails unless tables may be made in a schema.
    pub(crate) fn check_create(&self, schema: &str) -> Result<()> {
        match self.user().is_none_or(|user| self.access.may_create(user, schema)) {
            true => Ok(()),
            false => Err(EngineError::new(ErrorKind::Denied, format!("permission denied for schema \"{schema}\""))
                .with_hint(format!(
                    "GRANT CREATE ON SCHEMA {schema} TO {} allows it",
                    self.user().unwrap_or_default()
                ))),
        }
    }

    /// Fails unless everything is allowed.
    pub(crate) fn check_admin(&self, attempted: &str) -> Result<()> {
        match self.is_admin() {
            true => Ok(()),
            false => Err(EngineError::new(ErrorKind::Denied, format!("permission denied to {attempted}"))
                .with_detail("that is for administrators")),
        }
    }

    fn denied_table(&self, table: &TableDef) -> EngineError {
        let message = format!("permission denied for {} \"{}\"", table.kind.word(), table.name.name);
        EngineError::new(ErrorKind::Denied, message)
    }
}

/// Fails for statements that are for administrators, whatever they are about.
pub(crate) fn check_statement(rights: &Rights, statement: &Statement) -> Result<()> {
    let attempted = match statement {
        Statement::CopyFrom(_) => "read files of the server",
        Statement::CreateFunction(_) | Statement::DropFunction(_) => "change functions",
        Statement::ExplainReuse(_) | Statement::ExplainProvenance(_) => "look at cached results",
        Statement::ExplainStages(_) => "look at stages",
        Statement::Purge(_) | Statement::Verify(_) | Statement::Pin(_) | Statement::Unpin(_) => "manage cached results",
        // These look at what they are about.
        Statement::DataFusion(_)
        | Statement::CreateView(_)
        | Statement::CreateDerived(_)
        | Statement::Refresh(_)
        | Statement::PinDerived(_)
        | Statement::Drop(_)
        | Statement::AlterTableRename(_)
        | Statement::AlterTableSetSchema(_)
        | Statement::ShowCreate(_)
        | Statement::Access(_)
        | Statement::Report(_)
        | Statement::Job(_) => return Ok(()),
    };
    rights.check_admin(attempted)
}
