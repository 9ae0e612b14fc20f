-- Format 2 of a home's metadata: the view cache.
-- PostgreSQL reads the same text once BLOB is spelled BYTEA and the type of id BIGINT.

-- One row. version grows by one inside every transaction that adds, drops or counts entries. Drops of forgotten_to and
-- before are no longer listed: a reader that saw less has to read everything.
CREATE TABLE cache_state (
    only_row     BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    version      BIGINT NOT NULL,
    forgotten_to BIGINT NOT NULL
);
INSERT INTO cache_state (only_row, version, forgotten_to) VALUES (1, 1, 0);

-- Canonical plans, once each; they stay when their entries go.
CREATE TABLE cache_programs (
    program     BLOB NOT NULL PRIMARY KEY,
    encoding    BLOB NOT NULL,
    description TEXT NOT NULL
);

-- Narrow on purpose, opening a home reads all of it: summary is packed, description is NULL where it is the program's.
-- version is that of the last transaction that touched the row. id is in the order of adding and names the row in the
-- tables below: digests there would scatter what belongs together.
CREATE TABLE cache_entries (
    id          INTEGER NOT NULL PRIMARY KEY,
    entry_key   BLOB    NOT NULL UNIQUE,
    version     BIGINT  NOT NULL,
    summary     BLOB    NOT NULL,
    description TEXT
);
CREATE INDEX cache_entries_by_version ON cache_entries (version);

-- The files of an entry, in order.
CREATE TABLE cache_parts (
    entry_id   BIGINT NOT NULL REFERENCES cache_entries (id) ON DELETE CASCADE,
    position   BIGINT NOT NULL,
    location   TEXT   NOT NULL,
    file_bytes BIGINT NOT NULL,
    row_count  BIGINT NOT NULL,
    checksum   BLOB   NOT NULL,
    PRIMARY KEY (entry_id, position)
);
CREATE INDEX cache_parts_by_location ON cache_parts (location);

-- Lists of extents' fingerprints, 32 bytes each, once per list: all entries over one snapshot of a table share them.
CREATE TABLE cache_inputs (
    input   BLOB NOT NULL PRIMARY KEY,
    extents BLOB NOT NULL
);

-- The lists that an entry was computed from, in order.
CREATE TABLE cache_entry_inputs (
    entry_id  BIGINT NOT NULL REFERENCES cache_entries (id) ON DELETE CASCADE,
    position  BIGINT NOT NULL,
    input     BLOB   NOT NULL,
    PRIMARY KEY (entry_id, position)
);
CREATE INDEX cache_entry_inputs_by_input ON cache_entry_inputs (input);

-- Entries that were dropped and are not back; the newest of them.
CREATE TABLE cache_dropped (
    entry_key BLOB   NOT NULL PRIMARY KEY,
    version   BIGINT NOT NULL
);
CREATE INDEX cache_dropped_by_version ON cache_dropped (version);

-- How often programs were looked up, whether or not they have entries; the programs looked up last.
CREATE TABLE cache_lookups (
    program        BLOB   NOT NULL PRIMARY KEY,
    lookups        BIGINT NOT NULL,
    last_lookup_at BIGINT NOT NULL
);
CREATE INDEX cache_lookups_by_age ON cache_lookups (last_lookup_at, program);
