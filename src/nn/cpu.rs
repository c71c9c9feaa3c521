//! Common parts of the CPU's own kernels: access to values, matrix products, inner products of rows.

use crate::nn::sharing;
use candle_core::{CpuStorage, Layout, Result, Storage, Tensor, bail};
use rayon::prelude::*;

/// The values of a contiguous tensor.
pub(crate) fn cpu_slice<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((from, to)) => Ok(&storage.as_slice::<f32>()?[from..to]),
        None => bail!("expected a contiguous tensor"),
    }
}

/// Row-major `dst[m, n] = keep·dst + op(a)·op(b)`; strides are (row, column).
#[allow(clippy::too_many_arguments)]
pub(crate) fn gemm(
    m: usize,
    n: usize,
    k: usize,
    dst: &mut [f32],
    keep: bool,
    a: &[f32],
    a_rc: (usize, usize),
    b: &[f32],
    b_rc: (usize, usize),
) {
    assert!(dst.len() >= m * n && a.len() >= m * k && b.len() >= k * n);
    let threads = sharing::now();
    let parallelism =
        if threads > 1 && m * n * k > 1 << 16 { gemm::Parallelism::Rayon(threads) } else { gemm::Parallelism::None };
    // Safety: the assertion above bounds every access, since each operand is dense in one of its two directions.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            dst.as_mut_ptr(),
            1,
            n as isize,
            keep,
            a.as_ptr(),
            a_rc.1 as isize,
            a_rc.0 as isize,
            b.as_ptr(),
            b_rc.1 as isize,
            b_rc.0 as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// Lends the values of a tensor that is on the CPU.
pub(crate) fn with<R>(t: &Tensor, f: impl FnOnce(&[f32]) -> Result<R>) -> Result<R> {
    let t = t.contiguous()?;
    let (guard, layout) = t.storage_and_layout();
    match &*guard {
        Storage::Cpu(storage) => f(cpu_slice(storage, layout)?),
        _ => bail!("expected a tensor on the CPU"),
    }
}

/// Numbers to be read below which handing rows to other threads costs more than it saves.
const WORTH_SHARING: usize = 1 << 17;

/// Calls `f(i, row i of a, row i of b)` for all rows of `a`, whose rows have `widths[0]` numbers, and `b`, whose have
/// `widths[1]`; on several threads where `work`, the numbers that are read in all, is worth it.
pub(crate) fn for_rows(
    a: &mut [f32],
    b: &mut [f32],
    widths: [usize; 2],
    work: usize,
    f: impl Fn(usize, &mut [f32], &mut [f32]) + Sync,
) {
    if work < WORTH_SHARING {
        let rows = a.chunks_mut(widths[0]).zip(b.chunks_mut(widths[1]));
        return rows.enumerate().for_each(|(i, (a, b))| f(i, a, b));
    }
    let rows = a.par_chunks_mut(widths[0]).zip(b.par_chunks_mut(widths[1]));
    rows.enumerate().with_min_len(sharing::fewest()).for_each(|(i, (a, b))| f(i, a, b));
}

/// Whether loops compiled for 256-bit vectors run here.
pub(crate) fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Independent sums, so that the compiler may use vectors: a single sum would have to keep its order.
const LANES: usize = 16;

#[inline(always)]
fn dot_lanes(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            sums[i] += a[i] * b[i];
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    sums[0] + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

#[inline(always)]
fn add_scaled_loop(y: &mut [f32], a: f32, x: &[f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_avx2(a: &[f32], b: &[f32]) -> f32 {
    dot_lanes(a, b)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn add_scaled_avx2(y: &mut [f32], a: f32, x: &[f32]) {
    add_scaled_loop(y, a, x)
}

/// Σ aᵢ·bᵢ.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // Safety: the features are there.
        return unsafe { dot_avx2(a, b) };
    }
    dot_lanes(a, b)
}

/// y ← y + a·x.
pub(crate) fn add_scaled(y: &mut [f32], a: f32, x: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // Safety: the features are there.
        return unsafe { add_scaled_avx2(y, a, x) };
    }
    add_scaled_loop(y, a, x)
}

/// x ← softmax(x).
pub(crate) fn softmax(x: &mut [f32]) {
    let top = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for x in x.iter_mut() {
        *x = crate::nn::fast_math::exp(*x - top);
        total += *x;
    }
    for x in x.iter_mut() {
        *x /= total;
    }
}

/// The gradient of scores from softmax weights `p` and their gradient: d ← p·(d − Σ p·d).
///
/// In float64 and over the weights' own sum: in float32 they do not sum to one exactly, and where one of them is nearly one
/// the difference would lose its digits.
pub(crate) fn softmax_backward(p: &[f32], d: &mut [f32]) {
    let (mut sum, mut total) = (0f64, 0f64);
    for (p, d) in p.iter().zip(d.iter()) {
        sum += f64::from(*p) * f64::from(*d);
        total += f64::from(*p);
    }
    let mean = sum / total;
    for (d, p) in d.iter_mut().zip(p) {
        *d = (f64::from(*p) * (f64::from(*d) - mean)) as f32;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn inner_products_of_any_length_are_those_of_plain_sums() {
        for n in [0, 1, 15, 16, 17, 64, 75] {
            let a: Vec<f32> = (0..n).map(|i| (i as f32 * 0.7).sin()).collect();
            let b: Vec<f32> = (0..n).map(|i| (i as f32 * 1.3).cos()).collect();
            let exact: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            assert!((f64::from(super::dot(&a, &b)) - exact).abs() < 1e-5, "{n}");
            let mut y = b.clone();
            super::add_scaled(&mut y, -2.0, &a);
            assert!(y.iter().zip(&a).zip(&b).all(|((y, a), b)| (y - (b - 2.0 * a)).abs() < 1e-6), "{n}");
        }
    }
}
