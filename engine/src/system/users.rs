//! `system.users`: users and roles. Administrators see all of them, others themselves and the roles that they are in.

use std::sync::Arc;

use arrow::array::{BooleanArray, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_catalog::Role;

use super::{flag, table_of, text, time};
use crate::access::{NO_PASSWORD, Rights};

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("name"),
        text("kind"),
        flag("is_admin"),
        text("member_of"),
        flag("has_password"),
        time("created_at"),
    ])
}

pub(super) fn rows(rights: &Rights) -> Result<RecordBatch> {
    let access = rights.access();
    let own = rights.user().map(|user| access.roles_of(user)).unwrap_or_default();
    let is_seen = |role: &&Role| rights.is_admin() || own.contains(role.name.as_str());
    let roles: Vec<&Role> = access.roles.values().filter(is_seen).collect();
    let kind = |role: &Role| if role.password.is_some() { "user" } else { "role" };
    let member_of = |role: &Role| {
        let above = access.members.iter().filter(|(_, member)| *member == role.name);
        above.map(|(role, _)| role.as_str()).collect::<Vec<_>>().join(", ")
    };
    let has_password = |role: &Role| role.password.as_deref().is_some_and(|hash| hash != NO_PASSWORD);
    let created = roles.iter().map(|role| role.created_at);
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(roles.iter().map(|role| &role.name))),
            Arc::new(StringArray::from_iter_values(roles.iter().map(|role| kind(role)))),
            Arc::new(BooleanArray::from(roles.iter().map(|role| access.is_admin(&role.name)).collect::<Vec<_>>())),
            Arc::new(StringArray::from_iter_values(roles.iter().map(|role| member_of(role)))),
            Arc::new(BooleanArray::from(roles.iter().map(|role| has_password(role)).collect::<Vec<_>>())),
            Arc::new(TimestampMicrosecondArray::from_iter_values(created).with_timezone("UTC")),
        ],
    )?)
}
