//! Users, roles and rights. There are few: a change reads all of them and writes all of them back.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};

use super::fault::Fault;
use super::lane::Lane;
use super::tables;
use crate::{Access, AccessChange, Grant, Privilege, Role, Securable, TableId, Token};

pub(super) async fn read(lane: &mut Lane) -> Result<Access, Fault> {
    // One transaction: rights must belong to the roles beside them.
    let mut snapshot = lane.read()?.begin().await?;
    let access = all(&mut snapshot).await?;
    snapshot.rollback().await?;
    Ok(access)
}

pub(super) async fn change(lane: &mut Lane, wanted: &AccessChange) -> Result<(), Fault> {
    let mut change = lane.change().await?;
    let mut access = all(&mut change).await?;
    let tables = tables::all(&mut change).await?;
    let schemas: Vec<String> = sqlx::query_scalar("SELECT name FROM schemas").fetch_all(&mut *change).await?;
    access.apply(wanted, &tables, &schemas)?;
    for delete in ["DELETE FROM roles", "DELETE FROM role_members", "DELETE FROM grants", "DELETE FROM tokens"] {
        sqlx::query(delete).execute(&mut *change).await?;
    }
    for role in access.roles.values() {
        sqlx::query("INSERT INTO roles (name, password, is_admin, created_at) VALUES ($1, $2, $3, $4)")
            .bind(&role.name)
            .bind(&role.password)
            .bind(role.is_admin)
            .bind(role.created_at)
            .execute(&mut *change)
            .await?;
    }
    for (role, member) in &access.members {
        let insert = sqlx::query("INSERT INTO role_members (role, member) VALUES ($1, $2)").bind(role).bind(member);
        insert.execute(&mut *change).await?;
    }
    write_grants(&mut change, access.grants.iter()).await?;
    for token in &access.tokens {
        sqlx::query("INSERT INTO tokens (user_name, name, digest, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)")
            .bind(&token.user)
            .bind(&token.name)
            .bind(&token.digest)
            .bind(token.created_at)
            .bind(token.expires_at)
            .execute(&mut *change)
            .await?;
    }
    if let AccessChange::SetOwner { of, owner } = wanted {
        for thing in of {
            let (update, id) = match thing {
                Securable::Table(id) => ("UPDATE tables SET owner = $1 WHERE id = $2", id.to_string()),
                Securable::Schema(name) => ("UPDATE schemas SET owner = $1 WHERE name = $2", name.clone()),
            };
            sqlx::query(update).bind(owner).bind(id).execute(&mut *change).await?;
        }
    }
    Ok(change.commit().await?)
}

/// The rights on a table.
pub(super) async fn grants_on(connection: &mut SqliteConnection, id: TableId) -> Result<Vec<Grant>, Fault> {
    let select = sqlx::query("SELECT grantee, privilege, table_id, schema_name FROM grants WHERE table_id = $1");
    let rows = select.bind(id.to_string()).fetch_all(connection).await?;
    rows.iter().map(grant).collect()
}

pub(super) async fn write_grants(
    connection: &mut SqliteConnection,
    grants: impl Iterator<Item = &Grant> + Send,
) -> Result<(), Fault> {
    for grant in grants {
        let (table, schema) = match &grant.on {
            Securable::Table(id) => (Some(id.to_string()), None),
            Securable::Schema(name) => (None, Some(name.clone())),
        };
        sqlx::query("INSERT INTO grants (grantee, privilege, table_id, schema_name) VALUES ($1, $2, $3, $4)")
            .bind(&grant.grantee)
            .bind(grant.privilege.word())
            .bind(table)
            .bind(schema)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

async fn all(connection: &mut SqliteConnection) -> Result<Access, Fault> {
    let roles =
        sqlx::query("SELECT name, password, is_admin, created_at FROM roles").fetch_all(&mut *connection).await?;
    let roles = roles.iter().map(role).collect::<Result<BTreeMap<_, _>, Fault>>()?;
    let members: Vec<(String, String)> =
        sqlx::query_as("SELECT role, member FROM role_members").fetch_all(&mut *connection).await?;
    let grants = sqlx::query("SELECT grantee, privilege, table_id, schema_name FROM grants");
    let grants = grants.fetch_all(&mut *connection).await?;
    let grants = grants.iter().map(grant).collect::<Result<BTreeSet<_>, Fault>>()?;
    let owners: Vec<(String, String)> =
        sqlx::query_as("SELECT name, owner FROM schemas WHERE owner IS NOT NULL").fetch_all(&mut *connection).await?;
    let tokens = sqlx::query("SELECT user_name, name, digest, created_at, expires_at FROM tokens");
    let tokens = tokens.fetch_all(connection).await?;
    Ok(Access {
        roles,
        members: members.into_iter().collect(),
        grants,
        schema_owners: owners.into_iter().collect(),
        tokens: tokens.iter().map(token).collect::<Result<BTreeSet<_>, Fault>>()?,
    })
}

fn role(row: &SqliteRow) -> Result<(String, Role), Fault> {
    let name: String = row.try_get(0)?;
    let role =
        Role { name: name.clone(), password: row.try_get(1)?, is_admin: row.try_get(2)?, created_at: row.try_get(3)? };
    Ok((name, role))
}

fn token(row: &SqliteRow) -> Result<Token, Fault> {
    Ok(Token {
        user: row.try_get(0)?,
        name: row.try_get(1)?,
        digest: row.try_get(2)?,
        created_at: row.try_get(3)?,
        expires_at: row.try_get(4)?,
    })
}

fn grant(row: &SqliteRow) -> Result<Grant, Fault> {
    let grantee: String = row.try_get(0)?;
    let damaged = |detail: &str| Fault::damaged(format!("a right of \"{grantee}\""), detail);
    let word: String = row.try_get(1)?;
    let privilege = Privilege::parse(&word).ok_or_else(|| damaged("it is none that is known"))?;
    let (table, schema): (Option<String>, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
    let on = match (table, schema) {
        (Some(table), None) => {
            Securable::Table(TableId::parse(&table).ok_or_else(|| damaged("its table is not an identifier"))?)
        }
        (None, Some(schema)) => Securable::Schema(schema),
        _ => return Err(damaged("it is neither a table's nor a schema's")),
    };
    Ok(Grant { grantee, privilege, on })
}
