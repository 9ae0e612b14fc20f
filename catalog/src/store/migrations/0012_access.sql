-- Users, roles and rights. A table without an owner belongs to whoever has the home.
-- A table's rights go with it, a schema's with the schema.
ALTER TABLE tables ADD COLUMN owner TEXT;

CREATE TABLE roles (
    name       TEXT    NOT NULL PRIMARY KEY,
    password   TEXT,
    is_admin   BOOLEAN NOT NULL,
    created_at BIGINT  NOT NULL
);
CREATE TABLE role_members (
    role   TEXT NOT NULL,
    member TEXT NOT NULL,
    PRIMARY KEY (role, member)
);
CREATE TABLE grants (
    grantee     TEXT NOT NULL,
    privilege   TEXT NOT NULL,
    table_id    TEXT REFERENCES tables (id) ON DELETE CASCADE,
    schema_name TEXT REFERENCES schemas (name) ON DELETE CASCADE
);
CREATE INDEX grants_by_table ON grants (table_id);
