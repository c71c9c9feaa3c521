//! Files that weights live in: safetensors with a JSON header of our own in its metadata, a checksum beside the data,
//! and an atomic replacement, so that a reader sees the old file or the new one and never half of either.

use candle_core::{DType, Device, Tensor};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Why an artifact cannot be read or written. Every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file is cut short, changed or not an artifact.
    #[error("{path} is damaged or not an Iliad file: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// How the weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// float32: exact.
    Full,
    /// float16: half the size, for shipped models.
    Half,
}

const HEADER: &str = "iliad";
const CHECKSUM: &str = "sha256";

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ArtifactError + '_ {
    move |source| ArtifactError::Io { path: path.to_owned(), source }
}

fn damaged(path: &Path, reason: impl ToString) -> ArtifactError {
    ArtifactError::Damaged { path: path.to_owned(), reason: reason.to_string() }
}

/// Replaces `path` by `bytes` atomically and durably: a temporary file beside it, flushed to disk, renamed over it, and the
/// folder flushed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), ArtifactError> {
    if crate::output::file::is_stream(path) {
        // Renaming a file over a device would take the device away.
        return crate::output::file::write(path, bytes)
            .map_err(|e| ArtifactError::Io { path: path.to_owned(), source: e.into_source() });
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        std::fs::File::open(folder)?.sync_all()
    };
    write().map_err(|source| {
        let _ = std::fs::remove_file(&temporary);
        ArtifactError::Io { path: path.to_owned(), source }
    })
}

fn checksum(header: &str, tensors: &BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>) -> String {
    let mut hash = Sha256::new();
    hash.update(header.as_bytes());
    for (name, (dtype, shape, bytes)) in tensors {
        hash.update(format!("\n{name} {dtype:?} {shape:?}\n"));
        hash.update(bytes);
    }
    hex::encode(hash.finalize())
}

/// Writes `header` and tensors to `path`.
///
/// # Errors
/// When the file cannot be written; the old file, if any, is then still whole.
pub fn save<H: Serialize>(
    path: &Path,
    header: &H,
    tensors: &BTreeMap<String, Tensor>,
    precision: Precision,
) -> Result<(), ArtifactError> {
    let header = serde_json::to_string(header).map_err(|e| damaged(path, e))?;
    let mut raw = BTreeMap::new();
    for (name, tensor) in tensors {
        let flat = tensor.to_device(&Device::Cpu).and_then(|t| t.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>());
        let values = flat.map_err(|e| damaged(path, e))?;
        let (dtype, bytes) = match precision {
            Precision::Full => (Dtype::F32, values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()),
            Precision::Half => {
                (Dtype::F16, values.iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes()).collect())
            }
        };
        raw.insert(name.clone(), (dtype, tensor.dims().to_vec(), bytes));
    }
    let sum = checksum(&header, &raw);
    let views = raw
        .iter()
        .map(|(name, (dtype, shape, bytes))| Ok((name.clone(), TensorView::new(*dtype, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|e| damaged(path, e))?;
    let metadata = HashMap::from([(HEADER.to_owned(), header), (CHECKSUM.to_owned(), sum)]);
    let bytes = safetensors::serialize(views, Some(metadata)).map_err(|e| damaged(path, e))?;
    write_atomically(path, &bytes)
}

/// Reads an artifact that [`save`] wrote; tensors come as float32 on the CPU.
///
/// # Errors
/// When the file is missing, cut short, changed (its checksum does not fit), or its header is not an `H`.
pub fn load<H: DeserializeOwned>(path: &Path) -> Result<(H, BTreeMap<String, Tensor>), ArtifactError> {
    let bytes = std::fs::read(path).map_err(io(path))?;
    load_bytes(path, &bytes)
}

/// Reads a file from memory (`path` only names it in errors); for models compiled into the program.
pub fn load_bytes<H: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
) -> Result<(H, BTreeMap<String, Tensor>), ArtifactError> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| damaged(path, e))?;
    let parsed = SafeTensors::deserialize(bytes).map_err(|e| damaged(path, e))?;
    let metadata = metadata.metadata().clone().unwrap_or_default();
    let header = metadata.get(HEADER).ok_or_else(|| damaged(path, "it has no Iliad header"))?;
    let mut raw = BTreeMap::new();
    for (name, view) in parsed.tensors() {
        raw.insert(name, (view.dtype(), view.shape().to_vec(), view.data().to_vec()));
    }
    if metadata.get(CHECKSUM) != Some(&checksum(header, &raw)) {
        return Err(damaged(path, "its checksum does not fit its content"));
    }
    let tensors = raw
        .into_iter()
        .map(|(name, (dtype, shape, bytes))| {
            let values: Vec<f32> = match dtype {
                Dtype::F32 => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
                Dtype::F16 => bytes.chunks_exact(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect(),
                other => return Err(damaged(path, format!("`{name}` has the type {other:?}"))),
            };
            let tensor = Tensor::from_vec(values, shape, &Device::Cpu).map_err(|e| damaged(path, e))?;
            Ok((name, tensor))
        })
        .collect::<Result<_, _>>()?;
    let header: serde_json::Value =
        serde_json::from_str(header).map_err(|e| damaged(path, format!("its header: {e}")))?;
    if let Some(number) = absurd(&header) {
        return Err(damaged(path, format!("its header holds the number {number}")));
    }
    let header = serde_json::from_value(header).map_err(|e| damaged(path, format!("its header: {e}")))?;
    Ok((header, tensors))
}

/// A number in a header that nothing in this program counts to. Seeds may be any number; everything else is a count, a
/// size or a reading, and what is computed from it must not leave what a number can hold.
fn absurd(header: &serde_json::Value) -> Option<&serde_json::Number> {
    use serde_json::Value;
    match header {
        Value::Number(number) => number.as_f64().is_none_or(|x| x.abs() > 9_007_199_254_740_992.0).then_some(number),
        Value::Array(all) => all.iter().find_map(absurd),
        Value::Object(all) => all.iter().filter(|(key, _)| *key != "seed").find_map(|(_, value)| absurd(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> BTreeMap<String, Tensor> {
        BTreeMap::from([("a".to_owned(), Tensor::new(&[[1f32, 2.5], [-3.0, 4.0]], &Device::Cpu).unwrap())])
    }

    #[test]
    fn round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/x.safetensors");
        for precision in [Precision::Full, Precision::Half] {
            save(&path, &("head", 7), &example(), precision).unwrap();
            let (header, tensors): ((String, u32), _) = load(&path).unwrap();
            assert_eq!(header, ("head".to_owned(), 7));
            assert_eq!(tensors["a"].to_vec2::<f32>().unwrap(), [[1f32, 2.5], [-3.0, 4.0]]);
        }
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn every_cut_and_every_flipped_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.safetensors");
        save(&path, &"head", &example(), Precision::Full).unwrap();
        let good = std::fs::read(&path).unwrap();
        for cut in 0..good.len() {
            assert!(load_bytes::<String>(&path, &good[..cut]).is_err(), "cut at {cut}");
        }
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 1;
            // A flipped blank between JSON tokens may leave the meaning whole; what is read must then be the same.
            if let Ok((header, tensors)) = load_bytes::<String>(&path, &bad) {
                assert_eq!(header, "head");
                assert_eq!(tensors["a"].to_vec2::<f32>().unwrap(), [[1f32, 2.5], [-3.0, 4.0]], "flip at {i}");
            }
        }
    }

    #[test]
    fn a_missing_file_and_a_foreign_file_are_plain_errors() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none.safetensors");
        assert!(load::<String>(&path).unwrap_err().to_string().contains("none.safetensors"));
        std::fs::write(&path, "hello").unwrap();
        assert!(load::<String>(&path).unwrap_err().to_string().contains("damaged or not an Iliad file"));
    }
}
