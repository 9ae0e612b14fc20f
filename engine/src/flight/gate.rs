//! [`Gate`]: who a call is from.
//!
//! ```text
//!   Handshake, authorization: Basic user:password  -->  authorization: Bearer login
//!   every other call, authorization: Bearer login  -->  the user, as long as the login has not ended, he is there, and his
//!                                                       password is the same
//!   any call, authorization: Bearer token          -->  the user whose service it is, as long as the token is there
//! ```
//!
//! Keeps true   nobody is let in by what is kept of logins and tokens. Who guesses passwords waits longer each time, and is told the
//!              same whether there is such a user or not. Few passwords are looked at at a time, and few wait for it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow_flight::HandshakeResponse;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use futures::StreamExt;
use futures::stream::BoxStream;
use nectarine_catalog::{AccessChange, Role};
use parking_lot::Mutex;
use prost::bytes::Bytes;
use tokio::sync::Semaphore;
use tonic::codegen::http;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Request, Response, Status};

use super::client::{Client, ClientKey, Clients};
use super::connection::Peer;
use super::login::{self, Logins};
use super::status::status;
use crate::access::{self, FIRST_USER, Who};
use crate::managed::now_micros;
use crate::{Engine, Result as EngineResult};

/// What clients get for a password where none is asked for. Drivers insist on a token once they sent one.
const NO_TOKEN: &str = "none-needed";
/// Passwords that are looked at at a time: each takes 19 MB and a processor.
const LOGINS_AT_ONCE: usize = 2;
/// Those who may wait for that.
const LOGINS_WAITING_MAX: usize = 256;
/// The first wrong password costs this much, the next twice as much, and so on.
const DELAY: Duration = Duration::from_millis(250);
const DELAY_MAX: Duration = Duration::from_secs(8);
/// Who would wait longer is sent away.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// After so long without a wrong password all is forgiven.
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);
/// Names with wrong passwords that are remembered at a time.
const FAILURES_MAX: usize = 10_000;

type Answer<T> = Result<Response<T>, Status>;

/// What a call says of who makes it.
pub(super) struct Asked {
    peer: Arc<Peer>,
    authorization: Option<String>,
}

impl Asked {
    /// Before its message has been read.
    pub(super) fn of_http<T>(request: &http::Request<T>) -> Result<Self, Status> {
        let header = request.headers().get(http::header::AUTHORIZATION);
        Self::new(request.extensions().get(), header.and_then(|value| value.to_str().ok()))
    }

    pub(super) fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        let header = request.metadata().get("authorization");
        Self::new(request.extensions().get(), header.and_then(|value| value.to_str().ok()))
    }

    fn new(peer: Option<&Arc<Peer>>, authorization: Option<&str>) -> Result<Self, Status> {
        let peer = peer.cloned().ok_or_else(|| Status::internal("a call without a connection"))?;
        Ok(Self { peer, authorization: authorization.map(str::to_string) })
    }
}

/// Lets calls in.
pub(super) struct Gate {
    clients: Arc<Clients>,
    /// `None` where everybody who can connect may do everything.
    users: Option<Users>,
}

struct Users {
    engine: Engine,
    given: Logins,
    failures: Mutex<HashMap<Guesser, Failures>>,
    logins: Semaphore,
    n_logins: AtomicUsize,
}

/// Who tries which name: others must not be able to lock a user out.
type Guesser = (String, IpAddr);

/// Wrong passwords of late.
struct Failures {
    n: u32,
    last: Instant,
    /// When the next try gets its turn; those who try at the same time queue up.
    next: Instant,
}

impl Gate {
    /// Everybody who can connect may do everything.
    pub(super) fn open(clients: Arc<Clients>) -> Self {
        Self { clients, users: None }
    }

    /// Only users with a password.
    pub(super) fn with_users(clients: Arc<Clients>, engine: Engine, life: Duration) -> EngineResult<Self> {
        let users = Users {
            given: Logins::open(engine.shared(), life)?,
            engine,
            failures: Mutex::default(),
            logins: Semaphore::new(LOGINS_AT_ONCE),
            n_logins: AtomicUsize::new(0),
        };
        Ok(Self { clients, users: Some(users) })
    }

    /// The client that a call is from.
    pub(super) async fn client(&self, asked: Asked) -> Result<Arc<Client>, Status> {
        let Some(users) = &self.users else {
            return self.clients.get(&ClientKey::Connection(asked.peer.id), &Who::Owner);
        };
        let token = asked.authorization.as_deref().and_then(|header| after(header, "bearer "));
        let token = token.ok_or_else(|| Status::unauthenticated("log in first: this call has no token"))?;
        let user = users.user_of(token).await?;
        let digest = *blake3::hash(token.as_bytes()).as_bytes();
        self.clients.get(&ClientKey::Token(digest), &Who::User(user))
    }

    /// Logging in.
    pub(super) async fn handshake(
        &self,
        asked: Asked,
    ) -> Answer<BoxStream<'static, Result<HandshakeResponse, Status>>> {
        let address = asked.peer.address.ip();
        let Some(users) = &self.users else { return logged_in(NO_TOKEN) };
        let header = asked.authorization.as_deref();
        let header = header.ok_or_else(|| Status::unauthenticated("log in with user and password"))?;
        if let Some(token) = after(header, "bearer ") {
            // Drivers that were given a token introduce themselves with it.
            users.user_of(token).await?;
            return logged_in(token);
        }
        let basic = after(header, "basic ").and_then(decode);
        let Some((user, password)) = basic else {
            return Err(Status::unauthenticated("log in with user and password"));
        };
        // Tools that know of users and passwords only can give a token for a password.
        if password.starts_with(access::TOKEN_PREFIX) && *users.user_of(&password).await? == *user {
            return logged_in(&password);
        }
        logged_in(&users.log_in((user, address), password).await?)
    }

    /// Forgives what was long ago.
    pub(super) fn expire(&self) {
        if let Some(users) = &self.users {
            users.failures.lock().retain(|_, failures| failures.last.elapsed() < FORGIVEN_AFTER);
        }
    }
}

impl Users {
    /// Who has a login, or the token of a service.
    async fn user_of(&self, token: &str) -> Result<Arc<str>, Status> {
        let view = self.engine.shared().catalog.recent_view().await.map_err(|error| status(&error.into()))?;
        let user = self.given.user(token, &view.access).or_else(|| login::service_user(token, &view.access));
        user.ok_or_else(|| Status::unauthenticated("this token has expired, or was never one: log in again"))
    }

    /// A token for who knows his password.
    async fn log_in(&self, guesser: Guesser, password: String) -> Result<String, Status> {
        let (user, address) = &guesser;
        tokio::time::sleep(self.turn(&guesser)?).await;
        let view = self.engine.shared().catalog.view().await.map_err(|error| status(&error.into()))?;
        let hash = view.access.roles.get(user).and_then(|role| role.password.clone());
        let hash = hash.filter(|hash| hash != access::NO_PASSWORD);
        let _waiting = Waiting::new(&self.n_logins)?;
        let turn = self.logins.acquire().await.map_err(|_| Status::unavailable("the server is stopping"))?;
        let fits = access::fits(password, hash.clone()).await;
        drop(turn);
        let Some(hash) = hash.filter(|_| fits) else {
            tracing::warn!(user, %address, "a login failed");
            self.failed(guesser);
            return Err(Status::unauthenticated("user or password is wrong"));
        };
        self.failures.lock().remove(&guesser);
        Ok(self.given.make(&guesser.0, &hash))
    }

    /// How long to wait before the next try, because of wrong passwords of late.
    fn turn(&self, guesser: &Guesser) -> Result<Duration, Status> {
        let mut failures = self.failures.lock();
        let Some(failures) = failures.get_mut(guesser) else { return Ok(Duration::ZERO) };
        let now = Instant::now();
        let wait = failures.next.saturating_duration_since(now);
        if wait > WAIT_MAX {
            return Err(Status::resource_exhausted("too many logins failed: wait a minute"));
        }
        failures.next = now + wait + delay(failures.n);
        Ok(wait)
    }

    fn failed(&self, guesser: Guesser) {
        let mut failures = self.failures.lock();
        if failures.len() >= FAILURES_MAX && !failures.contains_key(&guesser) {
            failures.retain(|_, failures| failures.n > 1);
            // Still full: somebody tries many names. Each of them is slow by itself.
            if failures.len() >= FAILURES_MAX {
                return;
            }
        }
        let now = Instant::now();
        let failures = failures.entry(guesser).or_insert(Failures { n: 0, last: now, next: now });
        failures.n = failures.n.saturating_add(1);
        failures.last = now;
        failures.next = failures.next.max(now + delay(failures.n));
    }
}

/// One who waits until his password is looked at.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(n: &'a AtomicUsize) -> Result<Self, Status> {
        let waiting = Self(n);
        match n.fetch_add(1, Ordering::Relaxed) >= LOGINS_WAITING_MAX {
            true => Err(Status::resource_exhausted("too many log in at the same time: wait a minute")),
            false => Ok(waiting),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What so many wrong passwords cost.
fn delay(n_failures: u32) -> Duration {
    DELAY.saturating_mul(1 << n_failures.saturating_sub(1).min(10)).min(DELAY_MAX)
}

/// Makes the first user of a home that has none who may do everything; his password, which is told once.
pub(super) async fn first_user(engine: &Engine) -> EngineResult<Option<String>> {
    let shared = engine.shared();
    let known = shared.store.access().await?;
    let can_log_in = |role: &Role| {
        let has_token = || known.tokens.iter().any(|token| token.user == role.name);
        role.password.as_deref().is_some_and(|hash| hash != access::NO_PASSWORD || has_token())
    };
    if known.roles.values().any(|role| can_log_in(role) && known.is_admin(&role.name)) {
        return Ok(None);
    }
    let password = access::random_password();
    let hash = access::hashed(&password).await?;
    let change = match known.roles.contains_key(FIRST_USER) {
        true => AccessChange::Alter { name: FIRST_USER.to_string(), password: Some(hash), is_admin: Some(true) },
        false => AccessChange::Create(Role {
            name: FIRST_USER.to_string(),
            password: Some(hash),
            is_admin: true,
            created_at: now_micros(),
        }),
    };
    shared.store.change_access(&change).await?;
    Ok(Some(password))
}

/// What follows a scheme, which has no case.
fn after<'a>(header: &'a str, scheme: &str) -> Option<&'a str> {
    let (start, rest) = header.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}

/// `user:password`
fn decode(basic: &str) -> Option<(String, String)> {
    let bytes =
        STANDARD.decode(basic).or_else(|_| STANDARD_NO_PAD.decode(basic)).or_else(|_| URL_SAFE_NO_PAD.decode(basic));
    let text = String::from_utf8(bytes.ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_string(), password.to_string()))
}

fn logged_in(token: &str) -> Answer<BoxStream<'static, Result<HandshakeResponse, Status>>> {
    let payload = Bytes::copy_from_slice(token.as_bytes());
    let answer = HandshakeResponse { protocol_version: 0, payload };
    let mut response = Response::new(futures::stream::iter([Ok(answer)]).boxed());
    let bearer = AsciiMetadataValue::try_from(format!("Bearer {token}"));
    let bearer = bearer.map_err(|_| Status::internal("a token is no header"))?;
    response.metadata_mut().insert("authorization", bearer);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guessing_gets_slower() {
        assert_eq!(delay(1), DELAY);
        assert_eq!(delay(3), DELAY * 4);
        assert_eq!(delay(u32::MAX), DELAY_MAX);
    }

    #[test]
    fn headers_are_read() {
        assert_eq!(after("Basic  eHl6", "basic "), Some("eHl6"));
        assert_eq!(after("BEARER t", "bearer "), Some("t"));
        assert_eq!(after("Bear", "bearer "), None);
        assert_eq!(after("é", "basic "), None);
        assert_eq!(decode("Ym9iOnBhc3M6d29yZA=="), Some(("bob".into(), "pass:word".into())));
        assert_eq!(decode("Ym9iOnBhc3M6d29yZA"), Some(("bob".into(), "pass:word".into())));
        for bad in ["", "?", "Ym9i", "/////w=="] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
