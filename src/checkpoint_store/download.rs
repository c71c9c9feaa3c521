//! Fetches a run from the object store: its whole folder, or one file of it.

use super::upload::{local, newest_update};
use super::{CheckpointStore, CheckpointStoreError, FileEntry, Manifest, Result, failed};
use crate::ids::RunId;
use crate::output::folder::{Draft, Existing};
use crate::output::lock::FolderLock;
use axum::body::Bytes;
use futures::stream::{BoxStream, StreamExt};
use object_store::ObjectStoreExt;
use sha2::{Digest, Sha256};
use std::path::Path;
use tokio::io::AsyncWriteExt;

/// How often a state is fetched again that was replaced, and its objects removed, meanwhile.
const TRIES: usize = 3;

/// The contents of a file as they come. The last bytes are withheld until the digest fits, so that nobody takes a damaged file for a
/// whole one.
pub type Chunks = BoxStream<'static, Result<Bytes>>;

/// The outcome of fetching a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The object store has nothing of the run.
    Nothing,
    /// The folder here is as new.
    Current,
    /// The folder was laid down, with a newest checkpoint of this update.
    Update(u64),
}

impl CheckpointStore {
    /// Lays down the folder of a run, unless there is one whose newest checkpoint is as new. Size and digest of every file are checked, and
    /// the folder appears whole or stays as it was.
    ///
    /// # Errors
    /// When the object store cannot be reached, an object is damaged, or the folder cannot be written.
    pub async fn fetch(&self, run: &RunId, folder: &Path) -> Result<Fetched> {
        for rest in (0..TRIES).rev() {
            let Some(manifest) = self.manifest(run).await? else { return Ok(Fetched::Nothing) };
            if newest_update(folder).is_some_and(|here| here >= manifest.update) {
                return Ok(Fetched::Current);
            }
            match self.lay_down(run, folder, &manifest).await {
                Err(error) if rest > 0 && is_gone(&error) => {}
                laid => return laid.map(|()| Fetched::Update(manifest.update)),
            }
        }
        Ok(Fetched::Current)
    }

    async fn lay_down(&self, run: &RunId, folder: &Path, manifest: &Manifest) -> Result<()> {
        let _lock = match folder.is_dir() {
            true => {
                let lock = FolderLock::acquire(&folder.join("run.lock")).map_err(local(folder))?;
                Some(lock.ok_or_else(|| CheckpointStoreError::Busy(folder.to_owned()))?)
            }
            false => None,
        };
        // Everything in an older folder of the run gives way.
        let old = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let old: Vec<String> = old.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let new = manifest.files.iter().map(|file| file.name.as_str());
        let parts: Vec<&str> = old.iter().map(String::as_str).chain(new).collect();
        let draft = Draft::begin(folder, Existing::Replace, &parts)?;
        for entry in &manifest.files {
            let path = draft.path().join(&entry.name);
            let mut file = tokio::fs::File::create(&path).await.map_err(local(&path))?;
            let mut chunks = self.chunks(run, entry).await?;
            while let Some(chunk) = chunks.next().await {
                file.write_all(&chunk?).await.map_err(local(&path))?;
            }
            file.sync_all().await.map_err(local(&path))?;
        }
        draft.finish()?;
        Ok(())
    }

    /// A file of a run by its name: its bytes and its contents; `None` where the manifest does not name it.
    ///
    /// # Errors
    /// When the object store cannot be reached. A damaged file is an error at its end.
    pub async fn read(&self, run: &RunId, name: &str) -> Result<Option<(u64, Chunks)>> {
        for rest in (0..TRIES).rev() {
            let Some(manifest) = self.manifest(run).await? else { return Ok(None) };
            let Some(entry) = manifest.files.iter().find(|file| file.name == name) else { return Ok(None) };
            match self.chunks(run, entry).await {
                Err(error) if rest > 0 && is_gone(&error) => {}
                chunks => return Ok(Some((entry.bytes, chunks?))),
            }
        }
        Ok(None)
    }

    /// The contents of a file, checked.
    async fn chunks(&self, run: &RunId, entry: &FileEntry) -> Result<Chunks> {
        let doing = |name: &str| format!("give {name} of the run {run}");
        let found = self.objects.get(&entry.place(run)).await.map_err(failed(|| doing(&entry.name)))?;
        let checking = Checking {
            doing: doing(&entry.name),
            stream: found.into_stream(),
            hash: Sha256::new(),
            seen: 0,
            held: None,
            ended: false,
            run: run.clone(),
            entry: entry.clone(),
        };
        Ok(futures::stream::try_unfold(checking, Checking::next).boxed())
    }
}

/// A file that is being read and checked.
struct Checking {
    run: RunId,
    entry: FileEntry,
    doing: String,
    stream: BoxStream<'static, object_store::Result<Bytes>>,
    hash: Sha256,
    seen: u64,
    /// The bytes that came last. They go on when further ones have come, or the digest fits.
    held: Option<Bytes>,
    ended: bool,
}

impl Checking {
    async fn next(mut self) -> Result<Option<(Bytes, Checking)>> {
        if self.ended {
            return Ok(None);
        }
        loop {
            match self.stream.next().await {
                Some(Ok(chunk)) => {
                    self.hash.update(&chunk);
                    self.seen += chunk.len() as u64;
                    if let Some(before) = self.held.replace(chunk) {
                        return Ok(Some((before, self)));
                    }
                }
                Some(Err(error)) => return Err(failed(|| self.doing)(error)),
                None => {
                    self.check()?;
                    self.ended = true;
                    let last = self.held.take();
                    return Ok(last.map(|last| (last, self)));
                }
            }
        }
    }

    fn check(&mut self) -> Result<()> {
        let FileEntry { name, bytes, sha256 } = &self.entry;
        let problem = if self.seen != *bytes {
            format!("{name} has {} bytes and its manifest says {bytes}", self.seen)
        } else if hex::encode(self.hash.finalize_reset()) != *sha256 {
            format!("the contents of {name} do not have the SHA-256 that its manifest says")
        } else {
            return Ok(());
        };
        Err(CheckpointStoreError::Damaged { run: self.run.clone(), problem })
    }
}

/// Whether an object is not there any more: the manifest that named it has been replaced.
fn is_gone(error: &CheckpointStoreError) -> bool {
    matches!(error, CheckpointStoreError::Store { source: object_store::Error::NotFound { .. }, .. })
}
