-- Format 1 of a home's metadata.
-- PostgreSQL reads the same text once BLOB is spelled BYTEA.

-- One row. Grows by one inside every transaction that changes tables, extents, functions or schemas.
CREATE TABLE catalog_state (
    only_row BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    version  BIGINT NOT NULL
);
INSERT INTO catalog_state (only_row, version) VALUES (1, 1);

CREATE TABLE schemas (
    name TEXT NOT NULL PRIMARY KEY
);
INSERT INTO schemas (name) VALUES ('public');

-- arrow_schema is an Arrow IPC schema; kind, column_defaults and the keys are JSON.
CREATE TABLE tables (
    id              TEXT   NOT NULL PRIMARY KEY,
    schema_name     TEXT   NOT NULL REFERENCES schemas (name),
    table_name      TEXT   NOT NULL,
    arrow_schema    BLOB   NOT NULL,
    kind            TEXT   NOT NULL,
    column_defaults TEXT   NOT NULL,
    primary_keys    TEXT   NOT NULL,
    unique_keys     TEXT   NOT NULL,
    definition      TEXT,
    created_at      BIGINT NOT NULL,
    UNIQUE (schema_name, table_name)
);

-- A whole file has byte_start 0 and no byte_end. partition_values is a JSON list.
CREATE TABLE extents (
    table_id         TEXT   NOT NULL REFERENCES tables (id) ON DELETE CASCADE,
    position         BIGINT NOT NULL,
    location         TEXT   NOT NULL,
    byte_start       BIGINT NOT NULL,
    byte_end         BIGINT,
    file_bytes       BIGINT NOT NULL,
    modified_at      BIGINT NOT NULL,
    etag             TEXT,
    fingerprint      BLOB   NOT NULL,
    row_count        BIGINT,
    stats            BLOB   NOT NULL,
    partition_values TEXT   NOT NULL,
    first_seen_at    BIGINT NOT NULL,
    PRIMARY KEY (table_id, position)
);

-- Files of external locations as they were last seen; the columns of an extent, and how the file is recognised.
CREATE TABLE known_files (
    location_key     TEXT   NOT NULL,
    position         BIGINT NOT NULL,
    location         TEXT   NOT NULL,
    byte_start       BIGINT NOT NULL,
    byte_end         BIGINT,
    file_bytes       BIGINT NOT NULL,
    modified_at      BIGINT NOT NULL,
    etag             TEXT,
    fingerprint      BLOB   NOT NULL,
    row_count        BIGINT,
    stats            BLOB   NOT NULL,
    partition_values TEXT   NOT NULL,
    first_seen_at    BIGINT NOT NULL,
    identity         BLOB   NOT NULL,
    racy             BIGINT NOT NULL,
    PRIMARY KEY (location_key, location, byte_start)
);

CREATE TABLE functions (
    name       TEXT   NOT NULL PRIMARY KEY,
    definition TEXT   NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE queries (
    query_id      TEXT   NOT NULL PRIMARY KEY,
    started_at    BIGINT NOT NULL,
    user_name     TEXT   NOT NULL,
    sql_text      TEXT   NOT NULL,
    state         TEXT   NOT NULL,
    error         TEXT,
    elapsed_ms    DOUBLE PRECISION,
    cpu_ms        DOUBLE PRECISION,
    rows_returned BIGINT,
    bytes_scanned BIGINT,
    planning_ms   DOUBLE PRECISION
);
CREATE INDEX queries_by_age ON queries (started_at, query_id);
