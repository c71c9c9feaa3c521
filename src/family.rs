//! A task family, as everything above it sees it. [`Family`] is the one trait that a family implements beside the protocol's own
//! (its [`World`], its [`Agent`], and a [`Teacher`] where it has a simulated one). Nothing here names a family.

pub mod benchmark;
pub mod commands;
pub mod corpus;
pub mod dataset;
mod demonstration;
pub mod files;
pub mod imported;
pub mod pages;
mod presentation;
pub mod shipped;
pub mod tables;
mod training;

use benchmark::{Benchmark, Profile, Timing};
use commands::FamilyCommands;
use corpus::CorpusFormat;
use dataset::{ExecutionParts, TaughtExample, TrainingForm};
pub use demonstration::{Demonstration, Fields};
use imported::ModelImport;
pub use presentation::{Audience, Change, Guide, RenderError, ReportExample, TryAnswer};
pub use training::{Loaded, NewAgent, Progress, TeacherReport, TeacherTraining};

use crate::config::run::documented::SettingGroup;
use crate::config::run::{Preset, RunConfig};
use crate::nn::device_agreement::Apart;
use crate::nn::reference_fixtures::{Differences, FixtureFile, Names};
use crate::protocol::{Agent, Medium, Teacher, World};
use crate::rng::Stream;
use candle_core::Device;
use std::path::Path;
use std::sync::Arc;
use tables::Tables;

/// A task family: what people see of it, and how worlds, agents and teachers are made from a run's configuration.
pub trait Family: Send + Sync + 'static {
    /// The environment.
    type World: World;

    // Pages.

    /// Stable name used in configurations, addresses and exports: `regex`, `nav`.
    fn name(&self) -> &'static str;

    /// The family's name for people: "Word editing".
    fn title(&self) -> &'static str;

    /// One sentence above the box: what to write.
    fn teacher_prompt(&self) -> &'static str;

    /// Examples of descriptions, at least one: hints of the empty box, another one for each execution. A person who takes one
    /// for a model writes what the family's tasks allow.
    fn placeholders(&self) -> &'static [&'static str];

    /// The first-visit example.
    fn guide(&self) -> Guide;

    /// HTML of an execution from its view, made by the family's own template (escaped).
    fn render(&self, view: &serde_json::Value, audience: Audience) -> Result<String, RenderError>;

    /// An execution as plain text, a line for each part, in a form that programs may rely on.
    fn render_text(&self, view: &serde_json::Value) -> Result<String, RenderError>;

    /// An execution in sentences, as a screen reader says it.
    fn render_spoken(&self, view: &serde_json::Value) -> Result<String, RenderError> {
        self.render_text(view)
    }

    /// The answer of the box in which the agent is tried; by default the execution in sentences.
    fn try_answer(&self, view: &serde_json::Value) -> Result<TryAnswer, RenderError> {
        let steps = self.render_spoken(view)?.lines().map(str::to_owned).collect();
        Ok(TryAnswer { sentence: String::new(), steps })
    }

    /// Whether the execution in the view changed anything. A person who says "nothing changed" of one that did is asked
    /// before it is stored.
    fn change(&self, _view: &serde_json::Value) -> Change {
        Change::Unknown
    }

    /// The label of the button with which a person answers that the execution did nothing.
    fn nothing_changed(&self) -> &'static str {
        "Nothing changed"
    }

    // Media.

    /// The media in which people can teach an agent of this family.
    fn media(&self) -> &'static [Medium] {
        &[Medium::Description, Medium::Rating]
    }

    /// One sentence that says how to show what the agent should have done.
    fn demonstration_prompt(&self) -> &'static str {
        "Show what the agent should have done."
    }

    /// HTML of the fields in which a person shows how the request is done from the start of an execution: what is in them, if
    /// anything, was given before. Names of fields begin with `show-` ([`Family::demonstration_of`] reads them).
    ///
    /// # Errors
    /// When the view cannot be shown; by default, because the family has no demonstrations.
    fn render_demonstration(
        &self,
        _view: &serde_json::Value,
        _given: &serde_json::Value,
    ) -> Result<String, RenderError> {
        Err(RenderError { family: self.name(), reason: "the family has no demonstrations".into() })
    }

    /// The demonstration that a form's fields say, before it is checked.
    fn demonstration_of(&self, _fields: &Fields) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Checks a demonstration that came from outside, about the execution in the view.
    ///
    /// # Errors
    /// A plain sentence that says what to change.
    fn check_demonstration(
        &self,
        _view: &serde_json::Value,
        _given: &serde_json::Value,
    ) -> Result<Demonstration, String> {
        Err("This task cannot be demonstrated.".into())
    }

    /// The fields of a demonstration from a start, before it is checked; null where it cannot be shown. It is for
    /// simulated people.
    fn demonstration_from(
        &self,
        _world: &Self::World,
        _start: &<Self::World as World>::Start,
        _execution: &<Self::World as World>::Execution,
    ) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// A checked demonstration in plain text.
    fn demonstration_text(&self, _demonstration: &serde_json::Value) -> String {
        String::new()
    }

    /// The execution that a checked demonstration is, from a start.
    ///
    /// # Errors
    /// A plain sentence, where it is none in this world.
    fn demonstrated(
        &self,
        _world: &Self::World,
        _start: &<Self::World as World>::Start,
        _demonstration: &serde_json::Value,
    ) -> Result<<Self::World as World>::Execution, String> {
        Err("This task cannot be demonstrated.".into())
    }

    /// HTML of the start fields of the try-the-agent box. Every field's `name` becomes a key of the JSON object that
    /// [`crate::run::Command::Try`] carries as `start`.
    fn render_try_fields(&self) -> Result<String, RenderError>;

    /// The start of an execution in the fields of the try-the-agent box ([`Family::render_try_fields`]), from its view: a text for
    /// each field's name, or a list where fields share it. Null where the view does not tell.
    fn start_fields(&self, _view: &serde_json::Value) -> serde_json::Value {
        serde_json::Value::Null
    }

    // Data sets.

    /// The start and the outputs of an execution, from its view.
    fn parts(&self, _view: &serde_json::Value) -> ExecutionParts {
        ExecutionParts::default()
    }

    /// The outputs of an execution as the family writes executions in JSON ([`World::Execution`]); null where it does not tell.
    fn outputs(&self, _execution: &serde_json::Value) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// The form in which other programs that train such agents read examples, if there is one.
    fn training_form(&self) -> Option<TrainingForm> {
        None
    }

    /// Examples in that form; none where this one does not tell.
    fn training_examples(&self, _example: TaughtExample<'_>) -> Vec<serde_json::Value> {
        Vec::new()
    }

    /// Address under `/static/` of a JavaScript module that the pages load for this family, if it has one.
    fn script(&self) -> Option<&'static str> {
        None
    }

    /// Addresses of the modules that [`Family::script`] will ask for to draw an execution, so that pages which show one at once can
    /// have them fetched together with it.
    fn modules(&self) -> &'static [&'static str] {
        &[]
    }

    /// Pages and resources of the family's own, which the web application serves below the family's name.
    fn pages(&self) -> Option<pages::FamilyPages> {
        None
    }

    /// An example of the description log for the report, from its start state and execution as the log keeps them; `None`:
    /// the report shows the description alone.
    fn report_example(&self, _start: &serde_json::Value, _execution: &serde_json::Value) -> Option<ReportExample> {
        None
    }

    // The command line.

    /// Commands of the family's own, which the command line takes up among its own ones.
    fn commands(&self) -> FamilyCommands {
        FamilyCommands::default()
    }

    // Data.

    /// The corpora that `task.path` can name; `None` where the family reads none.
    fn corpus(&self) -> Option<CorpusFormat> {
        None
    }

    // Settings.

    /// The documents of the settings under `task` and `model` ([`crate::config::run::documented::groups`]).
    fn setting_groups(&self) -> Vec<SettingGroup> {
        Vec::new()
    }

    /// Settings that say how an agent acts and change nothing of what it has learned, each with its name in the agent's blueprint. A
    /// checkpoint can be evaluated with others than its run's.
    fn acting_settings(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    // Experiments.

    /// Levels of validation success in percent, ascending, of which a run keeps when it first reached them. The last is the
    /// paper's.
    fn levels(&self) -> [f64; 3];

    /// The runs that remake the paper's tables and figures; none unless the family has some.
    fn tables(&self) -> &Tables {
        Tables::none()
    }

    /// Times updates of the simulated teacher's models.
    ///
    /// # Errors
    /// When the models cannot be made or an update fails; by default, because the family has no benchmark.
    fn teacher_updates(&self, _request: &Benchmark<'_>) -> anyhow::Result<Vec<Timing>> {
        anyhow::bail!("the task {} has no benchmark of its teacher", self.name())
    }

    /// Says where a GPU's time goes in such updates, kernel by kernel.
    ///
    /// # Errors
    /// When the models cannot be made or an update fails; by default, because the family has no benchmark.
    fn profile(&self, _request: &Benchmark<'_>) -> anyhow::Result<Vec<Profile>> {
        anyhow::bail!("the task {} has no benchmark of its teacher", self.name())
    }

    /// Compares the family's models on a device, with `hidden` units and for `steps` updates, with the same ones on the CPU;
    /// nothing unless the family has such a comparison.
    ///
    /// # Errors
    /// When a model cannot be made or a step fails.
    fn device_agreement(&self, _device: &Device, _hidden: usize, _steps: u64) -> anyhow::Result<Vec<Apart>> {
        Ok(Vec::new())
    }

    /// Compares operations that are launched together on a GPU with the same ones launched singly; nothing unless the family
    /// has such a comparison.
    ///
    /// # Errors
    /// When a model cannot be made or a step fails.
    fn program_agreement(&self, _device: &Device, _hidden: usize, _steps: u64) -> anyhow::Result<Vec<Apart>> {
        Ok(Vec::new())
    }

    /// Compares the model that a reference fixture was made with, computed on a device, with the fixture; `None` where the file is
    /// of no model of this family.
    fn check_fixture(&self, _file: &FixtureFile, _device: &Device) -> Option<candle_core::Result<Differences>> {
        None
    }

    /// Compares the same model where it passes over padding, as it does unless `model.reference_padding` is set, with the rows of
    /// the fixture one by one, which have none.
    fn check_fixture_without_padding(
        &self,
        _file: &FixtureFile,
        _device: &Device,
    ) -> Option<candle_core::Result<Differences>> {
        None
    }

    // How runs are made.

    /// Named configurations, the default of the server first.
    fn presets(&self) -> Vec<Preset>;

    /// Whether a run can begin with the family's own settings (`task`, `model`, files they name): asked before anything
    /// of the run is stored, since a run that cannot begin would stand in the way of the next start.
    ///
    /// # Errors
    /// A plain sentence saying what to change.
    fn check(&self, config: &RunConfig) -> anyhow::Result<()>;

    /// Whether the folders and files that a run reads at every start are there; part of [`Family::check`].
    ///
    /// # Errors
    /// A plain sentence saying which is missing and how it is made.
    fn at_hand(&self, _config: &RunConfig) -> anyhow::Result<()> {
        Ok(())
    }

    /// Whether [`Family::teacher`] has models for the configuration.
    fn has_teacher(&self, config: &RunConfig) -> bool {
        config.teacher.models != "none"
    }

    /// The world of a configuration. `told` hears, from any thread, how many of its parts are loaded, and of how many.
    fn world(&self, config: &RunConfig, told: &Loaded<'_>) -> anyhow::Result<Arc<Self::World>>;

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
        _config: &RunConfig,
        _world: &Arc<Self::World>,
        _device: &Device,
    ) -> anyhow::Result<Option<Box<dyn Teacher<Self::World>>>> {
        Ok(None)
    }

    /// The start that a try-the-agent form describes, or a plain sentence saying what to change. What the form leaves
    /// open is drawn from `chance`.
    fn start_from_form(
        &self,
        world: &Self::World,
        form: &serde_json::Value,
        chance: &mut Stream,
    ) -> Result<<Self::World as World>::Start, String>;

    /// Trains the simulated teacher's models and writes them to a file.
    ///
    /// # Errors
    /// Also where the family has no such models.
    fn train_teacher(&self, _request: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport> {
        anyhow::bail!("the task family {} has no models of a teacher that could be trained", self.name())
    }

    /// Pretrains a policy on P_ω and writes it to a file that `model.pretrained` can name.
    ///
    /// # Errors
    /// Also where the family reads no such file, because each of its runs warms up by itself.
    fn pretrain(
        &self,
        _config: &RunConfig,
        _output: &Path,
        _device: &Device,
        _progress: &Progress<'_>,
    ) -> anyhow::Result<()> {
        anyhow::bail!("runs of the task family {} warm up by themselves and read no pretrained policy", self.name())
    }

    // Weights of other programs.

    /// The names of the layers of the policy in the program of the paper's authors, beside ours.
    fn policy_names(&self) -> Names {
        Names::new()
    }

    /// Writes a file of models from weights that another program wrote.
    ///
    /// # Errors
    /// When they do not fit ([`crate::nn::weights_file::WeightsError`]), or no run of the family reads such a file.
    fn import_model(&self, _import: &ModelImport<'_>) -> anyhow::Result<()> {
        anyhow::bail!("runs of the task family {} read no file of such models", self.name())
    }
}
