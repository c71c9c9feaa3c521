//! Training a part of a simulated teacher: steps, readings on validation between them, and the weights that read best.

use crate::family::TeacherTraining;
use crate::nn::params::Params;
use crate::protocol::Teacher;
use crate::protocol::World;
use crate::rng;
use candle_core::{Result, Tensor};
use std::collections::BTreeMap;
use std::time::Instant;

/// How long a part is trained.
pub struct Length {
    /// Updates at most.
    pub updates: u64,
    /// When the whole training began, and the share of its time ([`TeacherTraining::seconds`]) after which this part ends.
    pub begun: Instant,
    /// See `begun`.
    pub share: f64,
}

/// Trains the part whose weights are `params`: `step` makes an update and gives its loss, `score` reads how good the part is,
/// `tell` says it. The weights that scored best are left in place; their score, or none where nothing was trained.
///
/// # Errors
/// When a step or a reading fails.
pub fn keep_best<S: PartialOrd + Copy>(
    request: &TeacherTraining<'_>,
    length: &Length,
    params: &Params,
    mut step: impl FnMut(u64) -> Result<Tensor>,
    score: impl Fn() -> Result<S>,
    tell: impl Fn(u64, f32, S) -> String,
) -> Result<Option<S>> {
    let mut best: Option<(S, BTreeMap<String, Tensor>)> = None;
    for update in 0..length.updates {
        let loss = step(update)?;
        let spent = length.begun.elapsed().as_secs_f64();
        let late = request.seconds > 0.0 && spent > request.seconds * length.share;
        let last = update + 1 == length.updates || late;
        if !((update + 1).is_multiple_of(request.evaluate_every) || last) {
            continue;
        }
        let reading = score()?;
        if best.as_ref().is_none_or(|(b, _)| reading > *b) {
            best = Some((reading, params.snapshot()?));
        }
        let done = (update + 1) as f64 / length.updates as f64;
        (request.progress)(&tell(update + 1, loss.to_scalar::<f32>()?, reading), done);
        if last {
            break;
        }
    }
    let Some((score, weights)) = best else { return Ok(None) };
    params.load(&weights)?;
    Ok(Some(score))
}

/// Shares of validation executions for which a describer's candidates qualify, in the order in which describers are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Qualifying {
    /// Some candidate.
    pub some: f64,
    /// The greedy one.
    pub greedy: f64,
}

impl Qualifying {
    /// How a training tells it.
    pub fn told(self, update: u64, loss: f32) -> String {
        let (greedy, some) = (100.0 * self.greedy, 100.0 * self.some);
        format!(
            "describer: update {update}, loss {loss:.3}, greedy qualifies for {greedy:.1}%, some candidate for {some:.1}%"
        )
    }
}

/// Proposes for each execution the greedy description and `samples` sampled ones, and asks the executor which qualify.
///
/// # Errors
/// When the models fail.
pub fn qualifying<W: World>(
    models: &dyn Teacher<W>,
    executions: &[(&W::Start, &W::Execution)],
    samples: usize,
    tau: f64,
    seed: u64,
) -> Result<Qualifying> {
    let (mut greedy, mut some) = (0usize, 0usize);
    for (number, chunk) in executions.chunks(64).enumerate() {
        let mut stream = rng::stream(seed, "pragmatic-score", number as u64);
        let proposed = models.propose(chunk, samples, &mut stream)?;
        let items: Vec<_> = chunk
            .iter()
            .zip(&proposed)
            .flat_map(|((start, execution), all)| all.iter().map(move |c| (*start, *execution, c.as_str())))
            .collect();
        let mut ok = models.qualifies(&items, tau)?.into_iter();
        for candidates in &proposed {
            let mine: Vec<bool> = ok.by_ref().take(candidates.len()).collect();
            greedy += usize::from(mine.first() == Some(&true));
            some += usize::from(mine.contains(&true));
        }
    }
    let share = |n: usize| n as f64 / executions.len().max(1) as f64;
    Ok(Qualifying { some: share(some), greedy: share(greedy) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::configure;
    use candle_core::Device;
    use std::cell::{Cell, RefCell};

    #[test]
    fn the_weights_of_the_best_reading_are_kept_and_time_ends_it() {
        let config = configure("regex/tiny", 1, &[]).unwrap();
        let told = RefCell::new(Vec::new());
        let say = |text: &str, _: f64| told.borrow_mut().push(text.to_owned());
        let mut request = TeacherTraining {
            config: &config,
            executor_updates: 0,
            describer_updates: 0,
            batch: 1,
            evaluate_every: 2,
            output: std::path::Path::new("unused"),
            half: false,
            seconds: 0.0,
            device: &Device::Cpu,
            progress: &say,
        };
        let mut params = Params::new(&Device::Cpu);
        params.add("w", &Tensor::new(&[0f32], &Device::Cpu).unwrap()).unwrap();
        let at = Cell::new(0.0);
        let train = |request: &TeacherTraining<'_>, updates| {
            let length = Length { updates, begun: Instant::now(), share: 1.0 };
            let step = |update: u64| {
                at.set(update as f64 + 1.0);
                let weights = [("w".to_owned(), Tensor::new(&[update as f32 + 1.0], &Device::Cpu)?)];
                params.load(&weights.into())?;
                Tensor::new(0.5f32, &Device::Cpu)
            };
            // Best after four updates.
            let score = || Ok(10.0 - (at.get() - 4.0f64).abs());
            keep_best(request, &length, &params, step, score, |n, _, s| format!("{n}: {s}")).unwrap()
        };
        assert_eq!(train(&request, 7), Some(10.0));
        assert_eq!(params.get("w").unwrap().as_tensor().to_vec1::<f32>().unwrap(), [4.0]);
        assert_eq!(*told.borrow(), ["2: 8", "4: 10", "6: 8", "7: 7"]);
        assert_eq!(train(&request, 0), None);
        request.seconds = 1e-9;
        assert_eq!(train(&request, 7), Some(7.0), "one update, and then it is late");
    }
}
