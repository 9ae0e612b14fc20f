//! [`Secret`]: what the server and its executors know, and nobody else. [`Gate`]: lets in who knows it.
//!
//! ```text
//!   executor --> server      each request          the token is in the user agent: the one header that Ballista lets us set on
//!   executor --> executor    each request for rows  connections that it makes
//!   server   --> executor    the same for rows; a task is written down with the token, and read only if it is there
//! ```
//!
//! The token is made of the secret, and does not give it away. Nothing is encrypted: who can read along can say the same; docs/deploy.md.

use std::fmt;
use std::sync::Arc;

use ballista_core::extension::EndpointOverrideFn;
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;
use tonic::transport::Endpoint;
use tonic::{Request, Status};

/// What the token is derived for; another use of the same secret has another one.
const PURPOSE: &str = "nectarine 2026-11 token between server and executors";

/// How the user agent begins.
const AGENT: &str = "nectarine-cluster/";

/// Letters that a secret has at least: it can be tried out from afar.
const LETTERS_MIN: usize = 16;

/// Bytes of a token.
pub(super) const TOKEN_BYTES: usize = 32;

/// What the server and its executors know. Says nothing when it is printed.
#[derive(Clone)]
pub struct Secret {
    token: blake3::Hash,
}

impl Secret {
    /// From a text, without white space around it. Fails with the reason if it is too short.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text.chars().count() {
            0 => Err("it is empty".to_owned()),
            n if n < LETTERS_MIN => Err(format!("it has {n} letters, and needs {LETTERS_MIN}")),
            _ => Ok(Self { token: blake3::Hash::from_bytes(blake3::derive_key(PURPOSE, text.as_bytes())) }),
        }
    }

    /// Shows on each connection that is made with it that we know.
    pub(super) fn shown(&self) -> EndpointOverrideFn {
        let agent = format!("{AGENT}{}", self.token.to_hex());
        Arc::new(move |endpoint: Endpoint| Ok(endpoint.user_agent(agent.as_str())?))
    }

    /// Goes with what is written down.
    pub(super) fn token(&self) -> &[u8; TOKEN_BYTES] {
        self.token.as_bytes()
    }

    /// Whether it is ours. Takes as long whatever it is.
    pub(super) fn is(&self, token: &[u8; TOKEN_BYTES]) -> bool {
        // Equality of hashes takes constant time.
        self.token == blake3::Hash::from_bytes(*token)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Stands before a port: of the server for executors, or of an executor for rows.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    pub(super) secret: Option<Secret>,
    /// `server` or `executor`.
    pub(super) whose: &'static str,
}

impl Gate {
    /// Fails with the reason unless who asks knows what we know.
    fn admits(&self, headers: &MetadataMap) -> Result<(), String> {
        let whose = self.whose;
        match (&self.secret, token_of(headers)) {
            (None, None) => Ok(()),
            (Some(secret), Some(token)) if secret.is(&token) => Ok(()),
            (Some(_), Some(_)) => Err(format!("the secret is not that of this {whose}")),
            (Some(_), None) => Err(format!("this {whose} asks for a secret, and none was given")),
            (None, Some(_)) => Err(format!("a secret was given, and this {whose} has none")),
        }
    }
}

impl Interceptor for Gate {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        match self.admits(request.metadata()) {
            Ok(()) => Ok(request),
            Err(reason) => {
                let from = request.remote_addr().map(|from| from.to_string());
                tracing::warn!(from = from.as_deref().unwrap_or("?"), reason, "refused");
                Err(Status::unauthenticated(reason))
            }
        }
    }
}

/// The token in the user agent; something that is no token of anybody's counts as a wrong one.
fn token_of(headers: &MetadataMap) -> Option<[u8; TOKEN_BYTES]> {
    let agent = headers.get("user-agent")?.to_str().ok()?;
    let shown = agent.strip_prefix(AGENT)?;
    let digits = shown.split(' ').next().unwrap_or_default();
    Some(blake3::Hash::from_hex(digits).map_or([0; TOKEN_BYTES], |token| *token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "correct horse battery staple";

    fn gate(secret: Option<&str>) -> Gate {
        Gate { secret: secret.map(|text| Secret::new(text).unwrap()), whose: "server" }
    }

    /// What a connection that was made with a secret says of itself.
    fn headers(secret: Option<&str>) -> MetadataMap {
        let mut headers = MetadataMap::new();
        let agent = match secret {
            Some(text) => format!("{AGENT}{} tonic/0.14", Secret::new(text).unwrap().token.to_hex()),
            None => "tonic/0.14".to_owned(),
        };
        headers.insert("user-agent", agent.parse().unwrap());
        headers
    }

    #[test]
    fn who_knows_the_secret_is_let_in() {
        assert_eq!(gate(Some(ONE)).admits(&headers(Some(ONE))), Ok(()));
        // White space around it is that of the file.
        assert_eq!(gate(Some(ONE)).admits(&headers(Some(&format!(" {ONE}\n")))), Ok(()));
        assert_eq!(gate(None).admits(&headers(None)), Ok(()));
    }

    #[test]
    fn nobody_else_is() {
        let refused = |ours, theirs| gate(ours).admits(&headers(theirs)).unwrap_err();
        assert!(refused(Some(ONE), Some("correct horse battery stable")).contains("not that of this server"));
        assert!(refused(Some(ONE), None).contains("asks for a secret"));
        assert!(refused(None, Some(ONE)).contains("has none"));
        assert!(gate(Some(ONE)).admits(&MetadataMap::new()).is_err());
        for agent in [AGENT, "nectarine-cluster/zz tonic/0.14", "nectarine-cluster/ab"] {
            let mut headers = MetadataMap::new();
            headers.insert("user-agent", agent.parse().unwrap());
            assert!(gate(Some(ONE)).admits(&headers).unwrap_err().contains("not that of this server"), "{agent}");
        }
    }

    #[test]
    fn short_secrets_are_none() {
        for text in ["", " \n", "password", "fifteen letters"] {
            assert!(Secret::new(text).is_err(), "{text}");
        }
        assert!(Secret::new("sixteen letters!").is_ok());
    }

    #[test]
    fn it_is_not_given_away() {
        let secret = Secret::new(ONE).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_ne!(secret.token, blake3::hash(ONE.as_bytes()));
    }
}
