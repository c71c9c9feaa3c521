//! Putting things into rooms: nothing overlaps, no door or archway is blocked, and every door of a room can be reached
//! from every other.

use super::catalogue::{Furnishing, Piece, Spot, find, furnishings};
use super::{Finish, House, Item, Opening, ROOM_HEIGHT, Rect, centimetres};
use crate::rng::Stream;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// Places tried for a piece.
const TRIES: usize = 40;

/// The length that stays free in front of and behind a door.
const CLEAR: f64 = 0.95;

/// Half the width of somebody who walks.
pub(super) const BODY: f64 = 0.24;

/// Furnishes all rooms.
pub(super) fn furnish(house: &mut House, chance: &mut Stream) {
    rail_stairwells(house);
    for index in 0..house.rooms.len() {
        let mut room = Bare::of(house, index);
        for Furnishing { kind, most, chance: share } in furnishings(&house.rooms[index].kind) {
            let Some(piece) = find(kind) else { continue };
            let (mut finish, mut size) = (None, None);
            for _ in 0..*most {
                if !chance.random_bool(*share) {
                    continue;
                }
                // Things of a kind look alike within a room, as chairs of a table do; they vary between rooms.
                let finish = finish.get_or_insert_with(|| Finish {
                    colour: piece.colours.choose(chance).map_or("white", String::as_str).to_owned(),
                    material: piece.materials.choose(chance).map_or("wood", String::as_str).to_owned(),
                });
                let size = size.get_or_insert_with(|| {
                    let scale = chance.random_range(0.9..1.12);
                    piece.size.map(|x| centimetres(if x < 0.1 { x } else { x * scale }).max(0.02))
                });
                if let Some(item) = room.place(piece, *size, finish, chance) {
                    room.items.push(item);
                }
            }
        }
        house.items.append(&mut room.items);
    }
}

/// Railings where stairs do not begin: at the flight up on the top storey, and beside the flight on the lowest.
fn rail_stairwells(house: &mut House) {
    for stairs in &house.stairs {
        let finish = stairs.finish.clone();
        let first = stairs.treads[0].rect;
        let middle = stairs.rect.centre()[0];
        // The hallway is on the side of the first tread.
        let edge = if first.centre()[1] < stairs.rect.centre()[1] { stairs.rect.y0 } else { stairs.rect.y1 };
        let mut rail = |storey: usize, x0: f64, x1: f64| {
            let inside = |room: &super::Room| room.storey == storey && room.rect == stairs.rect;
            if let Some(room) = house.rooms.iter().position(inside) {
                let size = [centimetres(x1 - x0), 0.08, 1.0];
                let at = [centimetres((x0 + x1) / 2.0), centimetres(edge)];
                house.items.push(Item {
                    kind: "railing".into(),
                    room,
                    at,
                    bottom: 0.0,
                    size,
                    turn: 0,
                    finish: finish.clone(),
                });
            }
        };
        if stairs.storey == 0 {
            rail(0, middle, stairs.rect.x1);
        }
        if stairs.storey + 2 == house.storeys {
            rail(stairs.storey + 1, stairs.rect.x0, middle);
        }
    }
}

/// A room that is being furnished.
struct Bare {
    index: usize,
    inner: Rect,
    /// Free zones of doors and archways, and the points right inside them.
    clear: Vec<Rect>,
    inside: Vec<[f64; 2]>,
    openings: Vec<Opening>,
    items: Vec<Item>,
}

impl Bare {
    fn of(house: &House, index: usize) -> Bare {
        let rect = house.rooms[index].rect;
        let inner = rect.grown(-0.1);
        let mine = |o: &&Opening| house.sides(o).contains(&Some(index));
        let openings: Vec<Opening> = house.openings.iter().filter(mine).cloned().collect();
        let (mut clear, mut inside) = (Vec::new(), Vec::new());
        for opening in openings.iter().filter(|o| o.bottom == 0.0) {
            let along_x = house.walls[opening.wall].along_x();
            let half = opening.width / 2.0 + 0.05;
            let (w, d) = if along_x { (half, CLEAR) } else { (CLEAR, half) };
            clear.push(Rect {
                x0: opening.at[0] - w,
                x1: opening.at[0] + w,
                y0: opening.at[1] - d,
                y1: opening.at[1] + d,
            });
            if opening.kind.passable() {
                let centre = rect.centre();
                let step = |k: usize| 0.45f64.copysign(centre[k] - opening.at[k]);
                inside.push(if along_x {
                    [opening.at[0], opening.at[1] + step(1)]
                } else {
                    [opening.at[0] + step(0), opening.at[1]]
                });
            }
        }
        Bare { index, inner, clear, inside, openings, items: Vec::new() }
    }

    fn place(&self, piece: &Piece, size: [f64; 3], finish: &Finish, chance: &mut Stream) -> Option<Item> {
        (0..TRIES).find_map(|_| {
            let (at, bottom, turn) = self.propose(piece, size, chance)?;
            let item = Item {
                kind: piece.kind.clone(),
                room: self.index,
                at: at.map(centimetres),
                bottom: centimetres(bottom),
                size,
                turn,
                finish: finish.clone(),
            };
            self.fits(&item, &piece.spot).then_some(item)
        })
    }

    /// A place for a piece that may or may not fit: middle, height, quarter turns. `None` where there can be none.
    fn propose(&self, piece: &Piece, [w, d, h]: [f64; 3], chance: &mut Stream) -> Option<([f64; 2], f64, u8)> {
        let r = self.inner;
        let pick = |kinds: &[String], chance: &mut Stream| {
            let them: Vec<&Item> = self.items.iter().filter(|item| kinds.contains(&item.kind)).collect();
            them.choose(chance).copied()
        };
        Some(match &piece.spot {
            Spot::Wall | Spot::Hung(_) => {
                let turn = chance.random_range(0..4u8);
                let depth = d / 2.0 + 0.01;
                let span = if turn.is_multiple_of(2) { r.width() } else { r.depth() };
                if span < w {
                    return None;
                }
                let along = chance.random_range(w / 2.0..=span - w / 2.0);
                let at = against(&r, turn, along, depth);
                let bottom = if let Spot::Hung(bottom) = piece.spot { bottom } else { 0.0 };
                (at, bottom, turn)
            }
            Spot::Corner => {
                let turn = chance.random_range(0..4u8);
                let span = if turn.is_multiple_of(2) { r.width() } else { r.depth() };
                let along = if chance.random_bool(0.5) { w / 2.0 + 0.02 } else { span - w / 2.0 - 0.02 };
                (against(&r, turn, along, d / 2.0 + 0.02), 0.0, turn)
            }
            Spot::Middle | Spot::Floor | Spot::Ceiling => {
                let loose = if piece.spot == Spot::Ceiling { 0.0 } else { 0.12 };
                let [x, y] = r.centre();
                let dx = chance.random_range(-loose..=loose) * r.width();
                let dy = chance.random_range(-loose..=loose) * r.depth();
                let turn = u8::from((r.width() < r.depth()) == (w > d));
                let bottom = if piece.spot == Spot::Ceiling { ROOM_HEIGHT - h } else { 0.0 };
                ([x + dx, y + dy], bottom, turn)
            }
            Spot::Around(kind) => {
                let table = pick(std::slice::from_ref(kind), chance)?;
                let turn = chance.random_range(0..4u8);
                let t = table.rect();
                let long = if turn.is_multiple_of(2) { t.width() } else { t.depth() };
                if long < w {
                    return None;
                }
                let along = chance.random_range(w / 2.0..=long - w / 2.0);
                // It faces the table, half under it.
                (against(&t.grown(d * 0.75), turn, along + d * 0.75, d / 2.0), 0.0, turn)
            }
            Spot::Before(kind) => {
                let other = pick(std::slice::from_ref(kind), chance)?;
                let gap = if matches!(piece.kind.as_str(), "coffee table" | "trunk") { 0.38 } else { 0.06 };
                let gap = if piece.kind == "trunk" { 0.04 } else { gap };
                let out = other.size[1] / 2.0 + gap + d / 2.0;
                let sideways = if piece.kind == "stool" { chance.random_range(-0.6..0.6) } else { 0.0 };
                let turn = if piece.kind == "coffee table" || piece.kind == "trunk" {
                    other.turn
                } else {
                    (other.turn + 2) % 4
                };
                (offset(other, sideways, out), 0.0, turn)
            }
            Spot::Beside(kind) => {
                let other = pick(std::slice::from_ref(kind), chance)?;
                let side = other.size[0] / 2.0 + w / 2.0 + 0.05;
                let side = if chance.random_bool(0.5) { side } else { -side };
                (offset(other, side, (d - other.size[1]) / 2.0), 0.0, other.turn)
            }
            Spot::On(kinds) => {
                let other = pick(kinds, chance)?;
                let (free_w, free_d) = (other.size[0] - w, other.size[1] - d);
                if free_w < 0.0 || free_d < 0.0 {
                    return None;
                }
                let across = chance.random_range(-0.5..=0.5) * free_w;
                // Pillows lie at the head of the bed and at the back of seats.
                let out = if piece.kind == "pillow" { -0.42 * free_d } else { 0.0 };
                let top = if matches!(other.kind.as_str(), "couch" | "armchair") { 0.45 } else { other.size[2] };
                let sunk = if piece.kind == "sink" { 0.1 } else { 0.0 };
                (offset(other, across, out), other.bottom + top - sunk, other.turn)
            }
        })
    }

    fn fits(&self, item: &Item, spot: &Spot) -> bool {
        let rect = item.rect();
        if !self.inner.grown(0.02).covers(&rect) {
            return false;
        }
        let (low, high) = (item.bottom, item.bottom + item.size[2]);
        let overlaps = |other: &&Item| {
            let margin = if matches!(spot, Spot::Around(_) | Spot::On(_)) { 0.0 } else { 0.03 };
            let (l, h) = (other.bottom, other.bottom + other.size[2]);
            other.rect().grown(margin).meets(&rect) && low < h - 0.001 && l < high - 0.001
        };
        // A sink is let into its counter; chairs stand half under the table, seats lower than its top; a pillow sinks in.
        let pardoned = |other: &&Item| match spot {
            Spot::On(kinds) => kinds.contains(&other.kind),
            Spot::Around(kind) => other.kind == *kind,
            _ => false,
        };
        if self.items.iter().filter(|other| !pardoned(other)).any(|other| overlaps(&other)) {
            return false;
        }
        if matches!(spot, Spot::Floor | Spot::Ceiling) {
            return true;
        }
        // A piece at a wall hides no window that reaches down to it, and nothing hangs in a door.
        let at_opening = |o: &Opening| {
            let reach = o.width / 2.0 + 0.05;
            Rect::around(o.at[0], o.at[1], 2.0 * reach.max(0.35), 2.0 * reach.max(0.35)).meets(&rect)
                && low < o.top
                && o.bottom < high
        };
        let on_top = matches!(spot, Spot::On(_));
        if !on_top && self.openings.iter().any(at_opening) {
            return false;
        }
        if !item.blocks() {
            return true;
        }
        !self.clear.iter().any(|zone| zone.meets(&rect)) && self.walkable_with(item)
    }

    /// Whether with one more piece all doors still reach each other, and a fair part of the room is free.
    fn walkable_with(&self, item: &Item) -> bool {
        const CELL: f64 = 0.15;
        let r = self.inner;
        let (nx, ny) = ((r.width() / CELL) as usize + 1, (r.depth() / CELL) as usize + 1);
        let blocks: Vec<Rect> = self
            .items
            .iter()
            .filter(|other| other.blocks())
            .chain([item])
            .map(|other| other.rect().grown(BODY))
            .collect();
        let point = |i: usize, j: usize| [r.x0 + i as f64 * CELL, r.y0 + j as f64 * CELL];
        let near_wall = |[x, y]: [f64; 2]| x - r.x0 < 0.12 || r.x1 - x < 0.12 || y - r.y0 < 0.12 || r.y1 - y < 0.12;
        let mut free = vec![false; nx * ny];
        for i in 0..nx {
            for j in 0..ny {
                let p = point(i, j);
                free[i * ny + j] = !near_wall(p) && !blocks.iter().any(|block| block.holds(p));
            }
        }
        let cell = |[x, y]: [f64; 2]| {
            let i = ((x - r.x0) / CELL).round().clamp(0.0, (nx - 1) as f64) as usize;
            let j = ((y - r.y0) / CELL).round().clamp(0.0, (ny - 1) as f64) as usize;
            i * ny + j
        };
        let starts: Vec<usize> = self.inside.iter().map(|p| cell(*p)).collect();
        let Some(&start) = starts.first() else { return false };
        let (mut seen, mut open, mut count) = (vec![false; nx * ny], vec![start], 0);
        seen[start] = true;
        while let Some(at) = open.pop() {
            count += 1;
            let (i, j) = (at / ny, at % ny);
            let around = [(i.wrapping_sub(1), j), (i + 1, j), (i, j.wrapping_sub(1)), (i, j + 1)];
            for (i, j) in around.into_iter().filter(|(i, j)| *i < nx && *j < ny) {
                let next = i * ny + j;
                if free[next] && !std::mem::replace(&mut seen[next], true) {
                    open.push(next);
                }
            }
        }
        let total = free.iter().filter(|free| **free).count();
        starts.iter().all(|start| seen[*start])
            && count as f64 * CELL * CELL > (0.22 * r.area()).min(4.0)
            && count * 10 >= total * 9
    }
}

/// The middle of a piece whose back is to the wall that a turn looks away from.
fn against(r: &Rect, turn: u8, along: f64, depth: f64) -> [f64; 2] {
    match turn {
        0 => [r.x0 + along, r.y0 + depth],
        1 => [r.x0 + depth, r.y0 + along],
        2 => [r.x0 + along, r.y1 - depth],
        _ => [r.x1 - depth, r.y0 + along],
    }
}

/// A point beside and before an item, in its own frame: to its right, and to its front.
fn offset(item: &Item, right: f64, front: f64) -> [f64; 2] {
    let [x, y] = item.at;
    match item.turn % 4 {
        0 => [x + right, y + front],
        1 => [x + front, y - right],
        2 => [x - right, y - front],
        _ => [x - front, y + right],
    }
}
