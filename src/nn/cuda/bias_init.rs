//! Biases that matrices begin with before products are added to them. They are gathered and written in one launch.

use super::*;

/// Rows that one launch fills; the same number as in `transformer.cu`.
const BIAS_INITS: usize = 32;

/// N rows of M: `y[n] = bias + time[n / of]`, either of which may be missing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BiasInit {
    /// Where it is written, rows `ld` numbers apart.
    pub y: Address,
    /// A row for all.
    pub bias: Address,
    /// A row for each `of` rows, `time_ld` numbers apart.
    pub time: Address,
    /// Numbers from row to row.
    pub ld: i32,
    /// Numbers from a row of `time` to the next.
    pub time_ld: i32,
    /// Rows that share a row of `time`.
    pub of: i32,
    /// Rows.
    pub rows: i32,
    /// Columns.
    pub cols: i32,
    /// Nothing.
    pub unused: i32,
}

#[repr(C)]
struct Together {
    all: [BiasInit; BIAS_INITS],
}

const _: () = assert!(size_of::<BiasInit>() == 48 && size_of::<Together>() == 48 * BIAS_INITS);

// SAFETY: plain numbers in C layout, the same as the kernel's struct.
unsafe impl DeviceRepr for Together {}

/// Writes all, in any order.
pub(super) fn write(device: &CudaDevice, inits: &[BiasInit]) -> Result<()> {
    for some in inits.chunks(BIAS_INITS) {
        let mut together = Together { all: [BiasInit::default(); BIAS_INITS] };
        together.all[..some.len()].copy_from_slice(some);
        let most = some.iter().map(|f| f.rows as usize * f.cols as usize).max().unwrap_or(0);
        let blocks = most.div_ceil(2048).clamp(1, 512) as u32;
        let grid = ((blocks, some.len() as u32), 256, 0);
        launch_with(device, "bias_init", grid, Some(&together), &[], || format!("bias_init of {}", some.len()))?;
    }
    Ok(())
}
