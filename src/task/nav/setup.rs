//! NAV for the trainer: worlds, agents and teachers from a run's configuration.

use super::Start;
use super::action::HEADINGS;
use super::agent::{Blueprint, MOST_VOTES, NavAgent};
use super::corpus;
use super::environment::Around;
use super::generated::Size;
use super::settings::{self, ModelSettings, TaskSettings};
use super::teacher::{self, NavTeacher};
use super::world::NavWorld;
use crate::config::run::{Preset, RunConfig};
use crate::family::files::{data_folder, teacher_file};
use crate::family::imported::{ModelImport, ModelKind};
use crate::family::shipped::model_file;
use crate::family::{Loaded, NewAgent, Progress, TeacherReport, TeacherTraining};
use crate::protocol::Agent;
use crate::protocol::Teacher;
use crate::protocol::{Split, World};
use crate::rng::{self, Stream};
use anyhow::Context;
use candle_core::Device;
use rand::RngExt;
use std::path::Path;
use std::sync::Arc;

fn task_settings(config: &RunConfig) -> anyhow::Result<TaskSettings> {
    serde_json::from_value(config.task.clone()).context("the settings under `task` do not fit the NAV task")
}

fn no_such_world(name: &str) -> anyhow::Error {
    let meant = crate::suggest::did_you_mean(name, ["builtin", "tiny", "corpus"]);
    anyhow::anyhow!("task.world is `builtin`, `tiny` or `corpus`, not `{name}`{meant}")
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
    if !(0.0..1.0).contains(&model.name_dropout) {
        anyhow::bail!("model.name_dropout is 0 or more and below 1")
    }
    if model.votes > MOST_VOTES {
        anyhow::bail!("model.votes is at most {MOST_VOTES}")
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
    let around = around(config, &world(config, &|_, _| {})?, device)?;
    NavTeacher::new(around, &model_settings(config)?, &mut rng::stream(config.seed, "teacher-init", 0))
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
    model_settings(config)?;
    at_hand(config)
}

pub(super) fn at_hand(config: &RunConfig) -> anyhow::Result<()> {
    let task = task_settings(config)?;
    if task.world == "corpus" {
        let made_with = "iliad data import-r2r R2R --connectivity GRAPHS --boxes BOXES";
        data_folder(&task.path, &[corpus::FILE, "vocab.json"], made_with)?;
    }
    let model = model_settings(config)?;
    if model.views != "semantic" && !Path::new(&model.views).is_file() {
        anyhow::bail!("model.views is `semantic` or a file, and there is no file `{}`", model.views)
    }
    if config.teacher.models == "shipped" && task.world == "corpus" {
        anyhow::bail!(
            "the shipped teacher knows generated houses only; make one with `iliad teacher train` and name its file \
             in teacher.models"
        )
    }
    teacher_file(config)
}

pub(super) fn world(config: &RunConfig, told: &Loaded<'_>) -> anyhow::Result<Arc<NavWorld>> {
    let task = task_settings(config)?;
    let world = match task.world.as_str() {
        "builtin" => NavWorld::builtin_telling(task.seed, &Size::default(), told),
        "tiny" => NavWorld::builtin_telling(task.seed, &Size::tiny(), told),
        "corpus" => NavWorld::load(Path::new(&task.path))?,
        other => return Err(no_such_world(other)),
    };
    Ok(Arc::new(world.with_marginal(task.marginal).with_perf(task.perf).with_unmoved(task.unmoved)))
}

pub(super) fn agent(config: &RunConfig, world: &Arc<NavWorld>, device: &Device) -> anyhow::Result<NewAgent<NavWorld>> {
    let around = around(config, world, device)?;
    let plan = Blueprint::plan(world, around.views.features(), &model_settings(config)?).map_err(anyhow::Error::msg)?;
    let agent = NavAgent::new(plan, around, &mut rng::stream(config.seed, "init", 0))?;
    Ok(NewAgent { agent: Box::new(agent), pretrained: false })
}

pub(super) fn agent_from(
    config: &RunConfig,
    world: &Arc<NavWorld>,
    blueprint: &serde_json::Value,
    device: &Device,
) -> anyhow::Result<Box<dyn Agent<NavWorld>>> {
    let mut blueprint: Blueprint =
        serde_json::from_value(blueprint.clone()).context("the checkpoint's agent cannot be read")?;
    blueprint.words.settle(model_settings(config)?.reserve);
    let around = around(config, world, device)?;
    Ok(Box::new(NavAgent::new(blueprint, around, &mut rng::stream(0, "load", 0))?))
}

pub(super) fn teacher(
    config: &RunConfig,
    world: &Arc<NavWorld>,
    device: &Device,
) -> anyhow::Result<Option<Box<dyn Teacher<NavWorld>>>> {
    match model_file(&config.teacher.models, "nav-builtin-teacher.safetensors")? {
        None => Ok(None),
        Some((path, bytes)) => Ok(Some(Box::new(NavTeacher::load(&path, &bytes, around(config, world, device)?)?))),
    }
}

/// `house` (empty: any of unseen ones), `viewpoint` (its name or number, a room, or empty: any), and `heading`, an
/// index of 0 to 11 (steps of 30° to the right of north; empty: any).
pub(super) fn start_from_form(
    world: &NavWorld,
    form: &serde_json::Value,
    chance: &mut Stream,
) -> Result<Start, String> {
    let text = |key: &str| form[key].as_str().map(str::trim).unwrap_or_default();
    let heading = match &form["heading"] {
        serde_json::Value::Number(n) => n.as_u64(),
        serde_json::Value::String(s) if s.trim().is_empty() => Some(chance.random_range(0..HEADINGS as u64)),
        serde_json::Value::String(s) => s.trim().parse().ok(),
        serde_json::Value::Null => Some(chance.random_range(0..HEADINGS as u64)),
        _ => None,
    };
    let Some(heading) = heading.filter(|h| *h < HEADINGS as u64) else {
        return Err("Choose which way it faces: a heading of 0 to 11, in steps of 30° from north.".into());
    };
    let (house, place) = (text("house"), text("viewpoint"));
    // Names are short; what is not is told of in part.
    let shown = |typed: &str| typed.chars().take(60).collect::<String>();
    // A viewpoint's name says which house it is in.
    let scene = match world.place(place) {
        Some((found, _)) if house.is_empty() => &world.scenes()[found],
        _ if house.is_empty() => {
            let unseen = world.sample_task(Split::Test, chance).start.scan;
            world.scene(&unseen).ok_or("There is no house here.")?
        }
        _ => world.scene(house).ok_or_else(|| {
            let one = world.scenes().first().map_or("", |scene| &scene.name);
            format!("There is no house {} here; a house of this run is {one}.", shown(house))
        })?,
    };
    let all: Vec<usize> = (0..scene.graph.len()).collect();
    let called = |i: &usize| {
        let id = scene.graph.id(*i);
        id == place || id.strip_prefix(&scene.name).and_then(|rest| rest.strip_prefix('-')) == Some(place)
    };
    let in_room = |i: &usize| scene.room(*i).is_some_and(|room| room.eq_ignore_ascii_case(place));
    let mut fit: Vec<usize> = all.iter().copied().filter(|i| place.is_empty() || called(i)).collect();
    if fit.is_empty() {
        fit = all.iter().copied().filter(in_room).collect();
    }
    // Somewhere that one can go from, where that is left open.
    if fit.len() > 1 {
        fit.retain(|i| !scene.graph.neighbours(*i).is_empty());
    }
    if fit.is_empty() {
        let mut rooms: Vec<&str> = all.iter().filter_map(|i| scene.room(*i)).collect();
        rooms.sort_unstable();
        rooms.dedup();
        let rooms = if rooms.is_empty() { String::new() } else { format!(" Its rooms: {}.", rooms.join(", ")) };
        let (place, house) = (shown(place), &scene.name);
        return Err(format!("There is no viewpoint {place} and no such room in {house}.{rooms}"));
    }
    let viewpoint = scene.graph.id(fit[chance.random_range(0..fit.len())]).to_owned();
    Ok(Start { scan: scene.name.clone(), viewpoint, heading: heading as u8 })
}

pub(super) fn train_teacher(request: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport> {
    let world = world(request.config, &|_, _| {})?;
    let around = around(request.config, &world, request.device)?;
    teacher::train(around, &model_settings(request.config)?, request)
}

pub(super) fn pretrain(_: &RunConfig, _: &Path, _: &Device, _: &Progress<'_>) -> anyhow::Result<()> {
    anyhow::bail!("policies of the NAV task start at random; there is nothing to pretrain")
}

pub(super) fn import_model(import: &ModelImport<'_>) -> anyhow::Result<()> {
    if import.kind == ModelKind::Policy {
        anyhow::bail!("policies of the NAV task start at random and read no file; import the weights as a checkpoint")
    }
    new_teacher(import.config, &Device::Cpu)?.import(import)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn starts_are_read_from_forms_and_what_is_left_open_is_drawn_and_wrong_ones_told() {
        let world = NavWorld::builtin(1, &Size::tiny());
        let house = world.scenes()[0].name.clone();
        let start = |form| start_from_form(&world, &form, &mut rng::stream(1, "form", 0));
        let first = world.scenes()[0].graph.id(3).to_owned();
        for viewpoint in [first.clone(), "3".to_owned()] {
            let found = start(json!({"house": format!(" {house} "), "viewpoint": viewpoint, "heading": "3"})).unwrap();
            assert_eq!((&found.scan, &found.viewpoint, found.heading), (&house, &first, 3));
        }
        assert_eq!(start(json!({"house": "", "viewpoint": first, "heading": 0})).unwrap().scan, house);
        let room = world.scenes()[0].room(3).unwrap().to_uppercase();
        let found = start(json!({"house": house, "viewpoint": room})).unwrap();
        let (_, at) = world.place(&found.viewpoint).unwrap();
        assert!(world.scenes()[0].room(at).unwrap().eq_ignore_ascii_case(&room));
        let any = start(json!({"house": "", "viewpoint": "", "heading": ""})).unwrap();
        assert!(world.place(&any.viewpoint).is_some() && any.heading < 12);
        assert!(start(json!({"house": "nowhere", "viewpoint": ""})).unwrap_err().contains(&house));
        let told = start(json!({"house": house, "viewpoint": "ballroom"})).unwrap_err();
        assert!(told.contains("no viewpoint ballroom") && told.contains("Its rooms:"), "{told}");
        for heading in [json!("12"), json!(-1), json!("north"), json!([])] {
            let told = start(json!({"house": house, "viewpoint": "", "heading": heading})).unwrap_err();
            assert!(told.contains("0 to 11"), "{told}");
        }
    }

    #[test]
    fn a_blueprint_with_an_absurd_number_is_refused_before_anything_is_made_of_it() {
        let config = crate::testing::configure("nav/tiny", 1, &[]).unwrap();
        let world = world(&config, &|_, _| {}).unwrap();
        let blueprint = agent(&config, &world, &Device::Cpu).unwrap().agent.blueprint();
        crate::testing::refuses_absurd_numbers(&blueprint, |bad| {
            agent_from(&config, &world, bad, &Device::Cpu).is_err()
        });
    }
}
