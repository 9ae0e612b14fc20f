//! `CREATE TOKEN`, `DROP TOKEN`: what services log in with.
//!
//! Keeps true   a token is told once, to who makes it; what is kept is its digest, which is of no use to log in with. A token has 288
//!              random bits, so that a plain digest is as good as a slow one. Only administrators make them: who got hold of somebody's
//!              login must not be able to stay. Everybody may end his own.

use std::sync::Arc;

use arrow::array::{RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use datafusion::physical_plan::memory::MemoryStream;
use nectarine_catalog::{AccessChange, Token};
use sqlparser::ast::Ident;

use super::random_password;
use super::statement::{change, role_name};
use crate::command::StatementRun;
use crate::managed::now_micros;
use crate::{Answer, AnswerKind, EngineError, ErrorKind, Result};

/// What tokens begin with, for those who look for secrets in places where none should be.
pub(crate) const PREFIX: &str = "nct_";

/// Tokens that one user may have.
const TOKENS_MAX: usize = 1_000;

/// By what a token is known.
pub(crate) fn digest(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex().to_string()
}

pub(super) async fn create(
    run: &StatementRun<'_>,
    name: &Ident,
    user: &Ident,
    valid_until: Option<&str>,
) -> Result<Answer> {
    run.rights().check_admin("make tokens")?;
    let (name, user) = (role_name(run, name)?, role_name(run, user)?);
    let access = &run.catalog.view.access;
    let is_user = access.roles.get(&user).map(|role| role.password.is_some());
    if is_user == Some(false) {
        return Err(EngineError::new(ErrorKind::Sql, format!("\"{user}\" is a role and cannot log in"))
            .with_hint("CREATE USER makes a user; GRANT gives him the role"));
    }
    if access.tokens.iter().filter(|token| token.user == user).count() >= TOKENS_MAX {
        return Err(EngineError::new(ErrorKind::Resources, format!("\"{user}\" has {TOKENS_MAX} tokens already"))
            .with_hint("DROP TOKEN those that are not used; system.tokens lists them"));
    }
    let expires_at = valid_until.map(instant).transpose()?;
    if expires_at.is_some_and(|end| end <= now_micros()) {
        return Err(EngineError::new(ErrorKind::Sql, "a token that has expired is of no use"));
    }
    let text = format!("{PREFIX}{}{}", random_password(), random_password());
    let token =
        Token { user: user.clone(), name: name.clone(), digest: digest(&text), created_at: now_micros(), expires_at };
    change(run, AccessChange::CreateToken(token)).await?;
    let schema = schema();
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![
            Arc::new(StringArray::from(vec![user])),
            Arc::new(StringArray::from(vec![name])),
            Arc::new(StringArray::from(vec![text])),
            Arc::new(TimestampMicrosecondArray::from(vec![expires_at]).with_timezone("UTC")),
        ],
    )?;
    run.record.finished(1);
    let stream = MemoryStream::try_new(vec![batch], schema, None)?;
    let notice = crate::Notice { message: "the token is not told again".to_string(), hint: None };
    Ok(Answer::new(run.record.query_id(), AnswerKind::Rows, vec![notice], Box::pin(stream)))
}

/// Columns of `CREATE TOKEN`.
pub(crate) fn schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("user_name", DataType::Utf8, false),
        Field::new("name", DataType::Utf8, false),
        Field::new("token", DataType::Utf8, false),
        Field::new("valid_until", time, true),
    ]))
}

pub(super) async fn drop(run: &StatementRun<'_>, name: &Ident, user: &Ident, if_exists: bool) -> Result<Answer> {
    let (name, user) = (role_name(run, name)?, role_name(run, user)?);
    if run.rights().user() != Some(user.as_str()) {
        run.rights().check_admin("end tokens of others")?;
    }
    let tag = "DROP TOKEN";
    let mut tokens = run.catalog.view.access.tokens.iter();
    if if_exists && !tokens.any(|token| token.user == user && token.name == name) {
        return Ok(run.noticed(tag, format!("token \"{name}\" does not exist, skipping")));
    }
    change(run, AccessChange::DropToken { user, name }).await?;
    Ok(run.command(tag))
}

/// A time as it is written: a day, or a time of day with or without a zone; UTC without.
fn instant(text: &str) -> Result<i64> {
    let text = text.trim();
    let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|day| day.and_hms_opt(0, 0, 0));
    let plain = || {
        let formats = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M"];
        formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
    };
    let zoned = DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_micros());
    let micros = zoned.or_else(|| day().or_else(plain).map(|time| time.and_utc().timestamp_micros()));
    micros.ok_or_else(|| {
        EngineError::new(ErrorKind::Sql, format!("\"{text}\" is no time"))
            .with_hint("write 2027-01-31, 2027-01-31 12:00:00 or 2027-01-31T12:00:00+01:00; without a zone it is UTC")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let day = instant("2027-01-31").unwrap();
        assert_eq!(instant("2027-01-31 00:00:00").unwrap(), day);
        assert_eq!(instant("2027-01-31T01:00:00+01:00").unwrap(), day);
        assert_eq!(instant(" 2027-01-31 00:00 ").unwrap(), day);
        for bad in ["", "tomorrow", "2027-02-30", "31.1.2027"] {
            assert!(instant(bad).is_err(), "{bad}");
        }
    }
}
