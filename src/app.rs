//! Puts the parts together: the server with its store, its runs and its pages. Commands of the command line that need a run
//! use the same functions.

mod checkpoint_copies;
mod checkpoint_use;
mod found_runs;
mod housekeeping;
pub mod interrupts;
pub mod manager;
pub mod outside;
pub mod presets;
mod processes;
mod recorder;
pub(crate) mod start;
pub mod webhooks;

pub use interrupts::Interrupts;
pub use manager::{Manager, new_run_id, run_folder};
pub use presets::presets;

use crate::checkpoint_store::CheckpointStore;
use crate::config::run::RunConfig;
use crate::config::server::{CORPORA, ServerConfig, Steering};
use crate::corpora::Corpora;
use crate::launch::Launcher;
use crate::output::lock::FolderLock;
use crate::output::{self, note};
use crate::registry::Registry;
use crate::store::{Bus, Store};
use crate::web::listener::ConnectionLimits;
use crate::web::{AppState, Runs, WebSettings};
use anyhow::Context;
use checkpoint_copies::Copies;
use processes::Processes;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long ending at once may take: the database is closed, and nothing else is waited for.
const IMMEDIATE_END: Duration = Duration::from_secs(2);

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
    let checkpoints = settings.checkpoints.as_ref().map(CheckpointStore::open).transpose()?;
    let database = settings.database();
    // Closed however serving ends, so that the database is whole in its one file.
    let serving = async |store: Store| {
        serve_with(settings, registry, config, (store, checkpoints), (listener, connections), device, interrupts).await
    };
    let served = Store::using(&database, serving).await;
    served.map_err(|error| start::database_trouble(&error, &database))?
}

/// The token of the link with which the first owner is made; `None` where there are accounts. Each start makes another.
async fn first_owner_link(store: &Store) -> anyhow::Result<Option<String>> {
    if store.has_accounts().await? {
        return Ok(None);
    }
    let token = crate::credentials::random_token()?;
    Ok(store.invite_first_owner(&token).await?.then_some(token))
}

async fn serve_with(
    settings: &ServerConfig,
    registry: Registry,
    config: RunConfig,
    (store, checkpoints): (Store, Option<CheckpointStore>),
    (listener, connections): (tokio::net::TcpListener, ConnectionLimits),
    device: candle_core::Device,
    mut interrupts: Interrupts,
) -> anyhow::Result<()> {
    let runs = Runs::default();
    let (data_dir, families) = (settings.data_dir.clone(), registry.families());
    // A new name at each start: nothing that is meant for an earlier process reaches this one.
    let bus = store.bus(&crate::credentials::random_token()?).await?;
    let copies = checkpoints.map(|checkpoints| Copies::begin(checkpoints, bus.clone()));
    let manager = Manager::new(registry, store.clone(), runs.clone(), data_dir, device);
    let manager = Arc::new(manager.with_copies(copies));
    let known = store.runs().await?;
    // A data folder whose runs are all in the trash is not a new one.
    if known.is_empty() && settings.trains {
        manager.create(config).await?;
    }
    Corpora::new(&settings.data_dir.join(CORPORA)).sweep();
    if settings.trains {
        manager.take_up_found_runs(&mut std::collections::BTreeMap::new()).await;
    }
    for run in crate::backup::unknown_runs(&store, &settings.data_dir).await {
        tracing::warn!(
            "the database does not know the run in {}, which people taught: the database is older than that folder, and \
             answers given since are missing in it (`iliad restore` puts a backup back)",
            run_folder(&settings.data_dir, &run).display()
        );
    }
    if settings.trains {
        manager.resume_all(&known).await;
    }
    let shutdown = tokio_util::sync::CancellationToken::new();
    let processes = match &bus {
        Some(bus) => {
            let (manager, runs) = (manager.clone(), runs.clone());
            Some(Processes::begin(bus.clone(), manager, runs, settings.trains, shutdown.clone()).await?)
        }
        None => None,
    };
    let launcher: Arc<dyn Launcher> = match &processes {
        Some(processes) if !settings.trains => processes.launcher(),
        _ => manager.clone(),
    };
    let address = listener.local_addr()?;
    let base = settings.base_path.as_str().to_owned();
    let state = AppState {
        store: store.clone(),
        families,
        runs,
        works: Default::default(),
        uploads: Default::default(),
        launcher: Some(launcher),
        settings: Arc::new(WebSettings {
            base_path: base.clone(),
            access_token: settings.access_token.as_ref().map(|t| t.reveal().to_owned()),
            loopback: settings.steering() == Steering::ThisMachine,
            trust_proxy: settings.trust_proxy,
            data_dir: Some(settings.data_dir.clone()),
            pictures: settings.nav_panoramas.clone(),
            // A process that does not train has no use for them.
            corpora: settings.trains.then(|| settings.data_dir.join(CORPORA)),
            connections,
            rate_limits: settings.rate_limits,
            metrics: settings.metrics,
            ..WebSettings::default()
        }),
        shutdown,
    };
    let welcome = match first_owner_link(&store).await {
        Ok(token) => token.map(|token| start::welcome(settings, address, &token)).unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%error, "no link for a first account could be made; a later start makes one");
            String::new()
        }
    };
    // People teach all the same when this cannot be printed: whoever started it reads the address from the other stream.
    if let Err(error) =
        output::print(format_args!("{}{welcome}{}", start::announcement(settings, address), start::ENDING))
    {
        note!("iliad: {error}. It serves all the same, at http://{address}{base}/");
    }
    let stop = state.shutdown.clone();
    tokio::spawn(async move {
        interrupts.next().await;
        note!("Ending: runs write a checkpoint and go on at the next start. Ctrl+C again ends at once.");
        stop.cancel();
        interrupts.next().await;
        // Runs are left as they are; closing moves people's answers from the write-ahead log into the database's file.
        let _ = tokio::time::timeout(IMMEDIATE_END, store.close()).await;
        note!("Ended at once; runs go on from their last checkpoint.");
        std::process::exit(1);
    });
    let delivery =
        webhooks::Delivery { private: settings.steering() == Steering::ThisMachine, ..webhooks::Delivery::default() };
    let delivering = tokio::spawn({
        let (store, shutdown, bus) = (state.store.clone(), state.shutdown.clone(), bus.clone());
        async move {
            let Some(_alone) = alone(bus.as_ref(), "webhooks", &shutdown).await else { return };
            webhooks::deliver(store, delivery, shutdown).await;
        }
    });
    let keeping = tokio::spawn({
        let (manager, shutdown, trains) = (manager.clone(), state.shutdown.clone(), settings.trains);
        async move {
            if trains {
                let claims = manager.keep_claims(shutdown.clone());
                tokio::join!(housekeeping::keep(manager.clone(), shutdown), claims);
            }
        }
    });
    let served = crate::web::serve(state, listener).await;
    manager.shut_down().await;
    // It ends with the server, and soon; a panic in it is in the log.
    let _ = tokio::join!(delivering, keeping);
    Ok(served?)
}

/// Waits until this process may do what one process does for all that share the database, at once where no other does; `None` when the
/// server ends before.
async fn alone(
    bus: Option<&Bus>,
    name: &str,
    shutdown: &tokio_util::sync::CancellationToken,
) -> Option<Option<crate::store::Alone>> {
    let Some(bus) = bus else { return Some(None) };
    loop {
        let held = tokio::select! {
            held = bus.alone(name) => held,
            () = shutdown.cancelled() => return None,
        };
        match held {
            Ok(held) => return Some(Some(held)),
            Err(error) => tracing::warn!(%error, "the database does not say which process does the {name}"),
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

#[cfg(test)]
mod tests;
