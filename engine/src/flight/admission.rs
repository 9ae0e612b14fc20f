//! [`Admission`]: a bounded number of statements compute at a time; those who wait take turns.
//!
//! ```text
//!   waiting   bob: 1 2 3 4 5 6   eve: 7        eve's is the second to go, not the seventh
//! ```
//!
//! Keeps true   a permit is held while something is computed, not while its client reads: who reads slowly keeps nobody waiting.
//!              One who waits and goes away leaves his place. Nobody computes more at a time than one user may, also where places are
//!              free. Who finds the queue full is told so at once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tonic::Status;

use super::client::{Client, ClientKey};
use crate::access::Who;

/// How long one waits before he is told that the server is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Statements that compute.
    pub(super) running: usize,
    /// Those of one user among them.
    pub(super) running_per_user: usize,
    /// Statements that wait.
    pub(super) waiting: usize,
}

/// With whom one takes turns: users, or the connections of those who have no names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
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
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    n_running: usize,
    /// Of each who has any.
    running: HashMap<Party, usize>,
    /// Whose turn is next comes first.
    waiting: VecDeque<(Party, VecDeque<oneshot::Sender<Permit>>)>,
}

impl State {
    fn runs(&self, party: &Party) -> usize {
        self.running.get(party).copied().unwrap_or(0)
    }

    fn begin(&mut self, party: &Party) {
        self.n_running += 1;
        *self.running.entry(party.clone()).or_default() += 1;
    }

    fn end(&mut self, party: &Party) {
        self.n_running -= 1;
        match self.running.get_mut(party) {
            Some(n) if *n > 1 => *n -= 1,
            _ => drop(self.running.remove(party)),
        }
    }

    /// Takes the next who may begin out of the queue; his party goes to its end.
    fn next(&mut self, limits: &Limits) -> Option<(Party, oneshot::Sender<Permit>)> {
        if self.n_running >= limits.running {
            return None;
        }
        let at = self.waiting.iter().position(|(party, _)| self.runs(party) < limits.running_per_user)?;
        let (party, mut places) = self.waiting.remove(at)?;
        let next = places.pop_front();
        if !places.is_empty() {
            self.waiting.push_back((party.clone(), places));
        }
        Some((party, next?))
    }

    fn n_waiting(&self) -> usize {
        self.waiting.iter().map(|(_, places)| places.len()).sum()
    }
}

/// The right to compute, given back when it is dropped.
pub(super) struct Permit {
    /// `None` once it was given back.
    admission: Option<Arc<Admission>>,
    party: Party,
}

impl Admission {
    /// So many at a time, at least one.
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        let Limits { running, running_per_user, waiting } = limits;
        let limits = Limits { running: running.max(1), running_per_user: running_per_user.max(1), waiting };
        Arc::new(Self { limits, state: Mutex::default() })
    }

    /// Waits for a turn.
    pub(super) async fn enter(self: &Arc<Self>, party: &Party) -> Result<Permit, Status> {
        let place = {
            let mut state = self.state.lock();
            if state.n_running < self.limits.running && state.runs(party) < self.limits.running_per_user {
                state.begin(party);
                return Ok(Permit { admission: Some(Arc::clone(self)), party: party.clone() });
            }
            if state.n_waiting() >= self.limits.waiting {
                let n = self.limits.waiting;
                return Err(Status::resource_exhausted(format!("the server is busy: {n} statements wait already")));
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
    fn release(self: &Arc<Self>, party: &Party) {
        self.state.lock().end(party);
        loop {
            let next = {
                let mut state = self.state.lock();
                let next = state.next(&self.limits);
                if let Some((party, _)) = &next {
                    state.begin(party);
                }
                next
            };
            let Some((party, next)) = next else { return };
            // One who went away has left his place to the next.
            match next.send(Permit { admission: Some(Arc::clone(self)), party: party.clone() }) {
                Ok(()) => return,
                Err(mut back) => {
                    back.admission = None;
                    self.state.lock().end(&party);
                }
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            admission.release(&self.party);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(name: &str) -> Party {
        Party::User(Arc::from(name))
    }

    fn admission(running: usize, running_per_user: usize) -> Arc<Admission> {
        Admission::new(Limits { running, running_per_user, waiting: 5 })
    }

    #[tokio::test]
    async fn one_user_has_his_part() {
        let admission = admission(3, 2);
        let first = admission.enter(&party("bob")).await.unwrap();
        let _second = admission.enter(&party("bob")).await.unwrap();
        let third = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move { admission.enter(&party("bob")).await.unwrap() }
        });
        tokio::task::yield_now().await;
        assert_eq!(admission.load(), (2, 1), "a place is free, but not for bob");
        // Others pass him.
        let eve = admission.enter(&party("eve")).await.unwrap();
        assert_eq!(admission.load(), (3, 1));
        drop(eve);
        assert_eq!(admission.load(), (2, 1));
        drop(first);
        let third = third.await.unwrap();
        assert_eq!(admission.load(), (2, 0));
        drop(third);
        assert_eq!(admission.state.lock().runs(&party("bob")), 1);
    }

    #[tokio::test]
    async fn a_full_queue_says_so() {
        let admission = admission(1, 1);
        let _running = admission.enter(&party("bob")).await.unwrap();
        let waiting: Vec<_> = (0..5)
            .map(|_| {
                let admission = Arc::clone(&admission);
                tokio::spawn(async move { admission.enter(&party("bob")).await.map(drop) })
            })
            .collect();
        tokio::task::yield_now().await;
        assert_eq!(admission.load(), (1, 5));
        let refused = admission.enter(&party("eve")).await.err().unwrap();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert!(refused.message().contains("5 statements wait already"), "{refused}");
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test]
    async fn turns_are_taken_by_party() {
        let admission = admission(1, 1);
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
        let admission = admission(2, 2);
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
