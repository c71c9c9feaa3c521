//! Weights that another program wrote: a safetensors file without a header of ours. Names and shapes are held against those of a model,
//! and everything that does not fit is told at once.

use crate::nn::reference_fixtures::Names;
use candle_core::{DType, Device, Tensor};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Tensors by name.
type Tensors = BTreeMap<String, Tensor>;

/// Most faults of one kind that are told.
const MOST_TOLD: usize = 200;

/// Prefixes of the weights that are read of a checkpoint, the first that is there, and of a numeric fixture.
const PREFIXES: [&str; 3] = ["average.weights.", "theta.weights.", "weight."];

/// Why weights do not fit a model.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file is no safetensors file.
    #[error("{} is no whole safetensors file: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Names, shapes or numbers are others than those of the model: a sentence without its full stop for each.
    #[error("{} of its tensors do not fit the model", .0.len())]
    Misfits(Vec<String>),
}

/// A model's parameters, of which a file has the weights.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    shapes: BTreeMap<String, Vec<usize>>,
    /// The name of a parameter in the program of the paper's authors, and whether its first axis is a vocabulary.
    theirs: BTreeMap<String, (String, bool)>,
}

impl Wanted {
    /// The parameters of a part of a model, whose names get `prefix` in front of them. `names`: the names of its layers in the
    /// program of the paper's authors, where they are known.
    pub fn with(mut self, prefix: &str, parameters: &Tensors, names: &Names) -> Wanted {
        for (ours, tensor) in parameters {
            self.shapes.insert(format!("{prefix}{ours}"), tensor.dims().to_vec());
            let their = names.iter().find_map(|(mine, theirs, vocabulary)| {
                let part = ours.strip_prefix(mine.as_str())?.strip_prefix('.')?;
                // PyTorch numbers the layers of an LSTM.
                let layer = if theirs.ends_with("lstm.lstm") { "_l0" } else { "" };
                Some((format!("{prefix}{theirs}.{part}{layer}"), *vocabulary))
            });
            if let Some(their) = their {
                self.theirs.insert(format!("{prefix}{ours}"), their);
            }
        }
        self
    }
}

/// The tensors of a file that another program wrote.
#[derive(Debug)]
pub struct WeightsFile {
    /// Each tensor as float32 on the CPU, or the type that cannot be one.
    tensors: BTreeMap<String, Result<Tensor, Dtype>>,
}

impl WeightsFile {
    /// Reads a file. Of a checkpoint, the weights of the policy that its run reports are read alone.
    ///
    /// # Errors
    /// When it cannot be read, or is no whole safetensors file.
    pub fn read(path: &Path) -> Result<WeightsFile, WeightsError> {
        let bytes = std::fs::read(path).map_err(|source| WeightsError::Io { path: path.to_owned(), source })?;
        let damaged = |e: String| WeightsError::Damaged { path: path.to_owned(), reason: e };
        let file = SafeTensors::deserialize(&bytes).map_err(|e| damaged(e.to_string()))?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.tensors() {
            let dtype = match view.dtype() {
                Dtype::F64 => DType::F64,
                Dtype::F32 => DType::F32,
                Dtype::F16 => DType::F16,
                Dtype::BF16 => DType::BF16,
                other => {
                    tensors.insert(name, Err(other));
                    continue;
                }
            };
            let tensor = Tensor::from_raw_buffer(view.data(), dtype, view.shape(), &Device::Cpu);
            let tensor = tensor.and_then(|tensor| tensor.to_dtype(DType::F32));
            tensors.insert(name, Ok(tensor.map_err(|e| damaged(e.to_string()))?));
        }
        if let Some(prefix) = PREFIXES.iter().find(|prefix| tensors.keys().any(|name| name.starts_with(**prefix))) {
            let part = tensors.into_iter().filter_map(|(name, t)| Some((name.strip_prefix(prefix)?.to_owned(), t)));
            tensors = part.collect();
        }
        Ok(WeightsFile { tensors })
    }

    /// The weights of a model. `ignored` are tensors of the file that are passed over.
    ///
    /// # Errors
    /// [`WeightsError::Misfits`], with every tensor that is missing, unknown, misshapen, of another type or not finite.
    pub fn fit(&self, wanted: &Wanted, ignored: &[String]) -> Result<Tensors, WeightsError> {
        let there = |name: &String| self.tensors.contains_key(name);
        let ours = wanted.shapes.keys().any(there);
        let theirs = !ours && wanted.theirs.values().any(|(name, _)| there(name));
        let (mut missing, mut others) = (Vec::new(), Vec::new());
        let (mut fitting, mut known) = (Tensors::new(), BTreeSet::new());
        for (name, shape) in &wanted.shapes {
            let (asked, vocabulary) = match wanted.theirs.get(name).filter(|_| theirs) {
                Some((their, vocabulary)) => (their, *vocabulary),
                None => (name, false),
            };
            known.insert(asked);
            match self.tensors.get(asked) {
                None => missing.push(format!("`{asked}` is missing; its shape is {shape:?}")),
                Some(Err(kind)) => {
                    others.push(format!("`{asked}` has the type {kind:?}; a weight is a floating-point number"))
                }
                Some(Ok(tensor)) if tensor.dims() != shape.as_slice() => {
                    others.push(format!("`{asked}` has the shape {:?}, and the model wants {shape:?}", tensor.dims()));
                }
                Some(Ok(tensor)) if !is_finite(tensor) => {
                    others.push(format!("`{asked}` has numbers that are not finite, or too large for float32"));
                }
                Some(Ok(tensor)) => match if vocabulary { exchanged(tensor) } else { Ok(tensor.clone()) } {
                    Ok(tensor) => drop(fitting.insert(name.clone(), tensor)),
                    Err(error) => others.push(format!("`{asked}` cannot be read: {error}")),
                },
            }
        }
        let unknown = self.tensors.keys().filter(|name| !known.contains(name) && !ignored.contains(name));
        let unknown: Vec<String> = unknown.map(|name| format!("`{name}` is unknown to the model")).collect();
        let mut faults = Vec::new();
        for kind in [missing, unknown, others] {
            let more = kind.len().saturating_sub(MOST_TOLD);
            faults.extend(kind.into_iter().take(MOST_TOLD));
            if more > 0 {
                faults.push(format!("and {more} more"));
            }
        }
        if faults.is_empty() { Ok(fitting) } else { Err(WeightsError::Misfits(faults)) }
    }
}

fn is_finite(tensor: &Tensor) -> bool {
    let values = tensor.flatten_all().and_then(|flat| flat.to_vec1::<f32>());
    values.is_ok_and(|values| values.iter().all(|value| value.is_finite()))
}

/// A vocabulary of the paper's authors, in which padding is the second symbol and ours the first.
fn exchanged(tensor: &Tensor) -> candle_core::Result<Tensor> {
    let rows = tensor.dim(0)?;
    let mut order: Vec<u32> = (0..rows as u32).collect();
    if rows > 1 {
        order.swap(0, 1);
    }
    tensor.index_select(&Tensor::new(order, &Device::Cpu)?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::reference_fixtures::names;
    use safetensors::tensor::TensorView;

    fn file(tensors: &[(&str, Dtype, &[usize], Vec<u8>)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        let views = tensors
            .iter()
            .map(|(name, kind, shape, bytes)| (*name, TensorView::new(*kind, shape.to_vec(), bytes).unwrap()));
        std::fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
        (folder, path)
    }

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    fn model() -> Tensors {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu).unwrap();
        BTreeMap::from([("embedding.weight".to_owned(), zeros(&[3, 1])), ("encoder.weight_ih".to_owned(), zeros(&[4]))])
    }

    fn values(tensors: &Tensors, name: &str) -> Vec<f32> {
        tensors[name].flatten_all().unwrap().to_vec1().unwrap()
    }

    #[test]
    fn weights_are_read_by_our_names_and_by_those_of_the_papers_authors() {
        let half: Vec<u8> = [1.0f32, 2.0, 3.0].iter().flat_map(|x| half::f16::from_f32(*x).to_le_bytes()).collect();
        let double: Vec<u8> = [1.0f64, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let wanted = Wanted::default().with(
            "",
            &model(),
            &names(&[("embedding", "src_embedding", true), ("encoder", "src_encoder.lstm.lstm", false)]),
        );
        let (_folder, path) = file(&[
            ("theta.weights.embedding.weight", Dtype::F16, &[3, 1], half),
            ("theta.weights.encoder.weight_ih", Dtype::F64, &[4], double),
            ("theta.adam.something", Dtype::F32, &[1], f32s(&[1.0])),
        ]);
        let read = WeightsFile::read(&path).unwrap().fit(&wanted, &[]).unwrap();
        assert_eq!(values(&read, "embedding.weight"), [1.0, 2.0, 3.0]);
        assert_eq!(values(&read, "encoder.weight_ih"), [1.0, 2.0, 3.0, 4.0]);
        let (_folder, path) = file(&[
            ("src_embedding.weight", Dtype::F32, &[3, 1], f32s(&[7.0, 8.0, 9.0])),
            ("src_encoder.lstm.lstm.weight_ih_l0", Dtype::F32, &[4], f32s(&[0.0; 4])),
            ("positions", Dtype::F32, &[1], f32s(&[0.0])),
        ]);
        let file = WeightsFile::read(&path).unwrap();
        assert!(file.fit(&wanted, &[]).is_err());
        let read = file.fit(&wanted, &["positions".to_owned()]).unwrap();
        assert_eq!(values(&read, "embedding.weight"), [8.0, 7.0, 9.0], "padding is our first symbol");
    }

    #[test]
    fn everything_that_does_not_fit_is_told_at_once() {
        let mut parameters = model();
        for name in ["a", "b", "c"] {
            parameters.insert(name.to_owned(), Tensor::zeros(1, DType::F32, &Device::Cpu).unwrap());
        }
        let (_folder, path) = file(&[
            ("embedding.weight", Dtype::F32, &[1, 3], f32s(&[1.0; 3])),
            ("a", Dtype::F32, &[1], f32s(&[f32::NAN])),
            ("b", Dtype::I64, &[1], vec![0; 8]),
            ("stranger", Dtype::F32, &[1], f32s(&[1.0])),
        ]);
        let wanted = Wanted::default().with("", &parameters, &Names::new());
        let Err(WeightsError::Misfits(faults)) = WeightsFile::read(&path).unwrap().fit(&wanted, &[]) else { panic!() };
        let told = faults.join("\n");
        for part in [
            "`c` is missing; its shape is [1]",
            "`encoder.weight_ih` is missing; its shape is [4]",
            "`stranger` is unknown",
            "`embedding.weight` has the shape [1, 3], and the model wants [3, 1]",
            "`a` has numbers that are not finite",
            "`b` has the type I64",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert_eq!(faults.len(), 6, "{told}");
        std::fs::write(&path, "nonsense").unwrap();
        assert!(WeightsFile::read(&path).unwrap_err().to_string().contains("no whole safetensors file"));
    }
}
