-- Files of purged results that nobody has seen deleted yet.
CREATE TABLE purged_parts (
    location  TEXT   NOT NULL PRIMARY KEY,
    bytes     BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    checksum  BLOB   NOT NULL
);

-- Derived tables that are gone: results that were made from their copies are found by them. sources is a JSON list.
CREATE TABLE dropped_derived (
    id      TEXT NOT NULL PRIMARY KEY,
    sources TEXT NOT NULL
);
