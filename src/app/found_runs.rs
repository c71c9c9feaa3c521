//! Runs that commands made in the data folder: `iliad train` below `runs`, `iliad reproduce` below `reproduce`. They are taken
//! into the list of runs with their curves and checkpoints, and what they learn later is taken up as well.

use super::manager::{Manager, stored_config};
use crate::ids::RunId;
use crate::registry::Registry;
use crate::run::{CheckpointRow, Point};
use crate::store::{Inherited, MadeBy, Run, RunLabel, RunOrigin, Store, StoreError};
use crate::trainer::checkpoint::{self, Header};
use crate::trainer::curve;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use time::OffsetDateTime;

/// A folder that may hold a run.
struct Candidate {
    id: RunId,
    made_by: MadeBy,
    folder: PathBuf,
    /// The folder within the data folder, where it is another than `runs/ID`.
    place: Option<String>,
}

/// A run as its folder describes it.
struct Found {
    header: Header,
    points: Vec<Point>,
    checkpoints: Vec<CheckpointRow>,
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    all.retain(|path| path.is_dir() && !name(path).starts_with('.'));
    all.sort();
    all
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The folders of the data folder that hold checkpoints of commands, or of this server.
fn candidates(data_dir: &Path) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = folders(&data_dir.join("runs"))
        .into_iter()
        .map(|folder| Candidate { id: name(&folder).into(), made_by: MadeBy::Train, folder, place: None })
        .collect();
    for table in folders(&data_dir.join("reproduce")) {
        for row in folders(&table) {
            for folder in folders(&row) {
                let parts = [name(&table), name(&row), name(&folder)];
                let id: String = format!("reproduce-{}", parts.join("-")).replace(|c: char| c.is_whitespace(), "-");
                let place = Some(format!("reproduce/{}", parts.join("/")));
                all.push(Candidate { id: id.into(), made_by: MadeBy::Reproduce, folder, place });
            }
        }
    }
    all.retain(|candidate| !checkpoint::list(&candidate.folder).is_empty());
    all
}

/// Reads the folder of a run; `None` where people taught it (the database that knows them is another one), or nothing can be
/// read.
fn read(folder: &Path) -> Option<Found> {
    let (found, _) = checkpoint::newest(folder).ok()?;
    let (header, _) = found.filter(|(header, _)| header.counters.human == 0)?;
    let points = curve::points(folder, header.counters.update);
    let rows = checkpoint::files(folder).into_iter().filter_map(|path| checkpoint::describe(&path).ok());
    Some(Found { points, checkpoints: rows.map(|(row, _)| row).collect(), header })
}

/// When the newest checkpoint of a folder was written.
fn written(folder: &Path) -> Option<SystemTime> {
    checkpoint::list(folder).last()?.metadata().ok()?.modified().ok()
}

/// When a run began, by its checkpoint.
fn began(header: &Header) -> OffsetDateTime {
    let format = &time::format_description::well_known::Rfc3339;
    let written = OffsetDateTime::parse(&header.written_at, format).unwrap_or_else(|_| OffsetDateTime::now_utc());
    written - time::Duration::seconds_f64(header.seconds.clamp(0.0, 1e9))
}

async fn record(store: &Store, candidate: &Candidate, found: &Found) -> Result<(), StoreError> {
    let origin = RunOrigin {
        made_by: candidate.made_by,
        folder: candidate.place.clone(),
        parent: None,
        inherited: Inherited { update: found.header.counters.update, people: 0 },
    };
    store.set_run_origin(&candidate.id, &origin).await?;
    store.record_points(&candidate.id, &found.points).await?;
    for row in &found.checkpoints {
        store.record_checkpoint(&candidate.id, row).await?;
    }
    Ok(())
}

/// Takes up a run that the store does not know.
async fn take_up(registry: Registry, store: &Store, candidate: &Candidate, found: &Found) -> anyhow::Result<()> {
    let config = &found.header.config;
    let run = Run {
        id: candidate.id.clone(),
        family: config.family.clone(),
        preset: config.preset.clone(),
        config: stored_config(registry, config)?,
        seed: config.seed,
        teacher: found.header.teacher,
        active: false,
        created_at: began(&found.header),
    };
    store.create_run(&run).await?;
    Ok(record(store, candidate, found).await?)
}

impl Manager {
    /// Takes the runs of commands into the list, and what those that are listed have learnt since. `seen` holds when each
    /// folder was read.
    pub(super) async fn take_up_found_runs(&self, seen: &mut std::collections::BTreeMap<RunId, SystemTime>) {
        let data_dir = self.data_dir().to_owned();
        let Ok(candidates) = tokio::task::spawn_blocking(move || candidates(&data_dir)).await else { return };
        for candidate in candidates {
            let at = written(&candidate.folder);
            if at.is_some() && seen.get(&candidate.id) == at.as_ref() {
                continue;
            }
            let known = match self.store().run(&candidate.id).await {
                Ok(_) => true,
                Err(StoreError::NotFound(_)) => false,
                Err(error) => {
                    tracing::warn!(%error, "runs of commands could not be looked up");
                    return;
                }
            };
            let label = self.store().run_label(&candidate.id).await.unwrap_or_default();
            if !known || self.follows(&candidate, &label).await {
                let folder = candidate.folder.clone();
                let Ok(found) = tokio::task::spawn_blocking(move || read(&folder)).await else { continue };
                let Some(found) = found else { continue };
                let taken = match known {
                    true => record(self.store(), &candidate, &found).await.map_err(anyhow::Error::from),
                    false => take_up(self.registry(), self.store(), &candidate, &found).await,
                };
                if let Err(error) = taken {
                    tracing::warn!("the run in {} cannot be listed: {error:#}", candidate.folder.display());
                }
            }
            if let Some(at) = at {
                seen.insert(candidate.id, at);
            }
        }
    }

    /// Whether a listed run is one of a command that this server has never resumed.
    async fn follows(&self, candidate: &Candidate, label: &RunLabel) -> bool {
        label.made_by == candidate.made_by
            && label.made_by != MadeBy::Server
            && label.trashed_at.is_none()
            && matches!(self.store().last_update(&candidate.id).await, Ok(None))
    }
}
