//! One house of a NAV world, real or generated: its graph, its sights, and the things that a walk passes.

use super::action::{bearing, elevation, wrapped};
use super::graph::{Graph, distance_between};
use super::house::sight::{Eyes, Seen, Sight, Solids};
use super::house::{House, OpeningKind, catalogue, layout, walk};
use super::objects::Objects;
use super::observation::{Glimpse, Semantic, glimpses};
use serde::Serialize;
use std::collections::BTreeSet;

/// A house that agents walk through.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Its name (R2R: the scan).
    pub name: String,
    /// Its navigation graph.
    pub graph: Graph,
    /// Its contents.
    pub content: Content,
}

/// The contents of a house beside its graph.
#[derive(Clone, Debug)]
pub enum Content {
    /// A real house: objects that people labelled.
    Real(Objects),
    /// A generated house with what is seen from each viewpoint.
    Generated {
        /// Its geometry.
        house: Box<House>,
        /// Sights by viewpoint, nearest first.
        sights: Vec<Vec<Sight>>,
        /// The things in it that hide others.
        solids: Solids,
    },
}

/// A thing near a viewpoint or a move.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Landmark {
    /// The everyday name, with the colour where that is known.
    pub name: String,
    /// Its middle.
    pub position: [f64; 3],
    /// Direction from the viewpoint.
    pub bearing: f64,
    /// Direction from the viewpoint.
    pub elevation: f64,
    /// Distance from the viewpoint.
    pub distance: f64,
}

impl Scene {
    /// A generated house, looked at from all its viewpoints.
    ///
    /// # Errors
    /// When its edges are unsound (a house that was not made by [`House::generate`]).
    pub fn generated(house: House) -> Result<Scene, String> {
        let graph = house.graph()?;
        let solids = Solids::of(&house);
        let eyes = Eyes::with(&house, &solids);
        let sights = (0..graph.len()).map(|stand| eyes.sights(stand)).collect();
        let name = house.name.clone();
        Ok(Scene { name, graph, content: Content::Generated { house: Box::new(house), sights, solids } })
    }

    /// The generated house, if it is one.
    pub fn house(&self) -> Option<&House> {
        match &self.content {
            Content::Generated { house, .. } => Some(house),
            Content::Real(_) => None,
        }
    }

    /// The kind of the room of a viewpoint, where rooms are known.
    pub fn room(&self, viewpoint: usize) -> Option<&str> {
        self.house().map(|house| house.rooms[house.stands[viewpoint].room].kind.as_str())
    }

    /// Semantic vectors of the 36 views at a viewpoint, one after the other.
    pub fn vectors(&self, semantic: &Semantic, viewpoint: usize) -> Vec<f32> {
        match &self.content {
            Content::Real(objects) => {
                semantic.encode(&self.graph, viewpoint, glimpses(&self.graph, objects, viewpoint))
            }
            Content::Generated { house, sights, solids } => {
                let surfaces = Eyes::with(house, solids).surfaces(viewpoint);
                let of_sight = |sight: &Sight| {
                    let name = house.name_of(sight.what);
                    let colour = house.item_of(sight.what).map(|item| item.finish.colour.as_str());
                    let names = [Some(name), colour].into_iter().flatten();
                    let views: Vec<(u8, f64)> = Eyes::views(sight).collect();
                    names
                        .flat_map(|name| views.iter().map(move |&(view, share)| Glimpse { name, view, share }))
                        .collect::<Vec<_>>()
                };
                let seen = sights[viewpoint].iter().flat_map(of_sight);
                let around = surfaces.iter().map(|s| Glimpse { name: &s.name, view: s.view, share: s.share });
                semantic.encode(&self.graph, viewpoint, seen.chain(around))
            }
        }
    }

    /// Things seen from a viewpoint, nearest first.
    pub fn landmarks(&self, viewpoint: usize) -> Vec<Landmark> {
        let here = self.graph.position(viewpoint);
        let landmark = |name: String, position: [f64; 3]| Landmark {
            name,
            bearing: bearing(&here, &position),
            elevation: elevation(&here, &position),
            distance: distance_between(&here, &position),
            position,
        };
        let mut found: Vec<Landmark> = match &self.content {
            Content::Real(objects) => {
                let Some(sightings) = objects.viewpoints.get(self.graph.id(viewpoint)) else { return Vec::new() };
                let seen = sightings.seen.iter().map(|s| s.object).chain(sightings.inferred.iter().copied());
                seen.map(|object| &objects.objects[object])
                    .map(|object| landmark(object.name.clone(), [object.x, object.y, object.z]))
                    .collect()
            }
            Content::Generated { house, sights, .. } => sights[viewpoint]
                .iter()
                .filter_map(|sight| match sight.what {
                    Seen::Item(i) => {
                        let item = &house.items[i];
                        let [x, y] = item.at;
                        let z = house.floor_of(item.room) + item.bottom + item.size[2] / 2.0;
                        let colour = &item.finish.colour;
                        let told = !matches!(item.kind.as_str(), "railing" | "plant");
                        let name = if told { format!("{colour} {}", item.kind) } else { item.kind.clone() };
                        Some(landmark(name, [x, y, z]))
                    }
                    Seen::Opening(i) if !house.openings[i].kind.passable() => {
                        let opening = &house.openings[i];
                        let base = house.walls[opening.wall].storey as f64 * super::house::STOREY_HEIGHT;
                        let z = base + (opening.bottom + opening.top) / 2.0;
                        Some(landmark(opening.kind.name().to_owned(), [opening.at[0], opening.at[1], z]))
                    }
                    Seen::Opening(_) => None,
                })
                .collect(),
        };
        found.sort_by(|a, b| a.distance.total_cmp(&b.distance).then_with(|| a.name.cmp(&b.name)));
        found
    }

    /// Things beside a move within 2 m of its line, in the order they are passed, each name once: name, and whether it is
    /// on the right.
    pub fn passed(&self, from: usize, to: usize) -> Vec<(String, bool)> {
        let (a, b) = (self.graph.position(from), self.graph.position(to));
        let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
        let length = dx.hypot(dy);
        if length < 0.01 {
            return Vec::new();
        }
        let mut passed: Vec<(f64, String, bool)> = self
            .landmarks(from)
            .into_iter()
            .filter_map(|thing| {
                let (x, y) = (thing.position[0] - a[0], thing.position[1] - a[1]);
                let (along, aside) = ((x * dx + y * dy) / length, (x * dy - y * dx) / length);
                let beside = along > 0.0 && along < length + 0.3 && aside.abs() > 0.2 && aside.abs() < 2.0;
                // Neither under the ceiling nor on another storey.
                let at_hand = (-2.0..0.7).contains(&(thing.position[2] - a[2]));
                (beside && at_hand).then_some((along, thing.name, aside > 0.0))
            })
            .collect();
        passed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut names = BTreeSet::new();
        passed.into_iter().filter(|(_, name, _)| names.insert(name.clone())).map(|(_, n, right)| (n, right)).collect()
    }

    /// Whether one walks through an opening of this kind between two viewpoints of a generated house.
    pub fn opening_between(&self, from: usize, to: usize) -> Option<OpeningKind> {
        let house = self.house()?;
        let (a, b) = (self.graph.position(from), self.graph.position(to));
        walk::opening_crossed(house, house.stands[from].room, [a[0], a[1]], [b[0], b[1]]).map(|o| o.kind)
    }
}

/// All names that views of generated houses can show: things, colours, openings, kinds of rooms, floors and walls.
pub fn generated_names() -> Vec<String> {
    let things = catalogue::pieces().iter().map(|piece| piece.kind.as_str()).chain(["railing"]);
    let colours: BTreeSet<&str> =
        catalogue::pieces().iter().flat_map(|piece| piece.colours.iter().map(String::as_str)).collect();
    let openings =
        [OpeningKind::Door, OpeningKind::Archway, OpeningKind::FrontDoor, OpeningKind::GlassDoor, OpeningKind::Window];
    let floors = ["wood", "tile", "carpet"].map(|material| format!("{material} floor"));
    let walls = ["white", "beige", "gray", "yellow", "blue", "green", "red"].map(|colour| format!("{colour} wall"));
    things
        .map(str::to_owned)
        .chain(colours.into_iter().map(str::to_owned))
        .chain(openings.map(|o| o.name().to_owned()))
        .chain(layout::KINDS.map(str::to_owned))
        .chain(floors)
        .chain(walls)
        .collect()
}

/// A change of direction in words.
pub fn turn_in_words(by: f64) -> &'static str {
    let degrees = wrapped(by).to_degrees();
    match (degrees.abs(), degrees > 0.0) {
        (size, _) if size < 20.0 => "straight on",
        (size, true) if size < 50.0 => "slightly right",
        (size, false) if size < 50.0 => "slightly left",
        (size, _) if size > 140.0 => "around",
        (_, true) => "right",
        (_, false) => "left",
    }
}
