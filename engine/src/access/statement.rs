//! `CREATE USER`, `CREATE ROLE`, `ALTER USER`, `DROP USER`, `GRANT`, `REVOKE`.
//!
//! For administrators; everybody may change his own password, and who owns something gives others rights on it. Rights on all tables
//! of a schema, whoever made them, are for administrators.

use nectarine_catalog::{Access, AccessChange, CatalogError, Grant, Privilege, Role, Securable, TableDef};
use nectarine_planner::sql::{AccessStatement, AlterRole, CreateRole, DropRole, Rights as Given};
use sqlparser::ast::Ident;

use super::{NO_PASSWORD, hashed, owner, token};
use crate::command::StatementRun;
use crate::ddl::{normal, reference};
use crate::managed::now_micros;
use crate::{Answer, EngineError, ErrorKind, Notice, Result, job};

/// The user that a server makes who finds none.
pub(crate) const FIRST_USER: &str = "admin";

pub(crate) async fn run(run: &StatementRun<'_>, statement: AccessStatement) -> Result<Answer> {
    match statement {
        AccessStatement::Create(create) => {
            run.rights().check_admin("make users")?;
            create_role(run, create).await
        }
        AccessStatement::Alter(alter) => alter_role(run, alter).await,
        AccessStatement::Drop(drop) => {
            run.rights().check_admin("drop users")?;
            drop_role(run, drop).await
        }
        AccessStatement::Rights { rights, names, is_given } => change_rights(run, rights, &names, is_given).await,
        AccessStatement::SetOwner(set) => owner::set(run, set).await,
        AccessStatement::Reassign { from, to } => owner::reassign(run, &from, &to).await,
        AccessStatement::CreateToken { name, user, valid_until } => {
            token::create(run, &name, &user, valid_until.as_deref()).await
        }
        AccessStatement::DropToken { name, user, if_exists } => token::drop(run, &name, &user, if_exists).await,
    }
}

async fn create_role(run: &StatementRun<'_>, create: CreateRole) -> Result<Answer> {
    let name = role_name(run, &create.name)?;
    let tag = if create.is_user { "CREATE USER" } else { "CREATE ROLE" };
    if run.catalog.view.access.roles.contains_key(&name) && create.if_not_exists {
        return Ok(run.noticed(tag, format!("\"{name}\" already exists, skipping")));
    }
    let password = match &create.password {
        Some(password) => Some(hashed(password).await?),
        None => create.is_user.then(|| NO_PASSWORD.to_string()),
    };
    let role = Role { name, password, is_admin: create.is_admin, created_at: now_micros() };
    change(run, AccessChange::Create(role)).await?;
    Ok(run.command(tag))
}

async fn alter_role(run: &StatementRun<'_>, alter: AlterRole) -> Result<Answer> {
    let name = role_name(run, &alter.name)?;
    let is_self = run.rights().user() == Some(name.as_str());
    if !is_self || alter.is_admin.is_some() {
        run.rights().check_admin("change users")?;
    }
    if alter.password.is_some() && run.catalog.view.access.roles.get(&name).is_some_and(|role| role.password.is_none())
    {
        return Err(EngineError::new(ErrorKind::Sql, format!("\"{name}\" is a role and has no password"))
            .with_hint("CREATE USER .. PASSWORD makes a user; GRANT gives him the role"));
    }
    let password = match &alter.password {
        Some(password) => Some(hashed(password).await?),
        None => None,
    };
    change(run, AccessChange::Alter { name, password, is_admin: alter.is_admin }).await?;
    Ok(run.command("ALTER USER"))
}

async fn drop_role(run: &StatementRun<'_>, drop: DropRole) -> Result<Answer> {
    let name = role_name(run, &drop.name)?;
    let tag = "DROP USER";
    if !run.catalog.view.access.roles.contains_key(&name) && drop.if_exists {
        return Ok(run.noticed(tag, format!("\"{name}\" does not exist, skipping")));
    }
    if run.rights().user() == Some(name.as_str()) {
        return Err(EngineError::new(ErrorKind::Sql, "nobody can drop himself"));
    }
    // A report without its owner would fail from now on.
    let reports = run.catalog.shared.store.reports().await?;
    let owned: Vec<String> = reports
        .iter()
        .filter(|report| report.owner.as_ref() == Some(&name))
        .map(|report| format!("report {}", report.name))
        .chain(job::open_of(&run.catalog.shared, &name).await?)
        .collect();
    if !owned.is_empty() {
        return Err(CatalogError::OwnsThings { name, owned }.into());
    }
    change(run, AccessChange::Drop(name)).await?;
    Ok(run.command(tag))
}

async fn change_rights(run: &StatementRun<'_>, given: Given, names: &[Ident], is_given: bool) -> Result<Answer> {
    let tag = if is_given { "GRANT" } else { "REVOKE" };
    let names = names.iter().map(|name| role_name(run, name)).collect::<Result<Vec<_>>>()?;
    let config = run.state.config_options();
    let (words, things) = match given {
        Given::Roles(roles) => {
            run.rights().check_admin("put users into roles")?;
            for role in &roles {
                for member in &names {
                    let (role, member) = (role_name(run, role)?, member.clone());
                    change(
                        run,
                        match is_given {
                            true => AccessChange::AddMember { role, member },
                            false => AccessChange::RemoveMember { role, member },
                        },
                    )
                    .await?;
                }
            }
            return Ok(run.command(tag));
        }
        Given::OnTables(words, tables) => {
            let mut things = vec![];
            for table in &tables {
                let name = run.table_name(&reference(table, config)?)?;
                match run.catalog.view.tables.get(&name) {
                    Some(table) => {
                        run.rights().check_owns(table)?;
                        things.push(Securable::Table(table.id));
                    }
                    None => return Err(CatalogError::TableNotFound { name }.into()),
                }
            }
            (privileges(&words, &[Privilege::Select, Privilege::Insert])?, things)
        }
        Given::OnSchemas(words, schemas) => {
            let schemas: Vec<String> = schemas.iter().map(|schema| normal(schema, config)).collect();
            let privileges = privileges(&words, &Privilege::ALL)?;
            match privileges == [Privilege::Create] {
                true => schemas.iter().try_for_each(|schema| run.rights().check_owns_schema(schema))?,
                // Its tables may be others'.
                false => run.rights().check_admin("change rights on all tables of a schema")?,
            }
            (privileges, schemas.into_iter().map(Securable::Schema).collect())
        }
    };
    let mut grants = vec![];
    for grantee in &names {
        for privilege in &words {
            let grant = |on: &Securable| Grant { grantee: grantee.clone(), privilege: *privilege, on: on.clone() };
            grants.extend(things.iter().map(grant));
        }
    }
    if is_given {
        change(run, AccessChange::Grant(grants)).await?;
        return Ok(run.command(tag));
    }
    change(run, AccessChange::Revoke(grants.clone())).await?;
    Ok(run.noticed_all(tag, left_over(run, &grants).await?))
}

/// Tells who still has a right that was taken from him, and where from: through a role, or through the schema.
async fn left_over(run: &StatementRun<'_>, taken: &[Grant]) -> Result<Vec<Notice>> {
    let view = run.catalog.shared.catalog.view().await?;
    let mut notices = vec![];
    for Grant { grantee, privilege, on } in taken {
        let Securable::Table(id) = on else { continue };
        let Some(table) = view.tables.values().find(|table| table.id == *id) else { continue };
        if !view.access.may(grantee, *privilege, table) {
            continue;
        }
        let message = format!("\"{grantee}\" still has {} on \"{}\"", privilege.word(), table.name.name);
        let ways = ways(&view.access, grantee, *privilege, table);
        notices.push(Notice { message: format!("{message}: {}", ways.join(", ")), hint: None });
    }
    Ok(notices)
}

/// Where somebody's right on a table comes from.
fn ways(access: &Access, name: &str, privilege: Privilege, table: &TableDef) -> Vec<String> {
    let mut ways = vec![];
    for role in access.roles_of(name) {
        let who = if role == name { String::new() } else { format!("as a member of \"{role}\" ") };
        let has = |on: Securable| access.grants.contains(&Grant { grantee: role.to_string(), privilege, on });
        if access.roles.get(role).is_some_and(|role| role.is_admin) {
            ways.push(format!("{who}it is an administrator"));
        }
        if table.owner.as_deref() == Some(role) {
            ways.push(format!("{who}it owns it"));
        }
        if has(Securable::Table(table.id)) {
            ways.push(format!("{who}it was granted"));
        }
        if has(Securable::Schema(table.name.schema.clone())) {
            ways.push(format!("{who}it was granted on schema \"{}\"", table.name.schema));
        }
    }
    ways
}

/// The rights of these names; all of them if none is named.
fn privileges(words: &[String], all: &[Privilege]) -> Result<Vec<Privilege>> {
    if words.is_empty() {
        return Ok(all.to_vec());
    }
    let known = |word: &String| {
        Privilege::parse(word).filter(|privilege| all.contains(privilege)).ok_or_else(|| {
            let offered: Vec<&str> = all.iter().map(|privilege| privilege.word()).collect();
            EngineError::new(ErrorKind::Sql, format!("there is no right \"{word}\" here"))
                .with_hint(format!("one of {}, or ALL", offered.join(", ")))
        })
    };
    words.iter().map(known).collect()
}

pub(super) fn role_name(run: &StatementRun<'_>, name: &Ident) -> Result<String> {
    let name = normal(name, run.state.config_options());
    // Basic authentication ends the name at the first colon.
    match name.is_empty() || name.contains(':') || name.chars().any(char::is_control) {
        true => Err(EngineError::new(ErrorKind::Sql, format!("\"{name}\" is no name for a user or role"))
            .with_hint("it must not be empty, nor hold a colon")),
        false => Ok(name),
    }
}

pub(super) async fn change(run: &StatementRun<'_>, change: AccessChange) -> Result<()> {
    let changed = run.catalog.shared.store.change_access(&change).await;
    // Who logged out must not come in by what was seen before.
    run.catalog.shared.catalog.forget_recent();
    Ok(changed?)
}
