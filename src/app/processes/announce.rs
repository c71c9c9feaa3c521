//! The runs of this process, told to the others; and the commands that others give them.

use super::Processes;
use super::wire::{self, CommandMessage, EventMessage, ReplyMessage};
use crate::run::{Event, RunHandle};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;

/// Between two statuses of a run in which nothing happens. Others take a run for gone after a few without one.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(3);

/// Between two looks at the runs that have come.
const LOOK: Duration = Duration::from_millis(500);

impl Processes {
    /// Tells the others how far evaluations are here: at each change, and with every heartbeat while there are any.
    pub(super) async fn announce_evaluations(self: Arc<Self>) {
        let (mut last, mut told_at) = (Vec::new(), Instant::now());
        loop {
            let evaluations = self.manager.all_evaluations();
            let due = !evaluations.is_empty() && told_at.elapsed() >= HEARTBEAT;
            if evaluations != last || due {
                self.tell(wire::EVALUATIONS, &evaluations).await;
                (last, told_at) = (evaluations, Instant::now());
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.shutdown.cancelled() => return,
            }
        }
    }

    /// Follows every run of this process from when it comes until it goes.
    pub(super) async fn announce(self: Arc<Self>) {
        let mut followed: HashMap<_, RunHandle> = HashMap::new();
        let mut changes = self.runs.changes();
        loop {
            for id in self.runs.ids() {
                let Some(handle) = self.own(&id) else { continue };
                let known = followed.get(&id).is_some_and(|before| before.status.same_channel(&handle.status));
                if !known {
                    tokio::spawn(self.clone().follow(handle.clone()));
                    followed.insert(id, handle);
                }
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(LOOK) => {}
                () = self.shutdown.cancelled() => return,
            }
        }
    }

    /// Tells the others when somebody was signed out here, so that streams end everywhere.
    pub(super) async fn announce_accounts(self: Arc<Self>) {
        let mut changes = self.manager.store().account_changes_here();
        loop {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = self.shutdown.cancelled() => return,
            }
            self.tell(wire::ACCOUNTS, &()).await;
        }
    }

    /// Tells the others what happens in a run, for as long as it is one of this process.
    async fn follow(self: Arc<Self>, handle: RunHandle) {
        let mut events = handle.events.subscribe();
        let mut newcomers = self.newcomers.subscribe();
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        loop {
            let still_here = || self.own(&handle.id).is_some_and(|now| now.status.same_channel(&handle.status));
            let event = tokio::select! {
                event = events.recv() => match event {
                    Ok(event) => Some(event),
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => break,
                },
                _ = heartbeat.tick() => None,
                asked = newcomers.changed() => match asked {
                    Ok(()) => None,
                    Err(_) => break,
                },
                () = self.shutdown.cancelled() => break,
            };
            match event.as_deref() {
                None if !still_here() => break,
                None | Some(Event::Status(_)) => {
                    let status = handle.status.borrow().clone();
                    self.tell(wire::STATUS, &status).await;
                }
                Some(event) => {
                    let message = EventMessage { run: handle.id.clone(), event: event.clone() };
                    self.tell(wire::EVENT, &message).await;
                }
            }
        }
        // A run that was started again is told by its new handle.
        if self.own(&handle.id).is_none_or(|now| now.status.same_channel(&handle.status)) {
            self.tell(wire::GONE, &handle.id).await;
        }
    }

    /// Gives a command of another process to a run of this one, and sends the reply back when it is there.
    pub(super) fn carry_out(self: &Arc<Self>, sender: String, message: CommandMessage) {
        let Some(handle) = self.own(&message.run) else { return };
        let (command, awaited) = wire::local(message.command);
        if handle.commands.send(command).is_err() {
            return;
        }
        let (processes, number) = (self.clone(), message.number);
        if let Some(awaited) = awaited {
            tokio::spawn(async move {
                let ended = || serde_json::json!({"Err": "The run has ended."});
                let result = awaited.await.unwrap_or_else(ended);
                processes.tell(wire::REPLY, &ReplyMessage { to: sender, number, result }).await;
            });
        }
    }

    /// Gives up on replies and on runs of which nothing was heard for long.
    pub(super) async fn look_after(self: Arc<Self>) {
        let mut look = tokio::time::interval(HEARTBEAT);
        loop {
            tokio::select! {
                _ = look.tick() => {}
                () = self.shutdown.cancelled() => return,
            }
            self.replies.give_up();
            self.elsewhere.forget_silent();
        }
    }
}
