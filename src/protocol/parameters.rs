//! The parameters of a policy and its optimizer, as learners see them: by name, without the network behind them.

use candle_core::{Device, Result, Tensor};
use std::any::Any;
use std::collections::BTreeMap;

/// The named parameters of one policy on one device.
pub trait Parameters {
    /// The device they are on.
    fn device(&self) -> &Device;

    /// The parameter of a name, as it is now; it shares its memory.
    fn tensor(&self, name: &str) -> Result<Tensor>;

    /// A deep copy on the CPU, by name.
    fn snapshot(&self) -> Result<BTreeMap<String, Tensor>>;

    /// Overwrites every parameter. Names and shapes must match exactly; nothing is changed when they do not.
    fn load(&self, values: &BTreeMap<String, Tensor>) -> Result<()>;

    /// Copies all values of `other`, which must have the same names and shapes.
    fn copy_from(&self, other: &dyn Parameters) -> Result<()> {
        self.load(&other.snapshot()?)
    }

    /// The type behind the trait, so that parameters of one type can be copied without going through tensors.
    fn as_any(&self) -> &dyn Any;

    /// Moves every value towards that of `other`, on the device: value ← decay · value + (1 − decay) · other.
    fn move_towards(&self, other: &dyn Parameters, decay: f64) -> Result<()>;
}

/// The optimizer of one policy, as checkpoints see it.
pub trait Optimizer {
    /// Steps made.
    fn steps(&self) -> u64;

    /// Its tensors by name: for Adam the moments.
    fn tensors(&self) -> Result<BTreeMap<String, Tensor>>;

    /// Restores what [`Optimizer::steps`] and [`Optimizer::tensors`] gave.
    fn restore(&mut self, steps: u64, tensors: &BTreeMap<String, Tensor>) -> Result<()>;
}
