//! Copies the folder of a run into the object store.

use super::{CheckpointStore, CheckpointStoreError, FileEntry, Manifest, Result, failed, manifest};
use crate::ids::RunId;
use crate::trainer::{checkpoint, curve, description_log};
use object_store::ObjectStoreExt;
use object_store::buffered::BufWriter;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Files larger than this are sent in parts of this size.
const PART: usize = 8 << 20;

/// Parts of one file that are sent at once; each is in the memory until it has been sent.
const PARTS_AT_ONCE: usize = 2;

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// A file that is to be copied, as it was when it was opened: one that is renamed over meanwhile can still be read.
pub(super) struct Source {
    pub(super) entry: FileEntry,
    file: File,
    path: PathBuf,
}

impl CheckpointStore {
    /// Copies what a run needs to go on: its checkpoints, the description log and the curve. What is there already is not sent again,
    /// and what the new manifest does not name is removed. Returns the manifest; `None` where the run has no checkpoint yet.
    ///
    /// # Errors
    /// When the folder cannot be read, the object store cannot be reached, or has a later state of the run. What was there before is then
    /// as it was.
    pub async fn copy(&self, run: &RunId, folder: &Path) -> Result<Option<Manifest>> {
        let (known, place) = (self.clone(), folder.to_owned());
        let opened = tokio::task::spawn_blocking(move || known.sources(&place)).await;
        let opened = opened.map_err(|error| local(folder)(io::Error::other(error)))??;
        let Some((update, sources)) = opened else { return Ok(None) };
        match self.manifest(run).await {
            Ok(Some(before)) if before.update > update => {
                return Err(CheckpointStoreError::Superseded { run: run.clone(), there: before.update, here: update });
            }
            // A damaged manifest is replaced by a good one.
            Ok(_) | Err(CheckpointStoreError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        let there = self.list(run).await?;
        let mut files = Vec::new();
        for source in sources {
            let place = source.entry.place(run);
            files.push(source.entry.clone());
            if !there.iter().any(|object| object.location == place && object.size == source.entry.bytes) {
                self.send(source, place).await?;
            }
        }
        let manifest = Manifest::new(update, files);
        let written = self.objects.put(&manifest::place(run), manifest.write().into()).await;
        written.map_err(failed(|| format!("take the manifest of the run {run}")))?;
        let named: HashSet<_> = manifest.files.iter().map(|file| file.place(run)).collect();
        for object in there.iter().filter(|object| !named.contains(&object.location)) {
            // The next copy finds it again.
            if let Err(error) = self.delete(&object.location).await {
                tracing::debug!(%error, "an object that is not needed any more stays");
            }
        }
        Ok(Some(manifest))
    }

    /// Opens the files of a run, and the update of the newest checkpoint; `None` where there is no checkpoint. The logs are opened after
    /// the checkpoints, since they have all lines that a checkpoint counts before the checkpoint is there.
    pub(super) fn sources(&self, folder: &Path) -> Result<Option<(u64, Vec<Source>)>> {
        let checkpoints = checkpoint::files(folder);
        let updates = checkpoints.iter().filter_map(|path| update_of(&path.file_name()?.to_string_lossy()));
        let Some(update) = updates.max() else { return Ok(None) };
        let logs = [description_log::FILE_NAME, curve::FILE_NAME].map(|name| folder.join(name));
        let mut sources = Vec::new();
        for path in checkpoints.into_iter().chain(logs) {
            match File::open(&path) {
                Ok(file) => sources.push(self.source(path, file)?),
                // An older checkpoint that was just removed, or a log without lines.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(local(&path)(error)),
            }
        }
        let newest = |source: &Source| update_of(&source.entry.name) == Some(update);
        if !sources.iter().any(newest) {
            return Err(CheckpointStoreError::Changed(folder.display().to_string()));
        }
        Ok(Some((update, sources)))
    }

    fn source(&self, path: PathBuf, mut file: File) -> Result<Source> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let found = file.metadata().map_err(local(&path))?;
        let (bytes, written) = (found.len(), found.modified().map_err(local(&path))?);
        let lock = || self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            lock().get(&path).filter(|known| (known.0, known.1) == (bytes, written)).map(|known| known.2.clone());
        let sha256 = match known {
            Some(sha256) => sha256,
            None => {
                let sha256 = digest(&mut file, bytes).map_err(local(&path))?;
                file.rewind().map_err(local(&path))?;
                // Only checkpoints are whole under their name; logs grow.
                if checkpoint::is_name(&name) {
                    let mut digests = lock();
                    digests.retain(|path, _| path.exists());
                    digests.insert(path.clone(), (bytes, written, sha256.clone()));
                }
                sha256
            }
        };
        Ok(Source { entry: FileEntry { name, bytes, sha256 }, file, path })
    }

    /// Sends a file as it was when it was opened; further lines at its end do not belong to this copy.
    pub(super) async fn send(&self, source: Source, place: object_store::path::Path) -> Result<()> {
        let Source { entry, file, path } = source;
        let refused = || failed(|| format!("take {place}"));
        let mut reader = tokio::fs::File::from_std(file).take(entry.bytes);
        let mut writer =
            BufWriter::with_capacity(self.objects.clone(), place.clone(), PART).with_max_concurrency(PARTS_AT_ONCE);
        let mut hash = Sha256::new();
        let mut sending = async || -> Result<()> {
            loop {
                let mut chunk = vec![0; CHUNK];
                let n = reader.read(&mut chunk).await.map_err(local(&path))?;
                if n == 0 {
                    break;
                }
                chunk.truncate(n);
                hash.update(&chunk);
                writer.put(chunk.into()).await.map_err(refused())?;
            }
            match hex::encode(hash.finalize_reset()) == entry.sha256 {
                true => Ok(()),
                false => Err(CheckpointStoreError::Changed(path.display().to_string())),
            }
        };
        if let Err(error) = sending().await {
            // A store that cannot be reached keeps the parts until its own rules remove them.
            let _ = writer.abort().await;
            return Err(error);
        }
        writer.shutdown().await.map_err(|error| {
            let source = object_store::Error::Generic { store: "object store", source: Box::new(error) };
            refused()(source)
        })
    }
}

/// Update of the newest checkpoint in a folder, by its name.
pub(super) fn newest_update(folder: &Path) -> Option<u64> {
    update_of(&checkpoint::list(folder).last()?.file_name()?.to_string_lossy())
}

fn update_of(name: &str) -> Option<u64> {
    name.strip_prefix("update-")?.strip_suffix(".safetensors")?.parse().ok()
}

/// The SHA-256 of the first bytes of a file.
fn digest(file: &mut File, bytes: u64) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut rest = file.take(bytes);
    let mut chunk = vec![0; CHUNK];
    loop {
        match rest.read(&mut chunk)? {
            0 => return Ok(hex::encode(hash.finalize())),
            n => hash.update(&chunk[..n]),
        }
    }
}

/// The error for a file of this machine.
pub(super) fn local(path: &Path) -> impl FnOnce(io::Error) -> CheckpointStoreError + '_ {
    move |source| CheckpointStoreError::Local { path: path.to_owned(), source }
}
