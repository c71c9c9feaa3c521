//! A run outlives what passes: a full disk, a lack of descriptors or memory, a busy database.

use super::passing::Passing;
use super::{FinalReport, Launch, Out, live};
use crate::family::Family;
use crate::run::{Command, RunState};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

/// Lives on when the disk is full, or anything else that passes is in the way: waits and goes on from the last checkpoint,
/// as after a kill. People's answers are in the store by then, or were refused. A run without a store has somebody at the
/// terminal, and ends.
pub(super) fn live_on<K: Family>(
    kit: &'static K,
    launch: Launch,
    inbox: &Receiver<Command>,
    out: &mut Out,
) -> anyhow::Result<FinalReport> {
    let Launch { id, config, folder, device, store, mut teacher, .. } = launch;
    // Commands that came while nothing could be done, and the one that the run was carrying out when it failed.
    let mut early = VecDeque::new();
    let mut failed = 0;
    loop {
        let (id, config, folder) = (id.clone(), config.clone(), folder.clone());
        let (device, stored) = (device.clone(), store.clone());
        let once = Launch { id, config, folder, device, store: stored, teacher, listener: None };
        let before = out.status.borrow().update;
        let error = match live(kit, once, inbox, std::mem::take(&mut early), out) {
            Err(error) if store.is_some() => error,
            Err(error) if Passing::of(&error).is_some() => {
                return Err(
                    error.context("training ended; what the last checkpoint holds is kept, go on with --resume")
                );
            }
            outcome => return outcome,
        };
        let Some(trouble) = Passing::of(&error) else { return Err(error) };
        let awaited = trouble.awaited();
        // Progress since the last trouble: it is another one.
        failed = if out.status.borrow().update > before { 0 } else { failed + 1 };
        out.log(format!("Training waits for {awaited} and then goes on by itself: {error:#}"));
        out.state(RunState::Starting { what: format!("Waiting for {awaited}"), done: None });
        teacher = Some(out.status.borrow().teacher);
        if let Some(ending) = out.ending.take() {
            match ending {
                // Nothing more can be saved now; the run goes on from its last checkpoint at the next start.
                Command::Shutdown => return Err(error),
                other => early.push_back(other),
            }
        }
        let again = Instant::now() + trouble.pause(failed);
        while let Some(wait) = again.checked_duration_since(Instant::now()) {
            match inbox.recv_timeout(wait) {
                Ok(Command::Shutdown) | Err(RecvTimeoutError::Disconnected) => return Err(error),
                Ok(ending @ (Command::Stop | Command::Conclude)) => early.push_back(ending),
                Ok(pausing @ (Command::Pause | Command::Resume)) => early.push_back(pausing),
                Ok(Command::SetTeacher(mode)) => teacher = Some(mode),
                Ok(Command::Try { reply, .. }) => {
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
