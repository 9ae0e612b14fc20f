//! [`Logins`]: what clients get for their passwords, and show with every call.
//!
//! ```text
//!   nl1.  when it ends, luck, which password it was for, who  .  a seal that only this home can make
//! ```
//!
//! Keeps true   nothing is kept of a login but the key of the seals, in a file of the home that nobody else may read: logins outlive the
//!              process, however many there are, and end with their time, with the password, and with the user. Whoever takes the file
//!              away ends all of them.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nectarine_catalog::Access;

use crate::engine::Shared;
use crate::managed::now_micros;
use crate::{Result, access};

/// What logins begin with.
const PREFIX: &str = "nl1.";
const TAG_BYTES: usize = 16;
/// When it ends, luck, and the password's tag.
const HEAD_BYTES: usize = 8 + 16 + TAG_BYTES;

pub(super) struct Logins {
    key: [u8; 32],
    life: Duration,
}

impl Logins {
    pub(super) fn open(shared: &Shared, life: Duration) -> Result<Self> {
        Ok(Self { key: shared.home.key()?, life })
    }

    /// A new login of a user with that hash of his password.
    pub(super) fn make(&self, user: &str, password: &str) -> String {
        let ends = now_micros().saturating_add(i64::try_from(self.life.as_micros()).unwrap_or(i64::MAX));
        let mut body = Vec::with_capacity(HEAD_BYTES + user.len());
        body.extend_from_slice(&ends.to_le_bytes());
        body.extend_from_slice(uuid::Uuid::new_v4().as_bytes());
        body.extend_from_slice(&self.tag(password));
        body.extend_from_slice(user.as_bytes());
        let seal = self.seal(&body);
        format!("{PREFIX}{}.{}", URL_SAFE_NO_PAD.encode(&body), URL_SAFE_NO_PAD.encode(seal.as_bytes()))
    }

    /// Whose it is, if it is one, has not ended, and he still has the password that it was for.
    pub(super) fn user(&self, login: &str, access: &Access) -> Option<Arc<str>> {
        let (body, seal) = login.strip_prefix(PREFIX)?.split_once('.')?;
        let body = URL_SAFE_NO_PAD.decode(body).ok()?;
        let seal: [u8; 32] = URL_SAFE_NO_PAD.decode(seal).ok()?.try_into().ok()?;
        // Compared without telling by its time how much of it was right.
        if self.seal(&body) != blake3::Hash::from(seal) || body.len() < HEAD_BYTES {
            return None;
        }
        let (head, user) = body.split_at(HEAD_BYTES);
        let ends = i64::from_le_bytes(head[..8].try_into().ok()?);
        let user = std::str::from_utf8(user).ok()?;
        let password = access.roles.get(user)?.password.as_ref()?;
        let is_same = head[HEAD_BYTES - TAG_BYTES..] == self.tag(password);
        (is_same && now_micros() < ends).then(|| Arc::from(user))
    }

    fn seal(&self, body: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(b"login\0").update(body);
        hasher.finalize()
    }

    /// Tells one password's hash from another without telling anything of it.
    fn tag(&self, password: &str) -> [u8; TAG_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(b"password\0").update(password.as_bytes());
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&hasher.finalize().as_bytes()[..TAG_BYTES]);
        tag
    }
}

/// Whose token of a service it is.
pub(super) fn service_user(token: &str, access: &Access) -> Option<Arc<str>> {
    let digest = token.starts_with(access::TOKEN_PREFIX).then(|| access::token_digest(token))?;
    let user = &access.token(&digest, now_micros())?.user;
    // A role has no password, and does not log in.
    access.roles.get(user)?.password.as_ref()?;
    Some(Arc::from(user.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nectarine_catalog::Role;

    fn access(password: &str) -> Access {
        let role =
            Role { name: "bob".to_string(), password: Some(password.to_string()), is_admin: false, created_at: 0 };
        Access { roles: [("bob".to_string(), role)].into(), ..Access::default() }
    }

    #[test]
    fn logins_are_good_for_their_user_only() {
        let logins = Logins { key: [7; 32], life: Duration::from_secs(60) };
        let login = logins.make("bob", "$hash");
        assert_eq!(logins.user(&login, &access("$hash")).as_deref(), Some("bob"));
        assert_ne!(login, logins.make("bob", "$hash"));
        assert_eq!(logins.user(&login, &access("$another")), None);
        assert_eq!(logins.user(&login, &Access::default()), None);
        let others = Logins { key: [8; 32], ..logins };
        assert_eq!(others.user(&login, &access("$hash")), None);
        let ended = Logins { key: [8; 32], life: Duration::ZERO };
        assert_eq!(ended.user(&ended.make("bob", "$hash"), &access("$hash")), None);
        assert!(!login.contains("hash"));
    }

    #[test]
    fn no_byte_can_be_changed() {
        let logins = Logins { key: [7; 32], life: Duration::from_secs(60) };
        let login = logins.make("bob", "$hash");
        for at in 0..login.len() {
            let mut forged = login.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            // The last digit of each part has bits that mean nothing.
            if logins.user(&forged, &access("$hash")).is_some() {
                panic!("forged at {at}: {forged}");
            }
        }
        for bad in ["", "nl1.", "nl1..", "nl1.AAAA.AAAA", &login[..login.len() - 4], &login[4..]] {
            assert_eq!(logins.user(bad, &access("$hash")), None, "{bad}");
        }
    }
}
