//! Other people's messages in our words: one line in lower case without a full stop, the rest as detail, advice as
//! hint.

/// A message taken apart.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Words {
    pub(super) message: String,
    pub(super) detail: Option<String>,
    pub(super) hint: Option<String>,
}

/// Takes apart a message of DataFusion, arrow or a driver.
pub(super) fn words(text: &str) -> Words {
    // With the feature `backtrace`, it is part of the message.
    let text = text.split("\n\nbacktrace: ").next().unwrap_or(text);
    let mut hint = None;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.contains("likely caused by a bug in DataFusion") {
            continue;
        }
        match line.split_once("Did you mean ") {
            Some((before, meant)) => {
                let meant = meant.trim_end_matches(['?', '.', ' ']).trim_matches('\'');
                hint.get_or_insert_with(|| format!("did you mean \"{meant}\"?"));
                lines.push(before);
            }
            None => lines.push(line),
        }
    }
    let mut lines = lines.into_iter().map(|line| plain(unprefixed(line))).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let mut detail: Vec<String> = lines.collect();
    let mut sentences = sentences(without_debug(&first)).into_iter();
    let message = sentences.next().map(plain).unwrap_or_default();
    for (at, sentence) in sentences.enumerate() {
        if hint.is_none() && ADVICE.iter().any(|word| sentence.starts_with(word)) {
            hint = Some(plain(sentence));
        } else {
            detail.insert(at.min(detail.len()), plain(sentence));
        }
    }
    Words { message, detail: (!detail.is_empty()).then(|| detail.join("\n")), hint }
}

/// How DataFusion begins a sentence that says what to do.
const ADVICE: &[&str] = &["Consider ", "You ", "Use ", "Please ", "Try ", "Hint: "];

/// Cut where a full stop is followed by a capital: names and numbers have no space after their dots.
fn sentences(line: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut rest = line;
    let mut from = 0;
    while let Some(at) = rest[from..].find(". ").map(|at| from + at) {
        let next = &rest[at + 2..];
        if next.starts_with(|c: char| c.is_uppercase()) {
            sentences.push(&rest[..at]);
            rest = next;
            from = 0;
        } else {
            from = at + 2;
        }
    }
    sentences.push(rest);
    sentences
}

/// Some messages end with a node of the syntax tree as only programmers print it.
fn without_debug(line: &str) -> &str {
    match line.find('{') {
        Some(at) if line.contains("Location(") => {
            let before = line[..at].trim_end();
            before.rsplit_once(' ').map_or(before, |(before, _node)| before)
        }
        _ => line,
    }
}

/// One line in lower case without a full stop. A first word with more than one capital stays: it is a keyword or a
/// name.
pub(super) fn plain(line: &str) -> String {
    let line = line.trim().trim_end_matches(['.', ':']);
    let first = line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(line);
    let mut chars = line.chars();
    match chars.next() {
        Some(c)
            if c.is_uppercase() && !first.chars().skip(1).any(|c| c.is_uppercase() || c == '_') && first.len() > 1 =>
        {
            c.to_lowercase().collect::<String>() + chars.as_str()
        }
        _ => line.to_owned(),
    }
}

/// Layers of DataFusion and arrow put their names before each other's messages.
fn unprefixed(line: &str) -> &str {
    const PREFIXES: &[&str] = &[
        "DataFusion error: ",
        "Error during planning: ",
        "Execution error: ",
        "Internal error: ",
        "External error: ",
        "External: ",
        "Arrow error: ",
        "Arrow: ",
        "Parquet error: ",
        "Parquet argument error: ",
        "Object Store error: ",
        "IO error: ",
        "Io error: ",
        "SQL error: ",
        "Schema error: ",
        "Resources exhausted: ",
        "This feature is not implemented: ",
        "Invalid or Unsupported Configuration: ",
        "Compute error: ",
        "Cast error: ",
        "Parser error: ",
        "Csv error: ",
        "Json error: ",
        "Invalid argument error: ",
        "Arithmetic overflow: ",
        "EOF: ",
        "Error: ",
    ];
    let mut line = line;
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| line.strip_prefix(prefix)) {
        line = rest;
    }
    line
}

/// What a server of objects answered: its status and its words, without the markup around them.
pub(super) fn server_words(text: &str) -> Option<(u16, String)> {
    let (_, answer) = text.split_once("Server returned ")?;
    let status = answer.split_once("status code: ").map(|(_, rest)| rest);
    let digits = status.and_then(|status| status.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    let element = |name: &str| {
        let (_, rest) = answer.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(content, _)| plain(content)).filter(|content| !content.is_empty())
    };
    let said = match (element("Message"), element("Code")) {
        (Some(message), Some(code)) => format!("{message} ({code})"),
        (Some(only), None) | (None, Some(only)) => only,
        // Without a body, the status has a name.
        (None, None) => {
            let name = status.unwrap_or(answer).trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
            plain(name.split(['<', '\n']).next().unwrap_or(name).trim())
        }
    };
    Some((digits.unwrap_or(200), said))
}

/// An operating system's word without its number.
pub(super) fn plain_io(error: &std::io::Error) -> String {
    let text = error.to_string();
    plain(text.split(" (os error").next().unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_talk_without_markup() {
        let text = "Error performing GET http://h/b in 1ms - Server returned non-2xx status code: 404 Not Found: \
                    <?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>The bucket is not there.</Message>";
        assert_eq!(server_words(text), Some((404, "the bucket is not there (NoSuchBucket)".to_owned())));
        let text = "Server returned non-2xx status code: 403 Forbidden: ";
        assert_eq!(server_words(text), Some((403, "forbidden".to_owned())));
        assert_eq!(server_words("connection refused"), None);
    }

    #[test]
    fn takes_messages_apart() {
        let words = words("Error during planning: Invalid function 'abss'.\nDid you mean 'abs'?\n\nbacktrace: 0: main");
        assert_eq!(words.message, "invalid function 'abss'");
        assert_eq!(words.hint.as_deref(), Some("did you mean \"abs\"?"));
        assert_eq!(words.detail, None);
        let boilerplate = super::words(
            "Internal error: Something.\nThis issue was likely caused by a bug in DataFusion's code. Please help",
        );
        assert_eq!(boilerplate.message, "something");
        let sentences =
            super::words("Names must be unique, see a.b 1.5. Nothing matches. Consider aliasing (\"AS\") one of them.");
        assert_eq!(sentences.message, "names must be unique, see a.b 1.5");
        assert_eq!(sentences.detail.as_deref(), Some("nothing matches"));
        assert_eq!(sentences.hint.as_deref(), Some("consider aliasing (\"AS\") one of them"));
        let debug = super::words("Substring is not valid Substring { span: Span(Location(1,15)..Location(1,18)) }");
        assert_eq!(debug.message, "substring is not valid");
        assert_eq!(super::words("UNION queries differ").message, "UNION queries differ");
        assert_eq!(super::words("Arrow error: Cast error: Cannot cast\nmore").detail.as_deref(), Some("more"));
    }
}
