-- Scheduled reports. spec is JSON; scheduled times up to scheduled_to have their runs, or will never have one.
-- PostgreSQL reads the same text once BLOB is spelled BYTEA.
CREATE TABLE reports (
    id           TEXT    NOT NULL PRIMARY KEY,
    name         TEXT    NOT NULL UNIQUE,
    spec         TEXT    NOT NULL,
    owner        TEXT,
    paused       BOOLEAN NOT NULL,
    created_at   BIGINT  NOT NULL,
    scheduled_to BIGINT  NOT NULL
);

-- One row for each scheduled time. attempt grows whenever somebody begins it; all changes name the attempt they are about.
CREATE TABLE report_runs (
    report_id     TEXT   NOT NULL REFERENCES reports (id) ON DELETE CASCADE,
    scheduled_for BIGINT NOT NULL,
    state         TEXT   NOT NULL,
    attempt       BIGINT NOT NULL,
    failures      BIGINT NOT NULL,
    not_before    BIGINT NOT NULL,
    holder        TEXT,
    lease_until   BIGINT,
    started_at    BIGINT,
    elapsed_ms    DOUBLE PRECISION,
    row_count     BIGINT,
    output        TEXT,
    digest        BLOB,
    reused        TEXT,
    saved_ms      DOUBLE PRECISION,
    error         TEXT,
    PRIMARY KEY (report_id, scheduled_for)
);
CREATE INDEX report_runs_by_state ON report_runs (state, scheduled_for);
