-- Schemas have owners too; a schema without one belongs to whoever has the home.
ALTER TABLE schemas ADD COLUMN owner TEXT;

-- The user who was logged in; none of statements of whoever has the home, whatever they call themselves.
ALTER TABLE queries ADD COLUMN login TEXT;

-- What services log in with. Only digests are kept.
CREATE TABLE tokens (
    user_name  TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    digest     TEXT   NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (user_name, name)
);
