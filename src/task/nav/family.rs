//! Walking through houses as people meet it: words, an example, and how walks look.

use super::action::{HEADINGS, VIEW_STEP};
use super::drawing::Map;
use super::houses::{EXAMPLE, Houses};
use super::settings::{ModelSettings, TaskSettings};
use super::tables::TABLES;
use super::world::NavWorld;
use super::{Start, Walk, setup};
use super::{benchmark, demonstration, device_agreement, try_answer};
use crate::config::run::documented::{self, SettingGroup};
use crate::config::run::{Preset, RunConfig};
use crate::family::benchmark::{Benchmark, Profile, Timing};
use crate::family::commands::FamilyCommands;
use crate::family::corpus::CorpusFormat;
use crate::family::dataset::{ExecutionParts, TaughtExample, TrainingForm};
use crate::family::imported::ModelImport;
use crate::family::pages::FamilyPages;
use crate::family::tables::Tables;
use crate::family::{
    Audience, Change, Demonstration, Family, Fields, Guide, Loaded, NewAgent, Progress, RenderError, TeacherReport,
    TeacherTraining, TryAnswer,
};
use crate::nn::device_agreement::Apart;
use crate::nn::reference_fixtures::{Differences, FixtureFile, Names};
use crate::protocol::{Agent, Medium, Teacher, World};
use crate::rng::Stream;
use askama::Template;
use candle_core::Device;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, LazyLock, OnceLock};

/// NAV's entry in the registry of task families.
#[derive(Debug)]
pub struct NavFamily {
    houses: LazyLock<Arc<Houses>>,
    /// The view of the guide, which is made once.
    guide: OnceLock<Value>,
}

/// The family as the program's own registry has it.
pub static NAV: NavFamily = NavFamily::new();

impl NavFamily {
    /// The family, which knows no house yet.
    pub const fn new() -> NavFamily {
        NavFamily { houses: LazyLock::new(Arc::default), guide: OnceLock::new() }
    }

    /// The houses that its pages show.
    pub fn houses(&self) -> &Arc<Houses> {
        &self.houses
    }
}

impl Default for NavFamily {
    fn default() -> Self {
        NavFamily::new()
    }
}

/// A view as [`super::world::NavWorld`] makes it.
#[derive(Deserialize)]
pub(super) struct View {
    pub house: String,
    #[serde(default)]
    pub seed: Option<u64>,
    pub path: Vec<Stop>,
    /// Heading and pitch of the last picture, where there is something to look at.
    #[serde(default)]
    pub look: Option<[f64; 2]>,
    pub words: Vec<String>,
    /// The walk in terse lines that programs read; views of earlier versions have these lines as their words.
    #[serde(default)]
    pub outline: Vec<String>,
    /// The whole walk in one sentence.
    #[serde(default)]
    pub sentence: String,
}

/// A viewpoint that the walk was at.
#[derive(Deserialize, Serialize)]
pub(super) struct Stop {
    pub viewpoint: String,
    /// Position of the eye.
    pub position: [f64; 3],
    /// Heading on arrival, in radians.
    pub heading: f64,
    #[serde(default)]
    pub room: Option<String>,
    /// Rooms that the agent came into on the way to it, each with the share of the way by then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub way: Vec<(f64, String)>,
    /// Things seen from there; only real houses need them, since they have no geometry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub things: Vec<Value>,
}

/// The data of a walk for the page's script.
#[derive(Serialize)]
struct Shown<'a> {
    house: &'a str,
    /// Version of the house's geometry; `None` for real houses.
    version: Option<String>,
    path: &'a [Stop],
    #[serde(skip_serializing_if = "Option::is_none")]
    look: Option<[f64; 2]>,
}

#[derive(Template)]
#[template(path = "nav/execution.html")]
struct ExecutionPage<'a> {
    data: String,
    words: &'a [String],
}

#[derive(Template)]
#[template(path = "nav/execution_small.html")]
struct ExecutionRow {
    map: Map,
    spoken: String,
    /// The walk in one sentence, where people see it.
    sentence: String,
}

#[derive(Template)]
#[template(path = "nav/try.html")]
struct TryFields {
    houses: Vec<String>,
    rooms: Vec<String>,
    headings: Vec<(usize, String)>,
}

fn failed(reason: impl ToString) -> RenderError {
    RenderError { family: "nav", reason: reason.to_string() }
}

fn read(view: &Value) -> Result<View, RenderError> {
    let view = View::deserialize(view).map_err(failed)?;
    let finite = |stop: &Stop| stop.heading.is_finite() && stop.position.iter().all(|x| x.is_finite());
    if view.path.is_empty() {
        Err(failed("the view has no path"))
    } else if !view.path.iter().all(finite) {
        Err(failed("a position or heading is not a number"))
    } else {
        Ok(view)
    }
}

/// Headings as people say them.
const COMPASS: [&str; 4] = ["north", "east", "south", "west"];

/// The walk of the guide: viewpoints of [`EXAMPLE`], and the heading index at the start.
const GUIDE_WALK: (&[usize], u8) = (&[14, 7, 13, 33, 6, 22, 30], 6);

/// The view of the guide's walk.
fn guide_view(houses: &Houses) -> Value {
    let (path, heading) = GUIDE_WALK;
    let viewpoints: Vec<String> = path.iter().map(|i| format!("{EXAMPLE}-{i}")).collect();
    let start = Start { scan: EXAMPLE.into(), viewpoint: viewpoints[0].clone(), heading };
    houses.world(EXAMPLE).map_or(Value::Null, |world| world.view(&start, &Walk { viewpoints }))
}

/// HTML of a walk from its view, in a house of these.
pub(super) fn render(houses: &Houses, view: &Value, audience: Audience) -> Result<String, RenderError> {
    let View { house, seed, mut path, look, words, sentence, .. } = read(view)?;
    match audience {
        Audience::Teacher => {
            let version = houses.sheet(&house).filter(|sheet| sheet.house.is_some()).map(|s| s.version.clone());
            if seed.is_some() {
                path.iter_mut().for_each(|stop| stop.things.clear());
            }
            let shown = Shown { house: &house, version, path: &path, look };
            let data = crate::output::json::line(&shown).map_err(failed)?;
            ExecutionPage { data, words: &words }.render()
        }
        Audience::Researcher | Audience::Beside => {
            // Only a house that is at hand: a list of many walks must not make a house for each.
            let sheet = houses.kept(&house);
            let map = Map::of(&path, sheet.as_ref().and_then(|sheet| sheet.house.as_ref()));
            let sentence = if audience == Audience::Beside { sentence } else { String::new() };
            ExecutionRow { map, spoken: words.join(" "), sentence }.render()
        }
    }
    .map_err(failed)
}

/// Hints of the empty box.
const PLACEHOLDERS: [&str; 6] = [
    "Go through the door on your left, walk past the sofa, and stop at the window.",
    "Turn around, leave the room, and wait in the hallway next to the plant.",
    "Walk along the hallway into the kitchen and stop in front of the fridge.",
    "Go past the dining table and stop at the door on the right.",
    "Turn right, go into the bedroom, and stop beside the bed.",
    "Walk straight ahead and stop between the desk and the bookshelf.",
];

impl Family for NavFamily {
    type World = NavWorld;

    fn name(&self) -> &'static str {
        "nav"
    }

    fn title(&self) -> &'static str {
        "Walking through houses"
    }

    fn teacher_prompt(&self) -> &'static str {
        "Which way did the agent walk? Write directions that anyone at the start could follow."
    }

    fn setting_groups(&self) -> Vec<SettingGroup> {
        [documented::groups::<TaskSettings>("task"), documented::groups::<ModelSettings>("model")].concat()
    }

    fn placeholders(&self) -> &'static [&'static str] {
        &PLACEHOLDERS
    }

    fn guide(&self) -> Guide {
        let with_reasons = |list: &[(&str, &str)]| {
            list.iter().map(|(text, reason)| ((*text).to_owned(), (*reason).to_owned())).collect()
        };
        Guide {
            view: self.guide.get_or_init(|| guide_view(&self.houses)).clone(),
            good: with_reasons(&GOOD),
            poor: with_reasons(&POOR),
        }
    }

    fn render(&self, view: &Value, audience: Audience) -> Result<String, RenderError> {
        render(&self.houses, view, audience)
    }

    fn render_text(&self, view: &Value) -> Result<String, RenderError> {
        let View { words, outline, .. } = read(view)?;
        Ok(if outline.is_empty() { words } else { outline }.join("\n"))
    }

    fn render_spoken(&self, view: &Value) -> Result<String, RenderError> {
        Ok(read(view)?.words.join("\n"))
    }

    fn try_answer(&self, view: &Value) -> Result<TryAnswer, RenderError> {
        Ok(try_answer::answer(&read(view)?))
    }

    fn change(&self, view: &Value) -> Change {
        let Ok(View { path, .. }) = read(view) else { return Change::Unknown };
        if path.iter().all(|stop| stop.viewpoint == path[0].viewpoint) {
            return Change::Nothing;
        }
        let (first, last) = (&path[0], &path[path.len() - 1]);
        let way = match (&first.room, &last.room) {
            (Some(from), Some(to)) if from != to => format!("The agent walked from the {from} to the {to}."),
            _ => "The agent walked away from the place where it stood.".to_owned(),
        };
        Change::Something(way)
    }

    fn nothing_changed(&self) -> &'static str {
        "It stayed where it was"
    }

    fn media(&self) -> &'static [Medium] {
        &Medium::ALL
    }

    fn demonstration_prompt(&self) -> &'static str {
        "Click the way that the agent should walk, one place after the other, and send it where it should stop."
    }

    fn render_demonstration(&self, view: &Value, given: &Value) -> Result<String, RenderError> {
        demonstration::render(&self.houses, &read(view)?, given)
    }

    fn demonstration_of(&self, fields: &Fields) -> Value {
        demonstration::of_fields(fields)
    }

    fn check_demonstration(&self, view: &Value, given: &Value) -> Result<Demonstration, String> {
        let view = read(view).map_err(|_| "This walk cannot be shown any more.".to_owned())?;
        demonstration::check(&self.houses, &view, given)
    }

    fn demonstration_from(&self, _world: &NavWorld, _start: &Start, execution: &Walk) -> Value {
        demonstration::given(execution)
    }

    fn demonstration_text(&self, demonstration: &Value) -> String {
        demonstration::text(demonstration)
    }

    fn demonstrated(&self, world: &NavWorld, start: &Start, demonstration: &Value) -> Result<Walk, String> {
        demonstration::walk(world, start, demonstration)
    }

    fn render_try_fields(&self) -> Result<String, RenderError> {
        let headings = (0..12)
            .map(|i| {
                let name = if i % 3 == 0 { COMPASS[i / 3].to_owned() } else { format!("{}°", i * 30) };
                (i, name)
            })
            .collect();
        let (houses, rooms) = self.houses.known();
        TryFields { houses, rooms, headings }.render().map_err(failed)
    }

    fn start_fields(&self, view: &Value) -> Value {
        let first = &view["path"][0];
        let (Some(viewpoint), Some(heading)) = (first["viewpoint"].as_str(), first["heading"].as_f64()) else {
            return Value::Null;
        };
        let heading = (heading / VIEW_STEP).round() as usize % HEADINGS;
        json!({"house": view["house"], "viewpoint": viewpoint, "heading": heading.to_string()})
    }

    fn parts(&self, view: &Value) -> ExecutionParts {
        let Some(path) = view["path"].as_array().filter(|path| !path.is_empty()) else {
            return ExecutionParts::default();
        };
        let start = json!({ "house": view["house"], "viewpoint": path[0]["viewpoint"], "heading": path[0]["heading"] });
        ExecutionParts { start, outputs: path.iter().map(|stop| stop["viewpoint"].clone()).collect() }
    }

    fn outputs(&self, execution: &Value) -> Value {
        execution["viewpoints"].clone()
    }

    fn training_form(&self) -> Option<TrainingForm> {
        Some(TrainingForm {
            name: "r2r",
            about: "Walks with instructions, as Room-to-Room has them: one JSON list.",
            list: true,
        })
    }

    fn training_examples(&self, example: TaughtExample<'_>) -> Vec<Value> {
        let ExecutionParts { start, outputs } = self.parts(example.view);
        let path = match example.demonstration {
            None => outputs,
            Some(shown) => shown["path"].clone(),
        };
        if !path.is_array() {
            return Vec::new();
        }
        let mut row = json!({
            "path_id": example.key, "scan": start["house"], "heading": start["heading"], "path": path,
            "instructions": [example.words],
        });
        // The length of what was demonstrated is not in its data.
        if example.demonstration.is_none() {
            row["distance"] = example.view["length"].clone();
        }
        vec![row]
    }

    fn script(&self) -> Option<&'static str> {
        Some("js/walk.js")
    }

    fn modules(&self) -> &'static [&'static str] {
        &MODULES
    }

    fn pages(&self) -> Option<FamilyPages> {
        Some(super::pages::pages(self.houses().clone()))
    }

    fn commands(&self) -> FamilyCommands {
        super::commands::commands()
    }

    fn acting_settings(&self) -> &'static [(&'static str, &'static str)] {
        &[("model.votes", "votes")]
    }

    fn levels(&self) -> [f64; 3] {
        [20.0, 25.0, 30.0]
    }

    fn tables(&self) -> &Tables {
        &TABLES
    }

    fn teacher_updates(&self, request: &Benchmark<'_>) -> anyhow::Result<Vec<Timing>> {
        benchmark::teacher_updates(request)
    }

    fn profile(&self, request: &Benchmark<'_>) -> anyhow::Result<Vec<Profile>> {
        benchmark::profile(request)
    }

    fn device_agreement(&self, device: &Device, hidden: usize, steps: u64) -> anyhow::Result<Vec<Apart>> {
        Ok(device_agreement::agreement(device, hidden, 2 * steps)?)
    }

    fn program_agreement(&self, device: &Device, hidden: usize, steps: u64) -> anyhow::Result<Vec<Apart>> {
        Ok(device_agreement::programs(device, hidden, steps)?)
    }

    fn check_fixture(&self, file: &FixtureFile, device: &Device) -> Option<candle_core::Result<Differences>> {
        super::reference_fixtures::check(file, device)
    }

    fn check_fixture_without_padding(
        &self,
        file: &FixtureFile,
        device: &Device,
    ) -> Option<candle_core::Result<Differences>> {
        super::reference_fixtures::check_without_padding(file, device)
    }

    fn corpus(&self) -> Option<CorpusFormat> {
        Some(super::corpus_format::FORMAT)
    }

    fn presets(&self) -> Vec<Preset> {
        setup::presets()
    }

    fn check(&self, config: &RunConfig) -> anyhow::Result<()> {
        setup::check(config)
    }

    fn at_hand(&self, config: &RunConfig) -> anyhow::Result<()> {
        setup::at_hand(config)
    }

    fn world(&self, config: &RunConfig, told: &Loaded<'_>) -> anyhow::Result<Arc<NavWorld>> {
        let world = setup::world(config, told)?;
        self.houses.remember(&world);
        Ok(world)
    }

    fn agent(&self, config: &RunConfig, world: &Arc<NavWorld>, device: &Device) -> anyhow::Result<NewAgent<NavWorld>> {
        setup::agent(config, world, device)
    }

    fn agent_from(
        &self,
        config: &RunConfig,
        world: &Arc<NavWorld>,
        blueprint: &serde_json::Value,
        device: &Device,
    ) -> anyhow::Result<Box<dyn Agent<NavWorld>>> {
        setup::agent_from(config, world, blueprint, device)
    }

    fn teacher(
        &self,
        config: &RunConfig,
        world: &Arc<NavWorld>,
        device: &Device,
    ) -> anyhow::Result<Option<Box<dyn Teacher<NavWorld>>>> {
        setup::teacher(config, world, device)
    }

    fn start_from_form(
        &self,
        world: &NavWorld,
        form: &serde_json::Value,
        chance: &mut Stream,
    ) -> Result<Start, String> {
        setup::start_from_form(world, form, chance)
    }

    fn train_teacher(&self, request: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport> {
        setup::train_teacher(request)
    }

    fn pretrain(
        &self,
        config: &RunConfig,
        output: &Path,
        device: &Device,
        progress: &Progress<'_>,
    ) -> anyhow::Result<()> {
        setup::pretrain(config, output, device, progress)
    }

    fn policy_names(&self) -> Names {
        super::reference_fixtures::student_names()
    }

    fn import_model(&self, import: &ModelImport<'_>) -> anyhow::Result<()> {
        setup::import_model(import)
    }
}

const MODULES: [&str; 16] = [
    "js/walk/plan.js",
    "js/walk/sightline.js",
    "js/walk/player.js",
    "js/walk/small-map.js",
    "js/walk/scene.js",
    "js/walk/stage.js",
    "js/walk/house.js",
    "js/walk/graph.js",
    "js/walk/brush.js",
    "js/walk/fixtures.js",
    "js/walk/furniture.js",
    "js/walk/light.js",
    "js/walk/shell.js",
    "js/walk/textures.js",
    "vendor/three.module.min.js",
    "vendor/three.core.min.js",
];

/// Good descriptions of the guide's walk.
const GOOD: [(&str, &str); 3] = [
    (
        "Leave the bedroom, turn right and walk down the hallway past the tall clock. Go right into the living room and \
         stop between the red ottoman and the TV.",
        "Every turn has a place, and it says where to stop.",
    ),
    (
        "go out the door and right, then take the next opening on the right and stop in front of the tv",
        "Short is fine, as long as somebody at the start could follow it.",
    ),
    (
        "out of the bedroom, right, past the grandfather clock, into the room with the blue couches, stop by the footstool",
        "Your own names for things are welcome. What is passed on the way helps.",
    ),
];

/// Poor descriptions of the guide's walk.
const POOR: [(&str, &str); 2] = [
    ("it went to the living room", "True, but it says neither which way nor where in the room it stopped."),
    (
        "turn right, go straight, turn right, turn left",
        "Turns without places: nobody could tell where to turn or when to stop.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view() -> Value {
        guide_view(NAV.houses())
    }

    #[test]
    fn a_teacher_gets_the_walk_and_its_words_but_neither_request_nor_goal() {
        let html = NAV.render(&view(), Audience::Teacher).expect("renders");
        assert!(html.contains("data-walk=") && html.contains(EXAMPLE), "{html}");
        let words = view()["words"].as_array().map_or(0, Vec::len);
        assert_eq!(html.matches("<li").count(), words);
        // The views are in the geometry already.
        assert!(!html.contains("things"), "{html}");
    }

    #[test]
    fn a_researcher_gets_a_map_that_needs_no_script() {
        let html = NAV.render(&view(), Audience::Researcher).expect("renders");
        let stops = view()["path"].as_array().map_or(0, Vec::len);
        assert!(html.contains("<svg") && html.contains("role=\"img\""), "{html}");
        assert_eq!(html.matches("class=\"map-stop").count(), stops);
        assert!(!html.contains("data-walk"));
    }

    #[test]
    fn a_view_fills_the_fields_of_its_start() {
        let fields = NAV.start_fields(&view());
        let (path, heading) = GUIDE_WALK;
        let expected =
            json!({"house": EXAMPLE, "viewpoint": format!("{EXAMPLE}-{}", path[0]), "heading": heading.to_string()});
        assert_eq!(fields, expected);
        assert_eq!(NAV.start_fields(&json!({"house": EXAMPLE, "path": []})), Value::Null);
    }

    #[test]
    fn all_modules_of_a_walk_are_fetched_together() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("static/js/walk");
        let files = std::fs::read_dir(folder).unwrap();
        let mut there: Vec<_> =
            files.map(|file| format!("js/walk/{}", file.unwrap().file_name().to_string_lossy())).collect();
        let mut named: Vec<_> =
            MODULES.iter().filter(|name| name.starts_with("js/")).map(|n| (*n).to_owned()).collect();
        there.sort();
        named.sort();
        assert_eq!(named, there);
    }

    #[test]
    fn programs_get_an_outline_and_screen_readers_sentences() {
        let text = NAV.render_text(&view()).expect("text");
        assert!(text.starts_with("Starts in the ") && text.contains("\nStops near "), "{text}");
        let spoken = NAV.render_spoken(&view()).expect("text");
        assert!(spoken.starts_with("It started in the ") && spoken.contains("\nIt stopped "), "{spoken}");
        // A view of an earlier version has the lines of the outline as its words.
        let mut old = view();
        let outline = old.as_object_mut().expect("an object").remove("outline").expect("an outline");
        old["words"] = outline;
        assert_eq!(NAV.render_text(&old).expect("text"), text);
    }

    #[test]
    fn nothing_of_a_view_becomes_markup() {
        let mut hostile = view();
        hostile["words"] = json!(["<script>alert(1)</script>"]);
        hostile["house"] = json!("\"><b>");
        hostile["path"][0]["room"] = json!("<i>\"'");
        for audience in [Audience::Teacher, Audience::Researcher] {
            let html = NAV.render(&hostile, audience).expect("renders");
            assert!(!html.contains("<script") && !html.contains("<b>") && !html.contains("<i>"), "{html}");
        }
    }

    #[test]
    fn it_tells_whether_the_agent_left_its_place() {
        assert!(matches!(NAV.change(&view()), Change::Something(_)));
        let mut stayed = view();
        let first = stayed["path"][0].clone();
        stayed["path"] = json!([first]);
        assert_eq!(NAV.change(&stayed), Change::Nothing);
        assert_eq!(NAV.change(&json!({})), Change::Unknown);
    }

    #[test]
    fn damaged_views_are_errors() {
        let mut unplaced = view();
        unplaced["path"][0]["position"] = json!([0, 1]);
        let empty = json!({"house": "house-1", "path": [], "words": []});
        for damaged in [json!(null), json!({}), json!([1]), unplaced, empty] {
            assert!(NAV.render(&damaged, Audience::Teacher).is_err(), "{damaged}");
            assert!(NAV.render_text(&damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_walk_in_a_house_that_is_not_at_hand_is_drawn_all_the_same() {
        let view = json!({
            "house": "8194nk5LbLH", "length": 2.0, "words": ["Starts.", "Goes straight on 2.0 m.", "Stops."],
            "path": [
                {"viewpoint": "a", "position": [0.0, 0.0, 1.5], "heading": 0.0, "room": null, "things": [{"name": "sofa"}]},
                {"viewpoint": "b", "position": [0.0, 2.0, 1.5], "heading": 0.0, "room": null, "things": []},
            ],
        });
        let html = NAV.render(&view, Audience::Teacher).expect("renders");
        assert!(html.contains("sofa") && html.contains("&#34;version&#34;:null"), "{html}");
        assert!(NAV.render(&view, Audience::Researcher).is_ok());
    }

    #[test]
    fn the_guide_says_what_its_walk_does() {
        let guide = NAV.guide();
        assert_eq!((guide.good.len(), guide.poor.len()), (3, 2));
        assert!(guide.view["path"].as_array().is_some_and(|path| path.len() == GUIDE_WALK.0.len()));
    }

    #[test]
    fn the_try_box_has_labelled_fields() {
        let html = NAV.render_try_fields().expect("renders");
        for name in ["house", "viewpoint", "heading"] {
            assert!(
                html.contains(&format!("name=\"{name}\"")) && html.contains(&format!("for=\"try-{name}\"")),
                "{html}"
            );
        }
        assert!(html.matches("<option value=").count() >= 13, "every heading, and any");
    }
}
