//! Where a run's events go: its listener first, then everybody who subscribed, and the current status.

use super::Listener;
use crate::run::{Command, Event, RunState, Status};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{broadcast, watch};

/// Where events go.
pub(super) struct Out {
    pub(super) events: broadcast::Sender<Arc<Event>>,
    pub(super) status: watch::Sender<Status>,
    pub(super) listener: Option<Listener>,
    pub(super) told: Instant,
    pub(super) episodes: Instant,
    /// The command that ends the run, once it is being carried out.
    pub(super) ending: Option<Command>,
}

impl Out {
    pub(super) fn send(&self, event: Event) {
        let event = Arc::new(event);
        if let Some(listener) = &self.listener {
            listener(&event);
        }
        // No listener is no error.
        let _ = self.events.send(event);
    }

    pub(super) fn log(&self, message: impl Into<String>) {
        let message = message.into();
        tracing::info!("{message}");
        self.send(Event::Log { message });
    }

    pub(super) fn change(&mut self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(change);
    }

    pub(super) fn tell_status(&mut self) {
        self.told = Instant::now();
        let status = self.status.borrow().clone();
        self.send(Event::Status(status));
    }

    pub(super) fn state(&mut self, state: RunState) {
        self.change(|s| s.state = state);
        self.tell_status();
    }
}
