//! From text to one checked statement: what stands between a user and DataFusion's planner.
//!
//! ```text
//!   text ── split ──> statements ── parse ──> Statement ── refuse, append_only ──> DataFusion or the engine
//! ```
//!
//! DataFusion's parser does most of the work; here is what it lacks: several statements in one text with their
//! positions, `COPY t FROM`, renaming, a bound on depth, and an error for each clause it reads and then forgets.

mod access;
mod alter;
mod append_only;
mod bracketed_values;
mod cast_names;
mod copy;
mod decimal_values;
mod depth;
mod derived;
mod distinct_operands;
mod expansion;
mod fetch_first;
mod from_first;
mod inner_values;
mod job;
mod keyword;
mod lex;
mod named;
mod parse;
mod placeholder;
mod position;
mod queries_in_values;
mod refuse;
mod relocate;
mod report;
mod rewrite;
mod settings;
mod split;
mod statement;
mod true_filters;
mod view;

pub use access::{AccessStatement, AlterRole, CreateRole, DropRole, Owned, Rights, SetOwner};
pub use append_only::append_only;
pub use copy::{ONE_FILE, STANDARD_INPUT, STANDARD_OUTPUT};
pub use decimal_values::{exact_arguments, exact_values, insert_of};
pub use job::JobStatement;
pub use parse::{ParseOptions, parse};
pub use placeholder::fill_placeholders;
pub use position::{find_name, offset_of};
pub use refuse::{refuse_ignored, refuse_on_scalar_functions};
pub use relocate::rename_relations;
pub use report::{ReportClauses, ReportStatement, ReportTarget};
pub use rewrite::rewrite_query;
pub use split::{is_complete, split_statements};
pub use statement::{
    AlterTableRename, AlterTableSetSchema, CopyFrom, CreateDerived, CreateView, Drop, Percent, PinDerived, PinTarget,
    PurgeSource, Relation, ShowCreate, Statement, Subject,
};
