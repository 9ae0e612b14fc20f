-- Programs that ran, for ever, and where results come from.
-- PostgreSQL reads the same text once BLOB is spelled BYTEA and the type of id BIGINT.

-- Grows by one with every purge: who began before one may not publish after it.
ALTER TABLE cache_state ADD COLUMN purges BIGINT NOT NULL DEFAULT 0;

-- How encoding lies there: 0 as it is, 1 packed.
ALTER TABLE cache_programs ADD COLUMN packing BIGINT NOT NULL DEFAULT 0;

-- What several programs need: descriptions of tables, bodies of views and functions; once each, packed.
CREATE TABLE program_texts (
    id      INTEGER NOT NULL PRIMARY KEY,
    digest  BLOB    NOT NULL UNIQUE,
    content BLOB    NOT NULL
);

-- A whole statement that ran: its program over some tables. content is packed: the SQL, and what else running it again takes.
CREATE TABLE program_sources (
    id           INTEGER NOT NULL PRIMARY KEY,
    source       BLOB    NOT NULL UNIQUE,
    program      BLOB    NOT NULL,
    content      BLOB    NOT NULL,
    first_run_at BIGINT  NOT NULL,
    last_run_at  BIGINT  NOT NULL,
    runs         BIGINT  NOT NULL
);
CREATE INDEX program_sources_by_program ON program_sources (program);

-- The statement that made an entry.
CREATE TABLE cache_entry_sources (
    entry_id  BIGINT NOT NULL PRIMARY KEY REFERENCES cache_entries (id) ON DELETE CASCADE,
    source_id BIGINT NOT NULL
);

-- Entries that an entry was made from, by their keys: they may be gone.
CREATE TABLE cache_entry_origins (
    entry_id BIGINT NOT NULL REFERENCES cache_entries (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    origin   BLOB   NOT NULL,
    PRIMARY KEY (entry_id, position)
);
CREATE INDEX cache_entry_origins_by_origin ON cache_entry_origins (origin, entry_id);

-- Which table an input was; NULL of entries that are older than this. reused has a bit for each extent that came by way of
-- another entry, NULL if none did.
ALTER TABLE cache_entry_inputs ADD COLUMN table_name TEXT;
ALTER TABLE cache_entry_inputs ADD COLUMN table_id TEXT;
ALTER TABLE cache_entry_inputs ADD COLUMN reused BLOB;
CREATE INDEX cache_entry_inputs_by_table_name ON cache_entry_inputs (table_name, entry_id);
CREATE INDEX cache_entry_inputs_by_table_id ON cache_entry_inputs (table_id, entry_id);

-- Where the extents of lists are. A list is cut into groups by its content, so that a list that grew at its end, or lost its
-- beginning, shares most groups with what it was: a place is written once, however many lists it is in.
CREATE TABLE extent_groups (
    id     INTEGER NOT NULL PRIMARY KEY,
    digest BLOB    NOT NULL UNIQUE
);
CREATE TABLE extent_places (
    group_id   BIGINT NOT NULL REFERENCES extent_groups (id) ON DELETE CASCADE,
    position   BIGINT NOT NULL,
    location   TEXT   NOT NULL,
    byte_start BIGINT NOT NULL,
    byte_end   BIGINT,
    PRIMARY KEY (group_id, position)
);
CREATE INDEX extent_places_by_location ON extent_places (location, group_id);
CREATE TABLE cache_input_groups (
    input    BLOB   NOT NULL REFERENCES cache_inputs (input) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    group_id BIGINT NOT NULL,
    PRIMARY KEY (input, position)
);
CREATE INDEX cache_input_groups_by_group ON cache_input_groups (group_id, input);
