-- What each statement asked the view cache for: a JSON list, in the statement's own row so that it goes with it.
ALTER TABLE queries ADD COLUMN lookups TEXT;
-- The youngest entries over a list of extents are found without sorting all of them.
DROP INDEX cache_entry_inputs_by_input;
CREATE INDEX cache_entry_inputs_by_input ON cache_entry_inputs (input, entry_id);
