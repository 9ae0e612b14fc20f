//! What Tab offers at a place in a statement.
//!
//! ```text
//!   inside quotes, after \i \o \copy    files
//!   after a dot                         columns of the table or alias, tables of the schema
//!   after FROM, JOIN, INTO, ..          tables, schemas, names of WITH
//!   after STORED AS, USE, SCHEMA        formats, schemas
//!   after SET, SHOW, RESET              settings
//!   elsewhere                           columns of the statement's tables, functions, keywords
//! ```

mod files;
mod relations;

use std::collections::BTreeSet;

use nectarine_engine::Names;
use rustyline::completion::Pair;

use crate::command::{COMMANDS, OPTIONS, STATEMENTS};
use crate::keywords::{KEYWORDS, is_keyword};
use crate::lexer::{Kind, Lexer, State, is_word_part, is_word_start};
use crate::variables::quoted;
use files::{Quotes, files};
use relations::{Use, relations};

/// Most candidates that are offered.
const CANDIDATES_MAX: usize = 500;

/// What there is to name.
pub(super) struct Known<'k> {
    pub(super) names: &'k Names,
    pub(super) variables: &'k [String],
}

/// Where the replaced text begins in the line, and what could replace it. `before` holds the statement's earlier lines.
pub(super) fn complete(before: &str, line: &str, position: usize, known: &Known<'_>) -> (usize, Vec<Pair>) {
    let Some(typed) = line.get(..position) else { return (position, Vec::new()) };
    let text = format!("{before}{typed}");
    let rest = &line[position..];
    let words = Words::read(&text);
    let (start, mut candidates) = match &words.place {
        Place::Command { start } => {
            let (offset, candidates) = command(&text[*start..], rest, known);
            (start + offset, candidates)
        }
        Place::Text { start } => {
            let quotes = if rest.starts_with('\'') { Quotes::Closed } else { Quotes::Open };
            (*start, files(&text[*start..], quotes))
        }
        Place::Nowhere => (text.len(), Vec::new()),
        Place::Name { start } => {
            (*start, name(&text[*start..], &words.words, &Words::read(&format!("{text}{rest}")).words, known))
        }
    };
    // A quote that is there already is not closed twice.
    if rest.starts_with('"') && text[start..].starts_with('"') {
        for pair in &mut candidates {
            let open = pair.replacement.strip_suffix("\".").or_else(|| pair.replacement.strip_suffix('"'));
            pair.replacement = open.map(str::to_owned).unwrap_or_default();
        }
        candidates.retain(|pair| !pair.replacement.is_empty());
    }
    // A name that began in an earlier line cannot be replaced from here.
    match start.checked_sub(before.len()) {
        Some(start) => (start, candidates),
        None => (position, Vec::new()),
    }
}

/// Where the cursor is.
enum Place {
    /// After a backslash.
    Command { start: usize },
    /// In a quoted text that begins here.
    Text { start: usize },
    /// In a comment, or right behind something that is whole: nothing can stand here.
    Nowhere,
    /// In a name that begins here, or where one could begin.
    Name { start: usize },
}

/// The last statement of a text, as words and marks without white space and comments.
struct Words {
    words: Vec<String>,
    place: Place,
}

impl Words {
    fn read(text: &str) -> Self {
        let mut words = Vec::new();
        let mut place = Place::Name { start: text.len() };
        let mut lexer = Lexer::new(text);
        while let Some(token) = lexer.next() {
            let piece = &text[token.range.clone()];
            let last = token.range.end == text.len();
            match token.kind {
                Kind::Mark if piece == "\\" => return Self { words, place: Place::Command { start: token.range.end } },
                Kind::Mark if piece == ";" => words.clear(),
                Kind::Text if last && *lexer.state() != State::Plain => {
                    let quote = piece.find('\'').map_or(piece.len(), |quote| quote + 1);
                    return Self { words, place: Place::Text { start: token.range.start + quote } };
                }
                Kind::Comment if last && (*lexer.state() != State::Plain || piece.starts_with("--")) => {
                    return Self { words, place: Place::Nowhere };
                }
                Kind::Quoted if last && *lexer.state() != State::Plain => {
                    return Self { words, place: Place::Name { start: token.range.start } };
                }
                Kind::Text | Kind::Number if last => {
                    place = Place::Nowhere;
                    words.push(piece.to_owned());
                }
                // A quoted name that is closed is still the name that is being completed.
                Kind::Word | Kind::Quoted if last => {
                    place = Place::Name { start: token.range.start };
                    words.push(piece.to_owned());
                }
                Kind::Space | Kind::Comment => {}
                _ => words.push(piece.to_owned()),
            }
        }
        Self { words, place }
    }
}

/// Candidates for a name of which `prefix` is typed; `words` end with it, `all` go on to the end of the statement.
fn name(prefix: &str, words: &[String], all: &[String], known: &Known<'_>) -> Vec<Pair> {
    let names = known.names;
    let preceding = before(prefix, words);
    let previous = preceding.last().map(String::as_str).unwrap_or_default();
    let scope = scope(all);

    if let Some(settings) = settings(prefix, preceding, names) {
        return settings;
    }
    let before_name = &preceding[..preceding.len() - qualifiers(preceding)];
    let context = before_name.last().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let clause =
        before_name.iter().rev().map(|word| word.to_ascii_uppercase()).find(|word| CLAUSES.contains(&word.as_str()));
    let names_table =
        matches!(context.as_str(), "FROM" | "JOIN" | "INTO" | "TABLE" | "VIEW" | "DESCRIBE" | "COPY" | "UPDATE")
            || (context == "," && clause.as_deref() == Some("FROM"))
            || (context == "EXISTS"
                && begins_with(preceding, &["DROP", "ALTER"])
                && has_any(preceding, &["TABLE", "VIEW"]));
    if names_table {
        let is_target = matches!(context.as_str(), "TABLE" | "VIEW" | "EXISTS")
            && begins_with(preceding, &["DROP", "ALTER", "CREATE", "REFRESH"]);
        let is_change = is_target || matches!(context.as_str(), "INTO" | "UPDATE");
        let what_for = if is_change { Use::Change } else { Use::Read };
        return match qualifier(preceding) {
            Some(schema) => relations(Some(&schema), prefix, names, what_for, Vec::new()),
            None => relations(None, prefix, names, what_for, with_names(all)),
        };
    }
    if previous == "." {
        let qualifier = qualifier(preceding).unwrap_or_default();
        let mut found: Vec<String> = Vec::new();
        for (schema, table, columns) in &names.tables {
            if schema.eq_ignore_ascii_case(&qualifier) {
                found.push(table.clone());
            }
            let meant =
                scope.iter().any(|named| named.alias.eq_ignore_ascii_case(&qualifier) && named.is(schema, table));
            if meant || table.eq_ignore_ascii_case(&qualifier) {
                found.extend(columns.iter().cloned());
            }
        }
        return identifiers(prefix, found);
    }
    if matches!(context.as_str(), "SCHEMA" | "USE") || (context == "EXISTS" && has_any(preceding, &["SCHEMA"])) {
        return identifiers(prefix, names.schemas.iter().cloned());
    }
    let formats: Option<&[&str]> = match preceding {
        [.., stored, word] if stored.eq_ignore_ascii_case("STORED") && word.eq_ignore_ascii_case("AS") => {
            Some(&["PARQUET", "CSV", "JSON", "ARROW", "AVRO"])
        }
        [first, .., word] if first.eq_ignore_ascii_case("COPY") && word.eq_ignore_ascii_case("FORMAT") => {
            Some(&["csv", "json", "parquet", "arrow"])
        }
        _ => None,
    };
    if let Some(formats) = formats {
        // As the words before it are written.
        let lower = previous.chars().all(char::is_lowercase);
        return pairs(
            prefix,
            formats.iter().map(|format| if lower { format.to_lowercase() } else { (*format).to_owned() }),
        );
    }

    let in_scope = names.tables.iter().filter(|(schema, table, _)| scope.iter().any(|named| named.is(schema, table)));
    let columns = in_scope.flat_map(|(_, _, columns)| columns.iter().cloned());
    let aliases = scope.iter().map(|named| named.alias.clone());
    let mut found = identifiers(prefix, columns.chain(aliases));
    if prefix.is_empty() {
        return found;
    }
    let lower = prefix.chars().all(|character| !character.is_uppercase());
    let cased = |word: &str| if lower { word.to_lowercase() } else { word.to_uppercase() };
    if preceding.is_empty() || !prefix.starts_with('"') {
        found.extend(pairs(prefix, KEYWORDS.iter().map(|keyword| cased(keyword))));
    }
    if !preceding.is_empty() {
        found.extend(pairs(prefix, names.functions.iter().map(|function| format!("{function}("))));
    }
    found.truncate(CANDIDATES_MAX);
    found
}

/// The words without the one that is being typed.
fn before<'w>(prefix: &str, words: &'w [String]) -> &'w [String] {
    match words.split_last() {
        Some((last, preceding)) if !prefix.is_empty() && last == prefix => preceding,
        _ => words,
    }
}

/// How many words at the end are schemas and dots before a name.
fn qualifiers(words: &[String]) -> usize {
    let mut n = 0;
    while n + 1 < words.len() && words[words.len() - 1 - n] == "." {
        n += 2;
    }
    n
}

/// The name before the dot that the words end with.
fn qualifier(words: &[String]) -> Option<String> {
    match words {
        [.., name, dot] if dot == "." => Some(bare(name)),
        _ => None,
    }
}

fn begins_with(words: &[String], any: &[&str]) -> bool {
    words.first().is_some_and(|word| any.iter().any(|wanted| word.eq_ignore_ascii_case(wanted)))
}

fn has_any(words: &[String], any: &[&str]) -> bool {
    words.iter().any(|word| any.iter().any(|wanted| word.eq_ignore_ascii_case(wanted)))
}

/// Settings, where a statement names one.
fn settings(prefix: &str, preceding: &[String], names: &Names) -> Option<Vec<Pair>> {
    let (first, begun) = preceding.split_first()?;
    let first = first.to_ascii_uppercase();
    if !matches!(first.as_str(), "SET" | "SHOW" | "RESET")
        || begun.iter().any(|word| word != "." && !is_setting_part(word))
    {
        return None;
    }
    // Only what follows the last dot is replaced.
    let begun = begun.concat();
    let settings = names.settings.iter().filter_map(|setting| setting.strip_prefix(&begun).map(str::to_owned));
    let lists = ["ALL", "TABLES", "VIEWS", "SCHEMAS", "COLUMNS FROM", "FUNCTIONS", "CREATE TABLE"]
        .iter()
        .filter(|_| first == "SHOW" && begun.is_empty());
    Some(pairs(prefix, settings.chain(lists.map(|list| (*list).to_owned()))))
}

/// Words that say what kind of thing follows.
const CLAUSES: &[&str] =
    &["SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "ON", "USING", "SET", "VALUES", "LIMIT"];

fn is_setting_part(word: &str) -> bool {
    word.bytes().next().is_some_and(is_word_start) && word.bytes().all(is_word_part) && !is_keyword(word)
}

/// A table that the statement reads, and what it is called there.
struct Named {
    schema: Option<String>,
    table: String,
    alias: String,
}

impl Named {
    fn is(&self, schema: &str, table: &str) -> bool {
        self.table.eq_ignore_ascii_case(table)
            && self.schema.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(schema))
    }
}

/// The tables that follow FROM, JOIN, INTO and UPDATE.
fn scope(words: &[String]) -> Vec<Named> {
    let mut found = Vec::new();
    let is = |at: usize, wanted: &str| words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(wanted));
    let is_name = |at: usize| {
        words.get(at).is_some_and(|word| {
            word.starts_with('"') || (word.bytes().next().is_some_and(is_word_start) && !is_keyword(word))
        })
    };
    let mut at = 0;
    while at < words.len() {
        let opens = ["FROM", "JOIN", "INTO", "UPDATE"].iter().any(|word| is(at, word));
        at += 1;
        let mut more = opens;
        while more && is_name(at) {
            let mut parts = vec![bare(&words[at])];
            at += 1;
            while is(at, ".") && is_name(at + 1) {
                parts.push(bare(&words[at + 1]));
                at += 2;
            }
            let table = parts.pop().unwrap_or_default();
            let named_as = if is(at, "AS") { at + 1 } else { at };
            let alias = if is_name(named_as) {
                at = named_as + 1;
                bare(&words[named_as])
            } else {
                table.clone()
            };
            found.push(Named { schema: parts.pop(), table, alias });
            more = is(at, ",");
            at += usize::from(more);
        }
    }
    found
}

/// Names given by WITH.
fn with_names(words: &[String]) -> Vec<String> {
    let with = words.iter().any(|word| word.eq_ignore_ascii_case("WITH"));
    let named = words.windows(3).filter(|three| with && three[1].eq_ignore_ascii_case("AS") && three[2] == "(");
    named.map(|three| bare(&three[0])).collect()
}

/// A name without its quotes.
fn bare(word: &str) -> String {
    let inner = word.strip_prefix('"').map(|rest| rest.strip_suffix('"').unwrap_or(rest));
    inner.map_or_else(|| word.to_owned(), |inner| inner.replace("\"\"", "\""))
}

/// Names that begin as typed, as they must be written.
fn identifiers(prefix: &str, names: impl IntoIterator<Item = String>) -> Vec<Pair> {
    let begun = bare(prefix).to_lowercase();
    let matching: BTreeSet<String> = names.into_iter().filter(|name| name.to_lowercase().starts_with(&begun)).collect();
    matching.into_iter().take(CANDIDATES_MAX).map(|name| pair(identifier(prefix, &name))).collect()
}

/// A name, quoted where that is needed or was begun.
fn identifier(prefix: &str, name: &str) -> String {
    let mut bytes = name.bytes();
    let plain = bytes.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain && !prefix.starts_with('"') && !reserved(name) { name.to_owned() } else { quoted(name, '"') }
}

/// Words that mean something else without quotes.
fn reserved(name: &str) -> bool {
    const RESERVED: &[&str] = &[
        "all",
        "and",
        "as",
        "by",
        "case",
        "create",
        "cross",
        "distinct",
        "else",
        "end",
        "except",
        "exists",
        "false",
        "from",
        "full",
        "group",
        "having",
        "in",
        "inner",
        "intersect",
        "into",
        "is",
        "join",
        "left",
        "like",
        "limit",
        "not",
        "null",
        "offset",
        "on",
        "or",
        "order",
        "outer",
        "right",
        "select",
        "table",
        "then",
        "true",
        "union",
        "using",
        "when",
        "where",
        "with",
    ];
    RESERVED.binary_search(&name).is_ok()
}

fn pairs(prefix: &str, names: impl IntoIterator<Item = String>) -> Vec<Pair> {
    let begun = prefix.to_lowercase();
    let matching: BTreeSet<String> = names.into_iter().filter(|name| name.to_lowercase().starts_with(&begun)).collect();
    matching.into_iter().take(CANDIDATES_MAX).map(pair).collect()
}

fn pair(text: String) -> Pair {
    Pair { display: text.clone(), replacement: text }
}

/// Candidates after a backslash, and where in the command they belong. `rest` is what follows the cursor.
fn command(text: &str, rest: &str, known: &Known<'_>) -> (usize, Vec<Pair>) {
    let Some(space) = text.find(char::is_whitespace) else {
        return (0, pairs(text, COMMANDS.iter().map(|command| command.name.to_owned())));
    };
    let name = &text[..space];
    let start = argument_start(text);
    let word = &text[start..];
    let n_words = text[..start].split_whitespace().count();
    let list = |values: &[&str]| pairs(word, values.iter().map(|value| (*value).to_owned()));
    let paths = || match word.strip_prefix('\'') {
        Some(typed) if rest.starts_with('\'') => (start + 1, files(typed, Quotes::Closed)),
        Some(typed) => (start + 1, files(typed, Quotes::Open)),
        None => (start, files(word, Quotes::None)),
    };
    match name {
        "i" | "o" | "e" | "g" | "cd" => paths(),
        "copy" if n_words >= 3 => paths(),
        "copy" if n_words == 2 => (start, list(&["from", "to"])),
        "copy" | "d" | "dt" | "dv" | "dm" | "dp" => {
            let Words { words, place } = Words::read(word);
            let Place::Name { start: offset } = place else { return (text.len(), Vec::new()) };
            let prefix = &word[offset..];
            let schema = qualifier(before(prefix, &words));
            (start + offset, relations(schema.as_deref(), prefix, known.names, Use::Read, Vec::new()))
        }
        "df" => (start, pairs(word, known.names.functions.iter().cloned())),
        "dn" => (start, identifiers(word, known.names.schemas.iter().cloned())),
        "h" | "help" => {
            let start = space + text[space..].len() - text[space..].trim_start().len();
            let typed = &text[start..];
            let lower = typed.chars().any(char::is_lowercase);
            let cased = |name: &&str| if lower { name.to_lowercase() } else { (*name).to_owned() };
            (start, pairs(typed, STATEMENTS.iter().map(|(name, _)| cased(name))))
        }
        "x" => (start, list(&["on", "off", "auto"])),
        "timing" | "t" => (start, list(&["on", "off"])),
        "set" | "unset" => (start, pairs(word, known.variables.iter().cloned())),
        "pset" if n_words == 1 => (start, pairs(word, OPTIONS.iter().map(|(name, _)| (*name).to_owned()))),
        "pset" => {
            let option = text.split_whitespace().nth(1).unwrap_or_default();
            let values = OPTIONS.iter().find(|(name, _)| *name == option).map_or(&[][..], |(_, values)| values);
            (start, list(values))
        }
        _ => (start, Vec::new()),
    }
}

/// Where the last argument of a command begins: behind the last white space that no quotes hold together.
fn argument_start(text: &str) -> usize {
    let mut start = 0;
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (character, quote) {
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(open)) if open == character => quote = None,
            (_, None) if character.is_whitespace() => start = at + character.len_utf8(),
            _ => {}
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(before: &str, line: &str) -> Vec<String> {
        // The cursor stands at the bar, else at the end.
        let position = line.find('|').unwrap_or(line.len());
        let line = line.replace('|', "");
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let names = Names {
            schemas: texts(&["public", "demo", "system", "information_schema"]),
            current_schema: "public".to_owned(),
            tables: vec![
                ("public".to_owned(), "clicks".to_owned(), texts(&["ts", "page", "User Id"])),
                ("demo".to_owned(), "users".to_owned(), texts(&["user_id", "country"])),
                ("system".to_owned(), "cache_entries".to_owned(), texts(&["bytes"])),
                ("system".to_owned(), "queries".to_owned(), texts(&["sql"])),
            ],
            functions: texts(&["count", "concat"]),
            settings: texts(&["nectarine.memory", "datafusion.x"]),
        };
        let known = Known { names: &names, variables: &texts(&["me"]) };
        let (start, found) = complete(before, &line, position, &known);
        found.into_iter().map(|pair| format!("{}{}", &line[..start], pair.replacement)).collect()
    }

    #[test]
    fn tables_follow_from() {
        assert_eq!(offered("", "select * from cl"), ["select * from clicks"]);
        assert_eq!(
            offered("select *\n", "from "),
            ["from clicks", "from demo.users", "from information_schema.", "from system."]
        );
        assert_eq!(offered("", "with w1 as (select 1) select * from w"), ["with w1 as (select 1) select * from w1"]);
        assert_eq!(offered("", "select * from demo."), ["select * from demo.users"]);
        assert_eq!(offered("", "drop derived table cl"), ["drop derived table clicks"]);
        assert_eq!(offered("", "drop table if exists cl"), ["drop table if exists clicks"]);
    }

    #[test]
    fn tables_of_other_schemas_are_written_with_theirs() {
        assert_eq!(offered("", "select * from us"), ["select * from demo.users"]);
        assert_eq!(offered("", "select * from dem"), ["select * from demo.users"]);
        assert_eq!(offered("", "select * from clicks, us"), ["select * from clicks, demo.users"]);
        assert_eq!(offered("", "refresh materialized view us"), ["refresh materialized view demo.users"]);
        assert_eq!(offered("", "\\d us"), ["\\d demo.users"]);
        assert_eq!(offered("", "\\d demo."), ["\\d demo.users"]);
        assert_eq!(offered("", "\\d demo.u"), ["\\d demo.users"]);
        assert_eq!(offered("", "\\d \"demo\".\"us"), ["\\d \"demo\".\"users\""]);
        assert_eq!(offered("", "use d"), ["use demo"]);
        assert_eq!(offered("", "drop schema if exists d"), ["drop schema if exists demo"]);
    }

    #[test]
    fn what_the_engine_knows_of_itself_is_behind_its_schema() {
        assert_eq!(offered("", "drop table c"), ["drop table clicks"]);
        assert_eq!(offered("", "insert into c"), ["insert into clicks"]);
        assert_eq!(offered("", "drop table sys"), Vec::<String>::new());
        assert_eq!(offered("", "drop table system."), Vec::<String>::new());
        assert_eq!(offered("", "select * from sys"), ["select * from system."]);
        assert_eq!(
            offered("", "select * from system."),
            ["select * from system.cache_entries", "select * from system.queries"]
        );
        assert_eq!(offered("", "create view v as select * from sys"), ["create view v as select * from system."]);
        assert_eq!(offered("", "\\d system.q"), ["\\d system.queries"]);
        assert_eq!(offered("", "select * from information_schema.sch"), ["select * from information_schema.schemata"]);
    }

    #[test]
    fn quoted_names_are_completed_once() {
        assert_eq!(offered("", "select * from \"dem"), ["select * from \"demo\".\"users\""]);
        assert_eq!(offered("", "select * from \"clicks\""), ["select * from \"clicks\""]);
        assert_eq!(offered("", "use \"dem"), ["use \"demo\""]);
        assert_eq!(offered("", "use \"demo\""), ["use \"demo\""]);
        // The quote behind the cursor stays where it is.
        assert_eq!(offered("", "use \"dem|\""), ["use \"demo"]);
        assert_eq!(offered("", "select * from \"sys|\""), ["select * from \"system"]);
        for whole in ["select 'a'", "select 12"] {
            assert_eq!(offered("", whole), Vec::<String>::new());
        }
    }

    #[test]
    fn formats_follow_stored_as() {
        assert_eq!(
            offered("", "create external table t stored as "),
            ["arrow", "avro", "csv", "json", "parquet"]
                .map(|format| format!("create external table t stored as {format}"))
        );
        assert_eq!(offered("", "COPY clicks TO 'x' STORED AS PA"), ["COPY clicks TO 'x' STORED AS PARQUET"]);
        assert_eq!(offered("", "copy clicks to 'x' (format c"), ["copy clicks to 'x' (format csv"]);
    }

    #[test]
    fn columns_come_from_the_statements_tables() {
        assert_eq!(
            offered("", "select p| from clicks"),
            [
                "select page",
                "select parquet",
                "select partition",
                "select partitioned",
                "select pin",
                "select preceding",
                "select prepare",
                "select primary",
                "select provenance",
                "select purge"
            ]
        );
        assert_eq!(
            offered("", "select c.| from clicks as c"),
            ["select c.\"User Id\"", "select c.page", "select c.ts"]
        );
        assert_eq!(
            offered("", "select * from demo.users u where u.co"),
            ["select * from demo.users u where u.country"]
        );
        assert_eq!(offered("", "select * from clicks where \"us"), ["select * from clicks where \"User Id\""]);
    }

    #[test]
    fn keywords_and_functions_keep_the_typed_case() {
        assert_eq!(offered("", "sel"), ["select"]);
        assert_eq!(offered("", "SEL"), ["SELECT"]);
        assert_eq!(offered("", "create mat"), ["create materialized"]);
        assert_eq!(offered("", "select cou"), ["select count("]);
        assert_eq!(offered("select 1; ", "sel"), ["select"]);
    }

    #[test]
    fn settings_follow_set() {
        assert_eq!(offered("", "set nec"), ["set nectarine.memory"]);
        assert_eq!(offered("", "set nectarine.m"), ["set nectarine.memory"]);
        assert_eq!(offered("", "set x = nec"), Vec::<String>::new());
        assert_eq!(offered("", "show TAB"), ["show TABLES"]);
    }

    #[test]
    fn commands_and_their_arguments() {
        assert_eq!(offered("", "\\tim"), ["\\timing"]);
        assert_eq!(offered("", "\\h create mat"), ["\\h create materialized view"]);
        assert_eq!(offered("", "\\pset form"), ["\\pset format"]);
        assert_eq!(offered("", "\\pset format js"), ["\\pset format json"]);
        assert_eq!(offered("", "\\unset "), ["\\unset me"]);
        assert_eq!(offered("", "\\x "), ["\\x auto", "\\x off", "\\x on"]);
    }

    #[test]
    fn files_inside_quotes() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("it's.csv"), "").unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let path = folder.path().display();
        std::fs::write(folder.path().join("my file.sql"), "").unwrap();
        std::fs::create_dir(folder.path().join("new folder")).unwrap();
        std::fs::write(folder.path().join("new folder/x.sql"), "").unwrap();
        let check = |typed: &str, expected: &str| {
            let path = |text: &str| text.replace('~', &path.to_string());
            assert_eq!(offered("", &path(typed)), [path(expected)]);
        };
        // A file ends the text, a folder does not; a quote that is there is not written again.
        check("select * from '~/i", "select * from '~/it''s.csv'");
        check("select * from '~/it''", "select * from '~/it''s.csv'");
        check("select * from '~/i|'", "select * from '~/it''s.csv");
        check("\\i ~/s", "\\i ~/sub/");
        check("\\copy t from '~/s", "\\copy t from '~/sub/");
        // What a blank would end is quoted.
        check("\\i ~/my", "\\i '~/my file.sql'");
        check("\\i '~/my f", "\\i '~/my file.sql'");
        check("\\i ~/it", "\\i '~/it''s.csv'");
        check("\\i ~/new", "\\i '~/new folder/");
        check("\\i '~/new folder/", "\\i '~/new folder/x.sql'");
        assert_eq!(offered("", "select 'nothing/there/"), Vec::<String>::new());
    }

    #[test]
    fn nothing_in_comments_and_odd_places() {
        assert_eq!(offered("", "select 1 -- sel"), Vec::<String>::new());
        assert_eq!(offered("select \"a\n", "b"), Vec::<String>::new());
        assert_eq!(offered("", ""), Vec::<String>::new());
    }
}
