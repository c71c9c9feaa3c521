//! The commands that a run has received and not carried out yet.

use crate::run::Command;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Commands in the order in which they are carried out. Long work looks into the queue between its parts, to see whether it
/// should end; commands that it finds there stay queued.
pub(super) struct CommandQueue<'a> {
    inbox: &'a Receiver<Command>,
    received: VecDeque<Command>,
}

impl<'a> CommandQueue<'a> {
    /// A queue that takes commands from `inbox`, after those that were received before.
    pub(super) fn new(inbox: &'a Receiver<Command>, received: VecDeque<Command>) -> Self {
        Self { inbox, received }
    }

    /// The next command; waits for one at most so long.
    ///
    /// # Errors
    /// When nobody can send a command any more.
    pub(super) fn next_within(&mut self, wait: Duration) -> Result<Option<Command>, RecvTimeoutError> {
        if let Some(command) = self.received.pop_front() {
            return Ok(Some(command));
        }
        match self.inbox.recv_timeout(wait) {
            Ok(command) => Ok(Some(command)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(disconnected) => Err(disconnected),
        }
    }

    /// The next command, if there is one.
    pub(super) fn try_next(&mut self) -> Option<Command> {
        self.received.pop_front().or_else(|| self.inbox.try_recv().ok())
    }

    /// Whether the program is to shut down.
    pub(super) fn shutdown_requested(&mut self) -> bool {
        self.has(|command| matches!(command, Command::Shutdown))
    }

    /// Whether the run is to end, for whatever reason.
    pub(super) fn end_requested(&mut self) -> bool {
        self.has(|command| matches!(command, Command::Stop | Command::Shutdown | Command::Conclude))
    }

    /// Whether the run is to stop, so that the next start of the program does not resume it.
    pub(super) fn stop_requested(&mut self) -> bool {
        self.has(|command| matches!(command, Command::Stop))
    }

    fn has(&mut self, wanted: impl Fn(&Command) -> bool) -> bool {
        self.received.extend(self.inbox.try_iter());
        self.received.iter().any(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_long_work_has_seen_are_still_carried_out_in_order() {
        let (sender, inbox) = std::sync::mpsc::channel();
        let mut queue = CommandQueue::new(&inbox, VecDeque::from([Command::Pause]));
        sender.send(Command::Resume).unwrap();
        assert!(!queue.end_requested());
        sender.send(Command::Shutdown).unwrap();
        assert!(queue.shutdown_requested() && queue.end_requested() && !queue.stop_requested());
        assert!(matches!(queue.next_within(Duration::ZERO), Ok(Some(Command::Pause))));
        assert!(matches!(queue.try_next(), Some(Command::Resume)));
        assert!(matches!(queue.try_next(), Some(Command::Shutdown)));
        assert!(queue.try_next().is_none() && matches!(queue.next_within(Duration::ZERO), Ok(None)));
        drop(sender);
        assert!(queue.next_within(Duration::ZERO).is_err());
    }
}
