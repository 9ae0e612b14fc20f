//! The SQL that DataFusion does not have by itself: everything durable, from a user's side. What must last is asked again
//! after the home was closed and opened.

mod arrow_files;
mod casts_and_intervals;
mod catalog;
mod copy;
mod copy_out;
mod csv_nulls;
mod decimals;
mod folders;
mod functions;
mod json_columns;
mod keys_and_names;
mod large_values;
mod sets_and_groups;
mod settings;
mod subquery_values;
mod system;
mod tables;
mod types;
mod views;
