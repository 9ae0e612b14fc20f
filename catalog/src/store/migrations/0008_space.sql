-- Processes at work in the derived store, and the room that each has set aside for what is no entry yet, or no more.
CREATE TABLE cache_leases (
    holder     TEXT   NOT NULL PRIMARY KEY,
    reserved   BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

-- Entries that were dropped and why, the newest of them, and what it took when one was made again.
CREATE TABLE cache_evictions (
    id             INTEGER NOT NULL PRIMARY KEY,
    entry_key      BLOB    NOT NULL,
    program        BLOB    NOT NULL,
    description    TEXT    NOT NULL,
    entry_bytes    BIGINT  NOT NULL,
    cost_us        BIGINT  NOT NULL,
    uses           BIGINT  NOT NULL,
    reason         TEXT    NOT NULL,
    evicted_at     BIGINT  NOT NULL,
    remade_at      BIGINT,
    remade_cost_us BIGINT
);
CREATE INDEX cache_evictions_by_key ON cache_evictions (entry_key);

-- What all evictions ever came to.
ALTER TABLE cache_state ADD COLUMN evicted BIGINT NOT NULL DEFAULT 0;
ALTER TABLE cache_state ADD COLUMN evicted_bytes BIGINT NOT NULL DEFAULT 0;
