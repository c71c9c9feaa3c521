//! Operations of a transformer that goes step by step, on a GPU: each is launched when it is called and, where there is
//! something to learn, noted on a tape, which is gone through from its end for the gradients. Values and gradients lie in two
//! arenas; gradients are added up where they are used. Weights get theirs at the end, from all steps in one product.

use super::arena::Arena;
use super::bias_init::{self, BiasInit};
use super::operands::{Attention, Transitions, Var, Weight};
use super::persistent_kernel::{self, Kind, ProgramBuilder, ROOM};
use super::weight_folding::{self, FoldedProduct};
use super::*;
use crate::nn::params::Params;
use std::cell::RefCell;
use std::collections::HashMap;

mod products;
mod recurrent;
pub(crate) use products::After;
pub(crate) use recurrent::{InputGradient, Recurrence};

/// Memory of a model's passes.
pub(crate) struct Memory {
    values: Arena,
    gradients: Arena,
}

impl Memory {
    pub fn new(device: &CudaDevice) -> Self {
        Self { values: Arena::new(device), gradients: Arena::new(device) }
    }

    /// For little.
    pub fn small(device: &CudaDevice) -> Self {
        Self { values: Arena::small(device), gradients: Arena::small(device) }
    }
}

type Later<'a> = Box<dyn FnOnce(&Tape<'a>) -> Result<()> + 'a>;

/// A pass over a model.
pub(crate) struct Tape<'a> {
    params: &'a Params,
    /// Gradients by the parameters' names, where there is something to learn.
    grads: Option<&'a HashMap<String, Tensor>>,
    memory: &'a Memory,
    back: RefCell<Vec<Later<'a>>>,
    end: RefCell<Vec<Later<'a>>>,
    last: RefCell<Vec<Later<'a>>>,
    /// Operations that wait to be launched together, between [`Tape::begin_steps`] and [`Tape::end_steps`].
    steps: RefCell<Option<ProgramBuilder>>,
    /// Rows to be filled before anything else is launched.
    fills: RefCell<Vec<BiasInit>>,
}

const WARPS: u32 = 4;

/// Numbers of shared memory that a look at F numbers a view has; as in `walks.cu`.
fn view_attention_room(f: usize) -> usize {
    let all = 20 * f + 40 + 256 + 256 * 8;
    if f.is_multiple_of(8) && all <= ROOM { all } else { 40 }
}

fn p(address: u64) -> Arg {
    Arg::Address(address)
}

fn i(n: usize) -> Arg {
    Arg::Int(n as i32)
}

impl<'a> Tape<'a> {
    /// A pass from the beginning of the memory; with `grads` one to learn from.
    pub fn new(params: &'a Params, memory: &'a Memory, grads: Option<&'a HashMap<String, Tensor>>) -> Self {
        memory.values.reset();
        memory.gradients.reset();
        Self { grads, ..Self::again(params, memory) }
    }

    /// A further pass over what lies in the memory, without learning; nothing new may be put there.
    pub fn again(params: &'a Params, memory: &'a Memory) -> Self {
        let none = RefCell::default;
        Self {
            params,
            grads: None,
            memory,
            back: none(),
            end: none(),
            last: none(),
            steps: RefCell::default(),
            fills: RefCell::default(),
        }
    }

    /// Whether there is something to learn.
    pub fn learns(&self) -> bool {
        self.grads.is_some()
    }

    fn device(&self) -> &CudaDevice {
        self.memory.values.device()
    }

    fn launch(&self, name: &'static str, grid: Grid, args: &[Arg]) -> Result<()> {
        self.flush()?;
        launch(self.device(), name, grid, args)
    }

    /// From here to [`Tape::end_steps`] operations on `rows` rows only meet the same rows of others, where they meet any that
    /// is written in between: they can be gathered. On the way back, too.
    pub fn begin_steps(&self, rows: usize) -> Result<()> {
        self.on_backward(|t| t.leave());
        self.enter(rows, false)
    }

    /// See [`Tape::begin_steps`].
    pub fn end_steps(&self, rows: usize) -> Result<()> {
        self.on_backward(move |t| t.enter(rows, true));
        self.leave()
    }

    fn enter(&self, rows: usize, backwards: bool) -> Result<()> {
        self.flush()?;
        if persistent_kernel::possible(self.device(), rows)? {
            *self.steps.borrow_mut() = Some(ProgramBuilder::new(rows, backwards));
        }
        Ok(())
    }

    fn leave(&self) -> Result<()> {
        self.flush()?;
        *self.steps.borrow_mut() = None;
        Ok(())
    }

    /// Launches what was gathered. To be called before something else is launched that uses it.
    pub fn flush(&self) -> Result<()> {
        let fills = self.fills.take();
        if !fills.is_empty() {
            bias_init::write(self.device(), &fills)?;
        }
        match &mut *self.steps.borrow_mut() {
            Some(steps) => steps.launch(self.device()),
            None => Ok(()),
        }
    }

    /// Gathers an operation on `rows` rows; false where it has to be launched.
    fn gather(
        &self,
        rows: usize,
        kind: Kind,
        sizes: &[i32],
        places: &[u64],
        transitions: Option<Transitions>,
    ) -> Result<bool> {
        match &mut *self.steps.borrow_mut() {
            Some(steps) if steps.rows == rows => {
                steps.add(self.device(), kind, sizes, places, transitions).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    fn on_backward(&self, f: impl FnOnce(&Tape<'a>) -> Result<()> + 'a) {
        if self.learns() {
            self.back.borrow_mut().push(Box::new(f));
        }
    }

    fn at_end(&self, f: impl FnOnce(&Tape<'a>) -> Result<()> + 'a) {
        if self.learns() {
            self.end.borrow_mut().push(Box::new(f));
        }
    }

    /// Runs the pass backwards, for the gradients of all parameters.
    pub fn backward(&self) -> Result<()> {
        self.flush()?;
        self.memory.gradients.clear()?;
        for f in self.back.take().into_iter().rev().chain(self.end.take()).chain(self.last.take()) {
            f(self)?;
        }
        Ok(())
    }

    /// Room for values that have no gradient.
    pub fn room(&self, n: usize) -> Result<u64> {
        self.memory.values.take(n)
    }

    /// A matrix nobody has written yet, without gradient.
    pub fn constant(&self, rows: usize, cols: usize) -> Result<Var> {
        Ok(Var { v: self.room(rows * cols)?, d: 0, rows, cols, ld: cols, bias: 0 })
    }

    /// A matrix nobody has written yet.
    pub fn var(&self, rows: usize, cols: usize) -> Result<Var> {
        let d = if self.learns() { self.memory.gradients.take(rows * cols)? } else { 0 };
        Ok(Var { d, ..self.constant(rows, cols)? })
    }

    /// Room for what an attention keeps.
    pub fn kept(&self, n: usize) -> Result<(u64, u64)> {
        Ok((self.room(n)?, if self.learns() { self.room(n)? } else { 0 }))
    }

    /// Address of a parameter.
    pub fn w(&self, name: &str) -> Result<u64> {
        at(self.params.get(name)?.as_tensor())
    }

    /// Address of a parameter's gradient; 0 where nothing is learnt.
    pub fn g(&self, name: &str) -> Result<u64> {
        match self.grads.map(|g| g.get(name)) {
            None => Ok(0),
            Some(Some(t)) => at(t),
            Some(None) => bail!("no room for the gradient of `{name}`"),
        }
    }

    /// Address of the weight of a layer.
    pub fn weight_of(&self, layer: &str) -> Result<u64> {
        self.w(&format!("{layer}.weight"))
    }

    /// Address of the bias of a layer.
    pub fn bias_of(&self, layer: &str) -> Result<u64> {
        self.w(&format!("{layer}.bias"))
    }

    /// Address of the gradient of a layer's weight; 0 where nothing is learnt.
    pub fn weight_gradient(&self, layer: &str) -> Result<u64> {
        self.g(&format!("{layer}.weight"))
    }

    /// Address of the gradient of a layer's bias; 0 where nothing is learnt.
    pub fn bias_gradient(&self, layer: &str) -> Result<u64> {
        self.g(&format!("{layer}.bias"))
    }

    /// The weight of a linear layer.
    pub fn weight(&self, name: &str) -> Result<Weight> {
        let (m, k) = self.params.get(&format!("{name}.weight"))?.dims2()?;
        Ok(Weight { at: self.w(&format!("{name}.weight"))?, ld: k, m, k, transposed: false })
    }

    /// `y` = bias (0: zeros), and for each `of` rows a row of `time` more. What is filled before something else is launched is
    /// filled in any order.
    pub fn bias_init(&self, y: Var, bias: u64, time: Option<(Var, usize)>) -> Result<()> {
        let (table, time_ld, of) = time.map_or((0, 0, 1), |(t, of)| (t.v, t.ld, of));
        self.write(y, bias, (table, time_ld, of))?;
        if let Some((time, of)) = time {
            let steps = y.rows / of;
            self.on_backward(move |t| {
                let args = [p(y.d), i(y.ld), p(time.d), i(of), i(steps), i(y.cols)];
                t.launch("step_sums", each(steps * y.cols), &args)
            });
        }
        Ok(())
    }

    /// A copy of parameters, `from` with rows `ld` apart.
    pub fn copy(&self, from: u64, ld: usize, to: Var) -> Result<()> {
        self.write(to, 0, (from, ld, 1))
    }

    fn write(&self, y: Var, bias: u64, (time, time_ld, of): (u64, usize, usize)) -> Result<()> {
        let stepping = self.steps.borrow().is_some();
        if stepping {
            self.flush()?;
        }
        let [ld, time_ld, of, rows, cols] = [y.ld, time_ld, of, y.rows, y.cols].map(|x| x as i32);
        self.fills.borrow_mut().push(BiasInit { y: y.v, bias, time, ld, time_ld, of, rows, cols, unused: 0 });
        if stepping { self.flush() } else { Ok(()) }
    }

    fn column_sum(&self, g: Var, other: Option<Var>, out: u64) -> Result<()> {
        let (o, ldo) = other.map_or((0, 0), |o| (o.v, o.ld));
        let grid = ((g.cols.div_ceil(32) as u32, 1), 1024, 0);
        self.launch("column_sum", grid, &[p(g.v), i(g.ld), p(o), i(ldo), p(out), i(g.rows), i(g.cols)])
    }

    /// Through tanh, in place. Contiguous.
    pub fn tanh(&self, x: Var) -> Result<()> {
        let n = x.rows * x.cols;
        self.launch("act_fwd", each(n), &[p(x.v), i(n), i(1)])?;
        self.on_backward(move |t| t.launch("act_bwd", each(n), &[p(x.d), p(x.v), i(n), i(1)]));
        Ok(())
    }

    /// `y = x` with column m times `s[m]`, a parameter; at the end the gradient of `s`.
    pub fn scale(&self, x: Var, s: u64, y: Var, ds: u64) -> Result<()> {
        let n = x.rows * x.cols;
        self.launch("scale_fwd", each(n), &[p(x.v), p(s), p(y.v), i(x.rows), i(x.cols)])?;
        self.on_backward(move |t| {
            t.launch("scale_bwd", each(n), &[p(y.d), p(s), p(x.d), i(x.rows), i(x.cols)])?;
            t.column_sum(Var { v: y.d, ..y }, Some(x), ds)
        });
        Ok(())
    }

    /// LayerNorm(a + y) with parameters (weight, bias) and room for two numbers a row.
    pub fn norm(&self, a: Var, y: Var, (w, b): (u64, u64), out: Var, stats: u64) -> Result<()> {
        let (n, m) = (out.rows, out.cols);
        let grid = ((n.div_ceil(WARPS as usize) as u32, 1), 32 * WARPS, 0);
        let parts = [p(a.v), i(a.ld), p(y.v), i(y.ld), p(w)];
        let more = [p(b), p(out.v), i(out.ld), p(stats), i(n), i(m)];
        let sizes = [a.ld, y.ld, out.ld, m].map(|x| x as i32);
        if !self.gather(n, Kind::Norm, &sizes, &[a.v, y.v, w, b, out.v, stats], None)? {
            self.launch("norm_fwd", grid, &[&parts[..], &more].concat())?;
        }
        self.on_backward(move |t| {
            if t.gather(n, Kind::NormBack, &sizes, &[a.v, y.v, w, stats, out.d, a.d, y.d], None)? {
                return Ok(());
            }
            let more = [p(stats), p(out.d), i(out.ld), p(a.d), p(y.d), i(n), i(m)];
            t.launch("norm_bwd", grid, &[&parts[..], &more].concat())
        });
        Ok(())
    }

    /// At the end: the gradients of a norm's weight and bias from all rows.
    pub fn learn_norm(&self, a: Var, y: Var, out: Var, stats: u64, (dw, db): (u64, u64)) {
        self.at_end(move |t| {
            let grid = ((out.cols.div_ceil(32) as u32, 1), 1024, 0);
            let args = [p(a.v), i(a.ld), p(y.v), i(y.ld), p(stats), p(out.d), i(out.ld), p(dw), p(db)];
            t.launch("norm_params", grid, &[&args[..], &[i(out.rows), i(out.cols)]].concat())
        });
    }

    /// An attention whose memories have one query each (`own`: the gradient of their entries is added at once), or several
    /// (it is added by [`Tape::learn_memory`]).
    pub fn attend(&self, a: Attention, own: bool) -> Result<()> {
        let scores = 4 * WARPS * a.heads.ldw as u32;
        let grid = move |bytes: u32| ((a.items().div_ceil(WARPS as usize) as u32, 1), 32 * WARPS, bytes);
        let args = [p(a.q.v), i(a.q.ld), p(a.memory.v), p(a.lengths)];
        let more = [p(a.seen.v), i(a.seen.ld), p(a.kept.0), Arg::Heads(a.heads)];
        // In a program a row is known by its number alone.
        // Its warps have room for the weights of so many entries.
        let rows = if a.heads.from_memory == 1 && 16 * a.heads.ldw as usize <= ROOM { a.q.rows } else { 0 };
        let sizes = a.sizes(own);
        let places = [a.q.v, a.memory.v, a.lengths, a.seen.v, a.kept.0];
        if !self.gather(rows, Kind::Attend, &sizes, &places, None)? {
            self.launch("attend_fwd", grid(scores), &[&args[..], &more].concat())?;
        }
        self.on_backward(move |t| {
            let places = [a.q.v, a.memory.v, a.lengths, a.seen.d, a.kept.0, a.kept.1, a.q.d, a.memory.d];
            if t.gather(rows, Kind::AttendBack, &sizes, &places, None)? {
                return Ok(());
            }
            let more = [p(a.seen.d), i(a.seen.ld), p(a.kept.0), p(a.kept.1), p(a.q.d), p(a.memory.d)];
            t.launch(
                "attend_bwd",
                grid(2 * scores),
                &[&args[..], &more, &[i(own.into()), Arg::Heads(a.heads)]].concat(),
            )
        });
        Ok(())
    }

    /// The gradient of memories that several queries look at; to be called before the attention itself, with all queries
    /// of all steps.
    pub fn learn_memory(&self, a: Attention) {
        self.on_backward(move |t| {
            let items = (a.heads.memories * a.heads.entries * a.heads.heads) as usize;
            let grid = ((items.div_ceil(WARPS as usize) as u32, 1), 32 * WARPS, 0);
            let args = [p(a.q.v), i(a.q.ld), p(a.lengths), p(a.seen.d), i(a.seen.ld), p(a.kept.0), p(a.kept.1)];
            t.launch("attend_memory_bwd", grid, &[&args[..], &[p(a.memory.d), Arg::Heads(a.heads)]].concat())
        });
    }

    /// Attends with queries `[N, F]` over the views at `poses` `[N]`; room for 36 weights a row.
    pub fn attend_views(&self, q: Var, transitions: Transitions, poses: u64, seen: Var, weights: u64) -> Result<()> {
        let room = view_attention_room(q.cols);
        let grid = ((q.rows as u32, 1), 256, 4 * room as u32);
        let args = [p(q.v), i(q.ld), p(transitions.table), p(poses), p(seen.v), i(seen.ld), p(weights), i(q.cols)];
        let sizes = [q.ld as i32, seen.ld as i32];
        if !self.gather(q.rows, Kind::ViewAttention, &sizes, &[q.v, poses, seen.v, weights], Some(transitions))? {
            self.launch("view_attention_fwd", grid, &[&args[..], &[Arg::Int(transitions.poses), i(room)]].concat())?;
        }
        self.on_backward(move |t| {
            if t.gather(q.rows, Kind::ViewAttentionBack, &[], &[poses, weights, seen.d, q.d], Some(transitions))? {
                return Ok(());
            }
            let args = [
                p(transitions.table),
                p(poses),
                p(weights),
                p(seen.d),
                p(q.d),
                i(q.cols),
                Arg::Int(transitions.poses),
                i(room),
            ];
            t.launch("view_attention_bwd", grid, &args)
        });
        Ok(())
    }

    /// The embeddings `[N, F + 4]` of actions made.
    pub fn action_embeddings(&self, transitions: Transitions, poses: u64, actions: u64, out: Var) -> Result<()> {
        let args = [Arg::Transitions(transitions), p(poses), p(actions), p(out.v), i(out.rows)];
        self.launch("action_embeddings", each(out.rows * out.cols), &args)
    }

    /// Logits `[N, A]` from `z` `[N, F + 5]` and the bias of all.
    pub fn action_scores(&self, z: Var, transitions: Transitions, poses: u64, bias: u64, logits: Var) -> Result<()> {
        let grid = ((z.rows as u32, 1), 128, 0);
        self.launch("score_fwd", grid, &[Arg::Transitions(transitions), p(z.v), p(poses), p(bias), p(logits.v)])?;
        self.on_backward(move |t| {
            t.launch("score_bwd", grid, &[Arg::Transitions(transitions), p(poses), p(logits.d), p(z.d)])
        });
        Ok(())
    }

    /// A step of walkers: `poses` are those now and (`rows` further on) those after it.
    #[allow(clippy::too_many_arguments)]
    pub fn environment_step(
        &self,
        z: Var,
        transitions: Transitions,
        bias: u64,
        poses: u64,
        draws: u64,
        done: u64,
        actions: u64,
        embedding: Var,
        last: bool,
    ) -> Result<()> {
        let after = poses + 4 * z.rows as u64;
        let places = [z.v, bias, poses, after, draws, done, actions, embedding.v];
        let sizes = [last.into(), z.ld as i32, embedding.ld as i32];
        if self.gather(z.rows, Kind::EnvironmentStep, &sizes, &places, Some(transitions))? {
            return Ok(());
        }
        let args = [
            Arg::Transitions(transitions),
            p(z.v),
            i(z.ld),
            p(bias),
            p(poses),
            p(after),
            p(draws),
            p(done),
            p(actions),
        ];
        let more = [p(embedding.v), i(embedding.ld), i(last.into())];
        self.launch("environment_step", ((z.rows as u32, 1), 256, 0), &[&args[..], &more].concat())
    }

    /// Reads the similarity memory: what inputs recall of the first `t + 1` outputs; `outputs` begins with the first.
    pub fn similarity_memory(&self, x: Var, outputs: Var, t: usize, out: Var) -> Result<()> {
        let (r, h) = (x.rows, x.cols);
        let grid = move |numbers: usize| ((r as u32, 1), 256, 4 * (numbers * (t + 1)) as u32);
        let args = [p(x.v), i(x.ld), p(outputs.v), i(t)];
        let sizes = [x.ld, t, out.ld, r, h].map(|x| x as i32);
        if !self.gather(r, Kind::SimilarityMemory, &sizes, &[x.v, outputs.v, out.v], None)? {
            self.launch("similarity_fwd", grid(1), &[&args[..], &[p(out.v), i(out.ld), i(r), i(h)]].concat())?;
        }
        self.on_backward(move |tape| {
            if tape.gather(r, Kind::SimilarityMemoryBack, &sizes, &[x.v, outputs.v, out.d, x.d, outputs.d], None)? {
                return Ok(());
            }
            let more = [p(out.d), i(out.ld), p(x.d), p(outputs.d), i(r), i(h)];
            tape.launch("similarity_bwd", grid(4), &[&args[..], &more].concat())
        });
        Ok(())
    }

    /// `out = u − σ(g)·r` for `ug` = `[u, r]`.
    pub fn gate(&self, ug: Var, g: Var, out: Var) -> Result<()> {
        let (n, h) = (out.rows, out.cols);
        let sizes = [h as i32];
        if !self.gather(n, Kind::Gate, &sizes, &[ug.v, g.v, out.v], None)? {
            self.launch("gate_fwd", each(n * h), &[p(ug.v), p(g.v), p(out.v), i(n), i(h)])?;
        }
        self.on_backward(move |t| {
            if t.gather(n, Kind::GateBack, &sizes, &[ug.v, g.v, out.d, ug.d, g.d], None)? {
                return Ok(());
            }
            t.launch("gate_bwd", each(n * h), &[p(ug.v), p(g.v), p(out.d), p(ug.d), p(g.d), i(n), i(h)])
        });
        Ok(())
    }

    /// Embeddings of `ids`, times `scale`, with positional encodings (0: none) that begin again every `of` rows.
    pub fn embed(&self, name: &str, ids: u64, scale: f32, positions: (u64, usize), x: Var) -> Result<()> {
        let name = format!("{name}.weight");
        let vocabulary = self.params.get(&name)?.dim(0)?;
        let (n, h) = (x.rows, x.cols);
        let args = [p(self.w(&name)?), p(ids), Arg::Float(scale), p(positions.0), i(positions.1), p(x.v), i(n), i(h)];
        self.launch("embed_fwd", each(n * h), &args)?;
        let to = self.g(&name)?;
        self.on_backward(move |t| {
            let grid = ((vocabulary.div_ceil(8) as u32, 1), 256, 0);
            t.launch("embed_bwd", grid, &[p(x.d), p(ids), Arg::Float(scale), p(to), i(n), i(h), i(vocabulary)])
        });
        Ok(())
    }

    /// The means of the first rows of each of `out.rows` groups; `counts` says of how many.
    pub fn mean(&self, x: Var, counts: u64, out: Var) -> Result<()> {
        let (b, h) = (out.rows, out.cols);
        let l = x.rows / b;
        self.launch("mean_fwd", each(b * h), &[p(x.v), p(counts), p(out.v), i(b), i(l), i(h)])?;
        self.on_backward(move |t| {
            t.launch("mean_bwd", each(b * l * h), &[p(out.d), p(counts), p(x.d), i(b), i(l), i(h)])
        });
        Ok(())
    }

    /// `x` as many times as `out` has room for.
    pub fn repeat(&self, x: Var, out: Var) -> Result<()> {
        let (n, copies) = (x.rows * x.cols, out.rows / x.rows);
        self.launch("repeat_fwd", each(n * copies), &[p(x.v), p(out.v), i(n), i(copies)])?;
        self.on_backward(move |t| t.launch("repeat_bwd", each(n), &[p(out.d), p(x.d), i(n), i(copies)]));
        Ok(())
    }

    /// `copies` times `x`, whose gradient is written.
    pub fn copies(&self, x: Var, copies: usize) -> Result<Var> {
        let out = self.result(copies * x.rows, x.cols)?;
        let n = x.rows * x.cols;
        self.launch("repeat_fwd", each(n * copies), &[p(x.v), p(out.v), i(n), i(copies)])?;
        self.on_backward(move |t| {
            zero(t.device(), x.d, n)?;
            t.launch("repeat_bwd", each(n), &[p(out.d), p(x.d), i(n), i(copies)])
        });
        Ok(out)
    }

    /// The rows of `x` that `rows` names, all different.
    pub fn take(&self, x: Var, rows: u64, out: Var) -> Result<()> {
        let (b, h) = (out.rows, out.cols);
        self.launch("take_fwd", each(b * h), &[p(x.v), p(rows), p(out.v), i(b), i(h)])?;
        self.on_backward(move |t| t.launch("take_bwd", each(b * h), &[p(out.d), p(rows), p(x.d), i(b), i(h)]));
        Ok(())
    }

    /// Input of one step of words: `x = table[ids] + time`.
    pub fn word_input(&self, table: Var, ids: u64, time: Var, x: Var) -> Result<()> {
        let args = [p(table.v), p(ids), p(time.v), p(x.v), i(x.rows), i(x.cols)];
        self.launch("word_in", each(x.rows * x.cols), &args)
    }

    /// The next words, from logits with a bias: to `out` and `again`. The input of the step after: `x = table[word] + time`.
    pub fn pick(&self, logits: Var, bias: u64, draws: u64, out: u64, again: u64, next: (Var, Var, Var)) -> Result<()> {
        let (table, time, x) = next;
        let sizes = [logits.cols, logits.ld, x.cols].map(|n| n as i32);
        let places = [logits.v, bias, draws, out, again, table.v, time.v, x.v];
        if self.gather(logits.rows, Kind::Pick, &sizes, &places, None)? {
            return Ok(());
        }
        let args = [p(logits.v), i(logits.ld), p(bias), p(draws), p(out), p(again), i(logits.cols)];
        let more = [p(table.v), p(time.v), p(x.v), i(x.cols)];
        self.launch("pick_word", ((logits.rows as u32, 1), 256, 0), &[&args[..], &more].concat())
    }

    /// A parameter `[n, F + D]` that meets action embeddings, with its last D columns summed to 4, and one more column of
    /// a bias where there is one: `[n, F + 4 (+ 1)]`. Its gradient is unfolded at the end.
    pub fn fold_directions(
        &self,
        layer: &str,
        biased: bool,
        rows: usize,
        (f, d): (usize, usize),
        ld: usize,
    ) -> Result<Var> {
        let out = self.fold_directions_scaled(layer, biased, rows, (f, d), ld, 0)?;
        let width = out.cols;
        let dw = self.weight_gradient(layer)?;
        let db = if biased { self.bias_gradient(layer)? } else { 0 };
        if self.learns() {
            // After the gradient of what was folded has been made, which is at the end.
            self.last.borrow_mut().push(Box::new(move |t| {
                let args = [p(out.d), i(width), p(dw), i(ld), p(db), i(rows), i(f), i(d)];
                t.launch("unfold_directions", each(rows * (f + d)), &args)
            }));
        }
        Ok(out)
    }

    /// [`Tape::fold_directions`] with row m times `scale[m]`, a parameter (0: none), which is not learnt.
    pub fn fold_directions_scaled(
        &self,
        layer: &str,
        biased: bool,
        rows: usize,
        (f, d): (usize, usize),
        ld: usize,
        scale: u64,
    ) -> Result<Var> {
        let width = f + 4 + usize::from(biased);
        let out = self.var(rows, width)?;
        let b = if biased { self.bias_of(layer)? } else { 0 };
        let args = [p(self.weight_of(layer)?), i(ld), p(b), p(scale), p(out.v), i(width), i(rows), i(f), i(d)];
        self.launch("fold_directions", each(rows * width), &args)?;
        Ok(out)
    }

    /// Makes products of weights, none of which needs another.
    pub fn fold_weights(&self, all: &[FoldedProduct]) -> Result<()> {
        self.flush()?;
        weight_folding::make(self.device(), all)
    }

    /// The encodings of `steps` steps of time, by the parameters `name.linear` and `name.norm`.
    pub fn time(&self, name: &str, steps: usize, h: usize) -> Result<Var> {
        let [w, b, nw, nb] =
            ["linear.weight", "linear.bias", "norm.weight", "norm.bias"].map(|x| format!("{name}.{x}"));
        let (out, lin) = (self.var(steps, h)?, self.constant(steps, h)?);
        let stats = self.room(2 * steps)?;
        let one = |bytes: usize| ((1, 1), 1024, bytes as u32);
        let (w_at, nw_at) = (self.w(&w)?, self.w(&nw)?);
        let sizes = [i(steps), i(h)];
        let args = [p(w_at), p(self.w(&b)?), p(nw_at), p(self.w(&nb)?), p(out.v), p(lin.v), p(stats)];
        // By a cluster of blocks, where the card has such.
        let cluster =
            [64, 128, 256, 512].into_iter().position(|n| n == h && major(self.device()).is_ok_and(|m| m >= 9));
        let together = |names: [&'static str; 4]| cluster.map(|k| (names[k], (((h / 32) as u32, 1), h as u32, 0)));
        match together(["time_fwd_2", "time_fwd_4", "time_fwd_8", "time_fwd_16"]) {
            Some((name, grid)) => self.launch(name, grid, &[&args[..], &sizes[..1]].concat())?,
            None => self.launch("time_fwd", one(8 * h), &[&args[..], &sizes].concat())?,
        }
        let back = together(["time_bwd_2", "time_bwd_4", "time_bwd_8", "time_bwd_16"]);
        if self.learns() {
            let d_lin = self.constant(steps, h)?;
            let norm = [p(self.g(&nw)?), p(self.g(&nb)?)];
            let (dw, db) = (self.g(&w)?, self.g(&b)?);
            self.on_backward(move |t| {
                let args = [p(w_at), p(nw_at), p(out.v), p(lin.v), p(stats), p(out.d), p(d_lin.v)];
                match back {
                    Some((name, grid)) => t.launch(name, grid, &[&args[..], &norm, &sizes[..1]].concat())?,
                    None => t.launch("time_bwd", one(4 * h), &[&args[..], &norm, &sizes].concat())?,
                }
                // Row t of d_lin is of what was made from row t − 1.
                t.column_sum(d_lin, None, db)?;
                let a = Mat::new(d_lin.v, h).t();
                match steps {
                    1 => zero(t.device(), dw, h * h),
                    _ => {
                        let a = Mat { at: a.at + 4 * h as u64, ..a };
                        product(t.device(), (h, h, steps - 1), a, Mat::new(out.v, h), 0.0, Mat::new(dw, h), 1)
                    }
                }
            });
        }
        Ok(out)
    }

    /// The weighted negative log-likelihood of targets: to `loss`, with the gradient of the logits.
    pub fn loss(&self, logits: Var, targets: u64, weights: u64, bonus: u64, loss: u64) -> Result<()> {
        let (n, v) = (logits.rows, logits.cols);
        self.flush()?;
        let (lse, entropy) = (self.room(n)?, self.room(n)?);
        let places = super::loss::Places { logits: logits.v, targets, weights, bonus, lse, entropy };
        super::loss::forward(self.device(), (n, v), &places, self.room(n)?, loss)?;
        // Written, not added: nothing else uses logits.
        self.on_backward(move |t| super::loss::backward(t.device(), (n, v), &places, 0, logits.d));
        Ok(())
    }
}
