//! The receivers of a run's events: its listener first, then everybody who subscribed, and the current status.

use super::Listener;
use crate::run::{Event, RunState, Status};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, watch};

/// Time between two statuses that are published while nothing but progress happens.
const STATUS_INTERVAL: Duration = Duration::from_millis(250);

/// Time between two publications of episodes.
const EPISODE_INTERVAL: Duration = Duration::from_millis(400);

/// Sends events, and keeps the status.
pub(super) struct EventSink {
    events: broadcast::Sender<Arc<Event>>,
    status: watch::Sender<Status>,
    listener: Option<Listener>,
    status_published: Instant,
    episodes_published: Instant,
}

impl EventSink {
    pub(super) fn new(
        events: broadcast::Sender<Arc<Event>>,
        status: watch::Sender<Status>,
        listener: Option<Listener>,
    ) -> Self {
        Self { events, status, listener, status_published: Instant::now(), episodes_published: Instant::now() }
    }

    pub(super) fn send(&self, event: Event) {
        let event = Arc::new(event);
        if let Some(listener) = &self.listener {
            listener(&event);
        }
        // It is no error when nobody has subscribed.
        let _ = self.events.send(event);
    }

    pub(super) fn log(&self, message: impl Into<String>) {
        let message = message.into();
        tracing::info!("{message}");
        self.send(Event::Log { message });
    }

    /// The current status.
    pub(super) fn status(&self) -> watch::Ref<'_, Status> {
        self.status.borrow()
    }

    /// Changes the status without publishing it as an event.
    pub(super) fn change_status(&mut self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(change);
    }

    /// Publishes the current status.
    pub(super) fn publish_status(&mut self) {
        self.status_published = Instant::now();
        let status = self.status.borrow().clone();
        self.send(Event::Status(status));
    }

    /// Changes the state of the run and publishes the status.
    pub(super) fn publish_state(&mut self, state: RunState) {
        self.change_status(|s| s.state = state);
        self.publish_status();
    }

    /// Whether it is time to publish the status again.
    pub(super) fn status_due(&self) -> bool {
        self.status_published.elapsed() >= STATUS_INTERVAL
    }

    /// Whether it is time to publish episodes again.
    pub(super) fn episodes_due(&self) -> bool {
        self.episodes_published.elapsed() >= EPISODE_INTERVAL
    }

    /// Publishes episodes that are sent only from time to time.
    pub(super) fn publish_episodes(&mut self, episodes: impl Iterator<Item = crate::run::EpisodeRow>) {
        self.episodes_published = Instant::now();
        for episode in episodes {
            self.send(Event::Episode(episode));
        }
    }
}
