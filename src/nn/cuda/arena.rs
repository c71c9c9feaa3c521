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
    blocks: RefCell<Vec<Floats>>,
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

    /// Starts again at the beginning of the arena. Memory that was given out before is given out again, so nothing may borrow
    /// it any more.
    pub fn reset(&mut self) {
        self.at.set((0, 0));
    }

    /// Room for `n` numbers.
    pub(crate) fn take(&self, n: usize) -> Result<DeviceSlice<'_, f32>> {
        let room = n.next_multiple_of(64);
        let (mut block, mut used) = self.at.get();
        loop {
            let mut blocks = self.blocks.borrow_mut();
            if block == blocks.len() {
                blocks.push(buffer(&self.device, room.max(self.block))?);
            }
            // Blocks stay until the arena goes, so that slices can borrow the arena instead of its list.
            let slice = blocks[block].slice().resident();
            if used + room <= slice.len() {
                self.at.set((block, used + room));
                return Ok(slice.part(used, n));
            }
            (block, used) = (block + 1, 0);
        }
    }

    /// Sets all that was given out since the beginning to zero.
    pub(crate) fn clear(&self) -> Result<()> {
        let (last, used) = self.at.get();
        for (i, block) in self.blocks.borrow().iter().enumerate().take(last + 1) {
            let slice = block.slice();
            zero(&self.device, if i == last { slice.part(0, used) } else { slice })?;
        }
        Ok(())
    }
}
