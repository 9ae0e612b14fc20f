//! Clauses that DataFusion refuses by a bare word, or by none: told as those are that it forgets, with what to do instead.

use std::ops::ControlFlow;

use sqlparser::ast::{ColumnDef, DataType, Query, Select, SelectItem, Set, Spanned, Statement, TableFactor};

use super::{Found, refuse_if};
use crate::sql::inner_values::has_inner_values;
use crate::sql::keyword::TABLE_LIKE;
use crate::sql::queries_in_values::holds_queries;
use crate::sql::settings::names_schema;

/// values.rs, `sql_values_to_plan`: they would be cast to the table's columns. Fewer are said in other words by now.
pub(super) fn statement(statement: &Statement) -> Found {
    // statement.rs, `set_statement_to_plan`.
    if let Statement::Set(Set::SingleAssignment { variable, values, .. }) = statement
        && names_schema(variable)
        && values.len() > 1
    {
        let hint = "USE names the one schema that names without a schema are looked for in";
        return refuse_if(true, format!("{variable} of several schemas"), variable.span(), hint);
    }
    // statement.rs, `Like not supported`; where brackets are around it, it is a column of an unknown type.
    if let Statement::CreateTable(create) = statement {
        let is_like = create.like.is_some() || create.columns.iter().any(is_called_like);
        refuse_if(is_like, "LIKE in CREATE TABLE", create.name.span(), TABLE_LIKE)?;
    }
    let source = match statement {
        Statement::Insert(insert) => insert.source.as_deref(),
        Statement::CreateTable(create) if !create.columns.is_empty() => create.query.as_deref(),
        _ => None,
    };
    let Some(source) = source else { return ControlFlow::Continue(()) };
    refuse_if(
        has_inner_values(source),
        "VALUES of more than 1000 rows inside of the query of an INSERT",
        source.span(),
        "put them into a table first",
    )
}

fn is_called_like(column: &ColumnDef) -> bool {
    let name = &column.name;
    name.quote_style.is_none()
        && name.value.eq_ignore_ascii_case("like")
        && matches!(column.data_type, DataType::Custom(..))
}

/// query.rs, `query_to_plan`. A plain FETCH is a LIMIT by now, and one plain row with subqueries is a SELECT.
pub(super) fn query(query: &Query) -> Found {
    refuse_if(
        holds_queries(&query.body),
        "subqueries among VALUES of several rows, or beside other numbers than integers",
        query.span(),
        "use SELECT .. UNION ALL SELECT ..",
    )?;
    let Some(fetch) = &query.fetch else { return ControlFlow::Continue(()) };
    let near = query.span();
    refuse_if(fetch.with_ties, "FETCH .. WITH TIES", near, "use QUALIFY rank() OVER (ORDER BY ..) <= n")?;
    refuse_if(fetch.percent, "FETCH .. PERCENT", near, "use LIMIT")?;
    refuse_if(true, "FETCH beside LIMIT", near, "use one of them")
}

/// select.rs, `select_to_plan`.
pub(super) fn select(select: &Select) -> Found {
    let near = select.span();
    refuse_if(select.top.is_some(), "TOP", near, "use LIMIT")?;
    refuse_if(!select.cluster_by.is_empty(), "CLUSTER BY", near, "use ORDER BY")?;
    refuse_if(
        !select.distribute_by.is_empty(),
        "DISTRIBUTE BY",
        near,
        "rows are dealt out by themselves: leave it out",
    )?;
    refuse_if(!select.sort_by.is_empty(), "SORT BY", near, "use ORDER BY")?;
    refuse_if(
        !select.lateral_views.is_empty(),
        "LATERAL VIEW",
        near,
        "use CROSS JOIN UNNEST(..), or unnest(..) in the select list",
    )?;
    for item in &select.projection {
        if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item {
            let near = options.wildcard_token.0.span;
            refuse_if(options.opt_rename.is_some(), "* RENAME", near, "name the columns: SELECT a AS b, ..")?;
        }
    }
    ControlFlow::Continue(())
}

/// relation/mod.rs, `create_default_relation`.
pub(super) fn table(table: &TableFactor) -> Found {
    let near = table.span();
    match table {
        TableFactor::Pivot { .. } => {
            refuse_if(true, "PIVOT", near, "use an aggregate for each column: sum(v) FILTER (WHERE k = 1) AS k_1, ..")
        }
        TableFactor::Unpivot { .. } => {
            refuse_if(true, "UNPIVOT", near, "use UNION ALL of SELECT 'a' AS name, a AS value FROM t, ..")
        }
        TableFactor::MatchRecognize { .. } => refuse_if(true, "MATCH_RECOGNIZE", near, "use window functions"),
        TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => {
            refuse_if(true, "tables made of JSON", near, "read a JSON file: SELECT .. FROM 'file.json'")
        }
        TableFactor::XmlTable { .. } => refuse_if(true, "XMLTABLE", near, None),
        TableFactor::SemanticView { .. } => refuse_if(true, "SEMANTIC_VIEW", near, "use a view"),
        _ => ControlFlow::Continue(()),
    }
}
