//! The uses of checkpoints beside resuming their run: another run begins with one, its agent is tried, its success is
//! measured.

use super::manager::{Manager, config_of, new_run_id, stored_config};
use super::presets::{failed, family_of, missing, refused, sentence};
use crate::config::run::RunConfig;
use crate::ids::RunId;
use crate::launch::{CheckpointFile, Continuation, Evaluating, EvaluationRequest, LaunchError, Trial};
use crate::registry::{AgentFile, SavedAgent};
use crate::run::{Tried, seconds_left};
use crate::store::{Inherited, MadeBy, Run, RunEvaluation, RunOrigin, RunParent};
use crate::trainer::{checkpoint, curve, description_log};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

/// Sections of the settings that a checkpoint decides: another world or another network cannot continue with its weights.
const FIXED: [&str; 5] = ["family", "preset", "task", "model", "algorithm.name"];

/// The agent that was opened last, with the file that it came from.
type Opened = (PathBuf, SystemTime, Arc<Mutex<Box<dyn SavedAgent>>>);

/// Agents of checkpoints that people try, and evaluations that are under way.
#[derive(Default)]
pub(super) struct CheckpointUse {
    /// The agent that was tried last: people try one many times.
    opened: Mutex<Option<Opened>>,
    evaluating: Mutex<Vec<(RunId, Evaluating)>>,
    tries: std::sync::atomic::AtomicU64,
}

impl CheckpointUse {
    /// Notes how far an evaluation is that began to carry out tasks at a time.
    fn tell_progress(&self, run: &RunId, request: &EvaluationRequest, (done, tasks): (u64, u64), began: &Instant) {
        let mut all = self.evaluating.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, one) in all.iter_mut().filter(|(of, one)| of == run && one.request == *request) {
            (one.done, one.tasks) = (done, tasks);
            one.seconds_left = seconds_left(began.elapsed(), done, tasks);
        }
    }
}

/// Runs blocking work on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LaunchError> + Send + 'static,
) -> Result<T, LaunchError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| failed(error.into()))?
}

/// Copies a file, unless it is not there.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::copy(from, to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Why a setting that differs between a checkpoint and a wish keeps the wish from being met.
fn unfit(checkpoint: &RunConfig, wish: &RunConfig) -> Option<String> {
    let differs = |key: &str| {
        let fixed = FIXED.iter().find(|fixed| key == **fixed || key.starts_with(&format!("{fixed}.")))?;
        Some(match *fixed {
            "algorithm.name" => {
                "Another algorithm cannot continue with the state of this one: start a new run for it.".to_owned()
            }
            _ => format!(
                "{key} decides what the weights of the checkpoint mean, so it cannot be changed when they are continued with. Start a new run with it instead."
            ),
        })
    };
    wish.differences(checkpoint).iter().find_map(|(key, _)| differs(key))
}

impl Manager {
    /// The checkpoint of a run by its file name.
    ///
    /// # Errors
    /// When there is no such file.
    async fn checkpoint_file(&self, run: &RunId, name: &str) -> Result<PathBuf, LaunchError> {
        let files = self.checkpoints_of(run).await?;
        let here = |file: &CheckpointFile| file.name == name && !file.path.as_os_str().is_empty();
        files.into_iter().find(here).map(|file| file.path).ok_or_else(|| {
            LaunchError::State(format!(
                "The run has no checkpoint {name} any more: the newest few and the best are kept (schedule.keep)."
            ))
        })
    }

    /// The checkpoints of a run that are files, the best first and then the newest.
    pub(super) async fn checkpoints_of(&self, run: &RunId) -> Result<Vec<CheckpointFile>, LaunchError> {
        self.store().run(run).await?;
        let folder = self.folder_of(run).await?;
        if !folder.is_dir()
            && let Some(copied) = self.copied_checkpoints(run).await?
        {
            return Ok(copied);
        }
        blocking(move || {
            let file = |path: PathBuf| {
                let name = path.file_name()?.to_string_lossy().into_owned();
                Some(CheckpointFile { bytes: path.metadata().ok()?.len(), name, path })
            };
            Ok(checkpoint::files(&folder).into_iter().filter_map(file).collect())
        })
        .await
    }

    /// Starts a new run from a checkpoint of another; its id.
    pub(super) async fn continue_run(&self, parent: &RunId, wish: Continuation) -> Result<RunId, LaunchError> {
        let from = self.checkpoint_file(parent, &wish.checkpoint).await?;
        let path = from.clone();
        let (_, header) = blocking(move || checkpoint::describe(&path).map_err(refused)).await?;
        let mut config = header.config.clone();
        // The number of episodes may have been raised since the checkpoint was written.
        config.schedule.episodes = config_of(&self.store().run(parent).await?)?.schedule.episodes;
        let mut config = config.with_overrides(&wish.set).map_err(refused)?;
        config.teacher.mode = wish.teacher.unwrap_or(config.teacher.mode);
        config.check().map_err(refused)?;
        if let Some(sentence) = unfit(&header.config, &config) {
            return Err(LaunchError::Wish(sentence));
        }
        if let Some(sentence) = missing(family_of(self.registry(), &config)?, &config) {
            return Err(LaunchError::Wish(sentence));
        }
        let budget = config.schedule.episodes;
        if budget > 0 && header.counters.episodes >= budget {
            return Err(LaunchError::Wish(format!(
                "The checkpoint has seen {} episodes already, and schedule.episodes is {budget}. Raise it, or set it to 0 so that the run goes on until it is stopped.",
                header.counters.episodes
            )));
        }
        let id = self.free_id(&new_run_id(&config)).await;
        // Under another name until the store has the run: a folder without rows is taken for the run of a command.
        let folder = super::run_folder(self.data_dir(), &id);
        let part = folder.with_file_name(format!(".{id}.part"));
        let (target, wanted) = (part.clone(), config.clone());
        let laid = blocking(move || {
            let source = from.parent().unwrap_or(Path::new(".")).to_owned();
            let lay = || -> anyhow::Result<_> {
                std::fs::create_dir_all(&target)?;
                for file in [description_log::FILE_NAME, curve::FILE_NAME] {
                    copy(&source.join(file), &target.join(file))?;
                }
                let (rows, header) = checkpoint::transplant(&from, &target, &wanted)?;
                Ok((rows, curve::points(&target, header.counters.update)))
            };
            lay().map_err(|error| {
                // A folder that was copied in part only would be taken for a run.
                let _ = std::fs::remove_dir_all(&target);
                failed(error)
            })
        });
        let (rows, points) = laid.await?;
        let run = Run {
            id: id.clone(),
            family: config.family.clone(),
            preset: config.preset.clone(),
            config: stored_config(self.registry(), &config)?,
            seed: config.seed,
            teacher: config.teacher.mode,
            active: true,
            created_at: time::OffsetDateTime::now_utc(),
        };
        let store = self.store();
        store.create_run(&run).await?;
        if let Err(error) = std::fs::rename(&part, &folder) {
            // Without its folder it would begin anew.
            store.set_active(&id, false).await?;
            return Err(failed(error.into()));
        }
        let origin = RunOrigin {
            made_by: MadeBy::Server,
            folder: None,
            parent: Some(RunParent { run: parent.clone(), checkpoint: wish.checkpoint }),
            inherited: Inherited { update: header.counters.update, people: header.counters.human },
        };
        store.set_run_origin(&id, &origin).await?;
        store.record_points(&id, &points).await?;
        for row in &rows {
            store.record_checkpoint(&id, row).await?;
        }
        self.claim_new(&id).await?;
        self.start(&id, config, None)?;
        Ok(id)
    }

    /// Lets the agent of a checkpoint carry out a request.
    pub(super) async fn try_saved(&self, run: &RunId, trial: Trial) -> Result<Tried, LaunchError> {
        let path = match &trial.checkpoint {
            Some(name) => self.checkpoint_file(run, name).await?,
            None => {
                let files = self.checkpoints_of(run).await?.into_iter().map(|file| file.path);
                let first = files.into_iter().find(|path| !path.as_os_str().is_empty());
                first.ok_or_else(|| {
                    LaunchError::State("The run has no checkpoint, so there is no agent to try.".to_owned())
                })?
            }
        };
        let agent = self.opened(run, path).await?;
        let number = self.checkpoint_use().tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        blocking(move || {
            let agent = agent.lock().unwrap_or_else(PoisonError::into_inner);
            agent.carry_out(&trial.request, &trial.start, number).map_err(LaunchError::Wish)
        })
        .await
    }

    /// The agent of a checkpoint, opened.
    async fn opened(&self, run: &RunId, path: PathBuf) -> Result<Arc<Mutex<Box<dyn SavedAgent>>>, LaunchError> {
        let written = path.metadata().and_then(|found| found.modified()).map_err(|error| failed(error.into()))?;
        if let Some((file, at, agent)) = &*self.checkpoint_use().opened.lock().unwrap_or_else(PoisonError::into_inner)
            && (file, at) == (&path, &written)
        {
            return Ok(agent.clone());
        }
        let family = self.store().run(run).await?.family;
        let unknown = || LaunchError::State(format!("This version of Iliad does not know the task family {family}."));
        let family = self.registry().family(&family).ok_or_else(unknown)?;
        let (device, file) = (self.device().clone(), path.clone());
        let agent = blocking(move || {
            family.open(&file, &device).map_err(|error| LaunchError::State(sentence(format!("{error:#}"))))
        });
        let agent = Arc::new(Mutex::new(agent.await?));
        *self.checkpoint_use().opened.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((path, written, agent.clone()));
        Ok(agent)
    }

    /// Begins to evaluate a checkpoint. One evaluation of a run is under way at a time.
    pub(super) async fn begin_evaluation(&self, run: &RunId, request: EvaluationRequest) -> Result<(), LaunchError> {
        let path = self.checkpoint_file(run, &request.checkpoint).await?;
        let family = self.store().run(run).await?.family;
        let unknown = || LaunchError::State(format!("This version of Iliad does not know the task family {family}."));
        let family = self.registry().family(&family).ok_or_else(unknown)?;
        let usage = self.checkpoint_use().clone();
        {
            let mut all = usage.evaluating.lock().unwrap_or_else(PoisonError::into_inner);
            if all.iter().any(|(of, evaluation)| of == run && evaluation.failed.is_none()) {
                return Err(LaunchError::State(
                    "An evaluation of this run is under way. Begin the next one when it is done.".to_owned(),
                ));
            }
            all.retain(|(of, evaluation)| of != run || evaluation.request != request);
            let begun = Evaluating { request: request.clone(), done: 0, tasks: 0, seconds_left: None, failed: None };
            all.push((run.clone(), begun));
        }
        let (store, device, run) = (self.store().clone(), self.device().clone(), run.clone());
        tokio::spawn(async move {
            let (split, limit, name) = (request.split, request.limit, request.checkpoint.clone());
            let (told, of, asked) = (usage.clone(), run.clone(), request.clone());
            let evaluated = tokio::task::spawn_blocking(move || -> anyhow::Result<_> {
                let (row, _) = checkpoint::describe(&path)?;
                let began = std::cell::OnceCell::new();
                let progress =
                    |done, tasks| told.tell_progress(&of, &asked, (done, tasks), began.get_or_init(Instant::now));
                Ok((row, family.evaluate(&AgentFile::of(&path), split, limit, &device, &progress)?))
            });
            let outcome = match evaluated.await.map_err(anyhow::Error::from).flatten() {
                Ok((row, evaluation)) => {
                    let (update, episodes, evaluated_at) = (row.update, row.episodes, time::OffsetDateTime::now_utc());
                    let row = RunEvaluation { checkpoint: name, update, episodes, split, evaluation, evaluated_at };
                    store.record_evaluation(&run, &row).await.map_err(anyhow::Error::from)
                }
                Err(error) => Err(error),
            };
            let mut all = usage.evaluating.lock().unwrap_or_else(PoisonError::into_inner);
            match outcome {
                Ok(()) => all.retain(|(of, evaluation)| *of != run || evaluation.request != request),
                Err(error) => {
                    tracing::warn!("the evaluation of {} of {run} failed: {error:#}", request.checkpoint);
                    for (_, evaluation) in all.iter_mut().filter(|(of, e)| *of == run && e.request == request) {
                        evaluation.failed = Some(sentence(format!("{error:#}")));
                    }
                }
            }
        });
        Ok(())
    }

    /// The evaluations of all runs that are under way in this process, or that failed in it.
    pub(super) fn all_evaluations(&self) -> Vec<(RunId, Evaluating)> {
        self.checkpoint_use().evaluating.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The evaluations of a run that are under way, or that failed.
    pub(super) fn evaluations_under_way(&self, run: &RunId) -> Vec<Evaluating> {
        let all = self.checkpoint_use().evaluating.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(of, _)| of == run).map(|(_, evaluation)| evaluation.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
