//! Session options: the messages, which arrow-flight does not have, and what they mean here.
//!
//! `catalog` is the one there is, `schema` the one in which names are looked up. Any setting can be given by its name, as
//! `SET` would.

use std::collections::HashMap;

use super::client::Client;
use crate::session::Session;

/// What an option is set to.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OptionValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5")]
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(sfixed64, tag = "3")]
    Number(i64),
    #[prost(double, tag = "4")]
    Float(f64),
    #[prost(message, tag = "5")]
    Texts(Texts),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Texts {
    #[prost(string, repeated, tag = "1")]
    pub(super) values: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SetRequest {
    #[prost(map = "string, message", tag = "1")]
    pub(super) options: HashMap<String, OptionValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SetResult {
    #[prost(map = "string, message", tag = "1")]
    pub(super) errors: HashMap<String, SetError>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SetError {
    #[prost(int32, tag = "1")]
    pub(super) value: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GetResult {
    #[prost(map = "string, message", tag = "1")]
    pub(super) options: HashMap<String, OptionValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CloseResult {
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
}

/// `CLOSED`.
pub(super) const CLOSED: i32 = 1;

const INVALID_NAME: i32 = 1;
const INVALID_VALUE: i32 = 2;

/// Sets what can be set; what can not is told.
pub(super) async fn set(client: &Client, request: SetRequest) -> SetResult {
    let mut errors = HashMap::new();
    for (name, option) in request.options {
        if let Err(value) = set_one(&client.session, &name, option.value).await {
            errors.insert(name, SetError { value });
        }
    }
    SetResult { errors }
}

async fn set_one(session: &Session, name: &str, value: Option<Value>) -> Result<(), i32> {
    let text = match value {
        Some(Value::Text(text)) => Some(text),
        Some(Value::Flag(flag)) => Some(flag.to_string()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(Value::Float(number)) => Some(number.to_string()),
        Some(Value::Texts(_)) => return Err(INVALID_VALUE),
        // An option without a value goes back to what it was.
        None => None,
    };
    match (name, text) {
        ("catalog", Some(catalog)) if catalog == session.catalog_name() => Ok(()),
        ("catalog", None) => Ok(()),
        ("catalog", Some(_)) => Err(INVALID_VALUE),
        ("schema", Some(schema)) => {
            let names = session.schema_names().await.map_err(|_| INVALID_VALUE)?;
            if !names.contains(&schema) {
                return Err(INVALID_VALUE);
            }
            run(session, &format!("SET datafusion.catalog.default_schema = {}", literal(&schema))).await
        }
        ("schema", None) => run(session, "RESET datafusion.catalog.default_schema").await,
        (setting, _) if !is_setting(setting) => Err(INVALID_NAME),
        (setting, Some(text)) => run(session, &format!("SET {setting} = {}", literal(&text))).await,
        (setting, None) => run(session, &format!("RESET {setting}")).await,
    }
}

async fn run(session: &Session, sql: &str) -> Result<(), i32> {
    match session.execute(sql).await {
        Ok(_) => Ok(()),
        Err(error) if error.message().starts_with("unknown setting") => Err(INVALID_NAME),
        Err(_) => Err(INVALID_VALUE),
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Words of letters, digits and underscores with dots between them: nothing that could be more SQL.
fn is_setting(name: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    name.contains('.') && name.split('.').all(is_word)
}

/// The catalog, the schema, and every setting that the session changed.
pub(super) fn get(client: &Client) -> GetResult {
    let session = &client.session;
    let mut values =
        vec![("catalog".to_string(), session.catalog_name()), ("schema".to_string(), session.schema_name())];
    values.extend(session.changed_settings());
    let option = |text: String| OptionValue { value: Some(Value::Text(text)) };
    GetResult { options: values.into_iter().map(|(name, text)| (name, option(text))).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names() {
        assert!(is_setting("nectarine.reuse") && is_setting("datafusion.execution.batch_size"));
        for name in ["", ".", "x", "a..b", "a.b = 1; DROP TABLE t", "a.b'", "a.\u{e9}"] {
            assert!(!is_setting(name), "{name}");
        }
        assert_eq!(literal("it's"), "'it''s'");
    }
}
