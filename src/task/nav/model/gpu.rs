//! The state of the NAV models on a GPU and their passes there, captured as graphs by the sizes of their batches. A batch goes
//! there in one piece, filled up to one of a few sizes.

use crate::nn::adam::Adam;
use crate::nn::cuda::operands::{Transitions, Var};
use crate::nn::cuda::tape::{Memory, Tape};
use crate::nn::cuda::workspace::{Workspace as Common, rows, steps};
use crate::nn::cuda::{self, Arg, DeviceSlice};
use crate::nn::decoder::Rolled;
use crate::nn::loss;
use crate::nn::params::Params;
use crate::nn::sample::draws;
use crate::nn::tokens::{END, PAD, START, check, real_steps};
use crate::rng::Stream;
use crate::task::nav::model::blocks::positions;
use crate::task::nav::model::describer::NavDescriber;
use crate::task::nav::model::gpu_inference::{Leading, Walkers, Wording, Words};
use crate::task::nav::model::gpu_training::{Pass, Paths, Requests};
use crate::task::nav::model::names::*;
use crate::task::nav::model::student::{Batch, Lesson, NavStudent};
use crate::task::nav::model::views::ViewTable;
use crate::task::nav::model::walk::Walk;
use candle_core::{CudaDevice, DType, Device, Result, Tensor, bail};
use half::f16;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Walkers that are led at once.
const WALKERS: usize = 256;
/// Actions of a pose that a step of walkers chooses from; as in `walks.cu`.
const MOST_ACTIONS: usize = 64;
/// Words between two looks at what was written.
const STRIDE: usize = 10;

/// A model's buffers and captured graphs.
#[derive(Default)]
pub(crate) struct Workspace {
    common: Common,
    memory: Mutex<Option<Arc<Kept>>>,
    writing: Mutex<HashMap<String, Arc<Writing>>>,
    leading: Mutex<HashMap<String, Ready<Leading<'static>>>>,
    wording: Mutex<HashMap<String, Ready<Wording<'static>>>>,
    /// Whether weights stay as they are, and what is made of them as well.
    settled: AtomicBool,
}

/// Folded weights, under the name of its sizes.
struct Ready<T> {
    memory: Arc<Kept>,
    made: Option<T>,
    /// It is that of the weights as they are.
    current: bool,
}

impl<T: Copy> Ready<T> {
    fn new(device: &Device) -> Result<Self> {
        Ok(Self { memory: Arc::new(Kept::new(Memory::small(device.as_cuda_device()?))), made: None, current: false })
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Workspace")
    }
}

/// Memory of a pass; held by whoever makes one.
type Kept = Mutex<Memory>;

/// Descriptions on their way in a workspace's memory: what steps write to, kept under the name of their sizes, as graphs
/// of later steps may be captured when the beginning already is.
struct Writing {
    words: Mutex<Option<Words<'static>>>,
    /// Keeps padding and START from being written.
    never: Tensor,
    previous: Tensor,
    symbols: Tensor,
}

impl Workspace {
    fn memory(&self, device: &Device) -> Result<Arc<Kept>> {
        let mut memory = self.memory.lock().unwrap();
        if let Some(memory) = &*memory {
            return Ok(memory.clone());
        }
        let made = Arc::new(Kept::new(Memory::new(device.as_cuda_device()?)));
        *memory = Some(made.clone());
        Ok(made)
    }

    /// Says whether the weights stay as they are from now on: what is made of them is then made once.
    pub fn settle(&self, settled: bool) {
        self.settled.store(settled, Ordering::SeqCst);
        self.leading.lock().unwrap().values_mut().for_each(|ready| ready.current = false);
        self.wording.lock().unwrap().values_mut().for_each(|ready| ready.current = false);
    }

    /// The weights folded by `make`, kept in `all` under its name.
    fn ready<T: Copy>(
        &self,
        all: &Mutex<HashMap<String, Ready<T>>>,
        (name, params): (&str, &Params),
        make: impl FnOnce(&Tape<'_>) -> Result<T>,
    ) -> Result<T> {
        let (mut all, device) = (all.lock().unwrap(), params.device());
        if !all.contains_key(name) {
            all.insert(name.to_owned(), Ready::new(device)?);
        }
        let Some(ready) = all.get_mut(name) else { bail!("`{name}` was kept a moment ago") };
        if !ready.current {
            let (memory, made) = (ready.memory.clone(), &mut ready.made);
            self.common.graphs.run(device, name, || {
                let mut memory = memory.lock().unwrap();
                let tape = Tape::new(params, &mut memory, None);
                *made = Some(make(&tape)?);
                tape.flush()
            })?;
            ready.current = self.settled.load(Ordering::SeqCst);
        }
        let Some(made) = ready.made else { bail!("`{name}` was captured without having been made") };
        Ok(made)
    }
}

/// A batch on its way: 4-byte elements, each part at a known place.
#[derive(Default)]
struct Parcel {
    data: Vec<u32>,
}

/// A part of a parcel.
#[derive(Clone, Copy)]
struct Part {
    from: usize,
    n: usize,
}

impl Part {
    /// The part of a parcel that has arrived at `slot`.
    fn of<'m>(&self, slot: DeviceSlice<'m, u32>) -> DeviceSlice<'m, u32> {
        slot.part(self.from, self.n)
    }
}

impl Parcel {
    /// Adds a part.
    fn add(&mut self, part: impl IntoIterator<Item = u32>) -> Part {
        let from = self.data.len();
        self.data.extend(part);
        Part { from, n: self.data.len() - from }
    }

    /// Adds `steps` times `padded` elements of the parts of `groups` groups of `real` rows: `of(t, i)` for row i of step t.
    fn rows(
        &mut self,
        steps: usize,
        groups: usize,
        (real, padded): (usize, usize),
        of: impl Fn(usize, usize) -> u32,
    ) -> Part {
        let from = self.data.len();
        for t in 0..steps {
            for g in 0..groups {
                self.data.extend((0..padded).map(|b| if b < real { of(t, g * real + b) } else { 0 }));
            }
        }
        Part { from, n: self.data.len() - from }
    }
}

/// The table of views and transitions as kernels have it, where walks have poses in it and its features are read as they are stored.
fn transitions(views: &ViewTable) -> Result<Option<Transitions<'_>>> {
    if views.factors().is_some() { Ok(None) } else { stored(views) }
}

/// As [`transitions`], whatever the features are multiplied by.
fn stored(views: &ViewTable) -> Result<Option<Transitions<'_>>> {
    let Some((transitions, table)) =
        views.transitions().and_then(|transitions| Some((transitions, transitions.table()?)))
    else {
        return Ok(None);
    };
    if transitions.actions() > MOST_ACTIONS {
        return Ok(None);
    }
    let features = views.rows();
    if features.dtype() != DType::F16 || !features.device().is_cuda() || !features.is_contiguous() {
        return Ok(None);
    }
    Ok(Some(Transitions {
        table: DeviceSlice::of(features)?,
        rows: DeviceSlice::of(&table.rows)?,
        next: DeviceSlice::of(&table.next)?,
        directions: DeviceSlice::of(&table.directions)?,
        actions: transitions.actions(),
        features: views.features(),
        poses: transitions.poses(),
    }))
}

/// Writes `table`, rows of as many numbers as there are `factors`, with each column times its factor to `out`.
pub(super) fn scale_features(
    device: &CudaDevice,
    table: DeviceSlice<'_, f16>,
    factors: DeviceSlice<'_, f32>,
    out: DeviceSlice<'_, f16>,
) -> Result<()> {
    let (n, features) = (table.len(), factors.len());
    if features == 0 || !n.is_multiple_of(features) || out.len() != n {
        bail!("{n} numbers of rows of {features}, for {}", out.len())
    }
    let Ok(count) = i32::try_from(n) else { bail!("a table of {n} numbers is too large to hide some of them") };
    let args = [table.into(), factors.into(), out.into(), Arg::Int(features as i32), Arg::Int(count)];
    cuda::launch(device, "scale_features", cuda::each(n), &args)
}

fn pose(walk: &Walk, t: usize) -> Option<u32> {
    walk.seen.get(t).map_or(Some(0), |seen| seen.pose)
}

/// Whether all walks are along the poses of the views' transitions.
fn posed(walks: &[Walk]) -> bool {
    walks.iter().all(|w| w.seen.len() == w.actions.len() && !w.is_empty() && w.seen.iter().all(|s| s.pose.is_some()))
}

/// Requests in a parcel: rows, length, and their parts.
struct Asked {
    rows: usize,
    length: usize,
    parts: [Part; 3],
}

impl Asked {
    fn new(parcel: &mut Parcel, requests: &[Vec<u32>], student: &NavStudent) -> Result<Self> {
        let (padded, length) =
            (rows(requests.len()), requests.iter().map(Vec::len).max().unwrap_or(0).next_multiple_of(8));
        let real: Vec<usize> = requests.iter().map(|r| real_steps(r)).collect();
        if real.contains(&0) || real.is_empty() {
            bail!("a request without a word")
        }
        let mut ids = vec![PAD; padded * length];
        for (row, request) in ids.chunks_mut(length).zip(requests) {
            check(request, student.sizes.words)?;
            row[..request.len()].copy_from_slice(request);
        }
        let longest = requests.iter().map(Vec::len).max().unwrap_or(1) as u32;
        let counted = |n: u32| if student.reading.reference_padding { longest } else { n };
        let of = |b: usize| real.get(b).map_or(1, |n| *n as u32);
        let parts = [parcel.add(ids), parcel.add((0..padded).map(of)), parcel.add((0..padded).map(|b| counted(of(b))))];
        Ok(Self { rows: padded, length, parts })
    }

    fn there<'m>(&self, slot: DeviceSlice<'m, u32>) -> Requests<'m> {
        let [ids, lengths, counted] = self.parts.map(|part| part.of(slot));
        Requests { rows: self.rows, length: self.length, ids, lengths, counted }
    }
}

impl NavStudent {
    /// The rows of the views times their factors, where they have some. They are written over those of the step before: captured
    /// graphs know where they are.
    fn scaled(&self, views: &ViewTable) -> Result<Option<Tensor>> {
        let (Some(factors), rows) = (views.factors(), views.rows()) else { return Ok(None) };
        let out = self.gpu.common.kept("views with factors", || rows.zeros_like())?;
        if out.shape() != rows.shape() {
            bail!("views {:?} after some {:?}", rows.shape(), out.shape())
        }
        let device = self.params.device().as_cuda_device()?;
        scale_features(device, DeviceSlice::of(rows)?, DeviceSlice::of(factors)?, DeviceSlice::of(&out)?)?;
        Ok(Some(out))
    }

    fn encodings(&self, length: usize, device: &Device) -> Result<Option<Tensor>> {
        if !self.reading.positions {
            return Ok(None);
        }
        // Kept, since captured graphs know where they are.
        let made = || positions(length, self.sizes.hidden, device);
        self.gpu.common.kept(&format!("positions {length}"), made).map(Some)
    }

    /// One step of the optimiser, where the views say what can be done at the walks' poses.
    pub(crate) fn step_on_gpu(
        &self,
        batch: &Batch,
        lesson: &Lesson,
        views: &ViewTable,
        adam: &mut Adam,
    ) -> Result<Option<Tensor>> {
        let (device, walks, asked) = (self.params.device(), &batch.walks, batch.requests.len());
        let Some(transitions) = stored(views)? else { return Ok(None) };
        if !posed(walks) || asked == 0 {
            return Ok(None);
        }
        let steps = walks.iter().map(Walk::len).max().unwrap_or(0);
        let (n, copies) = (walks.len(), walks.len() / asked);
        if n != copies * asked || lesson.targets.len() != n * steps || lesson.weights.len() != n * steps {
            bail!("a lesson of {} targets for {n} walks of {asked} requests, {steps} steps", lesson.targets.len())
        }
        if lesson.targets.iter().any(|a| *a as usize >= transitions.actions) {
            bail!("a target that is no action")
        }
        let mut parcel = Parcel::default();
        let requests = Asked::new(&mut parcel, &batch.requests, self)?;
        let sizes = (asked, requests.rows);
        let poses = parcel.rows(steps, copies, sizes, |t, i| pose(&walks[i], t).unwrap_or(0));
        let actions = parcel.rows(steps, copies, sizes, |t, i| walks[i].actions.get(t).copied().unwrap_or(0));
        let targets = parcel.rows(steps, copies, sizes, |t, i| lesson.targets[t * n + i]);
        let weights = parcel.rows(steps, copies, sizes, |t, i| lesson.weights[t * n + i].to_bits());
        let bonus = !lesson.entropy.is_empty();
        let entropy = bonus.then(|| parcel.rows(steps, copies, sizes, |t, i| lesson.entropy[t * n + i].to_bits()));
        let scaled = self.scaled(views)?;
        let varied = if scaled.is_some() { " varied" } else { "" };
        let transitions = match &scaled {
            Some(rows) => Transitions { table: DeviceSlice::of(rows)?, ..transitions },
            None => transitions,
        };
        let name = format!("step {} {} {copies} {steps} {bonus}{varied}", requests.rows, requests.length);
        let slot = self.gpu.common.put(&name, &parcel.data, device)?;
        let encodings = self.encodings(requests.length, device)?;
        let loss = self.gpu.common.number(device)?;
        let training = self.gpu.common.training(&self.params)?;
        let kept = self.gpu.memory(device)?;
        self.gpu.common.graphs.run(device, &name, || {
            let (slot, encodings) = (DeviceSlice::of(&slot)?, encodings.as_ref().map(DeviceSlice::of).transpose()?);
            let mut memory = kept.lock().unwrap();
            let tape = Tape::new(&self.params, &mut memory, Some(&training.grads));
            let pass = Pass { tape: &tape, sizes: self.sizes, transitions };
            let course = (poses.of(slot), actions.of(slot));
            let scores = pass.student(&requests.there(slot), encodings, course, steps, copies)?;
            let logits = tape.var(scores.rows, transitions.actions)?;
            tape.action_scores(scores, transitions, course.0, tape.bias_of(PREDICTOR_OUTPUT)?, logits)?;
            let bonus = entropy.map(|part| part.of(slot).bits());
            tape.loss(logits, targets.of(slot), weights.of(slot).bits(), bonus, DeviceSlice::of(&loss)?)?;
            tape.backward()?;
            adam.apply_from(&training.grads)
        })?;
        adam.count();
        Ok(Some(loss.copy()?))
    }

    /// The actions of walkers led from `poses`, step by step, where the views say what can be done at them.
    pub(crate) fn lead_on_gpu(
        &self,
        requests: &[Vec<u32>],
        poses: &[u32],
        views: &ViewTable,
        horizon: usize,
        draws: &[f32],
    ) -> Result<Option<Vec<Vec<u32>>>> {
        let Some(transitions) = transitions(views)? else { return Ok(None) };
        let n = requests.len();
        if poses.len() != n
            || poses.iter().any(|p| *p as usize >= views.places() * crate::task::nav::model::transition_table::HEADINGS)
        {
            bail!("{} poses for {n} requests, or one that is nowhere", poses.len())
        }
        let mut made = vec![Vec::with_capacity(n); horizon];
        for from in (0..n).step_by(WALKERS) {
            let to = n.min(from + WALKERS);
            let draw = |t: usize, i: usize| draws[t * n + from + i];
            let some = self.lead_some(&requests[from..to], &poses[from..to], transitions, horizon, draw)?;
            made.iter_mut().zip(some).for_each(|(all, some)| all.extend(some));
        }
        Ok(Some(made))
    }

    fn lead_some(
        &self,
        requests: &[Vec<u32>],
        poses: &[u32],
        transitions: Transitions<'_>,
        horizon: usize,
        draw: impl Fn(usize, usize) -> f32,
    ) -> Result<Vec<Vec<u32>>> {
        let (device, n) = (self.params.device(), requests.len());
        let mut parcel = Parcel::default();
        let asked = Asked::new(&mut parcel, requests, self)?;
        let r = asked.rows;
        let places = parcel.rows(horizon + 1, 1, (n, r), |t, i| if t == 0 { poses[i] } else { 0 });
        let draws = parcel.rows(horizon, 1, (n, r), |t, i| draw(t, i).to_bits());
        let done = parcel.rows(1, 1, (n, r), |_, _| 0);
        let name = format!("lead {r} {} {horizon}", asked.length);
        let slot = self.gpu.common.put(&name, &parcel.data, device)?;
        let made = self.gpu.common.whole(&format!("actions {r} {horizon}"), r * horizon, device)?;
        let encodings = self.encodings(asked.length, device)?;
        let kept = self.gpu.memory(device)?;
        let leading =
            self.gpu.ready(&self.gpu.leading, (&format!("ready to lead {horizon}"), &self.params), |tape| {
                let transitions = transitions.resident();
                Pass { tape, sizes: self.sizes, transitions }.leading(horizon).map(Leading::resident)
            })?;
        self.gpu.common.graphs.run(device, &name, || {
            let (slot, encodings) = (DeviceSlice::of(&slot)?, encodings.as_ref().map(DeviceSlice::of).transpose()?);
            let mut memory = kept.lock().unwrap();
            let tape = Tape::new(&self.params, &mut memory, None);
            let pass = Pass { tape: &tape, sizes: self.sizes, transitions };
            let walkers = Walkers {
                poses: places.of(slot),
                draws: draws.of(slot).bits(),
                done: done.of(slot),
                actions: DeviceSlice::of(&made)?,
            };
            pass.lead(&leading, &asked.there(slot), encodings, &walkers, horizon)
        })?;
        Ok(cuda::download(&made)?.chunks(r).map(|step| step[..n].to_vec()).collect())
    }
}

/// Walks in a parcel.
struct Told {
    rows: usize,
    steps: usize,
    parts: [Part; 4],
}

impl Told {
    fn new(parcel: &mut Parcel, walks: &[Walk], reference_padding: bool) -> Self {
        let steps = walks.iter().map(Walk::len).max().unwrap_or(1);
        let (n, b) = (walks.len(), rows(walks.len()));
        let length = |i: usize| walks.get(i).map_or(1, Walk::len);
        let last = |i: usize| if reference_padding { steps } else { length(i) };
        let parts = [
            parcel.rows(steps, 1, (n, b), |t, i| pose(&walks[i], t).unwrap_or(0)),
            parcel.rows(steps, 1, (n, b), |t, i| walks[i].actions.get(t).copied().unwrap_or(0)),
            parcel.add((0..b).map(|i| length(i) as u32)),
            parcel.add((0..b).map(|i| ((last(i) - 1) * b + i) as u32)),
        ];
        Self { rows: b, steps, parts }
    }

    fn there<'m>(&self, slot: DeviceSlice<'m, u32>) -> Paths<'m> {
        let [poses, actions, lengths, last] = self.parts.map(|part| part.of(slot));
        Paths { rows: self.rows, steps: self.steps, poses, actions, lengths, last }
    }
}

impl NavDescriber {
    /// One step of the optimiser, where the views say what can be done at the walks' poses.
    pub(crate) fn step_on_gpu(
        &self,
        walks: &[Walk],
        texts: &[Vec<u32>],
        views: &ViewTable,
        adam: &mut Adam,
    ) -> Result<Option<Tensor>> {
        let Some(transitions) = transitions(views)? else { return Ok(None) };
        if !posed(walks) || walks.is_empty() {
            return Ok(None);
        }
        if texts.len() != walks.len() || texts.iter().any(|d| d.len() < 2) {
            bail!("{} descriptions of at least START and END for {} walks", texts.len(), walks.len())
        }
        texts.iter().try_for_each(|text| check(text, self.sizes.words))?;
        let (device, n) = (self.params.device(), walks.len());
        let longest = texts.iter().map(Vec::len).max().unwrap_or(2) - 1;
        let mut targets = vec![PAD; longest * n];
        for (b, text) in texts.iter().enumerate() {
            for (t, &id) in text[1..].iter().enumerate() {
                targets[t * n + b] = id;
            }
        }
        let weights = loss::target_weights(&targets, n, &[(n, 1.0)]);
        let words = steps(longest);
        let mut parcel = Parcel::default();
        let told = Told::new(&mut parcel, walks, self.reference_padding);
        let at = |t: usize, i: usize| (t < longest).then_some(t * n + i);
        let sizes = (n, told.rows);
        let fed = |t: usize, i: usize| if t + 1 < texts[i].len() { texts[i][t] } else { PAD };
        let ids = parcel.rows(words, 1, sizes, fed);
        let targets = parcel.rows(words, 1, sizes, |t, i| at(t, i).map_or(PAD, |at| targets[at]));
        let weights = parcel.rows(words, 1, sizes, |t, i| at(t, i).map_or(0.0, |at| weights[at]).to_bits());
        let name = format!("step {} {} {words}", told.rows, told.steps);
        let slot = self.gpu.common.put(&name, &parcel.data, device)?;
        let loss = self.gpu.common.number(device)?;
        let training = self.gpu.common.training(&self.params)?;
        let kept = self.gpu.memory(device)?;
        self.gpu.common.graphs.run(device, &name, || {
            let slot = DeviceSlice::of(&slot)?;
            let mut memory = kept.lock().unwrap();
            let tape = Tape::new(&self.params, &mut memory, Some(&training.grads));
            let pass = Pass { tape: &tape, sizes: self.sizes, transitions };
            let logits = pass.describer(&told.there(slot), ids.of(slot), words)?;
            tape.loss(logits, targets.of(slot), weights.of(slot).bits(), None, DeviceSlice::of(&loss)?)?;
            tape.backward()?;
            adam.apply_from(&training.grads)
        })?;
        adam.count();
        Ok(Some(loss.copy()?))
    }

    /// Candidate descriptions, as [`NavDescriber::propose`] gives them.
    pub(crate) fn propose_on_gpu(
        &self,
        walks: &[Walk],
        views: &ViewTable,
        samples: usize,
        horizon: usize,
        stream: &mut Stream,
    ) -> Result<Option<Vec<Vec<Rolled>>>> {
        let Some(transitions) = transitions(views)? else { return Ok(None) };
        if !posed(walks) || walks.is_empty() || horizon == 0 {
            return Ok(None);
        }
        let (device, n, copies) = (self.params.device(), walks.len(), samples + 1);
        let numbers = draws(horizon * n * copies, |i| i % (n * copies) < n, stream);
        let mut parcel = Parcel::default();
        let told = Told::new(&mut parcel, walks, self.reference_padding);
        let r = told.rows * copies;
        let draws = parcel.rows(horizon, copies, (n, told.rows), |t, i| numbers[t * n * copies + i].to_bits());
        let name = format!("propose {} {} {copies} {horizon}", told.rows, told.steps);
        let slot = self.gpu.common.put(&name, &parcel.data, device)?;
        let kept = self.gpu.memory(device)?;
        let slot = DeviceSlice::of(&slot)?;
        let writing = self.writing(&name, r, horizon)?;
        let ready = format!("ready to describe {} {horizon}", told.steps);
        let wording = self.gpu.ready(&self.gpu.wording, (&ready, &self.params), |tape| {
            let v = self.sizes.words;
            let never = Var::dense(DeviceSlice::of(&writing.never)?, 1, v)?.resident();
            let transitions = transitions.resident();
            Pass { tape, sizes: self.sizes, transitions }.wording(told.steps, horizon, never).map(Wording::resident)
        })?;
        self.gpu.common.graphs.run(device, &format!("{name} begin"), || {
            let mut memory = kept.lock().unwrap();
            let tape = Tape::new(&self.params, &mut memory, None);
            let pass = Pass { tape: &tape, sizes: self.sizes, transitions };
            let previous = DeviceSlice::of(&writing.previous)?;
            let args = [Arg::from(previous), Arg::Int(START as i32), Arg::Int(r as i32)];
            cuda::launch(device.as_cuda_device()?, "set_all", cuda::each(r), &args)?;
            let words = pass.words(&wording, &told.there(slot), copies, horizon, previous)?;
            *writing.words.lock().unwrap() = Some(words.resident());
            tape.flush()
        })?;
        let Some(words) = *writing.words.lock().unwrap() else { bail!("nothing is being written") };
        let mut written: Vec<Vec<u32>> = Vec::with_capacity(horizon);
        let mut ended = vec![false; n * copies];
        for from in (0..horizon).step_by(STRIDE) {
            let to = horizon.min(from + STRIDE);
            self.gpu.common.graphs.run(device, &format!("{name} {from}"), || {
                let memory = kept.lock().unwrap();
                let tape = Tape::again(&self.params, &memory);
                let pass = Pass { tape: &tape, sizes: self.sizes, transitions };
                let (draws, symbols) = (draws.of(slot).bits(), DeviceSlice::of(&writing.symbols)?);
                tape.begin_steps(r)?;
                for t in from..to {
                    pass.word(&words, t, draws.part(t * r, r), symbols.part(t * r, r))?;
                }
                tape.end_steps(r)
            })?;
            let symbols = cuda::download(&writing.symbols)?;
            for step in symbols.chunks(r).take(to).skip(from) {
                let real = step.chunks(told.rows).flat_map(|copy| &copy[..n]).copied().collect::<Vec<_>>();
                ended.iter_mut().zip(&real).for_each(|(ended, id)| *ended |= *id == END);
                written.push(real);
            }
            if ended.iter().all(|e| *e) {
                break;
            }
        }
        let rolled = |row| Rolled::of(&written, row);
        Ok(Some((0..n).map(|b| (0..copies).map(|k| rolled(k * n + b)).collect()).collect()))
    }

    fn writing(&self, name: &str, r: usize, horizon: usize) -> Result<Arc<Writing>> {
        let (v, device) = (self.sizes.words, self.params.device());
        let mut all = self.gpu.writing.lock().unwrap();
        if let Some(found) = all.get(name) {
            return Ok(found.clone());
        }
        let mut never = vec![0f32; v];
        never[PAD as usize] = -1e9;
        never[START as usize] = -1e9;
        let made = Arc::new(Writing {
            words: Mutex::new(None),
            never: Tensor::new(never, device)?,
            previous: Tensor::zeros(r, DType::U32, device)?,
            symbols: Tensor::zeros(r * horizon, DType::U32, device)?,
        });
        all.insert(name.to_owned(), made.clone());
        Ok(made)
    }
}
