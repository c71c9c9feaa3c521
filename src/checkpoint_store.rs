//! Copies of runs in an object store: a folder that machines share, or a bucket that speaks S3.
//!
//! The folder of a run stays the working copy; what lies here is what another machine needs to go on with the run. Each file is an object
//! whose name has the digest of its contents, so an object is never overwritten. The manifest of a run names the objects that make up one
//! state; it is written after them and replaced at once. So a reader finds a whole state, whenever a copy breaks off.

mod connection;
mod download;
mod manifest;
mod upload;

pub use download::{Chunks, Fetched};
pub use manifest::{FileEntry, Manifest};

use crate::config::server::CheckpointAddress;
use crate::ids::RunId;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ClientConfigKey, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// How often a request is repeated at once. The caller tries again later, so that this stays short.
const RETRIES: usize = 2;

/// After how long a request is not repeated any more.
const RETRY_TIME: Duration = Duration::from_secs(10);

/// Why a copy could not be written or read. Each message is a sentence without secrets.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointStoreError {
    /// The address cannot be used as things are.
    #[error("{0}")]
    Address(String),
    /// The object store does not answer, or refuses.
    #[error("the object store could not {doing}: {source}")]
    Store {
        /// The request, in words.
        doing: String,
        /// The error of the client.
        source: object_store::Error,
    },
    /// A file of this machine cannot be read or written.
    #[error("{} cannot be copied: {source}", path.display())]
    Local {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The folder of a run cannot be laid down.
    #[error(transparent)]
    Folder(#[from] crate::output::folder::FolderError),
    /// A file changed between its two readings; the next try finds it at rest.
    #[error("{0} changed while it was copied")]
    Changed(String),
    /// Another program works in the folder that would be replaced.
    #[error("another program is training the run in {}", .0.display())]
    Busy(PathBuf),
    /// An object is not what its manifest says.
    #[error("the copy of the run {run} in the object store is damaged: {problem}")]
    Damaged {
        /// The run.
        run: RunId,
        /// The fault.
        problem: String,
    },
    /// The object store has a later state of the run than the one that was to be copied there.
    #[error(
        "the object store has update {there} of the run {run}, and the folder here has update {here}: another server goes on with the run, \
         or shares the address and should have a prefix of its own"
    )]
    Superseded {
        /// The run.
        run: RunId,
        /// Update of the newest checkpoint in the object store.
        there: u64,
        /// Update of the newest checkpoint here.
        here: u64,
    },
}

/// A result of the object store.
pub type Result<T> = std::result::Result<T, CheckpointStoreError>;

/// The bytes, time and digest of each file that was read. A file of the same bytes and time is not read again, since checkpoints never change.
type Digests = HashMap<PathBuf, (u64, SystemTime, String)>;

/// The object store of a server's runs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CheckpointStore {
    objects: Arc<dyn ObjectStore>,
    digests: Arc<Mutex<Digests>>,
}

impl CheckpointStore {
    /// Opens the object store at an address; keys, region and endpoint of a bucket come from the `AWS_…` variables. A folder is made where
    /// it is missing; a bucket is not asked for anything yet.
    ///
    /// # Errors
    /// When the folder cannot be made, or the variables do not fit together.
    pub fn open(address: &CheckpointAddress) -> Result<CheckpointStore> {
        let refused =
            |why: &dyn std::fmt::Display| CheckpointStoreError::Address(format!("{address} cannot be used: {why}"));
        let objects: Arc<dyn ObjectStore> = match address {
            CheckpointAddress::Folder(folder) => {
                std::fs::create_dir_all(folder).map_err(|error| refused(&error))?;
                Arc::new(LocalFileSystem::new_with_prefix(folder).map_err(|error| refused(&error))?.with_fsync(true))
            }
            CheckpointAddress::Bucket { bucket, prefix } => {
                let backoff = BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() };
                let retry = RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRY_TIME };
                let builder = AmazonS3Builder::from_env();
                let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint).unwrap_or_default();
                let plain = builder.get_config_value(&AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
                if endpoint.starts_with("http://") && plain.as_deref() != Some("true") {
                    return Err(refused(
                        &"AWS_ENDPOINT_URL begins with http://, which would send everything unencrypted; \
                                         set AWS_ALLOW_HTTP=true if that is meant",
                    ));
                }
                let connector = connection::Connector::new().map_err(|error| refused(&error))?;
                let built = builder.with_bucket_name(bucket).with_retry(retry).with_http_connector(connector).build();
                let store = built.map_err(|error| refused(&error))?;
                match prefix.as_str() {
                    "" => Arc::new(store),
                    prefix => Arc::new(PrefixStore::new(store, prefix)),
                }
            }
        };
        Ok(CheckpointStore::over(objects))
    }

    fn over(objects: Arc<dyn ObjectStore>) -> CheckpointStore {
        CheckpointStore { objects, digests: Arc::default() }
    }

    /// The manifest of a run; `None` where nothing of the run was ever copied.
    ///
    /// # Errors
    /// When the object store cannot be reached, or the manifest is damaged.
    pub async fn manifest(&self, run: &RunId) -> Result<Option<Manifest>> {
        let doing = || format!("give the manifest of the run {run}");
        let bytes = match self.objects.get(&manifest::place(run)).await {
            Ok(found) => found.bytes().await.map_err(failed(doing))?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(doing)(error)),
        };
        let damaged = |problem| CheckpointStoreError::Damaged { run: run.clone(), problem };
        Manifest::read(&bytes).map(Some).map_err(damaged)
    }

    /// Removes everything of a run: the manifest first, so that nobody goes on with half of it.
    ///
    /// # Errors
    /// When the object store cannot be reached.
    pub async fn remove(&self, run: &RunId) -> Result<()> {
        self.delete(&manifest::place(run)).await?;
        for object in self.list(run).await? {
            self.delete(&object.location).await?;
        }
        Ok(())
    }

    /// The objects that are there of a run, without its manifest.
    async fn list(&self, run: &RunId) -> Result<Vec<ObjectMeta>> {
        let found: Vec<ObjectMeta> = self
            .objects
            .list(Some(&manifest::objects(run)))
            .try_collect()
            .await
            .map_err(failed(|| format!("list the files of the run {run}")))?;
        Ok(found)
    }

    /// Removes an object, unless it is gone already.
    async fn delete(&self, place: &ObjectPath) -> Result<()> {
        match self.objects.delete(place).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(|| format!("remove {place}"))(error)),
        }
    }
}

/// The error for a request that failed.
fn failed(doing: impl FnOnce() -> String) -> impl FnOnce(object_store::Error) -> CheckpointStoreError {
    move |source| CheckpointStoreError::Store { doing: doing(), source }
}

#[cfg(test)]
mod tests;
