//! What is timed, and how: the updates of the simulated teacher at the paper's sizes, and whole iterations of the trainer.
//!
//! A sample is the mean over a few updates with the device drained at its end; a figure is the median of samples, after
//! updates that are not counted (they load kernels and record what the GPU replays).

pub mod nav;

use crate::config::run::RunConfig;
use crate::config::run::TeacherMode;
use crate::registry::AnyFamily;
use crate::run::{Command, Event};
use crate::task::regex::teacher::{Draws, RegexTeacher};
use crate::task::regex::world::RegexWorld;
use crate::trainer::Launch;
use candle_core::Device;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Instant;

/// Milliseconds of an update, of one sample each.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Timing {
    /// What was timed.
    pub name: String,
    /// Samples, in the order they were taken.
    pub samples: Vec<f64>,
}

impl Timing {
    /// The median.
    pub fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        }
    }

    /// The smallest sample.
    pub fn min(&self) -> f64 {
        self.samples.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The largest sample.
    pub fn max(&self) -> f64 {
        self.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

/// How long to look.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Samples of a figure.
    pub samples: usize,
    /// Updates of a sample.
    pub each: usize,
    /// Updates before the first sample.
    pub warm: usize,
}

fn time(
    name: &str,
    device: &Device,
    effort: Effort,
    mut update: impl FnMut(u64) -> anyhow::Result<()>,
) -> anyhow::Result<Timing> {
    let mut number = 0;
    let mut some = |n: usize| -> anyhow::Result<()> {
        for _ in 0..n {
            update(number)?;
            number += 1;
        }
        Ok(device.synchronize()?)
    };
    some(effort.warm)?;
    let mut samples = Vec::with_capacity(effort.samples);
    for _ in 0..effort.samples {
        let begin = Instant::now();
        some(effort.each)?;
        samples.push(begin.elapsed().as_secs_f64() * 1e3 / effort.each as f64);
    }
    Ok(Timing { name: name.to_owned(), samples })
}

/// Updates of the simulated teacher's executor and describer, examples and all.
///
/// # Errors
/// When the models cannot be made, or an update fails.
pub fn teacher_updates(
    world: &RegexWorld,
    teacher: &RegexTeacher,
    batch: usize,
    device: &Device,
    effort: Effort,
) -> anyhow::Result<Vec<Timing>> {
    let (mut executor, mut describer) = teacher.optimisers(1e-3)?;
    let mut draws = Draws::new(world, 1, "executor", true);
    let first = time("regex-executor-update", device, effort, |update| {
        let examples = teacher.executor_batch(&mut draws, update, batch);
        teacher.train_executor(&examples, &mut executor)?;
        Ok(())
    })?;
    let mut draws = Draws::new(world, 1, "describer", true);
    let second = time("regex-describer-update", device, effort, |update| {
        let (items, texts) = teacher.describer_batch(&mut draws, update, batch);
        teacher.train_describer(&items, &texts, &mut describer)?;
        Ok(())
    })?;
    Ok(vec![first, second])
}

/// Iterations of a run as the trainer makes them, everything included but evaluations and checkpoints.
///
/// # Errors
/// When the run cannot be started, or ends before it was looked at long enough.
pub fn iterations(
    name: &str,
    trainer: &'static dyn AnyFamily,
    config: &RunConfig,
    folder: &Path,
    device: &Device,
    effort: Effort,
) -> anyhow::Result<Timing> {
    let mut config = config.clone();
    config.schedule.episodes = 0;
    config.schedule.evaluate_every = u64::MAX;
    config.schedule.checkpoint_every = u64::MAX;
    config.schedule.evaluate_tasks = 1;
    config.schedule.point_every = effort.each as u64;
    let (points, seen) = channel();
    let launch = Launch {
        id: name.into(),
        config,
        folder: folder.to_owned(),
        device: device.clone(),
        store: None,
        teacher: Some(TeacherMode::Simulated),
        listener: Some(Box::new(move |event| {
            if let Event::Point(point) = &**event {
                // Nobody listens any more at the end.
                let _ = points.send((point.update, point.descriptions, Instant::now()));
            }
        })),
    };
    let (handle, thread) = trainer.spawn(launch)?;
    let mut last: Option<(Instant, u64)> = None;
    let mut samples = Vec::new();
    let (mut updates, mut descriptions) = (0, 0);
    while samples.len() < effort.samples {
        // The channel closes when the run ends before its time; the thread then says why.
        let Ok((update, described, at)) = seen.recv() else { break };
        if let Some((before, from)) = last
            && from >= effort.warm as u64
        {
            if samples.is_empty() {
                crate::stages::measure();
            }
            samples.push((at - before).as_secs_f64() * 1e3 / effort.each as f64);
        }
        last = Some((at, update));
        (updates, descriptions) = (update, described);
    }
    let _ = handle.commands.send(Command::Shutdown);
    thread.join().map_err(|_| anyhow::anyhow!("the trainer's thread broke"))??;
    if descriptions == 0 {
        anyhow::bail!("the teacher described nothing in {updates} updates, so no learning step was timed")
    }
    tracing::info!("{name}: {descriptions} descriptions in {updates} updates");
    for (stage, laps) in crate::stages::take() {
        let timing = Timing { name: stage.to_owned(), samples: laps };
        tracing::info!("{stage}: {:.2} ms (median of {})", timing.median(), timing.samples.len());
    }
    Ok(Timing { name: name.to_owned(), samples })
}

/// What was looked at, and a line for each kernel.
pub type Profile = (String, std::collections::BTreeMap<String, crate::nn::cuda::profile::Line>);

/// Where the GPU's time goes in one update of executor and describer, not recorded: a line for each kernel and size of
/// product.
///
/// # Errors
/// When an update fails.
pub fn profile(world: &RegexWorld, teacher: &RegexTeacher, batch: usize) -> anyhow::Result<Vec<Profile>> {
    let (mut executor, mut describer) = teacher.optimisers(1e-3)?;
    let mut found = Vec::new();
    for (name, round) in [("warm", 1), ("update", 3)] {
        let mut draws = Draws::new(world, 1, "executor", true);
        let examples = teacher.executor_batch(&mut draws, round, batch);
        let lines = crate::nn::cuda::profile::profile(|| teacher.train_executor(&examples, &mut executor).map(drop))?;
        found.push((format!("executor {name}"), lines));
        let mut draws = Draws::new(world, 1, "describer", true);
        let (items, texts) = teacher.describer_batch(&mut draws, round, batch);
        let step = || teacher.train_describer(&items, &texts, &mut describer).map(drop);
        found.push((format!("describer {name}"), crate::nn::cuda::profile::profile(step)?));
    }
    Ok(found.split_off(2))
}

/// One recurrence alone on a GPU, `hidden` units and `steps` steps, for several numbers of rows: recorded, forwards and
/// backwards.
///
/// # Errors
/// When the device fails.
pub fn recurrences(device: &Device, hidden: usize, steps: usize, effort: Effort) -> anyhow::Result<Vec<Timing>> {
    use crate::nn::cuda::{at, graph_capture::GraphCache, lstm};
    use crate::nn::tokens::Tokens;
    use candle_core::{DType, Tensor};
    let cuda = device.as_cuda_device()?;
    let zeros = |n: usize| Tensor::zeros(n, DType::F32, device);
    let mut found = Vec::new();
    for rows in [32, 160, 192, 224, 256, 352, 704, 1760] {
        let tokens = Tokens::new(&vec![vec![5u32; steps]; rows], 8, true, device)?;
        let run = lstm::Run::of(&tokens, hidden)?;
        let n = rows * hidden;
        let w = (Tensor::rand(-1f32, 1f32, 4 * hidden * hidden, device)? * (hidden as f64).powf(-0.5))?;
        let sizes =
            [8 * 4 * hidden, n, steps * n, n, steps * n, steps * 4 * n, 4 * n, steps * 4 * n, n, 4 * hidden * hidden];
        let all: Vec<Tensor> = sizes.iter().map(|n| zeros(*n)).collect::<candle_core::Result<_>>()?;
        let [table, h0, hs, last, cells, gates, gh, d_gates, dh, d_w] = &all[..] else { unreachable!() };
        let dc = zeros(n)?;
        let there = lstm::Forward {
            table: at(table)?,
            w: at(&w)?,
            h0: at(h0)?,
            c0: at(h0)?,
            hs: at(hs)?,
            last: at(last)?,
            cells: at(cells)?,
            gates: at(gates)?,
            gh: at(gh)?,
        };
        let back = lstm::Backward {
            w: there.w,
            h0: there.h0,
            c0: there.c0,
            hs: there.hs,
            cells: there.cells,
            gates: there.gates,
            grad: there.hs,
            dh_last: 0,
            dc_last: 0,
            d_gates: at(d_gates)?,
            dh: at(dh)?,
            dc: at(&dc)?,
            d_w: at(d_w)?,
        };
        let graphs = GraphCache::default();
        for (name, body) in [
            ("forwards", &(|| lstm::forward(cuda, &run, &there)) as &dyn Fn() -> candle_core::Result<()>),
            ("backwards", &|| lstm::backward(cuda, &run, &back)),
        ] {
            let title = format!("{rows} rows, {steps} steps {name}");
            found.push(time(&title, device, effort, |_| Ok(graphs.run(device, name, body)?))?);
        }
    }
    Ok(found)
}
