-- Jobs that somebody left to the servers of a home. spec and result are JSON. Every change names the state, the attempt and the number
-- of finished statements that it is about. PostgreSQL reads the same text.
CREATE TABLE jobs (
    id              TEXT    NOT NULL PRIMARY KEY,
    spec            TEXT    NOT NULL,
    owner           TEXT,
    submitted_at    BIGINT  NOT NULL,
    state           TEXT    NOT NULL,
    attempt         BIGINT  NOT NULL,
    tries           BIGINT  NOT NULL,
    statements_done BIGINT  NOT NULL,
    begun           BOOLEAN NOT NULL,
    holder          TEXT,
    lease_until     BIGINT,
    started_at      BIGINT,
    ended_at        BIGINT,
    result          TEXT,
    error           TEXT
);
CREATE INDEX jobs_by_state ON jobs (state, submitted_at, id);
