//! Products of weights with weights, which make layers that follow each other one: gathered, made in one launch, in full float32.

use super::operands::Var;
use super::*;

/// Products of one launch; the same number as in `transformer.cu`.
const FOLDED: usize = 16;

/// `C[m, n] = Σ A[m, k]·B[k, n] (+ plus[n])`, each operand by its address and the numbers between neighbours in both directions.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FoldedProduct {
    a: u64,
    b: u64,
    c: u64,
    plus: u64,
    a_m: i32,
    a_k: i32,
    b_k: i32,
    b_n: i32,
    ldc: i32,
    m: i32,
    n: i32,
    k: i32,
}

impl FoldedProduct {
    /// To the first m rows and n columns of `c`.
    pub fn new(a: (u64, usize, usize), b: (u64, usize, usize), (m, n, k): (usize, usize, usize), c: Var) -> Self {
        debug_assert!(c.rows == m && c.cols == n);
        let [a_m, a_k, b_k, b_n, ldc, m, n, k] = [a.1, a.2, b.1, b.2, c.ld, m, n, k].map(|x| x as i32);
        Self { a: a.0, b: b.0, c: c.v, plus: 0, a_m, a_k, b_k, b_n, ldc, m, n, k }
    }

    /// With a row added to all.
    pub fn plus(self, row: u64) -> Self {
        Self { plus: row, ..self }
    }
}

#[repr(C)]
struct Together {
    all: [FoldedProduct; FOLDED],
}

const _: () = assert!(size_of::<FoldedProduct>() == 64 && size_of::<Together>() == 64 * FOLDED);

// SAFETY: plain numbers in C layout, the same as the kernel's struct.
unsafe impl DeviceRepr for Together {}

/// Makes all, none of which needs another.
pub(super) fn make(device: &CudaDevice, all: &[FoldedProduct]) -> Result<()> {
    for some in all.chunks(FOLDED) {
        let mut together = Together { all: [FoldedProduct::default(); FOLDED] };
        together.all[..some.len()].copy_from_slice(some);
        let tiles = |c: &FoldedProduct| (c.m as u32).div_ceil(32) * (c.n as u32).div_ceil(32);
        let most = some.iter().map(tiles).max().unwrap_or(0);
        let grid = ((most, some.len() as u32), 256, 0);
        launch_with(device, "fold_weights", grid, Some(&together), &[], || format!("fold_weights of {}", some.len()))?;
    }
    Ok(())
}
