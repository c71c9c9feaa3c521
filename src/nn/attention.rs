//! Dot attention: scores are products of projected queries and projected keys, unscaled; the result
//! is the weighted sum of the *unprojected* values. Keys are projected once per sequence.

use crate::nn::layers::{Grad, Linear};
use crate::nn::params::Params;
use crate::nn::tokens::Tokens;
use crate::rng::Stream;
use candle_core::{D, Result, Tensor};

/// The two projections: query `[H → dot]`, key `[V → dot]`.
#[derive(Clone, Debug)]
pub struct DotAttention {
    query: Linear,
    key: Linear,
}

/// The memory that is attended over.
#[derive(Clone, Debug)]
pub enum Memory {
    /// Batch-major, as the CPU's products want it.
    Host {
        /// `[B, dot, T]`.
        keys: Tensor,
        /// `[B, T, V]`.
        values: Tensor,
        /// `[B, 1, T]`, added to scores.
        bias: Tensor,
    },
    /// Time-major, as it came.
    Gpu {
        /// `[T, B, dot]`.
        keys: Tensor,
        /// `[T, B, V]`.
        values: Tensor,
        /// Real steps of each row.
        real: crate::nn::lstm::Lengths,
    },
}

impl DotAttention {
    /// Adds `name.query` and `name.key`.
    pub fn init(
        params: &mut Params,
        name: &str,
        query: usize,
        value: usize,
        dot: usize,
        stream: &mut Stream,
    ) -> Result<()> {
        Linear::init(params, &format!("{name}.query"), query, dot, stream)?;
        Linear::init(params, &format!("{name}.key"), value, dot, stream)
    }

    /// The layer over existing parameters.
    pub fn new(params: &Params, name: &str, grad: Grad) -> Result<Self> {
        Ok(Self {
            query: Linear::new(params, &format!("{name}.query"), grad)?,
            key: Linear::new(params, &format!("{name}.key"), grad)?,
        })
    }

    /// Prepares a memory from time-major values `[T, B, V]`, what was read from `tokens`.
    pub fn memory(&self, values: &Tensor, tokens: &Tokens) -> Result<Memory> {
        let keys = self.key.forward(values)?;
        let Some(bias) = tokens.bias.clone() else {
            return Ok(Memory::Gpu { keys, values: values.contiguous()?, real: tokens.real.clone() });
        };
        let keys = keys.permute((1, 2, 0))?.contiguous()?;
        Ok(Memory::Host { keys, values: values.transpose(0, 1)?.contiguous()?, bias })
    }

    /// Attends for queries `[Q, g·B, H]` (time-major), where row k·B + b looks at row b of the memory: `[Q, g·B, V]`.
    pub fn attend(&self, queries: &Tensor, memory: &Memory) -> Result<Tensor> {
        let q = self.query.forward(queries)?;
        let (steps, rows, dot) = q.dims3()?;
        let (items, width) = (memory.rows()?, memory.width()?);
        // The numbers stay as they are; they are seen as g times as many queries of each row.
        let q = q.reshape((steps * (rows / items), items, dot))?;
        let out = match memory {
            Memory::Host { .. } => memory.read(&q.transpose(0, 1)?.contiguous()?)?.transpose(0, 1)?.contiguous()?,
            Memory::Gpu { keys, values, real } => crate::nn::cuda::attention::attend(&q, keys, values, real)?,
        };
        out.reshape((steps, rows, width))
    }

    /// Attends for one query a row, `[B · group, H]`, where `group` neighbouring rows share a row of the memory (on the
    /// CPU).
    pub fn attend_step(&self, h: &Tensor, memory: &Memory, group: usize) -> Result<Tensor> {
        let q = self.query.forward(h)?;
        let (rows, dot) = q.dims2()?;
        let out = memory.read(&q.reshape((rows / group, group, dot))?)?;
        let width = out.dim(2)?;
        out.reshape((rows, width))
    }

    /// Weight and bias of the query's projection.
    pub fn query(&self) -> (&Tensor, &Tensor) {
        self.query.parts()
    }
}

impl Memory {
    fn rows(&self) -> Result<usize> {
        match self {
            Memory::Host { values, .. } => values.dim(0),
            Memory::Gpu { values, .. } => values.dim(1),
        }
    }

    fn width(&self) -> Result<usize> {
        match self {
            Memory::Host { values, .. } => values.dim(2),
            Memory::Gpu { values, .. } => values.dim(2),
        }
    }

    /// Weighted sums of the values for batch-major queries `[B, Q, dot]`: `[B, Q, V]`.
    fn read(&self, q: &Tensor) -> Result<Tensor> {
        match self {
            Memory::Host { keys, values, bias } => {
                let scores = q.matmul(keys)?.broadcast_add(bias)?;
                candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(values)
            }
            Memory::Gpu { .. } => candle_core::bail!("attention: this memory is read by the GPU's own operation"),
        }
    }
}
