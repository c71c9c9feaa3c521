//! The operands of [`super::tape`]: matrices with their gradients, weights, attentions, and the transitions between places. Each
//! has its memory as typed slices, whose sizes are checked where an operand is made, cut or used.

use super::*;

/// A matrix `[rows, cols]` with rows `ld` numbers apart, and its gradient (`None`: none is asked for).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Var<'m> {
    /// The values.
    pub v: DeviceSlice<'m, f32>,
    /// The gradient, laid out as the values are.
    pub d: Option<DeviceSlice<'m, f32>>,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Numbers from row to row.
    pub ld: usize,
    /// A row that a product is added to here (`None`: to what is here).
    pub bias: Option<DeviceSlice<'m, f32>>,
}

impl<'m> Var<'m> {
    /// A dense matrix without gradient.
    ///
    /// # Errors
    /// When the slice has another number of elements.
    pub fn dense(v: DeviceSlice<'m, f32>, rows: usize, cols: usize) -> Result<Self> {
        if v.len() != rows * cols {
            bail!("a matrix of {rows} x {cols} in a device slice of {}", v.len())
        }
        Ok(Self { v, d: None, rows, cols, ld: cols, bias: None })
    }

    /// `n` columns from `from` on.
    ///
    /// # Panics
    /// When there are not as many.
    #[track_caller]
    pub fn cols(self, from: usize, n: usize) -> Self {
        assert!(from + n <= self.cols, "{n} columns from {from} on in a matrix of {}", self.cols);
        Self { bias: self.bias.map(|bias| bias.part(from, n)), ..self.moved(from, self.rows, n) }
    }

    /// `n` rows from `from` on.
    ///
    /// # Panics
    /// When there are not as many.
    #[track_caller]
    pub fn rows(self, from: usize, n: usize) -> Self {
        assert!(from + n <= self.rows, "{n} rows from {from} on in a matrix of {}", self.rows);
        self.moved(from * self.ld, n, self.cols)
    }

    #[track_caller]
    fn moved(self, by: usize, rows: usize, cols: usize) -> Self {
        let extent = if rows * cols == 0 { 0 } else { (rows - 1) * self.ld + cols };
        let part = |slice: DeviceSlice<'m, f32>| if extent == 0 { slice.part(0, 0) } else { slice.part(by, extent) };
        Self { v: part(self.v), d: self.d.map(part), rows, cols, ..self }
    }

    /// The matrix, if it is `[rows, cols]`.
    ///
    /// # Errors
    /// When it is not; the sentence names it as `what`.
    pub(super) fn shaped(self, rows: usize, cols: usize, what: &str) -> Result<Self> {
        if (self.rows, self.cols) != (rows, cols) {
            bail!("{what} is {} x {}, not {rows} x {cols}", self.rows, self.cols)
        }
        Ok(self)
    }

    /// The matrix, if its rows lie side by side.
    ///
    /// # Errors
    /// When they do not; the sentence names it as `what`.
    pub(super) fn side_by_side(self, what: &str) -> Result<Self> {
        if self.ld != self.cols {
            bail!("{what}: rows of {} numbers lie {} apart", self.cols, self.ld)
        }
        Ok(self)
    }

    /// The gradient.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn gradient(&self) -> Result<DeviceSlice<'m, f32>> {
        match self.d {
            Some(d) => Ok(d),
            None => bail!("a matrix of {} x {} has no gradient", self.rows, self.cols),
        }
    }

    /// The matrix for a value that is kept beside its memory ([`DeviceSlice::resident`]).
    pub fn resident(self) -> Var<'static> {
        let resident = |slice: DeviceSlice<'_, f32>| slice.resident();
        let Self { v, d, rows, cols, ld, bias } = self;
        Var { v: v.resident(), d: d.map(resident), rows, cols, ld, bias: bias.map(resident) }
    }

    pub(super) fn mat(&self) -> Mat<'m> {
        Mat::new(self.v, self.ld)
    }
}

/// A weight matrix as it is multiplied with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight<'m> {
    /// The numbers.
    pub at: DeviceSlice<'m, f32>,
    /// Numbers from row to row.
    pub ld: usize,
    /// Outputs.
    pub m: usize,
    /// Inputs.
    pub k: usize,
    /// Stored as `[in, out]`; else as `[out, in]`.
    pub transposed: bool,
}

impl<'m> Weight<'m> {
    /// `[outputs, inputs]`.
    pub(super) fn mat(&self) -> Mat<'m> {
        Mat { t: self.transposed, ..Mat::new(self.at, self.ld) }
    }

    /// Numbers and distances of rows and columns as stored.
    pub(super) fn stored(&self) -> [(usize, usize); 2] {
        let (rows, cols) = if self.transposed { (self.k, self.m) } else { (self.m, self.k) };
        [(rows, self.ld), (cols, 1)]
    }

    /// `k` inputs from `from` on, of a weight that is not transposed.
    ///
    /// # Panics
    /// When there are not as many.
    #[track_caller]
    pub fn inputs(self, from: usize, k: usize) -> Self {
        assert!(!self.transposed && from + k <= self.k, "{k} inputs from {from} on in a weight of {}", self.k);
        Self { at: self.at.part(from, (self.m - 1) * self.ld + k), k, ..self }
    }

    /// `m` outputs from `from` on, of a weight that is not transposed.
    ///
    /// # Panics
    /// When there are not as many.
    #[track_caller]
    pub fn outputs(self, from: usize, m: usize) -> Self {
        assert!(!self.transposed && from + m <= self.m, "{m} outputs from {from} on in a weight of {}", self.m);
        Self { at: self.at.part(from * self.ld, (m - 1) * self.ld + self.k), m, ..self }
    }

    /// The weight for a value that is kept beside its memory ([`DeviceSlice::resident`]).
    pub fn resident(self) -> Weight<'static> {
        let Self { at, ld, m, k, transposed } = self;
        Weight { at: at.resident(), ld, m, k, transposed }
    }
}

/// Sizes of an attention, as the kernels have them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    /// Memories.
    pub memories: i32,
    /// Rows from a memory's query to the next memory's.
    pub from_memory: i32,
    /// Queries of a memory.
    pub queries: i32,
    /// Rows from query to query.
    pub from_query: i32,
    /// Numbers from memory to memory.
    pub memory: i32,
    /// Numbers from entry to entry.
    pub entry: i32,
    /// Numbers from key to value.
    pub value: i32,
    /// Heads.
    pub heads: i32,
    /// Size of a head.
    pub size: i32,
    /// Numbers from one query's weights to the next's.
    pub ldw: i32,
    /// Entries at most.
    pub entries: i32,
    /// Scale of scores.
    pub scale: f32,
}

const _: () = assert!(size_of::<Heads>() == 48);

// SAFETY: plain numbers in C layout, the same as the kernels' struct.
unsafe impl DeviceRepr for Heads {}

/// The transition table of an environment: for each pose and action the row of the view table, the pose after it, and four numbers
/// of its direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transitions<'m> {
    /// Views of all places, `features` numbers each.
    pub table: DeviceSlice<'m, half::f16>,
    /// `[poses, actions]`.
    pub rows: DeviceSlice<'m, u32>,
    /// `[poses, actions]`.
    pub next: DeviceSlice<'m, u32>,
    /// `[poses, actions, 4]`.
    pub directions: DeviceSlice<'m, f32>,
    /// Actions of a pose.
    pub actions: usize,
    /// Numbers of a view.
    pub features: usize,
    /// Poses.
    pub poses: usize,
}

impl Transitions<'_> {
    /// The table for a value that is kept beside its memory ([`DeviceSlice::resident`]).
    pub fn resident(self) -> Transitions<'static> {
        let Self { table, rows, next, directions, actions, features, poses } = self;
        let (table, rows, next, directions) =
            (table.resident(), rows.resident(), next.resident(), directions.resident());
        Transitions { table, rows, next, directions, actions, features, poses }
    }

    /// The table as a kernel's argument.
    ///
    /// # Errors
    /// When a part of it is too short.
    pub(super) fn args(&self) -> Result<TransitionArgs> {
        let n = self.poses * self.actions;
        Ok(TransitionArgs {
            table: self.table.holding(self.features, "the view table")?.into(),
            rows: self.rows.holding(n, "the rows of transitions")?.into(),
            next: self.next.holding(n, "the poses after transitions")?.into(),
            directions: self.directions.holding(4 * n, "the directions of transitions")?.into(),
            actions: self.actions as i32,
            features: self.features as i32,
            poses: self.poses as i32,
        })
    }
}

/// [`Transitions`] as the kernels read them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransitionArgs {
    pub(super) table: Address,
    pub(super) rows: Address,
    pub(super) next: Address,
    pub(super) directions: Address,
    pub(super) actions: i32,
    pub(super) features: i32,
    pub(super) poses: i32,
}

const _: () = assert!(size_of::<TransitionArgs>() == 48);

// SAFETY: plain numbers and device addresses in C layout, the same as the kernels' struct.
unsafe impl DeviceRepr for TransitionArgs {}

/// An attention: queries `[N, H]`, memory (keys; values `heads.value` further on), what is seen, and what is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention<'m> {
    pub heads: Heads,
    pub q: Var<'m>,
    pub memory: Var<'m>,
    /// Entries of each memory (`None`: all have as many).
    pub lengths: Option<DeviceSlice<'m, u32>>,
    pub seen: Var<'m>,
    /// Weights, and the gradient of scores.
    pub kept: (DeviceSlice<'m, f32>, Option<DeviceSlice<'m, f32>>),
}

impl Attention<'_> {
    /// The steps from row `from` on, `rows` of them.
    ///
    /// # Panics
    /// When there are not as many.
    #[track_caller]
    pub fn step(&self, from: usize, rows: usize) -> Self {
        let row = self.heads.heads as usize * self.heads.ldw as usize;
        let kept =
            (self.kept.0.part(from * row, rows * row), self.kept.1.map(|scores| scores.part(from * row, rows * row)));
        Self { q: self.q.rows(from, rows), seen: self.seen.rows(from, rows), kept, ..*self }
    }

    /// The attention over the first `entries` alone.
    pub fn of(&self, entries: i32) -> Self {
        Self { heads: Heads { entries, ..self.heads }, ..*self }
    }

    /// The attention for a value that is kept beside its memory ([`DeviceSlice::resident`]).
    pub fn resident(self) -> Attention<'static> {
        Attention {
            heads: self.heads,
            q: self.q.resident(),
            memory: self.memory.resident(),
            lengths: self.lengths.map(DeviceSlice::resident),
            seen: self.seen.resident(),
            kept: (self.kept.0.resident(), self.kept.1.map(DeviceSlice::resident)),
        }
    }

    /// Refuses memories, lengths or weights that are smaller than the sizes say.
    ///
    /// # Errors
    /// Names the first of them.
    pub(super) fn check(&self) -> Result<()> {
        let Heads { memories, queries, memory, entry, value, heads, size, ldw, entries, .. } = self.heads;
        let [memories, queries, memory, entry, value, heads, size, ldw, entries] =
            [memories, queries, memory, entry, value, heads, size, ldw, entries].map(|n| n as usize);
        let read = [(memories, memory), (entries, entry), (2, value), (heads * size, 1)];
        self.memory.v.holding_strided(&read, "the memory of an attention")?;
        if let Some(lengths) = self.lengths {
            lengths.holding(memories, "the lengths of an attention's memories")?;
        }
        let weights = memories * queries * heads * ldw;
        self.kept.0.holding(weights, "the weights of an attention")?;
        if let Some(scores) = self.kept.1 {
            scores.holding(weights, "the gradient of an attention's scores")?;
        }
        let rows = memories * queries;
        self.q.shaped(rows, heads * size, "the queries of an attention")?;
        self.seen.shaped(rows, heads * size, "the result of an attention").map(drop)
    }

    /// As an operation of a program has them.
    pub(super) fn sizes(&self, own: bool) -> [i32; 12] {
        let Heads { memories, memory, entry, value, heads, size, ldw, entries, scale, .. } = self.heads;
        let scale = scale.to_bits() as i32;
        let (q, seen) = (self.q.ld as i32, self.seen.ld as i32);
        [q, seen, own.into(), memories, memory, entry, value, heads, size, ldw, entries, scale]
    }

    pub(super) fn items(&self) -> usize {
        (self.heads.memories * self.heads.queries * self.heads.heads) as usize
    }
}
