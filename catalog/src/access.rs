//! [`Access`]: users, roles, and what they may do.
//!
//! ```text
//!   role      a name that rights can be given to; one with a password is a user
//!   member    has all rights of the roles that it is in, and of those that they are in
//!   grant     a right of a role on a table, or on all tables of a schema, those of tomorrow included
//!   owner     of a table or a schema: may change it and drop it, and give others rights on it
//!   token     what a service logs in with in place of a password
//! ```
//!
//! Keeps true   what is not granted is denied; a role that is not there has no rights. Rights on a table go with the table: another
//!              one of the same name has none. Nobody is in a role that is in him. A role that owns something stays.
//!
//! The rules are here, once, for all stores: a store loads, applies a change, and saves.

use std::collections::{BTreeMap, BTreeSet};

use crate::store::{no_such_schema, no_such_table};
use crate::{CatalogError, Result, TableDef, TableId};

/// A user, or a role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Role {
    /// As it is compared.
    pub name: String,
    /// A salted hash; who has none cannot log in.
    pub password: Option<String>,
    /// Whether everything is allowed.
    pub is_admin: bool,
    /// Microseconds since 1970.
    pub created_at: i64,
}

/// What a service logs in with.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Token {
    /// Who it stands for.
    pub user: String,
    /// What it is called; each user's are told apart by it.
    pub name: String,
    /// Of its text, which is told once and not kept.
    pub digest: String,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// The same; it does not end by itself if there is none.
    pub expires_at: Option<i64>,
}

/// What can be allowed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Privilege {
    /// Reading rows.
    Select,
    /// Adding rows.
    Insert,
    /// Making tables and views in a schema.
    Create,
}

impl Privilege {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Select, Self::Insert, Self::Create];

    /// As it is written in statements.
    pub fn word(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Create => "CREATE",
        }
    }

    /// The one of that name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|privilege| privilege.word().eq_ignore_ascii_case(word))
    }
}

/// What a right is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Securable {
    /// A table or view.
    Table(TableId),
    /// All tables and views of a schema.
    Schema(String),
}

/// A right of a role.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Grant {
    /// Whose it is.
    pub grantee: String,
    /// To do what.
    pub privilege: Privilege,
    /// With what.
    pub on: Securable,
}

/// All users, roles and rights.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// By name.
    pub roles: BTreeMap<String, Role>,
    /// Role and member.
    pub members: BTreeSet<(String, String)>,
    /// Rights.
    pub grants: BTreeSet<Grant>,
    /// Schemas that somebody owns, and who.
    pub schema_owners: BTreeMap<String, String>,
    /// What services log in with.
    pub tokens: BTreeSet<Token>,
}

/// One change of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccessChange {
    /// A new user or role; `AlreadyExists`.
    Create(Role),
    /// Another password, or another word on whether everything is allowed; `NotFound`.
    Alter {
        /// Whose.
        name: String,
        /// As in [`Role`]; unchanged if there is none.
        password: Option<String>,
        /// As in [`Role`]; unchanged if there is none.
        is_admin: Option<bool>,
    },
    /// Gone, with all rights, memberships and tokens; `NotFound`, or `OwnsThings`.
    Drop(String),
    /// Makes a role's rights those of a member too; `NotFound` if one is not there, `RoleInItself`.
    AddMember {
        /// Whose rights.
        role: String,
        /// Who gets them.
        member: String,
    },
    /// The opposite; nothing happens if it was none.
    RemoveMember {
        /// Whose rights.
        role: String,
        /// Who had them.
        member: String,
    },
    /// Gives rights, all or none; `NotFound`, `TableNotFound`.
    Grant(Vec<Grant>),
    /// Takes them away; those that were not given are passed over. `NotFound` if there is no such role.
    Revoke(Vec<Grant>),
    /// Gives tables and schemas to somebody else; `NotFound`, `TableNotFound`.
    SetOwner {
        /// What.
        of: Vec<Securable>,
        /// To whom; to whoever has the home if there is none.
        owner: Option<String>,
    },
    /// A new token; `AlreadyExists` if the user has one of that name, `NotFound` if there is no such user.
    CreateToken(Token),
    /// Gone; `NotFound`.
    DropToken {
        /// Whose.
        user: String,
        /// Which.
        name: String,
    },
}

impl Access {
    /// The role and all roles that it is in; empty if it is not there.
    pub fn roles_of(&self, name: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut next: Vec<&str> = self.roles.get_key_value(name).map(|(name, _)| name.as_str()).into_iter().collect();
        while let Some(name) = next.pop() {
            if found.insert(name) {
                let above = self.members.iter().filter(|(_, member)| member == name);
                next.extend(above.map(|(role, _)| role.as_str()));
            }
        }
        found
    }

    /// Whether everything is allowed.
    pub fn is_admin(&self, name: &str) -> bool {
        self.roles_of(name).into_iter().any(|role| self.roles.get(role).is_some_and(|role| role.is_admin))
    }

    /// Whether a role may do something with a table: it is an administrator's, owns it, or was given the right.
    pub fn may(&self, name: &str, privilege: Privilege, table: &TableDef) -> bool {
        let roles = self.roles_of(name);
        let is_given = |on: Securable| self.is_given(&roles, privilege, &on);
        self.owns(name, table)
            || is_given(Securable::Table(table.id))
            || is_given(Securable::Schema(table.name.schema.clone()))
    }

    /// Whether a role may make tables in a schema.
    pub fn may_create(&self, name: &str, schema: &str) -> bool {
        let on = Securable::Schema(schema.to_owned());
        self.owns_schema(name, schema) || self.is_given(&self.roles_of(name), Privilege::Create, &on)
    }

    /// Whether a role may drop a schema and let others make tables there: it is an administrator's, or owns it. What is in it may be
    /// others'.
    pub fn owns_schema(&self, name: &str, schema: &str) -> bool {
        let roles = self.roles_of(name);
        self.is_admin(name) || self.schema_owners.get(schema).is_some_and(|owner| roles.contains(owner.as_str()))
    }

    /// The token of that digest, unless it has expired.
    pub fn token(&self, digest: &str, now: i64) -> Option<&Token> {
        self.tokens.iter().find(|token| token.digest == digest && token.expires_at.is_none_or(|end| now < end))
    }

    /// Whether a role may change or drop a table: it is an administrator's, or owns it.
    pub fn owns(&self, name: &str, table: &TableDef) -> bool {
        let roles = self.roles_of(name);
        self.is_admin(name) || table.owner.as_deref().is_some_and(|owner| roles.contains(owner))
    }

    fn is_given(&self, roles: &BTreeSet<&str>, privilege: Privilege, on: &Securable) -> bool {
        let grant = |role: &&str| Grant { grantee: (*role).to_owned(), privilege, on: on.clone() };
        roles.iter().any(|role| self.grants.contains(&grant(role)))
    }

    /// Makes a change, or refuses it and stays as it is. `tables` and `schemas` are those that there are.
    pub fn apply(&mut self, change: &AccessChange, tables: &[TableDef], schemas: &[String]) -> Result<()> {
        match change {
            AccessChange::Create(role) => {
                if self.roles.contains_key(&role.name) {
                    return Err(CatalogError::AlreadyExists { what: "user or role", name: role.name.clone() });
                }
                self.roles.insert(role.name.clone(), role.clone());
            }
            AccessChange::Alter { name, password, is_admin } => {
                let role = self.roles.get_mut(name).ok_or_else(|| no_such_role(name))?;
                if let Some(password) = password {
                    role.password = Some(password.clone());
                }
                if let Some(is_admin) = is_admin {
                    role.is_admin = *is_admin;
                }
            }
            AccessChange::Drop(name) => {
                self.require(name)?;
                let owned = tables.iter().filter(|table| table.owner.as_ref() == Some(name));
                let mut owned: Vec<String> =
                    owned.map(|table| format!("{} {}", table.kind.word(), table.name)).collect();
                let schemas = self.schema_owners.iter().filter(|(_, owner)| *owner == name);
                owned.extend(schemas.map(|(schema, _)| format!("schema {schema}")));
                if !owned.is_empty() {
                    return Err(CatalogError::OwnsThings { name: name.clone(), owned });
                }
                self.roles.remove(name);
                self.tokens.retain(|token| token.user != *name);
                self.members.retain(|(role, member)| role != name && member != name);
                self.grants.retain(|grant| grant.grantee != *name);
            }
            AccessChange::AddMember { role, member } => {
                self.require(role)?;
                self.require(member)?;
                if self.roles_of(role).contains(member.as_str()) {
                    return Err(CatalogError::RoleInItself { role: role.clone(), member: member.clone() });
                }
                self.members.insert((role.clone(), member.clone()));
            }
            AccessChange::RemoveMember { role, member } => {
                self.require(role)?;
                self.require(member)?;
                self.members.remove(&(role.clone(), member.clone()));
            }
            AccessChange::Grant(grants) => {
                for grant in grants {
                    self.require(&grant.grantee)?;
                    is_there(&grant.on, tables, schemas)?;
                }
                self.grants.extend(grants.iter().cloned());
            }
            AccessChange::Revoke(grants) => {
                for grant in grants {
                    self.require(&grant.grantee)?;
                }
                grants.iter().for_each(|grant| _ = self.grants.remove(grant));
            }
            AccessChange::SetOwner { of, owner } => {
                owner.iter().try_for_each(|owner| self.require(owner))?;
                of.iter().try_for_each(|thing| is_there(thing, tables, schemas))?;
                for thing in of {
                    // Owners of tables are kept with the tables.
                    let Securable::Schema(schema) = thing else { continue };
                    match owner {
                        Some(owner) => drop(self.schema_owners.insert(schema.clone(), owner.clone())),
                        None => drop(self.schema_owners.remove(schema)),
                    }
                }
            }
            AccessChange::CreateToken(token) => {
                self.require(&token.user)?;
                if self.tokens.iter().any(|known| known.user == token.user && known.name == token.name) {
                    return Err(CatalogError::AlreadyExists { what: "token", name: token.name.clone() });
                }
                self.tokens.insert(token.clone());
            }
            AccessChange::DropToken { user, name } => {
                let n_before = self.tokens.len();
                self.tokens.retain(|token| token.user != *user || token.name != *name);
                if self.tokens.len() == n_before {
                    return Err(CatalogError::NotFound { what: "token", name: name.clone() });
                }
            }
        }
        Ok(())
    }

    fn require(&self, name: &str) -> Result<()> {
        if self.roles.contains_key(name) { Ok(()) } else { Err(no_such_role(name)) }
    }
}

fn is_there(thing: &Securable, tables: &[TableDef], schemas: &[String]) -> Result<()> {
    match thing {
        Securable::Table(id) if !tables.iter().any(|table| table.id == *id) => Err(no_such_table(*id)),
        Securable::Schema(schema) if !schemas.contains(schema) => Err(no_such_schema(schema)),
        _ => Ok(()),
    }
}

/// Whether what replaces a table keeps the rights on it: the same table in another form, or a view with another query.
pub(crate) fn keeps_rights(old: &TableDef, new: &TableDef) -> bool {
    old.id == new.id || (old.kind.as_view().is_some() && new.kind.as_view().is_some())
}

fn no_such_role(name: &str) -> CatalogError {
    CatalogError::NotFound { what: "user or role", name: name.to_owned() }
}
