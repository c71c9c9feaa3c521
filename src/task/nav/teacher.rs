//! The simulated teacher of NAV: a describer that says which way a walk went, and an executor that listens to it.

use super::agent::{MOST_DECISIONS, word_ids};
use super::environment::Around;
use super::reference_fixtures::{describer_names, student_names};
use super::settings::ModelSettings;
use super::world::NavWorld;
use super::{Start, Walk};
use crate::family::imported::ModelImport;
use crate::family::{TeacherReport, TeacherTraining};
use crate::nn::adam::Adam;
use crate::nn::artifact::{self, Precision};
use crate::nn::layers::Grad;
use crate::nn::params::Params;
use crate::nn::tokens::{END, START};
use crate::nn::weights_file::Wanted;
use crate::protocol::Teacher;
use crate::protocol::{Split, World};
use crate::rng::{self, Stream};
use crate::task::nav::model::NavSizes;
use crate::task::nav::model::describer::NavDescriber;
use crate::task::nav::model::rollout::RollOut;
use crate::task::nav::model::student::{Batch, Lesson, NavStudent, Reading, as_read};
use crate::teacher::training::{Length, Qualifying, keep_best, qualifying};
use crate::vocab::Vocabulary;
use candle_core::{Result, Tensor};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Sentences that a thread reads at least.
const TOGETHER: usize = 16;

/// Words of a description at most.
const LONGEST: usize = 50;

/// Header of a teacher's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Header {
    kind: String,
    family: String,
    sizes: NavSizes,
    words: Vocabulary,
    reading: Reading,
    horizon: usize,
    made: serde_json::Value,
}

/// Executor π_T and describer P̃_T.
pub struct NavTeacher {
    executor: NavStudent,
    describer: NavDescriber,
    header: Header,
    around: Arc<Around>,
}

impl NavTeacher {
    /// Untrained models.
    ///
    /// # Errors
    /// When the sizes do not fit each other.
    pub fn new(around: Arc<Around>, model: &ModelSettings, stream: &mut Stream) -> anyhow::Result<Self> {
        let words = around.world().words().vocabulary(0).map_err(anyhow::Error::msg)?;
        let sizes = NavSizes {
            words: words.rows(),
            hidden: model.hidden,
            heads: model.heads,
            features: around.views.features(),
            direction: model.direction,
        };
        let reading = Reading { reference_padding: model.reference_padding, positions: model.positions };
        let (kind, family) = ("teacher".into(), "nav".into());
        let header =
            Header { kind, family, sizes, words, reading, horizon: model.horizon, made: serde_json::Value::Null };
        Ok(Self::from_header(header, around, stream)?)
    }

    fn from_header(header: Header, around: Arc<Around>, stream: &mut Stream) -> Result<Self> {
        let device = around.views.device();
        let executor = NavStudent::new(header.sizes, header.reading, stream, device)?;
        let describer = NavDescriber::new(header.sizes, header.reading.reference_padding, stream, device)?;
        Ok(Self { executor, describer, header, around })
    }

    /// The models in a teacher file (`path` names it in errors).
    ///
    /// # Errors
    /// When it is no teacher of NAV, or one for other views.
    pub fn load(path: &Path, bytes: &[u8], around: Arc<Around>) -> anyhow::Result<Self> {
        let (header, tensors): (Header, BTreeMap<String, Tensor>) = artifact::load_bytes(path, bytes)?;
        if header.kind != "teacher" || header.family != "nav" {
            anyhow::bail!("{} is not a teacher of the NAV task", path.display())
        }
        if header.sizes.features != around.views.features() {
            anyhow::bail!(
                "{} was made for views of {} numbers, and those of this world have {}",
                path.display(),
                header.sizes.features,
                around.views.features()
            )
        }
        if header.sizes.words != header.words.rows() || !(1..=MOST_DECISIONS).contains(&header.horizon) {
            anyhow::bail!("{} is damaged: its sizes do not fit its words", path.display())
        }
        let teacher = Self::from_header(header, around, &mut rng::stream(0, "load", 0))?;
        for (name, params) in teacher.parts() {
            let prefix = format!("{name}.");
            let own = tensors.iter().filter_map(|(k, t)| Some((k.strip_prefix(&prefix)?.to_owned(), t.clone())));
            params.load(&own.collect())?;
        }
        teacher.settle(true);
        Ok(teacher)
    }

    /// Writes a teacher file from weights that another program wrote.
    ///
    /// # Errors
    /// When they do not fit these models, or the file cannot be written.
    pub(super) fn import(mut self, import: &ModelImport<'_>) -> anyhow::Result<()> {
        let mut wanted = Wanted::default();
        for ((name, params), names) in self.parts().into_iter().zip([student_names(), describer_names()]) {
            wanted = wanted.with(&format!("{name}."), &params.snapshot()?, &names);
        }
        self.header.made = import.made.clone();
        let tensors = import.weights.fit(&wanted, import.ignored)?;
        Ok(artifact::save(import.output, &self.header, &tensors, import.precision)?)
    }

    fn parts(&self) -> [(&'static str, &Params); 2] {
        [("executor", &self.executor.params), ("describer", &self.describer.params)]
    }

    /// Says whether the weights stay as they are: what is made of them alone is then made once.
    fn settle(&self, settled: bool) {
        self.executor.settle(settled);
        self.describer.settle(settled);
    }

    /// Optimisers of executor and describer, whose weights change from now on.
    pub(crate) fn optimisers(&self, rate: f64) -> Result<(Adam, Adam)> {
        self.settle(false);
        Ok((Adam::new(&self.executor.params, rate)?, Adam::new(&self.describer.params, rate)?))
    }

    /// `n` tasks as they are learnt from.
    pub(crate) fn draw(&self, n: usize, stream: &mut Stream) -> Vec<(Start, String, Walk)> {
        draw(self.around.world(), n, stream)
    }

    fn save(&self, path: &Path, precision: Precision) -> anyhow::Result<()> {
        let mut tensors = BTreeMap::new();
        for (name, params) in self.parts() {
            let own = params.snapshot()?;
            tensors.extend(own.into_iter().map(|(key, t)| (format!("{name}.{key}"), t)));
        }
        Ok(artifact::save(path, &self.header, &tensors, precision)?)
    }

    fn request(&self, text: &str) -> Vec<u32> {
        as_read(&word_ids(text, &self.header.words))
    }

    /// The executor's most likely actions for a description.
    pub(crate) fn executed(&self, tasks: &[(&Start, &str)]) -> Result<Vec<Walk>> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let starts: Vec<_> = tasks.iter().map(|(start, _)| *start).collect();
        let requests: Vec<_> = tasks.par_iter().with_min_len(TOGETHER).map(|(_, text)| self.request(text)).collect();
        let mut walkers = self.around.walkers(&starts)?;
        let unused = &mut rng::stream(0, "greedy", 0);
        self.executor.lead(&requests, &mut walkers, &self.around.views, (self.header.horizon, false), unused)?;
        Ok(walkers.walks())
    }

    /// One step of the executor: it walks as it likes, told the requests, and learns at each place where a shortest
    /// path to the goal leads.
    pub(crate) fn train_executor(
        &self,
        tasks: &[(Start, String, Walk)],
        adam: &mut Adam,
        draws: &mut Stream,
    ) -> Result<Tensor> {
        let starts: Vec<_> = tasks.iter().map(|(start, ..)| start).collect();
        let requests: Vec<_> = tasks.iter().map(|(_, text, _)| self.request(text)).collect();
        let (mut walkers, horizon) = (self.around.walkers(&starts)?, self.header.horizon);
        let views = &self.around.views;
        // On the CPU what was done while walking need not be done again to learn from it; a GPU does both faster apart.
        let rolled = if views.device().is_cpu() {
            let how = RollOut { horizon, sample: true, grad: Grad::On };
            Some(self.executor.roll_out(&requests, &mut walkers, views, how, draws)?)
        } else {
            self.executor.lead(&requests, &mut walkers, views, (horizon, true), draws)?;
            None
        };
        let done = walkers.walks();
        let walked = || tasks.iter().zip(&done);
        let targets = walked()
            .map(|((start, _, gold), walk)| self.around.way(start, walk, gold, horizon))
            .collect::<Result<Vec<_>>>()?;
        let lesson = Lesson::likelihood(&targets, &[(targets.len(), 1.0)]);
        if let Some(rolled) = rolled {
            let loss = rolled.loss(&lesson)?;
            adam.step(&loss.backward()?)?;
            return Ok(loss.detach());
        }
        let walks =
            walked().map(|((start, ..), walk)| self.around.taken(start, walk, horizon)).collect::<Result<_>>()?;
        self.executor.step(&Batch { requests, walks }, &lesson, views, adam)
    }

    /// One step of the describer on shortest paths and what people said of them.
    pub(crate) fn train_describer(&self, tasks: &[(Start, String, Walk)], adam: &mut Adam) -> Result<Tensor> {
        let walks = tasks
            .iter()
            .map(|(start, _, gold)| self.around.taken(start, gold, self.header.horizon))
            .collect::<Result<Vec<_>>>()?;
        let texts: Vec<Vec<u32>> = tasks
            .iter()
            .map(|(_, text, _)| {
                let mut ids = word_ids(text, &self.header.words);
                ids.truncate(LONGEST);
                [&[START], &ids[..], &[END]].concat()
            })
            .collect();
        self.describer.step(&walks, &texts, &self.around.views, adam)
    }
}

impl Teacher<NavWorld> for NavTeacher {
    fn propose(&self, executions: &[(&Start, &Walk)], samples: usize, stream: &mut Stream) -> Result<Vec<Vec<String>>> {
        let walks = executions
            .iter()
            .map(|(start, walk)| self.around.taken(start, walk, self.header.horizon))
            .collect::<Result<Vec<_>>>()?;
        let all = self.describer.propose(&walks, &self.around.views, samples, LONGEST + 1, stream)?;
        let text = |ids: &[u32]| ids.iter().map(|id| self.header.words.symbol(*id)).collect::<Vec<_>>().join(" ");
        let one = |r: crate::nn::decoder::Rolled| if r.ended { text(&r.symbols) } else { String::new() };
        Ok(all.into_iter().map(|candidates| candidates.into_iter().map(one).collect()).collect())
    }

    fn qualifies(&self, items: &[(&Start, &Walk, &str)], tau: f64) -> Result<Vec<bool>> {
        let said: Vec<_> = items.iter().filter(|(.., text)| !text.is_empty()).collect();
        let tasks: Vec<_> = said.iter().map(|(start, _, text)| (*start, *text)).collect();
        let done = self.executed(&tasks)?;
        let world = self.around.world();
        let performs =
            |((start, walk, _), own): (&&(&Start, &Walk, &str), &Walk)| world.performs(start, own, walk, tau);
        let performed: Vec<_> = said.par_iter().zip(&done).with_min_len(TOGETHER).map(performs).collect();
        let mut performed = performed.into_iter();
        Ok(items.iter().map(|(.., text)| !text.is_empty() && performed.next().unwrap_or(false)).collect())
    }
}

/// Validation tasks that scores are over: at most 300, spread evenly.
fn tasks_for_scores(world: &NavWorld) -> Vec<(Start, String, Walk)> {
    let n = world.len(Split::Validation);
    let k = n.min(300);
    let task = |i: usize| {
        let task = world.task(Split::Validation, i * n / k);
        (task.start, task.request, world.gold(Split::Validation, task.index))
    };
    (0..k).map(task).collect()
}

fn draw(world: &NavWorld, n: usize, stream: &mut Stream) -> Vec<(Start, String, Walk)> {
    let one = |_| {
        let task = world.sample_task(Split::Train, stream);
        (task.start, task.request, world.gold(task.split, task.index))
    };
    (0..n).map(one).collect()
}

/// Trains executor and describer on the simulation split (`docs/models.md`); the best on validation are kept.
///
/// # Errors
/// When the models cannot be made, a step fails, or the file cannot be written.
pub fn train(
    around: Arc<Around>,
    model: &ModelSettings,
    request: &TeacherTraining<'_>,
) -> anyhow::Result<TeacherReport> {
    let begun = Instant::now();
    let (seed, config) = (request.config.seed, request.config);
    let mut teacher = NavTeacher::new(around.clone(), model, &mut rng::stream(seed, "teacher-init", 0))?;
    let rate = config.algorithm.learning_rate;
    let world = around.world();
    let validation = tasks_for_scores(world);

    let mut adam = Adam::new(&teacher.executor.params, rate)?;
    let executor = keep_best(
        request,
        &Length { updates: request.executor_updates, begun, share: 0.5 },
        &teacher.executor.params,
        |update| {
            let mut draws = rng::stream(seed, "executor", update);
            let tasks = draw(world, request.batch, &mut draws);
            teacher.train_executor(&tasks, &mut adam, &mut draws)
        },
        || executor_success(&teacher, &validation),
        |n, loss, score| format!("executor: update {n}, loss {loss:.3}, {:.1}% of goals reached", 100.0 * score),
    )?;
    let mut adam = Adam::new(&teacher.describer.params, rate)?;
    let executions: Vec<_> = validation.iter().map(|(start, _, gold)| (start, gold)).collect();
    let pragmatics = config.teacher.pragmatics;
    let describer = keep_best(
        request,
        &Length { updates: request.describer_updates, begun, share: 1.0 },
        &teacher.describer.params,
        |update| {
            let tasks = draw(world, request.batch, &mut rng::stream(seed, "describer", update));
            teacher.train_describer(&tasks, &mut adam)
        },
        || qualifying::<NavWorld>(&teacher, &executions, pragmatics.samples, pragmatics.tau, seed),
        |n, loss, score| score.told(n, loss),
    )?;
    let Qualifying { some, greedy } = describer.unwrap_or_default();
    let report = TeacherReport {
        executor_success: executor.unwrap_or_default(),
        greedy_qualifies: greedy,
        some_qualifies: some,
        n: validation.len(),
        seconds: begun.elapsed().as_secs_f64(),
    };
    teacher.header.made = serde_json::json!({
        "preset": config.preset,
        "seed": seed,
        "executor_updates": request.executor_updates,
        "describer_updates": request.describer_updates,
        "batch": request.batch,
        "device": crate::nn::device::label(request.device),
        "reached": report,
    });
    teacher.save(request.output, if request.half { Precision::Half } else { Precision::Full })?;
    Ok(report)
}

/// Share of validation tasks in which the executor, told the request, stops within 3 m of the goal.
fn executor_success(teacher: &NavTeacher, validation: &[(Start, String, Walk)]) -> Result<f64> {
    let tasks: Vec<_> = validation.iter().map(|(start, text, _)| (start, text.as_str())).collect();
    let done = teacher.executed(&tasks)?;
    let world = teacher.around.world();
    let hits = validation.iter().zip(&done).filter(|((start, _, gold), own)| world.reaches(start, own, gold));
    Ok(hits.count() as f64 / validation.len().max(1) as f64)
}
