//! Products of weights with weights, which make layers that follow each other one: gathered, made in one launch, in full float32.

use super::operands::Var;
use super::*;

/// Products of one launch; the same number as in `transformer.cu`.
const FOLDED: usize = 16;

/// `C[m, n] = Σ A[m, k]·B[k, n] (+ plus[n])`, to a matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoldedProduct<'m> {
    a: Strided<'m>,
    b: Strided<'m>,
    c: Var<'m>,
    plus: Option<DeviceSlice<'m, f32>>,
    k: usize,
}

/// A matrix by the numbers between neighbours in both directions.
pub(crate) type Strided<'m> = (DeviceSlice<'m, f32>, usize, usize);

impl<'m> FoldedProduct<'m> {
    /// To `c`, whose rows and columns are m and n.
    ///
    /// # Errors
    /// When an operand is smaller or larger than the sizes say.
    pub fn new(a: Strided<'m>, b: Strided<'m>, (m, n, k): (usize, usize, usize), c: Var<'m>) -> Result<Self> {
        c.shaped(m, n, "a folded product")?;
        a.0.holding_strided(&[(m, a.1), (k, a.2)], "the first factor of a folded product")?;
        b.0.holding_strided(&[(k, b.1), (n, b.2)], "the second factor of a folded product")?;
        Ok(Self { a, b, c, plus: None, k })
    }

    /// With a row added to all.
    ///
    /// # Errors
    /// When it is too short.
    pub fn plus(self, row: DeviceSlice<'m, f32>) -> Result<Self> {
        Ok(Self { plus: Some(row.holding(self.c.cols, "a row that is added to a folded product")?), ..self })
    }

    fn args(&self) -> FoldedProductArgs {
        let ((a, a_m, a_k), (b, b_k, b_n), c) = (self.a, self.b, self.c);
        let [a_m, a_k, b_k, b_n, ldc, m, n, k] = [a_m, a_k, b_k, b_n, c.ld, c.rows, c.cols, self.k].map(|x| x as i32);
        let (a, b, c, plus) = (a.into(), b.into(), c.v.into(), self.plus.into());
        FoldedProductArgs { a, b, c, plus, a_m, a_k, b_k, b_n, ldc, m, n, k }
    }
}

/// [`FoldedProduct`] as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FoldedProductArgs {
    a: Address,
    b: Address,
    c: Address,
    plus: Address,
    a_m: i32,
    a_k: i32,
    b_k: i32,
    b_n: i32,
    ldc: i32,
    m: i32,
    n: i32,
    k: i32,
}

#[repr(C)]
struct Together {
    all: [FoldedProductArgs; FOLDED],
}

const _: () = assert!(size_of::<FoldedProductArgs>() == 64 && size_of::<Together>() == 64 * FOLDED);

// SAFETY: plain numbers in C layout, the same as the kernel's struct.
unsafe impl DeviceRepr for Together {}

/// Makes all, none of which needs another.
pub(super) fn make(device: &CudaDevice, all: &[FoldedProduct<'_>]) -> Result<()> {
    for some in all.chunks(FOLDED) {
        let mut together = Together { all: [FoldedProductArgs::default(); FOLDED] };
        together.all.iter_mut().zip(some).for_each(|(args, product)| *args = product.args());
        let tiles = |product: &FoldedProduct<'_>| (product.c.rows.div_ceil(32) * product.c.cols.div_ceil(32)) as u32;
        let most = some.iter().map(tiles).max().unwrap_or(0);
        let grid = ((most, some.len() as u32), 256, 0);
        launch_with(device, "fold_weights", grid, Some(&together), &[], || format!("fold_weights of {}", some.len()))?;
    }
    Ok(())
}
