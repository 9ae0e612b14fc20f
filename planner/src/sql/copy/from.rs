//! `COPY table [(columns)] FROM 'source' | STDIN ..`.

use datafusion::common::DataFusionError;
use datafusion::sql::parser::DFParser;
use sqlparser::keywords::Keyword;
use sqlparser::parser::IsOptional;

use super::{Direction, Options, STANDARD_INPUT, place};
use crate::sql::statement::CopyFrom;

/// Reads the statement.
pub(in crate::sql) fn copy_from(parser: &mut DFParser<'_>) -> Result<CopyFrom, DataFusionError> {
    let parser = &mut parser.parser;
    parser.expect_keyword(Keyword::COPY)?;
    let table = parser.parse_object_name(false)?;
    let columns = parser.parse_parenthesized_column_list(IsOptional::Optional, false)?;
    parser.expect_keyword(Keyword::FROM)?;
    let source = place(parser, ("stdin", STANDARD_INPUT), "the file to copy from as a quoted string, or STDIN")?;
    let mut options = Options::new(Direction::From);
    while options.clause(parser)? {}
    Ok(CopyFrom { table, columns, source, format: options.format, options: options.pairs })
}
