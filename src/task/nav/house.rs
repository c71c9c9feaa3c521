//! Generated houses: furnished, of several rooms, on one to three storeys; the built-in worlds of NAV.
//!
//! A house is a pure function of its seed. [`layout`] draws rooms and stairs, [`walls`] walls, doors and windows; [`furnish`] puts
//! things from the [`catalogue`] into the rooms; [`walk`] finds where one can stand and walk; [`rooms`] says in which
//! room a position is, and [`sight`] what is seen from where; [`plan`] draws the floor plans.
//!
//! Lengths are metres, x to the east, y to the north, z up; storey 0 begins at z = 0. Boxes are axis-aligned.

pub mod catalogue;
pub mod furnish;
pub mod layout;
pub mod plan;
pub mod rooms;
pub mod sight;
pub mod walk;
pub mod walls;

use super::graph::{Graph, Viewpoint};
use crate::rng::stream;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// From one storey's floor to the next.
pub const STOREY_HEIGHT: f64 = 2.9;

/// From floor to ceiling.
pub const ROOM_HEIGHT: f64 = 2.6;

/// The eye above the floor.
pub const EYE: f64 = 1.5;

/// Houses have no fewer viewpoints.
pub const FEWEST: usize = 40;

/// Houses have no more viewpoints.
pub const MOST: usize = 250;

/// A rectangle on the floor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rect {
    /// West.
    pub x0: f64,
    /// South.
    pub y0: f64,
    /// East.
    pub x1: f64,
    /// North.
    pub y1: f64,
}

impl Rect {
    /// A rectangle around a centre.
    pub fn around(x: f64, y: f64, width: f64, depth: f64) -> Rect {
        Rect { x0: x - width / 2.0, y0: y - depth / 2.0, x1: x + width / 2.0, y1: y + depth / 2.0 }
    }

    /// East to west.
    pub fn width(&self) -> f64 {
        self.x1 - self.x0
    }

    /// North to south.
    pub fn depth(&self) -> f64 {
        self.y1 - self.y0
    }

    /// Square metres.
    pub fn area(&self) -> f64 {
        self.width() * self.depth()
    }

    /// The middle.
    pub fn centre(&self) -> [f64; 2] {
        [(self.x0 + self.x1) / 2.0, (self.y0 + self.y1) / 2.0]
    }

    /// The rectangle with a margin around it (a negative one: inside it).
    pub fn grown(&self, by: f64) -> Rect {
        Rect { x0: self.x0 - by, y0: self.y0 - by, x1: self.x1 + by, y1: self.y1 + by }
    }

    /// Whether a point lies strictly inside.
    pub fn holds(&self, [x, y]: [f64; 2]) -> bool {
        self.x0 < x && x < self.x1 && self.y0 < y && y < self.y1
    }

    /// Whether a rectangle lies inside, edges included.
    pub fn covers(&self, other: &Rect) -> bool {
        self.x0 <= other.x0 && self.y0 <= other.y0 && self.x1 >= other.x1 && self.y1 >= other.y1
    }

    /// Whether two rectangles have more than edges in common.
    pub fn meets(&self, other: &Rect) -> bool {
        self.x0 < other.x1 && other.x0 < self.x1 && self.y0 < other.y1 && other.y0 < self.y1
    }

    /// Whether a straight line from one point to another runs through the inside.
    pub fn crossed(&self, from: [f64; 2], to: [f64; 2]) -> bool {
        let (mut enter, mut leave) = (0.0f64, 1.0f64);
        for (low, high, a, b) in [(self.x0, self.x1, from[0], to[0]), (self.y0, self.y1, from[1], to[1])] {
            let d = b - a;
            if d == 0.0 {
                if a <= low || a >= high {
                    return false;
                }
            } else {
                let (p, q) = ((low - a) / d, (high - a) / d);
                enter = enter.max(p.min(q));
                leave = leave.min(p.max(q));
            }
        }
        enter < leave
    }
}

/// Colour and material of a thing or a surface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// A colour by its everyday name.
    pub colour: String,
    /// A material by its everyday name.
    pub material: String,
}

impl Finish {
    /// A finish.
    pub fn new(colour: &str, material: &str) -> Finish {
        Finish { colour: colour.to_owned(), material: material.to_owned() }
    }
}

/// A room. Rooms of a storey do not overlap; walls stand on their edges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Room {
    /// The everyday name: `kitchen`, `hallway`, … ([`layout::KINDS`]).
    pub kind: String,
    /// Storey, from 0.
    pub storey: usize,
    /// Where it is.
    pub rect: Rect,
    /// Its floor.
    pub floor: Finish,
    /// Its walls.
    pub walls: Finish,
}

/// A straight wall, as thick as [`Wall::thickness`] around its line and as high as the room.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wall {
    /// Storey.
    pub storey: usize,
    /// West or south end of its line.
    pub from: [f64; 2],
    /// East or north end.
    pub to: [f64; 2],
    /// Thickness.
    pub thickness: f64,
    /// The room on its south or west side, and the one on the other; `None` is outside.
    pub rooms: [Option<usize>; 2],
}

/// The kind of an opening in a wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpeningKind {
    /// A door between two rooms; it stands open.
    Door,
    /// A wide opening without a door.
    Archway,
    /// The closed door to the street.
    FrontDoor,
    /// A closed sliding door of glass to the outside.
    GlassDoor,
    /// A window to the outside.
    Window,
}

impl OpeningKind {
    /// Whether one can walk through.
    pub fn passable(self) -> bool {
        matches!(self, OpeningKind::Door | OpeningKind::Archway)
    }

    /// Whether one can see through.
    pub fn transparent(self) -> bool {
        self != OpeningKind::FrontDoor
    }

    /// The everyday name.
    pub fn name(self) -> &'static str {
        match self {
            OpeningKind::Door => "door",
            OpeningKind::Archway => "archway",
            OpeningKind::FrontDoor => "front door",
            OpeningKind::GlassDoor => "glass door",
            OpeningKind::Window => "window",
        }
    }
}

/// An opening in a wall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// Its kind.
    pub kind: OpeningKind,
    /// The wall it is in.
    pub wall: usize,
    /// Its middle, on the wall's line.
    pub at: [f64; 2],
    /// Width along the wall.
    pub width: f64,
    /// Lower edge above the floor.
    pub bottom: f64,
    /// Upper edge above the floor.
    pub top: f64,
    /// Its frame or leaf.
    pub finish: Finish,
}

/// A tread or landing of stairs: where it is, and the height of its upper side above the lower storey's floor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tread {
    /// Where it is.
    pub rect: Rect,
    /// Upper side.
    pub top: f64,
}

/// Stairs from a storey to the next: up along one side of the stairwell to a landing, and back up along the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stairs {
    /// The lower storey.
    pub storey: usize,
    /// The stairwell.
    pub rect: Rect,
    /// From the lowest tread to the highest; the landing is the widest.
    pub treads: Vec<Tread>,
    /// Where people stand on them: on the first flight, the landing, the second flight. x, y, z of the tread.
    pub stands: [[f64; 3]; 3],
    /// Colour and material.
    pub finish: Finish,
}

/// A thing: furniture, or something on it, on the wall, on the floor or under the ceiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The everyday name ([`catalogue::pieces`]).
    pub kind: String,
    /// Its room.
    pub room: usize,
    /// Its middle.
    pub at: [f64; 2],
    /// Its lower side above the room's floor.
    pub bottom: f64,
    /// Width (side to side), depth (back to front) and height, before it is turned.
    pub size: [f64; 3],
    /// Quarter turns to the right: its front looks north (0), east (1), south (2) or west (3).
    pub turn: u8,
    /// Colour and material.
    pub finish: Finish,
}

impl Item {
    /// Where it stands or hangs, seen from above.
    pub fn rect(&self) -> Rect {
        let [w, d, _] = self.size;
        let (w, d) = if self.turn.is_multiple_of(2) { (w, d) } else { (d, w) };
        Rect::around(self.at[0], self.at[1], w, d)
    }

    /// Whether it is in the way of somebody who walks.
    pub fn blocks(&self) -> bool {
        self.bottom < 0.3 && self.size[2] > 0.05
    }
}

/// A place where one can stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stand {
    /// Position of the eye.
    pub position: [f64; 3],
    /// The room (a stairwell on stairs).
    pub room: usize,
}

/// A generated house.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct House {
    /// Its name; its viewpoints are called `name-0` and so on.
    pub name: String,
    /// The seed that it was drawn from.
    pub seed: u64,
    /// Number of storeys.
    pub storeys: usize,
    /// Rooms.
    pub rooms: Vec<Room>,
    /// Walls.
    pub walls: Vec<Wall>,
    /// Doors, archways and windows.
    pub openings: Vec<Opening>,
    /// Stairs, from the lowest up.
    pub stairs: Vec<Stairs>,
    /// Things.
    pub items: Vec<Item>,
    /// Viewpoints.
    pub stands: Vec<Stand>,
    /// Pairs of viewpoints between which one can walk straight, smaller first.
    pub edges: Vec<(usize, usize)>,
}

impl House {
    /// The house of a seed.
    pub fn generate(seed: u64) -> House {
        // Nearly every attempt succeeds; one that gave too few or too many viewpoints, or a room without a way in, is
        // drawn anew.
        let mut attempt = 0;
        loop {
            if let Some(house) = House::attempt(seed, attempt) {
                return house;
            }
            attempt += 1;
        }
    }

    fn attempt(seed: u64, attempt: u64) -> Option<House> {
        let mut chance = stream(seed, "nav house", attempt);
        // The square of a uniform number favours smaller houses; the mean is about 117 viewpoints, as of the real ones.
        let size = 45.0 + 185.0 * chance.random_range(0.0f64..1.0).powf(1.5);
        let layout::Layout { storeys, rooms, walls, openings, stairs } = layout::lay_out(size, &mut chance)?;
        // A house that people could live in.
        let has = |kind: &&str| rooms.iter().any(|room| room.kind == **kind);
        if !["kitchen", "bathroom", "bedroom"].iter().all(has) {
            return None;
        }
        let name = format!("house-{seed}");
        let (items, stands, edges) = (Vec::new(), Vec::new(), Vec::new());
        let mut house = House { name, seed, storeys, rooms, walls, openings, stairs, items, stands, edges };
        furnish::furnish(&mut house, &mut chance);
        let (stands, edges) = walk::find_edges(&house, &mut chance)?;
        (house.stands, house.edges) = (stands, edges);
        (FEWEST..=MOST).contains(&house.stands.len()).then_some(house)
    }

    /// Its navigation graph.
    ///
    /// # Errors
    /// When the house was not made by [`House::generate`] and its edges are unsound.
    pub fn graph(&self) -> Result<Graph, String> {
        let viewpoint =
            |(i, stand): (usize, &Stand)| Viewpoint { id: format!("{}-{i}", self.name), position: stand.position };
        Graph::new(self.stands.iter().enumerate().map(viewpoint).collect(), &self.edges)
    }

    /// Height of the floor of a room's storey.
    pub fn floor_of(&self, room: usize) -> f64 {
        self.rooms[room].storey as f64 * STOREY_HEIGHT
    }

    /// Where an opening is, seen from above: a stretch of its wall.
    pub fn opening_rect(&self, opening: &Opening) -> Rect {
        let wall = &self.walls[opening.wall];
        let middle = if wall.along_x() { opening.at[0] } else { opening.at[1] };
        wall.stretch(middle - opening.width / 2.0, middle + opening.width / 2.0)
    }

    /// The rooms on the two sides of an opening.
    pub fn sides(&self, opening: &Opening) -> [Option<usize>; 2] {
        self.walls[opening.wall].rooms
    }
}

/// A length in whole centimetres: what is stored stays short.
pub(super) fn centimetres(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}
