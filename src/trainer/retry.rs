//! A run outlasts transient errors: a full disk, a lack of descriptors or memory, a busy database.

use super::commands::CommandQueue;
use super::event_sink::EventSink;
use super::setup::train;
use super::transient::Transient;
use super::{FinalReport, Launch};
use crate::family::Family;
use crate::run::{Command, RunState};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

/// Trains, and waits out transient errors: then it continues from the last checkpoint, as after a kill. People's answers are
/// in the store by then, or were refused. A run without a store has somebody at the terminal, and ends.
pub(super) fn train_with_retry<K: Family>(
    family: &'static K,
    launch: Launch,
    inbox: &Receiver<Command>,
    events: &mut EventSink,
) -> anyhow::Result<FinalReport> {
    let Launch { id, config, folder, device, store, mut teacher, .. } = launch;
    // Commands that came while the run waited, and the one that it was carrying out when it failed.
    let mut received = VecDeque::new();
    let mut ending = None;
    let mut failed = 0;
    loop {
        let (id, config, folder) = (id.clone(), config.clone(), folder.clone());
        let (device, stored) = (device.clone(), store.clone());
        let once = Launch { id, config, folder, device, store: stored, teacher, listener: None };
        let before = events.status().update;
        let commands = CommandQueue::new(inbox, std::mem::take(&mut received));
        let error = match train(family, once, commands, events, &mut ending) {
            Err(error) if store.is_some() => error,
            Err(error) if Transient::of(&error).is_some() => {
                return Err(
                    error.context("training ended; what the last checkpoint holds is kept, go on with --resume")
                );
            }
            outcome => return outcome,
        };
        let Some(cause) = Transient::of(&error) else { return Err(error) };
        let awaited = cause.awaited();
        // After some progress it is another error.
        failed = if events.status().update > before { 0 } else { failed + 1 };
        events.log(format!("Training waits for {awaited} and then goes on by itself: {error:#}"));
        let what = format!("Waiting for {awaited}");
        events.publish_state(RunState::Starting { what, done: None, seconds_left: None });
        teacher = Some(events.status().teacher);
        if let Some(command) = ending.take() {
            match command {
                // Nothing more can be saved now; the run goes on from its last checkpoint at the next start.
                Command::Shutdown => return Err(error),
                other => received.push_back(other),
            }
        }
        let retry_at = Instant::now() + cause.pause(failed);
        while let Some(wait) = retry_at.checked_duration_since(Instant::now()) {
            match inbox.recv_timeout(wait) {
                Ok(Command::Shutdown) | Err(RecvTimeoutError::Disconnected) => return Err(error),
                Ok(ending @ (Command::Stop | Command::Conclude)) => received.push_back(ending),
                Ok(pausing @ (Command::Pause | Command::Resume)) => received.push_back(pausing),
                Ok(Command::SetTeacher(mode)) => teacher = Some(mode),
                Ok(Command::Try { reply, .. }) => {
                    let _ = reply.send(Err(format!("The agent waits for {awaited} on the server.")));
                }
                Ok(Command::Review { reply, .. }) => {
                    let _ = reply.send(Err(format!("The agent waits for {awaited} on the server.")));
                }
                Ok(Command::CarryOut { reply, .. }) => {
                    let _ = reply.send(Err(format!("The agent waits for {awaited} on the server.")));
                }
                Ok(Command::Checkpoint(reply)) => {
                    let _ = reply.send(Err(format!("No checkpoint can be written now: the run waits for {awaited}.")));
                }
                Ok(Command::DescriptionArrived) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}
