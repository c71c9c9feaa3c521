//! What models that go step by step share on the CPU: layers that meet one weight at every step, and sequences that are
//! taken apart into steps.
//!
//! Candle adds up gradients by whole tensors. A weight that is used at each of T steps would get T gradients of its own
//! size, and a sequence T gradients of its full length, almost all zeros. The nodes here collect the parts instead and
//! hand on the sum once, when the backward pass comes to the first step. That is right where the steps are a *chain*:
//! step t + 1 reads what step t gave, so the backward pass meets them in the order T − 1, …, 0. [`Order`] refuses any
//! other order, so that a gradient is never silently wrong.

use crate::nn::cpu::{cpu_slice, gemm};
use crate::nn::layers::{Grad, Linear};
use candle_core::{CpuStorage, CustomOp1, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor, bail};
use std::cell::Cell;
use std::sync::{Arc, Mutex};

/// The place of a backward pass in a chain of steps.
#[derive(Debug, Default)]
pub struct Order {
    last: Option<usize>,
}

impl Order {
    /// The pass comes to step `t`: whether this is the first visit of a pass.
    ///
    /// # Errors
    /// When the step before was not `t + 1`.
    pub fn visit(&mut self, t: usize) -> Result<bool> {
        let begins = match self.last {
            None => true,
            Some(last) if last == t + 1 => false,
            Some(last) => bail!("the backward pass came from step {last} to step {t}: the steps are not a chain"),
        };
        self.last = if t == 0 { None } else { Some(t) };
        Ok(begins)
    }
}

/// A Linear layer that is used once at every step of one chain.
#[derive(Debug)]
pub struct StepLinear {
    layer: Linear,
    steps: Cell<usize>,
    trace: Option<Arc<Mutex<Trace>>>,
}

#[derive(Debug, Default)]
struct Trace {
    order: Order,
    inputs: Vec<Tensor>,
    grads: Vec<Tensor>,
}

impl StepLinear {
    /// The layer, before the first step.
    pub fn new(layer: Linear, grad: Grad) -> Self {
        let own = grad == Grad::On && layer.parts().0.device().is_cpu();
        Self { layer, steps: Cell::new(0), trace: own.then(Arc::default) }
    }

    /// The next step: x·Wᵀ + b over the last dimension of `x`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let Some(trace) = &self.trace else { return self.layer.forward(x) };
        let (weight, bias) = self.layer.parts();
        let mut dims = x.dims().to_vec();
        let inputs = dims.pop().unwrap_or(0);
        let rows = x.reshape((dims.iter().product::<usize>(), inputs))?.contiguous()?;
        let t = self.steps.replace(self.steps.get() + 1);
        let y = rows.apply_op3(&weight.contiguous()?, &bias.contiguous()?, Affine { t, trace: trace.clone() })?;
        dims.push(bias.dim(0)?);
        y.reshape(dims)
    }
}

/// The node (x, W, b) -> x·Wᵀ + b of step `t`.
struct Affine {
    t: usize,
    trace: Arc<Mutex<Trace>>,
}

impl CustomOp3 for Affine {
    fn name(&self) -> &'static str {
        "step of a linear layer"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        w: &CpuStorage,
        lw: &Layout,
        b: &CpuStorage,
        lb: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let ((n, inputs), (outputs, width)) = (lx.shape().dims2()?, lw.shape().dims2()?);
        let (x, w, b) = (cpu_slice(x, lx)?, cpu_slice(w, lw)?, cpu_slice(b, lb)?);
        if width != inputs || b.len() != outputs {
            bail!("linear: x {:?}, weight {:?}, bias {:?} do not fit", lx.dims(), lw.dims(), lb.dims())
        }
        let mut y = b.repeat(n);
        gemm(n, outputs, inputs, &mut y, true, x, (inputs, 1), w, (1, inputs));
        Ok((CpuStorage::F32(y), (n, outputs).into()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        _b: &Tensor,
        _y: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let grad = grad.contiguous()?.detach();
        let dx = if x.track_op() { Some(grad.matmul(&w.detach())?) } else { None };
        let mut trace = self.trace.lock().unwrap();
        if trace.order.visit(self.t)? {
            trace.inputs.clear();
            trace.grads.clear();
        }
        trace.inputs.push(x.detach());
        trace.grads.push(grad);
        if self.t > 0 {
            return Ok((dx, None, None));
        }
        let inputs = Tensor::cat(&std::mem::take(&mut trace.inputs), 0)?;
        let grads = Tensor::cat(&std::mem::take(&mut trace.grads), 0)?;
        Ok((dx, Some(grads.t()?.matmul(&inputs)?), Some(grads.sum(0)?)))
    }
}

/// A sequence `[T, N, …]` that a chain reads step by step.
pub struct Sequence {
    whole: Tensor,
    shared: Arc<Mutex<Gathered>>,
}

#[derive(Default)]
struct Gathered {
    order: Order,
    grad: Vec<f32>,
}

impl Sequence {
    /// The sequence before its first step.
    pub fn new(whole: &Tensor) -> Result<Self> {
        Ok(Self { whole: whole.contiguous()?, shared: Arc::default() })
    }

    /// Step `t`, `[N, …]`. `after` is something that step t − 1 of the chain gave (nothing at step 0); its values play no
    /// part.
    pub fn get(&self, t: usize, after: Option<&Tensor>) -> Result<Tensor> {
        if !self.whole.device().is_cpu() || !self.whole.track_op() {
            return self.whole.get(t);
        }
        let take = Take { t, shared: self.shared.clone() };
        match after {
            None => self.whole.apply_op1(take),
            Some(after) => self.whole.apply_op2(after, take),
        }
    }
}

struct Take {
    t: usize,
    shared: Arc<Mutex<Gathered>>,
}

impl Take {
    fn forward(&self, whole: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (values, dims) = (cpu_slice(whole, layout)?, layout.dims());
        if self.t >= dims[0] {
            bail!("step {} of a sequence of {}", self.t, dims[0])
        }
        let size = values.len() / dims[0];
        Ok((CpuStorage::F32(values[self.t * size..(self.t + 1) * size].to_vec()), dims[1..].into()))
    }

    fn backward(&self, whole: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let mut shared = self.shared.lock().unwrap();
        if shared.order.visit(self.t)? {
            shared.grad = vec![0.0; whole.elem_count()];
        }
        let size = grad.elem_count();
        crate::nn::cpu::with(grad, |grad| {
            shared.grad[self.t * size..(self.t + 1) * size].copy_from_slice(grad);
            Ok(())
        })?;
        if self.t > 0 {
            return Ok(None);
        }
        Ok(Some(Tensor::from_vec(std::mem::take(&mut shared.grad), whole.shape(), whole.device())?))
    }
}

impl CustomOp1 for Take {
    fn name(&self) -> &'static str {
        "first step of a sequence"
    }

    fn cpu_fwd(&self, whole: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        self.forward(whole, layout)
    }

    fn bwd(&self, whole: &Tensor, _step: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        self.backward(whole, grad)
    }
}

impl CustomOp2 for Take {
    fn name(&self) -> &'static str {
        "step of a sequence"
    }

    fn cpu_fwd(
        &self,
        whole: &CpuStorage,
        layout: &Layout,
        _after: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward(whole, layout)
    }

    fn bwd(
        &self,
        whole: &Tensor,
        _after: &Tensor,
        _step: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok((self.backward(whole, grad)?, None))
    }
}
