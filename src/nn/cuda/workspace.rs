//! The state of a model on a GPU: inputs that are overwritten in place, roll-outs, gradients, and the graphs captured of its
//! passes. Batches are filled up to one of a few sizes, so that few graphs serve all of them.

use super::decode::{Rollout, Shape};
use super::graph_capture::GraphCache;
use super::tape::Memory;
use super::*;
use crate::nn::params::Params;
use candle_core::Device;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Rows that a batch of `n` is filled up to.
pub fn rows(n: usize) -> usize {
    let step = match n {
        0..=32 => 16,
        33..=160 => 40,
        161..=512 => 64,
        513..=1024 => 256,
        _ => 512,
    };
    n.max(1).next_multiple_of(step)
}

/// Steps that sequences of at most `n` are filled up to.
pub fn steps(n: usize) -> usize {
    const SIZES: [usize; 9] = [9, 17, 24, 34, 42, 50, 66, 82, 98];
    SIZES.into_iter().find(|&s| s >= n).unwrap_or(n.next_multiple_of(32))
}

/// The GPU buffers of a model and the graphs captured of its passes.
#[derive(Default)]
pub struct Workspace {
    /// Captured graphs.
    pub graphs: GraphCache,
    slots: Mutex<HashMap<String, Tensor>>,
    rollouts: Mutex<HashMap<Shape, Arc<Rollout>>>,
    training: Mutex<Option<Arc<Training>>>,
    staging: Mutex<Option<Staging>>,
}

/// The buffers that training steps write: gradients by the parameters' names, and everything on the way to them.
pub struct Training {
    /// Gradients.
    pub grads: HashMap<String, Tensor>,
    /// Memory of a pass; held by whoever makes one.
    pub(crate) memory: Mutex<Memory>,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Workspace")
    }
}

impl Workspace {
    fn slot(&self, name: &str, n: usize, kind: DType, device: &Device) -> Result<Tensor> {
        let mut slots = self.slots.lock().unwrap();
        if let Some(slot) = slots.get(name) {
            if slot.elem_count() != n {
                bail!("the buffer `{name}` has {} elements, not {n}", slot.elem_count())
            }
            return Ok(slot.clone());
        }
        let slot = Tensor::zeros(n, kind, device)?;
        slots.insert(name.to_owned(), slot.clone());
        Ok(slot)
    }

    /// Puts the elements of a batch into its buffer, which stays where it is.
    pub fn put(&self, name: &str, data: &[u32], device: &Device) -> Result<Tensor> {
        let slot = self.slot(name, data.len(), DType::U32, device)?;
        let mut staging = self.staging.lock().unwrap();
        if staging.is_none() {
            *staging = Some(Staging::new(device.as_cuda_device()?));
        }
        if let Some(staging) = &mut *staging {
            staging.put(&slot, data)?;
        }
        Ok(slot)
    }

    /// A buffer for a number (a loss).
    pub fn number(&self, device: &Device) -> Result<Tensor> {
        self.slot("number", 1, DType::F32, device)?.reshape(())
    }

    /// A buffer for `n` whole numbers.
    pub fn whole(&self, name: &str, n: usize, device: &Device) -> Result<Tensor> {
        self.slot(name, n, DType::U32, device)
    }

    /// A tensor that is made at the first call and stays as it is.
    pub fn kept(&self, name: &str, make: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
        let mut slots = self.slots.lock().unwrap();
        if let Some(slot) = slots.get(name) {
            return Ok(slot.clone());
        }
        let made = make()?;
        slots.insert(name.to_owned(), made.clone());
        Ok(made)
    }

    /// A buffer for a flag of each row.
    pub fn flags(&self, rows: usize, device: &Device) -> Result<Tensor> {
        self.slot(&format!("flags {rows}"), rows, DType::U32, device)
    }

    /// The buffers of training steps; they are made at the first call.
    pub fn training(&self, params: &Params) -> Result<Arc<Training>> {
        let mut training = self.training.lock().unwrap();
        if let Some(training) = &*training {
            return Ok(training.clone());
        }
        let grads = params
            .iter()
            .map(|(name, var)| Ok((name.to_owned(), Tensor::zeros(var.dims(), DType::F32, params.device())?)))
            .collect::<Result<_>>()?;
        let made = Arc::new(Training { grads, memory: Mutex::new(Memory::new(params.device().as_cuda_device()?)) });
        *training = Some(made.clone());
        Ok(made)
    }

    /// The buffers of a roll-out.
    pub fn rollout(&self, shape: Shape, device: &Device) -> Result<Arc<Rollout>> {
        let mut rollouts = self.rollouts.lock().unwrap();
        if let Some(rollout) = rollouts.get(&shape) {
            return Ok(rollout.clone());
        }
        let rollout = Arc::new(Rollout::new(shape.clone(), device)?);
        rollouts.insert(shape, rollout.clone());
        Ok(rollout)
    }
}
