//! Operations of networks that go step by step, on a GPU: each is launched when it is called and, where there is something to
//! learn, noted on a tape, which is gone through from its end for the gradients. Values and gradients lie in two arenas;
//! gradients are added up where they are used. Weights get theirs at the end, from all steps in one product. The operations
//! stand in the modules below by what they are for.

use super::arena::Arena;
use super::bias_init::{self, BiasInit};
use super::operands::{Attention, Transitions, Var, Weight};
use super::persistent_kernel::{self, Kind, ProgramBuilder, ROOM};
use super::weight_folding::{self, FoldedProduct};
use super::*;
use crate::nn::params::Params;
use std::cell::RefCell;
use std::collections::HashMap;

mod attention;
mod elementwise;
mod products;
mod recurrent;
#[cfg(test)]
#[cfg(not(feature = "cuda"))]
mod tests;
mod walkers;
mod words;
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

fn p(slice: impl Into<Arg>) -> Arg {
    slice.into()
}

fn address(slice: impl Into<Address>) -> Address {
    slice.into()
}

fn i(n: usize) -> Arg {
    Arg::Int(n as i32)
}

impl<'a> Tape<'a> {
    /// A pass from the beginning of the memory, which no slice of an earlier pass borrows any more; with `grads` one to learn from.
    pub fn new(params: &'a Params, memory: &'a mut Memory, grads: Option<&'a HashMap<String, Tensor>>) -> Self {
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
        places: &[Address],
        transitions: Option<Transitions<'a>>,
    ) -> Result<bool> {
        match &mut *self.steps.borrow_mut() {
            Some(steps) if steps.rows == rows => {
                let transitions = transitions.map(|transitions| transitions.args()).transpose()?;
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
    pub fn room(&self, n: usize) -> Result<DeviceSlice<'a, f32>> {
        self.memory.values.take(n)
    }

    /// A matrix nobody has written yet, without gradient.
    pub fn constant(&self, rows: usize, cols: usize) -> Result<Var<'a>> {
        Var::dense(self.room(rows * cols)?, rows, cols)
    }

    /// A matrix nobody has written yet.
    pub fn var(&self, rows: usize, cols: usize) -> Result<Var<'a>> {
        let d = if self.learns() { Some(self.memory.gradients.take(rows * cols)?) } else { None };
        Ok(Var { d, ..self.constant(rows, cols)? })
    }

    /// Room for `n` values, where something is learnt.
    fn learning_room(&self, n: usize) -> Result<Option<DeviceSlice<'a, f32>>> {
        if self.learns() { self.room(n).map(Some) } else { Ok(None) }
    }

    /// Room for what an attention keeps.
    pub fn kept(&self, n: usize) -> Result<(DeviceSlice<'a, f32>, Option<DeviceSlice<'a, f32>>)> {
        Ok((self.room(n)?, self.learning_room(n)?))
    }

    /// The numbers of a parameter.
    pub fn w(&self, name: &str) -> Result<DeviceSlice<'a, f32>> {
        DeviceSlice::of(self.params.get(name)?.as_tensor())
    }

    /// A parameter's gradient; `None` where nothing is learnt.
    pub fn g(&self, name: &str) -> Result<Option<DeviceSlice<'a, f32>>> {
        let Some(grads) = self.grads else { return Ok(None) };
        match grads.get(name) {
            Some(t) => DeviceSlice::of(t).map(Some),
            None => bail!("no room for the gradient of `{name}`"),
        }
    }

    /// The weight of a layer.
    pub fn weight_of(&self, layer: &str) -> Result<DeviceSlice<'a, f32>> {
        self.w(&format!("{layer}.weight"))
    }

    /// The bias of a layer.
    pub fn bias_of(&self, layer: &str) -> Result<DeviceSlice<'a, f32>> {
        self.w(&format!("{layer}.bias"))
    }

    /// The gradient of a layer's weight; `None` where nothing is learnt.
    pub fn weight_gradient(&self, layer: &str) -> Result<Option<DeviceSlice<'a, f32>>> {
        self.g(&format!("{layer}.weight"))
    }

    /// The gradient of a layer's bias; `None` where nothing is learnt.
    pub fn bias_gradient(&self, layer: &str) -> Result<Option<DeviceSlice<'a, f32>>> {
        self.g(&format!("{layer}.bias"))
    }

    /// The weight of a linear layer.
    pub fn weight(&self, name: &str) -> Result<Weight<'a>> {
        let (m, k) = self.params.get(&format!("{name}.weight"))?.dims2()?;
        Ok(Weight { at: self.w(&format!("{name}.weight"))?, ld: k, m, k, transposed: false })
    }

    /// `y` = bias (`None`: zeros), and for each `of` rows a row of `time` more. What is filled before something else is launched is
    /// filled in any order.
    pub fn bias_init(
        &self,
        y: Var<'a>,
        bias: impl Into<Option<DeviceSlice<'a, f32>>>,
        time: Option<(Var<'a>, usize)>,
    ) -> Result<()> {
        self.write(y, bias.into(), time.map(|(t, of)| (t.v, t.ld, of)))?;
        if let Some((time, of)) = time {
            let steps = y.rows / of;
            self.on_backward(move |t| {
                let args = [p(y.gradient()?), i(y.ld), p(time.d), i(of), i(steps), i(y.cols)];
                t.launch("step_sums", each(steps * y.cols), &args)
            });
        }
        Ok(())
    }

    /// A copy of parameters, `from` with rows `ld` apart.
    pub fn copy(&self, from: DeviceSlice<'a, f32>, ld: usize, to: Var<'a>) -> Result<()> {
        self.write(to, None, Some((from, ld, 1)))
    }

    fn write(
        &self,
        y: Var<'a>,
        bias: Option<DeviceSlice<'a, f32>>,
        time: Option<(DeviceSlice<'a, f32>, usize, usize)>,
    ) -> Result<()> {
        let stepping = self.steps.borrow().is_some();
        if stepping {
            self.flush()?;
        }
        if let Some(bias) = bias {
            bias.holding(y.cols, "a bias")?;
        }
        if let Some((time, ld, of)) = time {
            time.holding_strided(&[(y.rows.div_ceil(of), ld), (y.cols, 1)], "rows to begin with")?;
        }
        let (time, time_ld, of) = time.map_or((None, 0, 1), |(time, ld, of)| (Some(time), ld, of));
        let [ld, time_ld, of, rows, cols] = [y.ld, time_ld, of, y.rows, y.cols].map(|x| x as i32);
        let (y, bias, time) = (y.v.into(), bias.into(), time.into());
        self.fills.borrow_mut().push(BiasInit { y, bias, time, ld, time_ld, of, rows, cols, unused: 0 });
        if stepping { self.flush() } else { Ok(()) }
    }

    fn column_sum(&self, g: Var<'a>, other: Option<Var<'a>>, out: DeviceSlice<'a, f32>) -> Result<()> {
        let (o, ldo) = match other {
            Some(o) => (Some(o.shaped(g.rows, g.cols, "what columns are multiplied with")?.v), o.ld),
            None => (None, 0),
        };
        out.holding(g.cols, "the sums of columns")?;
        let grid = ((g.cols.div_ceil(32) as u32, 1), 1024, 0);
        self.launch("column_sum", grid, &[p(g.v), i(g.ld), p(o), i(ldo), p(out), i(g.rows), i(g.cols)])
    }

    /// Makes products of weights, none of which needs another.
    pub fn fold_weights(&self, all: &[FoldedProduct<'a>]) -> Result<()> {
        self.flush()?;
        weight_folding::make(self.device(), all)
    }
}
