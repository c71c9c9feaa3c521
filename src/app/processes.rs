//! Several processes that share one database of PostgreSQL. A process that trains tells the others about its runs and takes their
//! commands; in the others the same handles stand for runs that live elsewhere, so that pages need not know where a run is.

mod announce;
mod elsewhere;
mod launching;
mod take_over;
mod wire;

use super::manager::Manager;
use crate::ids::RunId;
use crate::launch::Launcher;
use crate::run::RunHandle;
use crate::store::{Bus, BusListener, Message, Told};
use crate::web::Runs;
use elsewhere::Elsewhere;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::Replies;

/// This process among those that share the database.
pub(super) struct Processes {
    bus: Bus,
    runs: Runs,
    manager: Arc<Manager>,
    /// Whether this process trains, and takes what others ask for.
    trains: bool,
    elsewhere: Elsewhere,
    replies: Arc<Replies>,
    /// Told whenever another process has come, and wants to know of the runs here.
    newcomers: watch::Sender<()>,
    shutdown: CancellationToken,
}

impl Processes {
    /// Begins to listen and to announce the runs of this process.
    pub(super) async fn begin(
        bus: Bus,
        manager: Arc<Manager>,
        runs: Runs,
        trains: bool,
        shutdown: CancellationToken,
    ) -> anyhow::Result<Arc<Processes>> {
        let replies = Arc::<Replies>::default();
        let elsewhere = Elsewhere::new(bus.clone(), runs.clone(), manager.clone(), replies.clone());
        let newcomers = watch::Sender::new(());
        let listener = bus.listen().await?;
        let processes = Arc::new(Processes { bus, runs, manager, trains, elsewhere, replies, newcomers, shutdown });
        tokio::spawn(processes.clone().listen(listener));
        tokio::spawn(processes.clone().announce());
        tokio::spawn(processes.clone().look_after());
        tokio::spawn(processes.clone().announce_accounts());
        if trains {
            tokio::spawn(processes.clone().announce_evaluations());
        }
        if trains && processes.manager.copies().is_some() {
            tokio::spawn(processes.clone().take_over());
        }
        processes.tell(wire::HELLO, &()).await;
        Ok(processes)
    }

    /// The launcher for the pages of a process that does not train: it asks one that does.
    pub(super) fn launcher(self: &Arc<Self>) -> Arc<dyn Launcher> {
        Arc::new(launching::RemoteLauncher(self.clone()))
    }

    /// A run that lives in this process.
    fn own(&self, id: &RunId) -> Option<RunHandle> {
        self.runs.get(id).filter(|handle| !self.elsewhere.has(handle))
    }

    /// Sends something to all others. A process that cannot be told hears it later: statuses are sent again and again.
    async fn tell(&self, topic: &str, body: &impl serde::Serialize) {
        let body = serde_json::to_string(body).unwrap_or_default();
        if let Err(error) = self.bus.send(topic, &body).await {
            tracing::warn!(%error, topic, "the other processes could not be told");
        }
    }

    async fn listen(self: Arc<Self>, mut listener: BusListener) {
        loop {
            let told = tokio::select! {
                told = listener.next() => told,
                () = self.shutdown.cancelled() => return,
            };
            match told {
                Ok(Told::Message(message)) => self.receive(message).await,
                Ok(Told::Request) if self.trains => drop(tokio::spawn(self.clone().serve_requests())),
                Ok(Told::Request) => {}
                Err(error) => {
                    tracing::warn!(%error, "the connection to the other processes broke; it is made again");
                    loop {
                        tokio::time::sleep(BusListener::PAUSE).await;
                        match self.bus.listen().await {
                            Ok(again) => break listener = again,
                            Err(error) => tracing::debug!(%error, "the database is not there yet"),
                        }
                    }
                    self.tell(wire::HELLO, &()).await;
                }
            }
        }
    }

    async fn receive(self: &Arc<Self>, message: Message) {
        let Message { sender, topic, body } = message;
        let read = match topic.as_str() {
            wire::HELLO => {
                self.newcomers.send_replace(());
                Ok(())
            }
            wire::STATUS => match serde_json::from_str::<crate::run::Status>(&body) {
                Ok(status) if self.own(&status.run).is_none() => {
                    self.elsewhere.status(status).await;
                    Ok(())
                }
                read => read.map(drop),
            },
            wire::EVENT => serde_json::from_str(&body).map(|message| self.elsewhere.event(message)),
            wire::EVALUATIONS => serde_json::from_str(&body).map(|all| self.elsewhere.evaluations(sender, all)),
            wire::GONE => serde_json::from_str(&body).map(|run| self.elsewhere.gone(&run)),
            wire::ACCOUNTS => {
                self.manager.store().account_changed_elsewhere();
                Ok(())
            }
            wire::COMMAND => serde_json::from_str(&body).map(|message| self.carry_out(sender, message)),
            wire::REPLY => serde_json::from_str(&body).map(|message| self.replies.take(self.bus.process(), message)),
            _ => Ok(()),
        };
        if let Err(error) = read {
            tracing::warn!(%error, topic, "a message of another process cannot be read: is it of another version?");
        }
    }
}
