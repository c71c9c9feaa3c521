//! REGEX for the trainer: worlds, agents and teachers from a run's configuration.

use super::agent::{Blueprint, RegexAgent};
use super::corpus;
use super::letters::Letters;
use super::marginal::MarginalDraw;
use super::reference_fixtures::student_names;
use super::settings::{self, ModelSettings, TaskSettings};
use super::teacher::{self, RegexTeacher};
use super::world::RegexWorld;
use super::{PAIRS, Words};
use crate::config::run::{Preset, RunConfig};
use crate::family::files::{data_folder, teacher_file};
use crate::family::imported::{ModelImport, ModelKind};
use crate::family::shipped::model_file;
use crate::family::{NewAgent, Progress, TeacherReport, TeacherTraining};
use crate::nn::artifact::{self, Precision};
use crate::nn::weights_file::Wanted;
use crate::protocol::Agent;
use crate::protocol::Teacher;
use crate::protocol::World;
use crate::rng::{self, Stream};
use anyhow::Context;
use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Header of a pretrained policy's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PolicyHeader {
    kind: String,
    family: String,
    blueprint: Blueprint,
    made: serde_json::Value,
}

fn task_settings(config: &RunConfig) -> anyhow::Result<TaskSettings> {
    let task: TaskSettings =
        serde_json::from_value(config.task.clone()).context("the settings under `task` do not fit the REGEX task")?;
    // Wherever they come from, a checkpoint included: the number sizes the world.
    if task.more_words > 100 {
        anyhow::bail!("task.more_words is at most 100")
    }
    Ok(task)
}

fn no_such_world(name: &str) -> anyhow::Error {
    let meant = crate::suggest::did_you_mean(name, ["builtin", "tiny", "corpus"]);
    anyhow::anyhow!("task.world is `builtin`, `tiny` or `corpus`, not `{name}`{meant}")
}

fn model_settings(config: &RunConfig) -> anyhow::Result<ModelSettings> {
    let model: ModelSettings =
        serde_json::from_value(config.model.clone()).context("the settings under `model` do not fit the REGEX task")?;
    if model.hidden < 2 || model.hidden > 4096 || model.horizon == 0 || model.horizon > 200 {
        anyhow::bail!("model.hidden lies between 2 and 4096, model.horizon between 1 and 200")
    }
    let embeddings = [model.word_embedding, model.character_embedding];
    if embeddings.iter().any(|n| !(1..=4096).contains(n)) || model.reserve > 100_000 {
        anyhow::bail!(
            "model.word_embedding and character_embedding lie between 1 and 4096, model.reserve is at most 100000"
        )
    }
    if !(0.0..=10.0).contains(&model.network_weight) {
        anyhow::bail!("model.network_weight lies between 0 and 10")
    }
    if model.votes > 32 {
        anyhow::bail!("model.votes is at most 32")
    }
    if model.votes > 0 && model.letters == Letters::Slots {
        anyhow::bail!(
            "model.votes renames letters, which model.letters=slots does not read; use plain or renamed letters"
        )
    }
    Ok(model)
}

fn shipped(config: &RunConfig, what: &str) -> anyhow::Result<String> {
    Ok(format!("regex-{}-{what}.safetensors", task_settings(config)?.world))
}

pub(super) fn presets() -> Vec<Preset> {
    settings::presets()
}

pub(super) fn check(config: &RunConfig) -> anyhow::Result<()> {
    let task = task_settings(config)?;
    match task.world.as_str() {
        "builtin" | "tiny" | "corpus" => {}
        other => return Err(no_such_world(other)),
    }
    let model = model_settings(config)?;
    let file = &model.pretrained;
    if !["shipped", "none"].contains(&file.as_str()) && !Path::new(file).is_file() {
        anyhow::bail!("model.pretrained is `shipped`, `none` or a file, and there is no file `{file}`")
    }
    if task.world != "corpus" && task.marginal != MarginalDraw::Uniform {
        anyhow::bail!("task.marginal is for a corpus; the built-in worlds compose their expressions")
    }
    at_hand(config)
}

pub(super) fn at_hand(config: &RunConfig) -> anyhow::Result<()> {
    let task = task_settings(config)?;
    if task.world == "corpus" {
        data_folder(&task.path, &corpus::FILES, "iliad data import-l3 L3_FOLDER")?;
    }
    teacher_file(config)
}

pub(super) fn has_teacher(config: &RunConfig) -> bool {
    let generated = task_settings(config).is_ok_and(|task| task.world != "corpus");
    match config.teacher.models.as_str() {
        "none" => false,
        "shipped" => generated,
        _ => true,
    }
}

pub(super) fn world(config: &RunConfig) -> anyhow::Result<Arc<RegexWorld>> {
    let task = task_settings(config)?;
    let world = match task.world.as_str() {
        "builtin" => RegexWorld::builtin(task.seed),
        "tiny" => RegexWorld::tiny(task.seed),
        "corpus" => RegexWorld::load(Path::new(&task.path))?.with_marginal(task.marginal),
        other => return Err(no_such_world(other)),
    };
    Ok(Arc::new(world.with_more_words(task.more_words)))
}

pub(super) fn agent(
    config: &RunConfig,
    world: &Arc<RegexWorld>,
    device: &Device,
) -> anyhow::Result<NewAgent<RegexWorld>> {
    let model = model_settings(config)?;
    let plan = RegexAgent::plan(world, &model).map_err(anyhow::Error::msg)?;
    let agent = RegexAgent::new(plan.clone(), &mut rng::stream(config.seed, "init", 0), device)?;
    let file = model_file(&model.pretrained, &shipped(config, "policy")?)?;
    let Some((path, bytes)) = file else { return Ok(NewAgent { agent: Box::new(agent), pretrained: false }) };
    let (header, tensors): (PolicyHeader, BTreeMap<String, Tensor>) = artifact::load_bytes(&path, &bytes)?;
    if header.kind != "policy" || header.family != "regex" {
        anyhow::bail!("{} is not a policy of the REGEX task", path.display())
    }
    let fits = header.blueprint.fits(&plan);
    if !fits && model.pretrained == "shipped" {
        // The shipped policy is for the preset as it is; with other sizes the run warms up by itself.
        tracing::info!("the shipped policy has other sizes or words than this run; warming up instead");
        return Ok(NewAgent { agent: Box::new(agent), pretrained: false });
    }
    if !fits {
        anyhow::bail!("{} has other sizes or words than this run", path.display())
    }
    agent.params().load(&tensors)?;
    Ok(NewAgent { agent: Box::new(agent), pretrained: true })
}

pub(super) fn agent_from(
    config: &RunConfig,
    _world: &Arc<RegexWorld>,
    blueprint: &serde_json::Value,
    device: &Device,
) -> anyhow::Result<Box<dyn Agent<RegexWorld>>> {
    let mut blueprint: Blueprint =
        serde_json::from_value(blueprint.clone()).context("the checkpoint's agent cannot be read")?;
    blueprint.requests.settle(model_settings(config)?.reserve);
    Ok(Box::new(RegexAgent::new(blueprint, &mut rng::stream(0, "load", 0), device)?))
}

pub(super) fn teacher(
    config: &RunConfig,
    _world: &Arc<RegexWorld>,
    device: &Device,
) -> anyhow::Result<Option<Box<dyn Teacher<RegexWorld>>>> {
    match model_file(&config.teacher.models, &shipped(config, "teacher")?)? {
        None => Ok(None),
        Some((path, bytes)) => Ok(Some(Box::new(RegexTeacher::load(&path, &bytes, device)?))),
    }
}

/// Words under the keys `words` (a list) or `words-0` to `words-4`; at least one, empty fields are left out.
pub(super) fn start_from_form(_: &RegexWorld, form: &serde_json::Value, _: &mut Stream) -> Result<Words, String> {
    let mut typed: Vec<String> = Vec::new();
    match &form["words"] {
        serde_json::Value::Array(list) => typed.extend(list.iter().filter_map(|w| w.as_str()).map(str::to_owned)),
        serde_json::Value::String(text) => typed.extend(text.split_whitespace().map(str::to_owned)),
        _ => {}
    }
    typed.extend((0..PAIRS).filter_map(|i| form[format!("words-{i}")].as_str()).map(str::to_owned));
    let words: Vec<String> = typed.iter().map(|w| w.trim().to_lowercase()).filter(|w| !w.is_empty()).collect();
    if words.is_empty() {
        return Err("Type at least one word for the agent to work on.".into());
    }
    if words.len() > PAIRS {
        return Err(format!("Type at most {PAIRS} words."));
    }
    if let Some(long) = words.iter().find(|w| w.chars().count() > 30) {
        return Err(format!("“{long}” is too long; words have at most 30 letters."));
    }
    Ok(Words { words })
}

pub(super) fn train_teacher(request: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport> {
    let world = world(request.config)?;
    teacher::train(&world, &model_settings(request.config)?, request)
}

pub(super) fn pretrain(
    config: &RunConfig,
    output: &Path,
    device: &Device,
    progress: &Progress<'_>,
) -> anyhow::Result<()> {
    let world = world(config)?;
    let plan = RegexAgent::plan(&world, &model_settings(config)?).map_err(anyhow::Error::msg)?;
    let mut agent = RegexAgent::new(plan.clone(), &mut rng::stream(config.seed, "init", 0), device)?;
    crate::algorithm::pretrain(&*world, &mut agent, config, |share| {
        progress("practising the form of executions", share);
        true
    })?;
    let made = serde_json::json!({
        "preset": config.preset,
        "seed": config.seed,
        "updates": config.algorithm.pretrain_updates,
        "batch": config.algorithm.pretrain_batch,
        "device": crate::nn::device::label(device),
    });
    let header = PolicyHeader { kind: "policy".into(), family: "regex".into(), blueprint: plan, made };
    artifact::save(output, &header, &agent.params().snapshot()?, Precision::Half)?;
    Ok(())
}

pub(super) fn import_model(import: &ModelImport<'_>) -> anyhow::Result<()> {
    let (config, world) = (import.config, world(import.config)?);
    if import.kind == ModelKind::Teacher {
        return new_teacher(config, &world, &Device::Cpu)?.import(import);
    }
    let plan = RegexAgent::plan(&world, &model_settings(config)?).map_err(anyhow::Error::msg)?;
    let agent = RegexAgent::new(plan.clone(), &mut rng::stream(config.seed, "init", 0), &Device::Cpu)?;
    let wanted = Wanted::default().with("", &agent.params().snapshot()?, &student_names());
    let tensors = import.weights.fit(&wanted, import.ignored)?;
    let made = import.made.clone();
    let header = PolicyHeader { kind: "policy".into(), family: "regex".into(), blueprint: plan, made };
    Ok(artifact::save(import.output, &header, &tensors, import.precision)?)
}

/// The world of a configuration, as its own type, for benchmarks and tests.
pub fn world_of(config: &RunConfig) -> anyhow::Result<Arc<RegexWorld>> {
    let world = world(config)?;
    debug_assert!(world.len(crate::protocol::Split::Train) > 0);
    Ok(world)
}

/// Untrained teacher models of a configuration, for benchmarks and tests.
pub fn new_teacher(config: &RunConfig, world: &RegexWorld, device: &Device) -> anyhow::Result<RegexTeacher> {
    RegexTeacher::new(world, &model_settings(config)?, &mut rng::stream(config.seed, "teacher-init", 0), device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::configure;

    /// A run that cannot begin must be refused before it is stored: it would come back at every start of the server.
    #[test]
    fn settings_that_no_run_can_begin_with_are_refused_in_words() {
        let told = |set: &str| {
            let config = configure("tiny", 1, &[set.to_owned()]).unwrap();
            check(&config).map_err(|e| format!("{e:#}"))
        };
        assert_eq!(told("seed=2"), Ok(()));
        for (set, word) in [
            ("task.world=mars", "mars"),
            ("task.world=corpus", "task.path"),
            (r#"task={"x":1}"#, "task"),
            ("model.hidden=0", "model.hidden"),
            ("model.word_embedding=0", "model.word_embedding"),
            ("model.horizon=many", "model"),
            ("model.letters=greek", "model"),
            ("task.more_words=1000", "task.more_words"),
            ("model.pretrained=nowhere", "model.pretrained"),
            ("teacher.models=nowhere", "teacher.models"),
        ] {
            let told = told(set).unwrap_err();
            assert!(told.contains(word), "{set}: {told}");
        }
    }

    #[test]
    fn a_blueprint_with_an_absurd_number_is_refused_before_anything_is_made_of_it() {
        let config = crate::testing::configure("regex/tiny", 1, &[]).unwrap();
        let world = world(&config).unwrap();
        let blueprint = agent(&config, &world, &Device::Cpu).unwrap().agent.blueprint();
        crate::testing::refuses_absurd_numbers(&blueprint, |bad| {
            agent_from(&config, &world, bad, &Device::Cpu).is_err()
        });
    }
}
