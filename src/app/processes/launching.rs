//! Work that only a process that trains can do: starting runs, and using their checkpoints. Others ask for it here.

use super::Processes;
use super::wire::{self, ReplyMessage};
use crate::ids::RunId;
use crate::launch::{
    CheckpointFile, Continuation, Evaluating, EvaluationRequest, KeptCheckpoint, LaunchError, Launcher, NewOutsideRun,
    NewRun, PresetInfo, PresetSettings, SettingProblem, Trial,
};
use crate::run::Tried;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the others have to do what is asked.
const PATIENCE: Duration = Duration::from_secs(45);

/// Something that is asked of a process that trains.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Work {
    Create(NewRun),
    CreateOutside(NewOutsideRun),
    Resume(RunId),
    Extend(RunId, u64),
    Continue(RunId, Continuation),
    CheckpointFiles(RunId),
    TryCheckpoint(RunId, Trial),
    Evaluate(RunId, EvaluationRequest),
    Remove(RunId),
}

impl Work {
    /// The run whose files are needed.
    fn run(&self) -> Option<&RunId> {
        match self {
            Work::Create(_) | Work::CreateOutside(_) => None,
            Work::Resume(run)
            | Work::Extend(run, _)
            | Work::Continue(run, _)
            | Work::CheckpointFiles(run)
            | Work::TryCheckpoint(run, _)
            | Work::Evaluate(run, _)
            | Work::Remove(run) => Some(run),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct WorkMessage {
    number: u64,
    work: Work,
}

/// Why work was not done, as it is sent back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Refusal {
    Wish(String),
    State(String),
    Failed(String),
}

impl From<LaunchError> for Refusal {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Wish(sentence) => Refusal::Wish(sentence),
            LaunchError::State(sentence) => Refusal::State(sentence),
            LaunchError::Store(error) => Refusal::Failed(error.to_string()),
            LaunchError::Failed(cause) => Refusal::Failed(cause),
        }
    }
}

impl From<Refusal> for LaunchError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Wish(sentence) => LaunchError::Wish(sentence),
            Refusal::State(sentence) => LaunchError::State(sentence),
            Refusal::Failed(cause) => LaunchError::Failed(cause),
        }
    }
}

/// The launcher of a process that does not train.
pub(super) struct RemoteLauncher(pub(super) Arc<Processes>);

impl RemoteLauncher {
    async fn ask<T: DeserializeOwned>(&self, work: Work) -> Result<T, LaunchError> {
        let processes = &self.0;
        let (reply, replied) = oneshot::channel::<Value>();
        let run = work.run().map(|run| run.as_str().to_owned());
        let deliver = Box::new(move |value| drop(reply.send(value)));
        let message = WorkMessage { number: processes.replies.expect(Some(deliver)), work };
        let body = serde_json::to_string(&message).map_err(|error| LaunchError::Failed(error.to_string()))?;
        processes.bus.request(run.as_deref(), &body).await?;
        let Ok(Ok(result)) = tokio::time::timeout(PATIENCE, replied).await else {
            return Err(LaunchError::State(match run {
                Some(_) => "The process that has this run does not answer. Try again when it is up.".to_owned(),
                None => "No process that trains answers. Try again when one is up.".to_owned(),
            }));
        };
        let result: Result<T, Refusal> =
            serde_json::from_value(result).map_err(|error| LaunchError::Failed(error.to_string()))?;
        Ok(result?)
    }
}

impl Launcher for RemoteLauncher {
    fn presets(&self) -> Vec<PresetInfo> {
        self.0.manager.presets()
    }

    fn settings(&self, preset: &str) -> Result<PresetSettings, LaunchError> {
        self.0.manager.settings(preset)
    }

    fn problems(&self, wish: &NewRun) -> Vec<SettingProblem> {
        self.0.manager.problems(wish)
    }

    fn create(&self, wish: NewRun) -> BoxFuture<'_, Result<RunId, LaunchError>> {
        Box::pin(self.ask(Work::Create(wish)))
    }

    fn create_outside(&self, wish: NewOutsideRun) -> BoxFuture<'_, Result<RunId, LaunchError>> {
        Box::pin(self.ask(Work::CreateOutside(wish)))
    }

    fn resume<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(self.ask(Work::Resume(id.clone())))
    }

    fn extend<'a>(&'a self, id: &'a RunId, episodes: u64) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(self.ask(Work::Extend(id.clone(), episodes)))
    }

    fn continue_from<'a>(
        &'a self,
        id: &'a RunId,
        continuation: Continuation,
    ) -> BoxFuture<'a, Result<RunId, LaunchError>> {
        Box::pin(self.ask(Work::Continue(id.clone(), continuation)))
    }

    fn checkpoint_files<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Vec<CheckpointFile>, LaunchError>> {
        Box::pin(async move {
            // Nobody answers for a run whose process is away, and the copies tell as much.
            if self.0.runs.get(id).is_none()
                && let Some(copied) = self.0.manager.copied_checkpoints(id).await?
            {
                return Ok(copied);
            }
            self.ask(Work::CheckpointFiles(id.clone())).await
        })
    }

    fn kept_checkpoint<'a>(
        &'a self,
        id: &'a RunId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<KeptCheckpoint>, LaunchError>> {
        Box::pin(self.0.manager.copied_checkpoint(id, name))
    }

    fn try_checkpoint<'a>(&'a self, id: &'a RunId, trial: Trial) -> BoxFuture<'a, Result<Tried, LaunchError>> {
        Box::pin(self.ask(Work::TryCheckpoint(id.clone(), trial)))
    }

    fn evaluate<'a>(&'a self, id: &'a RunId, request: EvaluationRequest) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(self.ask(Work::Evaluate(id.clone(), request)))
    }

    fn evaluating(&self, id: &RunId) -> Vec<Evaluating> {
        self.0.elsewhere.evaluations_of(id)
    }

    /// How far the removal is, is told where the files are.
    fn remove<'a>(
        &'a self,
        id: &'a RunId,
        _told: &'a (dyn Fn(u64, u64) + Sync),
    ) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(self.ask(Work::Remove(id.clone())))
    }
}

impl Processes {
    /// Does what other processes ask for, until nothing is left that this one can do.
    pub(super) async fn serve_requests(self: Arc<Self>) {
        loop {
            let taken = match self.manager.run_names_here().await {
                Ok(runs) => self.bus.take_request(&runs).await,
                Err(error) => Err(error),
            };
            let request = match taken {
                Ok(Some(request)) => request,
                Ok(None) => return,
                Err(error) => return tracing::warn!(%error, "requests of other processes could not be read"),
            };
            match serde_json::from_str::<WorkMessage>(&request.body) {
                Ok(WorkMessage { number, work }) => {
                    let processes = self.clone();
                    tokio::spawn(async move {
                        let result = processes.work(work).await.map_err(Refusal::from);
                        let result = serde_json::to_value(result).unwrap_or_default();
                        processes.tell(wire::REPLY, &ReplyMessage { to: request.sender, number, result }).await;
                    });
                }
                Err(error) => tracing::warn!(%error, "a request of another process cannot be read"),
            }
        }
    }

    async fn work(&self, work: Work) -> Result<Value, LaunchError> {
        fn value(result: impl Serialize) -> Result<Value, LaunchError> {
            serde_json::to_value(result).map_err(|error| LaunchError::Failed(error.to_string()))
        }
        let here: &dyn Launcher = &*self.manager;
        match work {
            Work::Create(wish) => value(here.create(wish).await?),
            Work::CreateOutside(wish) => value(here.create_outside(wish).await?),
            Work::Resume(run) => value(here.resume(&run).await?),
            Work::Extend(run, episodes) => value(here.extend(&run, episodes).await?),
            Work::Continue(run, continuation) => value(here.continue_from(&run, continuation).await?),
            Work::CheckpointFiles(run) => value(here.checkpoint_files(&run).await?),
            Work::TryCheckpoint(run, trial) => value(here.try_checkpoint(&run, trial).await?),
            Work::Evaluate(run, request) => value(here.evaluate(&run, request).await?),
            Work::Remove(run) => value(here.remove(&run, &|_, _| {}).await?),
        }
    }
}
