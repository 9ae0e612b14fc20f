//! Passwords: only hashes are kept (Argon2id), and a hash is never told.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};

use crate::{EngineError, ErrorKind, Result};

/// In place of a hash: of users whom no password lets in.
pub(crate) const NO_PASSWORD: &str = "!";

/// Shorter ones are refused.
const CHARACTERS_MIN: usize = 8;
/// Longer ones would be work for nothing.
const BYTES_MAX: usize = 1024;

/// Compared with for users who are not there, so that it takes as long to say no to them.
static NOBODY: LazyLock<String> = LazyLock::new(|| hash("a password that nobody has").unwrap_or_default());

/// The hash of a new password. Takes its time on purpose.
pub(crate) async fn hashed(password: &str) -> Result<String> {
    if password.chars().count() < CHARACTERS_MIN || password.len() > BYTES_MAX {
        let message = format!("a password has at least {CHARACTERS_MIN} characters and at most {BYTES_MAX} bytes");
        return Err(EngineError::new(ErrorKind::Sql, message));
    }
    let password = password.to_string();
    tokio::task::spawn_blocking(move || hash(&password)).await.map_err(|error| internal(&error))?
}

/// Whether a password belongs to a hash; takes as long without one.
pub(crate) async fn fits(password: String, hash: Option<String>) -> bool {
    let verify = move || {
        let is_somebody = hash.is_some();
        let hash = hash.unwrap_or_else(|| NOBODY.clone());
        let fits = PasswordHash::new(&hash)
            .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
        is_somebody && fits
    };
    tokio::task::spawn_blocking(verify).await.unwrap_or(false)
}

/// One that nobody guesses, for the first user.
pub(crate) fn random_password() -> String {
    let bytes = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
    let digest = blake3::hash(&[*bytes[0].as_bytes(), *bytes[1].as_bytes()].concat());
    base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, &digest.as_bytes()[..18])
}

fn hash(password: &str) -> Result<String> {
    let salt = SaltString::encode_b64(uuid::Uuid::new_v4().as_bytes()).map_err(|error| internal(&error))?;
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt).map_err(|error| internal(&error))?;
    Ok(hash.to_string())
}

fn internal(error: &dyn std::fmt::Display) -> EngineError {
    EngineError::new(ErrorKind::Internal, format!("cannot hash a password: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hashes_fit_their_passwords_only() {
        let hash = hashed("correct horse").await.unwrap();
        assert!(hash.starts_with("$argon2id$") && !hash.contains("horse"), "{hash}");
        assert_ne!(hash, hashed("correct horse").await.unwrap(), "salted");
        assert!(fits("correct horse".into(), Some(hash.clone())).await);
        assert!(!fits("wrong horse".into(), Some(hash)).await);
        assert!(!fits("a password that nobody has".into(), None).await, "nobody logs in");
        assert!(!fits("x".into(), Some("no hash".into())).await);
        assert!(hashed("short").await.is_err() && hashed(&"x".repeat(2000)).await.is_err());
        assert!(random_password().len() >= 20 && random_password() != random_password());
    }
}
