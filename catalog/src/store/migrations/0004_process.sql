-- Format 2: which process runs a statement, so that those of processes that died can be told from those that run.
ALTER TABLE queries ADD COLUMN process TEXT;
