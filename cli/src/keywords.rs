//! The words of SQL that are highlighted and completed.

/// In order, so that it can be searched.
#[rustfmt::skip]
pub(crate) const KEYWORDS: &[&str] = &[
    "ALL", "ALTER", "ANALYZE", "AND", "ANTI", "ANY", "ARRAY", "ARROW", "AS", "ASC", "BETWEEN", "BIGINT", "BOOLEAN",
    "BY", "CANCEL", "CASCADE", "CASE", "CAST", "COLUMNS", "COPY", "CREATE", "CROSS", "CSV", "CUBE", "CURRENT", "CURRENT_DATE",
    "CURRENT_TIMESTAMP", "DATE", "DEALLOCATE", "DECIMAL", "DELETE", "DERIVED", "DESC", "DESCRIBE", "DISTINCT", "DOUBLE",
    "DROP", "ELSE", "END", "ESCAPE", "EXCEPT", "EXECUTE", "EXISTS", "EXPLAIN", "EXTERNAL", "EXTRACT", "FALSE", "FILTER",
    "FIRST", "FLOAT", "FOLLOWING", "FOR", "FROM", "FULL", "FUNCTION", "FUNCTIONS", "GROUP", "GROUPING", "HAVING", "IF",
    "ILIKE", "IN", "INNER", "INSERT", "INT", "INTEGER", "INTERSECT", "INTERVAL", "INTO", "IS", "JOB", "JOBS", "JOIN", "JSON", "LAST",
    "LATERAL", "LEFT", "LIKE", "LIMIT", "LOCATION", "MATERIALIZED", "NATURAL", "NOT", "NULL", "NULLS", "NUMERIC",
    "OFFSET", "ON", "OPTIONS", "OR", "ORDER", "OUTER", "OVER", "PARQUET", "PARTITION", "PARTITIONED", "PIN", "PRECEDING",
    "PREPARE", "PRIMARY", "PROVENANCE", "PURGE", "QUALIFY", "RANGE", "REAL", "RECURSIVE", "REFRESH", "RENAME",
    "REPLACE", "REPORT", "REPORTS", "RESET", "RESTRICT", "RETURN", "RETURNS", "REUSE", "RIGHT", "ROLLUP", "ROW", "ROWS", "SCHEDULE", "SCHEMA", "SELECT",
    "SEMI", "SET", "SETS", "SHOW", "SIMILAR", "SMALLINT", "STORED", "SUBMIT", "TABLE", "TABLES", "TEXT", "THEN", "TIME",
    "TIMESTAMP", "TO", "TRUE", "UNBOUNDED", "UNION", "UNNEST", "UNPIN", "USE", "USING", "VALUES", "VARCHAR", "VERBOSE", "VERIFY",
    "VIEW", "WHEN", "WHERE", "WINDOW", "WITH", "WITHIN", "ZONE",
];

/// Whether a word is one of them.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.binary_search_by(|keyword| keyword.bytes().cmp(word.bytes().map(|byte| byte.to_ascii_uppercase()))).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_searched() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_keyword("select") && is_keyword("Zone") && !is_keyword("clicks") && !is_keyword(""));
    }
}
