//! The manifest of a run: which objects make up the state that lies in the object store.

use crate::ids::RunId;
use object_store::path::Path as ObjectPath;
use serde::{Deserialize, Serialize};

/// Version of the layout of manifests.
const FORMAT: u32 = 1;

/// Most bytes of a manifest, so that a wrong object does not fill the memory.
const LONGEST: usize = 1 << 20;

/// Name of a manifest among the objects of its run.
const NAME: &str = "manifest.json";

/// A whole state of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// Update of the newest checkpoint.
    pub update: u64,
    /// The files of the run's folder, the best checkpoint first and then the newest.
    pub files: Vec<FileEntry>,
}

/// A file of a run's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Name in the folder.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// SHA-256 of the contents, in hexadecimal digits.
    pub sha256: String,
}

impl FileEntry {
    /// The place of the file's contents. Other contents have another place.
    pub(super) fn place(&self, run: &RunId) -> ObjectPath {
        let digest = self.sha256.get(..16).unwrap_or(&self.sha256);
        objects(run).join(format!("{digest}-{}", self.name))
    }
}

impl Manifest {
    pub(super) fn new(update: u64, files: Vec<FileEntry>) -> Manifest {
        Manifest { format: FORMAT, update, files }
    }

    /// Reads a manifest; the error says what is wrong with it.
    pub(super) fn read(bytes: &[u8]) -> Result<Manifest, String> {
        if bytes.len() > LONGEST {
            return Err("its manifest is too long".to_owned());
        }
        let manifest: Manifest =
            serde_json::from_slice(bytes).map_err(|error| format!("its manifest cannot be read ({error})"))?;
        if manifest.format != FORMAT {
            return Err(format!("its manifest has layout {} and this program reads {FORMAT}", manifest.format));
        }
        // The names become files: none may lead out of the folder.
        let plain = |name: &str| {
            !name.is_empty()
                && !name.starts_with('.')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        let digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match manifest.files.iter().find(|file| !plain(&file.name) || !digest(&file.sha256)) {
            Some(file) => Err(format!("its manifest has a file {:?} that no run has", file.name)),
            None => Ok(manifest),
        }
    }

    pub(super) fn write(&self) -> Vec<u8> {
        // Texts and numbers always have a JSON form.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }
}

/// The place of a run's manifest.
pub(super) fn place(run: &RunId) -> ObjectPath {
    ObjectPath::from_iter([run.as_str(), NAME])
}

/// The place of a run's other objects.
pub(super) fn objects(run: &RunId) -> ObjectPath {
    ObjectPath::from_iter([run.as_str(), "files"])
}
