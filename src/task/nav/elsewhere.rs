//! Walks that agents in other programs have made: checked against the graph of their house, and drawn as walks of our own are.

use super::action::{HEADINGS, Pose, actions, after};
use super::family::NAV;
use super::scene::Scene;
use super::world::NavWorld;
use super::{Start, Walk};
use crate::protocol::World;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Viewpoints of a walk at most.
const LONGEST: usize = 50;

/// Houses at most that are made for the walks of one file or request: each takes some hundredths of a second and some memory.
const MOST_HOUSES: usize = 100;

/// Characters of a name that are shown in a sentence about it.
const SHOWN: usize = 60;

/// Neighbours that a sentence names.
const NAMED: usize = 12;

/// A walk as another program says it: with `path`, or with `viewpoint` and `actions`.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WalkElsewhere {
    /// Name of the house: `house-7`, or a house of a corpus that a run walks through now.
    house: String,
    /// The way that the agent faces at the start: 0 to 11, in steps of 30° to the right of north.
    heading: u64,
    /// The viewpoint that it starts at: its whole name, or what follows the name of the house. It can be left out beside `path`.
    #[serde(default)]
    viewpoint: Option<String>,
    /// The viewpoints that it was at, the start first.
    #[serde(default)]
    path: Option<Vec<String>>,
    /// Its actions: 1 is the move most straight ahead, 2 the next, and so on; 0 stops, and can be left out.
    #[serde(default)]
    actions: Option<Vec<u64>>,
}

/// A walk that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedWalk {
    /// The view that people are shown.
    pub view: Value,
    /// One plain line for researchers.
    pub summary: String,
}

/// The houses of the walks of one file or request.
#[derive(Debug, Default)]
pub struct HousesElsewhere(HashMap<String, Option<Arc<NavWorld>>>);

impl HousesElsewhere {
    fn world(&mut self, name: &str) -> Result<Arc<NavWorld>, String> {
        if !self.0.contains_key(name) {
            if self.0.len() == MOST_HOUSES {
                return Err(format!("Walks come in from {MOST_HOUSES} houses at once; send the others by themselves."));
            }
            self.0.insert(name.to_owned(), NAV.houses().world(name));
        }
        self.0.get(name).cloned().flatten().ok_or_else(|| {
            format!(
                "There is no house {}. Generated houses are called house-1, house-2 and so on; those of a corpus are there while a run walks through them.",
                shown(name)
            )
        })
    }
}

fn shown(name: &str) -> String {
    name.chars().take(SHOWN).collect()
}

/// The viewpoint of a name in a house.
fn find(scene: &Scene, name: &str) -> Result<usize, String> {
    let whole = || scene.graph.find(&format!("{}-{name}", scene.name));
    scene.graph.find(name).or_else(whole).ok_or_else(|| {
        let (first, last) = (scene.graph.id(0), scene.graph.id(scene.graph.len() - 1));
        format!("{} has no viewpoint {}; its viewpoints are called {first} to {last}.", scene.name, shown(name))
    })
}

/// Viewpoints along edges, by their names.
fn along(scene: &Scene, names: &[String]) -> Result<Vec<usize>, String> {
    let path = names.iter().map(|name| find(scene, name)).collect::<Result<Vec<_>, _>>()?;
    for pair in path.windows(2) {
        if !scene.graph.adjacent(pair[0], pair[1]) {
            let near = scene.graph.neighbours(pair[0]).iter().map(|next| scene.graph.id(*next as usize));
            let near: Vec<&str> = near.take(NAMED).collect();
            let [from, to] = [pair[0], pair[1]].map(|i| scene.graph.id(i));
            return Err(format!("One cannot walk from {from} to {to}. From there one gets to {}.", near.join(", ")));
        }
    }
    Ok(path)
}

/// Viewpoints that actions lead to, from a pose.
fn acted(scene: &Scene, start: Pose, chosen: &[u64]) -> Result<Vec<usize>, String> {
    let (mut pose, mut path) = (start, vec![start.viewpoint]);
    for (number, action) in (1..).zip(chosen) {
        if *action == 0 {
            if number != chosen.len() {
                return Err(format!("Action {number} is 0, which stops, and others come after it."));
            }
            break;
        }
        let moves = actions(&scene.graph, pose);
        let wanted = usize::try_from(*action - 1).ok().and_then(|at| moves.get(at));
        let Some(wanted) = wanted else {
            let (here, most) = (scene.graph.id(pose.viewpoint), moves.len());
            return Err(format!("Action {number} is {action}; at {here} there are 0, which stops, and 1 to {most}."));
        };
        pose = after(wanted);
        path.push(pose.viewpoint);
    }
    Ok(path)
}

impl WalkElsewhere {
    /// Checks the walk against its house.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn checked(self, houses: &mut HousesElsewhere) -> Result<CheckedWalk, String> {
        let heading = u8::try_from(self.heading).ok().filter(|heading| usize::from(*heading) < HEADINGS);
        let heading = heading.ok_or_else(|| {
            format!(
                "`heading` is {}; it is a number from 0 to 11, in steps of 30° to the right of north.",
                self.heading
            )
        })?;
        let steps = self.path.as_ref().map_or(0, Vec::len).max(self.actions.as_ref().map_or(0, Vec::len));
        if steps > LONGEST {
            return Err(format!("A walk has at most {LONGEST} viewpoints, and this one has {steps}."));
        }
        let world = houses.world(&self.house)?;
        let Some(scene) = world.scene(&self.house) else {
            return Err(format!("There is no house {}.", shown(&self.house)));
        };
        let begins = self.viewpoint.as_deref().map(|name| find(scene, name)).transpose()?;
        let path = match (self.path.as_deref(), self.actions.as_deref()) {
            (Some([]), None) => {
                return Err("`path` has no viewpoint; the one at which the walk starts is the first.".into());
            }
            (Some(names), None) => along(scene, names)?,
            (None, Some(chosen)) => {
                let viewpoint = begins.ok_or("A walk with `actions` says in `viewpoint` where it starts.")?;
                acted(scene, Pose { viewpoint, heading }, chosen)?
            }
            _ => return Err("A walk has either a `path` or `actions`.".to_owned()),
        };
        if begins.is_some_and(|begins| begins != path[0]) {
            return Err("`viewpoint` is another than the first one of `path`.".to_owned());
        }
        let viewpoints: Vec<String> = path.iter().map(|viewpoint| scene.graph.id(*viewpoint).to_owned()).collect();
        let start = Start { scan: scene.name.clone(), viewpoint: viewpoints[0].clone(), heading };
        let walk = Walk { viewpoints };
        Ok(CheckedWalk { view: world.view(&start, &walk), summary: world.summary(&walk) })
    }
}

/// The part of a view that another program gave: by this a walk is known again, also when its house is told of in other words.
pub fn said(view: &Value) -> Option<Value> {
    let path = view["path"].as_array()?;
    let viewpoints: Vec<&Value> = path.iter().map(|stop| &stop["viewpoint"]).collect();
    Some(serde_json::json!([view["house"], path.first()?["heading"], viewpoints]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checked(walk: Value) -> Result<CheckedWalk, String> {
        serde_json::from_value::<WalkElsewhere>(walk).unwrap().checked(&mut HousesElsewhere::default())
    }

    #[test]
    fn a_walk_by_its_viewpoints_and_one_by_its_actions_are_the_same_walk() {
        let world = NAV.houses().world("house-3").unwrap();
        let scene = &world.scenes()[0];
        let (mut pose, mut path) = (Pose { viewpoint: 5, heading: 2 }, vec![scene.graph.id(5).to_owned()]);
        for _ in 0..3 {
            pose = after(&actions(&scene.graph, pose)[0]);
            path.push(scene.graph.id(pose.viewpoint).to_owned());
        }
        let by_path = checked(json!({"house": "house-3", "heading": 2, "path": path})).unwrap();
        let by_actions = json!({"house": "house-3", "heading": 2, "viewpoint": "5", "actions": [1, 1, 1, 0]});
        assert_eq!(by_path, checked(by_actions.clone()).unwrap());
        let short: Vec<&str> = path.iter().map(|name| name.strip_prefix("house-3-").unwrap()).collect();
        assert_eq!(
            by_path,
            checked(json!({"house": "house-3", "heading": 2, "viewpoint": "5", "path": short})).unwrap()
        );
        let stops: Vec<&str> =
            by_path.view["path"].as_array().unwrap().iter().map(|s| s["viewpoint"].as_str().unwrap()).collect();
        assert_eq!(stops, path);
        assert!(by_path.summary.contains("house-3, 3 moves"), "{}", by_path.summary);
        assert_eq!(said(&by_path.view).unwrap()[2], json!(path));
        assert_eq!(said(&json!({"text": "x"})), None);
    }

    #[test]
    fn what_is_no_walk_is_told_in_a_sentence() {
        let world = NAV.houses().world("house-3").unwrap();
        let graph = &world.scenes()[0].graph;
        let far = (1..graph.len()).find(|i| !graph.adjacent(0, *i)).unwrap();
        let long: Vec<u64> = vec![1; LONGEST + 1];
        for (walk, part) in [
            (json!({"house": "castle", "heading": 0, "path": ["a"]}), "no house castle"),
            (json!({"house": "house-3", "heading": 12, "path": ["0"]}), "0 to 11"),
            (json!({"house": "house-3", "heading": 0, "path": ["0", "9999"]}), "no viewpoint 9999"),
            (json!({"house": "house-3", "heading": 0, "path": ["0", graph.id(far)]}), "cannot walk from house-3-0"),
            (json!({"house": "house-3", "heading": 0, "path": []}), "no viewpoint"),
            (json!({"house": "house-3", "heading": 0}), "either a `path` or `actions`"),
            (json!({"house": "house-3", "heading": 0, "path": ["0"], "actions": [0]}), "either a `path` or `actions`"),
            (json!({"house": "house-3", "heading": 0, "actions": [1]}), "where it starts"),
            (json!({"house": "house-3", "heading": 0, "viewpoint": "1", "path": ["0"]}), "another than the first"),
            (json!({"house": "house-3", "heading": 0, "viewpoint": "0", "actions": [0, 1]}), "others come after"),
            (json!({"house": "house-3", "heading": 0, "viewpoint": "0", "actions": [99]}), "Action 1 is 99"),
            (json!({"house": "house-3", "heading": 0, "viewpoint": "0", "actions": long}), "at most 50"),
        ] {
            let told = checked(walk.clone()).unwrap_err();
            assert!(told.contains(part) && told.ends_with('.'), "{walk}: {told}");
        }
        let mut houses = HousesElsewhere(HashMap::new());
        for n in 0..MOST_HOUSES {
            houses.0.insert(n.to_string(), None);
        }
        assert!(houses.world("house-1").unwrap_err().contains("100 houses"));
    }
}
