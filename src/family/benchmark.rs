//! Timing of a family's models. A sample is the mean over a few updates with the device drained at its end; a figure is the
//! median of samples, after updates that are not counted (they load kernels and record what the GPU replays).

use crate::config::run::RunConfig;
use candle_core::Device;
use std::time::Instant;

/// A benchmark of a family's simulated teacher.
#[derive(Clone, Copy)]
pub struct Benchmark<'a> {
    /// World and sizes.
    pub config: &'a RunConfig,
    /// Device.
    pub device: &'a Device,
    /// Examples of an update; `None`: the paper's number.
    pub batch: Option<usize>,
    /// Updates and samples.
    pub effort: Effort,
}

/// Milliseconds of an update, of one sample each.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Timing {
    /// Name of the thing timed.
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

/// How many updates are made and timed.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Samples of a figure.
    pub samples: usize,
    /// Updates of a sample.
    pub each: usize,
    /// Updates before the first sample.
    pub warm: usize,
}

/// Times updates: `update` gets the number of each, from 0.
///
/// # Errors
/// When an update fails.
pub fn time(
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

/// Name of a piece of work, and a line for each kernel in it.
pub type Profile = (String, std::collections::BTreeMap<String, crate::nn::cuda::profile::Line>);
