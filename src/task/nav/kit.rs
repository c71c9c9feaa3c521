//! NAV for the trainer: worlds, agents and teachers from a run's configuration.

use super::Start;
use super::action::HEADINGS;
use super::agent::{Blueprint, NavAgent};
use super::around::Around;
use super::family::NavFamily;
use super::generated::Size;
use super::houses;
use super::settings::{self, ModelSettings, TaskSettings};
use super::teacher::{self, NavTeacher};
use super::world::NavWorld;
use crate::agent::Agent;
use crate::config::run::{Preset, RunConfig};
use crate::rng;
use crate::task::kit::{NewAgent, Progress, TaskKit, TeacherReport, TeacherTraining};
use crate::task::shipped::model_file;
use crate::teacher::simulated::TeacherModels;
use anyhow::Context;
use candle_core::Device;
use std::path::Path;
use std::sync::Arc;

fn task_settings(config: &RunConfig) -> anyhow::Result<TaskSettings> {
    serde_json::from_value(config.task.clone()).context("the settings under `task` do not fit the NAV task")
}

fn no_such_world(name: &str) -> anyhow::Error {
    anyhow::anyhow!("task.world is `builtin`, `tiny` or `corpus`, not `{name}`")
}

fn model_settings(config: &RunConfig) -> anyhow::Result<ModelSettings> {
    let model: ModelSettings =
        serde_json::from_value(config.model.clone()).context("the settings under `model` do not fit the NAV task")?;
    if !(2..=4096).contains(&model.hidden) || model.heads == 0 || !model.hidden.is_multiple_of(model.heads) {
        anyhow::bail!("model.hidden lies between 2 and 4096 and is a multiple of model.heads")
    }
    if !(4..=4096).contains(&model.direction) || !model.direction.is_multiple_of(4) {
        anyhow::bail!("model.direction lies between 4 and 4096 and is a multiple of 4")
    }
    if !(2..=100).contains(&model.horizon) || model.reserve > 100_000 {
        anyhow::bail!("model.horizon lies between 2 and 100, model.reserve is at most 100000")
    }
    Ok(model)
}

fn around(config: &RunConfig, world: &Arc<NavWorld>, device: &Device) -> anyhow::Result<Arc<Around>> {
    Around::of(world, &model_settings(config)?.views, device)
}

/// A new teacher of a configuration's world.
///
/// # Errors
/// When the world cannot be read or the sizes do not fit.
pub fn new_teacher(config: &RunConfig, device: &Device) -> anyhow::Result<NavTeacher> {
    let around = around(config, &TaskKit::world(&NavFamily, config)?, device)?;
    NavTeacher::new(around, &model_settings(config)?, &mut rng::stream(config.seed, "teacher-init", 0))
}

impl TaskKit for NavFamily {
    type World = NavWorld;

    fn presets(&self) -> Vec<Preset> {
        settings::presets()
    }

    fn check(&self, config: &RunConfig) -> anyhow::Result<()> {
        let task = task_settings(config)?;
        match task.world.as_str() {
            "builtin" | "tiny" => {}
            "corpus" if Path::new(&task.path).is_dir() => {}
            "corpus" => anyhow::bail!("task.path names the folder of a corpus, but `{}` is no folder", task.path),
            other => return Err(no_such_world(other)),
        }
        let model = model_settings(config)?;
        if model.views != "semantic" && !Path::new(&model.views).is_file() {
            anyhow::bail!("model.views is `semantic` or a file, and there is no file `{}`", model.views)
        }
        let models = &config.teacher.models;
        if models == "shipped" && task.world == "corpus" {
            anyhow::bail!(
                "the shipped teacher knows generated houses only; make one with `iliad teacher train` and name its file \
                 in teacher.models"
            )
        }
        if !["shipped", "none"].contains(&models.as_str()) && !Path::new(models).is_file() {
            anyhow::bail!("teacher.models is `shipped`, `none` or a file, and there is no file `{models}`")
        }
        Ok(())
    }

    fn world(&self, config: &RunConfig) -> anyhow::Result<Arc<NavWorld>> {
        let task = task_settings(config)?;
        let world = match task.world.as_str() {
            "builtin" => NavWorld::builtin(task.seed, &Size::default()),
            "tiny" => NavWorld::builtin(task.seed, &Size::tiny()),
            "corpus" => NavWorld::load(Path::new(&task.path))?,
            other => return Err(no_such_world(other)),
        };
        let world = Arc::new(world.with_marginal(task.marginal).with_perf(task.perf));
        houses::remember(&world);
        Ok(world)
    }

    fn agent(&self, config: &RunConfig, world: &Arc<NavWorld>, device: &Device) -> anyhow::Result<NewAgent<NavWorld>> {
        let around = around(config, world, device)?;
        let plan =
            Blueprint::plan(world, around.views.features(), &model_settings(config)?).map_err(anyhow::Error::msg)?;
        let agent = NavAgent::new(plan, around, &mut rng::stream(config.seed, "init", 0))?;
        Ok(NewAgent { agent: Box::new(agent), pretrained: false })
    }

    fn agent_from(
        &self,
        config: &RunConfig,
        world: &Arc<NavWorld>,
        blueprint: &serde_json::Value,
        device: &Device,
    ) -> anyhow::Result<Box<dyn Agent<NavWorld>>> {
        let blueprint: Blueprint =
            serde_json::from_value(blueprint.clone()).context("the checkpoint's agent cannot be read")?;
        let around = around(config, world, device)?;
        Ok(Box::new(NavAgent::new(blueprint, around, &mut rng::stream(0, "load", 0))?))
    }

    fn teacher(
        &self,
        config: &RunConfig,
        world: &Arc<NavWorld>,
        device: &Device,
    ) -> anyhow::Result<Option<Box<dyn TeacherModels<NavWorld>>>> {
        match model_file(&config.teacher.models, "nav-builtin-teacher.safetensors")? {
            None => Ok(None),
            Some((path, bytes)) => Ok(Some(Box::new(NavTeacher::load(&path, &bytes, around(config, world, device)?)?))),
        }
    }

    /// `house`, `viewpoint`, and `heading`, an index of 0 to 11 (steps of 30° to the right of north).
    fn start_from_form(&self, form: &serde_json::Value) -> Result<Start, String> {
        let text = |key: &str| form[key].as_str().map(str::trim).filter(|t| !t.is_empty());
        let (Some(scan), Some(viewpoint)) = (text("house"), text("viewpoint")) else {
            return Err("Give a house and a viewpoint in it to start from.".into());
        };
        let heading = match &form["heading"] {
            serde_json::Value::Number(n) => n.as_u64(),
            serde_json::Value::String(s) => s.trim().parse().ok(),
            serde_json::Value::Null => Some(0),
            _ => None,
        };
        match heading.filter(|h| *h < HEADINGS as u64) {
            Some(heading) => {
                Ok(Start { scan: scan.to_owned(), viewpoint: viewpoint.to_owned(), heading: heading as u8 })
            }
            None => Err("Choose which way it faces: a heading of 0 to 11, in steps of 30° from north.".into()),
        }
    }

    fn train_teacher(&self, request: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport> {
        let world = TaskKit::world(self, request.config)?;
        let around = around(request.config, &world, request.device)?;
        teacher::train(around, &model_settings(request.config)?, request)
    }

    fn pretrain(&self, _: &RunConfig, _: &Path, _: &Device, _: &Progress<'_>) -> anyhow::Result<()> {
        anyhow::bail!("policies of the NAV task start at random; there is nothing to pretrain")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn starts_are_read_from_forms_and_wrong_ones_told() {
        let start = |form| NavFamily.start_from_form(&form);
        let found = start(json!({"house": " house-1 ", "viewpoint": "house-1-0", "heading": "3"})).unwrap();
        assert_eq!((found.scan.as_str(), found.viewpoint.as_str(), found.heading), ("house-1", "house-1-0", 3));
        assert_eq!(start(json!({"house": "a", "viewpoint": "b"})).unwrap().heading, 0);
        assert!(start(json!({"house": "", "viewpoint": "b"})).unwrap_err().contains("house"));
        for heading in [json!("12"), json!(-1), json!("north"), json!([])] {
            let told = start(json!({"house": "a", "viewpoint": "b", "heading": heading})).unwrap_err();
            assert!(told.contains("0 to 11"), "{told}");
        }
    }
}
