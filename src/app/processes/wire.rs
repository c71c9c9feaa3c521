//! The messages between processes: their topics, their bodies, and the replies that are waited for.

use crate::config::run::TeacherMode;
use crate::ids::RunId;
use crate::run::{Command, Event, OwnDescription};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A process has come, and asks for the statuses of all runs.
pub(super) const HELLO: &str = "hello";
/// The status of a run, as it is now.
pub(super) const STATUS: &str = "status";
/// An event of a run.
pub(super) const EVENT: &str = "event";
/// A run has left its process.
pub(super) const GONE: &str = "gone";
/// A session may have ended, or a role may have changed.
pub(super) const ACCOUNTS: &str = "accounts";
/// The evaluations of the sender that are under way, or that failed; all of them.
pub(super) const EVALUATIONS: &str = "evaluations";
/// A command to a run.
pub(super) const COMMAND: &str = "command";
/// The reply to a command or to a request.
pub(super) const REPLY: &str = "reply";

/// How long a reply is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// An event of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EventMessage {
    pub run: RunId,
    pub event: Event,
}

/// A command to a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CommandMessage {
    pub run: RunId,
    /// Number of the sender under which the reply is expected.
    pub number: u64,
    pub command: RemoteCommand,
}

/// The reply to one process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReplyMessage {
    pub to: String,
    pub number: u64,
    /// A result, by what was asked.
    pub result: Value,
}

/// The commands that other processes may give. A run is shut down and concluded by its own process alone.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RemoteCommand {
    SetTeacher(TeacherMode),
    Pause,
    Resume,
    Stop,
    Checkpoint,
    Try { request: String, start: Value },
    Review { described: Vec<OwnDescription>, number: u64 },
    CarryOut { described: Vec<OwnDescription> },
    DescriptionArrived,
}

/// Hands a reply to whoever waits for it.
type Deliver = Box<dyn FnOnce(Value) + Send>;

/// Takes a command apart: the command that is sent, and where its reply goes. `None` for those that stay in the process.
pub(super) fn remote(command: Command) -> Option<(RemoteCommand, Option<Deliver>)> {
    Some(match command {
        Command::SetTeacher(mode) => (RemoteCommand::SetTeacher(mode), None),
        Command::Pause => (RemoteCommand::Pause, None),
        Command::Resume => (RemoteCommand::Resume, None),
        Command::Stop => (RemoteCommand::Stop, None),
        Command::Checkpoint(reply) => (RemoteCommand::Checkpoint, Some(delivering(reply))),
        Command::Try { request, start, reply } => (RemoteCommand::Try { request, start }, Some(delivering(reply))),
        Command::Review { described, number, reply } => {
            (RemoteCommand::Review { described, number }, Some(delivering(reply)))
        }
        Command::CarryOut { described, reply } => (RemoteCommand::CarryOut { described }, Some(delivering(reply))),
        Command::DescriptionArrived => (RemoteCommand::DescriptionArrived, None),
        Command::Shutdown | Command::Conclude => return None,
    })
}

fn delivering<T: DeserializeOwned + Send + 'static>(reply: oneshot::Sender<Result<T, String>>) -> Deliver {
    Box::new(move |value| {
        let result = serde_json::from_value(value).unwrap_or_else(|error| {
            tracing::warn!(%error, "a reply of another process cannot be read");
            Err("The agent's answer could not be read.".to_owned())
        });
        // Whoever asked may have given up.
        let _ = reply.send(result);
    })
}

/// The reply to a command, when it is there; `None` when the run ended before it replied.
pub(super) type Awaited = std::pin::Pin<Box<dyn Future<Output = Option<Value>> + Send>>;

/// The command of this process, and its reply as it is sent back.
pub(super) fn local(command: RemoteCommand) -> (Command, Option<Awaited>) {
    match command {
        RemoteCommand::SetTeacher(mode) => (Command::SetTeacher(mode), None),
        RemoteCommand::Pause => (Command::Pause, None),
        RemoteCommand::Resume => (Command::Resume, None),
        RemoteCommand::Stop => (Command::Stop, None),
        RemoteCommand::Checkpoint => {
            let (reply, awaited) = awaited();
            (Command::Checkpoint(reply), Some(awaited))
        }
        RemoteCommand::Try { request, start } => {
            let (reply, awaited) = awaited();
            (Command::Try { request, start, reply }, Some(awaited))
        }
        RemoteCommand::Review { described, number } => {
            let (reply, awaited) = awaited();
            (Command::Review { described, number, reply }, Some(awaited))
        }
        RemoteCommand::CarryOut { described } => {
            let (reply, awaited) = awaited();
            (Command::CarryOut { described, reply }, Some(awaited))
        }
        RemoteCommand::DescriptionArrived => (Command::DescriptionArrived, None),
    }
}

fn awaited<T: Serialize + Send + 'static>() -> (oneshot::Sender<Result<T, String>>, Awaited) {
    let (sender, receiver) = oneshot::channel::<Result<T, String>>();
    let awaited = Box::pin(async move { serde_json::to_value(receiver.await.ok()?).ok() });
    (sender, awaited)
}

/// The replies that this process waits for.
#[derive(Default)]
pub(super) struct Replies {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, (Instant, Deliver)>>,
}

impl Replies {
    /// A number for a reply, which goes to `deliver`.
    pub(super) fn expect(&self, deliver: Option<Deliver>) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(deliver) = deliver {
            self.lock().insert(number, (Instant::now(), deliver));
        }
        number
    }

    /// Hands a reply on when it is for this process.
    pub(super) fn take(&self, process: &str, message: ReplyMessage) {
        if message.to != process {
            return;
        }
        let waiting = self.lock().remove(&message.number);
        if let Some((_, deliver)) = waiting {
            deliver(message.result);
        }
    }

    /// Gives up on replies that have not come for a minute: who waits for them sees that nobody will reply.
    pub(super) fn give_up(&self) {
        self.lock().retain(|_, (since, _)| since.elapsed() < PATIENCE);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (Instant, Deliver)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Tried;
    use serde_json::json;

    /// A command goes through the wire to the run and its reply back to who asked.
    #[tokio::test]
    async fn a_request_comes_back_with_the_agents_answer() {
        let (reply, answered) = oneshot::channel();
        let asked = Command::Try { request: "remove the s".into(), start: json!({"words": ["is"]}), reply };
        let (sent, deliver) = remote(asked).unwrap();
        let replies = Replies::default();
        let number = replies.expect(deliver);
        let message = CommandMessage { run: "run".into(), number, command: sent };
        let message: CommandMessage = serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();

        let (command, awaited) = local(message.command);
        let Command::Try { request, start, reply } = command else { panic!() };
        assert_eq!((request.as_str(), start), ("remove the s", json!({"words": ["is"]})));
        let (view, unknown) = (json!(["i"]), vec!["s".to_owned()]);
        let tried = Tried { view, summary: "i".into(), valid: true, update: 7, unknown };
        reply.send(Ok(tried.clone())).unwrap();
        let result = awaited.unwrap().await.unwrap();

        replies.take("another", ReplyMessage { to: "me".into(), number, result: json!({"Err": "not for me"}) });
        replies.take("me", ReplyMessage { to: "me".into(), number, result });
        assert_eq!(answered.await.unwrap(), Ok(tried));
    }

    #[tokio::test]
    async fn an_answer_that_nobody_understands_is_an_error_for_who_asked() {
        let (reply, answered) = oneshot::channel();
        let (_, deliver) = remote(Command::Checkpoint(reply)).unwrap();
        let replies = Replies::default();
        let number = replies.expect(deliver);
        replies.take("me", ReplyMessage { to: "me".into(), number, result: json!("nonsense") });
        assert!(answered.await.unwrap().is_err());
    }

    #[test]
    fn the_end_of_a_process_is_its_own() {
        assert!(remote(Command::Shutdown).is_none() && remote(Command::Conclude).is_none());
    }
}
