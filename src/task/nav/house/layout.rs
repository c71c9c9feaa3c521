//! Rooms and stairs.
//!
//! Every storey has a hallway from west to east with a band of rooms on either side. A band is cut into columns; a
//! narrow column holds two small rooms, one at the hallway and one behind it that a neighbouring room leads to. At an end
//! of the hallway there may be a large room as deep as the house, or two. Stairwells lie above each other beside the
//! hallway. Which room becomes what depends on the storey, its size and its neighbours. [`super::walls`] then raises walls
//! and opens doors and windows in them.

use super::walls::{open_doors, open_windows, raise_walls};
use super::{Finish, Opening, Rect, Room, STOREY_HEIGHT, Stairs, Tread, Wall, centimetres};
use crate::rng::Stream;
use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};

/// Kinds of rooms.
pub const KINDS: [&str; 20] = [
    "hallway",
    "stairs",
    "entry",
    "living room",
    "family room",
    "kitchen",
    "dining room",
    "pantry",
    "bedroom",
    "bathroom",
    "closet",
    "office",
    "library",
    "laundry room",
    "gym",
    "game room",
    "playroom",
    "music room",
    "sunroom",
    "storage room",
];

/// Width of a stairwell.
pub(super) const WELL: f64 = 2.4;

/// A house before it is furnished.
pub(super) struct Layout {
    pub storeys: usize,
    pub rooms: Vec<Room>,
    pub walls: Vec<Wall>,
    pub openings: Vec<Opening>,
    pub stairs: Vec<Stairs>,
}

/// Where in the scheme of a storey a room lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Hall,
    Well,
    End,
    Whole,
    AtHall,
    Behind,
}

/// Measures that all storeys share.
struct Frame {
    width: f64,
    depth: f64,
    /// South and north side of the hallway.
    hall: (f64, f64),
    /// West side of the stairwell, and whether it is north of the hallway.
    well: f64,
    well_north: bool,
    storeys: usize,
}

struct Draft {
    rect: Rect,
    place: Place,
    kind: &'static str,
}

/// Draws a house for about `size` viewpoints. `None` when a room got no way in.
pub(super) fn lay_out(size: f64, chance: &mut Stream) -> Option<Layout> {
    let frame = Frame::draw(size, chance);
    let mut layout = Layout {
        storeys: frame.storeys,
        rooms: Vec::new(),
        walls: Vec::new(),
        openings: Vec::new(),
        stairs: Vec::new(),
    };
    let floors = [("brown", "wood"), ("light", "wood"), ("dark", "wood"), ("gray", "tile")];
    let general = floors.choose(chance).copied().unwrap_or(floors[0]);
    for storey in 0..frame.storeys {
        let mut drafts = frame.storey(chance);
        name_rooms(&mut drafts, storey, &frame, chance);
        let first = layout.rooms.len();
        for draft in &drafts {
            layout.rooms.push(finished(draft, storey, general, chance));
        }
        let places: Vec<Place> = drafts.iter().map(|draft| draft.place).collect();
        raise_walls(&mut layout, storey, first);
        open_doors(&mut layout, first, &places, storey, chance)?;
        open_windows(&mut layout, first, storey, chance);
    }
    for storey in 0..frame.storeys - 1 {
        layout.stairs.push(frame.stairs(storey, chance));
    }
    Some(layout)
}

/// A whole number of 5 cm from a range.
pub(super) fn draw(chance: &mut Stream, low: f64, high: f64) -> f64 {
    centimetres((chance.random_range(low..high) * 20.0).round() / 20.0)
}

impl Frame {
    fn draw(size: f64, chance: &mut Stream) -> Frame {
        let most = if size < 65.0 {
            1
        } else if size < 110.0 {
            2
        } else {
            3
        };
        let least = if size < 120.0 { 1 } else { 2 };
        let storeys = chance.random_range(least..=most);
        let (hall, well_band) = (draw(chance, 1.6, 2.3), draw(chance, 3.9, 5.2));
        let other = draw(chance, 3.8, 5.8);
        let depth = centimetres(hall + well_band + other);
        let width = (size * SQUARE_METRES / storeys as f64 / depth).clamp(9.0, 30.0);
        let width = centimetres((width * 20.0).round() / 20.0);
        let well_north = chance.random_bool(0.5);
        let south = if well_north { other } else { well_band };
        let well = draw(chance, width * 0.3, (width * 0.7 - WELL).max(width * 0.3 + 0.1));
        Frame { width, depth, hall: (south, centimetres(south + hall)), well, well_north, storeys }
    }

    /// The rectangles of one storey.
    fn storey(&self, chance: &mut Stream) -> Vec<Draft> {
        let (mut west, mut east) = (0.0, self.width);
        let mut drafts = Vec::new();
        let mut add = |x0: f64, y0: f64, x1: f64, y1: f64, place| {
            let rect = Rect { x0: centimetres(x0), y0: centimetres(y0), x1: centimetres(x1), y1: centimetres(y1) };
            drafts.push(Draft { rect, place, kind: "" });
        };
        let (south, north) = self.hall;
        for at_west in [true, false] {
            let room = if at_west { self.well - 1.0 } else { self.width - self.well - WELL - 1.0 };
            if room < 4.0 || !chance.random_bool(0.55) {
                continue;
            }
            let wide = draw(chance, 3.4, room.min(6.0));
            let (x0, x1) = if at_west { (0.0, wide) } else { (self.width - wide, self.width) };
            if wide * self.depth > 42.0 {
                let cut = if chance.random_bool(0.5) { south } else { north };
                add(x0, 0.0, x1, cut, Place::End);
                add(x0, cut, x1, self.depth, Place::End);
            } else {
                add(x0, 0.0, x1, self.depth, Place::End);
            }
            if at_west { west = wide } else { east = self.width - wide }
        }
        add(west, south, east, north, Place::Hall);
        for is_north in [true, false] {
            let (near, far) = if is_north { (north, self.depth) } else { (south, 0.0) };
            let mut pieces = vec![(west, east)];
            if self.storeys > 1 && is_north == self.well_north {
                pieces = vec![(west, self.well), (self.well + WELL, east)];
                add(self.well, near.min(far), self.well + WELL, near.max(far), Place::Well);
            }
            for (from, to) in pieces {
                for (x0, x1, narrow) in columns(from, to, chance) {
                    // Some columns are less deep: the facade steps back.
                    let set_back = if chance.random_bool(0.25) { draw(chance, 0.4, 1.0) } else { 0.0 };
                    let far = if is_north { far - set_back } else { far + set_back };
                    if narrow {
                        let part = chance.random_range(0.45..0.58);
                        let cut = near + (far - near) * part;
                        add(x0, near.min(cut), x1, near.max(cut), Place::AtHall);
                        add(x0, cut.min(far), x1, cut.max(far), Place::Behind);
                    } else {
                        add(x0, near.min(far), x1, near.max(far), Place::Whole);
                    }
                }
            }
        }
        drafts
    }

    fn stairs(&self, storey: usize, chance: &mut Stream) -> Stairs {
        const RISERS: usize = 16;
        let (south, north) = self.hall;
        let (near, far) = if self.well_north { (north, self.depth) } else { (south, 0.0) };
        let away = if self.well_north { 1.0 } else { -1.0 };
        let going = 0.26;
        // The flights end a step before the hallway and the landing takes the rest.
        let begin = near + away * 0.35;
        let turn = begin + away * going * (RISERS / 2 - 1) as f64;
        let (left, right) = (self.well + 0.1, self.well + WELL - 0.1);
        let middle = self.well + WELL / 2.0;
        let rise = STOREY_HEIGHT / RISERS as f64;
        let tread = |x0: f64, x1: f64, a: f64, b: f64, k: usize| Tread {
            rect: Rect {
                x0: centimetres(x0),
                x1: centimetres(x1),
                y0: centimetres(a.min(b)),
                y1: centimetres(a.max(b)),
            },
            top: centimetres(rise * k as f64),
        };
        let step = |k: usize| begin + away * going * k as f64;
        let half = RISERS / 2;
        let mut treads: Vec<Tread> =
            (0..half - 1).map(|k| tread(left, middle - 0.05, step(k), step(k + 1), k + 1)).collect();
        treads.push(tread(left, right, turn, far - away * 0.1, half));
        treads.extend(
            (0..half - 1).map(|k| tread(middle + 0.05, right, step(half - 2 - k), step(half - 1 - k), half + 1 + k)),
        );
        let base = storey as f64 * STOREY_HEIGHT;
        let on = |x: f64, k: usize, height: f64| [x, step(k) + away * going / 2.0, base + height];
        let stands = [
            on((left + middle) / 2.0, 3, rise * 4.0),
            [middle, (turn + far) / 2.0, base + rise * half as f64],
            on((right + middle) / 2.0, 3, rise * 12.0),
        ]
        .map(|point: [f64; 3]| point.map(centimetres));
        let colours = [("brown", "wood"), ("white", "wood"), ("gray", "carpet"), ("beige", "carpet"), ("dark", "wood")];
        let (colour, material) = colours.choose(chance).copied().unwrap_or(colours[0]);
        let rect = Rect { x0: self.well, x1: self.well + WELL, y0: near.min(far), y1: near.max(far) };
        Stairs { storey, rect, treads, stands, finish: Finish::new(colour, material) }
    }
}

/// Square metres of a storey for a viewpoint.
const SQUARE_METRES: f64 = 3.4;

/// Cuts a stretch into columns: west side, east side, and whether it is a narrow one.
fn columns(from: f64, to: f64, chance: &mut Stream) -> Vec<(f64, f64, bool)> {
    let length = to - from;
    if length < 1.6 {
        return Vec::new();
    }
    let mut widths: Vec<(f64, bool)> = Vec::new();
    let mut sum = 0.0;
    let mut narrow_before = true;
    while sum < length {
        let narrow = !narrow_before && chance.random_bool(0.5);
        let width = if narrow { chance.random_range(1.9..2.5) } else { chance.random_range(3.0..5.6) };
        // A remaining stretch is spread among the columns.
        if sum + width > length + 1.2 && !widths.is_empty() {
            break;
        }
        sum += width;
        widths.push((width, narrow));
        narrow_before = narrow;
    }
    if length < 2.7 {
        widths = vec![(length, true)];
        sum = length;
    }
    widths.shuffle(chance);
    let mut at = from;
    let mut columns = Vec::new();
    for (i, (width, narrow)) in widths.iter().enumerate() {
        let end = if i + 1 == widths.len() { to } else { at + width * length / sum };
        columns.push((centimetres(at), centimetres(end), *narrow && end - at < 3.0));
        at = centimetres(end);
    }
    columns
}

/// Whether two rectangles share a stretch of an edge at least `least` long.
fn beside(a: &Rect, b: &Rect, least: f64) -> bool {
    let along_x = a.x1.min(b.x1) - a.x0.max(b.x0);
    let along_y = a.y1.min(b.y1) - a.y0.max(b.y0);
    (along_x >= least && (a.y0 == b.y1 || a.y1 == b.y0)) || (along_y >= least && (a.x0 == b.x1 || a.x1 == b.x0))
}

/// Gives every room its kind.
fn name_rooms(drafts: &mut [Draft], storey: usize, frame: &Frame, chance: &mut Stream) {
    let ground = storey == 0;
    let lone = frame.storeys == 1;
    for draft in drafts.iter_mut() {
        match draft.place {
            Place::Hall => draft.kind = "hallway",
            Place::Well => draft.kind = "stairs",
            _ => {}
        }
    }
    let of = |drafts: &[Draft], place: Place| -> Vec<usize> {
        (0..drafts.len()).filter(|i| drafts[*i].place == place && drafts[*i].kind.is_empty()).collect()
    };
    let ends = of(drafts, Place::End);
    let mut wholes = of(drafts, Place::Whole);
    wholes.shuffle(chance);
    if ground {
        let mut living: Vec<&'static str> = vec!["living room", "dining room", "family room", "sunroom"];
        for end in &ends {
            drafts[*end].kind = living.remove(0);
        }
        let pair = wholes.iter().find_map(|a| {
            let partner = wholes.iter().find(|b| a != *b && beside(&drafts[*a].rect, &drafts[**b].rect, 2.0));
            partner.map(|b| (*a, *b))
        });
        let kitchen = pair.map(|(a, _)| a).or(wholes.first().copied());
        if let Some(kitchen) = kitchen {
            drafts[kitchen].kind = "kitchen";
        }
        if living.contains(&"dining room")
            && wholes.len() > 2
            && let Some((_, dining)) = pair
        {
            drafts[dining].kind = "dining room";
        }
        wholes.retain(|i| drafts[*i].kind.is_empty());
        if ends.is_empty() {
            let largest =
                wholes.iter().copied().max_by(|a, b| drafts[*a].rect.area().total_cmp(&drafts[*b].rect.area()));
            if let Some(largest) = largest {
                drafts[largest].kind = "living room";
            }
        }
        wholes.retain(|i| drafts[*i].kind.is_empty());
        let south = |i: &usize| drafts[*i].rect.y1 <= frame.hall.0;
        let smallest = |list: &[usize]| {
            let by_size = |a: &usize, b: &usize| drafts[*a].rect.area().total_cmp(&drafts[*b].rect.area());
            list.iter().copied().filter(south).min_by(by_size)
        };
        let entry = if wholes.len() > 2 { smallest(&wholes) } else { None };
        if let Some(entry) = entry {
            drafts[entry].kind = "entry";
        }
    } else {
        for end in &ends {
            drafts[*end].kind = if chance.random_bool(0.7) { "bedroom" } else { "family room" };
        }
    }
    wholes.retain(|i| drafts[*i].kind.is_empty());
    let mut further = vec!["office", "library", "gym", "game room", "playroom", "music room", "laundry room", "office"];
    further.shuffle(chance);
    for (number, i) in wholes.iter().enumerate() {
        let bedroom = match (ground, lone) {
            (true, false) => chance.random_bool(0.2),
            (true, true) => number < 3 || chance.random_bool(0.3),
            (false, _) => number < 2 || chance.random_bool(0.5),
        };
        drafts[*i].kind = if bedroom { "bedroom" } else { further.pop().unwrap_or("bedroom") };
    }
    let next_to = |drafts: &[Draft], i: usize, kind: &str| {
        drafts.iter().any(|d| d.kind == kind && beside(&drafts[i].rect, &d.rect, 1.2))
    };
    let mut bathrooms = 0;
    for i in of(drafts, Place::AtHall) {
        let draws = ["bathroom", "laundry room", "closet", "bathroom"];
        drafts[i].kind = if bathrooms == 0 { "bathroom" } else { draws.choose(chance).copied().unwrap_or("closet") };
        bathrooms += usize::from(drafts[i].kind == "bathroom");
    }
    for i in of(drafts, Place::Behind) {
        drafts[i].kind = if next_to(drafts, i, "kitchen") {
            "pantry"
        } else if next_to(drafts, i, "bedroom") {
            if chance.random_bool(0.55) { "bathroom" } else { "closet" }
        } else {
            ["closet", "storage room", "office"].choose(chance).copied().unwrap_or("closet")
        };
    }
}

fn finished(draft: &Draft, storey: usize, general: (&'static str, &'static str), chance: &mut Stream) -> Room {
    let mut pick = |list: &[(&'static str, &'static str)]| list.choose(chance).copied().unwrap_or(("white", "paint"));
    let floor = match draft.kind {
        "bathroom" | "laundry room" => {
            pick(&[("white", "tile"), ("gray", "tile"), ("beige", "tile"), ("black", "tile")])
        }
        "kitchen" | "pantry" | "entry" => pick(&[("beige", "tile"), ("gray", "tile"), ("white", "tile"), general]),
        "bedroom" | "closet" | "playroom" => {
            pick(&[("beige", "carpet"), ("gray", "carpet"), ("blue", "carpet"), general])
        }
        _ => general,
    };
    let walls = match draft.kind {
        "hallway" | "stairs" => pick(&[("white", "paint"), ("beige", "paint")]),
        "bathroom" => pick(&[("white", "tile"), ("blue", "tile"), ("green", "tile"), ("white", "paint")]),
        _ => pick(&[
            ("white", "paint"),
            ("white", "paint"),
            ("beige", "paint"),
            ("gray", "paint"),
            ("yellow", "paint"),
            ("blue", "paint"),
            ("green", "paint"),
            ("red", "paint"),
        ]),
    };
    Room {
        kind: draft.kind.to_owned(),
        storey,
        rect: draft.rect,
        floor: Finish::new(floor.0, floor.1),
        walls: Finish::new(walls.0, walls.1),
    }
}
