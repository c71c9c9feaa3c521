//! Memory of a pass over a model, given out from the beginning each time: a captured graph finds the same places again, and
//! no memory is asked for on the way.

use super::*;
use std::cell::{Cell, RefCell};

/// Numbers of a block: 64 MiB.
const BLOCK: usize = 16 << 20;

/// The memory.
pub struct Arena {
    device: CudaDevice,
    block: usize,
    blocks: RefCell<Vec<(u64, usize, Floats)>>,
    at: Cell<(usize, usize)>,
}

impl Arena {
    /// An empty one.
    pub fn new(device: &CudaDevice) -> Self {
        Self { device: device.clone(), block: BLOCK, blocks: RefCell::default(), at: Cell::new((0, 0)) }
    }

    /// An empty one for little.
    pub fn small(device: &CudaDevice) -> Self {
        Self { block: BLOCK / 8, ..Self::new(device) }
    }

    /// Where it is.
    pub(crate) fn device(&self) -> &CudaDevice {
        &self.device
    }

    /// From the beginning.
    pub fn reset(&self) {
        self.at.set((0, 0));
    }

    /// Room for `n` numbers.
    pub(crate) fn take(&self, n: usize) -> Result<u64> {
        let n = n.next_multiple_of(64);
        let (mut block, mut used) = self.at.get();
        loop {
            let mut blocks = self.blocks.borrow_mut();
            if block == blocks.len() {
                let size = n.max(self.block);
                let slice = buffer(&self.device, size)?;
                blocks.push((of(&slice), size, slice));
            }
            let (address, size, _) = &blocks[block];
            if used + n <= *size {
                self.at.set((block, used + n));
                return Ok(address + 4 * used as u64);
            }
            (block, used) = (block + 1, 0);
        }
    }

    /// Sets all that was given out since the beginning to zero.
    pub(crate) fn clear(&self) -> Result<()> {
        let (last, used) = self.at.get();
        for (i, (address, size, _)) in self.blocks.borrow().iter().enumerate().take(last + 1) {
            zero(&self.device, *address, if i == last { used } else { *size })?;
        }
        Ok(())
    }
}
