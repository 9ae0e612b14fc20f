//! [`Client`]: where statements go: into this process, or to a server.

use std::path::{Path, PathBuf};

use nectarine_engine::{Answer, Engine, EngineError, Names, Pipes, Progress, RemoteSession, Session};

use crate::failure::{Failure, Result};

/// A session, wherever it is.
#[derive(Clone)]
pub(crate) enum Client {
    Here { engine: Engine, session: Session },
    There(Box<RemoteSession>),
}

impl Client {
    /// A session in this process.
    pub(crate) fn here(engine: Engine) -> Self {
        Self::Here { session: engine.session(), engine }
    }

    /// Runs a statement. A server has no use for pipes of ours.
    pub(crate) async fn execute(&self, sql: &str, pipes: &Pipes, progress: &Progress) -> Result<Answer, EngineError> {
        match self {
            Self::Here { session, .. } => session.execute_piped(sql, pipes, progress).await,
            Self::There(session) => session.execute_observed(sql, progress).await,
        }
    }

    /// What completion can offer.
    pub(crate) async fn names(&self) -> Result<Names, EngineError> {
        match self {
            Self::Here { session, .. } => session.names().await,
            Self::There(session) => session.names().await,
        }
    }

    /// The session and the home, for what only they can do.
    pub(crate) fn local(&self) -> Result<(&Session, &Path)> {
        match self {
            Self::Here { session, engine } => Ok((session, engine.home())),
            Self::There(_) => Err(Failure::new("this needs the home itself, not a server")),
        }
    }

    /// Where it is, for people.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Here { engine, .. } => format!("home {}", engine.home().display()),
            Self::There(session) => session.address().to_owned(),
        }
    }

    /// Where typed statements are kept.
    pub(crate) fn history(&self) -> PathBuf {
        let home = match self {
            Self::Here { engine, .. } => engine.home().to_owned(),
            Self::There(_) => nectarine_engine::default_home(),
        };
        home.join("history")
    }
}
