//! What every metadata store does with users, roles and rights.

use super::{MemoryStore, MetadataStore, SqliteStore, add, table, version};
use crate::{
    Access, AccessChange, CatalogError, Grant, Privilege, Replace, Role, Securable, TableDef, TableKind, Token,
};

conformance! {
    users_and_rights_come_back_as_they_were
    what_is_not_granted_is_denied
    rights_come_through_roles
    no_role_is_in_itself
    rights_go_with_their_table
    a_table_in_another_form_keeps_its_rights
    rights_go_with_their_schema
    rights_go_with_their_role
    who_owns_something_stays
    a_view_keeps_its_rights_when_it_is_replaced
    owners_change
    tokens_are_kept_by_their_digests
    refused_changes_leave_no_trace
    changes_raise_the_version
}

fn role(name: &str) -> Role {
    Role { name: name.to_owned(), password: None, is_admin: false, created_at: 5 }
}

fn on(table: &TableDef) -> Securable {
    Securable::Table(table.id)
}

fn grant(grantee: &str, privilege: Privilege, on: Securable) -> Grant {
    Grant { grantee: grantee.to_owned(), privilege, on }
}

async fn access(store: &dyn MetadataStore) -> Access {
    store.access().await.expect("rights")
}

async fn change(store: &dyn MetadataStore, change: AccessChange) {
    store.change_access(&change).await.expect("a change");
}

pub(super) async fn roles(store: &dyn MetadataStore, names: &[&str]) {
    for name in names {
        change(store, AccessChange::Create(role(name))).await;
    }
}

async fn give(store: &dyn MetadataStore, grants: &[Grant]) {
    change(store, AccessChange::Grant(grants.to_vec())).await;
}

async fn join(store: &dyn MetadataStore, role: &str, member: &str) {
    change(store, AccessChange::AddMember { role: role.to_owned(), member: member.to_owned() }).await;
}

async fn users_and_rights_come_back_as_they_were(store: &dyn MetadataStore) {
    assert_eq!(access(store).await, Access::default());
    let t = TableDef { owner: Some("ü".to_owned()), ..table("t") };
    add(store, &t, &[]).await;
    assert_eq!(store.tables().await.expect("tables"), std::slice::from_ref(&t));
    let user = Role { name: "ü".to_owned(), password: Some("$hash".to_owned()), is_admin: true, created_at: -7 };
    change(store, AccessChange::Create(user.clone())).await;
    roles(store, &["r"]).await;
    join(store, "r", "ü").await;
    let grants =
        [grant("r", Privilege::Insert, on(&t)), grant("ü", Privilege::Create, Securable::Schema("public".to_owned()))];
    give(store, &grants).await;
    give(store, &grants[..1]).await;
    let found = access(store).await;
    assert_eq!(found.roles["ü"], user);
    assert_eq!(found.members.into_iter().collect::<Vec<_>>(), [("r".to_owned(), "ü".to_owned())]);
    assert_eq!(found.grants, grants.into_iter().collect());
    let alter = AccessChange::Alter { name: "ü".to_owned(), password: Some("$new".to_owned()), is_admin: None };
    change(store, alter).await;
    let found = access(store).await;
    assert_eq!((found.roles["ü"].password.as_deref(), found.roles["ü"].is_admin), (Some("$new"), true));
}

async fn what_is_not_granted_is_denied(store: &dyn MetadataStore) {
    let (t, u) = (table("t"), table("u"));
    add(store, &t, &[]).await;
    add(store, &u, &[]).await;
    roles(store, &["bob", "eve"]).await;
    give(store, &[grant("bob", Privilege::Select, on(&t))]).await;
    let found = access(store).await;
    assert!(found.may("bob", Privilege::Select, &t));
    assert!(!found.may("bob", Privilege::Insert, &t) && !found.may("bob", Privilege::Select, &u));
    assert!(!found.may("eve", Privilege::Select, &t) && !found.may("nobody", Privilege::Select, &t));
    assert!(!found.may_create("bob", "public") && !found.owns("bob", &t) && !found.is_admin("bob"));
    change(store, AccessChange::Revoke(vec![grant("bob", Privilege::Select, on(&t))])).await;
    assert!(!access(store).await.may("bob", Privilege::Select, &t));
}

async fn rights_come_through_roles(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &[]).await;
    roles(store, &["bob", "readers", "staff"]).await;
    join(store, "staff", "bob").await;
    join(store, "readers", "staff").await;
    give(store, &[grant("readers", Privilege::Select, Securable::Schema("public".to_owned()))]).await;
    assert!(access(store).await.may("bob", Privilege::Select, &t));
    let leave = AccessChange::RemoveMember { role: "readers".to_owned(), member: "staff".to_owned() };
    change(store, leave).await;
    assert!(!access(store).await.may("bob", Privilege::Select, &t));
}

async fn no_role_is_in_itself(store: &dyn MetadataStore) {
    roles(store, &["a", "b", "c"]).await;
    join(store, "a", "b").await;
    join(store, "b", "c").await;
    for (role, member) in [("c", "a"), ("a", "a")] {
        let round = AccessChange::AddMember { role: role.to_owned(), member: member.to_owned() };
        let refused = store.change_access(&round).await;
        assert!(matches!(refused, Err(CatalogError::RoleInItself { .. })), "{refused:?}");
    }
}

async fn rights_go_with_their_table(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &[]).await;
    roles(store, &["bob"]).await;
    give(store, &[grant("bob", Privilege::Select, on(&t))]).await;
    // Another table of the same name.
    let other = table("t");
    store.create_table(&other, &[], Replace::Seen(Some(t.id))).await.expect("replaced");
    let found = access(store).await;
    assert!(found.grants.is_empty() && !found.may("bob", Privilege::Select, &other));
    give(store, &[grant("bob", Privilege::Select, on(&other))]).await;
    store.drop_table(other.id).await.expect("dropped");
    assert!(access(store).await.grants.is_empty());
}

async fn a_table_in_another_form_keeps_its_rights(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &[]).await;
    roles(store, &["bob"]).await;
    give(store, &[grant("bob", Privilege::Select, on(&t))]).await;
    let again = TableDef { created_at: 9, ..t.clone() };
    store.create_table(&again, &[], Replace::Seen(Some(t.id))).await.expect("replaced");
    assert!(access(store).await.may("bob", Privilege::Select, &t));
}

async fn rights_go_with_their_schema(store: &dyn MetadataStore) {
    store.create_schema("zoo").await.expect("a schema");
    roles(store, &["bob"]).await;
    give(store, &[grant("bob", Privilege::Create, Securable::Schema("zoo".to_owned()))]).await;
    assert!(access(store).await.may_create("bob", "zoo"));
    store.drop_schema("zoo", false).await.expect("dropped");
    store.create_schema("zoo").await.expect("a schema");
    assert!(!access(store).await.may_create("bob", "zoo"));
}

async fn rights_go_with_their_role(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &[]).await;
    roles(store, &["bob", "r"]).await;
    join(store, "r", "bob").await;
    give(store, &[grant("bob", Privilege::Select, on(&t)), grant("r", Privilege::Insert, on(&t))]).await;
    change(store, AccessChange::Drop("bob".to_owned())).await;
    roles(store, &["bob"]).await;
    let found = access(store).await;
    assert!(!found.may("bob", Privilege::Select, &t) && !found.may("bob", Privilege::Insert, &t));
    assert!(found.may("r", Privilege::Insert, &t));
}

async fn who_owns_something_stays(store: &dyn MetadataStore) {
    roles(store, &["bob"]).await;
    let t = TableDef { owner: Some("bob".to_owned()), ..table("t") };
    add(store, &t, &[]).await;
    let drop = AccessChange::Drop("bob".to_owned());
    let refused = store.change_access(&drop).await;
    assert!(
        matches!(&refused, Err(CatalogError::OwnsThings { owned, .. }) if owned == &["table public.t"]),
        "{refused:?}"
    );
    let found = access(store).await;
    assert!(found.owns("bob", &t) && found.may("bob", Privilege::Insert, &t));
    store.drop_table(t.id).await.expect("dropped");
    change(store, drop).await;
}

async fn a_view_keeps_its_rights_when_it_is_replaced(store: &dyn MetadataStore) {
    let view = |query: &str| {
        let (query, default_schema) = (query.to_owned(), "public".to_owned());
        let kind = TableKind::View { query, default_schema, mentions: None };
        TableDef { kind, ..table("v") }
    };
    let (first, second, third) = (view("SELECT 1"), view("SELECT 2"), table("v"));
    add(store, &first, &[]).await;
    roles(store, &["bob"]).await;
    give(store, &[grant("bob", Privilege::Select, on(&first))]).await;
    store.create_table(&second, &[], Replace::Seen(Some(first.id))).await.expect("replaced");
    assert!(access(store).await.may("bob", Privilege::Select, &second));
    // Another table does not get what was meant for a view.
    store.create_table(&third, &[], Replace::Seen(Some(second.id))).await.expect("replaced");
    assert!(access(store).await.grants.is_empty());
}

async fn owners_change(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &[]).await;
    store.create_schema("zoo").await.expect("a schema");
    roles(store, &["bob", "eve"]).await;
    let to = |owner: Option<&str>| AccessChange::SetOwner {
        of: vec![on(&t), Securable::Schema("zoo".to_owned())],
        owner: owner.map(str::to_owned),
    };
    change(store, to(Some("bob"))).await;
    let owner = async || store.tables().await.expect("tables")[0].owner.clone();
    assert_eq!(owner().await.as_deref(), Some("bob"));
    let found = access(store).await;
    assert!(found.owns_schema("bob", "zoo") && found.may_create("bob", "zoo") && !found.owns_schema("eve", "zoo"));
    let refused = store.change_access(&AccessChange::Drop("bob".to_owned())).await;
    let Err(CatalogError::OwnsThings { owned, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(owned, ["table public.t", "schema zoo"]);
    assert!(store.change_access(&to(Some("nobody"))).await.is_err());
    change(store, to(Some("eve"))).await;
    change(store, AccessChange::Drop("bob".to_owned())).await;
    change(store, to(None)).await;
    assert_eq!(owner().await, None);
    // Another schema of the same name is nobody's.
    change(store, to(Some("eve"))).await;
    store.drop_schema("zoo", true).await.expect("dropped");
    store.create_schema("zoo").await.expect("a schema");
    assert!(!access(store).await.owns_schema("eve", "zoo"));
}

async fn tokens_are_kept_by_their_digests(store: &dyn MetadataStore) {
    roles(store, &["bob", "eve"]).await;
    let token = |name: &str, digest: &str, expires_at| Token {
        user: "bob".to_owned(),
        name: name.to_owned(),
        digest: digest.to_owned(),
        created_at: 3,
        expires_at,
    };
    let (first, second) = (token("ci", "d1", None), token("night", "d2", Some(100)));
    change(store, AccessChange::CreateToken(first.clone())).await;
    change(store, AccessChange::CreateToken(second.clone())).await;
    assert!(store.change_access(&AccessChange::CreateToken(token("ci", "d3", None))).await.is_err());
    let nobody = Token { user: "nobody".to_owned(), ..first.clone() };
    assert!(store.change_access(&AccessChange::CreateToken(nobody)).await.is_err());
    let found = access(store).await;
    assert_eq!(found.token("d1", i64::MAX), Some(&first));
    assert_eq!((found.token("d2", 99), found.token("d2", 100)), (Some(&second), None));
    assert_eq!(found.token("d3", 0), None);
    let drop = |name: &str| AccessChange::DropToken { user: "bob".to_owned(), name: name.to_owned() };
    change(store, drop("ci")).await;
    assert!(store.change_access(&drop("ci")).await.is_err());
    assert_eq!(access(store).await.token("d1", 0), None);
    // They go with their user.
    change(store, AccessChange::Drop("bob".to_owned())).await;
    assert!(access(store).await.tokens.is_empty());
}

async fn refused_changes_leave_no_trace(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &[]).await;
    roles(store, &["bob"]).await;
    let before = (access(store).await, version(store).await);
    let gone = table("gone");
    let nowhere = Securable::Schema("nowhere".to_owned());
    let refused = [
        AccessChange::Create(role("bob")),
        AccessChange::Drop("nobody".to_owned()),
        AccessChange::Alter { name: "nobody".to_owned(), password: None, is_admin: Some(true) },
        AccessChange::AddMember { role: "bob".to_owned(), member: "nobody".to_owned() },
        AccessChange::Grant(vec![grant("bob", Privilege::Select, on(&t)), grant("bob", Privilege::Select, on(&gone))]),
        AccessChange::Grant(vec![grant("bob", Privilege::Select, nowhere)]),
        AccessChange::Grant(vec![grant("nobody", Privilege::Select, on(&t))]),
        AccessChange::Revoke(vec![grant("nobody", Privilege::Select, on(&t))]),
    ];
    for change in &refused {
        assert!(store.change_access(change).await.is_err(), "{change:?}");
    }
    assert_eq!((access(store).await, version(store).await), before);
}

async fn changes_raise_the_version(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &[]).await;
    roles(store, &["bob"]).await;
    let right = grant("bob", Privilege::Select, on(&t));
    for change in [AccessChange::Grant(vec![right.clone()]), AccessChange::Revoke(vec![right])] {
        let before = version(store).await;
        store.change_access(&change).await.expect("a change");
        assert!(version(store).await > before, "{change:?} left the version");
    }
}
