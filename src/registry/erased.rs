//! A family without its types, as pages, runs and commands hold it. Every [`Family`] is one; nobody implements it by hand.

use crate::config::run::documented::SettingGroup;
use crate::config::run::{Preset, RunConfig};
use crate::family::benchmark::{Benchmark, Profile, Timing};
use crate::family::commands::FamilyCommands;
use crate::family::corpus::CorpusFormat;
use crate::family::dataset::{ExecutionParts, TaughtExample, TrainingForm};
use crate::family::imported::ModelImport;
use crate::family::pages::FamilyPages;
use crate::family::tables::Tables;
use crate::family::{
    Audience, Change, Demonstration, Family, Fields, Guide, Progress, RenderError, ReportExample, TeacherReport,
    TeacherTraining, TryAnswer,
};
use crate::nn::device_agreement::Apart;
use crate::nn::reference_fixtures::{Differences, FixtureFile};
use crate::nn::weights_file::WeightsFile;
use crate::protocol::evaluation::TasksDone;
use crate::protocol::{Agent, Decoding, Evaluation, GroupSuccess, Medium, Split, World, evaluation};
use crate::rng;
use crate::run::{CheckpointRow, RunHandle, Tried};
use crate::suggest::did_you_mean;
use crate::teacher::people::{AnswersAsPeople, People};
use crate::trainer::{FinalReport, Launch};
use candle_core::Device;
use std::path::Path;
use std::sync::Arc;

/// A task family without its types (object safe).
pub trait AnyFamily: Send + Sync {
    /// [`Family::name`].
    fn name(&self) -> &'static str;
    /// [`Family::title`].
    fn title(&self) -> &'static str;
    /// [`Family::teacher_prompt`].
    fn teacher_prompt(&self) -> &'static str;
    /// [`Family::placeholders`].
    fn placeholders(&self) -> &'static [&'static str];
    /// [`Family::guide`].
    fn guide(&self) -> Guide;
    /// [`Family::render`].
    fn render(&self, view: &serde_json::Value, audience: Audience) -> Result<String, RenderError>;
    /// [`Family::render_text`].
    fn render_text(&self, view: &serde_json::Value) -> Result<String, RenderError>;
    /// [`Family::render_spoken`].
    fn render_spoken(&self, view: &serde_json::Value) -> Result<String, RenderError>;
    /// [`Family::try_answer`].
    fn try_answer(&self, view: &serde_json::Value) -> Result<TryAnswer, RenderError>;
    /// [`Family::change`].
    fn change(&self, view: &serde_json::Value) -> Change;
    /// [`Family::nothing_changed`].
    fn nothing_changed(&self) -> &'static str;
    /// [`Family::media`].
    fn media(&self) -> &'static [Medium];
    /// [`Family::demonstration_prompt`].
    fn demonstration_prompt(&self) -> &'static str;
    /// [`Family::render_demonstration`].
    fn render_demonstration(&self, view: &serde_json::Value, given: &serde_json::Value) -> Result<String, RenderError>;
    /// [`Family::demonstration_of`].
    fn demonstration_of(&self, fields: &Fields) -> serde_json::Value;
    /// [`Family::check_demonstration`].
    fn check_demonstration(&self, view: &serde_json::Value, given: &serde_json::Value)
    -> Result<Demonstration, String>;
    /// [`Family::demonstration_text`].
    fn demonstration_text(&self, demonstration: &serde_json::Value) -> String;
    /// [`Family::render_try_fields`].
    fn render_try_fields(&self) -> Result<String, RenderError>;
    /// [`Family::start_fields`].
    fn start_fields(&self, view: &serde_json::Value) -> serde_json::Value;
    /// [`Family::parts`].
    fn parts(&self, view: &serde_json::Value) -> ExecutionParts;
    /// [`Family::outputs`].
    fn outputs(&self, execution: &serde_json::Value) -> serde_json::Value;
    /// [`Family::training_form`].
    fn training_form(&self) -> Option<TrainingForm>;
    /// [`Family::training_examples`].
    fn training_examples(&self, example: TaughtExample<'_>) -> Vec<serde_json::Value>;
    /// [`Family::script`].
    fn script(&self) -> Option<&'static str>;
    /// [`Family::modules`].
    fn modules(&self) -> &'static [&'static str];
    /// [`Family::report_example`].
    fn report_example(&self, start: &serde_json::Value, execution: &serde_json::Value) -> Option<ReportExample>;

    /// [`Family::corpus`].
    fn corpus(&self) -> Option<CorpusFormat> {
        None
    }
    /// [`Family::setting_groups`].
    fn setting_groups(&self) -> Vec<SettingGroup> {
        Vec::new()
    }
    /// [`Family::levels`].
    fn levels(&self) -> [f64; 3];
    /// [`Family::tables`].
    fn tables(&self) -> &Tables;
    /// [`Family::teacher_updates`].
    fn teacher_updates(&self, request: &Benchmark<'_>) -> anyhow::Result<Vec<Timing>>;
    /// [`Family::profile`].
    fn profile(&self, request: &Benchmark<'_>) -> anyhow::Result<Vec<Profile>>;
    /// [`Family::device_agreement`].
    fn device_agreement(&self, device: &Device, hidden: usize, steps: u64) -> anyhow::Result<Vec<Apart>>;
    /// [`Family::program_agreement`].
    fn program_agreement(&self, device: &Device, hidden: usize, steps: u64) -> anyhow::Result<Vec<Apart>>;

    /// [`Family::pages`].
    fn pages(&self) -> Option<FamilyPages>;
    /// [`Family::commands`].
    fn commands(&self) -> FamilyCommands;

    /// [`Family::check_fixture`].
    fn check_fixture(&self, file: &FixtureFile, device: &Device) -> Option<candle_core::Result<Differences>>;
    /// [`Family::check_fixture_without_padding`].
    fn check_fixture_without_padding(
        &self,
        file: &FixtureFile,
        device: &Device,
    ) -> Option<candle_core::Result<Differences>>;

    /// Named configurations.
    fn presets(&self) -> Vec<Preset>;
    /// Whether a run can begin with the family's own settings ([`Family::check`]).
    fn check(&self, config: &RunConfig) -> anyhow::Result<()>;
    /// Whether what a run reads at every start is there ([`Family::at_hand`]).
    fn at_hand(&self, config: &RunConfig) -> anyhow::Result<()>;
    /// Whether there are models of a simulated teacher ([`Family::has_teacher`]).
    fn has_teacher(&self, config: &RunConfig) -> bool;
    /// Starts (or resumes) a run on its own thread.
    fn spawn(
        &'static self,
        launch: Launch,
    ) -> anyhow::Result<(RunHandle, std::thread::JoinHandle<anyhow::Result<FinalReport>>)>;
    /// Opens a checkpoint, to try the agent that it holds.
    fn open(&'static self, _checkpoint: &Path, _device: &Device) -> anyhow::Result<Box<dyn SavedAgent>> {
        anyhow::bail!("checkpoints of the task family {} cannot be opened", self.name())
    }
    /// Evaluates a checkpoint.
    fn evaluate(
        &self,
        agent: &AgentFile<'_>,
        split: Split,
        limit: usize,
        device: &Device,
        progress: &TasksDone<'_>,
    ) -> anyhow::Result<Evaluation>;
    /// Evaluates a checkpoint and counts success by one of the world's groupings ([`World::groupings`]).
    fn evaluate_by(
        &self,
        agent: &AgentFile<'_>,
        split: Split,
        limit: usize,
        device: &Device,
        grouping: &str,
        progress: &TasksDone<'_>,
    ) -> anyhow::Result<(Evaluation, Vec<GroupSuccess>)>;
    /// The simulated people who would teach a run ([`People::new`]).
    fn people(&'static self, config: &RunConfig) -> anyhow::Result<Box<dyn AnswersAsPeople>>;
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
    /// [`Family::import_model`].
    fn import_model(&self, _import: &ModelImport<'_>) -> anyhow::Result<()> {
        anyhow::bail!("runs of the task family {} read no file of such models", self.name())
    }
    /// Lays the weights of a policy that another program wrote down as the first checkpoint of a run. The names beside them are tensors
    /// that are passed over.
    fn import_checkpoint(
        &self,
        _config: &RunConfig,
        _weights: (&WeightsFile, &[String]),
        _folder: &Path,
        _device: &Device,
    ) -> anyhow::Result<CheckpointRow> {
        anyhow::bail!("the task family {} has no checkpoints", self.name())
    }
}

/// The policy that a checkpoint reports, in its world: π_θ, or its average where the run has one.
pub trait SavedAgent: Send {
    /// Carries out a request from the start that the family's form describes. What the form leaves open differs with
    /// `number`.
    ///
    /// # Errors
    /// A plain sentence that says what to change, or why the agent could not.
    fn carry_out(&self, request: &str, start: &serde_json::Value, number: u64) -> Result<Tried, String>;
}

struct Saved<F: Family> {
    family: &'static F,
    world: Arc<F::World>,
    agent: Box<dyn Agent<F::World>>,
    seed: u64,
    update: u64,
}

impl<F: Family> SavedAgent for Saved<F> {
    fn carry_out(&self, request: &str, start: &serde_json::Value, number: u64) -> Result<Tried, String> {
        let mut chance = rng::stream(self.seed, "try form", number);
        let start = Family::start_from_form(self.family, &self.world, start, &mut chance)?;
        let executions = self
            .agent
            .act(&[(&start, request)], Decoding::Greedy, &mut rng::stream(0, "try", 0))
            .map_err(|error| format!("The agent could not try: {error}"))?;
        let execution = executions.first().ok_or("The agent did nothing.")?;
        Ok(Tried {
            view: self.world.view(&start, execution),
            summary: self.world.summary(execution),
            valid: self.world.valid(&start, execution),
            update: self.update,
            unknown: self.agent.unknown_words(request),
        })
    }
}

/// A name that is none of the world's groupings; a plain sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnknownGrouping(String);

/// A world with an agent in it.
type Inhabited<W> = (Arc<W>, Box<dyn Agent<W>>);

/// An agent in a checkpoint file, and how it acts.
#[derive(Clone, Copy, Debug)]
pub struct AgentFile<'a> {
    /// The checkpoint.
    pub checkpoint: &'a Path,
    /// Settings of acting, `key=value`, in place of the run's ([`Family::acting_settings`]).
    pub set: &'a [String],
}

impl<'a> AgentFile<'a> {
    /// The agent as its run has it.
    pub fn of(checkpoint: &'a Path) -> Self {
        Self { checkpoint, set: &[] }
    }
}

/// A setting that cannot be another one for an agent that has learned.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnknownActing(String);

/// The world of a checkpoint and the policy that the run reports.
fn saved<F: Family>(family: &F, saved: &AgentFile<'_>, device: &Device) -> anyhow::Result<Inhabited<F::World>> {
    let (mut header, tensors) = crate::trainer::checkpoint::load(saved.checkpoint)?;
    let config = header.config.with_overrides(saved.set).map_err(|refused| UnknownActing(refused.to_string()))?;
    for (setting, value) in config.differences(&header.config) {
        let all = Family::acting_settings(family);
        let Some((_, part)) = all.iter().find(|(name, _)| *name == setting) else {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            let known = match names.is_empty() {
                true => "nothing of how such an agent acts can be set".to_owned(),
                false => format!("only how the agent acts can be set: {}", names.join(", ")),
            };
            return Err(UnknownActing(format!("{setting} is part of what was learned; {known}")).into());
        };
        header.blueprint[*part] = value;
        Family::check(family, &config).map_err(|refused| UnknownActing(format!("{refused:#}")))?;
    }
    header.config = config;
    let world = Family::world(family, &header.config, &|_, _| {})?;
    let agent = Family::agent_from(family, &header.config, &world, &header.blueprint, device)?;
    agent.params().load(&crate::algorithm::learner::reported(&tensors))?;
    Ok((world, agent))
}

impl<F: Family> AnyFamily for F {
    fn name(&self) -> &'static str {
        Family::name(self)
    }

    fn title(&self) -> &'static str {
        Family::title(self)
    }

    fn teacher_prompt(&self) -> &'static str {
        Family::teacher_prompt(self)
    }

    fn placeholders(&self) -> &'static [&'static str] {
        Family::placeholders(self)
    }

    fn guide(&self) -> Guide {
        Family::guide(self)
    }

    fn render(&self, view: &serde_json::Value, audience: Audience) -> Result<String, RenderError> {
        Family::render(self, view, audience)
    }

    fn render_text(&self, view: &serde_json::Value) -> Result<String, RenderError> {
        Family::render_text(self, view)
    }
    fn render_spoken(&self, view: &serde_json::Value) -> Result<String, RenderError> {
        Family::render_spoken(self, view)
    }
    fn try_answer(&self, view: &serde_json::Value) -> Result<TryAnswer, RenderError> {
        Family::try_answer(self, view)
    }

    fn change(&self, view: &serde_json::Value) -> Change {
        Family::change(self, view)
    }

    fn nothing_changed(&self) -> &'static str {
        Family::nothing_changed(self)
    }

    fn media(&self) -> &'static [Medium] {
        Family::media(self)
    }

    fn demonstration_prompt(&self) -> &'static str {
        Family::demonstration_prompt(self)
    }

    fn render_demonstration(&self, view: &serde_json::Value, given: &serde_json::Value) -> Result<String, RenderError> {
        Family::render_demonstration(self, view, given)
    }

    fn demonstration_of(&self, fields: &Fields) -> serde_json::Value {
        Family::demonstration_of(self, fields)
    }

    fn check_demonstration(
        &self,
        view: &serde_json::Value,
        given: &serde_json::Value,
    ) -> Result<Demonstration, String> {
        Family::check_demonstration(self, view, given)
    }

    fn demonstration_text(&self, demonstration: &serde_json::Value) -> String {
        Family::demonstration_text(self, demonstration)
    }

    fn render_try_fields(&self) -> Result<String, RenderError> {
        Family::render_try_fields(self)
    }

    fn start_fields(&self, view: &serde_json::Value) -> serde_json::Value {
        Family::start_fields(self, view)
    }

    fn parts(&self, view: &serde_json::Value) -> ExecutionParts {
        Family::parts(self, view)
    }

    fn outputs(&self, execution: &serde_json::Value) -> serde_json::Value {
        Family::outputs(self, execution)
    }

    fn training_form(&self) -> Option<TrainingForm> {
        Family::training_form(self)
    }

    fn training_examples(&self, example: TaughtExample<'_>) -> Vec<serde_json::Value> {
        Family::training_examples(self, example)
    }

    fn script(&self) -> Option<&'static str> {
        Family::script(self)
    }

    fn modules(&self) -> &'static [&'static str] {
        Family::modules(self)
    }

    fn pages(&self) -> Option<FamilyPages> {
        Family::pages(self)
    }

    fn commands(&self) -> FamilyCommands {
        Family::commands(self)
    }

    fn report_example(&self, start: &serde_json::Value, execution: &serde_json::Value) -> Option<ReportExample> {
        Family::report_example(self, start, execution)
    }

    fn corpus(&self) -> Option<CorpusFormat> {
        Family::corpus(self)
    }

    fn setting_groups(&self) -> Vec<SettingGroup> {
        Family::setting_groups(self)
    }

    fn levels(&self) -> [f64; 3] {
        Family::levels(self)
    }

    fn tables(&self) -> &Tables {
        Family::tables(self)
    }

    fn teacher_updates(&self, request: &Benchmark<'_>) -> anyhow::Result<Vec<Timing>> {
        Family::teacher_updates(self, request)
    }

    fn profile(&self, request: &Benchmark<'_>) -> anyhow::Result<Vec<Profile>> {
        Family::profile(self, request)
    }

    fn device_agreement(&self, device: &Device, hidden: usize, steps: u64) -> anyhow::Result<Vec<Apart>> {
        Family::device_agreement(self, device, hidden, steps)
    }

    fn program_agreement(&self, device: &Device, hidden: usize, steps: u64) -> anyhow::Result<Vec<Apart>> {
        Family::program_agreement(self, device, hidden, steps)
    }

    fn check_fixture(&self, file: &FixtureFile, device: &Device) -> Option<candle_core::Result<Differences>> {
        Family::check_fixture(self, file, device)
    }

    fn check_fixture_without_padding(
        &self,
        file: &FixtureFile,
        device: &Device,
    ) -> Option<candle_core::Result<Differences>> {
        Family::check_fixture_without_padding(self, file, device)
    }

    fn presets(&self) -> Vec<Preset> {
        Family::presets(self)
    }

    fn check(&self, config: &RunConfig) -> anyhow::Result<()> {
        Family::check(self, config)
    }

    fn at_hand(&self, config: &RunConfig) -> anyhow::Result<()> {
        Family::at_hand(self, config)
    }

    fn has_teacher(&self, config: &RunConfig) -> bool {
        Family::has_teacher(self, config)
    }

    fn spawn(
        &'static self,
        launch: Launch,
    ) -> anyhow::Result<(RunHandle, std::thread::JoinHandle<anyhow::Result<FinalReport>>)> {
        crate::trainer::spawn(self, launch)
    }

    fn open(&'static self, checkpoint: &Path, device: &Device) -> anyhow::Result<Box<dyn SavedAgent>> {
        let (header, _) = crate::trainer::checkpoint::load(checkpoint)?;
        let (world, agent) = saved(self, &AgentFile::of(checkpoint), device)?;
        let (seed, update) = (header.config.seed, header.counters.update);
        Ok(Box::new(Saved { family: self, world, agent, seed, update }))
    }

    fn evaluate(
        &self,
        agent: &AgentFile<'_>,
        split: Split,
        limit: usize,
        device: &Device,
        progress: &TasksDone<'_>,
    ) -> anyhow::Result<crate::protocol::Evaluation> {
        let (world, agent) = saved(self, agent, device)?;
        Ok(evaluation::evaluate(&*world, &*agent, split, limit, progress)?)
    }

    fn evaluate_by(
        &self,
        agent: &AgentFile<'_>,
        split: Split,
        limit: usize,
        device: &Device,
        grouping: &str,
        progress: &TasksDone<'_>,
    ) -> anyhow::Result<(Evaluation, Vec<GroupSuccess>)> {
        let (world, agent) = saved(self, agent, device)?;
        let Some(grouping) = world.groupings().iter().find(|g| g.name == grouping) else {
            let names: Vec<&str> = world.groupings().iter().map(|g| g.name).collect();
            let meant = did_you_mean(grouping, names.iter().copied());
            let known = match names.is_empty() {
                true => "cannot be grouped".to_owned(),
                false => format!("are grouped by {}", names.join(" or ")),
            };
            let family = Family::name(self);
            return Err(
                UnknownGrouping(format!("tasks of the family {family} {known}, not by `{grouping}`{meant}")).into()
            );
        };
        Ok(evaluation::evaluate_by(&*world, &*agent, split, limit, grouping, progress)?)
    }

    fn people(&'static self, config: &RunConfig) -> anyhow::Result<Box<dyn AnswersAsPeople>> {
        Ok(Box::new(People::new(self, config)?))
    }

    fn train_teacher(&self, request: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport> {
        Family::train_teacher(self, request)
    }

    fn pretrain(
        &self,
        config: &RunConfig,
        output: &Path,
        device: &Device,
        progress: &Progress<'_>,
    ) -> anyhow::Result<()> {
        Family::pretrain(self, config, output, device, progress)
    }

    fn import_model(&self, import: &ModelImport<'_>) -> anyhow::Result<()> {
        Family::import_model(self, import)
    }

    fn import_checkpoint(
        &self,
        config: &RunConfig,
        weights: (&WeightsFile, &[String]),
        folder: &Path,
        device: &Device,
    ) -> anyhow::Result<CheckpointRow> {
        crate::trainer::imported::lay_down(self, config, weights, folder, device)
    }
}
