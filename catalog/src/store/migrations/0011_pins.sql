-- Results that are never evicted to make room. subject is the key of an entry, the source of a query, or the id of a view; the
-- entry that is meant need not be there at the moment, entry_bytes is what it took when it was.
-- PostgreSQL reads the same text once BLOB is spelled BYTEA.
CREATE TABLE pins (
    kind        TEXT   NOT NULL,
    subject     BLOB   NOT NULL,
    table_id    TEXT   REFERENCES tables (id) ON DELETE CASCADE,
    what        TEXT   NOT NULL,
    program     BLOB   NOT NULL,
    entry_key   BLOB   NOT NULL,
    entry_bytes BIGINT NOT NULL,
    pinned_at   BIGINT NOT NULL,
    PRIMARY KEY (kind, subject)
);
CREATE INDEX pins_by_table ON pins (table_id);
