//! [`Admission`]: a bounded number of statements compute at a time; those who wait take turns.
//!
//! ```text
//!   waiting   bob: 1 2 3 4 5 6   eve: 7        eve's is the second to go, not the seventh
//! ```
//!
//! Keeps true   a permit is held while something is computed, not while its client reads: who reads slowly keeps nobody waiting.
//!              One who waits and goes away leaves his place.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tonic::Status;

use super::client::{Client, ClientKey};
use crate::access::Who;

/// Statements that may wait.
const WAITING_MAX: usize = 10_000;
/// How long one waits before he is told that the server is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// With whom one takes turns: users, or the connections of those who have no names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Party {
    User(Arc<str>),
    Client(ClientKey),
}

impl Party {
    pub(super) fn of(client: &Client) -> Self {
        match &client.who {
            Who::User(name) => Self::User(Arc::clone(name)),
            Who::Owner => Self::Client(client.key.clone()),
        }
    }
}

pub(super) struct Admission {
    n_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    n_running: usize,
    /// Whose turn is next comes first.
    waiting: VecDeque<(Party, VecDeque<oneshot::Sender<Permit>>)>,
}

impl State {
    fn n_waiting(&self) -> usize {
        self.waiting.iter().map(|(_, places)| places.len()).sum()
    }
}

/// The right to compute, given back when it is dropped.
pub(super) struct Permit {
    /// `None` once it was handed on.
    admission: Option<Arc<Admission>>,
}

impl Admission {
    /// So many at a time, at least one.
    pub(super) fn new(n_max: usize) -> Arc<Self> {
        Arc::new(Self { n_max: n_max.max(1), state: Mutex::default() })
    }

    /// Waits for a turn.
    pub(super) async fn enter(self: &Arc<Self>, party: &Party) -> Result<Permit, Status> {
        let place = {
            let mut state = self.state.lock();
            if state.n_running < self.n_max {
                state.n_running += 1;
                return Ok(Permit { admission: Some(Arc::clone(self)) });
            }
            if state.n_waiting() >= WAITING_MAX {
                return Err(Status::resource_exhausted(format!("{WAITING_MAX} statements wait already")));
            }
            let (sender, place) = oneshot::channel();
            match state.waiting.iter_mut().find(|(known, _)| known == party) {
                Some((_, places)) => places.push_back(sender),
                None => state.waiting.push_back((party.clone(), VecDeque::from([sender]))),
            }
            place
        };
        match tokio::time::timeout(PATIENCE, place).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Status::resource_exhausted("the server is busy: the statement waited too long for its turn")),
        }
    }

    /// How many compute, and how many wait.
    pub(super) fn load(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.n_running, state.n_waiting())
    }

    /// Gives a place that became free to the next.
    fn release(self: &Arc<Self>) {
        let mut permit = Permit { admission: Some(Arc::clone(self)) };
        loop {
            let next = {
                let mut state = self.state.lock();
                let Some((party, mut places)) = state.waiting.pop_front() else {
                    state.n_running -= 1;
                    permit.admission = None;
                    return;
                };
                let next = places.pop_front();
                if !places.is_empty() {
                    state.waiting.push_back((party, places));
                }
                next
            };
            // One who went away has left his place to the next.
            let Some(next) = next else { continue };
            match next.send(permit) {
                Ok(()) => return,
                Err(back) => permit = back,
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            admission.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(name: &str) -> Party {
        Party::User(Arc::from(name))
    }

    #[tokio::test]
    async fn turns_are_taken_by_party() {
        let admission = Admission::new(1);
        let first = admission.enter(&party("bob")).await.unwrap();
        let order = Arc::new(Mutex::new(vec![]));
        let mut tasks = vec![];
        for name in ["bob", "bob", "bob", "eve"] {
            let (all, order) = (Arc::clone(&admission), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let permit = all.enter(&party(name)).await.unwrap();
                order.lock().push(name);
                drop(permit);
            }));
            tokio::task::yield_now().await;
        }
        assert_eq!(admission.load(), (1, 4));
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), ["bob", "eve", "bob", "bob"]);
        assert_eq!(admission.load(), (0, 0));
    }

    #[tokio::test]
    async fn who_goes_away_leaves_his_place() {
        let admission = Admission::new(2);
        let permits = [admission.enter(&party("a")).await.unwrap(), admission.enter(&party("a")).await.unwrap()];
        for _ in 0..3 {
            let waiting = tokio::time::timeout(Duration::from_millis(5), admission.enter(&party("b"))).await;
            assert!(waiting.is_err());
        }
        drop(permits);
        assert_eq!(admission.load(), (0, 0));
        let _again = [admission.enter(&party("c")).await.unwrap(), admission.enter(&party("c")).await.unwrap()];
        assert_eq!(admission.load().0, 2);
    }
}
