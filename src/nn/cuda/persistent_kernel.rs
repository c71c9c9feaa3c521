//! Operations of a model's steps gathered into programs, which `persistent_kernel.cu` goes through in one launch each: waiting for a
//! cluster of blocks takes a fraction of the time that launching the next kernel does.

use super::backend::Properties;
use super::operands::TransitionArgs;
use super::*;

/// Operations of a program; as in `persistent_kernel.cu`.
const OPS: usize = 96;

/// Blocks of a cluster.
const BLOCKS: usize = 16;

/// The kind of an operation; the order is that of `persistent_kernel.cu`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Product,
    Norm,
    NormBack,
    Attend,
    AttendBack,
    ViewAttention,
    ViewAttentionBack,
    SimilarityMemory,
    SimilarityMemoryBack,
    Gate,
    GateBack,
    ReluBack,
    EnvironmentStep,
    Pick,
}

impl Kind {
    /// Whether it is done forwards, backwards, or (`None`) in both directions.
    fn backwards(self) -> Option<bool> {
        use Kind::*;
        match self {
            Product => None,
            NormBack | AttendBack | ViewAttentionBack | SimilarityMemoryBack | GateBack | ReluBack => Some(true),
            Norm | Attend | ViewAttention | SimilarityMemory | Gate | EnvironmentStep | Pick => Some(false),
        }
    }
}

/// Numbers of shared memory; as in `persistent_kernel.cu`.
const WEIGHTS: usize = 88 * 272;
const SPACE: usize = 8 * 16 * 96;
const VIEWS: usize = 2 * 18 * 320;

/// Bytes of shared memory of a block.
const SHARED: usize = 4 * (WEIGHTS + SPACE + VIEWS);

/// Numbers of shared memory that an operation has.
pub(super) const ROOM: usize = SPACE;

/// Rows from which on a cluster has 32 of them: few rows are shared among more clusters, so that each has less to do.
const MANY: usize = 65;

/// A product `C[m, n] = A[m, k]·W` as programs make it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub sizes: (usize, usize, usize),
    /// Address, and numbers from row to row.
    pub a: (Address, usize),
    pub w: (Address, usize),
    pub c: (Address, usize),
    /// W is stored `[k, n]`.
    pub transposed: bool,
    /// It is added to what is there.
    pub add: bool,
    /// A row that it is added to, where there is one.
    pub bias: Address,
    /// 1: through ReLU. 2: `u − σ(product)·r` for A = `[u, r]`.
    pub after: usize,
    /// From which column on it goes to another matrix (0: none does).
    pub split: usize,
    pub other: (Address, usize),
}

impl Product {
    /// Columns that a block makes at once of weights in its shared memory; 0 where it cannot be done like this.
    fn columns(&self, backwards: bool) -> usize {
        let (m, n, k) = self.sizes;
        let cols = match n.div_ceil(BLOCKS) {
            0..=16 => 16,
            17..=32 => 32,
            33..=64 => 64,
            _ if self.transposed => 64,
            _ => 88,
        };
        let tile = if m >= MANY && !backwards { 32 } else { 16 };
        let places = [self.a.0, self.c.0, self.bias, self.other.0];
        let steps = self.a.1 | self.c.1 | self.other.1 | self.split | n | k;
        let bytes = if self.transposed { 8 } else { 16 };
        let whole = places.iter().all(|place| place.is_aligned(16))
            && steps.is_multiple_of(4)
            && self.w.0.is_aligned(bytes)
            && (4 * self.w.1 as u64).is_multiple_of(bytes);
        let room = if self.transposed { k.next_multiple_of(16) * (cols + 2) } else { cols * ((k + 15) / 32 * 32 + 16) };
        if whole && m.is_multiple_of(tile) && room <= WEIGHTS && (!self.transposed || backwards) { cols } else { 0 }
    }

    /// Whether a program of rows that go forwards can make it as one operation.
    pub fn is_one(&self) -> bool {
        (self.split == 0 && self.after < 2) || self.columns(false) > 0
    }

    /// As `persistent_kernel.cu` has it.
    pub fn parts(&self, backwards: bool) -> ([i32; 11], [Address; 5]) {
        let (_, n, k) = self.sizes;
        let flags =
            [self.transposed.into(), self.add.into(), self.after, self.columns(backwards), self.other.1, self.split];
        let sizes = [self.a.1, self.w.1, self.c.1, n, k].into_iter().chain(flags);
        let mut all = [0; 11];
        all.iter_mut().zip(sizes).for_each(|(to, x)| *to = x as i32);
        (all, [self.a.0, self.w.0, self.c.0, self.bias, self.other.0])
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Op {
    kind: i32,
    sizes: [i32; 13],
    places: [Address; 9],
}

#[repr(C)]
struct Program {
    count: i32,
    rows: i32,
    /// Operations lie at a multiple of 16.
    unused: [i32; 2],
    transitions: TransitionArgs,
    ops: [Op; OPS],
}

const _: () = assert!(size_of::<Op>() == 128 && size_of::<Program>() == 16 + 48 + 128 * OPS);
const _: () = assert!(std::mem::offset_of!(Program, ops) == 64);

// SAFETY: plain numbers in C layout, the same as the kernel's struct.
unsafe impl DeviceRepr for Program {}

/// Operations on the same rows, waiting to be launched.
pub(super) struct ProgramBuilder {
    /// Rows of every operation.
    pub rows: usize,
    /// Whether they go backwards.
    pub backwards: bool,
    transitions: Option<TransitionArgs>,
    ops: Vec<Op>,
}

impl ProgramBuilder {
    /// None yet.
    pub fn new(rows: usize, backwards: bool) -> Self {
        Self { rows, backwards, transitions: None, ops: Vec::new() }
    }

    /// The last operation is not needed by the next, which need not wait for it.
    pub fn apart(&mut self) {
        if let Some(op) = self.ops.last_mut() {
            op.sizes[12] = 1;
        }
    }

    /// Adds one. Programs know one world's `transitions`.
    pub fn add(
        &mut self,
        device: &CudaDevice,
        kind: Kind,
        sizes: &[i32],
        places: &[Address],
        transitions: Option<TransitionArgs>,
    ) -> Result<()> {
        if kind.backwards().is_some_and(|b| b != self.backwards) {
            candle_core::bail!("{kind:?} in a program that goes the other way")
        }
        if self.ops.len() == OPS {
            self.launch(device)?;
        }
        let mut op = Op { kind: kind as i32, sizes: [0; 13], places: [Address::default(); 9] };
        op.sizes[..sizes.len()].copy_from_slice(sizes);
        op.places[..places.len()].copy_from_slice(places);
        self.ops.push(op);
        self.transitions = transitions.or(self.transitions);
        Ok(())
    }

    /// Launches what there is.
    pub fn launch(&mut self, device: &CudaDevice) -> Result<()> {
        if self.ops.is_empty() {
            return Ok(());
        }
        let none = Op { kind: 0, sizes: [0; 13], places: [Address::default(); 9] };
        let many = self.rows >= MANY && !self.backwards;
        let mut program = Program {
            count: self.ops.len() as i32,
            rows: self.rows as i32,
            unused: [0; 2],
            transitions: self.transitions.unwrap_or_default(),
            ops: [none; OPS],
        };
        program.ops[..self.ops.len()].copy_from_slice(&self.ops);
        self.ops.clear();
        let blocks = self.rows.div_ceil(if many { 32 } else { 16 }) * BLOCKS;
        let grid = ((blocks as u32, 1), 256, SHARED as u32);
        let name = match (self.backwards, many) {
            (true, _) => "back_16",
            (_, true) => "many_16",
            _ => "few_16",
        };
        launch_with(device, name, grid, Some(&program), &[], || {
            format!("program of {} x {} rows", program.count, program.rows)
        })
    }
}

/// Whether steps of `rows` rows can be gathered: on cards with clusters and room enough, where products are those of `small_gemm.cu`.
pub(super) fn possible(device: &CudaDevice, rows: usize) -> Result<bool> {
    let options = options(device);
    let Properties { major, shared_memory, .. } = backend::properties(device)?;
    Ok(options.programs && few(options, rows) && major >= 9 && shared_memory >= SHARED + 1024)
}
