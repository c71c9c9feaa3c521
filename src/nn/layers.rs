//! Linear layers, embeddings folded into the recurrence's input projection, and the LSTM encoder made of them.

use crate::nn::init;
use crate::nn::lstm::{Lengths, lstm};
use crate::nn::params::Params;
use crate::nn::tokens::{PAD, Tokens};
use crate::rng::Stream;
use candle_core::{DType, Result, Tensor};

/// Whether a view of the parameters takes part in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grad {
    /// Gradients flow to the parameters.
    On,
    /// Weights as constants, for acting and evaluation; no graph is kept.
    Off,
}

/// The tensor behind a parameter.
pub fn weight(params: &Params, name: &str, grad: Grad) -> Result<Tensor> {
    let var = params.get(name)?;
    Ok(match grad {
        Grad::On => var.as_tensor().clone(),
        Grad::Off => var.as_detached_tensor(),
    })
}

/// y = x·Wᵀ + b, W `[out, in]`.
#[derive(Clone, Debug)]
pub struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    /// Adds the parameters `name.weight` and `name.bias`.
    pub fn init(params: &mut Params, name: &str, inputs: usize, outputs: usize, stream: &mut Stream) -> Result<()> {
        let bound = 1.0 / (inputs as f32).sqrt();
        params.add(&format!("{name}.weight"), &init::uniform(&[outputs, inputs], bound, stream)?)?;
        params.add(&format!("{name}.bias"), &init::uniform(&[outputs], bound, stream)?)
    }

    /// The layer over existing parameters.
    pub fn new(params: &Params, name: &str, grad: Grad) -> Result<Self> {
        Ok(Self {
            weight: weight(params, &format!("{name}.weight"), grad)?,
            bias: weight(params, &format!("{name}.bias"), grad)?,
        })
    }

    /// Applies it to the last dimension of `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.apply(x, false)
    }

    /// Applies it to the last dimension of `x`, then tanh.
    pub fn forward_tanh(&self, x: &Tensor) -> Result<Tensor> {
        self.apply(x, true)
    }

    fn apply(&self, x: &Tensor, tanh: bool) -> Result<Tensor> {
        let mut dims = x.dims().to_vec();
        let inputs = dims.pop().unwrap_or(0);
        let rows = dims.iter().product::<usize>();
        let y = affine(&x.reshape((rows, inputs))?, &self.weight, &self.bias, tanh, false)?;
        dims.push(self.bias.dim(0)?);
        y.reshape(dims)
    }

    /// From weight `[out, in]` and bias `[out]`, however they came about.
    pub fn of(weight: Tensor, bias: Tensor) -> Self {
        Self { weight, bias }
    }

    /// Several layers over the same input as one: their outputs side by side.
    pub fn joined(layers: &[&Linear]) -> Result<Self> {
        let part = |of: fn(&Linear) -> &Tensor| Tensor::cat(&layers.iter().map(|l| of(l)).collect::<Vec<_>>(), 0);
        Ok(Self { weight: part(|l| &l.weight)?, bias: part(|l| &l.bias)? })
    }

    /// Weight `[out, in]` and bias `[out]`.
    pub fn parts(&self) -> (&Tensor, &Tensor) {
        (&self.weight, &self.bias)
    }
}

/// `x·Wᵀ + b` for `x` `[n, in]`, through tanh if asked. `padded`: x is a table of embeddings, whose padding row gets no
/// gradient.
fn affine(x: &Tensor, weight: &Tensor, bias: &Tensor, tanh: bool, padded: bool) -> Result<Tensor> {
    if x.device().is_cuda() {
        return crate::nn::cuda::linear::linear(x, weight, bias, tanh, padded);
    }
    let _ = padded;
    let y = x.matmul(&weight.t()?)?.broadcast_add(bias)?;
    if tanh { y.tanh() } else { Ok(y) }
}

/// A table of embeddings whose padding row is zero and gets no gradient.
#[derive(Clone, Debug)]
pub struct Embedding {
    table: Tensor,
}

impl Embedding {
    /// Adds the parameter `name.weight` `[rows, size]`.
    pub fn init(params: &mut Params, name: &str, rows: usize, size: usize, stream: &mut Stream) -> Result<()> {
        params.add(&format!("{name}.weight"), &init::embedding(rows, size, PAD as usize, stream)?)
    }

    /// The table over an existing parameter.
    pub fn new(params: &Params, name: &str, grad: Grad) -> Result<Self> {
        let table = weight(params, &format!("{name}.weight"), grad)?;
        if !table.device().is_cpu() {
            // There the projection keeps the padding row's gradient at zero, and the row itself never changes.
            return Ok(Self { table });
        }
        let rows = table.dim(0)?;
        let mut keep = vec![1f32; rows];
        keep[PAD as usize] = 0.0;
        // Multiplying the padding row away also keeps its gradient at zero.
        let keep = Tensor::from_vec(keep, (rows, 1), table.device())?;
        Ok(Self { table: table.broadcast_mul(&keep)? })
    }

    /// Rows of the table for `ids` `[N]`: `[N, size]`, zeros for padding.
    pub fn rows(&self, ids: &Tensor) -> Result<Tensor> {
        let rows = self.table.index_select(ids, 0)?;
        if ids.device().is_cpu() {
            return Ok(rows);
        }
        rows.broadcast_mul(&ids.ne(PAD)?.to_dtype(DType::F32)?.unsqueeze(1)?)
    }

    /// The table `[rows, size]`.
    pub fn table(&self) -> &Tensor {
        &self.table
    }
}

/// Rows of `table` `[V, N]` for the tokens, one symbol a position: `[T, B, N]`.
fn lookup(table: &Tensor, tokens: &Tokens) -> Result<Tensor> {
    let rows = table.index_select(&tokens.ids, 0)?;
    rows.reshape((tokens.steps, tokens.rows, table.dim(1)?))
}

/// One LSTM layer: weights `[4H, in]`, `[4H, H]` and PyTorch's two biases.
#[derive(Clone, Debug)]
pub struct Lstm {
    w_ih: Tensor,
    w_hh: Tensor,
    bias: Tensor,
    grad: Grad,
}

impl Lstm {
    /// Name of the input weight `[4H, in]`.
    pub const WEIGHT_IH: &'static str = "weight_ih";
    /// Name of the recurrent weight `[4H, H]`.
    pub const WEIGHT_HH: &'static str = "weight_hh";
    /// Name of the first bias `[4H]`.
    pub const BIAS_IH: &'static str = "bias_ih";
    /// Name of the second bias `[4H]`.
    pub const BIAS_HH: &'static str = "bias_hh";

    /// Adds `name.weight_ih`, `name.weight_hh`, `name.bias_ih`, `name.bias_hh`.
    pub fn init(params: &mut Params, name: &str, inputs: usize, hidden: usize, stream: &mut Stream) -> Result<()> {
        let bound = 1.0 / (hidden as f32).sqrt();
        for (part, shape) in [
            (Self::WEIGHT_IH, vec![4 * hidden, inputs]),
            (Self::WEIGHT_HH, vec![4 * hidden, hidden]),
            (Self::BIAS_IH, vec![4 * hidden]),
            (Self::BIAS_HH, vec![4 * hidden]),
        ] {
            params.add(&format!("{name}.{part}"), &init::uniform(&shape, bound, stream)?)?;
        }
        Ok(())
    }

    /// The layer over existing parameters.
    pub fn new(params: &Params, name: &str, grad: Grad) -> Result<Self> {
        let get = |part: &str| weight(params, &format!("{name}.{part}"), grad);
        Ok(Self {
            w_ih: get(Self::WEIGHT_IH)?,
            w_hh: get(Self::WEIGHT_HH)?,
            bias: (get(Self::BIAS_IH)? + get(Self::BIAS_HH)?)?,
            grad,
        })
    }

    /// Hidden size H.
    pub fn hidden(&self) -> Result<usize> {
        self.w_hh.dim(1)
    }

    /// Input projections of every row of an embedding table, `[V, 4H]`: the whole input side of the recurrence for
    /// symbols, computed once.
    pub fn project(&self, table: &Tensor) -> Result<Tensor> {
        affine(table, &self.w_ih, &self.bias, false, true)
    }

    /// Runs over symbols from a state `[2, B, H]`: outputs `[T, B, H]` and final state `[2, B, H]`.
    pub fn read(&self, embedding: &Embedding, tokens: &Tokens, state: &Tensor) -> Result<(Tensor, Tensor)> {
        let table = self.project(embedding.table())?;
        if table.device().is_cuda() {
            return crate::nn::cuda::lstm::lstm(&table, &self.w_hh, state, tokens, self.grad == Grad::On);
        }
        self.run(&lookup(&table, tokens)?, state, &tokens.lengths)
    }

    /// Runs over projected inputs `[T, B, 4H]` on the CPU: outputs `[T, B, H]` and final state `[2, B, H]`.
    pub fn run(&self, gx: &Tensor, state: &Tensor, lengths: &Lengths) -> Result<(Tensor, Tensor)> {
        lstm(gx, &self.w_hh, state, lengths)
    }

    /// A zero state `[2, B, H]`.
    pub fn zero_state(&self, rows: usize) -> Result<Tensor> {
        Tensor::zeros((2, rows, self.hidden()?), DType::F32, self.w_hh.device())
    }
}

/// The state `[2, B, H]` with h replaced by tanh(W·h + b) (`src2task`, `task2tgt`, `enc2dec` in the authors' names).
pub fn bridge(state: &Tensor, layer: &Linear) -> Result<Tensor> {
    let h = layer.forward_tanh(&state.get(0)?)?;
    Tensor::stack(&[&h, &state.get(1)?], 0)
}
