//! The attention of the REGEX models: scores are products of projected queries and projected keys, unscaled; the result
//! is the weighted sum of the *unprojected* values. Keys are projected once per sequence.

use crate::nn::layers::{Grad, Linear};
use crate::nn::params::Params;
use crate::rng::Stream;
use candle_core::{D, Result, Tensor};

/// The two projections: query `[H → dot]`, key `[V → dot]`.
#[derive(Clone, Debug)]
pub struct DotAttention {
    query: Linear,
    key: Linear,
}

/// What is attended over: keys `[B, dot, T]`, values `[B, T, V]`, and the mask to add to scores `[B, 1, T]`.
#[derive(Clone, Debug)]
pub struct Memory {
    keys: Tensor,
    values: Tensor,
    bias: Option<Tensor>,
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

    /// Prepares a memory from time-major values `[T, B, V]` and the mask of their padding (none: nothing is masked).
    pub fn memory(&self, values: &Tensor, bias: Option<&Tensor>) -> Result<Memory> {
        let keys = self.key.forward(values)?.permute((1, 2, 0))?.contiguous()?;
        let values = values.transpose(0, 1)?.contiguous()?;
        Ok(Memory { keys, values, bias: bias.cloned() })
    }

    /// Attends for queries `[Q, B, H]` (time-major): `[Q, B, V]`.
    pub fn attend(&self, queries: &Tensor, memory: &Memory) -> Result<Tensor> {
        let q = self.query.forward(queries)?.transpose(0, 1)?.contiguous()?;
        memory.read(&q)?.transpose(0, 1)?.contiguous()
    }

    /// Attends for one query a row, `[B · group, H]`, where `group` neighbouring rows share a row of the memory.
    pub fn attend_step(&self, h: &Tensor, memory: &Memory, group: usize) -> Result<Tensor> {
        let q = self.query.forward(h)?;
        let (rows, dot) = q.dims2()?;
        let out = memory.read(&q.reshape((rows / group, group, dot))?)?;
        let width = out.dim(2)?;
        out.reshape((rows, width))
    }
}

impl Memory {
    /// Weighted sums of the values for batch-major queries `[B, Q, dot]`: `[B, Q, V]`.
    fn read(&self, q: &Tensor) -> Result<Tensor> {
        let mut scores = q.matmul(&self.keys)?;
        if let Some(bias) = &self.bias {
            scores = scores.broadcast_add(bias)?;
        }
        candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&self.values)
    }
}
