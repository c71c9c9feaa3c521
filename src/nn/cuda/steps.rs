//! Operations of a model's steps gathered into programs, which `steps.cu` goes through in one launch each: waiting for a
//! cluster of blocks takes a fraction of the time that launching the next kernel does.

use super::operands::Ways;
use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Operations of a program; as in `steps.cu`.
const OPS: usize = 96;

/// Blocks of a cluster.
const BLOCKS: usize = 16;

/// Whether operations are gathered (for comparisons).
static ON: AtomicBool = AtomicBool::new(true);

/// Gathers the operations of steps into programs, or launches a kernel for each. The results are the same, bit by bit.
pub fn set_programs(on: bool) {
    ON.store(on, Ordering::Relaxed);
}

/// What an operation does; the order is that of `steps.cu`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Product,
    Norm,
    NormBack,
    Attend,
    AttendBack,
    Look,
    LookBack,
    Recall,
    RecallBack,
    Gate,
    GateBack,
    ReluBack,
    Scale,
    Walk,
    Word,
    Pick,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Op {
    kind: i32,
    sizes: [i32; 13],
    places: [u64; 9],
}

#[repr(C)]
struct Program {
    count: i32,
    rows: i32,
    tile: i32,
    unused: i32,
    ways: Ways,
    ops: [Op; OPS],
}

// Safety: plain numbers in C layout, the same as the kernel's struct.
unsafe impl DeviceRepr for Program {}

/// Operations on the same rows, waiting to be launched.
pub(super) struct Steps {
    /// Rows of every operation.
    pub rows: usize,
    ways: Option<Ways>,
    ops: Vec<Op>,
}

impl Steps {
    /// None yet.
    pub fn new(rows: usize) -> Self {
        Self { rows, ways: None, ops: Vec::new() }
    }

    /// Adds one. Programs know one world's `ways`.
    pub fn add(
        &mut self,
        device: &CudaDevice,
        kind: Kind,
        sizes: &[i32],
        places: &[u64],
        ways: Option<Ways>,
    ) -> Result<()> {
        if self.ops.len() == OPS {
            self.launch(device)?;
        }
        let mut op = Op { kind: kind as i32, sizes: [0; 13], places: [0; 9] };
        op.sizes[..sizes.len()].copy_from_slice(sizes);
        op.places[..places.len()].copy_from_slice(places);
        self.ops.push(op);
        self.ways = ways.or(self.ways);
        Ok(())
    }

    /// Launches what there is.
    pub fn launch(&mut self, device: &CudaDevice) -> Result<()> {
        if self.ops.is_empty() {
            return Ok(());
        }
        let none = Op { kind: 0, sizes: [0; 13], places: [0; 9] };
        // Few rows are shared among more clusters, so that each has less to do.
        let tile = if self.rows <= 64 { 16 } else { 32 };
        let mut program = Program {
            count: self.ops.len() as i32,
            rows: self.rows as i32,
            tile: tile as i32,
            unused: 0,
            ways: self.ways.unwrap_or_default(),
            ops: [none; OPS],
        };
        program.ops[..self.ops.len()].copy_from_slice(&self.ops);
        self.ops.clear();
        let grid = (((self.rows.div_ceil(tile) * BLOCKS) as u32, 1), 256, 0);
        launch_with(device, "steps_16", grid, Some(&program), &[], || {
            format!("program of {} x {} rows", program.count, program.rows)
        })
    }
}

/// Whether steps of `rows` rows can be gathered: on cards with clusters, where products are those of `small.cu`.
pub(super) fn possible(device: &CudaDevice, rows: usize) -> Result<bool> {
    Ok(ON.load(Ordering::Relaxed) && major(device)? >= 9 && few(rows))
}
