//! What a family brings so that its runs can be trained: world, agent, teacher, presets. The trainer is generic over
//! it; [`FamilyTrainer`] is the same without types, for the registry.

use crate::config::run::{Preset, RunConfig};
use crate::family::Family;
use crate::protocol::Agent;
use crate::protocol::Teacher;
use crate::protocol::World;
use crate::rng::Stream;
use crate::run::RunHandle;
use crate::trainer::{FinalReport, Launch};
use candle_core::Device;
use std::path::Path;
use std::sync::Arc;

/// A new agent, and whether it has been pretrained on P_ω already.
pub struct NewAgent<W: World> {
    /// The agent.
    pub agent: Box<dyn Agent<W>>,
    /// True when its weights came from a pretrained policy.
    pub pretrained: bool,
}

/// A family with its models.
pub trait TaskKit: Family + 'static {
    /// The environment.
    type World: World;

    /// Named configurations, the default of the server first.
    fn presets(&self) -> Vec<Preset>;

    /// Whether a run can begin with the family's own settings (`task`, `model`, files they name): asked before anything
    /// of the run is stored, since a run that cannot begin would stand in the way of the next start.
    ///
    /// # Errors
    /// A plain sentence saying what to change.
    fn check(&self, config: &RunConfig) -> anyhow::Result<()>;

    /// Whether the folders and files that a run reads at every start are there; part of [`TaskKit::check`].
    ///
    /// # Errors
    /// A plain sentence saying which is missing and how it is made.
    fn at_hand(&self, config: &RunConfig) -> anyhow::Result<()>;

    /// Whether [`TaskKit::teacher`] has models for the configuration.
    fn has_teacher(&self, config: &RunConfig) -> bool {
        config.teacher.models != "none"
    }

    /// The world of a configuration.
    fn world(&self, config: &RunConfig) -> anyhow::Result<Arc<Self::World>>;

    /// A new agent for the configuration.
    fn agent(
        &self,
        config: &RunConfig,
        world: &Arc<Self::World>,
        device: &Device,
    ) -> anyhow::Result<NewAgent<Self::World>>;

    /// An agent from the blueprint that a checkpoint holds (its weights are loaded afterwards).
    fn agent_from(
        &self,
        config: &RunConfig,
        world: &Arc<Self::World>,
        blueprint: &serde_json::Value,
        device: &Device,
    ) -> anyhow::Result<Box<dyn Agent<Self::World>>>;

    /// The simulated teacher's models; `None` when the configuration has none.
    fn teacher(
        &self,
        config: &RunConfig,
        world: &Arc<Self::World>,
        device: &Device,
    ) -> anyhow::Result<Option<Box<dyn Teacher<Self::World>>>>;

    /// The start that a try-the-agent form describes, or a plain sentence saying what to change. What the form leaves
    /// open is drawn from `chance`.
    fn start_from_form(
        &self,
        world: &Self::World,
        form: &serde_json::Value,
        chance: &mut Stream,
    ) -> Result<<Self::World as World>::Start, String>;

    /// Trains the simulated teacher's models and writes them to a file.
    fn train_teacher(&self, request: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport>;

    /// Pretrains a policy on P_ω and writes it to a file that `model.pretrained` can name.
    fn pretrain(
        &self,
        config: &RunConfig,
        output: &Path,
        device: &Device,
        progress: &Progress<'_>,
    ) -> anyhow::Result<()>;
}

/// Whether a folder of data that `task.path` names has its files.
///
/// # Errors
/// A sentence that names what is missing, and the command that makes it.
pub fn data_folder(path: &str, files: &[&str], made_with: &str) -> anyhow::Result<()> {
    let how = format!(
        "make it with `{made_with} -o {path}` in the folder where Iliad was started, or name another folder in task.path"
    );
    if !Path::new(path).is_dir() {
        anyhow::bail!("task.path names the folder `{path}`, and there is no such folder; {how}")
    }
    match files.iter().find(|file| !Path::new(path).join(file).is_file()) {
        Some(file) => anyhow::bail!("task.path names the folder `{path}`, and it has no file {file}; {how}"),
        None => Ok(()),
    }
}

/// Whether the file of a teacher's models is there.
///
/// # Errors
/// A sentence that says how it is made.
pub fn teacher_file(config: &RunConfig) -> anyhow::Result<()> {
    let file = &config.teacher.models;
    if ["shipped", "none"].contains(&file.as_str()) || Path::new(file).is_file() {
        return Ok(());
    }
    anyhow::bail!(
        "teacher.models is `shipped`, `none` or a file, and there is no file `{file}`; make it with `iliad teacher train \
         --preset {}/{} -o {file}`",
        config.family,
        config.preset
    )
}

/// Called with what is going on and the share done.
pub type Progress<'a> = dyn Fn(&str, f64) + 'a;

/// How to train a simulated teacher.
pub struct TeacherTraining<'a> {
    /// World and sizes.
    pub config: &'a RunConfig,
    /// Updates of the executor (paper, REGEX: 30,000).
    pub executor_updates: u64,
    /// Updates of the describer (paper, REGEX: 40,000).
    pub describer_updates: u64,
    /// Batch size (paper, REGEX: 256).
    pub batch: usize,
    /// Updates between two evaluations.
    pub evaluate_every: u64,
    /// Where to write the models.
    pub output: &'a Path,
    /// Whether to store float16.
    pub half: bool,
    /// Stop at the first update after so many seconds; 0: never. What is best by then is kept.
    pub seconds: f64,
    /// Device.
    pub device: &'a Device,
    /// Progress.
    pub progress: &'a Progress<'a>,
}

/// What a trained teacher can do, on the validation split.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TeacherReport {
    /// Share of validation words whose output the executor writes exactly.
    pub executor_success: f64,
    /// Share of validation items for which the greedy description qualifies.
    pub greedy_qualifies: f64,
    /// Share of validation items for which some candidate qualifies.
    pub some_qualifies: f64,
    /// Items the shares are over.
    pub n: usize,
    /// Seconds it took.
    pub seconds: f64,
}

/// A family's training side without its types.
pub trait FamilyTrainer: Send + Sync {
    /// The pages' side.
    fn family(&'static self) -> &'static dyn Family;
    /// Named configurations.
    fn presets(&self) -> Vec<Preset>;
    /// Whether a run can begin with the family's own settings ([`TaskKit::check`]).
    fn check(&self, config: &RunConfig) -> anyhow::Result<()>;
    /// Whether what a run reads at every start is there ([`TaskKit::at_hand`]).
    fn at_hand(&self, config: &RunConfig) -> anyhow::Result<()>;
    /// Whether there are models of a simulated teacher ([`TaskKit::has_teacher`]).
    fn has_teacher(&self, config: &RunConfig) -> bool;
    /// Starts (or resumes) a run on its own thread.
    fn spawn(
        &'static self,
        launch: Launch,
    ) -> anyhow::Result<(RunHandle, std::thread::JoinHandle<anyhow::Result<FinalReport>>)>;
    /// Evaluates a checkpoint.
    fn evaluate(
        &self,
        checkpoint: &Path,
        split: crate::protocol::Split,
        limit: usize,
        device: &Device,
    ) -> anyhow::Result<crate::protocol::Evaluation>;
    /// Trains a simulated teacher.
    fn train_teacher(&self, request: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport>;
    /// Pretrains a policy.
    fn pretrain(
        &self,
        config: &RunConfig,
        output: &Path,
        device: &Device,
        progress: &Progress<'_>,
    ) -> anyhow::Result<()>;
}

impl<K: TaskKit> FamilyTrainer for K {
    fn family(&'static self) -> &'static dyn Family {
        self
    }

    fn presets(&self) -> Vec<Preset> {
        TaskKit::presets(self)
    }

    fn check(&self, config: &RunConfig) -> anyhow::Result<()> {
        TaskKit::check(self, config)
    }

    fn at_hand(&self, config: &RunConfig) -> anyhow::Result<()> {
        TaskKit::at_hand(self, config)
    }

    fn has_teacher(&self, config: &RunConfig) -> bool {
        TaskKit::has_teacher(self, config)
    }

    fn spawn(
        &'static self,
        launch: Launch,
    ) -> anyhow::Result<(RunHandle, std::thread::JoinHandle<anyhow::Result<FinalReport>>)> {
        crate::trainer::spawn(self, launch)
    }

    fn evaluate(
        &self,
        checkpoint: &Path,
        split: crate::protocol::Split,
        limit: usize,
        device: &Device,
    ) -> anyhow::Result<crate::protocol::Evaluation> {
        let (header, tensors) = crate::trainer::checkpoint::load(checkpoint)?;
        let world = TaskKit::world(self, &header.config)?;
        let agent = self.agent_from(&header.config, &world, &header.blueprint, device)?;
        agent.params().load(&crate::algorithm::learner::reported(&tensors))?;
        Ok(crate::protocol::evaluation::evaluate(&*world, &*agent, split, limit)?)
    }

    fn train_teacher(&self, request: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport> {
        TaskKit::train_teacher(self, request)
    }

    fn pretrain(
        &self,
        config: &RunConfig,
        output: &Path,
        device: &Device,
        progress: &Progress<'_>,
    ) -> anyhow::Result<()> {
        TaskKit::pretrain(self, config, output, device, progress)
    }
}
