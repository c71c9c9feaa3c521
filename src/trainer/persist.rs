//! A run outlives a full disk.

use super::{FinalReport, Launch, Out, live};
use crate::run::{Command, RunState};
use crate::store::StoreError;
use crate::task::kit::TaskKit;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a run that found no room on the disk waits before it looks again.
const NO_ROOM: Duration = Duration::from_secs(10);

/// Whether what went wrong passes when somebody makes room on the disk, or lets go of the database.
fn passes(error: &anyhow::Error) -> bool {
    use std::io::ErrorKind;
    error.chain().any(|cause| {
        cause.downcast_ref::<StoreError>().is_some_and(StoreError::passes)
            || cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|e| matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
    })
}

/// Lives on when the disk is full: waits for room and goes on from the last checkpoint, as after a kill. People's
/// answers are in the store by then, or were refused. A run without a store has somebody at the terminal, and ends.
pub(super) fn live_on<K: TaskKit>(
    kit: &'static K,
    launch: Launch,
    inbox: &Receiver<Command>,
    out: &mut Out,
) -> anyhow::Result<FinalReport> {
    let Launch { id, config, folder, device, store, mut teacher, .. } = launch;
    loop {
        let (id, config, folder) = (id.clone(), config.clone(), folder.clone());
        let (device, stored) = (device.clone(), store.clone());
        let once = Launch { id, config, folder, device, store: stored, teacher, listener: None };
        let error = match live(kit, once, inbox, out) {
            Err(error) if store.is_some() && passes(&error) => error,
            outcome => return outcome,
        };
        out.log(format!("Training waits for room on the disk and then goes on by itself: {error:#}"));
        out.state(RunState::Starting { what: "Waiting for room on the disk".into(), done: None });
        teacher = Some(out.status.borrow().teacher);
        let again = Instant::now() + NO_ROOM;
        while let Some(wait) = again.checked_duration_since(Instant::now()) {
            match inbox.recv_timeout(wait) {
                Ok(Command::Stop | Command::Shutdown | Command::Conclude) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(error);
                }
                Ok(Command::SetTeacher(mode)) => teacher = Some(mode),
                Ok(Command::Try { reply, .. }) => {
                    let _ = reply.send(Err("The agent waits for room on the server's disk.".into()));
                }
                Ok(Command::Checkpoint(reply)) => {
                    let _ = reply.send(Err("There is no room on the server's disk.".into()));
                }
                Ok(Command::Pause | Command::Resume | Command::DescriptionArrived) | Err(RecvTimeoutError::Timeout) => {
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::artifact::ArtifactError;
    use anyhow::Context;

    #[test]
    fn only_what_passes_by_itself_is_waited_for() {
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        let bare: anyhow::Result<()> = Err(full()).context("cannot write the record");
        assert!(passes(&bare.unwrap_err()));
        assert!(passes(&ArtifactError::Io { path: "update-1".into(), source: full() }.into()));
        assert!(passes(&anyhow::Error::from(StoreError::DiskFull).context("cannot record the update")));
        assert!(passes(&StoreError::Busy.into()));
        assert!(!passes(&StoreError::Superseded.into()));
        assert!(!passes(&std::io::Error::from(std::io::ErrorKind::PermissionDenied).into()));
        assert!(!passes(&anyhow::anyhow!("the loss is NaN")));
    }
}
