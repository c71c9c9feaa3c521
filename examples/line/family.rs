//! LINE's pages, and how its runs are made.

use crate::agent::{Blueprint, LineAgent};
use crate::commands::LineCommands;
use crate::teacher::LineTeacher;
use crate::world::{LineWorld, PLACES, Place};
use askama::Template;
use candle_core::Device;
use iliad::config::run::{
    AlgorithmConfig, PeopleConfig, PoolConfig, Pragmatics, Preset, RunConfig, Schedule, TeacherConfig, TeacherMode,
};
use iliad::family::commands::{CommandSet, FamilyCommands, OwnCommands};
use iliad::family::{Audience, Change, Family, Guide, Loaded, NewAgent, RenderError};
use iliad::protocol::{Agent, Split, Teacher, World};
use iliad::rng::{self, Stream};
use iliad::vocab::{SPECIAL, Vocabulary};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// LINE's entry in the registry.
pub struct LineFamily;

/// A view as [`LineWorld`] makes it; `to` is nothing where the walk left the line.
#[derive(Deserialize)]
struct View {
    from: u8,
    to: Option<u8>,
}

#[derive(Template)]
#[template(
    source = r#"<p class="line" translate="no" aria-hidden="true">{{ picture }}</p><p>{{ sentence }}</p>"#,
    ext = "html"
)]
struct Execution {
    picture: String,
    sentence: String,
}

#[derive(Template)]
#[template(
    source = r#"<label for="try-at">Where it stands, 0 to 9</label> <input id="try-at" name="at" inputmode="numeric" value="4">"#,
    ext = "html"
)]
struct TryFields;

fn failed(reason: impl ToString) -> RenderError {
    RenderError { family: "line", reason: reason.to_string() }
}

fn read(view: &Value) -> Result<View, RenderError> {
    let view = View::deserialize(view).map_err(failed)?;
    let on_line = |place: u8| place < PLACES;
    if on_line(view.from) && view.to.is_none_or(on_line) { Ok(view) } else { Err(failed("a place is not on the line")) }
}

impl View {
    fn sentence(&self) -> String {
        match self.to {
            Some(to) if to == self.from => format!("It stayed at place {to}."),
            Some(to) => format!("It walked from place {} to place {to}.", self.from),
            None => format!("It left the line from place {}.", self.from),
        }
    }

    fn picture(&self) -> String {
        let mark = |place: u8| match place {
            place if Some(place) == self.to => "●",
            place if place == self.from => "○",
            _ => "·",
        };
        (0..PLACES).map(mark).collect::<Vec<_>>().join(" ")
    }
}

/// `model` of a configuration.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelSettings {
    embedding: usize,
    hidden: usize,
    /// Rows for words that people bring.
    reserve: usize,
}

fn model_settings(config: &RunConfig) -> anyhow::Result<ModelSettings> {
    let model: ModelSettings = serde_json::from_value(config.model.clone())?;
    let sizes = [model.embedding, model.hidden, model.reserve];
    anyhow::ensure!(sizes.iter().all(|n| (1..=1024).contains(n)), "the numbers under model lie between 1 and 1024");
    Ok(model)
}

/// The words of all training requests, and the settings' sizes.
fn blueprint(world: &LineWorld, model: &ModelSettings) -> Result<Blueprint, String> {
    let tasks = 0..world.len(Split::Train);
    let all: Vec<String> = tasks.flat_map(|index| world.requests(Split::Train, index)).collect();
    let words: BTreeSet<&str> = all.iter().flat_map(|request| request.split(' ')).collect();
    let symbols = SPECIAL.into_iter().chain(words).map(str::to_owned).collect();
    let words = Vocabulary::new(symbols, model.reserve)?;
    Ok(Blueprint { embedding: model.embedding, hidden: model.hidden, words })
}

fn preset(name: &'static str, about: &'static str, mode: TeacherMode, episodes: u64) -> Preset {
    let config = RunConfig {
        family: "line".into(),
        preset: name.into(),
        seed: 1,
        task: json!({}),
        model: json!({ "embedding": 16, "hidden": 64, "reserve": 64 }),
        algorithm: AlgorithmConfig {
            learning_rate: 1e-2,
            batch: 16,
            replay: 3,
            pretrain_updates: 100,
            pretrain_batch: 32,
            ..AlgorithmConfig::default()
        },
        teacher: TeacherConfig {
            mode,
            models: "rules".into(),
            pragmatics: Pragmatics { samples: 4, ..Pragmatics::default() },
            ..TeacherConfig::default()
        },
        people: PeopleConfig::default(),
        pool: PoolConfig::default(),
        schedule: Schedule {
            episodes,
            evaluate_every: 10,
            point_every: 5,
            checkpoint_every: 20,
            ..Schedule::default()
        },
    };
    Preset { name, about, config }
}

impl Family for LineFamily {
    type World = LineWorld;

    fn name(&self) -> &'static str {
        "line"
    }

    fn title(&self) -> &'static str {
        "Walking"
    }

    fn teacher_prompt(&self) -> &'static str {
        "How did the agent walk? Write it as an instruction."
    }

    fn placeholders(&self) -> &'static [&'static str] {
        &["2 steps left"]
    }

    fn guide(&self) -> Guide {
        let with_reason = |text: &str, reason: &str| (text.to_owned(), reason.to_owned());
        Guide {
            view: json!({ "from": 4, "to": 2 }),
            good: vec![with_reason("2 steps left", "It says how far, and to which side.")],
            poor: vec![with_reason("it moved", "Nobody could walk the same way who is told so.")],
        }
    }

    fn render(&self, view: &Value, _audience: Audience) -> Result<String, RenderError> {
        let view = read(view)?;
        Execution { picture: view.picture(), sentence: view.sentence() }.render().map_err(failed)
    }

    fn render_text(&self, view: &Value) -> Result<String, RenderError> {
        Ok(read(view)?.sentence())
    }

    fn change(&self, view: &Value) -> Change {
        match read(view) {
            Ok(View { from, to: Some(to) }) if from == to => Change::Nothing,
            Ok(_) => Change::Something("The agent walked.".to_owned()),
            Err(_) => Change::Unknown,
        }
    }

    fn nothing_changed(&self) -> &'static str {
        "It stayed where it was"
    }

    fn render_try_fields(&self) -> Result<String, RenderError> {
        TryFields.render().map_err(failed)
    }

    fn commands(&self) -> FamilyCommands {
        let own = OwnCommands { about: "Look at the line", commands: CommandSet::of::<LineCommands>() };
        FamilyCommands { own: Some(own), ..FamilyCommands::default() }
    }

    fn levels(&self) -> [f64; 3] {
        [50.0, 75.0, 95.0]
    }

    fn presets(&self) -> Vec<Preset> {
        let simulated = "the same with a simulated teacher: learns within seconds";
        vec![
            preset("walk", "walking on a line of ten places, taught by people", TeacherMode::Human, 0),
            preset("simulated", simulated, TeacherMode::Simulated, 16 * 150),
        ]
    }

    fn check(&self, config: &RunConfig) -> anyhow::Result<()> {
        anyhow::ensure!(config.task == json!({}), "LINE has no settings under task");
        let models = config.teacher.models.as_str();
        anyhow::ensure!(["rules", "none"].contains(&models), "teacher.models is `rules` or `none`, not `{models}`");
        model_settings(config).map(|_| ())
    }

    fn world(&self, _config: &RunConfig, _told: &Loaded<'_>) -> anyhow::Result<Arc<LineWorld>> {
        Ok(Arc::new(LineWorld))
    }

    fn agent(
        &self,
        config: &RunConfig,
        world: &Arc<LineWorld>,
        device: &Device,
    ) -> anyhow::Result<NewAgent<LineWorld>> {
        let blueprint = blueprint(world, &model_settings(config)?).map_err(anyhow::Error::msg)?;
        let agent = LineAgent::new(blueprint, &mut rng::stream(config.seed, "init", 0), device)?;
        Ok(NewAgent { agent: Box::new(agent), pretrained: false })
    }

    fn agent_from(
        &self,
        _config: &RunConfig,
        _world: &Arc<LineWorld>,
        blueprint: &Value,
        device: &Device,
    ) -> anyhow::Result<Box<dyn Agent<LineWorld>>> {
        let blueprint: Blueprint = serde_json::from_value(blueprint.clone())?;
        Ok(Box::new(LineAgent::new(blueprint, &mut rng::stream(0, "load", 0), device)?))
    }

    fn teacher(
        &self,
        config: &RunConfig,
        _world: &Arc<LineWorld>,
        _device: &Device,
    ) -> anyhow::Result<Option<Box<dyn Teacher<LineWorld>>>> {
        Ok((config.teacher.models == "rules").then(|| Box::new(LineTeacher) as Box<dyn Teacher<LineWorld>>))
    }

    fn start_from_form(&self, _world: &LineWorld, form: &Value, chance: &mut Stream) -> Result<Place, String> {
        let typed = form["at"].as_str().unwrap_or_default().trim();
        if typed.is_empty() {
            return Ok(Place { at: chance.random_range(0..PLACES) });
        }
        match typed.parse() {
            Ok(at) if at < PLACES => Ok(Place { at }),
            _ => Err("Type a place from 0 to 9.".into()),
        }
    }
}
