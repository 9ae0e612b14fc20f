//! Owners give rights and give things away; roles are in roles; what is left when rights are taken.

use super::home;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_grant() {
    let db = home().await;
    let (bob, eve) = (db.user("bob"), db.user("eve"));
    db.ok("GRANT CREATE ON SCHEMA zoo TO bob").await;
    bob.script(
        r#"
        CREATE TABLE zoo.bear AS SELECT 1 AS a;
        GRANT SELECT ON zoo.bear TO eve;
        -> GRANT
        GRANT SELECT ON zoo.ape TO eve;
        !! permission denied for table "ape"
        !! only its owner, and administrators, may change it
        GRANT SELECT ON SCHEMA zoo TO bob;
        !! permission denied to change rights on all tables of a schema
        GRANT CREATE ON SCHEMA zoo TO eve;
        !! permission denied for schema "zoo"
        "#,
    )
    .await;
    eve.script(
        r#"
        SELECT a FROM zoo.bear;
        -> 1
        GRANT SELECT ON zoo.bear TO eve;
        !! permission denied
        INSERT INTO zoo.bear VALUES (2);
        !! permission denied
        "#,
    )
    .await;
    bob.script("REVOKE ALL ON zoo.bear FROM eve;\n-> REVOKE").await;
    assert!(eve.err("SELECT a FROM zoo.bear").await.contains("permission denied"));
    // The owner of a schema lets others make things there, and reads no more for it.
    db.ok("ALTER SCHEMA zoo OWNER TO eve").await;
    eve.script(
        r#"
        CREATE TABLE zoo.cat AS SELECT 1 AS a;
        GRANT CREATE ON SCHEMA zoo TO eve;
        SELECT a FROM zoo.bear;
        !! permission denied for table "bear"
        DROP SCHEMA zoo CASCADE;
        !! permission denied to drop what others made
        DROP SCHEMA zoo;
        !! is not empty
        "#,
    )
    .await;
    assert!(bob.err("DROP SCHEMA zoo").await.contains("permission denied for schema"));
    db.ok("CREATE SCHEMA empty").await;
    db.ok("ALTER SCHEMA empty OWNER TO eve").await;
    eve.ok("DROP SCHEMA empty").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn things_change_hands() {
    let db = home().await;
    let (bob, eve) = (db.user("bob"), db.user("eve"));
    db.script(
        r#"
        CREATE ROLE team;
        CREATE USER boss PASSWORD 'long enough' ADMIN;
        GRANT team TO bob;
        GRANT ALL ON SCHEMA zoo TO bob;
        GRANT CREATE ON SCHEMA zoo TO team;
        "#,
    )
    .await;
    bob.script(
        r#"
        CREATE TABLE zoo.bear AS SELECT 1 AS a;
        CREATE VIEW zoo.bears AS SELECT a FROM zoo.bear;
        ALTER TABLE zoo.bear OWNER TO eve;
        !! permission denied to make "eve" the owner
        !! gives only to roles that he is in
        ALTER VIEW zoo.bears OWNER TO boss;
        !! permission denied to make "boss" the owner
        ALTER TABLE zoo.ape OWNER TO bob;
        !! permission denied for table "ape"
        ALTER TABLE zoo.bear OWNER TO nobody;
        !! permission denied
        ALTER TABLE zoo.bear OWNER TO team;
        -> ALTER TABLE
        ALTER VIEW zoo.bear OWNER TO team;
        !! "bear" is a table
        ALTER TABLE IF EXISTS zoo.nothing OWNER TO team;
        -> ALTER TABLE
        -> notice: "nothing" does not exist, skipping
        DROP USER bob;
        !! permission denied
        "#,
    )
    .await;
    // What is a role's is its members'.
    db.ok("GRANT team TO eve").await;
    eve.ok("INSERT INTO zoo.bear VALUES (2)").await;
    db.script(
        r#"
        ALTER TABLE zoo.ape OWNER TO nobody;
        !! user or role "nobody" does not exist
        ALTER SCHEMA nowhere OWNER TO bob;
        !! schema "nowhere" does not exist
        ALTER SCHEMA system OWNER TO bob;
        !! not for users to change
        DROP USER bob;
        !! cannot drop "bob": it owns 1 object
        !! view zoo.bears
        !! REASSIGN OWNED BY bob TO
        DROP ROLE team;
        !! cannot drop "team": it owns 1 object
        REASSIGN OWNED BY bob TO bob;
        !! owns it already
        REASSIGN OWNED BY bob, team TO eve;
        -> REASSIGN OWNED
        DROP USER bob;
        DROP ROLE team;
        "#,
    )
    .await;
    assert_eq!(eve.ok("SELECT count(*) FROM zoo.bear").await, "2");
    assert!(eve.err("REASSIGN OWNED BY boss TO eve").await.contains("permission denied"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_in_roles_and_what_is_left() {
    let db = home().await;
    let bob = db.user("bob");
    db.script(
        r#"
        CREATE ROLE readers;
        CREATE ROLE staff;
        GRANT SELECT ON t TO readers, bob;
        GRANT SELECT ON SCHEMA public TO staff;
        GRANT readers TO staff;
        GRANT staff TO bob;
        GRANT bob TO readers;
        !! cannot grant "bob" to "readers": it would be in itself
        REVOKE SELECT ON t FROM bob;
        -> REVOKE
        -> notice: "bob" still has SELECT on "t": as a member of "readers" it was granted, as a member of "staff" it was granted on schema "public"
        "#,
    )
    .await;
    assert_eq!(bob.ok("SELECT count(*) FROM t").await, "2");
    db.ok("REVOKE readers FROM staff").await;
    assert_eq!(bob.ok("SELECT count(*) FROM t").await, "2");
    db.ok("REVOKE SELECT ON SCHEMA public FROM staff").await;
    assert!(bob.err("SELECT count(*) FROM t").await.contains("permission denied"));
    // Who is a member of an administrator is one.
    db.script("CREATE ROLE bosses ADMIN;\nGRANT bosses TO staff;").await;
    assert_eq!(bob.ok("SELECT count(*) FROM secret").await, "1");
    db.ok("DROP ROLE staff").await;
    assert!(bob.err("SELECT count(*) FROM secret").await.contains("permission denied"));
}

/// Everybody sees what is his to know of users and rights.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sees_which_rights() {
    let db = home().await;
    let bob = db.user("bob");
    db.script(
        r#"
        CREATE ROLE readers;
        CREATE USER svc;
        GRANT readers TO bob;
        GRANT SELECT ON t TO readers;
        GRANT INSERT ON secret TO eve;
        GRANT CREATE ON SCHEMA zoo TO bob;
        SELECT name, kind, is_admin, member_of, has_password FROM system.users ORDER BY name;
        -> bob|user|false|readers|true
        -> eve|user|false||true
        -> readers|role|false||false
        -> svc|user|false||false
        SELECT grantee, privilege, object_kind, object_schema, object_name FROM system.grants;
        -> eve|INSERT|table|public|secret
        -> readers|SELECT|table|public|t
        -> bob|CREATE|schema|zoo|NULL
        "#,
    )
    .await;
    bob.script(
        r#"
        CREATE TABLE zoo.bear AS SELECT 1 AS a;
        GRANT SELECT ON zoo.bear TO eve;
        SELECT name FROM system.users ORDER BY name;
        -> bob
        -> readers
        SELECT grantee, privilege, object_schema, object_name FROM system.grants;
        -> readers|SELECT|public|t
        -> bob|CREATE|zoo|NULL
        -> bob|OWNER|zoo|bear
        -> eve|SELECT|zoo|bear
        SELECT * FROM system.tokens;
        "#,
    )
    .await;
}
