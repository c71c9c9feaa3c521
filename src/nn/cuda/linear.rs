//! Linear layers, with tanh where asked, as one node: x·Wᵀ + b.

use super::*;
use candle_core::{CpuStorage, CustomOp3};

/// `x·Wᵀ + b` for `x` `[n, in]`, through tanh with `tanh`. With `fixed_row` the first row of x gets no gradient (the padding row
/// of an embedding, which is zero and stays so).
pub fn linear(x: &Tensor, weight: &Tensor, bias: &Tensor, tanh: bool, fixed_row: bool) -> Result<Tensor> {
    x.contiguous()?.apply_op3(&weight.contiguous()?, &bias.contiguous()?, Linear { tanh, fixed_row })
}

struct Linear {
    tanh: bool,
    fixed_row: bool,
}

/// `y[n, m] = Σ x_i[n, k]·W_iᵀ + b`, through tanh if asked; every W_i is `[m, k]`.
pub(crate) fn forward(
    device: &CudaDevice,
    (n, m, k): (usize, usize, usize),
    parts: &[(Mat, Mat)],
    bias: u64,
    y: Mat,
    tanh: bool,
) -> Result<()> {
    for (i, (x, w)) in parts.iter().enumerate() {
        product(device, (n, m, k), *x, w.t(), if i == 0 { 0.0 } else { 1.0 }, y, 1)?;
    }
    let args =
        [Arg::Address(y.at), Arg::Address(bias), Arg::Int(n as i32), Arg::Int(m as i32), Arg::Int(i32::from(tanh))];
    launch(device, "bias_act", each(n * m), &args)
}

/// `out = g·(1 − y²)` for `n` numbers; `out` may be `g`.
pub(crate) fn through_tanh(device: &CudaDevice, g: u64, y: u64, out: u64, n: usize) -> Result<()> {
    launch(device, "tanh_bwd", each(n), &[Arg::Address(g), Arg::Address(y), Arg::Address(out), Arg::Int(n as i32)])
}

/// `dx[n, k] = beta·dx + g[n, m]·W[m, k]`.
pub(crate) fn input_gradient(
    device: &CudaDevice,
    (n, m, k): (usize, usize, usize),
    g: u64,
    w: Mat,
    beta: f32,
    dx: Mat,
) -> Result<()> {
    product(device, (n, k, m), Mat::new(g, m), w, beta, dx, 1)
}

/// `dW[m, k] = g[n, m]ᵀ·x[n, k]`.
pub(crate) fn weight_gradient(
    device: &CudaDevice,
    (n, m, k): (usize, usize, usize),
    g: u64,
    x: Mat,
    dw: Mat,
) -> Result<()> {
    product(device, (m, k, n), Mat::new(g, m).t(), x, 0.0, dw, 1)
}

/// `db[m]` = column sums of `g[n, m]`, by way of `sums` (`parts(n)·m` numbers).
pub(crate) fn bias_gradient(device: &CudaDevice, (n, m): (usize, usize), g: u64, sums: u64, db: u64) -> Result<()> {
    let p = parts(n);
    let grid = ((m.div_ceil(32) as u32, p as u32), 256, 0);
    launch(
        device,
        "column_parts",
        grid,
        &[Arg::Address(g), Arg::Address(sums), Arg::Int(n as i32), Arg::Int(m as i32)],
    )?;
    launch(
        device,
        "column_sums",
        each(m),
        &[Arg::Address(sums), Arg::Address(db), Arg::Int(p as i32), Arg::Int(m as i32)],
    )
}

/// Rows are summed in so many parts.
pub(crate) fn parts(n: usize) -> usize {
    (n / 64).clamp(1, 32)
}

impl CustomOp3 for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        bail!("this operation is the GPU's")
    }

    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        lx: &Layout,
        w: &CudaStorage,
        lw: &Layout,
        b: &CudaStorage,
        lb: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let device = x.device().clone();
        let ((n, k), (m, inputs)) = (lx.shape().dims2()?, lw.shape().dims2()?);
        if inputs != k || lb.dims() != [m] {
            bail!("linear: x {:?}, weight {:?}, bias {:?} do not fit", lx.shape(), lw.shape(), lb.shape())
        }
        let out = buffer(&device, n * m)?;
        let y = Mat::new(of(&out), m);
        let (x, w) = (Mat::new(address(x, lx)?, k), Mat::new(address(w, lw)?, k));
        forward(&device, (n, m, k), &[(x, w)], address(b, lb)?, y, self.tanh)?;
        Ok((storage(out, &device), (n, m).into()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        _b: &Tensor,
        y: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let device = device_of(x)?;
        let ((n, k), m) = (x.dims2()?, w.dim(0)?);
        let grad = grad.contiguous()?;
        let through = if self.tanh { Some(buffer(&device, n * m)?) } else { None };
        let mut g = at(&grad)?;
        if let Some(through) = &through {
            let to = of(through);
            through_tanh(&device, g, at(y)?, to, n * m)?;
            g = to;
        }
        let (d_x, d_w, d_b) = (buffer(&device, n * k)?, buffer(&device, m * k)?, buffer(&device, m)?);
        let sums = buffer(&device, parts(n) * m)?;
        let dx = of(&d_x);
        let (x, w) = (Mat::new(at(x)?, k), Mat::new(at(w)?, k));
        input_gradient(&device, (n, m, k), g, w, 0.0, Mat::new(dx, k))?;
        if self.fixed_row {
            zero(&device, dx, k)?;
        }
        weight_gradient(&device, (n, m, k), g, x, Mat::new(of(&d_w), k))?;
        bias_gradient(&device, (n, m), g, of(&sums), of(&d_b))?;
        Ok((Some(tensor(d_x, &device, (n, k))), Some(tensor(d_w, &device, (m, k))), Some(tensor(d_b, &device, m))))
    }
}
