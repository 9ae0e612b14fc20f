//! `\d` and its family: what exists, asked for in SQL like anyone could.

use std::sync::Arc;

use arrow::array::{Array, AsArray, StringArray};
use arrow::datatypes::{DataType, Field, Schema, UInt64Type};
use arrow::record_batch::RecordBatch;
use arrow::util::display::array_value_to_string;

use super::nearest;
use crate::exec::Shell;
use crate::failure::{Failure, Result};
use crate::units;
use crate::variables::quoted;

/// Schemas that hold what the engine knows about itself.
const OWN_SCHEMAS: &str = "('information_schema', 'system')";

impl Shell {
    /// All tables and views, or one of them in full.
    pub(super) fn describe(&mut self, name: Option<&str>) -> Result<()> {
        let Some(name) = name else { return self.list_tables(None, "tables and views") };
        let wanted = Name::parse(name);
        let found = self.fetch(&format!(
            "SELECT t.table_schema, t.table_name, coalesce(s.table_type, lower(t.table_type)) \
             FROM information_schema.tables t \
             LEFT JOIN system.tables s ON s.table_schema = t.table_schema AND s.table_name = t.table_name \
             WHERE {} ORDER BY 1, 2",
            wanted.condition("t.table_schema", "t.table_name")
        ))?;
        let rows = texts(&found)?;
        if rows.is_empty() {
            return Err(self.missing(name));
        }
        for row in rows {
            let [schema, table, kind] = row.as_slice() else { continue };
            self.describe_one(schema, table, kind)?;
        }
        Ok(())
    }

    fn describe_one(&mut self, schema: &str, table: &str, kind: &str) -> Result<()> {
        let this = format!("table_schema = {} AND table_name = {}", quoted(schema, '\''), quoted(table, '\''));
        let is_view = kind.ends_with("view");
        let what = match kind {
            "materialized view" => "Materialized view",
            "derived" => "Derived table",
            _ if is_view => "View",
            _ => "Table",
        };
        let title = format!("{what} {schema}.{table}");
        // A column of blanks would say nothing.
        let required = format!("SELECT 1 FROM information_schema.columns WHERE {this} AND is_nullable = 'NO' LIMIT 1");
        let nullable = match texts(&self.fetch(&required)?)?.is_empty() {
            true => "",
            false => ", CASE WHEN is_nullable = 'NO' THEN 'not null' ELSE '' END AS \"nullable\"",
        };
        let columns = format!(
            "SELECT column_name AS \"column\", data_type AS \"type\"{nullable} \
             FROM information_schema.columns WHERE {this} ORDER BY ordinal_position"
        );
        let view = crate::print::View { footer: false, ..self.view.clone() };
        self.print_answer(&columns, &view, Some(&title))?;
        if is_view {
            let sql = format!("SELECT definition FROM information_schema.views WHERE {this}");
            // A view of the engine's own has no text; that is no reason to fail.
            if let Ok(found) = self.fetch(&sql)
                && let Some(definition) = texts(&found)?.into_iter().flatten().next().filter(|text| !text.is_empty())
            {
                self.print_line(definition.trim_end())?;
            }
            return self.dependencies(schema, table);
        }
        if kind == "derived" {
            let name = format!("{}.{}", quoted(schema, '"'), quoted(table, '"'));
            let found = self.fetch(&format!("SHOW CREATE TABLE {name}"))?;
            if let Some(definition) = texts(&found)?.into_iter().next().and_then(|row| row.into_iter().nth(3)) {
                self.print_line(definition.trim_end())?;
            }
        }
        let facts = format!("SELECT format, location, extents, bytes, rows, error FROM system.tables WHERE {this}");
        let facts = self.fetch(&facts);
        if let Ok(facts) = facts
            && let Some(row) = texts(&facts)?.into_iter().next()
        {
            for line in table_facts(&row) {
                self.print_line(&line)?;
            }
        }
        self.dependencies(schema, table)
    }

    /// What it depends on, and what depends on it.
    fn dependencies(&mut self, schema: &str, table: &str) -> Result<()> {
        let name = quoted(&format!("{schema}.{table}"), '\'');
        for (title, sql) in [
            ("Depends on", format!("SELECT depends_on_kind, depends_on FROM system.dependencies WHERE name = {name}")),
            ("Needed by", format!("SELECT kind, name FROM system.dependencies WHERE depends_on = {name}")),
        ] {
            let Ok(found) = self.fetch(&format!("{sql} ORDER BY 2, 1")) else { continue };
            let lines: Vec<String> = texts(&found)?.iter().map(|row| row.join(" ")).collect();
            if !lines.is_empty() {
                self.print_line(&format!("{title}: {}", lines.join(", ")))?;
            }
        }
        Ok(())
    }

    /// Why there is nothing to describe.
    fn missing(&mut self, name: &str) -> Failure {
        let failure = Failure::new(format!("there is no table or view '{name}'"));
        let tables =
            self.fetch("SELECT DISTINCT table_name, table_schema FROM information_schema.tables ORDER BY 1, 2");
        let tables = tables.and_then(|found| texts(&found)).unwrap_or_default();
        if let Some(meant) = Name::parse(name).but_for_case(&tables) {
            let why = if meant.contains('"') { " names with capital letters need double quotes" } else { "" };
            return failure.with_hint(format!("did you mean '{meant}'?{why}"));
        }
        // Each by itself and with its schema, and as it has to be typed.
        let mut known = Vec::new();
        for row in &tables {
            let [table, schema] = row.as_slice() else { continue };
            known.push((table.clone(), typed(table)));
            known.push((format!("{schema}.{table}"), format!("{}.{}", typed(schema), typed(table))));
        }
        let names = || known.iter().map(|(name, _)| name.as_str());
        let wanted = name.to_lowercase();
        // Right but for the schema: then all that is wrong is where it was looked for.
        let elsewhere = || {
            let (_, table) = wanted.rsplit_once('.')?;
            names().find(|name| name.rsplit_once('.').is_some_and(|(_, known)| known == table))
        };
        let near = nearest(&wanted, names()).or_else(elsewhere);
        match near.and_then(|near| known.iter().find(|(name, _)| name == near)) {
            Some((_, meant)) => failure.with_hint(format!("did you mean '{meant}'?")),
            None => failure.with_hint("\\d lists all of them"),
        }
    }

    pub(super) fn list_tables(&mut self, pattern: Option<&str>, what: &str) -> Result<()> {
        let kinds = match what {
            "tables" => "t.table_type <> 'VIEW'",
            "views" => "t.table_type = 'VIEW'",
            "materialized views" => "s.table_type = 'materialized view'",
            _ => "true",
        };
        let names = match pattern {
            Some(pattern) => Name::parse(pattern).condition("t.table_schema", "t.table_name"),
            None => format!("t.table_schema NOT IN {OWN_SCHEMAS}"),
        };
        let known = if what.ends_with("views") && what != "tables and views" {
            ""
        } else {
            ", s.format, s.extents, s.bytes, s.rows"
        };
        let sql = format!(
            "SELECT t.table_schema AS \"schema\", t.table_name AS \"name\", coalesce(s.table_type, lower(t.table_type)) AS \"type\"{known} \
             FROM information_schema.tables t \
             LEFT JOIN system.tables s ON s.table_schema = t.table_schema AND s.table_name = t.table_name \
             WHERE {kinds} AND {names} ORDER BY 1, 2"
        );
        self.list(&sql, what, pattern)
    }

    pub(super) fn list_functions(&mut self, pattern: Option<&str>) -> Result<()> {
        let own = "SELECT name, definition AS \"description\" FROM system.functions";
        let Some(pattern) = pattern else {
            return self.list(&format!("{own} ORDER BY 1"), "functions of yours", None);
        };
        let condition = Name::parse(pattern).name_condition("name");
        let sql = format!(
            "SELECT DISTINCT name, description FROM ({own} UNION ALL \
             SELECT routine_name, description FROM information_schema.routines) AS f WHERE {condition} ORDER BY 1"
        );
        self.list(&sql, "functions", Some(pattern))
    }

    pub(super) fn list_schemas(&mut self, pattern: Option<&str>) -> Result<()> {
        let condition =
            pattern.map_or_else(|| "true".to_owned(), |pattern| Name::parse(pattern).name_condition("schema_name"));
        let schemas = "SELECT DISTINCT schema_name AS \"schema\" FROM information_schema.schemata";
        self.list(&format!("{schemas} WHERE {condition} ORDER BY 1"), "schemas", pattern)
    }

    pub(super) fn list_users(&mut self, pattern: Option<&str>) -> Result<()> {
        let condition =
            pattern.map_or_else(|| "true".to_owned(), |pattern| Name::parse(pattern).name_condition("name"));
        let sql = format!(
            "SELECT name, kind, CASE WHEN is_admin THEN 'administrator' ELSE '' END AS rights, member_of \
             FROM system.users WHERE {condition} ORDER BY 1"
        );
        self.list(&sql, "users and roles", pattern)
    }

    pub(super) fn list_rights(&mut self, pattern: Option<&str>) -> Result<()> {
        let condition = pattern.map_or_else(
            || "true".to_owned(),
            |pattern| Name::parse(pattern).condition("object_schema", "coalesce(object_name, object_schema)"),
        );
        // A line for each who has any, as in psql.
        let sql = format!(
            "SELECT object_schema AS \"schema\", object_name AS \"name\", object_kind AS \"type\", owner, grantee, \
             string_agg(privilege, ', ' ORDER BY privilege) AS rights \
             FROM system.grants WHERE {condition} GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2 NULLS FIRST, 5"
        );
        self.list(&sql, "rights", pattern)
    }

    pub(super) fn list_catalogs(&mut self) -> Result<()> {
        self.list(
            "SELECT DISTINCT catalog_name AS \"catalog\" FROM information_schema.schemata ORDER BY 1",
            "catalogs",
            None,
        )
    }

    /// Prints a list, or says in words that it is empty.
    fn list(&mut self, sql: &str, what: &str, pattern: Option<&str>) -> Result<()> {
        let rows = self.fetch(sql)?;
        let is_empty = rows.iter().all(|batch| batch.num_rows() == 0);
        if is_empty && self.interactive {
            let which = pattern.map_or_else(String::new, |pattern| format!(" like '{pattern}'"));
            self.terminal.say(&format!("there are no {what}{which}"));
            return Ok(());
        }
        let mut title = what.to_owned();
        if let Some(first) = title.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        if is_empty {
            return self.show(sql, Some(&title));
        }
        let rows: Vec<RecordBatch> = rows.into_iter().map(sized).collect::<Result<_>>()?;
        self.show_rows(&rows, Some(&title))
    }
}

/// The rows with `bytes` the way people read them, as `size`.
fn sized(batch: RecordBatch) -> Result<RecordBatch> {
    let Ok(at) = batch.schema().index_of("bytes") else { return Ok(batch) };
    let numbers = arrow::compute::cast(batch.column(at), &DataType::UInt64)?;
    let sizes = numbers.as_primitive::<UInt64Type>().iter().map(|bytes| bytes.map(units::bytes));
    let mut columns = batch.columns().to_vec();
    columns[at] = Arc::new(sizes.collect::<StringArray>());
    let mut fields = batch.schema().fields().to_vec();
    fields[at] = Arc::new(Field::new("size", DataType::Utf8, true));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// `Format: csv`, `Extents: 14 (21 MB, 200000 rows)`, as far as known.
fn table_facts(row: &[String]) -> Vec<String> {
    let [format, location, extents, bytes, rows, error] = row else { return Vec::new() };
    let mut lines = Vec::new();
    if !format.is_empty() {
        lines.push(format!("Format: {format}"));
    }
    if !location.is_empty() {
        lines.push(format!("Location: {location}"));
    }
    if !extents.is_empty() {
        let size = bytes.parse().ok().map(units::bytes);
        let rows = rows.parse().ok().map(units::rows);
        let more: Vec<String> = size.into_iter().chain(rows).collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
        lines.push(format!("Extents: {extents}{more}"));
    }
    if !error.is_empty() {
        lines.push(format!("Cannot be read: {error}"));
    }
    lines
}

/// Rows as text, a NULL as an empty one.
fn texts(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let text = |column: &arrow::array::ArrayRef| match column.as_string_opt::<i32>() {
                _ if column.is_null(row) => Ok(String::new()),
                Some(texts) => Ok(texts.value(row).to_owned()),
                None => array_value_to_string(column, row),
            };
            rows.push(batch.columns().iter().map(text).collect::<Result<_, _>>()?);
        }
    }
    Ok(rows)
}

/// A name or pattern as the user typed it: `t`, `s.t`, `"My T"`, `cl*`.
struct Name {
    schema: Option<String>,
    name: String,
}

impl Name {
    fn parse(text: &str) -> Self {
        let mut parts = vec![String::new()];
        let mut quoted = false;
        for character in text.chars() {
            match character {
                '"' => quoted = !quoted,
                '.' if !quoted => parts.push(String::new()),
                _ => {
                    if let Some(part) = parts.last_mut() {
                        if quoted { part.push(character) } else { part.extend(character.to_lowercase()) }
                    }
                }
            }
        }
        let name = parts.pop().unwrap_or_default();
        Self { schema: parts.pop(), name }
    }

    fn condition(&self, schema_column: &str, name_column: &str) -> String {
        let name = self.name_condition(name_column);
        match &self.schema {
            // As in psql: nothing behind the dot is all of the schema.
            Some(schema) if self.name.is_empty() => like(schema_column, schema),
            Some(schema) => format!("{} AND {name}", like(schema_column, schema)),
            None => name,
        }
    }

    /// The table that it would be if capital letters were small, as that has to be typed. `tables` are names and schemas.
    fn but_for_case(&self, tables: &[Vec<String>]) -> Option<String> {
        let is_same = |given: &str, known: &str| given.to_lowercase() == known.to_lowercase();
        tables.iter().find_map(|row| {
            let [table, schema] = row.as_slice() else { return None };
            match &self.schema {
                _ if !is_same(&self.name, table) => None,
                None => Some(typed(table)),
                Some(given) => is_same(given, schema).then(|| format!("{}.{}", typed(schema), typed(table))),
            }
        })
    }

    fn name_condition(&self, column: &str) -> String {
        like(column, &self.name)
    }
}

/// A part of a name as it has to be typed.
fn typed(part: &str) -> String {
    let is_plain = part.chars().all(|letter| !letter.is_uppercase() && (letter.is_alphanumeric() || letter == '_'));
    if is_plain { part.to_owned() } else { quoted(part, '"') }
}

/// `*` and `?` are wildcards, everything else stands for itself.
fn like(column: &str, pattern: &str) -> String {
    if !pattern.contains(['*', '?']) {
        return format!("{column} = {}", quoted(pattern, '\''));
    }
    let mut text = String::new();
    for character in pattern.chars() {
        match character {
            '*' => text.push('%'),
            '?' => text.push('_'),
            '%' | '_' | '\\' => text.extend(['\\', character]),
            other => text.push(other),
        }
    }
    format!("{column} LIKE {}", quoted(&text, '\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns_become_conditions() {
        let check = |text, expected| assert_eq!(Name::parse(text).condition("s", "n"), expected);
        check("Clicks", "n = 'clicks'");
        check("\"My.T\"", "n = 'My.T'");
        check("demo.cl*", "s = 'demo' AND n LIKE 'cl%'");
        check("a_b?'", "n LIKE 'a\\_b_'''");
        check("c.s.t", "s = 's' AND n = 't'");
        check("public.", "s = 'public'");
        check("Pub*.", "s LIKE 'pub%'");
        check("\"My.S\".", "s = 'My.S'");
        check("", "n = ''");
    }

    #[test]
    fn names_that_lack_their_quotes() {
        let tables = [["Caps", "public"], ["Two Words", "Lab"], ["own", "public"]];
        let tables = tables.map(|row| row.map(str::to_owned).to_vec());
        for (name, meant) in [
            ("Caps", Some("\"Caps\"")),
            ("caps", Some("\"Caps\"")),
            ("public.CAPS", Some("public.\"Caps\"")),
            ("\"OWN\"", Some("own")),
            ("lab.\"two words\"", Some("\"Lab\".\"Two Words\"")),
            ("lab.caps", None),
            ("cap", None),
        ] {
            assert_eq!(Name::parse(name).but_for_case(&tables).as_deref(), meant, "{name}");
        }
    }

    #[test]
    fn facts_are_told_as_far_as_known() {
        let row = |values: [&str; 6]| values.map(str::to_owned).to_vec();
        assert_eq!(
            table_facts(&row(["csv", "/x", "14", "21000000", "200", ""])),
            ["Format: csv", "Location: /x", "Extents: 14 (21 MB, 200 rows)"]
        );
        assert_eq!(table_facts(&row(["", "", "3", "", "", "gone"])), ["Extents: 3", "Cannot be read: gone"]);
    }
}
