//! [`Client`]: one client of the server and its session. [`Clients`]: all of them.
//!
//! Who logged in is known by the token that he got, on whatever connection; who did not have to is known by his connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tonic::Status;

use crate::access::Who;
use crate::engine::Engine;
use crate::session::Session;

/// Clients at a time, and those of one user.
const CLIENTS_MAX: usize = 10_000;
const CLIENTS_PER_USER_MAX: usize = 2_000;

/// Which client.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum ClientKey {
    /// The one on a connection.
    Connection(u64),
    /// The one who got a token; its digest.
    Token([u8; 32]),
}

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) key: ClientKey,
    pub(super) who: Who,
    pub(super) session: Session,
    used: Mutex<Instant>,
}

/// All clients.
pub(super) struct Clients {
    engine: Engine,
    by_key: Mutex<HashMap<ClientKey, Arc<Client>>>,
}

impl Clients {
    pub(super) fn new(engine: Engine) -> Self {
        Self { engine, by_key: Mutex::default() }
    }

    /// The client of that key, who may be new.
    pub(super) fn get(&self, key: &ClientKey, who: &Who) -> Result<Arc<Client>, Status> {
        let mut clients = self.by_key.lock();
        if let Some(client) = clients.get(key) {
            *client.used.lock() = Instant::now();
            return Ok(Arc::clone(client));
        }
        let is_own = |client: &&Arc<Client>| client.who == *who;
        if *who != Who::Owner && clients.values().filter(is_own).count() >= CLIENTS_PER_USER_MAX {
            let message = format!("this user has {CLIENTS_PER_USER_MAX} sessions already: log in once, or close some");
            return Err(Status::resource_exhausted(message));
        }
        if clients.len() >= CLIENTS_MAX {
            return Err(Status::resource_exhausted(format!("there are {CLIENTS_MAX} clients already")));
        }
        let client = Arc::new(Client {
            key: key.clone(),
            who: who.clone(),
            session: self.engine.session_for(who.clone()),
            used: Mutex::new(Instant::now()),
        });
        clients.insert(key.clone(), Arc::clone(&client));
        Ok(client)
    }

    /// Forgets a client; his next call begins anew.
    pub(super) fn close(&self, key: &ClientKey) {
        self.by_key.lock().remove(key);
    }

    /// Forgets those who have not been heard of for so long; returns them.
    pub(super) fn close_idle(&self, idle: Duration) -> Vec<ClientKey> {
        let mut clients = self.by_key.lock();
        let is_idle = |client: &Arc<Client>| Arc::strong_count(client) == 1 && client.used.lock().elapsed() > idle;
        let gone: Vec<ClientKey> =
            clients.iter().filter(|(_, client)| is_idle(client)).map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| drop(clients.remove(key)));
        gone
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_key.lock().len()
    }
}
