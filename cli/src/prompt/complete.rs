//! What Tab offers at a place in a statement.
//!
//! ```text
//!   inside quotes, after \i \o \copy    files
//!   after a dot                         columns of the table or alias, tables of the schema
//!   after FROM, JOIN, INTO, ..          tables, schemas, names of WITH
//!   after SET, SHOW, RESET              settings
//!   elsewhere                           columns of the statement's tables, functions, keywords
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use nectarine_engine::Names;
use rustyline::completion::Pair;

use crate::command::{COMMANDS, OPTIONS};
use crate::keywords::{KEYWORDS, is_keyword};
use crate::lexer::{Kind, Lexer, State, is_word_part, is_word_start};
use crate::variables::quoted;

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
    let words = Words::read(&text);
    let (start, candidates) = match &words.place {
        Place::Command { start } => {
            let (offset, candidates) = command(&text[*start..], known);
            (start + offset, candidates)
        }
        Place::Text { start } => (*start, files(&text[*start..], true)),
        Place::Comment => (text.len(), Vec::new()),
        Place::Name { start } => {
            let rest = &line[position..];
            (*start, name(&text[*start..], &words.words, &Words::read(&format!("{text}{rest}")).words, known))
        }
    };
    // A name that began in an earlier line cannot be replaced from here.
    match start.checked_sub(before.len()) {
        Some(start) => (start, candidates),
        None => (position, Vec::new()),
    }
}

/// Where the cursor is.
enum Place {
    /// After a backslash.
    Command {
        start: usize,
    },
    /// In a quoted text that begins here.
    Text {
        start: usize,
    },
    Comment,
    /// In a name that begins here, or where one could begin.
    Name {
        start: usize,
    },
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
                    return Self { words, place: Place::Comment };
                }
                Kind::Quoted if last && *lexer.state() != State::Plain => {
                    return Self { words, place: Place::Name { start: token.range.start } };
                }
                Kind::Word if last => {
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
    let preceding = match words.split_last() {
        Some((last, preceding)) if !prefix.is_empty() && last == prefix => preceding,
        _ => words,
    };
    let previous = preceding.last().map(String::as_str).unwrap_or_default();
    let scope = scope(all);

    if let Some(settings) = settings(prefix, preceding, names) {
        return settings;
    }
    if previous == "." {
        let qualifier = preceding.iter().rev().nth(1).map(|word| bare(word)).unwrap_or_default();
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

    let clause =
        preceding.iter().rev().map(|word| word.to_ascii_uppercase()).find(|word| CLAUSES.contains(&word.as_str()));
    let names_table = matches!(
        previous.to_ascii_uppercase().as_str(),
        "FROM" | "JOIN" | "INTO" | "TABLE" | "VIEW" | "DESCRIBE" | "COPY" | "UPDATE"
    ) || (previous == "," && clause.as_deref() == Some("FROM"));
    if names_table {
        let tables = names.tables.iter().map(|(_, table, _)| table.clone());
        let found = tables.chain(names.schemas.iter().cloned()).chain(with_names(all));
        return identifiers(prefix, found);
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
    let lists = ["ALL", "TABLES", "COLUMNS FROM", "FUNCTIONS", "CREATE TABLE"]
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

/// Names as they must be written, quoted where that is needed or was begun.
fn identifiers(prefix: &str, names: impl IntoIterator<Item = String>) -> Vec<Pair> {
    let begun = bare(prefix).to_lowercase();
    let plain = |name: &str| {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
            && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let written = |name: String| {
        if plain(&name) && !prefix.starts_with('"') && !reserved(&name) { name } else { quoted(&name, '"') }
    };
    let matching: BTreeSet<String> = names.into_iter().filter(|name| name.to_lowercase().starts_with(&begun)).collect();
    matching.into_iter().take(CANDIDATES_MAX).map(|name| pair(written(name))).collect()
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

/// Candidates after a backslash, and where in the command they belong.
fn command(text: &str, known: &Known<'_>) -> (usize, Vec<Pair>) {
    let Some(space) = text.find(char::is_whitespace) else {
        return (0, pairs(text, COMMANDS.iter().map(|command| command.name.to_owned())));
    };
    let name = &text[..space];
    let start =
        text.rfind(char::is_whitespace).map_or(0, |last| last + text[last..].chars().next().map_or(1, char::len_utf8));
    let word = &text[start..];
    let n_words = text[..start].split_whitespace().count();
    let list = |values: &[&str]| pairs(word, values.iter().map(|value| (*value).to_owned()));
    let tables = || known.names.tables.iter().map(|(_, table, _)| table.clone());
    match name {
        "i" | "o" | "e" | "g" | "cd" => {
            let quote = usize::from(word.starts_with('\''));
            (start + quote, files(&word[quote..], quote == 1))
        }
        "copy" if n_words >= 3 => {
            let quote = usize::from(word.starts_with('\''));
            (start + quote, files(&word[quote..], quote == 1))
        }
        "copy" if n_words == 2 => (start, list(&["from", "to"])),
        "copy" | "d" | "dt" | "dv" | "dm" => {
            (start, identifiers(word, tables().chain(known.names.schemas.iter().cloned())))
        }
        "df" => (start, pairs(word, known.names.functions.iter().cloned())),
        "dn" => (start, identifiers(word, known.names.schemas.iter().cloned())),
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

/// Files and folders whose path begins like this.
fn files(typed: &str, in_quotes: bool) -> Vec<Pair> {
    let (folder, begun) = match typed.rfind('/') {
        Some(slash) => typed.split_at(slash + 1),
        None => ("", typed),
    };
    let place = if folder.is_empty() { Path::new(".") } else { Path::new(folder) };
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let mut found = BTreeSet::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.starts_with(begun) || (name.starts_with('.') && begun.is_empty()) {
            continue;
        }
        let is_folder = entry.path().is_dir();
        found.insert(if is_folder { format!("{name}/") } else { name });
    }
    let written = |name: &str| {
        if in_quotes { format!("{folder}{}", name.replace('\'', "''")) } else { format!("{folder}{name}") }
    };
    found.into_iter().take(CANDIDATES_MAX).map(|name| Pair { replacement: written(&name), display: name }).collect()
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
            schemas: texts(&["public", "demo"]),
            tables: vec![
                ("public".to_owned(), "clicks".to_owned(), texts(&["ts", "page", "User Id"])),
                ("demo".to_owned(), "users".to_owned(), texts(&["user_id", "country"])),
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
        assert_eq!(offered("select *\n", "from "), ["from clicks", "from demo", "from public", "from users"]);
        assert_eq!(offered("", "select * from clicks, us"), ["select * from clicks, users"]);
        assert_eq!(offered("", "with w1 as (select 1) select * from w"), ["with w1 as (select 1) select * from w1"]);
        assert_eq!(offered("", "select * from demo."), ["select * from demo.users"]);
        assert_eq!(offered("", "refresh materialized view us"), ["refresh materialized view users"]);
        assert_eq!(offered("", "drop derived table cl"), ["drop derived table clicks"]);
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
        assert_eq!(offered("", "\\d us"), ["\\d users"]);
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
        assert_eq!(offered("", &format!("select * from '{path}/i")), [format!("select * from '{path}/it''s.csv")]);
        assert_eq!(offered("", &format!("\\i {path}/s")), [format!("\\i {path}/sub/")]);
        assert_eq!(offered("", &format!("\\copy t from '{path}/s")), [format!("\\copy t from '{path}/sub/")]);
        assert_eq!(offered("", "select 'nothing/there/"), Vec::<String>::new());
    }

    #[test]
    fn nothing_in_comments_and_odd_places() {
        assert_eq!(offered("", "select 1 -- sel"), Vec::<String>::new());
        assert_eq!(offered("select \"a\n", "b"), Vec::<String>::new());
        assert_eq!(offered("", ""), Vec::<String>::new());
    }
}
