//! Bounds of what a model is made for. Sizes come out of files and settings, and everything that is made of them is made
//! at once: a damaged or made-up number must be told before memory is asked for.

use candle_core::{Result, bail};

/// Rows of an embedding at most.
pub(crate) const MOST_ROWS: usize = 1 << 21;

/// Numbers of a row at most.
pub(crate) const MOST_WIDE: usize = 4096;

/// Refuses a size of zero or above `most`.
pub(crate) fn within(name: &str, size: usize, most: usize) -> Result<()> {
    if !(1..=most).contains(&size) {
        bail!("a model's size `{name}` lies between 1 and {most}, not at {size}")
    }
    Ok(())
}
