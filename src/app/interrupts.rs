//! Signals that end the program: Ctrl+C and SIGTERM.

/// Listens for Ctrl+C and SIGTERM from the moment it is made, so that neither ends the program in the middle of its work.
pub struct Interrupts {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Interrupts {
    /// Begins to listen. To be called within a Tokio runtime.
    ///
    /// # Errors
    /// When the system refuses to install the handlers.
    pub fn listen() -> std::io::Result<Interrupts> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Interrupts { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
        }
        #[cfg(not(unix))]
        Ok(Interrupts {})
    }

    /// Returns at the next Ctrl+C or SIGTERM, also at one that came before the call.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}
