-- How many extents a statement was about, and how many of them it did not have to read.
ALTER TABLE queries ADD COLUMN extents_total BIGINT;
ALTER TABLE queries ADD COLUMN extents_reused BIGINT;
