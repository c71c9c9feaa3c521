//! Sights from a viewpoint: lines of sight through a house's walls, doors and furniture.

use super::super::action::{VIEWS, bearing, elevation, view_direction, wrapped};
use super::super::observation::{HALF_HEIGHT, HALF_WIDTH, shares};
use super::walk::solid_stretches;
use super::{House, Item, OpeningKind, ROOM_HEIGHT, Rect, STOREY_HEIGHT};
use std::f64::consts::TAU;
use std::sync::{Arc, LazyLock};

/// Nothing farther away is looked at.
const FARTHEST: f64 = 14.0;

/// Things lower than this hide nothing.
const HIDES: f64 = 1.0;

/// Directions in which surfaces are looked for: so many around, so many from bottom to top.
const AROUND: usize = 48;
const LEVELS: usize = 10;

/// Distances are compared with so much room for rounding.
const NEAR: f64 = 1e-6;

/// Parts of a full turn by which the solids around a viewpoint are sorted.
const SECTORS: usize = 64;

/// Angles are compared with so much room for rounding, as parts of a quarter turn.
const ANGLE_NEAR: f64 = 1e-6;

/// A direction in which surfaces are looked for, with the views that contain it.
struct Ray {
    /// Sine and cosine of its heading, and of its elevation.
    heading: (f64, f64),
    up: (f64, f64),
    views: Vec<usize>,
}

/// All of them, which are the same from everywhere.
static RAYS: LazyLock<Vec<Ray>> = LazyLock::new(|| {
    let ray = |level: usize, around: usize| {
        let up = (level as f64 + 0.5) / LEVELS as f64 * 4.0 * HALF_HEIGHT - 2.0 * HALF_HEIGHT;
        let heading = around as f64 / AROUND as f64 * TAU;
        let views = (0..VIEWS).filter(|view| {
            let (h, e) = view_direction(*view as u8);
            wrapped(heading - h).abs() <= HALF_WIDTH && (up - e).abs() <= HALF_HEIGHT
        });
        Ray { heading: heading.sin_cos(), up: up.sin_cos(), views: views.collect() }
    };
    (0..LEVELS).flat_map(|level| (0..AROUND).map(move |around| ray(level, around))).collect()
});

/// Something that is seen: a thing, or an opening in a wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Seen {
    /// Index of an item.
    Item(usize),
    /// Index of an opening.
    Opening(usize),
}

/// Something that is seen from a viewpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    /// The thing or opening.
    pub what: Seen,
    /// Direction of its middle.
    pub bearing: f64,
    /// Direction of its middle.
    pub elevation: f64,
    /// Angles that it takes up.
    pub width: f64,
    /// Angles that it takes up.
    pub height: f64,
    /// Distance of its middle.
    pub distance: f64,
    /// Share of it that nothing hides, above 0.
    pub part: f64,
}

/// A surface seen: what people call it, in which view, and the share of the view that it covers.
#[derive(Clone, Debug, PartialEq)]
pub struct Surface {
    /// A room kind, `wood floor`, `white wall`, …
    pub name: String,
    /// View, 0 to 35.
    pub view: u8,
    /// Share of the view.
    pub share: f64,
}

/// The findings of one ray in a room.
#[derive(Clone, Copy)]
enum Part {
    Room,
    Floor,
    Wall,
}

/// A box.
#[derive(Clone, Copy, Debug)]
struct Solid {
    rect: Rect,
    bottom: f64,
    top: f64,
    /// The item that it is; its own box does not hide it.
    item: Option<usize>,
}

impl Solid {
    /// Whether it reaches into the box between two corners; most do not, and need no closer look.
    fn reaches(&self, low: &[f64; 3], high: &[f64; 3]) -> bool {
        self.rect.x0 <= high[0]
            && self.rect.x1 >= low[0]
            && self.rect.y0 <= high[1]
            && self.rect.y1 >= low[1]
            && self.bottom <= high[2]
            && self.top >= low[2]
    }

    /// Distance of its nearest point.
    fn distance(&self, from: [f64; 3]) -> f64 {
        let bounds = [(self.rect.x0, self.rect.x1), (self.rect.y0, self.rect.y1), (self.bottom, self.top)];
        let square = |(k, (low, high)): (usize, (f64, f64))| (low - from[k]).max(from[k] - high).max(0.0).powi(2);
        bounds.into_iter().enumerate().map(square).sum::<f64>().sqrt()
    }

    /// The share of a line's length at which it enters the box; `None` where the line misses it.
    fn entered(&self, from: [f64; 3], to: [f64; 3]) -> Option<f64> {
        let (mut enter, mut leave) = (0.0f64, 1.0f64);
        let bounds = [(self.rect.x0, self.rect.x1), (self.rect.y0, self.rect.y1), (self.bottom, self.top)];
        for (k, (low, high)) in bounds.into_iter().enumerate() {
            let d = to[k] - from[k];
            if d == 0.0 {
                if from[k] <= low || from[k] >= high {
                    return None;
                }
            } else {
                let (p, q) = ((low - from[k]) / d, (high - from[k]) / d);
                enter = enter.max(p.min(q));
                leave = leave.min(p.max(q));
            }
        }
        (enter < leave).then_some(enter)
    }
}

/// Everything in a house that hides something.
#[derive(Clone, Debug)]
pub struct Solids(Arc<[Solid]>);

impl Solids {
    /// Collects them.
    pub fn of(house: &House) -> Solids {
        let mut solids = Vec::new();
        for storey in 0..house.storeys {
            let base = storey as f64 * STOREY_HEIGHT;
            let mut add = |rect, bottom: f64, top: f64| {
                if top - bottom > 0.001 {
                    solids.push(Solid { rect, bottom: base + bottom, top: base + top, item: None });
                }
            };
            // Up to the next floor, so that nobody looks over a wall.
            for (wall, a, b) in solid_stretches(house, storey, OpeningKind::transparent) {
                add(wall.stretch(a, b), 0.0, STOREY_HEIGHT);
            }
            for opening in
                house.openings.iter().filter(|o| o.kind.transparent() && house.walls[o.wall].storey == storey)
            {
                let rect = house.opening_rect(opening);
                add(rect, 0.0, opening.bottom);
                add(rect, opening.top, STOREY_HEIGHT);
            }
            // The floor; open where stairs come up.
            for room in house.rooms.iter().filter(|room| room.storey == storey) {
                if room.kind != "stairs" || storey == 0 {
                    add(room.rect, -0.1, 0.0);
                }
            }
        }
        for (index, item) in
            house.items.iter().enumerate().filter(|(_, item)| item.size[2] >= HIDES && item.kind != "railing")
        {
            // Glass hides nothing.
            if item.finish.material != "glass" {
                let bottom = house.floor_of(item.room) + item.bottom;
                solids.push(Solid { rect: item.rect(), bottom, top: bottom + item.size[2], item: Some(index) });
            }
        }
        Solids(solids.into())
    }
}

/// Lines of sight in a house.
#[derive(Clone, Debug)]
pub struct Eyes<'a> {
    house: &'a House,
    solids: Arc<[Solid]>,
}

/// The solids around a viewpoint, each with the least distance at which a line from there could enter it; the nearest first. A line
/// meets those of its own sector alone.
struct Around {
    from: [f64; 3],
    solids: Vec<(f64, usize)>,
    /// Those of all sectors, one sector after the other; a solid that lies in several is there several times.
    sectors: Vec<(f64, usize)>,
    /// Where each sector begins in them, and where the last one ends.
    begins: [usize; SECTORS + 1],
}

/// A direction as a number that grows with its angle, from 0 to 4 around: quicker than the angle itself.
fn turned(dx: f64, dy: f64) -> f64 {
    let part = dy / (dx.abs() + dy.abs());
    if dx < 0.0 {
        2.0 - part
    } else if part < 0.0 {
        4.0 + part
    } else {
        part
    }
}

impl Around {
    /// Sorts solids by the sectors in which they lie.
    fn new(from: [f64; 3], mut solids: Vec<(f64, usize)>, all: &[Solid]) -> Around {
        solids.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The first sector of each, and how many it lies in.
        let spread = |&(_, at): &(f64, usize)| -> (usize, usize) {
            let rect = all[at].rect;
            let (west, east) = (rect.x0 - from[0], rect.x1 - from[0]);
            let (south, north) = (rect.y0 - from[1], rect.y1 - from[1]);
            if west < NEAR && east > -NEAR && south < NEAR && north > -NEAR {
                return (0, SECTORS); // It is above, below or around the viewpoint.
            }
            let [x, y] = rect.centre();
            let middle = turned(x - from[0], y - from[1]);
            let (mut least, mut most) = (0.0f64, 0.0f64);
            for (dx, dy) in [(west, south), (west, north), (east, south), (east, north)] {
                let off = turned(dx, dy) - middle;
                let off = if off > 2.0 {
                    off - 4.0
                } else if off < -2.0 {
                    off + 4.0
                } else {
                    off
                };
                (least, most) = (least.min(off), most.max(off));
            }
            let sector = |angle: f64| (angle * SECTORS as f64 / 4.0).floor() as i64;
            let (first, last) = (sector(middle + least - ANGLE_NEAR), sector(middle + most + ANGLE_NEAR));
            (first.rem_euclid(SECTORS as i64) as usize, (last - first + 1) as usize)
        };
        let spreads: Vec<(usize, usize)> = solids.iter().map(spread).collect();
        let each = |(first, count): (usize, usize)| (first..first + count).map(|sector| sector % SECTORS);
        let mut begins = [0; SECTORS + 1];
        spreads.iter().flat_map(|spread| each(*spread)).for_each(|sector| begins[sector + 1] += 1);
        (0..SECTORS).for_each(|sector| begins[sector + 1] += begins[sector]);
        let (mut next, mut sectors) = (begins, vec![(0.0, 0); begins[SECTORS]]);
        for (solid, spread) in solids.iter().zip(&spreads) {
            for sector in each(*spread) {
                sectors[next[sector]] = *solid;
                next[sector] += 1;
            }
        }
        Around { from, solids, sectors, begins }
    }

    /// The solids that a line to a point can meet.
    fn towards(&self, to: [f64; 3]) -> &[(f64, usize)] {
        let (dx, dy) = (to[0] - self.from[0], to[1] - self.from[1]);
        if dx.abs() + dy.abs() < NEAR {
            return &self.solids; // Straight up or down.
        }
        let sector = (turned(dx, dy) * SECTORS as f64 / 4.0) as usize % SECTORS;
        &self.sectors[self.begins[sector]..self.begins[sector + 1]]
    }
}

impl<'a> Eyes<'a> {
    /// Prepares a house.
    pub fn new(house: &'a House) -> Eyes<'a> {
        Eyes::with(house, &Solids::of(house))
    }

    /// Lines of sight in a house whose solids were collected before.
    pub fn with(house: &'a House, solids: &Solids) -> Eyes<'a> {
        Eyes { house, solids: solids.0.clone() }
    }

    /// The solids around a point, those within a distance.
    fn around(&self, from: [f64; 3], reach: f64) -> Around {
        let near = self.solids.iter().map(|solid| solid.distance(from)).zip(0..).filter(|(d, _)| *d <= reach + NEAR);
        Around::new(from, near.collect(), &self.solids)
    }

    /// Whether nothing lies between a viewpoint and a point; the item itself does not count.
    fn open(&self, near: &Around, to: [f64; 3], item: Option<usize>) -> bool {
        let from = near.from;
        let low = [0, 1, 2].map(|k| from[k].min(to[k]));
        let high = [0, 1, 2].map(|k| from[k].max(to[k]));
        let length = super::super::graph::distance_between(&from, &to);
        let hides =
            |s: &Solid| (s.item.is_none() || s.item != item) && s.entered(from, to).is_some_and(|share| share < 0.995);
        let reached = near.towards(to).iter().take_while(|(distance, _)| *distance <= length + NEAR);
        !reached.map(|(_, at)| &self.solids[*at]).any(|s| s.reaches(&low, &high) && hides(s))
    }

    /// Whether one viewpoint sees another's place.
    pub fn between(&self, a: usize, b: usize) -> bool {
        let [from, to] = [a, b].map(|stand| self.house.stands[stand].position);
        self.open(&self.around(from, f64::INFINITY), to, None)
    }

    /// Everything that is seen from a viewpoint, nearest first.
    pub fn sights(&self, stand: usize) -> Vec<Sight> {
        let near = self.around(self.house.stands[stand].position, f64::INFINITY);
        let items = self.house.items.iter().enumerate().map(|(i, item)| {
            let bottom = self.house.floor_of(item.room) + item.bottom;
            (Seen::Item(i), item.rect(), bottom, bottom + item.size[2])
        });
        let openings = self.house.openings.iter().enumerate().map(|(i, opening)| {
            let wall = &self.house.walls[opening.wall];
            let rect = self.house.opening_rect(opening);
            let base = wall.storey as f64 * STOREY_HEIGHT;
            (Seen::Opening(i), rect, base + opening.bottom, base + opening.top)
        });
        let mut sights: Vec<Sight> = items
            .chain(openings)
            .filter_map(|(what, rect, bottom, top)| self.sight(&near, what, &rect, bottom, top))
            .collect();
        sights.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.what.cmp(&b.what)));
        sights
    }

    fn sight(&self, near: &Around, what: Seen, rect: &Rect, bottom: f64, top: f64) -> Option<Sight> {
        let from = near.from;
        let [x, y] = rect.centre();
        let centre = [x, y, (bottom + top) / 2.0];
        let distance = super::super::graph::distance_between(&from, &centre);
        if !(0.05..=FARTHEST).contains(&distance) {
            return None;
        }
        let own = if let Seen::Item(i) = what { Some(i) } else { None };
        // The middle, and points inside the upper corners.
        let samples = [(0.5, 0.5, 0.5), (0.15, 0.15, 0.9), (0.85, 0.15, 0.9), (0.15, 0.85, 0.9), (0.85, 0.85, 0.9)];
        let point = |(u, v, w): (f64, f64, f64)| {
            [rect.x0 + u * rect.width(), rect.y0 + v * rect.depth(), bottom + w * (top - bottom)]
        };
        let open = samples.iter().filter(|sample| self.open(near, point(**sample), own)).count();
        if open == 0 {
            return None;
        }
        let middle = bearing(&from, &centre);
        let (mut left, mut right, mut low, mut high) = (0.0f64, 0.0f64, f64::MAX, f64::MIN);
        for corner in 0..8 {
            let pick = |bit: usize, a: f64, b: f64| if corner >> bit & 1 == 0 { a } else { b };
            let corner = [pick(0, rect.x0, rect.x1), pick(1, rect.y0, rect.y1), pick(2, bottom, top)];
            let off = wrapped(bearing(&from, &corner) - middle);
            (left, right) = (left.min(off), right.max(off));
            let up = elevation(&from, &corner);
            (low, high) = (low.min(up), high.max(up));
        }
        Some(Sight {
            what,
            bearing: wrapped(middle + (left + right) / 2.0),
            elevation: (low + high) / 2.0,
            width: right - left,
            height: high - low,
            distance,
            part: open as f64 / samples.len() as f64,
        })
    }

    /// Floors, walls and room kinds seen from a viewpoint, view by view.
    pub fn surfaces(&self, stand: usize) -> Vec<Surface> {
        let near = self.around(self.house.stands[stand].position, FARTHEST);
        let mut shares: Vec<(String, [f64; VIEWS])> = Vec::new();
        // The place of each room's name and of the names of its surfaces among them, once they were met.
        let mut known = vec![[None; 3]; self.house.rooms.len()];
        let mut rays = [0.0; VIEWS];
        for ray in RAYS.iter() {
            ray.views.iter().for_each(|view| rays[*view] += 1.0);
            let Some((room, part)) = self.surface(&near, ray) else { continue };
            for part in [Some(Part::Room), part].into_iter().flatten() {
                let at = *known[room][part as usize].get_or_insert_with(|| {
                    let name = self.part_name(room, part);
                    shares.iter().position(|(other, _)| *other == name).unwrap_or_else(|| {
                        shares.push((name, [0.0; VIEWS]));
                        shares.len() - 1
                    })
                });
                ray.views.iter().for_each(|view| shares[at].1[*view] += 1.0);
            }
        }
        let each = |(name, counts): (String, [f64; VIEWS])| {
            (0..VIEWS).filter(move |v| counts[*v] > 0.0).map(move |v| (name.clone(), v, counts[v])).collect::<Vec<_>>()
        };
        let surface =
            |(name, view, count): (String, usize, f64)| Surface { name, view: view as u8, share: count / rays[view] };
        shares.into_iter().flat_map(each).map(surface).collect()
    }

    /// The solid that a line to `end` meets first, with the share of its length; of several that are entered at the same place the
    /// first in the house's order.
    fn met(&self, near: &Around, end: [f64; 3]) -> Option<(f64, usize)> {
        let mut first: Option<(f64, usize)> = None;
        for &(distance, at) in near.towards(end) {
            if first.is_some_and(|(share, _)| distance > share * FARTHEST + NEAR) {
                break; // Nothing behind can be entered before the one that was found.
            }
            if let Some(share) = self.solids[at].entered(near.from, end).filter(|share| *share > 0.0)
                && first.is_none_or(|(best, index)| share.total_cmp(&best).then(at.cmp(&index)).is_lt())
            {
                first = Some((share, at));
            }
        }
        first
    }

    /// The room that a ray shows, and the surface of it that the ray meets, where it is floor or wall.
    fn surface(&self, near: &Around, ray: &Ray) -> Option<(usize, Option<Part>)> {
        let from = near.from;
        let step = |length: f64| {
            let flat = length * ray.up.1;
            [from[0] + flat * ray.heading.0, from[1] + flat * ray.heading.1, from[2] + length * ray.up.0]
        };
        let end = step(FARTHEST);
        let (share, at) = self.met(near, end)?;
        let item = self.solids[at].item;
        // Just before the surface is the room that shows it.
        let [x, y, z] = step((share * FARTHEST - 0.02).max(0.0));
        let storey = (z / STOREY_HEIGHT).max(0.0) as usize;
        let room = self.house.rooms.iter().position(|room| {
            let r = room.rect;
            room.storey == storey && r.x0 <= x && x <= r.x1 && r.y0 <= y && y <= r.y1
        })?;
        let height = z - storey as f64 * STOREY_HEIGHT;
        let part = match item {
            None if height < 0.05 => Some(Part::Floor),
            None if height < ROOM_HEIGHT => Some(Part::Wall),
            _ => None,
        };
        Some((room, part))
    }

    /// Names that people use for a room or its surfaces.
    fn part_name(&self, room: usize, part: Part) -> String {
        let room = &self.house.rooms[room];
        match part {
            Part::Room => room.kind.clone(),
            Part::Floor => format!("{} floor", room.floor.material),
            Part::Wall => format!("{} wall", room.walls.colour),
        }
    }

    /// The views that show a sight, with the share that it covers of each.
    pub fn views(sight: &Sight) -> impl Iterator<Item = (u8, f64)> {
        let part = sight.part;
        shares(sight.bearing, sight.elevation, sight.width, sight.height).map(move |(view, share)| (view, share * part))
    }
}

impl House {
    /// The everyday name of a sight.
    pub fn name_of(&self, seen: Seen) -> &str {
        match seen {
            Seen::Item(i) => &self.items[i].kind,
            Seen::Opening(i) => self.openings[i].kind.name(),
        }
    }

    /// The item of a sight, if it is one.
    pub fn item_of(&self, seen: Seen) -> Option<&Item> {
        if let Seen::Item(i) = seen { self.items.get(i) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_at_the_nearest_solids_first_meets_what_looking_at_all_of_them_does() {
        for seed in [1, 7] {
            let house = House::generate(seed);
            let eyes = Eyes::new(&house);
            for stand in (0..house.stands.len()).step_by(3) {
                let from = house.stands[stand].position;
                let near = eyes.around(from, FARTHEST);
                for Ray { heading, up, .. } in RAYS.iter() {
                    let flat = FARTHEST * up.1;
                    let end = [from[0] + flat * heading.0, from[1] + flat * heading.1, from[2] + FARTHEST * up.0];
                    let entered =
                        |(at, solid): (usize, &Solid)| Some((solid.entered(from, end).filter(|e| *e > 0.0)?, at));
                    let all = eyes.solids.iter().enumerate().filter_map(entered);
                    assert_eq!(
                        eyes.met(&near, end),
                        all.min_by(|a, b| a.0.total_cmp(&b.0)),
                        "house {seed}, stand {stand}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_line_of_sight_is_open_where_none_of_all_solids_lies_on_it() {
        let (mut open, mut hidden) = (0, 0);
        for seed in [1, 4, 7] {
            let house = House::generate(seed);
            let eyes = Eyes::new(&house);
            for stand in (0..house.stands.len()).step_by(5) {
                let near = eyes.around(house.stands[stand].position, f64::INFINITY);
                for (number, item) in house.items.iter().enumerate() {
                    let bottom = house.floor_of(item.room) + item.bottom;
                    let [x, y] = item.rect().centre();
                    // Also straight above the viewpoint.
                    for to in [[x, y, bottom + 0.5 * item.size[2]], [near.from[0], near.from[1], bottom]] {
                        let hides = |s: &Solid| s.entered(near.from, to).is_some_and(|share| share < 0.995);
                        let free = !eyes.solids.iter().any(|s| s.item != Some(number) && hides(s));
                        assert_eq!(eyes.open(&near, to, Some(number)), free, "house {seed}, stand {stand}, {to:?}");
                        *(if free { &mut open } else { &mut hidden }) += 1;
                    }
                }
            }
        }
        assert!(open > 1000 && hidden > 1000, "{open} are open, {hidden} are not");
    }
}
