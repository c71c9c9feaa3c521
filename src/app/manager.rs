//! The runs of a server: they are created, resumed and ended here.

use super::checkpoint_copies::Copies;
use super::checkpoint_use::CheckpointUse;
use super::outside;
use super::presets::{configuration, failed, family_of, presets, refused, sentence};
use super::recorder::record;
use crate::config::run::{RunConfig, TeacherMode};
use crate::ids::RunId;
use crate::launch::{
    CheckpointFile, Continuation, CopyFigures, Evaluating, EvaluationRequest, KeptCheckpoint, LaunchError, Launcher,
    NewOutsideRun, NewRun, PresetInfo, PresetSettings, SettingProblem, Trial,
};
use crate::registry::{OUTSIDE, Registry};
use crate::run::{Command, RunHandle, RunState, Tried};
use crate::store::{MadeBy, Run, Store, StoreError};
use crate::trainer::{FinalReport, Launch, checkpoint};
use crate::web::Runs;
use futures::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

/// A run's thread.
type Thread = std::thread::JoinHandle<anyhow::Result<FinalReport>>;

/// How long a run may take to write its last checkpoint when the program ends.
const LAST_CHECKPOINT: Duration = Duration::from_secs(30);

/// How long a run that said it had ended may take to release its thread and its recorder.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// A new run id: its family, preset and the time, so that folders sort and people can tell them apart.
pub fn new_run_id(config: &RunConfig) -> RunId {
    let now = time::OffsetDateTime::now_utc();
    let format = time::macros::format_description!("[year][month][day]-[hour][minute][second]");
    let time = now.format(&format).unwrap_or_default();
    format!("{}-{}-{time}", config.family, config.preset).into()
}

/// Folder of a run within the data folder.
pub fn run_folder(data_dir: &Path, id: &RunId) -> PathBuf {
    data_dir.join("runs").join(id.as_str())
}

/// The runs of a server: starts them, resumes them, ends them.
pub struct Manager {
    registry: Registry,
    store: Store,
    pub(super) runs: Runs,
    data_dir: PathBuf,
    device: candle_core::Device,
    runtime: tokio::runtime::Handle,
    threads: Mutex<Vec<(RunId, Thread)>>,
    /// Tasks that write the runs' curves into the store; each ends after its run.
    recorders: Mutex<Vec<tokio::task::JoinHandle<()>>>,
    checkpoint_use: Arc<CheckpointUse>,
    copies: Option<Arc<Copies>>,
}

/// A configuration as it is stored: with a list of what differs from its preset.
pub(super) fn stored_config(registry: Registry, config: &RunConfig) -> Result<serde_json::Value, LaunchError> {
    let (_, preset) = registry.preset(&format!("{}/{}", config.family, config.preset)).map_err(refused)?;
    let mut json = serde_json::to_value(config).map_err(|error| failed(error.into()))?;
    json["differences"] = config
        .differences(&preset.config)
        .into_iter()
        .filter(|(key, _)| key != "seed")
        .collect::<serde_json::Map<_, _>>()
        .into();
    Ok(json)
}

/// The configuration of a stored run.
pub(super) fn config_of(run: &Run) -> Result<RunConfig, LaunchError> {
    let mut json = run.config.clone();
    if let Some(members) = json.as_object_mut() {
        members.remove("differences");
    }
    serde_json::from_value(json).map_err(|error| {
        LaunchError::State(format!(
            "This version of Iliad cannot read the run\u{2019}s settings ({error}). Use the version that made the run, or start a new one."
        ))
    })
}

impl Manager {
    /// A manager without any run yet. To be called within a Tokio runtime.
    pub(super) fn new(
        registry: Registry,
        store: Store,
        runs: Runs,
        data_dir: PathBuf,
        device: candle_core::Device,
    ) -> Manager {
        let runtime = tokio::runtime::Handle::current();
        let (threads, recorders, checkpoint_use) = (Mutex::default(), Mutex::default(), Arc::default());
        Manager { registry, store, runs, data_dir, device, runtime, threads, recorders, checkpoint_use, copies: None }
    }

    /// Has checkpoints copied, and runs taken up from their copies.
    pub(super) fn with_copies(self, copies: Option<Arc<Copies>>) -> Manager {
        Manager { copies, ..self }
    }

    pub(super) fn copies(&self) -> Option<&Arc<Copies>> {
        self.copies.as_ref()
    }

    pub(super) fn registry(&self) -> Registry {
        self.registry
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    pub(super) fn device(&self) -> &candle_core::Device {
        &self.device
    }

    pub(super) fn checkpoint_use(&self) -> &Arc<CheckpointUse> {
        &self.checkpoint_use
    }

    /// The folder of a run, wherever in the data folder it is.
    pub(super) async fn folder_of(&self, id: &RunId) -> Result<PathBuf, LaunchError> {
        let place = self.store.run_label(id).await?.folder;
        Ok(place.map_or_else(|| run_folder(&self.data_dir, id), |place| self.data_dir.join(place)))
    }

    /// The family of a stored run by the name that this program has for it; `None` where it knows neither.
    pub(super) async fn family_name(&self, id: &RunId) -> Option<&'static str> {
        let family = self.store.run(id).await.ok()?.family;
        let known = self.registry.families().iter().map(|known| known.name()).chain([OUTSIDE]);
        known.into_iter().find(|name| *name == family)
    }

    /// The stored runs that this process can work on: those whose folder it has, and those of agents elsewhere that it hosts.
    pub(super) async fn run_names_here(&self) -> Result<Vec<String>, StoreError> {
        let mut here = Vec::new();
        for run in self.store.runs().await? {
            if self.is_here(&run).await && !self.is_claimed_elsewhere(&run.id) {
                here.push(run.id.into());
            }
        }
        Ok(here)
    }

    pub(super) async fn is_here(&self, run: &Run) -> bool {
        let folder = self.folder_of(&run.id).await;
        run.family == OUTSIDE || folder.is_ok_and(|folder| folder.is_dir())
    }

    /// An id that no run has. Two runs of the same second get different ones, and so do two of the same hour that came twice, because
    /// the clock was set back: a folder that is there already has another run's checkpoints.
    pub(super) async fn free_id(&self, wanted: &RunId) -> RunId {
        let mut id = wanted.clone();
        for n in 2.. {
            if self.store.run(&id).await.is_err() && !run_folder(&self.data_dir, &id).exists() {
                break;
            }
            id = format!("{wanted}-{n}").into();
        }
        id
    }

    /// Creates a run and starts it; its id.
    ///
    /// # Errors
    /// [`LaunchError::Wish`] where the configuration, or what it names, has to be changed first: nothing is stored then.
    pub async fn create(&self, config: RunConfig) -> Result<RunId, LaunchError> {
        config.check().map_err(refused)?;
        family_of(self.registry, &config)?.check(&config).map_err(refused)?;
        let id = self.free_id(&new_run_id(&config)).await;
        let json = stored_config(self.registry, &config)?;
        let run = Run {
            id: id.clone(),
            family: config.family.clone(),
            preset: config.preset.clone(),
            config: json,
            seed: config.seed,
            teacher: config.teacher.mode,
            active: true,
            created_at: time::OffsetDateTime::now_utc(),
        };
        self.store.create_run(&run).await?;
        self.claim_new(&id).await?;
        self.start(&id, config, None)?;
        Ok(id)
    }

    /// Creates a run whose agent lives in another program; its id.
    async fn create_outside(&self, wish: NewOutsideRun) -> Result<RunId, LaunchError> {
        let id = self.free_id(&outside::new_id()).await;
        self.store.create_run(&outside::row(id.clone(), wish.show_request)).await?;
        self.host_outside(&id)?;
        Ok(id)
    }

    /// Takes up the active runs of agents elsewhere that a command has made since the server started.
    pub(super) async fn host_new_outside_runs(&self) {
        let runs = match self.store.runs().await {
            Ok(runs) => runs,
            Err(error) => return tracing::warn!(%error, "the runs could not be looked through"),
        };
        for run in runs.iter().filter(|run| run.active && run.family == OUTSIDE && self.runs.get(&run.id).is_none()) {
            if let Err(error) = self.host_outside(&run.id) {
                tracing::warn!("the run {} cannot be listed: {error:#}", run.id);
            }
        }
    }

    /// Makes a run whose agent lives in another program known to pages.
    fn host_outside(&self, id: &RunId) -> Result<(), LaunchError> {
        let log = self.runs.keep_log(id);
        let hosted = outside::host(self.store.clone(), self.runtime.clone(), id, Box::new(log));
        self.runs.add(hosted.map_err(|error| failed(error.into()))?);
        Ok(())
    }

    /// Starts a stored run again where it stopped.
    ///
    /// # Errors
    /// [`LaunchError::State`] where it cannot go on as things are, for example because the folder of its data is gone.
    pub async fn resume(&self, id: &RunId) -> Result<(), LaunchError> {
        let run = self.store.run(id).await?;
        self.check_goes_on_here(id).await?;
        match self.bring_here(&run).await? {
            true => self.go_on(&run).await,
            false => Err(LaunchError::State("This run lives in another process, which goes on with it.".to_owned())),
        }
    }

    pub(super) async fn go_on(&self, run: &Run) -> Result<(), LaunchError> {
        let id = &run.id;
        self.check_goes_on_here(id).await?;
        if run.family == OUTSIDE {
            self.store.set_active(id, true).await?;
            return self.host_outside(id);
        }
        let config = config_of(run)?;
        family_of(self.registry, &config)?
            .at_hand(&config)
            .map_err(|error| LaunchError::State(sentence(format!("{error:#}"))))?;
        self.store.set_active(id, true).await?;
        self.start(id, config, Some(run.teacher))
    }

    /// Refuses to go on with a run in the trash, and with one that another command goes on with.
    async fn check_goes_on_here(&self, id: &RunId) -> Result<(), LaunchError> {
        let label = self.store.run_label(id).await?;
        if label.trashed_at.is_some() {
            return Err(LaunchError::State("This run is in the trash. Put it back first.".to_owned()));
        }
        if label.made_by == MadeBy::Import {
            return Err(LaunchError::State(
                "This run came in from a file: its answers can be read, reviewed and exported, and no agent belongs to them."
                    .to_owned(),
            ));
        }
        if label.made_by == MadeBy::Reproduce {
            return Err(LaunchError::State(
                "This run belongs to a table of `iliad reproduce`, and that command goes on with it. Continue from one of its \
                 checkpoints to get a run of your own."
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Starts the runs that were going on when the server ended. The page of one that cannot go on says why.
    pub(super) async fn resume_all(&self, known: &[Run]) {
        for run in known.iter().filter(|run| run.active) {
            let gone_on = match self.bring_here(run).await {
                Ok(true) => self.go_on(run).await,
                Ok(false) => {
                    tracing::info!("the run {} belongs to another process", run.id);
                    continue;
                }
                Err(error) => Err(error),
            };
            if let Err(error) = gone_on {
                tracing::error!("the run {} cannot go on: {error:#}", run.id);
                self.runs
                    .refuse(&run.id, format!("It could not be resumed when the server started. {}", sentence(error)));
            }
        }
    }

    pub(super) fn start(&self, id: &RunId, config: RunConfig, teacher: Option<TeacherMode>) -> Result<(), LaunchError> {
        let mut threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        if threads.iter().any(|(other, thread)| other == id && !thread.is_finished()) {
            return Err(LaunchError::State("This run has not ended.".to_owned()));
        }
        threads.retain(|(_, thread)| !thread.is_finished());
        let trainer = family_of(self.registry, &config)?;
        let (sender, receiver) = unbounded_channel();
        let recorder = self.runtime.spawn(record(self.store.clone(), id.clone(), receiver));
        {
            let mut recorders = self.recorders.lock().unwrap_or_else(|e| e.into_inner());
            recorders.retain(|recorder| !recorder.is_finished());
            recorders.push(recorder);
        }
        // Before the thread is there: its first lines belong to the log, too.
        let log = self.runs.keep_log(id);
        let folder = run_folder(&self.data_dir, id);
        let (copies, run, place) = (self.copies.clone(), id.clone(), folder.clone());
        let launch = Launch {
            id: id.clone(),
            config,
            folder,
            device: self.device.clone(),
            store: Some((self.store.clone(), self.runtime.clone())),
            teacher,
            listener: Some(Box::new(move |event| {
                log(event);
                if let Some(copies) = &copies {
                    copies.hear(&run, &place, event);
                }
                // The recorder ends with the server, after the runs.
                let _ = sender.send(event.clone());
            })),
        };
        let (handle, thread) = trainer.spawn(launch).map_err(|error| {
            LaunchError::State(format!(
                "The system gives this server no further thread ({error:#}). Stop a run or another program, and try again."
            ))
        })?;
        self.runs.add(handle);
        threads.push((id.clone(), thread));
        Ok(())
    }

    /// Handles of the runs that have a thread.
    fn handles(&self) -> Vec<RunHandle> {
        let threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        threads.iter().filter_map(|(id, _)| self.runs.get(id)).collect()
    }

    /// Whether the run goes on.
    fn is_active(&self, id: &RunId) -> bool {
        self.runs
            .get(id)
            .is_some_and(|handle| !matches!(handle.status.borrow().state, RunState::Stopped | RunState::Failed { .. }))
    }

    /// Whether the run's thread still works.
    pub(super) fn has_thread(&self, id: &RunId) -> bool {
        let threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        threads.iter().any(|(other, thread)| other == id && !thread.is_finished())
    }

    /// Lets every run write a checkpoint and waits for them, and for what they told to be recorded.
    pub(super) async fn shut_down(&self) {
        let deadline = tokio::time::Instant::now() + LAST_CHECKPOINT;
        self.end_runs(deadline).await;
        if let Some(copies) = &self.copies {
            copies.finish(deadline.max(tokio::time::Instant::now() + CLOSING_TIME)).await;
        }
    }

    async fn end_runs(&self, deadline: tokio::time::Instant) {
        for handle in self.handles() {
            let _ = handle.commands.send(Command::Shutdown);
        }
        let busy = || {
            let threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
            threads.iter().any(|(_, thread)| !thread.is_finished())
        };
        while busy() {
            if tokio::time::Instant::now() > deadline {
                tracing::warn!("a run did not end in time; it goes on from its last checkpoint at the next start");
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // Their last points and checkpoints are still on the way into the store.
        let recorders = std::mem::take(&mut *self.recorders.lock().unwrap_or_else(|e| e.into_inner()));
        if tokio::time::timeout(CLOSING_TIME, futures::future::join_all(recorders)).await.is_err() {
            tracing::warn!("the last points of a run's curve were not recorded; they are in the run's folder");
        }
    }
}

impl Launcher for Manager {
    fn presets(&self) -> Vec<PresetInfo> {
        presets(self.registry)
    }

    fn settings(&self, preset: &str) -> Result<PresetSettings, LaunchError> {
        super::presets::settings(self.registry, preset)
    }

    fn problems(&self, wish: &NewRun) -> Vec<SettingProblem> {
        super::presets::problems(self.registry, wish)
    }

    fn create(&self, request: NewRun) -> BoxFuture<'_, Result<RunId, LaunchError>> {
        Box::pin(async move { Manager::create(self, configuration(self.registry, &request)?).await })
    }

    fn create_outside(&self, wish: NewOutsideRun) -> BoxFuture<'_, Result<RunId, LaunchError>> {
        Box::pin(Manager::create_outside(self, wish))
    }

    fn resume<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(async move {
            if self.is_active(id) {
                return Err(LaunchError::State("This run has not ended.".to_owned()));
            }
            self.check_goes_on_here(id).await?;
            let run = self.store.run(id).await?;
            let budget = run.config["schedule"]["episodes"].as_u64().unwrap_or(0);
            // The checkpoint knows what was spent; the curve's last point may be older.
            let folder = self.folder_of(id).await?;
            let read = tokio::task::spawn_blocking(move || checkpoint::spent(&folder));
            let spent = read.await.map_err(|error| failed(error.into()))?;
            if budget > 0 && spent.is_some_and(|episodes| episodes >= budget) {
                return Err(LaunchError::State(format!(
                    "This run has used all of its {budget} episodes. Raise their number to go on."
                )));
            }
            // The old thread may still be writing its last checkpoint.
            let deadline = tokio::time::Instant::now() + CLOSING_TIME;
            while self.has_thread(id) {
                if tokio::time::Instant::now() > deadline {
                    return Err(LaunchError::State("This run is still ending. Try again in a moment.".to_owned()));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Manager::resume(self, id).await
        })
    }

    fn extend<'a>(&'a self, id: &'a RunId, episodes: u64) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(async move {
            if self.is_active(id) {
                return Err(LaunchError::State("This run has not ended. Stop it first.".to_owned()));
            }
            self.check_goes_on_here(id).await?;
            let mut run = self.store.run(id).await?;
            let mut config = config_of(&run)?;
            config.schedule.episodes = episodes;
            config.check().map_err(refused)?;
            let folder = self.folder_of(id).await?;
            let read = tokio::task::spawn_blocking(move || checkpoint::spent(&folder));
            let spent = read.await.map_err(|error| failed(error.into()))?.unwrap_or(0);
            if episodes > 0 && episodes <= spent {
                return Err(LaunchError::Wish(format!(
                    "The run has used {spent} episodes already. Write a larger number, or 0 so that it goes on until it is stopped."
                )));
            }
            run.config = stored_config(self.registry, &config)?;
            self.store.set_run_config(id, &run.config).await?;
            Launcher::resume(self, id).await
        })
    }

    fn continue_from<'a>(
        &'a self,
        id: &'a RunId,
        continuation: Continuation,
    ) -> BoxFuture<'a, Result<RunId, LaunchError>> {
        Box::pin(self.continue_run(id, continuation))
    }

    fn checkpoint_files<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Vec<CheckpointFile>, LaunchError>> {
        Box::pin(self.checkpoints_of(id))
    }

    fn kept_checkpoint<'a>(
        &'a self,
        id: &'a RunId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<KeptCheckpoint>, LaunchError>> {
        Box::pin(self.copied_checkpoint(id, name))
    }

    fn copy_figures(&self) -> Option<CopyFigures> {
        Some(self.copies.as_ref()?.figures())
    }

    fn try_checkpoint<'a>(&'a self, id: &'a RunId, trial: Trial) -> BoxFuture<'a, Result<Tried, LaunchError>> {
        Box::pin(self.try_saved(id, trial))
    }

    fn evaluate<'a>(&'a self, id: &'a RunId, request: EvaluationRequest) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(self.begin_evaluation(id, request))
    }

    fn remove<'a>(
        &'a self,
        id: &'a RunId,
        told: &'a (dyn Fn(u64, u64) + Sync),
    ) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(self.remove_now(id, told))
    }

    fn evaluating(&self, id: &RunId) -> Vec<Evaluating> {
        self.evaluations_under_way(id)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::web::{AppState, WebSettings};
    use std::sync::Arc;

    /// A server without its listener: pages, store and runs, and nothing running.
    pub(in crate::app) async fn server(folder: &Path) -> (Arc<Manager>, axum::Router) {
        let store = Store::open(&folder.join(crate::config::server::DATABASE)).await.unwrap();
        let runs = Runs::default();
        let registry = Registry::builtin();
        let (data_dir, device) = (folder.to_owned(), candle_core::Device::Cpu);
        let manager = Arc::new(Manager::new(registry, store.clone(), runs.clone(), data_dir, device));
        let state = AppState {
            store,
            families: registry.families(),
            runs,
            works: Default::default(),
            uploads: Default::default(),
            launcher: Some(manager.clone()),
            settings: Arc::new(WebSettings::default()),
            shutdown: tokio_util::sync::CancellationToken::new(),
        };
        (manager, crate::web::router(state))
    }

    pub(in crate::app) async fn asked(
        router: &axum::Router,
        request: axum::http::request::Builder,
        body: String,
    ) -> (u16, String) {
        let request = request.header("host", "localhost").body(axum::body::Body::from(body)).unwrap();
        let reply = tower::ServiceExt::oneshot(router.clone(), request).await.unwrap();
        let status = reply.status().as_u16();
        let bytes = axum::body::to_bytes(reply.into_body(), 1 << 22).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_preset_starts_or_says_what_it_needs() {
        let folder = tempfile::tempdir().unwrap();
        let (manager, router) = server(folder.path()).await;
        let needing: Vec<PresetInfo> =
            presets(Registry::builtin()).into_iter().filter(|preset| preset.missing.is_some()).collect();
        assert!(needing.len() >= 4 && needing.iter().all(|preset| !preset.name.ends_with("/small")), "{needing:?}");
        let (_, page) = asked(&router, axum::http::Request::get("/runs"), String::new()).await;
        assert_eq!(page.matches("Needs something first.").count(), needing.len());
        for preset in needing {
            for mode in ["simulated", "human"] {
                let wish = serde_json::json!({"preset": preset.name, "seed": 1, "teacher": {"mode": mode}});
                let request = axum::http::Request::post("/api/runs").header("content-type", "application/json");
                let (status, told) = asked(&router, request, wish.to_string()).await;
                assert!(status == 422 && told.contains("iliad data import"), "{}: {status} {told}", preset.name);
            }
            let request = axum::http::Request::post("/runs")
                .header("content-type", "application/x-www-form-urlencoded")
                .header("accept", "text/html");
            let form = format!("preset={}&seed=1&mode=simulated", preset.name.replace('/', "%2F"));
            let (status, told) = asked(&router, request, form).await;
            assert!(status == 422 && told.contains("iliad data import"), "{}: {status}", preset.name);
        }
        assert!(manager.store.runs().await.unwrap().is_empty(), "nothing is stored of what cannot begin");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn settings_that_do_not_fit_are_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let (_, router) = server(folder.path()).await;
        for (set, word) in [
            ("teacher.models=nowhere.safetensors", "iliad teacher train"),
            ("teacher.models=none", "let people teach"),
            ("model.pretrained=nowhere", "model.pretrained"),
            ("task.world=mars", "mars"),
            ("algorithm.batch=0", "algorithm.batch"),
            ("nonsense", "key=value"),
        ] {
            let wish = serde_json::json!({"preset": "regex/tiny", "seed": 1, "set": [set]});
            let request = axum::http::Request::post("/api/runs").header("content-type", "application/json");
            let (status, told) = asked(&router, request, wish.to_string()).await;
            assert!(status == 422 && told.contains(word), "{set}: {status} {told}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_run_whose_data_went_says_so_when_it_is_to_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let (manager, router) = server(folder.path()).await;
        let data = folder.path().join("houses");
        let mut config =
            Registry::builtin().configure("nav/paper", 1, &[format!("task.path={}", data.display())]).unwrap();
        config.teacher.mode = TeacherMode::Human;
        // Files that are there and hold nothing: the run is stored, and breaks while it loads.
        std::fs::create_dir(&data).unwrap();
        for file in ["r2r.json.gz", "vocab.json"] {
            std::fs::write(data.join(file), "").unwrap();
        }
        let id = manager.create(config).await.unwrap();
        let mut status = manager.runs.get(&id).unwrap().status;
        let failed = status.wait_for(|status| matches!(status.state, RunState::Failed { .. }));
        let state = tokio::time::timeout(Duration::from_secs(60), failed).await.unwrap().unwrap().state.clone();
        let RunState::Failed { message } = state else { unreachable!() };
        let name = data.file_name().unwrap().to_str().unwrap();
        assert!(message.contains(name), "{message}");
        for page in ["/".to_owned(), format!("/runs/{id}")] {
            let (_, told) =
                asked(&router, axum::http::Request::get(&page).header("accept", "text/html"), String::new()).await;
            assert!(told.contains("Stopped by an error") && told.contains(name), "{page}: {told}");
        }
        // The folder goes: going on is refused with the reason, by program, by form and at the next start.
        std::fs::remove_dir_all(&data).unwrap();
        for path in ["api/runs/{id}/resume", "api/runs/{id}/go-on", "runs/{id}/resume", "runs/{id}/go-on"] {
            let path = format!("/{}", path.replace("{id}", &id));
            let (status, told) = asked(&router, axum::http::Request::post(&path), String::new()).await;
            assert!(status == 409 && told.contains("there is no such folder"), "{path}: {status} {told}");
        }
        let (again, router) = server(folder.path()).await;
        again.resume_all(&again.store.runs().await.unwrap()).await;
        let (_, home) = asked(&router, axum::http::Request::get("/"), String::new()).await;
        assert!(home.contains("there is no such folder"), "{home}");
    }
}
