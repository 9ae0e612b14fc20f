//! [`Interrupt`]: Ctrl-C while a statement runs.
//!
//! At the prompt the line editor reads Ctrl-C as a key; everywhere else it is a signal, and this is where it arrives.
//! A script that pays no heed to three of them ends on the spot.

use tokio::runtime::Handle;
use tokio::sync::watch;

/// Exit code of a process that ended by Ctrl-C.
pub(crate) const EXIT_CODE: u8 = 130;

/// Receives Ctrl-C.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    signals: watch::Receiver<u32>,
}

impl Interrupt {
    /// Listens from now on; `patient` means that the process never ends by Ctrl-C, because someone sits at a prompt.
    pub(crate) fn listen(runtime: &Handle, patient: bool) -> Self {
        let (sender, signals) = watch::channel(0);
        let handled = signals.clone();
        // Here and not in the task: the line editor puts back the handler that it finds when it starts.
        let _entered = runtime.enter();
        match keys::CtrlC::listen() {
            Ok(mut keys) => drop(runtime.spawn(async move {
                let mut unheeded = 0;
                while keys.pressed().await {
                    unheeded = if handled.has_changed().unwrap_or(false) { unheeded + 1 } else { 0 };
                    sender.send_modify(|count| *count += 1);
                    if unheeded >= 2 && !patient {
                        std::process::exit(i32::from(EXIT_CODE));
                    }
                }
            })),
            Err(error) => tracing::warn!("Ctrl-C will not cancel statements: {error}"),
        }
        Self { signals }
    }

    /// Forgets what was pressed before.
    pub(crate) fn clear(&mut self) {
        self.signals.mark_unchanged();
    }

    /// Ends when Ctrl-C is pressed.
    pub(crate) async fn pressed(&mut self) {
        if self.signals.changed().await.is_err() {
            // Without a listener nothing can be pressed.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
mod keys {
    //! Ctrl-C as a signal.

    use tokio::signal::unix::{Signal, SignalKind, signal};

    pub(super) struct CtrlC(Signal);

    impl CtrlC {
        pub(super) fn listen() -> std::io::Result<Self> {
            signal(SignalKind::interrupt()).map(Self)
        }

        pub(super) async fn pressed(&mut self) -> bool {
            self.0.recv().await.is_some()
        }
    }
}

#[cfg(windows)]
mod keys {
    //! Ctrl-C as a console event.

    pub(super) struct CtrlC(tokio::signal::windows::CtrlC);

    impl CtrlC {
        pub(super) fn listen() -> std::io::Result<Self> {
            tokio::signal::windows::ctrl_c().map(Self)
        }

        pub(super) async fn pressed(&mut self) -> bool {
            self.0.recv().await.is_some()
        }
    }
}
