//! [`Handles`]: statements that wait for their client, by names that cannot be guessed.
//!
//! ```text
//!   prepared   text, columns, parameters, values that were bound     until it is closed
//!   result     rows that were started                                until they are fetched, or for a minute
//!   watched    how far a statement is, by the name that its client gave it     until it has ended
//! ```
//!
//! Keeps true   a handle is of use only to the user who got it; to others it looks like one that was never there. What one user leaves
//!              waiting is bounded, whatever number of clients he has.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use parking_lot::Mutex;
use prost::bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::client::{Client, ClientKey};
use super::statement::Pending;
use super::status::unknown_handle;
use crate::access::Who;
use crate::describe::Described;
use crate::progress::{Progress, ProgressSnapshot};

/// Prepared statements that one user may have.
const PREPARED_MAX: usize = 10_000;
/// Results that one user may leave waiting.
const WAITING_MAX: usize = 1_000;
/// Statements that may be watched at a time.
const WATCHED_MAX: usize = 100_000;
/// How long rows wait to be fetched.
pub(super) const FETCH_PATIENCE: Duration = Duration::from_secs(60);

/// A prepared statement.
pub(super) struct Prepared {
    who: Who,
    client: ClientKey,
    pub(super) sql: String,
    pub(super) described: Described,
    /// What its next run gets for its placeholders.
    values: Mutex<Option<RecordBatch>>,
}

impl Prepared {
    pub(super) fn bind(&self, values: Option<RecordBatch>) {
        *self.values.lock() = values;
    }

    pub(super) fn values(&self) -> Option<RecordBatch> {
        self.values.lock().clone()
    }
}

/// Rows on their way to a client.
struct Waiting {
    who: Who,
    client: ClientKey,
    cancel: CancellationToken,
    made: Instant,
    /// Until they are fetched.
    pending: Option<Pending>,
}

impl Waiting {
    /// Whether there is nothing to fetch but the end.
    fn is_empty(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.schema.fields().is_empty())
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Handles {
    prepared: Mutex<HashMap<Bytes, Arc<Prepared>>>,
    results: Mutex<HashMap<Bytes, Waiting>>,
    watched: Mutex<HashMap<(Who, Bytes), Progress>>,
}

impl Handles {
    /// Lets a client ask how far a statement is, by a name of his choice, until what is returned is dropped.
    pub(super) fn watch(self: &Arc<Self>, client: &Client, name: Bytes, progress: &Progress) -> Result<Watch, Status> {
        let mut watched = self.watched.lock();
        if watched.len() >= WATCHED_MAX {
            return Err(Status::resource_exhausted(format!("{WATCHED_MAX} statements are watched already")));
        }
        let key = (client.who.clone(), name);
        watched.insert(key.clone(), progress.clone());
        Ok(Watch { handles: Arc::clone(self), key })
    }

    /// How far a statement of that name is; none if it has ended, or never began.
    pub(super) fn progress(&self, client: &Client, name: &Bytes) -> Option<ProgressSnapshot> {
        let progress = self.watched.lock().get(&(client.who.clone(), name.clone())).cloned();
        progress.map(|progress| progress.snapshot())
    }

    pub(super) fn prepare(&self, client: &Client, sql: String, described: Described) -> Result<Bytes, Status> {
        let mut prepared = self.prepared.lock();
        let is_own = |statement: &&Arc<Prepared>| same_party(client, &statement.who, &statement.client);
        // They are counted only where there may be too many.
        if prepared.len() >= PREPARED_MAX && prepared.values().filter(is_own).count() >= PREPARED_MAX {
            let message = format!("{PREPARED_MAX} statements of this user are prepared already: close some");
            return Err(Status::resource_exhausted(message));
        }
        let handle = new_handle();
        let statement =
            Prepared { who: client.who.clone(), client: client.key.clone(), sql, described, values: Mutex::default() };
        prepared.insert(handle.clone(), Arc::new(statement));
        Ok(handle)
    }

    pub(super) fn prepared(&self, client: &Client, handle: &Bytes) -> Result<Arc<Prepared>, Status> {
        let found = self.prepared.lock().get(handle).filter(|statement| statement.who == client.who).cloned();
        found.ok_or_else(|| unknown_handle("prepared statement"))
    }

    /// Forgets a prepared statement; nothing happens if there is none.
    pub(super) fn close_prepared(&self, client: &Client, handle: &Bytes) {
        let mut prepared = self.prepared.lock();
        if prepared.get(handle).is_some_and(|statement| statement.who == client.who) {
            prepared.remove(handle);
        }
    }

    /// Keeps rows until they are fetched.
    pub(super) fn wait(&self, client: &Client, pending: Pending) -> Result<Bytes, Status> {
        let mut results = self.results.lock();
        let waits = |(_, result): &(&Bytes, &Waiting)| {
            same_party(client, &result.who, &result.client) && result.pending.is_some()
        };
        // They are counted only where there may be too many.
        let waiting: Vec<(&Bytes, &Waiting)> = match results.len() >= WAITING_MAX {
            true => results.iter().filter(waits).collect(),
            false => vec![],
        };
        if waiting.len() >= WAITING_MAX {
            // Nobody has to fetch the end of a command: the oldest of those makes room.
            let ends = waiting.into_iter().filter(|(_, result)| result.is_empty());
            match ends.min_by_key(|(_, result)| result.made).map(|(handle, _)| handle.clone()) {
                Some(oldest) => drop(results.remove(&oldest)),
                None => {
                    let message = format!("{WAITING_MAX} results of this user wait already: fetch or cancel some");
                    return Err(Status::resource_exhausted(message));
                }
            }
        }
        let handle = new_handle();
        let result = Waiting {
            who: client.who.clone(),
            client: client.key.clone(),
            cancel: CancellationToken::new(),
            made: Instant::now(),
            pending: Some(pending),
        };
        results.insert(handle.clone(), result);
        Ok(handle)
    }

    /// The rows behind a handle, once; cancelled by the token.
    pub(super) fn fetch(
        self: &Arc<Self>,
        client: &Client,
        handle: &Bytes,
    ) -> Result<(Pending, CancellationToken, Fetching), Status> {
        let mut results = self.results.lock();
        let result = results.get_mut(handle).filter(|result| result.who == client.who);
        let result = result.ok_or_else(|| unknown_handle("result"))?;
        let Some(pending) = result.pending.take() else {
            return Err(Status::failed_precondition("this result has been fetched already"));
        };
        let fetching = Fetching { handles: Arc::clone(self), handle: handle.clone() };
        Ok((pending, result.cancel.clone(), fetching))
    }

    /// Ends a result, whether it waits or is being fetched; `false` if it is not there.
    pub(super) fn cancel(&self, client: &Client, handle: &Bytes) -> bool {
        let mut results = self.results.lock();
        match results.get(handle) {
            Some(result) if result.who == client.who => {
                result.cancel.cancel();
                // Dropping what waits cancels its statement; outside of the lock.
                let gone = results.remove(handle);
                drop(results);
                drop(gone);
                true
            }
            _ => false,
        }
    }

    /// Forgets all that a client has.
    pub(super) fn close_client(&self, client: &ClientKey) {
        self.prepared.lock().retain(|_, statement| statement.client != *client);
        self.take_results(|result| result.client == *client && result.pending.is_some());
    }

    /// Forgets rows that nobody fetched.
    pub(super) fn expire(&self) {
        self.take_results(|result| result.pending.is_some() && result.made.elapsed() > FETCH_PATIENCE);
    }

    /// Ends all results.
    pub(super) fn cancel_all(&self) {
        self.results.lock().values().for_each(|result| result.cancel.cancel());
        self.take_results(|result| result.pending.is_some());
    }

    /// Results that wait or are being fetched.
    pub(super) fn n_results(&self) -> usize {
        self.results.lock().len()
    }

    fn take_results(&self, is_gone: impl Fn(&Waiting) -> bool) {
        let gone: Vec<Waiting> = {
            let mut results = self.results.lock();
            let handles: Vec<Bytes> =
                results.iter().filter(|(_, result)| is_gone(result)).map(|(handle, _)| handle.clone()).collect();
            handles.iter().filter_map(|handle| results.remove(handle)).collect()
        };
        // Statements are cancelled by this, which takes its time.
        drop(gone);
    }
}

/// Whether something is of the same user, or where nobody has a name, of the same client.
fn same_party(client: &Client, who: &Who, key: &ClientKey) -> bool {
    match &client.who {
        Who::User(_) => client.who == *who,
        Who::Owner => client.key == *key,
    }
}

/// Forgets how far a statement is when it has ended.
pub(super) struct Watch {
    handles: Arc<Handles>,
    key: (Who, Bytes),
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.handles.watched.lock().remove(&self.key);
    }
}

/// Forgets a result when its rows have ended.
pub(super) struct Fetching {
    handles: Arc<Handles>,
    handle: Bytes,
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.handles.results.lock().remove(&self.handle);
    }
}

/// 122 bits that nobody can guess.
fn new_handle() -> Bytes {
    Bytes::copy_from_slice(uuid::Uuid::new_v4().as_bytes())
}
