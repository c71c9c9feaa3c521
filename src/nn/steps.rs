//! Parts of models that go step by step on the CPU: layers that meet one weight at every step, and sequences that are
//! taken apart into steps.
//!
//! Candle adds up gradients by whole tensors. A weight that is used at each of T steps would get T gradients of its own
//! size, and a sequence T gradients of its full length, almost all zeros. The nodes here collect the parts instead and
//! hand on the sum once, when the backward pass comes to the first step. To make sure that it comes there last, each
//! step's node has the one before among its arguments (and gives it a gradient of zeros): however the steps' results
//! are used, the backward pass meets them in the order T − 1, …, 0.

use crate::nn::cpu::{cpu_slice, gemm, with};
use crate::nn::layers::Linear;
use candle_core::{CpuStorage, CustomOp1, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor, bail};
use std::cell::RefCell;
use std::sync::{Arc, Mutex};

/// The place of a backward pass in a chain of steps.
#[derive(Debug, Default)]
pub(crate) struct Order {
    last: Option<usize>,
}

impl Order {
    /// The pass comes to step `t`: whether this is the first visit of a pass.
    ///
    /// # Errors
    /// When the step before was not `t + 1`.
    pub(crate) fn visit(&mut self, t: usize) -> Result<bool> {
        let begins = match self.last {
            None => true,
            Some(last) if last == t + 1 => false,
            Some(last) => bail!("the backward pass came from step {last} to step {t}"),
        };
        self.last = if t == 0 { None } else { Some(t) };
        Ok(begins)
    }
}

/// A Linear layer that is used at every step of a recurrence, followed by a ReLU or not.
///
/// From the second step on its weight is at hand transposed: a product of few rows would otherwise spend as much time
/// on arranging the weight as on multiplying with it.
#[derive(Debug)]
pub struct StepLinear {
    layer: Linear,
    relu: bool,
    trace: Arc<Mutex<Trace>>,
    chain: RefCell<Chain>,
}

/// Where the steps are.
#[derive(Debug, Default)]
struct Chain {
    steps: usize,
    last: Option<Tensor>,
    transposed: Option<Arc<Vec<f32>>>,
}

#[derive(Debug, Default)]
struct Trace {
    order: Order,
    inputs: Vec<Tensor>,
    grads: Vec<Tensor>,
}

impl StepLinear {
    /// The layer, before the first step.
    pub fn new(layer: Linear) -> Self {
        Self { layer, relu: false, trace: Arc::default(), chain: RefCell::default() }
    }

    /// The layer with a ReLU behind it, before the first step.
    pub fn with_relu(layer: Linear) -> Self {
        Self { relu: true, ..Self::new(layer) }
    }

    /// The next step: x·Wᵀ + b over the last dimension of `x`, through the ReLU if there is one.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (weight, bias) = self.layer.parts();
        if !weight.device().is_cpu() {
            let y = self.layer.forward(x)?;
            return if self.relu { y.relu() } else { Ok(y) };
        }
        let (weight, bias) = (weight.contiguous()?, bias.contiguous()?);
        let mut dims = x.dims().to_vec();
        let inputs = dims.pop().unwrap_or(0);
        let rows = x.reshape((dims.iter().product::<usize>(), inputs))?.contiguous()?;
        let chain = &mut *self.chain.borrow_mut();
        if chain.steps == 1 {
            chain.transposed = Some(Arc::new(transposed(&weight)?));
        }
        let node = Affine {
            t: chain.steps,
            weight: weight.detach(),
            transposed: chain.transposed.clone(),
            bias: bias.detach(),
            relu: self.relu,
            trace: self.trace.clone(),
        };
        let y = match &chain.last {
            None => rows.apply_op3(&weight, &bias, node)?,
            Some(last) => rows.apply_op2(last, node)?,
        };
        chain.steps += 1;
        chain.last = Some(y.clone());
        dims.push(bias.dim(0)?);
        y.reshape(dims)
    }
}

/// A matrix `[out, in]` as `[in, out]`, by squares that fit the cache.
fn transposed(weight: &Tensor) -> Result<Vec<f32>> {
    const SIDE: usize = 16;
    let (rows, columns) = weight.dims2()?;
    let mut out = vec![0f32; rows * columns];
    with(weight, |w| {
        for (from_row, from_column) in
            (0..rows).step_by(SIDE).flat_map(|r| (0..columns).step_by(SIDE).map(move |c| (r, c)))
        {
            for c in from_column..columns.min(from_column + SIDE) {
                for r in from_row..rows.min(from_row + SIDE) {
                    out[c * rows + r] = w[r * columns + c];
                }
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// The node of step `t`: (x, W, b) -> x·Wᵀ + b at the first, (x, step before) -> the same at the others.
struct Affine {
    t: usize,
    weight: Tensor,
    transposed: Option<Arc<Vec<f32>>>,
    bias: Tensor,
    relu: bool,
    trace: Arc<Mutex<Trace>>,
}

impl Affine {
    fn forward(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let ((n, inputs), (outputs, width)) = (layout.shape().dims2()?, self.weight.dims2()?);
        if width != inputs || self.bias.dims() != [outputs] {
            bail!("linear: x {:?}, weight {:?}, bias {:?} do not fit", layout.dims(), self.weight, self.bias)
        }
        let x = cpu_slice(x, layout)?;
        let mut y = with(&self.bias, |b| Ok(b.repeat(n)))?;
        match &self.transposed {
            Some(w) => gemm(n, outputs, inputs, &mut y, true, x, (inputs, 1), w, (outputs, 1)),
            None => with(&self.weight, |w| {
                gemm(n, outputs, inputs, &mut y, true, x, (inputs, 1), w, (1, inputs));
                Ok(())
            })?,
        }
        if self.relu {
            y.iter_mut().for_each(|y| *y = y.max(0.0));
        }
        Ok((CpuStorage::F32(y), (n, outputs).into()))
    }

    /// The gradient of x; at the first step also those of W and b.
    fn backward(&self, x: &Tensor, y: &Tensor, grad: &Tensor) -> Result<(Option<Tensor>, Option<[Tensor; 2]>)> {
        let grad = if self.relu {
            let passed = with(y, |y| {
                with(grad, |grad| Ok(y.iter().zip(grad).map(|(y, g)| if *y > 0.0 { *g } else { 0.0 }).collect()))
            })?;
            Tensor::from_vec::<_, f32>(passed, grad.shape(), grad.device())?
        } else {
            grad.contiguous()?.detach()
        };
        let dx = if x.track_op() { Some(grad.matmul(&self.weight)?) } else { None };
        let mut trace = self.trace.lock().unwrap();
        if trace.order.visit(self.t)? {
            trace.inputs.clear();
            trace.grads.clear();
        }
        trace.inputs.push(x.detach());
        trace.grads.push(grad);
        if self.t > 0 {
            return Ok((dx, None));
        }
        let inputs = Tensor::cat(&std::mem::take(&mut trace.inputs), 0)?;
        let grads = Tensor::cat(&std::mem::take(&mut trace.grads), 0)?;
        Ok((dx, Some([grads.t()?.matmul(&inputs)?, grads.sum(0)?])))
    }
}

impl CustomOp3 for Affine {
    fn name(&self) -> &'static str {
        "first step of a linear layer"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        layout: &Layout,
        _w: &CpuStorage,
        _: &Layout,
        _b: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward(x, layout)
    }

    fn bwd(
        &self,
        x: &Tensor,
        _w: &Tensor,
        _b: &Tensor,
        y: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (dx, rest) = self.backward(x, y, grad)?;
        let [dw, db] = rest.map_or([None, None], |all| all.map(Some));
        Ok((dx, dw, db))
    }
}

impl CustomOp2 for Affine {
    fn name(&self) -> &'static str {
        "step of a linear layer"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout, _last: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        self.forward(x, layout)
    }

    fn bwd(&self, x: &Tensor, last: &Tensor, y: &Tensor, grad: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok((self.backward(x, y, grad)?.0, Some(last.zeros_like()?)))
    }
}

/// A sequence `[T, N, …]` that a recurrence reads step by step.
pub struct Sequence {
    whole: Tensor,
    shared: Arc<Mutex<Gathered>>,
    steps: usize,
    last: Option<Tensor>,
}

#[derive(Default)]
struct Gathered {
    order: Order,
    grad: Vec<f32>,
}

impl Sequence {
    /// The sequence before its first step.
    pub fn new(whole: &Tensor) -> Result<Self> {
        Ok(Self { whole: whole.contiguous()?, shared: Arc::default(), steps: 0, last: None })
    }

    /// The next step, `[N, …]`.
    ///
    /// # Errors
    /// After the last one.
    pub fn take(&mut self) -> Result<Tensor> {
        let t = self.steps;
        self.steps += 1;
        if !self.whole.device().is_cpu() || !self.whole.track_op() {
            return self.whole.get(t);
        }
        let node = Take { t, whole: self.whole.detach(), shared: self.shared.clone() };
        let step = match &self.last {
            None => self.whole.apply_op1(node)?,
            Some(last) => last.apply_op1(node)?,
        };
        self.last = Some(step.clone());
        Ok(step)
    }
}

/// The node of step `t`: (sequence) -> its first step; (step before) -> a later one.
struct Take {
    t: usize,
    whole: Tensor,
    shared: Arc<Mutex<Gathered>>,
}

impl CustomOp1 for Take {
    fn name(&self) -> &'static str {
        "step of a sequence"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        let dims = self.whole.dims();
        if self.t >= dims[0] {
            bail!("step {} of a sequence of {}", self.t, dims[0])
        }
        let size = self.whole.elem_count() / dims[0];
        let step = with(&self.whole, |values| Ok(values[self.t * size..(self.t + 1) * size].to_vec()))?;
        Ok((CpuStorage::F32(step), dims[1..].into()))
    }

    fn bwd(&self, before: &Tensor, _step: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let mut shared = self.shared.lock().unwrap();
        if shared.order.visit(self.t)? {
            shared.grad = vec![0.0; self.whole.elem_count()];
        }
        let size = grad.elem_count();
        with(grad, |grad| {
            shared.grad[self.t * size..(self.t + 1) * size].copy_from_slice(grad);
            Ok(())
        })?;
        if self.t > 0 {
            return Ok(Some(before.zeros_like()?));
        }
        Ok(Some(Tensor::from_vec(std::mem::take(&mut shared.grad), self.whole.shape(), self.whole.device())?))
    }
}
