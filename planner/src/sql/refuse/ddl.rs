//! Clauses of statements other than queries that are forgotten.

use std::ops::ControlFlow;

use sqlparser::ast::{
    self, ArgMode, ColumnDef, ColumnOption, CreateFunction, CreateFunctionBody, CreateView, DropBehavior, DropFunction,
    Expr, FunctionCalledOnNull, FunctionSecurity, ObjectType, SchemaName, Spanned, Statement, Value,
};
use sqlparser::tokenizer::Span;

use super::expression::data_type;
use super::{Found, refuse_if};

/// statement.rs, `sql_statement_to_plan_with_context_impl`, arm by arm.
pub(super) fn statement(statement: &Statement) -> Found {
    match statement {
        Statement::CreateTable(create) => columns(&create.columns),
        Statement::CreateView(create) => create_view(create),
        Statement::CreateFunction(create) => create_function(create),
        Statement::DropFunction(drop) => drop_function(drop),
        // `Statement::CreateSchema { schema_name, if_not_exists, .. }`
        Statement::CreateSchema { schema_name, if_not_exists: _, with, options, default_collate_spec, clone } => {
            let near = match schema_name {
                SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _) => name.span(),
                SchemaName::UnnamedAuthorization(name) => name.span,
            };
            refuse_if(
                !matches!(schema_name, SchemaName::Simple(_)),
                "AUTHORIZATION",
                Span::empty(),
                "schemas have no owners: leave it out",
            )?;
            refuse_if(with.is_some(), "WITH in CREATE SCHEMA", near, None)?;
            refuse_if(options.is_some(), "OPTIONS in CREATE SCHEMA", near, None)?;
            refuse_if(default_collate_spec.is_some(), "DEFAULT COLLATE", near, None)?;
            refuse_if(clone.is_some(), "CLONE", near, None)
        }
        // `Statement::CreateDatabase { db_name, if_not_exists, .. }`: one of some twenty options is behind the dots.
        Statement::CreateDatabase { db_name, if_not_exists, .. } => {
            let plain = format!("CREATE DATABASE {}{db_name}", if *if_not_exists { "IF NOT EXISTS " } else { "" });
            refuse_if(statement.to_string() != plain, "option in CREATE DATABASE", db_name.span(), None)
        }
        // `restrict: _, purge: _, temporary: _`. RESTRICT is the default and PURGE is what happens. Tables and views are
        // dropped by the engine itself, unless they are in a statement that is only explained or prepared.
        Statement::Drop { object_type, names, cascade, temporary, .. } => {
            let near = names.first().map_or(Span::empty(), Spanned::span);
            refuse_if(*temporary, "TEMPORARY in DROP", Span::empty(), "it would drop a durable table: leave it out")?;
            let cascades = *cascade && matches!(object_type, ObjectType::Table | ObjectType::View);
            refuse_if(cascades, "CASCADE", near, "run the DROP by itself")
        }
        Statement::StartTransaction { .. }
        | Statement::Commit { .. }
        | Statement::Rollback { .. }
        | Statement::Savepoint { .. } => {
            refuse_if(true, "transaction of several statements", Span::empty(), "every statement commits by itself")
        }
        Statement::AlterTable(alter) => refuse_if(
            true,
            "ALTER TABLE other than RENAME TO and SET SCHEMA",
            alter.name.span(),
            "write the table anew: CREATE OR REPLACE TABLE .. AS SELECT ..",
        ),
        _ => ControlFlow::Continue(()),
    }
}

/// statement.rs, `calc_inline_constraints_from_columns`: the last arm does nothing. planner.rs, `build_schema`, looks
/// for NOT NULL and `build_column_defaults` for DEFAULT.
pub(super) fn columns(columns: &[ColumnDef]) -> Found {
    for column in columns {
        let near = column.name.span;
        data_type(&column.data_type, near)?;
        for option in &column.options {
            let clause = match &option.option {
                ColumnOption::Null
                | ColumnOption::NotNull
                | ColumnOption::Default(_)
                | ColumnOption::PrimaryKey(_)
                | ColumnOption::Unique(_)
                | ColumnOption::ForeignKey(_)
                | ColumnOption::Check(_) => continue,
                ColumnOption::Materialized(_) => "MATERIALIZED on a column",
                ColumnOption::Ephemeral(_) => "EPHEMERAL on a column",
                ColumnOption::Alias(_) => "ALIAS on a column",
                ColumnOption::DialectSpecific(_) => "AUTO_INCREMENT or the like on a column",
                ColumnOption::CharacterSet(_) => "CHARACTER SET on a column",
                ColumnOption::Collation(_) => "COLLATE on a column",
                ColumnOption::Comment(_) => "COMMENT on a column",
                ColumnOption::OnUpdate(_) => "ON UPDATE on a column",
                ColumnOption::Generated { .. } => "GENERATED on a column",
                ColumnOption::Options(_) => "OPTIONS on a column",
                ColumnOption::Identity(_) => "IDENTITY on a column",
                ColumnOption::OnConflict(_) => "ON CONFLICT on a column",
                ColumnOption::Policy(_) => "MASKING POLICY on a column",
                ColumnOption::Tags(_) => "TAG on a column",
                ColumnOption::Srid(_) => "SRID on a column",
                ColumnOption::Invisible => "INVISIBLE on a column",
            };
            refuse_if(true, clause, near, None)?;
        }
    }
    ControlFlow::Continue(())
}

/// `Statement::CreateView(..)` is taken apart whole, but these fields only to be put together again; of a column, the
/// type is lost.
fn create_view(create: &CreateView) -> Found {
    let near = create.name.span();
    refuse_if(create.or_alter, "OR ALTER", Span::empty(), "use CREATE OR REPLACE VIEW")?;
    refuse_if(create.secure, "SECURE", Span::empty(), None)?;
    if let Some(params) = &create.params {
        let clause = match params {
            ast::CreateViewParams { algorithm: Some(_), .. } => "ALGORITHM of a view",
            ast::CreateViewParams { definer: Some(_), .. } => "DEFINER of a view",
            _ => "SQL SECURITY of a view",
        };
        refuse_if(true, clause, Span::empty(), None)?;
    }
    refuse_if(
        create.columns.iter().any(|column| column.data_type.is_some()),
        "type of a view's column",
        near,
        "use CAST in the query",
    )
}

/// `Statement::CreateFunction { or_replace, temporary, name, args, return_type, function_body, behavior, language, ..
/// }`. PARALLEL and DETERMINISTIC are hints, and CALLED ON NULL INPUT, SECURITY INVOKER and IN are what happens
/// anyway.
pub(super) fn create_function(create: &CreateFunction) -> Found {
    let near = create.name.span();
    refuse_if(create.or_alter, "OR ALTER", Span::empty(), "use CREATE OR REPLACE FUNCTION")?;
    refuse_if(create.using.is_some(), "USING in CREATE FUNCTION", near, None)?;
    refuse_if(create.options.is_some(), "OPTIONS in CREATE FUNCTION", near, None)?;
    refuse_if(create.remote_connection.is_some(), "REMOTE WITH CONNECTION", near, None)?;
    refuse_if(!create.set_params.is_empty(), "SET in CREATE FUNCTION", near, None)?;
    refuse_if(create.security == Some(FunctionSecurity::Definer), "SECURITY DEFINER", near, None)?;
    let strict = matches!(
        create.called_on_null,
        Some(FunctionCalledOnNull::Strict | FunctionCalledOnNull::ReturnsNullOnNullInput)
    );
    refuse_if(strict, "STRICT or RETURNS NULL ON NULL INPUT", near, "write CASE WHEN x IS NULL THEN NULL ELSE .. END")?;
    let link_symbol =
        matches!(create.function_body, Some(CreateFunctionBody::AsBeforeOptions { link_symbol: Some(_), .. }));
    refuse_if(link_symbol, "function in a library", near, None)?;
    // The text would be what the function returns. Other languages are refused by their names.
    let is_sql = create.language.as_ref().is_none_or(|language| language.value.eq_ignore_ascii_case("sql"));
    let is_text = match &create.function_body {
        Some(CreateFunctionBody::AsBeforeOptions { body, .. } | CreateFunctionBody::AsAfterOptions(body)) => {
            matches!(body, Expr::Value(value) if matches!(
                value.value,
                Value::SingleQuotedString(_) | Value::DollarQuotedString(_)
            ))
        }
        _ => false,
    };
    refuse_if(is_sql && is_text, "function body as a text", near, "write the expression itself: RETURN x + 1")?;
    for arg in create.args.iter().flatten() {
        if let Some(mode @ (ArgMode::Out | ArgMode::InOut | ArgMode::Variadic)) = &arg.mode {
            refuse_if(true, format!("{mode} argument"), near, None)?;
        }
        data_type(&arg.data_type, near)?;
    }
    ControlFlow::Continue(())
}

/// `drop_behavior: _`, where it is not the engine that drops. The argument types are forgotten too, but names are unique.
fn drop_function(drop: &DropFunction) -> Found {
    let near = drop.func_desc.first().map_or(Span::empty(), |function| function.name.span());
    refuse_if(drop.drop_behavior == Some(DropBehavior::Cascade), "CASCADE", near, "run the DROP by itself")
}
