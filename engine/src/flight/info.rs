//! What the server can do, for drivers that ask before they try.

use arrow_flight::error::Result;
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    SqlInfo, SqlNullOrdering, SqlSupportedCaseSensitivity, SqlSupportedTransaction, SqlSupportsConvert,
};

/// All that is told.
pub(super) fn all() -> Result<SqlInfoData> {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Nectarine");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, arrow::ARROW_VERSION);
    info.append(SqlInfo::FlightSqlServerReadOnly, false);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    info.append(SqlInfo::FlightSqlServerCancel, true);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    info.append(SqlInfo::FlightSqlServerStatementTimeout, 0_i32);
    info.append(SqlInfo::FlightSqlServerTransactionTimeout, 0_i32);
    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, true);
    info.append(SqlInfo::SqlDdlTable, true);
    info.append(SqlInfo::SqlIdentifierCase, SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(
        SqlInfo::SqlQuotedIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityCaseInsensitive as i32,
    );
    info.append(SqlInfo::SqlAllTablesAreSelectable, true);
    info.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedHigh as i32);
    info.append(SqlInfo::SqlSearchStringEscape, "\\");
    info.append(SqlInfo::SqlExtraNameCharacters, "");
    info.append(SqlInfo::SqlSupportsColumnAliasing, true);
    info.append(SqlInfo::SqlNullPlusNullIsNull, true);
    info.append(SqlInfo::SqlSupportsTableCorrelationNames, true);
    info.append(SqlInfo::SqlSupportsDifferentTableCorrelationNames, false);
    info.append(SqlInfo::SqlSupportsExpressionsInOrderBy, true);
    info.append(SqlInfo::SqlSupportsOrderByUnrelated, true);
    info.append(SqlInfo::SqlSupportsLikeEscapeClause, true);
    info.append(SqlInfo::SqlSupportsNonNullableColumns, true);
    info.append(SqlInfo::SqlSupportsIntegrityEnhancementFacility, false);
    info.append(SqlInfo::SqlSchemaTerm, "schema");
    info.append(SqlInfo::SqlCatalogTerm, "database");
    info.append(SqlInfo::SqlCatalogAtStart, true);
    info.append(SqlInfo::SqlSelectForUpdateSupported, false);
    info.append(SqlInfo::SqlStoredProceduresSupported, false);
    info.append(SqlInfo::SqlCorrelatedSubqueriesSupported, true);
    info.append(SqlInfo::SqlTransactionsSupported, false);
    info.append(SqlInfo::SqlDataDefinitionCausesTransactionCommit, false);
    info.append(SqlInfo::SqlDataDefinitionsInTransactionsIgnored, false);
    info.append(SqlInfo::SqlBatchUpdatesSupported, true);
    info.append(SqlInfo::SqlSavepointsSupported, false);
    info.append(SqlInfo::SqlNamedParametersSupported, true);
    info.append(SqlInfo::SqlLocatorsUpdateCopy, false);
    info.append(SqlInfo::SqlStoredFunctionsUsingCallSyntaxSupported, false);
    let no_keywords: &[&str] = &[];
    for list in [
        SqlInfo::SqlKeywords,
        SqlInfo::SqlNumericFunctions,
        SqlInfo::SqlStringFunctions,
        SqlInfo::SqlSystemFunctions,
        SqlInfo::SqlDatetimeFunctions,
    ] {
        info.append(list, no_keywords);
    }
    // What may be CAST to what, among the types that drivers ask about most.
    let numbers = [
        SqlSupportsConvert::SqlConvertBigint,
        SqlSupportsConvert::SqlConvertInteger,
        SqlSupportsConvert::SqlConvertSmallint,
        SqlSupportsConvert::SqlConvertTinyint,
        SqlSupportsConvert::SqlConvertDecimal,
        SqlSupportsConvert::SqlConvertReal,
        SqlSupportsConvert::SqlConvertVarchar,
    ];
    let codes = |kinds: &[SqlSupportsConvert]| kinds.iter().map(|kind| *kind as i32).collect::<Vec<i32>>();
    let converts: std::collections::BTreeMap<i32, Vec<i32>> =
        numbers.iter().map(|from| (*from as i32, codes(&numbers))).collect();
    info.append(SqlInfo::SqlSupportsConvert, converts);
    info.build()
}
