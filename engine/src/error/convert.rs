//! From the errors of everything below to [`EngineError`], by type.
//!
//! DataFusion wraps: context in context, shared in external, arrow in DataFusion in arrow. The wrappers are walked to
//! the one error that says what happened; what they add is kept where a user can use it.

use std::error::Error;
use std::io;
use std::sync::Arc;

use arrow::error::ArrowError;
use datafusion::common::{Column, Diagnostic, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;
use datafusion::sql::sqlparser::parser::ParserError;
use nectarine_catalog::{CatalogError, TableName, looks_like_location};
use nectarine_executor::ExecutorError;
use nectarine_planner::PlannerError;
use tokio::task::JoinError;

use super::suggest::{did_you_mean, nearest};
use super::words::{Words, plain, plain_io, server_words, words};
use super::{About, EngineError, ErrorKind};
use crate::memory::OF_QUERY;

/// What to do about files that change.
const AGAIN: &str = "run the statement again";

/// What to do about stores that do not let us in.
const CREDENTIALS: &str =
    "look at the credentials: environment variables such as AWS_ACCESS_KEY_ID, or OPTIONS of the statement";

/// What to write instead of a signed URL.
const SIGNED: &str = "write s3://bucket/key (or gs://, az://) with credentials in environment variables such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in OPTIONS; copy any other file here first; a \"?\" in a name is %3F";

impl From<DataFusionError> for EngineError {
    fn from(error: DataFusionError) -> Self {
        let converted = datafusion(&error);
        if converted.0.source.is_some() { converted } else { converted.with_source(error) }
    }
}

impl From<ArrowError> for EngineError {
    fn from(error: ArrowError) -> Self {
        let converted = arrow(&error);
        if converted.0.source.is_some() { converted } else { converted.with_source(error) }
    }
}

impl From<io::Error> for EngineError {
    fn from(error: io::Error) -> Self {
        io(&error).with_source(error)
    }
}

impl From<object_store::Error> for EngineError {
    fn from(error: object_store::Error) -> Self {
        store(&error).with_source(error)
    }
}

impl From<PlannerError> for EngineError {
    fn from(error: PlannerError) -> Self {
        planner(&error).with_source(error)
    }
}

impl From<CatalogError> for EngineError {
    fn from(error: CatalogError) -> Self {
        catalog(&error).with_source(error)
    }
}

impl From<ExecutorError> for EngineError {
    fn from(error: ExecutorError) -> Self {
        executor(&error).with_source(error)
    }
}

fn datafusion(error: &DataFusionError) -> EngineError {
    match error {
        DataFusionError::Context(text, inner) => in_context(datafusion(inner), text),
        DataFusionError::Shared(inner) => datafusion(inner),
        // Later ones are mostly consequences of the first.
        DataFusionError::Collection(errors) => {
            errors.first().map_or_else(|| worded(ErrorKind::Internal, "an error without a text"), datafusion)
        }
        DataFusionError::Diagnostic(diagnostic, inner) => diagnosed(datafusion(inner), diagnostic),
        DataFusionError::External(inner) => any(inner.as_ref()),
        DataFusionError::ArrowError(inner, _) => arrow(inner),
        DataFusionError::ParquetError(inner) => parquet(inner),
        DataFusionError::ObjectStore(inner) => store(inner),
        DataFusionError::IoError(inner) => io(inner),
        DataFusionError::SQL(inner, _) => parser(inner),
        DataFusionError::SchemaError(inner, _) => schema(inner),
        DataFusionError::Plan(text) => plan(text),
        DataFusionError::NotImplemented(text) => not_implemented(text),
        DataFusionError::Configuration(text) => worded(ErrorKind::Configuration, text),
        // How many values EXECUTE gives is a matter of its text.
        DataFusionError::Execution(text) if text.starts_with("Expected ") && text.contains(" parameters, got ") => {
            worded(ErrorKind::Sql, text)
        }
        DataFusionError::Execution(text) | DataFusionError::Substrait(text) | DataFusionError::Ffi(text) => {
            worded(ErrorKind::Execution, text)
        }
        DataFusionError::ExecutionJoin(inner) => join(inner),
        DataFusionError::ResourcesExhausted(text) => resources(text),
        DataFusionError::Internal(text) => internal(text),
    }
}

/// Rules and operators of DataFusion put their names around errors, which helps nobody; ours say where it was.
fn in_context(mut error: EngineError, text: &str) -> EngineError {
    if text.starts_with("cannot ") {
        // The file that was found to be wrong says more than the folder it is in.
        let place = text.split('"').nth(1).unwrap_or(text);
        if !error.0.message.contains(place) {
            error.0.message = format!("{text}: {}", error.0.message);
        }
        if error.0.kind == ErrorKind::Execution {
            error.0.kind = ErrorKind::Data;
        }
    } else if text.starts_with("view \"") {
        // Of views on views, the innermost is the one to look at.
        if !error.0.message.starts_with("view \"") {
            error.0.message = format!("{text}: {}", error.0.message);
        }
        // Positions are in the view's text, not in the statement's.
        error.0.span = None;
        error.0.about = None;
        error.0.position = None;
    } else if text.starts_with("while ") && error.0.detail.is_none() {
        error.0.detail = Some(text.to_owned());
    }
    error
}

fn not_implemented(text: &str) -> EngineError {
    if text.starts_with("Insert into not implemented for this table") {
        return EngineError::new(ErrorKind::Unsupported, "cannot insert into a view or a table of the system");
    }
    // DataFusion looks at the option before we do, and in capital letters.
    if let Some(word) = text.strip_prefix("Unsupported file compression type ") {
        let text =
            format!("unknown compression \"{}\": one of gzip, bzip2, xz, zstd, uncompressed", word.to_lowercase());
        return EngineError::new(ErrorKind::Sql, text);
    }
    worded(ErrorKind::Unsupported, text)
}

/// An error of unknown type, known after all or by its source.
fn any(error: &(dyn Error + 'static)) -> EngineError {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(known) = known(error) {
            return known;
        }
        next = error.source();
    }
    worded(ErrorKind::Execution, &error.to_string())
}

fn known(error: &(dyn Error + 'static)) -> Option<EngineError> {
    fn is<'a, E: Error + 'static>(
        error: &'a (dyn Error + 'static),
        convert: impl FnOnce(&'a E) -> EngineError,
    ) -> Option<EngineError> {
        error.downcast_ref::<E>().map(convert)
    }
    is::<EngineError>(error, EngineError::clone)
        .or_else(|| is(error, datafusion))
        .or_else(|| is(error, |error: &Arc<DataFusionError>| datafusion(error)))
        .or_else(|| is(error, catalog))
        .or_else(|| is(error, planner))
        .or_else(|| is(error, executor))
        .or_else(|| is(error, arrow))
        .or_else(|| is(error, parquet))
        .or_else(|| is(error, store))
        .or_else(|| is(error, io))
        .or_else(|| is(error, join))
}

fn worded(kind: ErrorKind, text: &str) -> EngineError {
    let Words { message, detail, hint } = words(text);
    let mut error = EngineError::new(kind, message);
    error.0.detail = detail;
    error.0.hint = hint;
    error
}

/// What DataFusion adds for people: positions, and advice. Its message is often shorter than the error's own.
fn diagnosed(mut error: EngineError, diagnostic: &Diagnostic) -> EngineError {
    error.0.span = error.0.span.or(diagnostic.span).or_else(|| diagnostic.notes.iter().find_map(|note| note.span));
    if error.kind() == ErrorKind::Sql && error.0.about.is_none() && !diagnostic.message.is_empty() {
        let before = std::mem::replace(&mut error.0.message, plain(&diagnostic.message));
        // Where there is advice, the longer text says nothing more.
        if error.0.detail.is_none() && diagnostic.helps.is_empty() && before != error.0.message {
            error.0.detail = Some(before);
        }
    }
    if error.0.hint.is_none() {
        error.0.hint = diagnostic.helps.first().map(|help| plain(&help.message));
    }
    error
}

fn parser(error: &ParserError) -> EngineError {
    match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => {
            // The one place where sqlparser tells the position.
            let (text, span) = match text.rsplit_once(" at Line: ") {
                Some((before, position)) => (before, position.split_once(", Column: ")),
                None => (text.as_str(), None),
            };
            let mut error = worded(ErrorKind::Sql, text);
            error.0.message.insert_str(0, "syntax error: ");
            error.0.span = span.and_then(|(line, column)| {
                let start =
                    datafusion::common::Location { line: line.parse().ok()?, column: column.trim().parse().ok()? };
                Some(datafusion::common::Span::new(start, start))
            });
            error
        }
        ParserError::RecursionLimitExceeded => {
            EngineError::new(ErrorKind::Sql, "statement is too complex: it is nested too deep")
        }
    }
}

/// Planning errors are text only. Those that matter most are told by their form.
fn plan(text: &str) -> EngineError {
    let clauses = [("Insert-on", "ON .."), ("Insert-returning", "RETURNING"), ("Insert-ignore", "IGNORE")];
    if let Some((_, clause)) = clauses.iter().find(|(start, _)| text.starts_with(start)) {
        return EngineError::new(ErrorKind::Unsupported, format!("INSERT .. {clause} is not supported"));
    }
    if let Some(error) = same_name(text) {
        return error;
    }
    let mut error = worded(ErrorKind::Sql, text);
    let between = |before: &str, after: &str| {
        let (name, rest) = text.strip_prefix(before)?.split_once('\'')?;
        rest.starts_with(after).then(|| name.to_owned())
    };
    if let Some(name) = between("table '", " not found") {
        error.0.message = format!("table \"{}\" does not exist", last_part(&name));
        error.0.about = Some(About::MissingTable(name));
    } else if let Some(name) = between("Invalid function '", "").or_else(|| between("table function '", " not found")) {
        error.0.message = format!("function \"{name}\" does not exist");
        // DataFusion always has a suggestion, however far off.
        error.0.hint = None;
        error.0.about = Some(About::MissingFunction(name));
    } else if let Some((_, candidates)) = text.split_once("Candidate functions:") {
        // A call with arguments that do not fit. What was tried for each candidate is of no use to anyone.
        let candidates: Vec<_> = candidates.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let message = error.0.message.split(", errors: ").next().unwrap_or_default().to_owned();
        error.0.message = message;
        error.0.detail = Some(format!("candidates: {}", candidates.join(", ")));
        error.0.hint = Some("cast the arguments to the types of a candidate".to_owned());
        error.0.about =
            candidates.first().and_then(|call| call.split('(').next()).map(|name| About::Name(name.to_owned()));
    }
    error
}

/// `Projections require unique expression names but the expression "x AS a" at position 0 and "y AS a" at position 1 have
/// the same name. ..`, with expressions as only programmers print them: those are the detail, unless they have names.
fn same_name(text: &str) -> Option<EngineError> {
    let (list, rest) = text.split_once(" require unique expression names but the expression \"")?;
    let (first, rest) = rest.split_once("\" at position ")?;
    let (at, rest) = rest.split_once(" and \"")?;
    let (second, rest) = rest.rsplit_once("\" at position ")?;
    let (other_at, _) = rest.split_once(" have the same name")?;
    if let Some(name) = given_name(first).or_else(|| given_name(second)) {
        return Some(twice(format!("column \"{name}\" is there twice")));
    }
    let place = |at: &str| Some(at.parse::<usize>().ok()? + 1);
    let message = match list.ends_with("Projections") {
        true => format!("columns {} and {} have the same name", place(at)?, place(other_at)?),
        false => "two expressions have the same name".to_owned(),
    };
    let detail = match first == second {
        true => format!("both are {first}"),
        false => format!("the first is {first}, the second {second}"),
    };
    Some(twice(message).with_detail(detail))
}

/// The name behind `AS` in an expression, or that of a column. What is in parentheses has other uses for `AS`.
fn given_name(expression: &str) -> Option<&str> {
    let is_closed = |text: &str| text.matches('(').count() == text.matches(')').count();
    if let Some((before, name)) = expression.rsplit_once(" AS ")
        && is_closed(before)
    {
        return Some(name);
    }
    let is_name = expression.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
        && expression.starts_with(|c: char| c.is_alphabetic() || c == '_');
    is_name.then(|| last_part(expression))
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn schema(error: &SchemaError) -> EngineError {
    const SHOWN_MAX: usize = 20;
    let text = match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let mut error = EngineError::new(ErrorKind::Sql, format!("column \"{}\" does not exist", shown(field)));
            let names = || valid_fields.iter().map(Column::name);
            if let Some(meant) = nearest(field.name(), names()) {
                error = error.with_hint(did_you_mean(field.name(), meant));
            } else if field.relation.is_none() && field.name().eq_ignore_ascii_case("default") {
                error = error.with_hint("DEFAULT is not offered as a value: leave the column out of the list instead");
            }
            if !valid_fields.is_empty() {
                // ORDER BY and GROUP BY look at two lists.
                let mut all: Vec<String> = Vec::with_capacity(valid_fields.len().min(SHOWN_MAX + 1));
                for name in valid_fields.iter().map(shown) {
                    if all.len() <= SHOWN_MAX && !all.contains(&name) {
                        all.push(name);
                    }
                }
                let more = if all.len() > SHOWN_MAX { ", .." } else { "" };
                all.truncate(SHOWN_MAX);
                error = error.with_detail(format!("there are: {}{more}", all.join(", ")));
            }
            error.0.about = Some(About::Column(field.name().to_owned()));
            error.0.span = field.spans().first();
            return error;
        }
        SchemaError::AmbiguousReference { field } => {
            let mut error = EngineError::new(ErrorKind::Sql, format!("column \"{}\" is ambiguous", shown(field)))
                .with_hint(format!("several tables have it: put a table before it, as in t.{}", field.name()));
            error.0.about = Some(About::Column(field.name().to_owned()));
            error.0.span = field.spans().first();
            return error;
        }
        SchemaError::DuplicateQualifiedField { qualifier, name } if looks_like_location(qualifier.table()) => {
            return header_twice(qualifier.table(), name);
        }
        SchemaError::DuplicateQualifiedField { qualifier, name } => {
            format!("column \"{}.{name}\" is there twice", qualifier.table())
        }
        SchemaError::DuplicateUnqualifiedField { name } => format!("column \"{name}\" is there twice"),
    };
    twice(text)
}

/// Names of columns come from the file, where nobody can say AS.
fn header_twice(file: &str, name: &str) -> EngineError {
    let message = match name.trim().is_empty() {
        true => format!("several columns in the header of \"{file}\" have no name"),
        false => format!("column \"{name}\" is twice in the header of \"{file}\""),
    };
    EngineError::new(ErrorKind::Sql, message).with_hint(format!(
        "name the columns yourself: CREATE EXTERNAL TABLE t (a INT, ..) STORED AS CSV LOCATION '{file}'"
    ))
}

fn twice(text: String) -> EngineError {
    EngineError::new(ErrorKind::Sql, text).with_hint("give one of them another name with AS")
}

fn shown(column: &Column) -> String {
    match &column.relation {
        Some(relation) => format!("{}.{}", relation.table(), column.name),
        None => column.name.clone(),
    }
}

fn resources(text: &str) -> EngineError {
    let mut error = worded(ErrorKind::Resources, text);
    // The consumers are on lines of their own, then comes what was asked for.
    let asked = text.lines().map(str::trim).rev().find(|line| line.contains("Failed to allocate"));
    match asked {
        Some(asked) => {
            let asked = plain(asked.trim_start_matches("Error: "));
            if asked.contains(&format!("{OF_QUERY}(pool_size")) {
                error.0.message = "the statement needs more memory than nectarine.query_memory gives it".to_owned();
                error.0.detail = Some(asked);
                return error.with_hint("raise it if you may (SET nectarine.query_memory = ..), lower datafusion.execution.target_partitions, or ask for less");
            }
            error.0.message = "not enough memory to finish the statement".to_owned();
            error.0.detail = Some(match text.split_once("as:\n").and_then(|(_, rest)| rest.rsplit_once("\nError: ")) {
                Some((consumers, _)) => format!("{asked}\nlargest consumers:\n{consumers}"),
                None => asked,
            });
            error.with_hint("raise the bound (start with --set memory_limit=..), lower datafusion.execution.target_partitions, or ask for less")
        }
        None if text.contains("disk") => error.with_hint(
            "raise the bound (start with --set spill_limit=..), free space in the home's tmp folder, or ask for less",
        ),
        None => error,
    }
}

/// DataFusion names a setting of its own, which is not the one that was set.
fn spilled(text: &str) -> EngineError {
    let limit = text.split_once("limit of ").and_then(|(_, rest)| rest.split_once(". "));
    let limit = limit.map_or(String::new(), |(limit, _)| format!(" of {limit}"));
    EngineError::new(ErrorKind::Resources, format!("spills reached the bound{limit} that nectarine.spill_limit sets"))
        .with_hint("raise the bound (start with --set spill_limit=..), give it more memory (--set memory_limit=..), or ask for less")
}

fn internal(text: &str) -> EngineError {
    // DataFusion's writers drop the cause.
    if text.contains("encountered while finalizing writes")
        || text.contains("encountered during writing to ObjectStore")
    {
        return EngineError::new(ErrorKind::Io, "cannot finish writing the files")
            .with_hint("look whether the place may be written to and has space left");
    }
    let words = words(text);
    let mut error = EngineError::new(ErrorKind::Internal, format!("internal error: {}", words.message));
    error.0.detail = words.detail;
    error.with_hint("this is a bug in nectarine: please report it together with the statement")
}

fn join(error: &JoinError) -> EngineError {
    if error.is_cancelled() {
        return EngineError::new(ErrorKind::Cancelled, "statement was cancelled");
    }
    internal("a task of the statement panicked")
}

fn arrow(error: &ArrowError) -> EngineError {
    match error {
        ArrowError::ExternalError(inner) => any(inner.as_ref()),
        ArrowError::IoError(_, inner) => io(inner),
        ArrowError::DivideByZero => EngineError::new(ErrorKind::Execution, "division by zero")
            .with_hint("divide by nullif(x, 0) to get NULL instead"),
        ArrowError::CastError(text) => {
            worded(ErrorKind::Execution, text).with_hint("use TRY_CAST to get NULL for values that do not fit")
        }
        // Arrow says this of values in expressions as well as in files; a scan puts the file's name around the latter.
        ArrowError::ParseError(text) | ArrowError::ComputeError(text) | ArrowError::InvalidArgumentError(text) => {
            worded(ErrorKind::Execution, text)
        }
        ArrowError::ArithmeticOverflow(text) => worded(
            ErrorKind::Execution,
            &format!("arithmetic overflow: {}", text.trim_start_matches("Overflow happened on: ")),
        )
        .with_hint("cast to a wider type first"),
        ArrowError::CsvError(text)
        | ArrowError::JsonError(text)
        | ArrowError::AvroError(text)
        | ArrowError::IpcError(text)
        | ArrowError::ParquetError(text) => worded(ErrorKind::Data, text),
        ArrowError::MemoryError(text) => worded(ErrorKind::Resources, text),
        ArrowError::NotYetImplemented(text) => worded(ErrorKind::Unsupported, text),
        ArrowError::SchemaError(text) | ArrowError::CDataInterface(text) => worded(ErrorKind::Execution, text),
        ArrowError::DictionaryKeyOverflowError
        | ArrowError::RunEndIndexOverflowError
        | ArrowError::OffsetOverflowError(_) => worded(ErrorKind::Execution, &error.to_string())
            .with_hint("a column became too large for one batch: lower datafusion.execution.batch_size"),
    }
}

fn parquet(error: &ParquetError) -> EngineError {
    match error {
        ParquetError::External(inner) => match any(inner.as_ref()) {
            error if error.kind() == ErrorKind::Execution => worded(ErrorKind::Data, error.message()),
            error => error,
        },
        ParquetError::NYI(text) => worded(ErrorKind::Unsupported, text),
        other => {
            let mut error = worded(ErrorKind::Data, &other.to_string());
            error.0.message.insert_str(0, "not a readable parquet file: ");
            error
        }
    }
}

fn store(error: &object_store::Error) -> EngineError {
    use object_store::Error as E;
    let text = match error {
        E::NotFound { path, .. } => {
            return EngineError::new(ErrorKind::Data, format!("file \"{path}\" does not exist"));
        }
        E::PermissionDenied { path, source } => {
            return denied(format!("access to \"{path}\" is not allowed"), source.as_ref());
        }
        E::Unauthenticated { path, source } => {
            return denied(format!("no valid credentials for \"{path}\""), source.as_ref());
        }
        E::Precondition { path, .. } | E::NotModified { path, .. } => {
            return changed(path);
        }
        E::AlreadyExists { path, .. } => format!("file \"{path}\" already exists"),
        E::JoinError { source } => return join(source),
        E::Generic { source, .. } | E::NotSupported { source } => {
            // The stores put the cause at the end of a chain of their own types.
            let mut cause: &(dyn Error + 'static) = source.as_ref();
            while let Some(next) = cause.source() {
                cause = next;
            }
            if let Some(cause) = cause.downcast_ref::<io::Error>() {
                return io(cause).with_detail(plain(&error.to_string()));
            }
            let text = cause.to_string();
            if let Some((status, said)) = server_words(&text) {
                return match status {
                    401 | 403 => {
                        EngineError::new(ErrorKind::Io, format!("access is not allowed: {said}")).with_hint(CREDENTIALS)
                    }
                    404 => EngineError::new(ErrorKind::Data, said),
                    status => EngineError::new(ErrorKind::Io, format!("the server answered {status}: {said}")),
                };
            }
            // A file that is shorter than it was.
            if let Some((_, place)) = text.split_once("ut of range of file ") {
                return changed(place.split(", expected: ").next().unwrap_or(place));
            }
            return worded(ErrorKind::Io, &cause.to_string()).with_detail(plain(&error.to_string()));
        }
        other => return worded(ErrorKind::Io, &other.to_string()),
    };
    EngineError::new(ErrorKind::Io, text)
}

fn denied(text: String, source: &(dyn Error + 'static)) -> EngineError {
    let error = EngineError::new(ErrorKind::Io, text).with_hint(CREDENTIALS);
    match server_words(&source.to_string()) {
        Some((_, said)) => error.with_detail(said),
        None => error,
    }
}

fn changed(location: &str) -> EngineError {
    EngineError::new(ErrorKind::Data, format!("file \"{location}\" changed while it was being read")).with_hint(AGAIN)
}

fn io(error: &io::Error) -> EngineError {
    if let Some(inner) = error.get_ref()
        && let Some(known) = known(inner)
    {
        return known;
    }
    let text = error.to_string();
    if text.contains("used disk space during the spilling process") {
        return spilled(&text);
    }
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            EngineError::new(ErrorKind::Resources, plain_io(error))
                .with_hint("free some space, or put the home elsewhere with --home")
        }
        io::ErrorKind::OutOfMemory => EngineError::new(ErrorKind::Resources, plain_io(error)),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => EngineError::new(ErrorKind::Data, plain_io(error)),
        _ => EngineError::new(ErrorKind::Io, plain_io(error)),
    }
}

fn planner(error: &PlannerError) -> EngineError {
    let kind = match error {
        PlannerError::Refused { .. } | PlannerError::AppendOnly { .. } => ErrorKind::Unsupported,
        _ => ErrorKind::Sql,
    };
    let mut converted = EngineError::new(kind, error.to_string());
    converted.0.position = error.position();
    converted.0.hint = error.hint().map(str::to_owned);
    converted
}

impl EngineError {
    /// There is no table, view or the like of that name.
    pub(crate) fn missing(what: &str, name: &TableName) -> Self {
        let mut error = Self::new(ErrorKind::Sql, format!("{what} \"{}\" does not exist", name.name));
        error.0.about = Some(About::MissingTable(name.to_string()));
        error
    }

    /// There is no schema of that name, only those that are known.
    pub(crate) fn missing_schema(name: &str, known: &[String]) -> Self {
        let mut error = Self::new(ErrorKind::Sql, format!("schema \"{name}\" does not exist"));
        error.0.hint = Some(match nearest(name, known.iter().map(String::as_str)) {
            Some(meant) => did_you_mean(name, meant),
            None => "SHOW SCHEMAS lists all schemas".to_owned(),
        });
        error.0.about = Some(About::Name(name.to_owned()));
        error
    }
}

fn catalog(error: &CatalogError) -> EngineError {
    let text = error.to_string();
    match error {
        // In the words that a query gets.
        CatalogError::TableNotFound { name } => EngineError::missing("table", name),
        CatalogError::NotFound { what: "function", name } => {
            let mut converted = EngineError::new(ErrorKind::Sql, text);
            converted.0.about = Some(About::MissingFunction(name.clone()));
            converted
        }
        CatalogError::AlreadyExists { .. } | CatalogError::NotFound { .. } | CatalogError::InvalidLocation { .. } => {
            EngineError::new(ErrorKind::Sql, text)
        }
        CatalogError::QueryString { .. } => EngineError::new(ErrorKind::Sql, text).with_hint(SIGNED),
        CatalogError::SchemaNotEmpty { .. } => {
            EngineError::new(ErrorKind::Sql, text).with_hint("DROP SCHEMA .. CASCADE drops what is in it")
        }
        CatalogError::OwnsThings { name, owned } => {
            const LISTED_MAX: usize = 20;
            let mut detail = owned.iter().take(LISTED_MAX).cloned().collect::<Vec<_>>().join(", ");
            if owned.len() > LISTED_MAX {
                detail.push_str(", ..");
            }
            EngineError::new(ErrorKind::Sql, text)
                .with_detail(detail)
                .with_hint(format!("REASSIGN OWNED BY {name} TO .. gives all of it to somebody else"))
        }
        CatalogError::RoleInItself { .. } => EngineError::new(ErrorKind::Sql, text),
        CatalogError::HasDependants { attempted, dependants, .. } => {
            let derived = dependants.iter().find(|(what, _)| *what == "derived table");
            let pin =
                derived.map(|(_, name)| format!("ALTER DERIVED TABLE {name} SET PINNED makes a copy of its rows"));
            let hint = match (*attempted, pin) {
                ("drop", None) => "DROP .. CASCADE drops them as well".to_string(),
                ("drop", Some(pin)) => format!("DROP .. CASCADE drops them as well; {pin}"),
                ("rename", _) => "they know it by its name: drop them first, and create them anew".to_string(),
                (_, Some(pin)) => format!("{pin}; or drop it first"),
                (_, None) => "drop them first".to_string(),
            };
            EngineError::new(ErrorKind::Sql, text).with_hint(hint)
        }
        CatalogError::NewerFormat { .. } => {
            EngineError::new(ErrorKind::Configuration, text).with_hint("use the newer version, or another home")
        }
        CatalogError::Store { source, .. } => caused(EngineError::new(ErrorKind::Io, text), source.as_ref()),
        CatalogError::Damaged { .. } => EngineError::new(ErrorKind::Io, text),
        CatalogError::Location { source, .. } => about_file(text, source.as_ref()),
        CatalogError::NoFiles { .. } => EngineError::new(ErrorKind::Data, text),
        CatalogError::Changed { .. } | CatalogError::Overtaken { .. } | CatalogError::NotAsSeen { .. } => {
            EngineError::new(ErrorKind::Data, text).with_hint(AGAIN)
        }
        _ => EngineError::new(ErrorKind::Io, text),
    }
}

fn executor(error: &ExecutorError) -> EngineError {
    let text = error.to_string();
    match error {
        ExecutorError::SchemaMismatch { .. } | ExecutorError::Null { .. } => EngineError::new(ErrorKind::Data, text),
        ExecutorError::Write { source, .. } => about_file(text, source.as_ref()),
        _ => EngineError::new(ErrorKind::Io, text),
    }
}

/// `text` names the file, `source` says what is wrong with it. A full disk stays a matter of resources; a value that
/// does not parse becomes a matter of data, as it came from a file.
fn about_file(text: String, source: &(dyn Error + 'static)) -> EngineError {
    let mut cause = any(source);
    // These name the file themselves.
    if cause.hint() == Some(AGAIN) {
        return cause;
    }
    if cause.message().starts_with("file \"") && cause.message().ends_with("\" does not exist") {
        cause.0.message = "no such file".to_owned();
    }
    let kind = match cause.kind() {
        kind @ (ErrorKind::Resources
        | ErrorKind::Cancelled
        | ErrorKind::Denied
        | ErrorKind::Internal
        | ErrorKind::Unsupported
        | ErrorKind::Io) => kind,
        _ => ErrorKind::Data,
    };
    with_cause(EngineError::new(kind, text), cause)
}

fn caused(error: EngineError, source: &(dyn Error + 'static)) -> EngineError {
    with_cause(error, any(source))
}

fn with_cause(mut error: EngineError, cause: EngineError) -> EngineError {
    error.0.message = format!("{}: {}", error.0.message, cause.message());
    error.0.detail = cause.0.detail.clone();
    error.0.hint = cause.0.hint.clone();
    error
}
