//! Walls between rooms and around them, and the doors, archways and windows in them.

use super::layout::{Layout, Place, WELL, draw};
use super::{Finish, Opening, OpeningKind, ROOM_HEIGHT, Rect, Wall, centimetres};
use crate::rng::Stream;
use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};

/// Walls on all edges of the rooms from `first` on: between two rooms one, towards the outside one.
pub(super) fn raise_walls(layout: &mut Layout, storey: usize, first: usize) {
    let rooms: Vec<(usize, Rect)> = layout.rooms.iter().map(|room| room.rect).enumerate().skip(first).collect();
    for (i, rect) in &rooms {
        // Lines of the four sides: whether they run along x, where, from, to, and whether the room is on the far side.
        for (along_x, at, from, to, beyond) in [
            (true, rect.y0, rect.x0, rect.x1, true),
            (true, rect.y1, rect.x0, rect.x1, false),
            (false, rect.x0, rect.y0, rect.y1, true),
            (false, rect.x1, rect.y0, rect.y1, false),
        ] {
            let mut open = vec![(from, to)];
            for (j, other) in &rooms {
                let (line, low, high) = match (along_x, beyond) {
                    (true, true) => (other.y1, other.x0, other.x1),
                    (true, false) => (other.y0, other.x0, other.x1),
                    (false, true) => (other.x1, other.y0, other.y1),
                    (false, false) => (other.x0, other.y0, other.y1),
                };
                let (a, b) = (low.max(from), high.min(to));
                if line != at || b - a < 0.01 {
                    continue;
                }
                open = open
                    .iter()
                    .flat_map(|&(p, q)| [(p, q.min(a)), (p.max(b), q)])
                    .filter(|(p, q)| q - p > 0.01)
                    .collect();
                if !beyond {
                    layout.walls.push(wall(along_x, at, a, b, storey, [Some(*i), Some(*j)]));
                }
            }
            for (a, b) in open {
                let rooms = if beyond { [None, Some(*i)] } else { [Some(*i), None] };
                layout.walls.push(wall(along_x, at, a, b, storey, rooms));
            }
        }
    }
}

fn wall(along_x: bool, at: f64, a: f64, b: f64, storey: usize, rooms: [Option<usize>; 2]) -> Wall {
    let (from, to) = if along_x { ([a, at], [b, at]) } else { ([at, a], [at, b]) };
    let thickness = if rooms.contains(&None) { 0.2 } else { 0.12 };
    Wall { storey, from, to, thickness, rooms }
}

impl Wall {
    /// Whether it runs from west to east.
    pub fn along_x(&self) -> bool {
        self.from[1] == self.to[1]
    }

    /// Its length.
    pub fn length(&self) -> f64 {
        self.to[0] - self.from[0] + self.to[1] - self.from[1]
    }

    /// The rectangle of a stretch of it, from `a` to `b` along its line.
    pub fn stretch(&self, a: f64, b: f64) -> Rect {
        let t = self.thickness / 2.0;
        if self.along_x() {
            Rect { x0: a, x1: b, y0: self.from[1] - t, y1: self.from[1] + t }
        } else {
            Rect { x0: self.from[0] - t, x1: self.from[0] + t, y0: a, y1: b }
        }
    }

    /// Where it begins and ends along its line.
    pub fn span(&self) -> (f64, f64) {
        if self.along_x() { (self.from[0], self.to[0]) } else { (self.from[1], self.to[1]) }
    }
}

/// Rooms that flow into each other.
const OPEN: [&str; 6] = ["living room", "dining room", "kitchen", "family room", "sunroom", "entry"];

/// Ways into all rooms of a storey, the first of which is `first`. `None` when one gets none.
pub(super) fn open_doors(
    layout: &mut Layout,
    first: usize,
    places: &[Place],
    storey: usize,
    chance: &mut Stream,
) -> Option<()> {
    let walls: Vec<usize> = (0..layout.walls.len()).filter(|w| layout.walls[*w].storey == storey).collect();
    let between = |layout: &Layout, a: usize, b: usize| {
        walls.iter().copied().find(|w| {
            let rooms = layout.walls[*w].rooms;
            (rooms == [Some(a), Some(b)] || rooms == [Some(b), Some(a)]) && layout.walls[*w].length() >= 1.3
        })
    };
    let hall = first + places.iter().position(|place| *place == Place::Hall)?;
    let mut joined = vec![false; places.len()];
    joined[hall - first] = true;
    let kind = |layout: &Layout, room: usize| layout.rooms[room].kind.clone();
    let colours = ["white", "brown", "black", "gray"];
    let leaf = Finish::new(colours.choose(chance).copied().unwrap_or("white"), "wood");
    for (i, place) in places.iter().enumerate() {
        let room = first + i;
        let Some(wall) =
            (*place != Place::Hall && *place != Place::Behind).then(|| between(layout, room, hall)).flatten()
        else {
            continue;
        };
        let open = OPEN.contains(&kind(layout, room).as_str()) && chance.random_bool(0.65);
        if *place == Place::Well {
            let width = WELL - 0.2;
            layout.openings.push(opening(&layout.walls[wall], wall, OpeningKind::Archway, 0.5, width, &leaf));
        } else {
            push_door(layout, wall, open, &leaf, chance);
        }
        joined[i] = true;
    }
    // Small rooms behind, and what the hallway does not reach: from a neighbour that one can get to.
    let wanted = |own: &str, other: &str| match own {
        "pantry" => other == "kitchen",
        "bathroom" | "closet" => other == "bedroom",
        own if OPEN.contains(&own) => OPEN.contains(&other),
        _ => other != "bathroom" && other != "closet",
    };
    for strict in [true, false] {
        for i in 0..places.len() {
            let mut others: Vec<usize> = (0..places.len()).filter(|j| joined[*j] && *j != i).collect();
            others.shuffle(chance);
            let (room, own) = (first + i, kind(layout, first + i));
            let fits = |layout: &Layout, j: usize| {
                places[j] != Place::Well && (!strict || wanted(&own, &layout.rooms[first + j].kind))
            };
            let way = others.iter().filter(|j| fits(layout, **j)).find_map(|j| between(layout, room, first + j));
            if !joined[i]
                && let Some(wall) = way
            {
                let company = |room: Option<usize>| room.is_some_and(|r| OPEN.contains(&layout.rooms[r].kind.as_str()));
                let open = layout.walls[wall].rooms.into_iter().all(company);
                push_door(layout, wall, open, &leaf, chance);
                joined[i] = true;
            }
        }
    }
    // Rooms for company flow into each other; some bedrooms have a bathroom of their own.
    for i in 0..places.len() {
        for j in i + 1..places.len() {
            let (a, b) = (first + i, first + j);
            let both = [kind(layout, a), kind(layout, b)];
            let company = both.iter().all(|k| OPEN.contains(&k.as_str()));
            let Some(wall) = company.then(|| between(layout, a, b)).flatten() else { continue };
            if !layout.openings.iter().any(|o| o.wall == wall) && chance.random_bool(0.8) {
                push_door(layout, wall, true, &leaf, chance);
            }
        }
    }
    joined.iter().all(|joined| *joined).then_some(())
}

/// A door, or where the wall is long enough an archway, somewhere in a wall.
fn push_door(layout: &mut Layout, wall: usize, archway: bool, leaf: &Finish, chance: &mut Stream) {
    let length = layout.walls[wall].length();
    let (kind, width) = if archway && length >= 1.9 {
        (OpeningKind::Archway, draw(chance, 1.2, (length - 0.6).min(2.4)))
    } else {
        (OpeningKind::Door, 0.9)
    };
    let margin = (width / 2.0 + 0.2) / length;
    // Doors are mostly near a corner.
    let share = match chance.random_range(0..5) {
        0 => 0.5,
        1 | 2 => margin,
        _ => 1.0 - margin,
    };
    layout.openings.push(opening(&layout.walls[wall], wall, kind, share, width, leaf));
}

fn opening(wall: &Wall, index: usize, kind: OpeningKind, share: f64, width: f64, finish: &Finish) -> Opening {
    let at = [0, 1].map(|k| centimetres(wall.from[k] + (wall.to[k] - wall.from[k]) * share));
    let (bottom, top) = match kind {
        OpeningKind::Window => (0.9, 2.1),
        OpeningKind::Archway => (0.0, 2.3),
        _ => (0.0, 2.05),
    };
    Opening {
        kind,
        wall: index,
        at,
        width: centimetres(width),
        bottom,
        top: f64::min(top, ROOM_HEIGHT),
        finish: finish.clone(),
    }
}

/// Windows, glass doors and the front door.
pub(super) fn open_windows(layout: &mut Layout, first: usize, storey: usize, chance: &mut Stream) {
    let frame = Finish::new("white", "glass");
    let mut front = storey > 0;
    let outer: Vec<(usize, usize)> = (0..layout.walls.len())
        .filter(|w| layout.walls[*w].storey == storey && layout.walls[*w].rooms.contains(&None))
        .filter_map(|w| layout.walls[w].rooms.iter().flatten().next().map(|room| (w, *room)))
        .collect();
    let mut entrances: Vec<(usize, usize)> = outer.clone();
    entrances.sort_by_key(|(w, room)| {
        let rank = ["entry", "hallway", "living room"].iter().position(|k| layout.rooms[*room].kind == *k).unwrap_or(9);
        (rank, *w)
    });
    for (w, room) in entrances.iter().chain(&outer).copied() {
        let (wall, kind) = (layout.walls[w], layout.rooms[room].kind.as_str());
        if layout.openings.iter().any(|o| o.wall == w) || wall.length() < 1.3 {
            continue;
        }
        if !front {
            front = true;
            let colours = ["red", "black", "brown", "white", "blue", "green"];
            let leaf = Finish::new(colours.choose(chance).copied().unwrap_or("brown"), "wood");
            layout.openings.push(opening(&wall, w, OpeningKind::FrontDoor, 0.5, 1.0, &leaf));
            continue;
        }
        if matches!(kind, "closet" | "pantry" | "storage room" | "stairs") || first > room {
            continue;
        }
        let glass = storey == 0 && OPEN.contains(&kind) && wall.length() > 3.0 && chance.random_bool(0.3);
        if glass {
            layout.openings.push(opening(&wall, w, OpeningKind::GlassDoor, 0.5, 1.8, &frame));
            continue;
        }
        let width = if kind == "bathroom" { 0.7 } else { draw(chance, 1.0, 1.8) }.min(wall.length() - 0.5);
        let count = if wall.length() > 4.5 { 2 } else { 1 };
        for k in 0..count {
            let share = (k as f64 + 0.5) / f64::from(count);
            layout.openings.push(opening(&wall, w, OpeningKind::Window, share, width, &frame));
        }
    }
}
