//! The types of SQL, as drivers list them.

use arrow_flight::error::Result;
use arrow_flight::sql::metadata::{XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder};
use arrow_flight::sql::{Nullable, Searchable, XdbcDataType, XdbcDatetimeSubcode};

/// Name, type, size in digits or characters, text around a literal.
type Line = (&'static str, XdbcDataType, Option<i32>, Option<(&'static str, &'static str)>);

const TEXT: Option<(&str, &str)> = Some(("'", "'"));

const ALL: [Line; 15] = [
    ("BOOLEAN", XdbcDataType::XdbcBit, Some(1), None),
    ("TINYINT", XdbcDataType::XdbcTinyint, Some(3), None),
    ("SMALLINT", XdbcDataType::XdbcSmallint, Some(5), None),
    ("INT", XdbcDataType::XdbcInteger, Some(10), None),
    ("BIGINT", XdbcDataType::XdbcBigint, Some(19), None),
    ("REAL", XdbcDataType::XdbcReal, Some(7), None),
    ("DOUBLE", XdbcDataType::XdbcDouble, Some(15), None),
    ("DECIMAL", XdbcDataType::XdbcDecimal, Some(76), None),
    ("CHAR", XdbcDataType::XdbcChar, None, TEXT),
    ("VARCHAR", XdbcDataType::XdbcVarchar, None, TEXT),
    ("BYTEA", XdbcDataType::XdbcVarbinary, None, Some(("X'", "'"))),
    ("DATE", XdbcDataType::XdbcDate, Some(10), Some(("DATE '", "'"))),
    ("TIME", XdbcDataType::XdbcTime, Some(18), Some(("TIME '", "'"))),
    ("TIMESTAMP", XdbcDataType::XdbcTimestamp, Some(29), Some(("TIMESTAMP '", "'"))),
    ("INTERVAL", XdbcDataType::XdbcInterval, None, Some(("INTERVAL '", "'"))),
];

/// All types.
pub(super) fn all() -> Result<XdbcTypeInfoData> {
    let mut types = XdbcTypeInfoDataBuilder::new();
    for (name, data_type, size, literal) in ALL {
        let is_number = matches!(
            data_type,
            XdbcDataType::XdbcTinyint
                | XdbcDataType::XdbcSmallint
                | XdbcDataType::XdbcInteger
                | XdbcDataType::XdbcBigint
                | XdbcDataType::XdbcReal
                | XdbcDataType::XdbcDouble
                | XdbcDataType::XdbcDecimal
        );
        let is_decimal = data_type == XdbcDataType::XdbcDecimal;
        types.append(XdbcTypeInfo {
            type_name: name.to_string(),
            data_type,
            column_size: size,
            literal_prefix: literal.map(|(before, _)| before.to_string()),
            literal_suffix: literal.map(|(_, after)| after.to_string()),
            create_params: is_decimal.then(|| vec!["precision".to_string(), "scale".to_string()]),
            nullable: Nullable::NullabilityNullable,
            case_sensitive: literal == TEXT,
            searchable: Searchable::Full,
            unsigned_attribute: is_number.then_some(false),
            fixed_prec_scale: false,
            auto_increment: is_number.then_some(false),
            local_type_name: Some(name.to_string()),
            minimum_scale: is_decimal.then_some(0),
            maximum_scale: is_decimal.then_some(76),
            sql_data_type: data_type,
            datetime_subcode: match data_type {
                // Year and date have the same code.
                XdbcDataType::XdbcDate => Some(XdbcDatetimeSubcode::XdbcSubcodeYear),
                XdbcDataType::XdbcTime => Some(XdbcDatetimeSubcode::XdbcSubcodeTime),
                XdbcDataType::XdbcTimestamp => Some(XdbcDatetimeSubcode::XdbcSubcodeTimestamp),
                _ => None,
            },
            num_prec_radix: is_number.then_some(10),
            interval_precision: None,
        });
    }
    types.build()
}
