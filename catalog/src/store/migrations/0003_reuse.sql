-- What statements reused: none, exact or partial; how many entries; what that saved.
ALTER TABLE queries ADD COLUMN reuse TEXT;
ALTER TABLE queries ADD COLUMN entries_used BIGINT;
ALTER TABLE queries ADD COLUMN saved_ms DOUBLE PRECISION;
