-- Tables may be of the kinds materialized_view and derived, which earlier builds cannot read. The extents of a derived table are
-- those of its inputs, one list after the other, or those of its own copy of the rows.
UPDATE catalog_state SET version = version;
