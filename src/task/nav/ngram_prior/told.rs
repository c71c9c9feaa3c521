//! The facts that the page tells of a house in words ([`NavWorld::in_words`]), for every viewpoint and move of it.

use super::facts::{HouseFacts, MoveTold, PlaceTold};
use crate::task::nav::scene::Scene;
use crate::task::nav::walk_words::near;
use crate::task::nav::world::NavWorld;
use rustc_hash::FxHashSet;
use std::sync::OnceLock;

/// Words for ways that no thing has as its name.
const WAYS: [&str; 3] = ["up", "down", "stairs"];

/// The facts of a world's houses, each worked out when it is first asked for.
#[derive(Debug)]
pub struct WorldFacts {
    names: FxHashSet<String>,
    houses: Vec<OnceLock<HouseFacts>>,
}

impl WorldFacts {
    /// The facts of a world, none of which are worked out yet.
    pub fn new(world: &NavWorld) -> Self {
        let of_name = |name: &String| name.split(' ').map(str::to_lowercase).collect::<Vec<_>>();
        let names = world.names().iter().flat_map(of_name).chain(WAYS.map(str::to_owned)).collect();
        Self { names, houses: world.scenes().iter().map(|_| OnceLock::new()).collect() }
    }

    /// The words of all names.
    pub fn names(&self) -> &FxHashSet<String> {
        &self.names
    }

    /// The facts of a house.
    pub fn house(&self, world: &NavWorld, house: usize) -> &HouseFacts {
        self.houses[house].get_or_init(|| HouseFacts::new(&told(&world.scenes()[house])))
    }
}

fn told(scene: &Scene) -> Vec<PlaceTold> {
    let place = |viewpoint: usize| PlaceTold {
        position: scene.graph.position(viewpoint),
        room: scene.room(viewpoint).map(str::to_owned),
        near: near(scene, viewpoint),
        moves: scene.graph.neighbours(viewpoint).iter().map(|to| move_told(scene, viewpoint, *to as usize)).collect(),
    };
    (0..scene.graph.len()).map(place).collect()
}

fn move_told(scene: &Scene, from: usize, to: usize) -> MoveTold {
    let rooms = match (scene.room(from), scene.room(to)) {
        (Some(before), Some(room)) if before != room && room != "stairs" => Some((before, room)),
        _ => None,
    };
    MoveTold {
        to,
        opening: scene.opening_between(from, to).map(|opening| opening.name().to_owned()),
        leaves: rooms.map(|(before, _)| before).filter(|before| *before != "stairs").map(str::to_owned),
        enters: rooms.map(|(_, room)| room.to_owned()),
        passed: scene.passed(from, to),
    }
}
