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
    parts: &[(Mat<'_>, Mat<'_>)],
    bias: DeviceSlice<'_, f32>,
    y: Mat<'_>,
    tanh: bool,
) -> Result<()> {
    for (i, (x, w)) in parts.iter().enumerate() {
        product(device, (n, m, k), *x, w.t(), if i == 0 { 0.0 } else { 1.0 }, y, 1)?;
    }
    bias.holding(m, "a bias")?;
    let args = [Arg::from(y.at), Arg::from(bias), Arg::Int(n as i32), Arg::Int(m as i32), Arg::Int(i32::from(tanh))];
    launch(device, "bias_act", each(n * m), &args)
}

/// `out = g·(1 − y²)` for `n` numbers; `out` may be `g`.
pub(crate) fn through_tanh(
    device: &CudaDevice,
    g: DeviceSlice<'_, f32>,
    y: DeviceSlice<'_, f32>,
    out: DeviceSlice<'_, f32>,
    n: usize,
) -> Result<()> {
    let [g, y, out] = [g, y, out].map(|slice| slice.holding(n, "a gradient through tanh").map(Arg::from));
    launch(device, "tanh_bwd", each(n), &[g?, y?, out?, Arg::Int(n as i32)])
}

/// `dx[n, k] = beta·dx + g[n, m]·W[m, k]`.
pub(crate) fn input_gradient(
    device: &CudaDevice,
    (n, m, k): (usize, usize, usize),
    g: DeviceSlice<'_, f32>,
    w: Mat<'_>,
    beta: f32,
    dx: Mat<'_>,
) -> Result<()> {
    product(device, (n, k, m), Mat::new(g, m), w, beta, dx, 1)
}

/// `dW[m, k] = g[n, m]ᵀ·x[n, k]`.
pub(crate) fn weight_gradient(
    device: &CudaDevice,
    (n, m, k): (usize, usize, usize),
    g: DeviceSlice<'_, f32>,
    x: Mat<'_>,
    dw: Mat<'_>,
) -> Result<()> {
    product(device, (m, k, n), Mat::new(g, m).t(), x, 0.0, dw, 1)
}

/// `db[m]` = column sums of `g[n, m]`, by way of `sums` (`parts(n)·m` numbers).
pub(crate) fn bias_gradient(
    device: &CudaDevice,
    (n, m): (usize, usize),
    g: DeviceSlice<'_, f32>,
    sums: DeviceSlice<'_, f32>,
    db: DeviceSlice<'_, f32>,
) -> Result<()> {
    let p = parts(n);
    g.holding(n * m, "the gradient of a linear layer")?;
    sums.holding(p * m, "the sums of parts")?;
    db.holding(m, "the gradient of a bias")?;
    let grid = ((m.div_ceil(32) as u32, p as u32), 256, 0);
    launch(device, "column_parts", grid, &[Arg::from(g), Arg::from(sums), Arg::Int(n as i32), Arg::Int(m as i32)])?;
    launch(device, "column_sums", each(m), &[Arg::from(sums), Arg::from(db), Arg::Int(p as i32), Arg::Int(m as i32)])
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
        let y = Mat::new(out.slice(), m);
        let (x, w) = (Mat::new(DeviceSlice::of_storage(x, lx)?, k), Mat::new(DeviceSlice::of_storage(w, lw)?, k));
        forward(&device, (n, m, k), &[(x, w)], DeviceSlice::of_storage(b, lb)?, y, self.tanh)?;
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
        let mut g = DeviceSlice::of(&grad)?;
        if let Some(through) = &through {
            let to = through.slice();
            through_tanh(&device, g, DeviceSlice::of(y)?, to, n * m)?;
            g = to;
        }
        let (d_x, d_w, d_b) = (buffer(&device, n * k)?, buffer(&device, m * k)?, buffer(&device, m)?);
        let sums = buffer(&device, parts(n) * m)?;
        let dx = d_x.slice();
        let (x, w) = (Mat::new(DeviceSlice::of(x)?, k), Mat::new(DeviceSlice::of(w)?, k));
        input_gradient(&device, (n, m, k), g, w, 0.0, Mat::new(dx, k))?;
        if self.fixed_row {
            zero(&device, dx.part(0, k))?;
        }
        weight_gradient(&device, (n, m, k), g, x, Mat::new(d_w.slice(), k))?;
        bias_gradient(&device, (n, m), g, sums.slice(), d_b.slice())?;
        Ok((Some(tensor(d_x, &device, (n, k))), Some(tensor(d_w, &device, (m, k))), Some(tensor(d_b, &device, m))))
    }
}
