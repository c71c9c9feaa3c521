//! The operands of [`super::tape`]: matrices with their gradients, weights, attentions, and the transitions between places.

use super::*;

/// A matrix `[rows, cols]` with rows `ld` numbers apart, and its gradient (0: none is asked for).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Var {
    /// Address of the values.
    pub v: u64,
    /// Address of the gradient.
    pub d: u64,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Numbers from row to row.
    pub ld: usize,
    /// Address of a row that a product is added to here (0: to what is here).
    pub bias: u64,
}

impl Var {
    /// `n` columns from `from` on.
    pub fn cols(self, from: usize, n: usize) -> Self {
        let bias = if self.bias == 0 { 0 } else { self.bias + 4 * from as u64 };
        Self { bias, ..self.moved(from, self.rows, n) }
    }

    /// `n` rows from `from` on.
    pub fn rows(self, from: usize, n: usize) -> Self {
        self.moved(from * self.ld, n, self.cols)
    }

    fn moved(self, by: usize, rows: usize, cols: usize) -> Self {
        let at = |address: u64| if address == 0 { 0 } else { address + 4 * by as u64 };
        Self { v: at(self.v), d: at(self.d), rows, cols, ..self }
    }

    pub(super) fn mat(&self) -> Mat {
        Mat::new(self.v, self.ld)
    }
}

/// A weight matrix as it is multiplied with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    /// Address.
    pub at: u64,
    /// Numbers from row to row.
    pub ld: usize,
    /// Outputs.
    pub m: usize,
    /// Inputs.
    pub k: usize,
    /// Stored as `[in, out]`; else as `[out, in]`.
    pub transposed: bool,
}

/// Sizes of an attention, as the kernels have them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Heads {
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

/// The transition table of an environment, as the kernels read it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Transitions {
    pub(crate) table: u64,
    pub(crate) rows: u64,
    pub(crate) next: u64,
    pub(crate) directions: u64,
    pub(crate) actions: i32,
    pub(crate) features: i32,
    pub(crate) poses: i32,
}

const _: () = assert!(size_of::<Transitions>() == 48);

// SAFETY: plain numbers and device addresses in C layout, the same as the kernels' struct.
unsafe impl DeviceRepr for Transitions {}

/// An attention: queries `[N, H]`, memory (keys; values `heads.value` further on), what is seen, and what is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention {
    pub heads: Heads,
    pub q: Var,
    pub memory: Var,
    /// Entries of each memory (0: all have as many).
    pub lengths: u64,
    pub seen: Var,
    /// Weights, and the gradient of scores.
    pub kept: (u64, u64),
}

impl Attention {
    /// The steps from row `from` on, `rows` of them.
    pub fn step(&self, from: usize, rows: usize) -> Self {
        let skip = 4 * (from as u64) * self.heads.heads as u64 * self.heads.ldw as u64;
        let kept = (self.kept.0 + skip, if self.kept.1 == 0 { 0 } else { self.kept.1 + skip });
        Self { q: self.q.rows(from, rows), seen: self.seen.rows(from, rows), kept, ..*self }
    }

    /// The attention over the first `entries` alone.
    pub fn of(&self, entries: i32) -> Self {
        Self { heads: Heads { entries, ..self.heads }, ..*self }
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
