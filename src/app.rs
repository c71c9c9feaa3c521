//! Putting the parts together: the server with its store, its runs and its pages. Commands of the command line that
//! need a run use the same functions.

pub(crate) mod start;

use crate::config::run::Feedback;
use crate::config::run::TeacherMode;
use crate::config::run::{ConfigError, RunConfig};
use crate::config::server::{ServerConfig, Steering};
use crate::ids::RunId;
use crate::launch::{LaunchError, Launcher, NewRun, PresetInfo};
use crate::output::lock::FolderLock;
use crate::output::{self, note};
use crate::registry::{AnyFamily, Registry};
use crate::run::{Command, Event, RunHandle, RunState};
use crate::store::{Run, Store};
use crate::trainer::{FinalReport, Launch, checkpoint};
use crate::web::listener::ConnectionLimits;
use crate::web::{AppState, Runs, WebSettings};
use anyhow::Context;
use futures::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A run's thread.
type Thread = std::thread::JoinHandle<anyhow::Result<FinalReport>>;

/// How long a run may take to write its last checkpoint when the program ends.
const LAST_CHECKPOINT: Duration = Duration::from_secs(30);

/// How long a run that said it had ended may take to let go before it can go on.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Largest seed of a run: what readers of JSON keep exactly.

/// How long the recorder waits before it tries again to write what the store could not take.
const STORE_AGAIN: Duration = Duration::from_secs(1);

/// How long ending at once may take: the database is closed, and nothing else is waited for.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Which run to start where there is none yet.
#[derive(Clone, Debug)]
pub struct FirstRun {
    /// Preset.
    pub preset: String,
    /// Seed.
    pub seed: u64,
    /// Overrides `key=value`.
    pub set: Vec<String>,
}

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
    runs: Runs,
    data_dir: PathBuf,
    device: candle_core::Device,
    runtime: tokio::runtime::Handle,
    threads: Mutex<Vec<(RunId, Thread)>>,
    /// What writes the runs' curves into the store; each ends after its run.
    recorders: Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

impl Manager {
    /// Creates a run and starts it; its id.
    ///
    /// # Errors
    /// [`LaunchError::Wish`] where the configuration, or what it names, has to be changed first: nothing is stored then.
    pub async fn create(&self, config: RunConfig) -> Result<RunId, LaunchError> {
        config.check().map_err(wish)?;
        family_of(self.registry, &config)?.check(&config).map_err(wish)?;
        let mut id = new_run_id(&config);
        // Two runs of the same second get different names, and so do two of the same hour that came twice, because the
        // clock was set back: a folder that is there already has another run's checkpoints.
        for n in 2.. {
            if self.store.run(&id).await.is_err() && !run_folder(&self.data_dir, &id).exists() {
                break;
            }
            id = format!("{}-{n}", new_run_id(&config)).into();
        }
        let (_, preset) = self.registry.preset(&format!("{}/{}", config.family, config.preset)).map_err(wish)?;
        let mut json = serde_json::to_value(&config).map_err(|error| failed(error.into()))?;
        json["differences"] = config
            .differences(&preset.config)
            .into_iter()
            .filter(|(key, _)| key != "seed")
            .collect::<serde_json::Map<_, _>>()
            .into();
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
        self.start(&id, config, None)?;
        Ok(id)
    }

    /// Starts a stored run again where it stopped.
    ///
    /// # Errors
    /// [`LaunchError::State`] where it cannot go on as things are, for example because the folder of its data is gone.
    pub async fn resume(&self, id: &RunId) -> Result<(), LaunchError> {
        let run = self.store.run(id).await?;
        let mut json = run.config.clone();
        if let Some(o) = json.as_object_mut() {
            o.remove("differences");
        }
        let config: RunConfig = serde_json::from_value(json).map_err(|error| {
            LaunchError::State(format!(
                "This version of Iliad cannot read the run\u{2019}s settings ({error}). Use the version that made the run, or start a new one."
            ))
        })?;
        family_of(self.registry, &config)?
            .at_hand(&config)
            .map_err(|error| LaunchError::State(sentence(format!("{error:#}"))))?;
        self.store.set_active(id, true).await?;
        self.start(id, config, Some(run.teacher))
    }

    /// Starts the runs that were going on when the server ended. The page of one that cannot go on says why.
    async fn resume_all(&self, known: &[Run]) {
        for run in known.iter().filter(|run| run.active) {
            if let Err(error) = self.resume(&run.id).await {
                tracing::error!("the run {} cannot go on: {error:#}", run.id);
                self.runs
                    .refuse(&run.id, format!("It could not be resumed when the server started. {}", sentence(error)));
            }
        }
    }

    fn start(&self, id: &RunId, config: RunConfig, teacher: Option<TeacherMode>) -> Result<(), LaunchError> {
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
        let launch = Launch {
            id: id.clone(),
            config,
            folder: run_folder(&self.data_dir, id),
            device: self.device.clone(),
            store: Some((self.store.clone(), self.runtime.clone())),
            teacher,
            listener: Some(Box::new(move |event| {
                log(event);
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

    /// Whether the run's thread still works.
    fn has_thread(&self, id: &RunId) -> bool {
        let threads = self.threads.lock().unwrap_or_else(|e| e.into_inner());
        threads.iter().any(|(other, thread)| other == id && !thread.is_finished())
    }

    /// Lets every run write a checkpoint and waits for them, and for what they told to be recorded.
    async fn shut_down(&self, handles: Vec<RunHandle>) {
        for handle in handles {
            let _ = handle.commands.send(Command::Shutdown);
        }
        let deadline = tokio::time::Instant::now() + LAST_CHECKPOINT;
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
        if tokio::time::timeout(LAST_WORDS, futures::future::join_all(recorders)).await.is_err() {
            tracing::warn!("the last points of a run's curve were not recorded; they are in the run's folder");
        }
    }
}

/// Presets in the order in which they are offered.
pub fn presets(registry: Registry) -> Vec<PresetInfo> {
    let mut all = Vec::new();
    for family in registry.families() {
        all.extend(family.presets().into_iter().map(|preset| PresetInfo {
            name: format!("{}/{}", family.name(), preset.name),
            title: family.title().to_owned(),
            about: preset.about.to_owned(),
            teacher: preset.config.teacher.mode,
            missing: missing(*family, &preset.config),
        }));
    }
    all
}

/// The configuration that a wish stands for.
fn wished(registry: Registry, wish: &NewRun) -> Result<RunConfig, LaunchError> {
    let refused = |error: ConfigError| LaunchError::Wish(sentence(error));
    let mut config = registry.configure(&wish.preset, wish.seed, &wish.set).map_err(refused)?;
    if let Some(mode) = wish.teacher {
        config.teacher.mode = mode;
    }
    config.check().map_err(refused)?;
    match missing(family_of(registry, &config)?, &config) {
        Some(sentence) => Err(LaunchError::Wish(sentence)),
        None => Ok(config),
    }
}

/// The family of a configuration.
fn family_of(registry: Registry, config: &RunConfig) -> Result<&'static dyn AnyFamily, LaunchError> {
    let none = || LaunchError::State(format!("This version of Iliad does not know the task family {}.", config.family));
    registry.family(&config.family).ok_or_else(none)
}

/// Why a run of this configuration cannot begin on this machine: sentences that say what to do.
fn missing(family: &dyn AnyFamily, config: &RunConfig) -> Option<String> {
    let mut sentences: Vec<String> =
        family.check(config).err().map(|error| sentence(format!("{error:#}"))).into_iter().collect();
    let described = config.algorithm.name.feedback() == Feedback::Descriptions;
    if described && config.teacher.mode != TeacherMode::Human && !family.has_teacher(config) {
        sentences.push(format!(
            "It has no simulated teacher: train one with `iliad teacher train --preset {}/{} -o teacher.safetensors` and \
             set teacher.models=teacher.safetensors, or let people teach.",
            config.family, config.preset
        ));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// An error as a sentence with a capital letter and a full stop. The name of a setting stays as it is typed.
fn sentence(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    if text.split_whitespace().next().is_some_and(|word| word.contains(['.', '_', '`'])) {
        return format!("{}.", text.trim_end_matches('.'));
    }
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

fn failed(error: anyhow::Error) -> LaunchError {
    LaunchError::Failed(format!("{error:#}"))
}

/// What a person has to change before a run can begin.
fn wish(error: impl Into<anyhow::Error>) -> LaunchError {
    LaunchError::Wish(sentence(format!("{:#}", error.into())))
}

impl Launcher for Manager {
    fn presets(&self) -> Vec<PresetInfo> {
        presets(self.registry)
    }

    fn create(&self, wish: NewRun) -> BoxFuture<'_, Result<RunId, LaunchError>> {
        Box::pin(async move { Manager::create(self, wished(self.registry, &wish)?).await })
    }

    fn resume<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<(), LaunchError>> {
        Box::pin(async move {
            let going = self.runs.get(id).is_some_and(|handle| {
                !matches!(handle.status.borrow().state, RunState::Stopped | RunState::Failed { .. })
            });
            if going {
                return Err(LaunchError::State("This run has not ended.".to_owned()));
            }
            let run = self.store.run(id).await?;
            let budget = run.config["schedule"]["episodes"].as_u64().unwrap_or(0);
            // The checkpoint knows what was spent; the curve's last point may be older.
            let folder = run_folder(&self.data_dir, id);
            let read = tokio::task::spawn_blocking(move || checkpoint::spent(&folder));
            let spent = read.await.map_err(|error| failed(error.into()))?;
            if budget > 0 && spent.is_some_and(|episodes| episodes >= budget) {
                return Err(LaunchError::State(format!(
                    "This run has used all of its {budget} episodes, so there is nothing to go on with. Start a new one with another seed or preset."
                )));
            }
            // The old thread may still be writing its last words.
            let deadline = tokio::time::Instant::now() + LAST_WORDS;
            while self.has_thread(id) {
                if tokio::time::Instant::now() > deadline {
                    return Err(LaunchError::State("This run is still ending. Try again in a moment.".to_owned()));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Manager::resume(self, id).await
        })
    }
}

/// Writes a run's curve and list of checkpoints into the store as events come.
async fn record(store: Store, run: RunId, mut events: UnboundedReceiver<Arc<Event>>) {
    let mut batch = Vec::new();
    while events.recv_many(&mut batch, 256).await > 0 {
        let points: Vec<_> = batch
            .iter()
            .filter_map(|e| match &**e {
                Event::Point(point) => Some(point.clone()),
                _ => None,
            })
            .collect();
        let outcome = loop {
            let mut outcome = if points.is_empty() { Ok(()) } else { store.record_points(&run, &points).await };
            for event in &batch {
                if let (Ok(()), Event::Checkpoint(row)) = (&outcome, &**event) {
                    outcome = store.record_checkpoint(&run, row).await;
                }
            }
            match outcome {
                // Writing them again changes nothing. The trainer waits for room as well.
                Err(error) if error.is_transient() => tokio::time::sleep(STORE_AGAIN).await,
                outcome => break outcome,
            }
        };
        if let Err(error) = outcome {
            // The curve is also in the run's folder; teaching goes on.
            tracing::error!("cannot record the run's curve: {error}");
        }
        batch.clear();
    }
}

/// Locks the data folder, so that no second server uses it.
fn lock(data_dir: &Path) -> anyhow::Result<FolderLock> {
    FolderLock::acquire(&data_dir.join("server.lock"))
        .with_context(|| format!("cannot write into the data folder ({})", data_dir.join("server.lock").display()))?
        .with_context(|| {
            format!("another iliad is using the data folder {}; choose another with --data-dir", data_dir.display())
        })
}

/// Serves until Ctrl+C or SIGTERM. Prints the address once the pages are up.
pub async fn serve(settings: &ServerConfig, first: FirstRun, registry: Registry) -> anyhow::Result<()> {
    let config = registry.configure(&first.preset, first.seed, &first.set)?;
    // Before anything is opened that has to be closed in an orderly way.
    let interrupts = Interrupts::listen().context("cannot listen for Ctrl+C")?;
    let connections = start::connection_limits(settings, crate::web::listener::raise_descriptors());
    start::prepare(&settings.data_dir)?;
    let _lock = lock(&settings.data_dir)?;
    let device = crate::nn::device::open(&settings.device.to_string())?;
    let listener = tokio::net::TcpListener::bind((settings.address, settings.port))
        .await
        .map_err(|error| start::listen_trouble(&error, settings))?;
    let database = settings.database();
    // Closed however serving ends, so that the database is whole in its one file.
    let serving = async |store: Store| {
        serve_with(settings, registry, config, store, listener, device, connections, interrupts).await
    };
    let served = Store::using(&database, serving).await;
    served.map_err(|error| start::database_trouble(&error, &database))?
}

async fn serve_with(
    settings: &ServerConfig,
    registry: Registry,
    config: RunConfig,
    store: Store,
    listener: tokio::net::TcpListener,
    device: candle_core::Device,
    connections: ConnectionLimits,
    mut interrupts: Interrupts,
) -> anyhow::Result<()> {
    let runs = Runs::default();
    let manager = Arc::new(Manager {
        registry,
        store: store.clone(),
        runs: runs.clone(),
        data_dir: settings.data_dir.clone(),
        device,
        runtime: tokio::runtime::Handle::current(),
        threads: Mutex::new(Vec::new()),
        recorders: Mutex::new(Vec::new()),
    });
    let known = store.runs().await?;
    if known.is_empty() {
        manager.create(config).await?;
    }
    for run in crate::backup::unknown_runs(&store, &settings.data_dir).await {
        tracing::warn!(
            "the database does not know the run in {}: either `iliad train` made it, or the database is older than \
             that folder, and answers given since are missing in it (`iliad restore` puts a backup back)",
            run_folder(&settings.data_dir, &run).display()
        );
    }
    manager.resume_all(&known).await;
    let address = listener.local_addr()?;
    let base = settings.base_path.as_str().to_owned();
    let state = AppState {
        store: store.clone(),
        families: registry.families(),
        runs: runs.clone(),
        launcher: Some(manager.clone()),
        settings: Arc::new(WebSettings {
            base_path: base.clone(),
            access_token: settings.access_token.as_ref().map(|t| t.reveal().to_owned()),
            loopback: settings.steering() == Steering::ThisMachine,
            trust_proxy: settings.trust_proxy,
            pictures: settings.nav_panoramas.clone(),
            connections,
            rate_limits: settings.rate_limits,
            ..WebSettings::default()
        }),
        shutdown: tokio_util::sync::CancellationToken::new(),
    };
    // People teach all the same when this cannot be printed: whoever started it reads the address from the other stream.
    if let Err(error) = output::print(format_args!("{}", start::announcement(settings, address))) {
        note!("iliad: {error}. It serves all the same, at http://{address}{base}/");
    }
    let stop = state.shutdown.clone();
    tokio::spawn(async move {
        interrupts.next().await;
        note!("Ending: runs write a checkpoint and go on at the next start. Ctrl+C again ends at once.");
        stop.cancel();
        interrupts.next().await;
        // Runs are left as they are; what people said goes from the log into the database's file all the same.
        let _ = tokio::time::timeout(AT_ONCE, store.close()).await;
        note!("Ended at once; runs go on from their last checkpoint.");
        std::process::exit(1);
    });
    let served = crate::web::serve(state, listener).await;
    let handles = store_handles(&runs, &manager);
    manager.shut_down(handles).await;
    Ok(served?)
}

fn store_handles(runs: &Runs, manager: &Manager) -> Vec<RunHandle> {
    let threads = manager.threads.lock().unwrap_or_else(|e| e.into_inner());
    threads.iter().filter_map(|(id, _)| runs.get(id)).collect()
}

/// Listens for Ctrl+C and SIGTERM from its making on, so that neither ends the program in the middle of its work.
pub struct Interrupts {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Interrupts {
    /// Begins to listen. To be called within a Tokio runtime.
    ///
    /// # Errors
    /// When the system does not let it.
    pub fn listen() -> std::io::Result<Interrupts> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Interrupts { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
        }
        #[cfg(not(unix))]
        Ok(Interrupts {})
    }

    /// Returns at the next Ctrl+C or SIGTERM, also at one that came before the call.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_become_configurations() {
        let all = presets(Registry::builtin());
        assert!(all.iter().any(|preset| preset.name == "regex/tiny" && !preset.about.is_empty()));
        let teacher = Some(TeacherMode::Mixed { share: 0.25 });
        let config =
            wished(Registry::builtin(), &NewRun { preset: "regex/tiny".into(), seed: 9, teacher, set: vec![] })
                .unwrap();
        assert_eq!((config.seed, config.teacher.mode), (9, TeacherMode::Mixed { share: 0.25 }));
        let plain = wished(Registry::builtin(), &NewRun { preset: "tiny".into(), seed: 1, teacher: None, set: vec![] })
            .unwrap();
        let preset = all.iter().find(|preset| preset.name == "regex/tiny").unwrap();
        assert_eq!(plain.teacher.mode, preset.teacher);
    }

    #[test]
    fn a_wish_that_cannot_be_met_is_a_sentence() {
        let error = wished(Registry::builtin(), &NewRun { preset: "huge".into(), seed: 1, teacher: None, set: vec![] })
            .unwrap_err();
        let LaunchError::Wish(text) = error else { panic!("{error:?}") };
        assert!(text.starts_with("There is no preset `huge`") && text.ends_with('.'), "{text}");
    }

    /// A server without its listener: pages, store and runs, and nothing running.
    async fn server(folder: &Path) -> (Arc<Manager>, axum::Router) {
        let store = Store::open(&folder.join(crate::config::server::DATABASE)).await.unwrap();
        let runs = Runs::default();
        let registry = Registry::builtin();
        let manager = Arc::new(Manager {
            registry,
            store: store.clone(),
            runs: runs.clone(),
            data_dir: folder.to_owned(),
            device: candle_core::Device::Cpu,
            runtime: tokio::runtime::Handle::current(),
            threads: Mutex::new(Vec::new()),
            recorders: Mutex::new(Vec::new()),
        });
        let state = AppState {
            store,
            families: registry.families(),
            runs,
            launcher: Some(manager.clone()),
            settings: Arc::new(WebSettings::default()),
            shutdown: tokio_util::sync::CancellationToken::new(),
        };
        (manager, crate::web::router(state))
    }

    async fn asked(router: &axum::Router, request: axum::http::request::Builder, body: String) -> (u16, String) {
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
