//! A backup of a data folder while its server runs, and the way back.
//!
//! A run goes on from its newest checkpoint and makes every update again that the database recorded after it. So a
//! backup is consistent when no checkpoint in it is newer than the database in it, and it is made in that order: first
//! the files of the runs (checkpoints never change once they have their name; the record of descriptions only grows,
//! and is cut back to what the checkpoint counted), then one snapshot of the database. Whatever is learnt in between is
//! in the database and is made again.

use crate::config::server::{CORPORA, DATABASE};
use crate::ids::RunId;
use crate::store::Store;
use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Lists what a backup holds; written last, so that a backup without it is no backup.
pub const MANIFEST: &str = "backup.json";

/// Version of the layout of backups.
const FORMAT: u32 = 1;

/// Folder of the runs, in a data folder and in a backup.
const RUNS: &str = "runs";

/// Times a snapshot of the database is taken until it has caught up with the checkpoints: the trainer records simulated
/// updates within a second or so.
const SNAPSHOTS: u32 = 10;

/// The contents of a backup.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the layout.
    pub format: u32,
    /// Version of the program that made it.
    pub program: String,
    /// RFC 3339 time at which it was made.
    pub made_at: String,
    /// Files by their path in the data folder, with `/` between folders.
    pub files: BTreeMap<String, Entry>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Length.
    pub bytes: u64,
    /// SHA-256, in hexadecimal digits.
    pub sha256: String,
}

impl Manifest {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.values().map(|entry| entry.bytes).sum()
    }

    /// How many runs have files in it.
    pub fn runs(&self) -> usize {
        let folders = self.files.keys().filter_map(|file| file.strip_prefix("runs/")?.split('/').next());
        folders.collect::<std::collections::BTreeSet<_>>().len()
    }
}

/// Counts the bytes that were copied or read, and tells them with the number of all.
struct Meter<'a> {
    done: Cell<u64>,
    all: u64,
    progress: &'a dyn Fn(u64, u64),
}

impl Meter<'_> {
    fn count(&self, bytes: u64) {
        // A live data folder grows while it is copied.
        let done = self.done.get().saturating_add(bytes).min(self.all);
        self.done.set(done);
        (self.progress)(done, self.all);
    }
}

/// Bytes of the files in a folder and the folders in it.
fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(about) if about.is_dir() => bytes_in(&entry.path()),
            Ok(about) => about.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Makes a backup of the data folder as a new folder `to`. A server may be running on the data folder. `tell` gets
/// plain sentences about what the person should know, `progress` the bytes done and about how many there are.
///
/// # Errors
/// When `to` holds something already, there is no database, or something cannot be read or written. An unfinished backup
/// is removed.
pub async fn make(
    data_dir: &Path,
    to: &Path,
    mut tell: impl FnMut(String),
    progress: &dyn Fn(u64, u64),
) -> anyhow::Result<Manifest> {
    let database = data_dir.join(DATABASE);
    ensure!(database.is_file(), "there is no database in {}; name the server's data folder", data_dir.display());
    ensure!(is_free(to), "{} holds something already; name a new folder for the backup", to.display());
    let around = std::path::absolute(to)?.parent().map(Path::to_owned).unwrap_or_default();
    std::fs::create_dir_all(&around).with_context(|| format!("cannot make {}", around.display()))?;
    // Under another name until it is whole.
    let part = tempfile::Builder::new()
        .prefix(".iliad-backup-")
        .tempdir_in(&around)
        .with_context(|| format!("cannot write into {}", around.display()))?;
    let of_database = std::fs::metadata(&database).map_or(0, |about| about.len());
    // The database is copied, and its copy is read once more.
    let all = bytes_in(&data_dir.join(RUNS)) + bytes_in(&data_dir.join(CORPORA)) + 2 * of_database;
    let meter = Meter { done: Cell::new(0), all, progress };
    let mut files = BTreeMap::new();
    let mut checkpoints = BTreeMap::new();
    for run in folders(&data_dir.join(RUNS))? {
        let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let newest =
            copy_run(&run, &part.path().join(RUNS).join(&name), &format!("{RUNS}/{name}"), &mut files, &meter)?;
        checkpoints.extend(newest.map(|newest| (RunId::from(name), newest)));
    }
    for corpus in folders(&data_dir.join(CORPORA))? {
        let name = corpus.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A folder that is being unpacked is no corpus yet.
        if !name.starts_with('.') {
            copy_corpus(
                &corpus,
                &part.path().join(CORPORA).join(&name),
                &format!("{CORPORA}/{name}"),
                &mut files,
                &meter,
            )?;
        }
    }
    let snapshot = part.path().join(DATABASE);
    for ahead in snapshots(&database, &snapshot, &checkpoints).await? {
        tell(format!(
            "the record of {ahead} does not reach up to its checkpoint, in the data folder itself; it goes on from \
             this backup as it would from there, and says so if it cannot"
        ));
    }
    meter.count(of_database);
    files.insert(DATABASE.to_owned(), hash_file(&snapshot, &meter)?);
    File::open(&snapshot)?.sync_all()?;
    let now = time::OffsetDateTime::now_utc();
    let manifest = Manifest {
        format: FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: now.format(&time::format_description::well_known::Rfc3339)?,
        files,
    };
    let mut list = File::create(part.path().join(MANIFEST))?;
    list.write_all(&serde_json::to_vec_pretty(&manifest)?)?;
    list.sync_all()?;
    if to.is_dir() {
        std::fs::remove_dir(to)?;
    }
    let part = part.keep();
    if let Err(error) = std::fs::rename(&part, to) {
        let _ = std::fs::remove_dir_all(&part);
        return Err(error).with_context(|| format!("cannot write {}", to.display()));
    }
    sync_folder(&around);
    Ok(manifest)
}

/// Takes snapshots of the database until it knows all that the checkpoints do. Returns the runs for which it never
/// does.
async fn snapshots(database: &Path, snapshot: &Path, checkpoints: &BTreeMap<RunId, u64>) -> anyhow::Result<Vec<RunId>> {
    let mut behind = Vec::new();
    for _ in 0..SNAPSHOTS {
        let _ = std::fs::remove_file(snapshot);
        Store::snapshot(database, snapshot).await?;
        behind = Store::reading_immutable(snapshot, async |store| {
            let mut behind = Vec::new();
            for (run, &update) in checkpoints {
                // A folder of which the database knows nothing was not made by this server.
                if store.run(run).await.is_ok() && !store.reaches_checkpoint(run, update).await? {
                    behind.push(run.clone());
                }
            }
            Ok::<_, crate::store::StoreError>(behind)
        })
        .await??;
        if behind.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    Ok(behind)
}

/// Copies a run's folder and returns the update of the newest checkpoint in the copy.
fn copy_run(
    from: &Path,
    to: &Path,
    name: &str,
    files: &mut BTreeMap<String, Entry>,
    meter: &Meter<'_>,
) -> anyhow::Result<Option<u64>> {
    std::fs::create_dir_all(to)?;
    // Checkpoints first: every line that they count is in the record by then.
    let mut newest = None;
    for attempt in 0.. {
        let mut found = files_of(from)?;
        found.retain(|file| file.ends_with(".safetensors"));
        found.sort();
        let there = found.iter().any(|file| update_of(file).is_some());
        for file in found {
            let path = format!("{name}/{file}");
            if files.contains_key(&path) && update_of(&file).is_some() {
                continue;
            }
            // The trainer may have removed an old one since.
            if let Some(entry) = copy(&from.join(&file), &to.join(&file), meter)? {
                files.insert(path, entry);
                newest = newest.max(update_of(&file));
            }
        }
        if newest.is_some() || !there || attempt == 9 {
            break;
        }
    }
    for file in files_of(from)?.into_iter().filter(|file| !file.ends_with(".safetensors")) {
        if let Some(entry) = copy(&from.join(&file), &to.join(&file), meter)? {
            files.insert(format!("{name}/{file}"), entry);
        }
    }
    Ok(newest)
}

/// Copies an uploaded corpus, whose files never change.
fn copy_corpus(
    from: &Path,
    to: &Path,
    name: &str,
    files: &mut BTreeMap<String, Entry>,
    meter: &Meter<'_>,
) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for file in files_of(from)? {
        if let Some(entry) = copy(&from.join(&file), &to.join(&file), meter)? {
            files.insert(format!("{name}/{file}"), entry);
        }
    }
    Ok(())
}

/// The update of a checkpoint, by its file's name; `None` for other files.
fn update_of(file: &str) -> Option<u64> {
    file.strip_prefix("update-")?.strip_suffix(".safetensors")?.parse().ok()
}

/// Names of the files in a run's folder that belong to it: no locks, nothing half-written.
fn files_of(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let passing =
            name.ends_with(".lock") || name.ends_with(".tmp") || name.contains(".tmp") || name.starts_with('.');
        if entry.path().is_file() && !passing {
            names.push(name);
        }
    }
    Ok(names)
}

/// The folders within a folder, sorted; none where it does not exist.
fn folders(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|p| p.is_dir()).collect();
            all.sort();
            Ok(all)
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e).with_context(|| format!("cannot read {}", folder.display())),
    }
}

/// Whether a folder can be made or filled here: there is nothing, or an empty folder.
fn is_free(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => !path.exists(),
    }
}

/// Copies a file and syncs it; `None` when it is no longer there.
fn copy(from: &Path, to: &Path, meter: &Meter<'_>) -> anyhow::Result<Option<Entry>> {
    let mut source = match File::open(from) {
        Ok(source) => source,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e).with_context(|| format!("cannot read {}", from.display())),
    };
    let mut target = File::create(to).with_context(|| format!("cannot write {}", to.display()))?;
    let entry =
        copy_and_hash(&mut source, &mut target, meter).with_context(|| format!("cannot copy {}", from.display()))?;
    target.sync_all().with_context(|| format!("cannot write {}", to.display()))?;
    Ok(Some(entry))
}

/// Copies everything and returns its length and hash.
fn copy_and_hash(from: &mut impl Read, to: &mut impl Write, meter: &Meter<'_>) -> std::io::Result<Entry> {
    let (mut digest, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        let n = from.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        digest.update(&buffer[..n]);
        to.write_all(&buffer[..n])?;
        bytes += n as u64;
        meter.count(n as u64);
    }
    let sha256 = hex::encode(digest.finalize());
    Ok(Entry { bytes, sha256 })
}

/// Length and hash of a file.
fn hash_file(path: &Path, meter: &Meter<'_>) -> anyhow::Result<Entry> {
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    copy_and_hash(&mut file, &mut std::io::sink(), meter).with_context(|| format!("cannot read {}", path.display()))
}

/// Makes names in a folder durable, where the system can.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// Puts a backup back as a data folder that did not exist or is empty. Every file is checked; when one differs from
/// what was backed up, nothing is left behind. `progress` gets the bytes done and how many there are.
///
/// # Errors
/// When it is no backup, is damaged, `data_dir` holds something, or something cannot be written.
pub async fn restore(backup: &Path, data_dir: &Path, progress: &dyn Fn(u64, u64)) -> anyhow::Result<Manifest> {
    let list = backup.join(MANIFEST);
    let manifest = std::fs::read(&list).with_context(|| {
        format!("{} is no backup that `iliad backup` made: cannot read {}", backup.display(), list.display())
    })?;
    let manifest: Manifest = serde_json::from_slice(&manifest)
        .with_context(|| format!("{} is damaged; use another backup", list.display()))?;
    if manifest.format != FORMAT {
        bail!("{} has layout {}, and this program reads {FORMAT}; use a newer one", backup.display(), manifest.format)
    }
    ensure!(manifest.files.contains_key(DATABASE), "{} lists no database; use another backup", list.display());
    ensure!(
        is_free(data_dir),
        "{} holds something already, and nothing was changed in it; name a new folder with --data-dir",
        data_dir.display()
    );
    std::fs::create_dir_all(data_dir).with_context(|| format!("cannot make {}", data_dir.display()))?;
    // Within the new folder, which may be a volume of its own, and under another name until all of it is there.
    let part = tempfile::Builder::new()
        .prefix(".restoring-")
        .tempdir_in(data_dir)
        .with_context(|| format!("cannot write into {}", data_dir.display()))?;
    let meter = Meter { done: Cell::new(0), all: manifest.bytes(), progress };
    for (name, entry) in &manifest.files {
        let relative = Path::new(name);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(inside && !name.is_empty(), "{} names a file outside of the backup: {name}", list.display());
        let (from, to) = (backup.join(relative), part.path().join(relative));
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let found =
            copy(&from, &to, &meter)?.with_context(|| format!("{} is missing in the backup", from.display()))?;
        ensure!(found == *entry, "{} is not as it was backed up; use another backup", from.display());
    }
    std::fs::create_dir_all(part.path().join(RUNS))?;
    // The database last: without it no server takes the folder for one.
    let parts = [RUNS, CORPORA, DATABASE];
    for name in parts.into_iter().filter(|name| part.path().join(name).exists()) {
        let target = data_dir.join(name);
        std::fs::rename(part.path().join(name), &target)
            .with_context(|| format!("cannot write {}", target.display()))?;
    }
    drop(part);
    sync_folder(data_dir);
    let database = data_dir.join(DATABASE);
    Store::using(&database, async |store| store.check().await).await??;
    Ok(manifest)
}

/// Folders of runs that the database does not know: an older database beside newer runs, or runs of `iliad train`.
pub async fn unknown_runs(store: &Store, data_dir: &Path) -> Vec<RunId> {
    let mut unknown = Vec::new();
    for folder in folders(&data_dir.join(RUNS)).unwrap_or_default() {
        let run = RunId::from(folder.file_name().unwrap_or_default().to_string_lossy().into_owned());
        let learnt = files_of(&folder).is_ok_and(|files| files.iter().any(|file| update_of(file).is_some()));
        if learnt && matches!(store.run(&run).await, Err(crate::store::StoreError::NotFound(_))) {
            unknown.push(run);
        }
    }
    unknown
}
