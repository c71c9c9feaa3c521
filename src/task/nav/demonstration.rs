//! Demonstrations of walks: a person shows the way in the plan of the house, place by place.

use super::family::{Stop, View};
use super::house::{EYE, STOREY_HEIGHT};
use super::houses::Houses;
use super::scene::Scene;
use super::walk_words::near;
use super::world::NavWorld;
use super::{Start, Walk};
use crate::family::{Demonstration, Fields, RenderError};
use askama::Template;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Moves of a demonstration at most: with the stop they are the ten decisions that agents are made for.
const MOVES: usize = 9;

/// Things named beside a place at most.
const NAMED: usize = 2;

/// A demonstration as it comes from a page or a program, and as it is stored: the viewpoints in order, the start first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    path: Vec<String>,
    /// The way in words; made when it is checked.
    #[serde(default)]
    words: Vec<String>,
}

/// A viewpoint as the page's script knows it.
#[derive(Serialize)]
struct Place<'a> {
    id: &'a str,
    x: f64,
    y: f64,
    z: f64,
    storey: usize,
    room: Option<&'a str>,
    near: Vec<String>,
    next: Vec<&'a str>,
}

/// The plan of one storey. Lengths are metres, y to the south as pictures have it.
#[derive(Default)]
struct Storey {
    number: usize,
    rooms: Vec<[f64; 4]>,
    doors: Vec<[f64; 4]>,
    names: Vec<(f64, f64, String)>,
    edges: Vec<([f64; 2], [f64; 2])>,
    things: Vec<(f64, f64, String)>,
    places: Vec<(f64, f64)>,
}

#[derive(Template)]
#[template(path = "nav/demonstration.html")]
struct Plan {
    data: String,
    storeys: Vec<Storey>,
    path: String,
}

fn cm(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

/// Storey of a height of the eye.
fn storey(z: f64) -> usize {
    ((z - EYE + 0.3) / STOREY_HEIGHT).floor().max(0.0) as usize
}

/// The demonstration that the field `path` says: names of viewpoints with blanks between them.
pub(super) fn of_fields(fields: &Fields) -> Value {
    match fields.get("path").map(|path| path.trim()).filter(|path| !path.is_empty()) {
        Some(path) => json!({ "path": path.split_whitespace().collect::<Vec<_>>() }),
        None => Value::Null,
    }
}

/// The start of a view.
fn start_of(view: &View) -> (&str, &Stop) {
    (&view.house, &view.path[0])
}

/// HTML of the plan in which one shows the way.
pub(super) fn render(houses: &Houses, view: &View, given: &Value) -> Result<String, RenderError> {
    let failed = |reason: String| RenderError { family: "nav", reason };
    let (house, first) = start_of(view);
    let world = houses.world(house).ok_or_else(|| failed(format!("there is no house {house}")))?;
    let scene = world.scene(house).ok_or_else(|| failed(format!("there is no house {house}")))?;
    let places: Vec<Place> = (0..scene.graph.len()).map(|i| place(scene, i)).collect();
    let data = json!({
        "places": places, "start": first.viewpoint, "heading": first.heading, "moves": MOVES,
    });
    let path: Vec<&str> = given["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let plan = Plan { data: data.to_string(), storeys: storeys(scene), path: path.join(" ") };
    plan.render().map_err(|e| failed(e.to_string()))
}

fn place(scene: &Scene, viewpoint: usize) -> Place<'_> {
    let [x, y, z] = scene.graph.position(viewpoint);
    let mut near = near(scene, viewpoint);
    near.truncate(NAMED);
    let next = scene.graph.neighbours(viewpoint).iter().map(|next| scene.graph.id(*next as usize)).collect();
    let (id, room) = (scene.graph.id(viewpoint), scene.room(viewpoint));
    Place { id, x: cm(x), y: cm(y), z: cm(z), storey: storey(z), room, near, next }
}

fn storeys(scene: &Scene) -> Vec<Storey> {
    let mut all: BTreeMap<usize, Storey> = BTreeMap::new();
    let spot = |i: usize| {
        let [x, y, _] = scene.graph.position(i);
        [cm(x), cm(-y)]
    };
    for i in 0..scene.graph.len() {
        let number = storey(scene.graph.position(i)[2]);
        let plan = all.entry(number).or_insert_with(|| Storey { number, ..Storey::default() });
        let [x, y] = spot(i);
        plan.places.push((x, y));
        for thing in scene.landmarks(i).into_iter().filter(|thing| thing.distance < 4.0) {
            let known = (cm(thing.position[0]), cm(-thing.position[1]), thing.name);
            if !plan.things.contains(&known) {
                plan.things.push(known);
            }
        }
    }
    for (a, b) in scene.graph.edge_list() {
        for number in [a, b].map(|i| storey(scene.graph.position(i)[2])) {
            if let Some(plan) = all.get_mut(&number) {
                plan.edges.push((spot(a), spot(b)));
            }
        }
    }
    if let Some(house) = scene.house() {
        for (&number, plan) in &mut all {
            for room in house.rooms.iter().filter(|room| room.storey == number) {
                let r = room.rect;
                plan.rooms.push([cm(r.x0), cm(-r.y1), cm(r.width()), cm(r.depth())]);
                let [x, y] = r.centre();
                plan.names.push((cm(x), cm(-y), room.kind.clone()));
            }
            for opening in &house.openings {
                if house.walls[opening.wall].storey == number && opening.kind.passable() {
                    let r = house.opening_rect(opening).grown(0.02);
                    plan.doors.push([cm(r.x0), cm(-r.y1), cm(r.width()), cm(r.depth())]);
                }
            }
        }
    }
    all.into_values().collect()
}

/// Checks a way from the start of a view.
///
/// # Errors
/// A sentence that says what to change.
pub(super) fn check(houses: &Houses, view: &View, given: &Value) -> Result<Demonstration, String> {
    let Way { path, .. } = Way::deserialize(given)
        .map_err(|_| "A demonstration has the viewpoints of the way under `path`.".to_owned())?;
    let (house, first) = start_of(view);
    let world = houses.world(house).ok_or("This house cannot be shown any more.")?;
    let heading = super::action::heading_index(first.heading);
    let start = Start { scan: house.to_owned(), viewpoint: first.viewpoint.clone(), heading };
    let walk = Walk { viewpoints: path };
    sound(&world, &start, &walk)?;
    let words = world.in_words(&start, &walk);
    let text = words.join(" ");
    let data = serde_json::to_value(Way { path: walk.viewpoints, words }).unwrap_or_default();
    Ok(Demonstration { data, text })
}

/// Whether an agent could walk the way from the start.
fn sound(world: &NavWorld, start: &Start, walk: &Walk) -> Result<(), String> {
    let moves = walk.viewpoints.len().saturating_sub(1);
    if moves == 0 {
        return Err("Show at least one step, or say that you can\u{2019}t show this.".into());
    }
    if moves > MOVES {
        return Err(format!("The agent can walk {MOVES} steps at most, and this way has {moves}."));
    }
    if walk.viewpoints.first() != Some(&start.viewpoint) {
        return Err("The way has to begin where the agent stands.".into());
    }
    match world.path(start, walk) {
        Some(_) => Ok(()),
        None => {
            Err("One cannot walk that way: each step has to lead to a place that can be reached from the last one."
                .into())
        }
    }
}

/// A demonstrated walk has as many of its steps as the agent can walk.
pub(super) fn given(walk: &Walk) -> Value {
    json!({ "path": walk.viewpoints.iter().take(MOVES + 1).collect::<Vec<_>>() })
}

/// A checked way in plain text.
pub(super) fn text(demonstration: &Value) -> String {
    Way::deserialize(demonstration).map(|way| way.words.join(" ")).unwrap_or_default()
}

/// The walk that a checked way is.
///
/// # Errors
/// Where it is none from this start.
pub(super) fn walk(world: &NavWorld, start: &Start, demonstration: &Value) -> Result<Walk, String> {
    let way = Way::deserialize(demonstration).map_err(|e| format!("the demonstration cannot be read: {e}"))?;
    let walk = Walk { viewpoints: way.path };
    sound(world, start, &walk).map(|()| walk)
}
