//! Timing of whole iterations of the trainer, of a run's start, and of a recurrence alone. Families time their own models
//! ([`Family::teacher_updates`](crate::family::Family::teacher_updates)).

use crate::config::run::{RunConfig, TeacherMode};
use crate::family::benchmark::{Effort, Timing, time};
use crate::registry::AnyFamily;
use crate::run::{Command, Event, RunState};
use crate::trainer::Launch;
use candle_core::Device;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Instant;

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

/// Processor time, in milliseconds, that this process has spent from its beginning until a run in it is ready to teach: the world, the
/// views, the models and the first checkpoint are there. The run has its preset's settings, and ends then.
///
/// # Errors
/// When the run cannot be started, or fails before it is ready.
pub fn start(
    trainer: &'static dyn AnyFamily,
    config: &RunConfig,
    folder: &Path,
    device: &Device,
) -> anyhow::Result<f64> {
    let (ready, seen) = channel();
    let launch = Launch {
        id: "start".into(),
        config: config.clone(),
        folder: folder.to_owned(),
        device: device.clone(),
        store: None,
        teacher: Some(TeacherMode::Simulated),
        listener: Some(Box::new(move |event| {
            if let Event::Status(status) = &**event
                && status.state == RunState::Running
            {
                // The first message is the one that counts.
                let _ = ready.send(processor_time());
            }
        })),
    };
    let (handle, thread) = trainer.spawn(launch)?;
    let spent = seen.recv();
    let _ = handle.commands.send(Command::Shutdown);
    thread.join().map_err(|_| anyhow::anyhow!("the trainer's thread broke"))??;
    Ok(spent?)
}

/// Milliseconds of processor time that this process has spent, in the program and in the kernel, on all threads.
fn processor_time() -> f64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as f64 * 1e3 + spent.tv_nsec as f64 / 1e6
}

/// One recurrence alone on a GPU, `hidden` units and `steps` steps, for several numbers of rows: recorded, forwards and
/// backwards.
///
/// # Errors
/// When the device fails.
pub fn recurrences(device: &Device, hidden: usize, steps: usize, effort: Effort) -> anyhow::Result<Vec<Timing>> {
    use crate::nn::cuda::{DeviceSlice, graph_capture::GraphCache, lstm};
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
        let [table, h0, hs, last, cells, gates, gh, d_gates, dh, d_w] =
            [table, h0, hs, last, cells, gates, gh, d_gates, dh, d_w].map(DeviceSlice::of);
        let (h0, hs, cells, gates) = (h0?, hs?, cells?, gates?);
        let there = lstm::Forward {
            table: table?,
            w: DeviceSlice::of(&w)?,
            h0: Some(h0),
            c0: Some(h0),
            hs,
            last: Some(last?),
            cells,
            gates: Some(gates),
            gh: gh?,
        };
        let back = lstm::Backward {
            w: there.w,
            h0: there.h0,
            c0: there.c0,
            hs,
            cells,
            gates,
            grad: hs,
            dh_last: None,
            dc_last: None,
            d_gates: d_gates?,
            dh: dh?,
            dc: DeviceSlice::of(&dc)?,
            d_w: d_w?,
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
