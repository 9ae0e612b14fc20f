-- Which rows the programs of entries give, and what their columns are: so that a program finds those that have its rows in other
-- columns. family says which rows, columns holds 32 bytes for each column, types their types as in tables. The youngest stay.
CREATE TABLE cache_relatives (
    id      INTEGER NOT NULL PRIMARY KEY,
    program BLOB    NOT NULL UNIQUE,
    family  BLOB    NOT NULL,
    columns BLOB    NOT NULL,
    types   BLOB    NOT NULL
);
