//! [`Trouble`]: what keeps results from being kept, or from going, told once.
//!
//! Results are published when the answer has ended, so the next statement tells: that the derived store could not be written,
//! not that something was too large or not worth it. And that files of dropped results can not be deleted, now and then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nectarine_executor::{DerivedError, NotRecorded};
use parking_lot::Mutex;

use crate::Notice;

/// The same trouble is told again after this.
const AGAIN: Duration = Duration::from_secs(60);
/// What can not be deleted stops nobody: that is told more seldom.
const UNDELETED_AGAIN: Duration = Duration::from_secs(3600);

/// Trouble of one home; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    news: Option<String>,
    last: Option<String>,
    told: Option<Instant>,
    undeleted: Undeleted,
}

/// Files that can not be deleted.
#[derive(Debug, Default)]
struct Undeleted {
    news: Option<String>,
    told: Option<Instant>,
}

impl Trouble {
    /// Something was not recorded.
    pub(super) fn learn(&self, reason: &NotRecorded) {
        let detail = match reason {
            NotRecorded::Store(DerivedError::Unavailable { source, .. }) => source.to_string(),
            NotRecorded::Store(error) => error.to_string(),
            _ => return,
        };
        let mut state = self.state.lock();
        state.news = Some(detail.clone());
        state.last = Some(detail);
    }

    /// Files of dropped results can not be deleted.
    pub(crate) fn learn_undeleted(&self, reason: &str) {
        self.state.lock().undeleted.news = Some(reason.to_owned());
    }

    /// What it is at the moment.
    pub(crate) fn now(&self) -> Option<String> {
        self.state.lock().last.clone()
    }

    /// Something was kept: there is none, and if there is again, that is news.
    pub(super) fn is_over(&self) {
        let mut state = self.state.lock();
        (state.news, state.last, state.told) = (None, None, None);
    }

    /// What the next statement says.
    pub(super) fn tell(&self) -> Option<Notice> {
        let mut state = self.state.lock();
        let news = state.news.take()?;
        if state.told.is_some_and(|told| told.elapsed() < AGAIN) {
            return None;
        }
        state.told = Some(Instant::now());
        let message = "results can not be kept; queries are computed each time".to_string();
        Some(Notice { message, hint: Some(news) })
    }

    /// And that files can not be deleted.
    pub(super) fn tell_undeleted(&self) -> Option<Notice> {
        let undeleted = &mut self.state.lock().undeleted;
        let news = undeleted.news.take()?;
        if undeleted.told.is_some_and(|told| told.elapsed() < UNDELETED_AGAIN) {
            return None;
        }
        undeleted.told = Some(Instant::now());
        let message = "files of dropped results can not be deleted; they take room until they are gone".to_string();
        Some(Notice { message, hint: Some(news) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn told_once_until_it_is_over() {
        let trouble = Trouble::default();
        let full = || {
            let source = std::io::Error::other("no space left on device");
            let location = "x".to_string();
            NotRecorded::Store(DerivedError::Unavailable { attempted: "write", location, source: Arc::new(source) })
        };
        assert!(trouble.tell().is_none());
        trouble.learn(&NotRecorded::TooDear);
        assert!(trouble.tell().is_none());
        trouble.learn(&full());
        assert_eq!(trouble.tell().and_then(|notice| notice.hint).as_deref(), Some("no space left on device"));
        trouble.learn(&full());
        assert!(trouble.tell().is_none(), "that is known");
        trouble.is_over();
        trouble.learn(&full());
        assert!(trouble.tell().is_some());
    }

    #[test]
    fn what_can_not_be_deleted_is_told_by_itself() {
        let trouble = Trouble::default();
        assert!(trouble.tell_undeleted().is_none());
        trouble.learn_undeleted("permission denied");
        assert!(trouble.tell().is_none());
        // That others are kept says nothing about it.
        trouble.is_over();
        assert_eq!(trouble.tell_undeleted().and_then(|notice| notice.hint).as_deref(), Some("permission denied"));
        trouble.learn_undeleted("permission denied");
        assert!(trouble.tell_undeleted().is_none(), "that is known");
    }
}
