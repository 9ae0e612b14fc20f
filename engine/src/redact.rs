//! [`redact`]: a statement's text without the secrets in its options, for everyone who keeps or shows it.
//!
//! ```text
//!   OPTIONS ('aws.secret_access_key' 'hushhush')   is shown as   OPTIONS ('aws.secret_access_key' '***')
//! ```

/// Words in the name of an option whose value nobody may see.
const SECRET: [&str; 6] = ["secret", "token", "password", "access_key", "account_key", "credential"];

/// Puts stars in place of the values of secret options.
pub(crate) fn redact(sql: &str) -> String {
    let mut shown = String::with_capacity(sql.len());
    let mut rest = sql;
    let mut is_secret = false;
    let is_about_user = is_about_user(sql);
    while let Some(start) = rest.find('\'') {
        let between = &rest[..start];
        // A value follows its name with nothing but blanks or an equals sign in between.
        is_secret &= between.chars().all(|c| c.is_whitespace() || c == '=');
        is_secret |= is_about_user || ends_with_password(between);
        shown.push_str(between);
        let body = &rest[start + 1..];
        let end = closing_quote(body).unwrap_or(body.len());
        let text = &body[..end];
        shown.push('\'');
        shown.push_str(if is_secret { "***" } else { text });
        if end < body.len() {
            shown.push('\'');
        }
        let lower = text.to_ascii_lowercase();
        is_secret = !is_secret && SECRET.iter().any(|word| lower.contains(word));
        rest = body.get(end + 1..).unwrap_or_default();
    }
    shown.push_str(rest);
    shown
}

/// Whether all texts of a statement are secret, even if it is misspelt.
fn is_about_user(sql: &str) -> bool {
    let mut words = sql.split_whitespace().map(str::to_ascii_lowercase);
    let verb = words.next();
    matches!(verb.as_deref(), Some("create" | "alter")) && matches!(words.next().as_deref(), Some("user" | "role"))
}

/// Whether the word before a text is `PASSWORD`.
fn ends_with_password(between: &str) -> bool {
    let word = between.trim_end().rsplit(|c: char| !c.is_alphanumeric() && c != '_').next();
    word.is_some_and(|word| word.eq_ignore_ascii_case("password"))
}

/// Where a quoted text ends; two quotes in a row are one quote inside of it.
fn closing_quote(body: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + body[from..].find('\'')?;
        match body[at + 1..].starts_with('\'') {
            true => from = at + 2,
            false => return Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn values_of_secret_options_are_hidden() {
        let sql = "CREATE EXTERNAL TABLE t OPTIONS ('aws.region' 'x', 'aws.secret_access_key' 'hush''hush', 'aws.token' = 'k')";
        let shown =
            "CREATE EXTERNAL TABLE t OPTIONS ('aws.region' 'x', 'aws.secret_access_key' '***', 'aws.token' = '***')";
        assert_eq!(redact(sql), shown);
        assert_eq!(redact("SELECT 'a secret', 'b' FROM t"), "SELECT 'a secret', 'b' FROM t");
        assert_eq!(redact("SELECT 'open"), "SELECT 'open");
        assert_eq!(redact("CREATE USER bob PASSWORD 'x''y' ADMIN"), "CREATE USER bob PASSWORD '***' ADMIN");
        assert_eq!(redact("alter\n user bob pasword 'x'"), "alter\n user bob pasword '***'");
        assert_eq!(redact("/* new */ CREATE USER bob password'x'"), "/* new */ CREATE USER bob password'***'");
        assert_eq!(redact("SELECT 'it''s' || 'é'"), "SELECT 'it''s' || 'é'");
    }
}
